//! A Wi-Fi link against the arithmetic of its air time.
//!
//! Upper bounds are computed from the standard's own intervals: a cycle of n frames of 1500 bytes
//! takes AIFS 43 µs, a mean backoff of 7.5 slots, the preamble, the symbols, SIFS and the answer.

use std::collections::BTreeSet;

use crate::common::{self, link, packet, us};
use suiro_link::{Cause, Direction, Event, Link, Verdict};
use suiro_units::{Duration, Seed, Time};

/// Strong and steady: the channel decides nothing.
const STRONG: &str = "shadowing = '0 dB', rice_k = '60 dB'";
const S: u64 = 1_000_000_000;

/// Goodput of IP in Mbit/s down and up, if packets of 1500 bytes come every so many microseconds.
fn goodput(toml: &str, every_us: [Option<u64>; 2]) -> [f64; 2] {
    let mut link = link(toml, 5);
    for us in 0..2_000_000 {
        let now = Time::from_nanos(us * 1000);
        for (direction, every) in Direction::BOTH.into_iter().zip(every_us) {
            if every.is_some_and(|every| us % every == 0) {
                link.arrive(now, direction, packet(us, 1500));
            }
        }
        if us % 1000 == 0 {
            while link.poll(now).is_some() {}
        }
    }
    Direction::BOTH.map(|d| link.counts(d).delivered_bytes.bits() as f64 / 2e6)
}

/// The bound for n frames an exchange at so many bits a symbol.
fn bound(n: u64, bits_per_symbol: u64, answer_us: u64) -> f64 {
    let symbols = (n * 1544 * 8 + 22).div_ceil(bits_per_symbol);
    let cycle_us = 43.0 + 67.5 + 36.0 + 4.0 * symbols as f64 + 16.0 + answer_us as f64;
    n as f64 * 12_000.0 / cycle_us
}

#[test]
fn goodput_is_what_the_air_time_leaves() {
    // 65 Mbit/s for 4 ms: 20 frames; three, as in the presets; alone: one.
    let expected = [(64, bound(20, 260, 32)), (3, bound(3, 260, 32)), (1, bound(1, 260, 32))];
    for (aggregate, expected) in expected {
        let toml = format!("wifi = {{ {STRONG}, aggregate = {aggregate} }}");
        let [down, up] = goodput(&toml, [Some(150), None]);
        assert!((down / expected - 1.0).abs() < 0.03, "{aggregate}: {down} for {expected}");
        assert!(up.abs() < f64::EPSILON);
    }
    assert!((55.0..62.0).contains(&bound(20, 260, 32)));
    assert!((27.0..33.0).contains(&bound(1, 260, 32)));
}

/// An independent source: ns-3's own regression test of the same set-up
/// (`examples/wireless/wifi-aggregation.cc`: MCS 7, 20 MHz, long guard interval, 1472 B of UDP) accepts
/// 58.5 to 59.5 Mbit/s with A-MPDUs of 65 kB, and 30 to 31 without aggregation.
#[test]
fn goodput_is_what_ns_3_finds() {
    for (aggregate, range) in [(64, 58.5..59.5), (1, 30.0..31.0)] {
        let toml = format!("wifi = {{ {STRONG}, aggregate = {aggregate} }}");
        let udp = goodput(&toml, [Some(150), None])[0] * 1472.0 / 1500.0;
        assert!(range.contains(&udp), "{aggregate} frames at most: {udp} Mbit/s");
    }
}

