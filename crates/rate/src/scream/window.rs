//! The reference window (§4.2.1.3, §4.2.2): how many bytes may be in flight.

use suiro_units::{Duration, Time};

use super::delay::Delay;
use super::flight::{Acked, Flight};

/// Least reference window in bytes (MIN_REF_WND).
pub const LEAST: f64 = 3000.0;
/// What is left of the window after a loss (BETA_LOSS), and after a mark of Classic ECN (BETA_ECN).
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
/// Flows with shorter round trips behave as if they had this one (VIRTUAL_RTT).
pub const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Round trips after congestion in which the window grows more slowly (POST_CONGESTION_DELAY_RTTS).
const CAUTIOUS_ROUNDS: f64 = 100.0;
/// The share of itself that the window may grow by in a round trip (MUL_INCREASE_FACTOR).
const MULTIPLICATIVE: f64 = 0.02;
/// The window may be so many times what is in flight (BYTES_IN_FLIGHT_HEAD_ROOM).
const HEADROOM: f64 = 1.5;
/// Round trips after which the inflection point is set again (REF_WND_I_UPDATE_MAX_HOLD_RTTS).
const HOLD_ROUNDS: f64 = 50.0;
/// Weight of the latest share of marked packets (L4S_AVG_G).
const ALPHA_GAIN: f64 = 1.0 / 16.0;
/// The share of marked packets is computed at least this often (§4.2.1.3).
const ALPHA_EVERY: Duration = Duration::from_millis(10);

/// What the window is computed from when a report has come.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub acked: Acked,
    pub flight: &'a Flight,
    pub delay: &'a Delay,
    /// The average of the delay before this report, in seconds.
    pub delay_before: f64,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// Size of a full packet in bytes.
    pub mss: f64,
    /// Whether the target has reached its maximum: then the window does not grow.
    pub at_most: bool,
}

/// What congestion was found.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Congestion {
    Loss,
    Marks,
    /// The delay, with a share of marks that it stands for.
    Delay(f64),
}

/// The reference window and its state.
#[derive(Debug, Clone)]
pub struct Window {
    l4s: bool,
    bytes: f64,
    /// The window at the latest congestion, `ref_wnd_i`; whether it may be set again, and when it was.
    inflection: f64,
    inflection_open: bool,
    inflection_at: Time,
    /// The window after the latest reduction.
    lowest: f64,
    /// The smoothed share of marked packets, and what it is computed from.
    alpha: f64,
    alpha_at: Time,
    packets: u64,
    marked: u64,
    /// Losses and marks since the latest reduction.
    is_lost: bool,
    is_marked: bool,
    /// When the window was last reduced, and when a loss or a mark was last seen.
    reacted: Time,
    detected: Option<Time>,
}

impl Window {
    /// A window of that many bytes, of a sender of L4S (RFC 9331) or of Classic ECN.
    pub fn new(start: Time, bytes: f64, l4s: bool) -> Self {
        Self {
            l4s,
            bytes: bytes.max(LEAST),
            inflection: 1.0,
            inflection_open: true,
            inflection_at: start,
            lowest: 0.0,
            alpha: 0.0,
            alpha_at: start,
            packets: 0,
            marked: 0,
            is_lost: false,
            is_marked: false,
            reacted: start,
            detected: None,
        }
    }

    /// Bytes that may be in flight, about.
    pub const fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Begins again from that window.
    pub fn set(&mut self, bytes: f64) {
        self.bytes = bytes.max(LEAST);
    }

    /// A report has come.
    pub fn on_report(&mut self, now: Time, seen: &Seen<'_>) {
        self.count_marks(now, seen);
        self.is_lost |= seen.acked.lost > 0;
        self.is_marked |= seen.acked.marked > 0;
        if self.is_lost || self.is_marked {
            self.detected = Some(now);
        }
        // How far the window is from where congestion was last, from 0.1 to 1.
        let distance = (self.bytes - self.inflection) / self.inflection * 8.0;
        let scale = (distance * distance).clamp(0.1, 1.0);
        if let Some(congestion) = self.congestion(now, seen) {
            self.reduce(now, seen, congestion, scale);
        }
        self.increase(now, seen, scale);
    }

