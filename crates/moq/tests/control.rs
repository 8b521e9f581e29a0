//! What is recorded of a congestion control: the estimate of what waits, from what is written, sent, lost and reset.

use std::time::{Duration, Instant};

use moq_noq::congestion::{Controller, ControllerFactory, PacketId, Space};
use suiro_moq::control::{Factory, Look, written_of};
use suiro_quic::Span;
use suiro_scenario::QuicCongestion;

const PACKET: u16 = 1200;
/// What a packet of that size carries of streams.
const CARRIED: u64 = 1168;

/// A connection's congestion control, which hears what becomes of full packets.
struct Bench {
    controller: Box<dyn Controller>,
    now: Instant,
    number: u64,
}

impl Bench {
    fn new() -> Self {
        Self::of(QuicCongestion::Cubic)
    }

    #[expect(clippy::disallowed_methods, reason = "an origin of times: only differences are used")]
    fn of(congestion: QuicCongestion) -> Self {
        let now = Instant::now();
        let controller = Factory::new(congestion, 0.5).build(now, PACKET);
        Self { controller, now, number: 0 }
    }

    fn write(&self, packets: u64) {
        self.stream(0, packets);
    }

    /// Writes so much to a new stream of that priority.
    fn stream(&self, priority: i32, packets: u64) -> Span {
        let mut stream = Span::of(priority);
        self.write_to(&mut stream, packets);
        stream
    }

    fn write_to(&self, stream: &mut Span, packets: u64) {
        written_of(&*self.controller).add(stream, packets * CARRIED);
    }

    fn reset(&self, stream: &Span) {
        written_of(&*self.controller).reset(stream);
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            let packet = PacketId { space: Space::Data, number: self.number };
            self.controller.on_packet_space_sent(self.now, PACKET, packet);
            self.number += 1;
        }
    }

    fn lose(&mut self, packets: u64) {
        for number in 0..packets {
            let packet = PacketId { space: Space::Data, number };
            self.controller.on_packet_space_lost(PACKET, packet, self.now);
        }
    }

    /// How many packets wait.
    fn waiting(&self) -> f64 {
        let look = Look::of(&*self.controller).expect("a controller of ours");
        look.waiting as f64 / CARRIED as f64
    }
}

/// RFC 9002 §7.1: a queue that marks packets does not drop them, so the mark is the only sign of congestion.
#[test]
fn a_mark_halves_the_window_of_copa_once_per_round_trip() {
    let mut bench = Bench::of(QuicCongestion::Copa);
    let (packet, start) = (PacketId { space: Space::Data, number: 0 }, bench.now);
    let mut event = |sent_ms: u64, is_ecn: bool| {
        let sent = start + Duration::from_millis(sent_ms);
        let now = sent + Duration::from_millis(40);
        bench.controller.on_congestion_event_space(now, sent, false, is_ecn, 0, packet);
        bench.controller.window()
    };
    assert_eq!(event(10, false), 12_000, "a lost packet");
    assert_eq!(event(10, true), 6000);
    assert_eq!(event(50, true), 6000, "sent before the reduction");
    assert_eq!(event(51, true), 3000);
}

#[test]
fn what_is_lost_waits_until_it_is_sent_again() {
    let mut bench = Bench::new();
    bench.write(10);
    bench.send(8);
    assert_eq!(bench.waiting(), 2.0);
    bench.lose(3);
    assert_eq!(bench.waiting(), 5.0);
    bench.send(5);
    assert_eq!(bench.waiting(), 0.0);
}

#[test]
fn what_was_sent_before_nothing_waited_waits_again_if_it_is_lost() {
    let mut bench = Bench::new();
    bench.write(10);
    bench.send(10);
    bench.controller.on_app_limited(12_000);
    bench.lose(4);
    assert_eq!(bench.waiting(), 4.0);
    // What is written meanwhile waits behind it.
    bench.write(1);
    bench.send(4);
    assert_eq!(bench.waiting(), 1.0);
    bench.controller.on_app_limited(12_000);
    assert_eq!(bench.waiting(), 0.0);
}

#[test]
fn what_is_left_of_a_stream_that_was_reset_waits_no_more() {
    let mut bench = Bench::new();
    let stream = bench.stream(0, 9);
    bench.write(1);
    bench.send(4);
    bench.reset(&stream);
    assert_eq!(bench.waiting(), 1.0);
    bench.send(1);
    bench.controller.on_app_limited(12_000);
    bench.write(2);
    assert_eq!(bench.waiting(), 2.0);
}

#[test]
fn what_was_sent_of_a_stream_is_not_left_behind_a_backlog_of_lower_priority() {
    let mut bench = Bench::new();
    let video = bench.stream(127, 10);
    let sound = bench.stream(220, 2);
    bench.send(2);
    bench.reset(&sound);
    assert_eq!(bench.waiting(), 10.0, "all of the sound was sent, and nothing of the video");
    bench.send(3);
    bench.reset(&video);
    assert_eq!(bench.waiting(), 0.0);
}

#[test]
fn streams_that_are_written_in_turn_are_spread_evenly() {
    let mut bench = Bench::new();
    let mut stream = bench.stream(0, 1);
    bench.write(2);
    bench.write_to(&mut stream, 1);
    bench.send(1);
    bench.reset(&stream);
    assert_eq!(bench.waiting(), 1.5, "three quarters of its two packets are left out");
}

#[test]
fn what_another_priority_has_accepted_is_not_left_out() {
    let bench = Bench::new();
    let mut stream = bench.stream(0, 4);
    stream.place(1);
    bench.write_to(&mut stream, 1);
    bench.reset(&stream);
    assert_eq!(bench.waiting(), 5.0, "it is not known where its bytes are");
}

#[test]
fn what_is_lost_of_a_stream_that_was_reset_does_not_wait() {
    let mut bench = Bench::new();
    let stream = bench.stream(0, 10);
    bench.send(10);
    bench.reset(&stream);
    bench.lose(3);
    assert_eq!(bench.waiting(), 0.0);
    // Of two streams, as much of each is lost.
    let mut bench = Bench::new();
    let first = bench.stream(0, 5);
    bench.write(5);
    bench.send(10);
    bench.reset(&first);
    bench.lose(4);
    assert_eq!(bench.waiting(), 2.0);
    bench.send(2);
    assert_eq!(bench.waiting(), 0.0);
}

#[test]
fn a_datagram_that_is_lost_does_not_wait() {
    let mut bench = Bench::new();
    bench.write(4);
    for _ in 0..4 {
        written_of(&*bench.controller).sent_datagram(CARRIED);
    }
    assert_eq!(bench.waiting(), 8.0);
    bench.send(8);
    bench.lose(2);
    assert_eq!(bench.waiting(), 1.0, "half of what was in flight is sent again");
}
