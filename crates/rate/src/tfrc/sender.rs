//! The sender's side of TFRC (RFC 5348 §4).

use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

use super::limits::{DataLimits, ReceiveRates};
use super::receiver::{Receiver, Report};
use crate::equation::{self, Bounds};
use crate::rtt::bounded;
use crate::{Controller, Estimate, Feedback};

/// Gain of the round-trip time (RFC 5348 §4.3: q = 0.9) and of its square root (§4.5: q2 = 0.9).
const Q: f64 = 0.9;
/// The longest time between two packets (RFC 5348 §4.3: t_mbi).
const MAX_BACKOFF: Duration = Duration::from_secs(64);
/// How long to wait for the first report (RFC 5348 §4.2).
const FIRST_REPORT: Duration = Duration::from_secs(2);
/// Reports further apart than this count as this far.
const REPORT_GAP_MAX: Duration = Duration::from_secs(5);
/// Sizes and times of packets beyond count as this: no sum of two overflows.
const SIZE_MAX: Bytes = Bytes::new(65_575);
const TIME_MAX: Time = Time::from_nanos(u64::MAX / 4);

/// Parameters of TFRC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Size of a typical packet: the *s* of the throughput equation.
    pub packet: Bytes,
    /// The target until the first report, and the least during slow start; `None`: as the RFC has
    /// it, a packet per second, and then the initial window of RFC 3390 per round-trip time.
    pub initial: Option<BitRate>,
    /// The least and the most that the target may be.
    pub bounds: Bounds,
}

/// A sender that follows RFC 5348.
///
/// The no-feedback timer waits four round-trip times, or four times the mean gap between reports
/// where they come less often than the RFC wants, as with RTCP.
#[derive(Debug, Clone)]
pub struct Sender {
    config: Config,
    /// The allowed rate X in bit/s.
    allowed: f64,
    /// When X was last doubled in slow start.
    doubled: Time,
    path: Option<Path>,
    loss_event_rate: f64,
    receive_rates: ReceiveRates,
    reports: Reports,
    no_feedback: Time,
    /// Whether something was sent since the timer was set.
    sent: bool,
    limits: DataLimits,
    /// Makes reports of packets and of counts into what the RFC wants.
    receiver: Receiver,
    /// Whether packets were ever reported; then counts are not used next to them.
    per_packet: bool,
}

/// The round-trip time.
#[derive(Debug, Clone, Copy)]
struct Path {
    smoothed: f64,
    /// Its latest sample, and the mean of its square root (RFC 5348 §4.5).
    latest: f64,
    root: f64,
}

/// When reports come.
#[derive(Debug, Clone, Copy)]
struct Reports {
    latest: Time,
    /// The mean gap in seconds; `None` before the second report.
    gap: Option<f64>,
}

impl Sender {
    /// A sender that begins at `start`.
    pub fn new(config: Config, start: Time) -> Self {
        let first = config.initial.map_or(config.packet.bits() as f64, |rate| rate.as_bps() as f64);
        let mut sender = Self {
            config,
            allowed: 0.0,
            doubled: start,
            path: None,
            loss_event_rate: 0.0,
            receive_rates: ReceiveRates::new(start),
            reports: Reports { latest: start, gap: None },
            no_feedback: start + FIRST_REPORT,
            sent: false,
            limits: DataLimits::new(start),
            receiver: Receiver::new(config.packet),
            per_packet: false,
        };
        sender.allow(first);
        sender
    }

    /// Sets X, but not below a packet per [`MAX_BACKOFF`], nor out of bounds.
    fn allow(&mut self, bps: f64) {
        let least = self.config.packet.bits() as f64 / MAX_BACKOFF.as_secs_f64();
        let Bounds { min, max } = self.config.bounds;
        self.allowed = bps.max(least).clamp(min.as_bps() as f64, max.as_bps() as f64);
    }

    fn rtt(&self) -> Option<Duration> {
        self.path.map(|path| bounded(Duration::from_secs_f64(path.smoothed)))
    }

    /// The time in which a report is to be expected: the round-trip time, or the gap between
    /// reports.
    fn report_time(&self, rtt: Duration) -> Duration {
        rtt.max(self.reports.gap.map_or(Duration::ZERO, Duration::from_secs_f64))
    }

