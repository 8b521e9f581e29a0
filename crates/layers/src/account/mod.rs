//! What each part of the path lost and delayed, by the definitions of the study, and whether the counts add up.

mod delay;
mod layer;
mod loss;
mod seconds;
mod unseen;

use std::collections::BTreeMap;

use serde::Serialize;
use suiro_units::to_i64;

pub use delay::Delay;
pub use layer::{Layer, LayerAccount, below, bounds, title};
pub use seconds::{SECONDS, Second};
pub use unseen::Unseen;

use crate::clock::Alignment;
use crate::event::{Pause, Point, Protocol, Recording};
use crate::matching::{Direction, Drop, Matched, Passage, Points, Side, side, watched};

/// Packets still in transit when a recording ends are not lost. This is the shortest time allowed for them.
const SETTLE_NS: i64 = 50_000_000;
/// The longest time allowed, however slow others were.
const SETTLE_MOST_NS: i64 = 10_000_000_000;

/// The counts of one point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sap {
    /// The point.
    pub point: Point,
    /// Passed here: packets for UDP, bytes for TCP; without duplicates.
    pub passed: u64,
    /// Bytes of payload that passed here.
    pub bytes: u64,
    /// Of `passed`, seen not here but later: the recorder's own gaps.
    pub unseen: u64,
    /// Seen here again, although sent once.
    pub duplicates: u64,
    /// Overtaken by something sent later (RFC 4737 §3.3).
    pub reordered: u64,
    /// Events of this point, over all flows, that the recorder lost, did not see because the kernel skipped its
    /// program, or could not join to a datagram.
    pub recorder_lost: u64,
    /// Mean rate of payload over the time that its host was recorded; `None` if that time is zero.
    pub throughput_bps: Option<f64>,
}

/// The part of the path between one watched point and the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hop {
    /// Where it begins.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
    /// Reached its beginning and is settled: packets for UDP, bytes for TCP.
    pub entered: u64,
    /// Did not reach its end.
    pub lost: u64,
    /// Not seen again, possibly because of a gap in the recorder. Not in `lost`.
    pub unplaced: u64,
    /// Of `lost` and `unplaced`, by the kernel's name of the drop reason; without those that have none.
    pub causes: BTreeMap<String, u64>,
    /// The same, by the side whose host reports it.
    #[serde(skip)]
    pub reported_by: BTreeMap<Side, u64>,
    /// The delay of what got through.
    pub delay: Option<Delay>,
}

/// The account of one direction of one flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// `udp 10.0.0.1:5000>10.0.0.2:5004`.
    pub flow: String,
    /// What an endpoint of the trial reported of the flow, in words; `None` if none did.
    pub reported: Option<String>,
    /// Name of the sending host; `None` if its recording does not contain the flow.
    pub sender: Option<String>,
    /// Name of the receiving host; `None` likewise.
    pub receiver: Option<String>,
    /// Packets are counted for UDP, bytes for TCP.
    pub protocol: Protocol,
    /// Sent, as far as it was seen: what reached the first point.
    pub sent: u64,
    /// What reached the last point.
    pub delivered: u64,
    /// Of `sent`, in transit when a recording began or ended, or paused: the outcome is unknown.
    pub unsettled: u64,
    /// First seen after the first point: gaps in the recorder, or sent before recording began; for TCP, also what it
    /// resent.
    pub appeared: u64,
    /// Packets that the application sent under a number in use, ranges that TCP resent.
    pub repeated: u64,
    /// Send calls that failed and were made again for the same datagram, which counts once.
    pub retried: u64,
    /// Watched points that are not in this account because they cannot see this flow.
    pub unseen: Vec<Unseen>,
    /// Each watched point, in order.
    pub saps: Vec<Sap>,
    /// Each part of the path, in order.
    pub hops: Vec<Hop>,
    /// Each layer, from top to bottom.
    pub layers: Vec<LayerAccount>,
    /// Each second from the start of the first recording.
    pub seconds: Vec<Second>,
}

