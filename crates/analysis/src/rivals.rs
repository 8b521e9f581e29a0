//! Real-time video and TCP that share a path: how the flows divide it between them.
//!
//! Video is RTP under a rate control, WebRTC or Media over QUIC. Video over the latter two competes if it shares a link
//! with another flow, in the direction in which it sends more: a relay's two sides need not.
//!
//! Rates are those at which IP packets of a flow were delivered by the link that delivered the fewest
//! of its bytes: the last one, or the narrowest. They are looked at per *GoP time*, 30 frames at
//! 29.97 per second, as MPEG-TFRCP's authors did, from the first video packet on.
//!
//! At a hub, what the stations sent has both directions of a flow. The direction that delivered more bytes is the flow;
//! the other one, acknowledgements or reports, is no rival and no video.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use suiro_record::flows;
use suiro_record::tables::{FlowRow, LinkRow, RateRow};
use suiro_record::words::{Carries, Transport, Verdict};

use crate::bins::Bins;
use crate::group::grouped;
use crate::guess;
use crate::held::{self, Stretch, hold};
use crate::link::Direction;
use crate::settling;
use crate::stats::Distribution;
use crate::view::View;

/// 30 frames at 30000/1001 per second.
const GOP_NS: i64 = 1_001_000_000;

/// GoP times over which rates are averaged for short-term fairness.
const SHORT: usize = 5;

/// GoP times in a row that must be fair for flows to have converged.
const SETTLED: usize = 10;

/// Jain's index from which on rates count as fair.
const FAIR: f64 = 0.9;

/// GoP times between two changes of the capacity in which something can settle.
const SPAN_LEAST: usize = 15;

/// A flow of less than this share of the bytes of the busiest of its kind is none that competes.
const LEAST_SHARE: f64 = 0.01;

/// A TCP flow that lasts for less than this share of the time is none that competes: a page of the web.
const LEAST_TIME: f64 = 0.5;

/// What a flow carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Video,
    Tcp,
}

/// What carries a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Over {
    /// RTP under a rate control.
    Rtp,
    Webrtc,
    /// Media over QUIC.
    Moq,
    Tcp,
}

impl Over {
    /// Whether its packets count in either direction of a link: a camera behind a link sends up, too.
    const fn goes_anywhere(self) -> bool {
        matches!(self, Self::Webrtc | Self::Moq)
    }

    const fn kind(self) -> Kind {
        match self {
            Self::Tcp => Kind::Tcp,
            Self::Rtp | Self::Webrtc | Self::Moq => Kind::Video,
        }
    }
}

/// What the endpoints of a trial reported about their flows.
pub(crate) struct Told<'a> {
    flows: &'a [FlowRow],
    webrtc: BTreeSet<&'a str>,
    moq: BTreeSet<&'a str>,
}

impl<'a> Told<'a> {
    pub fn of(view: &View<'a>) -> Self {
        let records = view.records;
        Self {
            flows: &records.flows,
            webrtc: records.webrtc_sessions.iter().map(|row| &*row.endpoint).collect(),
            moq: records.moq_sessions.iter().map(|row| &*row.endpoint).collect(),
        }
    }
}

/// One flow.
struct Flow {
    over: Over,
    /// The links that its packets met, by their place in the list.
    links: BTreeSet<usize>,
    /// When each packet was delivered, and its bits.
    delivered: Vec<(i64, f64)>,
    /// Packets that the link dropped.
    dropped: usize,
    /// Bits per second in each whole GoP time.
    rates: Vec<f64>,
}

impl Flow {
    fn kind(&self) -> Kind {
        self.over.kind()
    }

    /// From its first packet to its last.
    fn lasted_ns(&self) -> i64 {
        let ends = self.delivered.first().zip(self.delivered.last());
        ends.map_or(0, |(first, last)| last.0.saturating_sub(first.0))
    }
}

/// GoP times that are looked at: no trial takes longer than a day.
const GOPS_MAX: usize = 24 * 3600;

