//! Nodes: the streams of one process, sent or received, with their records.

mod reading;
mod receiver;
mod rows;
mod sender;

use std::path::PathBuf;
use std::sync::Arc;

use suiro_record::RecordError;
use suiro_record::table::Text;
use suiro_units::Time;

pub use reading::{ReadTotal, ReaderJob, read};
pub use receiver::{Received, ReceiverJob, ReceiverStream, Total, Warn, receive};
pub use sender::{SenderJob, SenderStream, SentTotal, Source, send};

use crate::{packet, reader, socket, store};

/// What a thread tells waits here for its rows: seconds and frames of many streams.
const TOLD_MAX: usize = 4096;

/// Why a node ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket is of no use.
    #[error(transparent)]
    Socket(#[from] socket::Error),
    /// There are no frames to send.
    #[error("stream {stream}: {source}")]
    Frames {
        /// The stream's number.
        stream: u32,
        /// Why.
        source: reader::Error,
    },
    /// A stream cannot be cut so.
    #[error("stream {stream}: {source}")]
    Layout {
        /// The stream's number.
        stream: u32,
        /// Why.
        source: packet::LayoutError,
    },
    /// A recording cannot be begun.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The records cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Sending or receiving failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Where a node's records go.
#[derive(Debug, Clone)]
pub struct Records {
    /// The endpoint's name in the records.
    pub endpoint: String,
    /// The folder for them; `None` to write none.
    pub dir: Option<PathBuf>,
    /// The monotonic clock at `t_ns` = 0.
    pub epoch: Time,
}

impl Records {
    fn name(&self) -> Text {
        Arc::from(self.endpoint.as_str())
    }

    /// A monotonic time on the records' axis.
    fn t_ns(&self, time: Time) -> i64 {
        time.as_nanos().wrapping_sub(self.epoch.as_nanos()).cast_signed()
    }
}
