//! RFC 9332 appendix A, with the scheduler and the floors of Linux.

use super::{Fate, Line, Oracle, Waiting, compare_ecn};
use suiro_link::Ecn;

const K: f64 = 2.0;
const TARGET: f64 = 0.015;
const RTT_MAX: f64 = 0.100;
const TUPDATE: u64 = 15_000_000;
const ALPHA: f64 = 0.1 * 0.015 / (RTT_MAX * RTT_MAX);
const BETA: f64 = 0.3 / RTT_MAX;
const MIN_TH: f64 = 0.000_8;
const RANGE: f64 = 0.000_4;

/// The variables of figures 2 to 8.
struct DualPi2 {
    lq: Line,
    cq: Line,
    lq_count: f64,
    cq_count: f64,
    p: f64,
    prevq: f64,
    updated: u64,
    credit: i64,
    mtu: u64,
}

fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    if *count > 1.0 {
        *count -= 1.0;
        return true;
    }
    false
}

fn time(queue: &Line, now: u64) -> f64 {
    queue.packets.front().map_or(0.0, |packet| (now - packet.enqueued) as f64 / 1e9)
}

impl DualPi2 {
    fn new() -> Self {
        Self {
            lq: Line::default(),
            cq: Line::default(),
            lq_count: 0.0,
            cq_count: 0.0,
            p: 0.0,
            prevq: 0.0,
            updated: 0,
            credit: 0,
            mtu: 0,
        }
    }

    fn timer(&mut self, now: u64) {
        while self.updated + TUPDATE <= now {
            self.updated += TUPDATE;
            let curq = time(&self.cq, self.updated).max(time(&self.lq, self.updated));
            self.p += ALPHA * (curq - TARGET) + BETA * (curq - self.prevq);
            self.p = self.p.clamp(0.0, 1.0);
            self.prevq = curq;
        }
    }

    fn laqm(&self, waited: f64) -> f64 {
        // Th_len: one packet of L4S, this one.
        if self.lq.packets.is_empty() || waited <= MIN_TH {
            0.0
        } else if waited >= MIN_TH + RANGE {
            1.0
        } else {
            (waited - MIN_TH) / RANGE
        }
    }
}

impl Oracle for DualPi2 {
    fn enqueue(&mut self, now: u64, packet: Waiting, _: &mut [Option<Fate>]) {
        self.timer(now);
        self.mtu = self.mtu.max(packet.bytes);
        if packet.l4s { self.lq.push(packet) } else { self.cq.push(packet) }
    }

    fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Waiting> {
        self.timer(now);
        loop {
            let l_turn =
                !self.lq.packets.is_empty() && (self.cq.packets.is_empty() || self.credit <= 0);
            if l_turn {
                let mut packet = self.lq.pop()?;
                if !self.cq.packets.is_empty() {
                    self.credit += 10 * packet.bytes as i64;
                }
                let floor = self.lq.bytes + self.cq.bytes >= 2 * self.mtu;
                let p_cl = if floor { K * self.p } else { 0.0 };
                if p_cl < 1.0 {
                    let p_l = self.laqm((now - packet.enqueued) as f64 / 1e9).max(p_cl);
                    packet.marked |= recur(&mut self.lq_count, p_l);
                } else if recur(&mut self.lq_count, self.p * self.p) {
                    fates[packet.number] = Some(Fate::Early { at: now });
                    continue;
                } else {
                    packet.marked = true;
                }
                return Some(packet);
            }
            let Some(mut packet) = self.cq.pop() else {
                self.credit = 0;
                return None;
            };
            if !self.lq.packets.is_empty() {
                self.credit -= 90 * packet.bytes as i64;
            }
            let floor = self.lq.bytes + self.cq.bytes >= 2 * self.mtu;
            if floor && recur(&mut self.cq_count, self.p * self.p) {
                if !packet.ect || self.p * self.p >= 0.25 {
                    fates[packet.number] = Some(Fate::Early { at: now });
                    continue;
                }
                packet.marked = true;
            }
            return Some(packet);
        }
    }
}

#[test]
fn dualpi2_does_what_rfc_9332_does() {
    let queue = "queue = { discipline = 'dualpi2', limit = '100000p' }";
    let oracle = |_| Box::new(DualPi2::new()) as Box<dyn Oracle>;
    let [early, marked, full] = compare_ecn(queue, &[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1], oracle);
    assert!(early > 2000 && marked > 2000 && full == 0, "{early} {marked} {full}");
}
