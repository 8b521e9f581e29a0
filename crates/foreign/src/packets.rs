//! The packets of one capture: of each the flow, and what its first bytes say.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use suiro_capture::Ip;
use suiro_capture::file::{self, FileError, Frame, Order};
use suiro_units::{fnv1a, to_i64};

use crate::times::bounded;

/// Network byte order.
const NET: Order = Order::BIG;
/// Most packets that are read from one capture.
const PACKETS_MAX: usize = 20_000_000;
/// Most flows that are distinguished.
const FLOWS_MAX: usize = 10_000;
/// Bytes of payload that identify a packet in two captures.
const HASHED: usize = 64;

/// A capture that was read.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    /// The file's name.
    pub name: String,
    /// Its packets, in order of time.
    pub packets: Vec<Packet>,
    /// The flows that they belong to, one for each direction.
    pub flows: Vec<Way>,
    /// Packets that are neither UDP nor TCP, or cannot be read.
    pub others: u64,
    /// Packets beyond the most that are read.
    pub left_out: u64,
    /// Packets that the capturing tool reports as lost.
    pub lost: u64,
    /// Whether the file ends in the middle of a packet.
    pub cut: bool,
}

/// A direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Way {
    pub is_tcp: bool,
    pub from: SocketAddr,
    pub to: SocketAddr,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.is_tcp { "tcp" } else { "udp" };
        write!(f, "{protocol} {}>{}", self.from, self.to)
    }
}

impl Way {
    /// The opposite direction.
    pub const fn back(self) -> Self {
        Self { is_tcp: self.is_tcp, from: self.to, to: self.from }
    }
}

/// A UDP or TCP packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// Time since 1970, on the clock of the capturing host.
    pub t_ns: i64,
    /// Its number in the file, from 1, as Wireshark counts.
    pub number: u32,
    /// Its flow, as a position in [`Capture::flows`].
    pub flow: u32,
    /// Bytes of payload.
    pub bytes: u32,
    /// Whether the capture says that its host sent it, if it does.
    pub sent: Option<bool>,
    /// The same in each capture of it.
    pub identity: u64,
    pub content: Content,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Tcp(Segment),
    Rtp(Rtp),
    Stun(Stun),
    /// A DTLS record (RFC 6347 §4.1): the type of its handshake message, if it is in plain text.
    Dtls(Option<u8>),
    /// A QUIC packet with a long header (RFC 9000 §17.2).
    QuicLong,
    Other,
}

/// A STUN message (RFC 8489 §5), with its transaction, shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stun {
    /// A connectivity check of ICE: a Binding request with PRIORITY (RFC 8445 §7.1.1).
    Check(u64),
    /// A success response to a Binding request.
    Success(u64),
    /// An error response to one.
    Error(u64),
    /// Another message, such as those to and from servers of STUN and TURN.
    Other,
}

/// The header of an RTP packet (RFC 3550 §5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rtp {
    pub ssrc: u32,
    pub sequence: u16,
    pub timestamp: u32,
    pub payload_type: u8,
}

/// The header of a TCP segment (RFC 9293 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub sequence: u32,
    pub acknowledges: u32,
    pub window: u16,
    pub syn: bool,
    pub ack: bool,
    pub fin: bool,
    pub rst: bool,
    /// The window scale option of a SYN (RFC 7323 §2.2).
    pub scale: Option<u8>,
}

impl Capture {
    /// Reads the content of a file.
    pub fn read(name: &str, content: &[u8]) -> Result<Self, FileError> {
        let mut capture = Self { name: name.to_owned(), ..Self::default() };
        let (mut flows, mut number) = (BTreeMap::new(), 0u32);
        let contents = file::read(content, |frame| {
            number = number.saturating_add(1);
            capture.take(frame, number, &mut flows);
        })?;
        capture.others += contents.untimed;
        capture.packets.sort_by_key(|packet| packet.t_ns);
        Ok(Self { lost: contents.lost, cut: contents.cut, ..capture })
    }

    fn take(&mut self, frame: &Frame<'_>, number: u32, flows: &mut BTreeMap<Way, u32>) {
        let Some((way, bytes, content, identity, sent)) = transport(frame) else {
            self.others += 1;
            return;
        };
        let is_known = flows.contains_key(&way) || flows.len() < FLOWS_MAX;
        if self.packets.len() >= PACKETS_MAX || !is_known {
            self.left_out += 1;
            return;
        }
        let flow = *flows.entry(way).or_insert_with(|| {
            self.flows.push(way);
            self.flows.len() as u32 - 1
        });
        let t_ns = bounded(to_i64(frame.t_ns));
        self.packets.push(Packet { t_ns, number, flow, bytes, sent, identity, content });
    }

    /// The flow of a packet.
    pub fn way(&self, packet: &Packet) -> Way {
        self.flows[packet.flow as usize]
    }
}

