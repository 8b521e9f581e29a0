//! When the bytes of a connection came, below HTTP, TLS and the frames of HTTP/2. A frame is handed over as a whole, so the times
//! at which pieces of a body come say nothing about how fast they came; the reads of the socket do.
//!
//! **After a loss** they do not, either. What came behind the lost packet waits in the kernel for the repair, and is then read
//! at once, as fast as the CPU can. A burst that begins so is not measured. One in whose midst a loss was repaired is: its
//! time has the wait, so that its rate is the goodput. The kernel counts packets that came out of order. How many of their
//! bytes are still unread follows from that, and from what was read since.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use suiro_units::{Bytes, Duration, Time};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Clock;

/// Reads of which a burst must consist: with two, the time between them is that of a single packet.
const READS_LEAST: u32 = 3;

/// Without bytes for so long, the kernel is asked whether packets came out of order. A repair takes a round trip at least, and
/// one that is shorter than this keeps back too little to matter.
const PAUSE: Duration = Duration::from_millis(1);
/// What a packet of 1500 bytes has for TCP's reader, with timestamps (RFC 7323).
const PACKET_BYTES: u64 = 1448;

/// What came after the first read of a burst, and in which time.
pub(crate) type Burst = (Bytes, Duration);

/// How the bytes came that were read since that was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Came {
    /// Their burst; `None` if it had too few reads, was kept back, or is not known.
    pub burst: Option<Burst>,
    /// The repair of a loss had kept back the first of them. If none were read, those before.
    pub kept_back: bool,
}

/// The reads since it was last asked. Its clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<Mutex<State>>);

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
struct State {
    reads: Reads,
    unread: Unread,
    /// Whether the last burst began with bytes that the repair of a loss had kept back.
    kept_back: bool,
}

/// What came out of order and has not been read yet.
#[derive(Debug, Default)]
struct Unread {
    /// When anything was read last; `None` before the first read.
    last: Option<Time>,
    /// Packets that had come out of order, as the kernel last counted them.
    packets: u32,
    /// Bytes of them that have not been read yet, at most: as if all packets were full.
    bytes: u64,
}

impl Unread {
    /// So many bytes were read; whether the first of them had been kept back.
    fn read(&mut self, now: Time, bytes: u64, out_of_order: impl FnOnce() -> Option<u32>) -> bool {
        let paused = self.last.is_none_or(|last| now.saturating_since(last) >= PAUSE);
        self.last = Some(now);
        if let Some(packets) = paused.then(out_of_order).flatten() {
            let more = packets.wrapping_sub(self.packets);
            self.packets = packets;
            self.bytes += u64::from(more) * PACKET_BYTES;
        }
        let kept_back = self.bytes > 0;
        self.bytes = self.bytes.saturating_sub(bytes);
        kept_back
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
    /// So many bytes were read. `out_of_order` is how many packets have come out of order so far, `None` if that is not known.
    fn read(&self, now: Time, bytes: usize, out_of_order: impl FnOnce() -> Option<u32>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { reads, unread, kept_back } = &mut *state;
        let is_kept_back = unread.read(now, bytes as u64, out_of_order);
        match reads.count {
            0 => (reads.first, *kept_back) = (now, is_kept_back),
            _ => reads.bytes += bytes as u64,
        }
        reads.count += 1;
        reads.last = now;
    }

    /// What came since the last call; ends the burst.
    pub fn take(&self) -> Came {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (reads, kept_back) = (std::mem::take(&mut state.reads), state.kept_back);
        let took = reads.last.saturating_since(reads.first);
        let is_enough = reads.count >= READS_LEAST && !took.is_zero() && !kept_back;
        Came { burst: is_enough.then_some((Bytes::new(reads.bytes), took)), kept_back }
    }
}

/// The bursts of one response. A record of TLS is handed over as a whole, and the head of a response may be in the record
/// that the body begins with. So a burst that the head came with counts for the body.
#[derive(Debug)]
pub(crate) struct Bursts {
    meter: Meter,
    head: Came,
}

impl Bursts {
    /// Of a response whose head has just come. The meter must have been asked before the request, too.
    pub fn of(meter: &Meter) -> Self {
        Self { head: meter.take(), meter: meter.clone() }
    }

