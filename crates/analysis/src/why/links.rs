//! What the links did to a flow, slice by slice.

use std::collections::BTreeMap;
use std::ops::Range;

use suiro_record::tables::LinkRow;
use suiro_record::words::Cause;

use super::Crossed;
use super::drops::{Dropped, Drops};
use super::falls::{Fall, falls};
use super::rules::Rules;
use super::since;
use super::slices::Slices;
use super::traces::{Span, without_rounding};
use super::usual::Delays;
use crate::link::Direction;
use crate::view::View;

/// Slices of a busy time that are followed back: ten seconds.
const BUSY_MAX: usize = 200;

/// Every direction of every link, with its packets by flow.
pub(super) struct Links<'v> {
    pub ways: Vec<Way<'v>>,
    slices: Slices,
    rules: Rules,
}

/// One direction of one link.
pub(super) struct Way<'v> {
    pub flows: BTreeMap<&'v str, Vec<&'v LinkRow>>,
    /// The segment whose medium it shares; `None` for other links.
    segment: Option<&'v str>,
    /// True if it made copies of packets.
    pub copies: bool,
    /// Of all packets.
    pub all: Vec<Load>,
    /// Bytes that went into service on the medium that it shares with other stations, by slice; its own where it shares none.
    medium: Vec<i64>,
    /// When its rate had fallen.
    pub falls: Vec<Fall>,
    rates: Vec<(i64, f64)>,
    rules: Rules,
}

/// What some packets did in a slice.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Load {
    /// Time in which at least one of them waited or was in service.
    pub queued_ns: i64,
    /// Bytes that went into service.
    pub bytes: i64,
    /// Packets that did not reach their receiver.
    pub drops: Drops,
    /// Time in which at least one of them was due and not handed over.
    pub late_ns: i64,
    /// Time in which the link carried nothing.
    pub out_ns: i64,
}

impl<'v> Links<'v> {
    pub fn new(view: &'v View<'_>, slices: Slices) -> Self {
        let ways = view.links().iter().map(|link| {
            let mut flows: BTreeMap<&str, Vec<&LinkRow>> = BTreeMap::new();
            // Without the copies that the link made: whatever became of one, its receiver may have the original.
            for row in &link.originals {
                match flows.get_mut(&*row.flow) {
                    Some(rows) => rows.push(row),
                    None => drop(flows.insert(&row.flow, vec![row])),
                }
            }
            let rates = rates(link);
            let falls = falls(&rates, slices.end_ns, view.rules.fallen);
            let (segment, rules) = (link.segment, view.rules);
            let (all, medium) = (Vec::new(), Vec::new());
            let copies = link.rows.len() > link.originals.len();
            let mut way = Way { flows, segment, copies, all, medium, falls, rates, rules };
            way.all = way.load(&link.originals, slices);
            way.medium = way.all.iter().map(|load| load.bytes).collect();
            way
        });
        let mut ways: Vec<Way> = ways.collect();
        let media = ways.iter().filter_map(|way| Some((way.segment?, way.medium.as_slice())));
        let media = sums(media);
        for way in &mut ways {
            if let Some(medium) = way.segment.and_then(|segment| media.get(segment)) {
                way.medium.clone_from(medium);
            }
        }
        Self { ways, slices, rules: view.rules }
    }

    /// The directions of links that carried these flows, and what their packets did there; empty if
    /// no link did.
    pub fn of(&self, flows: &[String]) -> Vec<Carried<'_, 'v>> {
        let media = self.own_of_media(flows);
        let carried = self.ways.iter().filter_map(|way| {
            let mut rows: Vec<&LinkRow> = way.rows_of(flows).collect();
            rows.sort_by_key(|row| row.t_ns);
            if rows.is_empty() {
                return None;
            }
            let own = way.load(&rows, self.slices);
            let usual = rows.iter().filter_map(|row| Some((row.t_ns, way.propagation_ns(row)?)));
            let usual = Delays::of(usual);
            let of_medium = way.segment.and_then(|segment| media.get(segment)).cloned();
            let of_medium =
                of_medium.unwrap_or_else(|| own.iter().map(|load| load.bytes).collect());
            let (slices, rules) = (self.slices, self.rules);
            Some(Carried { way, rows, own, of_medium, usual, slices, rules })
        });
        carried.collect()
    }

