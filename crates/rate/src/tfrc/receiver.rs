//! The receiver's side of TFRC (RFC 5348 §6).

use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

use super::LossHistory;
use crate::equation;
use crate::rtt::bounded;

/// Stands for the round-trip time until it is known.
const RTT_UNKNOWN: Duration = Duration::from_millis(200);

/// Watches packets arrive, and says when to report what. It may as well run at the sender, over
/// reports of single packets.
#[derive(Debug, Clone)]
pub struct Receiver {
    history: LossHistory,
    packet: Bytes,
    rtt: Option<Duration>,
    /// Whether the loss history has begun.
    begun: bool,
    window: Window,
    next_report: Option<Time>,
}

/// What arrived since a time.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    since: Option<Time>,
    bytes: u64,
    /// The rate of the window before, in bit/s.
    before: Option<f64>,
}

/// What the receiver reports to the sender (RFC 5348 §3.2.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// What arrived over the last round-trip time or since the last report, whichever is longer.
    pub receive_rate: BitRate,
    /// The loss event rate; 0 before the first loss event.
    pub loss_event_rate: Ratio,
}

impl Receiver {
    /// A receiver of packets of about this size: the *s* of the throughput equation.
    pub fn new(packet: Bytes) -> Self {
        let (history, window) = (LossHistory::default(), Window::default());
        Self { history, packet, rtt: None, begun: false, window, next_report: None }
    }

    /// A packet has arrived. `rtt` is the sender's estimate, which data packets carry
    /// (RFC 5348 §3.2.1) or the receiver measures; `None`: as before. Until it is known each
    /// loss is an event of its own. True if a new loss event began.
    pub fn on_packet(
        &mut self,
        now: Time,
        sequence: u64,
        size: Bytes,
        rtt: Option<Duration>,
    ) -> bool {
        self.rtt = rtt.map(bounded).or(self.rtt);
        self.window.bytes = self.window.bytes.saturating_add(size.get());
        // RFC 5348 §6.3: the first packet is reported at once; §6.1: so is a new loss event.
        let first = self.history.highest().is_none();
        self.window.since.get_or_insert(now);
        let began = self.history.on_packet(now, sequence, self.rtt.unwrap_or_default());
        if began {
            self.begin_history(now);
        }
        if first || began {
            self.next_report = Some(now);
        } else if self.next_report.is_none() {
            self.next_report = Some(now + self.rtt.unwrap_or(RTT_UNKNOWN));
        }
        began
    }

    /// Counts have arrived in place of packets ([`LossHistory::on_counts`]).
    pub(super) fn on_counts(
        &mut self,
        since: Time,
        now: Time,
        (expected, lost): (u64, u64),
        rtt: Duration,
    ) -> bool {
        self.rtt = Some(bounded(rtt));
        let bytes = expected.saturating_sub(lost).saturating_mul(self.packet.get());
        self.window.since.get_or_insert(since);
        self.window.bytes = self.window.bytes.saturating_add(bytes);
        let began = self.history.on_counts(since, now, expected, lost, rtt);
        if began {
            self.begin_history(now);
        }
        began
    }

    /// When to ask for a [`Self::report`]; `None`: when a packet has arrived.
    pub fn next_report(&self) -> Option<Time> {
        self.next_report
    }

    /// The report that is due; `None` while none is. RFC 5348 §6.2: one per round-trip time, and
    /// none while nothing arrives.
    pub fn report(&mut self, now: Time) -> Option<Report> {
        if self.next_report.is_none_or(|at| now < at) {
            return None;
        }
        self.next_report = None;
        Some(self.current(now))
    }

    /// What there is to report now, due or not. Begins a new window if this one is long enough.
    pub fn current(&mut self, now: Time) -> Report {
        let rtt = self.rtt.unwrap_or(RTT_UNKNOWN);
        let rate = self.window.rate(now, rtt);
        self.window.turn(now, rtt, rate);
        let loss_event_rate = self.history.loss_event_rate().unwrap_or_default();
        Report { receive_rate: BitRate::from_bps(rate as u64), loss_event_rate }
    }

    /// The number of the highest packet, and when it arrived: what a sender needs to find the
    /// round-trip time.
    pub fn highest(&self) -> Option<(u64, Time)> {
        self.history.highest()
    }

    /// RFC 5348 §6.3.1: at the first loss event the history begins with the interval at which the
    /// equation gives the rate received until then; while nothing more than this loss is known,
    /// that is the rate that the path carried.
    fn begin_history(&mut self, now: Time) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let rtt = self.rtt.unwrap_or(RTT_UNKNOWN);
        let rate = self.window.rate(now, rtt);
        // No less than half a packet per round-trip time.
        let least = self.packet.bits() as f64 / rtt.as_secs_f64() / 2.0;
        let p = equation::loss_for(self.packet, rtt, rate.max(least));
        self.history.set_first_interval(1.0 / p);
    }
}

impl Window {
    /// What arrives per second, in bit/s, over a round-trip time at least: what is missing at the
    /// beginning is taken from the window before.
    fn rate(&self, now: Time, rtt: Duration) -> f64 {
        let elapsed = self.since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        let bits = self.bytes as f64 * 8.0;
        if elapsed >= rtt {
            return bits / elapsed.as_secs_f64();
        }
        let missing = 1.0 - elapsed / rtt;
        bits / rtt.as_secs_f64() + self.before.map_or(0.0, |before| before * missing)
    }

    /// Begins anew, unless less than a round-trip time has passed.
    fn turn(&mut self, now: Time, rtt: Duration, rate: f64) {
        if self.since.is_some_and(|since| now.saturating_since(since) >= rtt) {
            *self = Self { since: Some(now), bytes: 0, before: Some(rate) };
        }
    }
}
