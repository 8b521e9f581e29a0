//! Where frames begin in an MPEG-2 video elementary stream (ISO/IEC 13818-2 §6.2).

use crate::ParseError;
use crate::quantised::{GROUP, Kind, Picture};

/// Start codes (table 6-1), without their prefix 00 00 01.
const PICTURE: u8 = 0x00;
const SLICE_LAST: u8 = 0xaf;
const SEQUENCE: u8 = 0xb3;
const SEQUENCE_END: u8 = 0xb7;
const GROUP_START: u8 = 0xb8;

/// Most frames of one stream: an hour and a bit at 30 per second.
const PICTURES_MAX: usize = 1 << 17;

/// The frames of a stream that begins with a sequence header. Every byte belongs to a frame: what
/// stands before a frame's header (sequence, group) to it, a sequence end code to the one before.
///
/// # Errors
/// [`ParseError`] if the stream does not begin with a sequence header, a header is cut, a frame is
/// of no known type or out of place, a group is not closed, or there are too many frames.
pub fn pictures(stream: &[u8]) -> Result<Vec<Picture>, ParseError> {
    let mut read = Reader { pictures: Vec::new(), begins: Some(0), group: None, first: 0 };
    let codes = StartCodes { stream, at: 0 };
    let mut is_first = true;
    for (at, code) in codes {
        if is_first && (at, code) != (0, SEQUENCE) {
            return Err(ParseError::new(at, "no sequence header at the start"));
        }
        is_first = false;
        read.start_code(stream, at, code)?;
    }
    if is_first {
        return Err(ParseError::new(0, "not a start code in it"));
    }
    read.end(stream.len())
}

/// What was read so far.
struct Reader {
    /// The last one's size is not known yet.
    pictures: Vec<Picture>,
    /// Where the headers before the next frame begin.
    begins: Option<usize>,
    group: Option<u32>,
    /// Frames before this group.
    first: usize,
}

impl Reader {
    fn start_code(&mut self, stream: &[u8], at: usize, code: u8) -> Result<(), ParseError> {
        match code {
            SEQUENCE => {
                self.begins.get_or_insert(at);
            }
            GROUP_START => {
                self.begins.get_or_insert(at);
                // group_of_pictures_header (§6.2.2.6): time_code has 25 bits, then closed_gop.
                let flags = stream.get(at + 7).ok_or_else(|| cut(at, "group"))?;
                if flags & 0x40 == 0 {
                    return Err(ParseError::new(at, "a group that refers to the one before"));
                }
                self.group = Some(self.group.map_or(0, |group| group + 1));
                self.first = self.pictures.len();
            }
            PICTURE => self.picture(stream, at)?,
            0x01..=SLICE_LAST if self.pictures.is_empty() || self.begins.is_some() => {
                return Err(ParseError::new(at, "a slice of no frame"));
            }
            SEQUENCE_END | 0x01..=SLICE_LAST | 0xb2 | 0xb5 => {}
            other => {
                return Err(ParseError::new(at, format!("start code {other:#04x} in a video")));
            }
        }
        Ok(())
    }

    /// picture_header (§6.2.3): temporal_reference has 10 bits, picture_coding_type 3.
    fn picture(&mut self, stream: &[u8], at: usize) -> Result<(), ParseError> {
        let header = stream.get(at + 4..at + 6).ok_or_else(|| cut(at, "picture"))?;
        let reference = usize::from(header[0]) << 2 | usize::from(header[1] >> 6);
        let kind = match header[1] >> 3 & 7 {
            1 => Kind::I,
            2 => Kind::P,
            3 => Kind::B,
            other => return Err(ParseError::new(at, format!("a frame of type {other}"))),
        };
        let group = self.group.ok_or_else(|| ParseError::new(at, "a frame of no group"))?;
        let begins = self.begins.take().unwrap_or(at);
        if self.pictures.len() >= PICTURES_MAX {
            return Err(ParseError::new(at, format!("more than {PICTURES_MAX} frames")));
        }
        self.close(begins)?;
        let number = (self.first + reference) as u32;
        self.pictures.push(Picture { offset: begins as u64, bytes: 0, kind, number, group });
        Ok(())
    }

    /// The last frame ends there.
    fn close(&mut self, end: usize) -> Result<(), ParseError> {
        let Some(last) = self.pictures.last_mut() else { return Ok(()) };
        let size = end as u64 - last.offset;
        last.bytes = u32::try_from(size).map_err(|_| ParseError::new(end, "a frame over 4 GB"))?;
        Ok(())
    }

    fn end(mut self, length: usize) -> Result<Vec<Picture>, ParseError> {
        if let Some(begins) = self.begins {
            return Err(ParseError::new(begins, "headers without a frame"));
        }
        self.close(length)?;
        Ok(self.pictures)
    }
}

fn cut(at: usize, what: &str) -> ParseError {
    ParseError::new(at, format!("the header of a {what} cut short"))
}

