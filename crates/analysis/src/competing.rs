//! The flows that compete for links: which packets are one flow, and which flows count.
//!
//! A link carries the media of some flows in one direction and what comes back in the other, a hub both in one. The
//! direction of a flow that delivered more bytes is the flow; the other one, acknowledgements or reports, is no rival
//! and no video.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use suiro_record::flows;
use suiro_record::tables::{FlowRow, LinkRow};
use suiro_record::words::{Carries, Transport, Verdict};

use crate::guess;
use crate::link::Direction;
use crate::view::View;

/// A flow of less than this share of the bytes of the busiest of its kind is none that competes.
const LEAST_SHARE: f64 = 0.01;

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
    /// Whether it counts even if it goes up only: a camera behind a link may send to a relay or to another camera.
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

    /// Whether there were connections of WebRTC or of Media over QUIC.
    pub fn connects(&self) -> bool {
        !self.webrtc.is_empty() || !self.moq.is_empty()
    }
}

/// One flow.
pub(crate) struct Flow {
    pub over: Over,
    /// The links that its packets met, by their place in the list.
    links: BTreeSet<usize>,
    /// When each packet was delivered, and its bits.
    pub delivered: Vec<(i64, f64)>,
    /// Those of them that are no reports.
    pub media: Vec<(i64, f64)>,
    /// Packets that the link dropped.
    pub dropped: usize,
    /// Bits per second in each whole GoP time.
    pub rates: Vec<f64>,
    /// In which GoP times it is there.
    pub present: Vec<bool>,
}

impl Flow {
    const fn new(over: Over, links: BTreeSet<usize>) -> Self {
        Self {
            over,
            links,
            delivered: Vec::new(),
            media: Vec::new(),
            dropped: 0,
            rates: Vec::new(),
            present: Vec::new(),
        }
    }

    pub fn kind(&self) -> Kind {
        self.over.kind()
    }

    /// From its first packet to its last.
    pub fn lasted_ns(&self) -> i64 {
        let ends = self.delivered.first().zip(self.delivered.last());
        ends.map_or(0, |(first, last)| last.0.saturating_sub(first.0))
    }
}

/// What sets a flow apart, and the host that sends.
pub(crate) type Way = (Over, String, String);

/// The flows that compete.
pub(crate) fn rivals(links: &[Direction], told: &Told<'_>) -> Vec<Flow> {
    let mut found: BTreeMap<Way, Flow> = BTreeMap::new();
    for (place, link) in links.iter().enumerate() {
        let mut here: BTreeMap<Way, Flow> = BTreeMap::new();
        let mut keys: BTreeMap<&str, Option<(Way, bool)>> = BTreeMap::new();
        for row in &link.rows {
            let key = keys
                .entry(&row.flow)
                .or_insert_with(|| Some((way(told, &row.flow)?, is_report(told, &row.flow))));
            if let Some((key, is_report)) = key.clone() {
                let (over, links) = (key.0, [place].into());
                let flow = here.entry(key).or_insert_with(|| Flow::new(over, links));
                add(flow, row, is_report, link.duration_ns);
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
    let mut found = busier(found);
    // RTP and TCP compete on their way to viewers, not what viewers themselves send.
    let to_viewers = |place: &usize| links[*place].is_towards_viewers();
    found.retain(|flow| flow.over.goes_anywhere() || flow.links.iter().any(to_viewers));
    let most = |kind| found.iter().filter(|flow| flow.kind() == kind).map(bits).fold(0.0, f64::max);
    let (video, tcp) = (most(Kind::Video), most(Kind::Tcp));
    let least = |kind| LEAST_SHARE * if kind == Kind::Video { video } else { tcp };
    let flows: Vec<Flow> =
        found.into_iter().filter(|flow| bits(flow) > least(flow.kind())).collect();
    let mut flows = competing(flows, |place| links[place].at_hub);
    for flow in &mut flows {
        flow.delivered.sort_unstable_by_key(|(t_ns, _)| *t_ns);
        flow.media.sort_unstable_by_key(|(t_ns, _)| *t_ns);
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

fn add(flow: &mut Flow, row: &LinkRow, is_report: bool, duration_ns: i64) {
    match (row.verdict, row.departed_ns.or(row.scheduled_ns)) {
        (Verdict::Delivered, Some(t_ns)) if (0..duration_ns).contains(&t_ns) => {
            let packet = (t_ns, row.size_bytes as f64 * 8.0);
            flow.delivered.push(packet);
            if !is_report {
                flow.media.push(packet);
            }
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

/// Whether the packets of a flow are reports, as an endpoint reported it: they go on while video pauses.
fn is_report(told: &Told<'_>, flow: &str) -> bool {
    let row = flows::find_named(told.flows, flow);
    row.is_some_and(|row| row.carries == Carries::Feedback)
}

/// By what a flow goes, and its name. Video and the reports about it have one name, that of the endpoint that reported both. Each connection
/// of TCP, of WebRTC and of QUIC has one, with what comes back. What no endpoint reported does not compete, nor do pages of the web.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
