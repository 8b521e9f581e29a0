//! A server's record: `access.NAME.parquet`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hyper::http::request::Parts;
use suiro_record::tables::AccessRow;
use suiro_record::{RecordError, Text, Writer};
use suiro_units::Time;

use crate::cmcd;
use crate::priority::Priority;

/// A row per request answered. Connections share it.
pub(crate) struct AccessLog {
    endpoint: Text,
    rows: Mutex<Rows>,
}

/// The table, and what kept it from being written.
struct Rows {
    writer: Writer<AccessRow>,
    error: Option<RecordError>,
}

impl AccessLog {
    pub fn create(dir: &Path, endpoint: &str) -> Result<Self, RecordError> {
        let writer = Writer::create_of(dir, endpoint)?;
        let rows = Mutex::new(Rows { writer, error: None });
        Ok(Self { endpoint: endpoint.into(), rows })
    }

    /// The row of a request that came at `asked`, with what it says of its player; the answer is still to be added.
    pub fn row(&self, asked: Time, peer: SocketAddr, head: &Parts) -> AccessRow {
        let priority = Priority::read(&head.headers);
        let row = AccessRow {
            t_ns: asked.as_nanos_i64(),
            endpoint: self.endpoint.clone(),
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string().into(),
            method: head.method.as_str().into(),
            path: cmcd::without(head.uri.path_and_query().map_or("/", |path| path.as_str())).into(),
            urgency: priority.map(|priority| i64::from(priority.urgency)),
            incremental: priority.map(|priority| priority.incremental),
            ..AccessRow::default()
        };
        cmcd::recorded(cmcd::read(head.uri.query(), &head.headers), row)
    }

    /// Keeps a row. After an error no more are kept: [`close`](Self::close) returns it.
    pub fn push(&self, row: AccessRow) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.error.is_none() {
            rows.error = rows.writer.push(row).err();
        }
    }

    /// Makes the file whole.
    pub fn close(self) -> Result<(), RecordError> {
        let Rows { writer, error } = self.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)?;
        writer.close()
    }
}
