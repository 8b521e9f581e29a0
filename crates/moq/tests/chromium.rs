//! Chromium as publisher and viewer of Media over QUIC, through our relay on loopback: WebTransport, MoQT and H.264 for
//! real. Where Chromium, ffmpeg or an encoder is missing, these report that and pass.

mod common;

use std::path::Path;

use common::{FPS, client};
use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_media::live::FootageSpec;
use suiro_media::spec::Source;
use suiro_moq::chromium::{self, Camera, MoqError, MoqJob, Role};
use suiro_moq::{PublisherJob, ViewerJob, publish, relay, view};
use suiro_record::Reader;
use suiro_record::tables::{BrowserRow, FrameRow, MoqSessionRow, QuicRow};
use suiro_scenario::{BrowserCongestion, MoqStreams};
use suiro_units::{BitRate, Duration, Time};

const TOKEN: &str = "s3cret";
const VIEWER: &str = "screen";
/// Two seconds of video at 400 kbit/s.
const SAVED_BYTES: u64 = 100_000;

/// What is missing here is reported.
fn can_run() -> bool {
    let chromium = suiro_browser::chromium().inspect_err(suiro_units::skipped);
    common::has_ffmpeg() && chromium.is_ok()
}

fn footage() -> FootageSpec {
    let length = Duration::from_secs(1);
    FootageSpec { width: 320, height: 240, fps: FPS, length, ..FootageSpec::new(Source::Synthetic) }
}

fn browser(name: &str, role: Role, dir: &Path, port: u16, token: &str) -> MoqJob {
    MoqJob {
        name: name.to_owned(),
        role,
        relay: ("relay".to_owned(), "127.0.0.1".to_owned(), port),
        broadcast: "yard/camera".to_owned(),
        token: Some(token.to_owned()),
        draft: 18,
        congestion: BrowserCongestion::Throughput,
        dir: dir.to_owned(),
        start: Time::ZERO,
    }
}

fn saved_bytes(dir: &Path) -> u64 {
    dir.join(format!("received.{VIEWER}.h264")).metadata().map_or(0, |it| it.len())
}

/// Until the viewer has saved two seconds of video, however busy the machine is, for a minute at most.
async fn until_it_has_come(clock: Clock, dir: &Path) {
    let latest = clock.now() + Duration::from_secs(60);
    while clock.now() < latest && saved_bytes(dir) < SAVED_BYTES {
        clock.sleep_until(clock.now() + Duration::from_millis(100)).await;
    }
}

fn log(message: &str) {
    eprintln!("{message}");
}

fn check(dir: &Path, browser: &str) {
    let frames: Vec<FrameRow> = Reader::read_all(dir).unwrap();
    let of = frames.iter().filter(|row| &*row.endpoint == VIEWER);
    let shown: Vec<&FrameRow> = of.filter(|row| row.displayed_ns.is_some()).collect();
    // On a machine that may have other things to do.
    assert!(shown.len() >= 5, "{} of {} frames", shown.len(), frames.len());
    for row in &shown {
        let (captured, sent, received) = (row.captured_ns, row.sent_ns, row.received_ns);
        // A browser says when a frame was due, and that it waited for 0 ms if it left earlier.
        // Its clock is set by an exchange of messages, which a busy machine delays.
        let received_at_most = received.map(|at| at + 20_000_000);
        assert!(captured <= sent && sent <= received_at_most, "{row:?}");
        assert!(received <= row.displayed_ns, "{row:?}");
        assert!(received.unwrap() - captured.unwrap() < 3_000_000_000, "{row:?}");
    }
    let sessions: Vec<MoqSessionRow> = Reader::read_all(dir).unwrap();
    assert_eq!(sessions.len(), 4, "each from both ends");
    for session in &sessions {
        assert_eq!(session.version.as_deref(), Some("moq-transport-18"), "{session:?}");
    }
    let session = sessions.iter().find(|row| &*row.endpoint == browser).unwrap();
    assert_eq!(&*session.congestion, "throughput (Chromium)");
    let quic: Vec<QuicRow> = Reader::read_all(dir).unwrap();
    let rows: Vec<&QuicRow> = quic.iter().filter(|row| &*row.endpoint == browser).collect();
    let last = rows.last().expect("Chromium has statistics of WebTransport");
    assert!(last.min_rtt_ns.is_some() && last.cwnd_bytes.is_none(), "{last:?}");
    let counted: Vec<BrowserRow> = Reader::read_all(dir).unwrap();
    assert!(counted.iter().all(|row| &*row.endpoint == browser), "{counted:?}");
    let coded: u64 = counted.iter().map(|row| row.frames).sum();
    let keys: u64 = counted.iter().filter_map(|row| row.key_frames).sum();
    assert!(coded >= 5 && (1..=coded).contains(&keys), "{keys} of {coded}");
    assert!(counted.iter().any(|row| row.coding_ns > Duration::ZERO), "{counted:?}");
    assert!(saved_bytes(dir) > 1000);
}

