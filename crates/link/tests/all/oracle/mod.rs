//! The disciplines against their RFCs, event by event.
//!
//! Next to this file the pseudocode of RFC 8289 (CoDel), RFC 8033 (PIE), RFC 8290 (FQ-CoDel) and RFC 9332 (DualPI2) is
//! written down a second time, as straightforwardly as it goes. It has nothing of the link: numbers of nanoseconds and
//! bytes, and a server that asks for the next packet whenever it is free. The golden record that the link must repeat
//! is what it does with every packet: whether the packet is sent, dropped or marked, why, and when.
//!
//! Where the link differs from the RFC or from Linux on purpose (docs/method.md), a comment at the line of the oracle
//! gives the reason.

mod codel;
mod dualpi2;
mod fq_codel;
mod pie;

use std::collections::VecDeque;

use crate::common::greedy::Greedy;
use crate::common::{Arrival, down, link, poll_punctually, run};
use suiro_link::{Cause, Ecn, Event, Packet, Verdict};
use suiro_units::{Bytes, Duration, Seed, Time};

/// At 8 Mbit/s a byte takes a microsecond.
const NS_PER_BYTE: u64 = 1000;
const RATE: &str = "rate = '8 Mbit/s'";

/// A packet in an oracle's queue.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    number: usize,
    bytes: u64,
    flow: u64,
    ect: bool,
    /// ECT(1) or CE.
    l4s: bool,
    marked: bool,
    enqueued: u64,
}

/// What became of a packet: times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent { dequeued: u64, departed: u64, marked: bool },
    Full { at: u64 },
    Early { at: u64 },
}

/// A queue as its RFC has it; both report what they drop.
trait Oracle {
    fn enqueue(&mut self, now: u64, packet: Waiting, fates: &mut [Option<Fate>]);
    fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Waiting>;
}

/// Lets all arrive at the oracle's queue in front of a server of 8 Mbit/s. At equal times the server
/// acts first.
fn consult(oracle: &mut dyn Oracle, arrivals: &[Arrival]) -> Vec<Fate> {
    let mut fates = vec![None; arrivals.len()];
    let mut free: Option<u64> = None;
    let serve = |now: u64, oracle: &mut dyn Oracle, fates: &mut [Option<Fate>]| {
        let packet = oracle.dequeue(now, fates)?;
        let departed = now + packet.bytes * NS_PER_BYTE;
        fates[packet.number] = Some(Fate::Sent { dequeued: now, departed, marked: packet.marked });
        Some(departed)
    };
    for (number, arrival) in arrivals.iter().enumerate() {
        let now = arrival.at.as_nanos();
        while let Some(at) = free.filter(|&at| at <= now) {
            free = serve(at, oracle, &mut fates);
        }
        let Packet { size, flow, ecn, .. } = arrival.packet;
        let (bytes, ect) = (size.get(), ecn != Ecn::NotEct);
        let l4s = matches!(ecn, Ecn::Ect1 | Ecn::Ce);
        let packet = Waiting { number, bytes, flow, ect, l4s, marked: false, enqueued: now };
        oracle.enqueue(now, packet, &mut fates);
        if free.is_none() {
            free = serve(now, oracle, &mut fates);
        }
    }
    while let Some(at) = free {
        free = serve(at, oracle, &mut fates);
    }
    fates.into_iter().map(|fate| fate.expect("every packet has an end")).collect()
}

/// What the link did, in the oracle's terms.
fn fates(mut events: Vec<Event>) -> Vec<Fate> {
    events.sort_by_key(|event| event.number);
    let fate = |event: &Event| {
        let at = event.at.as_nanos();
        match event.verdict {
            Verdict::Delivered { .. } => Fate::Sent {
                dequeued: event.dequeued.expect("it was served").as_nanos(),
                departed: at,
                marked: event.ecn_marked,
            },
            Verdict::Dropped(Cause::Queue) => Fate::Full { at },
            Verdict::Dropped(Cause::Aqm) => Fate::Early { at },
            other => panic!("{other:?}"),
        }
    };
    events.iter().map(fate).collect()
}

/// Fails with the first difference. Returns how many were dropped early, marked, and dropped
/// because the queue was full, so that a test can see that it was about something.
fn compare(name: &str, ours: &[Fate], oracles: &[Fate]) -> [usize; 3] {
    assert_eq!(ours.len(), oracles.len(), "{name}");
    for (number, (ours, oracles)) in ours.iter().zip(oracles).enumerate() {
        assert_eq!(
            ours, oracles,
            "{name}: packet {number}: the link's (left), the oracle's (right)"
        );
    }
    let count = |is: fn(&Fate) -> bool| oracles.iter().filter(|fate| is(fate)).count();
    [
        count(|fate| matches!(fate, Fate::Early { .. })),
        count(|fate| matches!(fate, Fate::Sent { marked: true, .. })),
        count(|fate| matches!(fate, Fate::Full { .. })),
    ]
}

