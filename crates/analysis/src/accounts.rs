//! Whether the tables of a trial are those of its accounts.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::Trial;
use suiro_record::tables::LinkRow;
use suiro_units::Direction;

/// The directions of links whose table does not have as many packets as the link counted, in words: rows are missing, or
/// are of another measurement. Empty for a trial without this table, which is not always recorded.
pub fn disagreements(trial: &Trial, rows: &[LinkRow]) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut found: BTreeMap<(&str, Direction), u64> = BTreeMap::new();
    for row in rows {
        *found.entry((&row.link, row.direction)).or_default() += 1;
    }
    let mut counted: BTreeMap<(&str, Direction), u64> = BTreeMap::new();
    for link in &trial.links {
        let packets = link.delivered.saturating_add(link.queued).saturating_add(link.all_dropped());
        let sum = counted.entry((&link.link, link.direction)).or_default();
        *sum = sum.saturating_add(packets);
    }
    let all: BTreeSet<_> = found.keys().chain(counted.keys()).collect();
    let differs = all.into_iter().filter_map(|at| {
        let (rows, packets) = (found.get(at).copied(), counted.get(at).copied());
        let (rows, packets) = (rows.unwrap_or(0), packets.unwrap_or(0));
        let (link, direction) = at;
        (rows != packets).then(|| {
            format!("link {link} {direction} counted {packets} packets, but its table has {rows}")
        })
    });
    differs.collect()
}
