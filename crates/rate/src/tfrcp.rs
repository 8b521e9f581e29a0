//! MPEG-TFRCP: once per control interval, a rate like that of a TCP on the same path.
//!
//! The rules are those of the study (Osaka University; `docs/studies.md`). After an interval with loss the rate is what
//! the model of TCP gives (1) or half of the rate (4). After one without, it is doubled (2) or grows by what a TCP's
//! window would have grown (3). The interval is *n* round-trip times, rounded to whole GoP times, so that the video
//! changes its quality between GoPs.
//!
//! What the study left open, lost reports, is answered so:
//!
//! - An interval in which no report came changes nothing: what is not known is no reason to rise.
//! - When packets were sent and for [`Config::silence`] no report said that any was expected,
//!   the rate is halved, and again after each further silence, down to the least. It begins a new
//!   interval, so that what was heard before the silence does not count afterwards.
//! - Reports count from cumulative values ([`Feedback::expected`]): those of a lost report are in
//!   the next one.

use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

use crate::equation::{self, Bounds};
use crate::rtt::Smoothed;
use crate::{Controller, Estimate, Feedback};

/// What to do after an interval without loss.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Increase {
    /// Rule (2): twice the rate, as originally proposed.
    Double,
    /// Rule (3): one more packet per round-trip time, for each round-trip time of the interval.
    #[default]
    Additive,
}

/// What to do after an interval with loss.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Decrease {
    /// Rule (1): the throughput of TCP from the equation of Padhye et al., as originally proposed.
    Equation,
    /// Rule (4): half of the rate.
    #[default]
    Halve,
}

/// Parameters of TFRCP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// After an interval without loss.
    pub increase: Increase,
    /// After an interval with loss.
    pub decrease: Decrease,
    /// The control interval in round-trip times, at least 1.
    pub interval_rtts: u32,
    /// The time of a group of pictures: what intervals are rounded to. Above zero.
    pub gop: Duration,
    /// Size of a full IP packet: the MTU of the rules.
    pub packet: Bytes,
    /// The retransmission timeout is at least this.
    pub timeout_min: Duration,
    /// The first target.
    pub initial: BitRate,
    /// The least and the most that the target may be.
    pub bounds: Bounds,
}

/// No interval is longer than so many GoP times, or than one if that is more: the bound for paths
/// of absurd delay.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

impl Config {
    /// The control interval at a round-trip time: the nearest number of whole GoP times, at least
    /// one; one where the round-trip time is not known.
    pub fn interval(&self, rtt: Option<Duration>) -> Duration {
        let span = rtt.map_or(0.0, Duration::as_secs_f64) * f64::from(self.interval_rtts);
        let most = (INTERVAL_MAX / self.gop).floor().max(1.0);
        let gops = (span / self.gop.as_secs_f64()).round().clamp(1.0, most);
        self.gop * gops as u64
    }

    /// How long to wait for a report before the rate is halved: two GoP times, as many as twelve
    /// reports of the study, or the retransmission timeout if that is longer.
    pub fn silence(&self, timeout: Option<Duration>) -> Duration {
        (self.gop * 2).max(timeout.unwrap_or_default())
    }
}

/// The sender's side of TFRCP.
#[derive(Debug, Clone)]
pub struct Tfrcp {
    config: Config,
    rate: BitRate,
    rtt: Smoothed,
    interval: Interval,
    /// The share lost in the latest interval that had reports.
    loss: Option<Ratio>,
    /// When something was first sent that no report has covered.
    unheard: Option<Time>,
}

/// The control interval under way, and what was reported in it.
#[derive(Debug, Clone, Copy)]
struct Interval {
    began: Time,
    length: Duration,
    expected: u64,
    lost: u64,
}

impl Interval {
    /// The share lost, of what was expected.
    fn loss(&self) -> f64 {
        self.lost as f64 / self.expected as f64
    }
}

impl Tfrcp {
    /// A sender that begins at `start`.
    pub fn new(config: Config, start: Time) -> Self {
        let length = config.interval(None);
        let interval = Interval { began: start, length, expected: 0, lost: 0 };
        let rate = config.initial.clamp(config.bounds.min, config.bounds.max);
        Self { config, rate, rtt: Smoothed::default(), interval, loss: None, unheard: None }
    }

    /// The retransmission timeout of a TCP on the same path.
    fn timeout(&self) -> Option<Duration> {
        let timeout = self.rtt.timeout()?;
        Some(timeout.max(self.config.timeout_min))
    }

