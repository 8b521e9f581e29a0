//! Segments in a scenario: hubs, Wi-Fi and cellular cells, as links of the topology.

use std::collections::BTreeMap;
use std::ops::Range;

use suiro_link::{LinkConfig, Schedule, SegmentLinks};
use suiro_strict::Bounded;
use suiro_units::Ratio;

use crate::document::{self, Node, entries, in_text};
use crate::header::check_name;
use crate::network::Cell;
use crate::refusal::{Refusal, Span};
use crate::topology::{Cable, HOSTS, Wire, Wiring, no_host};

/// Largest IP packet of an Ethernet frame.
const MTU: u16 = 1500;

/// A segment that could be read.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub name: String,
    /// The stations' hosts, in the order of the file.
    hosts: Vec<String>,
    /// By the name of a station's link: what it does to packets; `None` where that cannot be read.
    pub links: BTreeMap<String, Option<LinkConfig>>,
    /// Of a cell: the host in its centre, and the key that names it.
    centre: Option<(&'static str, String)>,
    /// Of a Wi-Fi cell: the share of the air that others take.
    busy: Option<Schedule<Ratio>>,
}

impl Segment {
    fn link(&self, host: &str) -> String {
        link_of(&self.name, host)
    }
}

/// The name of a station's link.
fn link_of(segment: &str, host: &str) -> String {
    format!("{segment}-{host}")
}

/// Reads `[segments]`. What is wrong goes to `refusals`, whatever the topology.
pub(crate) fn read(
    body: &Node<'_>,
    section: &Node<'_>,
    refusals: &mut Vec<Refusal<Span>>,
) -> Vec<Segment> {
    let mut segments = Vec::new();
    for (name, span, node) in entries(section) {
        check_name(name, span, "a segment", refusals);
        let read = document::read(node.clone(), &format!("[segments.{name}]"), &[]);
        let spec: suiro_link::SegmentSpec = match read {
            Ok(spec) => spec,
            Err(refusal) => {
                refusals.push(refusal);
                continue;
            }
        };
        let at = ["segments", name];
        let refused = spec.out_of_bounds();
        let sound = refused.is_empty();
        refusals.extend(refused.into_iter().map(|refusal| in_text(body, &at, refusal)));
        let hosts: Vec<String> = spec.stations.iter().map(|station| station.host.clone()).collect();
        let (configs, busy) = match spec.resolve() {
            Ok(SegmentLinks { links, busy }) => (links.into_iter().map(Some).collect(), busy),
            Err(refusal) => {
                if sound {
                    refusals.push(in_text(body, &at, refusal));
                }
                (vec![None; hosts.len()], None)
            }
        };
        let links = hosts.iter().map(|host| link_of(name, host)).zip(configs).collect();
        let access_point = spec.access_point.map(|host| ("access_point", host));
        let centre = access_point.or(spec.base_station.map(|host| ("base_station", host)));
        segments.push(Segment { name: name.to_owned(), hosts, links, centre, busy });
    }
    segments
}

/// Adds segments to an explicit topology. A hub is a host after all others, with a link to each of its stations. A cell is
/// the links from its access point or base station to its stations.
pub(crate) fn join(
    body: &Node<'_>,
    segments: &[Segment],
    wiring: &mut Wiring,
    refusals: &mut Vec<Refusal<Span>>,
) {
    let known = wiring.hosts.clone();
    for segment in segments {
        let place = |rest: &[&str]| {
            let path = ["segments", &segment.name].into_iter().chain(rest.iter().copied());
            document::place(body, &path.collect::<Vec<_>>())
        };
        let mut refuse = |refusal| refusals.push(refusal);
        let from = match &segment.centre {
            Some((_, host)) if known.contains(host) => host.clone(),
            Some((key, host)) => {
                refuse(no_host(place(&[key]), host, &known));
                continue;
            }
            None if wiring.hosts.contains(&segment.name) => {
                let message = format!("a host is named `{}`, too", segment.name);
                refuse(Refusal::new(place(&[]), message).hint("give the segment another name"));
                continue;
            }
            None => {
                if wiring.mtu > MTU {
                    let message = format!("packets of {} B on a half-duplex Ethernet", wiring.mtu);
                    refuse(
                        Refusal::new(place(&[]), message).expected(format!("mtu = {MTU}, or less")),
                    );
                }
                wiring.hosts.push(segment.name.clone());
                wiring.hubs.push(segment.name.clone());
                segment.name.clone()
            }
        };
        let mut links = Vec::new();
        for (n, host) in segment.hosts.iter().enumerate() {
            let place = || place(&["stations", &n.to_string(), "host"]);
            if let Some(refusal) = refusal_of(segment, n, &known, &wiring.switches, &place) {
                refuse(refusal);
                continue;
            }
            let link = segment.link(host);
            links.push(link.clone());
            let (from, to, link) = (from.clone(), host.clone(), Some(link));
            let cable = Cable { from, to, link, cards: false, capacity: None };
            wiring.wires.push(Wire { cable, path: Vec::new() });
        }
        if segment.centre.is_some() {
            let (name, busy) = (segment.name.clone(), segment.busy.clone());
            wiring.cells.push(Cell { name, links, busy });
        }
    }
    if !segments.is_empty() && !HOSTS.contains(&wiring.hosts.len()) {
        let place = document::place(body, &["segments"]);
        let message = format!("{} hosts and segments together", wiring.hosts.len());
        refusals.push(Refusal::new(place, message).expected(HOSTS.to_string()));
    }
}

/// What is wrong with a station's host.
fn refusal_of(
    segment: &Segment,
    station: usize,
    known: &[String],
    switches: &[String],
    place: &dyn Fn() -> Option<Range<usize>>,
) -> Option<Refusal<Span>> {
    let host = &segment.hosts[station];
    let refusal = |message: String| Refusal::new(place(), message);
    if !known.contains(host) {
        return Some(no_host(place(), host, known));
    }
    if switches.contains(host) {
        let hint = "put a host between them: an emulated medium carries IP, a switch also ARP";
        return Some(refusal(format!("the station `{host}` is a switch")).hint(hint));
    }
    if let Some((key, centre)) = &segment.centre
        && centre == host
    {
        let what = key.replace('_', " ");
        let refusal = refusal(format!("the {what} `{host}` is a station, too"));
        return Some(refusal.hint("remove it from `stations`"));
    }
    let twice = segment.hosts[..station].contains(host);
    twice.then(|| {
        refusal(format!("the station `{host}` is listed twice")).expected("each host once")
    })
}