/// All flows towards viewers, and what the senders of video saw.
pub(crate) struct Rivals<'a> {
    flows: Vec<Flow>,
    /// Rows of each sender, sorted.
    senders: BTreeMap<&'a str, Vec<&'a RateRow>>,
    duration_ns: i64,
    /// When the first video packet was delivered.
    begin_ns: i64,
    /// When the rate of the link with the least changes.
    changes: Vec<i64>,
}

impl<'a> Rivals<'a> {
    /// `None` if no video was sent under a rate control, nor any over WebRTC or Media over QUIC that shares a link.
    pub fn of(view: &View<'a>) -> Option<Self> {
        let duration_ns = view.duration_ns;
        let within = view.within(&view.records.rate, |row| row.t_ns);
        let senders = grouped(within, |row| &*row.endpoint, |row| row.t_ns);
        let told = Told::of(view);
        if senders.is_empty() && told.webrtc.is_empty() && told.moq.is_empty() {
            return None;
        }
        let mut flows = rivals(view.links(), &told);
        if senders.is_empty() && flows.iter().all(|flow| flow.kind() == Kind::Tcp) {
            return None;
        }
        let firsts = flows.iter().filter(|flow| flow.kind() == Kind::Video);
        let begin_ns = firsts.filter_map(|flow| Some(flow.delivered.first()?.0)).min();
        let begin_ns = begin_ns.unwrap_or(0);
        let least_ns = LEAST_TIME * duration_ns.saturating_sub(begin_ns) as f64;
        flows.retain(|flow| flow.kind() == Kind::Video || flow.lasted_ns() as f64 >= least_ns);
        for flow in &mut flows {
            flow.rates = rates(&flow.delivered, begin_ns, duration_ns);
        }
        let changes = settling::changes(view.links());
        Some(Self { flows, senders, duration_ns, begin_ns, changes })
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(move |flow| flow.kind() == kind)
    }

    /// How many flows there are.
    pub fn count(&self, kind: Kind) -> f64 {
        self.of_kind(kind).count() as f64
    }

    /// Mean rate of a flow of this kind.
    pub fn mean_bps(&self, kind: Kind) -> Option<f64> {
        mean(self.of_kind(kind).filter_map(|flow| mean(flow.rates.iter().copied())))
    }

    /// Video over TCP.
    pub fn friendliness(&self) -> Option<f64> {
        Some(self.mean_bps(Kind::Video)? / self.mean_bps(Kind::Tcp)?)
    }

    /// The rate of all flows over this, as a share of that of all flows together; `None` without such a flow, or if it
    /// is alone.
    pub fn share_ratio(&self, over: Over) -> Option<f64> {
        let rate = |flow: &Flow| mean(flow.rates.iter().copied());
        let all: f64 = self.flows.iter().filter_map(rate).sum();
        let own = self.flows.iter().filter(|flow| flow.over == over).filter_map(rate);
        let own = own.reduce(|sum, rate| sum + rate)?;
        (self.flows.len() > 1 && all > 0.0).then(|| own / all)
    }

