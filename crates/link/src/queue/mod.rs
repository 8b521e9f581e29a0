//! Where packets wait: a limit, and a discipline that says which packets are dropped or marked and
//! which one leaves next.
//!
//! A new discipline is a variant here with a module of its own that answers `enqueue`, `dequeue`
//! and `pop` (for draining); what all share, the limit and the backlog, stays here.

mod codel;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;

use suiro_units::{Bytes, Seed, Time};

use crate::bounds::MAX_QUEUED;
use crate::config::{DisciplineConfig, LimitConfig, QueueConfig};
use crate::outcomes::Sink;
use crate::packet::{Backlog, Cause, Passage};
use crate::schedule::{Follow, Schedule};
use codel::CodelQueue;
use dualpi2::DualPi2;
use fifo::Fifo;
use fq_codel::FqCodel;
use pie::Pie;

#[derive(Debug)]
pub(crate) struct Queue {
    limit: Limit,
    discipline: Discipline,
}

#[derive(Debug)]
enum Discipline {
    Droptail(Fifo),
    Codel(CodelQueue),
    Pie(Pie),
    FqCodel(FqCodel),
    DualPi2(DualPi2),
}

impl Discipline {
    /// A packet was dropped before the discipline saw it.
    fn has_no_room(&mut self) {
        match self {
            Self::Pie(queue) => queue.has_no_room(),
            Self::Droptail(_) | Self::Codel(_) | Self::FqCodel(_) | Self::DualPi2(_) => {}
        }
    }
}

impl Queue {
    pub fn new(config: &QueueConfig, seed: Seed) -> Self {
        let discipline = match config.discipline {
            DisciplineConfig::Droptail => Discipline::Droptail(Fifo::default()),
            DisciplineConfig::Codel(config) => Discipline::Codel(CodelQueue::new(config)),
            DisciplineConfig::Pie(config) => Discipline::Pie(Pie::new(config, seed)),
            DisciplineConfig::FqCodel(config) => Discipline::FqCodel(FqCodel::new(config, seed)),
            DisciplineConfig::Dualpi2(config) => Discipline::DualPi2(DualPi2::new(config)),
        };
        Self { limit: Limit::new(&config.limit), discipline }
    }

    /// Takes a packet, or drops it or others into `sink`.
    pub fn enqueue(&mut self, now: Time, passage: Passage, sink: &mut Sink<'_>) {
        let before = self.backlog();
        let after =
            Backlog { bytes: before.bytes + passage.packet.size, packets: before.packets + 1 };
        if after.packets > MAX_QUEUED {
            self.discipline.has_no_room();
            sink.dropped(now, passage, Cause::Limit);
            return;
        }
        let fits = self.limit.holds(now, after);
        match &mut self.discipline {
            Discipline::FqCodel(queue) => {
                queue.enqueue(passage);
                while !self.limit.holds(now, queue.backlog()) {
                    queue.drop_from_fattest(now, sink);
                }
            }
            discipline if !fits => {
                discipline.has_no_room();
                sink.dropped(now, passage, Cause::Queue);
            }
            Discipline::Droptail(queue) => queue.push(passage),
            Discipline::Codel(queue) => queue.enqueue(passage),
            Discipline::Pie(queue) => queue.enqueue(now, passage, sink),
            Discipline::DualPi2(queue) => queue.enqueue(now, passage),
        }
    }

    /// The packet that leaves next, after those that the discipline drops into `sink`. A server
    /// that has become free asks even if nothing waits: some disciplines forget something then.
    pub fn dequeue(&mut self, now: Time, sink: &mut Sink<'_>) -> Option<Passage> {
        match &mut self.discipline {
            Discipline::Droptail(queue) => queue.pop(),
            Discipline::Codel(queue) => queue.dequeue(now, sink),
            Discipline::Pie(queue) => queue.dequeue(now),
            Discipline::FqCodel(queue) => queue.dequeue(now, sink),
            Discipline::DualPi2(queue) => queue.dequeue(now, sink),
        }
    }

    pub fn backlog(&self) -> Backlog {
        match &self.discipline {
            Discipline::Droptail(queue) => queue.backlog(),
            Discipline::Codel(queue) => queue.backlog(),
            Discipline::Pie(queue) => queue.backlog(),
            Discipline::FqCodel(queue) => queue.backlog(),
            Discipline::DualPi2(queue) => queue.backlog(),
        }
    }

    /// Takes a packet out, whatever the discipline thinks: the link is being drained.
    pub fn pop(&mut self) -> Option<Passage> {
        match &mut self.discipline {
            Discipline::Droptail(queue) => queue.pop(),
            Discipline::Codel(queue) => queue.pop(),
            Discipline::Pie(queue) => queue.pop(),
            Discipline::FqCodel(queue) => queue.pop(),
            Discipline::DualPi2(queue) => queue.pop(),
        }
    }
}

/// How much the queue holds now.
#[derive(Debug)]
enum Limit {
    Packets(u32),
    Bytes(Follow<Bytes>),
}

impl Limit {
    fn new(config: &LimitConfig) -> Self {
        match config {
            LimitConfig::Packets(packets) => Self::Packets(*packets),
            LimitConfig::Bytes(bytes) => Self::Bytes(Follow::new(Schedule::clone(bytes))),
        }
    }

    /// A single packet always has room: a limit below one would stop the link.
    fn holds(&mut self, now: Time, backlog: Backlog) -> bool {
        backlog.packets <= 1
            || match self {
                Self::Packets(packets) => backlog.packets <= *packets,
                Self::Bytes(bytes) => backlog.bytes <= *bytes.at(now),
            }
    }
}
