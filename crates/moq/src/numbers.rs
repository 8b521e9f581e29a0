//! The sound of a broadcast: from times of objects to numbers of frames. Pure.

use suiro_media::sound::FRAME;
use suiro_realtime::Numbering;

/// Microseconds of a frame.
const FRAME_US: u64 = FRAME.as_nanos() / 1000;
/// Times of others may count from anywhere; one of this century counts from 1970.
const CENTURY_US: u64 = 946_684_800_000_000;

/// How the frames of one broadcast are numbered.
#[derive(Default)]
pub(crate) struct Numbers(Option<(u64, Numbering)>);

impl Numbers {
    /// The number of the frame with that time. The microphone of suiro begins frames at multiples of 20 ms since 1970.
    pub fn of(&mut self, time_us: u64) -> (u64, Numbering) {
        let wall = time_us >= CENTURY_US && time_us.is_multiple_of(FRAME_US);
        let numbering = if wall { Numbering::Wall } else { Numbering::Counted(None) };
        let (first, numbering) = *self.0.get_or_insert((time_us, numbering));
        match numbering {
            Numbering::Wall => (time_us.saturating_add(FRAME_US / 2) / FRAME_US, numbering),
            Numbering::Counted(_) => {
                let since = i128::from(time_us) - i128::from(first) + i128::from(FRAME_US / 2);
                let frames = since.div_euclid(i128::from(FRAME_US));
                // From a number that leaves room for what was reordered before the first.
                (u64::try_from(frames + (1 << 16)).unwrap_or(0), numbering)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_microphone_are_numbers_and_those_of_others_are_counted() {
        let (mut ours, mut others) = (Numbers::default(), Numbers::default());
        let time = 1_795_000_000_000_000;
        assert_eq!(ours.of(time), (time / 20_000, Numbering::Wall));
        assert_eq!(ours.of(time + 60_000).0, time / 20_000 + 3);
        let first = others.of(40_000);
        assert_eq!(first, (1 << 16, Numbering::Counted(None)), "1970 is not when it was captured");
        // WebCodecs rounds times to microseconds, and others to those of their own clocks.
        assert_eq!(others.of(60_001).0, (1 << 16) + 1);
        assert_eq!(others.of(19_999).0, (1 << 16) - 1);
    }
}
