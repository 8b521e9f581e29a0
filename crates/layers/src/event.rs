//! What a recorder writes: passages of packets through service access points, and what is needed to interpret them.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use suiro_record::Text;
use suiro_record::words::KeyKind;
pub use suiro_record::words::Point;

/// Most flows of a recording, over both directions; passages of further ones are counted.
pub(crate) const FLOWS_MAX: usize = 1 << 15;
/// Most pauses of a recording. A watcher ends it at the next one, because what passed in an unknown pause would seem lost.
pub(crate) const PAUSES_MAX: usize = 1000;

/// One packet at one service access point of one host. A packet that stands for several (a segmentation-offload
/// super-packet) is one event per packet for UDP, and a single event for TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The time, by CLOCK_MONOTONIC of the host. For [`Point::SendCall`] it is the beginning of the system call, for
    /// [`Point::ReceiveCall`] its end.
    pub t_ns: u64,
    /// The point.
    pub point: Point,
    /// Flow and direction: an index into [`Recording::flows`].
    pub direction_flow: u16,
    /// What identifies the same packet elsewhere.
    pub key: Key,
    /// IPv4 identification; 0 if there is none: IPv6, TCP system calls.
    pub ip_id: u16,
    /// Bytes of UDP or TCP payload; for a fragmented datagram, of the whole datagram.
    pub payload_bytes: u32,
    /// Packets that this one stands for: 1, or more for a TCP super-packet of segmentation or receive offload. 0 at TCP
    /// system calls, which have no packets.
    pub segments: u16,
    /// Why it was dropped, at [`Point::Dropped`] only.
    pub cause: Option<DropCause>,
}

/// The kernel's reason for a drop: an index into [`Recording::causes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DropCause(pub u16);

/// What distinguishes a packet from others in its flow, identically at each point of both hosts. A UDP datagram has the
/// first of the three that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// RTP (RFC 3550 §5.1): a datagram whose first byte is 128 to 191 (RFC 7983 §7) and whose second is not that of
    /// RTCP, 192 to 223 (RFC 5761 §4).
    Rtp {
        /// Synchronisation source.
        ssrc: u32,
        /// Sequence number; wraps around.
        sequence: u16,
    },
    /// IPv4 identification, unless 0.
    IpId {
        /// The identification; wraps around. Segmentation offload numbers the datagrams of a super-packet consecutively
        /// from its own number, and the next super-packet has the next number: their ranges overlap.
        id: u16,
        /// Hash of the first 12 bytes of payload, to distinguish those; 0 if they could not be read.
        check: u16,
    },
    /// Hash of the first 64 bytes of payload and its length; its lower 16 bits are an identification's `check`.
    Hash(u64),
    /// TCP: a range of bytes, [`Event::payload_bytes`] long.
    Bytes {
        /// TCP sequence number of the first; wraps around.
        start: u32,
    },
}

impl Key {
    /// Its kind and its value, as records hold them.
    pub fn parts(self) -> (KeyKind, u64) {
        match self {
            Self::Rtp { ssrc, sequence } => {
                (KeyKind::Rtp, u64::from(ssrc) << 16 | u64::from(sequence))
            }
            Self::IpId { id, check } => (KeyKind::IpId, u64::from(check) << 16 | u64::from(id)),
            Self::Hash(hash) => (KeyKind::Hash, hash),
            Self::Bytes { start } => (KeyKind::Bytes, start.into()),
        }
    }

    /// From its parts; `None` if there is no such key.
    pub fn from_parts(kind: KeyKind, value: u64) -> Option<Self> {
        Some(match kind {
            KeyKind::Rtp => {
                let ssrc = u32::try_from(value >> 16).ok()?;
                Self::Rtp { ssrc, sequence: (value & 0xffff) as u16 }
            }
            KeyKind::IpId => {
                let check = u16::try_from(value >> 16).ok()?;
                Self::IpId { id: (value & 0xffff) as u16, check }
            }
            KeyKind::Hash => Self::Hash(value),
            KeyKind::Bytes => Self::Bytes { start: u32::try_from(value).ok()? },
        })
    }

