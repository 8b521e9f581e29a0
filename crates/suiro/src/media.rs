//! Preparing media, with its progress on show.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use suiro_media::live::{Footage, FootageSpec};
use suiro_media::spec::Codec;
use suiro_media::{Ffmpeg, MediaSpec, cache, quantised};

use crate::progress::Work;

/// The folder of the package made to `spec`, from the cache or made now. `name` is what the bar calls it; the
/// version of ffmpeg goes into `versions`.
pub fn prepare(
    name: &str,
    spec: &MediaSpec,
    versions: &mut BTreeMap<String, String>,
) -> Result<PathBuf> {
    let doing = || format!("preparing media `{name}`");
    let ffmpeg = Ffmpeg::locate().with_context(doing)?;
    versions.insert("ffmpeg".to_owned(), ffmpeg.version().to_owned());
    let mut work = Work::new(&format!("media {name}"));
    let mut progress = |fraction: f64, what: &str| work.update(fraction, what);
    let cache = cache::folder();
    let folder = match spec.codec {
        Codec::H264 => suiro_media::prepare_with(&ffmpeg, spec, &cache, &mut progress)
            .map(|package| package.folder),
        Codec::Mpeg2 => {
            quantised::prepare_with(&ffmpeg, spec, &cache, &mut progress).map(|set| set.folder)
        }
    };
    work.finish();
    folder.with_context(doing)
}

/// Puts what a camera sees into the cache, where the endpoint finds it.
pub fn prepare_footage(spec: &FootageSpec, versions: &mut BTreeMap<String, String>) -> Result<()> {
    let doing = || format!("preparing a camera's footage, {}", spec.source);
    let ffmpeg = Ffmpeg::locate().with_context(doing)?;
    versions.insert("ffmpeg".to_owned(), ffmpeg.version().to_owned());
    let mut work = Work::new(&format!("camera {}", spec.source));
    let footage = Footage::prepare(&ffmpeg, spec, &cache::folder(), &mut |fraction, what| {
        work.update(fraction, what);
    });
    work.finish();
    footage.map(drop).with_context(doing)
}
