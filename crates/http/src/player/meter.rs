//! When the bytes of a connection came, below HTTP, TLS and the frames of HTTP/2. A frame is handed over as a whole, so the times
//! at which pieces of a body come say nothing about how fast they came; the reads of the socket do.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use suiro_units::{Bytes, Duration, Time};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Clock;

/// Reads of which a burst must consist: with two, the time between them is that of a single packet.
const READS_LEAST: u32 = 3;

/// What came after the first read of a burst, and in which time.
pub(crate) type Burst = (Bytes, Duration);

/// The reads since it was last asked. Its clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<Mutex<Reads>>);

/// All bytes that a player has received. Its clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Received(Arc<AtomicU64>);

impl Received {
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }

    pub fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[derive(Debug, Default)]
struct Reads {
    count: u32,
    first: Time,
    last: Time,
    /// Bytes of all but the first: since when those were there, nobody knows.
    bytes: u64,
}

impl Meter {
    fn read(&self, now: Time, bytes: usize) {
        let mut reads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match reads.count {
            0 => reads.first = now,
            _ => reads.bytes += bytes as u64,
        }
        reads.count += 1;
        reads.last = now;
    }

    /// The burst since the last call, which ends it; `None` if it had too few reads.
    pub fn take(&self) -> Option<Burst> {
        let reads = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let took = reads.last.saturating_since(reads.first);
        let is_enough = reads.count >= READS_LEAST && !took.is_zero();
        is_enough.then_some((Bytes::new(reads.bytes), took))
    }
}

/// The bursts of one response. A record of TLS is handed over as a whole, and the head of a response may be in the record
/// that the body begins with. So a burst that the head came with counts for the body.
#[derive(Debug)]
pub(crate) struct Bursts {
    meter: Meter,
    head: Option<Burst>,
}

impl Bursts {
    /// Of a response whose head has just come. The meter must have been asked before the request, too.
    pub fn of(meter: &Meter) -> Self {
        Self { head: meter.take(), meter: meter.clone() }
    }

    /// The burst that the next data came in.
    pub fn take(&mut self) -> Option<Burst> {
        match (self.head.take(), self.meter.take()) {
            (Some((head, before)), Some((bytes, took))) => Some((head + bytes, before + took)),
            (one, other) => one.or(other),
        }
    }
}

/// A connection whose reads are metered.
pub(crate) struct Metered<S> {
    stream: S,
    clock: Clock,
    meter: Meter,
    received: Received,
}

impl<S> Metered<S> {
    pub fn new(stream: S, clock: Clock, meter: Meter, received: Received) -> Self {
        Self { stream, clock, meter, received }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            self.meter.read(self.clock.now(), bytes);
            self.received.add(bytes as u64);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_counts_from_its_first_read_without_it() {
        let meter = Meter::default();
        for ms in [100, 101, 102, 103] {
            meter.read(Time::from_millis(ms), 1250);
        }
        assert_eq!(meter.take(), Some((Bytes::new(3750), Duration::from_millis(3))));
        assert_eq!(meter.take(), None);
        meter.read(Time::from_millis(200), 1250);
        meter.read(Time::from_millis(201), 1250);
        assert_eq!(meter.take(), None, "two reads are one packet");
        for _ in 0..5 {
            meter.read(Time::from_millis(300), 1250);
        }
        assert_eq!(meter.take(), None, "what came at once has no rate");
    }

    #[test]
    fn what_the_head_came_with_counts_for_the_body() {
        let meter = Meter::default();
        let read = |from: u64, to: u64| {
            for ms in from..=to {
                meter.read(Time::from_millis(ms), 1250);
            }
        };
        // A record with the head and the whole body; nothing was read between the two.
        read(100, 103);
        let mut bursts = Bursts::of(&meter);
        assert_eq!(bursts.take(), Some((Bytes::new(3750), Duration::from_millis(3))));
        assert_eq!(bursts.take(), None);
        // One with the head and the beginning, and one with the rest.
        read(200, 203);
        let mut bursts = Bursts::of(&meter);
        read(204, 206);
        assert_eq!(bursts.take(), Some((Bytes::new(6250), Duration::from_millis(5))));
        // A head alone, and a body after a pause.
        meter.read(Time::from_millis(300), 100);
        let mut bursts = Bursts::of(&meter);
        read(400, 403);
        assert_eq!(bursts.take(), Some((Bytes::new(3750), Duration::from_millis(3))));
    }
}
