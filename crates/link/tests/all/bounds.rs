//! The emulator's own bounds: reached only by mistake, and then reported.

use crate::common::{link, ms, packet};
use suiro_link::{Cause, Direction, Event, MAX_IN_FLIGHT, MAX_PACKET, MAX_QUEUED, Verdict};

/// Lets `bound` packets and three more arrive at once; the three must be dropped, and no other.
fn overfill(toml: &str, bound: u64) {
    let mut link = link(toml, 1);
    for id in 0..bound + 3 {
        link.arrive(ms(1), Direction::Down, packet(id, 40));
    }
    let events: Vec<Event> = std::iter::from_fn(|| link.poll(ms(1))).collect();
    assert_eq!(
        events.iter().map(|e| e.packet.id).collect::<Vec<_>>(),
        [bound, bound + 1, bound + 2]
    );
    assert!(events.iter().all(|event| event.verdict == Verdict::Dropped(Cause::Limit)));
    let counts = link.counts(Direction::Down);
    assert_eq!((counts.inside, counts.dropped_for(Cause::Limit)), (bound, 3));
}

#[test]
fn packets_in_flight_are_bounded() {
    overfill("delay = '1 h'", MAX_IN_FLIGHT as u64);
}

#[test]
fn packets_in_the_queue_are_bounded() {
    // One more is in service.
    overfill("rate = '1 bit/s'\nqueue.limit = '1 GB'", u64::from(MAX_QUEUED) + 1);
}

#[test]
fn packets_have_a_largest_size() {
    let mut link = link("rate = '1 Gbit/s'", 1);
    let largest = MAX_PACKET.get();
    link.arrive(ms(0), Direction::Up, packet(0, largest + 1));
    link.arrive(ms(0), Direction::Up, packet(1, u64::MAX / 16));
    link.arrive(ms(0), Direction::Up, packet(2, largest));
    let events: Vec<Event> = std::iter::from_fn(|| link.poll(ms(9))).collect();
    let dropped = events.iter().map(|event| matches!(event.verdict, Verdict::Dropped(_)));
    assert_eq!(dropped.collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(link.counts(Direction::Up).dropped_for(Cause::Size), 2);
}
