//! Which rung of a package has a bit rate.

use anyhow::{Context, Result, bail};
use suiro_media::package::Track;
use suiro_media::{Container, Package};
use suiro_units::BitRate;

/// The rung by the bit rate in a manifest: that of its largest segment, over HLS including sound.
///
/// # Errors
/// If there is no rate, or no such rung.
pub fn rung(package: &Package, rate: Option<u64>) -> Result<usize> {
    let Some(rate) = rate else { bail!("table `frames` does not have the rung") };
    let largest = |track: &Track, container| Some(track.rendition(container)?.bitrate_max);
    let sound = package.audio.as_ref().and_then(|audio| largest(audio, Container::Fmp4));
    let sound_bps = sound.map_or(0, BitRate::as_bps);
    let fits = |track: &Track| {
        [Container::Fmp4, Container::Ts].into_iter().filter_map(|c| largest(track, c)).any(|own| {
            let bps = own.as_bps();
            rate == bps || rate == bps + sound_bps
        })
    };
    let found = package.video.iter().position(fits);
    found.with_context(|| format!("the media has no rung of {rate} bit/s"))
}
