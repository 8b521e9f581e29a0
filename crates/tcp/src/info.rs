//! The kernel's `struct tcp_info` (linux/tcp.h), read by offset.
//!
//! The structure only ever grows at its end, and the kernel reports the length of its own version. So a field that an
//! older kernel does not have is absent, and one that a newer kernel adds is skipped.

use suiro_record::words::TcpState;

/// Shortest `tcp_info` that can be parsed, in bytes: it ends with `tcpi_bytes_received` (Linux 4.1).
pub const INFO_BYTES_MIN: usize = 136;

/// The kernel's marker for a slow-start threshold that was never set (`TCP_INFINITE_SSTHRESH`).
const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

/// One sample of a socket, in the kernel's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    /// Congestion state (`TCP_CA_Open` is 0); see [`TcpInfo::congestion_state`].
    pub ca_state: u8,
    /// Sender maximum segment size, in bytes.
    pub snd_mss: u32,
    /// Segments sent and not yet acknowledged.
    pub unacked: u32,
    /// Of these, segments that the peer reported by SACK.
    pub sacked: u32,
    /// Of these, segments considered lost.
    pub lost: u32,
    /// Of these, segments retransmitted and still in flight.
    pub retrans: u32,
    /// Smoothed round-trip time, in µs (RFC 6298).
    pub rtt_us: u32,
    /// Round-trip time variation, in µs (RFC 6298).
    pub rttvar_us: u32,
    /// Slow-start threshold, in segments; `None` while infinite.
    pub snd_ssthresh: Option<u32>,
    /// Congestion window, in segments.
    pub snd_cwnd: u32,
    /// Segments retransmitted since the socket opened.
    pub total_retrans: u32,
    /// Pacing rate, in bytes/s; `None` if the socket is not paced.
    pub pacing_rate: Option<u64>,
    /// Bytes acknowledged by the peer since the socket opened. Counts sequence numbers: the side that called connect()
    /// has one more for its SYN, a side that has closed one more for its FIN.
    pub bytes_acked: u64,
    /// Payload received since the socket opened, in bytes.
    pub bytes_received: u64,
    /// Minimum round-trip time over the kernel's window, in µs; `None` before the first sample, or before Linux 4.6.
    pub min_rtt_us: Option<u32>,
    /// Delivery rate as the kernel estimates it, in bytes/s; `None` before the first estimate, or
    /// before Linux 4.9.
    pub delivery_rate: Option<u64>,
    /// Packets that came out of order since the socket opened; it wraps around. `None` before Linux 5.4, or where only an
    /// ACK was traced.
    pub out_of_order: Option<u32>,
    /// What limited it; absent where only an ACK was traced.
    pub limits: Limits,
}

/// What limited a socket's sending, as the kernel accounts for it. `None` where the kernel is older than the field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// True if the last delivery rate was measured while the application had nothing to send (Linux 4.9).
    pub app_limited: Option<bool>,
    /// Payload that the application has written and the kernel has not sent yet, in bytes (Linux 4.6).
    pub unsent_bytes: Option<u32>,
    /// Receive window that the peer advertised last, in bytes (Linux 5.4).
    pub peer_window_bytes: Option<u32>,
    /// Time since the socket opened in which it had data to send or in flight, in µs (Linux 4.10).
    pub busy_us: Option<u64>,
    /// Part of it in which the peer's receive window held it back, in µs (Linux 4.10).
    pub rwnd_limited_us: Option<u64>,
    /// Part of it in which the send buffer held it back, in µs (Linux 4.10).
    pub sndbuf_limited_us: Option<u64>,
    /// Retransmission timeout in force, in µs.
    pub rto_us: Option<u32>,
    /// Retransmission timeouts since the socket opened (Linux 6.7).
    pub timeouts: Option<u16>,
}

/// A `tcp_info` that is too short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "tcp_info: expected at least {INFO_BYTES_MIN} bytes, found {0}: this kernel is older than 4.1"
)]
pub struct ShortInfo(pub usize);

impl TcpInfo {
    /// Reads the kernel's structure.
    ///
    /// # Errors
    /// [`ShortInfo`] below [`INFO_BYTES_MIN`] bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, ShortInfo> {
        if bytes.len() < INFO_BYTES_MIN {
            return Err(ShortInfo(bytes.len()));
        }
        // The offsets up to 136 exist: checked above.
        let must32 = |at| u32_at(bytes, at).expect("below INFO_BYTES_MIN");
        let must64 = |at| u64_at(bytes, at).expect("below INFO_BYTES_MIN");
        Ok(Self {
            ca_state: bytes[1],
            snd_mss: must32(16),
            unacked: must32(24),
            sacked: must32(28),
            lost: must32(32),
            retrans: must32(36),
            rtt_us: must32(68),
            rttvar_us: must32(72),
            snd_ssthresh: finite_ssthresh(must32(76)),
            snd_cwnd: must32(80),
            total_retrans: must32(100),
            pacing_rate: Some(must64(104)).filter(|&rate| rate != u64::MAX),
            bytes_acked: must64(120),
            bytes_received: must64(128),
            min_rtt_us: u32_at(bytes, 148).filter(|&rtt| rtt != u32::MAX),
            delivery_rate: u64_at(bytes, 160).filter(|&rate| rate != 0),
            out_of_order: u32_at(bytes, 224),
            limits: Limits::parse(bytes),
        })
    }

    /// The congestion state.
    pub const fn congestion_state(&self) -> TcpState {
        match self.ca_state {
            0 => TcpState::Open,
            1 => TcpState::Disorder,
            2 => TcpState::Cwr,
            3 => TcpState::Recovery,
            4 => TcpState::Loss,
            _ => TcpState::Unknown,
        }
    }

    /// Segments in the network, as estimated by the sender: RFC 6675's pipe, computed as the kernel does.
    pub fn in_flight(&self) -> u64 {
        let gone = u64::from(self.sacked) + u64::from(self.lost);
        u64::from(self.unacked).saturating_sub(gone) + u64::from(self.retrans)
    }
}

