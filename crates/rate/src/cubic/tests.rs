use std::collections::VecDeque;

use suiro_units::BitRate;

use super::*;

const PACKET: Bytes = Bytes::new(1200);

/// A bottleneck with a queue of so many packets, and a sender at it.
struct Path {
    cubic: Cubic,
    service: Duration,
    base: Duration,
    queue: usize,
    now: Time,
    free: Time,
    /// When each packet is acknowledged, and when it was sent; `None`: it was dropped.
    flight: VecDeque<(Option<Time>, Time)>,
    lost: u32,
}

impl Path {
    fn new(rate: BitRate, base: Duration, queue: usize) -> Self {
        let cubic = Cubic::new(PACKET);
        let (service, flight) = (PACKET / rate, VecDeque::new());
        let (now, free) = (Time::ZERO, Time::ZERO);
        Self { cubic, service, base, queue, now, free, flight, lost: 0 }
    }

    fn packets(&self) -> u64 {
        self.cubic.window().get() / PACKET.get()
    }

    /// Sends what the window allows, and takes in one acknowledgement, or the loss of what was sent before it.
    fn step(&mut self) {
        while (self.flight.len() as u64) < self.packets() {
            let waiting = self.free.saturating_since(self.now);
            let full = waiting.as_nanos() / self.service.as_nanos() >= self.queue as u64;
            let acked = (!full).then(|| {
                self.free = self.free.max(self.now) + self.service;
                self.free + self.base
            });
            self.flight.push_back((acked, self.now));
        }
        while let Some((None, sent)) = self.flight.front().copied() {
            self.flight.pop_front();
            self.lost += 1;
            self.cubic.on_congestion(self.now, sent);
        }
        let Some((Some(at), sent)) = self.flight.pop_front() else { return };
        self.now = at;
        let smoothed = at.saturating_since(sent);
        self.cubic.on_ack(at, Acked { sent, size: PACKET, smoothed, limited: false });
    }

    fn until(&mut self, seconds: u64) {
        while self.now < Time::from_secs(seconds) {
            self.step();
        }
    }
}

#[test]
fn slow_start_ends_before_it_fills_a_long_queue() {
    for (kbps, base, most) in [(300, 30, 80), (2000, 40, 200), (20_000, 40, 1200)] {
        let mut path = Path::new(BitRate::from_kbps(kbps), Duration::from_millis(base), 100_000);
        while path.cubic.threshold().is_none() {
            path.step();
            assert!(path.packets() < 2000, "{kbps} kbit/s: slow start goes on");
        }
        let fits = (base as f64 / 1e3 / path.service.as_secs_f64()) as u64;
        let window = path.packets();
        assert!((fits / 2..=most).contains(&window), "{kbps} kbit/s: {window} packets, {fits} fit");
    }
}

#[test]
fn without_a_queue_slow_start_goes_on_until_a_loss() {
    let mut cubic = Cubic::new(PACKET);
    let rtt = Duration::from_millis(50);
    for n in 0..1000 {
        let now = Time::ZERO + rtt + Duration::from_millis(n);
        let acked =
            Acked { sent: Time::from_millis(n), size: PACKET, smoothed: rtt, limited: false };
        cubic.on_ack(now, acked);
    }
    assert_eq!(cubic.window(), Bytes::new(1200 * 1010));
    assert_eq!(cubic.threshold(), None);
    cubic.on_congestion(Time::from_secs(2), Time::from_secs(1));
    assert_eq!(cubic.window(), Bytes::new(1200 * 707));
    // What was sent before is answered, and what is acknowledged of it does not let the window grow.
    cubic.on_congestion(Time::from_secs(2), Time::from_millis(1500));
    let sent = Time::from_millis(1900);
    cubic.on_ack(Time::from_secs(2), Acked { sent, size: PACKET, smoothed: rtt, limited: false });
    assert_eq!((cubic.window(), cubic.threshold()), (Bytes::new(1200 * 707), Some(cubic.window())));
    cubic.on_spurious();
    assert_eq!(cubic.window(), Bytes::new(1200 * 1010));
}

