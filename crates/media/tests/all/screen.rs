//! Stamped packages, and the screens made of them, by the real ffmpeg. Where there is none, these
//! report that and pass.

use std::path::Path;
use std::process::Command;

use suiro_media::screen::{Received, Screen, Shown};
use suiro_media::spec::{Audio, Format, Preset, Rung, Source};
use suiro_media::stamp::{self, Layout};
use suiro_media::{Container, Ffmpeg, MediaError, MediaSpec, Package, prepare_with};
use suiro_units::{BitRate, Duration};

use crate::common::ffmpeg;

const FPS: u32 = 10;

/// Frames of a loop.
const LOOP: u64 = 20;

/// Two rungs of four segments of half a second.
fn spec() -> MediaSpec {
    let rung = |kbps, height, fps| {
        let (name, width) = (None, None);
        Rung { name, bitrate: BitRate::from_kbps(kbps), width, height, fps }
    };
    let mut spec = MediaSpec::new(Source::Synthetic);
    spec.ladder = vec![rung(150, 180, None), rung(400, 360, None)];
    spec.segment = Duration::from_millis(500);
    spec.length = Duration::from_secs(2);
    spec.fps = Some(FPS);
    spec.preset = Preset::Ultrafast;
    spec.audio = Audio::Off;
    spec.stamp = true;
    spec
}

fn prepare(ffmpeg: &Ffmpeg, spec: &MediaSpec, cache: &Path) -> Package {
    prepare_with(ffmpeg, spec, cache, &mut |_, _| {}).unwrap()
}

fn screen<'a>(ffmpeg: &'a Ffmpeg, package: &'a Package, ticks: &'a [Option<Shown>]) -> Screen<'a> {
    Screen { ffmpeg, received: Received::Package(package), ticks }
}

/// Black, a switch up, a freeze, a jump over more than a segment, into the next loop, a step back,
/// and a switch down.
fn eventful() -> Vec<Option<Shown>> {
    let shown = |rung, frame| Some(Shown { frame, rung });
    let mut ticks = vec![None; 3];
    ticks.extend((0..5).map(|frame| shown(0, frame)));
    ticks.extend((5..9).map(|frame| shown(1, frame)));
    ticks.extend([shown(1, 8); 4]);
    ticks.extend((17..24).map(|frame| shown(1, frame)));
    ticks.extend((12..14).map(|frame| shown(1, frame)));
    ticks.extend((14..17).map(|frame| shown(0, frame)));
    ticks
}

/// The luma planes of a video, scaled to that size by an ffmpeg of its own.
fn pictures(ffmpeg: &Ffmpeg, video: &Path, width: u32, height: u32) -> Vec<Vec<u8>> {
    let output = Command::new(ffmpeg.path())
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(video)
        .args(["-vf", &format!("scale={width}:{height}:flags=bilinear")])
        .args(["-pix_fmt", "gray", "-color_range", "tv", "-fps_mode", "passthrough"])
        .args(["-f", "rawvideo", "-"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "ffmpeg complains");
    output.stdout.chunks((width * height) as usize).map(<[u8]>::to_vec).collect()
}

/// The stamps of a video in that size.
fn stamps(ffmpeg: &Ffmpeg, video: &Path, width: u32, height: u32) -> Vec<Option<u32>> {
    let pictures = pictures(ffmpeg, video, width, height);
    let read = |picture: &Vec<u8>| stamp::read(picture, &Layout::packed(width, height));
    pictures.iter().map(|picture| read(picture).map(|stamp| stamp.frame)).collect()
}

/// What the stamps must be.
fn expected(ticks: &[Option<Shown>]) -> Vec<Option<u32>> {
    ticks.iter().map(|shown| shown.map(|shown| (shown.frame % LOOP) as u32)).collect()
}

#[test]
fn the_screen_shows_what_the_list_says() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ticks = eventful();
    for (format, b_frames) in [(Format::Fmp4, 0), (Format::Ts, 2)] {
        let package = prepare(&ffmpeg, &MediaSpec { format, b_frames, ..spec() }, folder.path());
        let video = folder.path().join("screen.viewer.mp4");
        let told = screen(&ffmpeg, &package, &ticks).write(&video).unwrap();
        let told: Vec<_> = told.iter().map(|stamp| stamp.map(|stamp| stamp.frame)).collect();
        assert_eq!(told, expected(&ticks), "{format:?}");
        assert_eq!(stamps(&ffmpeg, &video, 640, 360), expected(&ticks), "{format:?}");
        assert!(!folder.path().join("screen.viewer.mp4.part").exists());
        let bytes = std::fs::read(&video).unwrap();
        let place = |word: &[u8]| bytes.windows(4).position(|window| window == word).unwrap();
        assert!(place(b"moov") < place(b"mdat"), "the index comes first");
    }
}

/// Two seconds in which the screen is frozen are found in the video to the frame.
#[test]
fn a_freeze_is_as_long_as_it_was() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &spec(), folder.path());
    let freeze = 2 * FPS as usize;
    let shown = |frame| Some(Shown { frame, rung: 1 });
    let mut ticks: Vec<_> = (0..13).map(shown).collect();
    ticks.extend(vec![shown(12); freeze]);
    ticks.extend((13..20).map(shown));
    let video = folder.path().join("screen.viewer.mp4");
    screen(&ffmpeg, &package, &ticks).write(&video).unwrap();
    let seen = stamps(&ffmpeg, &video, 640, 360);
    let runs: Vec<usize> = seen.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
    assert_eq!(runs.iter().filter(|run| **run > 1).collect::<Vec<_>>(), [&(freeze + 1)]);
}

