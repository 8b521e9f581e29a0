//! How a sender sends.

use suiro_payload::Codec;
use suiro_scenario::{FeedbackFormat, OnBreak, RoundTrip};
use suiro_units::{Bytes, Duration, Time};

/// How a sender sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The codec, and so the payload format.
    pub codec: Codec,
    /// The payload type that marks it for the receiver.
    pub payload_type: u8,
    /// The payload type of retransmissions (RFC 4588), if there are to be any.
    pub again_type: Option<u8>,
    /// Largest IP packet.
    pub packet_max: Bytes,
    /// The canonical name (RFC 3550 §6.5.1).
    pub cname: String,
    /// When reports are sent.
    pub reports: ReportTimes,
    /// Time within which queued packets must be sent, faster than the rate control allows if need be; `None` for no
    /// limit, zero for at once. For a source that cannot follow the rate control at once, as prepared
    /// video cannot within a group.
    pub drain: Option<Duration>,
    /// Between which moments the round-trip time is measured.
    pub rtt: RoundTrip,
    /// In which format the receiver reports what became of each packet; transport-wide, packets bear a number for it.
    pub feedback: FeedbackFormat,
    /// The time of a frame, and of a group of pictures, for the circuit breaker; where groups have no
    /// end, that of a frame again.
    pub times: (Duration, Duration),
    /// What is done when the circuit breaker is triggered.
    pub on_break: OnBreak,
    /// Times from and until which no frame is sent, in order.
    pub pauses: Vec<(Time, Time)>,
    /// The wall clock at [`Time::ZERO`], in nanoseconds since 1970.
    pub epoch_unix_ns: u64,
}

/// When a sender reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportTimes {
    /// After so many frames, at least one; and as RFC 3550 says, should no frame come.
    Pictures(u32),
    /// As RFC 3550 §6.3 says, with the reduced least interval.
    Standard,
}
