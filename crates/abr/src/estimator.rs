//! What the network carries, estimated from finished downloads.
//!
//! Two exponentially weighted moving averages, a fast and a slow one, weighted by how long each download took; the
//! estimate is the smaller of the two, so that it falls quickly and rises slowly. This is the estimator of Shaka Player
//! (`EwmaBandwidthEstimator`) and hls.js (`EwmaBandWidthEstimator`). The half-lives are Shaka's, 2 and 5 s. With
//! hls.js's 3 and 9 s a live player with 6 s of buffer that meets a fall from 8 to 1.5 Mbit/s asks for one more segment
//! that it cannot get in time.
//!
//! A download counts from its request, not from its first byte: the wait of one round trip is paid
//! for every segment, so a rung that fits only without it does not fit. (dash.js calls this
//! `useDeadTimeLatency` and does so by default.)
//!
//! **At low latency** a player knows the network by bursts: a chunk takes a few milliseconds of a fast link, and then there is
//! nothing to send until the next. Weighted by the time of downloading, the averages would remember a slow link for much
//! longer than it lasted: if a burst takes a tenth of the time between two, a half-life of 5 s becomes 50 s. So a burst is
//! weighted by the time since the one before, and the half-lives are those of the clock.
//!
//! Crate `http` measures the bursts (`player/chunked.rs`), after the idea of the `moof` boxes in dash.js; the averages are those
//! above. How this and published estimators for chunks differ:
//!
//! | estimator | measures | from several, it makes |
//! |---|---|---|
//! | here | bytes after the first read of a burst, over the time since that read | the smaller of two averages by the clock; nothing is predicted |
//! | `moof` boxes in dash.js (Lim et al., "When they go high, we go low", MMSys 2020) | all bytes of a chunk, over the time from the read of its `moof` to the end of its `mdat` | the mean over a segment, without its last chunk; then the average over downloads |
//! | ACTE (Bentaleb, Timmerer, Begen and Zimmermann, "Bandwidth prediction in low-latency chunked streaming", NOSSDAV 2019) | chunks, without the pauses between them | the mean over a sliding window of chunks; recursive least squares predict the next one from those before |
//! | L2A (Karagkioules et al., MMSys 2020; `L2ARule` of dash.js 4.5) | the last segment: its bytes over the time in which its pieces came | nothing: each step learns from that segment alone. [`crate::l2a`] learns from the estimate here |

use suiro_units::{BitRate, Bytes, Duration, Time};

/// Half-life of the fast average, in seconds of downloading.
pub const FAST_HALF_LIFE: Duration = Duration::from_secs(2);
/// Half-life of the slow average, in seconds of downloading.
pub const SLOW_HALF_LIFE: Duration = Duration::from_secs(5);
/// Less than this measures the round trip, not the rate (Shaka Player's `minBytes`): smaller downloads
/// count together, once they are as much. Left out altogether, as there, a ladder whose lowest rung
/// has such segments would never be climbed.
pub const LEAST_BYTES: Bytes = Bytes::new(16_000);

/// Less than this measures when the packets happened to be read: shorter bursts count together, too. After a loss, all that
/// waited for one packet comes at once.
pub const LEAST_BURST: Duration = Duration::from_millis(10);
/// The most that a burst weighs, if it took less: after a pause, the network may be another.
const WEIGHT_MAX: Duration = Duration::from_secs(1);

/// One finished download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Size of the response's body.
    pub bytes: Bytes,
    /// When the request was sent.
    pub requested: Time,
    /// When the last byte of the body came.
    pub done: Time,
}

impl Sample {
    /// From request to last byte; at least one nanosecond, so that a rate can be had.
    pub fn took(&self) -> Duration {
        self.done.saturating_since(self.requested).max(Duration::from_nanos(1))
    }
}

/// An average in which a sample loses half its weight per half-life of later samples.
#[derive(Debug, Clone, Copy)]
struct Average {
    half_life: Duration,
    value_bps: f64,
    weight_s: f64,
}

impl Average {
    const fn new(half_life: Duration) -> Self {
        Self { half_life, value_bps: 0.0, weight_s: 0.0 }
    }

    /// The share that is left of what was known after samples of that weight.
    fn left(&self, weight_s: f64) -> f64 {
        0.5f64.powf(weight_s / self.half_life.as_secs_f64())
    }

