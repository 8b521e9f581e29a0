//! The records: `requests.NAME.parquet`, `player.NAME.parquet`, as suiro's own player writes them.

use std::path::Path;

use suiro_record::tables::{PlayerRow, RequestRow};
pub(crate) use suiro_record::words::PlayerState as State;
use suiro_record::words::RequestKind;
use suiro_record::{RecordError, Text, Writer};
use suiro_units::{Duration, Time, to_i64};

use crate::ladder::Ladder;

/// A row of the player's state is written at least this often.
pub(crate) const INTERVAL: Duration = State::WRITTEN_EVERY;

/// What is known of a player at one moment. `None`: the player does not report it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct View {
    pub state: State,
    pub stalls: u64,
    pub buffer_ms: Option<f64>,
    pub position_ms: Option<f64>,
    pub rung_bps: Option<u64>,
    pub latency_ms: Option<f64>,
    pub target_latency_ms: Option<f64>,
    pub speed: f64,
    pub estimate_bps: Option<u64>,
    pub dropped: Option<u64>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            state: State::Starting,
            stalls: 0,
            buffer_ms: None,
            position_ms: None,
            rung_bps: None,
            latency_ms: None,
            target_latency_ms: None,
            speed: 0.0,
            estimate_bps: None,
            dropped: None,
        }
    }
}

impl View {
    /// The state changes; a stall is counted when it begins. What has ended stays so.
    pub fn turn(&mut self, state: State) {
        if self.state == state || matches!(self.state, State::Ended | State::Failed) {
            return;
        }
        self.stalls += u64::from(state == State::Stalled);
        self.state = state;
        self.speed = if state == State::Playing { 1.0 } else { 0.0 };
    }

    /// Playback waits for media: a stall, if it had begun.
    pub fn wait(&mut self) {
        if self.state == State::Playing {
            self.turn(State::Stalled);
        }
    }

    fn has_changed(&self, last: &Self) -> bool {
        (self.state, self.rung_bps, self.stalls) != (last.state, last.rung_bps, last.stalls)
    }
}

/// One request that a player reported.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Request {
    pub sent: Time,
    /// Path and query.
    pub target: String,
    pub first_byte: Option<Time>,
    pub done: Option<Time>,
    pub status: Option<u16>,
    pub body_bytes: u64,
    pub error: Option<String>,
}

/// Writes both tables.
pub(crate) struct Recorder {
    endpoint: Text,
    requests: Writer<RequestRow>,
    states: Writer<PlayerRow>,
    last: Option<(Time, View)>,
    /// Requests written.
    pub count: u64,
    /// Whether a frame was shown.
    pub played: bool,
}

impl Recorder {
    pub fn create(dir: &Path, name: &str) -> Result<Self, RecordError> {
        Ok(Self {
            endpoint: name.into(),
            requests: Writer::create_of(dir, name)?,
            states: Writer::create_of(dir, name)?,
            last: None,
            count: 0,
            played: false,
        })
    }

    /// When the next row of the player's state is due.
    pub fn next_row(&self) -> Time {
        self.last.as_ref().map_or(Time::ZERO, |(at, _)| *at + INTERVAL)
    }

    /// Writes a row if something changed or one is due.
    pub fn state(&mut self, now: Time, view: &View) -> Result<(), RecordError> {
        let changed = self.last.as_ref().is_none_or(|(_, last)| view.has_changed(last));
        if !changed && now < self.next_row() {
            return Ok(());
        }
        self.played |= view.state == State::Playing;
        self.last = Some((now, *view));
        self.states.push(PlayerRow {
            t_ns: now.as_nanos_i64(),
            endpoint: self.endpoint.clone(),
            state: view.state,
            buffer_ms: view.buffer_ms,
            position_ms: view.position_ms,
            rung_bps: view.rung_bps.map(to_i64),
            latency_ms: view.latency_ms,
            target_latency_ms: view.target_latency_ms,
            speed: view.speed,
            stalls: to_i64(view.stalls),
            estimate_bps: view.estimate_bps.map(to_i64),
            dropped_pictures: view.dropped.map(to_i64),
        })
    }

