//! RFC 8033, Appendix A, with ECN (§5.1), the smoothed draw (§5.4) and the cap of §5.5.

use super::{Fate, Line, Oracle, Waiting, compare_all};
use suiro_units::{Random, Seed};

const QDELAY_REF: f64 = 0.015;
const T_UPDATE: u64 = 15_000_000;
const MAX_BURST: u64 = 150_000_000;
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
const MARK_ECNTH: f64 = 0.1;

#[derive(Debug)]
struct Pie {
    limit: usize,
    queue: Line,
    random: Random,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: f64,
    burst_allowance: u64,
    next_update: u64,
    /// On purpose: MEAN_PKTSIZE is the largest packet seen (Linux: the MTU).
    largest: u64,
}

impl Pie {
    fn new(limit: usize, seed: Seed) -> Self {
        Self {
            limit,
            queue: Line::default(),
            // The link's own stream: of one seed the same packets are dropped.
            random: seed.derive("down").derive("queue").random(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: 0.0,
            burst_allowance: MAX_BURST,
            next_update: T_UPDATE,
            largest: 0,
        }
    }

    /// On purpose: by timestamps, which §4.3 allows, and of the packet that has waited longest. The
    /// RFC's own estimate is the queue's length by the departure rate, and Linux takes the time that
    /// the last packet to leave had waited.
    fn current_qdelay(&self, now: u64) -> f64 {
        self.queue.packets.front().map_or(0.0, |head| (now - head.enqueued) as f64 / 1e9)
    }

    /// A timer every T_UPDATE: at equal times before the queue's own events.
    fn timer(&mut self, now: u64) {
        while self.next_update <= now {
            self.calculate_drop_prob(self.next_update);
            self.next_update += T_UPDATE;
        }
    }

    fn calculate_drop_prob(&mut self, now: u64) {
        let current = self.current_qdelay(now);
        let mut p = ALPHA * (current - QDELAY_REF) + BETA * (current - self.qdelay_old);
        if self.drop_prob < 0.000001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.00001 {
            p /= 512.0;
        } else if self.drop_prob < 0.0001 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if current == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = current;
        self.burst_allowance = self.burst_allowance.saturating_sub(T_UPDATE);
    }

    /// True: drop.
    fn drop_early(&mut self) -> bool {
        if self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2 {
            return false;
        }
        if self.queue.bytes <= 2 * self.largest {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        self.accu_prob >= 8.5 || self.random.uniform() < self.drop_prob
    }
}

impl Oracle for Pie {
    fn enqueue(&mut self, now: u64, mut packet: Waiting, fates: &mut [Option<Fate>]) {
        self.timer(now);
        if self.queue.packets.len() >= self.limit {
            fates[packet.number] = Some(Fate::Full { at: now });
            self.accu_prob = 0.0;
            return;
        }
        self.largest = self.largest.max(packet.bytes);
        let half = QDELAY_REF / 2.0;
        if self.drop_prob == 0.0 && self.current_qdelay(now) < half && self.qdelay_old < half {
            self.burst_allowance = MAX_BURST;
        }
        if self.burst_allowance == 0 && self.drop_early() {
            self.accu_prob = 0.0;
            if !(packet.ect && self.drop_prob < MARK_ECNTH) {
                fates[packet.number] = Some(Fate::Early { at: now });
                return;
            }
            packet.marked = true;
        }
        self.queue.push(packet);
    }

    fn dequeue(&mut self, now: u64, _: &mut [Option<Fate>]) -> Option<Waiting> {
        self.timer(now);
        self.queue.pop()
    }
}

#[test]
fn pie_does_what_rfc_8033_does() {
    for limit in [100, 1000] {
        let queue = format!("queue = {{ discipline = 'pie', limit = '{limit}p' }}");
        let oracle = |seed| Box::new(Pie::new(limit, seed)) as Box<dyn Oracle>;
        let [early, marked, full] = compare_all(&queue, oracle);
        assert!(
            early > 500 && marked > 100 && (full > 500 || limit == 1000),
            "{early} {marked} {full}"
        );
    }
}
