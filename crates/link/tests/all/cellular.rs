//! A cellular cell against the formulas of its rate, the properties of proportional fairness, and the times of its radio.

use proptest::prelude::*;
use suiro_link::{
    BaseStationConfig, Cause, Event, LinkConfig, Segment, SegmentConfig, SegmentSpec, Verdict,
};
use suiro_units::{Direction, Seed, Time};

use crate::common::{self, config, delivered, link, ms, packet, us};

/// Neither shadowing nor fading nor errors: the rate is that of the formula.
const STEADY: &str = "shadowing = '0 dB', rice_k = '100 dB', block_errors = 0";

/// A cell with users of these keys below `cellular`.
fn cell(users: &[String], seed: u64) -> Segment {
    let user = |keys: &String| config(&format!("cellular = {{ {keys} }}\nqueue.limit = '100p'"));
    let stations: Vec<LinkConfig> = users.iter().map(user).collect();
    Segment::new(&SegmentConfig::Cellular(BaseStationConfig { stations }), Seed(seed))
}

/// Mbit/s of each user who has always something to send in this direction, and the others nothing in the other.
fn goodput(users: &[String], direction: Direction, seconds: u64, seed: u64) -> Vec<f64> {
    let mut cell = cell(users, seed);
    let until = Time::from_secs(seconds);
    for user in 0..users.len() {
        (0..60).for_each(|_| cell.arrive(Time::ZERO, user, direction, packet(user as u64, 1500)));
    }
    while let Some(at) = cell.next_event().filter(|&at| at <= until) {
        while let Some(event) = cell.poll(at) {
            cell.arrive(at, event.packet.id as usize, direction, event.packet);
        }
    }
    let of = |user| cell.counts(user, direction).delivered_bytes.bits();
    (0..users.len()).map(|user| of(user) as f64 / 1e6 / seconds as f64).collect()
}

fn alone(keys: &str, direction: Direction) -> f64 {
    goodput(&[keys.to_owned()], direction, 4, 1)[0]
}

fn steady(metres: u64) -> String {
    format!("{STEADY}, distance = '{metres} m'")
}

/// Path loss, 20 dB of walls and 14 dB of antenna gain.
fn loss_db(metres: f64) -> f64 {
    128.1 + 37.6 * (metres / 1000.0).log10() + 20.0 - 14.0
}

fn mw(dbm: f64) -> f64 {
    10f64.powf(dbm / 10.0)
}

/// 46 dBm over 50 blocks of 180 kHz, six neighbours 500 m away that always send, and −112.4 dBm of noise.
fn formula_down(metres: f64) -> f64 {
    let received = |metres: f64| mw(46.0 - 10.0 * 50f64.log10() - loss_db(metres));
    let away = |degrees: f64| {
        let (sin, cos) = degrees.to_radians().sin_cos();
        (500.0 * cos - metres).hypot(500.0 * sin)
    };
    let others: f64 = (0..6).map(|k| received(away(30.0 + 60.0 * f64::from(k)))).sum();
    let sinr = received(metres) / (others + mw(-121.4 + 9.0));
    (0.6 * (1.0 + sinr).log2()).min(4.4) * 9.0
}

#[test]
fn one_user_has_the_rate_of_the_formula() {
    for metres in [50, 100, 150, 200, 250, 280] {
        let keys = format!("{}, load = 1", steady(metres));
        let (found, expected) = (alone(&keys, Direction::Down), formula_down(metres as f64));
        assert!((found / expected - 1.0).abs() < 0.01, "{metres} m: {found} for {expected}");
    }
    // 64QAM with 4/5: 4.4 bit/s/Hz in 9 MHz; and in 1.08 MHz.
    assert!((formula_down(50.0) - 39.6).abs() < 1e-9);
    let narrow = alone(&format!("{}, bandwidth = '1.4 MHz'", steady(50)), Direction::Down);
    assert!((narrow / (4.4 * 1.08) - 1.0).abs() < 0.01, "{narrow}");
}

/// Without neighbours: −106 dBm in each block over a noise of −116.4 dBm where the power suffices. It does not at 1 km: its
/// power is spread over as many blocks as are received at the level of the noise.
#[test]
fn up_power_control_limits_the_rate() {
    let up = |sinr: f64, blocks: f64| 0.4 * (1.0 + sinr).log2() * 0.18 * blocks;
    let near = alone(&format!("{}, load = 0", steady(50)), Direction::Up);
    let expected = up(mw(-106.0 + 116.4), 50.0);
    assert!((near / expected - 1.0).abs() < 0.01, "{near} for {expected}");
    let far = format!("{STEADY}, distance = '1000 m', cell_radius = '1000 m', load = 0");
    let full = mw(23.0 - loss_db(1000.0) + 116.4);
    let blocks = full.floor();
    let (found, expected) = (alone(&far, Direction::Up), up(full / blocks, blocks));
    assert!((found / expected - 1.0).abs() < 0.02, "{found} for {expected}");
    // The neighbours' users cost as much as they raise the noise.
    let crowded = alone(&format!("{}, load = 1", steady(50)), Direction::Up);
    assert!(crowded < 0.6 * near, "{crowded} of {near}");
}

