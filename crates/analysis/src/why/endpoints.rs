//! When endpoints did not run.

use suiro_record::tables::LatenessRow;

use super::evidence::Evidence;
use crate::Records;
use crate::view::View;

/// A time in which an endpoint did not run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Absence<'v> {
    pub endpoint: &'v str,
    pub from_ns: i64,
    pub to_ns: i64,
    row: &'v LatenessRow,
}

impl Absence<'_> {
    /// The row that shows it.
    pub fn evidence(&self, records: &Records) -> Option<Evidence> {
        Evidence::row("lateness", &records.lateness, self.row)
    }

    /// How much of a stretch of time it covers.
    pub fn overlap_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        super::since(self.to_ns.min(to_ns), self.from_ns.max(from_ns)).max(0)
    }
}

/// The absences of these endpoints, in order; of all if none is named.
pub(super) fn absences<'v>(view: &'v View<'_>, endpoints: &[&str]) -> Vec<Absence<'v>> {
    let of = |row: &&LatenessRow| endpoints.is_empty() || endpoints.contains(&&*row.endpoint);
    let long = view
        .records
        .lateness
        .iter()
        .filter(of)
        .filter(|row| row.worst_ns.as_nanos_i64() >= view.rules.absent_ns);
    let absence = |row: &'v LatenessRow| {
        let from_ns = row.worst_from_ns.as_nanos_i64();
        let to_ns = from_ns.saturating_add(row.worst_ns.as_nanos_i64());
        Absence { endpoint: &row.endpoint, from_ns, to_ns, row }
    };
    let mut found: Vec<Absence> = long.map(absence).collect();
    found.sort_by_key(|absence| absence.from_ns);
    found
}

/// The absence that covers at least half of a stretch of time.
pub(super) fn absent<'a, 'v>(
    absences: &'a [Absence<'v>],
    from_ns: i64,
    to_ns: i64,
) -> Option<&'a Absence<'v>> {
    let half = to_ns.saturating_sub(from_ns).max(1) / 2;
    absences.iter().find(|absence| absence.overlap_ns(from_ns, to_ns) > half)
}

/// The endpoints on a host, as the trial's outcome names them.
pub(super) fn on_host<'v>(view: &'v View<'_>, host: &str) -> Vec<&'v str> {
    let on = view.trial.endpoints.iter().filter(|endpoint| endpoint.host == host);
    on.map(|endpoint| endpoint.name.as_str()).collect()
}