/// Mbit/s of a preset's data while ACKs come back, mean over seeds of the seconds `from..to`, and the share of the data
/// that was given up.
fn preset(name: &str, [from, to]: [u64; 2]) -> (f64, f64) {
    const SEEDS: u64 = 8;
    let (mut delivered, mut given_up, mut packets) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut link = link(&format!("preset = '{name}'"), seed);
        let mut before = 0;
        for ms in 0..to * 1000 {
            let now = Time::from_millis(ms);
            (0..3).for_each(|i| link.arrive(now, Direction::Down, packet(4 * ms + i, 1500)));
            if ms % 2 == 0 {
                link.arrive(now, Direction::Up, packet(4 * ms + 3, 52));
            }
            while link.poll(now).is_some() {}
            if ms == from * 1000 {
                before = link.counts(Direction::Down).delivered_bytes.bits();
            }
        }
        let counts = link.counts(Direction::Down);
        delivered += counts.delivered_bytes.bits() - before;
        given_up += counts.dropped_for(Cause::Retry);
        packets += counts.delivered_bytes.bits() / 12_000;
    }
    let seconds = ((to - from) * SEEDS) as f64;
    (delivered as f64 / 1e6 / seconds, given_up as f64 / packets as f64)
}

/// Study S0's windows over its round trips: 17 to 20 Mbit/s in the clear, 2 behind the wall, which is what is left
/// there while the neighbour is at its busiest. Behind the wall the presets lose
/// some packets, and never carry so little that no video of 1.5 Mbit/s could pass at a lower rung.
#[test]
fn the_presets_carry_what_study_s0_measured() {
    let (clear, lost) = preset("wifi-clear", [0, 10]);
    assert!((17.0..24.0).contains(&clear) && lost < 1e-4, "{clear} Mbit/s, {lost}");
    let (wall, lost) = preset("wifi-obstacle", [0, 10]);
    assert!((2.5..3.7).contains(&wall), "{wall} Mbit/s");
    assert!((0.0003..0.005).contains(&lost), "{lost}");
    let (dip, _) = preset("wifi-obstacle", [10, 20]);
    assert!(dip > 1.3 && dip < 0.85 * wall, "{dip} next to {wall} Mbit/s");
}

/// They are the 802.11n of ns-3's figures, further away and with less air.
#[test]
fn the_presets_in_empty_air_carry_what_three_frames_at_once_do() {
    for name in ["wifi-clear", "wifi-obstacle"] {
        let empty = "attenuation = '0 dB', walls = 0, busy = 0, changes = []";
        let toml = format!("preset = '{name}'\nwifi = {{ {STRONG}, {empty} }}");
        let [down, _] = goodput(&toml, [Some(150), None]);
        let expected = bound(3, 260, 32);
        assert!((down / expected - 1.0).abs() < 0.03, "{name}: {down} for {expected}");
    }
}

/// What each scheme carries where it is the fastest that does.
#[test]
fn a_weaker_signal_carries_less() {
    let all: Vec<f64> = (0..8)
        .map(|i| {
            let toml = format!("wifi = {{ {STRONG}, attenuation = '{} dB' }}", 26 + 4 * i);
            goodput(&toml, [Some(150), None])[0]
        })
        .collect();
    assert!(all.is_sorted_by(|a, b| a >= b), "{all:?}");
    assert!(all[0] > 50.0 && (2.0..12.0).contains(&all[6]), "{all:?}");
}

#[test]
fn both_directions_share_the_air() {
    let toml = format!("wifi = {{ {STRONG} }}");
    let [one, _] = goodput(&toml, [Some(150), None]);
    let [down, up] = goodput(&toml, [Some(150), Some(150)]);
    let sum = down + up;
    // Collisions (one in 16 of the contentions) take something, shorter waits give a little.
    assert!(sum < one * 1.02 && sum > one * 0.85, "{down} + {up} against {one}");
    assert!((down / up - 1.0).abs() < 0.2, "{down} and {up}");
}

#[test]
fn others_take_their_share() {
    let alone = goodput(&format!("wifi = {{ {STRONG} }}"), [Some(150), None])[0];
    for busy in [0.25, 0.5, 0.75] {
        let toml = format!("wifi = {{ {STRONG}, busy = {busy} }}");
        let [down, _] = goodput(&toml, [Some(150), None]);
        assert!((down / alone / (1.0 - busy) - 1.0).abs() < 0.2, "{busy}: {down} of {alone}");
    }
}

