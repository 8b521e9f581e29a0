//! What all players have in common while they play: clock, ladder, records, and the frames' rung.

use std::collections::VecDeque;

use suiro_http::Clock;
use suiro_record::tables::RequestRow;
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
            request.error = Some(RequestRow::STOPPED.to_owned());
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

    fn session<'j>(job: &'j PlayJob) -> Session<'j> {
        let recorder = Recorder::create(&job.dir, &job.name).unwrap();
        let (view, fetched, pending) = (View::default(), Fetched::default(), VecDeque::new());
        let (clock, ladder) = (Clock::from_now(), crate::ladder::tests::ladder());
        Session { job, clock, ladder, view, recorder, fetched, pending }
    }

    fn job(dir: &std::path::Path) -> PlayJob {
        PlayJob {
            name: "viewer".to_owned(),
            program: suiro_scenario::Program::Vlc,
            url: suiro_http::Url::parse("http://server/manifest.mpd").unwrap(),
            served: crate::Served::default(),
            protocol: suiro_scenario::Protocol::Dash,
            buffer: suiro_units::Duration::from_secs(10),
            target_latency: None,
            settings: crate::Settings::default(),
            dir: dir.to_owned(),
            start: Time::ZERO,
        }
    }

    fn request(target: &str) -> Request {
        Request { target: target.to_owned(), ..Request::default() }
    }

    #[test]
    fn requests_get_their_own_answers_and_those_without_are_recorded_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        let mut session = session(&job);
        // An answer to nothing, and an end of nothing.
        session.answered(|request| request.status = Some(500));
        session.finished().unwrap();
        session.finished_to("/a").unwrap();
        for target in ["/a", "/b", "/a"] {
            session.sent(request(target)).unwrap();
        }
        session.answered_to("/b", |request| request.status = Some(404));
        session.finished_to("/b").unwrap();
        session.answered(|request| request.status = Some(200));
        session.finished().unwrap();
        let summary = session.close(Some("it crashed".to_owned())).unwrap();
        assert_eq!((summary.requests, summary.played), (3, false));
        assert_eq!(summary.failure.as_deref(), Some("it crashed"));
        let rows: Vec<RequestRow> = suiro_record::Reader::read_all(dir.path()).unwrap();
        let told = rows.iter().map(|row| (&*row.url, row.status, row.error.as_deref()));
        let expected = [
            ("/b", Some(404), None),
            ("/a", Some(200), None),
            ("/a", None, Some("the player was stopped")),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn of_too_many_requests_without_an_answer_the_oldest_are_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        let mut session = session(&job);
        for number in 0..PENDING_MAX + 5 {
            session.sent(request(&format!("/{number}"))).unwrap();
        }
        assert_eq!((session.pending.len(), session.recorder.count), (PENDING_MAX, 5));
        assert_eq!(session.pending[0].target, "/5");
    }

    #[test]
    fn a_request_for_a_segment_says_what_is_shown_there() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        let mut session = session(&job);
        session.request(&request("/v1/t528000.m4s")).unwrap();
        session.request(&request("/v0/init.mp4")).unwrap();
        assert_eq!(session.rung_at(23.0), Some(816_128));
        assert_eq!(session.rung_at(24.0), None);
    }

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
