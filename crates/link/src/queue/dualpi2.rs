//! DualPI2, RFC 9332 appendix A: two queues, one for packets of L4S and one for all others, whose marks and drops are coupled.
//!
//! A controller holds the delay by one probability p'. Classic packets are dropped or marked with p'², packets of L4S are marked
//! with 2p' or by a ramp over their own delay, whichever is more. So flows of both kinds get about the same rate, and those of L4S
//! wait for less than a millisecond or two. Of appendix A.2 this has the reaction to overload. Decisions are spread evenly
//! (`recur` there), not drawn: nothing here is random.
//!
//! Choices where the RFC leaves one, all as in Linux: the classic queue has a tenth of the rate at least, by weighted turns.
//! While less than two full packets wait (the largest seen), nothing is dropped or marked but by the ramp. The ramp leaves out
//! a packet behind which no other of L4S waits (`Th_len`). Linux draws each decision, and has a step where the RFC has the
//! ramp.

use suiro_units::{Duration, Time};

use super::fifo::Fifo;
use crate::config::Dualpi2Config;
use crate::outcomes::Sink;
use crate::packet::{Backlog, Cause, Ecn, Passage};

/// The coupling factor k: flows of both kinds with the same round-trip time get about the same rate.
const COUPLING: f64 = 2.0;
/// `p_Cmax`, 1/k²: from here on packets of L4S would all be marked, and ECN no longer slows anybody down.
const CLASSIC_MAX: f64 = 1.0 / (COUPLING * COUPLING);
/// What a byte of L4S adds to the credit of the classic queue, and what a byte of that takes from it: weights of 10 and 90 %.
const CREDIT: i64 = 10;
const DEBIT: i64 = 90;

#[derive(Debug)]
pub(super) struct DualPi2 {
    low_latency: Line,
    classic: Line,
    target: f64,
    update: Duration,
    alpha: f64,
    beta: f64,
    /// Where the ramp begins and how long it is, in seconds.
    ramp: (f64, f64),
    /// p'.
    probability: f64,
    /// The delay at the latest update, in seconds.
    delay_before: f64,
    /// When p' is computed next: a multiple of the update period.
    update_at: Time,
    /// The classic queue has its turn while this is above 0.
    credit: i64,
    largest: u64,
}

/// One of the two queues.
#[derive(Debug, Default)]
struct Line {
    fifo: Fifo,
    /// What has gathered towards the next decision (`q.count`).
    gathered: f64,
}

impl Line {
    /// Appendix A.1, `recur`: true in this share of the calls, as evenly as can be.
    fn recurs(&mut self, likelihood: f64) -> bool {
        self.gathered += likelihood;
        let due = self.gathered > 1.0;
        if due {
            self.gathered -= 1.0;
        }
        due
    }

    /// How long the packet at the head has waited.
    fn delay(&self, now: Time) -> Duration {
        self.fifo.head_arrived().map_or(Duration::ZERO, |arrived| now.saturating_since(arrived))
    }
}

impl DualPi2 {
    pub fn new(config: Dualpi2Config) -> Self {
        // Appendix A.1: Tupdate, alpha and beta follow from the target and the longest round-trip time.
        let update = config.target.min(config.interval / 3);
        let rtt_max = config.interval.as_secs_f64();
        let threshold = config.ce_threshold.as_secs_f64();
        Self {
            low_latency: Line::default(),
            classic: Line::default(),
            target: config.target.as_secs_f64(),
            update,
            alpha: 0.1 * update.as_secs_f64() / (rtt_max * rtt_max),
            beta: 0.3 / rtt_max,
            ramp: (threshold, threshold / 2.0),
            probability: 0.0,
            delay_before: 0.0,
            update_at: Time::ZERO + update,
            credit: 0,
            largest: 0,
        }
    }

    /// Appendix A.1, `dualpi2_enqueue`: ECT(1) and CE go to the queue of L4S (RFC 9331 §5.1).
    pub fn enqueue(&mut self, now: Time, passage: Passage) {
        self.catch_up(now);
        self.largest = self.largest.max(passage.size());
        let line = match passage.packet.ecn {
            Ecn::Ect1 | Ecn::Ce => &mut self.low_latency,
            Ecn::NotEct | Ecn::Ect0 => &mut self.classic,
        };
        line.fifo.push(passage);
    }

