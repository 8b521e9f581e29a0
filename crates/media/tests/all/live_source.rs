//! A real-time source from end to end: footage that the real ffmpeg makes, captured, stamped, encoded
//! and decoded. Where there is no ffmpeg, these report that and pass.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use suiro_media::Ffmpeg;
use suiro_media::live::{
    Camera, Captured, Decoder, Effort, EncoderConfig, Footage, FootageSpec, LiveError, LiveSource,
    Picture,
};
use suiro_media::spec::Source;
use suiro_units::{BitRate, Duration, Time};

use crate::common::ffmpeg;

const EPOCH_UTC_MS: u64 = 1_800_000_000_000;
const START: Time = Time::from_millis(500);

/// One second of 12 frames, 4:3 of what is 16:9.
fn spec() -> FootageSpec {
    let length = Duration::from_secs(1);
    FootageSpec { width: 320, height: 240, fps: 12, length, ..FootageSpec::new(Source::Synthetic) }
}

fn prepare(ffmpeg: &Ffmpeg, cache: &Path) -> Result<Footage, LiveError> {
    Footage::prepare(ffmpeg, &spec(), cache, &mut |_, _| {})
}

fn source(ffmpeg: &Ffmpeg, cache: &Path) -> LiveSource {
    let config = EncoderConfig {
        width: 320,
        height: 240,
        fps: 12,
        bitrate: BitRate::from_kbps(400),
        effort: Effort::Low,
        may_skip: false,
    };
    LiveSource::new(prepare(ffmpeg, cache).unwrap(), config, START, EPOCH_UTC_MS).unwrap()
}

#[test]
fn footage_is_made_once_and_made_anew_if_damaged() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let footage = prepare(&ffmpeg, cache.path()).unwrap();
    assert_eq!((footage.frames(), footage.fps(), footage.size()), (12, 12, (320, 240)));
    let files: Vec<_> = std::fs::read_dir(cache.path().join("footage")).unwrap().collect();
    let path = files.into_iter().map(|file| file.unwrap().path());
    let path = path.into_iter().find(|path| path.extension().is_some_and(|e| e == "yuv")).unwrap();
    let made = || std::fs::metadata(&path).unwrap();
    assert_eq!(made().len(), 12 * 320 * 240 * 3 / 2);
    let before = made().modified().unwrap();
    prepare(&ffmpeg, cache.path()).unwrap();
    assert_eq!(made().modified().unwrap(), before, "found, not made");
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1000).unwrap();
    assert_eq!(prepare(&ffmpeg, cache.path()).unwrap().frames(), 12);
}

#[test]
fn footage_repeats_and_keeps_its_shape() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let footage = prepare(&ffmpeg, cache.path()).unwrap();
    let read = |number| {
        let mut picture = Picture::new(320, 240).unwrap();
        footage.read(number, &mut picture).unwrap();
        picture
    };
    assert_eq!(read(3), read(3 + 12 * 1_000_000));
    assert_ne!(read(3), read(4));
    // 320×180 of frame, with 30 lines of black above and below.
    let black = |line: usize| read(0).luma()[320 * line..][..320].iter().all(|&luma| luma == 16);
    assert_eq!([0, 29, 30, 209, 210, 239].map(black), [true, true, false, false, true, true]);
    // Another camera of the same scene, half a second ahead.
    let spec = FootageSpec { begin: Duration::from_millis(500), ..spec() };
    let ahead = Footage::prepare(&ffmpeg, &spec, cache.path(), &mut |_, _| {}).unwrap();
    let mut picture = Picture::new(320, 240).unwrap();
    for (number, same) in [(0, 6), (5, 11), (6, 0)] {
        ahead.read(number, &mut picture).unwrap();
        assert_eq!(picture, read(same), "frame {number}");
    }
    let mut other = Picture::new(16, 16).unwrap();
    assert!(footage.read(0, &mut other).unwrap_err().to_string().contains("(320, 240)"));
}

#[test]
fn what_no_footage_can_be_is_refused() {
    let say = |spec: FootageSpec| spec.validate().unwrap_err().to_string();
    let long = FootageSpec { length: Duration::from_secs(3600), ..spec() };
    assert!(say(long).contains("expected: a length from one frame to 2893 s"), "too long");
    assert!(say(FootageSpec { length: Duration::ZERO, ..spec() }).contains("one frame"));
    assert!(say(FootageSpec { width: 321, ..spec() }).contains("even sides"));
    assert!(say(FootageSpec { fps: 0, ..spec() }).contains("expected: 1 to 120"));
    let late = FootageSpec { begin: Duration::from_secs(1), ..spec() };
    assert!(say(late).contains("begin: "), "the first frame would be beyond the last");
}