    /// The least and the greatest mean rate of a flow, over that of an equal share; `None` of one flow.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let rates: Vec<f64> =
            self.flows.iter().filter_map(|flow| mean(flow.rates.iter().copied())).collect();
        let equal = mean(rates.iter().copied()).filter(|equal| *equal > 0.0)?;
        let least = rates.iter().copied().reduce(f64::min)?;
        let most = rates.iter().copied().reduce(f64::max)?;
        (rates.len() > 1).then(|| (least / equal, most / equal))
    }

    /// Jain's index of the mean rates of all flows.
    pub fn jain(&self) -> Option<f64> {
        let means: Option<Vec<f64>> =
            self.flows.iter().map(|flow| mean(flow.rates.iter().copied())).collect();
        jain(&means?)
    }

    /// Jain's index of rates averaged over a few GoP times, at each GoP time from the first such on.
    fn short_jain(&self) -> Vec<Option<f64>> {
        let count = self.flows.iter().map(|flow| flow.rates.len()).min().unwrap_or(0);
        let windows = 0..(count + 1).saturating_sub(SHORT);
        let index = |from: usize| {
            let means = self
                .flows
                .iter()
                .filter_map(|flow| mean(flow.rates[from..from + SHORT].iter().copied()));
            jain(&means.collect::<Vec<_>>())
        };
        windows.map(index).collect()
    }

    /// Mean of the short-term index.
    pub fn jain_short(&self) -> Option<f64> {
        mean(self.short_jain().into_iter().flatten())
    }

    /// Seconds until the flows have become fair and stayed so for a while.
    pub fn convergence_s(&self) -> Option<f64> {
        let fair: Vec<bool> = self
            .short_jain()
            .iter()
            .map(|index| index.is_some_and(|index| index >= FAIR))
            .collect();
        let begins = fair.windows(SETTLED).position(|fair| fair.iter().all(|fair| *fair))?;
        Some(begins as f64 * GOP_NS as f64 / 1e9)
    }

    /// Jain's index of the video flows, while all of them send.
    pub fn self_fairness(&self) -> Option<f64> {
        let flows: Vec<&Flow> = self.of_kind(Kind::Video).collect();
        let count = flows.iter().map(|flow| flow.rates.len()).min().filter(|_| flows.len() > 1)?;
        let all_send = |gop: &usize| flows.iter().all(|flow| flow.rates[*gop] > 0.0);
        let gops: Vec<usize> = (0..count).filter(all_send).collect();
        let mean_of = |flow: &&Flow| mean(gops.iter().map(|gop| flow.rates[*gop]));
        let means: Option<Vec<f64>> = flows.iter().map(mean_of).collect();
        jain(&means?)
    }

    /// Seconds from a change of the capacity until the rate of all video flows has settled.
    pub fn settling_s(&self) -> Option<f64> {
        let count = self.of_kind(Kind::Video).map(|flow| flow.rates.len()).min()?;
        let sum = |gop: usize| self.of_kind(Kind::Video).map(|flow| flow.rates[gop]).sum::<f64>();
        let total: Vec<f64> = (0..count).map(sum).collect();
        let place = |t_ns: &i64| {
            let gops = t_ns.saturating_sub(self.begin_ns) / GOP_NS;
            usize::try_from(gops).unwrap_or(0).min(count)
        };
        let mut bounds: Vec<usize> =
            std::iter::once(0).chain(self.changes.iter().map(place)).collect();
        bounds.push(count);
        let spans = bounds.windows(2).filter(|span| span[1] >= span[0] + SPAN_LEAST);
        mean(
            spans
                .map(|span| settling::first(&total[span[0]..span[1]]) as f64 * GOP_NS as f64 / 1e9),
        )
    }

    /// Standard deviation over mean of a flow's rate per GoP time, mean over the flows of this kind.
    pub fn variation(&self, kind: Kind) -> Option<f64> {
        mean(self.of_kind(kind).filter_map(|flow| variation(&flow.rates)))
    }

    /// Share of the video's packets that links dropped.
    pub fn video_loss(&self) -> Option<f64> {
        let dropped: usize = self.of_kind(Kind::Video).map(|flow| flow.dropped).sum();
        let delivered: usize = self.of_kind(Kind::Video).map(|flow| flow.delivered.len()).sum();
        let all = dropped + delivered;
        (all > 0).then(|| dropped as f64 / all as f64)
    }

    /// Round-trip times that the senders of video saw, in milliseconds.
    pub fn rtt_ms(&self) -> Distribution {
        let rows = self.senders.values().flatten();
        Distribution::equal(rows.filter_map(|row| Some(row.rtt_ns? as f64 / 1e6)))
    }

    /// Mean rate of a flow of this kind in each bin.
    pub fn rate_bins(&self, kind: Kind, bins: &Bins) -> Vec<Option<f64>> {
        let count = self.count(kind);
        let all = self.of_kind(kind).flat_map(|flow| flow.delivered.iter().copied());
        let per_flow = |bits: f64| (count > 0.0).then(|| bits / bins.width_s() / count);
        bins.sum(all).into_iter().map(per_flow).collect()
    }

    /// For how long a target stood, in seconds: from one change to the next. What the trial's start or end cuts off does
    /// not count.
    pub fn interval_s(&self) -> Option<f64> {
        mean(self.senders.values().flat_map(|rows| {
            let changes = rows.windows(2).filter(|pair| pair[0].target_bps != pair[1].target_bps);
            let times: Vec<i64> = changes.map(|pair| pair[1].t_ns).collect();
            let spans = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 / 1e9);
            spans.collect::<Vec<_>>()
        }))
    }

    /// Standard deviation over mean of what the rate control allows, over time; mean over the senders.
    pub fn target_variation(&self) -> Option<f64> {
        mean(self.senders.values().filter_map(|rows| {
            let known = rows.iter().map(|row| (row.t_ns, row.target_bps as f64));
            let stretches = hold(known, self.duration_ns, self.duration_ns);
            let targets = held::distribution(&stretches, |target| Some(*target));
            let squares = held::distribution(&stretches, |target| Some(target * target));
            let mean = targets.mean().filter(|mean| *mean > 0.0)?;
            Some((squares.mean()? - mean * mean).max(0.0).sqrt() / mean)
        }))
    }

    /// What `value` makes of the senders' rows, each standing until the next.
    pub fn stretches(&self, value: impl Fn(&RateRow) -> Option<f64>) -> Vec<Stretch<f64>> {
        let mut all = Vec::new();
        for rows in self.senders.values() {
            let known = rows.iter().filter_map(|row| Some((row.t_ns, value(row)?)));
            all.extend(hold(known, self.duration_ns, self.duration_ns));
        }
        all
    }

    /// The share of packets lost, as the senders' reports say, and when.
    pub fn losses(&self) -> impl Iterator<Item = (i64, f64)> {
        let rows = self.senders.values().flatten();
        rows.filter_map(|row| Some((row.t_ns, row.loss_ratio?)))
    }
}

