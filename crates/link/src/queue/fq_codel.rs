//! FQ-CoDel, RFC 8290: flows take turns by deficit round robin, each with a CoDel of its own; a
//! flow that sends little is served first.
//!
//! Packets dropped because the queue is full do not count in their flow's CoDel; Linux adds them to
//! its `count`. Of queues with equally many bytes any may be the fattest.

use std::collections::VecDeque;

use suiro_units::{Bytes, Seed, Time};

use super::codel::Codel;
use super::fifo::Fifo;
use crate::config::FqCodelConfig;
use crate::outcomes::Sink;
use crate::packet::{Backlog, Cause, Passage};

/// §4.1: so many packets at most, and no more than half of the queue, are dropped from the
/// fattest queue when there is no room.
const DROP_BATCH: u32 = 64;

#[derive(Debug)]
pub(super) struct FqCodel {
    config: FqCodelConfig,
    salt: u64,
    flows: Box<[Flow]>,
    /// Queues in line for their turn; new ones come first.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    backlog: Backlog,
}

#[derive(Debug, Default)]
struct Flow {
    fifo: Fifo,
    codel: Codel,
    /// Bytes it may still send in this turn.
    deficit: i64,
    listed: bool,
}

impl FqCodel {
    pub fn new(config: FqCodelConfig, seed: Seed) -> Self {
        Self {
            config,
            salt: seed.random().next_u64(),
            flows: (0..config.flows).map(|_| Flow::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// §4.1. The packet is taken even if there is no room: what makes room for it comes from the
    /// fattest queue.
    pub fn enqueue(&mut self, passage: Passage) {
        let index = self.bucket(passage.packet.flow);
        let flow = &mut self.flows[index as usize];
        flow.codel.sees(&passage);
        self.backlog.bytes += passage.packet.size;
        self.backlog.packets += 1;
        flow.fifo.push(passage);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.config.quantum.get() as i64;
            self.new.push_back(index);
        }
    }

    /// §4.2: the head of the new queues, else of the old ones.
    pub fn dequeue(&mut self, now: Time, sink: &mut Sink<'_>) -> Option<Passage> {
        loop {
            let from_new = !self.new.is_empty();
            let line = if from_new { &mut self.new } else { &mut self.old };
            let index = *line.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.config.quantum.get() as i64;
                line.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = flow.fifo.backlog();
            let passage = flow.codel.dequeue(now, &self.config.codel, &mut flow.fifo, sink);
            let after = flow.fifo.backlog();
            self.backlog.bytes -= before.bytes - after.bytes;
            self.backlog.packets -= before.packets - after.packets;
            if let Some(passage) = passage {
                flow.deficit -= passage.size() as i64;
                return Some(passage);
            }
            line.pop_front();
            // An empty new queue becomes an old one, so that it cannot come back as new at once
            // and starve the others. (Linux forgets it at once if there is no old queue.)
            if from_new {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    /// §4.1: makes room at the head of the queue with the most bytes.
    pub fn drop_from_fattest(&mut self, now: Time, sink: &mut Sink<'_>) {
        let fattest = self.flows.iter_mut().max_by_key(|flow| (flow.fifo.bytes(), flow.fifo.len()));
        let Some(flow) = fattest else { return };
        let batch = (flow.fifo.len() / 2).clamp(1, DROP_BATCH);
        for _ in 0..batch {
            let Some(passage) = flow.fifo.pop() else { return };
            self.backlog.bytes -= Bytes::new(passage.size());
            self.backlog.packets -= 1;
            sink.dropped(now, passage, Cause::Queue);
        }
    }

    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub fn pop(&mut self) -> Option<Passage> {
        let passage = self.flows.iter_mut().find_map(|flow| flow.fifo.pop())?;
        self.backlog.bytes -= passage.packet.size;
        self.backlog.packets -= 1;
        Some(passage)
    }

    /// The queue of a flow: a hash with a salt of this link's own (§4.1), so that which flows
    /// collide depends on the seed.
    fn bucket(&self, flow: u64) -> u32 {
        let mut hash = (flow ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
        hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((u128::from(hash) * self.flows.len() as u128) >> 64) as u32
    }
}
