//! Where the frames of a stream begin and end (RFC 9114 §7.1). Pure.
//!
//! `h3` keeps all of a frame other than DATA until it has its end, whatever its type and length. It waits for ever for the end of
//! one that begins with a number and ends within it. And it takes a piece of the stream before each frame that it decodes. So a
//! frame that is too long or too short is refused here. And no piece is of two frames, nor of the head of a frame and of its
//! content: then `h3` never keeps more than one frame.

use bytes::Bytes;

/// The longest content of a frame other than DATA, in bytes.
pub const CONTENT_MAX: u64 = 64 << 10;

/// RFC 9114 §7.2.1.
const DATA: u64 = 0x00;
/// CANCEL_PUSH, PUSH_PROMISE, GOAWAY and MAX_PUSH_ID: their content begins with a number (RFC 9114 §7.2).
const NUMBERED: [u64; 4] = [0x03, 0x05, 0x07, 0x0d];
/// The type of the one unidirectional stream that has frames and is read (RFC 9114 §6.2.1).
const CONTROL: u64 = 0x00;

/// Why a stream is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame other than DATA has a content of so many bytes.
    #[error("a frame of {0} bytes, which is too long")]
    TooLong(u64),
    /// A frame ends within the number that it begins with.
    #[error("a frame ends within its number")]
    Short,
    /// The stream has ended before the frame.
    #[error("the stream ends within a frame")]
    Cut,
}

/// What comes next on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Its own type.
    Stream,
    /// The type of a frame.
    Frame,
    /// The length of a frame of that type.
    Length(u64),
    /// The number that a content of so many bytes begins with.
    Number(u64),
    /// The content of a frame, of which so many bytes are missing: one at least.
    Content { is_data: bool, missing: u64 },
    /// What consists of no frames.
    Other,
}

/// The frames of a stream, as it comes.
#[derive(Debug, Clone)]
pub struct Frames {
    next: Next,
    number: Number,
    held: Bytes,
}

impl Frames {
    /// Those of a stream that carries a request or a response.
    pub fn of_request() -> Self {
        Self { next: Next::Frame, number: Number::default(), held: Bytes::new() }
    }

    /// Those of a unidirectional stream, whose type comes first. Only control streams have frames that are read.
    pub fn of_unidirectional() -> Self {
        Self { next: Next::Stream, ..Self::of_request() }
    }

    /// More of the stream has come, after all that came before has been taken.
    pub fn push(&mut self, bytes: Bytes) {
        self.held = bytes;
    }

    /// The next piece of what has come: of the head of a frame, or of its content. `None` if all has been taken.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] and [`FrameError::Short`].
    pub fn take(&mut self) -> Result<Option<Bytes>, FrameError> {
        if self.held.is_empty() {
            return Ok(None);
        }
        let bytes = match &mut self.next {
            Next::Other => self.held.len(),
            Next::Content { missing, .. } => {
                let bytes = usize::try_from(*missing).unwrap_or(usize::MAX).min(self.held.len());
                *missing -= bytes as u64;
                if *missing == 0 {
                    self.next = Next::Frame;
                }
                bytes
            }
            Next::Stream | Next::Frame | Next::Length(_) | Next::Number(_) => self.head()?,
        };
        Ok(Some(self.held.split_to(bytes)))
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// [`FrameError::Cut`], if that was within the content of a DATA frame. `h3` finds the end of a stream within any other
    /// frame, but takes this one for the end of the frame.
    pub fn end(&self) -> Result<(), FrameError> {
        match self.next {
            Next::Content { is_data: true, .. } => Err(FrameError::Cut),
            _ => Ok(()),
        }
    }

    /// Reads up to the end of the type of a stream, or of the head of a frame; returns how many bytes are of it.
    fn head(&mut self) -> Result<usize, FrameError> {
        for (at, byte) in self.held.iter().enumerate() {
            let Some(number) = self.number.push(*byte) else { continue };
            self.next = match self.next {
                Next::Stream if number == CONTROL => Next::Frame,
                Next::Stream => Next::Other,
                Next::Length(kind) => after_head(kind, number)?,
                Next::Number(length) => {
                    let missing = length.checked_sub(self.number.bytes).ok_or(FrameError::Short)?;
                    content(false, missing)
                }
                _ => {
                    self.next = Next::Length(number);
                    continue;
                }
            };
            return Ok(at + 1);
        }
        Ok(self.held.len())
    }
}

/// What comes after the type and the length of a frame.
fn after_head(kind: u64, length: u64) -> Result<Next, FrameError> {
    match kind {
        DATA => Ok(content(true, length)),
        _ if length > CONTENT_MAX => Err(FrameError::TooLong(length)),
        _ if NUMBERED.contains(&kind) => Ok(Next::Number(length)),
        _ => Ok(content(false, length)),
    }
}

fn content(is_data: bool, missing: u64) -> Next {
    match missing {
        0 => Next::Frame,
        _ => Next::Content { is_data, missing },
    }
}

/// A number of one to eight bytes (RFC 9000 §16), as it comes.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    value: u64,
    /// How many bytes it has, and how many of them are missing.
    bytes: u64,
    missing: u64,
}