    /// §4.2.1.3: the share of marked packets, smoothed as DCTCP does.
    fn count_marks(&mut self, now: Time, seen: &Seen<'_>) {
        self.packets += seen.acked.packets;
        self.marked += seen.acked.marked;
        if now.saturating_since(self.alpha_at) >= ALPHA_EVERY.min(seen.rtt) && self.packets > 0 {
            let share = self.marked as f64 / self.packets as f64;
            self.alpha += ALPHA_GAIN * (share - self.alpha);
            (self.alpha_at, self.packets, self.marked) = (now, 0, 0);
        }
    }

    /// §4.2.2.1: at most once in a round trip, of a long one once in a virtual round trip.
    fn congestion(&mut self, now: Time, seen: &Seen<'_>) -> Option<Congestion> {
        if now.saturating_since(self.reacted) < VIRTUAL_RTT.min(seen.rtt) {
            return None;
        }
        let half = seen.delay.target() / 2.0;
        let average = seen.delay.average();
        match (self.is_lost, self.is_marked) {
            (true, _) => Some(Congestion::Loss),
            (false, true) => Some(Congestion::Marks),
            // A delay that falls is no congestion.
            (false, false) if average > half && average >= seen.delay_before => {
                Some(Congestion::Delay(((average - half) / half).min(1.0)))
            }
            (false, false) => None,
        }
    }

    fn reduce(&mut self, now: Time, seen: &Seen<'_>, congestion: Congestion, scale: f64) {
        let held = now.saturating_since(self.inflection_at).as_secs_f64();
        self.inflection_open |=
            self.bytes > self.lowest * 1.05 || held > HOLD_ROUNDS * seen.rtt.as_secs_f64();
        if self.inflection_open {
            self.inflection = self.bytes;
            (self.inflection_open, self.inflection_at) = (false, now);
        }
        // Reductions come as often as the virtual round trip: of a longer one, each is a part.
        let part = (seen.rtt / VIRTUAL_RTT).max(1.0);
        self.bytes *= match congestion {
            Congestion::Loss => BETA_LOSS,
            Congestion::Marks if !self.l4s => BETA_ECN,
            Congestion::Marks => {
                let long = VIRTUAL_RTT.max(seen.rtt) * 100;
                if now.saturating_since(self.reacted) > long {
                    self.bytes = self.bytes.min(seen.flight.most_before() as f64);
                }
                let steady = seen.delay.latest() < seen.delay.target() / 4.0;
                let near = if steady { scale.max(0.25) } else { 1.0 };
                1.0 - self.alpha / 2.0 / part * near
            }
            Congestion::Delay(share) => 1.0 - share / 2.0 / part,
        };
        self.bytes = self.bytes.max(LEAST);
        self.lowest = self.bytes;
        (self.reacted, self.is_lost, self.is_marked) = (now, false, false);
    }