    /// Appendix A.2, `dualpi2_dequeue`.
    pub fn dequeue(&mut self, now: Time, sink: &mut Sink<'_>) -> Option<Passage> {
        self.catch_up(now);
        loop {
            let for_low_latency = self.is_turn_of_low_latency();
            let line = if for_low_latency { &mut self.low_latency } else { &mut self.classic };
            let Some(mut passage) = line.fifo.pop() else {
                self.credit = 0;
                return None;
            };
            self.account(for_low_latency, passage.size());
            let drops = if for_low_latency {
                self.judges_low_latency(now, &mut passage)
            } else {
                self.judges_classic(&mut passage)
            };
            if !drops {
                return Some(passage);
            }
            sink.dropped(now, passage, Cause::Aqm);
        }
    }

    pub fn backlog(&self) -> Backlog {
        let (low, classic) = (self.low_latency.fifo.backlog(), self.classic.fifo.backlog());
        Backlog { bytes: low.bytes + classic.bytes, packets: low.packets + classic.packets }
    }

    pub fn pop(&mut self) -> Option<Passage> {
        self.low_latency.fifo.pop().or_else(|| self.classic.fifo.pop())
    }

    /// Weighted turns (§4.2.2 of the RFC wants that neither queue starves the other).
    fn is_turn_of_low_latency(&self) -> bool {
        !self.low_latency.fifo.is_empty() && (self.classic.fifo.is_empty() || self.credit <= 0)
    }

    /// A turn counts while the other queue waits for its own.
    fn account(&mut self, low_latency: bool, bytes: u64) {
        let bytes = bytes as i64;
        if low_latency && !self.classic.fifo.is_empty() {
            self.credit += CREDIT * bytes;
        } else if !low_latency && !self.low_latency.fifo.is_empty() {
            self.credit -= DEBIT * bytes;
        }
    }

    /// Too little waits for a standing queue.
    fn is_short(&self) -> bool {
        self.low_latency.fifo.bytes() + self.classic.fifo.bytes() < 2 * self.largest
    }

    /// Marks a packet of L4S if it must be; true if it must be dropped.
    fn judges_low_latency(&mut self, now: Time, passage: &mut Passage) -> bool {
        let coupled = if self.is_short() { 0.0 } else { COUPLING * self.probability };
        if coupled >= 1.0 {
            // Overload: drops as in the classic queue, and marks for the rest.
            let drops = self.low_latency.recurs(self.probability * self.probability);
            if !drops {
                passage.mark();
            }
            return drops;
        }
        let native = if self.low_latency.fifo.is_empty() {
            0.0
        } else {
            self.ramp(now.saturating_since(passage.arrived))
        };
        if self.low_latency.recurs(native.max(coupled)) {
            passage.mark();
        }
        false
    }

    /// Marks a classic packet if it must be; true if it must be dropped.
    fn judges_classic(&mut self, passage: &mut Passage) -> bool {
        let squared = self.probability * self.probability;
        if self.is_short() || !self.classic.recurs(squared) {
            return false;
        }
        squared >= CLASSIC_MAX || !passage.mark()
    }

    /// Appendix A.1, `laqm`.
    fn ramp(&self, delay: Duration) -> f64 {
        let (from, range) = self.ramp;
        ((delay.as_secs_f64() - from) / range).clamp(0.0, 1.0)
    }

    /// Does the updates that have come due, each at its own time: between two events of the queues
    /// their heads are the same, so being late changes nothing.
    fn catch_up(&mut self, now: Time) {
        while self.update_at <= now {
            let is_settled =
                self.probability == 0.0 && self.delay_before == 0.0 && self.backlog().packets == 0;
            if is_settled {
                let periods = (now - self.update_at).as_nanos() / self.update.as_nanos();
                self.update_at += self.update * (periods + 1);
                return;
            }
            self.update_probability(self.update_at);
            self.update_at += self.update;
        }
    }

    /// Appendix A.2, `dualpi2_update`: by the longer of both delays.
    fn update_probability(&mut self, now: Time) {
        let delay = self.classic.delay(now).max(self.low_latency.delay(now)).as_secs_f64();
        let change = self.alpha * (delay - self.target) + self.beta * (delay - self.delay_before);
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        self.delay_before = delay;
    }
}