impl Limits {
    fn parse(bytes: &[u8]) -> Self {
        // The bit is in a byte that older kernels left 0; they do not report the delivery rate either.
        let app_limited = u64_at(bytes, 160).map(|_| bytes[7] & 1 == 1);
        Self {
            app_limited,
            unsent_bytes: u32_at(bytes, 144),
            peer_window_bytes: u32_at(bytes, 228),
            busy_us: u64_at(bytes, 168),
            rwnd_limited_us: u64_at(bytes, 176),
            sndbuf_limited_us: u64_at(bytes, 184),
            rto_us: u32_at(bytes, 8),
            timeouts: u16_at(bytes, 240),
        }
    }
}

/// The kernel's slow-start threshold, once it was set.
pub(crate) fn finite_ssthresh(segments: u32) -> Option<u32> {
    Some(segments).filter(|&segments| segments < SSTHRESH_INFINITE)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put32(bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn put64(bytes: &mut [u8], at: usize, value: u64) {
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }

    fn sample() -> Vec<u8> {
        let mut bytes = vec![0; 248];
        bytes[1] = 3;
        put32(&mut bytes, 16, 1448);
        put32(&mut bytes, 24, 30);
        put32(&mut bytes, 28, 10);
        put32(&mut bytes, 32, 5);
        put32(&mut bytes, 36, 2);
        put32(&mut bytes, 68, 40_250);
        put32(&mut bytes, 76, 17);
        put32(&mut bytes, 80, 20);
        put64(&mut bytes, 104, 250_000);
        put64(&mut bytes, 120, 1_000_000);
        put32(&mut bytes, 148, 40_001);
        put64(&mut bytes, 160, 187_500);
        bytes[7] = 1;
        put32(&mut bytes, 8, 204_000);
        put32(&mut bytes, 144, 70_000);
        put64(&mut bytes, 168, 900_000);
        put64(&mut bytes, 176, 300_000);
        put64(&mut bytes, 184, 20_000);
        put32(&mut bytes, 224, 12);
        put32(&mut bytes, 228, 65_536);
        bytes[240..242].copy_from_slice(&2u16.to_ne_bytes());
        bytes
    }

    #[test]
    fn fields_are_read_at_the_kernels_offsets() {
        let info = TcpInfo::parse(&sample()).unwrap();
        assert_eq!((info.snd_mss, info.snd_cwnd, info.snd_ssthresh), (1448, 20, Some(17)));
        assert_eq!((info.rtt_us, info.min_rtt_us), (40_250, Some(40_001)));
        assert_eq!((info.pacing_rate, info.delivery_rate), (Some(250_000), Some(187_500)));
        assert_eq!((info.bytes_acked, info.congestion_state()), (1_000_000, TcpState::Recovery));
        assert_eq!(info.out_of_order, Some(12));
        assert_eq!(info.in_flight(), 30 - 10 - 5 + 2);
    }

    #[test]
    fn what_limited_a_socket_is_read() {
        let limits = TcpInfo::parse(&sample()).unwrap().limits;
        let expected = Limits {
            app_limited: Some(true),
            unsent_bytes: Some(70_000),
            peer_window_bytes: Some(65_536),
            busy_us: Some(900_000),
            rwnd_limited_us: Some(300_000),
            sndbuf_limited_us: Some(20_000),
            rto_us: Some(204_000),
            timeouts: Some(2),
        };
        assert_eq!(limits, expected);
        let older = TcpInfo::parse(&sample()[..192]).unwrap().limits;
        assert_eq!(
            (older.busy_us, older.peer_window_bytes, older.timeouts),
            (Some(900_000), None, None)
        );
    }

    #[test]
    fn what_the_kernel_does_not_know_is_absent() {
        let mut bytes = sample();
        put32(&mut bytes, 76, SSTHRESH_INFINITE);
        put64(&mut bytes, 104, u64::MAX);
        put32(&mut bytes, 148, u32::MAX);
        put64(&mut bytes, 160, 0);
        let info = TcpInfo::parse(&bytes).unwrap();
        assert_eq!((info.snd_ssthresh, info.pacing_rate), (None, None));
        assert_eq!((info.min_rtt_us, info.delivery_rate), (None, None));
    }

    #[test]
    fn an_older_kernel_has_fewer_fields() {
        let bytes = sample();
        let info = TcpInfo::parse(&bytes[..INFO_BYTES_MIN]).unwrap();
        assert_eq!(
            (info.bytes_acked, info.min_rtt_us, info.delivery_rate),
            (1_000_000, None, None)
        );
        assert_eq!(info.out_of_order, None);
        assert_eq!(TcpInfo::parse(&bytes[..INFO_BYTES_MIN - 1]), Err(ShortInfo(135)));
    }
}
