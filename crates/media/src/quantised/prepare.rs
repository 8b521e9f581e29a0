//! A specification made into a set, once.

use std::fs;
use std::path::Path;

use suiro_units::BitRate;

use crate::cache::{self, Recipe};
use crate::checksum::sha256;
use crate::quantised::index::{INDEX_VERSION, end};
use crate::quantised::{INDEX_FILE, Picture, RATE, Set, Version, encode, parse};
use crate::raw::{Encoder, SourcePictures};
use crate::source::Input;
use crate::spec::{MediaSpec, Source};
use crate::{Ffmpeg, MediaError, Progress, stamp};

/// The part of the work that is encoding; the rest is reading what came of it.
const ENCODING: f64 = 0.97;

/// Makes the set of a specification in a cache folder, or finds it there, as [`crate::prepare`] does
/// with packages.
///
/// # Errors
/// [`MediaError`]: the specification cannot be met, the source cannot be had or is shorter than a
/// group, ffmpeg is missing or fails, or the cache cannot be written.
pub fn prepare(spec: &MediaSpec, cache: &Path, progress: Progress) -> Result<Set, MediaError> {
    spec.validate()?;
    prepare_with(&Ffmpeg::locate()?, spec, cache, progress)
}

/// [`prepare`] with an ffmpeg of one's choice.
///
/// # Errors
/// Those of [`prepare`].
pub fn prepare_with(
    ffmpeg: &Ffmpeg,
    spec: &MediaSpec,
    cache: &Path,
    progress: Progress,
) -> Result<Set, MediaError> {
    spec.validate()?;
    let input = Input::get(spec, cache, progress)?;
    let work = Work { ffmpeg, spec, input: &input };
    cache::once(cache, &work.name(), progress, Set::load, |new, progress| work.make(new, progress))
}

struct Work<'a> {
    ffmpeg: &'a Ffmpeg,
    spec: &'a MediaSpec,
    input: &'a Input,
}

impl Work<'_> {
    /// SHA-256, in part, of everything that bears on the content.
    fn name(&self) -> String {
        let mut recipe = Recipe::new();
        recipe.add(b"quantised");
        recipe.add(&INDEX_VERSION.to_be_bytes());
        recipe.add(self.ffmpeg.version().as_bytes());
        let kind = &*self.input.by_content();
        let arguments = encode::pictures(self.spec, kind);
        for argument in arguments.iter().chain(&encode::versions(self.spec.scales())) {
            recipe.add(argument.as_encoded_bytes());
        }
        if self.spec.stamp {
            recipe.add(&stamp::VERSION.to_be_bytes());
        }
        let spec = MediaSpec { source: Source::Synthetic, ..self.spec.clone() };
        let spec = serde_json::to_vec(&spec);
        recipe.add(&spec.expect("a specification has only texts, numbers and arrays"));
        recipe.name()
    }

    fn make(&self, folder: &Path, progress: Progress) -> Result<(), MediaError> {
        let frames = self.encode(folder, progress)?;
        let groups = frames / u64::from(super::GROUP);
        if groups == 0 {
            return Err(MediaError::Source {
                source_name: self.spec.source.to_string(),
                message: format!("shorter than one group of {} frames", super::GROUP),
                hint: "take a longer source".into(),
            });
        }
        progress(ENCODING, "finding the frames");
        let scales = self.spec.scales().iter();
        let versions = scales.map(|scale| version(folder, *scale, groups));
        let mut versions = versions.collect::<Result<Vec<_>, _>>()?;
        versions.sort_by_key(|version| version.rate);
        let set = Set {
            version: INDEX_VERSION,
            source: self.input.origin.clone(),
            spec: self.spec.clone(),
            ffmpeg: self.ffmpeg.version().to_owned(),
            versions,
            folder: folder.to_owned(),
        };
        let index = folder.join(INDEX_FILE);
        let text = serde_json::to_vec(&set).expect("an index is plain data");
        fs::write(&index, text).map_err(MediaError::io("writing", &index))
    }

    /// Decodes in one ffmpeg, stamps if asked to, and encodes in another; returns the frames.
    fn encode(&self, folder: &Path, progress: Progress) -> Result<u64, MediaError> {
        let scales = self.spec.scales();
        let (count, name) = (scales.len(), &self.input.origin.name);
        let phase = format!("encoding {count} versions of {name}");
        progress(0.0, &phase);
        let most = encode::frames(self.spec).max(1);
        let mut source = SourcePictures::open(self.ffmpeg, self.spec, &self.input.kind)?;
        let versions = encode::versions(scales);
        let mut encoder = Encoder::start(self.ffmpeg, source.header(), &versions, folder)?;
        let mut frames = 0;
        while let Some((number, picture)) = source.next()? {
            encoder.picture(&[picture])?;
            frames = u64::from(number) + 1;
            progress((frames as f64 / most as f64).min(1.0) * ENCODING, &phase);
        }
        encoder.finish()?;
        Ok(frames)
    }
}

/// Reads one version and cuts it to whole groups.
fn version(folder: &Path, scale: u8, groups: u64) -> Result<Version, MediaError> {
    let name = encode::file(scale);
    let file = folder.join(&name);
    // Our own, made a moment ago.
    let stream = fs::read(&file).map_err(MediaError::io("reading", &file))?;
    let mut pictures: Vec<Picture> =
        parse::pictures(&stream).map_err(|error| MediaError::damaged(&file, error))?;
    pictures.truncate((groups * u64::from(super::GROUP)) as usize);
    parse::in_groups(&pictures).map_err(|error| MediaError::damaged(&file, error))?;
    let bytes = end(&pictures).unwrap_or(0);
    let cut = fs::File::options().write(true).open(&file).and_then(|file| file.set_len(bytes));
    cut.map_err(MediaError::io("cutting", &file))?;
    let sha256 = sha256(&file).map_err(MediaError::io("reading", &file))?;
    let rate = mean_rate(bytes, pictures.len() as u64);
    Ok(Version { scale, rate, file: name, sha256, pictures })
}

/// Bits per second of so many bytes in so many frames, rounded down.
fn mean_rate(bytes: u64, frames: u64) -> BitRate {
    let (pictures, seconds) = (u128::from(RATE.0), u128::from(RATE.1));
    let bps = u128::from(bytes) * 8 * pictures / (seconds * u128::from(frames.max(1)));
    BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_a_group_in_its_1_001_seconds() {
        // 125 125 B are 1 001 000 bit.
        assert_eq!(mean_rate(125_125, 30), BitRate::from_mbps(1));
        assert_eq!(mean_rate(0, 0), BitRate::from_bps(0));
    }
}
