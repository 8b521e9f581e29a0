//! What holds for every link, whatever arrives and however it is polled.

use std::collections::BTreeMap;

use crate::common::{self, Arrival, config, delivered, link, poll_punctually};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use suiro_link::{Direction, Ecn, Event, Link, Packet};
use suiro_units::{Bytes, Duration, Seed, Time};

const RATES: &[&str] = &[
    "",
    "rate = '3 Mbit/s'\n",
    "rate = '9.7 Gbit/s'\n",
    "rate = '20 Mbit/s'\nburst = '6 kB'\n",
    "rate = '6 Mbit/s'\nservice = 'poisson'\n",
    "wifi = { busy = 0.4 }\n",
    "wifi = { attenuation = '34 dB', retries = 1, rice_k = '-20 dB', busy = 0.1, \
     changes = [{ at = '20 ms', attenuation = '50 dB' }, { at = '40 ms', attenuation = '0 dB' }] }\n",
    "wifi = { attenuation = '44 dB', lifetime = '6 ms', busy = 0.3 }\n",
    "cellular = { block_errors = 0.4 }\n",
    "cellular = { distance = '280 m', load = 1, bandwidth = '1.4 MHz', speed = '60 km/h' }\n",
    "trace = 'cell'\n",
    "trace = { file = 'cell', repeat = false }\n",
    "trace = 'rate.csv'\n",
    "trace = { file = 'rate.csv', repeat = true }\nservice = 'poisson'\n",
    "trace = { file = 'rate.csv', repeat = true }\nburst = '3 kB'\n",
    "rate = '8 Mbit/s'\nchanges = [{ at = '3 ms', rate = '0 bit/s', delay = '9 ms' }, \
     { at = '15 ms', rate = '1 Mbit/s', loss = '20 %', delay = '1 ms' }]\n",
];

const QUEUES: &[&str] = &[
    "",
    "queue.limit = '3p'\n",
    "queue.limit = '4 kB'\n",
    "queue = { discipline = 'codel', target = '1 ms', interval = '5 ms', limit = '30p' }\n",
    "queue = { discipline = 'pie', target = '2 ms', update = '1 ms', burst = '0 s' }\n",
    "queue = { discipline = 'fq-codel', target = '1 ms', interval = '5 ms', limit = '9 kB', \
     flows = 3, quantum = '300 B' }\n",
    "queue = { discipline = 'dualpi2', target = '2 ms', interval = '9 ms', ce_threshold = '1 ms', limit = '30p' }\n",
];

const LOSSES: &[&str] = &[
    "",
    "loss = '10 %'\n",
    "loss = { model = 'gilbert-elliott', good_to_bad = 0.1, bad_to_good = 0.5 }\n",
    "loss = { model = 'list', packets = [0, 2, 3] }\n",
];

const WAYS: &[&str] = &[
    "",
    "delay = '2 ms'\n",
    "delay = '1 ms'\njitter = { distribution = 'normal', sd = '800 us' }\n",
    "delay = '1 ms'\njitter = { distribution = 'pareto', sd = '2 ms', order = 'free' }\n",
    "delay = '1 ms'\njitter = { distribution = 'truncated-gaussian', sd = '1 ms' }\n",
    "duplicate = '20 %'\ncorrupt = '10 %'\nreorder = { chance = '10 %', by = '2 ms' }\n",
    "duplicate = 1\njitter = { distribution = 'uniform', sd = '3 ms', order = 'free' }\n",
];

/// Of jitter that keeps the order: one whose delay wanders, and one whose packets wait for others.
const DISTRIBUTIONS: &[&str] = &["exponential", "truncated-gaussian"];

const ORDERS: &[&str] = &["kept", "free"];

fn any_link() -> impl Strategy<Value = String> {
    (select(RATES), select(QUEUES), select(LOSSES), select(WAYS)).prop_map(
        |(rate, queue, loss, way)| {
            let has_no_rate = rate.is_empty();
            // A limit in time needs a rate; the default is one.
            let queue =
                if has_no_rate && queue.is_empty() { "queue.limit = '9p'\n" } else { queue };
            // A table's dotted keys and the table itself do not mix, so order does not matter.
            format!("{rate}{queue}{loss}{way}")
        },
    )
}

