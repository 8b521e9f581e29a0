//! Sample row data of RFC 4175 §4.2 and ST 2110-20 §6.1.
//!
//! After the extended sequence number, for each piece: length (16 bits), F (1 bit, second field),
//! row number (15), C (1, another such header follows), offset in pixels (15). Then the pieces.

use super::{PIECES_MAX, Refusal, rtp};
use crate::geometry::Geometry;

/// One sample row data header.
const ROW_BYTES: usize = 6;
/// The headers of a packet with one piece, as they are sent.
pub const HEADER_BYTES: usize = rtp::BYTES + ROW_BYTES;

/// Writes the sample row data header of the only piece of a packet.
pub fn write(geometry: &Geometry, offset: usize, bytes: usize, out: &mut [u8; ROW_BYTES]) {
    let row_bytes = geometry.row_bytes() as usize;
    let pgroup = geometry.pgroup();
    let pixel = (offset % row_bytes) as u32 / pgroup.bytes * pgroup.pixels;
    let fields = [bytes as u16, (offset / row_bytes) as u16, pixel as u16];
    for (out, field) in out.chunks_exact_mut(2).zip(fields) {
        out.copy_from_slice(&field.to_be_bytes());
    }
}

type Pieces<'a> = ([(usize, &'a [u8]); PIECES_MAX], usize);

/// The pieces of a packet, from what follows the extended sequence number. Empty pieces, which ST
/// 2110-20 allows in a packet without data, are left out.
pub fn parse<'a>(geometry: &Geometry, payload: &'a [u8]) -> Result<Pieces<'a>, Refusal> {
    let headers = count(payload)?;
    let mut data = &payload[headers * ROW_BYTES..];
    let mut pieces = [(0, [].as_slice()); PIECES_MAX];
    let mut pieces_count = 0;
    for header in payload.chunks_exact(ROW_BYTES).take(headers) {
        let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (length, row, pixel) = (usize::from(field(0)), field(2), field(4) & 0x7fff);
        if row & 0x8000 != 0 {
            return Err(Refusal::Interlaced);
        }
        let (piece, rest) = data.split_at_checked(length).ok_or(Refusal::Short)?;
        data = rest;
        if length > 0 {
            pieces[pieces_count] = (place(geometry, row, pixel, length)?, piece);
            pieces_count += 1;
        }
    }
    Ok((pieces, pieces_count))
}

/// How many headers there are.
fn count(payload: &[u8]) -> Result<usize, Refusal> {
    for (number, header) in payload.chunks(ROW_BYTES).enumerate().take(PIECES_MAX) {
        let continued = header.get(4).ok_or(Refusal::Short)? & 0x80 != 0;
        if header.len() < ROW_BYTES {
            return Err(Refusal::Short);
        }
        if !continued {
            return Ok(number + 1);
        }
    }
    Err(if payload.len() < PIECES_MAX * ROW_BYTES { Refusal::Short } else { Refusal::RowHeaders })
}

/// The offset of a piece in the frame, in bytes.
fn place(geometry: &Geometry, row: u16, pixel: u16, length: usize) -> Result<usize, Refusal> {
    let pgroup = geometry.pgroup();
    let (row, pixel) = (u32::from(row), u32::from(pixel));
    if !pixel.is_multiple_of(pgroup.pixels) || !length.is_multiple_of(pgroup.bytes as usize) {
        return Err(Refusal::Pgroup);
    }
    let row_bytes = geometry.row_bytes() as usize;
    let within = (pixel / pgroup.pixels * pgroup.bytes) as usize;
    if row >= geometry.height() || within + length > row_bytes {
        return Err(Refusal::Outside);
    }
    Ok(row as usize * row_bytes + within)
}
