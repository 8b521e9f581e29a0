//! The events that await the caller, and the counts.

use std::collections::VecDeque;

use suiro_units::{Bytes, Time};

use crate::packet::{Cause, Direction, Event, Passage, Verdict};

/// How many packets a direction has seen, and what became of them. At any time
/// `arrived + duplicated == delivered + dropped() + drained + inside`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets that arrived.
    pub arrived: u64,
    /// Their bytes.
    pub arrived_bytes: Bytes,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: Bytes,
    /// Packets delivered with a bit flipped.
    pub corrupted: u64,
    /// Packets held back so that others overtake them.
    pub held_back: u64,
    /// Packets marked with Congestion Experienced.
    pub marked: u64,
    /// Packets dropped, by the index of their cause in [`Cause::ALL`].
    pub dropped_by: [u64; Cause::ALL.len()],
    /// Packets handed back by [`crate::Link::drain`].
    pub drained: u64,
    /// Packets and copies still in the link: queued, in service or in flight.
    pub inside: u64,
    /// How often the trace has begun again.
    pub trace_wraps: u64,
}

impl Counts {
    /// Packets dropped for this reason.
    pub const fn dropped_for(&self, cause: Cause) -> u64 {
        self.dropped_by[cause as usize]
    }

    /// Packets dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped_by.iter().sum()
    }
}

/// What one direction reports, in order of time.
#[derive(Debug)]
pub(crate) struct Outcomes {
    direction: Direction,
    pub counts: Counts,
}

impl Outcomes {
    pub fn new(direction: Direction) -> Self {
        Self { direction, counts: Counts::default() }
    }

    pub fn ends(&mut self, at: Time, passage: Passage, verdict: Verdict) -> Event {
        let counts = &mut self.counts;
        counts.inside -= 1;
        counts.marked += u64::from(passage.ecn_marked);
        match verdict {
            Verdict::Delivered { corruption, .. } => {
                counts.delivered += 1;
                counts.delivered_bytes += passage.packet.size;
                counts.corrupted += u64::from(corruption.is_some());
            }
            Verdict::Dropped(cause) => counts.dropped_by[cause as usize] += 1,
            Verdict::Queued => counts.drained += 1,
        }
        passage.ends(at, self.direction, verdict)
    }
}

/// Where a part of a direction reports what it drops.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    pub outcomes: &'a mut Outcomes,
    pub events: &'a mut VecDeque<Event>,
}

impl Sink<'_> {
    pub fn dropped(&mut self, at: Time, passage: Passage, cause: Cause) {
        self.ends(at, passage, Verdict::Dropped(cause), true);
    }

    pub fn ends(&mut self, at: Time, passage: Passage, verdict: Verdict, last: bool) {
        let event = self.outcomes.ends(at, passage, verdict);
        self.events.push_back(Event { last, ..event });
    }
}
