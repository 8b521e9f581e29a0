//! Real packages, made and decoded by the real ffmpeg. Where there is none, these report that and
//! pass.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use suiro_media::package::{Content, Package, Track};
use suiro_media::spec::{Audio, Format, Preset, Rung, Source};
use suiro_media::{Container, Ffmpeg, MediaError, MediaSpec, mp4, prepare_with};
use suiro_units::{BitRate, Duration};

use crate::common::ffmpeg;

const FPS: u32 = 12;

fn rung(kbps: u64, height: u32) -> Rung {
    let (name, width, fps) = (None, None, None);
    Rung { name, bitrate: BitRate::from_kbps(kbps), width, height, fps }
}

/// Three rungs, given in no order, of four segments of half a second.
fn spec() -> MediaSpec {
    let mut spec = MediaSpec::new(Source::Synthetic);
    spec.ladder = vec![rung(150, 96), rung(300, 144), rung(75, 72)];
    spec.segment = Duration::from_millis(500);
    spec.length = Duration::from_secs(2);
    spec.fps = Some(FPS);
    spec.preset = Preset::Ultrafast;
    spec
}

fn prepare(ffmpeg: &Ffmpeg, spec: &MediaSpec, cache: &Path) -> Result<Package, MediaError> {
    prepare_with(ffmpeg, spec, cache, &mut |_, _| {})
}

/// The times of the frames that ffmpeg decodes from `bytes`, in seconds. Any message fails.
fn decoded(ffmpeg: &Ffmpeg, folder: &Path, bytes: &[u8], stream: &str) -> Vec<f64> {
    let file = folder.join("played");
    fs::write(&file, bytes).unwrap();
    let output = Command::new(ffmpeg.path())
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(&file)
        .args(["-map", stream, "-fps_mode", "passthrough", "-copyts"])
        .args(["-enc_time_base", "1:90000", "-f", "framecrc", "-"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "ffmpeg complains");
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    let base = lines.lines().find_map(|line| line.strip_prefix("#tb 0: ")).unwrap();
    let (numerator, denominator) = base.split_once('/').unwrap();
    let tick: f64 = numerator.parse::<f64>().unwrap() / denominator.parse::<f64>().unwrap();
    let frames = lines.lines().filter(|line| !line.starts_with('#'));
    frames.map(|l| l.split(',').nth(2).unwrap().trim().parse::<f64>().unwrap() * tick).collect()
}

/// Frames at an even pace from `start`, as they must be shown.
fn assert_even(times: &[f64], start: f64, count: usize) {
    assert_eq!(times.len(), count);
    for (index, at) in times.iter().enumerate() {
        let expected = start + index as f64 / f64::from(FPS);
        assert!((at - expected).abs() < 1e-4, "frame {index} is shown at {at}, not {expected}");
    }
}

/// Segments 0 to `count` of the endless stream, another rung each; with `init`, begun by the
/// initialisation segment of the rung.
fn switching(package: &Package, container: Container, count: u64, init: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..count {
        let track = &package.video[number as usize % package.video.len()];
        if container == Container::Fmp4 && (init || number == 0) {
            bytes.extend(package.read_init(track).unwrap().unwrap_or_default());
        }
        bytes.extend(package.read(track, container, number).unwrap().unwrap());
    }
    bytes
}

/// Fragments are numbered without a gap, and each begins where the one before ended.
fn assert_numbered(package: &Package, track: &Track) {
    let init = mp4::init(&package.read_init(track).unwrap().unwrap()).unwrap();
    let (mut sequence, mut time) = (1, 0);
    for number in 0..12 {
        let bytes = package.read(track, Container::Fmp4, number).unwrap().unwrap();
        for fragment in mp4::fragments(&bytes, &init).unwrap() {
            assert_eq!((fragment.sequence, fragment.decode_time), (sequence, time));
            sequence += 1;
            time += fragment.duration();
        }
    }
    assert_eq!(track.time(time), package.loop_duration * 3);
}

#[test]
fn fmp4_decodes_over_two_loops_with_a_switch_at_each_segment() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    // With B-frames, ffmpeg's reader shows everything later by as much as it decodes ahead.
    for (b_frames, start) in [(0, 0.0), (2, 1.0 / f64::from(FPS))] {
        let spec = MediaSpec { b_frames, gop: Some(Duration::from_millis(250)), ..spec() };
        let package = prepare(&ffmpeg, &spec, folder.path()).unwrap();
        assert_eq!(package.loop_duration, Duration::from_secs(2));
        for track in package.tracks() {
            assert_numbered(&package, track);
        }
        for init in [false, true] {
            let bytes = switching(&package, Container::Fmp4, 8, init);
            let times = decoded(&ffmpeg, folder.path(), &bytes, "0:v");
            assert_even(&times, start, 4 * FPS as usize);
        }
    }
}

