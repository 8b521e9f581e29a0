//! The flows in a chart of their rates: a line for each of some, and the range of the others.

use std::collections::BTreeMap;

use suiro_record::flows;
use suiro_record::tables::FlowRow;

use crate::bins::Bins;
use crate::flow::{Flow, Kind};
use crate::rivals::has_video;
use crate::view::View;

/// Video flows with a line each: as many as a chart has colours.
const VIDEO_MAX: usize = 8;

/// TCP flows with a line each.
const TCP_MAX: usize = 4;

/// A flow in a chart.
pub(crate) struct Drawn<'v> {
    /// The endpoint that reported it, with a number from its second flow on. Without such an endpoint, what it is and a number:
    /// ports change from trial to trial.
    pub name: String,
    flow: &'v Flow<'v>,
}

impl Drawn<'_> {
    /// Its rate in each bin that it is there in; nothing if it is of another kind.
    pub fn rate_bins(&self, kind: Kind, bins: &Bins) -> Vec<Option<f64>> {
        if self.flow.kind() == kind { self.flow.rate_bins(bins) } else { Vec::new() }
    }
}

/// The flows of a trial, as a chart has them.
#[derive(Default)]
pub(crate) struct Chart<'v> {
    /// Those with a line each, video before TCP.
    pub each: Vec<Drawn<'v>>,
    /// The others.
    pub others: Vec<Drawn<'v>>,
}

impl<'v> Chart<'v> {
    /// None of a trial with at most one video flow and one TCP flow, whose rates are the means.
    pub fn of(view: &'v View<'_>) -> Self {
        if !has_video(view) {
            return Self::default();
        }
        let flows = view.rivals();
        let count = |kind| flows.iter().filter(|flow| flow.kind() == kind).count();
        if count(Kind::Video) < 2 && count(Kind::Tcp) < 2 {
            return Self::default();
        }
        let mut all = named(flows, &view.records.flows);
        // `camera2` comes before `camera10`.
        all.sort_by_cached_key(|one| (one.flow.kind(), one.name.len(), one.name.clone()));
        let (mut video, mut tcp) = (0, 0);
        let (each, others) = all.into_iter().partition(|one| {
            let (count, most) = match one.flow.kind() {
                Kind::Video => (&mut video, VIDEO_MAX),
                Kind::Tcp => (&mut tcp, TCP_MAX),
            };
            *count += 1;
            *count <= most
        });
        Self { each, others }
    }
}

/// Flows with their names.
fn named<'v>(flows: &'v [Flow<'v>], reported: &[FlowRow]) -> Vec<Drawn<'v>> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let name = |flow: &'v Flow<'v>| {
        let row = flows::find_named(reported, flow.flow);
        let name = row.map_or(flow.kind().name(), |row| &*row.endpoint);
        let count = counts.entry(name.to_owned()).or_insert(0);
        *count += 1;
        let is_numbered = *count > 1 || row.is_none();
        let name = if is_numbered { format!("{name} {count}") } else { name.to_owned() };
        Drawn { name, flow }
    };
    flows.iter().map(name).collect()
}

/// In each bin the least or the greatest rate of those flows that are there, as `of` chooses one of two.
pub(crate) fn extreme(
    flows: &[Drawn<'_>],
    bins: &Bins,
    of: fn(f64, f64) -> f64,
) -> Vec<Option<f64>> {
    let mut found: Vec<Option<f64>> = vec![None; bins.count()];
    for one in flows {
        for (value, rate) in found.iter_mut().zip(one.flow.rate_bins(bins)) {
            *value = (*value).into_iter().chain(rate).reduce(of);
        }
    }
    found
}
