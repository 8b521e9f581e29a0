//! An emulated storage with a rate and a latency. Pure.

use suiro_units::{BitRate, Bytes, Duration, Time};

/// The performance of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bits per second that it delivers, over all reads together; above 0.
    pub rate: BitRate,
    /// Time from a request to its first byte, if no other request is in flight.
    pub latency: Duration,
    /// From when on, on the monotonic clock, it has another rate, above 0.
    pub later: Option<(Time, BitRate)>,
}

/// Computes when reads from a storage of a [`Shape`] complete. Requests reach it in order, half a latency later; it
/// sends their bytes one after the other at its rate; they take half a latency to come back.
#[derive(Debug, Clone)]
pub struct Shaper {
    shape: Shape,
    busy_until: Time,
}

impl Shaper {
    /// An idle storage.
    pub const fn new(shape: Shape) -> Self {
        Self { shape, busy_until: Time::ZERO }
    }

    /// When a read of `bytes`, requested at `now`, is complete.
    pub fn due(&mut self, now: Time, bytes: u64) -> Time {
        let out = Duration::from_nanos(self.shape.latency.as_nanos() / 2);
        let back = self.shape.latency.saturating_sub(out);
        let begins = self.busy_until.max(now + out);
        let later = self.shape.later.filter(|(at, _)| begins >= *at);
        let rate = later.map_or(self.shape.rate, |(_, rate)| rate);
        self.busy_until = begins + Bytes::new(bytes) / rate;
        self.busy_until + back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaper(latency_ms: u64) -> Shaper {
        let rate = "8 Gbit/s".parse().unwrap();
        Shaper::new(Shape { rate, latency: Duration::from_millis(latency_ms), later: None })
    }

    #[test]
    fn an_idle_storage_answers_after_latency_and_transfer() {
        // A gigabyte per second: a megabyte per millisecond.
        assert_eq!(shaper(4).due(Time::from_millis(10), 1_000_000), Time::from_millis(15));
    }

    #[test]
    fn a_storage_that_slows_down_takes_longer_from_then_on() {
        let rate = "8 Gbit/s".parse().unwrap();
        let later = Some((Time::from_millis(20), "2 Gbit/s".parse().unwrap()));
        let mut shaper = Shaper::new(Shape { rate, latency: Duration::ZERO, later });
        assert_eq!(shaper.due(Time::from_millis(10), 1_000_000), Time::from_millis(11));
        assert_eq!(shaper.due(Time::from_millis(20), 1_000_000), Time::from_millis(24));
    }

    #[test]
    fn reads_side_by_side_share_the_rate_and_hide_the_latency() {
        let mut shaper = shaper(4);
        let due = [0; 5].map(|at| shaper.due(Time::from_millis(at), 1_000_000));
        assert_eq!(due, [5, 6, 7, 8, 9].map(Time::from_millis));
        // One after the other, each waits for its own latency.
        assert_eq!(shaper.due(Time::from_millis(20), 1_000_000), Time::from_millis(25));
    }
}
