//! What is said about causes.

use suiro_record::words::{Cause, Direction, Effect};

use super::evidence::{Evidence, Step};
use super::since;

/// Most flows of a trial that are explained; the busiest are. More would be of a crowd, whose mean is what counts.
pub const FLOWS_MAX: usize = 64;

/// Most effects of a trial that are explained; further ones are counted.
pub const EFFECTS_MAX: usize = 1000;

/// What the records of a trial say about causes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Why {
    /// Viewers, and flows that belong to no viewer, by name.
    pub subjects: Vec<Subject>,
    /// What viewers had to bear, in the order of time.
    pub effects: Vec<Explained>,
    /// What the media of viewers crossed, viewer by viewer.
    pub crossed: Vec<Crossed>,
    /// Flows beyond [`FLOWS_MAX`] and effects beyond [`EFFECTS_MAX`]: not explained.
    pub left_out: usize,
}

/// A viewer or a flow, and what limited it.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// The viewer's endpoint, or the flow as table `tcp` or `link` names it.
    pub name: String,
    /// True for a viewer.
    pub is_viewer: bool,
    /// What limited it, in order; gaps where it did not exist.
    pub limits: Vec<Limit>,
}

/// A stretch of time in which one cause limited a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// When it began.
    pub from_ns: i64,
    /// When it ended.
    pub to_ns: i64,
    /// The cause.
    pub cause: Cause,
    /// Where that is recorded.
    pub evidence: Vec<Evidence>,
}

/// The directions of links that a viewer's media crossed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossed {
    /// The viewer.
    pub subject: String,
    /// From the sender to the viewer, each link with its direction.
    pub data: Vec<(String, Direction)>,
    /// From the viewer back to the sender.
    pub back: Vec<(String, Direction)>,
}

/// An effect and its causes.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The viewer.
    pub subject: String,
    /// What it was.
    pub effect: Effect,
    /// When it began.
    pub from_ns: i64,
    /// When it ended.
    pub to_ns: i64,
    /// Causes and their shares, the greatest first; the shares make 1.
    pub shares: Vec<(Cause, f64)>,
    /// From the effect back to its cause.
    pub chain: Vec<Step>,
    /// All of it in one sentence.
    pub sentence: String,
    /// The main cause as a clause with its numbers; none if it is not known, or if the number that it names is zero.
    pub because: Option<String>,
    /// From what to what the quality fell; none of other effects.
    pub change: Option<Change>,
}

/// A fall of the quality.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What it was, such as `1080p`.
    pub from: String,
    /// What it became.
    pub to: String,
    /// Orders what `to` may be: less is worse.
    pub level: i64,
    /// When the viewer saw it first; `None`: not known, or not before the trial ended. The viewer of a player of segments sees
    /// a rung when the playhead reaches its first segment.
    pub seen_ns: Option<i64>,
}

impl Subject {
    /// The share of its time that each cause limited, the greatest first.
    pub fn shares(&self) -> Vec<(Cause, f64)> {
        shares(self.limits.iter().map(|limit| (limit.cause, length(limit))))
    }
}

impl Explained {
    /// When the viewer saw it first; where that is not known, when it began.
    pub fn seen_ns(&self) -> i64 {
        self.change.as_ref().and_then(|change| change.seen_ns).unwrap_or(self.from_ns)
    }

    /// How long it lasted after the warm-up, which was so long; `None` if it had ended by then. Without a warm-up, all of it counts.
    pub fn length_after(&self, warm_up_ns: i64) -> Option<i64> {
        length_after(self.from_ns, self.to_ns, warm_up_ns)
    }

    /// The cause with the greatest share.
    pub fn cause(&self) -> Cause {
        self.shares.first().map_or(Cause::Unknown, |(cause, _)| *cause)
    }
}

impl Limit {
    /// The same of a stretch of time in which one cause limited a flow.
    pub(crate) fn length_after(&self, warm_up_ns: i64) -> Option<i64> {
        length_after(self.from_ns, self.to_ns, warm_up_ns)
    }
}

fn length(limit: &Limit) -> f64 {
    since(limit.to_ns, limit.from_ns) as f64
}

fn length_after(from_ns: i64, to_ns: i64, warm_up_ns: i64) -> Option<i64> {
    if warm_up_ns <= 0 {
        return Some(since(to_ns, from_ns));
    }
    (to_ns > warm_up_ns).then(|| since(to_ns, from_ns.max(warm_up_ns)))
}

/// For how long at least one of several spans lasts, each from when until when; in any order.
pub fn covered_ns(spans: impl Iterator<Item = (i64, i64)>) -> i64 {
    let mut spans: Vec<(i64, i64)> = spans.collect();
    spans.sort_unstable();
    let (mut covered_ns, mut until) = (0i64, i64::MIN);
    for (from, to) in spans {
        covered_ns = covered_ns.saturating_add(to.saturating_sub(from.max(until)).max(0));
        until = until.max(to);
    }
    covered_ns
}

/// Weights by cause as shares of their sum, the greatest first.
pub(super) fn shares(weights: impl Iterator<Item = (Cause, f64)>) -> Vec<(Cause, f64)> {
    let mut sums: Vec<(Cause, f64)> = Vec::new();
    for (cause, weight) in weights {
        match sums.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum += weight,
            None => sums.push((cause, weight)),
        }
    }
    let whole: f64 = sums.iter().map(|(_, sum)| sum).sum();
    sums.retain(|(_, sum)| *sum > 0.0);
    sums.iter_mut().for_each(|(_, sum)| *sum /= whole);
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_covered_once() {
        let covered = |spans: &[(i64, i64)]| covered_ns(spans.iter().copied());
        assert_eq!(covered(&[]), 0);
        assert_eq!(covered(&[(5, 9), (0, 3)]), 7);
        assert_eq!(covered(&[(0, 10), (2, 4), (8, 12)]), 12);
        assert_eq!(covered(&[(5, 5), (9, 2)]), 0, "nothing, and a span that ends before it begins");
        assert_eq!(covered(&[(i64::MIN, i64::MAX), (0, 1)]), i64::MAX);
    }
}
