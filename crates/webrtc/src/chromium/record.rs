//! The records of a browser that is an end of WebRTC connections: the tables that suiro's own ends write.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use suiro_browser::Ms;
use suiro_media::screen::Codec;
use suiro_realtime::{Log as FrameLog, LogError};
use suiro_record::flows::{End, Flow, FlowLog, Opened};
use suiro_record::tables::{BrowserRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::{Carries, FlowRole, Signalling, Transport};
use suiro_record::{RecordError, Text, Writer};
use suiro_units::{BitRate, Bytes, Duration, Time};

use super::frames::Frames;
use super::report::{Coded, Report, SessionReport, StatisticsReport};
use crate::desk::SESSIONS_MAX;

/// Sizes of headers of IP and UDP.
const IPV4_UDP_BYTES: u64 = 20 + 8;
const IPV6_UDP_BYTES: u64 = 40 + 8;
/// How often the page looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Who the endpoint is.
#[derive(Debug, Clone)]
pub(super) struct Who {
    pub name: String,
    pub role: FlowRole,
    pub signalling: Signalling,
    /// The endpoint at the other end, if it is known.
    pub peer: Option<String>,
    /// The port of offers and answers, and whether this end serves there.
    pub port: (u16, FlowRole),
}

/// A session, as far as the page has reported it.
#[derive(Debug, Default)]
struct Session {
    report: Option<SessionReport>,
    last: Option<StatisticsReport>,
    first_packet: Option<Time>,
    pair: Option<(SocketAddr, SocketAddr)>,
    /// The flow of that pair, while it is open; not of an end that leaves it to the other.
    flow: Option<Opened>,
    /// The codec of the video, by the browser's statistics.
    codec: Option<String>,
}

/// What an endpoint did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Connections that sent or received media.
    pub connections: u64,
    /// IP packets' bytes that were sent in them.
    pub sent_bytes: u64,
    /// IP packets' bytes that came in them.
    pub received_bytes: u64,
    /// Of a viewer: frames that were presented, that the page saw of them, and whose stamp could not be read.
    pub pictures: (u64, u64, u64),
    /// Of a publisher: frames that the camera missed because the page was late.
    pub missed: u64,
    /// Frames that were encoded or decoded, and the time that took.
    pub coded: (u64, Duration),
}

/// The tables.
pub(super) struct Log {
    endpoint: Text,
    who: Who,
    rows: Writer<WebrtcRow>,
    browser: Writer<BrowserRow>,
    sessions: Writer<WebrtcSessionRow>,
    flows: FlowLog,
    /// Of a viewer.
    viewed: Option<(Frames, FrameLog)>,
    known: BTreeMap<u64, Session>,
    summary: Summary,
}

impl Log {
    /// Begins the records. A viewer's has the table `frames`, and with `save` what it could decode.
    pub fn create(
        dir: &Path,
        who: Who,
        (now, epoch_unix_ns): (Time, u64),
        save: bool,
    ) -> Result<Self, LogError> {
        let name = who.name.as_str();
        let frames = || {
            let codec = save.then_some(Codec::H264);
            Ok::<_, LogError>((
                Frames::default(),
                FrameLog::create(dir, name, epoch_unix_ns, codec)?,
            ))
        };
        let viewed = (who.role == FlowRole::Receiver).then(frames).transpose()?;
        let mut log = Self {
            endpoint: name.into(),
            rows: Writer::create_of(dir, name)?,
            browser: Writer::create_of(dir, name)?,
            sessions: Writer::create_of(dir, name)?,
            flows: FlowLog::create(dir, name)?,
            viewed,
            known: BTreeMap::new(),
            summary: Summary::default(),
            who,
        };
        log.signalling(now);
        Ok(log)
    }

    /// The flow of offers and answers. Between endpoints of one trial, the client writes it.
    fn signalling(&mut self, now: Time) {
        let (port, role) = self.who.port;
        let (local, remote) = match role {
            FlowRole::Server if self.who.peer.is_some() => return,
            FlowRole::Server => (End::Port(port), End::Any),
            _ => (End::Any, End::Port(port)),
        };
        let (protocol, carries, peer) = (Transport::Tcp, Carries::Control, self.peer());
        self.flows.opened(now, Flow { role, protocol, local, remote, carries, peer });
    }

