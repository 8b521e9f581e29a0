//! The output of a genlocked converter. A tick each frame time is counted from the epoch, so all converters have the same
//! ones without exchanging messages, and frame *k* is shown at tick *k* + *d*, whenever it arrived before. Pure: times
//! are arguments.
//!
//! A frame of which the last packet has not arrived when its tick is due is never shown: the one before stays, as in a
//! converter with a fixed delay. Only the times of arrival decide. A converter made of threads may look late, and take
//! packets late that have arrived; then it waits with its verdict, and says how late it was, but the stream is not blamed.

use std::collections::VecDeque;

use suiro_record::words;
use suiro_units::{Duration, Time};

/// Most frames of a stream that wait for their ticks. A sender with the same clock has its frames complete after they
/// began, so no more wait than the delay has frame times; frames above the bound are dropped, which shows as underruns.
const WAITING_MAX: usize = 64;
/// How long after a tick its frame may still be taken from the socket, if it had arrived in time.
const PATIENCE: Duration = Duration::from_secs(1);
/// Frames that may become complete in another order: with one this far ahead, the wanted one was incomplete.
const AHEAD: u64 = 2;

/// A complete frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Its number since the epoch.
    pub number: u64,
    /// Number of its content in its store, if the packets carry it.
    pub content: Option<u32>,
    /// When its last packet arrived.
    pub at: Time,
    /// When that was taken from the socket.
    pub taken: Time,
}

/// What one tick brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Number of the tick, counted from the epoch.
    pub tick: u64,
    /// When it was due.
    pub due: Time,
    /// The frame that belongs to it.
    pub wanted: u64,
    /// The frame that is shown; `None` if there has been none yet.
    pub frame: Option<Ready>,
    /// What it is.
    pub outcome: words::Shown,
    /// How long before the tick the wanted frame was complete; `None` if it was not.
    pub margin: Option<Duration>,
    /// Frames that were passed over since the tick before.
    pub skipped: u64,
    /// How late the converter itself was: it looked, or took the frame from the socket, so long after the tick.
    pub late: Duration,
}

/// A tick of which it is not yet known what it brought.
#[derive(Debug, Clone, Copy)]
struct Pending {
    tick: u64,
    due: Time,
    woke: Time,
}

/// What was counted at an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ticks from the first frame on.
    pub ticks: u64,
    /// Those without a new frame.
    pub underruns: u64,
    /// Those with a new frame whose sender had repeated the image.
    pub repeats: u64,
    /// Frames that were never shown although later ones were.
    pub skipped: u64,
}

/// The output of one stream.
#[derive(Debug, Clone)]
pub struct Output {
    /// Frame times from the beginning of a frame to its tick.
    delay: u64,
    /// The first complete frame, with which the output begins.
    first: Option<u64>,
    /// The newest complete frame.
    newest: u64,
    /// Complete frames whose ticks are to come or pending, by number.
    waiting: VecDeque<Ready>,
    /// In order.
    pending: VecDeque<Pending>,
    shown: Option<Ready>,
    tally: Tally,
}

impl Output {
    /// An output that shows each frame `delay` frame times after it begins.
    pub fn new(delay: u8) -> Self {
        Self {
            delay: delay.into(),
            first: None,
            newest: 0,
            waiting: VecDeque::new(),
            pending: VecDeque::new(),
            shown: None,
            tally: Tally::default(),
        }
    }

    /// What was counted so far.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// A frame is complete.
    pub fn ready(&mut self, frame: Ready) {
        self.first.get_or_insert(frame.number);
        self.newest = self.newest.max(frame.number);
        let at = self.waiting.partition_point(|other| other.number < frame.number);
        let twice = self.waiting.get(at).is_some_and(|other| other.number == frame.number);
        if !twice && self.waiting.len() < WAITING_MAX {
            self.waiting.insert(at, frame);
        }
    }

    /// Tick number `tick` was due at `due`; the converter woke for it at `woke`. Ticks must come in order.
    pub fn tick(&mut self, tick: u64, due: Time, woke: Time) {
        let wanted = tick.checked_sub(self.delay);
        if wanted.is_some_and(|wanted| self.first.is_some_and(|first| first <= wanted)) {
            self.pending.push_back(Pending { tick, due, woke });
        }
    }

