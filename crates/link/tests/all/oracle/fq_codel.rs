//! RFC 8290 §4.1 and §4.2.

use std::collections::{BTreeMap, VecDeque};

use super::codel::State;
use super::{Fate, Line, Oracle, Waiting, compare_all};
use crate::common::{down, link, packet, run, us};
use suiro_link::Packet;

const QUANTUM: i64 = 1514;
const DROP_BATCH: usize = 64;

#[derive(Debug, Default)]
struct Flow {
    queue: Line,
    codel: State,
    credits: i64,
}

/// A queue for each flow: of 1024 queues, the few flows of these tests have one each.
#[derive(Debug, Default)]
struct FqCodel {
    limit: usize,
    flows: BTreeMap<u64, Flow>,
    new: VecDeque<u64>,
    old: VecDeque<u64>,
}

impl FqCodel {
    fn waiting(&self) -> usize {
        self.flows.values().map(|flow| flow.queue.packets.len()).sum()
    }
}

impl Oracle for FqCodel {
    fn enqueue(&mut self, now: u64, packet: Waiting, fates: &mut [Option<Fate>]) {
        let active = self.new.contains(&packet.flow) || self.old.contains(&packet.flow);
        let flow = self.flows.entry(packet.flow).or_default();
        flow.codel.maxpacket = flow.codel.maxpacket.max(packet.bytes);
        flow.queue.push(packet);
        if !active {
            flow.credits = QUANTUM;
            self.new.push_back(packet.flow);
        }
        if self.waiting() > self.limit {
            let fattest = self.flows.values_mut().max_by_key(|flow| flow.queue.bytes);
            let queue = &mut fattest.expect("a packet waits").queue;
            // On purpose: `count` of its CoDel stays as it is; Linux adds the packets dropped here.
            for _ in 0..(queue.packets.len() / 2).clamp(1, DROP_BATCH) {
                let packet = queue.pop().expect("half of them");
                fates[packet.number] = Some(Fate::Full { at: now });
            }
        }
    }

    fn dequeue(&mut self, now: u64, fates: &mut [Option<Fate>]) -> Option<Waiting> {
        loop {
            let (id, is_new) = match (self.new.front(), self.old.front()) {
                (Some(&id), _) => (id, true),
                (None, Some(&id)) => (id, false),
                (None, None) => return None,
            };
            let list = if is_new { &mut self.new } else { &mut self.old };
            let flow = self.flows.get_mut(&id).expect("listed flows are known");
            if flow.credits <= 0 {
                flow.credits += QUANTUM;
                list.pop_front();
                self.old.push_back(id);
                continue;
            }
            match flow.codel.dequeue(now, &mut flow.queue, fates) {
                Some(packet) => {
                    flow.credits -= packet.bytes as i64;
                    return Some(packet);
                }
                None => {
                    list.pop_front();
                    if is_new {
                        self.old.push_back(id);
                    }
                }
            }
        }
    }
}

#[test]
fn fq_codel_does_what_rfc_8290_does() {
    for limit in [120, 10_240] {
        let queue = format!("queue = {{ discipline = 'fq-codel', limit = '{limit}p' }}");
        let oracle = |_| Box::new(FqCodel { limit, ..FqCodel::default() }) as Box<dyn Oracle>;
        let [early, marked, full] = compare_all(&queue, oracle);
        assert!(
            early > 500 && marked > 500 && (full > 100 || limit == 10_240),
            "{early} {marked} {full}"
        );
    }
}

/// §4.2: an empty queue leaves the lists when the scheduler finds it empty. A flow that comes back
/// after the link has rested is new, and served before flows that come later and send a lot.
#[test]
fn a_flow_that_comes_back_after_the_link_rested_is_new() {
    let packet = |id, bytes, flow| Packet { flow, ..packet(id, bytes) };
    // A flow sends more than its quantum, then the link rests for a second.
    let mut arrivals = vec![down(us(0), packet(0, 1500, 7)), down(us(1), packet(1, 1500, 7))];
    // Another flow's packet is in service when 200 bytes of the first flow come, and then much of two
    // others.
    arrivals.push(down(us(1_000_000), packet(2, 1500, 0)));
    arrivals.push(down(us(1_000_001), packet(3, 200, 7)));
    arrivals.extend((4..12).map(|id| down(us(1_000_002), packet(id, 1500, 1 + id % 2))));
    let toml = format!("{}\nqueue.discipline = 'fq-codel'", super::RATE);
    let events = run(&mut link(&toml, 3), &arrivals);
    let event = events.iter().find(|event| event.number == 3).expect("it passes");
    // The packet in service ends at 1001.5 ms; its own 200 bytes take 0.2 ms.
    assert_eq!(event.at, us(1_001_700));
}