    fn peer(&self) -> Option<Text> {
        self.who.peer.as_deref().map(Text::from)
    }

    /// What the page reported.
    pub fn on_report(&mut self, report: Report) -> Result<(), LogError> {
        self.summary.missed = report.missed;
        for session in report.sessions {
            let Some(known) = self.session(session.session) else { continue };
            let ended = session.ended_ms.map(Ms::time);
            let flow = ended.and_then(|_| known.flow.take());
            known.report = Some(session);
            if let (Some(ended), Some(flow)) = (ended, flow) {
                self.flows.closed(ended, flow);
            }
        }
        for statistics in report.statistics {
            self.on_statistics(&statistics)?;
        }
        let Some((frames, log)) = &mut self.viewed else { return Ok(()) };
        report.shown.into_iter().for_each(|shown| frames.on_shown(shown));
        frames.take().iter().try_for_each(|seen| log.push(seen))
    }

    /// Coded frames that came.
    pub fn on_frames(&mut self, coded: Vec<Coded>) {
        if let Some((frames, _)) = &mut self.viewed {
            coded.into_iter().for_each(|coded| frames.on_coded(coded));
        }
    }

    fn session(&mut self, number: u64) -> Option<&mut Session> {
        if self.known.len() == SESSIONS_MAX && !self.known.contains_key(&number) {
            return None;
        }
        Some(self.known.entry(number).or_default())
    }

    fn on_statistics(&mut self, now: &StatisticsReport) -> Result<(), RecordError> {
        let Some(known) = self.session(now.session) else { return Ok(()) };
        let at = now.at_ms.time();
        if now.video_packets > 0 {
            known.first_packet.get_or_insert(at);
        }
        let parse = |text: &Option<String>| text.as_ref()?.parse::<SocketAddr>().ok();
        let pair = parse(&now.local).zip(parse(&now.remote));
        known.codec = now.codec.clone().or(known.codec.take());
        let before = known.last.replace(now.clone());
        if let Some(pair) = pair {
            self.pair(at, now.session, pair);
        }
        let row = self.row(now, before.as_ref(), pair);
        self.summary.coded.0 += now.coded - before.as_ref().map_or(0, |it| it.coded.min(now.coded));
        let coding = |it: &StatisticsReport| it.coding_ms.duration();
        let coding = coding(now).saturating_sub(before.as_ref().map_or(Duration::ZERO, coding));
        self.summary.coded.1 += coding;
        let period = row.period_ns;
        self.browser.push(self.counted(now, before.as_ref(), period))?;
        self.rows.push(row)
    }

    /// The flow of a session, and another one where its pair of candidates changes. Between endpoints of one trial, the sender
    /// writes it.
    fn pair(&mut self, at: Time, number: u64, (local, remote): (SocketAddr, SocketAddr)) {
        let peer = self.peer();
        let Some(known) = self.known.get_mut(&number) else { return };
        let before = known.pair.replace((local, remote));
        if before == Some((local, remote)) {
            return;
        }
        self.summary.connections += u64::from(before.is_none());
        if self.who.role == FlowRole::Receiver && peer.is_some() {
            return;
        }
        if let Some(flow) = known.flow.take() {
            self.flows.closed(at, flow);
        }
        let flow = Flow {
            role: self.who.role,
            protocol: Transport::Udp,
            local: local.into(),
            remote: remote.into(),
            carries: Carries::Video,
            peer,
        };
        known.flow = Some(self.flows.opened(at, flow));
    }

