//! What happened: lines for people, and rows of the table `control`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use suiro_record::table::Text;
use suiro_record::tables::ControlRow;
use suiro_record::{RecordError, Writer};
use suiro_units::Time;

use crate::net;

/// Where what happened goes.
#[derive(Debug, Clone)]
pub struct Log {
    /// The name of the endpoint in the records.
    pub name: String,
    /// Their folder; `None` to write none.
    pub folder: Option<PathBuf>,
    /// The monotonic clock at `t_ns` = 0.
    pub epoch: Time,
    /// Prints a line for people.
    pub print: fn(&str),
}

impl Log {
    /// The folder of the records.
    pub fn dir(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The name in the records.
    pub fn endpoint(&self) -> &str {
        &self.name
    }
}

/// What happened, as it happens.
pub struct Journal {
    log: Log,
    rows: Option<Writer<ControlRow>>,
    /// The first row that could not be written.
    failed: Option<RecordError>,
}

impl Journal {
    /// Begins.
    ///
    /// # Errors
    /// If the table cannot be created.
    pub fn create(log: Log) -> Result<Self, RecordError> {
        let rows = log.dir().map(|dir| Writer::create_of(dir, log.endpoint())).transpose()?;
        Ok(Self { log, rows, failed: None })
    }

    /// The name in the records.
    pub fn endpoint(&self) -> Text {
        Arc::from(self.log.name.as_str())
    }

    /// A monotonic time on the records' axis.
    pub fn t_ns(&self, time: Time) -> i64 {
        time.as_nanos().wrapping_sub(self.log.epoch.as_nanos()).cast_signed()
    }

    /// Something happened: a word for it, the stream and the node that it is about, and more in words.
    pub fn note(&mut self, what: &str, stream: Option<u32>, node: Option<&str>, detail: &str) {
        let about = stream.map(|stream| format!(" stream {stream}")).unwrap_or_default();
        let at = node.map(|node| format!(" {node}")).unwrap_or_default();
        (self.log.print)(&format!("{what}{about}{at}: {detail}"));
        let row = ControlRow {
            t_ns: self.t_ns(net::monotonic()),
            endpoint: self.endpoint(),
            what: Arc::from(what),
            stream: stream.map(i64::from),
            node: node.map(Arc::from),
            detail: Arc::from(detail),
        };
        if let Some(rows) = &mut self.rows
            && let Err(error) = rows.push(row)
        {
            self.failed.get_or_insert(error);
        }
    }

    /// Ends.
    ///
    /// # Errors
    /// If a row could not be written.
    pub fn close(self) -> Result<(), RecordError> {
        self.rows.map(Writer::close).transpose()?;
        self.failed.map_or(Ok(()), Err)
    }
}
