//! The screen of a viewer of real-time video, made again from what it kept. Where there is no ffmpeg with libvmaf,
//! these report that and pass.

use std::path::{Path, PathBuf};

use suiro_media::Ffmpeg;
use suiro_media::live::{Effort, EncoderConfig, Footage, FootageSpec, LiveSource};
use suiro_media::quality::{Score, measure};
use suiro_media::screen::{Codec, Received, Screen, Sent, Shown, Stream};
use suiro_media::spec::Source;
use suiro_units::{BitRate, Duration, Time};

use crate::common::ffmpeg_with_vmaf;

/// Frames that the camera captures, of which one in the middle begins anew.
const FRAMES: u64 = 60;
const KEY: u64 = 30;

/// A viewer that lost what is in `lost`, and kept the rest in `folder`.
fn kept(ffmpeg: &Ffmpeg, folder: &Path, lost: std::ops::Range<u64>) -> Stream {
    let length = Duration::from_secs(1);
    let source =
        FootageSpec { width: 640, height: 360, length, ..FootageSpec::new(Source::Synthetic) };
    let footage = Footage::prepare(ffmpeg, &source, folder, &mut |_, _| {}).unwrap();
    let config = EncoderConfig {
        width: 640,
        height: 360,
        fps: source.fps,
        bitrate: BitRate::from_mbps(20),
        effort: Effort::Low,
        may_skip: false,
    };
    let mut camera = LiveSource::new(footage, config, Time::ZERO, 0).unwrap();
    let (mut frames, mut bytes) = (Vec::new(), Vec::new());
    for number in 0..FRAMES {
        if number == KEY {
            camera.request_key_frame();
        }
        let frame = camera.capture(camera.next()).unwrap().expect("it is due");
        assert_eq!(frame.number, number);
        if !lost.contains(&number) {
            frames.push(number);
            bytes.extend(frame.encoded.expect("none may be skipped").bytes);
        }
    }
    let file = folder.join("received.viewer.h264");
    std::fs::write(&file, bytes).unwrap();
    Stream { file, codec: Codec::H264, frames, source: Sent::Camera(source), conceals: false }
}

/// Each frame at its tick, the last one that there is again where one is missing.
fn ticks(stream: &Stream) -> Vec<Option<Shown>> {
    let last = |tick| stream.frames.iter().rev().find(|frame| **frame <= tick);
    (0..FRAMES).map(|tick| last(tick).map(|frame| Shown { frame: *frame, rung: 0 })).collect()
}

#[test]
fn what_was_lost_is_frozen_on_the_screen_and_only_the_experience_suffers() {
    let Some(ffmpeg) = ffmpeg_with_vmaf() else { return };
    let folder = tempfile::tempdir().unwrap();
    let stream = kept(&ffmpeg, folder.path(), 20..KEY);
    let ticks = ticks(&stream);
    let screen = Screen { ffmpeg: &ffmpeg, received: Received::Stream(&stream), ticks: &ticks };
    let video = folder.path().join("screen.viewer.mp4");
    let stamps = screen.write(&video).unwrap();
    let said: Vec<_> = stamps.iter().map(|stamp| stamp.map(|stamp| stamp.frame.into())).collect();
    let shown: Vec<_> = ticks.iter().map(|shown| shown.map(|shown| shown.frame)).collect();
    assert_eq!(said, shown);
    assert!(video.exists());

    let quality = measure(&screen, 0, folder.path(), &mut |_, _| {}).unwrap();
    let frozen = 20..KEY as usize;
    let picture = |tick: &usize| quality.picture.ticks[*tick].is_none();
    assert_eq!((0..60).filter(picture).collect::<Vec<_>>(), frozen.clone().collect::<Vec<_>>());
    let good = |score: &Score| score.vmaf_native > 90.0 && score.ssim > 0.96;
    assert!(quality.picture.ticks.iter().flatten().all(good), "{:?}", quality.picture.ticks);
    let bad = |tick: &usize| !quality.experience.ticks[*tick].as_ref().is_some_and(good);
    assert_eq!((0..60).filter(bad).collect::<Vec<_>>(), frozen.collect::<Vec<_>>());
    assert_eq!((quality.picture.height, quality.picture.left_out), (360, 24));
}

/// Why there is neither screen nor score.
fn refused(ffmpeg: &Ffmpeg, stream: &Stream, ticks: &[Option<Shown>], cache: &Path) -> String {
    let screen = Screen { ffmpeg, received: Received::Stream(stream), ticks };
    let output = cache.join("refused.mp4");
    let why = screen.write(&output).unwrap_err().to_string();
    assert!(!output.exists(), "no half of a video is left");
    assert!(measure(&screen, 0, cache, &mut |_, _| {}).is_err(), "{why}");
    why
}

#[test]
fn a_stream_that_is_not_what_its_records_say_is_told() {
    let Some(ffmpeg) = ffmpeg_with_vmaf() else { return };
    let folder = tempfile::tempdir().unwrap();
    let stream = kept(&ffmpeg, folder.path(), 0..0);
    let ticks = ticks(&stream);
    let why = |stream: &Stream| refused(&ffmpeg, stream, &ticks, folder.path());

    let mut other = stream.clone();
    other.frames.swap(3, 4);
    assert!(why(&other).ends_with("its list of frames does not rise"), "{}", why(&other));
    other = stream.clone();
    other.frames.remove(7);
    assert!(why(&other).ends_with("frame 7 was shown but is not in it"), "{}", why(&other));
    other.file = PathBuf::from("/nowhere/received.h264");
    other.frames.clone_from(&stream.frames);
    assert!(why(&other).starts_with("opening /nowhere/received.h264: "), "{}", why(&other));

    let bytes = std::fs::read(&stream.file).unwrap();
    let half = bytes.len() / 2;
    std::fs::write(&stream.file, &bytes[..half]).unwrap();
    let cut = why(&stream);
    assert!(cut.contains("frames can be decoded, 60 were expected"), "{cut}");
    std::fs::write(&stream.file, []).unwrap();
    assert!(!why(&stream).is_empty());
    let noise: Vec<u8> =
        (0..9999_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&stream.file, noise).unwrap();
    assert!(!why(&stream).is_empty());
}
