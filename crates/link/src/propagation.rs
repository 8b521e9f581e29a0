//! What happens to packets on their way: delay, jitter, reordering, duplication, corruption.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use suiro_units::{Duration, Random, Seed, Time};

use crate::config::{Order, PropagationConfig, ReorderConfig};
use crate::jitter::Jitter;
use crate::outcomes::Sink;
use crate::packet::{Cause, Corruption, Passage, Verdict};
use crate::schedule::Follow;
use crate::turns;

/// Most packets on their way in one direction: the emulator's own bound, some 130 MB. 10 Gbit/s of
/// 1200-byte packets fill it at a delay of 1 s.
pub const MAX_IN_FLIGHT: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Propagation {
    delay: Follow<Duration>,
    least: Duration,
    jitter: Option<Jitter>,
    reorder: Option<ReorderConfig>,
    duplicate: f64,
    corrupt: f64,
    seeds: Seeds,
    /// Of the wandering delay, which all packets have in common.
    random: Random,
    /// Latest delivery of a packet in order, so far.
    latest: Time,
    flight: Flight,
}

impl Propagation {
    pub fn new(config: &PropagationConfig, seed: Seed) -> Self {
        let shortest = config.delay.steps().map(|(_, delay)| *delay).min().unwrap_or_default();
        let shortens = config.jitter.is_some_and(|jitter| jitter.distribution.is_centred());
        Self {
            delay: Follow::new(config.delay.clone()),
            least: if shortens { Duration::ZERO } else { shortest },
            jitter: config.jitter.map(Jitter::new),
            reorder: config.reorder,
            duplicate: config.duplicate.get(),
            corrupt: config.corrupt.get(),
            seeds: Seeds::new(seed),
            random: seed.random(),
            latest: Time::ZERO,
            flight: Flight::default(),
        }
    }

    /// No packet that enters at `now` or later is delivered before this.
    pub fn soonest(&self, now: Time) -> Time {
        now + self.least
    }

    /// When the next packet is delivered.
    pub fn next(&self) -> Option<Time> {
        self.flight.next()
    }

    /// A packet left the server, which served it alone for the time `service`.
    pub fn enter(&mut self, now: Time, passage: Passage, service: Duration, sink: &mut Sink<'_>) {
        if self.flight.len() >= MAX_IN_FLIGHT {
            sink.dropped(now, passage, Cause::Limit);
            return;
        }
        let own = Own { flow: passage.packet.flow, turn: 2 * passage.turn };
        let at = self.delivery(now, service, own, sink);
        let corruption = self.corruption(&passage, own);
        let mut original = Flying { at, passage, duplicate: false, corruption, last: true };
        let twice = own.chance(self.seeds.duplicate, self.duplicate);
        if twice && self.flight.len() + 1 < MAX_IN_FLIGHT {
            let copy = Own { turn: own.turn + 1, ..own };
            let at = self.delivery(now, Duration::ZERO, copy, sink);
            original.last = at < original.at;
            let corruption = self.corruption(&passage, copy);
            let last = !original.last;
            self.flight.push(original);
            self.flight.push(Flying { at, passage, duplicate: true, corruption, last });
            sink.outcomes.counts.duplicated += 1;
            sink.outcomes.counts.inside += 1;
        } else {
            self.flight.push(original);
        }
    }

    /// Delivers the next packet.
    pub fn deliver(&mut self, sink: &mut Sink<'_>) {
        if let Some(flying) = self.flight.pop() {
            let Flying { at, passage, duplicate, corruption, last } = flying;
            sink.ends(at, passage, Verdict::Delivered { duplicate, corruption }, last);
        }
    }

    /// Takes a packet out that is still on its way; whether it is the last with its handle.
    pub fn pop(&mut self) -> Option<(Passage, bool)> {
        self.flight.pop().map(|flying| (flying.passage, flying.last))
    }

