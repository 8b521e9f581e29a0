//! The senders of a node as the Connection API commands them: each stream is a lane of a running sender, cued from the
//! beginning, so that it can start at any frame.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use suiro_uncompressed::Geometry;
use suiro_uncompressed::live::{At, Order, Sender, SenderChange, SenderLane};
use suiro_uncompressed::packet::{Format, IP_UDP_BYTES, PAYLOAD_TYPE};
use suiro_uncompressed::sdp::Description;
use suiro_uncompressed::socket::Route;
use suiro_units::Duration;

use crate::nmos::connection::{Media, Wanted};
use crate::nmos::{Id, Tai};

/// Hops that packets may take.
const TTL: u8 = 16;

/// The lanes, and what was ordered of them.
pub(super) struct Lanes {
    /// The running sender.
    pub sender: Sender,
    /// How packets are formatted, their pictures, and the largest packet.
    pub what: (Format, Geometry, u32),
    /// How many streams may be sent at a time.
    pub capacity: u32,
    lanes: BTreeMap<Id, Lane>,
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    number: u32,
    /// Whether it sends when all orders have come to pass.
    on: bool,
    /// Whether it sent before the order that is scheduled, and that order's time.
    scheduled: Option<(bool, Tai)>,
}

impl Lanes {
    /// The lanes of a sender, by the identifiers of the Connection API.
    pub fn new(
        sender: Sender,
        what: (Format, Geometry, u32),
        capacity: u32,
        lanes: impl IntoIterator<Item = (Id, u32)>,
    ) -> Self {
        let lane = |(id, number)| (id, Lane { number, on: false, scheduled: None });
        Self { sender, what, capacity, lanes: lanes.into_iter().map(lane).collect() }
    }

    /// The identifier of a lane.
    pub fn id(&self, number: u32) -> Option<&Id> {
        self.lanes.iter().find(|(_, lane)| lane.number == number).map(|(id, _)| id)
    }

    /// A lane stopped by itself.
    pub fn ended(&mut self, id: &Id) {
        if let Some(lane) = self.lanes.get_mut(id) {
            (lane.on, lane.scheduled) = (false, None);
        }
    }

    fn order(
        &self,
        number: u32,
        at: Option<Tai>,
        change: SenderChange,
    ) -> Result<Option<Tai>, String> {
        let at = at.map_or(At::Next, |at| At::Tai(Duration::from_nanos(at.as_nanos())));
        let accepted = self
            .sender
            .order(&Order::one(at, number, change))
            .map_err(|refusal| refusal.to_string())?;
        Ok(accepted.tai.map(|tai| Tai::from_nanos(tai.as_nanos())))
    }
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
        if wanted.enabled {
            let others =
                self.lanes.values().filter(|own| own.number != lane.number && own.on).count();
            if others >= self.capacity as usize {
                let capacity = self.capacity;
                return Err(format!(
                    "this node sends {others} streams already, and {capacity} at most"
                ));
            }
        }
        let routes = routes(wanted);
        if wanted.enabled && routes.is_empty() {
            return Err("no leg is enabled: rtp_enabled is false in all".to_owned());
        }
        let routes = Some(routes).filter(|routes| wanted.enabled && !routes.is_empty());
        let change = SenderChange { on: Some(wanted.enabled), routes, load: None };
        let done = self.order(lane.number, at, change)?.unwrap_or(now);
        let scheduled = at.map(|_| (lane.on, done));
        self.lanes.insert(id.clone(), Lane { on: wanted.enabled, scheduled, ..lane });
        Ok(done)
    }

    fn cancel(&mut self, id: &Id) {
        let Some(lane) = self.lanes.get(id).copied() else { return };
        let Some((before, at)) = lane.scheduled else { return };
        // The later order of one frame is the one that counts.
        let change = if before { SenderChange::start() } else { SenderChange::stop() };
        // If the frame has begun meanwhile, the order stands, and the state shows it.
        if self.order(lane.number, Some(at), change).is_ok() {
            self.lanes.insert(id.clone(), Lane { on: before, scheduled: None, ..lane });
        }
    }

    fn description(&self, id: &Id, wanted: &Wanted) -> Option<String> {
        let (format, geometry, packet_bytes) = self.what;
        let leg =
            wanted.legs.iter().find(|leg| leg.enabled).filter(|_| format == Format::St2110)?;
        let lane = self.lanes.get(id)?;
        let description = Description {
            name: crate::nmos::resources::label(lane.number),
            session: u64::from(lane.number) + 1,
            version: 1,
            source: Some(leg.interface),
            mac: None,
            destination: leg.destination?,
            port: leg.port,
            ttl: TTL,
            payload_type: PAYLOAD_TYPE,
            geometry,
            datagram_bytes: packet_bytes.saturating_sub(IP_UDP_BYTES),
        };
        Some(description.to_string())
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

/// The number of frames that a lane sent late or left out.
pub(super) fn late(lane: &SenderLane) -> u64 {
    lane.counts.late + lane.counts.skipped
}
