//! The changes of one lane that wait for their frame. Pure.

use std::collections::VecDeque;

/// Changes that may wait for their frame in one lane.
pub const PLANNED_MAX: usize = 16;

/// Changes in the order in which they take effect; those of one frame in the order in which they were given.
#[derive(Debug, Clone)]
pub struct Plan<C> {
    waiting: VecDeque<Planned<C>>,
}

/// A change that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned<C> {
    /// The frame at whose beginning it takes effect; `None` for the next one.
    pub frame: Option<u64>,
    /// What changes.
    pub change: C,
}

impl<C> Default for Plan<C> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

impl<C> Plan<C> {
    /// Adds a change; returns it if [`PLANNED_MAX`] are waiting.
    pub fn add(&mut self, planned: Planned<C>) -> Result<(), Planned<C>> {
        if self.waiting.len() >= PLANNED_MAX {
            return Err(planned);
        }
        // The next boundary is before any that has a number.
        let after = |other: &Planned<C>| match (other.frame, planned.frame) {
            (Some(other), Some(frame)) => other > frame,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let at = self.waiting.iter().position(after).unwrap_or(self.waiting.len());
        self.waiting.insert(at, planned);
        Ok(())
    }

    /// Takes the next change that takes effect at the beginning of frame `frame`, or should have before.
    pub fn due(&mut self, frame: u64) -> Option<Planned<C>> {
        let is_due = self.waiting.front()?.frame.is_none_or(|own| own <= frame);
        if is_due { self.waiting.pop_front() } else { None }
    }

    /// Takes out the changes that wait for frame `frame`.
    pub fn cancel(&mut self, frame: u64) -> Vec<C> {
        let all = std::mem::take(&mut self.waiting).into_iter();
        let is_own = |planned: &Planned<C>| planned.frame == Some(frame);
        let (own, others): (VecDeque<_>, VecDeque<_>) = all.partition(is_own);
        self.waiting = others;
        own.into_iter().map(|planned| planned.change).collect()
    }

    /// Drops the changes of which `unwanted` is true.
    pub fn remove(&mut self, unwanted: impl Fn(&C) -> bool) {
        self.waiting.retain(|planned| !unwanted(&planned.change));
    }

    /// The next change.
    pub fn next(&self) -> Option<&Planned<C>> {
        self.waiting.front()
    }

    /// All that wait.
    pub fn iter(&self) -> impl Iterator<Item = &Planned<C>> {
        self.waiting.iter()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if none wait.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(of: &[(Option<u64>, &'static str)]) -> Plan<&'static str> {
        let mut plan = Plan::default();
        for (frame, change) in of {
            plan.add(Planned { frame: *frame, change: *change }).unwrap();
        }
        plan
    }

    #[test]
    fn changes_take_effect_in_the_order_of_their_frames() {
        let mut plan =
            plan(&[(Some(9), "c"), (Some(7), "a"), (Some(9), "d"), (None, "now"), (Some(8), "b")]);
        let take = |plan: &mut Plan<_>, frame| {
            std::iter::from_fn(|| plan.due(frame).map(|planned| planned.change)).collect::<Vec<_>>()
        };
        assert_eq!(take(&mut plan, 6), ["now"], "the next boundary is whichever comes");
        assert_eq!(take(&mut plan, 7), ["a"]);
        assert_eq!(take(&mut plan, 7), [""; 0]);
        assert_eq!(take(&mut plan, 12), ["b", "c", "d"], "what was missed is not forgotten");
        assert!(plan.is_empty());
    }

    #[test]
    fn changes_that_are_cancelled_leave_the_others_in_their_order() {
        let mut plan = plan(&[(Some(7), "a"), (Some(9), "b"), (None, "now"), (Some(9), "c")]);
        assert_eq!(plan.cancel(9), ["b", "c"]);
        assert_eq!(plan.cancel(9), [""; 0]);
        let rest: Vec<_> = plan.iter().map(|planned| planned.change).collect();
        assert_eq!(rest, ["now", "a"]);
    }

    #[test]
    fn a_plan_is_bounded() {
        let mut plan = plan(&[(Some(1), "x"); PLANNED_MAX]);
        let refused = plan.add(Planned { frame: None, change: "y" }).unwrap_err();
        assert_eq!((refused.change, plan.len()), ("y", PLANNED_MAX));
    }
}