/// Checks that frames are whole groups in the order of display, each begun by its only I-frame.
pub(super) fn in_groups(pictures: &[Picture]) -> Result<(), String> {
    let whole = pictures.len() as u64;
    if whole == 0 || !whole.is_multiple_of(u64::from(GROUP)) {
        return Err(format!("{whole} frames are not a whole number of groups of {GROUP}"));
    }
    for (number, picture) in (0u32..).zip(pictures) {
        let kind = if number.is_multiple_of(GROUP) { Kind::I } else { Kind::P };
        let want = (number, number / GROUP, kind);
        if (picture.number, picture.group, picture.kind) != want {
            return Err(format!(
                "frame {number} is {:?}-frame {} of group {}, not {:?}-frame {number} of group {}",
                picture.kind, picture.number, picture.group, kind, want.1
            ));
        }
    }
    Ok(())
}

/// Places and values of start codes.
struct StartCodes<'s> {
    stream: &'s [u8],
    at: usize,
}

impl Iterator for StartCodes<'_> {
    type Item = (usize, u8);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.stream.get(self.at..)?;
        let found = rest.windows(4).position(|four| four[..3] == [0, 0, 1])?;
        let at = self.at + found;
        self.at = at + 4;
        Some((at, self.stream[at + 3]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two groups of an I- and a P-frame.
    fn stream() -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..2 {
            bytes.extend([0, 0, 1, SEQUENCE, 0x2d, 1, 0xe0, 0x24]);
            bytes.extend([0, 0, 1, GROUP_START, 0, 8, 0, 0x40]);
            bytes.extend([0, 0, 1, PICTURE, 0, 1 << 3, 0, 1, 1, 7]);
            bytes.extend([0, 0, 1, 1, 9, 9, 9]);
            bytes.extend([0, 0, 1, PICTURE, 0, 1 << 6 | 2 << 3, 0, 1]);
            bytes.extend([0, 0, 1, 1, 5]);
        }
        bytes
    }

    #[test]
    fn headers_belong_to_the_picture_after_them() {
        let found = pictures(&stream()).unwrap();
        let of = |p: &Picture| (p.offset, p.bytes, p.kind, p.number, p.group);
        let want = [
            (0, 33, Kind::I, 0, 0),
            (33, 13, Kind::P, 1, 0),
            (46, 33, Kind::I, 2, 1),
            (79, 13, Kind::P, 3, 1),
        ];
        assert_eq!(found.iter().map(of).collect::<Vec<_>>(), want);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = stream();
            change(&mut bytes);
            pictures(&bytes).unwrap_err().to_string()
        };
        assert_eq!(told(&|b| b.clear()), "byte 0: not a start code in it");
        assert_eq!(told(&|b| b[3] = 1), "byte 0: no sequence header at the start");
        assert_eq!(told(&|b| b[15] = 0), "byte 8: a group that refers to the one before");
        assert_eq!(told(&|b| b[21] = 5 << 3), "byte 16: a frame of type 5");
        assert_eq!(told(&|b| b[11] = 0xb2), "byte 16: a frame of no group");
        assert_eq!(told(&|b| b[19] = 1), "byte 16: a slice of no frame");
        assert_eq!(told(&|b| b[3 + 26] = 0xe0), "byte 26: start code 0xe0 in a video");
        assert_eq!(told(&|b| b.truncate(62)), "byte 46: headers without a frame");
        assert_eq!(told(&|b| b.truncate(67)), "byte 62: the header of a picture cut short");
    }

    #[test]
    fn groups_must_be_whole_and_in_order() {
        assert_eq!(
            in_groups(&pictures(&stream()).unwrap()).unwrap_err(),
            "4 frames are not a whole number of groups of 30"
        );
        let mut whole: Vec<Picture> = (0..60)
            .map(|number| Picture {
                offset: 0,
                bytes: 1,
                kind: if number % 30 == 0 { Kind::I } else { Kind::P },
                number,
                group: number / 30,
            })
            .collect();
        assert_eq!(in_groups(&whole), Ok(()));
        whole[31].kind = Kind::B;
        assert!(in_groups(&whole).unwrap_err().starts_with("frame 31 is B-frame 31"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xb3), Just(0xb8), any::<u8>()], 0..200)) {
            if let Ok(found) = pictures(&bytes) {
                let sum: u64 = found.iter().map(|picture| u64::from(picture.bytes)).sum();
                prop_assert_eq!(sum, bytes.len() as u64);
            }
        }

        #[test]
        fn a_changed_byte_never_panics(at in 0usize..92, value: u8) {
            let mut bytes = stream();
            bytes[at] = value;
            if let Ok(found) = pictures(&bytes) {
                let sum: u64 = found.iter().map(|picture| u64::from(picture.bytes)).sum();
                prop_assert_eq!(sum, bytes.len() as u64);
            }
        }
    }
}
