//! `struct event` of common.h, read by offset.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::event::{Flow, Key, Point, Protocol};

/// Bytes of an event.
pub const RAW_BYTES: usize = 96;

/// Most points that follow the first in one event.
const LATER: usize = 3;

const IPV6: u8 = 1;
const TCP: u8 = 2;
const SENT: u8 = 4;
const OTHER: u8 = 8;

/// What the kernel's programs write: a passage of one packet, and those that followed in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// Where.
    pub point: Point,
    /// Its addresses and direction.
    pub tuple: Tuple,
    /// What tells it from others.
    pub key: Key,
    /// At [`Point::SendIp`] when the system call began, or 0; at [`Point::ReceiveSocket`] and
    /// [`Point::ReceiveCall`] the socket.
    pub extra: u64,
    /// Payload.
    pub payload_bytes: u32,
    /// IPv4 identification, or 0.
    pub ip_id: u16,
    /// Packets in the super-packet that it was or came in.
    pub segments: u16,
    /// At [`Point::Dropped`] the kernel's number of the reason; else which segment it was, from 0.
    pub detail: u16,
    /// At [`Point::ReceiveSocket`] datagrams that waited in the socket's queue.
    pub queued: u32,
    /// True if only this host's end is of a chosen flow.
    pub other: bool,
    /// When it passed the points after [`Self::point`], in their order, in nanoseconds after
    /// [`Self::t_ns`]; 0 where it did not.
    pub later_ns: [u32; LATER],
}

/// Addresses, ports and direction as the kernel's programs write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuple {
    source: [u8; 16],
    destination: [u8; 16],
    ports: [u8; 4],
    flags: u8,
}

impl Tuple {
    /// True for what this host sends.
    pub fn sent(&self) -> bool {
        self.flags & SENT != 0
    }

    /// The transport protocol.
    pub fn protocol(&self) -> Protocol {
        if self.flags & TCP == 0 { Protocol::Udp } else { Protocol::Tcp }
    }

    /// As the recording names it.
    pub fn flow(&self) -> Flow {
        let port = |at: usize| u16::from_be_bytes([self.ports[at], self.ports[at + 1]]);
        let source = SocketAddr::new(self.address(&self.source), port(0));
        let destination = SocketAddr::new(self.address(&self.destination), port(2));
        let sent = self.sent();
        let (local, remote) = if sent { (source, destination) } else { (destination, source) };
        Flow { protocol: self.protocol(), local, remote, sent }
    }

    fn address(&self, bytes: &[u8; 16]) -> IpAddr {
        if self.flags & IPV6 == 0 {
            Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()
        } else {
            Ipv6Addr::from(*bytes).into()
        }
    }
}

impl Raw {
    /// `None` if the point or key is not one that the programs write.
    pub fn parse(bytes: &[u8; RAW_BYTES]) -> Option<Self> {
        let flags = bytes[71];
        let tuple = Tuple {
            source: *at(bytes, 24),
            destination: *at(bytes, 40),
            ports: *at(bytes, 56),
            flags: flags & (IPV6 | TCP | SENT),
        };
        let value = u64::from_ne_bytes(*at(bytes, 8));
        let kind = *["rtp", "ip_id", "hash", "bytes"].get(usize::from(bytes[76]))?;
        let u16_at = |offset: usize| u16::from_ne_bytes(*at(bytes, offset));
        Some(Self {
            t_ns: u64::from_ne_bytes(*at(bytes, 0)),
            point: *Point::ALL.get(usize::from(bytes[70]))?,
            tuple,
            key: Key::from_parts(kind, value)?,
            extra: u64::from_ne_bytes(*at(bytes, 16)),
            payload_bytes: u32::from_ne_bytes(*at(bytes, 60)),
            ip_id: u16_at(64),
            segments: u16_at(66),
            detail: u16_at(68),
            queued: u32::from_ne_bytes(*at(bytes, 72)),
            other: flags & OTHER != 0,
            later_ns: [80, 84, 88].map(|offset| u32::from_ne_bytes(*at(bytes, offset))),
        })
    }

    /// All points that it tells of, with their times.
    pub fn points(&self) -> impl Iterator<Item = (Point, u64)> {
        let first = self.point as usize;
        let later = Point::ALL.into_iter().skip(first + 1).zip(self.later_ns);
        let passed = later.filter(|(_, after)| *after > 0);
        let t_ns = self.t_ns;
        let later = passed.map(move |(point, after)| (point, t_ns.saturating_add(after.into())));
        std::iter::once((self.point, t_ns)).chain(later)
    }

    /// Packets that it stands for: a super-packet of UDP comes as its datagrams, one of TCP as it is.
    pub fn packets(&self) -> u16 {
        if matches!(self.key, Key::Bytes { .. }) { self.segments } else { 1 }
    }

    /// Whether it came to this point.
    pub fn is_at(&self, point: Point) -> bool {
        self.points().any(|(passed, _)| passed == point)
    }
}

fn at<const N: usize>(bytes: &[u8; RAW_BYTES], at: usize) -> &[u8; N] {
    bytes[at..].first_chunk().expect("inside the event")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_by_offset() {
        let mut bytes = [0; RAW_BYTES];
        bytes[..8].copy_from_slice(&7u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&(0xdead_beefu64 << 16 | 9).to_ne_bytes());
        bytes[16..24].copy_from_slice(&5u64.to_ne_bytes());
        bytes[24..28].copy_from_slice(&[10, 0, 0, 1]);
        bytes[40..44].copy_from_slice(&[10, 0, 0, 2]);
        bytes[56..60].copy_from_slice(&[0x13, 0x88, 0x13, 0x8c]);
        bytes[60..64].copy_from_slice(&1200u32.to_ne_bytes());
        bytes[64..66].copy_from_slice(&77u16.to_ne_bytes());
        bytes[66] = 1;
        (bytes[70], bytes[71]) = (1, SENT);
        let raw = Raw::parse(&bytes).unwrap();
        assert_eq!(raw.tuple.flow().to_string(), "udp 10.0.0.1:5000>10.0.0.2:5004");
        assert_eq!((raw.t_ns, raw.point, raw.extra), (7, Point::SendIp, 5));
        assert_eq!(raw.key, Key::Rtp { ssrc: 0xdead_beef, sequence: 9 });
        assert_eq!((raw.payload_bytes, raw.ip_id, raw.segments), (1200, 77, 1));
        assert_eq!(raw.points().collect::<Vec<_>>(), [(Point::SendIp, 7)]);
        bytes[80..84].copy_from_slice(&3u32.to_ne_bytes());
        bytes[88..92].copy_from_slice(&5u32.to_ne_bytes());
        let raw = Raw::parse(&bytes).unwrap();
        let passed = [(Point::SendIp, 7), (Point::SendLink, 10), (Point::SendDriver, 12)];
        assert_eq!(raw.points().collect::<Vec<_>>(), passed);
        assert!(raw.is_at(Point::SendDriver) && !raw.is_at(Point::SendQdisc));
        bytes[70] = 11;
        assert_eq!(Raw::parse(&bytes), None);
    }
}
