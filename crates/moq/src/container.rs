//! The objects of a video track, in the container `legacy` of `hang`: a timestamp, then a coded frame. Our frame mark
//! is in an SEI message, which other players ignore. Pure.

use suiro_payload::FrameMark;
use suiro_units::BitRate;

/// The UUID that marks our SEI message (ITU-T H.264 §D.1.7, user data unregistered).
const UUID: [u8; 16] = *b"suiro-frame-mark";
/// A start code, a NAL unit of SEI, the type of its payload, and its length.
const HEAD: [u8; 7] = [0, 0, 0, 1, 6, 5, (UUID.len() + FrameMark::BYTES) as u8];
/// The stop bit that ends an SEI message (§7.3.2.3.1).
const STOP: u8 = 0x80;
/// Largest value of a variable-length integer (RFC 9000 §16).
const VARINT_MAX: u64 = (1 << 62) - 1;
/// NAL unit type of a frame that refers to no other (ITU-T H.264 table 7-1).
const IDR: u8 = 5;

/// Why an object cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// It ends within its time.
    #[error("the object ends within its timestamp")]
    Short,
    /// It has no NAL unit.
    #[error("the object has no NAL unit of H.264 in the byte stream format")]
    NoPicture,
    /// It has no packet of sound, or one that is larger than 20 ms of Opus can be.
    #[error("the object has {0} bytes of sound; expected 1 to 1276 of Opus")]
    NoSound(usize),
}

/// A coded frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its time in microseconds: ours count from 1970.
    pub time_us: u64,
    /// Our mark; `None` if the publisher is not suiro.
    pub mark: Option<FrameMark>,
    /// Whether it is a key frame, which refers to no other frame.
    pub key: bool,
    /// Its NAL units in the byte stream format, without the mark.
    pub data: Vec<u8>,
}

/// Makes the mark of a frame. Its waiting time is set when it is sent.
pub fn mark(number: u64, references: Option<u64>, rate: BitRate) -> FrameMark {
    let distance = references.map_or(0, |reference| number.saturating_sub(reference).clamp(1, 255));
    FrameMark {
        number: number as u32,
        references: distance as u8,
        rate_bps: u32::try_from(rate.as_bps()).unwrap_or(u32::MAX),
        waited: None,
    }
}

/// Writes an object. Times that do not fit, beyond the year 100,000, are the largest that does.
pub fn write(time_us: u64, mark: FrameMark, data: &[u8]) -> Vec<u8> {
    let mut object = Vec::with_capacity(8 + HEAD.len() + 48 + data.len());
    object.extend(varint_of(time_us));
    object.extend(HEAD);
    let (mut zeros, payload) = (0, UUID.into_iter().chain(mark.write()).chain([STOP]));
    for byte in payload {
        // ITU-T H.264 §7.4.1: no start code within a NAL unit.
        if zeros == 2 && byte <= 3 {
            object.push(3);
            zeros = 0;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        object.push(byte);
    }
    object.extend(data);
    object
}

/// Reads an object.
///
/// # Errors
/// [`ContainerError`].
pub fn read(object: &[u8]) -> Result<Picture, ContainerError> {
    let (time_us, rest) = varint(object).ok_or(ContainerError::Short)?;
    let (mark, data) = match marked(rest) {
        Some((mark, data)) => (Some(mark), data),
        None => (None, rest),
    };
    let mut types = unit_types(data).peekable();
    if types.peek().is_none() {
        return Err(ContainerError::NoPicture);
    }
    let key = types.any(|kind| kind == IDR);
    Ok(Picture { time_us, mark, key, data: data.to_vec() })
}

/// RFC 9000 §16: a varint of eight bytes begins with the bits 11.
fn varint_of(time_us: u64) -> [u8; 8] {
    (time_us.min(VARINT_MAX) | 0b11 << 62).to_be_bytes()
}

/// Writes an object of a track of sound: its time and a packet of Opus.
pub fn write_sound(time_us: u64, packet: &[u8]) -> Vec<u8> {
    let mut object = Vec::with_capacity(8 + packet.len());
    object.extend(varint_of(time_us));
    object.extend(packet);
    object
}

/// Reads an object of a track of sound: its time in microseconds, and the packet.
///
/// # Errors
/// [`ContainerError`].
pub fn read_sound(object: &[u8]) -> Result<(u64, Vec<u8>), ContainerError> {
    let (time_us, packet) = varint(object).ok_or(ContainerError::Short)?;
    if packet.is_empty() || packet.len() > suiro_media::sound::PACKET_MAX {
        return Err(ContainerError::NoSound(packet.len()));
    }
    Ok((time_us, packet.to_vec()))
}

/// RFC 9000 §16.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number[1..]
        .iter()
        .fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((value, rest))
}