    /// How the next data came.
    pub fn take(&mut self) -> Came {
        let (head, body) = (std::mem::take(&mut self.head), self.meter.take());
        let burst = match (head.burst, body.burst) {
            (Some((bytes, before)), Some((more, took))) => Some((bytes + more, before + took)),
            (one, other) => one.or(other),
        };
        Came { burst, kept_back: head.kept_back || body.kept_back }
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

impl<S: AsyncRead + AsFd + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            let socket = self.stream.as_fd();
            let out_of_order = || suiro_tcp::socket_info(socket).ok()?.out_of_order;
            self.meter.read(self.clock.now(), bytes, out_of_order);
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
            meter.read(Time::from_millis(ms), 1250, || None);
        }
        assert_eq!(meter.take().burst, Some((Bytes::new(3750), Duration::from_millis(3))));
        assert_eq!(meter.take().burst, None);
        meter.read(Time::from_millis(200), 1250, || None);
        meter.read(Time::from_millis(201), 1250, || None);
        assert_eq!(meter.take().burst, None, "two reads are one packet");
        for _ in 0..5 {
            meter.read(Time::from_millis(300), 1250, || None);
        }
        assert_eq!(meter.take().burst, None, "what came at once has no rate");
    }

    #[test]
    fn what_the_head_came_with_counts_for_the_body() {
        let meter = Meter::default();
        let read = |from: u64, to: u64| {
            for ms in from..=to {
                meter.read(Time::from_millis(ms), 1250, || None);
            }
        };
        // A record with the head and the whole body; nothing was read between the two.
        read(100, 103);
        let mut bursts = Bursts::of(&meter);
        assert_eq!(bursts.take().burst, Some((Bytes::new(3750), Duration::from_millis(3))));
        assert_eq!(bursts.take().burst, None);
        // One with the head and the beginning, and one with the rest.
        read(200, 203);
        let mut bursts = Bursts::of(&meter);
        read(204, 206);
        assert_eq!(bursts.take().burst, Some((Bytes::new(6250), Duration::from_millis(5))));
        // A head alone, and a body after a pause.
        meter.read(Time::from_millis(300), 100, || None);
        let mut bursts = Bursts::of(&meter);
        read(400, 403);
        assert_eq!(bursts.take().burst, Some((Bytes::new(3750), Duration::from_millis(3))));
    }

    /// Reads of that many packets each, at these milliseconds, when so many had come out of order.
    fn packets(meter: &Meter, at_ms: [u64; 3], each: usize, out_of_order: u32) -> Came {
        for ms in at_ms {
            meter.read(Time::from_millis(ms), each * 1448, || Some(out_of_order));
        }
        meter.take()
    }

    const KEPT_BACK: Came = Came { burst: None, kept_back: true };

    /// What two packets are after the first, one each 40 ms: about 300 kbit/s.
    fn at_the_links_rate() -> Came {
        let burst = (Bytes::new(2 * 1448), Duration::from_millis(80));
        Came { burst: Some(burst), kept_back: false }
    }

    #[test]
    fn what_a_loss_had_kept_back_has_no_rate() {
        let meter = Meter::default();
        assert_eq!(packets(&meter, [0, 40, 80], 1, 0), at_the_links_rate());
        // A packet was lost, five came behind it, and all six are read with the repair.
        assert_eq!(packets(&meter, [1000, 1000, 1001], 2, 5), KEPT_BACK);
        assert_eq!(meter.take(), KEPT_BACK, "the next data came with the same reads");
        assert_eq!(packets(&meter, [1040, 1080, 1120], 1, 5), at_the_links_rate());
    }

    #[test]
    fn the_second_of_two_losses_keeps_back_the_rest() {
        let meter = Meter::default();
        assert_eq!(packets(&meter, [0, 40, 80], 1, 0), at_the_links_rate());
        // Two lost packets, ten behind them. Three come with the first repair, nine with the second.
        assert_eq!(packets(&meter, [1000, 1000, 1001], 1, 10), KEPT_BACK);
        assert_eq!(packets(&meter, [1041, 1041, 1042], 3, 10), KEPT_BACK);
        assert_eq!(packets(&meter, [1082, 1122, 1162], 1, 10), at_the_links_rate());
    }

    #[test]
    fn a_loss_in_the_midst_counts_with_its_wait() {
        let meter = Meter::default();
        // Two packets, then a repair with three, of which two had come out of order.
        for (ms, each, out_of_order) in [(0, 1, 0), (40, 1, 0), (400, 3, 2)] {
            meter.read(Time::from_millis(ms), each * 1448, || Some(out_of_order));
        }
        let burst = Some((Bytes::new(4 * 1448), Duration::from_millis(400)));
        assert_eq!(meter.take(), Came { burst, kept_back: false });
        assert_eq!(packets(&meter, [440, 480, 520], 1, 2), at_the_links_rate());
    }
}
