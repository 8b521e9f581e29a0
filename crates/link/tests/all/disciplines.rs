//! The queue disciplines against the numbers of their RFCs.

use crate::common::greedy::Greedy;
use crate::common::{
    self, Arrival, delivered, down, dropped, evenly, link, mean_ms, ms, packet, run, sojourn,
};
use suiro_link::{Backlog, Cause, Direction, Ecn, Event, Packet, Verdict};
use suiro_units::{Bytes, Duration, Time};

fn dropped_for(events: &[Event], cause: Cause) -> Vec<&Event> {
    events.iter().filter(|event| event.verdict == Verdict::Dropped(cause)).collect()
}

/// Mean sojourn time of what was delivered after `from`, in milliseconds.
fn standing_ms(events: &[Event], from: Time) -> f64 {
    let settled = events.iter().filter(|event| delivered(event) && event.arrived >= from);
    mean_ms(settled.filter_map(sojourn))
}

#[test]
fn droptail_counts_what_waits_and_not_what_is_served() {
    let toml = |limit: &str| format!("rate = '12 Mbit/s'\nqueue.limit = '{limit}'");
    for (limit, waiting) in [("3p", 3), ("4500 B", 3), ("4499 B", 2), ("3 ms", 3), ("1 B", 1)] {
        let events = run(&mut link(&toml(limit), 1), &evenly(10, 1500, Duration::ZERO));
        let passed = events.iter().filter(|event| delivered(event)).count();
        assert_eq!(passed, waiting + 1, "limit {limit}: and one in service");
        assert_eq!(dropped_for(&events, Cause::Queue).len(), 10 - passed);
    }
}

#[test]
fn the_backlog_told_is_what_the_packet_found() {
    let toml = "rate = '12 Mbit/s'\nqueue.limit = '2p'";
    let events = run(&mut link(toml, 1), &evenly(5, 1500, Duration::from_micros(1)));
    let mut found: Vec<(u64, Backlog)> = events.iter().map(|e| (e.number, e.backlog)).collect();
    found.sort_by_key(|(number, _)| *number);
    let expected = [0, 0, 1, 2, 2]
        .map(|packets: u32| Backlog { bytes: Bytes::new(u64::from(packets) * 1500), packets });
    assert_eq!(found.into_iter().map(|(_, backlog)| backlog).collect::<Vec<_>>(), expected);
}

#[test]
fn a_limit_in_time_follows_the_rate() {
    // 50 ms are 50 packets at 12 Mbit/s and 5 at 1.2 Mbit/s; an outage leaves it as it is.
    let toml = "rate = '12 Mbit/s'\nqueue.limit = '50 ms'\n\
                changes = [{ at = '10 s', rate = '0 bit/s' }, { at = '20 s', rate = '1200 kbit/s' }]";
    for (at, waiting) in [(0, 50), (11_000, 50), (21_000, 5)] {
        let arrivals: Vec<Arrival> = (0..100).map(|n| down(ms(at), packet(n, 1500))).collect();
        let events = run(&mut link(toml, 1), &arrivals);
        let in_service = usize::from(at != 11_000);
        assert_eq!(events.iter().filter(|e| delivered(e)).count(), waiting + in_service, "at {at}");
    }
}

/// RFC 8289 §5: after the sojourn time has been above the target for an interval one packet is
/// dropped, and the next ones after interval/√count.
#[test]
fn codel_drops_by_its_control_law() {
    let toml = "rate = '12 Mbit/s'\nqueue = { discipline = 'codel', limit = '100000p' }";
    // A third more than the link carries, deaf to drops: 1500 bytes take 1 ms.
    let events = run(&mut link(toml, 1), &evenly(8_000, 1500, Duration::from_micros(750)));
    let drops: Vec<Time> = dropped_for(&events, Cause::Aqm).iter().map(|e| e.at).collect();
    let above = |event: &&Event| sojourn(event) >= Some(Duration::from_millis(5));
    let first_above = events.iter().filter(|e| delivered(e)).find(above).expect("it is overloaded");
    let service = Duration::from_millis(1);

    let mut expected = first_above.dequeued.expect("it was delivered") + Duration::from_millis(100);
    for (count, &at) in (1..).zip(&drops).take(300) {
        // A packet is dropped when the next one is taken.
        assert!(at >= expected && at < expected + service, "drop {count} at {at}, not {expected}");
        let from = if count == 1 { at } else { expected };
        expected = from + Duration::from_millis(100).mul_f64(1.0 / f64::from(count).sqrt());
    }
    assert!(drops.len() > 300, "{} drops", drops.len());
}

