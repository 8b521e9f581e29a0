//! What was written to a connection.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of what was written to a connection.
#[derive(Debug, Default)]
pub struct Written {
    bytes: AtomicU64,
    streams: AtomicU64,
    datagrams: AtomicU64,
}

impl Written {
    /// A stream or a datagram has accepted so many bytes.
    pub fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// A stream was opened.
    pub fn opened(&self) {
        self.streams.fetch_add(1, Relaxed);
    }

    /// A datagram was sent.
    pub fn sent_datagram(&self) {
        self.datagrams.fetch_add(1, Relaxed);
    }

    /// Bytes that streams and datagrams have accepted, the application's own headers included.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Streams that this end has opened.
    pub fn streams(&self) -> u64 {
        self.streams.load(Relaxed)
    }

    /// Datagrams that this end has sent.
    pub fn datagrams(&self) -> u64 {
        self.datagrams.load(Relaxed)
    }
}
