//! The source's frames, as the encoder is given them.

use crate::raw::{Decoder, Header};
use crate::source::Kind;
use crate::spec::{Codec, MediaSpec};
use crate::stamp::{self, Stamp};
use crate::{Ffmpeg, MediaError, encode, quantised};

/// The frames of one pass over the source, stamped if the specification asks for it.
pub(crate) struct SourcePictures {
    decoder: Decoder,
    stamped: bool,
    number: u32,
    picture: Vec<u8>,
}

impl SourcePictures {
    /// Begins with the first.
    pub fn open(ffmpeg: &Ffmpeg, spec: &MediaSpec, kind: &Kind) -> Result<Self, MediaError> {
        let arguments = match spec.codec {
            Codec::H264 => encode::pictures(spec, kind),
            Codec::Mpeg2 => quantised::pictures(spec, kind),
        };
        let decoder = Decoder::start(ffmpeg, &arguments, None)?;
        let decoder = decoder.ok_or_else(|| MediaError::Source {
            source_name: spec.source.to_string(),
            message: "not a frame in it".into(),
            hint: "take a file that ffmpeg shows".into(),
        })?;
        Ok(Self { decoder, stamped: spec.stamp, number: 0, picture: Vec::new() })
    }

    /// Size and rate.
    pub fn header(&self) -> &Header {
        &self.decoder.header
    }

    /// The next frame and its number, from 0; `None` after the last.
    pub fn next(&mut self) -> Result<Option<(u32, &[u8])>, MediaError> {
        if !self.decoder.next(&mut self.picture)? {
            return Ok(None);
        }
        let number = self.number;
        self.number += 1;
        if self.stamped {
            let Header { width, height, rate: (pictures, seconds) } = self.decoder.header;
            let captured_ms =
                u64::from(number) * 1000 * u64::from(seconds) / u64::from(pictures.max(1));
            let stamp = Stamp { frame: number, captured_ms };
            stamp::write_420(&mut self.picture, width, height, stamp)?;
        }
        Ok(Some((number, &self.picture)))
    }
}