impl Number {
    /// Its next byte has come, or the first of another one. Returns it at its end.
    fn push(&mut self, byte: u8) -> Option<u64> {
        if self.missing == 0 {
            // The first two bits are the logarithm of its length.
            (self.value, self.bytes) = (u64::from(byte & 0x3f), 1u64 << (byte >> 6));
            self.missing = self.bytes;
        } else {
            self.value = (self.value << 8) | u64::from(byte);
        }
        self.missing -= 1;
        (self.missing == 0).then_some(self.value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The pieces of a stream of which so many bytes come at a time, and how it ends.
    fn pieces(
        mut frames: Frames,
        stream: &[u8],
        read: usize,
    ) -> (Vec<Vec<u8>>, Result<(), FrameError>) {
        let mut pieces = Vec::new();
        for read in stream.chunks(read) {
            frames.push(Bytes::copy_from_slice(read));
            loop {
                match frames.take() {
                    Ok(Some(piece)) => pieces.push(piece.to_vec()),
                    Ok(None) => break,
                    Err(error) => return (pieces, Err(error)),
                }
            }
        }
        let end = frames.end();
        (pieces, end)
    }

    fn end(stream: &[u8]) -> Result<(), FrameError> {
        pieces(Frames::of_request(), stream, 100).1
    }

    fn number(value: u64) -> Vec<u8> {
        let (bytes, form): (usize, u64) = match value {
            0..=0x3f => (1, 0),
            0x40..=0x3fff => (2, 1),
            0x4000..=0x3fff_ffff => (4, 2),
            _ => (8, 3),
        };
        (value | (form << (8 * bytes - 2))).to_be_bytes()[8 - bytes..].to_vec()
    }

    #[test]
    fn a_piece_is_of_one_head_or_of_one_content() {
        // HEADERS, an empty DATA, DATA, and a reserved type in two bytes.
        let stream = b"\x01\x03abc\x00\x00\x00\x04here\x40\x21\x01x";
        let (whole, end) = pieces(Frames::of_request(), stream, 100);
        let by_hand =
            [&b"\x01\x03"[..], b"abc", b"\x00\x00", b"\x00\x04", b"here", b"\x40\x21\x01", b"x"];
        assert_eq!((whole, end), (by_hand.map(<[u8]>::to_vec).to_vec(), Ok(())));
        let (bytes, end) = pieces(Frames::of_request(), stream, 1);
        assert_eq!((bytes.concat(), bytes.len(), end), (stream.to_vec(), stream.len(), Ok(())));
    }

    #[test]
    fn only_control_streams_of_those_in_one_direction_have_frames() {
        let control = pieces(Frames::of_unidirectional(), b"\x00\x04\x00\x07\x01\x08", 100).0;
        assert_eq!(control, [&b"\x00"[..], b"\x04\x00", b"\x07\x01", b"\x08"]);
        // That of an encoder (RFC 9204 §4.2), and a type in two bytes.
        for stream in [&b"\x02\x01\xff\xff\xff\xff\xff"[..], b"\x40\x54\x01\xff\xff\xff\xff"] {
            let kind = if stream[0] == 0x02 { 1 } else { 2 };
            let (pieces, end) = pieces(Frames::of_unidirectional(), stream, 100);
            assert_eq!(end, Ok(()));
            assert_eq!(pieces, [&stream[..kind], &stream[kind..]]);
        }
    }

    #[test]
    fn only_data_may_be_long() {
        assert_eq!(end(b"\x01\x80\x01\x00\x00"), Ok(()));
        assert_eq!(end(b"\x01\x80\x01\x00\x01"), Err(FrameError::TooLong(65_537)));
        let length = b"\xc0\x00\x01\x00\x00\x00\x00\x00";
        for kind in [b"\x01", b"\x04", b"\x21"] {
            assert_eq!(end(&[&kind[..], length].concat()), Err(FrameError::TooLong(1 << 40)));
        }
        assert_eq!(end(&[&b"\x00"[..], length, b"here"].concat()), Err(FrameError::Cut));
    }

    #[test]
    fn what_begins_with_a_number_has_all_of_it() {
        let whole = pieces(Frames::of_request(), b"\x05\x03\x05ab\x07\x02\x40\x05", 100);
        let by_hand = [&b"\x05\x03"[..], b"\x05", b"ab", b"\x07\x02", b"\x40\x05"];
        assert_eq!(whole, (by_hand.map(<[u8]>::to_vec).to_vec(), Ok(())));
        for kind in [b"\x03", b"\x05", b"\x07", b"\x0d"] {
            for short in [&b"\x00\x00\x04here"[..], b"\x01\x40\x00"] {
                assert_eq!(end(&[&kind[..], short].concat()), Err(FrameError::Short));
            }
        }
    }

    #[test]
    fn a_stream_that_ends_within_data_is_cut() {
        assert_eq!(end(b"\x00\x04her"), Err(FrameError::Cut));
        assert_eq!(end(b"\x00\x04"), Err(FrameError::Cut));
        for whole in [&b""[..], b"\x00\x04here", b"\x00\x00"] {
            assert_eq!(end(whole), Ok(()));
        }
        // `h3` reports these.
        for other in [&b"\x00"[..], b"\x01\x03ab"] {
            assert_eq!(end(other), Ok(()));
        }
    }

    /// A type of frames whose content is not looked at.
    fn kind() -> impl Strategy<Value = u64> {
        prop_oneof![Just(DATA), Just(0x01), 0x21u64..0x8000]
    }

    proptest! {
        #[test]
        fn frames_are_found_however_the_stream_is_cut(
            frames in vec((kind(), vec(any::<u8>(), 0..300)), 0..20),
            read in 1usize..1000,
        ) {
            let mut by_hand = Vec::new();
            for (kind, content) in frames {
                by_hand.push([number(kind), number(content.len() as u64)].concat());
                by_hand.extend(Some(content).filter(|content| !content.is_empty()));
            }
            let stream = by_hand.concat();
            let (whole, end) = pieces(Frames::of_request(), &stream, stream.len().max(1));
            prop_assert_eq!((whole, end), (by_hand, Ok(())));
            let (cut, end) = pieces(Frames::of_request(), &stream, read);
            prop_assert_eq!((cut.concat(), end), (stream, Ok(())));
        }

        #[test]
        fn anything_is_passed_on_up_to_what_is_refused(
            stream in vec(any::<u8>(), 0..300),
            read in 1usize..40,
            in_one_direction: bool,
        ) {
            let frames = match in_one_direction {
                true => Frames::of_unidirectional(),
                false => Frames::of_request(),
            };
            let (passed, end) = pieces(frames.clone(), &stream, read);
            prop_assert_eq!(end, pieces(frames, &stream, 300).1);
            prop_assert!(stream.starts_with(&passed.concat()));
            prop_assert!(passed.iter().all(|piece| !piece.is_empty()));
            let is_whole = passed.concat().len() == stream.len();
            let is_refused = matches!(end, Err(FrameError::TooLong(_) | FrameError::Short));
            prop_assert!(is_whole || is_refused);
        }
    }
}
