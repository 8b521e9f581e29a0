//! Moving a segment in time.

use super::boxes::{Boxed, Fields, boxes, only};
use crate::ParseError;

/// Moves a media segment on by `offset` ticks of its track, in place: the decode time of every
/// track fragment (`tfdt`, §8.8.12). Its fragments are numbered from `sequence` (`mfhd`, §8.8.5).
/// All other times in a segment are relative to these.
///
/// # Errors
/// If the bytes are not whole boxes, hold no fragment, or a time does not fit. They may then be
/// moved in part.
pub fn restamp(bytes: &mut [u8], offset: u64, sequence: u32) -> Result<(), ParseError> {
    let mut number = sequence;
    let mut moved = false;
    for found in boxes(bytes, 0, bytes.len())? {
        if &found.kind == b"sidx" {
            return Err(ParseError::new(found.start, "an index (`sidx`) would be left behind"));
        }
        if &found.kind == b"moof" {
            fragment(bytes, &found, offset, number)?;
            number = number.wrapping_add(1);
            moved = true;
        }
    }
    if moved { Ok(()) } else { Err(ParseError::new(0, "no fragment (`moof`)")) }
}

fn fragment(bytes: &mut [u8], moof: &Boxed, offset: u64, sequence: u32) -> Result<(), ParseError> {
    let inside = boxes(bytes, moof.content, moof.end)?;
    let mfhd = only(&inside, b"mfhd", moof.start)?;
    let mut field = Fields::of(bytes, &mfhd)?;
    field.version()?;
    let at = field.at;
    field.u32()?;
    bytes[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
    for traf in inside.iter().filter(|found| &found.kind == b"traf") {
        let tfdt = only(&boxes(bytes, traf.content, traf.end)?, b"tfdt", traf.start)?;
        decode_time(bytes, &tfdt, offset)?;
    }
    Ok(())
}

fn decode_time(bytes: &mut [u8], tfdt: &Boxed, offset: u64) -> Result<(), ParseError> {
    let mut field = Fields::of(bytes, tfdt)?;
    let (version, _) = field.version()?;
    let at = field.at;
    let beyond = || ParseError::new(at, "the time does not fit");
    match version {
        0 => {
            let time = u64::from(field.u32()?).checked_add(offset);
            let time = time.and_then(|time| u32::try_from(time).ok()).ok_or_else(beyond)?;
            bytes[at..at + 4].copy_from_slice(&time.to_be_bytes());
        }
        1 => {
            let time = field.u64()?.checked_add(offset).ok_or_else(beyond)?;
            bytes[at..at + 8].copy_from_slice(&time.to_be_bytes());
        }
        _ => return Err(ParseError::new(tfdt.start, format!("`tfdt` of version {version}"))),
    }
    Ok(())
}
