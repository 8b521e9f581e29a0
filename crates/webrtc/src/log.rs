//! The tables `webrtc`, `webrtc_sessions` and `flows` of ends whose frames suiro encodes or plays.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use suiro_record::flows::{End, Flow, FlowLog, Opened};
use suiro_record::tables::{WebrtcRow, WebrtcSessionRow};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_record::{RecordError, Text, Writer};
use suiro_units::{BitRate, Bytes, Duration, Time};

use crate::EndpointError;
use crate::encoding::Target;
use crate::peer::{STATISTICS_EVERY, Statistics, Way};
use crate::plain;
use crate::sessions::role;

/// What an endpoint did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Connections that sent or received media.
    pub connections: u64,
    /// IP packets' bytes that were sent in them.
    pub sent_bytes: u64,
    /// IP packets' bytes that came in them.
    pub received_bytes: u64,
    /// Datagrams that were neither STUN, DTLS, RTP nor RTCP.
    pub malformed: u64,
    /// Packets that the kernel refused to send to where the other end said that it is.
    pub unsent: u64,
    /// Candidates of the other end that cannot be used: not of UDP, or with a name that only mDNS resolves.
    pub unused: u64,
    /// Events of connections, such as packets that came, that were left out because too many waited.
    pub left_out: u64,
    /// Of a viewer: frames that came twice, or after they had been given up. Table `frames` has the latter as frames that
    /// never came.
    pub refused_frames: u64,
}

/// The tables.
pub(crate) struct Log {
    endpoint: Text,
    way: Way,
    /// The endpoint at the other end, if it is one of suiro's.
    peer: Option<Text>,
    rows: Writer<WebrtcRow>,
    sessions: Writer<WebrtcSessionRow>,
    flows: FlowLog,
    /// The flows of sessions that are open.
    media: BTreeMap<u64, Opened>,
    /// The pair of candidates of each session that is open.
    pairs: BTreeMap<u64, (SocketAddr, SocketAddr)>,
    /// When the last row of each session's statistics was written.
    last: BTreeMap<u64, Time>,
    pub plain: Option<plain::Log>,
    pub summary: Summary,
}

/// Sessions whose last row is remembered.
const REMEMBERED_MAX: usize = 256;

impl Log {
    /// Begins the tables of an endpoint in a folder; `peer` is the other end, if it is one of suiro's.
    pub fn create(
        dir: &Path,
        name: &str,
        (way, peer): (Way, Option<Text>),
    ) -> Result<Self, RecordError> {
        Ok(Self {
            endpoint: name.into(),
            way,
            peer,
            rows: Writer::create_of(dir, name)?,
            sessions: Writer::create_of(dir, name)?,
            flows: FlowLog::create(dir, name)?,
            media: BTreeMap::new(),
            pairs: BTreeMap::new(),
            last: BTreeMap::new(),
            plain: None,
            summary: Summary::default(),
        })
    }

    /// The flow of offers and answers. Between endpoints of suiro, the client writes it.
    pub fn signalling(&mut self, now: Time, role: FlowRole, port: u16) {
        let (local, remote) = match role {
            FlowRole::Server if self.peer.is_some() => return,
            FlowRole::Server => (End::Port(port), End::Any),
            _ => (End::Any, End::Port(port)),
        };
        let (protocol, carries, peer) = (Transport::Tcp, Carries::Control, self.peer.clone());
        self.flows.opened(now, Flow { role, protocol, local, remote, carries, peer });
    }

    /// The flow of a session that is open, once its pair of candidates is known, and another one where the pair changes.
    /// Between endpoints of suiro, the sender writes it.
    pub fn pair(&mut self, now: Time, number: u64, (local, remote): (SocketAddr, SocketAddr)) {
        match self.pairs.insert(number, (local, remote)) {
            Some(before) if before == (local, remote) => return,
            Some(_) => {}
            None => self.summary.connections += 1,
        }
        if self.way == Way::Receives && self.peer.is_some() {
            return;
        }
        if let Some(flow) = self.media.remove(&number) {
            self.flows.closed(now, flow);
        }
        let flow = self.flows.opened(
            now,
            Flow {
                role: role(self.way),
                protocol: Transport::Udp,
                local: local.into(),
                remote: remote.into(),
                carries: Carries::Video,
                peer: self.peer.clone(),
            },
        );
        self.media.insert(number, flow);
    }

