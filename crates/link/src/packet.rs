//! What goes into a link and what comes out.

pub use suiro_units::Direction;
use suiro_units::{Bytes, Time};

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// The transport does not understand ECN: a queue discipline drops instead of marking.
    #[default]
    NotEct,
    /// ECN-capable transport, codepoint 10.
    Ect0,
    /// ECN-capable transport, codepoint 01.
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// From the two low bits of the traffic class; the others are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// As the two low bits of the traffic class.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }
}

/// A packet as the link sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packet {
    /// The caller's handle; the link hands it back and does not look at it.
    pub id: u64,
    /// Size of the IP packet, headers included, at most [`MAX_PACKET`].
    pub size: Bytes,
    /// Its flow, for disciplines that distinguish flows, and for its random numbers: they depend on its flow and its
    /// number in the flow, so a flow has the same value in every trial, whatever others send.
    pub flow: u64,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// Largest packet a link carries: an IPv6 header and a payload of 65,535 bytes (RFC 8200 §3).
/// Larger ones (jumbograms) are dropped with [`Cause::Size`].
pub const MAX_PACKET: Bytes = Bytes::new(65_575);

/// What waits in a queue. The packet in service is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Backlog {
    /// Bytes of IP packets.
    pub bytes: Bytes,
    /// Packets.
    pub packets: u32,
}

suiro_units::words! {
    /// Why the link dropped a packet.
    pub enum Cause {
        /// The loss model said so.
        Loss = "loss",
        /// The queue was full.
        Queue = "queue",
        /// The active queue management (CoDel, PIE) said so.
        Aqm = "aqm",
        /// It can never pass: larger than [`MAX_PACKET`], or than what the medium carries in a frame.
        Size = "size",
        /// Wi-Fi: sent as often as the retry limit allows, and never received.
        Retry = "retry",
        /// Wi-Fi: longer in a station than the lifetime of a packet there.
        Lifetime = "lifetime",
        /// Half-duplex Ethernet: it collided in each of 16 attempts.
        Collisions = "collisions",
        /// The emulator's own bound ([`crate::MAX_QUEUED`], [`crate::MAX_IN_FLIGHT`]) was reached. Not
        /// a property of the emulated link: a measurement in which it occurs is not valid.
        Limit = "limit",
    }
}

/// A bit of the packet to be flipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Corruption {
    /// Offset of the byte in the IP packet, from 0.
    pub byte: u32,
    /// The bit in that byte, from 0, the least significant.
    pub bit: u8,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Hand it to the receiver.
    Delivered {
        /// It is a copy that the link made; its original has an event of its own.
        duplicate: bool,
        /// Flip this bit first.
        corruption: Option<Corruption>,
    },
    /// It is gone.
    Dropped(Cause),
    /// It was still in the link when the link was drained.
    Queued,
}

/// The end of a packet's passage: everything that a record says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// The scheduled time: when it is delivered, when it was dropped, or when the link was drained.
    pub at: Time,
    /// Its direction.
    pub direction: Direction,
    /// The packet as it leaves: its ECN field is [`Ecn::Ce`] if the link marked it.
    pub packet: Packet,
    /// Number of the packet in its direction, from 0; a duplicate bears its original's.
    pub number: u64,
    /// When it arrived at the link.
    pub arrived: Time,
    /// What it found in the queue; itself and the packet in service excluded.
    pub backlog: Backlog,
    /// True if the queue discipline marked it instead of dropping it.
    pub ecn_marked: bool,
    /// When it left the queue and went into service; `None` if it never did.
    pub dequeued: Option<Time>,
    /// How often it was sent on a medium that stations share, collisions included; 0 on others.
    pub attempts: u8,
    /// What became of it.
    pub verdict: Verdict,
    /// True unless a duplicate of it is still in the link: the handle may be freed.
    pub last: bool,
}

/// A packet on its way: what is known of it so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    pub packet: Packet,
    pub number: u64,
    /// Its number in its flow, from 0; 0 where no random number depends on it.
    pub turn: u64,
    pub arrived: Time,
    pub backlog: Backlog,
    pub dequeued: Option<Time>,
    pub ecn_marked: bool,
    pub attempts: u8,
}

impl Passage {
    pub fn size(&self) -> u64 {
        self.packet.size.get()
    }

    /// Marks it with Congestion Experienced, if its transport understands that (RFC 3168 §5).
    pub fn mark(&mut self) -> bool {
        match self.packet.ecn {
            Ecn::NotEct => return false,
            Ecn::Ect0 | Ecn::Ect1 => self.ecn_marked = true,
            // Marked already, by a link before this one: nothing is lost by not dropping it.
            Ecn::Ce => {}
        }
        self.packet.ecn = Ecn::Ce;
        true
    }

    pub fn ends(self, at: Time, direction: Direction, verdict: Verdict) -> Event {
        Event {
            at,
            direction,
            packet: self.packet,
            number: self.number,
            arrived: self.arrived,
            backlog: self.backlog,
            ecn_marked: self.ecn_marked,
            dequeued: self.dequeued,
            attempts: self.attempts,
            verdict,
            last: true,
        }
    }
}