    /// Writes a request; the ladder knows what was asked for.
    pub fn request(&mut self, request: &Request, ladder: &Ladder) -> Result<(), RecordError> {
        self.count += 1;
        let place = ladder.place(&request.target);
        let segment = place.and_then(|place| place.segment);
        let ms = |s: f64| (s * 1e3).round() as i64;
        self.requests.push(RequestRow {
            t_ns: request.sent.as_nanos_i64(),
            endpoint: self.endpoint.clone(),
            url: request.target.as_str().into(),
            kind: match (place, segment) {
                (None, _) => RequestKind::Manifest,
                (Some(_), None) => RequestKind::Init,
                (Some(_), Some(_)) => RequestKind::Segment,
            },
            track: place.map(|place| place.kind),
            rung_bps: place.map(|place| to_i64(place.rate.as_bps())),
            segment: segment.map(|segment| to_i64(segment.number)),
            media_ms: segment.map(|segment| ms(segment.start_s)),
            duration_ms: segment.map(|segment| ms(segment.duration_s)),
            body_bytes: to_i64(request.body_bytes),
            first_byte_ns: request.first_byte.map(Time::as_nanos_i64),
            done_ns: request.done.map(Time::as_nanos_i64),
            status: request.status.map(i64::from),
            error: request.error.as_deref().map(Into::into),
            ..RequestRow::default()
        })
    }

    /// Makes both files whole.
    pub fn close(self) -> Result<(), RecordError> {
        self.requests.close()?;
        self.states.close()
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::Reader;

    use super::*;
    use crate::ladder::tests::ladder;

    #[test]
    fn a_stall_is_an_interruption_of_playback_and_an_end_stays() {
        let mut view = View::default();
        view.wait();
        assert_eq!((view.state, view.stalls), (State::Starting, 0), "it had not begun");
        view.turn(State::Playing);
        view.turn(State::Playing);
        assert_eq!((view.stalls, view.speed), (0, 1.0));
        view.wait();
        view.wait();
        assert_eq!((view.state, view.stalls, view.speed), (State::Stalled, 1, 0.0));
        view.turn(State::Playing);
        view.wait();
        assert_eq!(view.stalls, 2);
        view.turn(State::Failed);
        for late in [State::Playing, State::Ended, State::Stalled] {
            view.turn(late);
            assert_eq!((view.state, view.stalls, view.speed), (State::Failed, 2, 0.0));
        }
    }

    #[test]
    fn a_row_is_written_when_something_changed_and_otherwise_at_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(dir.path(), "viewer").unwrap();
        let mut view = View::default();
        let at = |ms| Time::from_millis(ms);
        recorder.state(at(1), &view).unwrap();
        // Neither the buffer nor the playhead is a change.
        view.buffer_ms = Some(20.0);
        recorder.state(at(2), &view).unwrap();
        assert_eq!(recorder.next_row(), at(1) + INTERVAL);
        view.turn(State::Playing);
        recorder.state(at(3), &view).unwrap();
        view.rung_bps = Some(u64::MAX);
        recorder.state(at(4), &view).unwrap();
        recorder.state(at(4) + INTERVAL, &view).unwrap();
        assert!(recorder.played);
        recorder.close().unwrap();
        let rows: Vec<PlayerRow> = Reader::read_all(dir.path()).unwrap();
        let times: Vec<i64> = rows.iter().map(|row| row.t_ns).collect();
        let due = [at(1), at(3), at(4), at(4) + INTERVAL];
        assert_eq!(times, due.map(Time::as_nanos_i64));
        assert_eq!((rows[0].buffer_ms, rows[1].buffer_ms), (None, Some(20.0)));
        assert_eq!(rows[2].rung_bps, Some(i64::MAX), "more than a column holds");
    }

    #[test]
    fn a_request_is_what_the_ladder_knows_of_its_address() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(dir.path(), "viewer").unwrap();
        let ladder = ladder();
        for target in ["/manifest.mpd", "/v0/init.mp4", "/v1/t528000.m4s"] {
            let request = Request { target: target.to_owned(), ..Request::default() };
            recorder.request(&request, &ladder).unwrap();
        }
        assert_eq!((recorder.count, recorder.played), (3, false));
        recorder.close().unwrap();
        let rows: Vec<RequestRow> = Reader::read_all(dir.path()).unwrap();
        let known = rows.iter().map(|row| (row.kind, row.rung_bps, row.media_ms, row.duration_ms));
        let expected = [
            (RequestKind::Manifest, None, None, None),
            (RequestKind::Init, Some(348_824), None, None),
            (RequestKind::Segment, Some(816_128), Some(22_000), Some(2000)),
        ];
        assert_eq!(known.collect::<Vec<_>>(), expected);
        assert!(rows.iter().all(|row| row.status.is_none() && row.done_ns.is_none()), "absent");
    }
}