    /// What the next tick brought, as far as that is known at `now`, or for good if there is none; `None` if it is not
    /// known, or no tick is left.
    pub fn shown(&mut self, now: Option<Time>) -> Option<Shown> {
        let Pending { tick, due, woke } = *self.pending.front()?;
        let wanted = tick - self.delay;
        // Their ticks are over.
        while self.waiting.front().is_some_and(|frame| frame.number < wanted) {
            self.waiting.pop_front();
        }
        let known = self.waiting.front().is_some_and(|frame| frame.number == wanted);
        if !known && self.newest < wanted + AHEAD && now.is_some_and(|now| now < due + PATIENCE) {
            return None;
        }
        self.pending.pop_front();
        let on_time = |frame: &mut Ready| frame.number == wanted && frame.at <= due;
        let fresh = self.waiting.pop_front_if(on_time);
        let (outcome, skipped) = self.outcome(fresh);
        self.shown = fresh.or(self.shown);
        self.count(outcome, skipped);
        let margin = fresh.map(|frame| due.saturating_since(frame.at));
        let late = fresh.map_or(woke, |frame| frame.taken.max(woke)).saturating_since(due);
        Some(Shown { tick, due, wanted, frame: self.shown, outcome, margin, skipped, late })
    }

    fn count(&mut self, outcome: words::Shown, skipped: u64) {
        self.tally.ticks += 1;
        self.tally.underruns += u64::from(outcome == words::Shown::Underrun);
        self.tally.repeats += u64::from(outcome == words::Shown::Repeat);
        self.tally.skipped += skipped;
    }

