//! GCC: Google Congestion Control (draft-ietf-rmcat-gcc-02), with what libwebrtc has changed since: the trendline filter, the
//! estimator of what passes, probes, the detection of sources that send less than they may, and loss-based estimation v2. The
//! constants are the defaults of libwebrtc in 2024.
//!
//! The rate is the lower one of what the delay allows ([`aimd`]) and what losses allow ([`loss`]). It needs reports of each packet
//! (RFC 8888, or transport-wide); each packet is judged once.
//!
//! Left out of libwebrtc: the overshoot detector of its receiver side, the pushback by a congestion window, ECN, and what several
//! streams share. Loss-based estimation has no hold after a decrease, counts packets and not bytes, sends no padding, and allows no
//! probe while it limits the rate, even if it lets the rate grow. The throughput estimator does not count unacknowledged data,
//! as every packet is reported here. The older estimator, `BitrateEstimator`, is left out as well.
//!
//! Its reaction to missing reports is a timeout by the round-trip time (`RttBasedBackoff`); here the rate is halved at each silence,
//! as with the other controllers, and after it the path is probed as at the start. A probe is filled up with packets of padding
//! (`wants_padding`). Packets leave in bursts of 5 ms, as the draft has it; libwebrtc's pacer now allows 40 ms, at which most frames
//! leave at once.

mod aimd;
mod arrival;
mod loss;
mod probe;
mod throughput;

use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

use crate::equation::Bounds;
use crate::rtt::Smoothed;
use crate::silence::Silence;
use crate::{Arrived, Controller, Estimate, Feedback, PacketReport};
use aimd::{Aimd, Input};
use arrival::{Trendline, Usage};
use loss::LossBased;
use probe::{Limited, Prober};
use throughput::Throughput;

/// How much faster than the target packets follow one another (libwebrtc's pacing factor).
const PACING: f64 = 2.5;
/// Packets may leave in groups of this length (draft-ietf-rmcat-gcc-02 §4: `burst_time`).
const BURST: Duration = Duration::from_millis(5);
/// The round-trip time before it is known.
const RTT_FIRST: Duration = Duration::from_millis(200);
/// After a pause of this length in arrivals, the delay is judged anew.
const PAUSE: Duration = Duration::from_secs(2);
/// Times and sizes beyond count as this, so that no sum overflows.
const TIME_MAX: Time = Time::from_nanos(u64::MAX / 4);
const SIZE_MAX: Bytes = Bytes::new(65_575);

/// Parameters of GCC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The first target.
    pub initial: BitRate,
    /// The least and the most that the target may be.
    pub bounds: Bounds,
}

/// A sender that follows GCC.
#[derive(Debug, Clone)]
pub struct Gcc {
    config: Config,
    target: f64,
    trend: Trendline,
    aimd: Aimd,
    loss: LossBased,
    throughput: Throughput,
    prober: Prober,
    limited: Limited,
    usage: Usage,
    rtt: Smoothed,
    silence: Silence,
    /// The first packet that no report was about.
    next: u64,
    latest_arrival: Option<Time>,
    flows: bool,
    /// Whether the last thing that was heard is silence.
    silent: bool,
}

impl Gcc {
    /// A sender that begins at `start`.
    pub fn new(config: Config, start: Time) -> Self {
        let bps = |rate: BitRate| rate.as_bps() as f64;
        let bounds = (bps(config.bounds.min), bps(config.bounds.max));
        let initial = bps(config.initial).clamp(bounds.0, bounds.1);
        let mut limited = Limited::default();
        limited.set(initial);
        Self {
            config,
            target: initial,
            trend: Trendline::default(),
            aimd: Aimd::new(initial, bounds, start),
            loss: LossBased::new(bounds.0),
            throughput: Throughput::default(),
            prober: Prober::new(initial, bounds.1, start),
            limited,
            usage: Usage::Normal,
            rtt: Smoothed::default(),
            silence: Silence::new(start),
            next: 0,
            latest_arrival: None,
            flows: false,
            silent: false,
        }
    }

    fn round_trip(&self) -> Duration {
        self.rtt.rtt().unwrap_or(RTT_FIRST)
    }

