//! Reports of each packet: what copies of packets change in them, and which are sent early.

use super::*;
use crate::rtcp::Arrival;

/// A receiver that reports each packet 20 times a second.
fn receiver() -> Receiver {
    let every = |config: &mut Config| config.feedback = Some(Duration::from_millis(50));
    World::new(every, |_| false).receiver
}

/// A packet of the stream; with `wide`, its number is its transport-wide one too.
fn packet(sequence: u16, wide: bool) -> Vec<u8> {
    let (ssrc, payload_type, timestamp, marker, mark) = (7, 96, 0, true, None);
    let (wide, payload) = (wide.then_some(sequence), vec![0x41, 0x9a]);
    Packet { ssrc, payload_type, sequence, timestamp, marker, mark, wide, payload }.write()
}

/// The messages that leave at that time.
fn messages(receiver: &mut Receiver, now: Time) -> Vec<Message> {
    std::iter::from_fn(|| receiver.poll(now)).flat_map(|it| rtcp::parse(&it).unwrap()).collect()
}

/// How many packets each report is about that leaves at that time.
fn reported(receiver: &mut Receiver, now: Time) -> Vec<usize> {
    let packets = |message: Message| match message {
        Message::Congestion(told) => Some(told.arrivals.len()),
        Message::TransportWide(told) => Some(told.packets.into()),
        _ => None,
    };
    messages(receiver, now).into_iter().filter_map(packets).collect()
}

#[test]
fn a_copy_that_is_marked_marks_the_packet_and_leaves_its_time() {
    let mut receiver = receiver();
    for (at, sequence, ecn) in [(10, 20, 1), (11, 21, 1), (12, 22, 1), (15, 21, 3)] {
        receiver.on_rtp(ms(at), &packet(sequence, false), ecn);
    }
    // The first number of each report that leaves, and of each packet its ECN, and how long ago it came, in whole ms.
    let mut reports = |now: u64, copy: Option<u16>| -> Vec<(u16, Vec<(u8, u64)>)> {
        if let Some(sequence) = copy {
            receiver.on_rtp(ms(now), &packet(sequence, false), 3);
        }
        let told = messages(&mut receiver, ms(now)).into_iter().filter_map(|it| match it {
            Message::Congestion(told) => Some(told),
            _ => None,
        });
        let of = |it: Arrival| (it.ecn, it.ago.unwrap().as_millis_f64().round() as u64);
        told.map(|told| (told.first, told.arrivals.into_iter().flatten().map(of).collect()))
            .collect()
    };
    assert_eq!(reports(20, None), [(20, vec![(1, 10), (3, 9), (1, 8)])]);
    assert_eq!(reports(25, Some(20)), [], "at 70 ms");
    assert_eq!(reports(70, None), [(20, vec![(3, 60), (3, 59), (1, 58)])]);
    assert_eq!(reports(120, Some(20)), [], "nothing is new");
}

#[test]
fn many_packets_are_reported_before_the_interval_is_over() {
    for wide in [false, true] {
        let mut receiver = receiver();
        let mut take = |numbers: std::ops::Range<u16>, at: u64| {
            for n in numbers {
                receiver.on_rtp(ms(at), &packet(n, wide), 0);
            }
            let is_due = receiver.next_event() == Some(Time::ZERO);
            (is_due, reported(&mut receiver, ms(at)))
        };
        assert_eq!(take(0..2, 10), (false, vec![2]), "the first at once");
        assert_eq!(take(2..257, 20), (false, vec![]), "255 wait");
        assert_eq!(take(257..258, 21), (true, vec![256]));
        assert_eq!(take(258..259, 70), (false, vec![]), "the interval begins anew");
        assert_eq!(take(259..260, 71), (false, vec![2]));
    }
}
