//! What a flow does to the one that was there before it: shares and harm (Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's
//! fairness index: setting the bar for the deployment of congestion control algorithms", HotNets 2019).
//!
//! Harm compares what a flow had alone with what it has next to the other one. Both are measured in the same trial: alone in the
//! second half of the time before the other one begins, together in the second half of the time from then on.

use std::ops::Range;

use crate::flow::Flow;
use crate::view::View;

/// The first flow is alone for at least so long, and both are together for as long.
const LEAST_NS: i64 = 10_000_000_000;
/// A flow whose sender stops before this share of the trial is none that competes until the end.
const LASTS: f64 = 0.8;

/// A flow that was first, and one that joined it.
pub(crate) struct Newcomer<'v> {
    first: &'v Flow<'v>,
    second: &'v Flow<'v>,
    alone: Range<i64>,
    together: Range<i64>,
}

impl<'v> Newcomer<'v> {
    /// `None` unless exactly two flows compete, one of which was alone for a while.
    pub fn of(view: &'v View<'_>) -> Option<Self> {
        let competing = view.rivals().iter().filter(|flow| flow.competes);
        let mut flows: Vec<&Flow> = competing.collect();
        flows.sort_by_key(|flow| flow.ends().map(|ends| ends.start));
        let [first, second] = <[&Flow; 2]>::try_from(flows).ok()?;
        let (began, joined) = (first.ends()?, second.ends()?);
        let end = began.end.min(joined.end);
        let is_long = |time: &Range<i64>| time.end.saturating_sub(time.start) >= LEAST_NS;
        // The first one is looked at from the end of the warm-up on.
        let start = began.start.max(view.period.from_ns);
        let (alone, together) = (start..joined.start, joined.start..end);
        let lasts = end as f64 >= LASTS * view.duration_ns as f64;
        if !is_long(&alone) || !is_long(&together) || !lasts {
            return None;
        }
        let second_half = |time: Range<i64>| time.start + (time.end - time.start) / 2..time.end;
        let (alone, together) = (second_half(alone), second_half(together));
        Some(Self { first, second, alone, together })
    }

    /// The share that the first one has of what both get together.
    pub fn share(&self) -> Option<f64> {
        let first = self.first.rate_bps(&self.together)?;
        let second = self.second.rate_bps(&self.together)?;
        (first + second > 0.0).then(|| first / (first + second))
    }

    /// What the first one has lost of its rate, as a share of what it had alone.
    pub fn rate_harm(&self) -> Option<f64> {
        let alone = self.first.rate_bps(&self.alone)?;
        let together = self.first.rate_bps(&self.together)?;
        (alone > 0.0).then(|| ((alone - together) / alone).max(0.0))
    }

    /// What the delay of the first one has grown by, as a share of what it is then.
    pub fn delay_harm(&self) -> Option<f64> {
        let (alone, together) =
            (self.first.delay_ms(&self.alone)?, self.first.delay_ms(&self.together)?);
        (together > 0.0).then(|| ((together - alone) / together).max(0.0))
    }

    /// Of the first one in the links, before and after, in ms.
    pub fn delays_ms(&self) -> (Option<f64>, Option<f64>) {
        (self.first.delay_ms(&self.alone), self.first.delay_ms(&self.together))
    }
}
