//! Scores of screens whose quality is known, by the real ffmpeg and libvmaf. Where there is none,
//! these report that and pass.

use std::path::Path;

use suiro_media::quality::{Quality, Score, Scores, measure, usual_delay};
use suiro_media::screen::{Received, Screen, Shown};
use suiro_media::spec::{Audio, Preset, Rung, Source};
use suiro_media::{Ffmpeg, MediaError, MediaSpec, Package, prepare_with};
use suiro_units::{BitRate, Duration};

use crate::common::ffmpeg_with_vmaf;

const FPS: u32 = 10;

/// Frames of a loop.
const LOOP: u64 = 20;

/// A poor rung and one that can hardly be distinguished from the source.
fn spec(stamp: bool) -> MediaSpec {
    let rung = |kbps, height| {
        let (name, width, fps) = (None, None, None);
        Rung { name, bitrate: BitRate::from_kbps(kbps), width, height, fps }
    };
    let mut spec = MediaSpec::new(Source::Synthetic);
    spec.ladder = vec![rung(150, 180), rung(40_000, 360)];
    spec.segment = Duration::from_secs(1);
    spec.length = Duration::from_secs(2);
    spec.fps = Some(FPS);
    spec.preset = Preset::Ultrafast;
    spec.audio = Audio::Off;
    spec.stamp = stamp;
    spec
}

fn prepare(ffmpeg: &Ffmpeg, spec: &MediaSpec, cache: &Path) -> Package {
    prepare_with(ffmpeg, spec, cache, &mut |_, _| {}).unwrap()
}

fn scores(
    ffmpeg: &Ffmpeg,
    package: &Package,
    ticks: &[Option<Shown>],
    cache: &Path,
) -> Result<Quality, MediaError> {
    let screen = Screen { ffmpeg, received: Received::Package(package), ticks };
    measure(&screen, usual_delay(ticks).unwrap_or(0), cache, &mut |_, _| {})
}

fn mean(scores: &Scores, of: fn(&Score) -> f64) -> f64 {
    let all: Vec<f64> = scores.ticks.iter().flatten().map(of).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

fn shown(rung: usize, frame: u64) -> Option<Shown> {
    Some(Shown { frame, rung })
}

/// Nothing lost, nothing late: nothing to see, over a loop and a half.
#[test]
fn a_loop_back_at_a_rate_that_loses_nothing() {
    let Some(ffmpeg) = ffmpeg_with_vmaf() else { return };
    let folder = tempfile::tempdir().unwrap();
    for stamp in [false, true] {
        let package = prepare(&ffmpeg, &spec(stamp), folder.path());
        let ticks: Vec<_> = (0..LOOP * 3 / 2).map(|frame| shown(1, frame)).collect();
        let Quality { picture, experience } =
            scores(&ffmpeg, &package, &ticks, folder.path()).unwrap();
        assert_eq!(picture, experience);
        assert_eq!(picture.ticks.iter().flatten().count(), ticks.len());
        let (vmaf, ssim) = (mean(&picture, |score| score.vmaf), mean(&picture, |s| s.ssim));
        // The source has 720 lines, the rung 360: on a television of 1080 that shows.
        let native = mean(&picture, |score| score.vmaf_native);
        assert!(native >= 99.0 && ssim > 0.99, "VMAF {native}, SSIM {ssim}");
        assert!(vmaf < native - 5.0, "VMAF at 1080 lines {vmaf}, native {native}");
        assert_eq!(picture.television, (1920, 1080));
        assert!(mean(&picture, |score| score.psnr_db) > 40.0);
        assert_eq!((picture.width, picture.height), (640, 360));
        assert_eq!(picture.left_out, if stamp { 24 } else { 0 });
        assert!(!picture.vmaf_version.is_empty());
    }
}

/// A freeze of one second: the frames stay good, the experience does not while it lasts.
#[test]
fn a_freeze_is_seen_by_the_experience_alone() {
    let Some(ffmpeg) = ffmpeg_with_vmaf() else { return };
    let folder = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &spec(true), folder.path());
    let mut ticks = vec![None; 4];
    ticks.extend((0..15).map(|frame| shown(1, frame)));
    ticks.extend([shown(1, 14); 10]);
    ticks.extend((25..40).map(|frame| shown(1, frame)));
    let Quality { picture, experience } = scores(&ffmpeg, &package, &ticks, folder.path()).unwrap();
    assert_eq!(picture.ticks.iter().flatten().count(), 30);
    assert!(mean(&picture, |score| score.vmaf_native) > 98.0);
    assert!(experience.ticks[..4].iter().all(Option::is_none));
    let is_bad = |score: &Option<Score>| score.is_some_and(|score| score.vmaf_native < 80.0);
    let bad: Vec<usize> = (0..44).filter(|tick| is_bad(&experience.ticks[*tick])).collect();
    assert_eq!(bad, (19..29).collect::<Vec<_>>());
}

