//! `struct event` of common.h, as the passage of a packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use suiro_record::words::KeyKind;

use crate::event::{Flow, Key, Point, Protocol};

use super::records::{self, Plain};

/// Size of an event in bytes.
pub const RAW_BYTES: usize = records::Event::BYTES;

const IPV6: u8 = records::IPV6 as u8;
const TCP: u8 = records::TCP as u8;
const SENT: u8 = records::SENT as u8;
const OTHER: u8 = records::OTHER as u8;

// The programs number the points as we do.
const _: () = {
    assert!(records::POINTS as usize == Point::ALL.len());
    assert!(records::SEND_CALL == Point::SendCall as u32);
    assert!(records::SEND_TRANSPORT == Point::SendTransport as u32);
    assert!(records::SEND_IP == Point::SendIp as u32);
    assert!(records::SEND_LINK == Point::SendLink as u32);
    assert!(records::SEND_QDISC == Point::SendQdisc as u32);
    assert!(records::SEND_DRIVER == Point::SendDriver as u32);
    assert!(records::RECEIVE_DEVICE == Point::ReceiveDevice as u32);
    assert!(records::RECEIVE_IP == Point::ReceiveIp as u32);
    assert!(records::RECEIVE_LOCAL == Point::ReceiveLocal as u32);
    assert!(records::RECEIVE_SOCKET == Point::ReceiveSocket as u32);
    assert!(records::RECEIVE_CALL == Point::ReceiveCall as u32);
    assert!(records::DROPPED == Point::Dropped as u32);
};

/// For each point that may follow the first in one event, its time.
type Later = [u32; 3];

/// What the BPF programs write: a passage of one packet, and the passages that followed directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// The point.
    pub point: Point,
    /// Its addresses and direction.
    pub tuple: Tuple,
    /// What distinguishes it from others.
    pub key: Key,
    /// At [`Point::SendIp`] the beginning of the system call, or 0; at [`Point::SendCall`] of UDP the end of the call,
    /// which failed; at [`Point::ReceiveSocket`] and [`Point::ReceiveCall`] the socket's cookie.
    pub extra: u64,
    /// Payload.
    pub payload_bytes: u32,
    /// IPv4 identification, or 0.
    pub ip_id: u16,
    /// Packets in the super-packet that it was or arrived in.
    pub segments: u16,
    /// At [`Point::Dropped`] the kernel's number of the reason; at [`Point::SendCall`] of UDP the error; otherwise the
    /// index of the segment, from 0.
    pub detail: u16,
    /// At [`Point::ReceiveSocket`] the number of datagrams waiting in the socket's queue.
    pub queued: u32,
    /// True if only this host's end belongs to a chosen flow.
    pub other: bool,
    /// Events on which the sockets' queues depend are missing before this one.
    pub gap: bool,
    /// When it passed each of the points after [`Self::point`], in nanoseconds after
    /// [`Self::t_ns`]; 0 if it did not pass.
    pub later_ns: Later,
    /// At [`Point::SendIp`] when UDP took the datagram, in nanoseconds after the beginning of the call.
    pub taken_ns: u32,
}

/// Addresses, ports and direction as the BPF programs write them.
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

    /// The flow as the recording names it.
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
        let event = records::Event::read(bytes);
        let tuple = Tuple {
            source: octets(event.source),
            destination: octets(event.destination),
            ports: event.ports(),
            flags: event.flags & (IPV6 | TCP | SENT),
        };
        let kind = match u32::from(event.key_kind) {
            records::RTP => KeyKind::Rtp,
            records::IP_ID => KeyKind::IpId,
            records::HASH => KeyKind::Hash,
            records::BYTES => KeyKind::Bytes,
            _ => return None,
        };
        Some(Self {
            t_ns: event.time_ns,
            point: *Point::ALL.get(usize::from(event.point))?,
            tuple,
            key: Key::from_parts(kind, event.key)?,
            extra: event.extra,
            payload_bytes: event.payload_bytes,
            ip_id: event.ip_id,
            segments: event.segments,
            detail: event.detail,
            queued: event.queued,
            other: event.flags & OTHER != 0,
            gap: event.gap != 0,
            later_ns: event.later_ns,
            taken_ns: event.taken_ns,
        })
    }

    /// All points that it covers, with their times.
    pub fn points(&self) -> impl Iterator<Item = (Point, u64)> {
        let first = self.point as usize;
        let later = Point::ALL.into_iter().skip(first + 1).zip(self.later_ns);
        let passed = later.filter(|(_, after)| *after > 0);
        let t_ns = self.t_ns;
        let later = passed.map(move |(point, after)| (point, t_ns.saturating_add(after.into())));
        std::iter::once((self.point, t_ns)).chain(later)
    }

    /// Packets that it stands for: a UDP super-packet arrives as its datagrams, a TCP super-packet
    /// as one.
    pub fn packets(&self) -> u16 {
        if matches!(self.key, Key::Bytes { .. }) { self.segments } else { 1 }
    }

    /// Whether it passed this point.
    pub fn is_at(&self, point: Point) -> bool {
        self.points().any(|(passed, _)| passed == point)
    }
}

