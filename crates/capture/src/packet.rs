//! A captured frame down to what its IP packet carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::file::{Frame, Order};

/// Network byte order.
const NET: Order = Order::BIG;
/// Most IPv6 extension headers, or VLAN tags, that are skipped.
const HEADERS: usize = 8;

/// Why a frame has no IP packet that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Something other than IP.
    Other,
    /// A fragment other than the first.
    Fragment,
    /// Captured too short, or malformed.
    Short,
}

/// The relevant parts of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip<'a> {
    /// The sender.
    pub from: IpAddr,
    /// The receiver.
    pub to: IpAddr,
    /// IPv4 identification; 0 for IPv6.
    pub id: u16,
    /// The protocol above it, after extension headers.
    pub protocol: u8,
    /// What it carries, as far as it was captured.
    pub data: &'a [u8],
    /// Length of `data` in bytes before the capture truncated it.
    pub size: usize,
    /// Whether the capture says that its host sent it, if it does.
    pub sent: Option<bool>,
}

impl<'a> Ip<'a> {
    /// The IP packet of a frame.
    ///
    /// # Errors
    /// If it has none, or one that cannot be read.
    pub fn of(frame: &Frame<'a>) -> Result<Self, Unknown> {
        let (sent, packet) = network(frame)?;
        let ip = match packet.first().ok_or(Unknown::Short)? >> 4 {
            4 => ipv4(packet)?,
            6 => ipv6(packet)?,
            _ => return Err(Unknown::Other),
        };
        Ok(Self { sent: frame.sent.or(sent), ..ip })
    }
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
    Ok(Ip { from, to, id: number(4), protocol: fixed[9], data, size, sent: None })
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
    Ok(Ip { from, to, id: 0, protocol, data, size, sent: None })
}
