//! What the controller says of itself, of its nodes and of its streams. `web/src/generated/control.ts` is generated from this.

use std::net::SocketAddrV4;

use serde::Serialize;

use super::Control;
use super::api::Event;
use crate::claim::PlanId;
use crate::net;
use crate::node::Status;

/// How many of the latest events it has.
const EVENTS: usize = 50;

/// The state of the controller.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ControllerStatus<'c> {
    /// Its name.
    name: &'c str,
    /// Its clock: TAI in nanoseconds since 1970.
    tai_ns: u64,
    /// Whether it commands the nodes.
    leads: bool,
    /// Who commands them, in words.
    leader: String,
    /// Which version of the desired state it has; null if it never had one.
    plan: Option<&'c PlanId>,
    /// Why the desired state could not be written to its file; null if it is there.
    unwritten: Option<&'c str>,
    /// Whether streams are to be on air.
    running: bool,
    /// Whether streams are to be stored.
    storing: bool,
    /// By name.
    sites: Vec<SiteStatus<'c>>,
    /// By name.
    nodes: Vec<NodeStatus<'c>>,
    /// By number.
    streams: Vec<StreamStatus<'c>>,
    /// What happened, the latest first.
    events: Vec<&'c Event>,
}

/// The state of a site.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SiteStatus<'c> {
    name: &'c str,
    /// What its uplink carries.
    uplink_bps: u64,
    /// What its nodes are to send.
    used_bps: u64,
    /// The streams that its nodes have the material of.
    material: &'c [u32],
}

/// The state of a node, as the controller sees it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NodeStatus<'c> {
    name: &'c str,
    site: &'c str,
    /// Streams that it can send at the same time.
    capacity: u32,
    /// What is wrong with it; null if nothing is.
    fault: Option<String>,
    /// What it said last; null if it never said anything.
    status: Option<&'c Status>,
}

/// The state of a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StreamStatus<'c> {
    /// Its number.
    stream: u32,
    /// The node that is to send it.
    node: &'c str,
    rate_bps: u64,
    to: SocketAddrV4,
    /// Further nodes that are to send it at the same time.
    twins: Vec<Twin<'c>>,
    /// The nodes that are to store it.
    stored_by: &'c [String],
    /// Why it is not where it should be; null if it is, or on its way.
    stuck: Option<&'c str>,
}

/// A further node that sends a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Twin<'c> {
    node: &'c str,
    to: SocketAddrV4,
}

impl Control {
    pub(super) fn status(&mut self) -> serde_json::Value {
        let leader = self.leader();
        let nodes = self.desired.nodes.iter().map(|(name, node)| NodeStatus {
            name,
            site: &node.site,
            capacity: node.streams,
            fault: self
                .faulty
                .get(name)
                .map(ToString::to_string)
                .or_else(|| self.apart.get(name).cloned()),
            status: self.seen.get(name).map(|(_, status)| status),
        });
        let sites = self.desired.sites.iter().map(|(name, site)| SiteStatus {
            name,
            uplink_bps: site.uplink.as_bps(),
            used_bps: self.desired.sent_by(name),
            material: &site.material,
        });
        let streams = self.desired.streams().map(|(stream, own)| StreamStatus {
            stream,
            node: &own.node,
            rate_bps: own.rate.as_bps(),
            to: own.to,
            twins: own.legs().skip(1).map(|(node, to)| Twin { node, to }).collect(),
            stored_by: &own.stored_by,
            stuck: self.stuck.get(&stream).map(String::as_str),
        });
        let status = ControllerStatus {
            name: &self.spec.name,
            tai_ns: net::tai().as_nanos(),
            leads: self.leads(),
            leader,
            plan: self.plan.id.as_ref(),
            unwritten: self.unwritten.as_deref(),
            running: self.desired.running,
            storing: self.desired.storing,
            sites: sites.collect(),
            nodes: nodes.collect(),
            streams: streams.collect(),
            events: self.events.iter().rev().take(EVENTS).collect(),
        };
        serde_json::to_value(status).expect("names are texts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_the_page_are_current() {
        suiro_page_types::check::<ControllerStatus<'_>>(
            "control.ts",
            "control/src/controller/status.rs",
        );
    }
}
