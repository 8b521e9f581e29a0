//! What a receiver reports to a sender.

use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

/// A report from the receiver, in terms that RTCP receiver reports (RFC 3550 §6.4), congestion
/// control feedback (RFC 8888) and TFRC feedback (RFC 5348 §3.2.2) have in common. Each controller
/// uses what it needs of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Feedback {
    /// Packets that should have arrived since the last report that reached the sender, from
    /// sequence numbers. Counted from cumulative values, so that a lost report loses nothing.
    pub expected: u64,
    /// Packets of those that did arrive, at most [`Self::expected`]; more count as that many.
    pub received: u64,
    /// A sample of the round-trip time, the receiver's own delay taken off.
    pub rtt: Option<Duration>,
    /// What the receiver received since its last report, or over a round-trip time: as it measured it, or as follows from two of
    /// its reports.
    pub receive_rate: Option<BitRate>,
    /// The loss event rate, if the receiver computed it (RFC 5348 §5).
    pub loss_event_rate: Option<Ratio>,
    /// What became of each packet, in order of sequence numbers, if the receiver reports that
    /// (RFC 8888); else empty.
    pub packets: Vec<PacketReport>,
}

impl Feedback {
    /// A report of counts alone.
    pub fn counts(expected: u64, received: u64) -> Self {
        Self { expected, received, ..Self::default() }
    }

    /// The same with a sample of the round-trip time.
    #[must_use]
    pub fn with_rtt(mut self, rtt: Duration) -> Self {
        self.rtt = Some(rtt);
        self
    }

    /// Packets that were lost since the last report.
    pub const fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.received)
    }
}

/// What became of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketReport {
    /// Its sequence number, extended so that it does not wrap.
    pub sequence: u64,
    /// Size of the IP packet.
    pub size: Bytes,
    /// When it left, on the sender's clock.
    pub sent: Time,
    /// Whether it arrived, and when.
    pub arrived: Arrived,
    /// True if it arrived with Congestion Experienced (RFC 3168).
    pub ecn_ce: bool,
}

/// Whether a packet arrived, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// Not (yet).
    No,
    /// At this time on the receiver's clock, of which only differences count.
    At(Time),
    /// It did, but when is not known (RFC 8888 §3.1: offsets 0x1FFE and 0x1FFF). It is a sample of no delay.
    Untimed,
}

impl Arrived {
    /// When, if that is known.
    pub const fn time(self) -> Option<Time> {
        match self {
            Self::At(at) => Some(at),
            Self::No | Self::Untimed => None,
        }
    }

    /// Whether it did not arrive.
    pub const fn is_missing(self) -> bool {
        matches!(self, Self::No)
    }
}