#[test]
fn ts_decodes_over_two_loops_with_a_switch_at_each_segment() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    for b_frames in [0, 2] {
        let spec = MediaSpec { b_frames, format: Format::Ts, ..spec() };
        let package = prepare(&ffmpeg, &spec, folder.path()).unwrap();
        assert!(package.tracks().all(|track| track.fmp4.is_none()));
        let bytes = switching(&package, Container::Ts, 8, false);
        let times = decoded(&ffmpeg, folder.path(), &bytes, "0:v");
        assert_even(&times, 10.0, 4 * FPS as usize);
        let sound = decoded(&ffmpeg, folder.path(), &bytes, "0:a");
        assert_eq!(sound.len() as u32, 2 * sound_frames(&package));
    }
}

fn sound_frames(package: &Package) -> u32 {
    (package.loop_duration.as_nanos() * 48 / 1_000_000 / 1024) as u32
}

#[test]
fn sound_and_pictures_loop_at_the_same_instant() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let spec = MediaSpec { format: Format::Both, ..spec() };
    let package = prepare(&ffmpeg, &spec, folder.path()).unwrap();
    let sound = package.audio.as_ref().unwrap();
    for track in package.tracks() {
        let placed = track.segment(Container::Fmp4, 4 * 1_000_000).unwrap();
        assert_eq!((placed.loops, placed.segment.start), (1_000_000, 0));
        assert_eq!(track.time(placed.start), Duration::from_secs(2_000_000));
    }
    let mut bytes = package.read_init(sound).unwrap().unwrap();
    for number in 0..8 {
        bytes.extend(package.read(sound, Container::Fmp4, number).unwrap().unwrap());
    }
    let times = decoded(&ffmpeg, folder.path(), &bytes, "0:a");
    let frames = sound_frames(&package) as usize;
    assert_eq!(times.len(), 2 * frames);
    assert!(times[0].abs() < 1e-4 && (times[frames] - 2.0).abs() < 1e-4, "{times:?}");
}

#[test]
fn the_index_says_what_is_in_the_files() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &spec(), folder.path()).unwrap();
    let labels: Vec<&str> = package.video.iter().map(|track| track.label.as_str()).collect();
    assert_eq!(labels, ["72p", "96p", "144p"]);
    assert_eq!(package.video[2].content, Content::Video { width: 256, height: 144, fps: FPS });
    for track in package.tracks() {
        let init = mp4::init(&package.read_init(track).unwrap().unwrap()).unwrap();
        assert_eq!(init.timescale, track.timescale);
        match &init.entry {
            mp4::Entry::Video { sets, .. } => assert_eq!(track.codec, sets.codec()),
            mp4::Entry::Audio(config) => assert_eq!(track.codec, config.codec()),
        }
        let fmp4 = track.fmp4.as_ref().unwrap();
        assert_eq!(fmp4.segments.len(), 4);
        for (number, segment) in fmp4.segments.iter().enumerate() {
            let bytes = package.read(track, Container::Fmp4, number as u64).unwrap().unwrap();
            assert_eq!(bytes.len() as u64, segment.bytes);
            let read = mp4::fragments(&bytes, &init).unwrap();
            assert_eq!(read[0].decode_time, segment.start);
            assert_eq!(read.iter().map(mp4::Fragment::duration).sum::<u64>(), segment.duration);
            assert_eq!(
                read.iter().map(|f| f.samples.len()).sum::<usize>(),
                segment.frames as usize
            );
        }
        assert!(fmp4.bitrate_max >= fmp4.bitrate_mean);
        // No segment exceeds the peak, not by a fraction of a bit: those of sound have odd lengths.
        let peak = u128::from(fmp4.bitrate_max.as_bps());
        for segment in &fmp4.segments {
            let bits = u128::from(segment.bytes) * 8 * u128::from(track.timescale);
            assert!(bits <= peak * u128::from(segment.duration), "{}: {segment:?}", track.id);
        }
    }
    // Noise fills every rung: what was asked for is what is there.
    let full = |track: &Track| {
        let mean = track.fmp4.as_ref().unwrap().bitrate_mean;
        mean.as_bps() as f64 / track.bitrate.as_bps() as f64
    };
    for track in &package.video {
        assert!((0.6..1.4).contains(&full(track)), "{}: {}", track.label, full(track));
    }
}

