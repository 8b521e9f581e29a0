//! `struct event` of bpf/probe.bpf.c, as an acknowledgement.

use std::ffi::CStr;

use crate::diag::SocketId;
use crate::info::{Limits, TcpInfo, finite_ssthresh};

use records::{Event, Plain};

/// The Rust types that build.rs generated from the C types.
#[allow(dead_code, reason = "not all generated items are used")]
mod records {
    include!(concat!(env!("OUT_DIR"), "/probe.rs"));
}

pub(crate) const EVENT_BYTES: usize = Event::BYTES;

/// A socket's state just before the kernel processed a segment that may acknowledge data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// The time: CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_ns: u64,
    /// The socket.
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
    /// The beginning of the congestion control's own state.
    pub private: [u64; 4],
    congestion: [u8; 16],
}

impl Ack {
    /// `None` if it is neither IPv4 nor IPv6.
    pub(crate) fn parse(bytes: &[u8; EVENT_BYTES]) -> Option<Self> {
        let event = Event::read(bytes);
        let id = SocketId::new(
            event.family,
            (&event.local, event.local_port),
            // In network byte order.
            (&event.remote, u16::from_be(event.remote_port)),
            event.bound_interface,
            event.cookie,
        )?;
        Some(Self {
            monotonic_ns: event.time_ns,
            id,
            info: TcpInfo {
                ca_state: event.ca_state,
                snd_mss: event.mss,
                unacked: event.packets_out,
                sacked: event.sacked_out,
                lost: event.lost_out,
                retrans: event.retrans_out,
                // Eight times the RTT, and four times its variation.
                rtt_us: event.srtt_us >> 3,
                rttvar_us: event.mdev_us >> 2,
                snd_ssthresh: finite_ssthresh(event.snd_ssthresh),
                snd_cwnd: event.snd_cwnd,
                total_retrans: event.total_retrans,
                pacing_rate: Some(event.pacing_rate).filter(|&rate| rate != u64::MAX),
                bytes_acked: event.bytes_acked,
                bytes_received: event.bytes_received,
                min_rtt_us: Some(event.min_rtt_us).filter(|&rtt| rtt != u32::MAX),
                delivery_rate: delivery_rate(
                    event.rate_delivered,
                    event.mss,
                    event.rate_interval_us,
                ),
                out_of_order: None,
                limits: Limits::default(),
            },
            snd_una: event.snd_una,
            snd_nxt: event.snd_nxt,
            ssthresh: event.snd_ssthresh,
            delivered: event.delivered,
            max_packets_out: event.max_packets_out,
            private: event.private,
            congestion: event.congestion,
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
