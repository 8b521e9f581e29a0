//! One direction of one link, as its own record has it.

use std::collections::BTreeMap;

use suiro_record::tables::LinkRow;
use suiro_record::words::{LinkCause, Verdict};
use suiro_record::{LinkRate, LinkTotals, Trial};

use crate::held::Stretch;
use crate::instance::{is_at_hub, towards_viewers};
use crate::period::Period;
use crate::stats::Distribution;
use crate::{Records, duration_ns};

/// One direction of one link.
pub(crate) struct Direction<'a> {
    /// The link's name in the scenario.
    pub link: &'a str,
    /// Which.
    pub direction: suiro_units::Direction,
    /// True if the link is that of a hub's station: this is all that it sends.
    pub at_hub: bool,
    /// The segment whose medium it shares; `None` for other links.
    pub segment: Option<&'a str>,
    /// Packets that arrived within the trial, in order of arrival, and the copies that the link made of them.
    pub rows: Vec<&'a LinkRow>,
    /// The same without the copies.
    pub originals: Vec<&'a LinkRow>,
    /// What the emulator counted.
    pub totals: Option<&'a LinkTotals>,
    /// Sizes in service and how long, within the period, sorted; only stretches in which the link was never idle.
    pub service: Vec<Stretch<f64>>,
    /// How long the link was serving; `None` if no packet ever had to wait.
    pub busy_ns: Option<f64>,
    /// The rate it was to have; `None` if none was asked for, or the record is older than that.
    pub asked: Option<&'a LinkRate>,
    /// The time that metrics are about.
    pub period: Period,
}

/// How often a packet was sent on a medium that stations share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// In all.
    pub all: u64,
    /// Those that collided or did not arrive.
    pub failed: u64,
}

/// Every direction of every link, sorted by link, down before up.
pub(crate) fn directions<'a>(
    trial: &'a Trial,
    records: &'a Records,
    period: Period,
) -> Vec<Direction<'a>> {
    let mut found: BTreeMap<(&str, suiro_units::Direction), Vec<&LinkRow>> = BTreeMap::new();
    for totals in &trial.links {
        found.entry((&totals.link, totals.direction)).or_default();
    }
    let duration_ns = duration_ns(trial);
    for row in &records.link {
        let rows = found.entry((&row.link, row.direction)).or_default();
        if (0..duration_ns).contains(&row.t_ns) {
            rows.push(row);
        }
    }
    let directions = found.into_iter().map(|((link, direction), mut rows)| {
        rows.sort_by_key(|row| (row.t_ns, row.packet));
        let originals = originals(&rows);
        let totals = trial.links.iter().find(|t| t.link == link && t.direction == direction);
        let asked = trial.link_rates.iter().find(|r| r.link == link && r.direction == direction);
        let (service, busy_ns) = service(&originals, period);
        let has =
            |direction| trial.links.iter().any(|t| t.link == link && t.direction == direction);
        Direction {
            link,
            direction,
            at_hub: is_at_hub(has),
            segment: totals.and_then(|totals| totals.segment.as_deref()),
            rows,
            originals,
            totals,
            service,
            busy_ns,
            asked,
            period,
        }
    });
    directions.collect()
}

/// When the row's packet reached the receiving host; `None` if it did not.
///
/// A link in virtual time hands nothing over: there the computed delivery counts.
fn arrived_ns(row: &LinkRow) -> Option<i64> {
    (row.verdict == Verdict::Delivered).then_some(row.departed_ns.or(row.scheduled_ns)).flatten()
}

fn served<'a>(rows: &[&'a LinkRow], period: Period) -> impl Iterator<Item = (i64, &'a LinkRow)> {
    let served = rows.iter().filter_map(|row| Some((row.dequeued_ns?, *row)));
    served.filter(move |(t_ns, _)| period.contains(*t_ns))
}

