//! Captures at the ends of links, next to the links' own record.

use std::collections::BTreeMap;

use suiro_record::LinkTotals;
use suiro_record::tables::HopRow;
use suiro_record::words::Verdict;

use crate::view::View;

/// One direction of a link, as captures at its ends saw it.
pub(crate) struct Hop<'a> {
    /// The link's name in the scenario.
    pub link: &'a str,
    /// Which.
    pub direction: suiro_units::Direction,
    /// Over the whole trial.
    pub whole: Option<&'a HopRow>,
    /// Each 100 ms within the trial.
    pub spans: Vec<&'a HopRow>,
    /// When the packets were sent that were still in the link at the end.
    in_flight: Vec<i64>,
    /// What the link itself counted; `None` for a plain cable.
    totals: Option<&'a LinkTotals>,
    duration_ns: i64,
}

/// Every direction with a capture at one of its ends, sorted by link, down before up.
pub(crate) fn hops<'a>(view: &View<'a>) -> Vec<Hop<'a>> {
    let mut found: BTreeMap<(&str, suiro_units::Direction), Vec<&HopRow>> = BTreeMap::new();
    for row in &view.records.hops {
        found.entry((&*row.link, row.direction)).or_default().push(row);
    }
    let hop = |((link, direction), rows): ((&'a str, _), Vec<&'a HopRow>)| {
        let own = view.links().iter().find(|it| it.link == link && it.direction == direction);
        let packets = own.into_iter().flat_map(|own| &own.rows);
        let queued = packets.filter(|row| row.verdict == Verdict::Queued);
        let is_within = |t_ns: i64| (0..view.duration_ns).contains(&t_ns);
        Hop {
            link,
            direction,
            whole: rows.iter().find(|row| row.t_ns.is_none()).copied(),
            spans: rows.into_iter().filter(|row| row.t_ns.is_some_and(is_within)).collect(),
            in_flight: queued.map(|row| row.t_ns).collect(),
            totals: own.and_then(|own| own.totals),
            duration_ns: view.duration_ns,
        }
    };
    found.into_iter().map(hop).collect()
}

impl Hop<'_> {
    /// A count over the whole trial.
    pub fn count(&self, of: fn(&HopRow) -> Option<i64>) -> Option<f64> {
        self.whole.and_then(of).map(|count| count as f64)
    }

    /// Packets sent that were lost: not received, although they were no longer in the link at the end.
    pub fn lost(&self) -> Option<f64> {
        let missing = self.whole?.lost?;
        let (in_flight, dropped) = self
            .totals
            .map_or((0, 0), |totals| (as_rows(totals.queued), as_rows(totals.all_dropped())));
        // The captures may have ended before a packet that the link counts.
        Some(missing.saturating_sub(in_flight).max(dropped.min(missing)) as f64)
    }

    /// When packets were sent that were lost, and how many: those in the link at the end are taken off.
    pub fn losses(&self) -> Option<impl Iterator<Item = (i64, f64)>> {
        self.whole?.lost?;
        let missing = self.spans.iter().filter_map(|row| Some((row.t_ns?, row.lost? as f64)));
        Some(missing.chain(self.in_flight.iter().map(|t_ns| (*t_ns, -1.0))))
    }

    /// The share of packets sent that were lost; `None` if nothing was sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        let (lost, sent) = (self.lost()?, self.count(|row| row.sent)?);
        (sent > 0.0).then(|| lost / sent)
    }

    /// Bytes within the trial, per second of it, in bit/s.
    pub fn mean_bps(&self, bytes: fn(&HopRow) -> Option<i64>) -> Option<f64> {
        self.whole.and_then(bytes)?;
        let bytes: i64 = self.spans.iter().filter_map(|row| bytes(row)).sum();
        let rate = bytes as f64 * 8e9 / self.duration_ns as f64;
        rate.is_finite().then_some(rate)
    }

    /// How many packets the captures and the link's own counts differ by; `None` where they cannot be compared.
    pub fn link_difference(&self) -> Option<f64> {
        difference(self.whole?, self.totals?).map(|packets| packets as f64)
    }
}

fn as_rows(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// How many packets captures and a link's own counts of the same direction differ by: 0 if they agree, `None` if one of
/// the captures is missing or incomplete.
pub fn difference(hop: &HopRow, link: &LinkTotals) -> Option<u64> {
    let count = |count: Option<i64>| count.and_then(|count| u64::try_from(count).ok());
    let gone = link.all_dropped().saturating_add(link.queued).saturating_add(link.unaccounted);
    let pairs = [
        (count(hop.sent)?, link.offered),
        (count(hop.received)?, link.delivered),
        // A copy that the link made may be dropped too: then the captures show neither.
        (count(hop.lost)?.saturating_add(link.duplicated), gone.saturating_add(count(hop.copies)?)),
        (count(hop.unknown)?, 0),
    ];
    let differ = pairs.iter().map(|(captured, counted)| captured.abs_diff(*counted));
    Some(differ.fold(0, u64::saturating_add))
}
