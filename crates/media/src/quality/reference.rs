//! The source's frames, looped as the package is.

use std::path::Path;

use crate::package::Package;
use crate::raw::{Header, SourcePictures};
use crate::source::Input;
use crate::{Ffmpeg, MediaError, Progress, encode};

/// Decodes the source from its start, over and over; a step back starts again.
pub(super) struct Reference<'a> {
    ffmpeg: &'a Ffmpeg,
    package: &'a Package,
    input: Input,
    /// Frames of a loop.
    frames: u64,
    pictures: SourcePictures,
    /// The frame of the loop that comes next; the one before it is at hand.
    next: u64,
}

impl<'a> Reference<'a> {
    /// Finds the source of a package.
    pub fn open(
        ffmpeg: &'a Ffmpeg,
        package: &'a Package,
        cache: &Path,
        progress: Progress,
    ) -> Result<Self, MediaError> {
        let spec = &package.spec;
        let input = Input::get(spec, cache, progress)?;
        if input.origin.sha256 != package.source.sha256 {
            return Err(MediaError::Source {
                source_name: spec.source.to_string(),
                message: "not the file that the package was made of".into(),
                hint: "prepare it again, or put back the file".into(),
            });
        }
        let pictures = SourcePictures::open(ffmpeg, spec, &input.kind)?;
        let frames = encode::frames(package.loop_duration, encode::source_fps(spec)).max(1);
        Ok(Self { ffmpeg, package, input, frames, pictures, next: 0 })
    }

    /// The pictures have the size of those that they are compared with.
    pub fn check(&self, wanted: &Header) -> Result<(), MediaError> {
        let Header { width, height, .. } = *self.pictures.header();
        if (width, height) == (wanted.width, wanted.height) {
            return Ok(());
        }
        let message =
            format!("{width}×{height}, but the package has {}×{}", wanted.width, wanted.height);
        Err(self.failed(message))
    }

    /// The picture of a frame of the endless stream.
    pub fn picture(&mut self, frame: u64) -> Result<&[u8], MediaError> {
        let wanted = frame % self.frames;
        if wanted + 1 < self.next {
            let (spec, kind) = (&self.package.spec, &self.input.kind);
            self.pictures = SourcePictures::open(self.ffmpeg, spec, kind)?;
            self.next = 0;
        }
        while self.next <= wanted {
            if self.pictures.next()?.is_none() {
                return Err(self.failed(format!("no frame {}", self.next)));
            }
            self.next += 1;
        }
        Ok(self.pictures.picture())
    }

    fn failed(&self, message: String) -> MediaError {
        MediaError::Source {
            source_name: self.package.spec.source.to_string(),
            message,
            hint: "remove the package's folder; the next run prepares it again".into(),
        }
    }
}