fn any_arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let size = prop_oneof![8 => 40u64..1500, 1 => Just(9000), 1 => Just(70_000), 1 => Just(0)];
    let one = (0u64..3_000_000, any::<bool>(), size, 0u64..4, 0u8..4);
    vec(one, 1..120).prop_map(|all| {
        let mut at = Time::ZERO;
        let arrive = |(id, (gap, up, size, flow, ecn)): (usize, (u64, bool, u64, u64, u8))| {
            // Bursts: most gaps are short.
            at += Duration::from_nanos(if gap > 2_500_000 { gap } else { gap % 50_000 });
            let direction = if up { Direction::Up } else { Direction::Down };
            let (size, ecn) = (Bytes::new(size), Ecn::from_bits(ecn));
            Arrival { at, direction, packet: Packet { id: id as u64, size, flow, ecn } }
        };
        all.into_iter().enumerate().map(arrive).collect()
    })
}

/// Everything that the link says, polled as `polls` has it before each arrival: not at all, some
/// time before it, or punctually.
fn events(toml: &str, arrivals: &[Arrival], polls: &[u8], end: Time) -> (Vec<Event>, Link) {
    let mut link = link(toml, 11);
    let mut events = Vec::new();
    for (index, arrival) in arrivals.iter().enumerate() {
        match polls.get(index % polls.len().max(1)) {
            None | Some(0) => {}
            Some(1) => poll_punctually(&mut link, arrival.at, &mut events),
            Some(n) => {
                let early = Duration::from_micros(u64::from(*n));
                events.extend(link.poll(arrival.at.saturating_sub(early)));
            }
        }
        link.arrive(arrival.at, arrival.direction, arrival.packet);
        check_counts(&link, &events);
    }
    events.extend(std::iter::from_fn(|| link.poll(end)));
    check_counts(&link, &events);
    link.drain(end);
    events.extend(std::iter::from_fn(|| link.poll(end)));
    check_counts(&link, &events);
    (events, link)
}

