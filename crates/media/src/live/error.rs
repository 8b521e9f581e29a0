//! What can go wrong between a camera and a screen.

use std::ops::RangeInclusive;

use suiro_units::BitRate;

use crate::MediaError;
use crate::stamp::Unfit;

/// Why a picture could not be captured, encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The footage cannot be made or read.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The picture cannot be stamped.
    #[error(transparent)]
    Stamp(#[from] Unfit),
    /// No encoder makes pictures of this size.
    #[error(
        "pictures of {width}×{height} cannot be encoded\nhint: even sides of 16 or more, at most \
         3840×2160 or 2160×3840"
    )]
    Size {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// A picture has another size than the encoder was made for.
    #[error("a picture of {found:?} pixels where {wanted:?} are encoded")]
    OtherSize {
        /// Its width and height.
        found: (u32, u32),
        /// Those of the encoder.
        wanted: (u32, u32),
    },
    /// A camera's pictures can only be made smaller.
    #[error(
        "pictures of {}×{} cannot be made of {}×{}\nhint: no side may be longer than the camera's",
        found.0, found.1, most.0, most.1
    )]
    Larger {
        /// Width and height that were asked for.
        found: (u32, u32),
        /// Those of the camera.
        most: (u32, u32),
    },
    /// The bit rate is out of range.
    #[error("a bit rate of {found}\nhint: {} to {}", range.start(), range.end())]
    Rate {
        /// What was asked for.
        found: BitRate,
        /// What can be.
        range: RangeInclusive<BitRate>,
    },
    /// The frame rate is out of range.
    #[error("{found} frames per second\nhint: 1 to {most}")]
    FrameRate {
        /// What was asked for.
        found: u32,
        /// What can be at most.
        most: u32,
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
