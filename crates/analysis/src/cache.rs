//! Caches between origins and viewers: what they had, and what they asked for.

use std::collections::BTreeMap;

use suiro_record::flows::is_end;
use suiro_record::tables::AccessRow;
use suiro_record::words::CacheOutcome;

use crate::stats::Distribution;
use crate::view::View;

/// One cache.
pub(crate) struct Cache<'a> {
    /// The requests that it answered, in the order of the table.
    rows: Vec<&'a AccessRow>,
    /// Bytes of bodies that origins sent to it; `None` if it is not known who asked them.
    origin_bytes: Option<f64>,
}

/// Every cache, by name.
pub(crate) fn caches<'a>(view: &View<'a>) -> Vec<(&'a str, Cache<'a>)> {
    let rows = view.within(&view.records.access, |row| row.t_ns);
    let (own, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.cache.is_some());
    let mut by_name: BTreeMap<&str, Vec<&AccessRow>> = BTreeMap::new();
    for row in own {
        by_name.entry(&row.endpoint).or_default().push(row);
    }
    let caches = by_name.into_iter().map(|(name, rows)| {
        let connections = view.records.flows.iter().filter(|flow| &*flow.endpoint == name);
        let connections: Vec<&str> = connections.map(|flow| &*flow.local).collect();
        let origin_bytes = from_origins(&connections, &others);
        (name, Cache { rows, origin_bytes })
    });
    caches.collect()
}

/// Bytes of bodies that origins sent to the ends of a cache. `None` if not all of these are known: the last row of an endpoint
/// with too many connections stands for all others, and everybody's requests would be its own.
fn from_origins(ends: &[&str], answers: &[&AccessRow]) -> Option<f64> {
    if ends.is_empty() || ends.contains(&"*:*") {
        return None;
    }
    let is_its = |peer: &str| ends.iter().any(|local| is_end(local, peer));
    let asked = answers.iter().filter(|row| is_its(&row.peer));
    Some(asked.map(|row| row.body_bytes as f64).sum())
}