/// RFC 8289 §4.2: a standing delay of about the target, with the link in full use.
#[test]
fn codel_holds_its_target_where_droptail_fills_its_queue() {
    let standing = |queue: &str, ecn| {
        let toml = format!("rate = '20 Mbit/s'\ndelay = '20 ms'\nqueue = {queue}");
        let mut link = link(&toml, 1);
        let end = Time::from_secs(60);
        let events = Greedy::new(4, Duration::from_millis(20), ecn).run(&mut link, end);
        let settled = events.iter().filter(|e| delivered(e) && e.at >= Time::from_secs(20));
        let bits: u64 = settled.map(|event| event.packet.size.bits()).sum();
        let counts = link.counts(Direction::Down);
        (standing_ms(&events, Time::from_secs(20)), bits as f64 / 40.0 / 20e6, counts)
    };
    let (codel_ms, share, counts) = standing("{ discipline = 'codel' }", Ecn::NotEct);
    assert!((1.0..10.0).contains(&codel_ms), "CoDel stands at {codel_ms} ms");
    assert!(share > 0.9, "the link is used to {share}");
    assert!(counts.marked == 0 && counts.dropped() > 10, "{counts:?}");

    let (marked_ms, share, counts) = standing("{ discipline = 'codel' }", Ecn::Ect0);
    assert!((1.0..10.0).contains(&marked_ms), "with ECN it stands at {marked_ms} ms");
    assert!(share > 0.9, "the link is used to {share}");
    assert!(counts.marked > 10 && counts.dropped() == 0, "{counts:?}");

    let (droptail_ms, ..) = standing("{ limit = '200 ms' }", Ecn::NotEct);
    assert!(droptail_ms > 60.0, "droptail stands at {droptail_ms} ms");
}

/// As in Linux, every packet that waited longer than the threshold is marked, and no other, if its transport allows it.
#[test]
fn a_threshold_marks_every_packet_above_it() {
    for discipline in ["codel", "fq-codel"] {
        let toml = format!(
            "rate = '12 Mbit/s'\nqueue = {{ discipline = '{discipline}', ce_threshold = '2 ms', ecn = false }}"
        );
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
            // Ten bursts of six packets, of which each takes 1 ms: CoDel itself has no reason to act.
            let arrivals: Vec<Arrival> = (0..60)
                .map(|n| down(ms(20 * (n / 6)), Packet { ecn, ..packet(n, 1500) }))
                .collect();
            let events = run(&mut link(&toml, 1), &arrivals);
            assert_eq!(events.iter().filter(|event| delivered(event)).count(), 60);
            for event in &events {
                let above = sojourn(event) > Some(Duration::from_millis(2));
                assert_eq!(event.ecn_marked, above && ecn != Ecn::NotEct, "{ecn:?}: {event:?}");
            }
            let marked = events.iter().filter(|event| event.ecn_marked).count();
            assert_eq!(marked, if ecn == Ecn::NotEct { 0 } else { 30 });
        }
    }
}

/// RFC 8033 §4.2: the delay is held at QDELAY_REF, 15 ms by default.
#[test]
fn pie_holds_its_target() {
    for (target_ms, update_ms, sources) in [(15.0, 15, 5), (15.0, 15, 20), (40.0, 5, 10)] {
        let toml = format!(
            "rate = '20 Mbit/s'\ndelay = '25 ms'\nqueue = {{ discipline = 'pie', ecn = false, \
             target = '{target_ms} ms', update = '{update_ms} ms' }}"
        );
        let mut link = link(&toml, 1);
        let end = Time::from_secs(100);
        let greedy = Greedy::new(sources, Duration::from_millis(25), Ecn::NotEct);
        let events = greedy.run(&mut link, end);
        let standing = standing_ms(&events, Time::from_secs(30));
        let range = target_ms * 0.75..target_ms * 1.25;
        assert!(range.contains(&standing), "{sources} sources: {standing} ms, of {target_ms} ms");
        assert_eq!(dropped_for(&events, Cause::Queue).len(), 0);
    }
}