/// What sets a flow apart, and the host that sends.
pub(crate) type Way = (Over, String, String);

/// The flows that compete.
fn rivals(links: &[Direction], told: &Told<'_>) -> Vec<Flow> {
    let mut found: BTreeMap<Way, Flow> = BTreeMap::new();
    for (place, link) in links.iter().enumerate() {
        let mut here: BTreeMap<Way, Flow> = BTreeMap::new();
        let mut keys: BTreeMap<&str, Option<Way>> = BTreeMap::new();
        for row in &link.rows {
            let key = keys.entry(&row.flow).or_insert_with(|| way(told, &row.flow));
            let counts = |key: &Way| link.is_towards_viewers() || key.0.goes_anywhere();
            if let Some(key) = key.clone().filter(counts) {
                let (over, links) = (key.0, [place].into());
                let new = || Flow { over, links, delivered: vec![], dropped: 0, rates: vec![] };
                add(here.entry(key).or_insert_with(new), row, link.duration_ns);
            }
        }
        for (key, flow) in here {
            let fewer = found.get(&key).is_none_or(|other| bits(&flow) < bits(other));
            let before = found.get(&key);
            let dropped = flow.dropped + before.map_or(0, |other| other.dropped);
            let mut links = before.map(|other| other.links.clone()).unwrap_or_default();
            links.extend(&flow.links);
            if fewer {
                found.insert(key.clone(), flow);
            }
            found.entry(key).and_modify(|flow| (flow.dropped, flow.links) = (dropped, links));
        }
    }
    let found = busier(found);
    let most = |kind| found.iter().filter(|flow| flow.kind() == kind).map(bits).fold(0.0, f64::max);
    let (video, tcp) = (most(Kind::Video), most(Kind::Tcp));
    let least = |kind| LEAST_SHARE * if kind == Kind::Video { video } else { tcp };
    let flows: Vec<Flow> =
        found.into_iter().filter(|flow| bits(flow) > least(flow.kind())).collect();
    let mut flows = competing(flows, |place| links[place].at_hub);
    for flow in &mut flows {
        flow.delivered.sort_unstable_by_key(|(t_ns, _)| *t_ns);
    }
    flows
}

