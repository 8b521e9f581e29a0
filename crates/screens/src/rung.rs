//! Which rung of a package has a bit rate.

use anyhow::{Context, Result, bail};
use suiro_media::package::Track;
use suiro_media::{Container, Package};
use suiro_units::BitRate;

/// The rung by the bit rate in a manifest, over HLS including sound: that of its largest segment, or, of an origin that declares
/// nominal rates, that of the ladder.
///
/// # Errors
/// If there is no rate, or no such rung.
pub fn rung(package: &Package, rate: Option<u64>) -> Result<usize> {
    let Some(rate) = rate else { bail!("table `frames` does not have the rung") };
    let peak = |track: &Track, container| Some(track.rendition(container)?.bitrate_max);
    let nominal = |track: &Track, container| track.rendition(container).map(|_| track.bitrate);
    let found = find(package, rate, peak).or_else(|| find(package, rate, nominal));
    found.with_context(|| format!("the media has no rung of {rate} bit/s"))
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