    /// When a packet that leaves the server at `now` is delivered.
    fn delivery(&mut self, now: Time, service: Duration, own: Own, sink: &mut Sink<'_>) -> Time {
        let delay = *self.delay.at(now);
        let mut at = now + delay;
        let (mut kept, mut spacing) = (true, Duration::ZERO);
        if let Some(jitter) = &mut self.jitter {
            let config = jitter.config();
            kept = config.order == Order::Kept;
            let varied = match config.wanders() {
                true => jitter.vary(now, delay, &mut self.random),
                false => jitter.vary(now, delay, &mut own.random(self.seeds.jitter)),
            };
            at = now + varied;
            if config.queues() {
                spacing = service;
            }
        }
        if let Some(reorder) = self.reorder
            && own.chance(self.seeds.reorder, reorder.chance.get())
        {
            sink.outcomes.counts.held_back += 1;
            return at + reorder.by;
        }
        if kept {
            self.latest = at.max(self.latest + spacing);
            at = self.latest;
        }
        at
    }

    fn corruption(&self, passage: &Passage, own: Own) -> Option<Corruption> {
        if passage.size() == 0 || self.corrupt <= 0.0 {
            return None;
        }
        let mut random = own.random(self.seeds.corrupt);
        let bit = random.chance(self.corrupt).then(|| random.below(passage.size() * 8))?;
        Some(Corruption { byte: (bit / 8) as u32, bit: (bit % 8) as u8 })
    }
}

/// Seeds of what may happen to a packet by itself: one each, so that the random numbers of one do not depend on another.
#[derive(Debug)]
struct Seeds {
    jitter: Seed,
    reorder: Seed,
    duplicate: Seed,
    corrupt: Seed,
}

impl Seeds {
    fn new(seed: Seed) -> Self {
        let [jitter, reorder, duplicate, corrupt] =
            ["jitter", "reorder", "duplicate", "corrupt"].map(|part| seed.derive(part));
        Self { jitter, reorder, duplicate, corrupt }
    }
}

/// Whose random numbers they are: a packet's, or its copy's, whose number is the next.
#[derive(Debug, Clone, Copy)]
struct Own {
    flow: u64,
    turn: u64,
}

impl Own {
    fn random(self, seed: Seed) -> Random {
        turns::random(seed, self.flow, self.turn)
    }

    fn chance(self, seed: Seed, probability: f64) -> bool {
        probability > 0.0 && self.random(seed).chance(probability)
    }
}

/// A packet on its way.
#[derive(Debug)]
struct Flying {
    at: Time,
    passage: Passage,
    duplicate: bool,
    corruption: Option<Corruption>,
    last: bool,
}

/// Packets on their way, in the order of their delivery and, at the same time, of their entry.
///
/// Nearly all enter in that order: they stand in a queue. Only those that overtake stand in a heap.
#[derive(Debug, Default)]
struct Flight {
    in_order: VecDeque<(u64, Flying)>,
    early: BinaryHeap<Early>,
    entered: u64,
}

impl Flight {
    fn len(&self) -> usize {
        self.in_order.len() + self.early.len()
    }

    fn push(&mut self, flying: Flying) {
        let entry = self.entered;
        self.entered += 1;
        if self.in_order.back().is_none_or(|(_, back)| back.at <= flying.at) {
            self.in_order.push_back((entry, flying));
        } else {
            self.early.push(Early { key: Reverse((flying.at, entry)), flying });
        }
    }

    fn next(&self) -> Option<Time> {
        let in_order = self.in_order.front().map(|(_, flying)| flying.at);
        match self.early.peek() {
            None => in_order,
            Some(early) => Some(in_order.map_or(early.flying.at, |at| at.min(early.flying.at))),
        }
    }

    fn pop(&mut self) -> Option<Flying> {
        let in_order = self.in_order.front().map(|(entry, flying)| (flying.at, *entry));
        let early = self.early.peek().map(|early| early.key.0);
        match (in_order, early) {
            (in_order, Some(early)) if in_order.is_none_or(|key| early < key) => {
                self.early.pop().map(|early| early.flying)
            }
            _ => self.in_order.pop_front().map(|(_, flying)| flying),
        }
    }
}

/// An entry of the heap, which yields its greatest: the earliest key.
#[derive(Debug)]
struct Early {
    key: Reverse<(Time, u64)>,
    flying: Flying,
}

impl PartialEq for Early {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Early {}

impl PartialOrd for Early {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Early {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
