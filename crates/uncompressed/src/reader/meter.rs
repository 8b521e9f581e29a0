//! The counters of a ring, which any thread may read at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use suiro_record::table::Text;
use suiro_record::tables::UncompressedRingRow;
use suiro_units::{Time, to_i64};

use super::shared::{Counters, Failure, locked};

/// Reads a ring's counters, from any thread, and computes what changed since the last reading.
#[derive(Debug, Clone)]
pub struct Meter {
    counters: Arc<Counters>,
    failure: Failure,
    slots: u64,
    frame_bytes: u64,
    in_memory: bool,
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    at: Time,
    read_bytes: u64,
    handed: u64,
    repeats: u64,
}

/// A ring at one moment, and its rates since the last reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// Empty slots.
    pub free: u64,
    /// Slots that are being filled.
    pub reading: u64,
    /// Frames that were read and not yet sent, the one that is being sent excluded.
    pub waiting: u64,
    /// Bits per second read, frames' padding included; `None` at the first reading, and if the ring
    /// is memory.
    pub read_bps: Option<f64>,
    /// Bits per second of frames handed to the sender, without headers; `None` at the first
    /// reading.
    pub send_bps: Option<f64>,
    /// Repeated frames since the last reading.
    pub repeats: u64,
    /// Repeated frames since the ring began.
    pub repeats_all: u64,
    /// Frames handed to the sender since the ring began.
    pub handed_all: u64,
}

impl Meter {
    pub(super) fn new(
        (counters, failure): (Arc<Counters>, Failure),
        slots: u64,
        frame_bytes: u64,
        in_memory: bool,
    ) -> Self {
        Self { counters, failure, slots, frame_bytes, in_memory, last: None }
    }

    /// Slots of the ring.
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// Why the ring's reader ended early; `None` while it works.
    pub fn failure(&self) -> Option<String> {
        locked(&self.failure).as_ref().map(ToString::to_string)
    }

    /// The row of table `uncompressed_ring` of stream `stream` at `t_ns` of the trial, which is
    /// `now` of the monotonic clock.
    pub fn row(
        &mut self,
        now: Time,
        t_ns: i64,
        endpoint: &Text,
        stream: u32,
    ) -> UncompressedRingRow {
        let second = self.look(now);
        UncompressedRingRow {
            t_ns,
            endpoint: endpoint.clone(),
            stream: stream.into(),
            slots: to_i64(self.slots),
            free: to_i64(second.free),
            reading: to_i64(second.reading),
            waiting: to_i64(second.waiting),
            read_bps: second.read_bps,
            send_bps: second.send_bps,
            repeats: to_i64(second.repeats),
            sent_frames: to_i64(second.handed_all),
            repeated_frames: to_i64(second.repeats_all),
        }
    }

    /// The ring at `now`.
    pub fn look(&mut self, now: Time) -> Second {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Read from the counter that is never ahead to the one that is never behind, so that
        // differences between moving counters are not negative.
        let (released, filled) = (of(&self.counters.released), of(&self.counters.filled));
        let begun = of(&self.counters.begun).max(filled);
        let at = Last {
            at: now,
            read_bytes: of(&self.counters.read_bytes),
            handed: of(&self.counters.handed),
            repeats: of(&self.counters.repeats),
        };
        let last = self.last.replace(at);
        let rate = |bytes: u64, last: &Last| {
            let span = now.saturating_since(last.at);
            (!span.is_zero()).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
        };
        let read_bps = last.as_ref().filter(|_| !self.in_memory);
        let held = u64::from(at.handed > 0);
        Second {
            free: self.slots.saturating_sub(begun - released),
            reading: begun - filled,
            waiting: (filled - released).saturating_sub(held),
            read_bps: read_bps.and_then(|last| rate(at.read_bytes - last.read_bytes, last)),
            send_bps: last
                .as_ref()
                .and_then(|last| rate((at.handed - last.handed) * self.frame_bytes, last)),
            repeats: at.repeats - last.map_or(0, |last| last.repeats),
            repeats_all: at.repeats,
            handed_all: at.handed,
        }
    }
}
