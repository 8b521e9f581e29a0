//! The records of pion's sessions: the tables that suiro's own publisher writes.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use suiro_record::tables::WebrtcSessionRow;
use suiro_record::words::{FlowRole, SessionEnd, Signalling};
use suiro_units::{BitRate, Bytes, Duration, Time};

use super::message::Counted;
use crate::EndpointError;
use crate::counts::Counts;
use crate::encoding::{Allowed, Target};
use crate::log::{Log, Summary};
use crate::peer::Statistics;

/// What both ends of a session agreed on, as pion writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Agreed {
    pub candidates: Vec<String>,
    pub codec: String,
    pub payload_types: String,
    pub feedback: String,
    pub extensions: String,
}

/// A session.
#[derive(Debug)]
struct Session {
    opened: Time,
    answered: Option<(Time, Agreed)>,
    connected: Option<Time>,
    first_packet: Option<Time>,
    pair: Option<(SocketAddr, SocketAddr)>,
    /// What its connection lets the encoder make.
    allowed: Allowed,
}

/// The sessions that are open, and the tables.
pub(super) struct Records {
    endpoint: String,
    log: Log,
    open: BTreeMap<u64, Session>,
}

impl Records {
    /// No session yet.
    pub fn new(endpoint: String, log: Log) -> Self {
        Self { endpoint, log, open: BTreeMap::new() }
    }

    /// A session is opened, and may use this until more is known.
    pub fn on_opened(&mut self, now: Time, number: u64, start: BitRate) {
        let allowed = Allowed::by(start, None, Bytes::ZERO);
        let session = Session {
            opened: now,
            answered: None,
            connected: None,
            first_packet: None,
            pair: None,
            allowed,
        };
        self.open.insert(number, session);
    }

    /// Its offer was answered.
    pub fn on_answered(&mut self, now: Time, number: u64, agreed: Agreed) {
        if let Some(session) = self.open.get_mut(&number) {
            session.answered = Some((now, agreed));
        }
    }

