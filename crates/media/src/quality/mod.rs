//! How good what was shown looked: VMAF, SSIM and PSNR of each tick of a screen.
//!
//! Two scores that are never mixed. `picture_…`: each frame that was shown, compared with the same
//! frame of the source; a repeat has no score, and a frame that was never shown does not count. It
//! measures what the coding cost. `experience_…`: what was on screen at each tick, compared with
//! the frame of the source that a viewer at a constant delay should have seen then; a freeze is
//! compared with the frames that should have been shown meanwhile. It measures what the viewer
//! lost.
//!
//! VMAF is that of a television of [`MODEL_LINES`] lines, which its model means: what was shown is scaled to them from
//! the size of its rung, and the source of a package from its own. What a camera saw, and prepared MPEG-2 video, is
//! scaled from the size that it was coded in.
//!
//! *Native* VMAF, SSIM and PSNR compare with the source as the encoder was given it: in the size and at the frame rate
//! of the package's tallest and fastest rung, or of the camera. Lower rungs are scaled up to it. The filter is ffmpeg's
//! bicubic one. The strip with the stamp is left out. Every frame is measured: no subsampling.

mod reference;
mod similarity;
mod vmaf;

use std::path::Path;

use reference::Reference;
pub use similarity::PSNR_MAX_DB;
pub use vmaf::{MODEL, MODEL_LINES};
use vmaf::{Vmaf, even};

use crate::ffmpeg::Feature;
use crate::raw::Header;
use crate::screen::{Playback, Received, Screen, Shown};
use crate::{Ffmpeg, MediaError, Progress, stamp};

/// The scores of one tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// VMAF by [`MODEL`] at [`MODEL_LINES`] lines, 0 to 100. Identical frames have 97.4 to 100: the less moves, the
    /// lower.
    pub vmaf: f64,
    /// VMAF of the frames in the size that the source was encoded in.
    pub vmaf_native: f64,
    /// SSIM of the luma plane, -1 to 1, over windows of 8×8 pixels at every fourth pixel, as
    /// ffmpeg's filter `ssim` has it (Wang et al., "Image quality assessment: from error visibility
    /// to structural similarity", 2004, with flat windows).
    pub ssim: f64,
    /// PSNR of the luma plane in dB, at most [`PSNR_MAX_DB`], which identical frames have.
    pub psnr_db: f64,
}

/// The scores of a screen, and what they are of.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Version of libvmaf, as it names itself.
    pub vmaf_version: String,
    /// Size of the frames that VMAF compared, before the stamp's strip was left out, in pixels.
    pub television: (u32, u32),
    /// Width of the frames that were compared natively, in pixels.
    pub width: u32,
    /// Height of these frames before the stamp's strip was left out, in pixels.
    pub height: u32,
    /// Lines at the top that were left out; 0 if the frames are not stamped.
    pub left_out: u32,
    /// One for each tick. `None` before the first frame of the screen or of the source; of the
    /// frame also for repeats.
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
/// [`MediaError`]: nothing was shown, ffmpeg does not have libvmaf or fails, the source is not at hand or
/// not what the package was made of, the package is damaged. The text is the reason to give instead
/// of a score.
pub fn measure(
    screen: &Screen,
    delay: i64,
    cache: &Path,
    progress: Progress,
) -> Result<Quality, MediaError> {
    let (pictures, experiences) = (pictures(screen.ticks), experiences(screen.ticks, delay));
    let mut lists = vec![pictures];
    if lists[0] != experiences {
        lists.push(experiences);
    }
    let mut scores = compare(screen, &lists, cache, progress)?.into_iter();
    let picture = scores.next().ok_or(MediaError::NothingShown)?;
    let experience = scores.next().unwrap_or_else(|| picture.clone());
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

/// Compares the pairs of each list, all in one pass over the screen.
fn compare(
    screen: &Screen,
    lists: &[Vec<Pair>],
    cache: &Path,
    progress: Progress,
) -> Result<Vec<Scores>, MediaError> {
    screen.check()?;
    if !screen.ffmpeg.has(Feature::Libvmaf) {
        return Err(MediaError::NoVmaf { version: screen.ffmpeg.version().to_owned() });
    }
    let ffmpeg = screen.ffmpeg;
    let playback = screen.playback()?;
    let size = playback.header().clone();
    let all = in_order(lists);
    let mut native = Sight::open(screen, playback, &all, cache, progress)?;
    // Only a package has rungs and a source that are decoded at another size.
    let large = television(&size);
    let apart = matches!(screen.received, Received::Package(_)) && large != size;
    let mut large = match apart {
        true => Some(Sight::open(screen, screen.playback_in(&large), &all, cache, progress)?),
        false => None,
    };
    let left_out = if screen.received.stamped() { stamp::strip(size.height) } else { 0 };
    let comparisons = lists.iter().map(|_| Comparison::start(ffmpeg, &size, left_out, apart));
    let mut comparisons = comparisons.collect::<Result<Vec<_>, _>>()?;
    for (done, (list, pair)) in all.iter().enumerate() {
        let comparison = &mut comparisons[*list];
        let (shown, source) = native.pair(*list, pair)?;
        comparison.add(pair.tick, shown, source)?;
        if let Some(large) = &mut large {
            let (shown, source) = large.pair(*list, pair)?;
            comparison.add_large(shown, source)?;
        }
        progress((done + 1) as f64 / all.len() as f64, "measuring quality");
    }
    let ticks = screen.ticks.len();
    comparisons.into_iter().map(|comparison| comparison.finish(ticks)).collect()
}

/// The size of those frames on a television of [`MODEL_LINES`] lines.
fn television(size: &Header) -> Header {
    if size.height == MODEL_LINES {
        return size.clone();
    }
    let width = even(u64::from(size.width) * u64::from(MODEL_LINES), size.height.into());
    Header { width, height: MODEL_LINES, ..size.clone() }
}

/// What was shown and its source, in one size.
struct Sight<'a> {
    playback: Playback,
    /// One for all lists, or one each where one would have to step back.
    references: Vec<Reference<'a>>,
}

