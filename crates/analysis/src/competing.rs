//! The flows that compete for links: which packets are one flow, and which flows count.
//!
//! A link carries the media of some flows in one direction and what comes back in the other, a hub both in one. The
//! direction of a flow in which more bytes were sent is the flow; the other one, acknowledgements or reports, is no rival
//! and no video.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use suiro_record::Trial;
use suiro_record::flows;
use suiro_record::tables::FlowRow;
use suiro_record::words::{Carries, Transport};

use crate::backlog::Backlogs;
use crate::flow::{Flow, Kind, Over};
use crate::link::Direction;
use crate::{Records, guess, pauses, presence};

/// A flow is none that competes if its sender sent less than this share of the bytes of the busiest of its kind.
const LEAST_SHARE: f64 = 0.01;

/// It competes all the same if it had more to send for this share of the time: then it could not.
const MOSTLY: f64 = 0.5;

/// A TCP flow that lasts for less than this share of the time from the first video packet on is none that competes: a page of
/// the web, or one that joined late.
const LEAST_TIME: f64 = 0.5;

/// What the endpoints of a trial reported about their flows.
pub(crate) struct Told<'a> {
    flows: &'a [FlowRow],
    webrtc: BTreeSet<&'a str>,
    moq: BTreeSet<&'a str>,
}

impl<'a> Told<'a> {
    pub fn of(records: &'a Records) -> Self {
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

/// What sets a flow apart, and the host that sends.
type Way = (Over, String, String);

/// The real-time video and the TCP of a trial. Those that are on a path of their own do not compete.
pub(crate) fn rivals<'a>(
    links: &[Direction<'a>],
    (trial, records): (&Trial, &'a Records),
    duration_ns: i64,
) -> Vec<Flow<'a>> {
    let told = Told::of(records);
    let mut flows = busier(met(links, &told));
    // RTP and TCP compete on their way to viewers, not what viewers themselves send.
    let to_viewers = |place: usize| links[place].is_towards_viewers();
    flows.retain(|flow| flow.over.goes_anywhere() || flow.links().any(to_viewers));
    let most = |kind| {
        let of_kind = flows.iter().filter(|flow| flow.kind() == kind);
        of_kind.map(Flow::sent_bits).fold(0.0, f64::max)
    };
    let (video, tcp) = (most(Kind::Video), most(Kind::Tcp));
    let least = |kind| LEAST_SHARE * if kind == Kind::Video { video } else { tcp };
    if flows.is_empty() {
        return flows;
    }
    let backlogs = Backlogs::of(records, duration_ns);
    flows.retain_mut(|flow| {
        let backlog = backlogs.of_flow(flow);
        // Of RTP, a silence shows that it pauses.
        let pauses = match flow.over {
            Over::Webrtc | Over::Moq => pauses::of_connection(trial, told.flows, flow.flow),
            Over::Rtp | Over::Tcp => Vec::new(),
        };
        flow.spans = presence::spans(flow, backlog.as_ref(), &pauses, duration_ns);
        let began = flow.sent().first().copied().unwrap_or(0);
        let waited = backlog.map_or(0, |backlog| backlog.waited_ns);
        let starves = waited as f64 >= MOSTLY * duration_ns.saturating_sub(began) as f64;
        flow.sent_bits() > 0.0 && (starves || flow.sent_bits() > least(flow.kind()))
    });
    let least_ns = LEAST_TIME * duration_ns.saturating_sub(begin_ns(&flows)) as f64;
    flows.retain(|flow| flow.kind() == Kind::Video || flow.lasted_ns() as f64 >= least_ns);
    let competes: Vec<bool> = (0..flows.len()).map(|at| competes(at, &flows, links)).collect();
    for (flow, competes) in flows.iter_mut().zip(competes) {
        flow.competes = competes;
    }
    flows
}

/// When the first video packet was delivered; if none was, when the first was sent; 0 without video.
pub(crate) fn begin_ns(flows: &[Flow]) -> i64 {
    let video = || flows.iter().filter(|flow| flow.kind() == Kind::Video);
    let delivered = video().flat_map(|flow| flow.delivered()).map(|packet| packet.t_ns).min();
    let sent = || video().filter_map(|flow| flow.sent().first().copied()).min();
    delivered.or_else(sent).unwrap_or(0)
}

/// Each flow in each direction, with all packets of it that met a link.
fn met<'a>(links: &[Direction<'a>], told: &Told<'_>) -> BTreeMap<Way, Flow<'a>> {
    let mut ways: BTreeMap<Way, usize> = BTreeMap::new();
    let mut flows: Vec<(Way, Flow)> = Vec::new();
    let mut keys: BTreeMap<&str, Option<(usize, bool)>> = BTreeMap::new();
    for (place, link) in links.iter().enumerate() {
        for &row in &link.originals {
            let key = keys.entry(&row.flow).or_insert_with(|| {
                let way = way(told, &row.flow)?;
                let at = *ways.entry(way.clone()).or_insert(flows.len());
                if at == flows.len() {
                    let flow = Flow::new(way.0, way.1.clone(), &row.flow);
                    flows.push((way, flow));
                }
                Some((at, is_report(told, &row.flow)))
            });
            if let Some((at, is_report)) = *key {
                flows[at].1.add(place, row, is_report, link.period.to_ns);
            }
        }
    }
    flows.into_iter().collect()
}

/// Of the directions of each flow, the one in which more was sent.
fn busier(ways: BTreeMap<Way, Flow<'_>>) -> Vec<Flow<'_>> {
    let mut flows: BTreeMap<(Over, String), Flow> = BTreeMap::new();
    for ((over, name, _), flow) in ways {
        match flows.entry((over, name)) {
            Entry::Vacant(entry) => drop(entry.insert(flow)),
            Entry::Occupied(mut entry) if entry.get().sent_bits() < flow.sent_bits() => {
                drop(entry.insert(flow));
            }
            Entry::Occupied(_) => {}
        }
    }
    flows.into_values().collect()
}

/// Whether a flow is compared with others: of video over WebRTC or Media over QUIC, only if another flow is on one of its links,
/// or if it is the only one of all.
fn competes(at: usize, flows: &[Flow], links: &[Direction]) -> bool {
    let flow = &flows[at];
    let shares = |other: &Flow| {
        other.links().any(|theirs| flow.links().any(|own| is_shared(links, own, theirs)))
    };
    match flow.over {
        Over::Rtp | Over::Tcp => true,
        Over::Webrtc | Over::Moq => {
            let mut others = flows.iter().enumerate().filter(|(other, _)| *other != at);
            flows.len() == 1 || others.any(|(_, other)| shares(other))
        }
    }
}

/// Whether what is on one link meets what is on another: all stations of a hub or of another segment share its medium.
fn is_shared(links: &[Direction], one: usize, other: usize) -> bool {
    let (a, b) = (&links[one], &links[other]);
    one == other || a.at_hub && b.at_hub || a.segment.is_some() && a.segment == b.segment
}

/// What a packet's flow is, what sets it apart, and which host sent the packet.
fn way(told: &Told<'_>, flow: &str) -> Option<Way> {
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