    fn add(&mut self, rate_bps: f64, weight_s: f64) {
        let left = self.left(weight_s);
        self.value_bps = rate_bps * (1.0 - left) + self.value_bps * left;
        self.weight_s += weight_s;
    }

    /// The mean, without the pull of the zero it began with.
    fn mean_bps(&self) -> f64 {
        self.value_bps / (1.0 - self.left(self.weight_s))
    }
}

/// The estimate of throughput. Starts without any.
#[derive(Debug, Clone, Copy)]
pub struct Estimator {
    fast: Average,
    slow: Average,
    /// Downloads that are too small to count yet: their bytes, and how long they took together.
    small: (Bytes, Duration),
    /// When the last burst ended that counted; `None` without any.
    burst_ended: Option<Time>,
}

impl Default for Estimator {
    fn default() -> Self {
        Self {
            fast: Average::new(FAST_HALF_LIFE),
            slow: Average::new(SLOW_HALF_LIFE),
            small: (Bytes::ZERO, Duration::ZERO),
            burst_ended: None,
        }
    }
}

impl Estimator {
    /// Takes a download into account and returns its rate; one that is too small for an estimate is
    /// counted with the next.
    pub fn add(&mut self, sample: &Sample) -> Option<BitRate> {
        let (rate, took) = self.enough(sample, Duration::ZERO)?;
        self.count(rate, took);
        Some(rate)
    }

    /// Takes a burst into account, in which the network was busy from the beginning to the end; returns its rate as
    /// [`Estimator::add`] does.
    pub fn add_burst(&mut self, burst: &Sample) -> Option<BitRate> {
        let (rate, took) = self.enough(burst, LEAST_BURST)?;
        let since = self.burst_ended.map_or(took, |ended| burst.done.saturating_since(ended));
        self.burst_ended = Some(burst.done);
        self.count(rate, since.min(WEIGHT_MAX).max(took));
        Some(rate)
    }

    /// True if a burst has counted.
    pub fn is_of_bursts(&self) -> bool {
        self.burst_ended.is_some()
    }

    /// The rate and the time of a sample and of those before it that were too small; `None` if it still is.
    fn enough(&mut self, sample: &Sample, least: Duration) -> Option<(BitRate, Duration)> {
        let (bytes, took) = (self.small.0 + sample.bytes, self.small.1 + sample.took());
        if bytes < LEAST_BYTES || took < least {
            self.small = (bytes, took);
            return None;
        }
        self.small = (Bytes::ZERO, Duration::ZERO);
        Some((bytes / took, took))
    }

    fn count(&mut self, rate: BitRate, weight: Duration) {
        let (bps, weight_s) = (rate.as_bps() as f64, weight.as_secs_f64());
        self.fast.add(bps, weight_s);
        self.slow.add(bps, weight_s);
    }