#[test]
fn a_damaged_package_is_told_and_made_anew() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let package = prepare(&ffmpeg, &spec(), cache.path()).unwrap();
    let segment = package.folder.join("v1/2.m4s");
    let whole = fs::read(&segment).unwrap();
    fs::write(&segment, &whole[..100]).unwrap();
    let error = package.read(&package.video[1], Container::Fmp4, 6).unwrap_err().to_string();
    assert!(error.contains("v1/2.m4s: 100 bytes; expected"), "{error}");
    let error = Package::load(&package.folder).unwrap_err().to_string();
    assert!(error.contains("v1/2.m4s: 100 bytes; expected"), "{error}");
    let again = prepare(&ffmpeg, &spec(), cache.path()).unwrap();
    assert_eq!(again, package);
    assert_eq!(fs::read(&segment).unwrap(), whole, "the same ffmpeg makes the same bytes");
    fs::remove_file(package.folder.join("package.json")).unwrap();
    assert_eq!(prepare(&ffmpeg, &spec(), cache.path()).unwrap(), package);
}

#[test]
fn two_runs_at_once_make_one_package() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let run = || {
        let mut encodings = 0;
        let package = prepare_with(&ffmpeg, &spec(), cache.path(), &mut |done, phase| {
            assert!((0.0..=1.0).contains(&done));
            encodings += usize::from(done == 0.0 && phase == "encoding 3 rungs of synthetic");
        });
        (package.unwrap(), encodings)
    };
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(run), scope.spawn(run));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!(one.0, two.0);
    assert!(one.1 == 0 || two.1 == 0, "only one of the two encodes");
    let names = fs::read_dir(cache.path().join("packages")).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 2, "a package and its lock, nothing else: {names:?}");
    assert_eq!(names[1], format!("{}.lock", names[0]));
}

/// A video without sound, of a second and a half.
fn silent(ffmpeg: &Ffmpeg, folder: &Path) -> PathBuf {
    let file = folder.join("silent.mp4");
    let made = Command::new(ffmpeg.path())
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=128x72:r=30:d=1.5"])
        .arg(&file)
        .status();
    assert!(made.unwrap().success());
    file
}

#[test]
fn a_file_without_sound_makes_a_package_without_sound() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = Source::File(silent(&ffmpeg, folder.path()));
    let spec = MediaSpec { source, format: Format::Both, ..spec() };
    assert_eq!(spec.audio, Audio::default());
    let package = prepare(&ffmpeg, &spec, folder.path()).unwrap();
    assert_eq!(package.audio, None);
    assert_eq!(package.source.name, "silent.mp4");
    // Two seconds were asked for, a second and a half are there.
    assert_eq!(package.loop_duration, Duration::from_millis(1500));
    let bytes = switching(&package, Container::Ts, 6, false);
    assert_even(&decoded(&ffmpeg, folder.path(), &bytes, "0:v"), 10.0, 3 * FPS as usize);
}

#[test]
fn failures_say_what_and_why() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let of = |source: PathBuf, segment: Duration| {
        let source = Source::File(source);
        let spec = MediaSpec { source, segment, length: segment, ..spec() };
        prepare(&ffmpeg, &spec, folder.path()).unwrap_err().to_string()
    };
    let short = of(silent(&ffmpeg, folder.path()), Duration::from_secs(2));
    assert!(short.contains("shorter than one segment of 2 s\nhint: "), "{short}");
    let missing = of("/no/such.mp4".into(), Duration::from_secs(1));
    assert!(missing.starts_with("source `/no/such.mp4`: No such file"), "{missing}");
    let junk = folder.path().join("junk.mp4");
    fs::write(&junk, "this is no video").unwrap();
    let junk = of(junk, Duration::from_secs(1));
    assert!(junk.starts_with("ffmpeg failed (exit status: "), "{junk}");
    assert!(junk.contains("-filter_complex") && junk.contains("Invalid data found"), "{junk}");
    let left = fs::read_dir(folder.path().join("packages")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| name.ends_with(".lock")), "nothing half made is left");
}
