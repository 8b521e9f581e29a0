//! When each burst of a stream leaves: evenly through the frame, never more than a receiver's buffer takes. Pure; the
//! sender passes the time.
//!
//! Packet *j* of *N* is due at the frame's start + *j/N* · frame time: linear reading, as for the wide senders of ST
//! 2110-21. Packets are sent in bursts of *n*, each due with its first packet. A sender that was delayed catches up,
//! but no faster than the leaky bucket of ST 2110-21 allows ([`Bucket`]), because faster packets exceed the network's
//! limits. Only when it is more than half a frame late does it send as fast as it can, because then a receiver may lose
//! an image.

use suiro_units::{Duration, Time};

/// The leaky bucket of ST 2110-21 drains this much faster than packets arrive on average: β.
pub const DRAIN: f64 = 1.1;
/// Packets that a wide sender may have in the bucket, at least.
pub const WIDE_BURST: f64 = 16.0;
/// Packets that a sender which catches up puts into it. The others are for what happens between its clock and the wire: bursts
/// that were sent one after the other may leave together.
const CATCH_UP_BURST: f64 = 12.0;

impl Burst {
    /// True if it should have left at `now`.
    pub fn is_late(&self, now: Time) -> bool {
        self.due < now
    }
}

/// A bucket that each packet fills by one and that drains steadily: its level is how far the packets are ahead of a
/// network that takes them at [`DRAIN`] times their mean rate. C_INST of ST 2110-21.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    level: f64,
    at: Time,
    /// Packets per nanosecond.
    drain: f64,
}

impl Bucket {
    /// An empty bucket for frames of `packets` in `period`.
    pub fn new(packets: u32, period: Duration) -> Self {
        let drain = DRAIN * f64::from(packets) / period.as_nanos() as f64;
        Self { level: 0.0, at: Time::ZERO, drain }
    }

    /// Adds `packets` at `now` and returns the new level.
    pub fn add(&mut self, now: Time, packets: u32) -> f64 {
        self.level = self.level_at(now) + f64::from(packets);
        self.at = self.at.max(now);
        self.level
    }

    /// The level at `now`.
    pub fn level_at(&self, now: Time) -> f64 {
        let drained = now.saturating_since(self.at).as_nanos() as f64 * self.drain;
        (self.level - drained).max(0.0)
    }

    /// When `packets` more fit below `limit`; at once if they can never fit because the limit is smaller.
    pub fn fits_at(&self, packets: u32, limit: f64) -> Time {
        let room = (limit - f64::from(packets)).max(0.0);
        let excess = (self.level - room).max(0.0);
        self.at + Duration::from_nanos((excess / self.drain).ceil() as u64)
    }
}

/// The schedule of one stream: what to send next, and when.
#[derive(Debug, Clone)]
pub struct Pace {
    packets: u32,
    /// Most packets of a burst.
    burst: u32,
    /// Bursts end where a run ends, because only the last packet of a burst may be shorter.
    run: u32,
    start: Time,
    period: Duration,
    next: u32,
    bucket: Bucket,
}

/// Packets that leave together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// The first packet's position in its frame.
    pub first: u32,
    /// How many, at least one.
    pub packets: u32,
    /// When it should leave.
    pub due: Time,
    /// When it may leave: later than `due` if the bucket is full.
    pub at: Time,
}

impl Pace {
    /// For frames of `packets`, in bursts of at most `burst` that do not cross multiples of `run`.
    ///
    /// # Panics
    /// If any of them is zero.
    pub fn new(packets: u32, burst: u32, run: u32, period: Duration) -> Self {
        assert!(packets > 0 && burst > 0 && run > 0, "frames and bursts are not empty");
        let bucket = Bucket::new(packets, period);
        Self { packets, burst, run, start: Time::ZERO, period, next: packets, bucket }
    }

    /// Begins a frame that lasts from `start` to `end`.
    pub fn begin(&mut self, start: Time, end: Time) {
        (self.start, self.period, self.next) = (start, end.saturating_since(start), 0);
    }

    /// What to send next of this frame; `None` when all of it has been sent.
    pub fn next(&self) -> Option<Burst> {
        let left = self.packets.checked_sub(self.next).filter(|left| *left > 0)?;
        let packets = self.burst.min(left).min(self.run - self.next % self.run);
        let due = self.due(self.next);
        let fits = self.bucket.fits_at(packets, CATCH_UP_BURST);
        let hurry = due + self.period / 2;
        Some(Burst { first: self.next, packets, due, at: due.max(fits.min(hurry)) })
    }

    /// The burst that [`Self::next`] returned was sent by `now`.
    pub fn sent(&mut self, now: Time, burst: &Burst) {
        self.next = burst.first + burst.packets;
        self.bucket.add(now, burst.packets);
    }

    /// When packet `index` is due.
    pub fn due(&self, index: u32) -> Time {
        let span =
            u128::from(self.period.as_nanos()) * u128::from(index) / u128::from(self.packets);
        self.start + Duration::from_nanos(span as u64)
    }

    /// When the frame's last packet is due.
    pub fn last_due(&self) -> Time {
        self.due(self.packets - 1)
    }
}

#[cfg(test)]
mod tests;