/// Flow, bytes of payload, content, identity, and whether the host sent it.
fn transport(frame: &Frame<'_>) -> Option<(Way, u32, Content, u64, Option<bool>)> {
    let ip = Ip::of(frame).ok()?;
    let ports = (NET.u16(ip.data, 0)?, NET.u16(ip.data, 2)?);
    let (header, content) = match ip.protocol {
        6 => {
            let header = usize::from(*ip.data.get(12)? >> 4) * 4;
            (header.max(20), Content::Tcp(segment(ip.data, header)?))
        }
        17 => (8, datagram(ip.data.get(8..).unwrap_or_default())),
        _ => return None,
    };
    let way = Way {
        is_tcp: ip.protocol == 6,
        from: SocketAddr::new(ip.from, ports.0),
        to: SocketAddr::new(ip.to, ports.1),
    };
    let bytes = u32::try_from(ip.size.checked_sub(header)?).ok()?;
    let payload = ip.data.get(header..).unwrap_or_default().iter().take(HASHED).copied();
    // A device between the two captures may change addresses and ports, and not what identifies a packet here.
    let seed = match content {
        Content::Tcp(it) => u64::from(it.sequence) << 32 | u64::from(it.acknowledges),
        _ => u64::from(bytes),
    };
    let identity = fnv1a(seed.to_be_bytes().into_iter().chain(payload));
    Some((way, bytes, content, identity, ip.sent))
}

fn segment(data: &[u8], header: usize) -> Option<Segment> {
    let flags = *data.get(13)?;
    let options = data.get(20..header).unwrap_or_default();
    let syn = flags & 0x02 != 0;
    Some(Segment {
        sequence: NET.u32(data, 4)?,
        acknowledges: NET.u32(data, 8)?,
        window: NET.u16(data, 14)?,
        syn,
        ack: flags & 0x10 != 0,
        fin: flags & 0x01 != 0,
        rst: flags & 0x04 != 0,
        scale: if syn { scale(options) } else { None },
    })
}

/// RFC 9293 §3.2: kind and length, except for the two kinds of one byte.
fn scale(mut options: &[u8]) -> Option<u8> {
    loop {
        match *options {
            [1, ref rest @ ..] => options = rest,
            [3, 3, shift, ..] => return Some(shift.min(14)),
            [kind, length, ..] if kind != 0 && length >= 2 => {
                options = options.get(usize::from(length)..)?;
            }
            _ => return None,
        }
    }
}

/// RFC 9443 §3 distinguishes STUN, DTLS, RTP and QUIC by their first byte.
fn datagram(payload: &[u8]) -> Content {
    let content = match *payload.first().unwrap_or(&0xff) {
        0..=3 => stun(payload),
        20..=63 => Some(Content::Dtls(dtls(payload))),
        128..=191 => rtp(payload),
        192..=255 if matches!(NET.u32(payload, 1), Some(1 | 0x6b33_43cf)) => {
            Some(Content::QuicLong)
        }
        _ => None,
    };
    content.unwrap_or(Content::Other)
}

fn stun(payload: &[u8]) -> Option<Content> {
    let is_stun = NET.u32(payload, 4)? == 0x2112_a442;
    let transaction = u64::from(NET.u32(payload, 8)?) << 32 | u64::from(NET.u32(payload, 16)?);
    let message = match NET.u16(payload, 0)? {
        0x0001 if has_priority(payload) => Stun::Check(transaction),
        0x0101 => Stun::Success(transaction),
        0x0111 => Stun::Error(transaction),
        _ => Stun::Other,
    };
    is_stun.then_some(Content::Stun(message))
}

/// RFC 8489 §14: attributes have a type, a length, and a value that is filled up to 4 bytes.
fn has_priority(message: &[u8]) -> bool {
    let mut at = 20;
    while let (Some(kind), Some(length)) = (NET.u16(message, at), NET.u16(message, at + 2)) {
        if kind == 0x0024 {
            return true;
        }
        at += 4 + usize::from(length).next_multiple_of(4);
    }
    false
}

/// The first message of a handshake record of epoch 0.
fn dtls(payload: &[u8]) -> Option<u8> {
    let is_plain = payload.first() == Some(&22) && NET.u16(payload, 3) == Some(0);
    payload.get(13).copied().filter(|_| is_plain)
}

/// RTP, and not RTCP (RFC 5761 §4).
fn rtp(payload: &[u8]) -> Option<Content> {
    let second = *payload.get(1)?;
    let header = Rtp {
        ssrc: NET.u32(payload, 8)?,
        sequence: NET.u16(payload, 2)?,
        timestamp: NET.u32(payload, 4)?,
        payload_type: second & 0x7f,
    };
    (!(192..224).contains(&second)).then_some(Content::Rtp(header))
}
