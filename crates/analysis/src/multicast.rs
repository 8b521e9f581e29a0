//! Multicast: what routers forwarded, and how soon packets began and ended after joining and leaving.

use std::collections::BTreeMap;

use suiro_record::tables::{MembershipRow, MulticastLinkRow};

use crate::bins::Bins;
use crate::held::Stretch;
use crate::stats::Distribution;
use crate::view::View;

/// The link by which routers announce sources to the rendezvous point.
const REGISTER: &str = "register";

/// The last reading of a link, and the last of the warm-up.
type Readings<'a> = (&'a MulticastLinkRow, Option<&'a MulticastLinkRow>);

/// What one router forwarded.
pub(crate) struct Router<'a> {
    pub name: &'a str,
    /// Its readings of all links but `register`, added up: time, bytes in, bytes out.
    readings: Vec<(i64, f64, f64)>,
    /// Of each link.
    last: Vec<Readings<'a>>,
    /// Packets that came in by a link that they should not have come by.
    wrong: f64,
}

/// Every router, by name.
pub(crate) fn routers<'a>(view: &View<'a>) -> Vec<Router<'a>> {
    let mut by_router: BTreeMap<&str, Vec<&MulticastLinkRow>> = BTreeMap::new();
    for row in &view.records.multicast {
        by_router.entry(&row.router).or_default().push(row);
    }
    by_router.into_iter().map(|(name, rows)| Router::of(view, name, rows)).collect()
}

impl<'a> Router<'a> {
    fn of(view: &View<'a>, name: &'a str, mut rows: Vec<&'a MulticastLinkRow>) -> Self {
        rows.sort_by_key(|row| row.t_ns);
        let mut readings: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        let mut last: BTreeMap<&str, Readings<'a>> = BTreeMap::new();
        let period = view.period;
        let first_ns = period.last_before(&rows, |row| row.t_ns).map(|row| row.t_ns);
        for row in rows {
            let before = last.get(&*row.link).and_then(|(_, before)| *before);
            let before = if period.is_counted_before(row.t_ns) { Some(row) } else { before };
            last.insert(&*row.link, (row, before));
            if first_ns.is_some_and(|first| row.t_ns < first) {
                continue;
            }
            if &*row.link != REGISTER {
                let sum = readings.entry(row.t_ns).or_default();
                *sum = (sum.0 + row.bytes_in as f64, sum.1 + row.bytes_out as f64);
            }
        }
        let mut wrong: BTreeMap<_, (i64, i64)> = BTreeMap::new();
        for row in view.records.groups.iter().filter(|row| &*row.router == name) {
            let (most, before) = wrong.entry((&row.group, &row.source)).or_default();
            *most = (*most).max(row.wrong_packets);
            if period.is_counted_before(row.t_ns) {
                *before = (*before).max(row.wrong_packets);
            }
        }
        let readings = readings.into_iter().map(|(t_ns, (into, out))| (t_ns, into, out)).collect();
        let wrong = wrong.into_values().map(|(most, before)| most.saturating_sub(before));
        let wrong = wrong.map(|count| count as f64).sum();
        Self { name, readings, last: last.into_values().collect(), wrong }
    }

    /// Packets that went out by its links.
    pub fn packets_out(&self) -> f64 {
        self.forwarding().map(|link| counted(link, |row| row.packets_out)).sum()
    }

    /// Packets that came in by its links.
    pub fn packets_in(&self) -> f64 {
        self.forwarding().map(|link| counted(link, |row| row.packets_in)).sum()
    }

    /// Packets that it put into register messages, or took from them.
    pub fn registered(&self) -> f64 {
        let links = self.last.iter().filter(|(row, _)| &*row.link == REGISTER);
        links.map(|link| counted(link, |row| row.packets_in + row.packets_out)).sum()
    }

    pub const fn wrong(&self) -> f64 {
        self.wrong
    }

    /// Bits per second out; 0 if nothing went out.
    pub fn out_bps(&self) -> Option<f64> {
        rate(self.readings.iter().map(|(t_ns, _, out)| (*t_ns, *out)))
    }

    /// Bits per second in; 0 if nothing came in.
    pub fn in_bps(&self) -> Option<f64> {
        rate(self.readings.iter().map(|(t_ns, into, _)| (*t_ns, *into)))
    }