/// RFC 9438 §4.2: after a loss at 100 packets the window is 70, and 100 again K = ∛(30 / 0.4) = 4.217 s later; at
/// K + 5 s it is 100 + 0.4 · 125 = 150.
#[test]
fn the_window_is_the_cubic_function_of_time() {
    let mut cubic = Cubic::new(PACKET);
    cubic.state.window = 100.0;
    cubic.on_congestion(Time::from_secs(10), Time::from_secs(9));
    // About as often as a window in a round trip: a tenth of a packet every 200 µs.
    let rtt = Duration::from_millis(200);
    let mut windows = Vec::new();
    for n in 1..=50_000_u64 {
        let now = Time::from_secs(10) + Duration::from_nanos(n * 200_000_000 / 1000);
        let size = Bytes::new(PACKET.get() / 10);
        cubic.on_ack(now, Acked { sent: now, size, smoothed: rtt, limited: false });
        windows.push(cubic.state.window);
    }
    let at = |seconds: f64| windows[(seconds * 5000.0) as usize - 1];
    assert!((at(4.217) - 100.0).abs() < 0.5, "{}", at(4.217));
    assert!((140.0..151.0).contains(&at(9.217)), "{}", at(9.217));
}

#[test]
fn what_the_sender_had_too_little_to_send_for_does_not_count() {
    let mut cubic = Cubic::new(PACKET);
    cubic.state.window = 100.0;
    cubic.on_congestion(Time::from_secs(1), Time::ZERO);
    let ack = |cubic: &mut Cubic, at_ms: u64, limited| {
        let now = Time::from_millis(at_ms);
        let smoothed = Duration::from_millis(100);
        cubic.on_ack(now, Acked { sent: now, size: PACKET, smoothed, limited });
    };
    ack(&mut cubic, 1100, false);
    let before = cubic.state.window;
    (0..600).for_each(|n| ack(&mut cubic, 1200 + 100 * n, true));
    assert_eq!(cubic.state.window, before, "a minute with little to send");
    (0..10).for_each(|n| ack(&mut cubic, 61_200 + 10 * n, false));
    assert!(cubic.state.window < before + 5.0, "{}", cubic.state.window);
}

#[test]
fn it_uses_a_link_with_a_queue_of_its_size() {
    let mut path = Path::new(BitRate::from_mbps(8), Duration::from_millis(50), 42);
    path.until(10);
    let (from, lost) = (path.now, path.lost);
    let mut acked = 0u64;
    while path.now < Time::from_secs(70) {
        path.step();
        acked += PACKET.get();
    }
    let bps = acked as f64 * 8.0 / path.now.saturating_since(from).as_secs_f64();
    assert!(bps > 0.9 * 8e6, "{bps}");
    assert!((path.lost - lost) < acked as u32 / 1200 / 50, "{} packets are lost", path.lost - lost);
}

#[test]
fn after_persistent_congestion_it_begins_with_two_packets() {
    let mut cubic = Cubic::new(PACKET);
    cubic.state.window = 100.0;
    cubic.on_persistent_congestion();
    assert_eq!(cubic.window(), Bytes::new(2400));
    assert_eq!(cubic.threshold(), Some(Bytes::new(84_000)));
}

/// RFC 9002 appendix B.8: the window becomes the least one, and the threshold is that of the loss.
#[test]
fn the_loss_that_shows_persistent_congestion_reduces_the_threshold_once() {
    let mut cubic = Cubic::new(PACKET);
    cubic.state.window = 100.0;
    cubic.on_congestion(Time::from_secs(2), Time::from_secs(1));
    cubic.on_persistent_congestion();
    assert_eq!(cubic.window(), Bytes::new(2400));
    assert_eq!(cubic.threshold(), Some(Bytes::new(84_000)));
}