    /// A row of what happened between two looks; the first begins with the connection.
    fn row(
        &mut self,
        now: &StatisticsReport,
        before: Option<&StatisticsReport>,
        pair: Option<(SocketAddr, SocketAddr)>,
    ) -> WebrtcRow {
        let at = now.at_ms.time();
        let period = before.map_or(LOOK_EVERY, |it| at.saturating_since(it.at_ms.time()));
        let period = period.max(Duration::from_micros(1));
        let since = |of: fn(&StatisticsReport) -> u64| of(now).saturating_sub(before.map_or(0, of));
        let headers = match pair {
            Some((_, remote)) if remote.is_ipv6() => IPV6_UDP_BYTES,
            _ => IPV4_UDP_BYTES,
        };
        let sent = since(|it| it.sent_bytes) + headers * since(|it| it.sent_packets);
        let received = since(|it| it.received_bytes) + headers * since(|it| it.received_packets);
        self.summary.sent_bytes += sent;
        self.summary.received_bytes += received;
        let sends = self.who.role == FlowRole::Sender;
        let rate =
            |bps: Option<f64>| bps.filter(|_| sends).map(|bps| BitRate::from_bps(bps as u64));
        let side = |side: Option<u32>| side.filter(|_| sends).map(i64::from);
        WebrtcRow {
            t_ns: at,
            endpoint: self.endpoint.clone(),
            session: now.session,
            role: self.who.role,
            period_ns: period,
            estimate_bps: rate(now.estimate_bps),
            target_bps: rate(now.target_bps),
            sent_bps: Bytes::new(sent) / period,
            received_bps: Bytes::new(received) / period,
            rtt_ns: now.rtt_ms.map(|rtt| rtt.duration()),
            loss_ratio: now.loss_ratio.filter(|_| sends),
            nacks: since(|it| it.nacks),
            retransmissions: since(|it| it.retransmissions),
            padding_bytes: (!sends).then_some(0),
            plis: since(|it| it.plis),
            firs: since(|it| it.firs),
            queue_bytes: None,
            queue_ns: None,
            width: side(now.width),
            height: side(now.height),
            fps: None,
            quality: None,
        }
    }

    /// What the browser counted in that period.
    fn counted(
        &self,
        now: &StatisticsReport,
        before: Option<&StatisticsReport>,
        period: Duration,
    ) -> BrowserRow {
        let count = |of: fn(&StatisticsReport) -> Option<u64>| {
            Some(of(now)?.saturating_sub(before.and_then(of).unwrap_or(0)))
        };
        let time = |of: fn(&StatisticsReport) -> Option<Ms>| {
            let so_far = |it: &StatisticsReport| of(it).map(Ms::duration);
            Some(so_far(now)?.saturating_sub(before.and_then(so_far).unwrap_or_default()))
        };
        BrowserRow {
            t_ns: now.at_ms.time(),
            endpoint: self.endpoint.clone(),
            session: now.session,
            role: self.who.role,
            period_ns: period,
            frames: count(|it| Some(it.coded)).unwrap_or(0),
            coding_ns: time(|it| Some(it.coding_ms)).unwrap_or_default(),
            key_frames: count(|it| it.key_frames),
            qp_sum: count(|it| it.qp_sum),
            dropped: count(|it| it.dropped),
            freezes: count(|it| it.freezes),
            freezes_ns: time(|it| it.freezes_ms),
            jitter_buffer_frames: count(|it| it.jitter_buffer_frames),
            jitter_buffer_ns: time(|it| it.jitter_buffer_ms),
            jitter_buffer_target_ns: time(|it| it.jitter_buffer_target_ms),
            limitation: now.limitation,
        }
    }

    /// Where the session of the page's own offer can be deleted.
    pub fn location(&self) -> Option<&str> {
        self.known.values().find_map(|known| known.report.as_ref()?.location.as_deref())
    }

    /// The feedback that each session agreed on, as far as it was answered.
    pub fn feedback(&self) -> impl Iterator<Item = (u64, &str)> {
        self.known.iter().filter_map(|(number, known)| {
            let agreed = known.report.as_ref()?.agreed.as_ref()?;
            Some((*number, agreed.feedback.as_str()))
        })
    }

    /// Completes the records.
    pub fn close(mut self) -> Result<Summary, LogError> {
        if let Some((mut frames, mut log)) = self.viewed.take() {
            frames.finish().iter().try_for_each(|seen| log.push(seen))?;
            self.summary.pictures = (frames.presented, frames.seen, frames.unread);
            log.close()?;
        }
        self.rows.close()?;
        self.browser.close()?;
        for (number, session) in std::mem::take(&mut self.known) {
            let Some(row) = row_of(&self.who, number, session) else { continue };
            self.sessions.push(row)?;
        }
        self.sessions.close()?;
        self.flows.close()?;
        Ok(self.summary)
    }
}

