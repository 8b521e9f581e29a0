//! NADA: Network-Assisted Dynamic Adaptation (RFC 8698).
//!
//! Queueing delay, losses and ECN marks become one signal, which is compared with a reference that is the lower the
//! faster the flow. All of it is computed by the sender, from reports of each packet (§6.4, RFC 8888); reports of counts
//! alone say nothing of delays, and change nothing. Of §5.2.2, which moves the rates of encoder and pacer by up to 5 %
//! while packets wait in the sender, nothing is here: that is the sender's own business (`realtime::Share`).
//!
//! Three things that RFC 8698 leaves open, or that do not work as written:
//! - The mean loss interval leaves out the open one. With it (RFC 5348 §5.4), the mean of *n* intervals grows by at least
//!   a sixth of the open one, so that the latest loss never expired after seven of them.
//! - The rate is halved whenever nothing was heard of what was sent for half a second, four round-trip times, or four
//!   times the usual gap between reports, whichever is longest.
//! - Reports that come more often than every 75 ms are taken together, and gaps longer than TAU count as TAU.

mod path;

use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

use crate::equation::Bounds;
use crate::rtt::Smoothed;
use crate::silence::Silence;
use crate::{Controller, Estimate, Feedback};
use path::Path;

/// The signal at which a flow may have its maximum (Table 2: XREF), in seconds.
const XREF: f64 = 0.010;
/// Speed of the gradual update (Table 2: KAPPA).
const KAPPA: f64 = 0.5;
/// What a change of the signal counts for in it (Table 2: ETA).
const ETA: f64 = 2.0;
/// The longest round-trip time of the control loop (Table 2: TAU), in seconds.
const TAU: f64 = 0.5;
/// The interval of control (Table 2: DELTA).
const DELTA: Duration = Duration::from_millis(100);
/// Reports sooner after the latest update than this wait for the next one.
const SOONEST: Duration = Duration::from_millis(75);
/// Bound on the time that filtering takes (Table 2: DFILT).
const DFILT: Duration = Duration::from_millis(120);
/// Largest increase in the ramp-up (Table 2: GAMMA_MAX).
const GAMMA_MAX: f64 = 0.5;
/// Largest queueing delay that the ramp-up may cause (Table 2: QBOUND), in seconds.
const QBOUND: f64 = 0.050;

/// Parameters of NADA.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The weight PRIO of the flow; at one bottleneck, rates are proportional to it. Greater than 0.
    pub priority: f64,
    /// The first reference rate.
    pub initial: BitRate,
    /// The least and the most that the reference rate may be: RMIN and RMAX.
    pub bounds: Bounds,
}

/// A sender that follows RFC 8698.
#[derive(Debug, Clone)]
pub struct Nada {
    config: Config,
    /// The reference rate r_ref in bit/s.
    reference: f64,
    /// The signal of the update before, x_prev, in seconds.
    signal: f64,
    /// When the reference was last updated, t_last.
    updated: Time,
    /// Whether something was reported since then.
    news: bool,
    path: Path,
    rtt: Smoothed,
    silence: Silence,
}

impl Nada {
    /// A sender that begins at `start`.
    pub fn new(config: Config, start: Time) -> Self {
        Self {
            config,
            reference: config.initial.as_bps() as f64,
            signal: 0.0,
            updated: start,
            news: false,
            path: Path::default(),
            rtt: Smoothed::default(),
            silence: Silence::new(start),
        }
    }

    /// §4.3, on receiving a feedback report.
    fn update(&mut self, now: Time) {
        let delta = now.saturating_since(self.updated).as_secs_f64().min(TAU);
        self.path.smooth();
        let signal = self.path.signal();
        if self.path.is_underused() {
            self.ramp_up();
        } else {
            self.adjust(delta, signal);
        }
        self.set(self.reference);
        (self.signal, self.updated, self.news) = (signal, now, false);
    }

    /// Equations 3 and 4: as fast as packets arrive, and a share more, which makes no long queue before it is seen.
    fn ramp_up(&mut self) {
        let seen_after = self.rtt.rtt().unwrap_or_default() + DELTA + DFILT;
        let gamma = GAMMA_MAX.min(QBOUND / seen_after.as_secs_f64());
        let received = self.path.receiving_rate().as_bps() as f64;
        self.reference = self.reference.max((1.0 + gamma) * received);
    }

    /// Equations 5 to 7: towards the rate at which the signal is that of the equilibrium, and against its change.
    fn adjust(&mut self, delta: f64, signal: f64) {
        let max = self.config.bounds.max.as_bps() as f64;
        let offset = signal - self.config.priority * XREF * max / self.reference;
        let change = signal - self.signal;
        let share = KAPPA * (delta / TAU) * (offset / TAU) + KAPPA * ETA * change / TAU;
        self.reference -= share * self.reference;
    }

    /// Equations 8 and 9.
    fn set(&mut self, bps: f64) {
        self.reference = self.config.bounds.clamp(bps).as_bps() as f64;
    }

    fn round_trip(&self) -> Duration {
        self.rtt.rtt().unwrap_or(DELTA)
    }
}

