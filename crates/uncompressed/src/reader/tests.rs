use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Span;

use suiro_units::{Duration, Time};

use super::*;
use crate::geometry::{Depth, FrameRate, Geometry, Sampling};
use crate::store::{Content, Header, Recorder};
use crate::{checksum, clock, synth};

/// Never set.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Slots that take several reads: 1.3 MB.
fn geometry() -> Geometry {
    Geometry::new((960, 540), Sampling::YCbCr422, Depth::Ten, FrameRate::P59_94).unwrap()
}

/// A store on a real file system, which O_DIRECT needs, where cargo keeps its build files.
fn store(frames: u64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("node.frames");
    let header = Header { first: 7, ..Header::new(geometry(), Content::Picture) };
    let mut recorder = Recorder::create(&path, header).unwrap();
    let mut frame = vec![0; geometry().frame_bytes()];
    for _ in 0..frames {
        synth::draw(&geometry(), recorder.next(), 0, &mut frame);
        recorder.write(&frame).unwrap();
    }
    recorder.finish().unwrap();
    (folder, path)
}

fn options(source: Source) -> Options {
    Options { source, frames: 4, memory: Bytes::new(1 << 30), repeat: true, depth: 5, shape: None }
}

/// Number of the next frame, which must exist and be intact.
fn next(ring: &mut Ring) -> u64 {
    ring.wait(&GOES_ON).unwrap();
    let frame = ring.next_frame().expect("the ring has no end");
    assert!(!frame.repeated);
    assert_eq!(frame.checksum, checksum::of_frame(frame.bytes));
    let stamp = synth::verify(&geometry(), frame.bytes).expect("the frame is stamped");
    assert!(stamp.sound);
    assert_eq!(stamp.number, frame.number);
    frame.number
}

#[test]
fn frames_come_in_their_order_again_and_again_from_wherever_they_are() {
    let (_folder, path) = store(6);
    for source in [Source::Cached, Source::Direct, Source::Mapped, Source::Memory] {
        let options = Options { frames: 9, ..options(source) };
        let mut ring = Ring::open(&path, Some(&geometry()), &options, &GOES_ON).unwrap();
        let numbers: Vec<_> = (0..20).map(|_| next(&mut ring)).collect();
        let expected: Vec<_> = (0..20).map(|at| 7 + at % 6).collect();
        assert_eq!(numbers, expected, "{source:?}");
        assert_eq!(ring.failure(), None);
    }
}

#[test]
fn a_ring_ends_with_its_store() {
    let (_folder, path) = store(6);
    for source in [Source::Cached, Source::Memory] {
        let options = Options { frames: 8, repeat: false, ..options(source) };
        let mut ring = Ring::open(&path, None, &options, &GOES_ON).unwrap();
        for number in 7..13 {
            assert_eq!(next(&mut ring), number);
        }
        ring.wait(&GOES_ON).unwrap();
        assert_eq!(ring.advance(), Advance::Ended);
        assert_eq!(ring.current().number, 12);
        assert!(ring.next_frame().is_none());
    }
}

#[test]
fn a_starved_sender_repeats_the_last_frame_and_it_is_counted() {
    let (_folder, path) = store(6);
    // After the first four frames the storage needs 100 ms for each.
    let shape = Shape { rate: "100 Mbit/s".parse().unwrap(), latency: Duration::ZERO, later: None };
    let options = Options { shape: Some(shape), ..options(Source::Cached) };
    let mut ring = Ring::open(&path, None, &options, &GOES_ON).unwrap();
    let mut meter = ring.meter();
    meter.look(Time::from_secs(1));
    for number in 7..11 {
        assert_eq!(ring.advance(), Advance::New);
        assert_eq!(ring.current().number, number);
    }
    // A frame takes 100 ms, and four advances take no time.
    assert!(matches!(ring.wait(&AtomicBool::new(true)), Err(Error::Stopped)));
    assert_eq!(ring.advance(), Advance::Repeated);
    let frame = ring.current();
    assert_eq!((frame.number, frame.repeated), (10, true));
    let second = meter.look(Time::from_secs(2));
    assert_eq!((second.repeats, second.repeats_all, second.handed_all), (1, 1, 5));
    assert_eq!(second.waiting, 0);
    assert_eq!(second.send_bps, Some(5.0 * geometry().frame_bytes() as f64 * 8.0));
    assert_eq!(next(&mut ring), 11, "frames are not skipped");
}

#[test]
fn an_emulated_storage_keeps_its_rate() {
    let (_folder, path) = store(6);
    let shape =
        Shape { rate: "2 Gbit/s".parse().unwrap(), latency: Duration::from_millis(2), later: None };
    let options = Options { shape: Some(shape), ..options(Source::Cached) };
    let mut ring = Ring::open(&path, None, &options, &GOES_ON).unwrap();
    let mut meter = ring.meter();
    let before = clock::monotonic();
    meter.look(before);
    for _ in 0..24 {
        next(&mut ring);
    }
    let second = meter.look(clock::monotonic());
    // The ring was full and no reads were in flight; at least 20 of 24 frames were read meanwhile.
    let read = second.read_bps.unwrap();
    assert!(read < 2.001e9, "{read}");
    let elapsed: Span = clock::monotonic().saturating_since(before).into();
    assert!(elapsed.as_secs_f64() > 20.0 * 1.3e6 * 8.0 / 2e9 * 0.9, "{elapsed:?}");
}

