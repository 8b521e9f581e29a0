//! Segments in a scenario: hubs, as hosts of the topology with a link to each of their stations.

use std::collections::BTreeMap;

use suiro_link::LinkConfig;
use suiro_strict::Bounded;

use crate::cell::in_text;
use crate::document::{self, Node, entries};
use crate::header::check_name;
use crate::refusal::{Refusal, Span};
use crate::topology::{Cable, HOSTS, Wire, Wiring};

/// Largest IP packet of an Ethernet frame.
const MTU: u16 = 1500;

/// A hub that could be read.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    pub name: String,
    /// By the station's host; in the order of the file they are in `hosts`.
    pub links: BTreeMap<String, Option<LinkConfig>>,
    pub hosts: Vec<String>,
}

/// Reads `[segments]`. What is wrong goes to `refusals`, whatever the topology.
pub(crate) fn read(
    body: &Node<'_>,
    section: &Node<'_>,
    refusals: &mut Vec<Refusal<Span>>,
) -> Vec<Hub> {
    let mut hubs = Vec::new();
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
        let configs = match spec.resolve() {
            Ok(configs) => configs.into_iter().map(Some).collect(),
            Err(refusal) => {
                if sound {
                    refusals.push(in_text(body, &at, refusal));
                }
                vec![None; hosts.len()]
            }
        };
        let links = hosts.iter().cloned().zip(configs).collect();
        hubs.push(Hub { name: name.to_owned(), links, hosts });
    }
    hubs
}

/// Adds the hubs to an explicit topology: each is a host after all others, with a link to each of its stations.
pub(crate) fn join(
    body: &Node<'_>,
    hubs: &[Hub],
    wiring: &mut Wiring,
    refusals: &mut Vec<Refusal<Span>>,
) {
    let known = wiring.hosts.clone();
    for hub in hubs {
        let place = |rest: &[&str]| {
            let path = ["segments", &hub.name].into_iter().chain(rest.iter().copied());
            document::place(body, &path.collect::<Vec<_>>())
        };
        if wiring.hosts.contains(&hub.name) {
            let message = format!("a host is named `{}`, too", hub.name);
            refusals.push(Refusal::new(place(&[]), message).hint("give the segment another name"));
            continue;
        }
        if wiring.mtu > MTU {
            let message = format!("packets of {} B on a half-duplex Ethernet", wiring.mtu);
            refusals
                .push(Refusal::new(place(&[]), message).expected(format!("mtu = {MTU}, or less")));
        }
        wiring.hosts.push(hub.name.clone());
        wiring.hubs.push(hub.name.clone());
        for (n, host) in hub.hosts.iter().enumerate() {
            let place = || place(&["stations", &n.to_string(), "host"]);
            if !known.contains(host) {
                let refusal = Refusal::new(place(), format!("no host is named `{host}`"));
                refusals.push(refusal.instead(host, known.iter().map(String::as_str)));
                continue;
            }
            if wiring.switches.contains(host) {
                let refusal = Refusal::new(place(), format!("the station `{host}` is a switch"));
                let hint =
                    "put a host between them: an emulated medium carries IP, a switch also ARP";
                refusals.push(refusal.hint(hint));
            }
            if hub.hosts[..n].contains(host) {
                let refusal =
                    Refusal::new(place(), format!("the station `{host}` is listed twice"));
                refusals.push(refusal.expected("each host once"));
                continue;
            }
            let (from, to) = (hub.name.clone(), host.clone());
            let cable = Cable { from, to, link: None, cards: false, capacity: None };
            wiring.wires.push(Wire { cable, path: Vec::new() });
        }
    }
    if !hubs.is_empty() && !HOSTS.contains(&wiring.hosts.len()) {
        let place = document::place(body, &["segments"]);
        let message = format!("{} hosts and segments together", wiring.hosts.len());
        refusals.push(Refusal::new(place, message).expected(HOSTS.to_string()));
    }
}