impl Account {
    /// Whether everything sent is accounted for: delivered, lost at a known place, lost at an unknown place, or
    /// unsettled.
    pub fn is_conserved(&self) -> bool {
        let gone: u64 = self.hops.iter().map(|hop| hop.lost + hop.unplaced).sum();
        self.sent + self.appeared == self.delivered + gone + self.unsettled
    }

    /// From the first point to the last: the share that is certainly lost.
    pub fn loss(&self) -> Option<f64> {
        let settled = (self.sent + self.appeared).checked_sub(self.unsettled)?;
        let lost: u64 = self.hops.iter().map(|hop| hop.lost).sum();
        (settled > 0).then(|| lost as f64 / settled as f64)
    }
}

/// The amount that a passage counts for: one packet, or its bytes.
fn weight(passage: &Passage, protocol: Protocol) -> u64 {
    match protocol {
        Protocol::Udp => 1,
        Protocol::Tcp => passage.bytes.into(),
    }
}

/// Whether it passed a point: it was seen there, or on both sides of it.
fn passed(passage: &Passage, point: Point) -> bool {
    passage.first().is_some_and(|first| first <= point)
        && passage.last().is_some_and(|last| last >= point)
}

/// The drop that a host at either end of a part reports of a passage that ended in it.
fn reported(passage: &Passage, from: Point, to: Point) -> Option<Drop> {
    passage.drop.filter(|drop| drop.side == side(from) || drop.side == side(to))
}

/// Computes the account of one direction.
pub fn account(
    direction: &Direction,
    matched: &Matched,
    recordings: [&Recording; 2],
    alignment: &Alignment,
) -> Account {
    let points = watched(direction, recordings);
    let mut of = Of { direction, matched, recordings, alignment, points, unseen: Vec::new() };
    let seen = |passage: &&Passage| passage.first().is_some();
    let mut passages: Vec<&Passage> = matched.passages.iter().filter(seen).collect();
    // TCP splits passages, which leaves them out of order, but jitter is defined over successive ones.
    passages.sort_by_key(|passage| passage.first().and_then(|point| passage.at(point)));
    of.unseen = unseen::unseen(&passages, points, |side| of.host(side));
    of.points = of.unseen.iter().fold(points, |points, unseen| points.without(unseen.point));
    let slack = of.slack(&passages);
    let (settled, unsettled): (Vec<&Passage>, Vec<&Passage>) =
        passages.into_iter().partition(|passage| of.is_settled(passage, &slack));
    of.account(&settled, &unsettled)
}

/// The inputs of an account.
struct Of<'a> {
    direction: &'a Direction,
    matched: &'a Matched,
    recordings: [&'a Recording; 2],
    alignment: &'a Alignment,
    points: Points,
    unseen: Vec<Unseen>,
}

