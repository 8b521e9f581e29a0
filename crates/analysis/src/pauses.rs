//! When there was no video because the scenario pauses its sender: nothing is frozen, missing or unfair then.

use std::ops::Range;

use suiro_record::Trial;
use suiro_record::flows::is_end;
use suiro_record::tables::FlowRow;

use crate::guess;

/// When an endpoint had no video, sorted: of a sender its own pauses, of a viewer those of what it views.
pub(crate) fn of(trial: &Trial, endpoint: &str) -> Vec<Range<i64>> {
    let ns = |seconds: f64| (seconds * 1e9).round() as i64;
    let named = trial.endpoints.iter().filter(|it| it.name == endpoint);
    let pauses = named.flat_map(|it| &it.pauses).map(|it| ns(it.from_s)..ns(it.to_s));
    let mut pauses: Vec<Range<i64>> = pauses.filter(|pause| !pause.is_empty()).collect();
    pauses.sort_by_key(|pause| pause.start);
    pauses
}

/// The same of a connection, as tables name it, that either of its ends reported.
pub(crate) fn of_connection(trial: &Trial, told: &[FlowRow], flow: &str) -> Vec<Range<i64>> {
    if trial.endpoints.iter().all(|it| it.pauses.is_empty()) {
        return Vec::new();
    }
    let Some((one, other)) = guess::ends(flow) else { return Vec::new() };
    let fits = |row: &&FlowRow| {
        let joins = |a: &str, b: &str| is_end(&row.local, a) && is_end(&row.remote, b);
        &*row.local != "*:*" && (joins(one, other) || joins(other, one))
    };
    let rows = told.iter().filter(fits);
    let ends = rows.flat_map(|row| [Some(&*row.endpoint), row.peer.as_deref()]).flatten();
    let mut pauses = ends.map(|end| of(trial, end)).filter(|pauses| !pauses.is_empty());
    pauses.next().unwrap_or_default()
}
