//! The server and the propagation to the nanosecond.

use crate::common::{Arrival, delivered, down, evenly, link, ms, packet, run, us};
use proptest::collection::vec;
use proptest::prelude::*;
use suiro_link::{Direction, Event};
use suiro_units::{Duration, Time};

fn times(events: &[Event]) -> Vec<Time> {
    events.iter().filter(|event| delivered(event)).map(|event| event.at).collect()
}

/// 10⁻⁹ bits that a rate, step by step as (from ns, bit/s), carries between two times: counted by
/// another way than the core's.
fn carried(steps: &[(u64, u64)], from: u64, to: u64) -> u128 {
    let ends = steps.iter().skip(1).map(|step| step.0).chain([u64::MAX]);
    let overlap = |start: u64, end: u64| end.min(to).saturating_sub(start.max(from));
    let work = |(&(start, rate), end): (&(u64, u64), u64)| {
        u128::from(overlap(start, end)) * u128::from(rate)
    };
    steps.iter().zip(ends).map(work).sum()
}

fn steps_toml(steps: &[(u64, u64)]) -> String {
    let mut toml = format!("rate = '{} bit/s'\nqueue.limit = '10000p'\n", steps[0].1);
    let changes: Vec<String> = steps[1..]
        .iter()
        .map(|(at, rate)| format!("{{ at = '{at} ns', rate = '{rate} bit/s' }}"))
        .collect();
    toml.push_str(&format!("changes = [{}]\n", changes.join(", ")));
    toml
}

fn any_steps() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let rate = prop_oneof![1 => Just(0u64), 4 => 100_000u64..2_000_000_000];
    (1_000_000u64..3_000_000_000, vec((1u64..20_000_000, rate), 0..6)).prop_map(|(first, more)| {
        let mut steps = vec![(0, first)];
        let mut at = 0;
        for (gap, rate) in more {
            at += gap;
            steps.push((at, rate));
        }
        // Whatever came before, it ends.
        steps.push((at + 1_000_000, 5_000_000));
        steps
    })
}