/// The rows except those of copies that the link made. A copy has the number of its original and arrived with it. One with a
/// flipped bit, and one that is still in the link, are not marked as copies: of two such rows, the first is the original.
fn originals<'a>(rows: &[&'a LinkRow]) -> Vec<&'a LinkRow> {
    let is_certain = |row: &&LinkRow| match row.verdict {
        Verdict::Delivered => row.cause.is_none(),
        Verdict::Dropped => true,
        Verdict::Queued => false,
    };
    let mut originals = Vec::with_capacity(rows.len());
    for alike in rows.chunk_by(|a, b| (a.t_ns, a.packet) == (b.t_ns, b.packet)) {
        let mut is_found = alike.iter().any(is_certain);
        for row in alike {
            let is_marked = row.cause == Some(LinkCause::Duplicate);
            if is_marked || (is_found && !is_certain(row)) {
                continue;
            }
            is_found = true;
            originals.push(*row);
        }
    }
    originals
}

/// Rows of packets that reached the receiving host within the period, and when.
fn delivered<'a>(rows: &[&'a LinkRow], period: Period) -> impl Iterator<Item = (i64, &'a LinkRow)> {
    let arrived = rows.iter().filter_map(|row| Some((arrived_ns(row)?, *row)));
    arrived.filter(move |(t_ns, _)| period.contains(*t_ns))
}

impl<'a> Direction<'a> {
    /// True if packets on their way to viewers may be here; see [`towards_viewers`].
    pub fn is_towards_viewers(&self) -> bool {
        towards_viewers(self.direction, self.at_hub)
    }

    /// Those of such rows whose packets came to the link within the period.
    fn counted<'r>(&self, rows: &'r [&'a LinkRow]) -> &'r [&'a LinkRow] {
        self.period.after_warm_up(rows, |row| row.t_ns)
    }

    /// Packets that came to the link within the period, and the copies that it made of them.
    pub fn came(&self) -> &[&'a LinkRow] {
        self.counted(&self.rows)
    }

    /// The same without the copies.
    pub fn originals_that_came(&self) -> &[&'a LinkRow] {
        self.counted(&self.originals)
    }

    /// Rows of packets that reached the receiving host within the period, and when.
    pub fn delivered(&self) -> impl Iterator<Item = (i64, &'a LinkRow)> {
        delivered(&self.rows, self.period)
    }

    /// Payload delivered, when and of which flow, copies that the link itself made left out.
    fn payload_of_flows(&self) -> impl Iterator<Item = (i64, &'a str, f64)> {
        delivered(&self.originals, self.period)
            .map(|(t_ns, row)| (t_ns, &*row.flow, row.payload_bytes.unwrap_or(0) as f64))
    }

    /// The same of all flows.
    pub fn payload(&self) -> impl Iterator<Item = (i64, f64)> {
        self.payload_of_flows().map(|(t_ns, _, bytes)| (t_ns, bytes))
    }

    /// Packets dropped; those still in the link at the end are not.
    pub fn dropped(&self) -> impl Iterator<Item = &'a LinkRow> {
        self.came().iter().filter(|row| row.verdict == Verdict::Dropped).copied()
    }

    /// Packets that went into service within the period, and when.
    fn served(&self) -> impl Iterator<Item = (i64, &'a LinkRow)> {
        served(&self.rows, self.period)
    }

    /// The share of packets dropped for one of `causes` (all if empty); `None` without packets.
    pub fn loss_ratio(&self, causes: &[LinkCause]) -> Option<f64> {
        let of_interest = |cause: &LinkCause| causes.is_empty() || causes.contains(cause);
        // The emulator's own counts are of the whole trial.
        let (dropped, rest) = match self.totals.filter(|_| self.period.is_whole()) {
            Some(totals) => {
                let counted = totals.dropped.iter();
                let all: u64 = counted.clone().map(|(_, n)| n).sum();
                let dropped: u64 = counted.filter(|(c, _)| of_interest(c)).map(|(_, n)| n).sum();
                // Of an older record, as if no copy had been in the link at the end.
                let copies = totals.duplicates_delivered.unwrap_or(totals.duplicated);
                let delivered = totals.delivered as f64 - copies as f64;
                (dropped as f64, all as f64 - dropped as f64 + delivered)
            }
            None => {
                let all = causes.is_empty();
                let cause = |row: &&LinkRow| all || row.cause.as_ref().is_some_and(of_interest);
                let dropped = self.dropped().filter(cause).count() as f64;
                let is_delivered = |row: &&&LinkRow| row.verdict == Verdict::Delivered;
                let originals = self.originals_that_came().iter();
                let delivered = originals.filter(is_delivered).count() as f64;
                (dropped, self.dropped().count() as f64 - dropped + delivered)
            }
        };
        let settled = dropped + rest;
        (settled > 0.0).then(|| dropped / settled)
    }