/// Those of the flows that compete: video over WebRTC or Media over QUIC only if another flow is on one of its links.
/// All stations of a hub share its medium.
fn competing(flows: Vec<Flow>, is_at_hub: impl Fn(usize) -> bool) -> Vec<Flow> {
    let shares = |at: usize, flow: &Flow| {
        let others = flows.iter().enumerate().filter(|(other, _)| *other != at);
        let mut links = others.flat_map(|(_, other)| &other.links);
        links.any(|place| flow.links.contains(place))
            || flows.len() > 1 && flow.links.iter().any(|place| is_at_hub(*place))
    };
    let competes = |(at, flow): (usize, &Flow)| match flow.over {
        Over::Rtp | Over::Tcp => true,
        Over::Webrtc | Over::Moq => shares(at, flow),
    };
    let kept: Vec<bool> = flows.iter().enumerate().map(competes).collect();
    flows.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(flow, _)| flow).collect()
}

/// Of the directions of each flow, the one that delivered the most.
fn busier(ways: BTreeMap<Way, Flow>) -> Vec<Flow> {
    let mut flows: BTreeMap<(Over, String), Flow> = BTreeMap::new();
    for ((over, name, _), flow) in ways {
        match flows.entry((over, name)) {
            Entry::Vacant(entry) => drop(entry.insert(flow)),
            Entry::Occupied(mut entry) if bits(entry.get()) < bits(&flow) => {
                drop(entry.insert(flow));
            }
            Entry::Occupied(_) => {}
        }
    }
    flows.into_values().collect()
}

fn add(flow: &mut Flow, row: &LinkRow, duration_ns: i64) {
    match (row.verdict, row.departed_ns.or(row.scheduled_ns)) {
        (Verdict::Delivered, Some(t_ns)) if (0..duration_ns).contains(&t_ns) => {
            flow.delivered.push((t_ns, row.size_bytes as f64 * 8.0));
        }
        (Verdict::Dropped, _) => flow.dropped += 1,
        _ => {}
    }
}

fn bits(flow: &Flow) -> f64 {
    flow.delivered.iter().map(|(_, bits)| bits).sum()
}

/// What a packet's flow is, what sets it apart, and which host sent the packet.
pub(crate) fn way(told: &Told<'_>, flow: &str) -> Option<Way> {
    let (over, name) = key(told, flow)?;
    let (from, _) = guess::ends(flow)?;
    let host = from.rsplit_once(':').map_or(from, |(host, _)| host);
    Some((over, name, host.to_owned()))
}

/// What a flow is, and what sets it apart: video and the reports about it, as one endpoint reported them,
/// are one flow; each connection of TCP, of WebRTC and of QUIC is one, with what comes back. What no endpoint reported
/// does not compete, nor do pages of the web.
fn key(told: &Told<'_>, flow: &str) -> Option<(Over, String)> {
    if told.flows.is_empty() {
        let (protocol, key) = guess::rival(flow)?;
        let over = if protocol == Transport::Tcp { Over::Tcp } else { Over::Rtp };
        return Some((over, key));
    }
    let row = flows::find_named(told.flows, flow)?;
    let connection = |over| Some((over, guess::connection(guess::ends(flow)?)));
    match (row.protocol, row.carries) {
        (Transport::Udp, Carries::Video) if told.webrtc.contains(&*row.endpoint) => {
            connection(Over::Webrtc)
        }
        (Transport::Udp, Carries::Video) if told.moq.contains(&*row.endpoint) => {
            connection(Over::Moq)
        }
        (Transport::Udp, Carries::Video | Carries::Feedback) => {
            Some((Over::Rtp, row.endpoint.to_string()))
        }
        (Transport::Udp, _) | (Transport::Tcp, Carries::Web | Carries::Control) => None,
        (Transport::Tcp, _) => connection(Over::Tcp),
    }
}