/// RFC 8033 §4.4 and §5.1.
#[test]
fn pie_lets_a_burst_pass_and_marks_before_it_drops() {
    // 120 ms worth of packets at once, then nothing: less than MAX_BURST, 150 ms.
    let toml = "rate = '12 Mbit/s'\nqueue.discipline = 'pie'";
    let events = run(&mut link(toml, 1), &evenly(120, 1500, Duration::ZERO));
    assert!(events.iter().all(delivered));

    let mut link = link("rate = '20 Mbit/s'\nqueue.discipline = 'pie'", 1);
    let greedy = Greedy::new(5, Duration::from_millis(40), Ecn::Ect0);
    greedy.run(&mut link, Time::from_secs(60));
    let counts = link.counts(Direction::Down);
    assert!(counts.marked > 50 && counts.dropped() < counts.marked / 10, "{counts:?}");

    // A deaf source drives the probability above 10 %: then marking ends.
    let deaf: Vec<Arrival> = evenly(60_000, 1500, Duration::from_micros(500))
        .into_iter()
        .map(|a| Arrival { packet: Packet { ecn: Ecn::Ect0, ..a.packet }, ..a })
        .collect();
    let toml = "rate = '12 Mbit/s'\nqueue = { discipline = 'pie', limit = '100000p' }";
    let events = run(&mut common::link(toml, 1), &deaf);
    let late: Vec<&Event> = events.iter().filter(|e| e.arrived > ms(15_000)).collect();
    assert!(late.iter().any(|event| dropped(event)) && !late.iter().any(|e| e.ecn_marked));
    // Half of what arrives must go.
    let share = late.iter().filter(|e| dropped(e)).count() as f64 / late.len() as f64;
    assert!((share - 0.5).abs() < 0.05, "{share} is dropped");
}

fn constant(flow: u64, bytes: u64, every: Duration, until: Time) -> Vec<Arrival> {
    let count = (until - Time::ZERO).as_nanos() / every.as_nanos();
    let flow = |n| Packet { id: flow << 32 | n, flow, ..packet(0, bytes) };
    (0..count).map(|n| down(Time::ZERO + every * n, flow(n))).collect()
}

fn together(flows: Vec<Vec<Arrival>>) -> Vec<Arrival> {
    let mut all: Vec<Arrival> = flows.into_iter().flatten().collect();
    all.sort_by_key(|arrival| (arrival.at, arrival.packet.id));
    all
}

const FQ: &str = "rate = '10 Mbit/s'\nqueue.discipline = 'fq-codel'";

/// RFC 8290 §3 and §4.2: queues share by bytes, whatever they ask for and however large their
/// packets.
#[test]
fn fq_codel_shares_by_bytes() {
    let end = Time::from_secs(20);
    let us = Duration::from_micros;
    let flows = vec![
        // 24, 12 and 8 Mbit/s onto 10 Mbit/s.
        constant(1, 1500, us(500), end),
        constant(2, 1500, us(1000), end),
        constant(3, 300, us(300), end),
    ];
    let events = run(&mut link(FQ, 1), &together(flows));
    let share = |flow| {
        let of = events.iter().filter(|e| e.packet.flow == flow && delivered(e));
        of.filter(|e| e.at >= ms(1000) && e.at < end).map(|e| e.packet.size.get()).sum::<u64>()
    };
    let shares = [1, 2, 3].map(|flow| share(flow) as f64);
    let sum: f64 = shares.iter().sum();
    let jain = sum * sum / (3.0 * shares.iter().map(|share| share * share).sum::<f64>());
    assert!(jain > 0.999, "{shares:?}");
    assert!((sum * 8.0 / 19.0 / 10e6 - 1.0).abs() < 0.001, "all of the rate is used: {sum}");
}

