//! A Wi-Fi cell against the link of two stations, the arithmetic of its air time, and the performance anomaly.

use proptest::prelude::*;
use suiro_link::{Cause, CellConfig, Event, LinkConfig, Schedule, Segment, SegmentConfig, Verdict};
use suiro_units::{Direction, Duration, Ratio, Seed, Time};

use crate::common::{config, delivered, link, packet, us};

/// Strong and steady at 5 m: the fastest scheme, 65 Mbit/s, and nothing is lost but by collisions.
const FAST: &str = "wifi = { shadowing = '0 dB', rice_k = '60 dB', aggregate = 1 }";
/// Steady, and so weak that the slowest scheme, 6.5 Mbit/s, loses nothing and no faster one is tried.
const SLOW: &str =
    "wifi = { shadowing = '0 dB', rice_k = '60 dB', aggregate = 1, attenuation = '48.8 dB' }";

/// A cell with stations of these keys of a link.
fn cell(stations: &[&str], seed: u64) -> Segment {
    let busy = Schedule::constant(Ratio::ZERO);
    let stations: Vec<LinkConfig> = stations.iter().map(|toml| config(toml)).collect();
    Segment::new(&SegmentConfig::Wifi(CellConfig { busy, stations }), Seed(seed))
}

/// Mbit/s of IP that each of the stations carries in this direction, if all have always something to send in it.
fn goodput(stations: &[&str], direction: Direction, bytes: u64, seed: u64) -> Vec<f64> {
    let mut cell = cell(stations, seed);
    let until = Time::from_secs(20);
    for station in 0..stations.len() {
        for _ in 0..70 {
            cell.arrive(Time::ZERO, station, direction, packet(station as u64, bytes));
        }
    }
    while let Some(at) = cell.next_event().filter(|&at| at <= until) {
        while let Some(event) = cell.poll(at) {
            cell.arrive(at, event.packet.id as usize, direction, event.packet);
        }
    }
    let of = |station| cell.counts(station, direction).delivered_bytes.bits();
    (0..stations.len()).map(|station| of(station) as f64 / 1e6 / until.as_secs_f64()).collect()
}

/// What `n` equal fast stations and a slow one carry.
fn with_a_slow_one(fast: usize, direction: Direction) -> Vec<f64> {
    let mut stations = vec![FAST; fast];
    stations.push(SLOW);
    goodput(&stations, direction, 1500, 1)
}

/// Microseconds of AIFS, PPDU, SIFS and block ACK of a frame of 1500 bytes: 48 symbols at 65 Mbit/s and an answer at
/// 24 Mbit/s, 476 symbols at 6.5 Mbit/s and an answer at 6 Mbit/s.
const FAST_US: f64 = 43.0 + (36.0 + 48.0 * 4.0) + 16.0 + 32.0;
const SLOW_US: f64 = 43.0 + (36.0 + 476.0 * 4.0) + 16.0 + 68.0;
const BITS: f64 = 12_000.0;
const SLOT_US: f64 = 9.0;
const CW_MIN: f64 = 15.0;

/// Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", JSAC 18, 2000: Mbit/s of `n`
/// stations together that always have something to send. §IV-A, equations 7 and 9: how often a station sends in a slot,
/// and collides; §IV-B, equation 13: the throughput.
fn bianchi(n: f64) -> f64 {
    let (window, doublings) = (CW_MIN + 1.0, 6);
    let sends = |p: f64| {
        let sum: f64 = (0..doublings).map(|i| (2.0 * p).powi(i)).sum();
        2.0 / (1.0 + window + p * window * sum)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p = (low + high) / 2.0;
        let collides = 1.0 - (1.0 - sends(p)).powf(n - 1.0);
        if collides > p { low = p } else { high = p }
    }
    let tau = sends(low);
    let idle = (1.0 - tau).powf(n);
    let alone = n * tau * (1.0 - tau).powf(n - 1.0);
    alone * BITS / (idle * SLOT_US + (1.0 - idle) * FAST_US)
}

