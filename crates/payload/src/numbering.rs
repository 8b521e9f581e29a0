//! Which source frame a received one is. RTP has the time of a frame, not its number; our senders put it into each
//! frame's first packet. For a frame that lost that packet, and for frames of other senders, the number is computed
//! from the timestamps.

use std::collections::VecDeque;

use crate::FrameMark;

/// The steps between frames that are thought of, in ticks of 90 kHz: 1000 to 5 frames a second.
const STEPS: std::ops::RangeInclusive<f64> = 90.0..=18_000.0;
/// Of other senders, until it shows: 30 frames a second.
const STEP_FIRST: f64 = 3000.0;
/// Intervals between frames that are remembered.
const INTERVALS: usize = 8;
/// Of fewer than this, the shortest is taken: it is that of neighbours, if any is.
const INTERVALS_LEAST: usize = 5;

/// How timestamps and frame numbers go together.
#[derive(Debug, Clone)]
pub struct Numbering {
    /// The frame that others are counted from.
    anchor: Option<(u64, u64)>,
    /// The newest frame whose number its sender gave.
    given: Option<(u64, u64)>,
    /// Ticks from one frame to the next.
    step: f64,
    /// Whether enough was seen for it.
    settled: bool,
    /// Of a sender that does not mark its frames: the latest intervals between them, in ticks.
    intervals: VecDeque<f64>,
    /// Whether the sender marks every frame.
    marked: bool,
}

impl Default for Numbering {
    fn default() -> Self {
        let intervals = VecDeque::with_capacity(INTERVALS);
        Self {
            anchor: None,
            given: None,
            step: STEP_FIRST,
            settled: false,
            intervals,
            marked: false,
        }
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
        if !self.marked {
            self.learn(ticks);
        }
        let mut frames = (ticks / self.step).round();
        if frames == 0.0 && timestamp != anchor {
            // Another time is another frame, however close.
            frames = ticks.signum();
        }
        let found = (number as f64 + frames).max(0.0) as u64;
        if !self.marked && frames > 0.0 {
            self.anchor = Some((timestamp, found));
        }
        found
    }

    /// The number of a frame that shows it, of a sender that does not mark its frames: those that follow are counted from
    /// there.
    pub fn stamped(&mut self, timestamp: u64, number: u64) -> u64 {
        if let Some((anchor, _)) = self.anchor.filter(|_| self.given.is_none()) {
            self.learn(timestamp as f64 - anchor as f64);
        }
        self.give(timestamp, number)
    }

    fn on_mark(&mut self, timestamp: u64, number: u64) -> u64 {
        self.marked = true;
        self.give(timestamp, number)
    }

    /// The sender gave that number.
    fn give(&mut self, timestamp: u64, number: u64) -> u64 {
        if let Some((at, before)) = self.given
            && number > before
            && timestamp > at
        {
            let step = (timestamp - at) as f64 / (number - before) as f64;
            if STEPS.contains(&step) {
                (self.step, self.settled) = (step, true);
            }
        }
        if self.given.is_none_or(|(_, before)| number > before) {
            self.given = Some((timestamp, number));
            self.anchor = self.given;
        }
        number
    }

    /// The step of a sender that does not mark its frames: the least that was the median of some intervals on end. So a single
    /// short one does not change it, nor does a sender that leaves out frames for a while.
    fn learn(&mut self, interval: f64) {
        if !STEPS.contains(&interval) {
            return;
        }
        if self.intervals.len() == INTERVALS {
            self.intervals.pop_front();
        }
        self.intervals.push_back(interval);
        let mut sorted: Vec<f64> = self.intervals.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let is_enough = sorted.len() >= INTERVALS_LEAST;
        let found = sorted[if is_enough { (sorted.len() - 1) / 2 } else { 0 }];
        self.step = if self.settled { self.step.min(found) } else { found };
        self.settled |= is_enough;
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

    #[test]
    fn frames_between_stamps_are_counted_at_any_rate() {
        // 15, 25 and 60 frames a second.
        for step in [6000, 3600, 1500] {
            let mut numbering = Numbering::default();
            assert_eq!(numbering.stamped(1_000_000, 100), 100);
            for n in 1..40 {
                assert_eq!(numbering.number(1_000_000 + n * step, None), 100 + n, "{step}");
            }
            assert_eq!(numbering.stamped(1_000_000 + 40 * step, 140), 140);
            for n in 41..80 {
                assert_eq!(numbering.number(1_000_000 + n * step, None), 100 + n, "{step}");
            }
        }
    }

    #[test]
    fn stamps_on_most_frames_give_the_step_although_frames_are_left_out() {
        let mut numbering = Numbering::default();
        let numbers = [100, 102, 104, 105, 107, 109, 111];
        numbers.iter().for_each(|n| assert_eq!(numbering.stamped(3000 * n, *n), *n));
        assert_eq!(numbering.number(3000 * 113, None), 113);
    }

    #[test]
    fn a_sender_that_leaves_out_frames_for_a_while_keeps_its_step() {
        let mut numbering = Numbering::default();
        let shown = (0..20).chain((20..80).step_by(2)).chain(80..100);
        for n in shown {
            assert_eq!(numbering.number(1_000_000 + 3600 * n, None), n);
        }
        // One that begins so is counted from its stamps.
        let mut numbering = Numbering::default();
        assert_eq!(numbering.stamped(0, 100), 100);
        for n in (2..20).step_by(2) {
            numbering.number(3000 * n, None);
        }
        assert_eq!(numbering.stamped(3000 * 20, 120), 120);
        for n in (22..60).step_by(2) {
            assert_eq!(numbering.number(3000 * n, None), 100 + n);
        }
    }

    #[test]
    fn one_short_interval_does_not_halve_the_step() {
        let mut numbering = Numbering::default();
        // 30 frames a second, of which one comes after 16 ms.
        let times = [0, 3000, 6000, 9000, 12_000, 15_000, 16_440, 19_440, 22_440, 25_440];
        let numbers = times.map(|t| numbering.number(t + 1_000_000, None));
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
}