impl Cache<'_> {
    fn count(&self, of: impl Fn(CacheOutcome) -> bool) -> f64 {
        self.rows.iter().filter(|row| row.cache.is_some_and(&of)).count() as f64
    }

    /// Requests that were answered with an object, or with what the origin said instead, if anything.
    pub fn answered(&self) -> f64 {
        self.count(|outcome| outcome != CacheOutcome::Own)
    }

    fn share(&self, of: impl Fn(CacheOutcome) -> bool) -> Option<f64> {
        let all = self.answered();
        (all > 0.0).then(|| self.count(of) / all)
    }

    pub fn hit_ratio(&self) -> Option<f64> {
        self.share(|outcome| matches!(outcome, CacheOutcome::Hit | CacheOutcome::Stale))
    }

    pub fn joined_ratio(&self) -> Option<f64> {
        self.share(|outcome| outcome == CacheOutcome::Joined)
    }

    pub fn joined(&self) -> f64 {
        self.count(|outcome| outcome == CacheOutcome::Joined)
    }

    pub fn revalidated(&self) -> f64 {
        self.count(|outcome| outcome == CacheOutcome::Revalidated)
    }

    pub fn misses(&self) -> f64 {
        self.count(|outcome| outcome == CacheOutcome::Miss)
    }

    /// Answers with a status of 400 or more.
    pub fn errors(&self) -> f64 {
        self.rows.iter().filter(|row| row.status >= 400).count() as f64
    }

    /// Answers that a fault of the scenario changed.
    pub fn faults(&self) -> f64 {
        self.rows.iter().filter(|row| row.cache_fault.is_some()).count() as f64
    }

    pub fn viewer_bytes(&self) -> f64 {
        self.rows.iter().map(|row| row.body_bytes as f64).sum()
    }

    pub fn origin_bytes(&self) -> Option<f64> {
        self.origin_bytes
    }

    pub fn origin_share(&self) -> Option<f64> {
        let sent = self.viewer_bytes();
        self.origin_bytes.filter(|_| sent > 0.0).map(|bytes| bytes / sent)
    }

    /// Ages of answers, in milliseconds.
    pub fn ages(&self) -> Distribution {
        Distribution::equal(self.rows.iter().filter_map(|row| Some(row.cache_age_ms? as f64)))
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::words::CacheFault;

    use super::*;

    fn row(cache: CacheOutcome, status: i64, body_bytes: i64, age: Option<i64>) -> AccessRow {
        AccessRow {
            cache: Some(cache),
            status,
            body_bytes,
            cache_age_ms: age,
            cache_fault: (status == 503).then_some(CacheFault::Unavailable),
            ..AccessRow::default()
        }
    }

    #[test]
    fn what_origins_sent_is_known_only_with_all_connections() {
        let answer = |peer: &str, body_bytes| AccessRow {
            peer: peer.into(),
            body_bytes,
            ..AccessRow::default()
        };
        let answers = [answer("10.0.0.2:4000", 1000), answer("10.0.0.3:4000", 700)];
        let answers: Vec<&AccessRow> = answers.iter().collect();
        assert_eq!(from_origins(&["10.0.0.2:4000"], &answers), Some(1000.0));
        assert_eq!(from_origins(&["10.0.0.2:5000"], &answers), Some(0.0));
        // A shared last row would take what a player asked the origin for itself.
        assert_eq!(from_origins(&["10.0.0.2:4000", "*:*"], &answers), None);
        assert_eq!(from_origins(&[], &answers), None);
    }

    #[test]
    fn by_hand() {
        let rows = [
            row(CacheOutcome::Miss, 200, 1000, Some(50)),
            row(CacheOutcome::Joined, 200, 1000, Some(60)),
            row(CacheOutcome::Hit, 200, 1000, Some(2000)),
            row(CacheOutcome::Stale, 206, 500, Some(9000)),
            row(CacheOutcome::Own, 503, 20, None),
        ];
        let cache = Cache { rows: rows.iter().collect(), origin_bytes: Some(1100.0) };
        assert_eq!((cache.answered(), cache.misses(), cache.joined()), (4.0, 1.0, 1.0));
        assert_eq!((cache.hit_ratio(), cache.joined_ratio()), (Some(0.5), Some(0.25)));
        assert_eq!((cache.errors(), cache.faults(), cache.viewer_bytes()), (1.0, 1.0, 3520.0));
        assert_eq!(cache.origin_share(), Some(1100.0 / 3520.0));
        assert_eq!(cache.ages().max(), Some(9000.0));
        // An origin that has closed: what was asked of it in vain is no hit.
        let failed = [(); 3].map(|()| row(CacheOutcome::Miss, 502, 27, None));
        let failed = Cache { rows: failed.iter().collect(), origin_bytes: Some(0.0) };
        assert_eq!((failed.misses(), failed.hit_ratio(), failed.errors()), (3.0, Some(0.0), 3.0));
        // A revalidated object is neither a hit nor a miss.
        let rows = [
            row(CacheOutcome::Miss, 200, 1000, Some(90_000)),
            row(CacheOutcome::Revalidated, 200, 1000, Some(0)),
            row(CacheOutcome::Revalidated, 304, 0, Some(0)),
            row(CacheOutcome::Hit, 200, 1000, Some(10)),
        ];
        let asks = Cache { rows: rows.iter().collect(), origin_bytes: Some(1000.0) };
        assert_eq!((asks.hit_ratio(), asks.revalidated(), asks.misses()), (Some(0.25), 2.0, 1.0));
        assert_eq!((asks.answered(), asks.origin_share()), (4.0, Some(1.0 / 3.0)));
        let idle = Cache { rows: Vec::new(), origin_bytes: None };
        assert_eq!((idle.hit_ratio(), idle.origin_share()), (None, None));
    }
}
