//! The player's records: `requests.NAME.parquet`, `player.NAME.parquet`, `frames.NAME.parquet`.

use suiro_abr::playout::{State, Totals};
use suiro_record::tables::{FrameRow, PlayerRow, RequestRow};
use suiro_record::words::{PlayerState, RequestKind};
use suiro_record::{Text, Writer};
use suiro_units::{Duration, Time, to_i64};

use super::frames::Frame;
use super::request::{Fetched, Underway};
use super::save::Saver;
use super::session::{Fetch, Piece, View, What};
use crate::cmsd::Cmsd;

use super::{PlayerError, PlayerJob, Summary};

/// A row of the player's state is written at least this often.
pub(crate) const INTERVAL: Duration = PlayerState::WRITTEN_EVERY;

pub(crate) struct Recorder {
    endpoint: Text,
    requests: Writer<RequestRow>,
    states: Writer<PlayerRow>,
    frames: Writer<FrameRow>,
    saver: Option<Saver>,
    last: Option<(Time, View)>,
    request_count: u64,
    body_bytes: u64,
}

impl Recorder {
    pub(crate) fn new(job: &PlayerJob) -> Result<Self, PlayerError> {
        Ok(Self {
            endpoint: job.name.as_str().into(),
            requests: Writer::create_of(&job.dir, &job.name)?,
            states: Writer::create_of(&job.dir, &job.name)?,
            frames: Writer::create_of(&job.dir, &job.name)?,
            saver: job.save.then(|| Saver::new(job.dir.clone(), &job.name)),
            last: None,
            request_count: 0,
            body_bytes: 0,
        })
    }

    /// When the next row of the player's state is due.
    pub(crate) fn next_row(&self) -> Time {
        self.last.map_or(Time::ZERO, |(at, _)| at + INTERVAL)
    }

    /// Writes a row if something changed or one is due.
    pub(crate) fn state(&mut self, now: Time, view: &View) -> Result<(), PlayerError> {
        let changed = self.last.as_ref().is_none_or(|(_, last)| has_changed(last, view));
        if !changed && now < self.next_row() {
            return Ok(());
        }
        self.last = Some((now, *view));
        let ms = |ns: i64| ns as f64 / 1e6;
        self.states.push(PlayerRow {
            t_ns: now.as_nanos_i64(),
            endpoint: self.endpoint.clone(),
            state: if view.failed { PlayerState::Failed } else { state(view.state) },
            buffer_ms: Some(view.buffer.as_millis_f64()),
            position_ms: Some(view.position.as_millis_f64()),
            rung_bps: view.rung.map(|rate| to_i64(rate.as_bps())),
            latency_ms: view.latency_ns.map(ms),
            target_latency_ms: view.target_latency.map(Duration::as_millis_f64),
            speed: view.speed,
            stalls: to_i64(view.stalls),
            estimate_bps: view.estimate.map(|rate| to_i64(rate.as_bps())),
            dropped_pictures: None,
        })?;
        Ok(())
    }

    /// What became of frames.
    pub(crate) fn frames(&mut self, frames: Vec<Frame>) -> Result<(), PlayerError> {
        for frame in frames {
            self.frames.push(FrameRow {
                t_ns: frame.displayed.or(frame.received).unwrap_or(frame.at).as_nanos_i64(),
                endpoint: self.endpoint.clone(),
                frame: to_i64(frame.number),
                captured_ns: frame.captured_ns,
                rung_bps: frame.rate.map(|rate| to_i64(rate.as_bps())),
                encoded_bytes: None,
                sent_ns: None,
                received_ns: frame.received.map(Time::as_nanos_i64),
                // Segmented media comes whole or not at all.
                decodable: frame.received.is_some(),
                damaged: false,
                displayed_ns: frame.displayed.map(Time::as_nanos_i64),
            })?;
        }
        Ok(())
    }

    /// A request that has ended, well or badly; of a segment with the length that its chunks have told.
    pub(crate) fn request(
        &mut self,
        fetch: &Fetch,
        fetched: &Fetched,
        clock_offset_ns: Option<i64>,
        length: Option<Duration>,
    ) -> Result<(), PlayerError> {
        let done = fetched.body.is_ok().then_some(fetched.finished);
        let error = fetched.body.as_ref().err().cloned();
        self.push(fetch, fetched.requested, fetched.first_byte, fetched.bytes, |row| {
            row.handshake_ns = Some(fetched.handshake.as_nanos_i64());
            row.done_ns = done.map(Time::as_nanos_i64);
            if let Some(length) = length.filter(|_| done.is_some()) {
                row.duration_ms = Some(milliseconds(length));
            }
            row.status = fetched.status.map(i64::from);
            row.error = error.map(Into::into);
            row.clock_offset_ns = clock_offset_ns;
            row.early = fetched.early;
            tell(row, fetched.server);
        })
    }