    /// The bytes that some flows had of each segment's medium, by slice: in all its directions, with what goes back.
    fn own_of_media(&self, flows: &[String]) -> BTreeMap<&'v str, Vec<i64>> {
        let mut both: Vec<String> = flows.iter().filter_map(|flow| super::turned(flow)).collect();
        both.extend_from_slice(flows);
        both.sort_unstable();
        both.dedup();
        let bytes = self.ways.iter().filter(|way| way.segment.is_some()).map(|way| {
            let mut bytes = vec![0; self.slices.count];
            for row in way.rows_of(&both) {
                let Some(dequeued) = row.dequeued_ns else { continue };
                if let Some(sum) = bytes.get_mut(self.slices.at(dequeued)) {
                    *sum = row.size_bytes.saturating_add(*sum);
                }
            }
            (way.segment, bytes)
        });
        let bytes: Vec<(Option<&str>, Vec<i64>)> = bytes.collect();
        sums(bytes.iter().filter_map(|(segment, bytes)| Some(((*segment)?, bytes.as_slice()))))
    }
}

/// The packets of some flows in one direction of a link.
pub(super) struct Carried<'w, 'v> {
    pub way: &'w Way<'v>,
    pub rows: Vec<&'v LinkRow>,
    /// By slice.
    pub own: Vec<Load>,
    /// Bytes of these flows on the medium, in whatever direction, by slice.
    of_medium: Vec<i64>,
    pub slices: Slices,
    pub rules: Rules,
    /// What is usual from the end of service to the other end of the link.
    pub usual: Delays,
}

impl<'w, 'v> Carried<'w, 'v> {
    /// The same, of the packets that came to the link before a time.
    pub fn before(&self, t_ns: i64) -> Carried<'w, 'v> {
        let rows = self.within(i64::MIN, t_ns).to_vec();
        let Self { way, slices, rules, .. } = *self;
        let (own, usual) = (self.own.clone(), self.usual.clone());
        Carried { way, rows, own, of_medium: self.of_medium.clone(), usual, slices, rules }
    }

    /// Whether a packet is one of this direction of this link.
    pub fn carries(&self, row: &LinkRow) -> bool {
        self.rows.first().is_some_and(|own| own.link == row.link && own.direction == row.direction)
    }

    /// How much longer than was usual by then a packet took after its service; `None` of one that was not delivered, or whose
    /// link carried nothing meanwhile, or shares its medium.
    pub fn slow_ns(&self, row: &LinkRow) -> Option<i64> {
        Some(since(self.way.propagation_ns(row)?, self.usual.at(row.t_ns)))
    }

    /// From the arrival of a packet at the link to the end of its service: what the link's rate and its queue took.
    pub fn passed_ns(&self, row: &LinkRow) -> Option<i64> {
        let dequeued = row.dequeued_ns?;
        Some(since(dequeued, row.t_ns).saturating_add(self.way.service_ns(row, dequeued)))
    }

    /// When the first of the packets came that make up the last `bytes` of payload before a time; `None` if none did.
    pub fn sent_last(&self, until_ns: i64, bytes: i64) -> Option<i64> {
        let mut left = bytes;
        let mut first = None;
        for row in self.within(0, until_ns).iter().rev() {
            if left <= 0 {
                break;
            }
            left = left.saturating_sub(row.payload_bytes.unwrap_or(row.size_bytes));
            first = Some(row.t_ns);
        }
        first
    }

