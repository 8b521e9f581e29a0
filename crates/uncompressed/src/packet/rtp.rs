//! The RTP header (RFC 3550 §5.1) and the sequence number extended to 32 bits (RFC 4175 §4.2).

use super::{Frame, Refusal, Stream};

/// The fixed header and the upper half of the sequence number.
pub const BYTES: usize = 14;
const VERSION: u8 = 2;

/// Writes the header of the packet that follows the frame's first by `index` packets.
pub fn write(stream: Stream, frame: &Frame, index: u32, last: bool, out: &mut [u8; BYTES]) {
    let sequence = frame.sequence.wrapping_add(index).to_be_bytes();
    out[0] = VERSION << 6;
    out[1] = (u8::from(last) << 7) | (stream.payload_type & 0x7f);
    out[2..4].copy_from_slice(&sequence[2..]);
    out[4..8].copy_from_slice(&frame.timestamp.to_be_bytes());
    out[8..12].copy_from_slice(&stream.ssrc.to_be_bytes());
    out[12..14].copy_from_slice(&sequence[..2]);
}

/// The fields of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    pub marker: bool,
    pub sequence: u32,
    pub timestamp: u32,
    pub ssrc: u32,
    /// What follows the extended sequence number, without padding.
    pub payload: &'a [u8],
}

/// Reads the header of a packet of `payload_type`.
pub fn parse(datagram: &[u8], payload_type: u8) -> Result<Header<'_>, Refusal> {
    let (fixed, rest) = datagram.split_first_chunk::<12>().ok_or(Refusal::Short)?;
    if fixed[0] >> 6 != VERSION {
        return Err(Refusal::NotRtp);
    }
    if fixed[1] & 0x7f != payload_type {
        return Err(Refusal::PayloadType(fixed[1] & 0x7f));
    }
    let rest = without_extension(fixed[0], rest)?;
    let rest = without_padding(fixed[0], rest)?;
    let (high, payload) = rest.split_first_chunk::<2>().ok_or(Refusal::Short)?;
    let word =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    Ok(Header {
        marker: fixed[1] & 0x80 != 0,
        sequence: u32::from_be_bytes([high[0], high[1], fixed[2], fixed[3]]),
        timestamp: word(4),
        ssrc: word(8),
        payload,
    })
}

/// Skips contributing sources and a header extension.
fn without_extension(first: u8, rest: &[u8]) -> Result<&[u8], Refusal> {
    let sources = usize::from(first & 0x0f) * 4;
    let rest = rest.get(sources..).ok_or(Refusal::RtpHeader)?;
    if first & 0x10 == 0 {
        return Ok(rest);
    }
    let (head, rest) = rest.split_first_chunk::<4>().ok_or(Refusal::RtpHeader)?;
    let words = usize::from(u16::from_be_bytes([head[2], head[3]]));
    rest.get(words * 4..).ok_or(Refusal::RtpHeader)
}

/// Removes the padding, whose last byte holds its length.
fn without_padding(first: u8, rest: &[u8]) -> Result<&[u8], Refusal> {
    if first & 0x20 == 0 {
        return Ok(rest);
    }
    let padding = usize::from(*rest.last().ok_or(Refusal::RtpHeader)?);
    let length = rest.len().checked_sub(padding).filter(|_| padding > 0);
    Ok(&rest[..length.ok_or(Refusal::RtpHeader)?])
}
