//! The senders and receivers of a node as the Connection API commands them. Each stream that it sends is a lane of a running
//! sender, cued from the beginning, so that it can start at any frame. Each stream that it stores is a lane of a running
//! receiver: from its activation on it receives, and writes a store.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use suiro_uncompressed::Geometry;
use suiro_uncompressed::live::{
    Accepted, At, Leg, Order, Receiver, ReceiverChange, ReceiverLane, Refusal, Sender,
    SenderChange, SenderLane, Storing,
};
use suiro_uncompressed::packet::{Format, Layout, PAYLOAD_TYPE};
use suiro_uncompressed::sdp::{self, Description};
use suiro_uncompressed::socket::Route;
use suiro_units::Duration;

use crate::net;
use crate::nmos::connection::{Media, Side, Wanted};
use crate::nmos::{Id, Tai};

/// The port of streams that nobody gives one (IS-05 v1.1, RTP).
const PORT: u16 = 5004;
/// Hops that packets may take.
const TTL: u8 = 16;

/// How far the clock must be set until the lanes' time is another one: clocks of nodes may differ by as much.
const STEP_MIN: Duration = Duration::from_millis(500);

/// The lanes, and what was ordered of them.
pub(super) struct Lanes {
    /// The running sender, if the node can send.
    pub sender: Option<Sender>,
    /// The running receiver, if it can store.
    pub receiver: Option<Receiver>,
    /// How packets are formatted, their frames, and the largest packet.
    pub what: (Format, Geometry, u32),
    /// The hardware address of the interface that streams leave by.
    pub mac: Option<[u8; 6]>,
    /// How many streams may be sent at a time.
    pub capacity: u32,
    /// The offset that descriptions announce (TROFF); `None`: TRO_DEFAULT.
    pub troff_us: Option<u32>,
    /// The folders of stores, by the number of the stream.
    pub folders: BTreeMap<u32, PathBuf>,
    /// The senders and receivers by their identifiers.
    pub lanes: BTreeMap<Id, Lane>,
}

/// A sender or receiver of the Connection API.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    side: Side,
    number: u32,
    /// Whether it is on when all orders have come to pass.
    on: bool,
    /// Whether it was on before the order that is scheduled, and that order's time.
    scheduled: Option<(bool, Tai)>,
}

impl Lane {
    /// One that is off.
    pub const fn new(side: Side, number: u32) -> Self {
        Self { side, number, on: false, scheduled: None }
    }
}

impl Lanes {
    /// The identifier of a lane.
    pub fn id(&self, side: Side, number: u32) -> Option<&Id> {
        let mut all = self.lanes.iter();
        all.find(|(_, lane)| (lane.side, lane.number) == (side, number)).map(|(id, _)| id)
    }

    /// A lane stopped by itself.
    pub fn ended(&mut self, id: &Id) {
        if let Some(lane) = self.lanes.get_mut(id) {
            (lane.on, lane.scheduled) = (false, None);
        }
    }

    /// The senders as they are now.
    pub fn senders(&self) -> Vec<SenderLane> {
        self.sender.as_ref().map(|sender| sender.state().lanes).unwrap_or_default()
    }

    /// The receivers as they are now.
    pub fn receivers(&self) -> Vec<ReceiverLane> {
        self.receiver.as_ref().map(|receiver| receiver.state().lanes).unwrap_or_default()
    }

    /// The node's clock, and how long ago its threads looked at the clock.
    pub fn clock(&self) -> (Tai, Duration) {
        let sending = self.sender.as_ref().map(|sender| sender.state().idle);
        let receiving = self.receiver.as_ref().map(|receiver| receiver.state().idle);
        (net::tai(), sending.max(receiving).unwrap_or(Duration::ZERO))
    }

    /// How far the kernel's TAI was set since the lanes began, in nanoseconds. They keep the time that they began with, so that
    /// no stream jumps; a step that is smaller than [`STEP_MIN`] counts as none.
    pub fn clock_set_ns(&self) -> i64 {
        let sender = self.sender.as_ref().map(Sender::tai);
        let Some(own) = sender.or_else(|| self.receiver.as_ref().map(Receiver::tai)) else {
            return 0;
        };
        let step = net::tai().as_nanos().wrapping_sub(own.as_nanos()).cast_signed();
        if step.unsigned_abs() < STEP_MIN.as_nanos() { 0 } else { step }
    }

