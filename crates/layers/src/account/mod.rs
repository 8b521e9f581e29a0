//! What each part of the way lost and delayed, by the definitions of the study, and whether it adds up.

mod delay;
mod layer;
mod seconds;
mod unseen;

use std::collections::BTreeMap;

use serde::Serialize;
use suiro_units::to_i64;

pub use delay::Delay;
pub use layer::{Layer, LayerAccount, below, title};
pub use seconds::{SECONDS, Second};
pub use unseen::Unseen;

use crate::clock::Alignment;
use crate::event::{Point, Protocol, Recording};
use crate::matching::{Direction, Matched, Passage, Points, Side, side, watched};

/// What is on its way when a recording ends has not been lost: the least time that it is given.
const SETTLE_NS: i64 = 50_000_000;
/// The most, however slow others were.
const SETTLE_MOST_NS: i64 = 10_000_000_000;

/// One point's count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sap {
    /// Which.
    pub point: Point,
    /// Passed here: packets of UDP, bytes of TCP; without duplicates.
    pub passed: u64,
    /// Bytes of payload that passed here.
    pub bytes: u64,
    /// Of `passed`, not seen here but later: the recorder's own gaps.
    pub unseen: u64,
    /// Seen here again, though sent once.
    pub duplicates: u64,
    /// Overtaken by what was sent later (RFC 4737 §3.3).
    pub reordered: u64,
    /// Events of this point that the recorder lost, of all flows, or could not join to a datagram.
    pub recorder_lost: u64,
    /// Mean rate of payload over the time that its host was recorded; `None` of no time.
    pub throughput_bps: Option<f64>,
}

/// The way from one watched point to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hop {
    /// Where it begins.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
    /// What came to its beginning and is settled: packets of UDP, bytes of TCP.
    pub entered: u64,
    /// What did not come to its end.
    pub lost: u64,
    /// What was not seen again, but may be a gap of the recorder. Not in `lost`.
    pub unplaced: u64,
    /// Of `lost` and `unplaced`, by the kernel's name of the reason; what has none is not here.
    pub causes: BTreeMap<String, u64>,
    /// Of what came through.
    pub delay: Option<Delay>,
}

/// The account of one direction of one flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// `udp 10.0.0.1:5000>10.0.0.2:5004`.
    pub flow: String,
    /// Name of the host that sends; `None` if its recording has nothing of it.
    pub sender: Option<String>,
    /// Name of the host that receives.
    pub receiver: Option<String>,
    /// Packets of UDP are counted, bytes of TCP.
    pub protocol: Protocol,
    /// Sent, as far as it was seen: what came to the first point.
    pub sent: u64,
    /// What came to the last point.
    pub delivered: u64,
    /// Of `sent`, what was on its way when a recording began or ended: nobody knows what became of it.
    pub unsettled: u64,
    /// First seen behind the first point: the recorder's gaps, or sent before recording began; of TCP
    /// what it sent again.
    pub appeared: u64,
    /// Packets that the application sent under a number in use, ranges that TCP sent again.
    pub repeated: u64,
    /// Points that were watched and are not in this account, because they do not see this flow.
    pub unseen: Vec<Unseen>,
    /// Each watched point, in order.
    pub saps: Vec<Sap>,
    /// Each part of the way, in order.
    pub hops: Vec<Hop>,
    /// Each layer, from the top.
    pub layers: Vec<LayerAccount>,
    /// Each second from the start of the first recording.
    pub seconds: Vec<Second>,
}

impl Account {
    /// Everything sent was delivered, lost at a place, lost at no certain place, or is unsettled.
    pub fn is_conserved(&self) -> bool {
        let gone: u64 = self.hops.iter().map(|hop| hop.lost + hop.unplaced).sum();
        self.sent + self.appeared == self.delivered + gone + self.unsettled
    }

    /// From the first point to the last: the share that is lost, certainly.
    pub fn loss(&self) -> Option<f64> {
        let settled = (self.sent + self.appeared).checked_sub(self.unsettled)?;
        let lost: u64 = self.hops.iter().map(|hop| hop.lost).sum();
        (settled > 0).then(|| lost as f64 / settled as f64)
    }
}

/// What a passage counts: a packet, or its bytes.
fn weight(passage: &Passage, protocol: Protocol) -> u64 {
    match protocol {
        Protocol::Udp => 1,
        Protocol::Tcp => passage.bytes.into(),
    }
}

/// Whether it came by a point, seen there or on both sides of it.
fn passed(passage: &Passage, point: Point) -> bool {
    passage.first().is_some_and(|first| first <= point)
        && passage.last().is_some_and(|last| last >= point)
}