impl Controller for Nada {
    fn on_sent(&mut self, _: Time, _: Bytes) {
        self.silence.on_sent();
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.on_timer(now);
        if let Some(sample) = feedback.rtt {
            self.rtt.update(sample);
        }
        let rtt = self.round_trip();
        if self.path.on_report(&feedback.packets, rtt) {
            self.silence.on_report(now, rtt);
            self.news = true;
        }
        if self.news && now.saturating_since(self.updated) >= SOONEST {
            self.update(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.silence.next())
    }

    fn on_timer(&mut self, now: Time) {
        if self.silence.is_too_long(now, self.round_trip()) {
            self.set(self.reference / 2.0);
        }
    }

    fn target(&self) -> BitRate {
        self.config.bounds.clamp(self.reference)
    }

    fn estimate(&self) -> Estimate {
        let rtt = self.rtt.rtt();
        Estimate { rtt, loss: rtt.and_then(|_| Ratio::new(self.path.loss())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrived, PacketReport};

    const KBPS: f64 = 1000.0;

    fn nada(initial: u64) -> Nada {
        let kbps = BitRate::from_kbps;
        let bounds = Bounds { min: kbps(150), max: kbps(1500) };
        Nada::new(Config { priority: 1.0, initial: kbps(initial), bounds }, Time::ZERO)
    }

    /// A report each 100 ms of packets of 1250 bytes that left each 10 ms, and took `delay`.
    fn report(nth: u64, delay: u64) -> (Time, Feedback) {
        let packet = |n: u64| {
            let sent = Time::from_millis(10 * n);
            PacketReport {
                sequence: n,
                size: Bytes::new(1250),
                sent,
                arrived: Arrived::At(sent + Duration::from_millis(delay)),
                ecn_ce: false,
            }
        };
        let packets: Vec<_> = (10 * nth..10 * (nth + 1)).map(packet).collect();
        let told = Feedback { packets, ..Feedback::counts(10, 10) };
        (Time::from_millis(100 * (nth + 1)), told.with_rtt(Duration::from_millis(100)))
    }

    #[test]
    fn the_ramp_up_is_bounded_by_the_queue_that_it_may_cause() {
        let mut nada = nada(150);
        for nth in 0..6 {
            let (now, told) = report(nth, 50);
            nada.on_feedback(now, &told);
        }
        // 50 packets in 500 ms are 1 Mbit/s; gamma is 50 / (100 + 100 + 120) = 0.15625.
        let expected = 1000.0 * KBPS * 1.15625;
        assert!((nada.target().as_bps() as f64 - expected).abs() < 1.0, "{}", nada.target());
    }

    #[test]
    fn the_gradual_update_is_that_of_the_equations() {
        let mut nada = nada(1000);
        let (now, told) = report(0, 50);
        nada.on_feedback(now, &told);
        let before = nada.reference;
        let (now, told) = report(1, 80);
        nada.on_feedback(now, &told);
        // The least of 15 samples is that of an empty queue: the signal is 0.
        let offset = -0.010 * 1500.0 * KBPS / before;
        let expected = before * (1.0 - 0.5 * 0.2 * offset / 0.5);
        assert!((nada.reference - expected).abs() < 1.0, "{} {expected}", nada.reference);
        let before = nada.reference;
        let (now, told) = report(2, 80);
        nada.on_feedback(now, &told);
        let offset = 0.030 - 0.010 * 1500.0 * KBPS / before;
        let share = 0.5 * 0.2 * offset / 0.5 + 0.5 * 2.0 * 0.030 / 0.5;
        let expected = before * (1.0 - share);
        assert!((nada.reference - expected).abs() < 1.0, "{} {expected}", nada.reference);
    }

    #[test]
    fn at_the_equilibrium_nothing_changes() {
        // 10 ms · 1500 / 500: a queue of 30 ms.
        let mut nada = nada(500);
        let (now, told) = report(0, 50);
        nada.on_feedback(now, &told);
        for nth in 1..20 {
            let (now, told) = report(nth, 80);
            nada.on_feedback(now, &told);
        }
        nada.reference = 500.0 * KBPS;
        for nth in 20..40 {
            let (now, told) = report(nth, 80);
            nada.on_feedback(now, &told);
        }
        assert_eq!(nada.target(), BitRate::from_kbps(500));
    }

    #[test]
    fn what_says_nothing_of_packets_changes_nothing() {
        let mut nada = nada(500);
        for nth in 0..50 {
            let counts = Feedback::counts(10, 0).with_rtt(Duration::from_millis(100));
            nada.on_feedback(Time::from_millis(10 * nth), &counts);
        }
        assert_eq!(nada.target(), BitRate::from_kbps(500));
    }

    #[test]
    fn silence_halves_the_rate_while_something_is_sent() {
        let mut nada = nada(1000);
        nada.on_timer(Time::from_secs(5));
        assert_eq!(nada.target(), BitRate::from_kbps(1000), "nothing was sent");
        for second in 6..10 {
            nada.on_sent(Time::from_secs(second), Bytes::new(1250));
            nada.on_timer(Time::from_secs(second));
        }
        assert_eq!(nada.target(), BitRate::from_kbps(150), "the least");
    }
}