    /// Takes what is new of a report: whether anything was, and what a probe has found, with the rate that it tried.
    fn take(&mut self, packets: &[PacketReport]) -> (bool, Option<(f64, f64)>) {
        let (mut new, mut found) = (false, None);
        // One that arrived, but not known when, counts as having come with the one before it.
        let (mut arrivals, mut latest) = (Vec::new(), self.latest_arrival);
        for packet in packets {
            if packet.sequence < self.next {
                continue;
            }
            self.next = packet.sequence.saturating_add(1);
            new = true;
            let time = packet.arrived.time().map(|at| at.min(TIME_MAX));
            let packet = PacketReport {
                size: packet.size.min(SIZE_MAX),
                sent: packet.sent.min(TIME_MAX),
                arrived: time.map_or(packet.arrived, Arrived::At),
                ..*packet
            };
            let bytes = packet.size.get() as f64;
            let probed = self.prober.probed();
            found = probed.zip(self.prober.on_packet(&packet)).or(found);
            self.loss.on_packet(packet.sent, bytes, packet.arrived.is_missing());
            latest = time.or(latest);
            arrivals.extend(latest.filter(|_| !packet.arrived.is_missing()).map(|at| (at, packet)));
        }
        // Packets that overtook others count in the order in which they came.
        arrivals.sort_by_key(|(at, _)| *at);
        for (at, packet) in arrivals {
            self.restart_after_pause(at);
            self.throughput.on_packet(at, packet.sent, packet.size.get() as f64);
            if let Arrived::At(arrived) = packet.arrived {
                self.trend.on_packet(packet.sent, arrived);
            }
        }
        (new, found)
    }

    fn restart_after_pause(&mut self, arrived: Time) {
        let before = self.latest_arrival.replace(arrived);
        if before.is_some_and(|before| arrived.saturating_since(before) > PAUSE) {
            self.trend = Trendline::default();
        }
    }

    fn set(&mut self, now: Time, bps: f64) {
        let before = self.target;
        self.target = self.config.bounds.clamp(bps).as_bps() as f64;
        self.limited.set(self.target);
        self.prober.on_change(now, before, self.target);
    }

    /// The rate before anything was measured is the first one, unless losses or an overuse lower it.
    fn update(&mut self, now: Time, found: Option<(f64, f64)>) {
        let usage = self.trend.usage();
        let passes = self.throughput.bps();
        let found = found.filter(|_| usage != Usage::Over);
        match found {
            Some((_, rate)) => self.aimd.set(now, rate),
            None => self.aimd.update(now, Input { usage, passes, rtt: self.round_trip() }),
        }
        let recovered = self.usage == Usage::Under && usage == Usage::Normal;
        self.usage = usage;
        let limited = self.limited.since();
        let allowed = self.loss.update(now, self.aimd.rate(), passes.filter(|_| limited.is_none()));
        self.set(now, allowed);
        // While a queue grows or drains, or losses limit the rate, a probe would show only that.
        if usage == Usage::Normal && !self.loss.limits() {
            if recovered && self.limited.is_or_was(now) {
                self.prober.on_recovery(now, self.target);
            }
            let since = limited.filter(|_| self.aimd.is_measured());
            self.prober.on_target(now, self.target, found, since);
        }
        self.prober.on_time(now, self.flows);
    }
}

impl Controller for Gcc {
    fn on_sent(&mut self, now: Time, size: Bytes) {
        let bytes = size.min(SIZE_MAX).get() as f64;
        self.flows = true;
        self.prober.on_sent(now, bytes);
        self.prober.on_time(now, true);
        self.limited.on_sent(now, bytes);
        self.silence.on_sent();
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.on_timer(now);
        if let Some(sample) = feedback.rtt {
            self.rtt.update(sample);
        }
        let (new, found) = self.take(&feedback.packets);
        if !new {
            return;
        }
        self.silence.on_report(now, self.round_trip());
        if std::mem::take(&mut self.silent) {
            self.prober.begin(now, self.target);
        }
        self.update(now, found);
    }

    fn next_timer(&self) -> Option<Time> {
        let silence = self.silence.next();
        Some(self.prober.next().map_or(silence, |at| at.min(silence)))
    }

    fn on_timer(&mut self, now: Time) {
        self.prober.on_time(now, self.flows);
        if self.silence.is_too_long(now, self.round_trip()) {
            self.silent = true;
            self.prober.clear();
            self.aimd.forget();
            self.aimd.set(now, self.target / 2.0);
            self.loss.set(self.aimd.rate());
            self.set(now, self.aimd.rate());
        }
    }

    fn target(&self) -> BitRate {
        self.config.bounds.clamp(self.target)
    }

    fn pacing(&self) -> BitRate {
        let pace = self.prober.rate().unwrap_or(self.target * PACING);
        BitRate::from_bps(pace as u64).max(self.config.bounds.min)
    }

    fn burst(&self) -> Duration {
        BURST
    }

    fn wants_padding(&self) -> bool {
        self.prober.rate().is_some()
    }

