//! The source's frames, looped as what was sent is.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;

use crate::live::{Footage, FootageSpec, LiveError, Picture};
use crate::package::Origin;
use crate::quantised::Set;
use crate::raw::{Header, SourcePictures};
use crate::screen::{Received, Screen, Sent};
use crate::source::Input;
use crate::{Ffmpeg, MediaError, MediaSpec, Progress, encode};

/// Most bytes of frames that are kept to go back to.
const KEPT_BYTES: usize = 96 << 20;

/// The source of what was received.
pub(super) enum Reference<'a> {
    /// That of a package or a set.
    Decoded(Box<Decoded<'a>>),
    /// What a camera saw.
    Footage(Footage, Picture),
}

impl<'a> Reference<'a> {
    /// Finds the source. Its frames have the size of those that were received; of a package with another `size`, they
    /// are scaled to that at once.
    pub fn open(
        screen: &Screen<'a>,
        size: &Header,
        cache: &Path,
        progress: Progress,
    ) -> Result<Self, MediaError> {
        match screen.received {
            Received::Package(package) => {
                let fps = encode::source_fps(&package.spec);
                let frames = encode::frames(package.loop_duration, fps).max(1);
                let spec = match package.picture_size() {
                    Some(own) if own != (size.width, size.height) => {
                        Cow::Owned(in_size(&package.spec, size))
                    }
                    _ => Cow::Borrowed(&package.spec),
                };
                let made = Made { spec, origin: &package.source, frames };
                let decoded = Decoded::open(screen.ffmpeg, made, cache, progress)?;
                Ok(Self::Decoded(Box::new(decoded)))
            }
            Received::Set(set) => Self::of_set(screen.ffmpeg, set, cache, progress),
            Received::Stream(stream) => match &stream.source {
                Sent::Set(set) => Self::of_set(screen.ffmpeg, set, cache, progress),
                Sent::Camera(camera) => {
                    let footage = Footage::prepare(screen.ffmpeg, camera, cache, progress);
                    let picture = |f| Ok((f, Picture::new(camera.width, camera.height)?));
                    let opened = footage.and_then(picture);
                    let (footage, picture) = opened.map_err(|error| failed(camera, &error))?;
                    Ok(Self::Footage(footage, picture))
                }
            },
        }
    }

    fn of_set(
        ffmpeg: &'a Ffmpeg,
        set: &'a Set,
        cache: &Path,
        progress: Progress,
    ) -> Result<Self, MediaError> {
        let spec = Cow::Borrowed(&set.spec);
        let made = Made { spec, origin: &set.source, frames: set.frames().max(1) };
        let decoded = Decoded::open(ffmpeg, made, cache, progress)?;
        Ok(Self::Decoded(Box::new(decoded)))
    }

    /// The frames have the size of those that they are compared with.
    pub fn check(&self, wanted: &Header) -> Result<(), MediaError> {
        match self {
            Self::Decoded(decoded) => decoded.check(wanted),
            // It was made in that size.
            Self::Footage(..) => Ok(()),
        }
    }

    /// Whether one decoder serves these requests, in this order, without a step back beyond what is
    /// kept of frames of that size.
    pub fn serves(size: &Header, requests: impl Iterator<Item = u64>) -> bool {
        let (kept, mut furthest) = (kept(size) as u64, 0);
        requests.into_iter().all(|request| {
            furthest = furthest.max(request);
            furthest - request < kept
        })
    }

    /// The image of a frame of the endless stream.
    pub fn picture(&mut self, wanted: u64) -> Result<&[u8], MediaError> {
        match self {
            Self::Decoded(decoded) => decoded.picture(wanted),
            Self::Footage(footage, picture) => {
                footage.read(wanted, picture).map_err(|error| match error {
                    LiveError::Media(error) => error,
                    other => unreachable!("the frame was made in the footage's size: {other}"),
                })?;
                Ok(picture.data())
            }
        }
    }
}

fn failed(camera: &FootageSpec, error: &LiveError) -> MediaError {
    MediaError::Source {
        source_name: camera.source.to_string(),
        message: error.to_string(),
        hint: "the source must be the camera's footage".into(),
    }
}