    /// A row of statistics; `sends` is the estimate, and what a sender's encoder is set to, by its number.
    pub fn statistics(
        &mut self,
        number: u64,
        statistics: &Statistics,
        sends: Option<(BitRate, (usize, Target))>,
    ) -> Result<(), RecordError> {
        let before = self.last.insert(number, statistics.at);
        if self.last.len() > REMEMBERED_MAX {
            self.last.pop_first();
        }
        let period =
            before.map_or(STATISTICS_EVERY, |before| statistics.at.saturating_since(before));
        let period = period.max(Duration::from_micros(1));
        let counts = &statistics.counts;
        self.summary.sent_bytes += counts.sent_bytes;
        self.summary.received_bytes += counts.received_bytes;
        self.summary.malformed += counts.malformed;
        self.summary.left_out += counts.left_out;
        let target = sends.map(|(_, (_, target))| target);
        self.rows.push(WebrtcRow {
            t_ns: statistics.at,
            endpoint: self.endpoint.clone(),
            session: number,
            role: role(self.way),
            period_ns: period,
            estimate_bps: sends.map(|(estimate, _)| estimate),
            target_bps: target.map(|target| target.rate),
            sent_bps: Bytes::new(counts.sent_bytes) / period,
            received_bps: Bytes::new(counts.received_bytes) / period,
            rtt_ns: statistics.rtt,
            loss_ratio: statistics.loss,
            nacks: counts.nacks,
            retransmissions: counts.retransmissions,
            padding_bytes: Some(counts.padding_bytes),
            plis: counts.plis,
            firs: counts.firs,
            queue_bytes: statistics.queue.map(|(bytes, _)| bytes.get()),
            queue_ns: statistics.queue.map(|(_, waited)| waited),
            width: target.map(|target| target.rung.size.0.into()),
            height: target.map(|target| target.rung.size.1.into()),
            fps: target.map(|target| target.rung.fps.into()),
            quality: sends.map(|(_, (quality, _))| quality as u64),
        })
    }

    /// A session is over: its row.
    pub fn session(&mut self, row: WebrtcSessionRow) -> Result<(), RecordError> {
        self.pairs.remove(&row.session);
        if let (Some(flow), Some(ended)) = (self.media.remove(&row.session), row.ended_ns) {
            self.flows.closed(ended, flow);
        }
        self.sessions.push(row)
    }

    /// Completes the tables.
    pub fn close(self) -> Result<Summary, EndpointError> {
        self.rows.close()?;
        self.sessions.close()?;
        self.flows.close()?;
        self.plain.map(plain::Log::close).transpose().map_err(EndpointError::Plain)?;
        Ok(self.summary)
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::Reader;
    use suiro_record::tables::FlowRow;

    use super::*;

    #[test]
    fn another_pair_of_candidates_is_another_flow() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::create(dir.path(), "camera", (Way::Sends, None)).unwrap();
        let end = |port| SocketAddr::from(([127, 0, 0, 1], port));
        for (second, remote) in [(1, 10), (2, 10), (3, 11), (4, 11)] {
            log.pair(Time::from_secs(second), 1, (end(9), end(remote)));
        }
        assert_eq!(log.close().unwrap().connections, 1);
        let flows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        let said = |row: &FlowRow| (row.t_ns, row.remote.to_string(), row.closed_ns);
        let (one, three) = (Time::from_secs(1), Time::from_secs(3));
        let expected = [(one, "127.0.0.1:10", Some(three)), (three, "127.0.0.1:11", None)];
        let expected = expected.map(|(from, remote, to)| (from, remote.to_owned(), to));
        assert_eq!(flows.iter().map(said).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_session_that_connects_after_a_later_one_has_its_flow() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::create(dir.path(), "camera", (Way::Sends, None)).unwrap();
        let end = |port| SocketAddr::from(([127, 0, 0, 1], port));
        for (second, session, remote) in [(1, 2, 20), (2, 1, 10), (3, 2, 20), (4, 1, 10)] {
            log.pair(Time::from_secs(second), session, (end(9), end(remote)));
        }
        assert_eq!(log.close().unwrap().connections, 2);
        let flows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        let remotes: Vec<String> = flows.iter().map(|row| row.remote.to_string()).collect();
        assert_eq!(remotes, ["127.0.0.1:20", "127.0.0.1:10"]);
    }
}