#[test]
fn equal_stations_share_what_bianchi_computed() {
    for n in [2, 5, 10, 20] {
        let each = goodput(&vec![FAST; n], Direction::Up, 1500, 3);
        let (sum, expected) = (each.iter().sum::<f64>(), bianchi(n as f64));
        eprintln!("{n} stations: {sum:.1} Mbit/s, by Bianchi {expected:.1}");
        assert!((sum / expected - 1.0).abs() < 0.05, "{n}: {sum} for {expected}");
        let jain = sum.powi(2) / (n as f64 * each.iter().map(|x| x * x).sum::<f64>());
        assert!(jain > 0.97, "{jain}: {each:?}");
    }
}

/// Heusse, Rousseau, Berger-Sabbatel and Duda, "Performance anomaly of 802.11b", INFOCOM 2003, the part on the anomaly.
/// The result is the Mbit/s of each of `n` hosts, one of which is slow, from the time of each one's frame, the time of
/// contention, and that of collisions between all pairs. The authors have 1 and 11 Mbit/s of 802.11b; these are the
/// least and the highest rate of 802.11n with one stream, 6.5 and 65 Mbit/s, with its intervals and its contention
/// window.
fn heusse(n: f64) -> f64 {
    let collides = 1.0 - (1.0 - 1.0 / CW_MIN).powf(n - 1.0);
    let contention = SLOT_US * (1.0 + collides) / (2.0 * n) * CW_MIN / 2.0;
    let (fast, slow) = (FAST_US + contention, SLOW_US + contention);
    let jam = 2.0 / n * slow + (1.0 - 2.0 / n) * fast;
    BITS / ((n - 1.0) * fast + slow + collides * jam * n)
}

/// Mbit/s of the mean fast station, of the slow one, and by the formula; alone, the slow one carries 5.6.
///
/// | stations | all fast | fast | slow | formula |
/// |---|---|---|---|---|
/// | 2 | 15.9 | 4.47 | 4.41 | 4.44 |
/// | 3 | 10.5 | 3.67 | 3.63 | 3.61 |
/// | 5 | 6.0 | 2.70 | 2.73 | 2.60 |
/// | 10 | 2.8 | 1.60 | 1.81 | 1.48 |
///
/// The formula keeps the least contention window after collisions, so it is too low where collisions are many.
#[test]
fn a_slow_station_pulls_all_others_down() {
    let slow_alone = goodput(&[SLOW], Direction::Up, 1500, 1)[0];
    for (n, tolerance) in [(2, 0.03), (3, 0.04), (5, 0.12), (10, 0.25)] {
        let all_fast = goodput(&vec![FAST; n], Direction::Up, 1500, 1);
        let all_fast = all_fast.iter().sum::<f64>() / n as f64;
        let each = with_a_slow_one(n - 1, Direction::Up);
        let (slow, fast) = (each[n - 1], each[..n - 1].iter().sum::<f64>() / (n - 1) as f64);
        let formula = heusse(n as f64);
        eprintln!(
            "{n}: all fast {all_fast:.1}, fast {fast:.2}, slow {slow:.2}, formula {formula:.2}"
        );
        assert!((fast / slow - 1.0).abs() < 0.15, "{n}: fast {fast}, slow {slow}");
        assert!(fast < 0.7 * all_fast && fast < slow_alone, "{n}: {fast} of {all_fast}");
        for one in [fast, slow] {
            assert!((one / formula - 1.0).abs() < tolerance, "{n}: {each:?} for {formula}");
        }
    }
}

/// The access point serves its stations in turns: the same anomaly, without a collision.
#[test]
fn the_access_point_suffers_from_it_too() {
    for n in [2, 5, 10] {
        let each = with_a_slow_one(n - 1, Direction::Down);
        let backoff = CW_MIN / 2.0 * SLOT_US;
        let round = (n - 1) as f64 * (FAST_US + backoff) + SLOW_US + backoff;
        for one in each {
            assert!((one / (BITS / round) - 1.0).abs() < 0.02, "{one} for {}", BITS / round);
        }
    }
}

/// Aggregates are bounded in time, 4 ms: with them, stations share the time and not the number of frames.
#[test]
fn aggregation_ends_the_anomaly() {
    let [fast, slow] = [FAST, SLOW].map(|toml| toml.replace("aggregate = 1", "aggregate = 64"));
    let fast_only = goodput(&[&fast, &fast], Direction::Up, 1500, 1);
    for direction in Direction::BOTH {
        let each = goodput(&[&fast, &slow], direction, 1500, 1);
        eprintln!("with aggregation {each:.1?}");
        assert!(each[0] > 0.85 * fast_only[0] && each[0] > 6.0 * each[1], "{each:?}");
    }
}

