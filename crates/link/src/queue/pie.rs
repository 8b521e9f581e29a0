//! PIE, RFC 8033: drops at the tail with a probability that holds the delay at a target.
//!
//! Choices where the RFC leaves one: the delay is how long the packet at the head has waited (timestamps, §4.3). The
//! RFC's own estimate is the queue's length divided by the departure rate, and Linux takes what the last packet to
//! leave had waited. MEAN_PKTSIZE is the largest packet seen so far (Linux: the MTU).

use suiro_units::{Duration, Random, Seed, Time};

use super::fifo::Fifo;
use crate::config::PieConfig;
use crate::outcomes::Sink;
use crate::packet::{Backlog, Cause, Passage};

/// RFC 8033 §4.2: weights, per second, of the delay's distance from the target and of its trend, at
/// the default update period.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
const PERIOD: Duration = Duration::from_millis(15);
/// §5.1: above this probability even ECN-capable packets are dropped.
const MARK_BELOW: f64 = 0.1;

#[derive(Debug)]
pub(super) struct Pie {
    config: PieConfig,
    fifo: Fifo,
    random: Random,
    alpha: f64,
    beta: f64,
    /// `PIE->drop_prob_`.
    probability: f64,
    /// Probability gathered since the last drop (§5.4).
    gathered: f64,
    /// `PIE->qdelay_old_`.
    delay_before: Duration,
    burst_left: Duration,
    /// When the probability is computed next: a multiple of the update period.
    update_at: Time,
    largest: u64,
}

impl Pie {
    pub fn new(config: PieConfig, seed: Seed) -> Self {
        // §4.2: of half the period, half of alpha, and beta and a quarter of alpha.
        let alpha = ALPHA * (config.update / PERIOD);
        let beta = BETA + (ALPHA - alpha) / 2.0;
        Self {
            alpha,
            beta,
            config,
            fifo: Fifo::default(),
            random: seed.random(),
            probability: 0.0,
            gathered: 0.0,
            delay_before: Duration::ZERO,
            burst_left: config.burst,
            update_at: Time::ZERO + config.update,
            largest: 0,
        }
    }

    pub fn enqueue(&mut self, now: Time, mut passage: Passage, sink: &mut Sink<'_>) {
        self.catch_up(now);
        self.largest = self.largest.max(passage.size());
        if self.refuses(now) {
            let may_mark = self.config.ecn && self.probability < MARK_BELOW;
            if !(may_mark && passage.mark()) {
                sink.dropped(now, passage, Cause::Aqm);
                return;
            }
        }
        self.fifo.push(passage);
    }

    /// RFC 8033 §5.4 and Appendix A: whatever drops a packet, the gathering begins anew.
    pub fn has_no_room(&mut self) {
        self.gathered = 0.0;
    }

    pub fn dequeue(&mut self, now: Time) -> Option<Passage> {
        self.catch_up(now);
        self.fifo.pop()
    }

    pub fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    pub fn pop(&mut self) -> Option<Passage> {
        self.fifo.pop()
    }

    /// §4.1, with the exceptions of its pseudocode, and §5.4.
    fn refuses(&mut self, now: Time) -> bool {
        let half = self.config.target / 2;
        let calm = self.delay_before < half;
        if self.probability == 0.0 && calm && self.delay(now) < half {
            self.burst_left = self.config.burst;
        }
        let spared = !self.burst_left.is_zero()
            || (calm && self.probability < 0.2)
            || self.fifo.bytes() <= 2 * self.largest;
        if spared {
            return false;
        }
        self.draw()
    }

    /// §5.4: drops are spread more evenly than independent draws would.
    fn draw(&mut self) -> bool {
        if self.probability == 0.0 {
            self.gathered = 0.0;
        }
        self.gathered += self.probability;
        if self.gathered < 0.85 {
            return false;
        }
        let refuses = self.gathered >= 8.5 || self.random.chance(self.probability);
        if refuses {
            self.gathered = 0.0;
        }
        refuses
    }

    /// How long the packet at the head has waited: the latency by timestamps that §4.3
    /// allows in place of an estimate from the departure rate. It holds also in an outage.
    fn delay(&self, now: Time) -> Duration {
        self.fifo.head_arrived().map_or(Duration::ZERO, |arrived| now.saturating_since(arrived))
    }

    /// Does the updates that have come due, each at its own time: between two events of the queue
    /// its head is the same, so being late changes nothing.
    fn catch_up(&mut self, now: Time) {
        while self.update_at <= now {
            if self.is_settled() {
                let periods = (now - self.update_at).as_nanos() / self.config.update.as_nanos();
                self.update_at += self.config.update * (periods + 1);
                return;
            }
            self.update(self.update_at);
            self.update_at += self.config.update;
        }
    }

    /// No further update changes anything while the queue is empty.
    fn is_settled(&self) -> bool {
        self.fifo.is_empty()
            && self.probability == 0.0
            && self.delay_before.is_zero()
            && self.burst_left.is_zero()
    }

    /// §4.2, with the cap of §5.5.
    fn update(&mut self, now: Time) {
        let delay = self.delay(now);
        let (delay_s, before_s) = (delay.as_secs_f64(), self.delay_before.as_secs_f64());
        let target_s = self.config.target.as_secs_f64();
        let mut change = self.alpha * (delay_s - target_s) + self.beta * (delay_s - before_s);
        change /= damping(self.probability);
        if self.probability >= 0.1 && change > 0.02 {
            change = 0.02;
        }
        self.probability += change;
        if delay.is_zero() && self.delay_before.is_zero() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay_before = delay;
        self.burst_left = self.burst_left.saturating_sub(self.config.update);
    }
}

/// §4.2: small probabilities move in small steps.
fn damping(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}
