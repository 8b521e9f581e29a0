//! The flows of one recording, and their numbers in its events. A tap may number its flows anew between two polls, and an
//! agent that restarts does; what they hand over gets the recording's own numbers here.

use std::collections::BTreeMap;

use crate::event::FLOWS_MAX;
use crate::{Event, Flow};

/// Flows in the order in which events of them came. Pure.
#[derive(Debug, Default)]
pub(super) struct Flows {
    list: Vec<Flow>,
    numbers: BTreeMap<Flow, u16>,
    /// Events of flows for which there was no number.
    pub unplaced: u64,
}

impl Flows {
    /// All of them, by number.
    pub fn list(&self) -> &[Flow] {
        &self.list
    }

    /// Events whose flows are numbered as in `listed`, with the numbers of this recording. Those of flows beyond the bound
    /// are left out, and counted.
    pub fn adopt(&mut self, events: Vec<Event>, listed: &[Flow]) -> Vec<Event> {
        let mut known: BTreeMap<u16, Option<u16>> = BTreeMap::new();
        let mut adopted = Vec::with_capacity(events.len());
        for event in events {
            let listed = &listed[usize::from(event.direction_flow)];
            let number = known.entry(event.direction_flow).or_insert_with(|| self.number(listed));
            match *number {
                Some(direction_flow) => adopted.push(Event { direction_flow, ..event }),
                None => self.unplaced += 1,
            }
        }
        adopted
    }

    fn number(&mut self, flow: &Flow) -> Option<u16> {
        if let Some(number) = self.numbers.get(flow) {
            return Some(*number);
        }
        let number = self.list.len();
        if number == FLOWS_MAX {
            return None;
        }
        self.list.push(*flow);
        self.numbers.insert(*flow, number as u16);
        Some(number as u16)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{Key, Point, Protocol};

    fn flow(number: u32) -> Flow {
        Flow {
            protocol: Protocol::Udp,
            local: (Ipv4Addr::from(number), 5000).into(),
            remote: "10.0.0.2:5004".parse().unwrap(),
            sent: true,
        }
    }

    fn event(direction_flow: u16) -> Event {
        Event {
            t_ns: 7,
            point: Point::SendIp,
            direction_flow,
            key: Key::Hash(9),
            ip_id: 0,
            payload_bytes: 100,
            segments: 1,
            cause: None,
        }
    }

    fn numbers(events: &[Event]) -> Vec<u16> {
        events.iter().map(|event| event.direction_flow).collect()
    }

    #[test]
    fn a_flow_keeps_its_number_however_it_is_listed() {
        let mut flows = Flows::default();
        let adopted = flows.adopt([1, 0, 1].map(event).into(), &[1, 2, 3].map(flow));
        assert_eq!(numbers(&adopted), [0, 1, 0]);
        let adopted = flows.adopt([0, 1].map(event).into(), &[1, 3].map(flow));
        assert_eq!(numbers(&adopted), [1, 2]);
        assert_eq!(flows.list(), [2, 1, 3].map(flow));
        assert_eq!(flows.unplaced, 0);
    }

    #[test]
    fn flows_beyond_the_bound_are_counted_and_the_others_go_on() {
        let mut flows = Flows::default();
        for number in 0..FLOWS_MAX as u32 {
            assert_eq!(flows.adopt(vec![event(0)], &[flow(number)]).len(), 1);
        }
        let adopted = flows.adopt([0, 1, 0].map(event).into(), &[u32::MAX, 5].map(flow));
        assert_eq!(numbers(&adopted), [5]);
        assert_eq!((flows.list().len(), flows.unplaced), (FLOWS_MAX, 2));
    }
}