    /// The rules: the rate after this interval. Without a round-trip time, loss halves the rate
    /// whatever the rule, and the additive step is unknown.
    fn ruled(&self, interval: &Interval) -> BitRate {
        let rate = self.rate.as_bps() as f64;
        let (rtt, timeout) = (self.rtt.rtt(), self.timeout());
        let next = if interval.lost > 0 {
            match (self.config.decrease, rtt.zip(timeout)) {
                (Decrease::Equation, Some((rtt, timeout))) => {
                    equation::padhye(self.config.packet, rtt, timeout, interval.loss())
                }
                (Decrease::Equation, None) | (Decrease::Halve, _) => rate / 2.0,
            }
        } else {
            match (self.config.increase, rtt) {
                (Increase::Double, _) => rate * 2.0,
                (Increase::Additive, Some(rtt)) => {
                    let rtts = interval.length / rtt;
                    rate + self.config.packet.bits() as f64 * rtts / rtt.as_secs_f64()
                }
                (Increase::Additive, None) => rate,
            }
        };
        self.config.bounds.clamp(next)
    }

    /// Ends the interval: sets the rate by what was reported in it.
    fn turn(&mut self, now: Time) {
        let interval = self.interval;
        if interval.expected > 0 {
            self.rate = self.ruled(&interval);
            self.loss = Ratio::new(interval.loss());
        }
        self.begin(now);
    }

    fn begin(&mut self, now: Time) {
        let length = self.config.interval(self.rtt.rtt());
        self.interval = Interval { began: now, length, expected: 0, lost: 0 };
    }

    fn interval_ends(&self) -> Time {
        self.interval.began + self.interval.length
    }

    fn silence_ends(&self) -> Option<Time> {
        self.unheard.map(|since| since + self.config.silence(self.timeout()))
    }
}

impl Controller for Tfrcp {
    fn on_sent(&mut self, now: Time, _: Bytes) {
        self.unheard.get_or_insert(now);
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        // What is due comes first: a report that is late does not belong to the interval before it.
        self.on_timer(now);
        if let Some(rtt) = feedback.rtt {
            self.rtt.update(rtt);
        }
        if feedback.expected == 0 {
            return;
        }
        self.unheard = None;
        self.interval.expected = self.interval.expected.saturating_add(feedback.expected);
        self.interval.lost = self.interval.lost.saturating_add(feedback.lost());
    }

    fn next_timer(&self) -> Option<Time> {
        let interval = self.interval_ends();
        Some(self.silence_ends().map_or(interval, |silence| silence.min(interval)))
    }

    fn on_timer(&mut self, now: Time) {
        if self.silence_ends().is_some_and(|silence| silence <= now) {
            self.rate = self.config.bounds.clamp(self.rate.as_bps() as f64 / 2.0);
            self.unheard = Some(now);
            self.begin(now);
        } else if self.interval_ends() <= now {
            self.turn(now);
        }
    }

    fn target(&self) -> BitRate {
        self.rate
    }

