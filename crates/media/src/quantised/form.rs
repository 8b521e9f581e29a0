//! The form of the video: its size, its groups, its quantiser scales.

use suiro_units::Duration;

/// Pixels across and down.
pub const SIZE: (u32, u32) = (720, 480);

/// Frames per second, as a fraction: 29.97.
pub const RATE: (u32, u32) = (30_000, 1001);

/// Frames of a group.
pub const GROUP: u32 = 30;

/// Length of a group: 1.001 s.
pub const GROUP_DURATION: Duration = Duration::from_millis(1001);

/// Quantiser scales of a specification that names none. Of Big Buck Bunny they make 1.2 to
/// 14.5 Mbit/s, stamped: from what MPEG-TFRCP had as its lowest (1.138 Mbit/s) to the finest that the encoder
/// has. Its highest, 27.26 Mbit/s, would need footage with more in it.
pub const SCALES: [u8; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
