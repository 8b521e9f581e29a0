//! What a flow does to the one that was there before it: shares and harm (Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's
//! fairness index: setting the bar for the deployment of congestion control algorithms", HotNets 2019).
//!
//! Harm compares what a flow had alone with what it has next to the other one. Both are measured in the same trial: alone in the
//! second half of the time before the other one begins, together in the second half of the time from then on.

use std::collections::BTreeMap;
use std::ops::Range;

use suiro_record::words::Verdict;

use crate::competing::{Over, Told, Way, way};
use crate::view::View;

/// The first flow is alone for at least so long, and both are together for as long.
const LEAST_NS: i64 = 10_000_000_000;
/// A flow of less than this share of the bytes of the busiest is none that competes.
const LEAST_SHARE: f64 = 0.01;
/// A flow that ends before this share of the trial is none that competes until the end.
const LASTS: f64 = 0.8;

/// A packet that a link delivered: when, its bits, and how long it was in the link, in ms.
type Packet = (i64, f64, f64);

/// A flow, by the links that it crosses.
#[derive(Default)]
struct Crossing<'a> {
    links: BTreeMap<&'a str, Vec<Packet>>,
    /// Whether one of them leads towards viewers.
    to_viewers: bool,
}

impl Crossing<'_> {
    /// At the link that delivered the fewest bits of it.
    fn narrowest(&self) -> &[Packet] {
        let fewest = |a: &&Vec<Packet>, b: &&Vec<Packet>| bits(a).total_cmp(&bits(b));
        self.links.values().min_by(fewest).map_or(&[], Vec::as_slice)
    }

    fn ends(&self) -> Option<(i64, i64)> {
        let times = || self.narrowest().iter().map(|packet| packet.0);
        times().min().zip(times().max())
    }

    fn rate_bps(&self, within: &Range<i64>) -> f64 {
        let inside = self.narrowest().iter().filter(|packet| within.contains(&packet.0));
        let bits: f64 = inside.map(|packet| packet.1).sum();
        bits * 1e9 / (within.end - within.start) as f64
    }

    /// The mean over packets of the time in links, all of them together; `None` if a link delivered none.
    fn delay_ms(&self, within: &Range<i64>) -> Option<f64> {
        let mean = |packets: &Vec<Packet>| {
            let inside = packets.iter().filter(|packet| within.contains(&packet.0));
            let delays: Vec<f64> = inside.map(|packet| packet.2).collect();
            (!delays.is_empty()).then(|| delays.iter().sum::<f64>() / delays.len() as f64)
        };
        self.links.values().map(mean).sum()
    }
}

fn bits(packets: &[Packet]) -> f64 {
    packets.iter().map(|packet| packet.1).sum()
}

/// A flow that was first, and one that joined it.
pub(crate) struct Newcomer<'a> {
    first: Crossing<'a>,
    second: Crossing<'a>,
    alone: Range<i64>,
    together: Range<i64>,
}

impl<'a> Newcomer<'a> {
    /// `None` unless exactly two flows compete, one of which was alone for a while.
    pub fn of(view: &'a View<'_>) -> Option<Self> {
        let end = view.duration_ns;
        let mut flows = competing(view);
        if flows.len() != 2 {
            return None;
        }
        flows.sort_by_key(|flow| flow.ends().map(|(first, _)| first));
        let second = flows.pop()?;
        let first = flows.pop()?;
        let (began, last) = first.ends()?;
        let (joined, last_of_second) = second.ends()?;
        let lasts = |last: i64| last as f64 >= LASTS * end as f64;
        let is_long = |from: i64, to: i64| to.saturating_sub(from) >= LEAST_NS;
        if !is_long(began, joined)
            || !is_long(joined, end)
            || !lasts(last)
            || !lasts(last_of_second)
        {
            return None;
        }
        let middle = |from: i64, to: i64| from + (to - from) / 2;
        let (alone, together) = (middle(began, joined)..joined, middle(joined, end)..end);
        Some(Self { first, second, alone, together })
    }

    /// The share that the first one has of what both get together.
    pub fn share(&self) -> Option<f64> {
        let (first, second) =
            (self.first.rate_bps(&self.together), self.second.rate_bps(&self.together));
        (first + second > 0.0).then(|| first / (first + second))
    }

    /// What the first one has lost of its rate, as a share of what it had alone.
    pub fn rate_harm(&self) -> Option<f64> {
        let (alone, together) =
            (self.first.rate_bps(&self.alone), self.first.rate_bps(&self.together));
        (alone > 0.0).then(|| ((alone - together) / alone).max(0.0))
    }

    /// What the delay of the first one has grown by, as a share of what it is then.
    pub fn delay_harm(&self) -> Option<f64> {
        let (alone, together) =
            (self.first.delay_ms(&self.alone)?, self.first.delay_ms(&self.together)?);
        (together > 0.0).then(|| ((together - alone) / together).max(0.0))
    }

    /// Of the first one in the links, before and after, in ms.
    pub fn delays_ms(&self) -> (Option<f64>, Option<f64>) {
        (self.first.delay_ms(&self.alone), self.first.delay_ms(&self.together))
    }
}

/// The flows towards viewers that carry much; of the two directions of a flow the busier one.
fn competing<'a>(view: &'a View<'_>) -> Vec<Crossing<'a>> {
    let told = Told::of(view);
    let mut found: BTreeMap<Way, Crossing<'a>> = BTreeMap::new();
    for link in view.links() {
        let mut ways: BTreeMap<&str, Option<Way>> = BTreeMap::new();
        for row in &link.rows {
            let way = ways.entry(&row.flow).or_insert_with(|| way(&told, &row.flow));
            let at = row.departed_ns.or(row.scheduled_ns);
            let (Some(way), Some(at), Verdict::Delivered) = (way, at, row.verdict) else {
                continue;
            };
            if (0..link.duration_ns).contains(&at) {
                let took_ms = at.saturating_sub(row.t_ns) as f64 / 1e6;
                let crossing = found.entry(way.clone()).or_default();
                crossing.to_viewers |= link.is_towards_viewers();
                let packets = crossing.links.entry(link.link).or_default();
                packets.push((at, row.size_bytes as f64 * 8.0, took_ms));
            }
        }
    }
    let mut flows: BTreeMap<(Over, String), Crossing<'a>> = BTreeMap::new();
    for ((over, name, _), crossing) in found {
        let much = bits(crossing.narrowest());
        let before = flows.get(&(over, name.clone())).map_or(0.0, |other| bits(other.narrowest()));
        if much > before {
            flows.insert((over, name), crossing);
        }
    }
    flows.retain(|_, flow| flow.to_viewers);
    let most = flows.values().map(|flow| bits(flow.narrowest())).fold(0.0, f64::max);
    flows.into_values().filter(|flow| bits(flow.narrowest()) > LEAST_SHARE * most).collect()
}