/// Captures until `until`, punctually.
fn film(source: &mut LiveSource, until: Time) -> Vec<Captured> {
    let mut film = Vec::new();
    while source.next() < until {
        film.push(source.capture(source.next()).unwrap().expect("it is due"));
    }
    film
}

#[test]
fn every_frame_says_which_it_is_and_when_it_was_captured() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let mut source = source(&ffmpeg, cache.path());
    assert_eq!(source.capture(Time::from_millis(499)).unwrap(), None);
    let film = film(&mut source, START + Duration::from_secs(2));
    assert_eq!(film.len(), 24, "the footage has repeated");
    let mut decoder = Decoder::new().unwrap();
    let mut shown = Picture::new(320, 240).unwrap();
    for (number, frame) in (0..).zip(&film) {
        assert_eq!((frame.number, frame.missed), (number, 0));
        assert_eq!(frame.captured, START + Duration::from_nanos(number * 1_000_000_000 / 12));
        assert_eq!(frame.references, number.checked_sub(1));
        let encoded = frame.encoded.as_ref().expect("none may be skipped");
        assert!(decoder.decode(&encoded.bytes, &mut shown).unwrap());
        let stamp = shown.read_stamp().expect("it bears a stamp");
        assert_eq!(u64::from(stamp.frame), number);
        assert_eq!(stamp.captured_ms, EPOCH_UTC_MS + frame.captured.as_nanos() / 1_000_000);
    }
}

#[test]
fn who_comes_late_has_missed_frames() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let mut source = source(&ffmpeg, cache.path());
    source.capture(START).unwrap();
    source.request_key_frame();
    let late = source.capture(START + Duration::from_millis(500)).unwrap().unwrap();
    assert_eq!((late.number, late.missed, late.references), (6, 5, None));
    let next = source.capture(START + Duration::from_secs(1)).unwrap().unwrap();
    assert_eq!((next.number, next.missed, next.references), (12, 5, Some(6)));
    source.set_fps(6).unwrap();
    let numbers: Vec<u64> =
        film(&mut source, START + Duration::from_secs(2)).iter().map(|f| f.number).collect();
    assert_eq!(numbers, [14, 16, 18, 20, 22]);
    assert!(source.set_fps(24).is_err(), "more than the footage has");
}

#[test]
fn who_pauses_misses_no_frames_and_begins_again_with_a_key_frame() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let mut source = source(&ffmpeg, cache.path());
    // Frame 6 is captured at 1 s, frame 18 at 2 s.
    source.pause(vec![(Time::from_secs(1), Time::from_secs(2))]);
    let mut film = Vec::new();
    while source.next() < START + Duration::from_secs(2) {
        film.extend(source.capture(source.next()).unwrap());
    }
    assert!(film.iter().all(|frame| frame.missed == 0));
    let found: Vec<_> = film.iter().map(|frame| (frame.number, frame.references)).collect();
    let before = (0..6).map(|n: u64| (n, n.checked_sub(1)));
    let after = (18..24).map(|n: u64| (n, Some(n - 1).filter(|_| n > 18)));
    assert_eq!(found, before.chain(after).collect::<Vec<_>>());
    assert!(film[6].encoded.as_ref().is_some_and(|encoded| encoded.key));
}

#[test]
fn who_is_late_for_a_pause_or_its_end_has_missed_the_frames_outside_of_it() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    // Frames 6 to 17 fall into the pause. Frame 10 is captured 833 ms after the start, frame 20 1667 ms.
    let late = |looks: &[u64]| {
        let mut source = source(&ffmpeg, cache.path());
        source.pause(vec![(Time::from_secs(1), Time::from_secs(2))]);
        film(&mut source, START + Duration::from_millis(300));
        let looked = looks.iter().map(|ms| source.capture(START + Duration::from_millis(*ms)));
        let film: Vec<Option<Captured>> = looked.map(Result::unwrap).collect();
        let of = |it: &Captured| (it.number, it.missed, it.references);
        film.iter().map(|it| it.as_ref().map(of)).collect::<Vec<_>>()
    };
    // 4 and 5, and 18 and 19.
    assert_eq!(late(&[1700]), [Some((20, 4, None))]);
    assert_eq!(late(&[850, 1700]), [None, Some((20, 4, None))]);
    assert_eq!(late(&[850, 1500, 1600]), [None, Some((18, 2, None)), Some((19, 0, Some(18)))]);
}

#[test]
fn who_begins_later_has_missed_no_frames() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let mut source = source(&ffmpeg, cache.path());
    let minute = START + Duration::from_secs(60);
    source.begin(minute);
    let first = source.capture(minute).unwrap().expect("it is due");
    assert_eq!((first.number, first.missed, first.captured), (720, 0, minute));
    let late = source.capture(minute + Duration::from_millis(500)).unwrap().expect("it is due");
    assert_eq!((late.number, late.missed), (726, 5));
}

