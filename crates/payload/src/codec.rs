//! Payload formats: a frame's bytes into packets' payloads, and back.
//!
//! Both directions are pure. A packetiser is given a whole frame and yields payloads of bounded size. A depacketiser is
//! given the payloads of one frame that are at hand, in order, and says whether they are all of it; the caller, which
//! knows sequence numbers, passes which ones are missing.

use crate::{Assembled, FRAME_MAX, PayloadError, h264, mpeg2};

/// A video codec, with its payload format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// H.264: RFC 6184, packetisation mode 1.
    H264,
    /// MPEG-1 and MPEG-2 video elementary streams: RFC 2250 §3.
    Mpeg2,
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
