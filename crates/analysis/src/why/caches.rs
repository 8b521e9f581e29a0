//! Caches between origins and players: which requests are theirs, and what they did wrong.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::flows::is_end;
use suiro_record::tables::{AccessRow, FlowRow, RequestRow};
use suiro_record::words::{CacheFault, RequestKind};

use super::Step;
use super::evidence::Evidence;
use super::wording::count;
use crate::Records;
use crate::player::Player;

/// A player tries again a second after a failure, and then less often: so far before an effect its fault may lie.
const TRIED_NS: i64 = 2_000_000_000;

/// The connections of caches to their origins. What came by them was asked by no player.
pub(super) struct Caches<'v>(BTreeSet<&'v str>);

impl<'v> Caches<'v> {
    pub fn of(records: &'v Records) -> Self {
        let rows = records.access.iter().filter(|row| row.cache.is_some());
        let names: BTreeSet<&str> = rows.map(|row| &*row.endpoint).collect();
        Self(ends(&records.flows, |name| names.contains(name)))
    }

    pub fn asked(&self, row: &AccessRow) -> bool {
        row.cache.is_none() && has(&self.0, &row.peer)
    }
}

/// The own ends of the flows of some endpoints.
fn ends(flows: &[FlowRow], own: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    flows.iter().filter(|flow| own(&flow.endpoint)).map(|flow| &*flow.local).collect()
}

/// Whether one of these ends is this one. Of QUIC, the port alone may be known.
fn has(ends: &BTreeSet<&str>, end: &str) -> bool {
    ends.iter().any(|known| is_end(known, end))
}

/// The own ends of the connections of players.
pub(super) struct Peers<'v>(BTreeMap<&'v str, BTreeSet<&'v str>>);

impl<'v> Peers<'v> {
    pub fn of(records: &'v Records) -> Self {
        let mut ends: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in &records.requests {
            ends.entry(&row.endpoint).or_default();
        }
        for flow in &records.flows {
            if let Some(ends) = ends.get_mut(&*flow.endpoint) {
                ends.insert(&flow.local);
            }
        }
        Self(ends)
    }

    /// Whether an answer to `peer` was one to this player. One that reported no flow may have any end that no other has.
    pub fn is_of(&self, player: &str, peer: &str) -> bool {
        match self.0.get(player).filter(|ends| !ends.is_empty()) {
            Some(ends) => has(ends, peer),
            None => !self.0.values().any(|ends| has(ends, peer)),
        }
    }
}

/// When caches did wrong by a player: while it waited for an answer, and after a failure until it asked again.
pub(super) fn acted(records: &Records, player: &Player) -> Vec<(i64, i64)> {
    let own = ends(&records.flows, |name| name == player.name);
    let faults = records.access.iter().filter(|row| has(&own, &row.peer));
    faults.filter_map(|row| wronged(player, row, row.cache_fault?)).collect()
}

/// How long one fault lasts for a player; `None` if it does not notice it.
fn wronged(player: &Player, row: &AccessRow, fault: CacheFault) -> Option<(i64, i64)> {
    let asked = player.requests.iter().filter(|it| it.url == row.path && it.t_ns <= row.t_ns);
    let asked = asked.max_by_key(|it| it.t_ns)?;
    let same = |it: &&&RequestRow| it.t_ns > asked.t_ns && is_same(asked, it);
    let again = || player.requests.iter().filter(same).map(|it| it.t_ns).min();
    let failed = || again().unwrap_or(row.t_ns.saturating_add(TRIED_NS));
    let to = match fault {
        CacheFault::Slow => asked.done_ns.unwrap_or_else(failed),
        // An old playlist hides new segments; a DASH manifest with a template does not, because players compute its segments.
        CacheFault::Stale if is_playlist(asked) => failed(),
        CacheFault::Unavailable | CacheFault::Reset => failed(),
        CacheFault::Stale | CacheFault::Age => return None,
    };
    Some((asked.t_ns, to))
}

/// RFC 8216 §4.
fn is_playlist(row: &RequestRow) -> bool {
    row.kind == RequestKind::Manifest && path(row).ends_with(".m3u8")
}

fn path(row: &RequestRow) -> &str {
    row.url.split('?').next().unwrap_or_default()
}

/// Whether two requests are for the same object, or for the same media in another quality.
fn is_same(one: &RequestRow, other: &RequestRow) -> bool {
    let media = |row: &RequestRow| (row.kind, row.track, row.media_ms);
    match one.media_ms {
        Some(_) => media(one) == media(other),
        None => one.kind == other.kind && path(one) == path(other),
    }
}