/// The specification whose source frames have this size. Stamps are not looked at: their strip is left out.
fn in_size(spec: &MediaSpec, size: &Header) -> MediaSpec {
    let mut spec = MediaSpec { stamp: false, ..spec.clone() };
    for rung in &mut spec.ladder {
        (rung.width, rung.height) = (Some(size.width), size.height);
    }
    spec
}

/// What was made of a source.
pub(super) struct Made<'a> {
    spec: Cow<'a, MediaSpec>,
    origin: &'a Origin,
    /// Frames of a loop.
    frames: u64,
}

/// Decodes the source from its start, over and over. The last frames are kept; a step back beyond
/// them starts the loop again.
pub(super) struct Decoded<'a> {
    ffmpeg: &'a Ffmpeg,
    made: Made<'a>,
    input: Input,
    pictures: SourcePictures,
    /// The frame of the endless stream that is decoded next.
    next: u64,
    /// The frames before that.
    kept: VecDeque<Vec<u8>>,
}

impl<'a> Decoded<'a> {
    /// Finds the source.
    fn open(
        ffmpeg: &'a Ffmpeg,
        made: Made<'a>,
        cache: &Path,
        progress: Progress,
    ) -> Result<Self, MediaError> {
        let spec = &*made.spec;
        let input = Input::get(spec, cache, progress)?;
        if input.origin.sha256 != made.origin.sha256 {
            return Err(MediaError::Source {
                source_name: spec.source.to_string(),
                message: "not the file that the package was made of".into(),
                hint: "prepare it again, or put back the file".into(),
            });
        }
        let pictures = SourcePictures::open(ffmpeg, spec, &input.kind)?;
        let kept = VecDeque::new();
        Ok(Self { ffmpeg, made, input, pictures, next: 0, kept })
    }

    /// The frames have the size of those that they are compared with.
    fn check(&self, wanted: &Header) -> Result<(), MediaError> {
        let Header { width, height, .. } = *self.pictures.header();
        if (width, height) == (wanted.width, wanted.height) {
            return Ok(());
        }
        let message =
            format!("{width}×{height}, but the package has {}×{}", wanted.width, wanted.height);
        Err(self.failed(message))
    }

    /// The image of a frame of the endless stream.
    fn picture(&mut self, wanted: u64) -> Result<&[u8], MediaError> {
        let begins = wanted / self.made.frames * self.made.frames;
        if wanted + (self.kept.len() as u64) < self.next || begins > self.next {
            self.kept.clear();
            self.next = begins;
            self.open_again()?;
        }
        while self.next <= wanted {
            if self.next > 0 && self.next.is_multiple_of(self.made.frames) {
                self.open_again()?;
            }
            let mut picture = Vec::new();
            if self.kept.len() >= kept(self.pictures.header()) {
                picture = self.kept.pop_front().unwrap_or_default();
            }
            let Some((_, read)) = self.pictures.next()? else {
                return Err(self.failed(format!("no frame {}", self.next % self.made.frames)));
            };
            picture.clear();
            picture.extend_from_slice(read);
            self.kept.push_back(picture);
            self.next += 1;
        }
        let back = (self.next - wanted) as usize;
        Ok(&self.kept[self.kept.len() - back])
    }

    fn open_again(&mut self) -> Result<(), MediaError> {
        let (spec, kind) = (&*self.made.spec, &self.input.kind);
        self.pictures = SourcePictures::open(self.ffmpeg, spec, kind)?;
        Ok(())
    }

    fn failed(&self, message: String) -> MediaError {
        MediaError::Source {
            source_name: self.made.spec.source.to_string(),
            message,
            hint: "remove the package's folder; the next run prepares it again".into(),
        }
    }
}

/// Frames that are kept.
fn kept(size: &Header) -> usize {
    (KEPT_BYTES / size.bytes().max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_decoder_serves_who_stays_close() {
        let size = Header { width: 1280, height: 720, rate: (24, 1) };
        let kept = kept(&size) as u64;
        assert_eq!(kept, 72);
        let serves = |requests: &[u64]| Reference::serves(&size, requests.iter().copied());
        assert!(serves(&[]) && serves(&[0, 5, 2, 6, 3]));
        assert!(serves(&[100, 100 - kept + 1]) && !serves(&[100, 100 - kept]));
        assert!(!serves(&[0, 1, 900, 2]));
    }
}
