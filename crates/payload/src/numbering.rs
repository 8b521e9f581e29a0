//! Which source frame a received one is. RTP has the time of a frame, not its number; our senders put it into each
//! frame's first packet. For a frame that lost that packet, and for frames of other senders, the number is computed
//! from the timestamps.

use crate::FrameMark;

/// The steps between frames that are thought of, in ticks of 90 kHz: 1000 to 5 frames a second.
const STEPS: std::ops::RangeInclusive<f64> = 90.0..=18_000.0;
/// Of other senders, until it shows: 30 frames a second.
const STEP_FIRST: f64 = 3000.0;

/// How timestamps and frame numbers go together.
#[derive(Debug, Clone, Copy)]
pub struct Numbering {
    /// A frame whose number is known.
    anchor: Option<(u64, u64)>,
    /// Ticks from one frame to the next.
    step: f64,
    marked: bool,
}

impl Default for Numbering {
    fn default() -> Self {
        Self { anchor: None, step: STEP_FIRST, marked: false }
    }
}

impl Numbering {
    /// The number of a frame with that timestamp; the first of an unmarked stream is 0.
    pub fn number(&mut self, timestamp: u64, mark: Option<FrameMark>) -> u64 {
        if let Some(mark) = mark {
            return self.on_mark(timestamp, u64::from(mark.number));
        }
        let Some((anchor, number)) = self.anchor else {
            self.anchor = Some((timestamp, 0));
            return 0;
        };
        let ticks = timestamp as f64 - anchor as f64;
        // Of unmarked streams, the least distance seen is that of neighbours.
        if !self.marked && STEPS.contains(&ticks) && ticks < 0.9 * self.step {
            self.step = ticks;
        }
        let frames = (ticks / self.step).round();
        let found = (number as f64 + frames).max(0.0) as u64;
        if !self.marked && frames > 0.0 {
            self.anchor = Some((timestamp, found));
        }
        found
    }

    fn on_mark(&mut self, timestamp: u64, number: u64) -> u64 {
        if let Some((at, before)) = self.anchor.filter(|_| self.marked)
            && number > before
            && timestamp > at
        {
            let step = (timestamp - at) as f64 / (number - before) as f64;
            if STEPS.contains(&step) {
                self.step = step;
            }
        }
        if self.anchor.is_none_or(|(_, before)| !self.marked || number > before) {
            self.anchor = Some((timestamp, number));
        }
        self.marked = true;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u32) -> Option<FrameMark> {
        Some(FrameMark { number, references: 1, rate_bps: 1, waited: None })
    }

    #[test]
    fn marks_say_it_and_others_are_placed_between() {
        let mut numbering = Numbering::default();
        assert_eq!(numbering.number(90_000, mark(17)), 17);
        assert_eq!(numbering.number(93_600, mark(18)), 18); // 25 frames a second
        assert_eq!(numbering.number(97_200, None), 19);
        assert_eq!(numbering.number(86_400, None), 16);
        assert_eq!(numbering.number(104_400, mark(21)), 21);
    }

    #[test]
    fn other_senders_frames_are_counted() {
        // 29.97 frames a second, as ffmpeg rounds them; one frame is missing.
        let mut numbering = Numbering::default();
        let times = [0, 3003, 6006, 12_012, 15_015].map(|t| t + 1_000_000);
        let numbers = times.map(|t| numbering.number(t, None));
        assert_eq!(numbers, [0, 1, 2, 4, 5]);
        // 60 frames a second: the step shows with the second frame.
        let mut numbering = Numbering::default();
        let numbers = [0, 1500, 3000, 6000].map(|t| numbering.number(t + 5, None));
        assert_eq!(numbers, [0, 1, 2, 4]);
    }
}
