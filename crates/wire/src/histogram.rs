//! Many durations in little memory.

use suiro_record::Lateness;
use suiro_units::Duration;

/// Buckets of each power of two: 64 make a bucket at most 1.6 % wide.
const PARTS: u64 = 64;
/// Durations of 2^36 ns (69 s) and more share the last bucket.
const POWERS: u64 = 31;

/// Counts of durations by size, log-linear: exact below 64 ns, within 1.6 % above.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    largest: Duration,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; (PARTS * POWERS) as usize], total: 0, largest: Duration::ZERO }
    }

    #[inline]
    pub(crate) fn add(&mut self, duration: Duration) {
        self.counts[bucket(duration.as_nanos())] += 1;
        self.total += 1;
        self.largest = self.largest.max(duration);
    }

    /// The smallest duration that at least `share` of all do not exceed, rounded up to the bucket's
    /// width; `None` if there are none.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Some(Duration::from_nanos(upper(index as u64)).min(self.largest));
            }
        }
        None
    }

    pub(crate) fn lateness(&self) -> Lateness {
        let us = |duration: Duration| duration.as_nanos() as f64 / 1e3;
        Lateness {
            p50_us: self.quantile(0.5).map(us),
            p99_us: self.quantile(0.99).map(us),
            max_us: (self.total > 0).then(|| us(self.largest)),
        }
    }
}

/// Below `PARTS`, itself; above, the power of two and the 6 bits below the leading one.
fn bucket(ns: u64) -> usize {
    if ns < PARTS {
        return ns as usize;
    }
    let power = u64::from(ns.ilog2() - PARTS.ilog2());
    let index = (power + 1) * PARTS + (ns >> power) - PARTS;
    index.min(PARTS * POWERS - 1) as usize
}

/// The largest duration of a bucket, in nanoseconds.
fn upper(index: u64) -> u64 {
    if index < PARTS {
        return index;
    }
    let power = index / PARTS - 1;
    ((PARTS + index % PARTS + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_axis() {
        for index in 0..PARTS * POWERS - 1 {
            assert_eq!(bucket(upper(index)) as u64, index);
            assert_eq!(bucket(upper(index) + 1) as u64, index + 1);
        }
        assert_eq!(bucket(u64::MAX) as u64, PARTS * POWERS - 1);
        let width = |index| upper(index) as f64 / upper(index - 1) as f64;
        assert!((PARTS + 1..PARTS * POWERS).all(|index| width(index) < 1.017));
    }

    #[test]
    fn quantiles_of_a_known_set() {
        let mut all = Histogram::new();
        assert_eq!(all.lateness().p50_us, None);
        for us in 1..=1000 {
            all.add(Duration::from_micros(us));
        }
        let near = |share, us: f64| {
            let found = all.quantile(share).unwrap().as_nanos() as f64 / 1e3;
            assert!((us..us * 1.017).contains(&found), "{share}: {found}");
        };
        near(0.5, 500.0);
        near(0.99, 990.0);
        assert_eq!(all.lateness().max_us, Some(1000.0));
        assert_eq!(all.quantile(1.0), Some(Duration::from_millis(1)));
        let mut one = Histogram::new();
        one.add(Duration::from_secs(500));
        assert!(one.quantile(0.5).unwrap() > Duration::from_secs(68));
        assert_eq!(one.lateness().max_us, Some(5e8));
    }
}