/// Packets of flows 0 to 4, each with sizes of its own, so that no two queues are equally long.
fn packet_of(id: u64, flow: u64, ecn: Ecn) -> Packet {
    let size = [1500, 1199, 613, 200, 1400][flow as usize % 5];
    Packet { id, size: Bytes::new(size), flow, ecn }
}

/// At a constant rate, in percent of what the link carries, of one flow after the other.
fn constant(percent: u64, seconds: u64, flows: u64, ecn: Ecn) -> Vec<Arrival> {
    let mut at = Time::ZERO;
    let mut arrivals = Vec::new();
    while at < Time::from_secs(seconds) {
        let id = arrivals.len() as u64;
        let packet = packet_of(id, id % flows, ecn);
        arrivals.push(down(at, packet));
        at += Duration::from_nanos(packet.size.get() * NS_PER_BYTE * 100 / percent);
    }
    arrivals
}

/// Bursts of 1 to 250 packets, and pauses as long as the bursts take in the mean; some flows answer
/// to ECN, some do not.
fn bursts(seconds: u64, seed: u64, last: Ecn) -> Vec<Arrival> {
    let mut random = Seed(seed).random();
    let mut at = Time::ZERO;
    let mut arrivals = Vec::new();
    while at < Time::from_secs(seconds) {
        let flow = random.below(5);
        for _ in 0..=random.below(250) {
            let ecn = match flow {
                0 | 1 => Ecn::Ect0,
                4 => last,
                _ => Ecn::NotEct,
            };
            arrivals.push(down(at, packet_of(arrivals.len() as u64, flow, ecn)));
            at += Duration::from_nanos(random.below(400_000));
        }
        at += Duration::from_micros(random.below(120_000));
    }
    arrivals
}

/// Sources that answer to drops and marks, at the link; what arrived there, and what became of it.
fn responsive(toml: &str, seed: u64, ecn: Ecn) -> (Vec<Arrival>, Vec<Fate>) {
    let mut link = link(toml, seed);
    let back = Duration::from_millis(40);
    let mut events = Greedy::new(4, back, ecn).run(&mut link, Time::from_secs(60));
    poll_punctually(&mut link, Time::from_secs(3600), &mut events);
    events.sort_by_key(|event| event.number);
    let sent = |event: &Event| down(event.arrived, Packet { ecn, ..event.packet });
    (events.iter().map(sent).collect(), fates(events))
}

/// Compares link and oracle under constant rates, bursts and responsive sources, with ECN and
/// without; returns the sums of [`compare`].
fn compare_all(queue: &str, oracle: impl Fn(Seed) -> Box<dyn Oracle>) -> [usize; 3] {
    compare_ecn(queue, &[Ecn::NotEct, Ecn::Ect0], oracle)
}

/// The same, with these kinds of packets; of bursts the last flow is of the last kind where that is L4S.
fn compare_ecn(queue: &str, kinds: &[Ecn], oracle: impl Fn(Seed) -> Box<dyn Oracle>) -> [usize; 3] {
    let last = if kinds.contains(&Ecn::Ect1) { Ecn::Ect1 } else { Ecn::NotEct };
    let toml = format!("{RATE}\n{queue}");
    let mut sums = [0; 3];
    for &ecn in kinds {
        for seed in 1..4 {
            let mut open = vec![("bursts".to_owned(), bursts(30, seed, last))];
            for percent in [95, 103, 130, 250] {
                let name = format!("{percent} %, {ecn:?}");
                open.push((name, constant(percent, 12, 1 + 2 * (seed % 3), ecn)));
            }
            for (name, arrivals) in open {
                let ours = fates(run(&mut link(&toml, seed), &arrivals));
                let theirs = consult(oracle(Seed(seed)).as_mut(), &arrivals);
                add(&mut sums, compare(&format!("{name}, seed {seed}"), &ours, &theirs));
            }
            let (arrivals, ours) = responsive(&toml, seed, ecn);
            let theirs = consult(oracle(Seed(seed)).as_mut(), &arrivals);
            add(&mut sums, compare(&format!("responsive, {ecn:?}, seed {seed}"), &ours, &theirs));
        }
    }
    sums
}

fn add(sums: &mut [usize; 3], counts: [usize; 3]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// A queue of packets and their bytes.
#[derive(Debug, Default)]
struct Line {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Line {
    fn push(&mut self, packet: Waiting) {
        self.bytes += packet.bytes;
        self.packets.push_back(packet);
    }

    fn pop(&mut self) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.bytes;
        Some(packet)
    }
}