/// What a cache did wrong with requests of a player: the answers that show it.
pub(super) struct Wrong<'v>(Vec<&'v AccessRow>);

impl<'v> Wrong<'v> {
    /// What was done most often from `from` to `to`, or shortly before; `None` if nothing was.
    pub fn of(records: &'v Records, player: &str, (from, to): (i64, i64)) -> Option<Self> {
        let own = ends(&records.flows, |name| name == player);
        let during = from.saturating_sub(TRIED_NS)..to;
        let mut met: BTreeMap<(&str, CacheFault), Vec<&AccessRow>> = BTreeMap::new();
        for row in records.access.iter().filter(|row| during.contains(&row.t_ns)) {
            if let Some(fault) = row.cache_fault.filter(|_| has(&own, &row.peer)) {
                met.entry((&row.endpoint, fault)).or_default().push(row);
            }
        }
        met.into_values().max_by_key(Vec::len).map(Self)
    }

    /// As a clause, with its number.
    pub fn told(&self) -> String {
        let first = self.0.first();
        let did = match first.and_then(|row| row.cache_fault) {
            Some(CacheFault::Slow) => "was slow",
            Some(CacheFault::Stale) => "served what had expired",
            Some(CacheFault::Unavailable) => "answered with status 503",
            Some(CacheFault::Reset) => "cut the answer off",
            Some(CacheFault::Age) => "gave a wrong age",
            None => "did nothing wrong",
        };
        let name = first.map_or("", |row| &row.endpoint);
        format!("the cache {name} {did} for {}", count(self.0.len(), "request"))
    }

    /// A step for each connection, whose filter selects exactly the rows of that one.
    pub fn steps(&self, records: &Records) -> Vec<Step> {
        let mut by_peer: BTreeMap<&str, Vec<&'v AccessRow>> = BTreeMap::new();
        for row in &self.0 {
            by_peer.entry(&row.peer).or_default().push(row);
        }
        let step = |rows: Vec<&'v AccessRow>| {
            let (first, last) = (*rows.first()?, *rows.last()?);
            let evidence = Evidence::of("access", &records.access, first, last)?;
            let AccessRow { endpoint, peer, .. } = first;
            let fault = first.cache_fault?;
            let filter = format!("endpoint={endpoint},peer={peer},cache_fault={fault}");
            Some(Step { what: Self(rows).told(), evidence: evidence.only(filter) })
        };
        by_peer.into_values().filter_map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_that_of_the_players_own_requests() {
        let flow = |endpoint: &str, local: &str| FlowRow {
            endpoint: endpoint.into(),
            local: local.into(),
            ..flow_row()
        };
        let row = |t_s: i64, peer: &str, cache_fault| AccessRow {
            t_ns: t_s * 1_000_000_000,
            endpoint: "edge".into(),
            peer: peer.into(),
            cache: Some(suiro_record::words::CacheOutcome::Miss),
            cache_fault,
            ..AccessRow::default()
        };
        let slow = Some(CacheFault::Slow);
        let records = Records {
            flows: vec![flow("one", "10.0.0.3:1"), flow("edge", "10.0.0.2:9"), flow("one", "*:3")],
            access: vec![
                row(5, "10.0.0.3:1", slow),
                row(9, "10.0.0.3:1", slow),
                row(9, "10.0.0.3:2", slow),
                row(4, "10.0.0.3:3", slow),
                row(10, "10.0.0.3:1", None),
                AccessRow { cache: None, ..row(9, "10.0.0.2:9", None) },
            ],
            ..Records::default()
        };
        let told = |from_s: i64| {
            let during = (from_s * 1_000_000_000, 12_000_000_000);
            Wrong::of(&records, "one", during).map_or_else(String::new, |wrong| wrong.told())
        };
        assert_eq!(told(8), "the cache edge was slow for 1 request");
        assert_eq!(told(7), "the cache edge was slow for 2 requests");
        assert_eq!(told(6), "the cache edge was slow for 3 requests");
        assert_eq!(told(12), "");
        let caches = Caches::of(&records);
        let asked: Vec<bool> = records.access.iter().map(|row| caches.asked(row)).collect();
        assert_eq!(asked, [false, false, false, false, false, true]);
    }

    fn flow_row() -> FlowRow {
        FlowRow {
            t_ns: suiro_units::Time::ZERO,
            endpoint: "".into(),
            role: suiro_record::words::FlowRole::Client,
            protocol: suiro_record::words::Transport::Tcp,
            local: "".into(),
            remote: "".into(),
            carries: suiro_record::words::Carries::HttpMedia,
            flows: 1,
            closed_ns: None,
            peer: None,
        }
    }
}