#[tokio::test]
async fn a_browser_views_what_ours_publishes() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = common::relay(dir.path(), port, Some(TOKEN));
    let camera = PublisherJob {
        common: client("camera", dir.path(), port, Some(TOKEN), 18),
        camera: footage(),
        rates: vec![BitRate::from_kbps(400)],
        streams: MoqStreams::Frame,
        key_every: Duration::from_millis(500),
        follows: false,
        audio: None,
        data: None,
        deadline: None,
        pauses: Vec::new(),
    };
    let screen = browser(VIEWER, Role::Viewer { save: true }, dir.path(), port, TOKEN);
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let serves =
        relay::run(&job, clock, move || ready.send(()).unwrap(), async { drop(stop.await) });
    let others = async {
        is_ready.await.unwrap();
        let (started, starts) = tokio::sync::oneshot::channel();
        let watching = async {
            let stop = async {
                starts.await.unwrap();
                until_it_has_come(clock, dir.path()).await;
            };
            let ready = |_: &_| started.send(()).unwrap();
            chromium::run(&screen, (clock, log), ready, stop).await
        };
        let (seen, has_seen) = tokio::sync::oneshot::channel::<()>();
        let stop = async { drop(has_seen.await) };
        let (sending, watched) = tokio::join!(publish::run(&camera, clock, || (), stop), async {
            let watched = watching.await;
            drop(seen);
            watched
        });
        drop(done);
        sending.unwrap();
        watched
    };
    let (served, seen) = tokio::join!(serves, others);
    let seen = match seen {
        Err(busy @ MoqError::Behind { .. }) => {
            let machine = "this machine is too busy for a browser that decodes";
            suiro_units::skipped(&format!("{machine}: {busy}"));
            return;
        }
        seen => seen.unwrap(),
    };
    assert_eq!((served.unwrap().sessions, seen.set_up, seen.malformed), (2, true, 0));
    assert!(seen.pictures.0 >= 5 && seen.pictures.1 == 0, "{seen:?}");
    check(dir.path(), VIEWER);
}

async fn publishes(streams: MoqStreams) {
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let pulse = Pulse::new(clock);
    let job = common::relay(dir.path(), port, Some(TOKEN));
    let (rate, key_every) = (BitRate::from_kbps(400), Duration::from_millis(500));
    let pauses = Vec::new();
    let role = Role::Publisher(Camera { footage: footage(), rate, key_every, streams, pauses });
    let camera = browser("camera", role, dir.path(), port, TOKEN);
    let screen = ViewerJob {
        common: client(VIEWER, dir.path(), port, Some(TOKEN), 18),
        viewer: Default::default(),
        lip_sync: true,
        switches: false,
        save: true,
    };
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let serves =
        relay::run(&job, clock, move || ready.send(()).unwrap(), async { drop(stop.await) });
    let others = async {
        is_ready.await.unwrap();
        let (started, starts) = tokio::sync::oneshot::channel();
        let (seen, has_seen) = tokio::sync::oneshot::channel::<()>();
        let sending = async {
            let ready = |_: &_| started.send(()).unwrap();
            let stop = async { drop(has_seen.await) };
            chromium::run(&camera, (clock, log), ready, stop).await
        };
        let watching = async {
            // It says nothing if it fails, and why is in what it returns.
            starts.await.ok()?;
            let watched =
                view::run(&screen, &pulse, || (), until_it_has_come(clock, dir.path())).await;
            drop(seen);
            Some(watched)
        };
        let (sent, watched) = tokio::join!(sending, watching);
        drop(done);
        (sent, watched)
    };
    let (served, (sent, watched)) = tokio::join!(serves, others);
    let sent = match sent {
        Err(MoqError::Page(reason)) if reason.contains("no encoder") => {
            suiro_units::skipped(&reason);
            return;
        }
        sent => sent.unwrap(),
    };
    let watched = watched.expect("Chromium published").unwrap();
    assert_eq!((served.unwrap().sessions, sent.set_up, watched.malformed), (2, true, 0));
    check(dir.path(), "camera");
}

#[tokio::test]
async fn ours_views_what_a_browser_publishes() {
    if can_run() {
        publishes(MoqStreams::Frame).await;
        publishes(MoqStreams::Gop).await;
    }
}

#[tokio::test]
async fn a_browser_without_the_token_is_refused() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (clock, port) = (Clock::from_now(), free_port());
    let job = common::relay(dir.path(), port, Some(TOKEN));
    let screen = browser(VIEWER, Role::Viewer { save: false }, dir.path(), port, "wrong");
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let serves =
        relay::run(&job, clock, move || ready.send(()).unwrap(), async { drop(stop.await) });
    let others = async {
        is_ready.await.unwrap();
        let never = std::future::pending();
        let refused = chromium::run(&screen, (clock, log), |_| (), never).await;
        drop(done);
        refused.unwrap_err().to_string()
    };
    let (served, refused) = tokio::join!(serves, others);
    assert!(refused.contains("connecting to the relay"), "{refused}");
    let served = served.unwrap();
    assert_eq!((served.sessions, served.refused), (0, 1));
}
