//! Flows, numbered in order of appearance.

use std::collections::BTreeMap;

use crate::frame::Flow;

/// A flow's number.
pub(crate) type FlowId = u32;

/// Most flows with a number of their own; later ones share the number of [`Flow::Other`].
const FLOWS_MAX: usize = 1 << 16;

/// The flows of one link.
#[derive(Debug)]
pub(crate) struct Flows {
    ids: BTreeMap<Flow, FlowId>,
    /// The flow of the previous packet from each side: most packets belong to the same flow.
    last: Vec<Option<(Flow, FlowId)>>,
}

impl Flows {
    /// No flow yet, between so many sides.
    pub(crate) fn of(sides: usize) -> Self {
        Self { ids: BTreeMap::new(), last: vec![None; sides] }
    }

    /// The number of a flow. Calls `first` with each flow that appears for the first time, in the
    /// order of their numbers.
    #[inline]
    pub(crate) fn number(&mut self, from: usize, flow: Flow, first: impl FnOnce(Flow)) -> FlowId {
        if let Some((last, id)) = self.last[from]
            && last == flow
        {
            return id;
        }
        let known = self.ids.len();
        let flow_or_other =
            if known >= FLOWS_MAX && !self.ids.contains_key(&flow) { Flow::Other } else { flow };
        let id = *self.ids.entry(flow_or_other).or_insert_with(|| {
            first(flow_or_other);
            known as FlowId
        });
        self.last[from] = Some((flow, id));
        id
    }
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
            flows.number(0, flow(port), |flow| named.push(flow));
        }
        assert_eq!(named, [flow(5), flow(6), flow(7)]);
        assert_eq!(flows.number(1, flow(6), |_| panic!("it is known")), 1);
    }

    #[test]
    fn too_many_share_a_number() {
        let mut flows = Flows::of(2);
        let mut named = 0;
        for port in 0..FLOWS_MAX as u32 + 1000 {
            let id = flows.number(0, flow(port), |_| named += 1);
            assert_eq!(id as usize, (port as usize).min(FLOWS_MAX));
        }
        assert_eq!(named, FLOWS_MAX + 1);
        assert_eq!(flows.number(0, flow(3), |_| panic!("it is known")), 3);
    }
}
