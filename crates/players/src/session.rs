//! What all players have in common while they play: clock, ladder, records, and the frames' rung.

use std::collections::VecDeque;

use suiro_http::Clock;
use suiro_units::Time;

use crate::ladder::{Ladder, PlacedSegment};
use crate::record::{Recorder, Request, State, View};
use crate::{PlayError, PlayJob, Summary};

/// Most segments whose rungs are remembered.
const REMEMBERED_MAX: usize = 4096;

/// Most requests that wait for an answer at the same time.
const PENDING_MAX: usize = 64;

/// A player's surroundings.
pub(crate) struct Session<'j> {
    pub job: &'j PlayJob,
    pub clock: Clock,
    pub ladder: Ladder,
    pub view: View,
    recorder: Recorder,
    fetched: Fetched,
    /// Requests without an answer yet, in order.
    pending: VecDeque<Request>,
}

/// Video segments that were asked for, and in which rung.
#[derive(Debug, Default)]
struct Fetched(VecDeque<(PlacedSegment, u64)>);

impl Fetched {
    fn add(&mut self, segment: PlacedSegment, rung_bps: u64) {
        if self.0.len() == REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((segment, rung_bps));
    }

    /// The rung at a media time: of two segments that were fetched for it, the later.
    fn rung_at(&self, position_s: f64) -> Option<u64> {
        let covers = |(s, _): &&(PlacedSegment, u64)| (s.start_s..s.end_s()).contains(&position_s);
        self.0.iter().rfind(covers).map(|(_, rung_bps)| *rung_bps)
    }
}

impl<'j> Session<'j> {
    /// Fetches the manifest and opens the records.
    pub async fn open(job: &'j PlayJob, clock: Clock) -> Result<Self, PlayError> {
        let ladder = Ladder::fetch((&job.url, &job.served), job.protocol, clock).await?;
        let recorder = Recorder::create(&job.dir, &job.name)?;
        let (view, fetched) = (View::default(), Fetched::default());
        Ok(Self { job, clock, ladder, view, recorder, fetched, pending: VecDeque::new() })
    }

    /// The first row: a viewer has asked for the stream.
    pub fn begin(&mut self) -> Result<(), PlayError> {
        self.tick()
    }

    /// Writes what is known now, if it is due.
    pub fn tick(&mut self) -> Result<(), PlayError> {
        Ok(self.recorder.state(self.clock.now(), &self.view)?)
    }

    /// Writes what was known at a moment that has passed.
    pub fn tick_at(&mut self, at: Time) -> Result<(), PlayError> {
        Ok(self.recorder.state(at, &self.view)?)
    }

    /// When the next row is due.
    pub fn next_row(&self) -> Time {
        self.recorder.next_row()
    }

    /// A request was sent. Of too many without an answer, the oldest is recorded as it is.
    pub fn sent(&mut self, request: Request) -> Result<(), PlayError> {
        if self.pending.len() == PENDING_MAX {
            self.finished()?;
        }
        self.pending.push_back(request);
        Ok(())
    }

    /// Adds to the oldest request that has no answer yet.
    pub fn answered(&mut self, add: impl FnOnce(&mut Request)) {
        if let Some(request) = self.pending.front_mut() {
            add(request);
        }
    }

    /// Records the oldest request that was sent, with what is known.
    pub fn finished(&mut self) -> Result<(), PlayError> {
        match self.pending.pop_front() {
            Some(request) => self.request(&request),
            None => Ok(()),
        }
    }

    /// Adds to the oldest request for `target`.
    pub fn answered_to(&mut self, target: &str, add: impl FnOnce(&mut Request)) {
        if let Some(request) = self.pending.iter_mut().find(|request| request.target == target) {
            add(request);
        }
    }

    /// Records the oldest request for `target`, with what is known.
    pub fn finished_to(&mut self, target: &str) -> Result<(), PlayError> {
        match self.pending.iter().position(|request| request.target == target) {
            Some(at) => {
                let request = self.pending.remove(at).expect("it was just found");
                self.request(&request)
            }
            None => Ok(()),
        }
    }

    /// Records a request.
    pub fn request(&mut self, request: &Request) -> Result<(), PlayError> {
        if let Some(place) = self.ladder.place(&request.target)
            && let Some(segment) = place.segment
            && place.kind == suiro_http::presentation::TrackKind::Video
        {
            self.fetched.add(segment, place.rate.as_bps());
        }
        Ok(self.recorder.request(request, &self.ladder)?)
    }

    /// The rung of the frame at a media time, as far as it is known from segments.
    pub fn rung_at(&self, position_s: f64) -> Option<u64> {
        self.fetched.rung_at(position_s)
    }

    /// The age of the frame at a media time.
    pub fn latency_ms(&self, at: Time, position_s: f64) -> Option<f64> {
        let zero_ns = self.ladder.zero_unix_ns?;
        let since_zero_ns = i128::from(self.clock.unix_ns(at)) - i128::from(zero_ns);
        Some(since_zero_ns as f64 / 1e6 - position_s * 1e3)
    }

    /// The last row, and the files made whole.
    pub fn close(mut self, failure: Option<String>) -> Result<Summary, PlayError> {
        if failure.is_some() {
            self.view.turn(State::Failed);
        }
        self.tick()?;
        while let Some(mut request) = self.pending.pop_front() {
            request.error = Some("the player was stopped".to_owned());
            self.request(&request)?;
        }
        let summary = Summary {
            played: self.recorder.played,
            failure,
            stalls: self.view.stalls,
            dropped: self.view.dropped,
            requests: self.recorder.count,
        };
        self.recorder.close()?;
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rung_is_that_of_the_segment_under_the_playhead() {
        let segment = |start_s| PlacedSegment { number: 0, start_s, duration_s: 2.0 };
        let mut fetched = Fetched::default();
        fetched.add(segment(10.0), 300);
        fetched.add(segment(12.0), 300);
        // Fetched again in better quality.
        fetched.add(segment(12.0), 700);
        assert_eq!(fetched.rung_at(11.0), Some(300));
        assert_eq!(fetched.rung_at(12.5), Some(700));
        assert_eq!(fetched.rung_at(14.0), None);
        for _ in 0..2 * REMEMBERED_MAX {
            fetched.add(segment(20.0), 1);
        }
        assert_eq!(fetched.0.len(), REMEMBERED_MAX);
    }
}