impl records::Event {
    /// Source and destination, in network byte order.
    fn ports(&self) -> [u8; 4] {
        let ([a, b], [c, d]) =
            (self.source_port.to_ne_bytes(), self.destination_port.to_ne_bytes());
        [a, b, c, d]
    }
}

/// An address in the programs' format, in two words.
fn octets(words: [u64; 2]) -> [u8; 16] {
    let mut octets = [0; 16];
    words.write(&mut octets);
    octets
}

/// A datagram of 100 bytes that enters the empty queue of a socket, or the call that takes one from there.
#[cfg(test)]
pub(crate) fn received(point: Point, number: u64, gap: bool) -> [u8; RAW_BYTES] {
    written(&records::Event {
        key: number,
        key_kind: records::HASH as u8,
        extra: 1,
        payload_bytes: 100,
        segments: 1,
        point: point as u8,
        gap: gap.into(),
        ..records::Event::read(&[0; RAW_BYTES])
    })
}

/// A packet of 100 bytes at IP, sent from this IPv4 address.
#[cfg(test)]
pub(crate) fn sent_from(address: u32) -> [u8; RAW_BYTES] {
    written(&records::Event {
        source: ipv4(address),
        extra: 0,
        flags: SENT,
        ..records::Event::read(&received(Point::SendIp, 7, false))
    })
}

/// A call that failed with EAGAIN, on a socket without an address of its own, to this IPv4 address.
#[cfg(test)]
pub(crate) fn failed_to(address: u32) -> [u8; RAW_BYTES] {
    written(&records::Event {
        destination: ipv4(address),
        flags: SENT,
        detail: libc::EAGAIN as u16,
        ..records::Event::read(&received(Point::SendCall, address.into(), false))
    })
}

#[cfg(test)]
fn written(event: &records::Event) -> [u8; RAW_BYTES] {
    let mut bytes = [0; RAW_BYTES];
    event.write(&mut bytes);
    bytes
}

/// An IPv4 address in the programs' format.
#[cfg(test)]
fn ipv4(address: u32) -> [u64; 2] {
    let [a, b, c, d] = address.to_be_bytes();
    [u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]), 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let mut event = records::Event {
            time_ns: 7,
            key: 0xdead_beefu64 << 16 | 9,
            extra: 5,
            source: [u64::from_ne_bytes([10, 0, 0, 1, 0, 0, 0, 0]), 0],
            destination: [u64::from_ne_bytes([10, 0, 0, 2, 0, 0, 0, 0]), 0],
            source_port: 5000u16.to_be(),
            destination_port: 5004u16.to_be(),
            payload_bytes: 1200,
            ip_id: 77,
            segments: 1,
            flags: SENT,
            point: records::SEND_IP as u8,
            key_kind: records::RTP as u8,
            ..records::Event::read(&[0; RAW_BYTES])
        };
        let bytes_of = |event: &records::Event| {
            let mut bytes = [0; RAW_BYTES];
            event.write(&mut bytes);
            bytes
        };
        let raw = Raw::parse(&bytes_of(&event)).unwrap();
        assert_eq!(raw.tuple.flow().to_string(), "udp 10.0.0.1:5000>10.0.0.2:5004");
        assert_eq!((raw.t_ns, raw.point, raw.extra), (7, Point::SendIp, 5));
        assert_eq!(raw.key, Key::Rtp { ssrc: 0xdead_beef, sequence: 9 });
        assert_eq!((raw.payload_bytes, raw.ip_id, raw.segments), (1200, 77, 1));
        assert_eq!(raw.points().collect::<Vec<_>>(), [(Point::SendIp, 7)]);
        event.later_ns = [3, 0, 5];
        let raw = Raw::parse(&bytes_of(&event)).unwrap();
        let passed = [(Point::SendIp, 7), (Point::SendLink, 10), (Point::SendDriver, 12)];
        assert_eq!(raw.points().collect::<Vec<_>>(), passed);
        assert!(raw.is_at(Point::SendDriver) && !raw.is_at(Point::SendQdisc));
        event.point = records::POINTS as u8;
        assert_eq!(Raw::parse(&bytes_of(&event)), None);
    }
}
