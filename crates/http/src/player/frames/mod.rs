//! Which source frame was shown when, pure: segments arrive, the playhead moves, and out come the
//! rows of the table `frames`.
//!
//! A frame is shown from the moment at which the playhead reaches it, while the video plays. A playhead that stops at a
//! frame's very beginning, because the frame is missing, has not shown it. A viewer who joins in the middle of a frame sees that
//! frame. While the player did not run, the video froze: of the frames that the playhead reached meanwhile, the last is
//! shown when the player is back, and the others never are.

use std::collections::VecDeque;

use suiro_abr::playout::Motion;
use suiro_endpoint::Absence;
use suiro_units::{BitRate, Duration, Time};

use crate::presentation::{FrameRate, Rung};

/// Limit on the frames of a gap that are reported as missing: an hour at 24 frames a second.
const MISSING_MAX: u64 = 100_000;

/// What became of one source frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Its number in the source.
    pub number: u64,
    /// When it was captured, in nanoseconds on the session's clock; `None` unless live.
    pub captured_ns: Option<i64>,
    /// The rung that it came from; `None` if it was not received.
    pub rate: Option<BitRate>,
    /// When its segment was there; `None` if it never was.
    pub received: Option<Time>,
    /// When it was shown; `None` if it never was.
    pub displayed: Option<Time>,
    /// When that was certain.
    pub at: Time,
}

/// The frames of a segment that were received and are neither shown nor given up.
#[derive(Debug)]
struct Span {
    /// The next of them.
    next: u64,
    /// The first that is not of it.
    end: u64,
    /// From one to the next: a rung of half the source's rate has every second frame.
    step: u64,
    rate: BitRate,
    received: Time,
}

/// Follows one track of frames.
#[derive(Debug)]
pub(crate) struct Frames {
    source: FrameRate,
    /// For each rung: how many frames of the source one of its frames stands for.
    steps: Vec<(BitRate, u64)>,
    /// Live: when media time zero was captured.
    pub zero_ns: Option<i64>,
    spans: VecDeque<Span>,
    /// The frame after the last one that was reported; `None` before the first.
    next: Option<u64>,
    /// What has become certain, in order.
    told: Vec<Frame>,
    /// When the player did not run, since this was last asked.
    absences: Vec<Absence>,
}

impl Frames {
    /// Follows a track of these rungs.
    ///
    /// # Errors
    /// Why its frames cannot be numbered.
    pub fn new(rungs: &[Rung]) -> Result<Self, &'static str> {
        let rates: Option<Vec<FrameRate>> = rungs.iter().map(|rung| rung.frame_rate).collect();
        let rates = rates.ok_or("the manifest does not give the frame rate of every rung")?;
        let source = rates.iter().copied().reduce(FrameRate::max).ok_or("there is no rung")?;
        let step = |(rung, rate): (&Rung, FrameRate)| Some((rung.rate, source.per_frame_of(rate)?));
        let steps: Option<Vec<_>> = rungs.iter().zip(rates).map(step).collect();
        let steps = steps.ok_or("the frame rates of its rungs are no multiples of one another")?;
        let spans = VecDeque::new();
        let (told, absences) = (Vec::new(), Vec::new());
        Ok(Self { source, steps, zero_ns: None, spans, next: None, told, absences })
    }

    /// Media has arrived that is shown from `start` to `end`: a segment, or a piece of one.
    pub fn on_arrival(&mut self, now: Time, rate: BitRate, start: Duration, end: Duration) {
        let step = self.steps.iter().find(|(known, _)| *known == rate).map_or(1, |(_, step)| *step);
        let on_step = |at: Duration| self.source.nearest(at).next_multiple_of(step);
        let known = self.spans.back().map_or(self.next.unwrap_or(0), |last| last.end);
        let next = on_step(start).max(known.next_multiple_of(step));
        let end = on_step(end);
        if next < end {
            self.spans.push_back(Span { next, end, step, rate, received: now });
        }
    }

    /// The playhead has moved.
    pub fn on_motion(&mut self, motion: &Motion) {
        self.pass_over(motion.start, motion.from);
        while let Some(number) = self.front_below(motion.end, 0) {
            let at = motion.time_of(self.source.start_of(number));
            self.tell_front(at, true);
        }
    }

    /// The player did not run.
    pub fn on_absence(&mut self, absence: Absence) {
        self.absences.push(absence);
    }

    /// The buffer was emptied, and the playhead moved to `position`; what is shown from there on
    /// will come again.
    pub fn on_seek(&mut self, now: Time, position: Duration) {
        self.pass_over(position, now);
        self.spans.clear();
    }

    /// What has become certain since this was last asked.
    pub fn take(&mut self) -> Vec<Frame> {
        let mut told = std::mem::take(&mut self.told);
        for absence in self.absences.drain(..) {
            stand_still(&mut told, absence);
        }
        told
    }

    /// What is still in the buffer when playback breaks off, too.
    pub fn rest(&mut self, now: Time) -> Vec<Frame> {
        while !self.spans.is_empty() {
            self.tell_front(now, false);
        }
        self.take()
    }

    /// What was over before `position` and was not shown will not be.
    fn pass_over(&mut self, position: Duration, now: Time) {
        while self.front_below(position + Duration::from_nanos(1), 1).is_some() {
            self.tell_front(now, false);
        }
    }

    /// The next frame that was received, if the frame `later` steps after it begins before `end`.
    fn front_below(&self, end: Duration, later: u64) -> Option<u64> {
        let front = self.spans.front()?;
        let begins = self.source.start_of(front.next.saturating_add(later * front.step));
        (begins < end).then_some(front.next)
    }

    /// Passes on the next frame that was received, and those before it that were not.
    fn tell_front(&mut self, at: Time, displayed: bool) {
        let Some(span) = self.spans.front_mut() else { return };
        let (number, step) = (span.next, span.step);
        let (rate, received) = (Some(span.rate), Some(span.received));
        span.next += step;
        if span.next >= span.end {
            self.spans.pop_front();
        }
        let first = self.next.unwrap_or(number).max(number.saturating_sub(MISSING_MAX));
        for missing in first..number {
            self.tell(missing, at, |_| {});
        }
        self.tell(number, at, |frame| {
            (frame.rate, frame.received) = (rate, received);
            frame.displayed = displayed.then_some(at);
        });
        self.next = Some(number + step);
    }

    fn tell(&mut self, number: u64, at: Time, fill: impl FnOnce(&mut Frame)) {
        let start = i64::try_from(self.source.start_of(number).as_nanos()).ok();
        let captured_ns = self.zero_ns.zip(start).and_then(|(zero, start)| zero.checked_add(start));
        let mut frame =
            Frame { number, captured_ns, rate: None, received: None, displayed: None, at };
        fill(&mut frame);
        self.told.push(frame);
    }
}

/// Of the frames that were due while the player did not run, the last is shown at the end.
fn stand_still(told: &mut [Frame], absence: Absence) {
    let unseen = |at: Time| absence.from < at && at < absence.to;
    let mut last = None;
    for frame in told.iter_mut().filter(|frame| unseen(frame.at)) {
        frame.at = absence.to;
        if frame.displayed.take().is_some() {
            last = Some(frame);
        }
    }
    if let Some(frame) = last {
        frame.displayed = Some(absence.to);
    }
}

#[cfg(test)]
mod tests;