    /// The lanes' time of a time.
    fn boundary(&self, at: Option<Tai>) -> At {
        let step = self.clock_set_ns();
        let own = |at: Tai| Duration::from_nanos(at.as_nanos().saturating_add_signed(-step));
        at.map_or(At::Next, |at| At::Tai(own(at)))
    }

    /// When an order takes effect, or why it is refused.
    fn accepted(&self, answer: Result<Accepted, Refusal>) -> Result<Option<Tai>, String> {
        let accepted = answer.map_err(|refusal| refusal.to_string())?;
        let step = self.clock_set_ns();
        let told = |own: Duration| Tai::from_nanos(own.as_nanos().saturating_add_signed(step));
        Ok(accepted.tai.map(told))
    }

    fn order(
        &self,
        number: u32,
        at: Option<Tai>,
        change: SenderChange,
    ) -> Result<Option<Tai>, String> {
        let sender = self.sender.as_ref().ok_or("this node sends nothing")?;
        self.accepted(sender.order(&Order::one(self.boundary(at), number, change)))
    }

    fn order_receiver(
        &self,
        number: u32,
        at: Option<Tai>,
        change: ReceiverChange,
    ) -> Result<Option<Tai>, String> {
        let receiver = self.receiver.as_ref().ok_or("this node stores nothing")?;
        self.accepted(receiver.order(&Order::one(self.boundary(at), number, change)))
    }

    /// Brings a sender to a state.
    fn send(&self, lane: Lane, wanted: &Wanted, at: Option<Tai>) -> Result<Option<Tai>, String> {
        if wanted.enabled {
            let is_other =
                |own: &&Lane| own.side == Side::Sender && own.number != lane.number && own.on;
            let others = self.lanes.values().filter(is_other).count();
            if others >= self.capacity as usize {
                let capacity = self.capacity;
                return Err(format!(
                    "this node sends {others} streams already, and {capacity} at most"
                ));
            }
        }
        let routes = routes(wanted);
        if wanted.enabled && routes.is_empty() {
            return Err(NO_LEG.to_owned());
        }
        let routes = Some(routes).filter(|routes| wanted.enabled && !routes.is_empty());
        self.order(lane.number, at, SenderChange { on: Some(wanted.enabled), routes, load: None })
    }

    /// Brings a receiver to a state: what it receives is written to a new store, until it is disabled.
    fn store(
        &self,
        lane: Lane,
        wanted: &Wanted,
        now: Tai,
        at: Option<Tai>,
    ) -> Result<Option<Tai>, String> {
        let folder = self.folders.get(&lane.number).ok_or("this node has no folder for it")?;
        let legs = if wanted.enabled { legs(wanted) } else { Vec::new() };
        if wanted.enabled && legs.is_empty() {
            return Err(NO_LEG.to_owned());
        }
        let store = match (lane.on, wanted.enabled) {
            (_, false) => Some(Storing::Off),
            (false, true) => {
                let path = recording(folder, lane.number, at.unwrap_or(now));
                Some(Storing::To { path, replace: false })
            }
            // Other legs: the recording goes on.
            (true, true) => None,
        };
        self.order_receiver(
            lane.number,
            at,
            ReceiverChange { legs: Some(legs), store, budget: None },
        )
    }
}

const NO_LEG: &str = "no leg is enabled: rtp_enabled is false in all";

/// A new store, named after the stream and the time that it begins, TAI in nanoseconds.
fn recording(folder: &Path, stream: u32, at: Tai) -> PathBuf {
    folder.join(format!("stream-{stream}-{}.frames", at.as_nanos()))
}

impl Media for Lanes {
    fn activate(
        &mut self,
        id: &Id,
        wanted: &Wanted,
        now: Tai,
        at: Option<Tai>,
    ) -> Result<Tai, String> {
        let lane = *self.lanes.get(id).ok_or("this node has no such lane")?;
        let done = match lane.side {
            Side::Sender => self.send(lane, wanted, at)?,
            Side::Receiver => self.store(lane, wanted, now, at)?,
        };
        let done = done.unwrap_or(now);
        let scheduled = at.map(|_| (lane.on, done));
        self.lanes.insert(id.clone(), Lane { on: wanted.enabled, scheduled, ..lane });
        Ok(done)
    }