    /// Bits per second of body; `None` before the first download that counts.
    pub fn estimate(&self) -> Option<BitRate> {
        let bps = self.fast.mean_bps().min(self.slow.mean_bps());
        (self.fast.weight_s > 0.0).then(|| BitRate::from_bps(bps.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bytes: u64, took_ms: u64) -> Sample {
        Sample {
            bytes: Bytes::new(bytes),
            requested: Time::from_secs(1),
            done: Time::from_secs(1) + Duration::from_millis(took_ms),
        }
    }

    #[test]
    fn the_first_sample_is_the_estimate() {
        let mut estimator = Estimator::default();
        assert_eq!(estimator.estimate(), None);
        estimator.add(&sample(250_000, 1000));
        assert_eq!(estimator.estimate(), Some(BitRate::from_mbps(2)));
    }

    #[test]
    fn small_downloads_count_together() {
        let mut estimator = Estimator::default();
        estimator.add(&sample(10_000, 100));
        assert_eq!(estimator.estimate(), None);
        // 20 kB in 200 ms; what was joined does not count twice.
        estimator.add(&sample(10_000, 100));
        assert_eq!(estimator.estimate(), Some(BitRate::from_kbps(800)));
        estimator.add(&sample(15_999, 1));
        assert_eq!(estimator.estimate(), Some(BitRate::from_kbps(800)));
    }

    #[test]
    fn falls_by_the_fast_average() {
        let mut estimator = Estimator::default();
        estimator.add(&sample(2_000_000, 2000)); // 8 Mbit/s for one fast half-life
        estimator.add(&sample(250_000, 2000)); // 1 Mbit/s for another
        // Fast: weights 1/4 and 1/2 of 3/4: (8·¼ + 1·½) ÷ ¾ = 3⅓ Mbit/s; slow lies higher.
        assert_eq!(estimator.estimate(), Some(BitRate::from_bps(3_333_333)));
    }

    #[test]
    fn rises_by_the_slow_average() {
        let mut estimator = Estimator::default();
        estimator.add(&sample(625_000, 5000)); // 1 Mbit/s for one slow half-life
        estimator.add(&sample(5_000_000, 5000)); // 8 Mbit/s for another
        // Slow: (1·¼ + 8·½) ÷ ¾ = 5⅔ Mbit/s; fast lies higher.
        assert_eq!(estimator.estimate(), Some(BitRate::from_bps(5_666_667)));
    }

    /// Bursts of `ms` milliseconds at that rate, one each 100 ms, from one second to another.
    fn bursts(estimator: &mut Estimator, (from_s, to_s): (u64, u64), kbps: u64, ms: u64) {
        for tenth in from_s * 10..to_s * 10 {
            let requested = Time::from_millis(100 * tenth);
            let done = requested + Duration::from_millis(ms);
            let bytes = BitRate::from_kbps(kbps) * Duration::from_millis(ms);
            estimator.add_burst(&Sample { bytes, requested, done });
        }
    }

    fn mbps(estimator: &Estimator) -> f64 {
        estimator.estimate().expect("an estimate").as_bps() as f64 / 1e6
    }

    #[test]
    fn bursts_are_forgotten_by_the_clock() {
        let mut estimator = Estimator::default();
        bursts(&mut estimator, (0, 60), 2000, 80);
        assert_eq!(estimator.estimate(), Some(BitRate::from_mbps(2)));
        // A slow half-life of a link that is busy for a quarter of the time: half of 2 and half of 6 Mbit/s. By the time of
        // downloading, of which that was 1.25 s, it would be 2.6.
        bursts(&mut estimator, (60, 65), 6000, 25);
        assert!((mbps(&estimator) - 4.0).abs() < 0.05, "{}", mbps(&estimator));
    }

    #[test]
    fn a_fall_shows_within_a_second_in_bursts() {
        let mut estimator = Estimator::default();
        bursts(&mut estimator, (0, 20), 4000, 40);
        // Half a fast half-life: 0.71 · 4 + 0.29 · 1.5 Mbit/s.
        bursts(&mut estimator, (20, 21), 1500, 100);
        assert!((mbps(&estimator) - 3.27).abs() < 0.1, "{}", mbps(&estimator));
    }

    #[test]
    fn what_came_at_once_counts_with_the_next() {
        let mut estimator = Estimator::default();
        bursts(&mut estimator, (0, 20), 4000, 40);
        let now = Time::from_millis(20_040);
        estimator.add_burst(&Sample { bytes: Bytes::new(20_000), requested: now, done: now });
        assert_eq!(estimator.estimate(), Some(BitRate::from_mbps(4)));
        // 40 kB in 40 ms are 8 Mbit/s, for a tenth of a second.
        bursts(&mut estimator, (21, 22), 4000, 40);
        assert!((4.0..4.5).contains(&mbps(&estimator)), "{}", mbps(&estimator));
    }

    #[test]
    fn small_bursts_are_an_estimate_once_they_are_enough() {
        let mut estimator = Estimator::default();
        estimator.add_burst(&sample(10_000, 100));
        assert_eq!((estimator.estimate(), estimator.is_of_bursts()), (None, false));
        estimator.add_burst(&sample(10_000, 100));
        assert_eq!(estimator.estimate(), Some(BitRate::from_kbps(800)));
        assert!(estimator.is_of_bursts());
    }

    #[test]
    fn a_download_without_duration_has_a_rate() {
        let mut estimator = Estimator::default();
        estimator.add(&sample(1_000_000, 0));
        assert!(estimator.estimate().is_some());
    }
}