    /// Its offer was refused: nothing is kept.
    pub fn on_refused(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Media can flow. False for a session that is not open.
    pub fn on_connected(&mut self, at: Time, number: u64) -> bool {
        let session = self.open.get_mut(&number);
        session.map(|session| session.connected = Some(at)).is_some()
    }

    /// Congestion control allows that.
    pub fn on_allowed(&mut self, number: u64, allowed: Allowed) {
        if let Some(session) = self.open.get_mut(&number) {
            session.allowed = allowed;
        }
    }

    /// What the connections allow in which media can flow.
    pub fn allowed(&self) -> Vec<Allowed> {
        let connected = self.open.values().filter(|session| session.connected.is_some());
        connected.map(|session| session.allowed).collect()
    }

    /// Frames that were not sent.
    pub fn on_left_out(&mut self, frames: u64) {
        self.log.summary.left_out += frames;
    }

    /// An interval is over, in which the encoder was set to `target`.
    pub fn on_statistics(&mut self, now: &Counted, target: Target) -> Result<(), EndpointError> {
        let Some(session) = self.open.get_mut(&now.session) else { return Ok(()) };
        let at = Time::from_nanos(now.t_ns);
        session.first_packet = now.first_packet_ns.map(Time::from_nanos);
        session.pair = now.local.zip(now.remote).or(session.pair);
        if let Some(pair) = session.pair {
            self.log.pair(at, now.session, pair);
        }
        let statistics = Statistics {
            at,
            counts: Counts {
                sent_bytes: now.sent_bytes,
                received_bytes: now.received_bytes,
                nacks: now.nacks,
                retransmissions: now.retransmissions,
                plis: now.plis,
                firs: now.firs,
                left_out: now.left_out,
                ..Counts::default()
            },
            rtt: now.rtt_ns.map(Duration::from_nanos),
            loss: now.loss_ratio,
            pair: session.pair,
            queue: Some((Bytes::new(now.queue_bytes), Duration::from_nanos(now.queue_ns))),
        };
        let estimate = BitRate::from_bps(now.target_bps);
        Ok(self.log.statistics(now.session, &statistics, Some((estimate, (0, target))))?)
    }

    /// A session is over.
    pub fn on_ended(
        &mut self,
        at: Time,
        number: u64,
        end: SessionEnd,
    ) -> Result<(), EndpointError> {
        let Some(session) = self.open.remove(&number) else { return Ok(()) };
        let row = row(&self.endpoint, number, session, Some((at, end)));
        Ok(self.log.session(row)?)
    }

    /// Completes the tables: sessions that are still open have no end.
    pub fn close(mut self) -> Result<Summary, EndpointError> {
        for (number, session) in std::mem::take(&mut self.open) {
            self.log.session(row(&self.endpoint, number, session, None))?;
        }
        self.log.close()
    }
}

fn row(
    endpoint: &str,
    number: u64,
    session: Session,
    ended: Option<(Time, SessionEnd)>,
) -> WebrtcSessionRow {
    let (answered, agreed) = session.answered.unzip();
    let text = |of: fn(&Agreed) -> &String| agreed.as_ref().map(|it| of(it).as_str().into());
    let candidates = agreed.as_ref().map(|it| it.candidates.join(" ")).unwrap_or_default();
    WebrtcSessionRow {
        t_ns: session.opened,
        endpoint: endpoint.into(),
        session: number,
        role: FlowRole::Sender,
        signalling: Signalling::Whep,
        answered_ns: answered,
        connected_ns: session.connected,
        first_packet_ns: session.first_packet,
        ended_ns: ended.map(|(at, _)| at),
        ended: ended.map(|(_, end)| end),
        candidates: candidates.into(),
        pair: session.pair.map(|(local, remote)| format!("{local}>{remote}").into()),
        codec: text(|it| &it.codec),
        payload_types: text(|it| &it.payload_types),
        feedback: text(|it| &it.feedback),
        extensions: text(|it| &it.extensions),
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::Reader;
    use suiro_record::tables::{FlowRow, WebrtcRow};

    use super::*;
    use crate::ladder::Rung;
    use crate::peer::Way;
    use crate::pion::message::{Said, parse};

    fn statistics(ms: u64, session: u64) -> Counted {
        let text = format!(
            r#"{{"said":"statistics","session":{session},"t_ns":{},"target_bps":400000,"sent_bytes":5000,"received_bytes":100,"rtt_ns":90000000,"loss_ratio":0.25,"nacks":3,"retransmissions":2,"plis":1,"firs":0,"left_out":0,"queue_bytes":1200,"queue_ns":4000000,"local":"10.0.0.1:9","remote":"10.0.0.2:8","first_packet_ns":60000000}}"#,
            ms * 1_000_000
        );
        let Ok(Said::Statistics(counted)) = parse(&text) else { panic!("no statistics: {text}") };
        *counted
    }

    #[test]
    fn a_session_is_in_the_tables_of_our_own_publisher() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::create(dir.path(), "pion", (Way::Sends, Some("viewer".into()))).unwrap();
        let mut records = Records::new("pion".to_owned(), log);
        let ms = Time::from_millis;
        let target =
            Target { rate: BitRate::from_kbps(360), rung: Rung { size: (640, 360), fps: 30 } };
        for number in [1, 2, 3] {
            records.on_opened(ms(10), number, BitRate::from_kbps(300));
        }
        records.on_refused(3);
        let agreed = Agreed {
            candidates: vec!["10.0.0.1:9".to_owned(), "[fd00::1]:9".to_owned()],
            codec: "H264/90000".to_owned(),
            payload_types: "102".to_owned(),
            feedback: "transport-cc".to_owned(),
            extensions: "twcc".to_owned(),
        };
        records.on_answered(ms(20), 1, agreed);
        assert_eq!(records.allowed(), []);
        assert!(records.on_connected(ms(50), 1) && !records.on_connected(ms(50), 9));
        assert_eq!(records.allowed()[0].now, BitRate::from_kbps(270));
        for at in [100, 200] {
            records.on_statistics(&statistics(at, 1), target).unwrap();
        }
        records.on_statistics(&statistics(300, 9), target).unwrap();
        records.on_ended(ms(250), 1, SessionEnd::Deleted).unwrap();
        assert_eq!(records.close().unwrap().connections, 1);
        let rows: Vec<WebrtcRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].sent_bps, BitRate::from_kbps(400));
        assert_eq!((rows[1].queue_bytes, rows[1].height), (Some(1200), Some(360)));
        assert_eq!(rows[1].estimate_bps, Some(BitRate::from_kbps(400)));
        let sessions: Vec<WebrtcSessionRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!(sessions[0].first_packet_ns, Some(ms(60)));
        assert_eq!(sessions[0].pair.as_deref(), Some("10.0.0.1:9>10.0.0.2:8"));
        assert_eq!((sessions[0].ended, sessions[1].ended), (Some(SessionEnd::Deleted), None));
        let flows: Vec<FlowRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!((flows.len(), flows[0].closed_ns), (1, Some(ms(250))));
    }
}