    /// How often each packet was sent on the medium that stations share; copies that the link made and packets still in it
    /// left out. Nothing on other links.
    pub fn attempts(&self) -> impl Iterator<Item = (&'a LinkRow, Attempts)> {
        self.originals_that_came().iter().filter_map(|row| {
            let received = match row.verdict {
                Verdict::Delivered => 1,
                Verdict::Dropped => 0,
                Verdict::Queued => return None,
            };
            let all = row.attempts?;
            Some((*row, Attempts { all, failed: all.saturating_sub(received) }))
        })
    }

    /// The share of attempts to send that failed; `None` if there were none.
    pub fn attempts_failed_ratio(&self) -> Option<f64> {
        let sum = |(failed, all): (f64, f64), (_, made): (_, Attempts)| {
            (failed + made.failed as f64, all + made.all as f64)
        };
        let (failed, all) = self.attempts().fold((0.0, 0.0), sum);
        (all > 0.0).then(|| failed / all)
    }

    /// Time between arrival and start of service, in milliseconds, per packet that was served.
    pub fn queue_delays(&self) -> Distribution {
        Distribution::equal(self.served().map(|(t_ns, row)| since(t_ns, row.t_ns)))
    }

    /// Time between arrival and delivery, in milliseconds, per packet delivered.
    pub fn one_way_delays(&self) -> Distribution {
        Distribution::equal(self.delivered().map(|(t_ns, row)| since(t_ns, row.t_ns)))
    }

    /// The rate at which the link served while it was never idle, in bit/s: its bottleneck rate.
    pub fn served_bps(&self) -> Option<f64> {
        let bits: f64 = self.service.iter().map(|s| s.value * 8.0).sum();
        let ns: f64 = self.service.iter().map(Stretch::length_ns).sum();
        (ns > 0.0).then(|| bits * 1e9 / ns)
    }

    /// The share of what the link could carry that it carried. Where no rate was asked for, the
    /// share of the period in which it was serving; `None` if no packet ever waited there.
    pub fn utilisation(&self) -> Option<f64> {
        let share = match self.capacity_bits() {
            Some(capacity) => {
                let originals = served(&self.originals, self.period);
                let bits: f64 = originals.map(|(_, row)| row.size_bytes as f64 * 8.0).sum();
                bits / capacity
            }
            None => self.busy_ns? / self.period.length_ns(),
        };
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    /// What the link could have carried in the period.
    fn capacity_bits(&self) -> Option<f64> {
        let asked: Vec<Stretch<f64>> = self.asked_stretches()?.collect();
        let asked = self.period.cut(asked);
        Some(asked.iter().map(|s| s.value * s.length_ns() / 1e9).sum())
    }

    /// The rate it was to have, in bit/s, over the trial.
    pub fn asked_stretches(&self) -> Option<impl Iterator<Item = Stretch<f64>> + use<'a>> {
        let (asked, end) = (self.asked?, self.period.to_ns);
        let at = move |index: usize| ((index as f64 * asked.span_s * 1e9) as i64).min(end);
        let stretch = move |(index, rate): (usize, &f64)| Stretch {
            from_ns: at(index),
            to_ns: at(index + 1),
            value: *rate,
        };
        let whole = asked.rate_bps.iter().enumerate().map(stretch);
        Some(whole.filter(|s| s.to_ns > s.from_ns && s.value.is_finite()))
    }

    /// `amount` per second of the period.
    pub fn per_second(&self, amount: f64) -> Option<f64> {
        let rate = amount * 1e9 / self.period.length_ns();
        rate.is_finite().then_some(rate)
    }
}

/// From `from_ns` to `to_ns`, in milliseconds.
pub(crate) fn since(to_ns: i64, from_ns: i64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e6
}

/// Packets that went into service at one time: on most links one, on a medium that sends several together all of these.
struct Served {
    at_ns: i64,
    /// When the first of them had come.
    arrived_ns: i64,
    /// When the last of them was due at the other end.
    due_ns: i64,
    bytes: f64,
}