    fn estimate(&self) -> Estimate {
        let rtt = self.rtt.rtt();
        Estimate { rtt, loss: rtt.and_then(|_| Ratio::new(self.loss.loss())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gcc() -> Gcc {
        let kbps = BitRate::from_kbps;
        let bounds = Bounds { min: kbps(100), max: kbps(4000) };
        Gcc::new(Config { initial: kbps(300), bounds }, Time::ZERO)
    }

    /// Sends and reports in steps of 50 ms at the pace while probing, else at the target, over an empty path; the target in kbit/s
    /// after each step.
    fn run(gcc: &mut Gcc, steps: u64) -> Vec<u64> {
        let (mut sequence, mut next, mut targets) = (0, Time::ZERO, Vec::new());
        for step in 1..=steps {
            let end = Time::from_millis(50 * step);
            let mut packets = Vec::new();
            while next < end {
                gcc.on_sent(next, Bytes::new(1000));
                let arrived = Arrived::At(next + Duration::from_millis(20));
                let size = Bytes::new(1000);
                packets.push(PacketReport { sequence, size, sent: next, arrived, ecn_ce: false });
                sequence += 1;
                let rate = if gcc.wants_padding() { gcc.pacing() } else { gcc.target() };
                next += Bytes::new(1000) / rate;
            }
            let told = Feedback { packets, ..Feedback::default() };
            gcc.on_feedback(end, &told.with_rtt(Duration::from_millis(40)));
            targets.push(gcc.target().as_bps() / 1000);
        }
        targets
    }

    #[test]
    fn probes_find_a_fast_path_within_a_second() {
        let targets = run(&mut gcc(), 30);
        assert!(targets[6] > 800 && targets[29] > 3500, "{targets:?}");
    }

    #[test]
    fn packets_that_overtake_others_hide_no_throughput() {
        let mut gcc = gcc();
        for report in 0..30_u64 {
            let packet = |n: u64| {
                // Each second packet comes 1 ms before the one in front of it.
                let swapped = if n.is_multiple_of(2) { n + 1 } else { n - 1 };
                let arrived = Arrived::At(Time::from_millis(20 + 10 * swapped));
                let (size, sent) = (Bytes::new(1000), Time::from_millis(10 * n));
                PacketReport { sequence: n, size, sent, arrived, ecn_ce: false }
            };
            let packets = (10 * report..10 * report + 10).map(packet).collect();
            let told = Feedback { packets, ..Feedback::default() };
            gcc.on_feedback(Time::from_millis(100 * report + 150), &told);
        }
        let kbps = gcc.throughput.bps().unwrap_or(0.0) / 1e3;
        assert!((kbps - 800.0).abs() < 60.0, "{kbps}");
    }

    #[test]
    fn packets_that_came_at_an_unknown_time_are_throughput_and_no_delay() {
        let mut gcc = gcc();
        for report in 0..30_u64 {
            let packet = |n: u64| {
                // The time is known of the first of ten; they leave 10 ms apart, and take 20 ms.
                let sent = Time::from_millis(10 * n);
                let known = n.is_multiple_of(10);
                let at = Arrived::At(sent + Duration::from_millis(20));
                let (size, arrived) = (Bytes::new(1000), if known { at } else { Arrived::Untimed });
                PacketReport { sequence: n, size, sent, arrived, ecn_ce: false }
            };
            let packets = (10 * report..10 * report + 10).map(packet).collect();
            let told = Feedback { packets, ..Feedback::default() };
            gcc.on_feedback(Time::from_millis(100 * report + 150), &told);
            assert_eq!(gcc.usage, Usage::Normal);
        }
        let kbps = gcc.throughput.bps().unwrap_or(0.0) / 1e3;
        assert!((kbps - 800.0).abs() < 60.0, "{kbps}");
        assert_eq!(gcc.loss.loss(), 0.0);
    }

    #[test]
    fn what_a_probe_finds_while_the_queue_grows_asks_for_no_other() {
        for (grows, probes) in [(0, true), (3, false)] {
            let mut gcc = gcc();
            gcc.prober.clear();
            gcc.flows = true;
            for n in 0..200 {
                let (sent, took) =
                    (Time::from_millis(10 * n), Duration::from_millis(20 + grows * n));
                gcc.trend.on_packet(sent, sent + took);
            }
            assert_eq!(gcc.trend.usage() == Usage::Over, grows > 0);
            gcc.update(Time::from_secs(3), Some((900e3, 890e3)));
            assert_eq!(gcc.wants_padding(), probes);
        }
    }

    #[test]
    fn silence_halves_the_target() {
        let mut gcc = gcc();
        gcc.on_sent(Time::from_millis(10), Bytes::new(1000));
        gcc.on_timer(Time::from_secs(3));
        assert_eq!(gcc.target(), BitRate::from_kbps(150));
        gcc.on_timer(Time::from_secs(20));
        assert_eq!(gcc.target(), BitRate::from_kbps(150), "nothing was sent");
    }

    #[test]
    fn counts_alone_change_nothing() {
        let mut gcc = gcc();
        for n in 0..50 {
            let counts = Feedback::counts(10, 0).with_rtt(Duration::from_millis(100));
            gcc.on_feedback(Time::from_millis(10 * n), &counts);
        }
        assert_eq!(gcc.target(), BitRate::from_kbps(300));
    }
}
