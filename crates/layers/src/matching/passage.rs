//! A packet's way through both hosts, as far as it was seen.

use crate::event::{DropCause, Point};

/// Points that a packet passes: all but [`Point::Dropped`].
pub const POINTS: usize = 10;

/// The points of a packet's way, in order.
pub fn way() -> impl DoubleEndedIterator<Item = Point> {
    Point::ALL.into_iter().filter(|&point| point != Point::Dropped)
}

/// Which of the two hosts of a flow's direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The host that sends it.
    Sender,
    /// The host that receives it.
    Receiver,
}

/// The side that a point of the way is on.
pub fn side(point: Point) -> Side {
    if point < Point::ReceiveDevice { Side::Sender } else { Side::Receiver }
}

/// A set of points of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Points(u16);

impl Points {
    /// Every point.
    pub fn all() -> Self {
        way().collect()
    }
    /// Whether it is in the set.
    pub fn has(self, point: Point) -> bool {
        self.0 & 1 << point as u16 != 0
    }
    /// In order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Point> {
        way().filter(move |&point| self.has(point))
    }
    /// The first of the way.
    pub fn first(self) -> Option<Point> {
        self.iter().next()
    }
    /// The next of the set after this point.
    pub fn after(self, point: Point) -> Option<Point> {
        self.iter().find(|&next| next > point)
    }
    /// The first at or after this point.
    pub fn at_or_after(self, point: Point) -> Option<Point> {
        self.iter().find(|&next| next >= point)
    }
    /// Without this point.
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

/// That the kernel gave a packet up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drop {
    /// On which host.
    pub side: Side,
    /// Why: an index into that host's list of causes.
    pub cause: DropCause,
}

/// One event on the clock that both hosts' events were brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// When, in nanoseconds.
    pub t_ns: i64,
    /// Where; [`Point::Dropped`] comes with a drop.
    pub point: Point,
    /// Which packet.
    pub key: crate::event::Key,
    /// IPv4 identification; 0 where it is not known.
    pub ip_id: u16,
    /// Bytes of payload.
    pub bytes: u32,
    /// For [`Point::Dropped`].
    pub drop: Option<Drop>,
}

const NEVER: i64 = i64::MIN;
/// No passage: the end of a chain of those with one key.
pub(super) const NONE: u32 = u32::MAX;

/// One packet (UDP) or one transmission of a range of bytes (TCP), and when it passed each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    pub(super) at: [i64; POINTS],
    /// Bytes of payload.
    pub bytes: u32,
    /// IPv4 identification; 0 where it is not known.
    pub ip_id: u16,
    /// What tells it from others with its key; 0 where it is not known.
    pub(super) check: u16,
    /// Whether it was first seen without an identification.
    pub(super) unnumbered: bool,
    /// That and why the kernel gave it, or a copy of it, up.
    pub drop: Option<Drop>,
    /// Number among those of its key space.
    pub(super) number: u32,
    /// The one before with the same key.
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

    /// When it passed there, in nanoseconds; `None` if it was not seen.
    pub fn at(&self, point: Point) -> Option<i64> {
        self.at.get(point as usize).copied().filter(|&t_ns| t_ns != NEVER)
    }

    /// Where it was last seen.
    pub fn last(&self) -> Option<Point> {
        way().rev().find(|&point| self.at(point).is_some())
    }

    /// Where it was first seen.
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

    /// Whether it may be the packet of a sighting, by what its key leaves open.
    pub(super) fn same_check(&self, sighting: &Sighting) -> bool {
        let (_, check) = sighting.key.split();
        self.check == 0 || check == 0 || self.check == check
    }

    /// Takes the time at this point out.
    pub(super) fn take(&mut self, point: Point) -> i64 {
        std::mem::replace(&mut self.at[point as usize], NEVER)
    }

    /// Puts back what [`Self::take`] took elsewhere.
    pub(super) fn put(&mut self, point: Point, t_ns: i64) {
        self.at[point as usize] = t_ns;
    }

    /// Whether it may be the packet of a sighting, by its IP identification.
    pub(super) fn same_ip_id(&self, sighting: &Sighting) -> bool {
        self.ip_id == 0 || sighting.ip_id == 0 || self.ip_id == sighting.ip_id
    }

    /// How far it had come before this point: the further, the likelier it is the packet seen there.
    pub(super) fn progress(&self, point: Point) -> u8 {
        way().rev().find(|&p| p < point && self.at(p).is_some()).map_or(0, |p| p as u8 + 1)
    }
}

/// What was counted at each point beside the passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Passages seen here: packets of UDP, bytes of TCP.
    pub seen: u64,
    /// Seen again here, though sent once: packets of UDP, bytes of TCP.
    pub duplicates: u64,
    /// Packets overtaken by one sent after them (RFC 4737 §3.3); of TCP ranges.
    pub reordered: u64,
}

/// All passages of one direction of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matched {
    /// In the order in which they began.
    pub passages: Vec<Passage>,
    /// By point of the way.
    pub tallies: [Tally; POINTS],
    /// Packets sent again under a key of their own that was still in use: UDP applications that
    /// repeat themselves; transmissions of TCP beyond the first, in ranges.
    pub repeated: u64,
}

impl Matched {
    /// What was counted there.
    pub fn tally(&self, point: Point) -> Tally {
        self.tallies.get(point as usize).copied().unwrap_or_default()
    }
}
