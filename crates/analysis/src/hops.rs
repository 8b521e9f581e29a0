//! Captures at the ends of links, next to the links' own record.

use std::collections::BTreeMap;

use suiro_record::LinkTotals;
use suiro_record::tables::HopRow;
use suiro_record::words::Verdict;

use crate::link::Direction;
use crate::period::Period;
use crate::view::View;

/// One direction of a link, as captures at its ends saw it.
pub(crate) struct Hop<'a> {
    /// The link's name in the scenario.
    pub link: &'a str,
    /// Which.
    pub direction: suiro_units::Direction,
    /// Over the whole trial.
    pub whole: Option<&'a HopRow>,
    /// Each 100 ms within the period, also those in which the warm-up ended.
    pub spans: Vec<&'a HopRow>,
    /// Packets that were still on their way at the end, and when these were sent.
    in_flight: i64,
    left: Vec<(i64, f64)>,
    /// What the link itself counted; `None` for a plain cable.
    totals: Option<&'a LinkTotals>,
    /// What `spans` cover.
    period: Period,
}

/// Every direction with a capture at one of its ends, sorted by link, down before up.
pub(crate) fn hops<'a>(view: &View<'a>) -> Vec<Hop<'a>> {
    let mut found: BTreeMap<(&str, suiro_units::Direction), Vec<&HopRow>> = BTreeMap::new();
    for row in &view.records.hops {
        found.entry((&*row.link, row.direction)).or_default().push(row);
    }
    let queued: u64 = view.links().iter().filter_map(|own| Some(own.totals?.queued)).sum();
    let period = in_spans(view.period);
    let hop = |((link, direction), rows): ((&'a str, _), Vec<&'a HopRow>)| {
        let own = view.links().iter().find(|it| it.link == link && it.direction == direction);
        let is_within = |t_ns: i64| period.contains(t_ns);
        let whole = rows.iter().find(|row| row.t_ns.is_none()).copied();
        let spans: Vec<_> =
            rows.into_iter().filter(|row| row.t_ns.is_some_and(is_within)).collect();
        let (in_flight, left) = match own {
            Some(own) => in_link(own),
            None => whole.map(|whole| on_path(whole, &spans, queued)).unwrap_or_default(),
        };
        let totals = own.and_then(|own| own.totals);
        Hop { link, direction, whole, spans, in_flight, left, totals, period }
    };
    found.into_iter().map(hop).collect()
}

/// A period with the whole of the 100 ms in which the warm-up ended.
const fn in_spans(period: Period) -> Period {
    if period.from_ns >= period.to_ns {
        return period;
    }
    Period { from_ns: period.from_ns - period.from_ns % HopRow::SPAN_NS, ..period }
}

/// The packets in a link at the end: how many, and when they were sent.
fn in_link(own: &Direction) -> (i64, Vec<(i64, f64)>) {
    let queued = own.rows.iter().filter(|row| row.verdict == Verdict::Queued);
    let left = queued.map(|row| (row.t_ns, 1.0)).collect();
    (own.totals.map_or(0, |totals| as_rows(totals.queued)), left)
}

/// The packets that may be on a path at the end, if it has several links: at most as many as were in all links. On a plain
/// cable, nothing waits.
fn on_path(whole: &HopRow, spans: &[&HopRow], queued: u64) -> (i64, Vec<(i64, f64)>) {
    let is_cable = whole
        .from
        .as_deref()
        .is_some_and(|from| from.split_once(':').is_some_and(|(_, link)| link == &*whole.link));
    let Some(most) = whole.in_flight.filter(|_| !is_cable) else { return (0, Vec::new()) };
    let in_flight = most.clamp(0, as_rows(queued));
    let share = if most > 0 { in_flight as f64 / most as f64 } else { 0.0 };
    let left = |row: &&HopRow| Some((row.t_ns?, row.in_flight? as f64 * share));
    (in_flight, spans.iter().filter_map(left).collect())
}

impl Hop<'_> {
    /// A count over the whole trial.
    pub fn count(&self, of: fn(&HopRow) -> Option<i64>) -> Option<f64> {
        self.whole.and_then(of).map(|count| count as f64)
    }

    /// Packets sent that were lost: not received, although they were no longer on their way at the end.
    pub fn lost(&self) -> Option<f64> {
        let missing = self.whole?.lost?;
        let dropped = self.totals.map_or(0, |totals| as_rows(totals.all_dropped()));
        // The captures may have ended before a packet that the link counts.
        Some(missing.saturating_sub(self.in_flight).max(dropped.min(missing)) as f64)
    }

    /// When packets were sent that were lost, and how many: those still on their way at the end are taken off.
    pub fn losses(&self) -> Option<impl Iterator<Item = (i64, f64)>> {
        self.whole?.lost?;
        let missing = self.spans.iter().filter_map(|row| Some((row.t_ns?, row.lost? as f64)));
        Some(missing.chain(self.left.iter().map(|(t_ns, left)| (*t_ns, -left))))
    }

    /// The share of packets sent that were lost; `None` if nothing was sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        let (lost, sent) = (self.lost()?, self.count(|row| row.sent)?);
        (sent > 0.0).then(|| lost / sent)
    }

    /// Bytes in [`Self::spans`], per second of the time that they cover, in bit/s.
    pub fn mean_bps(&self, bytes: fn(&HopRow) -> Option<i64>) -> Option<f64> {
        self.whole.and_then(bytes)?;
        let bytes: i64 = self.spans.iter().filter_map(|row| bytes(row)).sum();
        let rate = bytes as f64 * 8e9 / self.period.length_ns();
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
