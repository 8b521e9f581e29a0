//! The storage benchmark, on an emulated storage with a known rate.

use std::sync::atomic::AtomicBool;

use suiro_uncompressed::node::{Error, ReaderJob, Records, read};
use suiro_uncompressed::reader::{DEPTH, Options, Shape, Source};
use suiro_uncompressed::store::{Content, Header, Recorder};
use suiro_uncompressed::{Geometry, clock, synth};
use suiro_units::{BitRate, Bytes, Duration};

#[test]
fn sixty_frames_take_as_long_as_their_storage_needs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.frames");
    let geometry: Geometry = "320x180 4:2:2 10 bit 60000/1001".parse().unwrap();
    let header = Header::new(geometry, Content::Picture);
    let mut recorder = Recorder::create(&path, header).unwrap();
    let mut frame = vec![0; geometry.frame_bytes()];
    for number in 0..5 {
        synth::draw(&geometry, number, 0, &mut frame);
        recorder.write(&frame).unwrap();
    }
    recorder.finish().unwrap();
    // 60 slots in 0.25 s.
    let bits = 60 * 8 * header.slot_bytes() as u64;
    let shape =
        Some(Shape { rate: BitRate::from_bps(4 * bits), latency: Duration::ZERO, later: None });
    let (source, memory) = (Source::Cached, Bytes::new(1 << 30));
    let job = ReaderJob {
        stores: vec![(0, path.clone()), (7, path)],
        ring: Options { source, frames: 3, memory, repeat: true, depth: DEPTH, shape },
        begin: None,
        duration: Some(Duration::from_millis(800)),
        records: Records {
            endpoint: "r".to_owned(),
            dir: None,
            peer: None,
            epoch: clock::monotonic(),
        },
    };
    let totals = read(&job, |rings| assert_eq!(rings.len(), 2), &AtomicBool::new(false)).unwrap();
    assert_eq!(totals.iter().map(|total| total.stream).collect::<Vec<_>>(), [0, 7]);
    for total in totals {
        let times = total.times.unwrap();
        // An emulated storage is never faster than its rate; how much slower depends on this
        // machine.
        // At most DEPTH reads were in flight when the first group began.
        assert!(times.mean >= Duration::from_millis(150), "{times:?}");
        assert!(
            times.worst >= Duration::from_millis(240) && times.worst >= times.mean,
            "{times:?}"
        );
        assert!(total.frames >= 60 * times.groups && total.bytes > 0);
    }
    let job = ReaderJob { stores: vec![(3, "/nonexistent".into())], ..job };
    let error = read(&job, |_| (), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, Error::Frames { stream: 3, .. }), "{error}");
}