/// Packets at random times, in both directions of every station, in order of time.
fn traffic(stations: usize) -> impl Strategy<Value = Vec<(u64, usize, Direction, u64)>> {
    let direction = prop::sample::select(Direction::BOTH.to_vec());
    let one = (0u64..6_000, 0..stations, direction, 20u64..2400);
    prop::collection::vec(one, 1..120).prop_map(|mut all| {
        all.sort_by_key(|(at, ..)| *at);
        all
    })
}

const KINDS: [&str; 6] = [
    "wifi = {}\nqueue.limit = '6p'",
    "wifi = { walls = 3, attenuation = '8 dB', rice_k = '-20 dB', aggregate = 4 }",
    "wifi = { attenuation = '48 dB', retries = 1, short_gi = true }\nqueue.limit = '6p'",
    "wifi = { distance = '20 m' }\nqueue = { discipline = 'fq-codel', limit = '9p' }",
    "preset = 'wifi-obstacle'\nwifi = { busy = 0, changes = [{ at = '3 ms', attenuation = '60 dB' }] }",
    "wifi = { attenuation = '47 dB', lifetime = '9 ms' }\nqueue = { discipline = 'codel', limit = '30p' }",
];

proptest! {
    /// Nothing is lost but by retries, queue, size or age; when it is polled does not matter.
    #[test]
    fn nothing_is_lost_but_by_retries_queue_or_age(
        arrivals in traffic(KINDS.len()),
        seed in any::<u64>(),
    ) {
        let [mut punctual, mut late] = [0, 1].map(|_| cell(&KINDS, seed));
        let mut events = Vec::new();
        for (n, &(at, station, direction, bytes)) in arrivals.iter().enumerate() {
            while let Some(due) = punctual.next_event().filter(|&due| due <= us(at)) {
                events.extend(std::iter::from_fn(|| punctual.poll(due)));
            }
            for cell in [&mut punctual, &mut late] {
                cell.arrive(us(at), station, direction, packet(n as u64, bytes));
            }
        }
        let end = Time::from_secs(1000);
        events.extend(std::iter::from_fn(|| punctual.poll(end)));
        let lately: Vec<Event> = std::iter::from_fn(|| late.poll(end)).collect();
        prop_assert_eq!(&events, &lately);
        prop_assert_eq!(events.len(), arrivals.len());
        let causes = [Cause::Queue, Cause::Size, Cause::Retry, Cause::Lifetime, Cause::Aqm];
        for station in 0..KINDS.len() {
            for direction in Direction::BOTH {
                let counts = punctual.counts(station, direction);
                let dropped: u64 = causes.iter().map(|&cause| counts.dropped_for(cause)).sum();
                prop_assert_eq!(counts.arrived, counts.delivered + dropped);
                prop_assert_eq!(counts.inside, 0);
            }
        }
    }

    /// At most one transmission succeeds at a time: before each there is AIFS, and time for the frame at the highest rate
    /// and its answer, in which no other ends. What came at the first attempt was taken after the one before had ended.
    #[test]
    fn one_succeeds_at_a_time(arrivals in traffic(4), seed in any::<u64>()) {
        let stations = [FAST, SLOW, FAST, "wifi = { rice_k = '-20 dB', walls = 3, aggregate = 1 }"];
        let mut cell = cell(&stations, seed);
        for (n, &(at, station, direction, bytes)) in arrivals.iter().enumerate() {
            cell.arrive(us(at), station, direction, packet(n as u64, bytes));
        }
        let events: Vec<Event> = std::iter::from_fn(|| cell.poll(Time::from_secs(1000))).collect();
        let mut clear = Time::ZERO;
        for event in events.iter().filter(|event| delivered(event)) {
            let symbols = ((event.packet.size.get() + 42).next_multiple_of(4) * 8 + 22).div_ceil(260);
            let least = Duration::from_micros(36 + 4 * symbols + 16 + 32);
            let begins = event.at.saturating_sub(least);
            prop_assert!(begins >= clear, "{event:?} begins before {clear}");
            if event.attempts == 1 {
                prop_assert!(event.dequeued >= Some(clear), "{event:?} begins before {clear}");
            }
            clear = event.at + Duration::from_micros(43);
        }
    }

    /// A cell of one station is the link of two.
    #[test]
    fn a_cell_of_one_station_is_a_link(
        arrivals in traffic(1),
        kind in prop::sample::select(KINDS.to_vec()),
        seed in 0..1000u64,
    ) {
        let toml = format!("loss = '3 %'\njitter = {{ distribution = 'normal', sd = '1 ms' }}\n{kind}");
        let (mut cell, mut link) = (cell(&[&toml], seed), link(&toml, seed));
        for (n, &(at, station, direction, bytes)) in arrivals.iter().enumerate() {
            cell.arrive(us(at), station, direction, packet(n as u64, bytes));
            link.arrive(us(at), direction, packet(n as u64, bytes));
        }
        for end in [us(3_000), Time::from_secs(1000)] {
            let alike: Vec<Event> = std::iter::from_fn(|| link.poll(end)).collect();
            prop_assert_eq!(std::iter::from_fn(|| cell.poll(end)).collect::<Vec<_>>(), alike);
        }
    }
}

