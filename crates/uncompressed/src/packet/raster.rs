//! The raster layout: a frame as a sequence of bytes, whatever their meaning, in large packets. It
//! is suiro's own format.
//!
//! After the RTP header, in network byte order:
//!
//! | bytes | field |
//! |---|---|
//! | 12–13 | upper half of the sequence number, where RFC 4175 has it |
//! | 14 | version, 1 |
//! | 15 | 0; ignored when received |
//! | 16–19 | number of the frame's content, modulo 2^32 |
//! | 20–23 | where this packet's bytes begin in the frame |
//! | 24–27 | bytes of the frame |
//! | 28–35 | in the packet with the marker, the frame's checksum ([`crate::checksum`]); else 0 |
//! | 36– | the bytes |
//!
//! The marker is set in a frame's last packet. All packets but the last carry the same number of
//! bytes, a multiple of 8.

use super::{Frame, Refusal, rtp};

const VERSION: u8 = 1;
/// What follows the extended sequence number.
const OWN_BYTES: usize = 22;
/// All headers.
pub const HEADER_BYTES: usize = rtp::BYTES + OWN_BYTES;

/// Writes what follows the extended sequence number.
pub fn write(
    frame: &Frame,
    offset: usize,
    frame_bytes: u32,
    last: bool,
    out: &mut [u8; OWN_BYTES],
) {
    let checksum = if last { frame.checksum } else { 0 };
    out[0] = VERSION;
    out[1] = 0;
    out[2..6].copy_from_slice(&frame.number.to_be_bytes());
    out[6..10].copy_from_slice(&(offset as u32).to_be_bytes());
    out[10..14].copy_from_slice(&frame_bytes.to_be_bytes());
    out[14..22].copy_from_slice(&checksum.to_be_bytes());
}

/// The fields of a packet.
pub struct Parsed<'a> {
    pub number: u32,
    pub offset: usize,
    pub checksum: u64,
    pub piece: &'a [u8],
}

/// Reads what follows the extended sequence number, of a frame of `frame_bytes`.
pub fn parse(payload: &[u8], frame_bytes: u32) -> Result<Parsed<'_>, Refusal> {
    let (own, piece) = payload.split_first_chunk::<OWN_BYTES>().ok_or(Refusal::Short)?;
    if own[0] != VERSION {
        return Err(Refusal::Version(own[0]));
    }
    let word = |at: usize| u32::from_be_bytes([own[at], own[at + 1], own[at + 2], own[at + 3]]);
    if word(10) != frame_bytes {
        return Err(Refusal::FrameBytes(word(10)));
    }
    let offset = word(6) as usize;
    // Words of the checksum must not be split between packets, except for the last one.
    let whole = piece.len().is_multiple_of(8) || offset + piece.len() == frame_bytes as usize;
    if offset + piece.len() > frame_bytes as usize || !offset.is_multiple_of(8) || !whole {
        return Err(Refusal::Outside);
    }
    let checksum = (u64::from(word(14)) << 32) | u64::from(word(18));
    Ok(Parsed { number: word(2), offset, checksum, piece })
}
