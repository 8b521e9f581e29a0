//! `struct event` of bpf/probe.bpf.c, read by offset.

use std::ffi::CStr;

use crate::diag::SocketId;
use crate::info::{TcpInfo, finite_ssthresh};

pub(crate) const EVENT_BYTES: usize = 200;

/// A socket as it was just before a segment that may acknowledge data was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// When: CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_ns: u64,
    /// Which socket.
    pub id: SocketId,
    /// Its state, in the kernel's units. The delivery rate is the kernel's estimate.
    pub info: TcpInfo,
    /// First sequence number that is not acknowledged.
    pub snd_una: u32,
    /// The next sequence number to be sent.
    pub snd_nxt: u32,
    /// The slow-start threshold in segments, infinite or not.
    pub ssthresh: u32,
    /// Segments delivered to the peer since the socket opened, by ACK or SACK; wraps around.
    pub delivered: u32,
    /// Most segments in flight at once in the last round that filled the window.
    pub max_packets_out: u32,
    /// The start of the congestion control's own state.
    pub private: [u64; 4],
    congestion: [u8; 16],
}

impl Ack {
    /// `None` if it is of neither IPv4 nor IPv6.
    pub(crate) fn parse(bytes: &[u8; EVENT_BYTES]) -> Option<Self> {
        let id = SocketId::new(
            u16_at(bytes, 124),
            (at(bytes, 40), u16_at(bytes, 120)),
            (at(bytes, 56), u16::from_be_bytes(*at(bytes, 122))),
            u32_at(bytes, 196),
            u64_at(bytes, 8),
        )?;
        let word = |index: usize| u32_at(bytes, 128 + 4 * index);
        let mss = word(4);
        Some(Self {
            monotonic_ns: u64_at(bytes, 0),
            id,
            info: TcpInfo {
                ca_state: bytes[126],
                snd_mss: mss,
                unacked: word(8),
                sacked: word(9),
                lost: word(10),
                retrans: word(11),
                rtt_us: word(5) >> 3,
                rttvar_us: word(6) >> 2,
                snd_ssthresh: finite_ssthresh(word(3)),
                snd_cwnd: word(2),
                total_retrans: word(16),
                pacing_rate: Some(u64_at(bytes, 16)).filter(|&rate| rate != u64::MAX),
                bytes_acked: u64_at(bytes, 24),
                bytes_received: u64_at(bytes, 32),
                min_rtt_us: Some(word(7)).filter(|&rtt| rtt != u32::MAX),
                delivery_rate: delivery_rate(word(14), mss, word(15)),
            },
            snd_una: word(0),
            snd_nxt: word(1),
            ssthresh: word(3),
            delivered: word(13),
            max_packets_out: word(12),
            private: std::array::from_fn(|index| u64_at(bytes, 88 + 8 * index)),
            congestion: *at(bytes, 72),
        })
    }

    /// The congestion control's name.
    pub fn congestion(&self) -> &str {
        let name = CStr::from_bytes_until_nul(&self.congestion).ok();
        name.and_then(|name| name.to_str().ok()).unwrap_or("unknown")
    }
}

/// In bytes/s, as the kernel computes `tcpi_delivery_rate`.
fn delivery_rate(segments: u32, mss: u32, interval_us: u32) -> Option<u64> {
    let bytes = u64::from(segments) * u64::from(mss);
    Some(bytes.saturating_mul(1_000_000).checked_div(interval_us.into())?).filter(|&rate| rate != 0)
}

fn at<const N: usize>(bytes: &[u8; EVENT_BYTES], at: usize) -> &[u8; N] {
    bytes[at..].first_chunk().expect("inside the event")
}

fn u16_at(bytes: &[u8; EVENT_BYTES], offset: usize) -> u16 {
    u16::from_ne_bytes(*at(bytes, offset))
}

fn u32_at(bytes: &[u8; EVENT_BYTES], offset: usize) -> u32 {
    u32::from_ne_bytes(*at(bytes, offset))
}

fn u64_at(bytes: &[u8; EVENT_BYTES], offset: usize) -> u64 {
    u64::from_ne_bytes(*at(bytes, offset))
}