#[test]
fn a_camera_does_as_it_is_told_and_stops() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    // A clock on which a frame passes with every look at it.
    let ticks = Arc::new(AtomicU64::new(0));
    let clock = move || Time::from_millis(ticks.fetch_add(1, Ordering::Relaxed) * 84);
    let (sent, received) = mpsc::channel();
    let source = source(&ffmpeg, cache.path());
    let camera = Camera::start(source, clock, move |frame| drop(sent.send(frame))).unwrap();
    let mut frames = received.iter();
    assert!(frames.next().unwrap().encoded.unwrap().key);
    camera.request_key_frame();
    let key = frames.find(|frame| frame.encoded.as_ref().is_some_and(|encoded| encoded.key));
    assert!(key.unwrap().number > 0);
    camera.set_fps(99);
    // More than the footage has: the camera ends, and with it the frames.
    frames.by_ref().for_each(drop);
    let error = camera.stop().unwrap_err().to_string();
    assert_eq!(error, "fps: 99 is out of range\nexpected: 1 to 12");
}

#[test]
fn a_smaller_size_begins_with_a_key_frame_and_keeps_the_stamp() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let mut source = source(&ffmpeg, cache.path());
    let mut decoder = Decoder::new().unwrap();
    let mut shown = Picture::new(320, 240).unwrap();
    let mut last = None;
    for (size, number) in [((320, 240), 0), ((240, 180), 1), ((160, 120), 4), ((320, 240), 7)] {
        source.set_size(size.0, size.1).unwrap();
        let until = START + Duration::from_nanos((number + 3) * 1_000_000_000 / 12);
        for frame in film(&mut source, until) {
            let changed = last.is_none_or(|(_, before)| before != size);
            let encoded = frame.encoded.as_ref().expect("none may be skipped");
            assert_eq!((encoded.key, frame.references.is_none()), (changed, changed), "{size:?}");
            assert!(changed || frame.references == last.map(|(number, _)| number));
            assert!(decoder.decode(&encoded.bytes, &mut shown).unwrap());
            assert_eq!((shown.size(), (frame.config.width, frame.config.height)), (size, size));
            let stamp = shown.read_stamp().expect("it bears a stamp");
            assert_eq!(u64::from(stamp.frame), frame.number);
            last = Some((frame.number, size));
        }
    }
    assert_eq!(last, Some((9, (320, 240))));
    let say = |source: &mut LiveSource, width, height| {
        source.set_size(width, height).unwrap_err().to_string()
    };
    assert!(say(&mut source, 640, 240).contains("no side longer than the camera's, 320×240"));
    assert!(say(&mut source, 160, 121).contains("even sides"));
    assert!(say(&mut source, 64, 48).contains("cannot be stamped"));
}

#[test]
fn a_key_frame_that_would_take_too_long_is_softer_and_the_details_come_back() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let within = Duration::from_millis(100);
    let film_of = |within: Option<Duration>| {
        let mut source = source(&ffmpeg, cache.path());
        source.set_bitrate(BitRate::from_kbps(200)).unwrap();
        within.iter().for_each(|within| source.keep_keys_within(*within));
        let mut film = film(&mut source, START + Duration::from_secs(1));
        source.request_key_frame();
        film.extend(self::film(&mut source, START + Duration::from_secs(2)));
        film
    };
    let bytes = |frame: &Captured| frame.encoded.as_ref().map_or(0, |encoded| encoded.bytes.len());
    // 200 kbit/s for 100 ms.
    let most = 2500;
    assert!(bytes(&film_of(None)[0]) > most, "it would be too large");
    let film = film_of(Some(within));
    let keys: Vec<u64> =
        film.iter().filter(|it| it.references.is_none()).map(|it| it.number).collect();
    assert_eq!(keys, [0, 12]);
    let mut decoder = Decoder::new().unwrap();
    let mut shown = Picture::new(320, 240).unwrap();
    for frame in &film {
        assert!(frame.references.is_some() || bytes(frame) <= most, "{}", bytes(frame));
        let encoded = frame.encoded.as_ref().expect("none may be skipped");
        assert!(decoder.decode(&encoded.bytes, &mut shown).unwrap());
        assert_eq!(shown.read_stamp().map(|stamp| u64::from(stamp.frame)), Some(frame.number));
    }
    // A second after the key frame, it looks as it would without one.
    let footage = prepare(&ffmpeg, cache.path()).unwrap();
    let mut whole = Picture::new(320, 240).unwrap();
    footage.read(23, &mut whole).unwrap();
    let differences = shown.luma().iter().zip(whole.luma()).skip(320 * 40);
    let sum: u64 = differences.map(|(one, other)| u64::from(one.abs_diff(*other))).sum();
    assert!(sum / (320 * 200) < 8, "{} on average", sum / (320 * 200));
}
