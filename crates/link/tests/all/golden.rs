//! Golden records: for a fixed seed, every event of a link, as text. A change here changes what
//! users measured before it: it needs a reason and a line in the changelog.

use std::fmt::Write as _;

use crate::common::{Arrival, delivered, link, run};
use suiro_link::{Direction, Ecn, Event, Packet, Verdict};
use suiro_units::{Bytes, Duration, Seed, Time};

/// Bursts of mixed packets in both directions.
fn traffic(count: u64) -> Vec<Arrival> {
    let mut random = Seed(2026).random();
    let mut at = Time::ZERO;
    let arrive = |id| {
        at += Duration::from_micros(if random.chance(0.7) { 50 } else { random.below(4000) });
        let size = Bytes::new([1500, 1200, 300, 60][random.below(4) as usize]);
        let ecn = Ecn::from_bits(random.below(3) as u8);
        let direction = if random.chance(0.25) { Direction::Up } else { Direction::Down };
        Arrival { at, direction, packet: Packet { id, size, flow: random.below(3), ecn } }
    };
    (0..count).map(arrive).collect()
}

const HEADER: &str = "dir  nr  size queue      arrived     dequeued           at verdict\n";

fn record(toml: &str) -> String {
    run(&mut link(toml, 42), &traffic(60)).iter().map(line).fold(HEADER.to_owned(), |a, b| a + &b)
}

fn line(event: &Event) -> String {
    let (verdict, cause) = match event.verdict {
        Verdict::Dropped(cause) => ("dropped", Some(cause.name())),
        Verdict::Delivered { corruption: Some(_), .. } => ("delivered", Some("corrupt")),
        Verdict::Delivered { duplicate: true, .. } => ("delivered", Some("duplicate")),
        Verdict::Delivered { .. } => ("delivered", None),
        Verdict::Queued => ("queued", None),
    };
    let mut line = format!(
        "{:<4} {:>2} {:>5} {:>5} {:>12} {:>12} {:>12} {}",
        event.direction.name(),
        event.number,
        event.packet.size.get(),
        event.backlog.bytes.get(),
        event.arrived.as_nanos(),
        event.dequeued.map_or("-".to_owned(), |at| at.as_nanos().to_string()),
        event.at.as_nanos(),
        verdict,
    );
    let mut add = |word: &str| write!(line, " {word}").expect("a string takes all");
    if let Some(cause) = cause {
        add(cause);
    }
    if let Verdict::Delivered { corruption: Some(bit), .. } = event.verdict {
        add(&format!("{}.{}", bit.byte, bit.bit));
    }
    if event.ecn_marked {
        add("marked");
    }
    line + "\n"
}

#[test]
fn chance_of_every_kind() {
    insta::assert_snapshot!(record(
        "rate = '9 Mbit/s'\nloss = '5 %'\nduplicate = '5 %'\ncorrupt = '5 %'\ndelay = '5 ms'\n\
         jitter = { distribution = 'normal', sd = '1 ms', order = 'free' }\n\
         reorder = { chance = '5 %', by = '3 ms' }",
    ));
}

#[test]
fn bursts_of_loss_and_a_pareto_in_order() {
    insta::assert_snapshot!(record(
        "rate = '9 Mbit/s'\ndelay = '5 ms'\n\
         loss = { model = 'gilbert-elliott', good_to_bad = 0.1, bad_to_good = 0.4 }\n\
         jitter = { distribution = 'pareto', sd = '1 ms' }",
    ));
}

#[test]
fn codel() {
    insta::assert_snapshot!(record(
        "rate = '2 Mbit/s'\n\
         queue = { discipline = 'codel', target = '1 ms', interval = '4 ms', limit = '20 kB' }",
    ));
}

/// Its probability takes a while to rise: only what it drops or marks, of many packets.
#[test]
fn pie() {
    let toml = "rate = '6 Mbit/s'\nqueue = { discipline = 'pie', limit = '5000p' }";
    let events = run(&mut link(toml, 42), &traffic(1400));
    let altered = events.iter().filter(|event| event.ecn_marked || !delivered(event));
    insta::assert_snapshot!(altered.map(line).fold(HEADER.to_owned(), |a, b| a + &b));
}

#[test]
fn fq_codel() {
    insta::assert_snapshot!(record(
        "rate = '2 Mbit/s'\nqueue = { discipline = 'fq-codel', target = '1 ms', \
         interval = '4 ms', limit = '12p', quantum = '300 B' }",
    ));
}

#[test]
fn poisson_with_a_schedule() {
    insta::assert_snapshot!(record(
        "rate = '5 Mbit/s'\nservice = 'poisson'\nqueue.limit = '8 kB'\ndelay = '3 ms'\n\
         changes = [{ at = '20 ms', rate = '0 bit/s' }, { at = '30 ms', rate = '20 Mbit/s', \
         delay = '1 ms', loss = '30 %' }]",
    ));
}

#[test]
fn recorded_opportunities_and_a_bucket() {
    insta::assert_snapshot!(record(
        "down.trace = 'cell'\ndown.queue.limit = '6p'\nup.rate = '1 Mbit/s'\nup.burst = '3 kB'",
    ));
}

#[test]
fn the_air_of_a_link() {
    insta::assert_snapshot!(record(
        "wifi = { walls = 3, attenuation = '8 dB', rice_k = '-20 dB', busy = 0.2, retries = 1, aggregate = 4 }\n\
         queue.limit = '6p'",
    ));
}

#[test]
fn a_cellular_radio() {
    insta::assert_snapshot!(record(
        "cellular = { distance = '250 m', load = 1, bandwidth = '3 MHz' }\nqueue.limit = '6p'",
    ));
}

#[test]
fn a_half_duplex_ethernet() {
    insta::assert_snapshot!(record("ethernet = {}\nqueue.limit = '6p'"));
}
