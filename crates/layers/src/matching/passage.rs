//! A packet's way through both hosts, as far as it was seen.

use crate::event::{DropCause, Point};

/// Points that a packet passes: all but [`Point::Dropped`].
pub const POINTS: usize = 11;

/// The points of a packet's way, in order.
pub fn way() -> impl DoubleEndedIterator<Item = Point> {
    Point::ALL.into_iter().filter(|&point| point != Point::Dropped)
}

/// Which of the two hosts of a flow's direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The sending host.
    Sender,
    /// The receiving host.
    Receiver,
}

/// The side on which a point of the path is.
pub fn side(point: Point) -> Side {
    if point < Point::ReceiveDevice { Side::Sender } else { Side::Receiver }
}

/// A set of points of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Points(u16);

impl Points {
    /// Every point.
    pub fn all() -> Self {
        way().collect()
    }
    /// Whether the point is in the set.
    pub fn has(self, point: Point) -> bool {
        self.0 & 1 << point as u16 != 0
    }
    /// The points in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Point> {
        way().filter(move |&point| self.has(point))
    }
    /// The first point of the path.
    pub fn first(self) -> Option<Point> {
        self.iter().next()
    }
    /// The next point of the set after this one.
    pub fn after(self, point: Point) -> Option<Point> {
        self.iter().find(|&next| next > point)
    }
    /// The first point at or after this one.
    pub fn at_or_after(self, point: Point) -> Option<Point> {
        self.iter().find(|&next| next >= point)
    }
    /// The set without this point.
    pub fn without(self, point: Point) -> Self {
        Self(self.0 & !(1 << point as u16))
    }
}

impl FromIterator<Point> for Points {
    fn from_iter<I: IntoIterator<Item = Point>>(points: I) -> Self {
        let bits = points.into_iter().filter(|&point| point != Point::Dropped);
        Self(bits.fold(0, |bits, point| bits | 1 << point as u16))
    }
}

/// A drop by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drop {
    /// The host.
    pub side: Side,
    /// The reason: an index into that host's list of causes.
    pub cause: DropCause,
}

/// One event, on the common clock of both hosts' events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The time, in nanoseconds.
    pub t_ns: i64,
    /// The point; [`Point::Dropped`] has a drop.
    pub point: Point,
    /// The packet.
    pub key: crate::event::Key,
    /// IPv4 identification; 0 if unknown.
    pub ip_id: u16,
    /// Bytes of payload.
    pub bytes: u32,
    /// For [`Point::Dropped`].
    pub drop: Option<Drop>,
}

const NEVER: i64 = i64::MIN;
/// No passage: the end of a chain with one key.
pub(super) const NONE: u32 = u32::MAX;

/// One packet (UDP) or one transmission of a range of bytes (TCP), and when it passed each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    pub(super) at: [i64; POINTS],
    /// Bytes of payload.
    pub bytes: u32,
    /// IPv4 identification; 0 if unknown.
    pub ip_id: u16,
    /// What distinguishes it from others with its key; 0 if unknown.
    pub(super) check: u16,
    /// Whether it was first seen without an identification.
    pub(super) unnumbered: bool,
    /// Whether and why the kernel dropped it, or a copy of it.
    pub drop: Option<Drop>,
    /// Its number within its key space.
    pub(super) number: u32,
    /// The previous one with the same key.
    pub(super) previous: u32,
}

impl Passage {
    pub(super) fn new(bytes: u32) -> Self {
        Self {
            at: [NEVER; POINTS],
            bytes,
            ip_id: 0,
            check: 0,
            unnumbered: false,
            drop: None,
            number: 0,
            previous: NONE,
        }
    }

    /// When it passed the point, in nanoseconds; `None` if it was not seen there.
    pub fn at(&self, point: Point) -> Option<i64> {
        self.at.get(point as usize).copied().filter(|&t_ns| t_ns != NEVER)
    }

    /// The point where it was last seen.
    pub fn last(&self) -> Option<Point> {
        way().rev().find(|&point| self.at(point).is_some())
    }

    /// The point where it was first seen.
    pub fn first(&self) -> Option<Point> {
        way().find(|&point| self.at(point).is_some())
    }

    pub(super) fn note(&mut self, sighting: &Sighting) {
        if let Some(slot) = self.at.get_mut(sighting.point as usize) {
            *slot = sighting.t_ns.max(NEVER + 1);
        } else if self.drop.is_none() {
            self.drop = sighting.drop;
        }
        if self.ip_id == 0 {
            self.ip_id = sighting.ip_id;
        }
        if self.check == 0 {
            self.check = sighting.key.split().1;
        }
    }

    pub(super) fn has(&self, point: Point) -> bool {
        match point {
            Point::Dropped => self.drop.is_some(),
            _ => self.at(point).is_some(),
        }
    }

    /// Whether it may be the packet of a sighting, as far as its key leaves that open.
    pub(super) fn same_check(&self, sighting: &Sighting) -> bool {
        let (_, check) = sighting.key.split();
        self.check == 0 || check == 0 || self.check == check
    }

    /// Removes and returns the time at this point.
    pub(super) fn take(&mut self, point: Point) -> i64 {
        std::mem::replace(&mut self.at[point as usize], NEVER)
    }

    /// Inserts what [`Self::take`] removed elsewhere.
    pub(super) fn put(&mut self, point: Point, t_ns: i64) {
        self.at[point as usize] = t_ns;
    }

    /// Whether it may be the packet of a sighting, judging by its IP identification.
    pub(super) fn same_ip_id(&self, sighting: &Sighting) -> bool {
        self.ip_id == 0 || sighting.ip_id == 0 || self.ip_id == sighting.ip_id
    }

    /// How far it had come before this point: the further, the likelier it is the packet seen
    /// there.
    pub(super) fn progress(&self, point: Point) -> u8 {
        way().rev().find(|&p| p < point && self.at(p).is_some()).map_or(0, |p| p as u8 + 1)
    }
}

/// What was counted at each point in addition to the passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Passages seen here: packets for UDP, bytes for TCP.
    pub seen: u64,
    /// Seen here again, although sent once: packets for UDP, bytes for TCP.
    pub duplicates: u64,
    /// Packets (ranges for TCP) overtaken by one sent after them (RFC 4737 §3.3).
    pub reordered: u64,
}

/// All passages of one direction of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matched {
    /// In the order in which they began.
    pub passages: Vec<Passage>,
    /// By point of the path.
    pub tallies: [Tally; POINTS],
    /// Packets resent under a key that was still in use: UDP applications that repeat themselves;
    /// for TCP, transmissions of a range beyond the first.
    pub repeated: u64,
    /// Send calls that failed and were made again with the same datagram. It counts once, from its first call.
    pub retried: u64,
}

impl Matched {
    /// The counts at a point.
    pub fn tally(&self, point: Point) -> Tally {
        self.tallies.get(point as usize).copied().unwrap_or_default()
    }
}
