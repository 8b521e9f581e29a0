//! Flows, numbered in order of appearance.

use std::collections::BTreeMap;
use std::net::IpAddr;

use suiro_units::Seed;

use crate::frame::Flow;

/// A flow's number.
pub(crate) type FlowId = u32;

/// Most flows with a number of their own; later ones share the number of [`Flow::Other`].
const FLOWS_MAX: usize = 1 << 16;

/// Ports from here on are the kernel's choice (`ip_local_port_range`): they do not say which program a flow is of.
const EPHEMERAL: u16 = 32_768;

/// A flow as records and the link core know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its number, in order of appearance.
    pub id: FlowId,
    /// What the core identifies it by. It depends on its hosts, its protocol, its service's port, and how many such
    /// flows there were before it, and not on flows of others.
    pub identity: u64,
}

/// What flows of one service between two hosts have in common: protocol, source, destination, the service's port.
type Service = (u8, IpAddr, IpAddr, u16);

/// The flows of one link.
#[derive(Debug)]
pub(crate) struct Flows {
    known: BTreeMap<Flow, Known>,
    services: BTreeMap<Service, u64>,
    /// The flow of the previous packet from each side: most packets belong to the same flow.
    last: Vec<Option<(Flow, Known)>>,
}

impl Flows {
    /// No flow yet, between so many sides.
    pub(crate) fn of(sides: usize) -> Self {
        Self { known: BTreeMap::new(), services: BTreeMap::new(), last: vec![None; sides] }
    }

    /// A flow. Calls `first` with each flow that appears for the first time, in the order of their numbers.
    #[inline]
    pub(crate) fn find(&mut self, from: usize, flow: Flow, first: impl FnOnce(Flow)) -> Known {
        if let Some((last, known)) = self.last[from]
            && last == flow
        {
            return known;
        }
        let count = self.known.len();
        let flow_or_other =
            if count >= FLOWS_MAX && !self.known.contains_key(&flow) { Flow::Other } else { flow };
        let services = &mut self.services;
        let known = *self.known.entry(flow_or_other).or_insert_with(|| {
            first(flow_or_other);
            Known { id: count as FlowId, identity: identity(flow_or_other, services) }
        });
        self.last[from] = Some((flow, known));
        known
    }
}

fn identity(flow: Flow, services: &mut BTreeMap<Service, u64>) -> u64 {
    let Flow::Between { protocol, source, destination, ports } = flow else {
        return u64::from(flow == Flow::Other);
    };
    let port = ports.map_or(0, |(a, b)| a.min(b));
    let port = if port < EPHEMERAL { port } else { 0 };
    let count = services.entry((protocol, source, destination, port)).or_insert(0);
    let label = format!("{protocol} {source} {destination} {port}");
    let identity = Seed(0).derive(&label).nth(*count).0;
    *count += 1;
    identity
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u32) -> Flow {
        let source = std::net::Ipv4Addr::from(port >> 16).into();
        let ports = Some((port as u16, 80));
        Flow::Between { protocol: 6, source, destination: source, ports }
    }

    #[test]
    fn numbers_count_up_and_stay() {
        let mut flows = Flows::of(2);
        let mut named = Vec::new();
        for port in [5, 5, 6, 5, 7, 6] {
            flows.find(0, flow(port), |flow| named.push(flow));
        }
        assert_eq!(named, [flow(5), flow(6), flow(7)]);
        assert_eq!(flows.find(1, flow(6), |_| panic!("it is known")).id, 1);
    }

    #[test]
    fn others_do_not_change_what_a_flow_is_known_by() {
        let between = |client: u16, service: u16| {
            let [source, destination] = [1, 2].map(|n| std::net::Ipv4Addr::new(10, 0, 0, n).into());
            Flow::Between { protocol: 6, source, destination, ports: Some((service, client)) }
        };
        let known = |flows: &[Flow]| {
            let mut all = Flows::of(1);
            flows.iter().map(|flow| all.find(0, *flow, |_| ()).identity).collect::<Vec<_>>()
        };
        let alone = known(&[between(40_000, 80), between(40_001, 80)]);
        let among = known(&[between(50_000, 5000), between(45_000, 80), between(39_000, 80)]);
        assert_eq!(alone[..], among[1..]);
        assert!(alone[0] != alone[1] && alone[0] != among[0]);
    }

    #[test]
    fn too_many_share_a_number() {
        let mut flows = Flows::of(2);
        let mut named = 0;
        for port in 0..FLOWS_MAX as u32 + 1000 {
            let id = flows.find(0, flow(port), |_| named += 1).id;
            assert_eq!(id as usize, (port as usize).min(FLOWS_MAX));
        }
        assert_eq!(named, FLOWS_MAX + 1);
        assert_eq!(flows.find(0, flow(3), |_| panic!("it is known")).id, 3);
    }
}
