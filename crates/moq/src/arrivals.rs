//! What the arrivals of frames say of the path: how long they wait, and what it carries. Pure.
//!
//! Waiting is the time from a frame's departure to its arrival, less the least time that a frame took lately. It is the
//! time in queues, those of publisher and relay and those of the path.
//!
//! A camera sends a frame and then pauses, so the received rate says what the camera makes and not what the path carries.
//! While a large frame is on its way the path is full, however: what arrived between the first moment at which it could
//! have and its arrival, divided by that time, is the path's capacity. Players of chunked HTTP measure likewise, without
//! the pauses (Bentaleb et al., "Bandwidth prediction in low-latency chunked streaming", NOSSDAV 2019). A frame that was
//! partly transmitted before that moment counts with the rest only. The least time includes the transmission of the small
//! frame that took it, so the bytes of that do not count either.

use std::collections::VecDeque;

use suiro_units::{BitRate, Duration, Time};

/// The time over which waiting is judged, and the received rate.
const OVER: Duration = Duration::from_secs(1);
const LATELY: Duration = Duration::from_millis(500);
/// The least time is that of the last one to two of these intervals, because a route can change.
const LEAST_OVER: Duration = Duration::from_secs(30);
/// The capacity is measured with frames of this size, a few packets, or larger.
const LARGE: usize = 5000;
/// It is the median of the measurements that are younger than this, so many at most.
const FRESH: Duration = Duration::from_secs(10);
const MEASURED_MAX: usize = 9;
/// Frames before the first measurement: the least time is not known before.
const FIRST: u64 = 6;
/// Arrivals that are kept at most.
const KEPT_MAX: usize = 512;

/// A frame that has arrived.
#[derive(Debug, Clone, Copy)]
struct Arrived {
    at: Time,
    /// Since when the path was busy with it.
    from: Time,
    bytes: usize,
    waited: Duration,
}

/// The frame that took the least time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Least {
    took: Duration,
    bytes: usize,
}

/// The frames of all tracks of a viewer.
#[derive(Debug, Default)]
pub struct Arrivals {
    kept: VecDeque<Arrived>,
    /// When this interval began, what took the least time in it, and in the one before.
    least: Option<(Time, Least, Option<Least>)>,
    measured: VecDeque<(Time, BitRate)>,
    count: u64,
}

impl Arrivals {
    /// A frame has arrived that took so long.
    pub fn on_picture(&mut self, now: Time, took: Duration, bytes: usize) {
        let least = self.least(now, Least { took, bytes });
        let waited = took.saturating_sub(least.took);
        // It would have arrived then if it had not waited.
        let first = now.saturating_sub(waited);
        self.count += 1;
        if bytes >= LARGE && self.count > FIRST {
            self.measure(now, first, (bytes, least.bytes));
        }
        let before = self.kept.back().map(|before| before.at);
        let from = before.map_or(first, |before| before.max(first)).min(now);
        self.kept.push_back(Arrived { at: now, from, bytes, waited });
        if self.kept.len() > KEPT_MAX {
            self.kept.pop_front();
        }
    }

    /// What took the least time, with this one.
    fn least(&mut self, now: Time, one: Least) -> Least {
        let (since, this, before) = self.least.unwrap_or((now, one, None));
        let (since, this, before) = if now.saturating_since(since) >= LEAST_OVER {
            (now, one, Some(this))
        } else {
            (since, this.min(one), before)
        };
        self.least = Some((since, this, before));
        before.map_or(this, |before| before.min(this))
    }

    /// Measures the capacity with a large frame of so many bytes; the one that took the least time had so few.
    fn measure(&mut self, now: Time, first: Time, (bytes, least): (usize, usize)) {
        let others = || self.kept.iter().rev().take_while(|other| other.at > first);
        let within = |other: &Arrived| {
            let whole = other.at.saturating_since(other.from).max(Duration::from_nanos(1));
            let part = other.at.saturating_since(other.from.max(first));
            other.bytes as f64 * (part.as_secs_f64() / whole.as_secs_f64()).min(1.0)
        };
        // If another one was on its way at that moment, all of this one was transmitted later.
        let busy = others().any(|other| other.from < first);
        let own = if busy { bytes } else { bytes.saturating_sub(least) };
        // One that is little larger than the least shows noise.
        if own < LARGE / 2 {
            return;
        }
        let bits = (own as f64 + others().map(within).sum::<f64>()) * 8.0;
        let time = now.saturating_since(first).max(Duration::from_millis(1));
        self.measured.push_back((now, BitRate::from_bps((bits / time.as_secs_f64()) as u64)));
        if self.measured.len() > MEASURED_MAX {
            self.measured.pop_front();
        }
    }