/// RFC 8290 §4.2 and §6: a flow that sends less than a quantum in a round waits for little more
/// than the packet in service.
#[test]
fn fq_codel_serves_a_sparse_flow_first() {
    let end = Time::from_secs(10);
    let bulk = || constant(1, 1500, Duration::from_micros(600), end);
    let sparse = constant(2, 100, Duration::from_micros(19_997), end);
    let waits = |toml: &str| {
        let events = run(&mut link(toml, 1), &together(vec![bulk(), sparse.clone()]));
        // At the start both flows are new.
        let sparse = events.iter().filter(|e| e.packet.flow == 2 && e.arrived > ms(100));
        let waits: Vec<Option<Duration>> = sparse.map(sojourn).collect();
        (waits.iter().flatten().max().copied().unwrap_or_default(), waits.contains(&None))
    };
    let packet_time = Bytes::new(1500) / suiro_units::BitRate::from_mbps(10);
    let (longest, dropped) = waits(FQ);
    assert!(longest <= packet_time && !dropped, "waited {longest}");
    let (droptail, _) = waits("rate = '10 Mbit/s'\nqueue.limit = '1000p'");
    assert!(droptail > Duration::from_millis(500), "droptail: waited {droptail}");
}

/// RFC 8290 §4.1: who fills the queue loses, not who comes last.
#[test]
fn fq_codel_makes_room_at_the_fattest_queue() {
    let toml = "rate = '1 Mbit/s'\nqueue = { discipline = 'fq-codel', limit = '100p' }";
    let bulk = (0..200).map(|n| down(ms(0), Packet { flow: 1, ..packet(n, 1500) }));
    let thin = (0..10).map(|n| down(ms(1), Packet { flow: 2, ..packet(1000 + n, 100) }));
    let arrivals: Vec<Arrival> = bulk.chain(thin).collect();
    let events = run(&mut link(toml, 1), &arrivals);
    let lost = dropped_for(&events, Cause::Queue);
    assert!(!lost.is_empty() && lost.iter().all(|event| event.packet.flow == 1));
    // From the head: the freshest packets of the fat flow survive.
    let last = events.iter().find(|event| event.packet.id == 199).expect("each packet ends");
    assert!(delivered(last));
}

