//! What was written to a connection, and how much of it waits to be sent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// Datagrams are sent before all streams.
const DATAGRAMS: i32 = i32::MAX;

/// Counters of what was written to a connection.
#[derive(Debug, Default)]
pub struct Written {
    bytes: AtomicU64,
    streams: AtomicU64,
    datagrams: AtomicU64,
    given_up: AtomicU64,
    queue: Mutex<Queue>,
}

impl Written {
    /// A stream has accepted so many bytes.
    pub fn add(&self, stream: &mut Span, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        let before = self.queue().accept(stream.priority, bytes);
        stream.add(before, bytes);
    }

    /// A stream was opened.
    pub fn opened(&self) {
        self.streams.fetch_add(1, Relaxed);
    }

    /// A datagram of so many bytes was sent.
    pub fn sent_datagram(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.datagrams.fetch_add(1, Relaxed);
        self.queue().accept(DATAGRAMS, bytes);
    }

    /// A stream was reset: nothing more of it is sent.
    pub fn reset(&self, stream: &Span) {
        self.queue().reset(stream);
    }

    /// A stream was reset because it was late.
    pub fn gave_up(&self) {
        self.given_up.fetch_add(1, Relaxed);
    }

    /// Bytes that streams and datagrams have accepted, the application's own headers included.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Bytes that streams and datagrams have accepted and that are still to be sent, or to be sent again, estimated.
    pub fn waiting(&self) -> u64 {
        self.queue().waiting()
    }

    /// Streams that were given up.
    pub fn given_up(&self) -> u64 {
        self.given_up.load(Relaxed)
    }

    /// Streams that this end has opened.
    pub fn streams(&self) -> u64 {
        self.streams.load(Relaxed)
    }

    /// Datagrams that this end has sent.
    pub fn datagrams(&self) -> u64 {
        self.datagrams.load(Relaxed)
    }

    /// A packet with so many bytes of data was sent.
    pub(crate) fn sent(&self, bytes: u64) {
        self.queue().sent(bytes);
    }

    /// Such a packet was acknowledged.
    pub(crate) fn acked(&self, bytes: u64) {
        self.queue().ended(bytes);
    }

    /// Such a packet was lost.
    pub(crate) fn lost(&self, bytes: u64) {
        self.queue().lost(bytes);
    }

    /// The packets in flight have so many bytes, headers included.
    pub(crate) fn in_flight(&self, bytes: u64) {
        let mut queue = self.queue();
        queue.in_flight = queue.in_flight.min(bytes);
        queue.once = queue.once.min(queue.in_flight);
    }

    /// There is nothing to send.
    pub(crate) fn drained(&self) {
        self.queue().drained();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder panics")
    }
}

/// The bytes that a connection has accepted of a stream, and where they are among all of the same priority.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    priority: i32,
    /// Whether the priority changed after the first bytes, so that these are among those of another.
    moved: bool,
    first: u64,
    last: u64,
    bytes: u64,
}

impl Span {
    /// That of a new stream with this priority: of two streams, the one with the greater number is sent first.
    pub fn of(priority: i32) -> Self {
        Self { priority, ..Self::default() }
    }

    /// From now on the stream has this priority.
    pub fn place(&mut self, priority: i32) {
        self.moved |= self.bytes > 0 && priority != self.priority;
        self.priority = priority;
    }

    /// So many bytes were accepted, after `before` bytes of all streams of its priority.
    fn add(&mut self, before: u64, bytes: u64) {
        if self.bytes == 0 {
            self.first = before;
        }
        self.last = before + bytes;
        self.bytes += bytes;
    }

    /// How many bytes of it are behind the first `sent` bytes of its priority, as if they were spread evenly.
    fn behind(self, sent: u64) -> u64 {
        let all = self.last.saturating_sub(self.first);
        let left = self.last.saturating_sub(sent.max(self.first));
        (self.bytes as f64 * left as f64 / all.max(1) as f64) as u64
    }
}

/// What a connection holds, estimated from outside: each packet takes what was lost, then what has the highest priority, and
/// of one priority what was accepted first.
#[derive(Debug, Default)]
struct Queue {
    priorities: BTreeMap<i32, Class>,
    /// Lost, and not sent again yet.
    lost: u64,
    /// Sent before it was counted as accepted, or not data of the application.
    ahead: u64,
    in_flight: u64,
    /// Of what is in flight, that which is not sent again if it is lost: datagrams, and streams that were reset.
    once: u64,
}

/// The bytes of one priority.
#[derive(Debug, Default)]
struct Class {
    accepted: u64,
    waiting: u64,
}

impl Queue {
    /// Returns how many bytes of that priority were accepted before.
    fn accept(&mut self, priority: i32, bytes: u64) -> u64 {
        let class = self.priorities.entry(priority).or_default();
        let before = class.accepted;
        class.accepted += bytes;
        let ahead = bytes.min(self.ahead);
        self.ahead -= ahead;
        class.waiting += bytes - ahead;
        before
    }

    fn sent(&mut self, bytes: u64) {
        self.in_flight += bytes;
        let again = bytes.min(self.lost);
        self.lost -= again;
        let mut left = bytes - again;
        for (priority, class) in self.priorities.iter_mut().rev() {
            let sent = left.min(class.waiting);
            class.waiting -= sent;
            left -= sent;
            if *priority == DATAGRAMS {
                self.once += sent;
            }
            if left == 0 {
                break;
            }
        }
        self.ahead += left;
    }

    fn reset(&mut self, stream: &Span) {
        let mut flying = stream.bytes;
        if !stream.moved
            && let Some(class) = self.priorities.get_mut(&stream.priority)
        {
            let sent = class.accepted - class.waiting;
            let left = stream.behind(sent).min(class.waiting);
            class.waiting -= left;
            flying = stream.behind(sent.saturating_sub(self.in_flight)).saturating_sub(left);
        }
        self.once = (self.once + flying).min(self.in_flight);
    }

    /// So many bytes are in flight no more. Returns how many of them are not sent again if they were lost: as large a share as of
    /// all that was in flight.
    fn ended(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.in_flight);
        let once = self.once.saturating_mul(bytes) / self.in_flight.max(1);
        self.in_flight -= bytes;
        self.once -= once;
        once
    }

    fn lost(&mut self, bytes: u64) {
        let again = bytes - self.ended(bytes);
        let ahead = again.min(self.ahead);
        self.ahead -= ahead;
        self.lost += again - ahead;
    }

    fn drained(&mut self) {
        (self.lost, self.ahead) = (0, 0);
        for class in self.priorities.values_mut() {
            class.waiting = 0;
        }
    }

    fn waiting(&self) -> u64 {
        self.priorities.values().map(|class| class.waiting).sum::<u64>() + self.lost
    }
}