fn row_of(who: &Who, number: u64, session: Session) -> Option<WebrtcSessionRow> {
    let report = session.report?;
    let agreed = report.agreed;
    let text = |of: fn(super::report::Agreed) -> String| agreed.clone().map(|it| of(it).into());
    Some(WebrtcSessionRow {
        t_ns: report.opened_ms.time(),
        endpoint: who.name.as_str().into(),
        session: number,
        role: who.role,
        signalling: who.signalling,
        answered_ns: report.answered_ms.map(|ms| ms.time()),
        connected_ns: report.connected_ms.map(|ms| ms.time()),
        first_packet_ns: session.first_packet,
        ended_ns: report.ended_ms.map(|ms| ms.time()),
        ended: report.ended.map(Into::into),
        candidates: report.candidates.join(" ").into(),
        pair: session.pair.map(|(local, remote)| format!("{local}>{remote}").into()),
        // What is coded, rather than what the descriptions prefer.
        codec: session.codec.map(Text::from).or_else(|| text(|it| it.codec)),
        payload_types: text(|it| it.payload_types),
        feedback: text(|it| it.feedback),
        extensions: text(|it| it.extensions),
    })
}

#[cfg(test)]
mod tests {
    use suiro_record::Reader;
    use suiro_record::tables::FlowRow;

    use super::*;
    use crate::chromium::report;

    /// A report on session 1: the statistics of a pair with that remote port, at a time; and when the session ended.
    fn report(ms: u64, remote: u16, ended: Option<u64>) -> Report {
        let times = format!(
            r#""opened_ms":1,"answered_ms":2,"connected_ms":3,"ended_ms":{},"ended":{}"#,
            ended.map_or("null".to_owned(), |ms| ms.to_string()),
            ended.map_or("null", |_| r#""closed""#),
        );
        let none = [
            "rtt_ms",
            "estimate_bps",
            "target_bps",
            "loss_ratio",
            "width",
            "height",
            "key_frames",
            "qp_sum",
            "dropped",
            "freezes",
            "freezes_ms",
            "jitter_buffer_frames",
            "jitter_buffer_ms",
            "jitter_buffer_target_ms",
            "limitation",
            "codec",
        ];
        let zero = [
            "sent_packets",
            "sent_bytes",
            "received_packets",
            "received_bytes",
            "nacks",
            "retransmissions",
            "plis",
            "firs",
            "video_packets",
            "coding_ms",
            "coded",
        ];
        let none = none.map(|name| format!(r#""{name}":null"#)).join(",");
        let zero = zero.map(|name| format!(r#""{name}":0"#)).join(",");
        let text = format!(
            r#"{{"sessions":[{{"session":1,{times},"location":null,"candidates":[],"agreed":null}}],
            "statistics":[{{"session":1,"at_ms":{ms},"local":"10.0.0.1:9","remote":"10.0.0.2:{remote}",{none},{zero}}}],
            "shown":[],"missed":0,"failure":null,"left_out":0}}"#
        );
        report::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn another_pair_of_candidates_is_another_flow() {
        let dir = tempfile::tempdir().unwrap();
        let who = Who {
            name: "browser".to_owned(),
            role: FlowRole::Sender,
            signalling: Signalling::Whip,
            peer: Some("viewer".to_owned()),
            port: (80, FlowRole::Server),
        };
        let mut log = Log::create(dir.path(), who, (Time::ZERO, 0), false).unwrap();
        for (ms, remote, ended) in
            [(100, 10, None), (200, 10, None), (300, 11, None), (400, 11, Some(390))]
        {
            log.on_report(report(ms, remote, ended)).unwrap();
        }
        assert_eq!(log.close().unwrap().connections, 1);
        let flows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        let said = |row: &FlowRow| (row.t_ns, row.remote.to_string(), row.closed_ns);
        let ms = Time::from_millis;
        let expected = [
            (ms(100), "10.0.0.2:10".to_owned(), Some(ms(300))),
            (ms(300), "10.0.0.2:11".to_owned(), Some(ms(390))),
        ];
        assert_eq!(flows.iter().map(said).collect::<Vec<_>>(), expected);
    }
}