    /// The rate of RFC 3390's initial window, min(4 s, max(2 s, 4380 B)) per round-trip time
    /// (RFC 5348 §4.2).
    fn initial_rate(&self, rtt: Duration) -> f64 {
        let packet = self.config.packet.get();
        let window = (4 * packet).min((2 * packet).max(4380));
        let asked = self.config.initial.map_or(0.0, |rate| rate.as_bps() as f64);
        (window as f64 * 8.0 / rtt.as_secs_f64()).max(asked)
    }

    /// What the throughput equation gives now.
    fn equation(&self, rtt: Duration) -> f64 {
        equation::rfc5348(self.config.packet, rtt, self.loss_event_rate)
    }

    /// Smooths the round-trip time (RFC 5348 §4.3 step 2, §4.5).
    fn sample(&mut self, sample: Duration) {
        let latest = bounded(sample).as_secs_f64();
        let smooth = |mean: f64, value: f64| Q * mean + (1.0 - Q) * value;
        self.path = Some(match self.path {
            None => Path { smoothed: latest, latest, root: latest.sqrt() },
            Some(path) => Path {
                smoothed: smooth(path.smoothed, latest),
                latest,
                root: smooth(path.root, latest.sqrt()),
            },
        });
    }

    /// The receiver's view, from what it reported, and whether a new loss event began. `None`: nothing was received.
    fn measured(
        &mut self,
        now: Time,
        feedback: &Feedback,
        rtt: Duration,
    ) -> Option<(Report, bool)> {
        let (mut own, mut began) = (None, false);
        let per_packet = !feedback.packets.is_empty();
        if per_packet {
            // What counts said before has other numbers, and times of another clock.
            if !std::mem::replace(&mut self.per_packet, true) {
                self.receiver = Receiver::new(self.config.packet);
            }
            let mut latest = None;
            for packet in &feedback.packets {
                let time = packet.arrived.time().map(|at| at.min(TIME_MAX));
                // One that arrived, but not known when, counts as having come with the one before it.
                let before = latest.or(self.receiver.highest().map(|(_, at)| at));
                let arrived = time.or(before).filter(|_| !packet.arrived.is_missing());
                let Some(arrived) = arrived else { continue };
                let size = packet.size.min(SIZE_MAX);
                began |= self.receiver.on_packet(arrived, packet.sequence, size, Some(rtt));
                latest = latest.max(Some(arrived));
            }
            own = latest.map(|at| self.receiver.current(at));
        } else if !self.per_packet && feedback.expected > 0 {
            let counts = (feedback.expected, feedback.lost());
            began = self.receiver.on_counts(self.reports.latest, now, counts, rtt);
            own = Some(self.receiver.current(now));
        }
        let received = own.map(|own| own.receive_rate);
        // Arrivals say it exactly; else what the receiver measured, or the sender from its reports.
        let exactly = received.filter(|_| per_packet);
        let report = Report {
            receive_rate: exactly.or(feedback.receive_rate).or(received)?,
            loss_event_rate: feedback.loss_event_rate.or(own.map(|own| own.loss_event_rate))?,
        };
        Some((report, began))
    }

    /// Sets X after a report (RFC 5348 §4.3 step 4).
    fn recompute(&mut self, now: Time, rtt: Duration, limit: f64) {
        if self.loss_event_rate > 0.0 {
            self.allow(self.equation(rtt).min(limit));
        } else if now.saturating_since(self.doubled) >= rtt {
            self.allow((2.0 * self.allowed).min(limit).max(self.initial_rate(rtt)));
            self.doubled = now;
        }
    }

    /// The limit that the receive rate sets (RFC 5348 §4.3 step 4).
    fn receive_limit(&mut self, now: Time, rtt: Duration, (report, began): (Report, bool)) -> f64 {
        let received = report.receive_rate.as_bps() as f64;
        let data_limited = self.limits.interval_was_limited(now, rtt);
        let worse = began || report.loss_event_rate.get() > self.loss_event_rate;
        if data_limited && worse {
            self.receive_rates.halve();
            self.receive_rates.maximise(now, 0.85 * received)
        } else if data_limited {
            2.0 * self.receive_rates.maximise(now, received)
        } else {
            2.0 * self.receive_rates.update(now, received, self.report_time(rtt) * 2)
        }
    }

