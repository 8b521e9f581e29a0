//! When reports are due: RFC 3550 §6.2 and §6.3, for the two members of a session of one stream.

use suiro_units::{BitRate, Duration, Time};

/// Share of the session's bandwidth that RTCP may take (RFC 3550 §6.2).
const SHARE: f64 = 0.05;

/// Shortest mean interval; half of it before the first report (§6.2).
const LEAST: Duration = Duration::from_secs(5);

/// §6.3.1: e − 3/2, which makes good for what reconsideration leaves too few.
const COMPENSATION: f64 = std::f64::consts::E - 1.5;

/// Gain of the mean size of RTCP packets (§6.3.3).
const GAIN: f64 = 1.0 / 16.0;

/// The timer of regular reports.
#[derive(Debug, Clone)]
pub struct Interval {
    session: BitRate,
    /// Mean size of the RTCP packets of all members, IP and UDP headers included.
    mean_bytes: f64,
    initial: bool,
    reduced: bool,
    last: Time,
    next: Time,
}

impl Interval {
    /// The timer of a member that joins now. `reduced`: the least interval is 360 s divided by the
    /// session's bandwidth in kbit/s, instead of 5 s (§6.2). `chance` is uniform in [0, 1).
    pub fn new(now: Time, session: BitRate, reduced: bool, chance: f64) -> Self {
        let mut interval =
            Self { session, mean_bytes: 100.0, initial: true, reduced, last: now, next: now };
        interval.next = now + interval.draw(chance);
        interval
    }

    /// When the next regular report is due.
    pub fn next(&self) -> Time {
        self.next
    }

    /// The interval before randomness is added (§6.3.1): Td. A quarter of the bandwidth belongs to the
    /// senders where they are at most a quarter of the members (§6.2); here they are one of two, so
    /// that all share all.
    pub fn mean(&self) -> Duration {
        const MEMBERS: f64 = 2.0;
        let bits = self.session.as_bps().max(1) as f64 * SHARE;
        let computed = Duration::from_secs_f64(MEMBERS * self.mean_bytes * 8.0 / bits);
        let least = if self.reduced {
            Duration::from_secs_f64(360_000.0 / self.session.as_bps().max(1) as f64).min(LEAST)
        } else if self.initial {
            LEAST / 2
        } else {
            LEAST
        };
        computed.max(least)
    }

    /// An RTCP packet of any member, its size that of the IP packet.
    pub fn on_packet(&mut self, bytes: u64) {
        self.mean_bytes += GAIN * (bytes as f64 - self.mean_bytes);
    }

    /// A regular report leaves: when the next is due.
    pub fn on_report(&mut self, now: Time, chance: f64) {
        self.initial = false;
        self.last = now;
        self.next = now + self.draw(chance);
    }

    /// The session's bandwidth is another now; the report at hand is due accordingly, not later.
    pub fn set_session(&mut self, session: BitRate, chance: f64) {
        self.session = session;
        self.next = self.next.min(self.last + self.draw(chance));
    }

    fn draw(&self, chance: f64) -> Duration {
        self.mean().mul_f64((0.5 + chance) / COMPENSATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_comes_sooner_and_none_before_its_time() {
        let at = |chance| Interval::new(Time::ZERO, BitRate::from_mbps(5), false, chance);
        // 2.5 s × 0.5 to 1.5, over 1.21828.
        assert!((at(0.0).next().as_secs_f64() - 1.0260).abs() < 1e-3);
        assert!((at(0.999_999).next().as_secs_f64() - 3.0781).abs() < 1e-3);
        let mut interval = at(0.5);
        interval.on_report(Time::from_secs(10), 0.5);
        assert!((interval.next().as_secs_f64() - 14.1041).abs() < 1e-3);
    }

    #[test]
    fn slow_sessions_report_seldom_and_fast_ones_may_report_often() {
        let mean = |kbps, reduced| {
            let mut interval = Interval::new(Time::ZERO, BitRate::from_kbps(kbps), reduced, 0.5);
            interval.on_report(Time::ZERO, 0.5);
            interval.mean().as_secs_f64()
        };
        // RFC 3550 §6.2: 360 over the bandwidth in kbit/s.
        assert!((mean(3600, true) - 0.1).abs() < 1e-9);
        // Two members of 100 bytes each: 1600 bits at 5 % of 1 kbit/s.
        assert!((mean(1, false) - 32.0).abs() < 1e-9);
        assert_eq!(mean(3600, false), 5.0);
    }

    #[test]
    fn a_faster_session_does_not_wait_for_the_slow_one_s_report() {
        let mut interval = Interval::new(Time::ZERO, BitRate::from_bps(100), false, 0.5);
        let slow = interval.next();
        interval.set_session(BitRate::from_mbps(1), 0.5);
        assert!(interval.next() < slow);
        interval.set_session(BitRate::from_bps(10), 0.5);
        assert!(interval.next() < slow, "nor is it put off");
    }
}
