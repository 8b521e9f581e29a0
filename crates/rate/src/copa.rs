//! Copa: congestion control by delay, for a transport that counts a window in bytes.
//!
//! V. Arun, H. Balakrishnan: *Copa: Practical Delay-Based Congestion Control for the Internet*, NSDI 2018. The sender
//! aims at the rate 1/(δ·dq) packets per second, where dq is the queueing delay that it sees: the standing round-trip
//! time less the least one. One sender alone keeps about 1/δ packets in the queue: 2 with the default δ of 0.5.
//!
//! The paper says nothing of ECN. A queue that marks packets instead of dropping them expects an answer as to a loss (RFC
//! 3168 §5), so that a mark halves the window here, at most once per round trip (RFC 9002 §7.3).
//!
//! The paper's second mode (§2.3), which competes with senders that fill every queue, is left out, as in other
//! implementations: after a queue of one's own it is entered by mistake, and never left.

use suiro_units::{BitRate, Bytes, Duration, Time};

use crate::Least;
use crate::rtt::Smoothed;

/// §2.2: the default δ.
pub const DELTA: f64 = 0.5;
/// §2: the time over which the least round-trip time counts.
const LEAST_OVER: Duration = Duration::from_secs(10);
/// §2.2: a direction that has lasted for so many round-trip times doubles the velocity.
const STEADY: u32 = 3;
/// The window to begin with, in packets (RFC 9002 §7.2).
const INITIAL: f64 = 10.0;
/// The least window, in packets (RFC 9002 §7.2).
const LEAST: f64 = 2.0;
/// Largest window in packets: more than 10 Gbit/s over 100 ms.
const MOST: f64 = 100_000.0;
/// Velocity beyond which nothing is gained: a window doubles in a round trip.
const FASTEST: f64 = 1e6;

/// Which way the window has gone, and how fast it may.
#[derive(Debug, Clone)]
struct Velocity {
    value: f64,
    up: bool,
    same: u32,
    /// The window when a round trip began, and when that was.
    noted: Option<(Time, f64)>,
}

impl Default for Velocity {
    fn default() -> Self {
        Self { value: 1.0, up: true, same: 0, noted: None }
    }
}

/// The controller of one path.
#[derive(Debug, Clone)]
pub struct Copa {
    packet: Bytes,
    delta: f64,
    /// The window in packets.
    window: f64,
    slow_start: bool,
    velocity: Velocity,
    smoothed: Smoothed,
    least: Least,
    standing: Least,
    /// What was sent until then has been answered with a smaller window.
    reduced: Option<Time>,
}

impl Copa {
    /// The controller of a path whose packets have at most that size. The smaller `delta`, which is greater than 0, the
    /// longer the queue that it keeps: about 1/δ packets.
    pub fn new(packet: Bytes, delta: f64) -> Self {
        Self {
            packet: packet.max(Bytes::new(1)),
            delta,
            window: INITIAL,
            slow_start: true,
            velocity: Velocity::default(),
            smoothed: Smoothed::default(),
            least: Least::default(),
            standing: Least::default(),
            reduced: None,
        }
    }

