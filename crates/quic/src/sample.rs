//! The table `quic`.

use std::collections::BTreeMap;
use std::path::Path;

use moq_noq::{Connection, PathId};
use suiro_record::flows::End;
use suiro_record::tables::QuicRow;
use suiro_record::{RecordError, Text, Writer};
use suiro_units::{Duration, Time};

use crate::control::{self, Look};

/// What a connection does now; `None` after its end. Endpoint, session, congestion control and target are the caller's to
/// fill in.
pub fn sample(connection: &Connection, now: Time) -> Option<QuicRow> {
    let path = connection.path_stats(PathId::ZERO)?;
    let remote = connection.path(PathId::ZERO).and_then(|path| path.remote_address().ok());
    let remote = remote.map(|at| End::from(at).to_string().into());
    let Look { window, threshold, pacing, in_flight, waiting, min_rtt, .. } =
        control::look(connection)?;
    Some(QuicRow {
        t_ns: now,
        endpoint: "".into(),
        session: 0,
        remote,
        congestion: "".into(),
        cwnd_bytes: Some(window),
        ssthresh_bytes: threshold,
        in_flight_bytes: Some(in_flight),
        waiting_bytes: Some(waiting),
        srtt_ns: path.rtt.into(),
        min_rtt_ns: min_rtt.map(Duration::from),
        pacing_bps: pacing,
        sent_packets: Some(path.udp_tx.datagrams),
        sent_bytes: Some(path.udp_tx.bytes),
        received_bytes: Some(path.udp_rx.bytes),
        lost_packets: Some(path.lost_packets),
        congestion_events: Some(path.congestion_events),
        target_bps: None,
    })
}

/// Up to this number of connections, each is sampled every time; with more, each is sampled once a second.
const CLOSELY_MAX: usize = 16;
/// With more connections than [`CLOSELY_MAX`], each is sampled once in this number of samples.
const TURNS: u64 = 100;

/// The table `quic` of one endpoint, and the connections that it is about.
pub struct Samples {
    endpoint: Text,
    congestion: Text,
    table: Writer<QuicRow>,
    open: BTreeMap<u64, Connection>,
    looks: u64,
}

impl Samples {
    /// From one look at the connections to the next.
    pub const EVERY: Duration = Duration::from_millis(10);

    /// Creates the table of the endpoint called `name`, whose connections have that congestion control.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(dir: &Path, name: &str, congestion: &str) -> Result<Self, RecordError> {
        let (endpoint, congestion) = (name.into(), congestion.into());
        let (table, open) = (Writer::create_of(dir, name)?, BTreeMap::new());
        Ok(Self { endpoint, congestion, table, open, looks: 0 })
    }

    /// A connection was opened; its number is its session in the table.
    pub fn opened(&mut self, number: u64, connection: Connection) {
        self.open.insert(number, connection);
    }

    /// A connection has ended.
    pub fn closed(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Takes a sample of each connection: every time if they are few, once a second if they are many.
    ///
    /// # Errors
    /// A row cannot be written.
    pub fn look(&mut self, now: Time) -> Result<(), RecordError> {
        self.looks += 1;
        let all = self.open.len() <= CLOSELY_MAX;
        for (number, connection) in &self.open {
            if (all || number % TURNS == self.looks % TURNS)
                && let Some(row) = sample(connection, now)
            {
                let (endpoint, congestion) = (self.endpoint.clone(), self.congestion.clone());
                self.table.push(QuicRow { endpoint, congestion, session: *number, ..row })?;
            }
        }
        Ok(())
    }

    /// Completes the table.
    ///
    /// # Errors
    /// A row cannot be written.
    pub fn close(self) -> Result<(), RecordError> {
        self.table.close()
    }
}
