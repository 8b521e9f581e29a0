//! How good what was shown looked: VMAF, SSIM and PSNR of each tick of a screen.
//!
//! Two scores that are never mixed. *Picture*: each frame that was shown, against the same frame of
//! the source; a repeat has none, and what was never shown counts nothing. It tells what the coding
//! cost. *Experience*: what was on screen at each tick, against the frame of the source that a
//! viewer at a constant delay should have seen then; a freeze is compared with what went on
//! meanwhile. It tells what the viewer lost.
//!
//! The source is compared as the encoder was given it: in the size and at the frame rate of the
//! package's tallest and fastest rung. Lower rungs are scaled up to it by ffmpeg's bicubic filter.
//! The strip of stamped pictures is left out. Every frame is measured: no subsampling.

mod reference;
mod similarity;
mod vmaf;

use std::ops::Range;
use std::path::Path;

use reference::Reference;
pub use similarity::PSNR_MAX_DB;
pub use vmaf::MODEL;
use vmaf::Vmaf;

use crate::ffmpeg::Feature;
use crate::raw::Header;
use crate::screen::{Screen, Shown};
use crate::{MediaError, Progress, stamp};

/// The scores of one tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// VMAF by [`MODEL`], 0 to 100. Identical pictures have 97.4 to 100: the less moves, the lower.
    pub vmaf: f64,
    /// SSIM of the luma plane, -1 to 1, over windows of 8×8 pixels at every fourth pixel, as
    /// ffmpeg's filter `ssim` has it (Wang et al., "Image quality assessment: from error visibility
    /// to structural similarity", 2004, with flat windows).
    pub ssim: f64,
    /// PSNR of the luma plane in dB, at most [`PSNR_MAX_DB`], which identical pictures have.
    pub psnr_db: f64,
}

/// The scores of a screen, and what they are of.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Version of libvmaf, as it names itself.
    pub vmaf_version: String,
    /// Width of the pictures that were compared, in pixels.
    pub width: u32,
    /// Height of these pictures before the stamp's strip was left out, in pixels.
    pub height: u32,
    /// Lines at the top that were left out; 0 if the package is not stamped.
    pub left_out: u32,
    /// One for each tick. `None` before the first frame of the screen or of the source; of the
    /// picture also for repeats.
    pub ticks: Vec<Option<Score>>,
}

/// Both scores of a screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// Each shown frame against its own source frame.
    pub picture: Scores,
    /// The screen against the source at a constant delay.
    pub experience: Scores,
}

/// What is compared with what at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    tick: usize,
    shown: Option<Shown>,
    reference: u64,
}

/// The delay, in ticks, that most frames of a screen were shown at: the median of tick less source
/// frame. Negative if the screen begins in the middle of the source. `None` if nothing was shown.
pub fn usual_delay(ticks: &[Option<Shown>]) -> Option<i64> {
    let mut delays: Vec<i64> = fresh(ticks)
        .filter_map(|(tick, shown)| (tick as i64).checked_sub_unsigned(shown.frame))
        .collect();
    delays.sort_unstable();
    delays.get(delays.len() / 2).copied()
}

/// Measures both. `delay` is that of the experience, in ticks: at tick `t`, frame `t - delay` of the
/// source should be on screen ([`usual_delay`] unless there is reason for another one). `cache` is
/// where the source was fetched to. If no frame came at another delay, both are the same comparison
/// and it is made once.
///
/// # Errors
/// [`MediaError`]: nothing was shown, ffmpeg lacks libvmaf or fails, the source is not at hand or
/// not what the package was made of, the package is damaged. The text is the reason to give instead
/// of a score.
pub fn measure(
    screen: &Screen,
    delay: i64,
    cache: &Path,
    progress: Progress,
) -> Result<Quality, MediaError> {
    let (pictures, experiences) = (pictures(screen.ticks), experiences(screen.ticks, delay));
    if pictures == experiences {
        let picture = compare(screen, &pictures, cache, 0.0..1.0, progress)?;
        return Ok(Quality { experience: picture.clone(), picture });
    }
    let part = pictures.len() as f64 / (pictures.len() + experiences.len()) as f64;
    let picture = compare(screen, &pictures, cache, 0.0..part, progress)?;
    let experience = compare(screen, &experiences, cache, part..1.0, progress)?;
    Ok(Quality { picture, experience })
}

/// The ticks at which another frame came on screen.
fn fresh(ticks: &[Option<Shown>]) -> impl Iterator<Item = (usize, Shown)> {
    let before = std::iter::once(&None).chain(ticks);
    let with_before = ticks.iter().zip(before).enumerate();
    with_before.filter_map(|(tick, (now, before))| {
        let now = (*now)?;
        before.is_none_or(|before| before.frame != now.frame).then_some((tick, now))
    })
}