#[test]
fn what_never_arrives_is_given_up_and_counted() {
    let mut link = link("wifi = { attenuation = '90 dB', retries = 2 }", 1);
    for id in 0..10 {
        link.arrive(Time::ZERO, Direction::Up, packet(id, 1500));
    }
    while link.poll(Time::from_nanos(10 * S)).is_some() {}
    let counts = link.counts(Direction::Up);
    assert_eq!((counts.dropped_for(Cause::Retry), counts.inside), (10, 0));
}

const AIFS: Duration = Duration::from_micros(43);
const SLOT: Duration = Duration::from_micros(9);

/// Everything that becomes of what is inside.
fn all(link: &mut Link) -> Vec<Event> {
    std::iter::from_fn(|| link.poll(Time::from_nanos(60 * S))).collect()
}

/// How many slots a packet was taken from its queue after the air had been free for AIFS.
fn slots(event: &Event, free: Time) -> u64 {
    let waited = event.dequeued.expect("it was sent") - (free + AIFS);
    assert_eq!(waited.as_nanos() % SLOT.as_nanos(), 0, "{event:?} after {free}");
    waited.as_nanos() / SLOT.as_nanos()
}

/// IEEE 802.11-2016, §10.22.2.2 and §10.22.2.4: after each frame there is a backoff, also if no other waits; when it is over,
/// what comes is sent at the next slot boundary.
#[test]
fn only_idle_air_is_taken_at_once() {
    let mut backoffs = BTreeSet::new();
    for seed in 0..40 {
        let mut link = link(&format!("wifi = {{ {STRONG} }}"), seed);
        link.arrive(us(10_000), Direction::Down, packet(0, 1500));
        let first = all(&mut link)[0];
        // Boundaries are 43 µs + 9 µs n since the air has been free, here since the beginning.
        assert_eq!(first.dequeued, Some(us(10_006)));
        let free = first.at;
        link.arrive(free, Direction::Down, packet(1, 1500));
        let second = all(&mut link)[0];
        backoffs.insert(slots(&second, free));
        let later = second.at + Duration::from_millis(1);
        link.arrive(later, Direction::Down, packet(2, 1500));
        let third = all(&mut link)[0];
        slots(&third, second.at);
        assert!(third.dequeued.is_some_and(|at| at < later + SLOT), "{third:?}");
    }
    assert!(backoffs.len() > 8 && backoffs.last() <= Some(&15), "{backoffs:?}");
}

/// The same clause: what comes while another has the air waits for a backoff.
#[test]
fn air_that_is_taken_is_left_with_a_backoff() {
    let mut backoffs = BTreeSet::new();
    for seed in 0..40 {
        let mut link = link(&format!("wifi = {{ {STRONG} }}"), seed);
        link.arrive(us(10_000), Direction::Up, packet(0, 1500));
        // The first frame is sent at the slowest rate and takes 2 ms.
        link.arrive(us(11_000), Direction::Down, packet(1, 1500));
        let events = all(&mut link);
        assert_eq!(events[0].direction, Direction::Up);
        backoffs.insert(slots(&events[1], events[0].at));
    }
    assert!(backoffs.len() > 8 && backoffs.last() <= Some(&15), "{backoffs:?}");
}

/// dot11ShortRetryLimit is 7. When a frame is given up, the contention window is the least again (§10.22.2.2).
#[test]
fn a_frame_is_tried_seven_times_and_leaves_the_least_window() {
    for seed in 0..40 {
        let mut link = link("wifi = { attenuation = '90 dB', aggregate = 1 }", seed);
        (0..2).for_each(|id| link.arrive(Time::ZERO, Direction::Up, packet(id, 1500)));
        let events = all(&mut link);
        assert!(events.iter().all(|event| event.attempts == 7), "{events:?}");
        assert!(slots(&events[1], events[0].at) <= 15, "{events:?}");
    }
}