#[test]
fn a_rung_of_fewer_frames_holds_each_of_them() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec();
    spec.segment = Duration::from_secs(1);
    spec.ladder[0].fps = Some(FPS / 2);
    let package = prepare(&ffmpeg, &spec, folder.path());
    let ticks: Vec<_> = (0..30).map(|frame| Some(Shown { frame, rung: 0 })).collect();
    let video = folder.path().join("screen.viewer.mp4");
    let told = screen(&ffmpeg, &package, &ticks).write(&video).unwrap();
    for (tick, stamp) in (0..).zip(told) {
        let frame = i64::from(stamp.unwrap().frame);
        assert!((frame - tick % LOOP as i64).abs() <= 1, "tick {tick} shows {frame}");
    }
}

#[test]
fn a_package_without_stamps_says_nothing_of_itself() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &MediaSpec { stamp: false, ..spec() }, folder.path());
    let ticks: Vec<_> = (0..8).map(|frame| Some(Shown { frame, rung: 1 })).collect();
    let told = screen(&ffmpeg, &package, &ticks).write(&folder.path().join("a.mp4")).unwrap();
    assert_eq!(told, vec![None; 8]);
}

#[test]
fn a_full_disk_says_so() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &spec(), folder.path());
    let ticks: Vec<_> = (0..60).map(|frame| Some(Shown { frame, rung: 1 })).collect();
    let video = folder.path().join("screen.viewer.mp4");
    // Whatever is written there, the kernel answers that the device is full.
    std::os::unix::fs::symlink("/dev/full", video.with_extension("mp4.part")).unwrap();
    let error = screen(&ffmpeg, &package, &ticks).write(&video).unwrap_err().to_string();
    assert!(error.contains("screen.viewer.mp4: no space left\nhint: "), "{error}");
    assert!(!video.exists() && !video.with_extension("mp4.part").is_symlink());
}

/// Moving video of 720 lines at 100 kbit/s, as it is and as a page would show it: the stamp of each
/// frame is read. If it has the number of the frame before, the encoder did not code the change.
#[test]
fn little_is_left_of_the_picture_but_its_stamp() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let clip = folder.path().join("clip.mkv");
    let made = Command::new(ffmpeg.path())
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=1280x720:r=24"])
        .args(["-t", "4", "-c:v", "libx264", "-preset", "ultrafast", "-qp", "20"])
        .arg(&clip)
        .status();
    assert!(made.unwrap().success());
    let mut spec = MediaSpec { source: Source::File(clip), fps: Some(24), ..spec() };
    spec.ladder.remove(0);
    (spec.ladder[0].height, spec.ladder[0].bitrate) = (720, BitRate::from_kbps(100));
    // One key frame: another would take so much of this rate that frames are left out.
    (spec.segment, spec.length) = (Duration::from_secs(4), Duration::from_secs(4));
    spec.preset = Preset::Veryfast;
    let package = prepare(&ffmpeg, &spec, folder.path());
    let track = &package.video[0];
    let init = package.read_init(track).unwrap().unwrap();
    let segment = package.read(track, Container::Fmp4, 0).unwrap().unwrap();
    let coded = folder.path().join("coded.mp4");
    std::fs::write(&coded, [init, segment].concat()).unwrap();
    let pictures = pictures(&ffmpeg, &coded, 1280, 720);
    let read = stamps(&ffmpeg, &coded, 1280, 720);
    assert_eq!(read.len(), 96);
    for (at, stamp) in read.iter().enumerate() {
        let stamp = stamp.unwrap() as usize;
        let is_repeat = || stamp + 1 == at && pictures[at] == pictures[at - 1];
        assert!(stamp == at || is_repeat(), "frame {at} is read as {stamp}");
    }
    let right = read.iter().enumerate().filter(|(at, stamp)| **stamp == Some(*at as u32)).count();
    assert!(right > 90, "{right} of 96");
    assert_eq!(stamps(&ffmpeg, &coded, 426, 240), read);
}

#[test]
fn what_cannot_be_shown_says_why_and_leaves_nothing() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &spec(), folder.path());
    let out = tempfile::tempdir().unwrap();
    let video = out.path().join("screen.viewer.mp4");
    let write = |ticks: &[Option<Shown>], video: &Path| {
        screen(&ffmpeg, &package, ticks).write(video).unwrap_err()
    };
    assert!(matches!(write(&[], &video), MediaError::NothingShown));
    assert!(matches!(write(&[None; 5], &video), MediaError::NothingShown));
    let no_rung = write(&[Some(Shown { frame: 1, rung: 2 })], &video).to_string();
    assert_eq!(no_rung, "frame 1 is of rung 2, but the package has 2");
    let beyond = write(&[Some(Shown { frame: u64::MAX, rung: 1 })], &video).to_string();
    assert!(beyond.contains("has no frame"), "{beyond}");
    let shown: Vec<_> = (0..9).map(|frame| Some(Shown { frame, rung: 1 })).collect();
    let nowhere = write(&shown, &out.path().join("no/such/screen.mp4")).to_string();
    assert!(nowhere.contains("No such file or directory"), "{nowhere}");
    // The second segment is changed to nothing that can be decoded.
    let segment = package.folder.join(&package.video[1].fmp4.as_ref().unwrap().segments[1].file);
    let size = std::fs::metadata(&segment).unwrap().len() as usize;
    std::fs::write(&segment, vec![0xFF; size - 1]).unwrap();
    let damaged = write(&shown, &video).to_string();
    assert!(damaged.contains("bytes; expected"), "{damaged}");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}
