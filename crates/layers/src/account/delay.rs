//! How long something took: the distribution of delays, and their jitter.

use serde::Serialize;

/// Delays of packets (UDP) or ranges (TCP), in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delay {
    /// Number of delays.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Minimum.
    pub min_ns: i64,
    /// Median (nearest rank).
    pub p50_ns: i64,
    /// 95th percentile (nearest rank).
    pub p95_ns: i64,
    /// Maximum.
    pub max_ns: i64,
    /// Mean difference between successive delays, in the order of sending (the one-way delay
    /// variation of RFC 3393 §2.4, for consecutive packets that arrived); 0 for a single packet.
    pub jitter_ns: f64,
    /// Possible error from the clocks, in either direction; 0 within a host; `None` if unknown.
    pub error_ns: Option<u64>,
}

impl Delay {
    /// From delays in the order of sending; `None` if there are none.
    pub fn of(mut delays: Vec<i64>, error_ns: Option<u64>) -> Option<Self> {
        let count = delays.len();
        let sum: f64 = delays.iter().map(|&d| d as f64).sum();
        let changes: f64 =
            delays.windows(2).map(|pair| (pair[1] as f64 - pair[0] as f64).abs()).sum();
        delays.sort_unstable();
        let rank = |percent: usize| delays.get((count * percent).div_ceil(100).max(1) - 1).copied();
        Some(Self {
            count: count as u64,
            mean_ns: sum / count as f64,
            min_ns: *delays.first()?,
            p50_ns: rank(50)?,
            p95_ns: rank(95)?,
            max_ns: *delays.last()?,
            jitter_ns: changes / (count.max(2) - 1) as f64,
            error_ns,
        })
    }

    /// Whether the mean is larger than the clocks' error.
    pub fn is_certain(&self) -> bool {
        self.error_ns.is_some_and(|error| self.mean_ns.abs() > error as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_that_of_its_definition() {
        assert_eq!(Delay::of(Vec::new(), Some(0)), None);
        let delay = Delay::of(vec![10, 30, 20, 40], Some(25)).unwrap();
        let expected = Delay {
            count: 4,
            mean_ns: 25.0,
            min_ns: 10,
            p50_ns: 20,
            p95_ns: 40,
            max_ns: 40,
            jitter_ns: 50.0 / 3.0,
            error_ns: Some(25),
        };
        assert_eq!(delay, expected);
        assert!(!delay.is_certain());
        assert!(Delay { error_ns: Some(24), ..delay }.is_certain());
        assert!(!Delay { error_ns: None, ..delay }.is_certain());
        assert_eq!(Delay::of(vec![7], None).unwrap().jitter_ns, 0.0);
    }
}