    /// The key without the part that is known only for some packets, and that part; 0 if it is unknown.
    pub(crate) fn split(self) -> (Self, u16) {
        match self {
            Self::IpId { id, check } => (Self::IpId { id, check: 0 }, check),
            other => (other, 0),
        }
    }

    /// Whether it may be the same packet as the other.
    pub(crate) fn may_be(self, other: Self) -> bool {
        let ((own, check), (others, others_check)) = (self.split(), other.split());
        own == others && (check == 0 || others_check == 0 || check == others_check)
    }
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// RFC 768.
    Udp,
    /// RFC 9293.
    Tcp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}

/// One direction of one flow, as the recording host sees it. IPv4 in an IPv6 socket is treated as IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The transport protocol.
    pub protocol: Protocol,
    /// This host's end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// True for what this host sends, false for what it receives.
    pub sent: bool,
}

/// `udp 10.0.0.1:5000>10.0.0.2:5004`: from the sender to the receiver, the same on both hosts.
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, local, remote, sent } = self;
        let (from, to) = if *sent { (local, remote) } else { (remote, local) };
        write!(f, "{protocol} {from}>{to}")
    }
}

/// Everything that one recorder saw on one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The host's name.
    pub host: String,
    /// The kernel's boot id: two recordings with the same id share one clock.
    pub boot_id: String,
    /// The kernel's release.
    pub kernel: String,
    /// When recording began: all probes were attached by then.
    pub start: Moment,
    /// When it ended.
    pub end: Moment,
    /// Times in between in which nothing was recorded, in order, at most 1,000: an agent restarted.
    pub pauses: Vec<Pause>,
    /// The requested flows, as they were written.
    pub asked: Vec<String>,
    /// The flows that were seen.
    pub flows: Vec<Flow>,
    /// The kernel's names of the reasons why packets were dropped.
    pub causes: Vec<Text>,
    /// Each point in order: what was seen, what was lost, or why there is no data.
    pub points: Vec<PointStatus>,
    /// Fragments of datagrams other than the first, with the chosen addresses. They have no ports, and the first
    /// fragment stands for all.
    pub fragments: u64,
    /// Receiving UDP system calls whose datagram is unknown: it was queued before the recorder started, or the recorder
    /// lost events.
    pub unjoined: u64,
    /// Passages of flows beyond the first 32,768, which are not recorded.
    pub unplaced: u64,
    /// Second by second from [`Self::start`]; the last one may be shorter.
    pub scheduling: Vec<Second>,
    /// What disciplines the host's clock; `None` if nothing is known.
    pub clock: Option<ClockStatus>,
    /// What recording cost the host; `None` for captures, and for recordings made before it was measured.
    pub cost: Option<Cost>,
    /// The passages, roughly in the order of their times: those of one packet are adjacent if it was not held up.
    pub events: Vec<Event>,
}

/// One moment on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME, nanoseconds since 1970 UTC.
    pub realtime_ns: u64,
}

impl Moment {
    /// Both clocks now, read at the same moment.
    pub fn now() -> Self {
        let real = suiro_clock::kernel::realtime();
        Self { monotonic_ns: real.monotonic_ns, realtime_ns: real.other }
    }

    /// Nanoseconds since an earlier moment, by CLOCK_MONOTONIC.
    pub fn since(self, earlier: Self) -> u64 {
        self.monotonic_ns.saturating_sub(earlier.monotonic_ns)
    }
}

/// A time in which nothing was recorded, by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// The last moment known before it.
    pub from_ns: u64,
    /// When recording began again.
    pub to_ns: u64,
}

