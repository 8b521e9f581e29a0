//! RFC 8289 §5, "Annotated Pseudocode for CoDel AQM", with ECN as in §3.1 of RFC 8290's CoDel:
//! a packet that can be marked is not dropped, and is the only one of its dequeue.

use super::{Fate, Line, Oracle, Waiting, compare_all};

pub(super) const TARGET: u64 = 5_000_000;
pub(super) const INTERVAL: u64 = 100_000_000;

/// The variables of §5.3; a time of 0 is "none", as there.
#[derive(Debug, Default)]
pub(super) struct State {
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
    /// On purpose: MAXPACKET is the largest packet that this queue has seen. Linux keeps one such
    /// figure for all flows of FQ-CoDel.
    pub maxpacket: u64,
}

impl State {
    fn dodequeue(&mut self, now: u64, queue: &mut Line) -> (Option<Waiting>, bool) {
        let Some(packet) = queue.pop() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let sojourn_time = now - packet.enqueued;
        if sojourn_time < TARGET || queue.bytes <= self.maxpacket {
            self.first_above_time = 0;
            (Some(packet), false)
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
            (Some(packet), false)
        } else {
            (Some(packet), now >= self.first_above_time)
        }
    }

    /// Times are whole nanoseconds, as the link's.
    fn control_law(t: u64, count: u64) -> u64 {
        t + (INTERVAL as f64 / (count as f64).sqrt()).round() as u64
    }

    pub fn dequeue(
        &mut self,
        now: u64,
        queue: &mut Line,
        fates: &mut [Option<Fate>],
    ) -> Option<Waiting> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now, queue);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if packet.is_some_and(|packet| packet.ect) {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                    return packet.map(|packet| Waiting { marked: true, ..packet });
                }
                drop_early(packet, now, fates);
                (packet, ok_to_drop) = self.dodequeue(now, queue);
                if ok_to_drop {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if packet.is_some_and(|packet| packet.ect) {
                packet = packet.map(|packet| Waiting { marked: true, ..packet });
            } else {
                drop_early(packet, now, fates);
                (packet, _) = self.dodequeue(now, queue);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * INTERVAL as i64 {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        packet
    }
}

fn drop_early(packet: Option<Waiting>, now: u64, fates: &mut [Option<Fate>]) {
    let packet = packet.expect("only what is there may be dropped");
    fates[packet.number] = Some(Fate::Early { at: now });
}

#[derive(Debug, Default)]
struct Codel {
    limit: usize,
    queue: Line,
    state: State,
}

impl Oracle for Codel {
    fn enqueue(&mut self, now: u64, packet: Waiting, fates: &mut [Option<Fate>]) {
        if self.queue.packets.len() >= self.limit {
            fates[packet.number] = Some(Fate::Full { at: now });
            return;
        }
        self.state.maxpacket = self.state.maxpacket.max(packet.bytes);
        self.queue.push(packet);
    }

    fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Waiting> {
        self.state.dequeue(now, &mut self.queue, fates)
    }
}

#[test]
fn codel_does_what_rfc_8289_does() {
    for limit in [60, 1000] {
        let queue = format!("queue = {{ discipline = 'codel', limit = '{limit}p' }}");
        let oracle = |_| Box::new(Codel { limit, ..Codel::default() }) as Box<dyn Oracle>;
        let [early, marked, full] = compare_all(&queue, oracle);
        assert!(early > 500 && marked > 500 && full > 500, "{early} {marked} {full}");
    }
}