/// The slowest scheme, 6.5 Mbit/s, at which nothing is lost: 1500 bytes and their answer are on the air for 2024 µs (476 symbols
/// and the preamble, SIFS, and an answer of 68 µs).
const SLOW: &str = "shadowing = '0 dB', rice_k = '60 dB', aggregate = 1, attenuation = '48.8 dB'";

/// A station's first turn is 43 µs after a packet came, and the next ones 43 µs and a backoff of 0 to 15 slots after the end of
/// the one before. So its fifth turn is at 8.3 to 8.9 ms, the sixth at 10.4 to 11.1 ms, and the seventh at 12.4 to 13.3 ms. Five
/// packets come at 0, and five at 4 ms. With a lifetime of 7.5 ms, the last of the first five is too old at the fifth turn. Two of
/// the others are sent, at the fifth and the sixth, and the three that are left are too old at the seventh.
#[test]
fn what_is_too_old_is_dropped_instead_of_being_sent() {
    for seed in 0..20 {
        let mut link = link(&format!("wifi = {{ {SLOW}, lifetime = '7.5 ms' }}"), seed);
        (0..5).for_each(|id| link.arrive(Time::ZERO, Direction::Up, packet(id, 1500)));
        (5..10).for_each(|id| link.arrive(us(4_000), Direction::Up, packet(id, 1500)));
        let events = all(&mut link);
        let ids: Vec<u64> = events.iter().map(|event| event.packet.id).collect();
        assert_eq!(ids, (0..10).collect::<Vec<_>>());
        for event in &events {
            let too_old = [4, 7, 8, 9].contains(&event.packet.id);
            let expected = if too_old { (false, 0) } else { (true, 1) };
            assert_eq!((common::delivered(event), event.attempts), expected, "{event:?}");
            assert_eq!(event.verdict == Verdict::Dropped(Cause::Lifetime), too_old, "{event:?}");
            assert_eq!(event.dequeued.is_none(), too_old, "{event:?}");
        }
        // Its turn is that of the next one, which is young enough.
        assert!((us(8_311)..=us(8_851)).contains(&events[4].at), "{events:?}");
        assert_eq!(events[5].dequeued, Some(events[4].at));
        assert!((us(12_445)..=us(13_255)).contains(&events[7].at), "{events:?}");
        assert!(events[7..].iter().all(|event| event.at == events[7].at), "{events:?}");
        let counts = link.counts(Direction::Up);
        assert_eq!((counts.dropped_for(Cause::Lifetime), counts.inside), (4, 0));
    }
}

/// The same on the air. Nothing arrives, and an attempt takes 2024 µs. The first begins after 43 µs, and the others another
/// 43 µs after a backoff, of 0 to 31 slots and then 0 to 63: at 2110 to 2389 and at 4177 to 5023 µs. Attempts end at 2067,
/// at 4134 to 4413, and at 6201 to 7047 µs.
#[test]
fn what_is_too_old_is_not_sent_again() {
    let cases = [
        // As old as it may be when the first attempt ends, and older when the second would begin.
        ("2067 us", 1, 2_110, 2_389),
        ("2066 us", 1, 2_067, 2_067),
        ("2390 us", 2, 4_134, 4_413),
        ("5024 us", 3, 6_201, 7_047),
    ];
    for (lifetime, attempts, from, to) in cases {
        for seed in 0..20 {
            let toml = format!("attenuation = '90 dB', aggregate = 1, lifetime = '{lifetime}'");
            let mut link = link(&format!("wifi = {{ {toml} }}"), seed);
            link.arrive(Time::ZERO, Direction::Down, packet(0, 1500));
            let event = all(&mut link)[0];
            assert_eq!(event.verdict, Verdict::Dropped(Cause::Lifetime), "{event:?}");
            assert_eq!(event.attempts, attempts, "{lifetime}: {event:?}");
            assert!((us(from)..=us(to)).contains(&event.at), "{lifetime}: {event:?}");
        }
    }
}

