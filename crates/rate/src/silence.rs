//! Time without reports, where a specification leaves open what to do about it.

use suiro_units::{Duration, Time};

/// The least time without a report that is silence.
const LEAST: Duration = Duration::from_millis(500);
/// Gaps between reports beyond count as this long.
const GAP_MAX: Duration = Duration::from_secs(5);
/// Weight of the latest gap in the mean.
const GAIN: f64 = 0.1;
/// Silence begins after so many round-trip times or gaps between reports, whichever are longer: as many as
/// RFC 5348 §4.3 waits.
const TIMES: u64 = 4;

/// The watch for reports that no longer come.
#[derive(Debug, Clone)]
pub struct Silence {
    at: Time,
    /// Whether something was sent since the watch began to wait: without packets there is nothing to report.
    sent: bool,
    latest: Option<Time>,
    /// The mean gap between reports, in seconds.
    gap: Option<f64>,
}

impl Silence {
    /// A watch that begins to wait at `start`, for twice as long as later: the first report takes a handshake's time.
    pub fn new(start: Time) -> Self {
        Self { at: start + LEAST * (TIMES / 2), sent: false, latest: None, gap: None }
    }

    /// A packet has left.
    pub fn on_sent(&mut self) {
        self.sent = true;
    }

    /// A report has come over a path with that round-trip time.
    pub fn on_report(&mut self, now: Time, rtt: Duration) {
        if let Some(latest) = self.latest {
            let gap = now.saturating_since(latest).min(GAP_MAX).as_secs_f64();
            self.gap = Some(self.gap.map_or(gap, |mean| mean + GAIN * (gap - mean)));
        }
        self.latest = Some(now.max(self.latest.unwrap_or(now)));
        self.restart(now, rtt);
    }

    /// When it would be silence.
    pub const fn next(&self) -> Time {
        self.at
    }

    /// True once when nothing was heard of what was sent for too long; then it waits again.
    pub fn is_too_long(&mut self, now: Time, rtt: Duration) -> bool {
        if now < self.at {
            return false;
        }
        let silent = self.sent;
        self.restart(now, rtt);
        silent
    }

    fn restart(&mut self, now: Time, rtt: Duration) {
        let gap = self.gap.map_or(Duration::ZERO, Duration::from_secs_f64);
        self.at = now + (rtt.max(gap) * TIMES).max(LEAST);
        self.sent = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn it_waits_for_four_round_trips_or_gaps() {
        let rtt = Duration::from_millis(40);
        let mut silence = Silence::new(ms(0));
        assert_eq!(silence.next(), ms(1000));
        silence.on_sent();
        silence.on_report(ms(100), rtt);
        assert_eq!(silence.next(), ms(600), "at least half a second");
        silence.on_report(ms(300), Duration::from_millis(200));
        assert_eq!(silence.next(), ms(1100), "of 200 ms both");
    }

    #[test]
    fn who_sends_nothing_is_not_answered() {
        let rtt = Duration::from_millis(40);
        let mut silence = Silence::new(ms(0));
        assert!(!silence.is_too_long(ms(1000), rtt), "nothing was sent");
        silence.on_sent();
        assert!(!silence.is_too_long(ms(1499), rtt));
        assert!(silence.is_too_long(ms(1500), rtt));
        assert!(!silence.is_too_long(ms(1501), rtt), "once");
    }
}