/// When the link was serving, from the packets alone.
///
/// A packet that waited went into service the moment the one before it left, so the link was busy
/// all the time between the two starts of service, with the earlier packet. From one that did not
/// wait nothing follows; then the earlier packet's service is taken to have lasted its size over
/// the rate last seen, at most until the next start. Nor does anything follow from one that came when the
/// earlier one had arrived: on a radio that is given from time to time, it waits although nothing is served.
fn service(rows: &[&LinkRow], period: Period) -> (Vec<Stretch<f64>>, Option<f64>) {
    let served = together(rows, period);
    let mut stretches = Vec::new();
    let (mut busy, mut idle_after) = (0.0, Vec::new());
    let mut rate: Option<f64> = None;
    for pair in served.windows(2) {
        let [one, next] = pair else { continue };
        let length = next.at_ns.saturating_sub(one.at_ns) as f64;
        if next.at_ns > next.arrived_ns && next.arrived_ns <= one.due_ns {
            let (from_ns, to_ns) = (one.at_ns, next.at_ns);
            stretches.push(Stretch { from_ns, to_ns, value: one.bytes });
            busy += length;
            rate = Some(one.bytes / length);
        } else {
            idle_after.push((one.bytes, rate, length));
        }
    }
    if let Some(last) = served.last() {
        idle_after.push((last.bytes, rate, f64::INFINITY));
    }
    let first = stretches.first().map(|s| s.value / s.length_ns());
    for (size, rate, at_most) in idle_after {
        if let Some(rate) = rate.or(first).filter(|rate| *rate > 0.0) {
            busy += (size / rate).min(at_most);
        }
    }
    let seen = !stretches.is_empty();
    (stretches, seen.then_some(busy))
}

/// What was served, by the time at which service began.
///
/// Packets that began together did so because the medium sends several at once, or because an opportunity had room for them:
/// then they waited for it. On other links, those that did not wait found tokens in the bucket and left at once; only the last
/// of them, for which tokens may have been missing, was in service after that.
fn together(rows: &[&LinkRow], period: Period) -> Vec<Served> {
    let mut served: Vec<(Served, bool)> = served(rows, period)
        .map(|(at_ns, row)| {
            let served = Served {
                at_ns,
                arrived_ns: row.t_ns,
                due_ns: row.scheduled_ns.unwrap_or(i64::MAX),
                bytes: row.size_bytes as f64,
            };
            (served, row.attempts.is_some() || at_ns > row.t_ns)
        })
        .collect();
    served.sort_by_key(|(it, _)| (it.at_ns, it.arrived_ns));
    served.dedup_by(|(later, is_joint), (first, _)| {
        let same = later.at_ns == first.at_ns;
        if same && *is_joint {
            first.bytes += later.bytes;
            first.due_ns = first.due_ns.max(later.due_ns);
        } else if same {
            (first.bytes, first.due_ns) = (later.bytes, later.due_ns);
        }
        same
    });
    served.into_iter().map(|(served, _)| served).collect()
}

/// Share of the packets delivered that the queue discipline marked.
pub(crate) fn ecn_ratio(direction: &Direction) -> Option<f64> {
    let (mut marked, mut all) = (0u32, 0u32);
    for (_, row) in direction.delivered() {
        all += 1;
        marked += u32::from(row.ecn_marked);
    }
    (all > 0).then(|| f64::from(marked) / f64::from(all))
}

/// Payload that the links delivered towards viewers per second, all together. A flow that crosses several links counts once, as
/// on the one that delivered the least of it: what is lost on the way does not arrive.
pub(crate) fn goodput(links: &[Direction]) -> Option<f64> {
    let used = || links.iter().filter(|d| d.is_towards_viewers() && !d.rows.is_empty());
    let mut flows: BTreeMap<&str, f64> = BTreeMap::new();
    for (flow, bytes) in used().flat_map(payload_by_flow) {
        flows.entry(flow).and_modify(|least| *least = least.min(bytes)).or_insert(bytes);
    }
    used().next()?.per_second(flows.values().sum::<f64>() * 8.0)
}

/// The payload of each flow that met the link, also of one of which nothing was delivered.
fn payload_by_flow<'a>(link: &Direction<'a>) -> BTreeMap<&'a str, f64> {
    let mut flows: BTreeMap<&str, f64> = link.rows.iter().map(|row| (&*row.flow, 0.0)).collect();
    for (_, flow, bytes) in link.payload_of_flows() {
        *flows.entry(flow).or_default() += bytes;
    }
    flows
}
