//! From the BPF programs' raw events to events: flows get numbers, and system calls are joined to
//! their packets.

use std::collections::{BTreeMap, VecDeque};

use crate::errno;
use crate::event::{DropCause, Event, FLOWS_MAX, Flow, Point, Protocol};
use crate::probe::raw::{Raw, Tuple};

use super::queues::{Datagram, Queues};

/// Most failed calls that are held until their flow is known; beyond that, the oldest are handed over without it.
const FAILED_MAX: usize = 1 << 16;

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
    /// Calls that failed on a socket without an address of its own, before a packet showed which one it has.
    failed: VecDeque<Raw>,
}

impl Intake {
    /// Hands over the events of a raw event: none, one, or several.
    pub fn take(&mut self, raw: &Raw, mut each: impl FnMut(Event)) {
        if raw.gap {
            self.queues.forget();
        }
        let is_udp = raw.tuple.protocol() == Protocol::Udp;
        if raw.point == Point::ReceiveCall && is_udp {
            self.queues.take(raw.extra, raw.payload_bytes, |datagram| {
                each_taken(raw, datagram, &mut each);
            });
            return;
        }
        if raw.point == Point::SendCall && is_udp {
            return self.failed(raw, &mut each);
        }
        let flow = if raw.other { None } else { self.flow(&raw.tuple, &mut each) };
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
            let taken_ns = raw.extra.saturating_add(raw.taken_ns.into());
            each(Event { t_ns: taken_ns, point: Point::SendTransport, ..event });
        }
        raw.points().for_each(|(point, t_ns)| each(Event { t_ns, point, ..event }));
    }

    /// Hands over what is still held: calls that failed on sockets from which no packet came.
    pub fn finish(&mut self, mut each: impl FnMut(Event)) {
        for raw in std::mem::take(&mut self.failed) {
            self.fail_unbound(&raw, &mut each);
        }
    }

    /// Makes room for new flows if half of the numbers are taken: forgets all flows, and with them which datagrams wait. From
    /// here on flows have other numbers.
    pub fn make_room(&mut self) {
        if self.flows.len() > FLOWS_MAX / 2 {
            self.numbers.clear();
            self.latest = None;
            self.flows.clear();
            self.queues.forget();
        }
    }

    /// A send call failed: its datagram got no further.
    fn failed(&mut self, raw: &Raw, each: &mut impl FnMut(Event)) {
        let wanted = raw.tuple.flow();
        if !wanted.local.ip().is_unspecified() {
            let flow = self.flow(&raw.tuple, each);
            return self.fail(raw, flow, each);
        }
        let is_it = |flow: &Flow| is_of_socket(flow, &wanted);
        match self.flows.iter().position(is_it) {
            Some(flow) => self.fail(raw, Some(flow as u16), each),
            None => {
                self.failed.push_back(*raw);
                if self.failed.len() > FAILED_MAX
                    && let Some(oldest) = self.failed.pop_front()
                {
                    self.fail_unbound(&oldest, each);
                }
            }
        }
    }

    /// A call failed whose socket is not known to have an address.
    fn fail_unbound(&mut self, raw: &Raw, each: &mut impl FnMut(Event)) {
        let flow = self.flow(&raw.tuple, each);
        self.fail(raw, flow, each);
    }

    fn fail(&mut self, raw: &Raw, flow: Option<u16>, each: &mut impl FnMut(Event)) {
        let Some(flow) = flow else {
            self.unplaced += 1;
            return;
        };
        let event = event(raw, flow);
        each(event);
        let cause = Some(errno::cause(raw.detail));
        each(Event { t_ns: raw.extra, point: Point::Dropped, cause, ..event });
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

    fn flow(&mut self, tuple: &Tuple, each: &mut impl FnMut(Event)) -> Option<u16> {
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
                self.release(number, each);
                number
            }
        };
        self.latest = Some((*tuple, number));
        Some(number)
    }

    /// Hands over the failed calls that were held for a flow.
    fn release(&mut self, number: u16, each: &mut impl FnMut(Event)) {
        let flow = self.flows[usize::from(number)];
        let is_it = |raw: &Raw| is_of_socket(&flow, &raw.tuple.flow());
        let (released, held) = std::mem::take(&mut self.failed).into_iter().partition(is_it);
        self.failed = held;
        let released: VecDeque<Raw> = released;
        released.iter().for_each(|raw| self.fail(raw, Some(number), each));
    }
}

/// Whether a socket without an address of its own sent or wanted to send both.
fn is_of_socket(flow: &Flow, wanted: &Flow) -> bool {
    let of = |flow: &Flow| (flow.protocol, flow.sent, flow.local.port(), flow.remote);
    of(flow) == of(wanted)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Key;
    use crate::probe::raw::{failed_to, received};

    /// Three datagrams were read, but the buffer had no room for those events. The call takes what entered thereafter.
    #[test]
    fn queues_are_forgotten_where_events_are_missing() {
        let (mut intake, mut taken) = (Intake::default(), Vec::new());
        let mut see = |point, number, gap| {
            let raw = Raw::parse(&received(point, number, gap)).unwrap();
            intake.take(&raw, |event| {
                if event.point == Point::ReceiveCall {
                    taken.push(event.key);
                }
            });
        };
        (0..3).for_each(|number| see(Point::ReceiveSocket, number, false));
        see(Point::ReceiveSocket, 3, true);
        see(Point::ReceiveCall, 0, false);
        assert_eq!(taken, [Key::Hash(3)]);
    }

    /// An agent never ends: of calls whose flow stays unknown, the oldest are handed over when there are too many.
    #[test]
    fn failed_calls_are_not_held_forever() {
        let (mut intake, mut seen) = (Intake::default(), Vec::new());
        for number in 0..=FAILED_MAX as u32 {
            let raw = Raw::parse(&failed_to(number)).unwrap();
            intake.take(&raw, |event| seen.push((event.point, event.key)));
        }
        let first = Key::Hash(0);
        assert_eq!(seen, [(Point::SendCall, first), (Point::Dropped, first)]);
        assert_eq!(intake.unplaced, 0);
    }
}
