//! Half-duplex Ethernet against the standard's arithmetic, and against what is known of its capacity.

use proptest::prelude::*;
use suiro_link::{Cause, Event, HubConfig, Link, Segment, SegmentConfig, Verdict};
use suiro_units::{Direction, Duration, Seed, Time};

use crate::common::{config, link, ms, packet, run, us};

/// `count` stations with these keys of a link.
fn segment_config(toml: &str, count: usize) -> SegmentConfig {
    let link = config(toml);
    let ethernet = link.ethernet.expect("the keys have `ethernet`");
    SegmentConfig::Ethernet(HubConfig { ethernet, stations: vec![link.up; count] })
}

fn segment(toml: &str, count: usize, seed: u64) -> Segment {
    Segment::new(&segment_config(toml, count), Seed(seed))
}

/// Time on the medium of an IP packet at 10 Mbit/s: preamble, header, padding, check sequence.
fn airtime(bytes: u64) -> Duration {
    Duration::from_nanos((8 + (bytes + 18).max(64)) * 800)
}

const GAP: Duration = Duration::from_nanos(9_600);

/// What each station delivers in so many seconds if it always has packets of this size, in order of time.
fn saturate(segment: &mut Segment, stations: u64, bytes: u64, until: Time) -> Vec<Event> {
    for station in 0..stations {
        for _ in 0..2 {
            segment.arrive(Time::ZERO, station as usize, Direction::Up, packet(station, bytes));
        }
    }
    let mut events = Vec::new();
    while let Some(at) = segment.next_event().filter(|&at| at <= until) {
        while let Some(event) = segment.poll(at) {
            segment.arrive(
                at,
                event.packet.id as usize,
                Direction::Up,
                packet(event.packet.id, bytes),
            );
            events.push(event);
        }
    }
    events
}

fn delivered(events: &[Event]) -> impl Iterator<Item = &Event> {
    events.iter().filter(|event| matches!(event.verdict, Verdict::Delivered { .. }))
}

/// Whether a poll at the time that the segment gave finds a delivery then, and not later.
fn in_time(event: &Event, polled: Time) -> bool {
    event.at == polled || !matches!(event.verdict, Verdict::Delivered { .. })
}

/// Share of the time in which whole frames with their preambles are on the medium.
fn utilisation(events: &[Event], bytes: u64, until: Time) -> f64 {
    let count = delivered(events).count() as f64;
    count * airtime(bytes).as_secs_f64() / until.as_secs_f64()
}

#[test]
fn a_station_alone_sends_frame_upon_frame() {
    let mut link = link("ethernet = {}", 1);
    for id in 0..3 {
        link.arrive(ms(1), Direction::Down, packet(id, 1500));
    }
    let events = run(&mut link, &[]);
    let first = ms(1) + airtime(1500) + Duration::from_micros(2);
    let expected = [0, 1, 2].map(|n| first + (airtime(1500) + GAP) * n);
    assert_eq!(events.iter().map(|event| event.at).collect::<Vec<_>>(), expected);
    assert!(events.iter().all(|event| event.attempts == 1));
    // 84 bytes of medium for the shortest packet: 14,880 frames per second, as every table of Ethernet has it.
    assert_eq!(10_000_000 / ((airtime(20) + GAP).as_nanos() / 100), 14_880);
}

