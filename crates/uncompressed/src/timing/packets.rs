//! The RTP packets of captures, stream by stream.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use suiro_capture::Ip;
use suiro_capture::file::{self, FileError, Order};

/// Network byte order.
const NET: Order = Order::BIG;
/// Most packets that are kept of all captures together.
pub const PACKETS_MAX: usize = 40_000_000;
/// Most streams that are distinguished.
const STREAMS_MAX: usize = 10_000;
/// No time is later than this, in the year 2096: sums and differences of times fit into 64 bits.
const LATEST_NS: u64 = 4_000_000_000_000_000_000;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
/// Fewer packets are no stream: other datagrams may look like RTP.
const STREAM_MIN: usize = 10;
/// A step of the sequence number by more than this is a jump: a restart, or no RTP.
const JUMP: i64 = 1000;

/// What makes packets one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The capture, as a position among those that were read.
    pub file: usize,
    /// The source.
    pub from: SocketAddr,
    /// The destination.
    pub to: SocketAddr,
    /// RTP synchronisation source.
    pub ssrc: u32,
    /// RTP payload type.
    pub payload_type: u8,
}

/// A packet of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// When it was captured, in nanoseconds since 1970 on the capture's clock.
    pub t_ns: i64,
    /// Sequence number, counted on beyond 65,535.
    pub sequence: i64,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Whether it has the marker bit: the last one of a frame or field (ST 2110-20).
    pub marker: bool,
    /// The first row of which it has samples, if it carries sample row data.
    pub row: Option<Row>,
    /// Bytes of its IP packet.
    pub ip_bytes: u32,
    /// What was captured of its UDP payload.
    pub payload: &'a [u8],
}

/// The first sample row data header of a packet (RFC 4175 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The number of the row, from 0.
    pub number: u16,
    /// Whether it is of a second field.
    pub second: bool,
}

/// A stream of RTP, in order of time.
#[derive(Debug, Clone)]
pub struct Stream<'a> {
    /// What identifies it.
    pub key: Key,
    /// Its packets.
    pub packets: Vec<Packet<'a>>,
}

/// What captures contain.
#[derive(Debug, Clone, Default)]
pub struct Read<'a> {
    /// Streams of RTP, in the order of their first packets.
    pub streams: Vec<Stream<'a>>,
    /// Packets that are not of these streams.
    pub others: u64,
    /// Packets beyond [`PACKETS_MAX`], which were ignored.
    pub left_out: u64,
    /// What each capture says of itself.
    pub files: Vec<file::Contents>,
}

/// Reads captures; those that are malformed are an error, with their position.
pub fn read<'a>(files: &[&'a [u8]]) -> Result<Read<'a>, (usize, FileError)> {
    let mut read = Read::default();
    let (mut places, mut kept) = (BTreeMap::new(), 0);
    for (file, content) in files.iter().enumerate() {
        let contents = file::read(content, |frame| match packet(file, frame) {
            None => read.others += 1,
            Some((key, packet)) => {
                if places.len() >= STREAMS_MAX && !places.contains_key(&key) {
                    read.others += 1;
                    return;
                }
                if kept >= PACKETS_MAX {
                    read.left_out += 1;
                    return;
                }
                kept += 1;
                let at = *places.entry(key).or_insert_with(|| {
                    read.streams.push(Stream { key, packets: Vec::new() });
                    read.streams.len() - 1
                });
                read.streams[at].packets.push(packet);
            }
        });
        read.files.push(contents.map_err(|error| (file, error))?);
    }
    let (streams, others): (Vec<_>, Vec<_>) =
        read.streams.into_iter().partition(|stream| stream.packets.len() >= STREAM_MIN);
    read.others += others.iter().map(|stream| stream.packets.len() as u64).sum::<u64>();
    read.streams = Vec::new();
    for mut stream in streams {
        // Captures of several queues of a card are not always in order.
        stream.packets.sort_by_key(|packet| packet.t_ns);
        if count_on(&mut stream.packets) {
            read.streams.push(stream);
        } else {
            read.others += stream.packets.len() as u64;
        }
    }
    Ok(read)
}

/// Continues sequence numbers beyond 65,535; false if they do not count, and this is no RTP.
fn count_on(packets: &mut [Packet<'_>]) -> bool {
    let (mut last, mut jumps) = (0, 0);
    for (at, packet) in packets.iter_mut().enumerate() {
        let sequence = packet.sequence as u16;
        let step = i64::from(sequence.wrapping_sub(last as u16).cast_signed());
        last = if at == 0 { i64::from(sequence) } else { last + step };
        jumps += usize::from(at > 0 && step.abs() > JUMP);
        packet.sequence = last;
    }
    jumps * 20 <= packets.len()
}

/// The RTP packet of a frame, if it has one.
fn packet<'a>(file: usize, frame: &file::Frame<'a>) -> Option<(Key, Packet<'a>)> {
    let ip = Ip::of(frame).ok().filter(|ip| ip.protocol == UDP && frame.t_ns <= LATEST_NS)?;
    let (from, to) = (NET.u16(ip.data, 0)?, NET.u16(ip.data, 2)?);
    let payload = ip.data.get(UDP_HEADER..)?;
    let [first, second] = [*payload.first()?, *payload.get(1)?];
    // RTP version 2 (RFC 3550 §5.1), and not RTCP (RFC 5761 §4).
    if first >> 6 != 2 || (192..224).contains(&second) {
        return None;
    }
    let key = Key {
        file,
        from: SocketAddr::new(ip.from, from),
        to: SocketAddr::new(ip.to, to),
        ssrc: NET.u32(payload, 8)?,
        payload_type: second & 0x7f,
    };
    let header = match ip.from {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    };
    let packet = Packet {
        t_ns: frame.t_ns as i64,
        sequence: i64::from(NET.u16(payload, 2)?),
        timestamp: NET.u32(payload, 4)?,
        marker: second & 0x80 != 0,
        row: row(first, payload),
        ip_bytes: u32::try_from(ip.size + header).unwrap_or(u32::MAX),
        payload,
    };
    Some((key, packet))
}

/// The first sample row data header, after the RTP header and the upper half of the sequence number.
fn row(first: u8, payload: &[u8]) -> Option<Row> {
    let mut at = 12 + usize::from(first & 0x0f) * 4;
    if first & 0x10 != 0 {
        at += 4 + usize::from(NET.u16(payload, at + 2)?) * 4;
    }
    let number = NET.u16(payload, at + 4)?;
    Some(Row { number: number & 0x7fff, second: number & 0x8000 != 0 })
}
