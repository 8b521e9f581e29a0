//! A feed of footage that the real ffmpeg makes: its settings change between two frames. Where there is no ffmpeg,
//! these report that and pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use suiro_media::Ffmpeg;
use suiro_media::live::{Decoder, Footage, FootageSpec, Picture, RATES};
use suiro_media::spec::Source;
use suiro_realtime::ladder::Rung;
use suiro_realtime::{Camera, Feed, Frame};
use suiro_units::{BitRate, Duration, Time};

const EPOCH_UNIX_NS: u64 = 1_800_000_000_000_000_000;

/// How far the camera may be ahead of the test: less than the frames that wait for a sender at most.
const AHEAD: u64 = 32;

/// A feed whose clock goes on by a frame with every look at it, but not far ahead of who takes them.
struct Filming {
    feed: Feed,
    taken: Arc<AtomicU64>,
}

impl Filming {
    async fn next(&mut self) -> Frame {
        let frame = self.feed.next().await.expect("the camera runs");
        self.taken.store(frame.number, Ordering::Relaxed);
        frame
    }

    /// The first frame from now on of which that holds.
    async fn find(&mut self, holds: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.next().await;
            if holds(&frame) {
                return frame;
            }
        }
    }
}

/// A camera of 320×240 pixels and 12 frames a second; `None` after saying that there is no ffmpeg.
fn film() -> Option<Filming> {
    film_at(Rung { size: (320, 240), fps: 12 })
}

/// The same, whose first frame is of that rung.
fn film_at(first: Rung) -> Option<Filming> {
    film_as(|camera| camera.beginning_at(first))
}

/// The same, whose camera does as it is asked.
fn film_as(asked: impl FnOnce(Camera) -> Camera) -> Option<Filming> {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
    let cache = tempfile::tempdir().unwrap();
    let length = Duration::from_secs(1);
    let source = FootageSpec::new(Source::Synthetic);
    let spec = FootageSpec { width: 320, height: 240, fps: 12, length, ..source };
    let footage = Footage::prepare(&ffmpeg, &spec, cache.path(), &mut |_, _| {}).unwrap();
    let (taken, looks) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let theirs = Arc::clone(&taken);
    let clock = move || {
        let most = theirs.load(Ordering::Relaxed) + AHEAD;
        let at = looks.load(Ordering::Relaxed).min(most);
        looks.store(at + 1, Ordering::Relaxed);
        Time::from_millis(at * 84)
    };
    let camera = asked(Camera::from(footage));
    let feed = camera.start(Time::ZERO, BitRate::from_kbps(400), EPOCH_UNIX_NS, clock).unwrap();
    Some(Filming { feed, taken })
}

#[tokio::test]
async fn a_feed_does_as_it_is_told() {
    let Some(mut film) = film() else { return };
    let first = film.next().await;
    assert_eq!((first.key, first.references), (true, None));
    assert_eq!((first.rate, first.size), (BitRate::from_kbps(400), (320, 240)));
    let second = film.next().await;
    assert_eq!((second.key, second.references), (false, Some(first.number)));
    assert!(second.captured > first.captured);
    film.feed.request_key_frame();
    let key = film.find(|frame| frame.key).await;
    assert_eq!((key.number > second.number, key.references), (true, None));
    film.feed.set_rate(BitRate::from_mbps(9000));
    film.find(|frame| frame.rate == *RATES.most()).await;
    film.feed.set_rate(BitRate::from_kbps(300));
    film.feed.set_size(160, 120).unwrap();
    let small = film.find(|frame| frame.size == (160, 120)).await;
    assert_eq!((small.key, small.rate), (true, BitRate::from_kbps(300)));
    let mut picture = Picture::new(16, 16).unwrap();
    assert!(Decoder::new().unwrap().decode(&small.data, &mut picture).unwrap());
    assert_eq!(picture.size(), (160, 120));
    let stamp = picture.read_stamp().expect("it bears a stamp");
    assert_eq!(u64::from(stamp.frame), small.number);
    let wall_ms = EPOCH_UNIX_NS / 1_000_000 + small.captured.as_nanos() / 1_000_000;
    assert_eq!(stamp.captured_ms, wall_ms);
    film.feed.stop().unwrap();
}

#[tokio::test]
async fn a_feed_gives_nothing_in_a_pause_and_then_a_key_frame() {
    let (from, to) = (Time::from_secs(1), Time::from_secs(2));
    let Some(mut film) = film_as(|camera| camera.pausing(vec![(from, to)])) else { return };
    assert!(film.next().await.captured < from);
    let after = film.find(|frame| frame.captured >= from).await;
    assert!(after.captured >= to, "{:?}", after.captured);
    assert_eq!((after.key, after.references), (true, None));
    assert!(!film.next().await.key);
    film.feed.stop().unwrap();
}

#[tokio::test]
async fn what_cannot_be_is_refused_and_changes_nothing() {
    let Some(mut film) = film() else { return };
    let refused = film.feed.set_size(640, 480).unwrap_err().to_string();
    assert!(refused.contains("no side longer than the camera's, 320×240"), "{refused}");
    assert_eq!(film.feed.camera_size(), (320, 240));
    // More than the camera has is what it has.
    film.feed.set_fps(99);
    let frame = film.find(|frame| frame.number > 2).await;
    assert_eq!(frame.size, (320, 240));
    film.feed.stop().unwrap();
}

#[tokio::test]
async fn a_smaller_picture_is_the_first_one_already() {
    let Some(mut film) = film_at(Rung { size: (160, 120), fps: 6 }) else { return };
    let (first, second) = (film.next().await, film.next().await);
    assert_eq!([first.size, second.size], [(160, 120); 2]);
    assert_eq!((first.key, second.key, second.number - first.number), (true, false, 2));
    film.feed.set_size(320, 240).unwrap();
    assert!(film.find(|frame| frame.size == (320, 240)).await.key);
    film.feed.stop().unwrap();
}