/// The state of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointStatus {
    /// The point.
    pub point: Point,
    /// Why it is not watched; `None` if it is. If it is not watched, missing events mean nothing.
    pub missing: Option<String>,
    /// Events recorded.
    pub events: u64,
    /// Passages that the recorder itself lost because it ran out of room.
    pub lost: u64,
    /// Runs of the point's BPF program that the kernel skipped because the CPU was running it already
    /// (`recursion_misses` of bpf_prog_info): at most this many passages were missed. The runs may have been for
    /// packets that were not chosen. Absent in older recordings.
    #[serde(default)]
    pub skipped: u64,
}

/// How the CPU served the application in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Second {
    /// Its number, counted from the start.
    pub second: u32,
    /// Time that threads of the application were ready to run and waited for a CPU, summed over
    /// threads; null if not measured, and in seconds in which one was refused because 4,096 others were followed.
    pub waiting_ns: Option<u64>,
    /// Time that they ran, summed; null in the same cases.
    pub running_ns: Option<u64>,
    /// Time from the raising of the network's receive softirq to its beginning, on the CPU where
    /// that was longest; null if not measured.
    pub softirq_late_ns: Option<u64>,
}

/// What a recording cost its host, as measured by the recorder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Packets of the chosen flows that passed the host, each once: datagrams of UDP, segments of TCP.
    pub packets: u64,
    /// CPU time of the recorder's thread while it recorded, in nanoseconds: attaching and detaching the
    /// probes are not in it.
    pub recorder_ns: u64,
    /// CPU time of the same thread afterwards, to read what was recorded and write the table; 0 for an agent,
    /// which reads while it records.
    pub writing_ns: u64,
    /// The run time of the BPF programs, in a sample; null if unknown.
    pub kernel: Option<KernelSample>,
    /// Why it is unknown; null if it is known.
    pub kernel_missing: Option<String>,
}

/// What the recorder's BPF programs ran in a sample of at most about a second from the first packet on, because timing
/// costs some 45 ns per run. It covers everything that they ran on this machine, including at system calls and for
/// packets of other flows and of other hosts on the same kernel, and it includes part of the cost of timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelSample {
    /// Packets of the chosen flows that passed the host meanwhile.
    pub packets: u64,
    /// How often a program ran.
    pub runs: u64,
    /// How long they ran in all, in nanoseconds.
    pub run_ns: u64,
    /// How long the sample was, in nanoseconds.
    pub lasted_ns: u64,
}

/// A host's clock compared with true time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockStatus {
    /// The source of this: `chrony`, `ptp4l`, …
    pub source: String,
    /// How far the clock is ahead of true time, as far as the source knows.
    pub offset_ns: i64,
    /// The largest error of that.
    pub error_ns: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_flow_reads_the_same_on_both_hosts() {
        let (a, b) = ("10.0.0.1:5000".parse().unwrap(), "[fd00::2]:5004".parse().unwrap());
        let at_a = Flow { protocol: Protocol::Udp, local: a, remote: b, sent: true };
        let at_b = Flow { local: b, remote: a, sent: false, ..at_a };
        assert_eq!(at_a.to_string(), "udp 10.0.0.1:5000>[fd00::2]:5004");
        assert_eq!(at_a.to_string(), at_b.to_string());
    }

    fn keys() -> impl Strategy<Value = Key> {
        prop_oneof![
            (any::<u32>(), any::<u16>()).prop_map(|(ssrc, sequence)| Key::Rtp { ssrc, sequence }),
            any::<(u16, u16)>().prop_map(|(id, check)| Key::IpId { id, check }),
            any::<u64>().prop_map(Key::Hash),
            any::<u32>().prop_map(|start| Key::Bytes { start }),
        ]
    }

    proptest! {
        #[test]
        fn keys_survive_their_parts(key in keys()) {
            let (kind, value) = key.parts();
            prop_assert_eq!(Key::from_parts(kind, value), Some(key));
        }
    }

    #[test]
    fn values_that_no_key_has_are_refused() {
        for kind in [KeyKind::Rtp, KeyKind::IpId, KeyKind::Bytes] {
            assert_eq!(Key::from_parts(kind, u64::MAX), None, "{kind}");
        }
    }
}