    /// The rate out over time.
    pub fn out_over_time(&self, bins: &Bins) -> Vec<Option<f64>> {
        bins.held_mean(stretches(self.readings.iter().map(|(t_ns, _, out)| (*t_ns, *out))))
    }

    /// The rate in over time.
    pub fn in_over_time(&self, bins: &Bins) -> Vec<Option<f64>> {
        bins.held_mean(stretches(self.readings.iter().map(|(t_ns, into, _)| (*t_ns, *into))))
    }

    fn forwarding(&self) -> impl Iterator<Item = &Readings<'a>> {
        self.last.iter().filter(|(row, _)| &*row.link != REGISTER)
    }
}

/// What a link counted after the warm-up.
fn counted((last, before): &Readings<'_>, of: fn(&MulticastLinkRow) -> i64) -> f64 {
    of(last).saturating_sub(before.map_or(0, of)) as f64
}

/// Bits per second of a counter of bytes, from the last reading before it grew to the first at which it had its last
/// value; `None` without two readings.
fn rate(readings: impl Iterator<Item = (i64, f64)>) -> Option<f64> {
    let readings: Vec<_> = readings.collect();
    let [(_, first), .., (_, last)] = readings[..] else { return None };
    if first >= last {
        return Some(0.0);
    }
    let (from, _) = readings.iter().rfind(|(_, bytes)| *bytes <= first)?;
    let (to, _) = readings.iter().find(|(_, bytes)| *bytes >= last)?;
    Some((last - first) * 8e9 / to.saturating_sub(*from) as f64)
}

/// Bits per second of a counter of bytes between each two readings.
fn stretches(readings: impl Iterator<Item = (i64, f64)>) -> Vec<Stretch<f64>> {
    let readings: Vec<_> = readings.collect();
    let between = |pair: &[(i64, f64)]| {
        let [(from_ns, before), (to_ns, after)] = *pair else { return None };
        let length = to_ns.checked_sub(from_ns).filter(|length| *length > 0)?;
        let value = (after - before).max(0.0) * 8e9 / length as f64;
        Some(Stretch { from_ns, to_ns, value })
    };
    readings.windows(2).filter_map(between).collect()
}

/// The memberships of all receivers.
pub(crate) struct Memberships<'a>(Vec<&'a MembershipRow>);

impl<'a> Memberships<'a> {
    /// `None` if no endpoint joined.
    pub fn of(view: &View<'a>) -> Option<Self> {
        let rows = view.within(&view.records.memberships, |row| row.t_ns);
        (!rows.is_empty()).then_some(Self(rows))
    }

    pub fn count(&self) -> f64 {
        self.0.len() as f64
    }

    /// Those that no packet came to.
    pub fn unanswered(&self) -> f64 {
        self.0.iter().filter(|row| row.first_ns.is_none()).count() as f64
    }

    /// From joining to the first packet.
    pub fn join_ms(&self) -> Distribution {
        let waits = self.0.iter().filter_map(|row| Some(row.first_ns?.saturating_sub(row.t_ns)));
        Distribution::equal(waits.map(|ns| ns as f64 / 1e6))
    }

    /// From leaving to the last packet, of those that had packets; 0 if none came after leaving.
    pub fn leave_ms(&self) -> Distribution {
        let waits = self.0.iter().filter_map(|row| {
            let left = row.first_ns.and(row.left_ns)?;
            Some(row.last_ns.map_or(0, |last| last.saturating_sub(left)))
        });
        Distribution::equal(waits.map(|ns| ns as f64 / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_time_in_which_the_counter_grew() {
        // 1 MB in a second, between two seconds of nothing.
        let readings =
            [(0, 5.0), (1, 5.0), (1_000_000_001, 1_000_005.0), (2_000_000_000, 1_000_005.0)];
        assert_eq!(rate(readings.into_iter()), Some(8e6));
        assert_eq!(rate([(0, 7.0), (9, 7.0)].into_iter()), Some(0.0));
        assert_eq!(rate([(0, 7.0)].into_iter()), None);
        assert_eq!(rate(std::iter::empty()), None);
    }

    #[test]
    fn stretches_are_between_readings() {
        let found = stretches([(0, 0.0), (0, 5.0), (1_000_000_000, 125.0)].into_iter());
        assert_eq!(found, [Stretch { from_ns: 0, to_ns: 1_000_000_000, value: 960.0 }]);
    }
}
