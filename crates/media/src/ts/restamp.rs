//! Moving a segment in time.

use super::{PACKET, Shift};
use crate::ParseError;

/// Time stamps have 33 bits.
const STAMP_MASK: u64 = (1 << 33) - 1;

/// Moves a segment of whole packets in place: PTS, DTS, PCR and continuity counters.
///
/// # Errors
/// If a packet is cut, has no sync byte, or a header in it is malformed. The bytes may then be
/// moved in part.
pub fn restamp(bytes: &mut [u8], shift: &Shift) -> Result<(), ParseError> {
    if bytes.len() % PACKET != 0 {
        return Err(ParseError::new(bytes.len(), format!("no whole packets of {PACKET} bytes")));
    }
    for (index, packet) in bytes.chunks_exact_mut(PACKET).enumerate() {
        move_packet(packet, shift).map_err(|error| error.within(index * PACKET))?;
    }
    Ok(())
}

/// §2.4.3.2, the transport packet.
fn move_packet(packet: &mut [u8], shift: &Shift) -> Result<(), ParseError> {
    if packet[0] != 0x47 {
        return Err(ParseError::new(0, "no sync byte"));
    }
    let starts_unit = packet[1] & 0x40 != 0;
    let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
    let has_adaptation = packet[3] & 0x20 != 0;
    let has_payload = packet[3] & 0x10 != 0;
    let by = shift.counters.iter().find(|of| of.pid == pid).map_or(0, |of| of.count);
    let counter = (u64::from(packet[3] & 0x0f) + (by & 0x0f)) & 0x0f;
    packet[3] = (packet[3] & 0xf0) | counter as u8;
    let mut payload = 4;
    if has_adaptation {
        payload = 5 + usize::from(packet[4]);
        if payload > PACKET {
            return Err(ParseError::new(4, "an adaptation field beyond its packet"));
        }
        adaptation(&mut packet[5..payload], shift.ticks)?;
    }
    let starts_pes = packet[payload..].starts_with(&[0, 0, 1]);
    if has_payload && starts_unit && starts_pes {
        pes(&mut packet[payload..], shift.ticks).map_err(|error| error.within(payload))?;
    }
    Ok(())
}

/// §2.4.3.4: the PCR's base has 33 bits of 90 kHz; its extension stays.
fn adaptation(field: &mut [u8], ticks: u64) -> Result<(), ParseError> {
    let has_pcr = field.first().is_some_and(|flags| flags & 0x10 != 0);
    if !has_pcr {
        return Ok(());
    }
    let Some(pcr) = field.get_mut(1..7) else {
        return Err(ParseError::new(5, "a PCR beyond its field"));
    };
    let base = pcr[..4].iter().fold(0, |base, byte| base << 8 | u64::from(*byte)) << 1
        | u64::from(pcr[4] >> 7);
    let base = base.wrapping_add(ticks) & STAMP_MASK;
    pcr[..4].copy_from_slice(&((base >> 1) as u32).to_be_bytes());
    pcr[4] = (pcr[4] & 0x7f) | ((base & 1) as u8) << 7;
    Ok(())
}

/// §2.4.3.7: PTS and DTS of a PES header, which must lie in the packet that begins it.
fn pes(payload: &mut [u8], ticks: u64) -> Result<(), ParseError> {
    // Streams without time stamps have no flags: padding, private 2, ECM, EMM, …
    let stream = *payload.get(3).ok_or_else(|| ParseError::new(0, "a PES header cut short"))?;
    if !(0xc0..=0xef).contains(&stream) && stream != 0xbd && stream != 0xfd {
        return Ok(());
    }
    let cut = || ParseError::new(0, "a PES header beyond its packet");
    let stamps = payload.get(7).ok_or_else(cut)? >> 6;
    for index in 0..usize::from(stamps >> 1) + usize::from(stamps == 3) {
        let at = 9 + 5 * index;
        stamp(payload.get_mut(at..at + 5).ok_or_else(cut)?, ticks)
            .map_err(|error| error.within(at))?;
    }
    Ok(())
}

/// Three pieces of 3, 15 and 15 bits, each closed by a marker bit.
fn stamp(field: &mut [u8], ticks: u64) -> Result<(), ParseError> {
    if field[0] & field[2] & field[4] & 1 == 0 {
        return Err(ParseError::new(0, "a time stamp without its marker bits"));
    }
    let value = read_stamp(field).wrapping_add(ticks) & STAMP_MASK;
    write_stamp(field, field[0] >> 4, value);
    Ok(())
}

/// The 33 bits of a time stamp field of five bytes.
pub(crate) fn read_stamp(field: &[u8]) -> u64 {
    let byte = |index: usize| u64::from(field[index]);
    (byte(0) >> 1 & 0x07) << 30 | byte(1) << 22 | (byte(2) >> 1) << 15 | byte(3) << 7 | byte(4) >> 1
}

/// Writes a time stamp field of five bytes that begins with the four bits of `prefix`.
pub(crate) fn write_stamp(field: &mut [u8], prefix: u8, value: u64) {
    field[0] = prefix << 4 | ((value >> 30 & 0x07) as u8) << 1 | 1;
    field[1] = (value >> 22) as u8;
    field[2] = ((value >> 15) as u8) << 1 | 1;
    field[3] = (value >> 7) as u8;
    field[4] = (value as u8) << 1 | 1;
}
