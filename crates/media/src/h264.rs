//! H.264 as far as packaging needs it: NAL units and parameter sets.

use crate::ParseError;

/// NAL unit types (ITU-T H.264 table 7-1).
const IDR: u8 = 5;
const SPS: u8 = 7;
const AUD: u8 = 9;

/// Most parameter sets of one kind that are read.
const SETS_MAX: usize = 31;

/// Sequence and picture parameter sets (`avcC`, ISO/IEC 14496-15 §5.3.3.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterSets {
    /// NAL units, each SPS before each PPS; the first is an SPS.
    units: Vec<Vec<u8>>,
}

impl ParameterSets {
    /// Reads the content of an `avcC` box.
    ///
    /// # Errors
    /// If it is cut, of another version, has no SPS, or NAL units' sizes are not of four bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, ParseError> {
        let [1, _, _, _, sizes, count, ..] = *bytes else {
            return Err(ParseError::new(0, "no `avcC` of version 1"));
        };
        if sizes & 3 != 3 {
            return Err(ParseError::new(4, "sizes of NAL units that are not of four bytes"));
        }
        let mut units = Vec::new();
        let at = read_sets(bytes, 6, usize::from(count & 0x1f), &mut units)?;
        let pictures = bytes.get(at).ok_or_else(|| ParseError::new(at, "no PPS"))?;
        read_sets(bytes, at + 1, usize::from(*pictures), &mut units)?;
        if units.first().is_none_or(|first| first.len() < 4 || first[0] & 0x1f != SPS) {
            return Err(ParseError::new(5, "no SPS"));
        }
        Ok(Self { units })
    }

    /// The codec as RFC 6381 §3.3 writes it: profile, constraints and level of the SPS. `avc3`
    /// (ISO/IEC 14496-15 §5.3.3) says that parameter sets are in band, too.
    pub fn codec(&self) -> String {
        let sps = &self.units[0];
        format!("avc3.{:02x}{:02x}{:02x}", sps[1], sps[2], sps[3])
    }

    /// Puts the parameter sets before the other NAL units of a key frame that has none, so that a
    /// decoder that comes from another rung finds them.
    ///
    /// # Errors
    /// If `frame` is not whole NAL units with a size of four bytes each.
    pub fn put_in_band(&self, frame: &mut Vec<u8>) -> Result<(), ParseError> {
        if units(frame)?.iter().any(|unit| unit[0] & 0x1f == SPS) {
            return Ok(());
        }
        let mut with = Vec::with_capacity(frame.len() + 64);
        for unit in &self.units {
            with.extend((unit.len() as u32).to_be_bytes());
            with.extend(unit);
        }
        with.append(frame);
        *frame = with;
        Ok(())
    }
}

fn read_sets(
    bytes: &[u8],
    mut at: usize,
    count: usize,
    units: &mut Vec<Vec<u8>>,
) -> Result<usize, ParseError> {
    if count > SETS_MAX {
        return Err(ParseError::new(at, format!("{count} parameter sets")));
    }
    for _ in 0..count {
        let cut = || ParseError::new(at, "a parameter set cut short");
        let size = bytes.get(at..at + 2).ok_or_else(cut)?;
        let size = usize::from(u16::from_be_bytes([size[0], size[1]]));
        let unit = bytes.get(at + 2..at + 2 + size).ok_or_else(cut)?;
        units.push(unit.to_vec());
        at += 2 + size;
    }
    Ok(at)
}

/// The NAL units of a frame in which each has its size, of four bytes, before it. None is empty.
///
/// # Errors
/// If one is empty or ends beyond the frame.
pub(crate) fn units(frame: &[u8]) -> Result<Vec<&[u8]>, ParseError> {
    let mut found = Vec::new();
    let mut rest = frame;
    while !rest.is_empty() {
        let at = frame.len() - rest.len();
        let (size, after) = rest
            .split_first_chunk()
            .ok_or_else(|| ParseError::new(at, "the size of a NAL unit cut short"))?;
        let size = u32::from_be_bytes(*size) as usize;
        if size == 0 || size > after.len() {
            return Err(ParseError::new(at, format!("a NAL unit of {size} bytes does not fit")));
        }
        let (unit, after) = after.split_at(size);
        found.push(unit);
        rest = after;
    }
    Ok(found)
}

/// True if the frame is an IDR picture: nothing after it refers to anything before it.
pub(crate) fn is_idr(frame: &[u8]) -> Result<bool, ParseError> {
    Ok(units(frame)?.iter().any(|unit| unit[0] & 0x1f == IDR))
}

/// The frame as a byte stream (ITU-T H.264 annex B), begun by an access unit delimiter, as
/// ISO/IEC 13818-1 §2.14 asks of a transport stream.
///
/// # Errors
/// If `frame` is not whole NAL units with a size of four bytes each.
pub fn byte_stream(frame: &[u8]) -> Result<Vec<u8>, ParseError> {
    const START: [u8; 4] = [0, 0, 0, 1];
    let mut out = Vec::with_capacity(frame.len() + 64);
    out.extend(START);
    // Any slice type.
    out.extend([AUD, 0xf0]);
    for unit in units(frame)?.into_iter().filter(|unit| unit[0] & 0x1f != AUD) {
        out.extend(START);
        out.extend(unit);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPS_UNIT: [u8; 5] = [0x67, 0x64, 0x00, 0x1f, 0xac];
    const PPS_UNIT: [u8; 2] = [0x68, 0xeb];

    fn avcc() -> Vec<u8> {
        let mut bytes = vec![1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 5];
        bytes.extend(SPS_UNIT);
        bytes.extend([1, 0, 2]);
        bytes.extend(PPS_UNIT);
        bytes
    }

    #[test]
    fn the_codec_is_that_of_the_sps() {
        assert_eq!(ParameterSets::read(&avcc()).unwrap().codec(), "avc3.64001f");
    }

    #[test]
    fn a_cut_box_is_refused_wherever_it_is_cut() {
        let whole = avcc();
        for length in 0..whole.len() {
            assert!(ParameterSets::read(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn parameter_sets_are_put_in_band_once() {
        let sets = ParameterSets::read(&avcc()).unwrap();
        let mut frame = vec![0, 0, 0, 2, 0x65, 0x88];
        sets.put_in_band(&mut frame).unwrap();
        let found = units(&frame).unwrap();
        assert_eq!(found, [&SPS_UNIT[..], &PPS_UNIT, &[0x65, 0x88]]);
        let once = frame.clone();
        sets.put_in_band(&mut frame).unwrap();
        assert_eq!(frame, once);
        assert!(is_idr(&frame).unwrap());
    }

    #[test]
    fn a_byte_stream_has_one_delimiter() {
        let frame = [0, 0, 0, 2, 9, 0x10, 0, 0, 0, 2, 0x41, 7];
        assert_eq!(byte_stream(&frame).unwrap(), [0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x41, 7]);
        assert!(byte_stream(&frame[..11]).is_err());
        assert!(byte_stream(&[0, 0, 0, 0]).is_err());
    }
}