#[test]
fn equal_users_share_evenly_and_gain_by_taking_turns() {
    let user = |speed| format!("shadowing = '0 dB', distance = '200 m', speed = '{speed} km/h'");
    for direction in Direction::BOTH {
        let one = goodput(&[user(30)], direction, 20, 3)[0];
        let each = goodput(&vec![user(30); 2], direction, 20, 3);
        assert!((each[0] / each[1] - 1.0).abs() < 0.06, "{direction:?}: {each:?}");
        // Each is served when its signal is good (multi-user diversity).
        let gain = (each[0] + each[1]) / one;
        assert!((1.05..1.5).contains(&gain), "{direction:?}: {gain}");
    }
}

/// What proportional fairness is for: the same air time, whatever the rate.
#[test]
fn a_near_and_a_far_user_have_the_same_air_time() {
    let users = [steady(60), steady(270)];
    let each = goodput(&users, Direction::Down, 10, 1);
    let alone = users.map(|user| alone(&user, Direction::Down));
    assert!(alone[0] > 5.0 * alone[1], "{alone:?}");
    for (shared, alone) in each.iter().zip(alone) {
        assert!((shared / alone - 0.5).abs() < 0.02, "{shared} of {alone}");
    }
}

/// A user who wants less than its share gets it; the others have what is left.
#[test]
fn what_one_does_not_need_is_the_others() {
    let mut cell = cell(&[steady(60), steady(60)], 1);
    let mut waited = Vec::new();
    for n in 0..10_000u64 {
        let now = us(1000 * n + 500);
        // 1.2 Mbit/s, and 60 Mbit/s.
        if n % 10 == 0 {
            cell.arrive(now, 0, Direction::Down, packet(n, 1500));
        }
        (0..5).for_each(|_| cell.arrive(now, 1, Direction::Down, packet(u64::MAX, 1500)));
        while let Some(event) = cell.poll(now) {
            if event.packet.id != u64::MAX && delivered(&event) {
                waited.push(event.at - event.arrived);
            }
        }
    }
    assert!(waited.iter().all(|wait| *wait <= ms(3) - Time::ZERO), "{:?}", waited.iter().max());
    let others = cell.counts(1, Direction::Down).delivered_bytes.bits() as f64 / 1e7;
    assert!((others - (39.6 - 1.2)).abs() < 0.5, "{others}");
}

/// How late each packet of a sparse flow is beyond one at the first attempt, in milliseconds, and its attempts.
fn late(keys: &str, packets: u64) -> Vec<(u64, u8)> {
    let mut link = link(&format!("cellular = {{ {keys} }}"), 5);
    let mut events = Vec::new();
    for n in 0..packets {
        let now = us(500_000 * n + 300);
        link.arrive(now, Direction::Down, packet(n, 1200));
        events.extend(std::iter::from_fn(|| link.poll(now)));
    }
    events.extend(std::iter::from_fn(|| link.poll(Time::from_secs(packets))));
    let late = |event: &Event| {
        let ns = (event.at - event.arrived).as_nanos() - 1_700_000;
        assert_eq!(ns % 1_000_000, 0);
        (ns / 1_000_000, event.attempts)
    };
    events.iter().map(late).collect()
}

#[test]
fn a_block_that_failed_arrives_8_ms_later() {
    let keys = "shadowing = '0 dB', rice_k = '100 dB', block_errors = 0.1";
    let all = late(keys, 4_000);
    let of = |ms: u64| all.iter().filter(|(late, _)| *late == ms).count() as f64 / 4_000.0;
    assert!((of(0) - 0.9).abs() < 0.02 && (of(8) - 0.09).abs() < 0.02, "{} {}", of(0), of(8));
    let by_harq = all.iter().filter(|(_, attempts)| *attempts <= 4);
    let odd = by_harq.clone().find(|(late, attempts)| *late != 8 * (u64::from(*attempts) - 1));
    assert!(odd.is_none() && by_harq.count() > 3_990, "{odd:?}");
    assert!(late(STEADY, 100).iter().all(|&(late, attempts)| (late, attempts) == (0, 1)));
}