#[test]
fn a_meter_accounts_for_every_slot() {
    let (_folder, path) = store(6);
    let mut ring = Ring::open(&path, None, &options(Source::Cached), &GOES_ON).unwrap();
    let mut meter = ring.meter();
    let full = meter.look(Time::from_secs(1));
    assert_eq!((full.free, full.reading, full.waiting), (0, 0, 4));
    assert_eq!((full.read_bps, full.send_bps), (None, None));
    ring.advance();
    let first = meter.look(Time::from_secs(2));
    assert_eq!((first.free, first.waiting), (0, 3), "the one being sent is not free");
    let rate = first.send_bps.unwrap();
    assert_eq!(rate, geometry().frame_bytes() as f64 * 8.0);
}

#[test]
fn the_ring_is_bounded_by_memory_and_reports_it() {
    let (_folder, path) = store(6);
    let slot = Header::new(geometry(), Content::Picture).slot_bytes() as u64;
    let memory = Bytes::new(slot * 3 + 5);
    let options = Options { frames: 600, memory, ..options(Source::Cached) };
    let ring = Ring::open(&path, None, &options, &GOES_ON).unwrap();
    assert_eq!(ring.bound(), Bound { frames: 3, asked: 600, bytes: slot * 3 });
    let little = Options { memory: Bytes::new(slot * 2), ..options };
    let error = Ring::open(&path, None, &little, &GOES_ON).unwrap_err();
    assert!(matches!(error, Error::Small { frames: 2, .. }), "{error}");
}

#[test]
fn a_store_that_is_cut_under_way_ends_the_reader_with_the_reason() {
    for source in [Source::Cached, Source::Mapped] {
        let (_folder, path) = store(6);
        let mut ring = Ring::open(&path, None, &options(source), &GOES_ON).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
        let error = loop {
            if let Err(error) = ring.wait(&GOES_ON) {
                break error.to_string();
            }
            assert_ne!(ring.advance(), Advance::Ended);
        };
        assert!(error.contains("the file ends before it should"), "{error}");
        let last = ring.current().number;
        assert_eq!(ring.advance(), Advance::Ended, "what was read has been handed over");
        assert_eq!(ring.current().number, last, "the last frame stays");
        assert_eq!(ring.meter().failure(), ring.failure());
        assert!(ring.failure().unwrap().contains("the reader has ended"));
    }
}

#[test]
fn waiting_for_a_full_ring_can_be_stopped() {
    let (_folder, path) = store(6);
    // The first frame would take minutes.
    let shape =
        Some(Shape { rate: "100 kbit/s".parse().unwrap(), latency: Duration::ZERO, later: None });
    let stop = AtomicBool::new(false);
    let options = Options { shape, ..options(Source::Cached) };
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| Ring::open(&path, None, &options, &stop).unwrap_err());
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(opening.join().unwrap(), Error::Stopped));
    });
    for source in [Source::Memory, Source::Cached] {
        let options = Options { source, shape, ..options };
        assert!(matches!(Ring::open(&path, None, &options, &stop), Err(Error::Stopped)));
    }
    let header = Header::new(geometry(), Content::Picture);
    let synthetic = Ring::synthetic(&header, 3, &options, &stop);
    assert!(matches!(synthetic, Err(Error::Stopped)));
}

#[test]
fn a_store_of_other_pictures_is_refused() {
    let (_folder, path) = store(1);
    let error =
        Ring::open(&path, Some(&Geometry::HD), &options(Source::Cached), &GOES_ON).unwrap_err();
    assert!(error.to_string().contains("found 960x540"), "{error}");
}

#[test]
fn a_storage_without_a_rate_is_refused() {
    let shape = Shape { rate: "0 bit/s".parse().unwrap(), latency: Duration::ZERO, later: None };
    let options = Options { shape: Some(shape), ..options(Source::Cached) };
    let error = Ring::open("nowhere".as_ref(), None, &options, &GOES_ON).unwrap_err();
    assert_eq!(error.to_string(), "storage rate: expected more than 0 bit/s, found 0");
}

#[test]
fn synthetic_frames_need_no_store() {
    let header = Header { part: 2, parts: 8, ..Header::new(geometry(), Content::Picture) };
    let mut ring = Ring::synthetic(&header, 3, &options(Source::Memory), &GOES_ON).unwrap();
    let numbers: Vec<_> = (0..5).map(|_| next(&mut ring)).collect();
    assert_eq!(numbers, [0, 1, 2, 0, 1]);
}

/// A ring that is opened in the middle of its store shows the frame of each position, whatever it is filled from;
/// a sender that skipped some gets the one of its time.
#[test]
fn the_position_determines_the_frame() {
    let (_folder, path) = store(10);
    for source in [Source::Cached, Source::Mapped, Source::Memory] {
        let options = Options { repeat: true, frames: 10, ..options(source) };
        let mut ring = Ring::open_at(&path, None, &options, 27, &GOES_ON).unwrap();
        for position in [0, 1, 5, 6, 19] {
            while ring.show(position) == Advance::Repeated {
                std::thread::yield_now();
            }
            let shown = ring.current();
            assert_eq!(
                (shown.number, shown.repeated),
                (7 + (27 + position) % 10, false),
                "{source:?}"
            );
            assert_eq!(checksum::of_frame(shown.bytes), shown.checksum);
        }
    }
    let once = Options { repeat: false, ..options(Source::Cached) };
    let error = Ring::open_at(&path, None, &once, 10, &GOES_ON).unwrap_err();
    assert!(error.to_string().contains("has ended before frame 10"), "{error}");
    let mut ring = Ring::open_at(&path, None, &once, 8, &GOES_ON).unwrap();
    assert_eq!(ring.show(2), Advance::Ended, "the store has two frames from there on");
}
