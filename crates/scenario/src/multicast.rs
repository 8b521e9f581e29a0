//! Multicast in a scenario: which hosts route it, and what endpoints may ask of it.

use std::net::Ipv4Addr;

use crate::check::Placed;
use crate::document::{self, Node};
use crate::network::Multicast;
use crate::refusal::{Refusal, Span};
use crate::topology::{Wiring, no_host};

impl Multicast {
    /// Its hosts are hosts of the topology, and each is there once.
    pub(crate) fn check(
        &self,
        node: &Node<'_>,
        wiring: &Wiring,
        refusals: &mut Vec<Refusal<Span>>,
    ) {
        for (n, router) in self.routers.iter().enumerate() {
            let place = || document::place(node, &["routers", &n.to_string()]);
            if !wiring.hosts.contains(router) {
                refusals.push(no_host(place(), router, &wiring.hosts));
            }
            if wiring.switches.contains(router) {
                let refusal = Refusal::new(place(), format!("`{router}` is a switch"));
                refusals.push(refusal.hint("remove it from `routers`, or from `switches`"));
            }
            if self.routers[..n].contains(router) {
                let refusal =
                    Refusal::new(place(), format!("the router `{router}` is listed twice"));
                refusals.push(refusal.expected("each router once"));
            }
        }
        if !self.routers.contains(&self.rendezvous) {
            let place = document::place(node, &["rendezvous"]);
            let message = format!("the rendezvous point `{}` is not a router", self.rendezvous);
            let known = self.routers.iter().map(String::as_str);
            refusals.push(Refusal::new(place, message).instead(&self.rendezvous, known));
        }
    }
}

/// Endpoints do not run on switches, and groups need cables that carry them.
pub(crate) fn check_endpoints(
    body: &Node<'_>,
    wiring: Option<&Wiring>,
    multicast: Option<&Multicast>,
    endpoints: &[Placed],
    refusals: &mut Vec<Refusal<Span>>,
) {
    let Some(wiring) = wiring else { return };
    if !wiring.hubs.is_empty() && (multicast.is_some() || !wiring.switches.is_empty()) {
        let place = document::place(body, &["segments"]);
        let message = "[segments] together with multicast or switches".to_owned();
        let hint = "remove [multicast] and `switches`: the medium of a segment carries only IP, between known hosts";
        refusals.push(Refusal::new(place, message).hint(hint));
    }
    for placed in endpoints {
        let place = |key: &str| document::place(body, &["endpoints", &placed.section, key]);
        let host = &placed.endpoint.host;
        for (passive, what) in [(&wiring.switches, "a switch"), (&wiring.hubs, "a segment")] {
            if passive.contains(host) {
                let message = format!("`{host}` is {what}, which runs no endpoint");
                refusals.push(Refusal::new(place("host"), message).expected("another host"));
            }
        }
        for (key, group) in placed.endpoint.spec.kind().groups() {
            if !is_group(group) {
                let refusal = Refusal::new(place(key), format!("{group} is not a group"));
                refusals.push(refusal.expected(
                    "an address from 224.0.1.0 to 239.255.255.255, such as \"239.1.1.1\"",
                ));
            }
            // That a section cannot be read has been reported.
            if multicast.is_none() && document::entry(body, "multicast").is_none() {
                let message = format!("the group {group}, but no cable carries multicast");
                refusals.push(Refusal::new(place(key), message).hint("add a section [multicast]"));
            }
        }
    }
}

/// A multicast address that routers pass on: not one of 224.0.0.0/24, which stays on its cable (RFC 5771 §4).
fn is_group(address: Ipv4Addr) -> bool {
    address.is_multicast() && address.octets()[..3] != [224, 0, 0]
}