    /// A request that was still under way when the player was stopped.
    pub(crate) fn unfinished(&mut self, request: &Underway) -> Result<(), PlayerError> {
        self.begun(request, |row| row.error = Some(RequestRow::STOPPED.into()))
    }

    /// A request that was given up.
    pub(crate) fn abandoned(
        &mut self,
        request: &Underway,
        reason: &str,
    ) -> Result<(), PlayerError> {
        self.begun(request, |row| row.abandoned = Some(reason.into()))
    }

    /// What has come of a request that does not go on.
    fn begun(
        &mut self,
        request: &Underway,
        finish: impl FnOnce(&mut RequestRow),
    ) -> Result<(), PlayerError> {
        let Underway { fetch, progress } = request;
        let Some(requested) = progress.requested else { return Ok(()) };
        self.push(fetch, requested, progress.first_byte, progress.bytes, |row| {
            row.handshake_ns = Some(progress.handshake.as_nanos_i64());
            row.status = progress.status.map(i64::from);
            row.early = progress.early;
            tell(row, progress.server);
            finish(row);
        })
    }

    fn push(
        &mut self,
        fetch: &Fetch,
        requested: Time,
        first_byte: Option<Time>,
        bytes: u64,
        finish: impl FnOnce(&mut RequestRow),
    ) -> Result<(), PlayerError> {
        self.request_count += 1;
        self.body_bytes += bytes;
        let (kind, track, rate, segment) = match &fetch.what {
            What::Manifest | What::Playlist { .. } => (RequestKind::Manifest, None, None, None),
            What::Clock => (RequestKind::Clock, None, None, None),
            What::Init { kind, rate } => (RequestKind::Init, Some(kind), Some(rate), None),
            What::Segment { kind, rate, segment, .. } => {
                (RequestKind::Segment, Some(kind), Some(rate), Some(segment))
            }
        };
        let mut row = RequestRow {
            t_ns: requested.as_nanos_i64(),
            endpoint: self.endpoint.clone(),
            url: fetch.resource.url.target().into(),
            kind,
            track: track.copied(),
            rung_bps: rate.map(|rate| to_i64(rate.as_bps())),
            segment: segment.map(|segment| to_i64(segment.number)),
            media_ms: segment.map(|segment| milliseconds(segment.start)),
            duration_ms: segment.map(|segment| milliseconds(segment.duration)),
            body_bytes: to_i64(bytes),
            first_byte_ns: first_byte.map(Time::as_nanos_i64),
            attempt: i64::from(fetch.attempt),
            urgency: fetch.priority.map(|priority| i64::from(priority.urgency)),
            incremental: fetch.priority.map(|priority| priority.incremental),
            ..RequestRow::default()
        };
        finish(&mut row);
        self.requests.push(row)?;
        Ok(())
    }

    pub(crate) fn save(&mut self, piece: Piece) -> Result<(), PlayerError> {
        match &mut self.saver {
            Some(saver) => saver.add(piece),
            None => Ok(()),
        }
    }

    pub(crate) fn close(
        self,
        totals: Option<Totals>,
        failure: Option<String>,
    ) -> Result<Summary, PlayerError> {
        self.requests.close()?;
        self.states.close()?;
        self.frames.close()?;
        Ok(Summary {
            totals,
            failure,
            no_manifest: None,
            no_media: None,
            requests: self.request_count,
            body_bytes: self.body_bytes,
            no_frames: None,
            saved: self.saver.map_or(Ok(Vec::new()), Saver::close)?,
        })
    }
}

/// What the server said with its response.
fn tell(row: &mut RequestRow, server: Cmsd) {
    row.cmsd_throughput_bps = server.throughput_bps;
    row.cmsd_rtt_ms = server.rtt_ms;
    row.cmsd_maximum_bps = server.maximum_bps;
    row.cmsd_delay_ms = server.delay_ms;
}

/// What a row is written for next to the passing of time; the playhead moves always, and the
/// buffer falls with it.
fn has_changed(last: &View, now: &View) -> bool {
    let parts = |v: &View| (v.state, v.failed, v.rung, v.stalls, v.estimate);
    parts(last) != parts(now) || last.speed != now.speed || now.buffer > last.buffer
}

fn milliseconds(span: Duration) -> i64 {
    to_i64((span.as_nanos() + 500_000) / 1_000_000)
}

/// The playout's state in the words of records.
const fn state(state: State) -> PlayerState {
    match state {
        State::Starting => PlayerState::Starting,
        State::Playing => PlayerState::Playing,
        State::Stalled => PlayerState::Stalled,
        State::Ended => PlayerState::Ended,
    }
}
