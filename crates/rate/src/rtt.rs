//! The round-trip time, smoothed as TCP does (RFC 6298 §2).

use suiro_units::Duration;

/// Samples below count as this much.
pub const RTT_MIN: Duration = Duration::from_micros(1);
/// Samples above count as this much: nothing useful can be controlled over such a path.
pub const RTT_MAX: Duration = Duration::from_secs(60);

/// A sample within [`RTT_MIN`] and [`RTT_MAX`].
pub fn bounded(sample: Duration) -> Duration {
    sample.clamp(RTT_MIN, RTT_MAX)
}

/// The smoothed round-trip time, its variation, and the retransmission timeout they give.
#[derive(Debug, Clone, Copy, Default)]
pub struct Smoothed {
    /// Mean and variation in seconds.
    state: Option<(f64, f64)>,
}

impl Smoothed {
    /// Least variation in a timeout: what Linux uses.
    const VARIATION_MIN: Duration = Duration::from_millis(200);

    /// Takes a sample.
    pub fn update(&mut self, sample: Duration) {
        let sample = bounded(sample).as_secs_f64();
        self.state = Some(match self.state {
            // RFC 6298 §2.2.
            None => (sample, sample / 2.0),
            // RFC 6298 §2.3: gains 1/8 and 1/4, the variation first.
            Some((mean, variation)) => (
                mean + (sample - mean) / 8.0,
                variation + ((sample - mean).abs() - variation) / 4.0,
            ),
        });
    }

    /// The smoothed round-trip time; `None` before the first sample.
    pub fn rtt(&self) -> Option<Duration> {
        self.state.map(|(mean, _)| bounded(Duration::from_secs_f64(mean)))
    }

    /// The retransmission timeout: the mean and four variations, which count as 200 ms at least. `None` before the first
    /// sample.
    pub fn timeout(&self) -> Option<Duration> {
        let (mean, variation) = self.state?;
        let variation = (4.0 * variation).max(Self::VARIATION_MIN.as_secs_f64());
        Some(Duration::from_secs_f64(mean + variation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothed_with_the_gains_of_the_rfc() {
        let mut smoothed = Smoothed::default();
        assert_eq!((smoothed.rtt(), smoothed.timeout()), (None, None));
        smoothed.update(Duration::from_millis(200));
        assert_eq!(smoothed.rtt(), Some(Duration::from_millis(200)));
        assert_eq!(smoothed.timeout(), Some(Duration::from_millis(600)), "200 + 4 · 100");
        smoothed.update(Duration::from_millis(280));
        assert_eq!(smoothed.rtt(), Some(Duration::from_millis(210)), "200 + 80/8");
        assert_eq!(smoothed.timeout(), Some(Duration::from_millis(590)), "210 + 4 (100 - 20/4)");
    }

    #[test]
    fn absurd_samples_are_bounded() {
        let mut smoothed = Smoothed::default();
        smoothed.update(Duration::from_nanos(u64::MAX));
        assert_eq!(smoothed.rtt(), Some(RTT_MAX));
        smoothed.update(Duration::ZERO);
        assert!(smoothed.rtt().unwrap() < RTT_MAX);
    }
}
