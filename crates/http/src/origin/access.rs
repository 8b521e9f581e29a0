//! The origin's record: `access.NAME.parquet`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use suiro_record::flows::{End, Flow, FlowLog};
use suiro_record::tables::AccessRow;
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_record::{RecordError, Text, Writer};
use suiro_units::Time;

/// Clients that are remembered: more than a server has connections at a time.
const KNOWN_MAX: usize = 2048;

/// A row per request answered, and one of table `flows` per connection. Connections share it.
pub(super) struct AccessLog {
    endpoint: Text,
    local: End,
    rows: Mutex<Rows>,
}

/// The table, and what kept it from being written.
struct Rows {
    writer: Writer<AccessRow>,
    flows: FlowLog,
    /// The latest clients, each an address and port: what is asked by one of these has its flow.
    known: VecDeque<SocketAddr>,
    error: Option<RecordError>,
}

impl AccessLog {
    pub(super) fn create(
        dir: &Path,
        endpoint: &str,
        local: SocketAddr,
    ) -> Result<Self, RecordError> {
        let writer = Writer::create_of(dir, endpoint)?;
        let flows = FlowLog::create(dir, endpoint)?;
        let rows = Mutex::new(Rows { writer, flows, known: VecDeque::new(), error: None });
        Ok(Self { endpoint: endpoint.into(), local: local.into(), rows })
    }

    pub(super) fn endpoint(&self) -> Text {
        self.endpoint.clone()
    }

    /// Keeps a row. After an error no more are kept: [`close`](Self::close) returns it.
    pub(super) fn push(&self, row: AccessRow) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.error.is_none() {
            rows.error = rows.writer.push(row).err();
        }
    }

    /// A request came from `peer`: its first is the beginning of a flow.
    pub(super) fn asked(&self, now: Time, peer: SocketAddr) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.error.is_some() || rows.known.contains(&peer) {
            return;
        }
        if rows.known.len() == KNOWN_MAX {
            rows.known.pop_front();
        }
        rows.known.push_back(peer);
        let flow = Flow {
            role: FlowRole::Server,
            protocol: Transport::Tcp,
            local: self.local,
            remote: peer.into(),
            carries: Carries::HttpMedia,
        };
        rows.error = rows.flows.opened(now, flow).err();
    }

    /// Makes the files whole.
    pub(super) fn close(self) -> Result<(), RecordError> {
        let Rows { writer, flows, error, .. } =
            self.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)?;
        flows.close()?;
        writer.close()
    }
}
