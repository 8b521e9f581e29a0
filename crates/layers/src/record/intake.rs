//! From the BPF programs' raw events to events: flows get numbers, and system calls are joined to
//! their packets.

use std::collections::BTreeMap;

use crate::event::{DropCause, Event, Flow, Point, Protocol};
use crate::probe::raw::{Raw, Tuple};

use super::queues::{Datagram, Queues};

/// Most flows that are distinguished in each direction; packets of further ones are counted.
const FLOWS_MAX: usize = 1 << 15;

/// Turns raw events into events.
#[derive(Debug, Default)]
pub struct Intake {
    numbers: BTreeMap<Tuple, u16>,
    latest: Option<(Tuple, u16)>,
    /// The flows, by number.
    pub flows: Vec<Flow>,
    /// Datagrams on their way to the application.
    pub queues: Queues,
    /// Events of flows beyond the bound, which are not recorded.
    pub unplaced: u64,
}

impl Intake {
    /// Hands over the events of a raw event: none, one, or several.
    pub fn take(&mut self, raw: &Raw, mut each: impl FnMut(Event)) {
        let is_udp = raw.tuple.protocol() == Protocol::Udp;
        if raw.point == Point::ReceiveCall && is_udp {
            self.queues.take(raw.extra, raw.payload_bytes, |datagram| {
                each_taken(raw, datagram, &mut each);
            });
            return;
        }
        let flow = if raw.other { None } else { self.flow(&raw.tuple) };
        if is_udp {
            self.follow(raw, flow);
        }
        let Some(flow) = flow else {
            self.unplaced += u64::from(!raw.other);
            return;
        };
        let event = event(raw, flow);
        if is_udp && raw.point == Point::SendIp && raw.extra != 0 {
            each(Event { t_ns: raw.extra, point: Point::SendCall, ..event });
        }
        raw.points().for_each(|(point, t_ns)| each(Event { t_ns, point, ..event }));
    }

    /// Keeps the queues as they are in the sockets.
    fn follow(&mut self, raw: &Raw, flow: Option<u16>) {
        if raw.is_at(Point::ReceiveSocket) {
            let Raw { key, ip_id, payload_bytes: bytes, detail: segment, .. } = *raw;
            let datagram = Datagram { flow, key, ip_id, bytes, segment };
            self.queues.enter(raw.extra, raw.queued, datagram);
        } else if raw.point == Point::Dropped && !raw.tuple.sent() {
            self.queues.leave(raw.extra, flow, raw.key);
        }
    }

    fn flow(&mut self, tuple: &Tuple) -> Option<u16> {
        if let Some((latest, number)) = &self.latest
            && latest == tuple
        {
            return Some(*number);
        }
        let number = match self.numbers.get(tuple) {
            Some(number) => *number,
            None if self.flows.len() == FLOWS_MAX => return None,
            None => {
                let number = self.flows.len() as u16;
                self.flows.push(tuple.flow());
                self.numbers.insert(*tuple, number);
                number
            }
        };
        self.latest = Some((*tuple, number));
        Some(number)
    }
}

fn event(raw: &Raw, flow: u16) -> Event {
    let cause = (raw.point == Point::Dropped).then_some(DropCause(raw.detail));
    Event {
        t_ns: raw.t_ns,
        point: raw.point,
        direction_flow: flow,
        key: raw.key,
        ip_id: raw.ip_id,
        payload_bytes: raw.payload_bytes,
        segments: raw.packets(),
        cause,
    }
}

/// Datagrams of other flows only have a place in the queue.
fn each_taken(raw: &Raw, datagram: Datagram, each: &mut impl FnMut(Event)) {
    let Datagram { flow: Some(direction_flow), key, ip_id, bytes, .. } = datagram else { return };
    each(Event {
        t_ns: raw.t_ns,
        point: Point::ReceiveCall,
        direction_flow,
        key,
        ip_id,
        payload_bytes: bytes,
        segments: 1,
        cause: None,
    });
}