#[test]
fn others_leave_the_cell_their_rest() {
    let of = |busy: f64| {
        let busy = Schedule::constant(Ratio::new(busy).unwrap());
        let stations = vec![config(FAST); 3];
        let mut cell = Segment::new(&SegmentConfig::Wifi(CellConfig { busy, stations }), Seed(4));
        for n in 0..30_000 {
            cell.arrive(us(100 * n), (n % 3) as usize, Direction::Up, packet(n, 1500));
            while cell.poll(us(100 * n)).is_some() {}
        }
        (0..3).map(|station| cell.counts(station, Direction::Up).delivered as f64).sum::<f64>()
    };
    let share = of(0.5) / of(0.0);
    assert!((share - 0.5).abs() < 0.07, "{share}");
}

#[test]
fn a_full_queue_is_its_own_stations() {
    let limited = "wifi = {}\nqueue.limit = '5p'";
    let mut cell = cell(&[limited, limited], 1);
    for id in 0..100 {
        cell.arrive(us(1), 0, Direction::Down, packet(id, 1500));
    }
    for direction in Direction::BOTH {
        cell.arrive(us(1), 1, direction, packet(200, 1500));
    }
    while cell.poll(Time::from_secs(1)).is_some() {}
    assert_eq!(cell.counts(0, Direction::Down).dropped_for(Cause::Queue), 95);
    for direction in Direction::BOTH {
        assert_eq!(cell.counts(1, direction).delivered, 1);
    }
}

#[test]
fn draining_hands_back_all_that_is_inside() {
    let mut cell = cell(&[FAST, SLOW], 1);
    for id in 0..40 {
        let direction = if id % 2 == 0 { Direction::Up } else { Direction::Down };
        cell.arrive(us(id), (id / 2 % 2) as usize, direction, packet(id, 1500));
    }
    cell.drain(us(3_000));
    let events: Vec<Event> = std::iter::from_fn(|| cell.poll(us(3_000))).collect();
    let inside = events.iter().filter(|event| event.verdict == Verdict::Queued).count();
    assert!(events.len() == 40 && inside > 20 && cell.next_event().is_none(), "{events:?}");
}

#[test]
fn a_wrong_cell_is_refused_with_its_place() {
    let cell = |stations, busy| {
        let busy = Schedule::constant(Ratio::new(busy).unwrap());
        serde_json::to_string(&SegmentConfig::Wifi(CellConfig { busy, stations })).unwrap()
    };
    let read = |text: &str| serde_json::from_str::<SegmentConfig>(text).map_err(|e| e.to_string());
    let good = cell(vec![config(FAST); 2], 0.3);
    assert_eq!(serde_json::to_string(&read(&good).unwrap()).unwrap(), good);
    for (text, expected) in [
        (cell(vec![], 0.0), "stations: "),
        (cell(vec![config(FAST)], 0.96), "busy: "),
        (cell(vec![config(FAST), config("")], 0.0), "stations.1.wifi: "),
        (cell(vec![config("wifi = { busy = 0.1 }")], 0.0), "stations.0.wifi: "),
    ] {
        let refusal = read(&text).unwrap_err();
        assert!(refusal.starts_with(expected), "{refusal}");
    }
}
