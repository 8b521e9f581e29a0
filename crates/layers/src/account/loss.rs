//! How much of each passage is certainly lost, if the recorder itself missed some.

use super::{Hop, reported, weight};
use crate::event::Protocol;
use crate::matching::Passage;

/// For each settled passage, how much of it counts as lost after the point where it was last seen. Which of a part's
/// passages without a known cause the recorder missed is unknown: each of them counts for an equal share. Together, those of
/// a part are [`Hop::lost`].
pub(super) fn certain(settled: &[&Passage], hops: &[Hop], protocol: Protocol) -> Vec<u64> {
    let mut parts: Vec<Part<'_>> = hops.iter().map(Part::of).collect();
    let lost = settled.iter().map(|passage| {
        let ends_in = |part: &&mut Part<'_>| passage.last() == Some(part.hop.from);
        let part = parts.iter_mut().find(ends_in);
        part.map_or(0, |part| part.lost(passage, weight(passage, protocol)))
    });
    lost.collect()
}

/// A part of the path, and how much without a known cause has ended in it so far.
struct Part<'a> {
    hop: &'a Hop,
    /// What ended here without a known cause.
    unexplained: u64,
    seen: u64,
}

impl<'a> Part<'a> {
    fn of(hop: &'a Hop) -> Self {
        let explained: u64 = hop.causes.values().sum();
        Self { hop, unexplained: (hop.lost + hop.unplaced).saturating_sub(explained), seen: 0 }
    }

    fn lost(&mut self, passage: &Passage, weight: u64) -> u64 {
        if reported(passage, self.hop.from, self.hop.to).is_some() {
            return weight;
        }
        let before = self.share(self.seen);
        self.seen += weight;
        self.share(self.seen) - before
    }

    /// How much of the first `amount` without a known cause is certainly lost. Rounding cancels out over all of it.
    fn share(&self, amount: u64) -> u64 {
        let lost = self.unexplained.saturating_sub(self.hop.unplaced);
        let share = u128::from(amount) * u128::from(lost) / u128::from(self.unexplained.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}