#[test]
fn a_poor_rung_scores_less_by_every_measure() {
    let Some(ffmpeg) = ffmpeg_with_vmaf() else { return };
    let folder = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &spec(true), folder.path());
    let ticks: Vec<_> = (0..20).map(|frame| shown(usize::from(frame < 10), frame)).collect();
    let picture = scores(&ffmpeg, &package, &ticks, folder.path()).unwrap().picture;
    let (good, poor) = (picture.ticks[5].unwrap(), picture.ticks[15].unwrap());
    assert!(good.vmaf_native > poor.vmaf_native + 30.0, "{good:?} {poor:?}");
    assert!(good.vmaf > poor.vmaf + 10.0, "{good:?} {poor:?}");
    assert!(good.ssim > poor.ssim + 0.1 && good.psnr_db > poor.psnr_db + 10.0);
}

#[test]
fn what_cannot_be_measured_says_why() {
    let Some(ffmpeg) = ffmpeg_with_vmaf() else { return };
    let folder = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &spec(false), folder.path());
    let reason = |package: &Package, ticks: &[Option<Shown>]| {
        scores(&ffmpeg, package, ticks, folder.path()).unwrap_err().to_string()
    };
    assert!(reason(&package, &[]).starts_with("nothing was shown"));
    assert!(reason(&package, &[None; 9]).starts_with("nothing was shown"));
    let ticks: Vec<_> = (0..20).map(|frame| shown(1, frame)).collect();
    let mut other = package.clone();
    other.source.sha256 = Some("0".repeat(64));
    assert!(reason(&other, &ticks).contains("not the file that the package was made of"));
    let mut larger = package.clone();
    larger.spec.ladder[1].height = 400;
    assert!(reason(&larger, &ticks).contains("but the package has 640×360"));
    let cut = package.folder.join(&package.video[1].fmp4.as_ref().unwrap().segments[1].file);
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    assert!(reason(&package, &ticks).contains("bytes; expected"));
    // As long as before, but its second half is noise.
    let half = bytes.len() / 2;
    std::fs::write(&cut, [&bytes[..half], &vec![0xA5; bytes.len() - half]].concat()).unwrap();
    let picture = scores(&ffmpeg, &package, &ticks, folder.path()).unwrap().picture;
    assert!(picture.ticks[18].unwrap().vmaf < 50.0, "what the decoder made of it is scored");
    std::fs::remove_file(&cut).unwrap();
    assert!(reason(&package, &ticks).contains("No such file"));
}

/// Rungs of 1080 lines are compared in the model's size anyway.
#[test]
fn at_the_models_size_both_scores_are_one() {
    let Some(ffmpeg) = ffmpeg_with_vmaf() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(false);
    spec.ladder[1].height = 1080;
    let package = prepare(&ffmpeg, &spec, folder.path());
    let ticks: Vec<_> = (0..8).map(|frame| shown(1, frame)).collect();
    let picture = scores(&ffmpeg, &package, &ticks, folder.path()).unwrap().picture;
    assert_eq!((picture.television, picture.height), ((1920, 1080), 1080));
    assert!(picture.ticks.iter().flatten().all(|score| score.vmaf == score.vmaf_native));
}