/// Makes the account of one direction.
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
    // TCP splits passages, which leaves them out of order; jitter is of successive ones.
    passages.sort_by_key(|passage| passage.first().and_then(|point| passage.at(point)));
    of.unseen = unseen::unseen(&passages, points, |side| of.host(side));
    of.points = of.unseen.iter().fold(points, |points, unseen| points.without(unseen.point));
    let slack = of.slack(&passages);
    let (settled, unsettled): (Vec<&Passage>, Vec<&Passage>) =
        passages.into_iter().partition(|passage| of.is_settled(passage, &slack));
    of.account(&settled, &unsettled)
}

/// What an account is made of.
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
        let error_ns = self.error_ns();
        Account {
            sender: self.host(Side::Sender).map(|recording| recording.host.clone()),
            receiver: self.host(Side::Receiver).map(|recording| recording.host.clone()),
            protocol,
            sent: total(&|passage| passage.first() == first),
            appeared: total(&|passage| passage.first() != first),
            delivered: total(&|passage| passage.last().is_some() && passage.last() == last),
            unsettled: sum(unsettled),
            repeated: self.matched.repeated,
            unseen: self.unseen.clone(),
            saps: self.points.iter().map(|point| self.sap(point, settled, unsettled)).collect(),
            layers: layer::accounts(settled, self.points, protocol, error_ns),
            seconds: seconds::seconds(settled, &hops, protocol, self.start_ns()),
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

    /// A recording's bounds on the common clock.
    fn bounds(&self, side: Side) -> Option<(i64, i64)> {
        let recording = self.host(side)?;
        let first = std::ptr::eq(recording, self.recordings[0]);
        let to_common =
            |t_ns: u64| if first { to_i64(t_ns) } else { self.alignment.to_first(t_ns) };
        Some((to_common(recording.start.monotonic_ns), to_common(recording.end.monotonic_ns)))
    }

    fn start_ns(&self) -> i64 {
        to_i64(self.recordings[0].start.monotonic_ns)
    }

    fn recorded_ns(&self, side: Side) -> Option<i64> {
        let (start, end) = self.bounds(side)?;
        end.checked_sub(start).filter(|&span| span > 0)
    }

    /// Clocks add to what lies between the hosts only.
    fn error_ns(&self) -> Option<u64> {
        match (self.direction.sender, self.direction.receiver) {
            (Some((sender, _)), Some((receiver, _))) if sender == receiver => Some(0),
            _ => self.alignment.error_ns,
        }
    }

    /// For each point, how long others took at most to the next.
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

    /// Whether the recorder of the next point would have seen it, had it come there.
    fn is_settled(&self, passage: &Passage, slack: &BTreeMap<Point, i64>) -> bool {
        let Some(last) = passage.last() else { return true };
        let (Some(next), Some(t_ns)) = (self.points.after(last), passage.at(last)) else {
            return true;
        };
        let Some((start, end)) = self.bounds(side(next)) else { return true };
        let slack = slack.get(&last).copied().unwrap_or(SETTLE_NS);
        t_ns >= start && t_ns.saturating_add(slack) <= end
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
        let lost = status.map_or(0, |status| status.lost);
        match point {
            // A call that is not joined to its datagram is a passage not seen, too.
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
        let (mut causes, mut delays) = (BTreeMap::new(), Vec::new());
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
                Some(cause) => *causes.entry(cause).or_insert(0) += weight,
                None => unexplained += weight,
            }
        }
        let unplaced = unexplained.min(self.gaps_from(to, protocol));
        let between = side(from) != side(to);
        let error_ns = if between { self.error_ns() } else { Some(0) };
        let delay = Delay::of(delays, error_ns);
        Hop { from, to, entered, lost: missing - unplaced, unplaced, causes, delay }
    }

    /// How much the recorder may have missed of what came to this point and was not seen at any later
    /// one: the recorder must have lost it at all of them.
    fn gaps_from(&self, point: Point, protocol: Protocol) -> u64 {
        let later = self.points.iter().filter(|&later| later >= point);
        let gaps = later.map(|later| self.recorder_lost(later)).min().unwrap_or(0);
        match protocol {
            Protocol::Udp => gaps,
            // An event of TCP stands for at most one super-packet.
            Protocol::Tcp => gaps.saturating_mul(65_535),
        }
    }

    /// The name of why a passage ended between two points, if a host of them says so.
    fn cause(&self, passage: &Passage, from: Point, to: Point) -> Option<String> {
        let drop = passage.drop.filter(|drop| drop.side == side(from) || drop.side == side(to))?;
        let names = &self.host(drop.side)?.causes;
        let name = names.get(usize::from(drop.cause.0)).map(ToString::to_string);
        Some(name.unwrap_or_else(|| format!("reason {}", drop.cause.0)))
    }
}