/// In + duplicated = delivered + dropped + drained + inside.
fn check_counts(link: &Link, events: &[Event]) {
    for direction in Direction::BOTH {
        let counts = link.counts(direction);
        let out = counts.delivered + counts.dropped() + counts.drained;
        assert_eq!(counts.arrived + counts.duplicated, out + counts.inside);
        let told = events.iter().filter(|event| event.direction == direction).count() as u64;
        assert!(told <= out, "{told} events, {out} packets ended");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_ends_once_and_polling_changes_nothing(
        toml in any_link(),
        arrivals in any_arrivals(),
        polls in vec(0u8..200, 1..20),
        end_ms in 0u64..400,
    ) {
        let end = arrivals.last().expect("there is one").at + Duration::from_millis(end_ms);
        let (never, link) = events(&toml, &arrivals, &[], end);
        let (punctually, _) = events(&toml, &arrivals, &[1], end);
        let (anyhow, _) = events(&toml, &arrivals, &polls, end);
        prop_assert_eq!(&never, &punctually);
        prop_assert_eq!(&never, &anyhow);

        for direction in Direction::BOTH {
            prop_assert_eq!(link.counts(direction).inside, 0);
        }
        let mut ends: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
        for event in &never {
            ends.entry(event.packet.id).or_default().push(event);
        }
        for (id, arrival) in arrivals.iter().enumerate() {
            let events = &ends[&(id as u64)];
            prop_assert!(events.len() == 1 || events.len() == 2);
            prop_assert!(events.iter().all(|e| e.arrived == arrival.at && e.at >= e.arrived));
            prop_assert!(events.iter().all(|e| e.packet.size == arrival.packet.size));
            let lasts: Vec<bool> = events.iter().map(|event| event.last).collect();
            let expected = if events.len() == 1 { vec![true] } else { vec![false, true] };
            prop_assert_eq!(lasts, expected);
        }
        prop_assert!(never.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn order_is_kept_within_a_flow_when_promised(
        toml in (select(RATES), select(QUEUES), select(LOSSES)),
        distribution in select(DISTRIBUTIONS),
        arrivals in any_arrivals(),
    ) {
        let (rate, queue, loss) = toml;
        let way =
            format!("jitter = {{ distribution = '{distribution}', sd = '2 ms', order = 'kept' }}\n");
        let queue = if rate.is_empty() && queue.is_empty() { "queue.limit = '9p'\n" } else { queue };
        let end = Time::from_secs(60);
        let (events, _) = events(&format!("{rate}{queue}{loss}{way}"), &arrivals, &[], end);
        // DualPI2 has two queues: order is kept in each.
        let l4s = |id: u64| matches!(arrivals[id as usize].packet.ecn, Ecn::Ect1 | Ecn::Ce);
        let dual = queue.contains("dualpi2");
        let mut latest = BTreeMap::new();
        for event in events.iter().filter(|event| delivered(event)) {
            let flow = (event.direction, event.packet.flow, dual && l4s(event.packet.id));
            let before = latest.insert(flow, event.number);
            prop_assert!(before.is_none_or(|before| before < event.number));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_events_and_another_one_others(
        arrivals in any_arrivals(),
        seed in any::<u64>(),
    ) {
        let config = config("rate = '9 Mbit/s'\nservice = 'poisson'\ndelay = '9 ms'\n\
                             jitter = { distribution = 'normal', sd = '1 ms', order = 'free' }");
        let events = |seed| common::run(&mut Link::new(&config, Seed(seed)), &arrivals);
        let one = events(seed);
        prop_assert_eq!(&one, &events(seed));
        if one.iter().any(delivered) {
            prop_assert_ne!(&one, &events(seed.wrapping_add(1)));
        }
    }

    /// RFC 8868 §4.5.3: never shorter than the delay, and at most three deviations longer, in any order.
    #[test]
    fn a_truncated_gaussian_stays_within_its_bounds(
        arrivals in any_arrivals(),
        sd_us in 1u64..50_000,
        order in select(ORDERS),
        seed in any::<u64>(),
    ) {
        let config = config(&format!(
            "delay = '2 ms'\nduplicate = '20 %'\n\
             jitter = {{ distribution = 'truncated-gaussian', sd = '{sd_us} us', order = '{order}' }}"
        ));
        let least = Duration::from_millis(2);
        let most = least + Duration::from_micros(3 * sd_us);
        let events = |seed| common::run(&mut Link::new(&config, Seed(seed)), &arrivals);
        let one = events(seed);
        for event in one.iter().filter(|event| delivered(event)) {
            let delay = event.at - event.arrived;
            prop_assert!((least..=most).contains(&delay), "{}", delay);
        }
        prop_assert_eq!(&one, &events(seed));
    }
}

#[test]
fn an_arrival_from_the_past_counts_as_arriving_now() {
    let mut link = link("rate = '12 Mbit/s'", 1);
    link.arrive(common::ms(0), Direction::Down, common::packet(0, 1500));
    assert_eq!(link.poll(common::ms(5)).map(|event| event.at), Some(common::ms(1)));
    // Nothing was done after 1 ms: 3 ms is not the past.
    link.arrive(common::ms(3), Direction::Down, common::packet(1, 1500));
    link.arrive(common::ms(2), Direction::Down, common::packet(2, 1500));
    let events: Vec<Event> = std::iter::from_fn(|| link.poll(common::ms(9))).collect();
    assert_eq!(events.iter().map(|e| e.arrived).collect::<Vec<_>>(), [common::ms(3); 2]);
    assert_eq!(events.iter().map(|e| e.at).collect::<Vec<_>>(), [common::ms(4), common::ms(5)]);
}

#[test]
fn a_poll_yields_nothing_later_than_itself() {
    let mut link = link("rate = '12 Mbit/s'", 1);
    link.arrive(common::ms(0), Direction::Down, common::packet(0, 1500));
    link.arrive(common::ms(0), Direction::Down, common::packet(1, 1500));
    // The arrival lets the link do what is due by then; the caller still gets it in its own time.
    link.arrive(common::ms(9), Direction::Down, common::packet(2, 1500));
    let mut at = |ms| link.poll(common::ms(ms)).map(|event| event.packet.id);
    assert_eq!(
        [at(0), at(1), at(1), at(2), at(9), at(10)],
        [None, Some(0), None, Some(1), None, Some(2)]
    );
}
