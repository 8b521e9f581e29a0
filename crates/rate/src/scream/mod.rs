//! SCReAM v2: Self-Clocked Rate Adaptation for Multimedia (draft-ietf-ccwg-rfc8298bis-screamv2, the editors' copy of October
//! 2026). Sections here are those of the draft.
//!
//! A window of bytes in flight that losses, ECN marks (Classic or L4S) and queueing delay reduce; window and round-trip time give
//! the rate. It needs reports of each packet (RFC 8888), about one per frame (§5).
//!
//! Five parts are left out, each optional in the draft. They are the damping of jitter (`REDUCE_JITTER`), losses of link layers
//! (§4.5.2), the undershoot (§4.5.3), and the remedy for clocks that drift (§4.5.1; the least delay is that of the last ten
//! minutes). The fifth is the factors of §4.4 for frames that wait or vary, which `realtime::Share` takes care of. Competing
//! flows are compensated for (§4.5.4). Targets count whole IP packets, so there is no overhead to take off. The draft wants a
//! least rate without feedback (§8): here the target is halved at each silence, and what was in flight is forgotten. Packets that
//! were due while the timer of an endpoint was late leave together, 2 ms of the pace at most. The authors' program always sends
//! bursts of 0.5 ms, which §4.3 allows.
//!
//! Near its last congestion the window grows by a smaller share of itself (`scl_t`), as in draft -01, in the authors' program of July
//! 2026 and in libwebrtc. The editors' copy leaves that factor out; without it, no rate next to TCP Prague at 10 ms and more
//! changes by more than 4 Mbit/s (`over_dualpi2` in `tests`).

mod delay;
mod flight;
mod window;

use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

use crate::equation::Bounds;
use crate::rtt::Smoothed;
use crate::silence::Silence;
use crate::{Controller, Estimate, Feedback};
use delay::Delay;
use flight::Flight;
use window::{Seen, VIRTUAL_RTT, Window};

/// Size of a full packet until a larger one was sent, in bytes (MSS).
const MSS: f64 = 1000.0;
/// What may be in flight, in reference windows (REF_WND_OVERHEAD_MAX: without `REDUCE_JITTER` it is the overhead).
const OVERHEAD: f64 = 3.0;
/// How much faster than the target packets follow one another (PACKET_PACING_HEADROOM), and near the maximum at most
/// (MAX_RELAXED_PACING_FACTOR, from RELAXED_PACING_LIMIT_LOW of the maximum on).
const PACING: f64 = 1.5;
const RELAXED: f64 = 4.0;
const RELAXED_FROM: f64 = 0.8;
/// Least pace in bit/s (RATE_PACE_MIN).
const PACE_MIN: f64 = 50_000.0;
/// The target is so much below what window and round-trip time give, so that little waits in the sender (§4.4).
const BELOW: f64 = 1.2;
/// Weight of the latest packets in the share of lost ones, for records.
const LOSS_GAIN: f64 = 0.1;
/// The round-trip time before it is known.
const RTT_FIRST: Duration = Duration::from_millis(100);
/// Packets beyond count as large as this.
const SIZE_MAX: Bytes = Bytes::new(65_575);

/// Parameters of SCReAM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Whether marks mean L4S (RFC 9331), and not Classic ECN (RFC 3168).
    pub l4s: bool,
    /// The first target.
    pub initial: BitRate,
    /// The least and the most that the target may be (TARGET_BITRATE_MIN, TARGET_BITRATE_MAX).
    pub bounds: Bounds,
}

/// A sender that follows SCReAM v2.
#[derive(Debug, Clone)]
pub struct Scream {
    config: Config,
    window: Window,
    flight: Flight,
    delay: Delay,
    rtt: Smoothed,
    silence: Silence,
    /// What silence has left of the target: 1 after each report.
    heard: f64,
    mss: f64,
    loss: f64,
}

impl Scream {
    /// A sender that begins at `start`.
    pub fn new(config: Config, start: Time) -> Self {
        Self {
            config,
            window: Window::new(start, 0.0, config.l4s),
            flight: Flight::default(),
            delay: Delay::new(start),
            rtt: Smoothed::default(),
            silence: Silence::new(start),
            heard: 1.0,
            mss: MSS,
            loss: 0.0,
        }
    }

    fn round_trip(&self) -> Duration {
        self.rtt.rtt().unwrap_or(RTT_FIRST)
    }

    /// §4.4, within the bounds.
    fn rate(&self) -> f64 {
        let rate = match self.rtt.rtt() {
            None => self.config.initial.as_bps() as f64,
            Some(rtt) => {
                let ratio = (self.mss / self.window.bytes()).min(1.0);
                let small = 1.0 - (ratio - 0.1).clamp(0.0, 0.2);
                small * 8.0 * self.window.bytes() / rtt.as_secs_f64() / BELOW
            }
        };
        self.config.bounds.clamp(rate * self.heard).as_bps() as f64
    }

    /// The most bytes in flight (§4.3.1).
    fn send_window(&self) -> f64 {
        (self.window.bytes() * OVERHEAD).max(2.0 * self.mss)
    }
}