    /// The shortest waiting of those that arrived in the last second, and not before `since`; `None` if none did.
    pub fn waiting(&self, now: Time, since: Time) -> Option<Duration> {
        let lately = self.kept.iter().rev();
        let lately =
            lately.take_while(|one| one.at >= since && now.saturating_since(one.at) <= OVER);
        lately.map(|one| one.waited).min()
    }

    /// How long the newest frame waited.
    pub fn newest_waited(&self) -> Option<Duration> {
        self.kept.back().map(|newest| newest.waited)
    }

    /// When the newest frame arrived.
    pub fn heard(&self) -> Option<Time> {
        self.kept.back().map(|newest| newest.at)
    }

    /// What has arrived lately: what the path carries while frames wait.
    pub fn received(&self, now: Time) -> BitRate {
        let lately = self.kept.iter().rev();
        let lately = lately.take_while(|one| now.saturating_since(one.at) <= LATELY);
        let bytes = lately.map(|one| one.bytes as f64).sum::<f64>();
        BitRate::from_bps((bytes * 8.0 / LATELY.as_secs_f64()) as u64)
    }

    /// What the path carries; `None` while it is not known.
    pub fn capacity(&self, now: Time) -> Option<BitRate> {
        let fresh = self.measured.iter().filter(|(at, _)| now.saturating_since(*at) <= FRESH);
        let mut rates: Vec<BitRate> = fresh.map(|(_, rate)| *rate).collect();
        rates.sort_unstable();
        rates.get(rates.len().checked_sub(1)? / 2).copied()
    }

    /// The path is another one than it was: what was measured of it is forgotten.
    pub fn forget_capacity(&mut self) {
        self.measured.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(20);

    /// Frames of these sizes, one in each 40 ms, over a path of so many kbit/s; what was measured, in kbit/s, and the waiting.
    fn over(kbps: u64, sizes: &[usize]) -> (Option<f64>, Duration, Arrivals) {
        let (mut arrivals, mut free) = (Arrivals::default(), Time::ZERO);
        for (number, &bytes) in (0..).zip(sizes) {
            let sent = Time::from_millis(40 * number);
            free = free.max(sent) + Duration::from_micros(bytes as u64 * 8000 / kbps);
            let at = free + BASE;
            arrivals.on_picture(at, at.saturating_since(sent), bytes);
        }
        let (now, waited) = (free + BASE, arrivals.newest_waited().unwrap());
        (arrivals.capacity(now).map(|rate| rate.as_bps() as f64 / 1000.0), waited, arrivals)
    }

    #[test]
    fn the_capacity_is_measured_by_a_camera_that_does_not_use_it() {
        // 240 kbit/s on average, with key frames of 6 kB.
        let group = [[6000].as_slice(), &[1000; 24]].concat();
        for kbps in [300, 1000, 8000] {
            let (measured, ..) = over(kbps, &group.repeat(4));
            let share = measured.unwrap() / kbps as f64;
            assert!((0.95..1.05).contains(&share), "{share} of {kbps} kbit/s");
        }
    }

    #[test]
    fn the_capacity_is_measured_where_pictures_wait() {
        // 1 Mbit/s, of frames that are all large, on half of it.
        let (measured, waited, arrivals) = over(500, &[5000; 50]);
        assert!((475.0..525.0).contains(&measured.unwrap()), "{measured:?} kbit/s");
        assert!(waited > Duration::from_millis(1900), "{waited} at the end");
        let now = arrivals.heard().unwrap();
        let least = arrivals.waiting(now, Time::ZERO).unwrap();
        assert!(Duration::from_millis(1400) < least && least < waited, "{least} for a second");
        assert_eq!(arrivals.waiting(now, now + Duration::from_nanos(1)), None);
        let received = arrivals.received(now).as_bps();
        assert!((400_000..600_000).contains(&received), "{received} bit/s");
    }

    #[test]
    fn without_a_large_picture_the_capacity_is_not_known() {
        let (measured, waited, mut arrivals) = over(300, &[1000; 50]);
        assert_eq!((measured, waited), (None, Duration::ZERO));
        let (known, _, mut other) = over(300, &[[1000].repeat(9), vec![6000]].concat());
        let now = other.heard().unwrap();
        assert!(known.is_some() && other.capacity(now + FRESH * 2).is_none(), "it is old");
        other.forget_capacity();
        assert_eq!((other.capacity(now), arrivals.capacity(now)), (None, None));
        // A longer way: after two intervals, its least time is the least one.
        for second in 10..80 {
            arrivals.on_picture(Time::from_secs(second), BASE * 10, 1000);
        }
        assert_eq!(arrivals.newest_waited(), Some(Duration::ZERO));
    }
}