impl<'a> Sight<'a> {
    fn open(
        screen: &Screen<'a>,
        playback: Playback,
        pairs: &[(usize, Pair)],
        cache: &Path,
        progress: Progress,
    ) -> Result<Self, MediaError> {
        let size = playback.header();
        let wanted = pairs.iter().map(|(_, pair)| pair.reference);
        let decoders = if Reference::serves(size, wanted) { 1 } else { 2 };
        let references = (0..decoders).map(|_| Reference::open(screen, size, cache, progress));
        let references = references.collect::<Result<Vec<_>, _>>()?;
        references[0].check(size)?;
        Ok(Self { playback, references })
    }

    fn pair(&mut self, list: usize, pair: &Pair) -> Result<(&[u8], &[u8]), MediaError> {
        let place = list.min(self.references.len() - 1);
        let source = self.references[place].picture(pair.reference)?;
        Ok((self.playback.picture(pair.shown)?, source))
    }
}

/// All pairs by tick, each with the list that it is of.
fn in_order(lists: &[Vec<Pair>]) -> Vec<(usize, Pair)> {
    let of = |(list, pairs): (usize, &Vec<Pair>)| {
        pairs.iter().map(move |pair| (list, *pair)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = lists.iter().enumerate().flat_map(of).collect();
    all.sort_by_key(|(list, pair)| (pair.tick, *list));
    all
}

/// The comparison of one list of pairs.
struct Comparison {
    native: Vmaf,
    /// At the model's size; `None` if that is the native one.
    large: Option<Vmaf>,
    /// Whether that has frames of its own.
    apart: bool,
    size: Header,
    left_out: u32,
    /// Tick, SSIM and PSNR of each pair so far.
    pairs: Vec<(usize, f64, f64)>,
}

impl Comparison {
    /// `apart`: the frames at the model's size come by [`Self::add_large`]. Else they are made of the native ones.
    fn start(
        ffmpeg: &Ffmpeg,
        size: &Header,
        left_out: u32,
        apart: bool,
    ) -> Result<Self, MediaError> {
        let native = Vmaf::start(ffmpeg, size, left_out, size.height)?;
        let large = television(size);
        let large = if apart {
            // As many lines as the strip has there, rounded up: of the source they would be others.
            let strip = left_out.saturating_mul(large.height).div_ceil(size.height.max(1));
            Some(Vmaf::start(ffmpeg, &large, strip.next_multiple_of(2), large.height)?)
        } else if large != *size {
            Some(Vmaf::start(ffmpeg, size, left_out, large.height)?)
        } else {
            None
        };
        Ok(Self { native, large, apart, size: size.clone(), left_out, pairs: Vec::new() })
    }

    /// A pair at the model's size.
    fn add_large(&mut self, shown: &[u8], source: &[u8]) -> Result<(), MediaError> {
        self.large.as_mut().map_or(Ok(()), |large| large.pair(shown, source))
    }

    fn add(&mut self, tick: usize, shown: &[u8], source: &[u8]) -> Result<(), MediaError> {
        self.native.pair(shown, source)?;
        if !self.apart {
            self.add_large(shown, source)?;
        }
        let (width, lines) = (self.size.width as usize, self.size.height as usize);
        let luma = width * self.left_out as usize..width * lines;
        let (shown, source) = (&shown[luma.clone()], &source[luma]);
        let ssim = similarity::ssim(shown, source, self.size.width);
        self.pairs.push((tick, ssim, similarity::psnr_db(shown, source)));
        Ok(())
    }

    fn finish(self, ticks: usize) -> Result<Scores, MediaError> {
        let Header { width, height, .. } = self.size;
        let large = television(&self.size);
        let television = (large.width, large.height);
        let mut ticks = vec![None; ticks];
        let mut vmaf_version = String::new();
        if !self.pairs.is_empty() {
            let (version, natives) = self.native.finish(self.pairs.len())?;
            vmaf_version = version;
            let vmafs = match self.large {
                Some(large) => large.finish(self.pairs.len())?.1,
                None => natives.clone(),
            };
            let scores = vmafs.into_iter().zip(natives);
            for ((tick, ssim, psnr_db), (vmaf, vmaf_native)) in self.pairs.into_iter().zip(scores) {
                ticks[tick] = Some(Score { vmaf, vmaf_native, ssim, psnr_db });
            }
        }
        let left_out = self.left_out;
        Ok(Scores { vmaf_version, television, width, height, left_out, ticks })
    }
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