/// Half of all attempts fail: one block in 16 needs RLC, after three retransmissions.
#[test]
fn rlc_sends_again_what_harq_gave_up() {
    let all = late("shadowing = '0 dB', rice_k = '100 dB', block_errors = 0.5", 2_000);
    let by_rlc = all.iter().filter(|(late, _)| *late >= 72).count() as f64 / 2_000.0;
    assert!((by_rlc - 1.0 / 16.0).abs() < 0.02, "{by_rlc}");
    assert!(all.iter().all(|(late, _)| late % 8 == 0 && ![32, 40, 48, 56, 64].contains(late)));
}

/// Down in the next subframe; up only after the request and the grant, unless something waits already.
#[test]
fn who_has_had_nothing_to_send_up_asks_first() {
    let mut link = link(&format!("cellular = {{ {STEADY} }}"), 1);
    for direction in Direction::BOTH {
        link.arrive(us(500), direction, packet(direction as u64, 300));
    }
    let at = |link: &mut suiro_link::Link| link.poll(ms(1_000)).map(|event| event.at);
    assert_eq!([at(&mut link), at(&mut link), at(&mut link)], [Some(ms(2)), Some(ms(12)), None]);
    assert_eq!(link.next_event(), None, "nothing happens while nobody has anything to send");
    // 4 MB take a while; what comes meanwhile needs no grant of its own.
    (0..40).for_each(|id| link.arrive(us(200_500), Direction::Up, packet(id, 1500)));
    link.arrive(us(215_500), Direction::Up, packet(99, 100));
    let mut events: Vec<Event> = std::iter::from_fn(|| link.poll(ms(400))).collect();
    let last = events.pop().unwrap();
    assert_eq!((last.packet.id, last.at), (99, events.last().unwrap().at));
    // Now the queue was empty again.
    link.arrive(us(500_500), Direction::Up, packet(100, 100));
    assert_eq!(at(&mut link), Some(ms(512)));
}

/// Deliveries of user 0 down from 5 s on, while it always has something to send.
fn from_5_s(others_send: bool, from_s: u64) -> Vec<(u64, Time)> {
    let keys = "block_errors = 0, distance = '220 m'".to_owned();
    let mut cell = cell(&[keys.clone(), keys], 9);
    let mut found = Vec::new();
    for n in from_s * 1000..8_000 {
        let now = us(1000 * n + 500);
        (0..4).for_each(|_| cell.arrive(now, 0, Direction::Down, packet(n, 1500)));
        if others_send {
            cell.arrive(now, 0, Direction::Up, packet(n, 1500));
            cell.arrive(now, 1, Direction::Up, packet(n, 1500));
        }
        while let Some(event) = cell.poll(now) {
            if event.direction == Direction::Down && delivered(&event) && event.at >= ms(5_000) {
                found.push((event.packet.size.get(), event.at));
            }
        }
    }
    found
}

/// So that trials with a seed have the same signal, and two directions each their own band.
#[test]
fn the_signal_does_not_depend_on_what_is_sent() {
    let reference = from_5_s(false, 0);
    assert!(reference.len() > 1000);
    assert_eq!(reference, from_5_s(true, 0));
    let per_100_ms = |all: &[(u64, Time)]| {
        let mut bins = [0u64; 31];
        for (size, at) in all {
            bins[((at.as_nanos() - 5_000_000_000) / 100_000_000) as usize] += size;
        }
        bins
    };
    let [one, other] = [reference, from_5_s(false, 3)].map(|all| per_100_ms(&all));
    assert!(one.iter().zip(other).all(|(one, other)| one.abs_diff(other) <= 1500), "{other:?}");
}

/// A weak signal makes packets wait, not disappear.
#[test]
fn a_fade_takes_time_but_no_packets() {
    let keys = "distance = '280 m', penetration = '54 dB', shadowing = '0 dB'";
    let mut link = link(&format!("cellular = {{ {keys} }}\nqueue.limit = '10000p'"), 4);
    (0..2_000).for_each(|n| link.arrive(ms(10 * n), Direction::Down, packet(n, 150)));
    let all: Vec<Event> = std::iter::from_fn(|| link.poll(Time::from_secs(600))).collect();
    assert_eq!(all.iter().filter(|event| delivered(event)).count(), 2_000);
    assert!(all.windows(2).all(|pair| pair[0].packet.id < pair[1].packet.id));
    let longest = all.iter().map(|event| event.at - event.arrived).max().unwrap();
    assert!(longest > ms(60) - Time::ZERO, "{longest}");
}

