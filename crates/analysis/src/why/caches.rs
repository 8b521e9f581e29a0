//! Caches between origins and players: which requests are theirs, and what they did wrong.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::flows::is_end;
use suiro_record::tables::{AccessRow, FlowRow, RequestRow};
use suiro_record::words::{CacheFault, RequestKind};

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
        // A playlist that has nothing new; where segments follow from a rule, nobody needs a new manifest.
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

/// What caches did wrong with the requests of a player from `from` to `to`, or shortly before; `None` if nothing.
pub(super) fn told(records: &Records, player: &str, during: (i64, i64)) -> Option<String> {
    let mut met: BTreeMap<(&str, CacheFault), usize> = BTreeMap::new();
    for row in faults(records, player, during) {
        if let Some(fault) = row.cache_fault {
            *met.entry((&row.endpoint, fault)).or_default() += 1;
        }
    }
    let ((name, fault), requests) = met.into_iter().max_by_key(|(_, requests)| *requests)?;
    let did = match fault {
        CacheFault::Slow => "was slow",
        CacheFault::Stale => "served what had expired",
        CacheFault::Unavailable => "answered with status 503",
        CacheFault::Reset => "cut the answer off",
        CacheFault::Age => "gave a wrong age",
    };
    Some(format!("the cache {name} {did} for {}", count(requests, "request")))
}

/// The answers with which they did so.
pub(super) fn faults<'v>(
    records: &'v Records,
    player: &str,
    (from, to): (i64, i64),
) -> Vec<&'v AccessRow> {
    let own = ends(&records.flows, |name| name == player);
    let during = from.saturating_sub(TRIED_NS)..to;
    let rows = records.access.iter().filter(|row| during.contains(&row.t_ns));
    rows.filter(|row| row.cache_fault.is_some() && has(&own, &row.peer)).collect()
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
            told(&records, "one", (from_s * 1_000_000_000, 12_000_000_000)).unwrap_or_default()
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
