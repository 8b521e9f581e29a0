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
