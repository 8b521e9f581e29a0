//! What a node says of its streams, for the controller: in JSON, next to what NMOS describes.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};
use suiro_uncompressed::live::{Phase, ReceiverLane, SenderLane};

use super::lanes::{self, Lanes};
use super::lead::Lead;
use crate::claim::{Claim, PlanId};
use crate::net;
use crate::nmos::connection::{Connection, Side};
use crate::nmos::node::Node;

/// The state of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its identifier in NMOS; empty if it does not say.
    #[serde(default)]
    pub id: String,
    /// Its clock: TAI in nanoseconds since 1970.
    pub tai_ns: u64,
    /// How long ago its threads looked at the clock, in nanoseconds.
    pub idle_ns: u64,
    /// How far its TAI was set since its streams began, in nanoseconds: they keep the time before. 0 if by less than 0.5 s.
    #[serde(default)]
    pub clock_set_ns: i64,
    /// The streams that it can send.
    pub lanes: Vec<LaneStatus>,
    /// The streams that it can store.
    #[serde(default)]
    pub receivers: Vec<ReceiverStatus>,
    /// The greatest claim of a controller that ever reached it, which it obeys; null if there was none.
    #[serde(default)]
    pub controller: Option<Claim>,
    /// How long that claim lasts unless it is repeated, in nanoseconds; 0 if it has lapsed.
    #[serde(default)]
    pub lease_ns: u64,
    /// Which version of the desired state it keeps for the controllers; null if it was given none.
    #[serde(default)]
    pub plan: Option<PlanId>,
}

impl Status {
    /// The state of this node, as it says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(node: &str, text: &str) -> Result<Self, String> {
        let status: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if status.name != node {
            let name: String = status.name.chars().take(80).collect();
            return Err(format!("expected the node {node}, found {name:?}"));
        }
        Ok(status)
    }
}

/// The state of one stream that a node can store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReceiverStatus {
    /// Its number.
    pub stream: u32,
    /// The identifier of its receiver.
    pub id: String,
    /// Whether it receives and stores, as the Connection API has it.
    pub on: bool,
    /// What it receives, or did: groups, or an own address with its port.
    pub from: Vec<SocketAddrV4>,
    /// Whether it will be on, and from when on (TAI in nanoseconds), if that is scheduled.
    pub scheduled: Option<(bool, u64)>,
    /// Complete frames.
    pub frames: u64,
    /// Frames of which packets, or all of them, are missing.
    pub lost: u64,
    /// The store that is written now.
    pub storing: Option<String>,
}

/// The state of one stream at a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LaneStatus {
    /// Its number.
    pub stream: u32,
    /// The identifier of its sender.
    pub id: String,
    /// What it does: `empty`, `filling`, `standby`, `running` or `failed`.
    pub phase: String,
    /// Whether it is on air, as the Connection API has it.
    pub on: bool,
    /// Where it sends to, or did.
    pub to: Option<SocketAddrV4>,
    /// Whether it will be on air, and from when on (TAI in nanoseconds), if that is scheduled.
    pub scheduled: Option<(bool, u64)>,
    /// Slots of its ring.
    pub ring_slots: u64,
    /// Frames that wait to be sent.
    pub ring_waiting: u64,
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent, as IP.
    pub bytes: u64,
    /// Frames repeated, because the next was not there.
    pub repeated: u64,
    /// Frames late or left out.
    pub late: u64,
    /// Why it cannot send.
    pub failed: Option<String>,
}

impl Status {
    /// Of a node and its lanes.
    pub(super) fn of(node: &Node, lanes: &Lanes, lead: &Lead) -> Self {
        let of = |side| node.connections().filter(move |(_, own)| own.side() == side);
        let (senders, receivers) = (lanes.senders(), lanes.receivers());
        let sending = of(Side::Sender).filter_map(|(stream, own)| {
            let lane = senders.iter().find(|lane| lane.number == stream)?;
            Some(LaneStatus::of(own, lane))
        });
        let storing = of(Side::Receiver).filter_map(|(stream, own)| {
            let lane = receivers.iter().find(|lane| lane.number == stream)?;
            Some(ReceiverStatus::of(own, lane))
        });
        let (tai, idle) = lanes.clock();
        let held = lead.held(net::monotonic());
        Self {
            name: node.about().name.clone(),
            id: node.about().node().to_string(),
            tai_ns: tai.as_nanos(),
            idle_ns: idle.as_nanos(),
            clock_set_ns: lanes.clock_set_ns(),
            lanes: sending.collect(),
            receivers: storing.collect(),
            controller: held.map(|(claim, _)| claim.clone()),
            lease_ns: held.map_or(0, |(_, lasts)| lasts.as_nanos()),
            plan: lead.plan().map(|(id, _)| id.clone()),
        }
    }
}

impl ReceiverStatus {
    fn of(connection: &Connection, lane: &ReceiverLane) -> Self {
        let legs = connection.wanted().into_iter().flat_map(|wanted| &wanted.legs);
        let from = legs
            .filter(|leg| leg.enabled)
            .map(|leg| SocketAddrV4::new(leg.destination.unwrap_or(leg.interface), leg.port));
        let scheduled = connection.scheduled_state().zip(connection.scheduled());
        Self {
            stream: lane.number,
            id: connection.id().to_string(),
            on: connection.is_active(),
            from: from.collect(),
            scheduled: scheduled.map(|(wanted, at)| (wanted.enabled, at.as_nanos())),
            frames: lane.counts.frames,
            lost: lane.counts.incomplete + lane.counts.lost,
            storing: lane.storing.as_ref().map(|path| path.display().to_string()),
        }
    }
}

impl LaneStatus {
    fn of(connection: &Connection, lane: &SenderLane) -> Self {
        let to = connection.wanted().and_then(|wanted| {
            let leg = wanted.legs.iter().find(|leg| leg.enabled)?;
            Some(SocketAddrV4::new(leg.destination?, leg.port))
        });
        let scheduled = connection.scheduled_state().zip(connection.scheduled());
        Self {
            stream: lane.number,
            id: connection.id().to_string(),
            phase: phase(lane.phase).to_owned(),
            on: connection.is_active(),
            to,
            scheduled: scheduled.map(|(wanted, at)| (wanted.enabled, at.as_nanos())),
            ring_slots: lane.ring.map_or(0, |ring| ring.slots),
            ring_waiting: lane.ring.map_or(0, |ring| ring.waiting),
            frames: lane.counts.frames,
            bytes: lane.counts.bytes,
            repeated: lane.ring.map_or(0, |ring| ring.repeats),
            late: lanes::late(lane),
            failed: lane.failed.clone(),
        }
    }
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Empty => "empty",
        Phase::Filling => "filling",
        Phase::Standby => "standby",
        Phase::Running => "running",
        Phase::Failed => "failed",
    }
}