impl Of<'_> {
    fn account(&self, settled: &[&Passage], unsettled: &[&Passage]) -> Account {
        let Direction { flow, protocol, .. } = self.direction.clone();
        let sum = |passages: &[&Passage]| passages.iter().map(|p| weight(p, protocol)).sum::<u64>();
        let all = || settled.iter().chain(unsettled).copied();
        let total = |keep: &dyn Fn(&Passage) -> bool| {
            all().filter(|p| keep(p)).map(|p| weight(p, protocol)).sum::<u64>()
        };
        let (first, last) = (self.points.first(), self.points.iter().next_back());
        let hops = self.hops(settled);
        let lost = loss::certain(settled, &hops, protocol);
        let ended: Vec<(&Passage, u64)> = settled.iter().copied().zip(lost).collect();
        let error_ns = self.error_ns();
        Account {
            reported: None,
            sender: self.host(Side::Sender).map(|recording| recording.host.clone()),
            receiver: self.host(Side::Receiver).map(|recording| recording.host.clone()),
            protocol,
            sent: total(&|passage| passage.first() == first),
            appeared: total(&|passage| passage.first() != first),
            delivered: total(&|passage| passage.last().is_some() && passage.last() == last),
            unsettled: sum(unsettled),
            repeated: self.matched.repeated,
            retried: self.matched.retried,
            unseen: self.unseen.clone(),
            saps: self.points.iter().map(|point| self.sap(point, settled, unsettled)).collect(),
            layers: layer::accounts(&ended, self.points, protocol, error_ns),
            seconds: seconds::seconds(&ended, self.points, protocol, self.start_ns()),
            hops,
            flow,
        }
    }

    fn host(&self, side: Side) -> Option<&Recording> {
        let end = match side {
            Side::Sender => self.direction.sender,
            Side::Receiver => self.direction.receiver,
        };
        end.map(|(number, _)| self.recordings[number])
    }

    /// A time of a recording on the common clock.
    fn common(&self, recording: &Recording, t_ns: u64) -> i64 {
        let first = std::ptr::eq(recording, self.recordings[0]);
        if first { to_i64(t_ns) } else { self.alignment.to_first(t_ns) }
    }

    /// The start and end of a recording on the common clock.
    fn bounds(&self, side: Side) -> Option<(i64, i64)> {
        let recording = self.host(side)?;
        let common = |t_ns| self.common(recording, t_ns);
        Some((common(recording.start.monotonic_ns), common(recording.end.monotonic_ns)))
    }

    /// The times in between in which nothing was recorded.
    fn pauses(&self, side: Side) -> impl Iterator<Item = (i64, i64)> {
        let of = move |recording: &Recording| {
            let common = |pause: &Pause| {
                (self.common(recording, pause.from_ns), self.common(recording, pause.to_ns))
            };
            recording.pauses.iter().map(common).collect::<Vec<_>>()
        };
        self.host(side).map(of).unwrap_or_default().into_iter()
    }

    fn start_ns(&self) -> i64 {
        to_i64(self.recordings[0].start.monotonic_ns)
    }

    fn recorded_ns(&self, side: Side) -> Option<i64> {
        let (start, end) = self.bounds(side)?;
        let paused = self.pauses(side).map(|(from, to)| to.saturating_sub(from).max(0));
        let span = paused.fold(end.checked_sub(start)?, i64::saturating_sub);
        Some(span).filter(|&span| span > 0)
    }

    /// The clocks' error only matters between the hosts.
    fn error_ns(&self) -> Option<u64> {
        match (self.direction.sender, self.direction.receiver) {
            (Some((sender, _)), Some((receiver, _))) if sender == receiver => Some(0),
            _ => self.alignment.error_ns,
        }
    }

    /// For each point, the longest time that others took to the next.
    fn slack(&self, passages: &[&Passage]) -> BTreeMap<Point, i64> {
        let pairs = self.points.iter().zip(self.points.iter().skip(1));
        pairs
            .map(|(from, to)| {
                let took = |p: &&Passage| Some(p.at(to)?.saturating_sub(p.at(from)?));
                let most = passages.iter().filter_map(took).max().unwrap_or(0);
                (from, most.clamp(SETTLE_NS, SETTLE_MOST_NS))
            })
            .collect()
    }

    /// Whether the recorder of the next point would have seen it, had it arrived there.
    fn is_settled(&self, passage: &Passage, slack: &BTreeMap<Point, i64>) -> bool {
        let Some(last) = passage.last() else { return true };
        let (Some(next), Some(t_ns)) = (self.points.after(last), passage.at(last)) else {
            return true;
        };
        let Some((start, end)) = self.bounds(side(next)) else { return true };
        let until = t_ns.saturating_add(slack.get(&last).copied().unwrap_or(SETTLE_NS));
        let paused = self.pauses(side(next)).any(|(from, to)| t_ns < to && until > from);
        t_ns >= start && until <= end && !paused
    }

    fn sap(&self, point: Point, settled: &[&Passage], unsettled: &[&Passage]) -> Sap {
        let protocol = self.direction.protocol;
        let (mut here, mut bytes, mut unseen) = (0, 0, 0);
        for passage in settled.iter().chain(unsettled).filter(|passage| passed(passage, point)) {
            here += weight(passage, protocol);
            bytes += u64::from(passage.bytes);
            unseen += if passage.at(point).is_none() { weight(passage, protocol) } else { 0 };
        }
        let tally = self.matched.tally(point);
        let rate = |span: i64| bytes as f64 * 8e9 / span as f64;
        Sap {
            point,
            passed: here,
            bytes,
            unseen,
            duplicates: tally.duplicates,
            reordered: tally.reordered,
            recorder_lost: self.recorder_lost(point),
            throughput_bps: self.recorded_ns(side(point)).map(rate),
        }
    }

    fn recorder_lost(&self, point: Point) -> u64 {
        let statuses = self.host(side(point)).map(|recording| recording.points.as_slice());
        let status = statuses.unwrap_or_default().iter().find(|status| status.point == point);
        let lost = status.map_or(0, |status| status.lost + status.skipped);
        match point {
            // A call that is not joined to its datagram also means an unseen passage.
            Point::ReceiveCall => lost + self.host(Side::Receiver).map_or(0, |host| host.unjoined),
            _ => lost,
        }
    }

    fn hops(&self, settled: &[&Passage]) -> Vec<Hop> {
        let pairs = self.points.iter().zip(self.points.iter().skip(1));
        pairs.map(|(from, to)| self.hop(from, to, settled)).collect()
    }

    fn hop(&self, from: Point, to: Point, settled: &[&Passage]) -> Hop {
        let protocol = self.direction.protocol;
        let (mut entered, mut missing, mut unexplained) = (0, 0, 0);
        let (mut causes, mut reported_by) = (BTreeMap::new(), BTreeMap::new());
        let mut delays = Vec::new();
        for passage in settled.iter().filter(|passage| passed(passage, from)) {
            let weight = weight(passage, protocol);
            entered += weight;
            if let (Some(begun), Some(done)) = (passage.at(from), passage.at(to)) {
                delays.push(done.saturating_sub(begun));
            }
            if passage.last() != Some(from) {
                continue;
            }
            missing += weight;
            match self.cause(passage, from, to) {
                Some((side, cause)) => {
                    *causes.entry(cause).or_insert(0) += weight;
                    *reported_by.entry(side).or_insert(0) += weight;
                }
                None => unexplained += weight,
            }
        }
        let unplaced = unexplained.min(self.gaps_from(to, protocol));
        let between = side(from) != side(to);
        let error_ns = if between { self.error_ns() } else { Some(0) };
        let delay = Delay::of(delays, error_ns);
        let lost = missing - unplaced;
        Hop { from, to, entered, lost, unplaced, causes, reported_by, delay }
    }

    /// How many events the recorder may have missed among those that reached this point and were not seen at any later
    /// one: the recorder must have lost them at all of those points.
    fn gaps_from(&self, point: Point, protocol: Protocol) -> u64 {
        let later = self.points.iter().filter(|&later| later >= point);
        let gaps = later.map(|later| self.recorder_lost(later)).min().unwrap_or(0);
        match protocol {
            Protocol::Udp => gaps,
            // A TCP event stands for at most one super-packet.
            Protocol::Tcp => gaps.saturating_mul(65_535),
        }
    }

    /// The name of the reason why a passage ended between two points, if one of their hosts reports it, and the side of that
    /// host.
    fn cause(&self, passage: &Passage, from: Point, to: Point) -> Option<(Side, String)> {
        let Drop { side, cause } = reported(passage, from, to)?;
        let name = self.host(side)?.causes.get(usize::from(cause.0)).map(ToString::to_string);
        Some((side, name.unwrap_or_else(|| format!("reason {}", cause.0))))
    }
}