/// Splits off our mark, if the data begins with it.
fn marked(data: &[u8]) -> Option<(FrameMark, &[u8])> {
    let body = data.strip_prefix(&HEAD)?;
    let (mut payload, mut zeros, mut read) = (Vec::new(), 0, 0);
    while payload.len() < UUID.len() + FrameMark::BYTES + 1 {
        let byte = *body.get(read)?;
        read += 1;
        if zeros == 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        payload.push(byte);
    }
    let mark = payload.strip_prefix(&UUID)?.strip_suffix(&[STOP])?;
    Some((FrameMark::read(mark)?, &body[read..]))
}

/// The types of the NAL units, in order.
fn unit_types(data: &[u8]) -> impl Iterator<Item = u8> {
    let starts = data.windows(4).filter(|window| window[..3] == [0, 0, 1]);
    starts.map(|window| window[3] & 0x1f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PICTURE: [u8; 7] = [0, 0, 0, 1, 0x65, 0x88, 0x80];

    #[test]
    fn what_is_written_is_read_back_and_a_mark_full_of_zeros_has_no_start_code() {
        let number = mark(0, None, BitRate::from_bps(256));
        assert_eq!((number.references, number.rate_bps), (0, 256));
        let object = write(1_800_000_000_000_000, number, &PICTURE);
        let within = &object[8 + 4..object.len() - PICTURE.len()];
        assert!(!within.windows(3).any(|window| window[..2] == [0, 0] && window[2] < 3));
        let read = read(&object).unwrap();
        assert_eq!((read.time_us, read.mark), (1_800_000_000_000_000, Some(number)));
        assert_eq!((read.key, &read.data[..]), (true, &PICTURE[..]));
    }

    #[test]
    fn a_picture_of_another_make_has_no_mark() {
        // RFC 9000 appendix A.1: 494,878,333 in four bytes.
        let object = [&[0x9d, 0x7f, 0x3e, 0x7d], &[0, 0, 1, 0x41, 0x9a][..]].concat();
        let read = read(&object).unwrap();
        assert_eq!((read.time_us, read.mark, read.key), (494_878_333, None, false));
        assert_eq!(super::read(&[0x9d, 0x7f]), Err(ContainerError::Short));
        assert_eq!(super::read(&[]), Err(ContainerError::Short));
        assert_eq!(super::read(&[7, 1, 2, 3, 4, 5]), Err(ContainerError::NoPicture));
    }

    #[test]
    fn the_distance_of_a_reference_is_bounded() {
        let rate = BitRate::from_mbps(9000);
        let far = mark(1000, Some(3), rate);
        assert_eq!((far.references, far.rate_bps), (255, u32::MAX));
        assert_eq!(mark(8, Some(7), rate).references, 1);
    }

    proptest! {
        #[test]
        fn anything_can_be_read(object in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&object);
            let _ = read_sound(&object);
        }

        #[test]
        fn every_sound_comes_back(time in 0..1u64 << 62, packet in prop::collection::vec(any::<u8>(), 1..100)) {
            prop_assert_eq!(read_sound(&write_sound(time, &packet)), Ok((time, packet)));
        }

        #[test]
        fn every_mark_comes_back(number: u32, references: u8, rate_bps: u32, waited: Option<u16>, time in 0..1u64 << 62) {
            let mark = FrameMark { number, references, rate_bps, waited };
            let mark = FrameMark::read(&mark.write()).unwrap();
            let picture = read(&write(time, mark, &PICTURE)).unwrap();
            prop_assert_eq!((picture.time_us, picture.mark), (time, Some(mark)));
            prop_assert_eq!(&picture.data[..], &PICTURE[..]);
        }
    }
}
