//! The tables `quic`, `moq_sessions` and `flows` of one endpoint.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use moq_noq::{Connection, PathId};
use suiro_record::flows::{End, Flow, FlowLog, Opened};
use suiro_record::tables::{MoqSessionRow, QuicRow};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_record::{RecordError, Text, Writer};
use suiro_units::{BitRate, Duration, Time};

use crate::control;
use crate::transport::Written;

/// Interval between samples of a connection.
pub const EVERY: Duration = Duration::from_millis(10);
/// Up to this number of connections, each is sampled every time; with more, each is sampled once a second.
const CLOSELY_MAX: usize = 16;
/// With more connections than [`CLOSELY_MAX`], each is sampled once in this number of samples.
const TURNS: u64 = 100;

/// What an endpoint did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sessions that were set up.
    pub sessions: u64,
    /// Connections that were refused, or whose session was never set up.
    pub refused: u64,
    /// Bytes of UDP payloads sent.
    pub sent_bytes: u64,
    /// Bytes of UDP payloads received.
    pub received_bytes: u64,
    /// Objects that could not be read.
    pub malformed: u64,
    /// Streams that were reset because their group was late.
    pub given_up: u64,
    /// Of a viewer: frames that came twice, or after they had been given up. Table `frames` has the latter as frames that
    /// never came.
    pub refused_frames: u64,
}

struct Open {
    row: MoqSessionRow,
    connection: Connection,
    written: Arc<Written>,
    flow: Option<Opened>,
}

/// The tables, and the connections that they are about.
pub struct Records {
    endpoint: Text,
    congestion: Text,
    quic: Writer<QuicRow>,
    sessions: Writer<MoqSessionRow>,
    flows: FlowLog,
    open: BTreeMap<u64, Open>,
    last: u64,
    looks: u64,
    /// The bit rate that the endpoint's encoder is set to, if it has one.
    pub target: Option<BitRate>,
    /// How often the viewer has changed to another quality; `None` of an endpoint that does not.
    pub switches: Option<u64>,
    /// What the endpoint did.
    pub summary: Summary,
}

/// The flow of a connection, for the end that writes it to the table `flows`.
pub struct Carried {
    /// What this end does in it.
    pub role: FlowRole,
    /// The endpoint at the other end, if it is known.
    pub peer: Option<Text>,
}

impl Records {
    /// Creates the tables of the endpoint called `name`.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn create(dir: &Path, name: &str, congestion: &str) -> Result<Self, RecordError> {
        Ok(Self {
            endpoint: name.into(),
            congestion: congestion.into(),
            quic: Writer::create_of(dir, name)?,
            sessions: Writer::create_of(dir, name)?,
            flows: FlowLog::create(dir, name)?,
            open: BTreeMap::new(),
            last: 0,
            looks: 0,
            target: None,
            switches: None,
            summary: Summary::default(),
        })
    }

    /// Records a connection that was begun at `begun` and whose handshake is done; its socket is bound to `local`. Returns its
    /// number.
    pub fn connected(
        &mut self,
        (begun, now): (Time, Time),
        connection: &Connection,
        (role, local): (FlowRole, SocketAddr),
        carried: Option<Carried>,
    ) -> u64 {
        self.last += 1;
        let path = connection.path(PathId::ZERO);
        let remote = path.as_ref().and_then(|path| path.remote_address().ok());
        let own = path.as_ref().and_then(|path| path.local_ip().ok().flatten());
        let remote = remote.map(|at| SocketAddr::new(at.ip().to_canonical(), at.port()));
        let local = End::from(SocketAddr::new(own.unwrap_or(local.ip()), local.port()));
        let flow = carried.zip(remote).map(|(carried, remote)| {
            let (protocol, carries) = (Transport::Udp, Carries::Video);
            let remote = End::from(remote);
            let (role, peer) = (carried.role, carried.peer);
            self.flows.opened(begun, Flow { role, protocol, local, remote, carries, peer })
        });
        let row = MoqSessionRow {
            t_ns: begun,
            endpoint: self.endpoint.clone(),
            session: self.last,
            role,
            addresses: remote
                .map_or_else(|| local.to_string(), |at| format!("{local}>{at}"))
                .into(),
            congestion: self.congestion.clone(),
            version: None,
            connected_ns: Some(now),
            set_up_ns: None,
            ended_ns: None,
            ended: None,
            streams: 0,
            datagrams: None,
            switches: None,
        };
        let written = control::written(connection);
        self.open.insert(self.last, Open { row, connection: connection.clone(), written, flow });
        self.last
    }

    /// Records that a session is set up.
    pub fn set_up(&mut self, now: Time, number: u64, version: &str) {
        if let Some(open) = self.open.get_mut(&number) {
            self.summary.sessions += 1;
            open.row.version = Some(version.into());
            open.row.set_up_ns = Some(now);
        }
    }

    /// Records that a connection has ended.
    ///
    /// # Errors
    /// The row cannot be written.
    pub fn ended(&mut self, now: Time, number: u64, why: &str) -> Result<(), RecordError> {
        let Some(mut open) = self.open.remove(&number) else { return Ok(()) };
        open.row.ended_ns = Some(now);
        open.row.ended = Some(why.into());
        if let Some(flow) = open.flow {
            self.flows.closed(now, flow);
        }
        self.finish(open)
    }

    fn finish(&mut self, mut open: Open) -> Result<(), RecordError> {
        open.row.streams = open.written.streams();
        open.row.datagrams = Some(open.written.datagrams());
        open.row.switches = self.switches;
        self.summary.given_up += open.written.given_up();
        if open.row.set_up_ns.is_none() {
            self.summary.refused += 1;
        }
        if let Some(path) = open.connection.path_stats(PathId::ZERO) {
            self.summary.sent_bytes += path.udp_tx.bytes;
            self.summary.received_bytes += path.udp_rx.bytes;
        }
        self.sessions.push(open.row)
    }

    /// Takes a sample of each connection: every time if they are few, once a second if they are many.
    ///
    /// # Errors
    /// A row cannot be written.
    pub fn look(&mut self, now: Time) -> Result<(), RecordError> {
        self.looks += 1;
        let all = self.open.len() <= CLOSELY_MAX;
        for (number, open) in &self.open {
            if (all || number % TURNS == self.looks % TURNS)
                && let Some(row) = suiro_quic::sample(&open.connection, now)
            {
                let (endpoint, congestion) = (self.endpoint.clone(), self.congestion.clone());
                let target_bps = self.target;
                self.quic.push(QuicRow {
                    endpoint,
                    congestion,
                    session: *number,
                    target_bps,
                    ..row
                })?;
            }
        }
        Ok(())
    }

    /// Completes the tables.
    ///
    /// # Errors
    /// A row cannot be written.
    pub fn close(mut self) -> Result<Summary, RecordError> {
        for open in std::mem::take(&mut self.open).into_values() {
            self.finish(open)?;
        }
        self.quic.close()?;
        self.sessions.close()?;
        self.flows.close()?;
        Ok(self.summary)
    }
}