/// At 2.8 dB, of frames of 2340 bytes one in 3000 arrives, and of those of 84 bytes three in four. So of two that are sent together,
/// usually the second alone arrives, and is answered. It waits for the first, and is handed on when that is given up.
///
/// Both are on the air for 3108 µs with their answer (747 symbols), from 43 µs on; the first alone for 3004 µs (721 symbols). It
/// is its turn again 43 µs and 0 to 15 slots after the end of the first attempt: at 3194 to 3329 µs.
#[test]
fn what_arrived_is_handed_on_when_the_frame_before_it_is_too_old() {
    let channel = "shadowing = '0 dB', rice_k = '60 dB', aggregate = 2, attenuation = '52 dB'";
    let cases = [
        // Too old when the attempt ends, when its turn comes again, and after the second attempt.
        ("3150 us", 1, 3_151, 3_151),
        ("3151 us", 1, 3_194, 3_329),
        ("3330 us", 2, 6_198, 6_333),
    ];
    for (lifetime, attempts, from, to) in cases {
        let mut waited = 0;
        for seed in 0..40 {
            let mut link = link(&format!("wifi = {{ {channel}, lifetime = '{lifetime}' }}"), seed);
            link.arrive(Time::ZERO, Direction::Down, packet(0, 2296));
            link.arrive(Time::ZERO, Direction::Down, packet(1, 40));
            let events = all(&mut link);
            let [first, second] = &events[..] else { panic!("{seed}: {events:?}") };
            let alone = common::delivered(second) && second.attempts == 1;
            if !alone || first.verdict != Verdict::Dropped(Cause::Lifetime) {
                continue;
            }
            waited += 1;
            assert_eq!((first.packet.id, first.attempts), (0, attempts), "{seed}: {events:?}");
            assert!((us(from)..=us(to)).contains(&first.at), "{lifetime}, {seed}: {events:?}");
            let handed_on = (first.at, Some(us(43)));
            assert_eq!((second.at, second.dequeued), handed_on, "{lifetime}, {seed}: {events:?}");
        }
        // Two in three are expected.
        assert!(waited > 16, "{lifetime}: {waited} of 40");
    }
}

#[test]
fn a_dip_begins_and_ends_at_its_times() {
    let toml = format!(
        "wifi = {{ {STRONG}, changes = [{{ at = '500 ms', attenuation = '90 dB' }}, \
         {{ at = '1 s', attenuation = '0 dB' }}] }}"
    );
    let mut link: Link = common::link(&toml, 2);
    let mut delivered = [0u32; 4];
    for ms in 0..1000u64 {
        let now = Time::from_millis(ms * 2);
        link.arrive(now, Direction::Down, packet(ms, 1500));
        while let Some(event) = link.poll(now) {
            if common::delivered(&event) {
                delivered[(event.at.as_nanos() / (S / 2)) as usize] += 1;
            }
        }
    }
    assert!(delivered[0] > 240 && delivered[1] < 5, "{delivered:?}");
    assert!(delivered[2] > 150 && delivered[3] > 240, "{delivered:?}");
}

#[test]
fn another_seed_is_another_channel() {
    let config = common::config("wifi = { attenuation = '32 dB' }");
    let ends = |seed| {
        let mut link = Link::new(&config, Seed(seed));
        (0..200).for_each(|id| link.arrive(Time::ZERO, Direction::Down, packet(id, 1500)));
        std::iter::from_fn(|| link.poll(Time::from_nanos(60 * S))).collect::<Vec<_>>()
    };
    assert_eq!(ends(1), ends(1));
    assert_ne!(ends(1), ends(2));
}
