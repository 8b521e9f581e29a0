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
    fn own(&self, at: Tai) -> Duration {
        Duration::from_nanos(at.as_nanos().saturating_add_signed(-self.clock_set_ns()))
    }

    /// The boundary that a time means.
    fn boundary(&self, at: Option<Tai>) -> At {
        at.map_or(At::Next, |at| At::Tai(self.own(at)))
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

    /// Forgets what a receiver was ordered for a time.
    fn forget(&self, number: u32, at: Tai) -> Result<(), String> {
        let receiver = self.receiver.as_ref().ok_or("this node stores nothing")?;
        receiver.cancel(number, self.own(at)).map_err(|refusal| refusal.to_string())
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

    fn cancel(&mut self, id: &Id, active: Option<&Wanted>) -> Result<(), String> {
        let Some(lane) = self.lanes.get(id).copied() else { return Ok(()) };
        let Some((before, at)) = lane.scheduled else { return Ok(()) };
        // The later order of one frame is the one that counts.
        match (lane.side, before) {
            (Side::Sender, true) => {
                let routes = active.map(routes).filter(|routes| !routes.is_empty());
                let start = SenderChange { routes, ..SenderChange::start() };
                self.order(lane.number, Some(at), start)?;
            }
            (Side::Sender, false) => {
                self.order(lane.number, Some(at), SenderChange::stop())?;
            }
            // It is forgotten: a later order of the same frame would take up nothing again, as the store is closed in between.
            (Side::Receiver, true) => self.forget(lane.number, at)?,
            (Side::Receiver, false) => {
                let off = ReceiverChange { store: Some(Storing::Off), ..ReceiverChange::leave() };
                self.order_receiver(lane.number, Some(at), off)?;
            }
        }
        self.lanes.insert(id.clone(), Lane { on: before, scheduled: None, ..lane });
        Ok(())
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

#[cfg(test)]
mod tests {
    use suiro_uncompressed::live::{
        Events, LaneConfig, Material, ReceiverConfig, ReceiverLaneConfig, SenderConfig, What,
    };
    use suiro_uncompressed::node::Source;
    use suiro_uncompressed::packet::Stream;
    use suiro_uncompressed::reader;

    use super::*;
    use crate::nmos::connection::Leg as WantedLeg;

    const FRAMES: u32 = 5;
    const PATIENCE: Duration = Duration::from_secs(20);

    fn geometry() -> Geometry {
        "64x4 4:2:2 10 50".parse().unwrap()
    }

    fn id(side: Side) -> Id {
        Id::named(side.singular())
    }

    fn lanes(sender: Option<Sender>, receiver: Option<Receiver>, folder: &Path) -> Lanes {
        let lane = |side| (id(side), Lane::new(side, 0));
        Lanes {
            sender,
            receiver,
            what: (Format::Raster, geometry(), 1500),
            mac: None,
            capacity: 1,
            troff_us: None,
            folders: [(0, folder.to_owned())].into(),
            lanes: [lane(Side::Sender), lane(Side::Receiver)].into(),
        }
    }

    fn wanted(enabled: bool, port: u16) -> Wanted {
        let leg = WantedLeg {
            enabled: true,
            interface: Ipv4Addr::LOCALHOST,
            source: None,
            destination: Some(Ipv4Addr::LOCALHOST),
            port,
            source_port: 0,
        };
        Wanted { enabled, legs: vec![leg], description: None }
    }

    fn wait(events: &Events, is_it: impl Fn(&What) -> bool) {
        let until = net::monotonic() + PATIENCE;
        while net::monotonic() < until {
            let event = events.wait(Duration::from_millis(100));
            if event.is_some_and(|event| is_it(&event.what)) {
                return;
            }
        }
        panic!("the event did not come");
    }

    /// A sender with its frames.
    fn standby() -> (Sender, Events) {
        let lane = LaneConfig {
            number: 0,
            format: Format::Raster,
            geometry: geometry(),
            packet_bytes: 1500,
            stream: Stream { payload_type: PAYLOAD_TYPE, ssrc: 1 },
        };
        let ring = reader::Options { frames: FRAMES, ..SenderConfig::new(Vec::new()).ring };
        let config = SenderConfig { ring, ..SenderConfig::new(vec![lane]) };
        let (sender, told) = Sender::start(config).unwrap();
        let source = Source::Synthetic { geometry: geometry(), frames: FRAMES };
        let cue = SenderChange::cue(Material { source, origin: 0, repeat: true });
        sender.order(&Order::one(At::Next, 0, cue)).unwrap();
        wait(&told, |what| *what == What::Filled);
        (sender, told)
    }

    #[test]
    fn a_move_of_a_sender_that_is_cancelled_does_not_happen() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, told) = standby();
        let mut lanes = lanes(Some(sender), None, folder.path());
        let (own, active) = (id(Side::Sender), wanted(true, 5004));
        lanes.activate(&own, &active, net::tai(), None).unwrap();
        wait(&told, |what| matches!(what, What::Started { .. }));
        let now = net::tai();
        let at = Some(now.after(Duration::from_millis(300)));
        lanes.activate(&own, &wanted(true, 5006), now, at).unwrap();
        lanes.cancel(&own, Some(&active)).unwrap();
        // The move and what undoes it are made at one frame.
        (0..2).for_each(|_| wait(&told, |what| matches!(what, What::Changed { .. })));
        let lane = lanes.senders().remove(0);
        let to: Vec<u16> = lane.routes.iter().map(|route| route.destination.port()).collect();
        assert_eq!(to, [5004]);
        assert!(lane.frame.is_some(), "it sends");
    }

    #[test]
    fn an_end_of_a_recording_that_is_cancelled_does_not_happen() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(Format::Raster, &geometry(), 1500).unwrap();
        let budget = Duration::from_millis(50);
        let lane = ReceiverLaneConfig { number: 0, layout, payload_type: PAYLOAD_TYPE, budget };
        let (buffer_bytes, verify, cpu, frames) = (1 << 20, false, None, None);
        let config = ReceiverConfig { lanes: vec![lane], buffer_bytes, verify, cpu, frames };
        let (receiver, told) = Receiver::start(config).unwrap();
        let mut lanes = lanes(None, Some(receiver), folder.path());
        let (own, active) = (id(Side::Receiver), wanted(true, 0));
        lanes.activate(&own, &active, net::tai(), None).unwrap();
        wait(&told, |what| matches!(what, What::Changed { .. }));
        let now = net::tai();
        let at = now.after(Duration::from_millis(300));
        lanes.activate(&own, &wanted(false, 0), now, Some(at)).unwrap();
        lanes.cancel(&own, Some(&active)).unwrap();
        // A path that was left and a store that was closed would be gone when its last frame's time is over.
        let over = at.after(budget).after(Duration::from_millis(100));
        while net::tai() < over {
            let event = ended(&told);
            assert!(event.is_none(), "{event:?}");
        }
        let lane = lanes.receivers().remove(0);
        assert_eq!((lane.planned, lane.paths.len()), (0, 1));
        assert!(lane.storing.is_some() && lane.paths[0].until.is_none(), "{lane:?}");
        // It can be ended all the same.
        lanes.activate(&own, &wanted(false, 0), net::tai(), None).unwrap();
        wait(&told, |what| matches!(what, What::Stopped { .. }));
    }

    /// What says that a lane stopped, if it comes within 20 ms.
    fn ended(told: &Events) -> Option<What> {
        let event = told.wait(Duration::from_millis(20)).map(|event| event.what);
        event.filter(|what| matches!(what, What::Stopped { .. } | What::Stored { .. }))
    }
}
