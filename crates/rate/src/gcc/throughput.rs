//! What passes: the rate of what was acknowledged, as libwebrtc estimates it (`BitrateEstimator`), and the least time until a
//! capacity is known again (`LinkCapacityEstimator`).

use suiro_units::Time;

/// The span of the first sample, and of the others, in seconds.
const SPAN_FIRST: f64 = 0.5;
const SPAN: f64 = 0.15;
/// How little a sample is believed that differs from the estimate; less while the application limits the rate and the sample is
/// lower.
const DOUBT: f64 = 10.0;
const DOUBT_LIMITED: f64 = 20.0;
/// The variance at first, and what each sample adds, in (kbit/s)².
const VARIANCE: f64 = 50.0;
const VARIANCE_STEP: f64 = 5.0;

/// The rate at which packets arrive, in bit/s.
#[derive(Debug, Clone, Default)]
pub struct Throughput {
    /// In kbit/s, with its variance.
    estimate: Option<(f64, f64)>,
    bytes: f64,
    span: f64,
    latest: Option<f64>,
}

impl Throughput {
    /// A packet has arrived, on the receiver's clock.
    pub fn on_packet(&mut self, arrived: Time, bytes: f64, limited: bool) {
        let now = arrived.as_secs_f64();
        let Some(kbps) = self.sample(now, bytes) else { return };
        let Some((estimate, variance)) = self.estimate else {
            self.estimate = Some((kbps, VARIANCE));
            return;
        };
        let doubt = if limited && kbps < estimate { DOUBT_LIMITED } else { DOUBT };
        let deviation = doubt * (estimate - kbps).abs() / estimate.max(1.0);
        let (sample_variance, predicted) = (deviation * deviation, variance + VARIANCE_STEP);
        let sum = sample_variance + predicted;
        let mean = (sample_variance * estimate + predicted * kbps) / sum;
        self.estimate = Some((mean.max(0.0), sample_variance * predicted / sum));
    }

    /// A rate in kbit/s whenever a span is over.
    fn sample(&mut self, now: f64, bytes: f64) -> Option<f64> {
        let span = if self.estimate.is_some() { SPAN } else { SPAN_FIRST };
        let before = self.latest.replace(now).unwrap_or(now);
        let apart = now - before;
        if apart < 0.0 {
            (self.bytes, self.span) = (bytes, 0.0);
            return None;
        }
        self.span += apart;
        if apart > span {
            // A pause is no low rate.
            self.bytes = 0.0;
            self.span %= span;
        }
        let over = self.span >= span;
        let kbps = over.then(|| self.bytes * 8e-3 / span);
        if over {
            self.span -= span;
            self.bytes = 0.0;
        }
        self.bytes += bytes;
        kbps
    }

    /// The rate in bit/s; `None` in the first half second.
    pub fn bps(&self) -> Option<f64> {
        self.estimate.map(|(kbps, _)| kbps * 1e3)
    }
}

/// Weight of the latest sample of the capacity.
const CAPACITY_GAIN: f64 = 0.05;
/// The least and the greatest normalised variance, at first the least.
const DEVIATION: (f64, f64) = (0.4, 2.5);

/// What passed when the path was last overused, in kbit/s, with its variance divided by the mean.
#[derive(Debug, Clone, Default)]
pub struct Capacity(Option<(f64, f64)>);

impl Capacity {
    /// The path is overused while so much passes.
    pub fn on_overuse(&mut self, bps: f64) {
        let kbps = bps / 1e3;
        let (mean, deviation) = self.0.unwrap_or((kbps, DEVIATION.0));
        let mean = mean + CAPACITY_GAIN * (kbps - mean);
        let error = mean - kbps;
        let deviation =
            (1.0 - CAPACITY_GAIN) * deviation + CAPACITY_GAIN * error * error / mean.max(1.0);
        self.0 = Some((mean, deviation.clamp(DEVIATION.0, DEVIATION.1)));
    }

    /// Whether it is known.
    pub const fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// The mean in bit/s.
    pub fn bps(&self) -> Option<f64> {
        self.0.map(|(mean, _)| mean * 1e3)
    }

    /// Forgets it if what passes is three standard deviations away from it: above, or below.
    pub fn check(&mut self, bps: f64, above: bool) {
        let Some((mean, deviation)) = self.0 else { return };
        let spread = 3.0 * (deviation * mean).sqrt();
        let kbps = bps / 1e3;
        if if above { kbps > mean + spread } else { kbps < mean - spread } {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_found_and_a_new_one_believed_slowly() {
        let mut throughput = Throughput::default();
        let mut send = |from: u64, to: u64, every_ms: u64| {
            for ms in (from..to).step_by(every_ms as usize) {
                throughput.on_packet(Time::from_millis(ms), 1000.0, false);
            }
            throughput.bps().unwrap_or(0.0)
        };
        // 800 kbit/s, then twice as much.
        assert_eq!(send(0, 490, 10), 0.0, "not yet");
        let steady = send(490, 3000, 10);
        assert!((steady - 800e3).abs() < 60e3, "{steady}");
        let soon = send(3000, 3400, 5);
        assert!(soon > steady && soon < 1500e3, "{soon}");
        let later = send(3400, 8000, 5);
        assert!((later - 1600e3).abs() < 60e3, "{later}");
    }

    #[test]
    fn a_capacity_is_forgotten_when_much_more_or_less_passes() {
        let mut capacity = Capacity::default();
        (0..10).for_each(|_| capacity.on_overuse(1000e3));
        // 3·√(0.4 · 1000) = 60 kbit/s.
        capacity.check(1055e3, true);
        capacity.check(945e3, false);
        assert!(capacity.is_known());
        let mut other = capacity.clone();
        capacity.check(1065e3, true);
        other.check(935e3, false);
        assert!(!capacity.is_known() && !other.is_known());
    }
}
