//! The records of a browser that publishes or views by Media over QUIC: the tables that suiro's own ends write.

use std::path::Path;

use suiro_media::screen::Codec;
use suiro_realtime::{Log as FrameLog, LogError};
use suiro_record::flows::{End, Flow, FlowLog};
use suiro_record::tables::{BrowserRow, MoqSessionRow, QuicRow};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_record::{RecordError, Text, Writer};
use suiro_units::{BitRate, Duration};

use super::frames::Frames;
use super::report::{Object, Report, SessionReport, StatisticsReport};

/// The one session of a page.
const SESSION: u64 = 1;
/// How often the page looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What is written where the browser does not say.
const NOT_KNOWN: &str = "not known";

/// Who the endpoint is.
#[derive(Debug, Clone)]
pub(super) struct Who {
    pub name: String,
    pub role: FlowRole,
    /// The relay, and the port that it listens at.
    pub relay: (String, u16),
    /// The bit rate of a publisher's encoder.
    pub target: Option<BitRate>,
}

/// What an endpoint did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Whether the session was set up.
    pub set_up: bool,
    /// Of a publisher: bytes that streams were given.
    pub given_bytes: u64,
    /// Frames that were encoded or decoded.
    pub coded: u64,
    /// Of a viewer: frames that were shown, and those of them whose stamp could not be read.
    pub pictures: (u64, u64),
    /// Of a publisher: frames that the camera or the encoder missed because the page was late.
    pub missed: u64,
    /// Of a viewer: objects that could not be read.
    pub malformed: u64,
    /// Of a viewer: how often its decoder fell behind, and the frames that were given up then.
    pub behind: (u64, u64),
}

/// The tables.
pub(super) struct Log {
    endpoint: Text,
    who: Who,
    quic: Writer<QuicRow>,
    browser: Writer<BrowserRow>,
    sessions: Writer<MoqSessionRow>,
    flows: FlowLog,
    /// Of a viewer.
    viewed: Option<(Frames, FrameLog)>,
    session: Option<SessionReport>,
    last: Option<StatisticsReport>,
    summary: Summary,
}

impl Log {
    /// Begins the records. A viewer's has the table `frames`, and with `save` what it could decode.
    pub fn create(dir: &Path, who: Who, epoch_unix_ns: u64, save: bool) -> Result<Self, LogError> {
        let name = who.name.as_str();
        let frames = || {
            let codec = save.then_some(Codec::H264);
            let log = FrameLog::create(dir, name, epoch_unix_ns, codec)?;
            Ok::<_, LogError>((Frames::default(), log))
        };
        let viewed = (who.role == FlowRole::Receiver).then(frames).transpose()?;
        Ok(Self {
            endpoint: name.into(),
            quic: Writer::create_of(dir, name)?,
            browser: Writer::create_of(dir, name)?,
            sessions: Writer::create_of(dir, name)?,
            flows: FlowLog::create(dir, name)?,
            viewed,
            session: None,
            last: None,
            summary: Summary::default(),
            who,
        })
    }

    /// What the page reported.
    pub fn on_report(&mut self, report: Report) -> Result<(), LogError> {
        self.summary.missed = report.missed;
        self.summary.coded = report.coded;
        self.summary.behind = (report.behind, report.given_up);
        if let Some(session) = report.session {
            self.on_session(session);
        }
        for statistics in report.statistics {
            self.on_statistics(&statistics)?;
        }
        let Some((frames, log)) = &mut self.viewed else { return Ok(()) };
        report.shown.into_iter().for_each(|shown| frames.on_shown(shown));
        frames.take().iter().try_for_each(|seen| log.push(seen))
    }

    /// Objects that came.
    pub fn on_objects(&mut self, objects: &[Object]) {
        if let Some((frames, _)) = &mut self.viewed {
            objects.iter().for_each(|object| frames.on_object(object));
        }
    }

    fn on_session(&mut self, session: SessionReport) {
        if self.session.is_none() {
            let (relay, port) = &self.who.relay;
            // A page does not learn its own port.
            let (local, remote) = (End::Any, End::Port(*port));
            let (role, protocol, carries) = (self.who.role, Transport::Udp, Carries::Video);
            let peer = Some(relay.as_str().into());
            let flow = Flow { role, protocol, local, remote, carries, peer };
            self.flows.opened(session.opened_ms.time(), flow);
        }
        self.summary.set_up |= session.set_up_ms.is_some();
        self.session = Some(session);
    }