fn pictures(ticks: &[Option<Shown>]) -> Vec<Pair> {
    let pair =
        |(tick, shown): (usize, Shown)| Pair { tick, shown: Some(shown), reference: shown.frame };
    fresh(ticks).map(pair).collect()
}

/// From when the source at that delay has begun; until the first frame, the screen is black.
fn experiences(ticks: &[Option<Shown>], delay: i64) -> Vec<Pair> {
    let pair = |(tick, shown): (usize, &Option<Shown>)| {
        let reference = (tick as i64).checked_sub(delay)?.try_into().ok()?;
        Some(Pair { tick, shown: *shown, reference })
    };
    ticks.iter().enumerate().filter_map(pair).collect()
}

fn compare(
    screen: &Screen,
    pairs: &[Pair],
    cache: &Path,
    part: Range<f64>,
    progress: Progress,
) -> Result<Scores, MediaError> {
    screen.check()?;
    if pairs.is_empty() {
        return Err(MediaError::NothingShown);
    }
    if !screen.ffmpeg.has(Feature::Libvmaf) {
        return Err(MediaError::NoVmaf { version: screen.ffmpeg.version().to_owned() });
    }
    let spec = &screen.package().spec;
    let mut playback = screen.playback()?;
    let mut reference = Reference::open(screen.ffmpeg, screen.package(), cache, progress)?;
    let header @ Header { width, height, .. } = playback.header().clone();
    reference.check(&header)?;
    let left_out = if spec.stamp { stamp::strip(height) } else { 0 };
    let mut vmaf = Vmaf::start(screen.ffmpeg, &header, left_out)?;
    let luma = width as usize * left_out as usize..width as usize * height as usize;
    let mut similar = Vec::with_capacity(pairs.len());
    for (done, pair) in pairs.iter().enumerate() {
        let shown = playback.picture(pair.shown)?;
        let wanted = reference.picture(pair.reference)?;
        vmaf.pair(shown, wanted)?;
        let (shown, wanted) = (&shown[luma.clone()], &wanted[luma.clone()]);
        similar.push((similarity::ssim(shown, wanted, width), similarity::psnr_db(shown, wanted)));
        let done = (done + 1) as f64 / pairs.len() as f64;
        progress(part.start + done * (part.end - part.start), "measuring quality");
    }
    let (vmaf_version, vmafs) = vmaf.finish(pairs.len())?;
    let mut ticks = vec![None; screen.ticks.len()];
    for ((pair, vmaf), (ssim, psnr_db)) in pairs.iter().zip(vmafs).zip(similar) {
        ticks[pair.tick] = Some(Score { vmaf, ssim, psnr_db });
    }
    Ok(Scores { vmaf_version, width, height, left_out, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(frame: u64) -> Option<Shown> {
        Some(Shown { frame, rung: 0 })
    }

    /// Starts two ticks late, freezes for three, and goes on where it would have been.
    fn frozen() -> Vec<Option<Shown>> {
        let mut ticks = vec![None; 2];
        ticks.extend([0, 1, 2, 2, 2, 2, 6, 7].map(shown));
        ticks
    }

    #[test]
    fn repeats_are_no_pictures() {
        let pairs = pictures(&frozen());
        let ticks: Vec<_> = pairs.iter().map(|pair| (pair.tick, pair.reference)).collect();
        assert_eq!(ticks, [(2, 0), (3, 1), (4, 2), (8, 6), (9, 7)]);
    }

    #[test]
    fn a_freeze_is_experienced_against_what_went_on() {
        let ticks = frozen();
        assert_eq!(usual_delay(&ticks), Some(2));
        let pairs = experiences(&ticks, 2);
        let frames = |pair: &Pair| (pair.shown.unwrap().frame, pair.reference);
        let frozen: Vec<_> = pairs.iter().map(frames).filter(|(a, b)| a != b).collect();
        assert_eq!(frozen, [(2, 3), (2, 4), (2, 5)]);
        assert_eq!(pairs.len(), 8);
        assert_eq!(experiences(&ticks, 0)[..2].iter().filter(|p| p.shown.is_none()).count(), 2);
        assert_eq!(experiences(&ticks, i64::MAX), []);
        assert_eq!(experiences(&ticks, i64::MIN), []);
    }

    #[test]
    fn a_screen_that_joins_late_has_a_negative_delay() {
        let ticks: Vec<_> = (500..520).map(shown).collect();
        assert_eq!(usual_delay(&ticks), Some(-500));
        assert_eq!(pictures(&ticks), experiences(&ticks, -500));
        assert_eq!(usual_delay(&[None, None]), None);
    }
}