/// Flows that meet in one queue of few; which ones do depends on the seed.
#[test]
fn fq_codel_hashes_with_the_seeds_salt() {
    let toml = "rate = '1 Mbit/s'\nqueue = { discipline = 'fq-codel', flows = 2 }";
    let order = |seed| {
        let arrivals: Vec<Arrival> =
            (0..40).map(|n| down(ms(0), Packet { flow: n % 8, ..packet(n, 1000) })).collect();
        let events = run(&mut link(toml, seed), &arrivals);
        events.iter().map(|event| event.packet.id).collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert!((2..10).any(|seed| order(seed) != order(1)));
}

const DUAL: &str = "queue.discipline = 'dualpi2'";

/// Packets of a kind at even distances, for so many seconds.
fn of_kind(flow: u64, ecn: Ecn, every: Duration, seconds: u64) -> Vec<Arrival> {
    let kind = |a: Arrival| Arrival { packet: Packet { ecn, ..a.packet }, ..a };
    constant(flow, 1500, every, Time::from_secs(seconds)).into_iter().map(kind).collect()
}

/// RFC 9332 §2.4, equation 2: p_C is (p_CL / k)². Classic packets that nobody slows down must be dropped in the share that is too
/// much; that share says which part of L4S is marked.
#[test]
fn dualpi2_couples_both_queues_by_the_square() {
    // 24 Mbit/s: a packet takes 0.5 ms. L4S has a tenth of the rate; classic packets 0.95 or 1.05 of it.
    for classic_load in [0.95, 1.05] {
        let every = |load: f64| Duration::from_micros(500).mul_f64(1.0 / load);
        let flows = vec![
            of_kind(1, Ecn::Ect1, every(0.1), 120),
            of_kind(2, Ecn::NotEct, every(classic_load), 120),
        ];
        let toml = format!("rate = '24 Mbit/s'\n{DUAL}");
        let events = run(&mut link(&toml, 1), &together(flows));
        let share = |flow: u64, is: fn(&Event) -> bool| {
            let of = || events.iter().filter(|e| e.packet.flow == flow && e.arrived > ms(40_000));
            of().filter(|event| is(event)).count() as f64 / of().count() as f64
        };
        let dropped_share = share(2, dropped);
        let too_much = (classic_load + 0.1 - 1.0) / classic_load;
        assert!((dropped_share - too_much).abs() < 0.003, "{dropped_share}, not {too_much}");
        let marked = share(1, |event| event.ecn_marked);
        let coupled = 2.0 * dropped_share.sqrt();
        eprintln!(
            "classic {classic_load}: {dropped_share:.4} dropped, {marked:.3} marked, coupled {coupled:.3}"
        );
        assert!((marked - coupled).abs() < 0.03, "{marked} are marked, not {coupled}");
        assert_eq!(share(1, dropped), 0.0, "nothing of L4S is dropped");
        // Those of L4S wait for little more than the packet in service.
        let waits = events.iter().filter(|e| e.packet.flow == 1).filter_map(sojourn).max();
        assert!(waits <= Some(Duration::from_micros(1500)), "{waits:?}");
    }
}

/// RFC 9332 §1.2 and appendix A.1: the classic queue is held at its target of 15 ms, L4S waits for about a millisecond, and flows
/// of both kinds with the same round-trip time get about the same rate.
#[test]
fn dualpi2_shares_between_classic_and_scalable_flows() {
    for (classic, scalable) in [(2, 2), (1, 3), (3, 1)] {
        let mut link = link(&format!("rate = '60 Mbit/s'\ndelay = '10 ms'\n{DUAL}"), 1);
        let greedy = Greedy::new(classic, Duration::from_millis(10), Ecn::Ect0);
        let events = greedy.with_scalable(scalable).run(&mut link, Time::from_secs(100));
        let settled: Vec<&Event> =
            events.iter().filter(|event| event.arrived >= Time::from_secs(40)).collect();
        let of = |l4s: bool| {
            let is = move |event: &&&Event| (event.packet.flow >= classic as u64) == l4s;
            settled.iter().filter(is).copied().collect::<Vec<&Event>>()
        };
        let delay = |events: &[&Event]| mean_ms(events.iter().filter_map(|event| sojourn(event)));
        let (theirs, ours) = (of(false), of(true));
        let rates = [theirs.len() as f64 / classic as f64, ours.len() as f64 / scalable as f64];
        let used = settled.len() as f64 * 12_000.0 / 60.0 / 60e6;
        let (classic_ms, l4s_ms) = (delay(&theirs), delay(&ours));
        eprintln!(
            "{classic} and {scalable}: rates {rates:?}, {classic_ms:.1} and {l4s_ms:.2} ms, {used:.3} of the link"
        );
        assert!((0.5..2.0).contains(&(rates[0] / rates[1])), "{rates:?}");
        assert!((10.0..20.0).contains(&classic_ms), "classic packets wait {classic_ms} ms");
        assert!(l4s_ms < 1.5, "packets of L4S wait {l4s_ms} ms");
        assert!(used > 0.9, "{used} of the link is used");
        assert_eq!(link_counts_dropped(&settled), 0);
    }
}

fn link_counts_dropped(events: &[&Event]) -> usize {
    events.iter().filter(|event| dropped(event)).count()
}

/// RFC 9332 §4.2.3 and appendix A.2: who does not slow down is dropped, in either queue; neither starves the other.
#[test]
fn dualpi2_drops_on_overload_and_starves_nobody() {
    let flows = vec![
        // 36 Mbit/s of L4S and 6 of classic packets onto 24.
        of_kind(1, Ecn::Ect1, Duration::from_micros(333), 60),
        of_kind(2, Ecn::Ect0, Duration::from_millis(2), 60),
    ];
    let toml = format!("rate = '24 Mbit/s'\n{DUAL}");
    let events = run(&mut link(&toml, 1), &together(flows));
    let late: Vec<&Event> = events.iter().filter(|e| e.arrived > ms(30_000)).collect();
    let share = |flow: u64| {
        let of = || late.iter().filter(|event| event.packet.flow == flow);
        of().filter(|event| delivered(event)).count() as f64 / of().count() as f64
    };
    eprintln!("{:.3} of L4S and {:.3} of the classic packets pass", share(1), share(2));
    assert!((0.5..0.7).contains(&share(1)) && share(2) > 0.4, "{} {}", share(1), share(2));
    let longest = late.iter().filter_map(|event| sojourn(event)).max();
    assert!(longest < Some(Duration::from_millis(40)), "{longest:?}");
    assert_eq!(dropped_for(&events, Cause::Queue).len(), 0, "the limit of 250 ms is not reached");
}
