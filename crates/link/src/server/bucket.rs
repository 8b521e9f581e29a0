//! A token bucket: bursts pass at once, the mean is the rate.

use suiro_units::{Bytes, Time};

use super::curve::Curve;
use super::{NANOBITS_PER_BYTE, work};
use crate::trace::RateCurve;

#[derive(Debug)]
pub(crate) struct Bucket {
    rate: Curve,
    /// Capacity and content in nanobits.
    capacity: u64,
    tokens: u64,
    as_of: Time,
}

impl Bucket {
    pub fn new(rate: &RateCurve, burst: Bytes) -> Self {
        let capacity = burst.get().saturating_mul(NANOBITS_PER_BYTE);
        Self { rate: Curve::new(rate), capacity, tokens: capacity, as_of: Time::ZERO }
    }

    /// The packet is out when there has been a token for each of its bytes. Meanwhile it is in service:
    /// it has left the queue. One that is larger than the bucket empties it, and leaves when the rate has
    /// brought the rest: as behind tc's HTB, whose tokens may fall below zero, the mean rate is kept.
    pub fn serve(&mut self, now: Time, bytes: u64) -> Option<Time> {
        let room = self.capacity - self.tokens;
        self.tokens += self.rate.work(self.as_of, now, room);
        self.as_of = now;
        let work = work(bytes);
        if let Some(left) = self.tokens.checked_sub(work) {
            self.tokens = left;
            return Some(now);
        }
        let done = self.rate.finish(now, work - self.tokens)?;
        self.tokens = done.surplus.min(self.capacity);
        self.as_of = done.at;
        Some(done.at)
    }

    pub fn period(&self) -> Option<u64> {
        self.rate.period()
    }
}
