//! The ffmpeg of these tests.

use suiro_media::Ffmpeg;
use suiro_media::ffmpeg::Feature;

/// ffmpeg, or `None` after saying that there is none.
pub fn ffmpeg() -> Option<Ffmpeg> {
    Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()
}

/// An ffmpeg with libvmaf, or `None` after saying that there is none.
pub fn ffmpeg_with_vmaf() -> Option<Ffmpeg> {
    let found = ffmpeg()?;
    found.has(Feature::Libvmaf).then_some(found).or_else(|| {
        suiro_units::skipped("no libvmaf");
        None
    })
}
