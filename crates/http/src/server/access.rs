//! A server's records: `access.NAME.parquet`, and `cmcd_events.NAME.parquet` if players report events.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use suiro_record::tables::{AccessRow, CmcdEventRow};
use suiro_record::{RecordError, Row, Text, Writer};
use suiro_units::Time;

use crate::cmcd::{self, events::Event};
use crate::priority::Priority;

/// A row per request answered, and one per event that a player reported. Connections share it.
pub(crate) struct AccessLog {
    dir: PathBuf,
    endpoint: Text,
    tables: Mutex<Tables>,
}

struct Tables {
    requests: Rows<AccessRow>,
    /// Made for the first event.
    events: Option<Rows<CmcdEventRow>>,
}

/// A table, and what kept it from being written.
struct Rows<R: Row> {
    writer: Writer<R>,
    error: Option<RecordError>,
}

impl<R: Row> Rows<R> {
    fn create(dir: &Path, endpoint: &str) -> Result<Self, RecordError> {
        Ok(Self { writer: Writer::create_of(dir, endpoint)?, error: None })
    }

    fn push(&mut self, row: R) {
        if self.error.is_none() {
            self.error = self.writer.push(row).err();
        }
    }

    fn close(self) -> Result<(), RecordError> {
        self.error.map_or(Ok(()), Err)?;
        self.writer.close()
    }
}

impl AccessLog {
    pub fn create(dir: &Path, endpoint: &str) -> Result<Self, RecordError> {
        let tables = Tables { requests: Rows::create(dir, endpoint)?, events: None };
        Ok(Self { dir: dir.into(), endpoint: endpoint.into(), tables: Mutex::new(tables) })
    }

    /// The row of a request that came at `asked`, with what it says of its player; the answer is still to be added.
    pub fn row(&self, asked: Time, peer: SocketAddr, head: &Parts) -> AccessRow {
        let priority = Priority::read(&head.headers);
        let row = AccessRow {
            t_ns: asked.as_nanos_i64(),
            endpoint: self.endpoint.clone(),
            peer: named(peer),
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
        self.lock().requests.push(row);
    }

    /// Keeps events that a player reported at `came`, in the same way; `epoch_unix_ns` is the wall clock at the epoch.
    pub fn report(&self, came: Time, peer: SocketAddr, epoch_unix_ns: u64, events: Vec<Event>) {
        let mut tables = self.lock();
        if tables.events.is_none() {
            match Rows::create(&self.dir, &self.endpoint) {
                Ok(rows) => tables.events = Some(rows),
                Err(error) => {
                    tables.requests.error.get_or_insert(error);
                }
            }
        }
        let peer = named(peer);
        if let Some(rows) = &mut tables.events {
            for event in events {
                rows.push(event.row(came, epoch_unix_ns, self.endpoint.clone(), peer.clone()));
            }
        }
    }

    /// Makes the files whole.
    pub fn close(self) -> Result<(), RecordError> {
        let Tables { requests, events } =
            self.tables.into_inner().unwrap_or_else(PoisonError::into_inner);
        requests.close()?;
        events.map_or(Ok(()), Rows::close)
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client as the records have it.
fn named(peer: SocketAddr) -> Text {
    SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string().into()
}
