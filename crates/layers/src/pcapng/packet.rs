//! A captured frame down to the UDP or TCP payload.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use suiro_capture::file::{Frame, Order};
use suiro_units::fnv1a;

use crate::event::{Key, Protocol};

/// Network byte order.
const NET: Order = Order::BIG;
/// Bytes of payload covered by the hash of last resort.
const HASHED: usize = 64;
/// Bytes of payload that distinguish datagrams with the same IPv4 identification.
const CHECKED: usize = 12;
/// Most IPv6 extension headers, or VLAN tags, that are skipped.
const HEADERS: usize = 8;

/// One UDP or TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Nanoseconds since 1970.
    pub t_ns: u64,
    /// Addresses and ports.
    pub transport: Transport,
    /// The packet's key.
    pub key: Key,
    /// IPv4 identification; 0 for IPv6.
    pub ip_id: u16,
    /// Bytes of payload, regardless of how much was captured.
    pub payload_bytes: u32,
    /// Whether the capture says that its host sent it, if it does.
    pub sent: Option<bool>,
}

/// A direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transport {
    /// UDP or TCP.
    pub protocol: Protocol,
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
}

/// Why a frame is not such a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Something other than UDP or TCP over IP.
    Other,
    /// A fragment other than the first.
    Fragment,
    /// Captured too short, or malformed.
    Short,
}

/// The relevant parts of an IP packet.
struct Ip<'a> {
    from: IpAddr,
    to: IpAddr,
    id: u16,
    protocol: u8,
    data: &'a [u8],
    /// Length of `data` before the capture truncated it.
    size: usize,
}

pub(super) fn seen(frame: &Frame) -> Result<Seen, Unknown> {
    let (sent, packet) = network(frame)?;
    let ip = match packet.first().ok_or(Unknown::Short)? >> 4 {
        4 => ipv4(packet)?,
        6 => ipv6(packet)?,
        _ => return Err(Unknown::Other),
    };
    let seen = match ip.protocol {
        17 => udp(&ip),
        6 => tcp(&ip),
        _ => return Err(Unknown::Other),
    };
    let seen = seen.ok_or(Unknown::Short)?;
    Ok(Seen { t_ns: frame.t_ns, sent: frame.sent.or(sent), ..seen })
}

/// The IP packet in a frame and, if the link's header has it, whether it was sent.
fn network<'a>(frame: &Frame<'a>) -> Result<(Option<bool>, &'a [u8]), Unknown> {
    let data = frame.data;
    let (kind, header, sent) = match frame.link {
        // Ethernet (IEEE 802.3), with VLAN tags (802.1Q, 802.1ad) before the type.
        1 => {
            let mut at = 12;
            let is_tag = |kind| matches!(kind, Some(0x8100 | 0x88a8));
            for _ in 0..HEADERS {
                at += if is_tag(NET.u16(data, at)) { 4 } else { 0 };
            }
            (NET.u16(data, at), at + 2, None)
        }
        // BSD loopback: an address family in the writer's byte order; the IP version contains the
        // same information.
        0 | 108 => return Ok((None, data.get(4..).ok_or(Unknown::Short)?)),
        // Bare IP.
        12 | 14 | 101 | 228 | 229 => return Ok((None, data)),
        // Linux "cooked": the packet's type 4 is outgoing.
        113 => (NET.u16(data, 14), 16, NET.u16(data, 0).map(|kind| kind == 4)),
        276 => (NET.u16(data, 0), 20, data.get(10).map(|&kind| kind == 4)),
        _ => return Err(Unknown::Other),
    };
    match kind.ok_or(Unknown::Short)? {
        0x0800 | 0x86dd => Ok((sent, data.get(header..).ok_or(Unknown::Short)?)),
        _ => Err(Unknown::Other),
    }
}

/// RFC 791 §3.1.
fn ipv4(packet: &[u8]) -> Result<Ip<'_>, Unknown> {
    let header = usize::from(packet[0] & 0xf) * 4;
    let fixed: &[u8; 20] = packet.first_chunk().ok_or(Unknown::Short)?;
    let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
    let number = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    if number(6) & 0x1fff != 0 {
        return Err(Unknown::Fragment);
    }
    // Offload leaves 0 where the length does not fit.
    let total = match usize::from(number(2)) {
        0 => packet.len(),
        total => total,
    };
    let size = total.checked_sub(header).ok_or(Unknown::Short)?;
    let data = packet.get(header..packet.len().min(total)).ok_or(Unknown::Short)?;
    let (from, to) = (address(12).into(), address(16).into());
    Ok(Ip { from, to, id: number(4), protocol: fixed[9], data, size })
}

