//! A specification made into a package, once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use suiro_units::BitRate;

use crate::cache::{self, Recipe};
use crate::cut::{self, Cut};
use crate::package::{INDEX_FILE, INDEX_VERSION, Package};
use crate::raw::{Encoder, SourcePictures};
use crate::source::{Input, Kind};
use crate::spec::{Audio, Codec, MediaSpec};
use crate::{Ffmpeg, MediaError, Progress, encode, stamp};
use suiro_strict::Refusal;

/// The part of the work that is encoding; the rest is cutting.
const ENCODING: f64 = 0.97;

/// Makes the package of a specification in a cache folder, or finds it there.
///
/// A package is known by the content of its source, by every argument that ffmpeg is given and by
/// ffmpeg's version. It is made in a folder of its own and renamed when it is whole; whoever wants
/// the same package meanwhile, waits for it. A package that was damaged is made anew.
///
/// # Errors
/// [`MediaError`]: the specification cannot be met or is of `mpeg2` ([`crate::quantised`]), the source cannot be had, ffmpeg is missing or
/// fails, or the cache cannot be written.
pub fn prepare(spec: &MediaSpec, cache: &Path, progress: Progress) -> Result<Package, MediaError> {
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
) -> Result<Package, MediaError> {
    spec.validate()?;
    if spec.codec == Codec::Mpeg2 {
        let found = "`mpeg2` is prepared in versions, not in segments";
        let refusal = Refusal::key("codec", found);
        return Err(refusal.hint("take it for an rtp-sender, or codec = \"h264\"").into());
    }
    let input = Input::get(spec, cache, progress)?;
    let sound = sound(ffmpeg, spec, &input);
    let work = Work { ffmpeg, spec, input: &input, sound };
    cache::once(cache, &work.name(), progress, Package::load, |new, progress| {
        work.make(new, progress)
    })
}

/// The rate of the sound, if it is wanted and there.
fn sound(ffmpeg: &Ffmpeg, spec: &MediaSpec, input: &Input) -> Option<BitRate> {
    let Audio::On(rate) = spec.audio else { return None };
    let there = match &input.kind {
        Kind::File(file) => ffmpeg.has_sound(file),
        Kind::Made { .. } => true,
    };
    there.then_some(rate)
}

struct Work<'a> {
    ffmpeg: &'a Ffmpeg,
    spec: &'a MediaSpec,
    input: &'a Input,
    sound: Option<BitRate>,
}

impl Work<'_> {
    /// SHA-256, in part, of everything that bears on the content.
    fn name(&self) -> String {
        let mut recipe = Recipe::new();
        recipe.add(&INDEX_VERSION.to_be_bytes());
        recipe.add(self.ffmpeg.version().as_bytes());
        let kind = &*self.input.by_content();
        for argument in encode::arguments(self.spec, kind, self.sound) {
            recipe.add(argument.as_encoded_bytes());
        }
        if self.spec.stamp {
            recipe.add(&stamp::VERSION.to_be_bytes());
            for argument in encode::pictures(self.spec, kind) {
                recipe.add(argument.as_encoded_bytes());
            }
        }
        // Names, containers and cuts are not among ffmpeg's arguments.
        let spec = serde_json::to_vec(&MediaSpec {
            source: crate::spec::Source::Synthetic,
            ..self.spec.clone()
        });
        recipe.add(&spec.expect("a specification has only texts, numbers and arrays"));
        recipe.name()
    }

    fn make(&self, folder: &Path, progress: Progress) -> Result<(), MediaError> {
        let from = folder.join("encoded");
        cache::make_anew(&from)?;
        self.encode(&from, progress)?;
        progress(ENCODING, "cutting segments");
        let count = cut::whole_segments(self.spec, &from)?;
        if count == 0 {
            return Err(MediaError::Source {
                source_name: self.spec.source.to_string(),
                message: format!("shorter than one segment of {}", self.spec.segment),
                hint: "take a longer source, or shorter segments".into(),
            });
        }
        let package = self.cut(&Cut { spec: self.spec, from: &from, to: folder, count })?;
        cache::remove(&from)?;
        let index = folder.join(INDEX_FILE);
        let text = serde_json::to_vec_pretty(&package).expect("an index is plain data");
        fs::write(&index, text).map_err(MediaError::io("writing", &index))
    }

    fn encode(&self, folder: &Path, progress: Progress) -> Result<(), MediaError> {
        let arguments = encode::arguments(self.spec, &self.input.kind, self.sound);
        let count = self.spec.ladder.len();
        let rungs = if count == 1 { "rung" } else { "rungs" };
        let phase = format!("encoding {count} {rungs} of {}", self.input.origin.name);
        let whole = self.spec.segment * self.spec.segments();
        progress(0.0, &phase);
        if self.spec.stamp {
            let frames = encode::frames(whole, encode::source_fps(self.spec)).max(1);
            return self.stamp(&arguments, folder, &mut |done| {
                progress((f64::from(done) / frames as f64).min(1.0) * ENCODING, &phase);
            });
        }
        self.ffmpeg.run(&arguments, folder, &mut |done| {
            progress((done / whole).min(1.0) * ENCODING, &phase);
        })
    }

    /// Decodes in one ffmpeg, stamps, and encodes in another.
    fn stamp(
        &self,
        arguments: &[OsString],
        folder: &Path,
        progress: &mut dyn FnMut(u32),
    ) -> Result<(), MediaError> {
        let mut source = SourcePictures::open(self.ffmpeg, self.spec, &self.input.kind)?;
        let mut encoder = Encoder::start(self.ffmpeg, source.header(), arguments, folder)?;
        while let Some((number, picture)) = source.next()? {
            encoder.picture(&[picture])?;
            progress(number);
        }
        encoder.finish()
    }

    fn cut(&self, cut: &Cut) -> Result<Package, MediaError> {
        let sound = self.sound.map(|rate| cut.sound().map(|sound| (sound, rate))).transpose()?;
        let rungs = encode::rungs(self.spec).into_iter().enumerate();
        let heard = sound.as_ref().map(|(sound, _)| sound);
        let package = Package {
            version: INDEX_VERSION,
            source: self.input.origin.clone(),
            spec: self.spec.clone(),
            ffmpeg: self.ffmpeg.version().to_owned(),
            loop_duration: cut.loop_duration(),
            video: rungs.map(|(n, rung)| cut.rung(n, rung, heard)).collect::<Result<_, _>>()?,
            audio: sound.as_ref().map(|(sound, rate)| cut.audio(sound, *rate)).transpose()?,
            sha256: BTreeMap::new(),
            folder: cut.to.to_owned(),
        };
        Ok(Package { sha256: package.hashes()?, ..package })
    }
}
