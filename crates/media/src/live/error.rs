//! What can go wrong between a camera and a screen.

use suiro_strict::Refusal;

use crate::MediaError;
use crate::stamp::Unfit;

/// Why a frame could not be captured, encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The footage cannot be made or read.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The frame cannot be stamped.
    #[error(transparent)]
    Stamp(#[from] Unfit),
    /// A size, rate or length that cannot be.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A frame has another size than the encoder was made for.
    #[error("a frame of {found:?} pixels where {wanted:?} are encoded")]
    OtherSize {
        /// Its width and height.
        found: (u32, u32),
        /// Those of the encoder.
        wanted: (u32, u32),
    },
    /// The codec refused, which for a decoder mostly means damaged or missing data.
    #[error("openh264, {doing}: {message}")]
    Codec {
        /// What it was doing.
        doing: &'static str,
        /// What it said.
        message: String,
    },
}

impl LiveError {
    /// Wraps what the codec said.
    pub(crate) fn codec(doing: &'static str) -> impl Fn(openh264::Error) -> Self {
        move |error| Self::Codec { doing, message: error.to_string() }
    }
}
