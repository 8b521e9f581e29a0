use std::fs::OpenOptions;

use super::*;
use crate::geometry::{Depth, FrameRate, Sampling};
use crate::split::Split;
use crate::synth;

fn geometry() -> Geometry {
    Geometry::new((64, 48), Sampling::YCbCr422, Depth::Ten, FrameRate::P59_94).unwrap()
}

fn header() -> Header {
    Header {
        first: 100,
        split: Some(Split::Dg),
        part: 3,
        parts: 8,
        ..Header::new(geometry(), Content::Picture)
    }
}

fn frame(number: u64) -> Vec<u8> {
    let mut frame = vec![0; geometry().frame_bytes()];
    synth::draw(&geometry(), number, 3, &mut frame);
    frame
}

/// A store of `frames` frames in a folder of its own.
fn store(frames: u64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.frames");
    let mut recorder = Recorder::create(&path, header()).unwrap();
    for _ in 0..frames {
        recorder.write(&frame(recorder.next())).unwrap();
    }
    assert_eq!(recorder.finish().unwrap(), Recorded { path: path.clone(), frames, missing: 0 });
    (folder, path)
}

#[test]
fn frames_are_read_as_they_were_written() {
    let (_folder, path) = store(3);
    let store = Store::open(&path).unwrap().of(&geometry()).unwrap();
    assert_eq!(*store.header(), Header { frames: 3, ..header() });
    let mut slot = vec![0; store.header().slot_bytes()];
    for index in 0..3 {
        let trailer = store.read_verified(index, &mut slot).unwrap();
        assert_eq!(trailer.number, 100 + index);
        assert_eq!(slot[..geometry().frame_bytes()], frame(100 + index));
    }
    assert!(matches!(store.read(3, &mut slot), Err(Error::Truncated { whole: 3, .. })));
}

#[test]
fn slots_are_of_whole_pages() {
    assert_eq!(header().slot_bytes() % PAGE_BYTES, 0);
    assert_eq!(header().slot_offset(0), 4096);
    assert_eq!(Header::new(Geometry::HD, Content::Picture).slot_bytes(), 1266 * 4096);
    // A frame of whole pages minus a trailer does not need another page.
    let tight = Geometry::new((64, 1), Sampling::Rgb, Depth::Eight, FrameRate::P59_94).unwrap();
    assert_eq!(Header::new(tight, Content::Picture).slot_bytes(), 4096);
}

#[test]
fn a_truncated_store_reports_how_many_frames_are_complete() {
    let (_folder, path) = store(3);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(header().slot_offset(2) + 17).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, Error::Truncated { frames: 3, whole: 2, .. }), "{error}");
    assert_eq!(Store::open_damaged(&path).unwrap().header().frames, 2);
    let mut recorder = Recorder::append(&path).unwrap();
    assert_eq!(recorder.next(), 102);
    recorder.write(&frame(102)).unwrap();
    drop(recorder);
    let store = Store::open(&path).unwrap();
    let mut slot = vec![0; store.header().slot_bytes()];
    assert_eq!(store.read_verified(2, &mut slot).unwrap().number, 102);
}

#[test]
fn a_store_cut_while_it_is_open_is_truncated() {
    let (_folder, path) = store(3);
    let store = Store::open(&path).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
    let mut slot = vec![0; store.header().slot_bytes()];
    assert!(matches!(store.read(1, &mut slot), Err(Error::Truncated { whole: 1, .. })));
}

#[test]
fn a_damaged_frame_is_named() {
    use std::os::unix::fs::FileExt;

    let (_folder, path) = store(2);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"?", header().slot_offset(1) + 500).unwrap();
    let store = Store::open(&path).unwrap();
    let mut slot = vec![0; store.header().slot_bytes()];
    store.read_verified(0, &mut slot).unwrap();
    let error = store.read_verified(1, &mut slot).unwrap_err().to_string();
    assert!(error.ends_with("frame 1 is damaged: its checksum is wrong"), "{error}");
    file.write_all_at(b"?", header().slot_offset(2) - 32).unwrap();
    let error = store.read(1, &mut slot).unwrap_err().to_string();
    assert!(error.ends_with("its trailer is missing"), "{error}");
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    assert!(matches!(Store::open(&path), Err(Error::Io { doing: "cannot open", .. })));
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        match Store::open(&path).unwrap_err() {
            Error::Header { cause, .. } => cause,
            other => panic!("{other}"),
        }
    };
    assert_eq!(refused(b"short"), HeaderError::Short(5));
    assert_eq!(refused(&[0; PAGE_BYTES]), HeaderError::Magic);
    let mut page = header().encode();
    page[16] ^= 1;
    assert_eq!(refused(&page), HeaderError::Checksum);
    page[8] = 2;
    assert_eq!(refused(&page), HeaderError::Version(2));
    let (_folder, path) = store(1);
    let error = Store::open(&path).unwrap().of(&Geometry::HD).unwrap_err();
    assert!(matches!(error, Error::Geometry { .. }), "{error}");
    let (_folder, path) = self::store(0);
    assert!(matches!(Store::open(&path).unwrap().with_frames(), Err(Error::Empty { .. })));
}