    fn estimate(&self) -> Estimate {
        Estimate { rtt: self.rtt.rtt(), loss: self.loss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOP: Duration = Duration::from_millis(1001);
    const RTT: Duration = Duration::from_millis(40);
    /// 1500 bytes per 40 ms.
    const STEP: u64 = 300_000;

    fn config(increase: Increase, decrease: Decrease) -> Config {
        Config {
            increase,
            decrease,
            interval_rtts: 32,
            gop: GOP,
            timeout_min: Duration::ZERO,
            packet: Bytes::new(1500),
            initial: BitRate::from_mbps(2),
            bounds: Bounds { min: BitRate::from_kbps(64), max: BitRate::from_mbps(100) },
        }
    }

    /// A sender that has just begun an interval, of one GoP time, with a steady round-trip time.
    struct Bench {
        tfrcp: Tfrcp,
        now: Time,
    }

    impl Bench {
        fn new(increase: Increase, decrease: Decrease) -> Self {
            Self::of(config(increase, decrease))
        }

        fn of(config: Config) -> Self {
            let mut tfrcp = Tfrcp::new(config, Time::ZERO);
            // Enough samples for a variation of nothing.
            for _ in 0..100 {
                tfrcp.on_feedback(Time::ZERO, &Feedback::default().with_rtt(RTT));
            }
            Self { tfrcp, now: Time::ZERO }
        }

        /// An interval in which there is one such report, if any; the target after it in bit/s.
        fn interval(&mut self, report: Option<(u64, u64)>) -> u64 {
            self.tfrcp.on_sent(self.now, Bytes::new(1500));
            if let Some((expected, lost)) = report {
                let report = Feedback::counts(expected, expected - lost).with_rtt(RTT);
                self.tfrcp.on_feedback(self.now + GOP / 2, &report);
            }
            self.now = self.tfrcp.next_timer().expect("it always waits");
            self.tfrcp.on_timer(self.now);
            self.tfrcp.target().as_bps()
        }
    }

    #[test]
    fn the_least_timeout_counts_in_rule_1() {
        let mut config = config(Increase::Double, Decrease::Equation);
        config.timeout_min = Duration::from_secs(1);
        let mut bench = Bench::of(config);
        // As below, with T₀ = 1 s: 1000·0.36742·0.04·1.0512 = 15.4493 ms.
        let expected = 12_000.0 / (0.006_531_97 + 0.015_449_3);
        let target = bench.interval(Some((100, 4))) as f64;
        assert!((target / expected - 1.0).abs() < 1e-3, "{target} is not {expected}");
    }

    #[test]
    fn rule_1_is_the_equation_with_the_timeout() {
        let mut bench = Bench::new(Increase::Double, Decrease::Equation);
        // p = 4 %: 40 ms·√(0.08/3) = 6.532 ms; T₀ = 240 ms, 3√(0.015) = 0.36742, 1+32p² = 1.0512:
        // 240·0.36742·0.04·1.0512 = 3.70780 ms.
        let expected = 12_000.0 / (0.006_531_97 + 0.003_707_80);
        let target = bench.interval(Some((100, 4))) as f64;
        assert!((target / expected - 1.0).abs() < 1e-4, "{target} is not {expected}");
        assert_eq!(bench.tfrcp.estimate().loss, Ratio::new(0.04));
    }

    #[test]
    fn rule_2_doubles() {
        let mut bench = Bench::new(Increase::Double, Decrease::Halve);
        assert_eq!(bench.interval(Some((100, 0))), 4_000_000);
        assert_eq!(bench.interval(Some((100, 0))), 8_000_000);
    }

    #[test]
    fn rule_3_adds_a_packet_per_round_trip_time_and_round_trip_time() {
        let mut bench = Bench::new(Increase::Additive, Decrease::Halve);
        // 1.001 s are 25.025 round-trip times.
        assert_eq!(bench.interval(Some((100, 0))), 2_000_000 + 25_025 * STEP / 1000);
    }

    #[test]
    fn rule_4_halves() {
        let mut bench = Bench::new(Increase::Additive, Decrease::Halve);
        assert_eq!(bench.interval(Some((100, 1))), 1_000_000);
        assert_eq!(bench.interval(Some((100, 99))), 500_000);
    }

    #[test]
    fn intervals_are_whole_gop_times() {
        let config = config(Increase::Double, Decrease::Halve);
        let gops = |rtt_ms| config.interval(Some(Duration::from_millis(rtt_ms))) / GOP;
        assert_eq!([0, 1, 31, 46, 47, 78, 79].map(gops), [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0]);
        assert_eq!(config.interval(None), GOP);
        assert_eq!(gops(60_000), 59.0, "at most a minute");
        // An interval has the length of the round-trip time when it begins.
        let mut tfrcp = Tfrcp::new(config, Time::ZERO);
        tfrcp.on_feedback(Time::ZERO, &Feedback::counts(1, 1).with_rtt(Duration::from_millis(100)));
        assert_eq!(tfrcp.next_timer(), Some(Time::ZERO + GOP));
        tfrcp.on_timer(Time::ZERO + GOP);
        assert_eq!(tfrcp.next_timer(), Some(Time::ZERO + GOP * 4));
    }

    #[test]
    fn no_report_changes_nothing_and_silence_halves() {
        let mut bench = Bench::new(Increase::Double, Decrease::Equation);
        let targets = [(); 6].map(|()| bench.interval(None));
        // The interval ends after one GoP time, and the silence after two.
        assert_eq!(targets, [2_000_000, 1_000_000, 1_000_000, 500_000, 500_000, 250_000]);
        let long = [(); 20].map(|()| bench.interval(None));
        assert_eq!(long[19], 64_000, "the least");
        assert_eq!(bench.interval(Some((10, 0))), 128_000, "a report ends it");
    }

    #[test]
    fn reports_that_nothing_came_are_silence() {
        let mut bench = Bench::new(Increase::Double, Decrease::Equation);
        let targets = [(); 4].map(|()| bench.interval(Some((0, 0))));
        assert_eq!(targets, [2_000_000, 1_000_000, 1_000_000, 500_000]);
    }

    #[test]
    fn who_sends_nothing_waits_for_nothing() {
        let mut tfrcp = Tfrcp::new(config(Increase::Double, Decrease::Halve), Time::ZERO);
        (1..100).for_each(|n| tfrcp.on_timer(Time::ZERO + GOP * n));
        assert_eq!(tfrcp.target(), BitRate::from_mbps(2));
    }

    #[test]
    fn a_report_that_comes_late_does_not_end_in_the_interval_before() {
        let mut bench = Bench::new(Increase::Double, Decrease::Halve);
        bench.tfrcp.on_feedback(Time::ZERO + GOP / 2, &Feedback::counts(10, 10));
        bench.tfrcp.on_feedback(Time::ZERO + GOP + GOP / 4, &Feedback::counts(10, 5));
        assert_eq!(bench.tfrcp.target(), BitRate::from_mbps(4), "the first interval had no loss");
        bench.tfrcp.on_timer(Time::ZERO + GOP * 3);
        assert_eq!(bench.tfrcp.target(), BitRate::from_mbps(2));
    }
}