/// RFC 8200 §3, §4.
fn ipv6(packet: &[u8]) -> Result<Ip<'_>, Unknown> {
    let address = |at: usize| {
        let bytes: [u8; 16] =
            packet.get(at..at + 16).ok_or(Unknown::Short)?.try_into().expect("16 bytes");
        Ok::<IpAddr, Unknown>(Ipv6Addr::from(bytes).into())
    };
    let (from, to) = (address(8)?, address(24)?);
    let mut size = match NET.u16(packet, 4).ok_or(Unknown::Short)? {
        0 => packet.len() - 40,
        size => size.into(),
    };
    let mut data = packet.get(40..packet.len().min(40 + size)).ok_or(Unknown::Short)?;
    let mut protocol = packet[6];
    for _ in 0..HEADERS {
        let header = match protocol {
            0 | 43 | 60 => usize::from(*data.get(1).ok_or(Unknown::Short)?) * 8 + 8,
            44 if NET.u16(data, 2).ok_or(Unknown::Short)? & 0xfff8 != 0 => {
                return Err(Unknown::Fragment);
            }
            44 => 8,
            _ => break,
        };
        protocol = *data.first().ok_or(Unknown::Short)?;
        data = data.get(header..).ok_or(Unknown::Short)?;
        size = size.checked_sub(header).ok_or(Unknown::Short)?;
    }
    Ok(Ip { from, to, id: 0, protocol, data, size })
}

/// RFC 768. In a datagram's first fragment, the length is that of the whole.
fn udp(ip: &Ip) -> Option<Seen> {
    let (from, to) = (NET.u16(ip.data, 0)?, NET.u16(ip.data, 2)?);
    let size = match NET.u16(ip.data, 4)? {
        0 => ip.size,
        size => size.into(),
    };
    let payload_bytes = u32::try_from(size.checked_sub(8)?).ok()?;
    let payload = ip.data.get(8..)?;
    let payload = payload.get(..size - 8).unwrap_or(payload);
    let key = datagram_key(payload, payload_bytes, ip.id);
    Some(seen_of(ip, Protocol::Udp, (from, to), key, payload_bytes))
}

/// RFC 9293 §3.1. SYN takes a sequence number before the first byte (§3.4).
fn tcp(ip: &Ip) -> Option<Seen> {
    let (from, to) = (NET.u16(ip.data, 0)?, NET.u16(ip.data, 2)?);
    let sequence = NET.u32(ip.data, 4)?;
    let header = usize::from(*ip.data.get(12)? >> 4) * 4;
    let syn = ip.data.get(13)? & 0x02 != 0;
    let payload_bytes = u32::try_from(ip.size.checked_sub(header.max(20))?).ok()?;
    let key = Key::Bytes { start: sequence.wrapping_add(syn.into()) };
    Some(seen_of(ip, Protocol::Tcp, (from, to), key, payload_bytes))
}

fn seen_of(ip: &Ip, protocol: Protocol, ports: (u16, u16), key: Key, payload_bytes: u32) -> Seen {
    let (from, to) = (SocketAddr::new(ip.from, ports.0), SocketAddr::new(ip.to, ports.1));
    let transport = Transport { protocol, from, to };
    Seen { t_ns: 0, transport, key, ip_id: ip.id, payload_bytes, sent: None }
}

/// The first kind of key that applies; see [`Key`].
fn datagram_key(payload: &[u8], payload_bytes: u32, ip_id: u16) -> Key {
    let is_rtp = payload.len() >= 12
        && (128..192).contains(&payload[0])
        && !(192..224).contains(&payload[1]);
    if let (true, Some(sequence), Some(ssrc)) = (is_rtp, NET.u16(payload, 2), NET.u32(payload, 8)) {
        return Key::Rtp { ssrc, sequence };
    }
    // A capture may have truncated it.
    let is_whole = payload.len() >= CHECKED.min(payload_bytes as usize);
    let check = fnv1a(payload.iter().take(CHECKED).copied()) as u16;
    let check = if is_whole { check } else { 0 };
    if ip_id != 0 {
        return Key::IpId { id: ip_id, check };
    }
    // Captures are only compared with captures, and both are hashed here.
    let hash = fnv1a(payload.iter().take(HASHED).copied().chain(payload_bytes.to_be_bytes()));
    Key::Hash(hash >> 16 << 16 | u64::from(check))
}
