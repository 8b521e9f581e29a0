//! Which endpoints are the ends of a connection, and when endpoints did not run.

use suiro_record::flows::{self, is_end};
use suiro_record::tables::LatenessRow;

use super::evidence::Evidence;
use super::sender::{Samples, Sender};
use crate::Records;
use crate::player::Player;
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
fn on_host<'v>(view: &'v View<'_>, host: &str) -> Vec<&'v str> {
    let on = view.trial.endpoints.iter().filter(|endpoint| endpoint.host == host);
    on.map(|endpoint| endpoint.name.as_str()).collect()
}

/// The endpoint that sends, by what it or its peer says of the flow; without that, those on the socket's host.
pub(super) fn servers<'v>(view: &'v View<'_>, sender: &Sender<'v>) -> Vec<&'v str> {
    let known = sender.name.split_once('>').and_then(|(local, remote)| {
        let row = flows::find(&view.records.flows, sender.transport(), (local, remote))?;
        let is_own = is_end(&row.local, local) && is_end(&row.remote, remote);
        if is_own { Some(&*row.endpoint) } else { row.peer.as_deref() }
    });
    let of_samples = || match &sender.samples {
        Samples::Tcp(socket) => on_host(view, socket.host),
        Samples::Quic(samples) => {
            samples.first().map(|sample| &*sample.value.endpoint).into_iter().collect()
        }
    };
    known.map_or_else(of_samples, |name| vec![name])
}

/// The endpoint that receives: the viewer, or those on the host that has the other end.
pub(super) fn clients<'v>(
    view: &'v View<'_>,
    viewer: Option<&'v Player<'v>>,
    sender: &Sender<'v>,
) -> Vec<&'v str> {
    if let Some(viewer) = viewer {
        return vec![viewer.name];
    }
    let turned = sender.name.split_once('>').map(|(local, remote)| format!("{remote}>{local}"));
    let other = view.records.tcp.iter().find(|row| Some(&*row.socket) == turned.as_deref());
    let host = other.map_or("", |row| &row.host);
    let found = on_host(view, host);
    // With no name, absences would be those of all.
    if found.is_empty() { vec![""] } else { found }
}
