//! From events to passages: which sightings, on both hosts, belong to the same packet.
//!
//! Datagrams ([`datagrams`]) have a key, whose 16 bits wrap around within a second at 100,000
//! packets/s. TCP ([`stream`]) is matched by bytes, because its system calls, super-packets and
//! packets have different units. Pure: no clock, no file.

mod datagrams;
mod passage;
mod stream;

use std::collections::BTreeMap;

pub use datagrams::Datagrams;
pub use passage::{Drop, Matched, POINTS, Passage, Points, Side, Sighting, Tally, side, way};
pub use stream::Stream;

use suiro_units::to_i64;

use crate::clock::{Alignment, How, Pair, estimate};
use crate::event::{Event, Flow, Key, Point, Protocol, Recording};

/// One direction of one flow, through a sending and a receiving host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direction {
    /// Its name in either recording: `udp 10.0.0.1:5000>10.0.0.2:5004`.
    pub flow: String,
    /// UDP or TCP.
    pub protocol: Protocol,
    /// The sender's recording (0 or 1) and the flow's index in it; `None` if neither recording has
    /// it.
    pub sender: Option<(usize, u16)>,
    /// The same for the receiver.
    pub receiver: Option<(usize, u16)>,
}

/// The directions of all flows of two recordings, in the order of their names.
pub fn directions(a: &Recording, b: &Recording) -> Vec<Direction> {
    let mut found: BTreeMap<String, Direction> = BTreeMap::new();
    for (number, recording) in [a, b].into_iter().enumerate() {
        for (index, flow) in recording.flows.iter().enumerate() {
            let Ok(index) = u16::try_from(index) else { break };
            let direction = found.entry(flow.to_string()).or_insert_with(|| direction(flow));
            let end = if flow.sent { &mut direction.sender } else { &mut direction.receiver };
            *end = end.or(Some((number, index)));
        }
    }
    found.into_values().collect()
}

fn direction(flow: &Flow) -> Direction {
    Direction { flow: flow.to_string(), protocol: flow.protocol, sender: None, receiver: None }
}

/// The points where this direction was watched, on both hosts.
pub fn watched(direction: &Direction, recordings: [&Recording; 2]) -> Points {
    let protocol = direction.protocol;
    let on = |end: Option<(usize, u16)>, side_: Side| {
        let statuses = end.map(|(number, _)| recordings[number].points.as_slice());
        statuses
            .unwrap_or_default()
            .iter()
            .filter(move |status| status.missing.is_none() && side(status.point) == side_)
            .filter(|status| protocol == Protocol::Udp || status.point != Point::SendTransport)
            .map(|status| status.point)
    };
    on(direction.sender, Side::Sender).chain(on(direction.receiver, Side::Receiver)).collect()
}

/// Matches every direction of two recordings; the second's times are converted to the first's
/// clock.
pub fn matched(recordings: [&Recording; 2], alignment: &Alignment) -> Vec<(Direction, Matched)> {
    let all = sightings(recordings, alignment);
    all.map(|(direction, places)| {
        let matched = match_one(&direction, &places, recordings);
        (direction, matched)
    })
    .collect()
}

/// The events of each direction, in the order of their times on the first's clock.
fn sightings(
    recordings: [&Recording; 2],
    alignment: &Alignment,
) -> impl Iterator<Item = (Direction, Vec<Place>)> {
    let directions = directions(recordings[0], recordings[1]);
    let mut sightings: Vec<Vec<Place>> = vec![Vec::new(); directions.len()];
    for (number, recording) in recordings.into_iter().enumerate() {
        let owners = owners(&directions, number, recording.flows.len());
        for (index, event) in (0u32..).zip(&recording.events) {
            let owner = owners.get(usize::from(event.direction_flow)).copied().flatten();
            let Some(direction) = owner else { continue };
            let t_ns =
                if number == 0 { to_i64(event.t_ns) } else { alignment.to_first(event.t_ns) };
            sightings[direction].push(Place {
                t_ns,
                point: event.point,
                second: number == 1,
                index,
            });
        }
    }
    for places in &mut sightings {
        places.sort_unstable();
    }
    directions.into_iter().zip(sightings)
}

