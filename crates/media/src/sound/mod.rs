//! Sound in real time: a microphone that hears tones, and Opus at both ends.
//!
//! Each frame of sound contains its own number ([`tones`]), as frames of the camera do ([`crate::stamp`]): a
//! receiver knows of each 20 ms of what it plays when they were captured, whatever the transport says of them.
//!
//! ```
//! use suiro_media::sound::{Decoder, Encoder, SAMPLES, tones};
//! use suiro_units::BitRate;
//!
//! let mut encoder = Encoder::new(BitRate::from_kbps(32))?;
//! let mut decoder = Decoder::new()?;
//! let packet = encoder.encode(&tones::frame(7))?;
//! assert_eq!(decoder.decode(&packet)?.len(), SAMPLES);
//! assert_eq!(decoder.conceal()?.len(), SAMPLES, "the next one did not come");
//! # Ok::<(), suiro_media::sound::SoundError>(())
//! ```

mod codec;
mod listen;
mod spec;
pub mod tones;

use suiro_strict::Bounds;
use suiro_units::{BitRate, Duration};

pub use codec::{Decoder, Encoder, SoundError};
pub use listen::Ear;
pub use spec::Audio;

/// Samples in a second of every sound: Opus has the clock of 48 kHz whatever it codes (RFC 7587 §4.1).
pub const RATE: u32 = 48_000;
/// From one frame to the next: what RFC 7587 §4.2 recommends, and browsers do.
pub const FRAME: Duration = Duration::from_millis(20);
/// Samples of a frame.
pub const SAMPLES: usize = 960;
/// By how much what a decoder says is behind what its encoder heard: 5 ms by which the encoder looks ahead, and half of the
/// overlap of 2.5 ms between transforms.
pub const CODEC_DELAY: Duration = Duration::from_micros(6500);
/// Largest packet: a frame of 20 ms has at most 1275 bytes, and one that begins it (RFC 6716 §3.2.1, §3.4).
pub const PACKET_MAX: usize = 1276;
/// Bit rates that an encoder can be set to (RFC 6716 §2.1.1).
pub const RATES: Bounds<BitRate> = Bounds::new(BitRate::from_kbps(6), BitRate::from_kbps(510));
