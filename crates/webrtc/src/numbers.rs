//! The receiver's side of sound: from timestamps of RTP to numbers of frames. Pure.

use suiro_media::sound::{FRAME, SAMPLES};
use suiro_realtime::Numbering;

use crate::peer::Sound;

/// A capture time that is so near to a multiple of 20 ms is one: the clock of RTP extensions rounds.
const GRID: u64 = 2_000;
/// Numbers of other senders begin here, so that a packet which is reordered before the first has one.
const FIRST: u64 = 1 << 16;

/// Where numbers count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Base {
    /// An extended timestamp, and the number of the frame that begins there.
    timestamp: u64,
    number: u64,
    /// Whether numbers are those of the wall clock.
    wall: bool,
}

/// How the frames of one stream are numbered.
pub struct Numbers {
    base: Option<Base>,
    /// The newest timestamp, extended.
    newest: u64,
    /// The sender's wall clock at a timestamp, as it was told last.
    clock: Option<(u32, u64)>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { base: None, newest: 1 << 32, clock: None }
    }
}

impl Numbers {
    /// The number of the frame in a packet.
    pub fn of(&mut self, sound: &Sound) -> (u64, Numbering) {
        self.clock = sound.clock.or(self.clock);
        self.number(sound.timestamp)
    }

    /// The number of the frame that begins at a timestamp.
    fn number(&mut self, timestamp: u32) -> (u64, Numbering) {
        // RFC 3550 §5.1: timestamps wrap around, and what is less than half a turn behind is earlier.
        let ahead = timestamp.wrapping_sub(self.newest as u32).cast_signed();
        let extended = self.newest.saturating_add_signed(ahead.into());
        let captured = self.captured_unix_ns(timestamp);
        let base = *self.base.get_or_insert_with(|| {
            let grid = FRAME.as_nanos();
            let nearest = captured.map(|unix| unix.saturating_add(grid / 2) / grid);
            let wall = nearest.filter(|nearest| {
                captured.is_some_and(|unix| unix.abs_diff(nearest * grid) <= GRID)
            });
            Base { timestamp: extended, number: wall.unwrap_or(FIRST), wall: wall.is_some() }
        });
        self.newest = self.newest.max(extended);
        // Half of a frame more: whole frames, rounded.
        let samples = i128::from(extended) - i128::from(base.timestamp) + SAMPLES as i128 / 2;
        let frames = samples.div_euclid(SAMPLES as i128);
        let number = u64::try_from(i128::from(base.number) + frames).unwrap_or(0);
        let numbering = match base.wall {
            true => Numbering::Wall,
            false => Numbering::Counted(captured.map(|unix| (number, unix))),
        };
        (number, numbering)
    }

    /// When a timestamp was captured, by the sender's clock.
    fn captured_unix_ns(&self, timestamp: u32) -> Option<u64> {
        let (told, unix_ns) = self.clock?;
        let samples = i64::from(timestamp.wrapping_sub(told).cast_signed());
        // 48 kHz: a sample takes 62,500 / 3 ns.
        unix_ns.checked_add_signed(samples * 62_500 / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_microphone_of_suiro_numbers_frames_by_the_wall_clock() {
        let mut numbers = Numbers::default();
        // 2026; the clock of NTP has rounded.
        let number: u64 = 1_795_000_000 * 50 + 7;
        let timestamp = number.wrapping_mul(960) as u32;
        numbers.clock = Some((timestamp, number * 20_000_000 - 1));
        for (ahead, expected) in [(0, number), (3, number + 3), (1, number + 1)] {
            let told = numbers.number(timestamp.wrapping_add(960 * ahead));
            assert_eq!(told, (expected, Numbering::Wall));
        }
    }

    #[test]
    fn others_are_counted_and_timestamps_wrap_around() {
        let mut numbers = Numbers::default();
        let first = u32::MAX - 960;
        assert_eq!(numbers.number(first), (FIRST, Numbering::Counted(None)));
        numbers.clock = Some((first, 1_000_000_777));
        let told = numbers.number(first.wrapping_add(1920));
        assert_eq!(told, (FIRST + 2, Numbering::Counted(Some((FIRST + 2, 1_040_000_777)))));
        assert_eq!(numbers.number(first.wrapping_sub(960)).0, FIRST - 1, "it was reordered");
    }

    proptest::proptest! {
        #[test]
        fn any_timestamps_have_numbers(all in proptest::collection::vec(proptest::prelude::any::<(u32, Option<(u32, u64)>)>(), 0..50)) {
            let mut numbers = Numbers::default();
            for (timestamp, clock) in all {
                numbers.clock = clock.or(numbers.clock);
                numbers.number(timestamp);
            }
        }
    }
}
