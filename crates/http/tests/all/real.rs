//! Real video: what the player saves, and what the origin serves, ffmpeg decodes without a word.
//!
//! Without ffmpeg these tests say so and pass.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;
use suiro_record::words::{RequestKind, Track};

use crate::common::{job, play, requests};
use suiro_http::Clock;
use suiro_http::origin::{self, OriginJob};
use suiro_media::spec::{Format, Rung, Source};
use suiro_media::{Ffmpeg, MediaSpec, Package};
use suiro_scenario::{HlsRungs, Mode, Protocol};
use suiro_units::{BitRate, Duration};
use tokio::process::Command;
use tokio::sync::oneshot;

const FPS: u64 = 30;
/// A short segment, so that little time holds many.
const HALF: Duration = Duration::from_millis(500);

fn ffmpeg() -> Option<Ffmpeg> {
    Ffmpeg::locate().inspect_err(|reason| eprintln!("skipped: {reason}")).ok()
}

/// Two seconds of synthetic video in two rungs, with sound; made once and kept.
fn package(format: Format, segment: Duration) -> Package {
    let rung = |kbps, height| Rung {
        name: None,
        bitrate: BitRate::from_kbps(kbps),
        width: None,
        height,
        fps: None,
    };
    let spec = MediaSpec {
        ladder: vec![rung(250, 144), rung(700, 240)],
        segment,
        length: Duration::from_secs(2),
        format,
        ..MediaSpec::new(Source::Synthetic)
    };
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("media");
    std::fs::create_dir_all(&cache).expect("a folder for media");
    suiro_media::prepare(&spec, &cache, &mut |_, _| {}).expect("ffmpeg makes the package")
}

/// An origin of a package.
struct Served {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<origin::Counts, origin::OriginError>>,
}

impl Served {
    async fn start(package: &Package, mode: Mode, seconds: u64, clock: Clock) -> Self {
        let job = OriginJob {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            congestion: None,
            package: package.folder.clone(),
            mode,
            window: Duration::from_secs(8),
            length: Duration::from_secs(seconds),
            hls_rungs: HlsRungs::All,
            top: None,
            per_address: None,
            records: None,
        };
        let (stop, stopped) = oneshot::channel();
        let (told, ready) = oneshot::channel();
        let task = tokio::spawn(async move {
            let ready = |address| told.send(address).expect("the test waits");
            origin::run(&job, clock, ready, async { drop(stopped.await) }).await
        });
        let address = ready.await.expect("the origin serves");
        Self { address, stop, task }
    }

    async fn stop(self) {
        drop(self.stop);
        let counts = self.task.await.expect("no panic").expect("it served");
        assert_eq!(counts.refused, 0, "{counts:?}");
    }
}

/// Decodes an input to its end and returns the number of frames. ffmpeg must not complain.
async fn decode(ffmpeg: &Ffmpeg, arguments: &[&str], input: &str) -> u64 {
    let running = Command::new(ffmpeg.path())
        .args(["-nostdin", "-hide_banner", "-loglevel", "warning", "-progress", "pipe:1"])
        .args(arguments)
        .args(["-i", input, "-f", "null", "-"])
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(StdDuration::from_secs(60), running).await;
    let output = output.expect("ffmpeg ends").expect("ffmpeg runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{input}: {complaints}");
    let told = String::from_utf8_lossy(&output.stdout);
    let frames = told.lines().filter_map(|line| line.strip_prefix("frame=")).next_back();
    frames.map_or(0, |frames| frames.trim().parse().expect("a number of frames"))
}

fn of_video(saved: &[PathBuf]) -> impl Iterator<Item = &PathBuf> {
    saved.iter().filter(|path| path.to_string_lossy().contains(".video."))
}

async fn what_was_played_decodes(protocol: Protocol, format: Format, mode: Mode) {
    let Some(ffmpeg) = ffmpeg() else { return };
    let clock = Clock::from_now();
    let served = Served::start(&package(format, HALF), mode, 5, clock).await;
    let dir = tempfile::tempdir().unwrap();
    let job = job(served.address, protocol, dir.path());
    let summary = play(&job, clock, StdDuration::from_secs(6)).await.unwrap();
    assert_eq!(summary.failure, None);
    served.stop().await;
    let mut pictures = 0;
    for file in of_video(&summary.saved) {
        pictures += decode(&ffmpeg, &[], file.to_str().unwrap()).await;
    }
    let fetched = requests(dir.path());
    let segments = fetched
        .iter()
        .filter(|r| r.kind == RequestKind::Segment && r.track == Some(Track::Video))
        .filter(|r| r.done_ns.is_some());
    // Every segment is half a second of frames, and none is missing in the files.
    assert_eq!(pictures, segments.clone().count() as u64 * FPS / 2);
    // Both rungs were played, so the switch between them is part of it.
    let mut rungs: Vec<_> = segments.map(|row| row.rung_bps).collect();
    rungs.sort_unstable();
    rungs.dedup();
    assert_eq!(rungs.len(), 2, "{rungs:?}");
    for file in summary.saved.iter().filter(|path| path.to_string_lossy().contains(".audio.")) {
        decode(&ffmpeg, &[], file.to_str().unwrap()).await;
    }
    if mode == Mode::Vod {
        // Five seconds: the package of two seconds, two and a half times.
        assert_eq!(pictures, 5 * FPS);
    }
}

#[tokio::test]
async fn dash_on_demand() {
    what_was_played_decodes(Protocol::Dash, Format::Fmp4, Mode::Vod).await;
}

#[tokio::test]
async fn dash_live() {
    what_was_played_decodes(Protocol::Dash, Format::Fmp4, Mode::Live).await;
}

#[tokio::test]
async fn hls_in_transport_streams_on_demand() {
    what_was_played_decodes(Protocol::Hls, Format::Ts, Mode::Vod).await;
}

#[tokio::test]
async fn hls_in_mp4_live() {
    what_was_played_decodes(Protocol::Hls, Format::Fmp4, Mode::Live).await;
}

/// ffmpeg as a client of somebody else's making.
#[tokio::test]
async fn another_client_plays_it_on_demand() {
    let Some(ffmpeg) = ffmpeg() else { return };
    for (format, path) in [
        (Format::Fmp4, origin::MPD_PATH),
        (Format::Fmp4, origin::MULTIVARIANT_PATH),
        (Format::Ts, origin::MULTIVARIANT_PATH),
    ] {
        let served = Served::start(&package(format, HALF), Mode::Vod, 5, Clock::from_now()).await;
        let url = format!("http://{}{path}", served.address);
        assert_eq!(decode(&ffmpeg, &[], &url).await, 5 * FPS, "{url}");
        served.stop().await;
    }
}

#[tokio::test]
async fn another_client_plays_it_live() {
    let Some(ffmpeg) = ffmpeg() else { return };
    for (format, path) in
        [(Format::Fmp4, origin::MPD_PATH), (Format::Ts, origin::MULTIVARIANT_PATH)]
    {
        // ffmpeg finds its place in a renewed MPD to the second only: segments are of one second.
        let package = package(format, Duration::from_secs(1));
        let served = Served::start(&package, Mode::Live, 0, Clock::from_now()).await;
        let url = format!("http://{}{path}", served.address);
        assert_eq!(decode(&ffmpeg, &["-t", "5"], &url).await, 5 * FPS, "{url}");
        served.stop().await;
    }
}