    fn set_timer(&mut self, now: Time) {
        let packets =
            Duration::from_secs_f64(2.0 * self.config.packet.bits() as f64 / self.allowed);
        let wait = self.rtt().map_or(FIRST_REPORT, |rtt| self.report_time(rtt) * 4);
        self.no_feedback = now + wait.max(packets);
        self.sent = false;
    }

    /// Nothing was heard (RFC 5348 §4.4).
    fn back_off(&mut self, now: Time) {
        let idle = !self.sent;
        let received = self.receive_rates.max();
        let Some(rtt) = self.rtt() else {
            if !idle {
                self.allow(self.allowed / 2.0);
            }
            return;
        };
        let recover = self.initial_rate(rtt);
        let lossless = self.loss_event_rate == 0.0;
        let slow = if lossless { self.allowed < 2.0 * recover } else { received < recover };
        if idle && slow {
            return;
        }
        if lossless {
            self.allow(self.allowed / 2.0);
            return;
        }
        let equation = self.equation(rtt);
        let limit = if equation > 2.0 * received { received } else { equation / 2.0 };
        let least = self.config.packet.bits() as f64 / MAX_BACKOFF.as_secs_f64();
        let limit = limit.max(least);
        self.receive_rates.replace(now, limit / 2.0);
        self.recompute(now, rtt, limit);
    }
}

impl Controller for Sender {
    fn on_sent(&mut self, now: Time, size: Bytes) {
        self.sent = true;
        let rate = self.pacing();
        let credit = self.rtt().unwrap_or_default();
        self.limits.on_sent(now, size.min(SIZE_MAX) / rate, credit);
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.on_timer(now);
        let first = self.path.is_none();
        if let Some(sample) = feedback.rtt {
            self.sample(sample);
        }
        let Some(rtt) = self.rtt() else { return };
        let Some((report, began)) = self.measured(now, feedback, rtt) else { return };
        self.reports.update(now, first);
        if first {
            self.allow(self.initial_rate(rtt));
            self.doubled = now;
        }
        let limit = self.receive_limit(now, rtt, (report, began));
        self.loss_event_rate = report.loss_event_rate.get();
        self.recompute(now, rtt, limit);
        self.set_timer(now);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.no_feedback)
    }

    fn on_timer(&mut self, now: Time) {
        if now >= self.no_feedback {
            self.back_off(now);
            self.set_timer(now);
        }
    }

    fn target(&self) -> BitRate {
        self.config.bounds.clamp(self.allowed)
    }

    /// RFC 5348 §4.5: slower while the latest round-trip time is longer than usual.
    fn pacing(&self) -> BitRate {
        let factor = self.path.map_or(1.0, |path| path.root / path.latest.sqrt());
        self.config.bounds.clamp(self.allowed * factor)
    }

    fn estimate(&self) -> Estimate {
        let loss = self.path.and_then(|_| Ratio::new(self.loss_event_rate));
        Estimate { rtt: self.rtt(), loss }
    }
}

