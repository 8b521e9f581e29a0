//! What serves media over HTTP, whoever answers: ports, connections, bodies, ranges, and the record of requests.

mod access;
mod body;
mod connection;
mod deliver;
mod door;
mod posted;
pub mod range;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use suiro_record::RecordError;
use suiro_record::words::Carries;

use crate::Clock;
use crate::flows::{Accepting, Records};

pub(crate) use access::AccessLog;
pub(crate) use body::{Body, Cut, Live, Passed};
pub(crate) use connection::connection;
pub(crate) use deliver::{Refusal, Source, date, deliver, refusal, share, without_object};
pub(crate) use door::{Door, Listening};
pub use door::{DoorError, Secure};
pub(crate) use posted::{BODY_MAX, Posted, Unread, in_time};

/// Begins the records of a server: of its requests, and of its connections; none without a place for them.
pub(crate) async fn begin_records(
    records: Option<&Records>,
    port: u16,
    clock: Clock,
) -> Result<(Option<AccessLog>, Option<Accepting>), RecordError> {
    let Some(records) = records else { return Ok((None, None)) };
    let log = AccessLog::create(&records.dir, &records.endpoint)?;
    let accepting = Accepting::create(records, port, Carries::HttpMedia, clock).await?;
    Ok((Some(log), Some(accepting)))
}

/// What a server has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests answered.
    pub requests: u64,
    /// Of them, with a status of 400 or more.
    pub refused: u64,
    /// Bytes of bodies in those answers.
    pub body_bytes: u64,
}

/// The same while it serves.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    requests: AtomicU64,
    refused: AtomicU64,
    body_bytes: AtomicU64,
}

impl Tally {
    /// A request was answered.
    pub fn count(&self, status: u16, body_bytes: u64) {
        self.requests.fetch_add(1, Relaxed);
        self.body_bytes.fetch_add(body_bytes, Relaxed);
        self.refused.fetch_add(u64::from(status >= 400), Relaxed);
    }

    pub fn counts(&self) -> Counts {
        Counts {
            requests: self.requests.load(Relaxed),
            refused: self.refused.load(Relaxed),
            body_bytes: self.body_bytes.load(Relaxed),
        }
    }
}