impl Controller for Scream {
    fn on_sent(&mut self, now: Time, size: Bytes) {
        let size = size.min(SIZE_MAX);
        self.mss = self.mss.max(size.get() as f64);
        self.flight.on_sent(now, size, self.round_trip());
        self.silence.on_sent();
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.on_timer(now);
        let first = self.rtt.rtt().is_none();
        if let Some(sample) = feedback.rtt {
            self.rtt.update(sample);
        }
        let rtt = self.round_trip();
        if first && self.rtt.rtt().is_some() {
            let initial = self.config.initial.as_bps() as f64;
            self.window.set(initial * BELOW * rtt.as_secs_f64() / 8.0);
        }
        let acked = self.flight.on_report(now, &feedback.packets, rtt);
        if acked.packets == 0 && acked.lost == 0 {
            return;
        }
        self.silence.on_report(now, rtt);
        self.heard = 1.0;
        let judged = (acked.packets + acked.lost) as f64;
        self.loss += LOSS_GAIN * (acked.lost as f64 / judged - self.loss);
        let delay_before = self.delay.average();
        if let Some(queueing) = acked.queueing {
            let every = VIRTUAL_RTT.min(rtt);
            self.delay.on_report(now, queueing, acked.lost > 0, (every, rtt));
        }
        let seen = Seen {
            acked,
            flight: &self.flight,
            delay: &self.delay,
            delay_before,
            rtt,
            mss: self.mss,
            at_most: self.rate() >= self.config.bounds.max.as_bps() as f64,
        };
        self.window.on_report(now, &seen);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.silence.next())
    }

    fn on_timer(&mut self, now: Time) {
        if self.silence.is_too_long(now, self.round_trip()) {
            self.heard /= 2.0;
            self.flight.forget();
        }
    }

    fn target(&self) -> BitRate {
        self.config.bounds.clamp(self.rate())
    }

    /// §4.3.2: faster than the target, so that a large frame leaves soon; the more, the nearer the target is to its maximum,
    /// where the path is not the limit.
    fn pacing(&self) -> BitRate {
        let rate = self.rate();
        let near = rate / self.config.bounds.max.as_bps() as f64;
        let relaxed = ((near - RELAXED_FROM) / (1.0 - RELAXED_FROM)).min(1.0);
        let slower = (1.0 - relaxed).clamp(1.0 / RELAXED, 1.0);
        BitRate::from_bps((rate.max(PACE_MIN) * PACING / slower) as u64)
    }

    fn is_blocked(&self) -> bool {
        self.flight.bytes() as f64 >= self.send_window()
    }

    fn estimate(&self) -> Estimate {
        let rtt = self.rtt.rtt();
        Estimate { rtt, loss: rtt.and_then(|_| Ratio::new(self.loss)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrived, PacketReport};

    fn scream() -> Scream {
        let kbps = BitRate::from_kbps;
        let bounds = Bounds { min: kbps(150), max: kbps(1500) };
        Scream::new(Config { l4s: false, initial: kbps(600), bounds }, Time::ZERO)
    }

    fn told(sequence: u64, sent: u64, arrived: u64) -> Feedback {
        let (sent, arrived) = (Time::from_millis(sent), Arrived::At(Time::from_millis(arrived)));
        let packet =
            PacketReport { sequence, size: Bytes::new(1000), sent, arrived, ecn_ce: false };
        let told = Feedback { packets: vec![packet], ..Feedback::counts(1, 1) };
        told.with_rtt(Duration::from_millis(100))
    }

    #[test]
    fn window_and_round_trip_time_give_the_rate() {
        let mut scream = scream();
        assert_eq!(scream.target(), BitRate::from_kbps(600));
        scream.on_sent(Time::ZERO, Bytes::new(1000));
        scream.on_feedback(Time::from_millis(100), &told(0, 0, 50));
        // 600 kbit/s · 100 ms · 1.2 are 9000 bytes, of which a packet is a ninth: 1.1 % less. What is in flight allows no more.
        assert!((scream.window.bytes() - 9000.0).abs() < 1e-6, "{}", scream.window.bytes());
        let expected = 600_000.0 * (1.0 - (1.0 / 9.0 - 0.1));
        assert!((scream.target().as_bps() as f64 - expected).abs() < 1.0, "{}", scream.target());
        assert!(
            (scream.pacing().as_bps() as f64 - expected * 1.5).abs() < 2.0,
            "{}",
            scream.pacing()
        );
    }

    #[test]
    fn packets_wait_while_three_windows_are_in_flight() {
        let mut scream = scream();
        for n in 0..9 {
            assert!(!scream.is_blocked(), "{n} kB of 9");
            scream.on_sent(Time::from_millis(n), Bytes::new(1000));
        }
        assert!(scream.is_blocked(), "three times the least window");
        scream.on_feedback(Time::from_millis(100), &told(0, 0, 50));
        assert!(!scream.is_blocked());
    }

    #[test]
    fn silence_halves_the_target_and_unblocks() {
        let mut scream = scream();
        (0..20).for_each(|n| scream.on_sent(Time::from_millis(n), Bytes::new(1000)));
        scream.on_timer(Time::from_secs(2));
        assert_eq!(scream.target(), BitRate::from_kbps(300));
        assert!(!scream.is_blocked());
        scream.on_feedback(Time::from_millis(2100), &told(0, 0, 50));
        assert!(scream.target() > BitRate::from_kbps(500), "heard again");
    }

    #[test]
    fn the_pace_is_relaxed_near_the_maximum() {
        let mut scream = scream();
        scream.config.initial = BitRate::from_kbps(1350);
        // Half of the way from 0.8 to 1: twice 1.5 times the target.
        assert_eq!(scream.pacing(), BitRate::from_kbps(4050));
        scream.config.initial = BitRate::from_kbps(1500);
        assert_eq!(scream.pacing(), BitRate::from_kbps(9000), "at most four times");
    }
}