fn any_packets() -> impl Strategy<Value = Vec<Arrival>> {
    vec((0u64..400_000, 1u64..9000), 2..200).prop_map(|all| {
        let mut at = Time::ZERO;
        let mut id = 0;
        let arrive = |(gap, bytes)| {
            at += Duration::from_nanos(gap);
            id += 1;
            down(at, packet(id, bytes))
        };
        all.into_iter().map(arrive).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Between any two deliveries the packets after the first fit into the rate, but for the
    /// nanosecond to which each time is rounded up.
    #[test]
    fn the_rate_is_never_exceeded(steps in any_steps(), packets in any_packets()) {
        let events = run(&mut link(&steps_toml(&steps), 1), &packets);
        prop_assert_eq!(events.len(), packets.len());
        for first in 0..events.len() {
            let mut bits = 0;
            for last in first + 1..events.len() {
                bits += u128::from(events[last].packet.size.bits());
                let (from, to) = (events[first].at.as_nanos(), events[last].at.as_nanos());
                prop_assert!(bits * 1_000_000_000 <= carried(&steps, from.saturating_sub(1), to));
            }
        }
    }

    /// It is used in full: while packets wait, no delivery is later than the rate demands.
    #[test]
    fn the_rate_is_used_in_full(steps in any_steps(), count in 1u64..300, bytes in 1u64..9000) {
        let packets: Vec<Arrival> = (0..count).map(|n| down(Time::ZERO, packet(n, bytes))).collect();
        let events = run(&mut link(&steps_toml(&steps), 1), &packets);
        for (n, event) in events.iter().enumerate() {
            let work = (n as u128 + 1) * u128::from(bytes * 8) * 1_000_000_000;
            let at = event.at.as_nanos();
            prop_assert!(carried(&steps, 0, at) >= work);
            prop_assert!(carried(&steps, 0, at - 1) < work, "packet {} is late", n);
        }
    }

    /// A token bucket passes at most its burst and what the rate brings, in any window.
    #[test]
    fn a_bucket_bounds_every_window(
        steps in any_steps(),
        packets in any_packets(),
        burst in 9_000u64..60_000,
    ) {
        let toml = format!("burst = '{burst} B'\n{}", steps_toml(&steps));
        let events = run(&mut link(&toml, 1), &packets);
        prop_assert_eq!(events.len(), packets.len());
        for first in 0..events.len() {
            let mut bits = 0;
            for last in first..events.len() {
                bits += u128::from(events[last].packet.size.bits());
                let (from, to) = (events[first].at.as_nanos(), events[last].at.as_nanos());
                let tokens = carried(&steps, from.saturating_sub(1), to);
                prop_assert!(bits * 1_000_000_000 <= tokens + u128::from(burst * 8) * 1_000_000_000);
            }
        }
    }

    /// One packet at a time meets the delay exactly, and nothing else.
    #[test]
    fn the_delay_is_exact(delay in 0u64..3_000_000_000, gap in 1u64..1_000_000_000) {
        let toml = format!("delay = '{delay} ns'");
        let packets = evenly(50, 1200, Duration::from_nanos(gap));
        let events = run(&mut link(&toml, 1), &packets);
        prop_assert!(events.iter().all(|e| e.at == e.arrived + Duration::from_nanos(delay)));
        prop_assert_eq!(events.len(), 50);
    }
}

#[test]
fn a_change_of_rate_meets_the_packet_in_service() {
    // 1500 bytes take 12 ms at 1 Mbit/s; after 6 ms half of them are left, at 12 Mbit/s 0.5 ms.
    let toml = "rate = '1 Mbit/s'\nchanges = [{ at = '6 ms', rate = '12 Mbit/s' }]";
    let events = run(&mut link(toml, 1), &evenly(2, 1500, Duration::ZERO));
    assert_eq!(times(&events), [us(6_500), us(7_500)]);
}

#[test]
fn an_outage_stops_the_packet_in_service() {
    let toml = "rate = '12 Mbit/s'\nchanges = [{ at = '500 us', rate = '0 bit/s' }, \
                { at = '3 s', rate = '12 Mbit/s' }]";
    let mut link = link(toml, 1);
    let events = run(&mut link, &evenly(1, 1500, Duration::ZERO));
    assert_eq!(times(&events), [us(3_000_500)]);
}

#[test]
fn the_delay_in_force_is_that_of_the_departure() {
    let toml = "rate = '12 Mbit/s'\ndelay = '10 ms'\nchanges = [{ at = '2 ms', delay = '20 ms' }, \
                { at = '4 ms', delay = '1 ms' }]";
    let events = run(&mut link(toml, 1), &evenly(5, 1500, Duration::ZERO));
    // The last two would arrive at 5 and 6 ms; order is kept.
    assert_eq!(times(&events), [ms(11), ms(22), ms(23), ms(23), ms(23)]);
}

#[test]
fn a_thousand_packets_at_an_odd_rate_end_on_the_nanosecond() {
    let toml = "rate = '7 Gbit/s'\nqueue.limit = '2000p'";
    let events = run(&mut link(toml, 1), &evenly(1001, 1500, Duration::ZERO));
    // 1001 × 12000 bits at 7 bits per ns: 1716000 ns, although each by itself takes 1714.29.
    assert_eq!(times(&events).last().map(|at| at.as_nanos()), Some(1_716_000));
}

#[test]
fn a_bucket_passes_its_burst_at_once() {
    let toml = "rate = '12 Mbit/s'\nburst = '4500 B'";
    let events = run(&mut link(toml, 1), &evenly(5, 1500, Duration::ZERO));
    assert_eq!(times(&events), [ms(0), ms(0), ms(0), ms(1), ms(2)]);
    let mut link = link(toml, 1);
    // It fills no further than the burst.
    link.arrive(ms(100_000), Direction::Down, packet(2, 4500));
    link.arrive(ms(100_000), Direction::Down, packet(3, 1500));
    let end = Time::from_secs(101);
    let events: Vec<Event> = std::iter::from_fn(|| link.poll(end)).collect();
    assert_eq!(times(&events), [ms(100_000), ms(100_001)]);
}

/// The bucket that tc's users make for 300 kbit/s, rate ∕ 250 Hz, holds a tenth of a packet.
#[test]
fn a_packet_larger_than_the_bucket_leaves_when_the_rate_has_brought_the_rest() {
    let events =
        run(&mut link("rate = '12 Mbit/s'\nburst = '750 B'", 1), &evenly(4, 1500, Duration::ZERO));
    // The bucket has half of the first; every other one takes the 1 ms of 1500 B.
    assert_eq!(times(&events), [us(500), us(1_500), us(2_500), us(3_500)]);
    // After an idle time it is full again, and no fuller.
    let packets = [down(ms(0), packet(0, 1500)), down(ms(1000), packet(1, 1500))];
    let events = run(&mut link("rate = '12 Mbit/s'\nburst = '750 B'", 1), &packets);
    assert_eq!(times(&events), [us(500), us(1_000_500)]);
}

#[test]
fn a_recorded_trace_gives_its_opportunities_and_tells_its_wraps() {
    // cell: 0 1 1 5 8 8 8 20, then again from 20.
    let toml = "down.trace = 'cell'\ndown.queue.limit = '100p'";
    let mut link = link(toml, 1);
    let packets: Vec<Arrival> = (0..9).map(|n| down(us(500), packet(n, 1500))).collect();
    let events = run(&mut link, &packets);
    assert_eq!(times(&events), [1, 1, 5, 8, 8, 8, 20, 20, 21].map(ms));
    assert_eq!(link.counts(Direction::Down).trace_wraps, 1);
    assert_eq!(link.counts(Direction::Up).trace_wraps, 0);
}

#[test]
fn a_csv_trace_is_integrated_and_repeats_if_told() {
    // 4 Mbit/s for 5 ms, nothing to 9 ms, 40 Mbit/s to 20 ms: 20,000 and 440,000 bits.
    let toml = "trace = { file = 'rate.csv', repeat = true }\nqueue.limit = '100 kB'";
    let events = run(&mut link(toml, 1), &evenly(7, 12_500, Duration::ZERO));
    // 100,000 bits each: the first has 80,000 left at 9 ms.
    let whole = [11_000, 13_500, 16_000, 18_500].map(us);
    assert_eq!(times(&events)[..4], whole);
    // The fifth has 60,000 by 20 ms, 20,000 more by 25 ms, and its last 20,000 from 29 ms on.
    assert_eq!(times(&events)[4], us(29_500));
}

#[test]
fn poisson_opportunities_have_the_rate_and_exponential_gaps() {
    let toml = "rate = '12 Mbit/s'\nservice = 'poisson'\nqueue.limit = '20000p'";
    let events = run(&mut link(toml, 5), &evenly(20_000, 1500, Duration::ZERO));
    let at = times(&events);
    let gaps: Vec<f64> = at.windows(2).map(|w| (w[1] - w[0]).as_millis_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "mean gap {mean} ms, of 1 ms");
    assert!((variance - 1.0).abs() < 0.08, "an exponential's variance is its mean squared");
    let above = gaps.iter().filter(|&&gap| gap > 1.0).count() as f64 / gaps.len() as f64;
    assert!((above - (-1.0_f64).exp()).abs() < 0.015, "{above} of the gaps exceed the mean");
}

#[test]
fn directions_do_not_share_anything() {
    let toml = "down.rate = '12 Mbit/s'\nup.rate = '1.2 Mbit/s'\nup.delay = '3 ms'";
    let mut arrivals = evenly(3, 1500, Duration::ZERO);
    arrivals.extend(evenly(3, 1500, Duration::ZERO));
    arrivals[3..].iter_mut().for_each(|arrival| arrival.direction = Direction::Up);
    let events = run(&mut link(toml, 1), &arrivals);
    let of = |direction| {
        let events = events.iter().filter(move |event| event.direction == direction);
        events.map(|event| (event.at, event.number)).collect::<Vec<_>>()
    };
    assert_eq!(of(Direction::Down), [(ms(1), 0), (ms(2), 1), (ms(3), 2)]);
    assert_eq!(of(Direction::Up), [(ms(13), 0), (ms(23), 1), (ms(33), 2)]);
}
