//! Requests of players, and the connections that they came by.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::flows;
use suiro_record::tables::{AccessRow, RequestRow};
use suiro_record::words::{CacheOutcome, FlowRole, RequestKind};

use super::caches::{Caches, Peers};
use super::sender::Sender;
use crate::player::Player;
use crate::view::View;

/// Requests of players, and the connections that they came by.
pub(super) struct Asked<'v> {
    all: Vec<Request<'v>>,
}

/// A request, when it was pending, and what the origin says about it.
#[derive(Clone, Copy)]
pub(super) struct Request<'v> {
    pub row: &'v RequestRow,
    pub access: Option<&'v AccessRow>,
    pub end_ns: i64,
}

impl<'v> Asked<'v> {
    pub fn of(view: &'v View<'_>) -> Self {
        let mut by_path: BTreeMap<&str, Vec<&AccessRow>> = BTreeMap::new();
        let caches = Caches::of(view.records);
        for row in view.records.access.iter().filter(|row| !caches.asked(row)) {
            by_path.entry(&row.path).or_default().push(row);
        }
        for rows in by_path.values_mut() {
            rows.sort_by_key(|row| std::cmp::Reverse(row.t_ns));
        }
        let mut rows: Vec<&RequestRow> = view.records.requests.iter().collect();
        rows.sort_by_key(|row| row.t_ns);
        // One that failed ended before it was tried again.
        let mut again: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        let mut ends: Vec<i64> = Vec::new();
        for row in rows.iter().rev() {
            let next = again.insert((&row.endpoint, &row.url), row.t_ns);
            ends.push(row.done_ns.or(next).unwrap_or(i64::MAX));
        }
        let peers = Peers::of(view.records);
        let mut all: Vec<Request> = Vec::new();
        for (row, end_ns) in rows.into_iter().zip(ends.into_iter().rev()) {
            let answers = by_path.get_mut(&*row.url);
            let access = answers.and_then(|answers| {
                let fits = |it: &&&AccessRow| {
                    (row.t_ns..=end_ns).contains(&it.t_ns) && peers.is_of(&row.endpoint, &it.peer)
                };
                let place = answers.iter().rposition(|it| fits(&it))?;
                Some(answers.remove(place))
            });
            all.push(Request { row, access, end_ns });
        }
        Self::close(&mut all, view.duration_ns);
        Self { all }
    }

    /// A request without an end was given up before the next one on its connection began.
    fn close(all: &mut [Request], end_ns: i64) {
        let mut next: BTreeMap<(String, String), i64> = BTreeMap::new();
        for request in all.iter_mut().rev() {
            let peer = request.access.map_or_else(String::new, |access| access.peer.to_string());
            let key = (request.row.endpoint.to_string(), peer);
            if request.end_ns == i64::MAX {
                request.end_ns = next.get(&key).copied().unwrap_or(end_ns);
            }
            next.insert(key, request.row.t_ns);
        }
    }

    /// The request that a row is about.
    pub fn request(&self, row: &RequestRow) -> Option<&Request<'v>> {
        let at = self.all.partition_point(|it| it.row.t_ns < row.t_ns);
        let mut same = self.all[at..].iter().take_while(|it| it.row.t_ns == row.t_ns);
        same.find(|it| std::ptr::eq(it.row, row))
    }

    /// The player's end of the connection that a request came by; `None` if that is not known.
    pub fn peer(&self, row: &RequestRow) -> Option<&'v str> {
        Some(&*self.request(row)?.access?.peer)
    }

    /// The other requests of the same player that came by the connection of one, or by one that is not known.
    pub fn next_to(&self, request: &Request<'v>) -> impl Iterator<Item = &Request<'v>> {
        let (row, peer) = (request.row, request.access.map(|access| &*access.peer));
        self.all.iter().filter(move |it| {
            let is_own = it.row.endpoint == row.endpoint && !std::ptr::eq(it.row, row);
            is_own && it.access.is_none_or(|access| Some(&*access.peer) == peer)
        })
    }

    /// The caches that answered a player after they had asked their origins.
    pub fn missed(&self, viewer: Option<&Player>) -> BTreeSet<&'v str> {
        let own = |it: &&Request| viewer.is_some_and(|viewer| *it.row.endpoint == *viewer.name);
        let access = self.all.iter().filter(own).filter_map(|it| it.access);
        let missed = access.filter(|access| waits_for_origin(access));
        missed.map(|access| &*access.endpoint).collect()
    }

    /// The player whose requests came by this connection.
    pub fn viewer(&self, view: &'v View<'_>, sender: &Sender) -> Option<&'v Player<'v>> {
        let (local, remote) = sender.name.split_once('>')?;
        let by_peer = || {
            let found = self
                .all
                .iter()
                .find(|request| request.access.is_some_and(|access| &*access.peer == remote))?;
            view.player(&found.row.endpoint)
        };
        let told = flows::find(&view.records.flows, sender.transport(), (local, remote));
        let told = told.and_then(|row| match row.role {
            FlowRole::Client | FlowRole::Receiver => view.player(&row.endpoint),
            FlowRole::Server | FlowRole::Sender => view.player(row.peer.as_deref()?),
        });
        told.or_else(by_peer).filter(|player| !player.requests.is_empty())
    }

    /// Requests that were pending on this connection, or on one that is not known; without a viewer nothing is.
    pub fn of_sender(&self, viewer: Option<&Player>, sender: &Sender) -> Option<Vec<Request<'v>>> {
        let viewer = viewer?;
        let remote = sender.name.split_once('>').map(|(_, remote)| remote);
        let own = |request: &&Request| {
            &*request.row.endpoint == viewer.name
                && request.access.is_none_or(|access| Some(&*access.peer) == remote)
        };
        Some(self.all.iter().filter(own).copied().collect())
    }

    /// When a player opened connections for its requests.
    pub fn handshakes(&self, viewer: Option<&Player>) -> Vec<(i64, i64)> {
        let own = |it: &&Request| viewer.is_some_and(|viewer| *it.row.endpoint == *viewer.name);
        let opened = self.all.iter().filter(own).filter_map(|it| {
            let lasted = it.row.handshake_ns.filter(|ns| *ns > 0)?;
            Some((it.row.t_ns, it.row.t_ns.saturating_add(lasted)))
        });
        opened.collect()
    }

    /// Its requests for manifests.
    pub fn manifests(&self, viewer: Option<&Player>) -> Vec<Request<'v>> {
        let own = |request: &&Request| {
            viewer.is_some_and(|viewer| *request.row.endpoint == *viewer.name)
                && request.row.kind == RequestKind::Manifest
        };
        self.all.iter().filter(own).copied().collect()
    }
}

/// Whether a cache answers when its origin has answered.
pub(super) const fn waits_for_origin(access: &AccessRow) -> bool {
    use CacheOutcome::{Joined, Miss, Revalidated};
    matches!(access.cache, Some(Miss | Joined | Revalidated))
}

/// The request that was pending for most of a slice.
pub(super) fn pending<'a, 'v>(
    requests: &'a [Request<'v>],
    from_ns: i64,
    to_ns: i64,
) -> Option<&'a Request<'v>> {
    let overlap =
        |it: &Request| super::since(it.end_ns.min(to_ns), it.row.t_ns.max(from_ns)).max(0);
    let most = requests.iter().max_by_key(|request| overlap(request))?;
    (overlap(most) * 2 >= to_ns - from_ns).then_some(most)
}
