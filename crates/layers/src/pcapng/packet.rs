//! A captured frame down to the UDP or TCP payload.

use std::net::SocketAddr;

use suiro_capture::file::{Frame, Order};
use suiro_capture::{Ip, Unknown};
use suiro_units::fnv1a;

use crate::event::{Key, Protocol};

/// Network byte order.
const NET: Order = Order::BIG;
/// Bytes of payload covered by the hash of last resort.
const HASHED: usize = 64;
/// Bytes of payload that distinguish datagrams with the same IPv4 identification.
const CHECKED: usize = 12;

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

pub(super) fn seen(frame: &Frame) -> Result<Seen, Unknown> {
    let ip = Ip::of(frame)?;
    let seen = match ip.protocol {
        17 => udp(&ip),
        6 => tcp(&ip),
        _ => return Err(Unknown::Other),
    };
    let seen = seen.ok_or(Unknown::Short)?;
    Ok(Seen { t_ns: frame.t_ns, sent: ip.sent, ..seen })
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