    /// For how much of a stretch of time at least one of the packets waited or was in service, about: whole slices count.
    pub fn queued_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let mut queued_ns: i64 = 0;
        self.slices.spread(from_ns, to_ns, |index, _| {
            let load = self.own.get(index);
            queued_ns = queued_ns.saturating_add(load.map_or(0, |load| load.queued_ns));
        });
        queued_ns
    }

    /// The share of a slice in which at least one of the packets waited or was in service.
    pub fn busy(&self, index: usize) -> f64 {
        let (from, to) = self.slices.span(index);
        let load = self.own.get(index);
        load.map_or(0.0, |load| load.queued_ns as f64 / since(to, from).max(1) as f64)
    }

    /// Why the link carries no more at a time: others have their share of it in these slices, its rate has fallen, or
    /// neither.
    pub fn limit(&self, slices: Range<usize>, t_ns: i64) -> Cause {
        match () {
            () if self.others(slices) >= self.rules.shared => Cause::Competing,
            () if self.way.fall(t_ns).is_some() => Cause::RateStep,
            () => Cause::LinkRate,
        }
    }

    /// Whether the link was idle for most of a stretch of time.
    pub fn is_idle(&self, from_ns: i64, to_ns: i64) -> bool {
        let mut busy_ns: i64 = 0;
        self.slices.spread(from_ns, to_ns, |index, ns| {
            let load = &self.way.all[index];
            busy_ns = busy_ns.saturating_add(load.queued_ns.max(load.out_ns).min(ns));
        });
        busy_ns < since(to_ns, from_ns) / 2
    }

    /// Since when the link has not been idle.
    pub fn busy_since(&self, t_ns: i64) -> i64 {
        let last = self.slices.at(t_ns);
        let busy = |index: &usize| {
            let (from, to) = self.slices.span(*index);
            let load = &self.way.all[*index];
            load.queued_ns.max(load.out_ns) as f64 > self.rules.busy * since(to, from) as f64
        };
        let first = (0..last).rev().take(BUSY_MAX).take_while(busy).last().unwrap_or(last);
        self.slices.span(first).0
    }

    /// The packets that came to the link within a stretch of time.
    pub fn within(&self, from_ns: i64, to_ns: i64) -> &[&'v LinkRow] {
        let at = |t_ns: i64| self.rows.partition_point(|row| row.t_ns < t_ns);
        &self.rows[at(from_ns)..at(to_ns).max(at(from_ns))]
    }

    /// The share of bytes that others had in these slices, of all that went into service out of the link's queue.
    pub fn others_in_queue(&self, slices: Range<usize>) -> f64 {
        let bytes = |loads: &[Load]| {
            let loads = loads.get(slices.clone()).unwrap_or_default();
            super::total(loads.iter().map(|load| load.bytes))
        };
        share_of_others(bytes(&self.own), bytes(&self.way.all))
    }

    /// The same of all that went into service on the medium, by whatever station; without a segment the same as
    /// [`others_in_queue`](Self::others_in_queue).
    pub fn others(&self, slices: Range<usize>) -> f64 {
        let bytes =
            |all: &[i64]| super::total(all.get(slices.clone()).unwrap_or_default().iter().copied());
        share_of_others(bytes(&self.of_medium), bytes(&self.way.medium))
    }
}

fn share_of_others(own: i64, all: i64) -> f64 {
    if all > 0 { (1.0 - own as f64 / all as f64).max(0.0) } else { 0.0 }
}

/// Bytes by slice of all directions of each segment together.
fn sums<'s, 'b>(ways: impl Iterator<Item = (&'s str, &'b [i64])>) -> BTreeMap<&'s str, Vec<i64>> {
    let mut sums: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (segment, bytes) in ways {
        let sums = sums.entry(segment).or_insert_with(|| vec![0; bytes.len()]);
        for (sum, bytes) in sums.iter_mut().zip(bytes) {
            *sum = sum.saturating_add(*bytes);
        }
    }
    sums
}

