//! Which rung of a package has a bit rate.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use suiro_media::mp4::ChunkedRates;
use suiro_media::package::Track;
use suiro_media::{Container, Package};
use suiro_units::{BitRate, Duration};

/// The rung by the bit rate in a manifest, over HLS including sound: that of its largest segment, or, of an origin that declares
/// nominal rates, that of the ladder. If segments are sent in chunks, of at most the length `chunk`, their headers count as well.
///
/// # Errors
/// If there is no rate, or no such rung.
pub fn rung(package: &Package, chunk: Option<Duration>, rate: Option<u64>) -> Result<usize> {
    let Some(rate) = rate else { bail!("table `frames` does not have the rung") };
    let nominal = |track: &Track, container| track.rendition(container).map(|_| track.bitrate);
    let found = match chunk {
        None => {
            let peak = |track: &Track, container| Some(track.rendition(container)?.bitrate_max);
            find(package, rate, peak)
        }
        Some(chunk) => {
            let peaks: BTreeMap<&str, BitRate> = (package.tracks())
                .filter_map(|track| Some((&*track.id, peak_in_chunks(package, track, chunk)?)))
                .collect();
            find(package, rate, |track, _| peaks.get(&*track.id).copied())
        }
    };
    let found = found.or_else(|| find(package, rate, nominal));
    found.with_context(|| format!("the media has no rung of {rate} bit/s"))
}

/// The bit rate of the largest segment in chunks; `None` if there are no such segments.
fn peak_in_chunks(package: &Package, track: &Track, chunk: Duration) -> Option<BitRate> {
    let mut rates = ChunkedRates::default();
    for number in 0..track.fmp4.as_ref()?.segments.len() as u64 {
        rates.add(&package.read_chunked(track, number, chunk).ok()??, track.timescale);
    }
    Some(rates.peak())
}

/// The first rung of which `of` is this rate in a container, with or without sound.
fn find(
    package: &Package,
    rate: u64,
    of: impl Fn(&Track, Container) -> Option<BitRate>,
) -> Option<usize> {
    let sound = package.audio.as_ref().and_then(|audio| of(audio, Container::Fmp4));
    let sound_bps = sound.map_or(0, BitRate::as_bps);
    let fits = |own: BitRate| rate == own.as_bps() || rate == own.as_bps() + sound_bps;
    package.video.iter().position(|track| {
        [Container::Fmp4, Container::Ts].into_iter().any(|c| of(track, c).is_some_and(fits))
    })
}
