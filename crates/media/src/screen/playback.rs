//! Decodes the frames that were shown, one after the other.

use super::{Received, Shown, packaged, quantised, stream};
use crate::raw::Header;
use crate::{Ffmpeg, MediaError};

/// Luma and chroma of black.
const BLACK: (u8, u8) = (16, 128);

/// The frames of what was received, all in one size.
pub(crate) struct Playback {
    from: From,
    header: Header,
    black: Vec<u8>,
}

enum From {
    Package(packaged::Playback),
    Set(quantised::Playback),
    Stream(stream::Playback),
}

impl Playback {
    pub fn new(ffmpeg: &Ffmpeg, received: Received, header: Header) -> Self {
        let from = match received {
            Received::Package(package) => {
                From::Package(packaged::Playback::new(ffmpeg, package, header.clone()))
            }
            Received::Set(set) => From::Set(quantised::Playback::new(ffmpeg, set)),
            Received::Stream(stream) => From::Stream(stream::Playback::new(ffmpeg, stream)),
        };
        let luma = header.width as usize * header.height as usize;
        let mut black = vec![BLACK.1; header.bytes()];
        black[..luma].fill(BLACK.0);
        Self { from, header, black }
    }

    /// Size and rate.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The image of a frame; black for none.
    pub fn picture(&mut self, shown: Option<Shown>) -> Result<&[u8], MediaError> {
        let Some(shown) = shown else { return Ok(&self.black) };
        match &mut self.from {
            From::Package(package) => package.picture(shown),
            From::Set(set) => set.picture(shown),
            From::Stream(stream) => stream.picture(shown.frame),
        }
    }
}