    /// What a tick brings, and how many frames it passes over.
    fn outcome(&self, fresh: Option<Ready>) -> (words::Shown, u64) {
        let Some(fresh) = fresh else { return (words::Shown::Underrun, 0) };
        let Some(before) = self.shown else { return (words::Shown::New, 0) };
        let stood = fresh.content.is_some() && fresh.content == before.content;
        let outcome = if stood { words::Shown::Repeat } else { words::Shown::New };
        (outcome, fresh.number - before.number - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use words::Shown::{New, Repeat, Underrun};

    use super::*;

    const DELAY: u8 = 4;
    const PERIOD: Duration = Duration::from_millis(10);

    fn due(tick: u64) -> Time {
        Time::ZERO + PERIOD * tick
    }

    /// Frame `number`, complete so many milliseconds before its tick; after it, if negative.
    fn ready(number: u64, before_ms: i64) -> Ready {
        let tick = due(number + u64::from(DELAY));
        let at = Time::from_nanos(tick.as_nanos().saturating_add_signed(-before_ms * 1_000_000));
        Ready { number, content: Some(number as u32), at, taken: at }
    }

    /// What becomes of all ticks in the end.
    fn end(output: &mut Output, ticks: std::ops::Range<u64>) -> Vec<Option<Shown>> {
        let show = |tick| {
            output.tick(tick, due(tick), due(tick));
            output.shown(None)
        };
        ticks.map(show).collect()
    }

    /// The ticks of frames 100 to 109.
    fn shown(frames: impl IntoIterator<Item = Ready>) -> Vec<Option<Shown>> {
        let mut output = Output::new(DELAY);
        frames.into_iter().for_each(|frame| output.ready(frame));
        end(&mut output, 104..114)
    }

    #[test]
    fn a_frame_is_shown_at_its_tick_however_early_it_came() {
        let all = shown([ready(100, 1), ready(101, 30), ready(103, 0), ready(102, 12)]);
        let first = all[0].unwrap();
        assert_eq!((first.tick, first.due, first.wanted), (104, due(104), 100));
        let told = |shown: &Option<Shown>| {
            let shown = shown.unwrap();
            (shown.frame.unwrap().number, shown.outcome, shown.margin, shown.skipped)
        };
        let ms = |ms| Some(Duration::from_millis(ms));
        let told: Vec<_> = all[..5].iter().map(told).collect();
        let expected = [
            (100, New, ms(1), 0),
            (101, New, ms(30), 0),
            (102, New, ms(12), 0),
            (103, New, ms(0), 0),
            (103, Underrun, None, 0),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_late_frame_is_never_shown_and_the_next_one_is_on_its_own_tick() {
        let all = shown([ready(100, 1), ready(101, -1), ready(102, 5), ready(105, 5)]);
        let told = all.iter().map(|shown| shown.unwrap()).map(|s| (s.outcome, s.skipped));
        let told: Vec<_> = told.take(6).collect();
        let expected = [(New, 0), (Underrun, 0), (New, 1), (Underrun, 0), (Underrun, 0), (New, 2)];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_picture_that_its_sender_repeated_is_a_repeat() {
        let starved = Ready { content: Some(100), ..ready(101, 5) };
        let all = shown([ready(100, 5), starved, ready(102, 5)]);
        assert_eq!(all[1].unwrap().outcome, Repeat);
        assert_eq!(all[2].unwrap().outcome, New);
        let unknown = |number| Ready { content: None, ..ready(number, 5) };
        let all = shown([unknown(100), unknown(101)]);
        assert_eq!(all[1].unwrap().outcome, New, "packets that say nothing of their content");
    }

    #[test]
    fn an_output_begins_with_its_first_complete_frame() {
        assert_eq!(shown([]), [None; 10]);
        let all = shown([ready(103, 5)]);
        assert_eq!(all[..3], [None; 3]);
        assert_eq!(all[3].unwrap().outcome, New);
        let late = shown([ready(100, -1)])[0].unwrap();
        assert_eq!((late.frame, late.outcome), (None, Underrun));
        assert_eq!(end(&mut Output::new(DELAY), 0..5), [None; 5], "at the epoch");
    }

    #[test]
    fn what_arrived_in_time_is_shown_however_late_it_is_taken_from_the_socket() {
        let mut output = Output::new(DELAY);
        output.ready(ready(100, 5));
        output.tick(104, due(104), due(104));
        assert_eq!(output.shown(Some(due(104))).unwrap().late, Duration::ZERO);
        // The receiving thread is stalled: whether frame 101 came in time is not known yet.
        output.tick(105, due(105), due(105));
        assert_eq!(output.shown(Some(due(105))), None);
        output.tick(106, due(106), due(106) + PERIOD);
        output.ready(Ready { taken: due(107), ..ready(101, 5) });
        let told = output.shown(Some(due(107))).unwrap();
        assert_eq!((told.tick, told.outcome, told.late), (105, New, PERIOD * 2));
        // Frame 102 never comes. That is known once frame 104 is there, or once enough time has passed.
        assert_eq!(output.shown(Some(due(107))), None);
        output.ready(ready(103, 5));
        assert_eq!(output.shown(Some(due(107))), None, "it may still be complete");
        output.ready(ready(104, 5));
        let told = output.shown(Some(due(107))).unwrap();
        assert_eq!((told.tick, told.outcome, told.late), (106, Underrun, PERIOD));
        output.tick(109, due(109), due(109));
        assert_eq!(output.shown(Some(due(109))), None);
        assert_eq!(output.shown(Some(due(109) + PATIENCE)).unwrap().outcome, Underrun);
        assert_eq!(output.shown(Some(due(109) + PATIENCE)), None, "no tick is left");
    }

    #[test]
    fn a_sender_with_a_clock_far_ahead_does_not_fill_the_memory() {
        let mut output = Output::new(DELAY);
        (100..1000).for_each(|number| output.ready(ready(number, 5)));
        assert_eq!(output.waiting.len(), WAITING_MAX);
        assert_eq!(end(&mut output, 104..105)[0].unwrap().outcome, New);
    }

    proptest! {
        /// Whatever comes, each tick shows the wanted frame or repeats the one before, and the counts add up.
        #[test]
        fn every_frame_is_shown_at_its_tick_or_never(
            came in proptest::collection::vec((0u64..40, -50i64..50), 0..60),
        ) {
            let mut output = Output::new(DELAY);
            for (number, before_ms) in &came {
                output.ready(ready(100 + number, *before_ms));
            }
            let mut before: Option<Ready> = None;
            let mut new = 0;
            for shown in end(&mut output, 104..144).into_iter().flatten() {
                if shown.outcome == Underrun {
                    prop_assert_eq!(shown.frame, before);
                } else {
                    prop_assert_eq!(shown.frame.unwrap().number, shown.wanted);
                    new += 1;
                }
                before = shown.frame;
            }
            let tally = *output.tally();
            prop_assert_eq!(tally.ticks, new + tally.underruns);
            prop_assert!(tally.skipped <= tally.underruns);
            prop_assert_eq!(tally.repeats, 0);
        }
    }
}