/// Ten users who talk and watch at 3 Mbit/s together; the time that this takes is in docs/method.md.
#[test]
fn ten_users_are_served_in_both_directions() {
    let user = |n: u64| format!("distance = '{} m'", 60 + 15 * n);
    let users: Vec<String> = (0..10).map(user).collect();
    let mut cell = cell(&users, 2);
    for n in 0..60_000u64 {
        let now = us(1000 * n + 100);
        let user = (n % 10) as usize;
        for direction in Direction::BOTH {
            cell.arrive(now, user, direction, packet(n, 375));
        }
        while cell.poll(now).is_some() {}
    }
    for user in 0..10 {
        let share = |direction| {
            let counts = cell.counts(user, direction);
            counts.delivered as f64 / counts.arrived as f64
        };
        assert!(Direction::BOTH.map(share).iter().all(|share| *share > 0.99), "{user}");
    }
}

/// Packets at random times, in both directions of every user, in order of time.
fn traffic(users: usize) -> impl Strategy<Value = Vec<(u64, usize, Direction, u64)>> {
    let direction = prop::sample::select(Direction::BOTH.to_vec());
    let one = (0u64..30_000, 0..users, direction, 0u64..9000);
    prop::collection::vec(one, 1..120).prop_map(|mut all| {
        all.sort_by_key(|(at, ..)| *at);
        all
    })
}

const USERS: [&str; 4] = [
    "cellular = { load = 1 }\nqueue.limit = '6p'",
    "cellular = { load = 1, distance = '280 m', block_errors = 0.5, speed = '0 km/h' }\nqueue.limit = '9 kB'",
    "cellular = { load = 1, distance = '200 m', rice_k = '6 dB' }\nqueue = { discipline = 'fq-codel', limit = '9p' }",
    "cellular = { load = 1, speed = '120 km/h', shadowing = '0 dB' }\nqueue = { discipline = 'codel', target = '1 ms', interval = '2 ms' }",
];

fn cell_of(users: &[&str], seed: u64) -> Segment {
    let stations = users.iter().map(|toml| config(toml)).collect();
    Segment::new(&SegmentConfig::Cellular(BaseStationConfig { stations }), Seed(seed))
}

proptest! {
    /// Nothing is lost on the air, order is kept for each user and direction, and when it is polled does not matter.
    #[test]
    fn nothing_is_lost_on_the_air(arrivals in traffic(USERS.len()), seed in 0..1000u64) {
        let [mut punctual, mut late] = [0, 1].map(|_| cell_of(&USERS, seed));
        let mut events = Vec::new();
        for (n, &(at, user, direction, bytes)) in arrivals.iter().enumerate() {
            while let Some(due) = punctual.next_event().filter(|&due| due <= us(at)) {
                events.extend(std::iter::from_fn(|| punctual.poll(due)));
            }
            for cell in [&mut punctual, &mut late] {
                cell.arrive(us(at), user, direction, packet(n as u64, bytes));
            }
        }
        let end = Time::from_secs(30);
        for cell in [&mut punctual, &mut late] {
            cell.drain(end);
        }
        events.extend(std::iter::from_fn(|| punctual.poll(end)));
        let lately: Vec<Event> = std::iter::from_fn(|| late.poll(end)).collect();
        prop_assert_eq!(&events, &lately);
        prop_assert_eq!(events.len(), arrivals.len());
        for user in 0..USERS.len() {
            for direction in Direction::BOTH {
                let counts = punctual.counts(user, direction);
                let causes = [Cause::Queue, Cause::Size, Cause::Aqm];
                let dropped: u64 = causes.iter().map(|&cause| counts.dropped_for(cause)).sum();
                prop_assert_eq!(counts.arrived, counts.delivered + dropped + counts.drained);
                prop_assert_eq!(counts.inside, 0);
                // FQ-CoDel keeps it within a flow, and there is one.
                let own = |event: &&Event| {
                    let of = &arrivals[event.packet.id as usize];
                    (of.1, of.2) == (user, direction) && delivered(event)
                };
                let numbers: Vec<u64> = events.iter().filter(own).map(|event| event.number).collect();
                prop_assert!(numbers.is_sorted_by(|a, b| a < b), "{:?}", numbers);
            }
        }
    }

    /// A cell of one user is the link.
    #[test]
    fn a_cell_of_one_user_is_a_link(
        arrivals in traffic(1),
        user in prop::sample::select(USERS.to_vec()),
        seed in 0..1000u64,
    ) {
        let toml = format!("loss = '3 %'\njitter = {{ distribution = 'normal', sd = '1 ms' }}\n{user}");
        let (mut cell, mut link) = (cell_of(&[&toml], seed), link(&toml, seed));
        for (n, &(at, user, direction, bytes)) in arrivals.iter().enumerate() {
            cell.arrive(us(at), user, direction, packet(n as u64, bytes));
            link.arrive(us(at), direction, packet(n as u64, bytes));
        }
        for end in [us(3_000), Time::from_secs(30)] {
            let alike: Vec<Event> = std::iter::from_fn(|| link.poll(end)).collect();
            prop_assert_eq!(std::iter::from_fn(|| cell.poll(end)).collect::<Vec<_>>(), alike);
        }
    }
}