    fn cancel(&mut self, id: &Id) {
        let Some(lane) = self.lanes.get(id).copied() else { return };
        let Some((before, at)) = lane.scheduled else { return };
        // The later order of one frame is the one that counts.
        let undone = match (lane.side, before) {
            (Side::Sender, true) => self.order(lane.number, Some(at), SenderChange::start()),
            (Side::Sender, false) => self.order(lane.number, Some(at), SenderChange::stop()),
            // What a receiver had before cannot be taken up again: its store would be closed in between.
            (Side::Receiver, true) => return,
            (Side::Receiver, false) => {
                let off = ReceiverChange { store: Some(Storing::Off), ..ReceiverChange::leave() };
                self.order_receiver(lane.number, Some(at), off)
            }
        };
        // If the frame has begun meanwhile, the order stands, and the state shows it.
        if undone.is_ok() {
            self.lanes.insert(id.clone(), Lane { on: before, scheduled: None, ..lane });
        }
    }

    fn description(&self, id: &Id, wanted: &Wanted, since: Tai) -> Option<String> {
        let (format, geometry, packet_bytes) = self.what;
        let leg =
            wanted.legs.iter().find(|leg| leg.enabled).filter(|_| format == Format::St2110)?;
        let lane = self.lanes.get(id)?;
        let layout = Layout::new(format, &geometry, packet_bytes).ok()?;
        let path = |leg: &crate::nmos::connection::Leg| {
            let (source, destination) = (Some(leg.interface), leg.destination?);
            Some(sdp::Path { source, destination, port: leg.port, ttl: TTL })
        };
        let description = Description {
            name: crate::nmos::resources::label(lane.number),
            session: u64::from(lane.number) + 1,
            version: since.as_nanos(),
            origin: Some(leg.interface),
            mac: self.mac,
            path: path(leg)?,
            twin: None,
            payload_type: PAYLOAD_TYPE,
            geometry,
            datagram_bytes: layout.datagram_bytes() as u32,
            troff_us: self.troff_us,
        };
        Some(description.to_string())
    }

    fn fits(&self, id: &Id, description: &Description) -> Result<(), String> {
        let (format, geometry, _) = self.what;
        if !self.lanes.contains_key(id) || format != Format::St2110 {
            return Err("this receiver takes no streams that are described".to_owned());
        }
        if description.geometry != geometry {
            let found = description.geometry;
            return Err(format!("expected frames of {geometry}, found {found}"));
        }
        Ok(())
    }
}

fn routes(wanted: &Wanted) -> Vec<Route> {
    let enabled = wanted.legs.iter().filter(|leg| leg.enabled);
    let route = |leg: &crate::nmos::connection::Leg| {
        let destination = SocketAddrV4::new(leg.destination?, leg.port);
        let source = Some(leg.interface).filter(|own| !own.is_unspecified());
        Some(Route { destination, source, ttl: TTL })
    };
    enabled.filter_map(route).collect()
}

/// A receiver's paths: groups, or its own address.
fn legs(wanted: &Wanted) -> Vec<Leg> {
    let enabled = wanted.legs.iter().filter(|leg| leg.enabled);
    let leg = |leg: &crate::nmos::connection::Leg| Leg {
        address: SocketAddrV4::new(leg.destination.unwrap_or(leg.interface), leg.port),
        interface: leg.interface,
        source: leg.source,
        payload_type: wanted.description.as_ref().map(|described| described.payload_type),
    };
    // Two legs at one address receive the same packets.
    let mut all: Vec<Leg> = Vec::new();
    for leg in enabled.map(leg) {
        if !all.iter().any(|other| (other.address, other.interface) == (leg.address, leg.interface))
        {
            all.push(leg);
        }
    }
    all
}

/// Where a stream goes if nobody says: a group of its own, made of the sender's identifier, in the organisation's scope
/// (RFC 2365 §6.2).
pub(super) fn default_group(id: &Id) -> SocketAddrV4 {
    let digits = id.as_str().get(..6).unwrap_or_default();
    let [_, scope, high, low] = u32::from_str_radix(digits, 16).unwrap_or_default().to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(239, 192 | scope & 3, high, low), PORT)
}

/// The number of frames that a lane sent late or left out.
pub(super) fn late(lane: &SenderLane) -> u64 {
    lane.counts.late + lane.counts.skipped
}
