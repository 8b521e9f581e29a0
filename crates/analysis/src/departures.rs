//! Endpoints that left before the trial's end, because the scenario has an `end` for them.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::Trial;
use suiro_record::tables::FrameRow;
use suiro_record::words::{Carries, FlowRole};

use crate::Records;

/// Who left, and who sends video to whom.
pub(crate) struct Departures<'a> {
    /// When, by endpoint.
    left: BTreeMap<&'a str, i64>,
    /// The endpoints that send video to an endpoint, as far as they are known.
    senders: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Departures<'a> {
    pub fn of(trial: &'a Trial, records: &'a Records) -> Self {
        let left = trial.endpoints.iter().filter_map(|endpoint| {
            let seconds = endpoint.left_s.filter(|seconds| *seconds >= 0.0)?;
            Some((&*endpoint.name, (seconds * 1e9) as i64))
        });
        let mut senders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in records.flows.iter().filter(|row| row.carries == Carries::Video) {
            let Some(peer) = row.peer.as_deref() else { continue };
            let receives = matches!(row.role, FlowRole::Receiver | FlowRole::Client);
            let (from, to) = if receives { (peer, &*row.endpoint) } else { (&*row.endpoint, peer) };
            senders.entry(to).or_default().insert(from);
        }
        Self { left: left.collect(), senders }
    }

    /// When the viewing of an endpoint with these frames ended because it left, or all that send to it did; `None` if neither.
    pub fn end_ns(&self, viewer: &str, frames: &[&FrameRow]) -> Option<i64> {
        let own = self.left.get(viewer).copied();
        let of_senders = self.senders.get(viewer).and_then(|senders| {
            let left: Option<Vec<i64>> =
                senders.iter().map(|sender| self.left.get(sender).copied()).collect();
            left?.into_iter().max()
        });
        // Frames that were sent before are shown a little later.
        let last = frames.iter().filter_map(|row| row.displayed_ns).max();
        let shown = last.map_or(0, |last| last.saturating_add(1));
        own.into_iter().chain(of_senders.map(|left| left.max(shown))).min()
    }
}