#[test]
fn draining_hands_back_all_that_is_inside() {
    let mut cell = cell_of(&USERS[..2], 1);
    for id in 0..40 {
        let direction = if id % 2 == 0 { Direction::Up } else { Direction::Down };
        cell.arrive(us(id), (id / 2 % 2) as usize, direction, packet(id, 1000));
    }
    cell.drain(us(1_500));
    let events: Vec<Event> = std::iter::from_fn(|| cell.poll(us(1_500))).collect();
    let inside = events.iter().filter(|event| event.verdict == Verdict::Queued).count();
    assert!(events.len() == 40 && inside > 20 && cell.next_event().is_none(), "{events:?}");
}

#[test]
fn another_seed_is_another_channel() {
    let config = common::config("cellular = { distance = '250 m' }");
    let ends = |seed| {
        let mut link = suiro_link::Link::new(&config, Seed(seed));
        (0..200).for_each(|id| link.arrive(Time::ZERO, Direction::Down, packet(id, 1500)));
        std::iter::from_fn(|| link.poll(Time::from_secs(60))).collect::<Vec<_>>()
    };
    assert_eq!(ends(1), ends(1));
    assert_ne!(ends(1), ends(2));
}

#[test]
fn a_wrong_cell_is_refused_with_its_place() {
    let cell = |users: &[&str]| {
        let stations = users.iter().map(|toml| config(toml)).collect();
        serde_json::to_string(&SegmentConfig::Cellular(BaseStationConfig { stations })).unwrap()
    };
    let read = |text: &str| serde_json::from_str::<SegmentConfig>(text).map_err(|e| e.to_string());
    let good = cell(&USERS[..2]);
    assert_eq!(serde_json::to_string(&read(&good).unwrap()).unwrap(), good);
    for (text, expected) in [
        (cell(&[]), "stations: "),
        (cell(&[USERS[0], "wifi = {}"]), "stations.1.cellular: "),
        (cell(&[USERS[0], "cellular = { load = 0.3 }"]), "stations.1.cellular: "),
        (good.replace("\"280 m\"", "\"2 m\""), "cellular.distance: "),
    ] {
        let refusal = read(&text).unwrap_err();
        assert!(refusal.starts_with(expected), "{refusal}");
    }
}

/// Everything that can be wrong about a cell in a scenario, with its hint.
#[test]
fn refusals_of_segments() {
    let refusal = |toml: &str| {
        let spec: SegmentSpec = toml::from_str(toml).unwrap();
        spec.resolve().unwrap_err().to_string()
    };
    let two = "stations = [{ host = 'a' }, { host = 'b' }]";
    let all = [
        format!("cellular = {{}}\n{two}"),
        format!("cellular = {{}}\naccess_point = 'x'\n{two}"),
        format!("cellular = {{}}\naccess_point = 'x'\nbase_station = 'x'\n{two}"),
        format!("wifi = {{}}\nbase_station = 'x'\n{two}"),
        format!("ethernet = {{}}\nbase_station = 'x'\n{two}"),
        format!("ethernet = {{}}\ncellular = {{}}\n{two}"),
        format!("wifi = {{}}\ncellular = {{}}\n{two}"),
        two.to_owned(),
        "cellular = {}\nbase_station = 'x'\nstations = [{ host = 'a' }, { host = 'b', wifi = {} }]".into(),
        "cellular = {}\nbase_station = 'x'\nstations = [{ host = 'a' }, { host = 'b', cellular = { load = 1 } }]"
            .into(),
        "wifi = {}\naccess_point = 'x'\nstations = [{ host = 'a' }, { host = 'b', cellular = {} }]".into(),
        "ethernet = {}\nstations = [{ host = 'a' }, { host = 'b', cellular = {} }]".into(),
        "cellular = { distance = '1 m' }\nbase_station = 'x'\nstations = [{ host = 'a' }, { host = 'b' }]".into(),
    ];
    let text: Vec<String> = all.iter().map(|toml| format!("{toml}\n→ {}", refusal(toml))).collect();
    insta::assert_snapshot!(text.join("\n\n"));
}