#[test]
fn who_hears_another_waits_and_who_does_not_collides() {
    let first = |second_after_us: u64, seed| {
        let mut segment = segment("ethernet = { delay = '2 us' }", 2, seed);
        segment.arrive(ms(1), 0, Direction::Up, packet(0, 1000));
        segment.arrive(
            ms(1) + Duration::from_micros(second_after_us),
            1,
            Direction::Up,
            packet(1, 1000),
        );
        let mut events = Vec::new();
        while let Some(at) = segment.next_event() {
            events.extend(std::iter::from_fn(|| segment.poll(at)));
        }
        events
    };
    let after = |event: &Event| event.at - ms(1) - airtime(1000) - Duration::from_micros(2);
    for seed in 0..200 {
        let heard = first(3, seed);
        assert_eq!(heard.iter().map(|event| event.attempts).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(after(&heard[1]), airtime(1000) + Duration::from_micros(2) + GAP);
        // At the same moment: preamble and jam end after 9.6 µs, then none or one slot of 51.2 µs; without a slot, the
        // other's jam must have been heard to its end, and the gap after it.
        let collided = first(0, seed);
        assert!(collided.iter().all(|event| event.attempts > 1), "{collided:?}");
        if collided[0].attempts == 2 {
            let expected = [21_200, 60_800].map(Duration::from_nanos);
            assert!(expected.contains(&after(&collided[0])), "{collided:?}");
        }
    }
}

/// Boggs, Mogul and Kent ("Measured capacity of an Ethernet: myths and reality", SIGCOMM 1988) measured with up to 24
/// hosts that always had something to send. They found with long packets almost all of the 10 Mbit/s, and with the
/// shortest far more than the 1/e that was believed. Less than Metcalfe and Boggs' estimate ("Ethernet: distributed
/// packet switching for local computer networks", CACM 19, 1976, §6) for slots of 51.2 µs it is at no number of hosts.
#[test]
fn capacity_is_what_was_measured() {
    let until = Time::from_secs(1);
    for hosts in [2, 5, 10, 24] {
        let [long, short] = [1500, 46].map(|bytes| {
            let mut segment = segment("ethernet = { delay = '5 us' }", hosts as usize, hosts);
            let events = saturate(&mut segment, hosts, bytes, until);
            let share = utilisation(&events, bytes, until);
            let slot = Duration::from_nanos(51_200);
            let acquire = (1.0 - 1.0 / hosts as f64).powf(hosts as f64 - 1.0);
            let waits = slot.as_secs_f64() * (1.0 - acquire) / acquire;
            let sends = airtime(bytes).as_secs_f64();
            let estimate = sends / (sends + GAP.as_secs_f64() + waits);
            assert!(share > estimate - 0.02, "{hosts} hosts, {bytes} B: {share}, not {estimate}");
            share
        });
        assert!(long > 0.95 && short > 0.55 && short < long, "{hosts} hosts: {long}, {short}");
    }
}

/// The station that has sent draws from the shorter range of slots: with two stations, the probability that the winner
/// of a collision wins the next one, too, follows from the ranges alone.
#[test]
fn the_winner_of_a_collision_captures_the_medium() {
    // The probability that a station in its collision `a` is before one in its collision `b`.
    fn before(a: u32, b: u32) -> f64 {
        let [x, y] = [a, b].map(|n| 1_u32 << n.min(10));
        let pairs = f64::from(x) * f64::from(y);
        let less: u32 = (0..x).map(|slot| y.saturating_sub(slot + 1)).sum();
        let same = f64::from(x.min(y)) / pairs;
        f64::from(less) / pairs + if a < 10 { same * before(a + 1, b + 1) } else { same / 2.0 }
    }
    let events = |seed| {
        let mut segment = segment("ethernet = { delay = '1 us' }", 2, seed);
        saturate(&mut segment, 2, 1000, ms(4))
    };
    let (mut again, mut all) = (0, 0);
    for seed in 0..4_000 {
        let events = events(seed);
        // Both collided once, and the winner's next frame once with the loser's second attempt.
        if let [first, second, ..] = events[..]
            && first.attempts == 2
        {
            all += 1;
            again += u32::from(first.packet.id == second.packet.id);
        }
    }
    let (share, expected) = (f64::from(again) / f64::from(all), before(1, 2));
    assert!(all > 1_500 && expected > 0.7, "{all} of 4000, {expected}");
    assert!((share - expected).abs() < 0.03, "{share} for {expected}");
}

#[test]
fn over_a_long_time_all_send_alike() {
    let until = Time::from_secs(10);
    let mut segment = segment("ethernet = {}", 6, 3);
    let events = saturate(&mut segment, 6, 1500, until);
    let mut counts = [0.0; 6];
    for event in delivered(&events) {
        counts[event.packet.id as usize] += 1.0;
    }
    let sum: f64 = counts.iter().sum();
    let jain = sum.powi(2) / (6.0 * counts.iter().map(|count| count * count).sum::<f64>());
    assert!(jain > 0.95, "{counts:?}");
}

#[test]
fn after_sixteen_collisions_a_frame_is_dropped() {
    let mut segment = segment("ethernet = {}", 1_000, 1);
    // As many as a collision domain may have (IEEE 802.3: 1024). Behind a long frame a short one waits.
    for (station, bytes) in (0..1_000).flat_map(|station| [(station, 1500), (station, 46)]) {
        segment.arrive(ms(1), station, Direction::Up, packet(station as u64, bytes));
    }
    let mut dropped = 0;
    while let Some(at) = segment.next_event() {
        while let Some(event) = segment.poll(at) {
            assert!(in_time(&event, at), "polled at {at}: {event:?}");
            let given_up = event.verdict == Verdict::Dropped(Cause::Collisions);
            dropped += u32::from(given_up);
            assert!(event.attempts <= 16 && (!given_up || event.attempts == 16), "{event:?}");
        }
    }
    let counts = (0..1_000).map(|station| segment.counts(station, Direction::Up));
    let counted: u64 = counts.map(|counts| counts.dropped_for(Cause::Collisions)).sum();
    assert!(dropped > 0 && counted == u64::from(dropped), "{dropped}");
}

#[test]
fn what_is_too_large_or_finds_the_queue_full_is_dropped() {
    let mut link = link("ethernet = {}\nqueue.limit = '2p'", 1);
    link.arrive(ms(1), Direction::Down, packet(9, 1501));
    for id in 0..4 {
        link.arrive(ms(1), Direction::Down, packet(id, 1500));
    }
    let events = run(&mut link, &[]);
    let dropped = |cause| events.iter().filter(|e| e.verdict == Verdict::Dropped(cause)).count();
    assert_eq!((dropped(Cause::Size), dropped(Cause::Queue)), (1, 1));
    assert_eq!(link.counts(Direction::Down).delivered, 3);
}

#[test]
fn at_ten_times_the_rate_all_is_ten_times_faster() {
    let times = |toml: &str, scale: u64| {
        let mut segment = segment(toml, 3, 7);
        for (n, station) in [0, 1, 2, 1, 0, 2, 2, 1].into_iter().enumerate() {
            let at = Time::from_nanos(n as u64 * 40_000 * scale);
            segment.arrive(at, station, Direction::Up, packet(n as u64, 700));
        }
        let mut times = Vec::new();
        while let Some(at) = segment.next_event() {
            times.extend(std::iter::from_fn(|| segment.poll(at)).map(|e| (e.packet.id, e.at)));
        }
        times
    };
    let slow = times("ethernet = { delay = '2 us' }", 10);
    let fast = times("ethernet = { rate = '100 Mbit/s', delay = '200 ns' }", 1);
    let scaled = fast.into_iter().map(|(id, at)| (id, Time::from_nanos(at.as_nanos() * 10)));
    assert_eq!(slow, scaled.collect::<Vec<_>>());
}

#[test]
fn a_wrong_ethernet_is_refused_with_its_place() {
    for (toml, expected) in [
        ("ethernet = { rate = '100 Mbit/s', delay = '3 us' }", "ethernet.delay"),
        ("ethernet = { delay = '26 us' }", "ethernet.delay"),
        ("ethernet = {}\nrate = '1 Mbit/s'", "rate"),
        ("ethernet = {}\nwifi = {}", "ethernet"),
        ("ethernet = {}\nqueue.limit = '20 ms'", "queue"),
    ] {
        let spec: suiro_link::LinkSpec = toml::from_str(toml).unwrap();
        let refusal = spec.resolve(&mut crate::common::trace).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{toml}: {refusal}");
    }
}

proptest! {
    /// Nothing is lost but by attempts, queue or size; frames that come through never overlap, and between two there is
    /// the gap; when it is polled does not matter.
    #[test]
    fn nothing_overlaps_and_nothing_is_lost(
        arrivals in prop::collection::vec((0u64..4_000, 0usize..5, 20u64..1600), 1..120),
        delay_ns in 0u64..=25_600,
        seed in any::<u64>(),
    ) {
        let mut arrivals = arrivals;
        arrivals.sort_by_key(|(at, ..)| *at);
        let toml = format!("ethernet = {{ delay = '{delay_ns} ns' }}\nqueue.limit = '6p'");
        let [mut punctual, mut late] = [0, 1].map(|_| segment(&toml, 5, seed));
        let mut events = Vec::new();
        for (n, &(at, station, bytes)) in arrivals.iter().enumerate() {
            while let Some(due) = punctual.next_event().filter(|&due| due <= us(at)) {
                while let Some(event) = punctual.poll(due) {
                    prop_assert!(in_time(&event, due), "polled at {due}: {event:?}");
                    events.push(event);
                }
            }
            for segment in [&mut punctual, &mut late] {
                segment.arrive(us(at), station, Direction::Up, packet(n as u64, bytes));
            }
        }
        let end = Time::from_secs(100);
        events.extend(std::iter::from_fn(|| punctual.poll(end)));
        let lately: Vec<Event> = std::iter::from_fn(|| late.poll(end)).collect();
        prop_assert_eq!(&events, &lately);
        prop_assert_eq!(events.len(), arrivals.len());
        prop_assert!(events.is_sorted_by_key(|event| event.at));
        let delay = Duration::from_nanos(delay_ns);
        let mut clear = Time::ZERO;
        for event in delivered(&events) {
            let starts = event.at.saturating_sub(delay + airtime(event.packet.size.get()));
            prop_assert!(starts >= clear, "{event:?} begins before {clear}");
            clear = event.at.saturating_sub(delay) + GAP;
        }
        let causes = [Cause::Queue, Cause::Size, Cause::Collisions];
        for station in 0..5 {
            let counts = punctual.counts(station, Direction::Up);
            let dropped: u64 = causes.iter().map(|&cause| counts.dropped_for(cause)).sum();
            prop_assert_eq!(counts.arrived, counts.delivered + dropped);
            prop_assert_eq!(counts.inside, 0);
        }
    }
}

/// A link of two stations is the same medium.
#[test]
fn a_half_duplex_link_carries_one_direction_at_a_time() {
    let mut link: Link = link("ethernet = {}", 4);
    for id in 0..400 {
        for direction in Direction::BOTH {
            link.arrive(us(id * 1_200), direction, packet(id, 1500));
        }
    }
    let events = run(&mut link, &[]);
    let seconds = events.last().unwrap().at.as_secs_f64();
    let sent = delivered(&events).count() as f64 * airtime(1500).as_secs_f64();
    assert!((0.9..1.0).contains(&(sent / seconds)), "{}", sent / seconds);
}
