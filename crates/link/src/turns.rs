//! Random numbers of packets. Those of a packet depend on the seed, its flow and its number in the flow alone. So the fate
//! of a packet does not change if others are sent, or are not.

use std::collections::BTreeMap;

use suiro_units::{Random, Seed};

/// Most flows whose packets are counted one by one; all later flows are counted as one.
const FLOWS_MAX: usize = 1 << 16;
/// The flow that later ones are counted as.
const OTHER: u64 = u64::MAX;

/// Numbers packets within their flows.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    next: BTreeMap<u64, u64>,
    /// The flow of the previous packet and its next number, which `next` does not have: most packets belong to the same
    /// flow.
    last: Option<(u64, u64)>,
}

impl Turns {
    /// The number of the next packet of a flow, from 0.
    pub fn next(&mut self, flow: u64) -> u64 {
        if let Some((last, next)) = &mut self.last
            && *last == flow
        {
            *next += 1;
            return *next - 1;
        }
        if let Some((last, next)) = self.last.take() {
            self.next.insert(last, next);
        }
        let known = self.next.len() < FLOWS_MAX || self.next.contains_key(&flow);
        let flow = if known { flow } else { OTHER };
        let turn = self.next.get(&flow).copied().unwrap_or(0);
        self.last = Some((flow, turn + 1));
        turn
    }
}

/// The random numbers of one packet for one purpose, of which `seed` is.
pub(crate) fn random(seed: Seed, flow: u64, turn: u64) -> Random {
    seed.nth(flow).nth(turn).random()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_numbered_within_their_flows() {
        let mut turns = Turns::default();
        let numbers: Vec<u64> = [5, 5, 6, 5, 6, 6].iter().map(|flow| turns.next(*flow)).collect();
        assert_eq!(numbers, [0, 1, 0, 2, 1, 2]);
    }

    #[test]
    fn flows_beyond_the_bound_share_their_numbers() {
        let mut turns = Turns::default();
        (0..FLOWS_MAX as u64).for_each(|flow| assert_eq!(turns.next(flow), 0));
        let beyond = FLOWS_MAX as u64;
        assert_eq!([beyond, beyond + 1, 3, beyond + 2].map(|flow| turns.next(flow)), [0, 1, 1, 2]);
        assert!(turns.next.len() <= FLOWS_MAX + 1);
    }
}