/// The best alignment that two recordings allow: one kernel has one clock; otherwise the more
/// certain of what disciplines the clocks and what the packets in both directions show.
pub fn align(first: &Recording, second: &Recording) -> Alignment {
    let disciplined = Alignment::told(first, second);
    if disciplined.how == How::SameHost {
        return disciplined;
    }
    disciplined.or_seen(estimate(&crossings([first, second], &disciplined)))
}

/// Packets that both hosts saw at their closest points, each by its own clock: the basis for
/// comparing clocks. `rough` need only be correct to within half a cycle of the packets' keys.
fn crossings(recordings: [&Recording; 2], rough: &Alignment) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (direction, places) in sightings(recordings, rough) {
        let points = watched(&direction, recordings);
        let sending = points.iter().rfind(|&point| side(point) == Side::Sender);
        let receiving = points.iter().find(|&point| side(point) == Side::Receiver);
        let (Some(sending), Some(receiving)) = (sending, receiving) else { continue };
        let outward = direction.sender.is_some_and(|(number, _)| number == 0);
        let mut matcher = Datagrams::new([sending, receiving].into_iter().collect());
        for place in places.iter().filter(|place| [sending, receiving].contains(&place.point)) {
            let event = &recordings[usize::from(place.second)].events[place.index as usize];
            // The matcher keeps each host's own time; the rough clock only determines the order.
            let own =
                Sighting { key: whole(event), ..sighting(event, to_i64(event.t_ns), Side::Sender) };
            matcher.push(&own);
        }
        pairs.extend(matcher.finish().passages.iter().filter_map(|passage| {
            let (sent, received) = (passage.at(sending)?, passage.at(receiving)?);
            let (first_ns, second_ns) = if outward { (sent, received) } else { (received, sent) };
            Some(Pair { first_ns, second_ns, outward })
        }));
    }
    pairs
}

/// A key for a whole packet: for TCP only the very same packet has it, even if it is an
/// acknowledgement.
fn whole(event: &Event) -> Key {
    match event.key {
        Key::Bytes { start } => {
            let size = u64::from(event.payload_bytes & 0xffff);
            Key::Hash(u64::from(start) << 32 | size << 16 | u64::from(event.ip_id))
        }
        key => key,
    }
}

/// A compact reference to an event, for sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    t_ns: i64,
    point: Point,
    second: bool,
    index: u32,
}

/// For each flow of a recording, the direction that it belongs to.
fn owners(directions: &[Direction], number: usize, flows: usize) -> Vec<Option<usize>> {
    let mut owners = vec![None; flows];
    for (index, direction) in directions.iter().enumerate() {
        for (recording, flow) in [direction.sender, direction.receiver].into_iter().flatten() {
            if recording == number {
                owners[usize::from(flow)] = Some(index);
            }
        }
    }
    owners
}

fn match_one(direction: &Direction, places: &[Place], recordings: [&Recording; 2]) -> Matched {
    let points = watched(direction, recordings);
    let sightings = places.iter().map(|place| {
        let event = &recordings[usize::from(place.second)].events[place.index as usize];
        let sender = direction.sender.map(|(number, _)| number);
        let here =
            if sender == Some(usize::from(place.second)) { Side::Sender } else { Side::Receiver };
        sighting(event, place.t_ns, here)
    });
    match direction.protocol {
        Protocol::Udp => {
            let mut matcher = Datagrams::new(points);
            sightings.for_each(|sighting| matcher.push(&sighting));
            matcher.finish()
        }
        Protocol::Tcp => {
            let mut matcher = Stream::new(points);
            sightings.for_each(|sighting| matcher.push(&sighting));
            matcher.finish()
        }
    }
}

fn sighting(event: &Event, t_ns: i64, here: Side) -> Sighting {
    Sighting {
        t_ns,
        point: event.point,
        key: event.key,
        ip_id: event.ip_id,
        bytes: event.payload_bytes,
        drop: event.cause.map(|cause| Drop { side: here, cause }),
    }
}