/// Bits per second in each whole GoP time from `begin_ns` on.
fn rates(delivered: &[(i64, f64)], begin_ns: i64, end_ns: i64) -> Vec<f64> {
    let count = usize::try_from((end_ns.saturating_sub(begin_ns)) / GOP_NS).unwrap_or(0);
    let count = count.min(GOPS_MAX);
    let mut rates = vec![0.0; count];
    for (t_ns, bits) in delivered.iter().filter(|(t_ns, _)| *t_ns >= begin_ns) {
        let place = usize::try_from(t_ns.saturating_sub(begin_ns) / GOP_NS).ok();
        if let Some(rate) = place.and_then(|place| rates.get_mut(place)) {
            *rate += bits * 1e9 / GOP_NS as f64;
        }
    }
    rates
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// (Σx)² ∕ (n·Σx²): Jain, Chiu and Hawe, "A quantitative measure of fairness", 1984.
fn jain(rates: &[f64]) -> Option<f64> {
    let (sum, squares) =
        rates.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

fn variation(rates: &[f64]) -> Option<f64> {
    let mean = mean(rates.iter().copied())?;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let degrees = rates.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    (mean > 0.0).then(|| (squares / degrees as f64).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(jain(&[1.0, 1.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0]), Some(0.5));
        assert_eq!(jain(&[3.0, 1.0]), Some(0.8));
        assert_eq!(jain(&[0.0]), None);
        // Mean 4, squares 4 + 4 = 8, n − 1 = 1.
        assert_eq!(variation(&[2.0, 6.0]), Some(8f64.sqrt() / 4.0));
        assert_eq!(variation(&[2.0]), None);
    }

    #[test]
    fn what_endpoints_reported_goes_before_ports() {
        let row = |endpoint: &str, port: u16, protocol, carries| FlowRow {
            t_ns: suiro_units::Time::ZERO,
            endpoint: endpoint.into(),
            role: suiro_record::words::FlowRole::Sender,
            protocol,
            local: format!("*:{port}").into(),
            remote: format!("10.0.0.2:{port}").into(),
            carries,
            flows: 1,
            closed_ns: None,
            peer: None,
        };
        let (udp, tcp) = (Transport::Udp, Transport::Tcp);
        let told = [
            row("call", 6000, udp, Carries::Video),
            row("phone", 6001, udp, Carries::Video),
            row("film", 5004, udp, Carries::Video),
            row("film", 5005, udp, Carries::Feedback),
            row("other", 5007, udp, Carries::Video),
            row("noise", 9, udp, Carries::Load),
            row("load", 4000, tcp, Carries::Load),
            row("web", 4001, tcp, Carries::Web),
        ];
        let told = Told { flows: &told, webrtc: ["call"].into(), moq: ["phone"].into() };
        let of = |port: u16| key(&told, &format!("udp 10.0.0.1:{port}>10.0.0.2:{port}"));
        assert_eq!(of(5004), Some((Over::Rtp, "film".into())));
        assert_eq!(of(5005), of(5004));
        assert_eq!(of(5007), Some((Over::Rtp, "other".into())));
        assert_eq!((of(5006), of(9)), (None, None));
        assert_eq!(of(6000), Some((Over::Webrtc, "10.0.0.1:6000>10.0.0.2:6000".into())));
        assert_eq!(of(6001), Some((Over::Moq, "10.0.0.1:6001>10.0.0.2:6001".into())));
        let of = |port: u16| key(&told, &format!("tcp 10.0.0.1:{port}>10.0.0.2:{port}"));
        assert_eq!(of(4000), Some((Over::Tcp, "10.0.0.1:4000>10.0.0.2:4000".into())));
        assert_eq!(key(&told, "tcp 10.0.0.2:4000>10.0.0.1:4000"), of(4000), "its acknowledgements");
        assert_eq!((of(4001), of(4002)), (None, None));
        assert_eq!(key(&told, "icmp 10.0.0.1>10.0.0.2"), None);
    }

    #[test]
    fn only_whole_gop_times_count_from_the_first_video_packet_on() {
        let at = |gops: f64| (gops * GOP_NS as f64) as i64;
        let delivered = [(at(0.5), 9.0), (at(1.0), 1001.0), (at(1.9), 1001.0), (at(3.2), 7.0)];
        assert_eq!(rates(&delivered, at(1.0), at(3.5)), [2000.0, 0.0]);
    }

    proptest! {
        #[test]
        fn jain_lies_between_one_of_n_and_one(rates in prop::collection::vec(0.001..1e9f64, 1..20)) {
            let index = jain(&rates).unwrap();
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / rates.len() as f64 - 1e-9);
        }
    }
}