/// With a corrected checksum, so that later checks are reached.
#[test]
fn a_header_that_contradicts_itself_is_refused() {
    let refused = |at: usize, value: u8| {
        let mut page = header().encode();
        page[at] = value;
        let sum = crate::checksum::of_frame(&page[..4088]);
        page[4088..].copy_from_slice(&sum.to_le_bytes());
        Header::decode(&page).unwrap_err()
    };
    assert_eq!(refused(12, 9), HeaderError::Field("content", 9));
    assert_eq!(refused(24, 3), HeaderError::Field("sampling", 3));
    assert_eq!(refused(28, 16), HeaderError::Field("depth", 16));
    assert!(matches!(refused(19, 255), HeaderError::Geometry(_)));
    assert!(matches!(refused(39, 255), HeaderError::Geometry(_)));
    assert_eq!(refused(40, 1), HeaderError::Field("frame size", 7681));
    assert!(matches!(refused(48, 1), HeaderError::Field("slot size", _)));
    assert!(matches!(refused(71, 1), HeaderError::Field("number of frames", _)));
    assert_eq!(refused(72, 8), HeaderError::Field("part", 8));
    assert_eq!(refused(80, 3), HeaderError::Field("split", 3));
}

/// What a receiver has to write if its link loses frames.
#[test]
fn a_recording_has_each_frame_at_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stream.frames");
    let mut recorder = Recorder::create_new(&path, header()).unwrap();
    let mut put = |number| recorder.put(number, &frame(number));
    assert!(put(700).unwrap());
    assert!(!put(699).unwrap(), "overtaken by the first");
    assert!(put(704).unwrap() && put(702).unwrap() && put(705).unwrap());
    let again = put(702).unwrap_err().to_string();
    assert!(again.ends_with("frame 702 cannot follow frame 705: the stream restarted"), "{again}");
    assert!(put(706).is_err(), "it has ended");
    assert_eq!(recorder.finish().unwrap(), Recorded { path: path.clone(), frames: 6, missing: 2 });
    let store = Store::open(&path).unwrap();
    assert_eq!((store.header().first, store.header().frames), (700, 6));
    let mut slot = vec![0; store.header().slot_bytes()];
    for (index, number) in (0..).zip(700..706) {
        match store.read_verified(index, &mut slot) {
            Ok(_) => assert_eq!(slot[..geometry().frame_bytes()], frame(number)),
            Err(error) => {
                assert!([701, 703].contains(&number), "{error}");
                assert!(matches!(error, Error::Missing { number: told, .. } if told == number));
            }
        }
    }
    let error = Recorder::create_new(&path, header()).unwrap_err();
    assert!(error.to_string().contains("cannot create"), "{error}");
}

#[test]
fn a_recording_ends_where_its_stream_jumps() {
    for jump in [GAP_MAX + 1, 0_u64.wrapping_sub(50)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stream.frames");
        let mut recorder = Recorder::create_new(&path, header()).unwrap();
        recorder.put(700, &frame(700)).unwrap();
        let error = recorder.put(701_u64.wrapping_add(jump), &frame(0)).unwrap_err();
        assert!(matches!(error, Error::Jump { frames: 1, .. }), "{error}");
    }
}

#[test]
fn a_full_disk_ends_the_store_and_keeps_complete_frames() {
    if !rustix::process::geteuid().is_root() {
        suiro_units::skipped("a small disk needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.frames");
    let on_small_disk = || {
        mount_small(folder.path());
        let mut recorder = Recorder::create(&path, header()).unwrap();
        let mut write = || recorder.write(&frame(recorder.next()));
        let error = (0..20).find_map(|_| write().err()).expect("the disk fills up first");
        assert!(matches!(error, Error::Full { frames: 7, .. }), "{error}");
        assert!(matches!(write(), Err(Error::Full { frames: 7, .. })), "it stays full");
        assert_eq!(recorder.finish().unwrap().frames, 7);
        let store = Store::open(&path).unwrap();
        let mut slot = vec![0; store.header().slot_bytes()];
        assert_eq!(store.read_verified(6, &mut slot).unwrap().number, 106);
    };
    std::thread::scope(|scope| scope.spawn(on_small_disk).join().unwrap());
}

/// Mounts a 64 KiB disk for this thread alone: room for a page and seven slots of two pages.
fn mount_small(folder: &std::path::Path) {
    use rustix::mount::{MountFlags, MountPropagationFlags as Propagation};

    // SAFETY: the thread shares nothing that its own namespace could break for others.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
    rustix::mount::mount_change("/", Propagation::PRIVATE | Propagation::REC).unwrap();
    rustix::mount::mount("small", folder, "tmpfs", MountFlags::empty(), Some(c"size=64k")).unwrap();
}

#[test]
#[should_panic(expected = "a frame is written completely")]
fn an_empty_frame_is_no_frame() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&folder.path().join("node.frames"), header()).unwrap();
    let _ = recorder.put(100, &[]);
}
