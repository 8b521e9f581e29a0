//! The frames of a stream, or its fields if it is interlaced.

use super::packets::Packet;

/// Timestamps further apart than this, in ticks, do not follow each other: a sender that began again. One second.
const JUMP_TICKS: u32 = 90_000;

/// Packets of a frame or field, one after the other in order of arrival. A packet that comes after the first of the
/// next frame belongs to that one, as in the models of ST 2110-21, which count arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Position of its first packet in the stream.
    pub first: usize,
    /// How many packets it has.
    pub packets: usize,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Ticks since the first frame of the stream.
    pub media: i64,
    /// Sequence number of the packet with the marker, if it has one.
    pub marker: Option<i64>,
    /// The greatest sequence number.
    pub last: i64,
}

/// Divides a stream into frames: a new one begins with a later timestamp, or after a marker.
pub fn frames(packets: &[Packet<'_>]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for (at, packet) in packets.iter().enumerate() {
        let media = match frames.last_mut() {
            Some(frame) if !begins(frame, packet) => {
                frame.packets += 1;
                frame.last = frame.last.max(packet.sequence);
                let is_own = packet.marker && packet.timestamp == frame.timestamp;
                frame.marker = if is_own { Some(packet.sequence) } else { frame.marker };
                continue;
            }
            Some(frame) => {
                let ahead = packet.timestamp.wrapping_sub(frame.timestamp).cast_signed();
                frame.media.saturating_add(ahead.into())
            }
            None => 0,
        };
        frames.push(Frame {
            first: at,
            packets: 1,
            timestamp: packet.timestamp,
            media,
            marker: packet.marker.then_some(packet.sequence),
            last: packet.sequence,
        });
    }
    frames
}

fn begins(frame: &Frame, packet: &Packet<'_>) -> bool {
    let ahead = packet.timestamp.wrapping_sub(frame.timestamp).cast_signed();
    match ahead {
        0 => frame.marker.is_some_and(|marker| packet.sequence > marker),
        1.. => true,
        // A late packet of the frame before, unless the sender's clock was set.
        _ => ahead.unsigned_abs() > JUMP_TICKS,
    }
}

/// The packets of each frame between two whose ends are known, by sequence number, so that lost packets count; with the
/// ticks from the frame before.
pub fn sizes(frames: &[Frame]) -> impl Iterator<Item = (i64, i64)> {
    // Of the last frame, the end is known only if the marker is there.
    let known = frames
        .iter()
        .enumerate()
        .filter(|(at, frame)| frame.marker.is_some() || at + 1 < frames.len());
    let ends: Vec<(usize, i64, i64)> =
        known.map(|(at, frame)| (at, frame.marker.unwrap_or(frame.last), frame.media)).collect();
    let pairs: Vec<(i64, i64)> = ends
        .windows(2)
        .filter(|pair| pair[1].0 == pair[0].0 + 1)
        .map(|pair| (pair[1].1 - pair[0].1, pair[1].2 - pair[0].2))
        .collect();
    pairs.into_iter()
}
