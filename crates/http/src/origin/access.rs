//! The origin's record: `access.NAME.parquet`.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use suiro_record::tables::AccessRow;
use suiro_record::{RecordError, Text, Writer};

/// A row per request answered. Connections share it.
pub(super) struct AccessLog {
    endpoint: Text,
    rows: Mutex<Rows>,
}

/// The table, and what kept it from being written.
struct Rows {
    writer: Writer<AccessRow>,
    error: Option<RecordError>,
}

impl AccessLog {
    pub(super) fn create(dir: &Path, endpoint: &str) -> Result<Self, RecordError> {
        let writer = Writer::create_of(dir, endpoint)?;
        let rows = Mutex::new(Rows { writer, error: None });
        Ok(Self { endpoint: endpoint.into(), rows })
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

    /// Makes the file whole.
    pub(super) fn close(self) -> Result<(), RecordError> {
        let Rows { writer, error } = self.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)?;
        writer.close()
    }
}
