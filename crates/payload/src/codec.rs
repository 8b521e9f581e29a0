//! Payload formats: a frame's bytes into packets' payloads, and back.
//!
//! Both directions are pure. A packetiser is given a whole frame and yields payloads of bounded size. A depacketiser is
//! given the payloads of one frame that are at hand, in order, and says whether they are all of it; the caller, which
//! knows sequence numbers, passes which ones are missing.

use crate::{h264, mpeg2};

/// Largest frame, in bytes, that is taken or put together.
pub const FRAME_MAX: usize = 8 << 20;

/// A video codec, with its payload format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// H.264: RFC 6184, packetisation mode 1.
    H264,
    /// MPEG-1 and MPEG-2 video elementary streams: RFC 2250 §3.
    Mpeg2,
}

/// Why a frame's bytes cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// There is nothing that the format can carry.
    #[error("no {0} in the frame")]
    Empty(&'static str),
    /// The frame is larger than [`FRAME_MAX`].
    #[error("a frame of {0} bytes, more than {FRAME_MAX}")]
    TooLarge(usize),
    /// The bytes are not what the codec makes.
    #[error("byte {at} of the frame: {problem}")]
    Malformed {
        /// Where, from the frame's start.
        at: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

/// What became of a frame's payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// The elementary stream's bytes that could be recovered.
    pub bytes: Vec<u8>,
    /// Whether a decoder needs nothing that precedes the frame.
    pub key: bool,
    /// False if some payload was malformed, or bytes are missing.
    pub whole: bool,
    /// Whether a decoder can make a frame of it, if need be by concealing what is missing.
    pub usable: bool,
}

impl Codec {
    /// The frame as payloads of up to `most` bytes each, in order; `most` is at least 64. The first
    /// may have up to `first` bytes, no more than `most`.
    ///
    /// # Errors
    /// [`PayloadError`]: the frame is not one of this codec.
    pub fn packetise(
        self,
        frame: &[u8],
        first: usize,
        most: usize,
    ) -> Result<Vec<Vec<u8>>, PayloadError> {
        if frame.len() > FRAME_MAX {
            return Err(PayloadError::TooLarge(frame.len()));
        }
        match self {
            Self::H264 => h264::packetise(frame, first, most),
            Self::Mpeg2 => mpeg2::packetise(frame, first, most),
        }
    }

    /// Puts together the payloads of one frame, each with whether it follows the one before without
    /// a gap; the first, whether the frame begins with it.
    pub fn assemble<'p>(self, payloads: impl Iterator<Item = (bool, &'p [u8])>) -> Assembled {
        match self {
            Self::H264 => h264::assemble(payloads),
            Self::Mpeg2 => mpeg2::assemble(payloads),
        }
    }

    /// Whether a payload is the first of a frame, as far as it shows.
    pub fn begins_frame(self, payload: &[u8]) -> bool {
        match self {
            Self::H264 => h264::begins_frame(payload),
            Self::Mpeg2 => mpeg2::begins_frame(payload),
        }
    }

    /// Whether a payload may be the last of a frame: whether a slice ends with it.
    pub fn ends_slice(self, payload: &[u8]) -> bool {
        match self {
            Self::H264 => h264::ends_slice(payload),
            Self::Mpeg2 => mpeg2::ends_slice(payload),
        }
    }
}

/// Places of start codes (`00 00 01`) in a byte stream, each with the byte after it; one at the very
/// end, without such a byte, is none.
pub(crate) fn start_codes(bytes: &[u8]) -> impl Iterator<Item = (usize, u8)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + 3 < bytes.len() {
            let here = at;
            // The third byte says how far the next one can be.
            match bytes[at + 2] {
                0 => at += 1,
                1 if bytes[at] == 0 && bytes[at + 1] == 0 => {
                    at += 3;
                    return Some((here, bytes[here + 3]));
                }
                _ => at += 3,
            }
        }
        None
    })
}
