//! The counters of a recording as they arrive from an agent: without what was before a session, and with what earlier
//! sessions had.

use super::message::{Head, SECONDS_MAX};
use crate::Second;

pub(super) const SECOND_NS: u64 = 1_000_000_000;

impl Head {
    /// Leaves only what was counted since an earlier head of the same agent.
    pub(super) fn subtract(&mut self, earlier: &Self) {
        self.each_count(earlier, u64::saturating_sub);
    }

    /// Adds what an earlier session on the same host had, which this one continues after a gap.
    pub(super) fn follow(&mut self, earlier: &Self) {
        self.each_count(earlier, u64::saturating_add);
        let after = (self.start.since(earlier.start) / SECOND_NS) as u32;
        let own = std::mem::take(&mut self.scheduling);
        let own = own.iter().map(|own| Second { second: own.second.saturating_add(after), ..*own });
        self.scheduling = earlier.scheduling.iter().copied().chain(own).collect();
        let beyond = self.scheduling.len().saturating_sub(SECONDS_MAX);
        self.scheduling.drain(..beyond);
        self.start = earlier.start;
    }

    /// The sample of the programs' run time is no counter: it is made once.
    fn each_count(&mut self, other: &Self, of: fn(u64, u64) -> u64) {
        let count = |own: &mut u64, other: u64| *own = of(*own, other);
        for own in &mut self.points {
            let Some(other) = other.points.iter().find(|other| other.point == own.point) else {
                continue;
            };
            count(&mut own.events, other.events);
            count(&mut own.lost, other.lost);
            count(&mut own.skipped, other.skipped);
        }
        count(&mut self.fragments, other.fragments);
        count(&mut self.unjoined, other.unjoined);
        count(&mut self.unplaced, other.unplaced);
        if let (Some(own), Some(other)) = (&mut self.cost, &other.cost) {
            count(&mut own.packets, other.packets);
            count(&mut own.recorder_ns, other.recorder_ns);
            count(&mut own.writing_ns, other.writing_ns);
        }
    }
}
