//! CoDel, RFC 8289: drops at the head when packets have waited too long for too long.
//!
//! A packet that can be marked is marked instead, at most one at each dequeue, as in Linux. MAXPACKET
//! is the largest packet that this queue has seen; in FQ-CoDel each flow's queue has its own, where
//! Linux has one for all. A threshold of its own, `ce_threshold`, marks every packet above it, as in Linux; RFC 8289 has none.

use suiro_units::{Duration, Time};

use super::fifo::Fifo;
use crate::config::CodelConfig;
use crate::outcomes::Sink;
use crate::packet::{Backlog, Cause, Passage};

/// One queue under CoDel.
#[derive(Debug)]
pub(super) struct CodelQueue {
    config: CodelConfig,
    fifo: Fifo,
    codel: Codel,
}

impl CodelQueue {
    pub fn new(config: CodelConfig) -> Self {
        Self { config, fifo: Fifo::default(), codel: Codel::default() }
    }

    pub fn enqueue(&mut self, passage: Passage) {
        self.codel.sees(&passage);
        self.fifo.push(passage);
    }

    pub fn dequeue(&mut self, now: Time, sink: &mut Sink<'_>) -> Option<Passage> {
        self.codel.dequeue(now, &self.config, &mut self.fifo, sink)
    }

    pub fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    pub fn pop(&mut self) -> Option<Passage> {
        self.fifo.pop()
    }
}

/// CoDel's state, by the names of RFC 8289 §5.
#[derive(Debug, Default)]
pub(super) struct Codel {
    /// When the sojourn time will have been above the target for an interval; `None`: it is below.
    first_above: Option<Time>,
    dropping: bool,
    /// When the next packet is dropped while dropping.
    drop_next: Time,
    /// Packets dropped since dropping began.
    count: u32,
    /// `count` when dropping last began.
    last_count: u32,
    /// Largest packet seen: a queue of no more than this is no standing queue (§5.3, MAXPACKET).
    largest: u64,
}

/// A packet off the head of the queue, and whether it may be dropped.
struct Head {
    passage: Option<Passage>,
    ok_to_drop: bool,
}

impl Codel {
    pub fn sees(&mut self, passage: &Passage) {
        self.largest = self.largest.max(passage.size());
    }

    /// RFC 8289 §5.5.
    pub fn dequeue(
        &mut self,
        now: Time,
        config: &CodelConfig,
        fifo: &mut Fifo,
        sink: &mut Sink<'_>,
    ) -> Option<Passage> {
        let mut head = self.head(now, config, fifo);
        if self.dropping {
            if !head.ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let marked = refuse(now, config, &mut head, sink);
                if !marked {
                    head = self.head(now, config, fifo);
                    if !head.ok_to_drop {
                        self.dropping = false;
                        break;
                    }
                }
                self.drop_next = control_law(self.drop_next, config.interval, self.count);
                if marked {
                    break;
                }
            }
        } else if head.ok_to_drop {
            if !refuse(now, config, &mut head, sink) {
                head = self.head(now, config, fifo);
            }
            self.begin_dropping(now, config);
        }
        let mut passage = head.passage;
        // As Linux does last, whatever the control law says.
        if let (Some(threshold), Some(passage)) = (config.ce_threshold, &mut passage)
            && now.saturating_since(passage.arrived) > threshold
        {
            passage.mark();
        }
        passage
    }

    /// Dropping begins where it left off if it ended a short while ago (§5.5).
    fn begin_dropping(&mut self, now: Time, config: &CodelConfig) {
        self.dropping = true;
        let dropped = self.count.saturating_sub(self.last_count);
        let recently = now.saturating_since(self.drop_next) < config.interval * 16;
        self.count = if dropped > 1 && recently { dropped } else { 1 };
        self.drop_next = control_law(now, config.interval, self.count);
        self.last_count = self.count;
    }

    /// Takes the packet at the head and judges its sojourn time (§5.6, `dodequeue`).
    fn head(&mut self, now: Time, config: &CodelConfig, fifo: &mut Fifo) -> Head {
        let Some(passage) = fifo.pop() else {
            self.first_above = None;
            return Head { passage: None, ok_to_drop: false };
        };
        let sojourn = now.saturating_since(passage.arrived);
        let mut ok_to_drop = false;
        if sojourn < config.target || fifo.bytes() <= self.largest {
            self.first_above = None;
        } else if let Some(first_above) = self.first_above {
            ok_to_drop = now >= first_above;
        } else {
            self.first_above = Some(now + config.interval);
        }
        Head { passage: Some(passage), ok_to_drop }
    }
}

/// Marks the packet at the head (true) or drops it (false).
fn refuse(now: Time, config: &CodelConfig, head: &mut Head, sink: &mut Sink<'_>) -> bool {
    if config.ecn && head.passage.as_mut().is_some_and(Passage::mark) {
        return true;
    }
    if let Some(passage) = head.passage.take() {
        sink.dropped(now, passage, Cause::Aqm);
    }
    false
}

/// RFC 8289 §5.6: the time of the next drop is shortened by the square root of their count.
fn control_law(from: Time, interval: Duration, count: u32) -> Time {
    from + interval.mul_f64(1.0 / f64::from(count.max(1)).sqrt())
}