    /// The size of packets has changed.
    pub fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet.max(Bytes::new(1));
    }

    /// `bytes` were acknowledged, in a packet that took this long there and back. `limited`: there was no more to send,
    /// so that the window was not what held the sender back, and must not grow.
    pub fn on_ack(&mut self, now: Time, rtt: Duration, bytes: Bytes, limited: bool) {
        self.smoothed.update(rtt);
        let smoothed = self.smoothed.rtt().unwrap_or(rtt);
        self.least.add(now, rtt, LEAST_OVER);
        self.standing.add(now, rtt, smoothed / 2);
        let packets = bytes.get() as f64 / self.packet.get() as f64;
        let up = self.below_target();
        if self.slow_start {
            if up {
                // §2.2: doubles once per round trip.
                self.grow(if limited { 0.0 } else { packets });
                return;
            }
            self.slow_start = false;
        }
        self.steer(now, smoothed, up);
        let step = self.velocity.value * packets / (self.delta * self.window);
        match (up, limited) {
            (true, false) => self.grow(step),
            (true, true) => {}
            (false, _) => self.grow(-step),
        }
    }

    /// Something that was sent at `sent` was marked on its way. One reduction answers all that was sent before it.
    pub fn on_mark(&mut self, now: Time, sent: Time) {
        if self.reduced.is_some_and(|reduced| sent <= reduced) {
            return;
        }
        self.reduced = Some(now);
        self.slow_start = false;
        self.velocity = Velocity::default();
        self.grow(-self.window / 2.0);
    }

    /// Nothing came through for so long that what is known of the path is worthless (RFC 9002 §7.6).
    pub fn on_persistent_congestion(&mut self) {
        *self = Self { window: LEAST, ..Self::new(self.packet, self.delta) };
    }

    /// How much may be in flight.
    pub fn window(&self) -> Bytes {
        Bytes::new((self.window * self.packet.get() as f64) as u64)
    }

    /// §2: packets leave at twice the window per standing round-trip time, so that bursts of their own make no queue.
    /// `None` before the first acknowledgement.
    pub fn pacing(&self) -> Option<BitRate> {
        let standing = self.standing.get()?.as_secs_f64();
        let bits = 2.0 * self.window * self.packet.get() as f64 * 8.0;
        Some(BitRate::from_bps((bits / standing.max(1e-6)) as u64))
    }

    fn grow(&mut self, packets: f64) {
        self.window = (self.window + packets).clamp(LEAST, MOST);
    }

    /// Whether the rate is below the target 1/(δ·dq).
    fn below_target(&self) -> bool {
        let (Some(least), Some(standing)) = (self.least.get(), self.standing.get()) else {
            return true;
        };
        let queueing = standing.saturating_sub(least).as_secs_f64();
        // window/standing <= 1/(δ·dq), without dividing by a queueing delay of zero.
        self.window * self.delta * queueing <= standing.as_secs_f64()
    }

    /// §2.2: once per round trip, the velocity doubles if the window has gone the same way long enough.
    fn steer(&mut self, now: Time, smoothed: Duration, up: bool) {
        let velocity = &mut self.velocity;
        if up != velocity.up && velocity.value > 1.0 {
            (velocity.value, velocity.same) = (1.0, 0);
        }
        let (since, before) = *velocity.noted.get_or_insert((now, self.window));
        if now.saturating_since(since) < smoothed {
            return;
        }
        let went_up = self.window > before;
        if went_up == velocity.up && self.window != before {
            velocity.same += 1;
            if velocity.same >= STEADY {
                velocity.value = (velocity.value * 2.0).min(FASTEST);
            }
        } else {
            (velocity.value, velocity.same) = (1.0, 0);
        }
        velocity.up = went_up;
        velocity.noted = Some((now, self.window));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const PACKET: Bytes = Bytes::new(1200);

    /// A sender with always something to send, at a bottleneck of that rate and a queue that is never full. Every
    /// packet is acknowledged on its own. Returns the queueing delays of the second half, and the share of the rate.
    fn run(delta: f64, rate: BitRate, base: Duration, length: Duration) -> (Vec<Duration>, f64) {
        let mut copa = Copa::new(PACKET, delta);
        let service = PACKET / rate;
        let (mut now, mut free, mut in_flight) = (Time::ZERO, Time::ZERO, 0u64);
        let mut acks: VecDeque<(Time, Time)> = VecDeque::new();
        let (mut delays, mut delivered) = (Vec::new(), 0u64);
        let half = Time::ZERO + length / 2;
        while now < Time::ZERO + length {
            while in_flight + PACKET.get() <= copa.window().get() {
                let departs = free.max(now) + service;
                free = departs;
                acks.push_back((departs + base, now));
                in_flight += PACKET.get();
            }
            let (at, sent) = acks.pop_front().expect("the window is at least two packets");
            now = at;
            in_flight -= PACKET.get();
            let rtt = now.saturating_since(sent);
            copa.on_ack(now, rtt, PACKET, false);
            if now > half {
                delivered += PACKET.get();
                delays.push(rtt.saturating_sub(base + service));
            }
        }
        let share = delivered as f64 * 8.0 / (length.as_secs_f64() / 2.0) / rate.as_bps() as f64;
        (delays, share)
    }

    #[test]
    fn it_fills_the_path_and_keeps_the_queue_short() {
        for (rate, base) in [(500, 60), (2000, 40), (8000, 40)] {
            let rate = BitRate::from_kbps(rate);
            let service = PACKET / rate;
            let (mut delays, share) =
                run(DELTA, rate, Duration::from_millis(base), Duration::from_secs(60));
            delays.sort_unstable();
            let (middle, high) = (delays[delays.len() / 2], delays[delays.len() * 95 / 100]);
            assert!(share > 0.9, "{rate}: {share}");
            // §2.1: about 1/δ packets in the queue, oscillating by 2.5/δ.
            assert!(middle < service * 6 && high < service * 12, "{rate}: {middle} {high}");
        }
    }

    #[test]
    fn a_small_delta_keeps_a_long_queue() {
        let (rate, base) = (BitRate::from_kbps(2000), Duration::from_millis(40));
        let middle = |delta| {
            let (mut delays, share) = run(delta, rate, base, Duration::from_secs(60));
            delays.sort_unstable();
            assert!(share > 0.9, "{delta}: {share}");
            delays[delays.len() / 2].as_secs_f64() / (PACKET / rate).as_secs_f64()
        };
        let (short, long) = (middle(0.5), middle(0.05));
        // §2.1: about 1/δ packets, oscillating by 2.5/δ, so 3.5/δ at most.
        assert!(short < 7.0 && (20.0..70.0).contains(&long), "{short} and {long} packets");
    }

    #[test]
    fn a_mark_halves_the_window_once_per_round_trip_and_ends_slow_start() {
        let mut copa = Copa::new(PACKET, DELTA);
        let (ms, rtt) = (Time::from_millis, Duration::from_millis(40));
        (0..10).for_each(|_| copa.on_ack(ms(40), rtt, PACKET, false));
        assert_eq!(copa.window(), Bytes::new(20 * 1200), "slow start");
        copa.on_mark(ms(50), ms(10));
        assert_eq!(copa.window(), Bytes::new(10 * 1200));
        copa.on_mark(ms(90), ms(50));
        assert_eq!(copa.window(), Bytes::new(10 * 1200), "sent before that reduction");
        copa.on_mark(ms(91), ms(51));
        assert_eq!(copa.window(), Bytes::new(5 * 1200));
        // §2: by 1/(δ·window) packets for each that is acknowledged, 0.4 of 5.
        copa.on_ack(ms(92), rtt, PACKET, false);
        assert_eq!(copa.window(), Bytes::new(6480));
        (0..10).for_each(|n| copa.on_mark(ms(200 + 100 * n), ms(199 + 100 * n)));
        assert_eq!(copa.window(), Bytes::new(2 * 1200), "the least");
    }

    #[test]
    fn a_sender_with_little_to_send_does_not_grow_and_a_persistent_loss_starts_anew() {
        let mut copa = Copa::new(PACKET, DELTA);
        let before = copa.window();
        assert_eq!(copa.pacing(), None);
        for at in 1..1000 {
            copa.on_ack(Time::from_millis(10 * at), Duration::from_millis(40), PACKET, true);
        }
        assert_eq!(copa.window(), before);
        // 2 · 10 · 1200 · 8 bit per 40 ms.
        assert_eq!(copa.pacing(), Some(BitRate::from_bps(4_800_000)));
        copa.on_persistent_congestion();
        assert_eq!((copa.window(), copa.pacing()), (Bytes::new(2400), None));
    }
}