impl Reports {
    fn update(&mut self, now: Time, first: bool) {
        let gap = now.saturating_since(self.latest).min(REPORT_GAP_MAX).as_secs_f64();
        self.latest = self.latest.max(now);
        if !first {
            self.gap = Some(self.gap.map_or(gap, |mean| Q * mean + (1.0 - Q) * gap));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrived, PacketReport};

    const SIZE: Bytes = Bytes::new(1500);
    const RTT: Duration = Duration::from_millis(100);
    /// 4380 bytes per 100 ms.
    const INITIAL: u64 = 350_400;

    fn sender() -> Sender {
        let bounds = Bounds { min: BitRate::from_kbps(1), max: BitRate::from_mbps(100) };
        Sender::new(Config { packet: SIZE, initial: None, bounds }, Time::ZERO)
    }

    fn report(receive_bps: u64, loss_event_rate: f64) -> Feedback {
        Feedback {
            receive_rate: Some(BitRate::from_bps(receive_bps)),
            loss_event_rate: Ratio::new(loss_event_rate),
            ..Feedback::default().with_rtt(RTT)
        }
    }

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Sends all that is allowed, or more, until then.
    fn busy(sender: &mut Sender, from: u64, until: u64) {
        (from..until).for_each(|at| sender.on_sent(ms(at), Bytes::new(15_000)));
    }

    #[test]
    fn it_begins_with_a_packet_per_second_and_the_initial_window() {
        let mut sender = sender();
        assert_eq!(sender.target(), BitRate::from_bps(12_000));
        sender.on_feedback(ms(100), &report(12_000, 0.0));
        assert_eq!(sender.target(), BitRate::from_bps(INITIAL));
        assert_eq!(sender.estimate().rtt, Some(RTT));
    }

    #[test]
    fn slow_start_doubles_each_round_trip_time_up_to_twice_what_is_received() {
        let mut sender = sender();
        sender.on_feedback(ms(100), &report(12_000, 0.0));
        sender.on_feedback(ms(150), &report(INITIAL, 0.0));
        assert_eq!(sender.target().as_bps(), INITIAL, "half a round-trip time has passed");
        sender.on_feedback(ms(200), &report(INITIAL, 0.0));
        assert_eq!(sender.target().as_bps(), 2 * INITIAL);
        for at in [300, 400, 500, 600, 700] {
            busy(&mut sender, at - 100, at);
            sender.on_feedback(ms(at), &report(500_000, 0.0));
        }
        assert_eq!(sender.target().as_bps(), 1_000_000);
    }

    #[test]
    fn after_a_loss_the_equation_rules() {
        let mut sender = sender();
        busy(&mut sender, 0, 1000);
        sender.on_feedback(ms(100), &report(5_000_000, 0.01));
        let expected = equation::rfc5348(SIZE, RTT, 0.01);
        assert_eq!(sender.target().as_bps(), expected as u64);
        assert_eq!(sender.estimate().loss, Ratio::new(0.01));
        // Never above twice the greatest receive rate of two round-trip times.
        let received = [400_000, 400_000, 400_000, 200_000, 200_000, 200_000];
        let targets = (2..).zip(received).map(|(n, received)| {
            busy(&mut sender, 100 * (n - 1), 100 * n);
            sender.on_feedback(ms(100 * n), &report(received, 0.01));
            sender.target().as_bps()
        });
        let equation = expected as u64;
        let targets: Vec<u64> = targets.collect();
        assert_eq!(targets, [equation, equation, 800_000, 800_000, 800_000, 400_000]);
    }

    #[test]
    fn without_data_to_send_a_loss_limits_it_to_what_is_received() {
        let mut sender = sender();
        sender.on_feedback(ms(100), &report(12_000, 0.0));
        // 0.1 Mbit/s, where three times as much is allowed.
        for at in (0..60).map(|n| 120 * n) {
            sender.on_sent(ms(at), SIZE);
        }
        sender.on_feedback(ms(7000), &report(100_000, 0.0));
        assert_eq!(sender.target().as_bps(), INITIAL, "it does not fall below");
        sender.on_feedback(ms(7100), &report(100_000, 0.001));
        assert_eq!(sender.target().as_bps(), 85_000);
    }

    /// The interval that it closes may be longer than the mean of those before it, so the rate of events does not rise.
    #[test]
    fn without_data_to_send_a_loss_event_limits_it_whatever_its_rate() {
        for (began, limit) in [(false, 200_000.0), (true, 85_000.0)] {
            let mut sender = sender();
            sender.loss_event_rate = 0.001;
            let loss_event_rate = Ratio::new(0.001).unwrap();
            let report = Report { receive_rate: BitRate::from_kbps(100), loss_event_rate };
            assert_eq!(sender.receive_limit(ms(1000), RTT, (report, began)), limit);
        }
    }

    #[test]
    fn rare_reports_do_not_make_a_busy_sender_look_limited() {
        let mut sender = sender();
        let rtt = Duration::from_millis(40);
        busy(&mut sender, 0, 100);
        sender.limits.interval_was_limited(ms(100), rtt);
        for n in 1..10 {
            busy(&mut sender, 100 * n, 100 * (n + 1));
            assert!(!sender.limits.interval_was_limited(ms(100 * (n + 1)), rtt), "report {n}");
        }
        assert!(sender.limits.interval_was_limited(ms(1300), rtt), "nothing was sent since");
    }

    #[test]
    fn counts_before_the_first_report_of_packets_are_no_losses() {
        let mut sender = sender();
        sender.on_feedback(ms(100), &Feedback::counts(2, 2).with_rtt(RTT));
        // A number at random, on the receiver's clock.
        let packets = (0..10).map(|n| PacketReport {
            sequence: 40_000 + n,
            size: SIZE,
            sent: ms(100 + n),
            arrived: Arrived::At(Time::from_secs(70_000) + Duration::from_millis(n)),
            ecn_ce: false,
        });
        let told = Feedback { packets: packets.collect(), ..Feedback::default() };
        sender.on_feedback(ms(200), &told.with_rtt(RTT));
        assert_eq!(sender.estimate().loss, Ratio::new(0.0));
    }

    #[test]
    fn arrivals_say_what_was_received_whenever_their_reports_come() {
        // The time is known of each packet, or of the last in a report.
        for known in [1, 10] {
            let mut sender = sender();
            // 1500 bytes each 10 ms; ten in a report, two of which arrive at once and claim much.
            for (n, at) in [(0, 150), (1, 250), (2, 350), (3, 351)] {
                let arrived = |k: u64| (k % known == known - 1).then_some(ms(10 * k + 40));
                let packets = (10 * n..10 * n + 10).map(|k| PacketReport {
                    sequence: k,
                    size: SIZE,
                    sent: ms(10 * k),
                    arrived: arrived(k).map_or(Arrived::Untimed, Arrived::At),
                    ecn_ce: false,
                });
                let (packets, claimed) = (packets.collect(), report(100_000_000, 0.0));
                let told = Feedback { packets, loss_event_rate: None, ..claimed };
                let (measured, _) = sender.measured(ms(at), &told, RTT).unwrap();
                let kbps = measured.receive_rate.as_bps() / 1000;
                assert!(n == 0 || (1100..1400).contains(&kbps), "{known}, {n}: {kbps}");
                assert_eq!(measured.loss_event_rate, Ratio::default());
            }
        }
    }

    #[test]
    fn silence_halves_the_rate_every_four_round_trip_times() {
        let mut sender = sender();
        assert_eq!(sender.next_timer(), Some(ms(2000)), "for the first report");
        busy(&mut sender, 0, 1);
        sender.on_feedback(ms(100), &report(2_000_000, 0.01));
        let expected = equation::rfc5348(SIZE, RTT, 0.01);
        for halvings in 1..=4 {
            assert_eq!(sender.next_timer(), Some(ms(100 + 400 * halvings)));
            busy(&mut sender, 200, 201);
            sender.on_timer(ms(100 + 400 * halvings));
            let halved = (expected / 2f64.powi(halvings as i32)) as u64;
            assert!(sender.target().as_bps().abs_diff(halved) <= 1, "{}", sender.target());
        }
    }

    #[test]
    fn who_sends_nothing_keeps_a_modest_rate() {
        let mut sender = sender();
        sender.on_feedback(ms(100), &report(12_000, 0.0));
        (1..100).for_each(|n| sender.on_timer(ms(1000 * n)));
        assert_eq!(sender.target().as_bps(), INITIAL);
    }

    #[test]
    fn packets_follow_more_slowly_while_the_queue_grows() {
        let mut sender = sender();
        sender.on_feedback(ms(100), &report(2_000_000, 0.01));
        assert_eq!(sender.pacing(), sender.target());
        sender.on_feedback(ms(200), &report(2_000_000, 0.01).with_rtt(RTT * 4));
        // √R: 0.9·√0.1 + 0.1·√0.4 of √0.4.
        let factor = 0.9 * 0.5 + 0.1;
        let ratio = sender.pacing().as_bps() as f64 / sender.target().as_bps() as f64;
        assert!((ratio - factor).abs() < 1e-4, "{ratio}");
    }

    #[test]
    fn rare_reports_are_waited_for() {
        let mut sender = sender();
        for at in [0, 1000, 2000, 3000] {
            sender.on_feedback(ms(at), &report(2_000_000, 0.01));
        }
        let wait = sender.next_timer().unwrap() - ms(3000);
        assert_eq!(wait, Duration::from_secs(4), "four times the gap between reports");
    }
}
