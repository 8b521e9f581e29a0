//! Two captures as recordings: which host is which, and what each of them sent.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{Capture, CaptureError, Seen, Transport};
use crate::event::{Event, Flow, Key, Moment, Point, PointStatus, Recording};
use suiro_units::to_i64;

use crate::matching::way;

/// Most packets per pair of addresses that are compared to find the sender.
const COMPARED: usize = 100_000;

/// What is known about two captures beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ends {
    /// An address of the first capture's host; determined automatically if `None`.
    pub first_address: Option<IpAddr>,
    /// Both captures were made with one clock, on one kernel.
    pub same_clock: bool,
}

/// Turns two captures into recordings of the link layer with these names: what its host sent is recorded at the
/// handover to the driver, what it received at the arrival from the device.
///
/// # Errors
/// If they have no packet in common, or it is unclear which host sent them.
pub fn recordings(
    captures: [&Capture; 2],
    names: [&str; 2],
    ends: Ends,
) -> Result<[Recording; 2], CaptureError> {
    let senders = senders(captures, ends)?;
    Ok([0, 1].map(|number| recording(captures[number], names[number], number, &senders, ends)))
}

/// For each pair of addresses, from and to, whether the first capture's host is the sender.
type Senders = BTreeMap<(IpAddr, IpAddr), bool>;

fn addresses(seen: &Seen) -> (IpAddr, IpAddr) {
    (seen.transport.from.ip(), seen.transport.to.ip())
}

fn senders(captures: [&Capture; 2], ends: Ends) -> Result<Senders, CaptureError> {
    let differences = differences(captures);
    let (first, _) = *differences.keys().next().ok_or(CaptureError::NothingInCommon)?;
    let told = told(captures);
    let mut senders = Senders::new();
    for (&(from, to), &(ahead, _)) in &differences {
        let named = ends.first_address.and_then(|first| match (first == from, first == to) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        });
        let back = differences.get(&(to, from)).map(|(ahead, _)| *ahead);
        // Packets that, compared with the opposite direction, were seen later at the second host than at the first are
        // sent by the first, whatever the clocks. With only one direction, the clocks have to be trusted.
        let sender = named.or(told.get(&(from, to)).copied()).or(match back {
            Some(back) => Some(ahead > back).filter(|_| ahead != back),
            None => Some(ahead > 0).filter(|_| ahead != 0),
        });
        senders.insert((from, to), sender.ok_or(CaptureError::WhichHost(first))?);
    }
    Ok(senders)
}

/// What the captures themselves say about directions.
fn told(captures: [&Capture; 2]) -> Senders {
    let mut votes: BTreeMap<(IpAddr, IpAddr), i64> = BTreeMap::new();
    for (number, capture) in captures.into_iter().enumerate() {
        for seen in capture.packets.iter().take(COMPARED) {
            let Some(sent) = seen.sent else { continue };
            *votes.entry(addresses(seen)).or_default() +=
                if sent == (number == 0) { 1 } else { -1 };
        }
    }
    votes.into_iter().filter(|(_, vote)| *vote != 0).map(|(pair, vote)| (pair, vote > 0)).collect()
}

/// The fields by which a packet that occurs once is identified.
type Unique = (Transport, Key, u16, u32);

/// For each pair of addresses, how far the second host's times are ahead (median), and over how many common packets.
fn differences(captures: [&Capture; 2]) -> BTreeMap<(IpAddr, IpAddr), (i64, usize)> {
    let known = once(captures[0]);
    let mut differences: BTreeMap<(IpAddr, IpAddr), Vec<i64>> = BTreeMap::new();
    for (unique, second) in once(captures[1]) {
        let (Some(second), Some(Some(first))) = (second, known.get(&unique)) else { continue };
        let pair = (unique.0.from.ip(), unique.0.to.ip());
        differences.entry(pair).or_default().push(to_i64(second).saturating_sub(to_i64(*first)));
    }
    differences
        .into_iter()
        .map(|(pair, mut all)| {
            all.sort_unstable();
            (pair, (all[all.len() / 2], all.len()))
        })
        .collect()
}

/// When each packet was seen; `None` if it was seen more than once.
fn once(capture: &Capture) -> BTreeMap<Unique, Option<u64>> {
    let mut times = BTreeMap::new();
    for seen in capture.packets.iter().take(COMPARED) {
        let unique = (seen.transport, seen.key, seen.ip_id, seen.payload_bytes);
        times.entry(unique).and_modify(|time| *time = None).or_insert(Some(seen.t_ns));
    }
    times
}

fn recording(
    capture: &Capture,
    name: &str,
    number: usize,
    senders: &Senders,
    ends: Ends,
) -> Recording {
    let mut flows: Vec<Flow> = Vec::new();
    let mut indices: BTreeMap<Transport, Option<u16>> = BTreeMap::new();
    let mut events = Vec::new();
    for seen in &capture.packets {
        let index = *indices.entry(seen.transport).or_insert_with(|| {
            let sent = *senders.get(&addresses(seen))? == (number == 0);
            let index = u16::try_from(flows.len()).ok()?;
            flows.push(flow(&seen.transport, sent));
            Some(index)
        });
        let Some(index) = index else { continue };
        events.push(event(seen, index, flows[usize::from(index)].sent));
    }
    events.sort_by_key(|event| event.t_ns);
    let moment = |event: Option<&Event>| {
        let t_ns = event.map_or(0, |event| event.t_ns);
        Moment { monotonic_ns: t_ns, realtime_ns: t_ns }
    };
    Recording {
        host: name.to_string(),
        boot_id: if ends.same_clock { "one clock".into() } else { format!("capture {number}") },
        kernel: "unknown".into(),
        start: moment(events.first()),
        end: moment(events.last()),
        pauses: Vec::new(),
        asked: Vec::new(),
        causes: Vec::new(),
        points: way().map(|point| status(point, capture, flows.iter(), &events)).collect(),
        fragments: capture.fragments,
        unjoined: 0,
        unplaced: 0,
        scheduling: Vec::new(),
        clock: None,
        cost: None,
        flows,
        events,
    }
}

fn flow(transport: &Transport, sent: bool) -> Flow {
    let Transport { protocol, from, to } = *transport;
    let (local, remote) = if sent { (from, to) } else { (to, from) };
    Flow { protocol, local, remote, sent }
}

fn event(seen: &Seen, direction_flow: u16, sent: bool) -> Event {
    Event {
        t_ns: seen.t_ns,
        point: if sent { Point::SendDriver } else { Point::ReceiveDevice },
        direction_flow,
        key: seen.key,
        ip_id: seen.ip_id,
        payload_bytes: seen.payload_bytes,
        segments: 1,
        cause: None,
    }
}

fn status<'a>(
    point: Point,
    capture: &Capture,
    mut flows: impl Iterator<Item = &'a Flow>,
    events: &[Event],
) -> PointStatus {
    let watched = match point {
        Point::SendDriver => flows.any(|flow| flow.sent),
        Point::ReceiveDevice => flows.any(|flow| !flow.sent),
        _ => false,
    };
    PointStatus {
        point,
        missing: (!watched).then(|| "a capture sees packets at the device only".into()),
        events: events.iter().filter(|event| event.point == point).count() as u64,
        lost: if watched { capture.lost } else { 0 },
        skipped: 0,
    }
}