    /// A row, where the browser knows the round-trip time.
    fn on_statistics(&mut self, now: &StatisticsReport) -> Result<(), RecordError> {
        let before = self.last.replace(now.clone());
        self.browser.push(self.counted(now, before.as_ref()))?;
        let Some(srtt) = now.srtt_ms else { return Ok(()) };
        self.summary.given_bytes = now.given_bytes;
        self.quic.push(QuicRow {
            t_ns: now.at_ms.time(),
            endpoint: self.endpoint.clone(),
            session: SESSION,
            remote: None,
            congestion: self.congestion(),
            cwnd_bytes: None,
            ssthresh_bytes: None,
            in_flight_bytes: None,
            waiting_bytes: None,
            srtt_ns: srtt.duration(),
            min_rtt_ns: now.min_rtt_ms.map(|rtt| rtt.duration()),
            pacing_bps: now.send_bps.map(|bps| BitRate::from_bps(bps as u64)),
            sent_packets: now.sent_packets,
            sent_bytes: now.sent_bytes,
            received_bytes: now.received_bytes,
            lost_packets: now.lost_packets,
            congestion_events: None,
            target_bps: self.who.target,
        })
    }

    /// What the page counted since the look before.
    fn counted(&self, now: &StatisticsReport, before: Option<&StatisticsReport>) -> BrowserRow {
        let at = now.at_ms.time();
        let period = before.map_or(LOOK_EVERY, |it| at.saturating_since(it.at_ms.time()));
        let count = |of: fn(&StatisticsReport) -> u64| of(now).saturating_sub(before.map_or(0, of));
        let given_up = before.and_then(|it| it.given_up).unwrap_or(0);
        let coding = |it: &StatisticsReport| it.coding_ms.duration();
        BrowserRow {
            t_ns: at,
            endpoint: self.endpoint.clone(),
            session: SESSION,
            role: self.who.role,
            period_ns: period.max(Duration::from_micros(1)),
            frames: count(|it| it.coded),
            coding_ns: coding(now).saturating_sub(before.map_or(Duration::ZERO, coding)),
            key_frames: Some(count(|it| it.key_frames)),
            qp_sum: None,
            dropped: now.given_up.map(|so_far| so_far.saturating_sub(given_up)),
            freezes: None,
            freezes_ns: None,
            jitter_buffer_frames: None,
            jitter_buffer_ns: None,
            jitter_buffer_target_ns: None,
            limitation: None,
        }
    }

    fn congestion(&self) -> Text {
        let told = self.session.as_ref().and_then(|session| session.congestion.as_deref());
        match told {
            Some(told) => format!("{told} (Chromium)").into(),
            None => NOT_KNOWN.into(),
        }
    }

    /// Completes the records.
    pub fn close(mut self) -> Result<Summary, LogError> {
        let congestion = self.congestion();
        if let Some((mut frames, mut log)) = self.viewed.take() {
            frames.finish().iter().try_for_each(|seen| log.push(seen))?;
            self.summary.pictures = (frames.seen, frames.unread);
            self.summary.malformed = frames.malformed;
            log.close()?;
        }
        if let Some(session) = self.session {
            let version = session.protocol.map(|name| match name.strip_prefix("moqt-") {
                Some(draft) => format!("moq-transport-{draft}"),
                None => name,
            });
            self.sessions.push(MoqSessionRow {
                t_ns: session.opened_ms.time(),
                endpoint: self.endpoint.clone(),
                session: SESSION,
                role: FlowRole::Client,
                addresses: format!("*>{}:{}", self.who.relay.0, self.who.relay.1).into(),
                congestion,
                version: version.map(Into::into),
                connected_ns: session.connected_ms.map(|ms| ms.time()),
                set_up_ns: session.set_up_ms.map(|ms| ms.time()),
                ended_ns: session.ended_ms.map(|ms| ms.time()),
                ended: session.ended.map(Into::into),
                streams: session.streams,
                datagrams: None,
                switches: None,
            })?;
        }
        self.quic.close()?;
        self.browser.close()?;
        self.sessions.close()?;
        self.flows.close()?;
        Ok(self.summary)
    }
}