impl<'v> Way<'v> {
    /// The packets of some flows, flow by flow.
    fn rows_of(&self, flows: &[String]) -> impl Iterator<Item = &'v LinkRow> {
        flows.iter().filter_map(|flow| self.flows.get(flow.as_str())).flatten().copied()
    }

    fn load(&self, rows: &[&LinkRow], slices: Slices) -> Vec<Load> {
        let mut loads = vec![Load::default(); slices.count];
        for (from, to) in self.outages(slices.end_ns) {
            slices.spread(from, to, |index, ns| loads[index].out_ns += ns);
        }
        let mut queued_until = 0;
        for row in rows {
            if let (Some(how), Some(load)) = (self.dropped(row), loads.get_mut(slices.at(row.t_ns)))
            {
                load.drops.count(how);
            }
            if let (Some(due), Some(left)) = (row.scheduled_ns, row.departed_ns) {
                slices.spread(due, left, |index, ns| {
                    let late = &mut loads[index].late_ns;
                    *late = (*late).max(ns);
                });
            }
            let Some(dequeued) = row.dequeued_ns else { continue };
            if let Some(load) = loads.get_mut(slices.at(dequeued)) {
                load.bytes = load.bytes.saturating_add(row.size_bytes);
            }
            let until = dequeued.saturating_add(self.service_ns(row, dequeued));
            slices.spread(row.t_ns.max(queued_until), until, |index, ns| {
                loads[index].queued_ns += ns;
            });
            queued_until = queued_until.max(until);
        }
        loads
    }

    /// How a packet was kept from its receiver. A queue that holds little because the rate has fallen is no policer.
    pub fn dropped(&self, row: &LinkRow) -> Option<Dropped> {
        match Dropped::of(row, self.rules)? {
            Dropped::Policed if self.fall(row.t_ns).is_some() => Some(Dropped::Overflowed),
            how => Some(how),
        }
    }

    /// How long a packet is in service; 0 without a rate.
    fn service_ns(&self, row: &LinkRow, t_ns: i64) -> i64 {
        let rate = self.rate_bps(t_ns).filter(|rate| *rate > 0.0);
        rate.map_or(0, |rate| (row.size_bytes as f64 * 8e9 / rate) as i64)
    }

    /// From the end of service to the other end. Service is at the lowest rate of that time.
    fn propagation_ns(&self, row: &LinkRow) -> Option<i64> {
        let (dequeued, due) = (row.dequeued_ns?, row.scheduled_ns?);
        let least = self.in_force(dequeued, due).map(|(_, rate)| *rate).min_by(f64::total_cmp);
        if row.attempts.is_some() || least.is_some_and(|rate| rate <= 0.0) {
            return None;
        }
        let service = least.map_or(0, |rate| (row.size_bytes as f64 * 8e9 / rate) as i64);
        Some(since(since(due, dequeued), service).max(0))
    }

    /// The rates of a stretch of time, each with when it began.
    fn in_force(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &(i64, f64)> {
        let first = self.rates.partition_point(|(at, _)| *at <= from_ns).saturating_sub(1);
        let last = self.rates.partition_point(|(at, _)| *at < to_ns);
        self.rates[first..last.max(first)].iter()
    }

    /// When it carried nothing.
    pub fn outages(&self, end_ns: i64) -> impl Iterator<Item = (i64, i64)> {
        let ends = self.rates.iter().skip(1).map(|next| next.0).chain([end_ns]);
        let spans = self.rates.iter().zip(ends);
        spans.filter(|((_, rate), _)| *rate <= 0.0).map(|((from, _), to)| (*from, to))
    }

    /// Whether it carried nothing at some time of a stretch.
    pub fn is_out(&self, from_ns: i64, to_ns: i64) -> bool {
        self.in_force(from_ns, to_ns).any(|(_, rate)| *rate <= 0.0)
    }

    /// For how much of a stretch it carried nothing.
    pub fn out_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let overlap = |(from, to): (i64, i64)| since(to.min(to_ns), from.max(from_ns)).max(0);
        super::total(self.outages(to_ns).map(overlap))
    }

    /// The rate that it was to have at a time.
    pub fn rate_bps(&self, t_ns: i64) -> Option<f64> {
        let after = self.rates.partition_point(|(from, _)| *from <= t_ns);
        after.checked_sub(1).map(|index| self.rates[index].1)
    }

    /// The fall that its rate at a time comes from.
    pub fn fall(&self, t_ns: i64) -> Option<&Fall> {
        self.falls.iter().rev().find(|fall| (fall.from_ns..fall.to_ns).contains(&t_ns))
    }
}

/// From when on which rate.
fn rates(link: &Direction) -> Vec<(i64, f64)> {
    let asked = link.asked_stretches().into_iter().flatten();
    let asked = asked.map(|it| Span { from_ns: it.from_ns, to_ns: it.to_ns, bps: it.value });
    without_rounding(&asked.collect::<Vec<_>>())
}

impl Crossed {
    /// Of a viewer, with what carried its media and what goes back to the sender.
    pub(super) fn new(subject: &str, data: &[Carried], back: &[Carried]) -> Self {
        let of = |ways: &[Carried]| {
            let rows = ways.iter().filter_map(|way| way.rows.first());
            rows.map(|row| (row.link.to_string(), row.direction)).collect()
        };
        Self { subject: subject.to_owned(), data: of(data), back: of(back) }
    }
}