    /// §4.2.2.2: by one packet per round trip, and by a share of the window if no congestion was seen for long; by less of either
    /// near the window at which congestion was last.
    fn increase(&mut self, now: Time, seen: &Seen<'_>, scale: f64) {
        let rtt = seen.rtt.as_secs_f64();
        let virtual_rtt = VIRTUAL_RTT.as_secs_f64();
        let calm = self.detected.map_or(1.0, |detected| {
            let since = now.saturating_since(detected).as_secs_f64();
            (since / (CAUTIOUS_ROUNDS * rtt.max(virtual_rtt))).min(1.0)
        });
        let acked = seen.acked.bytes.saturating_sub(seen.acked.bytes_marked) as f64;
        let ratio = (seen.mss / self.bytes).min(1.0);
        let growth = 1.0 + MULTIPLICATIVE * self.bytes / seen.mss * calm * scale;
        let increment = acked * ratio * (rtt / virtual_rtt).min(1.0) * scale.max(0.25) * growth;
        let allowed = seen.mss + seen.flight.most() as f64 * HEADROOM;
        let bytes = self.bytes + increment;
        if bytes <= allowed && !seen.at_most && increment > 0.0 {
            self.bytes = bytes;
            self.inflection_open = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::Bytes;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// 30,000 bytes in flight.
    fn flight() -> Flight {
        let mut flight = Flight::default();
        (0..30).for_each(|n| flight.on_sent(ms(n), Bytes::new(1000), RTT));
        flight
    }

    fn window(l4s: bool) -> Window {
        Window::new(Time::ZERO, 20_000.0, l4s)
    }

    fn report(window: &mut Window, at: u64, acked: Acked, delay_ms: u64) {
        let (flight, mut delay) = (flight(), Delay::new(Time::ZERO));
        for n in 0..40 {
            let queueing = Duration::from_millis(delay_ms);
            delay.on_report(ms(25 * n), queueing, false, (VIRTUAL_RTT, RTT));
        }
        let seen = Seen {
            acked,
            flight: &flight,
            delay: &delay,
            delay_before: 0.0,
            rtt: RTT,
            mss: 1000.0,
            at_most: false,
        };
        window.on_report(ms(at), &seen);
    }

    fn acked(packets: u64) -> Acked {
        Acked { bytes: 1000 * packets, packets, ..Acked::default() }
    }

    #[test]
    fn it_grows_by_a_packet_and_a_fiftieth_of_itself_per_round_trip() {
        let mut window = window(false);
        report(&mut window, 100, acked(20), 0);
        // 20,000 · 1000 / 20,000 · (1 + 0.02 · 20).
        assert!((window.bytes() - 21_400.0).abs() < 1e-6, "{}", window.bytes());
    }

    #[test]
    fn near_its_last_congestion_it_grows_by_a_quarter_of_a_packet_and_a_tenth_of_the_share() {
        let mut window = window(false);
        window.inflection = 20_000.0;
        report(&mut window, 100, acked(20), 0);
        // 20,000 · 1000 / 20,000 · 0.25 · (1 + 0.02 · 20 · 0.1).
        assert!((window.bytes() - 20_260.0).abs() < 1e-6, "{}", window.bytes());
    }

    #[test]
    fn losses_and_classic_marks_reduce_it_once_per_round_trip() {
        for (l4s, lost, marked, factor) in
            [(false, 1, 0, 0.7), (false, 0, 1, 0.8), (true, 2, 3, 0.7)]
        {
            let mut window = window(l4s);
            report(&mut window, 100, Acked { lost, marked, ..Acked::default() }, 0);
            assert_eq!(window.bytes(), 20_000.0 * factor, "{lost} lost, {marked} marked");
            report(&mut window, 110, Acked { lost, marked, ..Acked::default() }, 0);
            assert_eq!(window.bytes(), 20_000.0 * factor, "10 ms later");
        }
    }

    #[test]
    fn marks_of_l4s_reduce_it_by_half_their_share() {
        let mut window = window(true);
        let all = Acked { marked: 10, bytes_marked: 10_000, ..acked(10) };
        report(&mut window, 100, all, 0);
        // One sixteenth is the smoothed share; a round trip is four virtual ones; nothing is acknowledged unmarked.
        let expected = 20_000.0 * (1.0 - 1.0 / 16.0 / 2.0 / 4.0);
        assert!((window.bytes() - expected).abs() < 1e-6, "{}", window.bytes());
        assert_eq!(window.inflection, 20_000.0);
    }

    #[test]
    fn a_delay_between_half_and_all_of_the_target_reduces_it() {
        let mut window = window(false);
        report(&mut window, 1000, Acked::default(), 45);
        // Half of the way from 30 to 60 ms, at a quarter of a round trip. (The average is not quite 45 ms.)
        let expected = 20_000.0 * (1.0 - 0.5 / 2.0 / 4.0);
        assert!((window.bytes() - expected).abs() < 1.0, "{}", window.bytes());
    }

    #[test]
    fn it_does_not_grow_far_beyond_what_is_in_flight() {
        let mut window = Window::new(Time::ZERO, 45_500.0, false);
        report(&mut window, 100, acked(30), 0);
        assert_eq!(window.bytes(), 45_500.0, "46,000 are the most");
    }
}
