//! Real video: what the player saves, and what the origin serves, ffmpeg decodes without a word.
//!
//! Without ffmpeg these tests report that and pass.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;
use suiro_record::Reader;
use suiro_record::tables::{AccessRow, FlowRow, FrameRow, QuicRow};
use suiro_record::words::{RequestKind, Track, Transport};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;

use crate::common::{job, play, plays_near_its_latency_or_stalls, requests, states};
use suiro_http::flows::Records;
use suiro_http::origin::{self, ChunkSpec, OriginJob, Secure};
use suiro_http::{Clock, Url};
use suiro_media::spec::{Format, Rung, Source};
use suiro_media::{Ffmpeg, MediaSpec, Package};
use suiro_scenario::{Cmcd, Declares, HlsRungs, HttpVersion, Mode, Protocol, QuicCongestion};
use suiro_units::{BitRate, Duration, Time};
use tokio::process::Command;
use tokio::sync::oneshot;

const FPS: u64 = 30;
/// A short segment, so that little time holds many.
const HALF: Duration = Duration::from_millis(500);

pub fn ffmpeg() -> Option<Ffmpeg> {
    Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()
}

/// Two seconds of synthetic video in two rungs, with sound; made once and kept.
pub fn package(format: Format, segment: Duration) -> Package {
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

/// An origin on loopback; on demand with this many seconds.
pub fn origin_job(
    package: &Package,
    mode: Mode,
    seconds: u64,
    chunks: Option<ChunkSpec>,
) -> OriginJob {
    OriginJob {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        congestion: None,
        secure: None,
        package: package.folder.clone(),
        mode,
        window: Duration::from_secs(8),
        length: Duration::from_secs(seconds),
        hls_rungs: HlsRungs::All,
        declares: Declares::Peak,
        top: None,
        chunks,
        per_address: None,
        cmsd: None,
        records: None,
    }
}

/// An origin of a package.
pub struct Served {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<origin::Counts, origin::OriginError>>,
}

impl Served {
    async fn start(package: &Package, mode: Mode, seconds: u64, clock: Clock) -> Self {
        Self::start_with(package, mode, seconds, clock, None).await
    }

    async fn start_with(
        package: &Package,
        mode: Mode,
        seconds: u64,
        clock: Clock,
        chunks: Option<ChunkSpec>,
    ) -> Self {
        Self::start_job(origin_job(package, mode, seconds, chunks), clock).await
    }

    pub async fn start_job(job: OriginJob, clock: Clock) -> Self {
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
        let counts = self.end().await;
        assert_eq!(counts.refused, 0, "{counts:?}");
    }

    /// Stops it, whatever it has refused.
    pub async fn end(self) -> origin::Counts {
        drop(self.stop);
        self.task.await.expect("no panic").expect("it served")
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

/// What an origin sends of one path: each piece and when it came.
async fn pieces(address: SocketAddr, clock: Clock, path: &str) -> (u16, Vec<(Time, Bytes)>) {
    let host = address.ip().to_string();
    let stream = suiro_http::net::connect(&host, address.port(), None).await.unwrap();
    let (mut sender, driver) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let request = Request::get(path).header("host", "origin").body(Empty::<Bytes>::new()).unwrap();
    let (head, mut body) = sender.send_request(request).await.unwrap().into_parts();
    let mut found = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.unwrap().into_data() {
            found.push((clock.now(), data));
        }
    }
    (head.status.as_u16(), found)
}

fn whole(pieces: &[(Time, Bytes)]) -> Vec<u8> {
    pieces.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect()
}

/// A segment in progress comes chunk by chunk, none before its last frame has been captured; parts are the same bytes.
#[tokio::test]
async fn a_segment_is_sent_while_it_is_captured() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let clock = Clock::from_now();
    let spec = ChunkSpec::new(Duration::from_millis(100), Some(Duration::from_millis(200)));
    let package = package(Format::Both, HALF);
    let served = Served::start_with(&package, Mode::Live, 0, clock, Some(spec)).await;
    // The stream began 8 s before the epoch, in whole milliseconds: segment 17 lasts from 0.5 s to 1 s.
    let fetch = |path: &'static str| pieces(served.address, clock, path);
    // A part is waited for while the one before it is captured, and not longer.
    let parts = async {
        let first = fetch("/v0/17.0.m4s").await;
        let middle = fetch("/v0/17.1.m4s").await;
        [first, middle, fetch("/v0/17.2.m4s").await]
    };
    let (segment, [first, middle, last], init) =
        tokio::join!(fetch("/v0/17.m4s"), parts, fetch("/v0/init.mp4"));
    assert_eq!([segment.0, first.0, middle.0, last.0], [200; 4]);
    let ends = suiro_media::mp4::ends(&whole(&segment.1)).unwrap();
    // 15 frames of 1∕30 s, three in a chunk; parts of two chunks.
    assert_eq!(ends.len(), 5);
    let mut read = 0;
    for (at, bytes) in &segment.1 {
        read += bytes.len();
        let there = ends.iter().filter(|end| **end <= read).count() as u64;
        // The epoch is cut to a millisecond.
        let captured = Time::from_millis(499 + 100 * there);
        assert!(*at >= captured, "{there} chunks at {at:?}");
    }
    let bytes = whole(&segment.1);
    assert_eq!(whole(&first.1), bytes[..ends[1]]);
    assert_eq!(whole(&middle.1), bytes[ends[1]..ends[3]]);
    assert_eq!(whole(&last.1), bytes[ends[3]..]);
    assert!(first.1[0].0 >= Time::from_millis(699) && last.1[0].0 >= Time::from_millis(999));
    // Again, now that all of it is there, and decoded.
    let again = fetch("/v0/17.m4s").await;
    assert_eq!(whole(&again.1), bytes);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("segment.mp4");
    std::fs::write(&file, [whole(&init.1), bytes].concat()).unwrap();
    assert_eq!(decode(&ffmpeg, &[], file.to_str().unwrap()).await, FPS / 2);
    served.stop().await;
}

/// ffmpeg knows no chunks, and plays them all the same.
#[tokio::test]
async fn another_client_plays_it_live_in_chunks() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let package = package(Format::Fmp4, Duration::from_secs(1));
    let spec = ChunkSpec::new(Duration::from_millis(100), None);
    let served = Served::start_with(&package, Mode::Live, 0, Clock::from_now(), Some(spec)).await;
    let url = format!("http://{}{}", served.address, origin::MPD_PATH);
    assert_eq!(decode(&ffmpeg, &["-t", "3"], &url).await, 3 * FPS, "{url}");
    served.end().await;
}

/// Our own player follows a segment in progress, or its parts, and keeps its target.
async fn is_played_near_the_edge(protocol: Protocol, http: HttpVersion, target_ms: u64) {
    let Some(_) = ffmpeg() else { return };
    let clock = Clock::from_now();
    let package = package(Format::Fmp4, Duration::from_secs(1));
    let spec = ChunkSpec::new(Duration::from_millis(100), Some(Duration::from_millis(200)));
    let dir = tempfile::tempdir().unwrap();
    let certificate = dir.path().join("certificate.der");
    let secure = http.is_secure().then(|| Secure {
        http,
        names: vec!["localhost".to_owned()],
        certificate: certificate.clone(),
        congestion: QuicCongestion::Cubic,
    });
    let folder = dir.path().join("origin");
    std::fs::create_dir(&folder).unwrap();
    let records = Records { endpoint: "origin".into(), dir: folder.clone(), clients: Vec::new() };
    // On every address, because `localhost` may be either.
    let listen = suiro_http::net::any_address(0);
    let (chunks, records) = (Some(spec), Some(records));
    let cmsd = Some("origin".to_owned());
    let served =
        OriginJob { listen, secure, records, cmsd, ..origin_job(&package, Mode::Live, 0, chunks) };
    let served = Served::start_job(served, clock).await;
    let mut job = job(served.address, protocol, dir.path());
    let (port, path) = (served.address.port(), job.url.target());
    job.url = match http.is_secure() {
        true => Url::parse_secure(&format!("https://localhost:{port}{path}")).unwrap(),
        false => Url::parse(&format!("http://localhost:{port}{path}")).unwrap(),
    };
    (job.http, job.certificate) = (http, certificate);
    job.cmcd = Some(match (http, protocol) {
        (HttpVersion::Http1, _) => Cmcd::Query,
        (HttpVersion::Http2, _) => Cmcd::Headers,
        (HttpVersion::Http3, Protocol::Dash) => Cmcd::HeadersV2,
        (HttpVersion::Http3, Protocol::Hls) => Cmcd::QueryV2,
    });
    job.target_latency = Some(Duration::from_millis(target_ms));
    let summary = play(&job, clock, StdDuration::from_secs(5)).await.unwrap();
    assert_eq!(summary.failure, None);
    let rows = requests(dir.path());
    assert!(rows.iter().all(|r| r.status.is_none_or(|status| status == 200)), "{rows:?}");
    let last = states(dir.path()).pop().unwrap();
    plays_near_its_latency_or_stalls(&summary, last.latency_ms.unwrap() - target_ms as f64);
    let frames: Vec<FrameRow> = Reader::read_all(dir.path()).unwrap();
    // Frames are received within a chunk or a part of their capture, and shown in order.
    let ages = frames
        .iter()
        .filter(|frame| frame.displayed_ns.is_some())
        .map(|frame| (frame.received_ns.unwrap() - frame.captured_ns.unwrap()) / 1_000_000);
    let ages: Vec<i64> = ages.skip(60).collect();
    let unit_ms = if protocol == Protocol::Dash { 100 } else { 200 };
    let late = ages.iter().filter(|age| **age > unit_ms + 100).count();
    assert!(ages.len() > 30 && late * 2 <= ages.len(), "{ages:?}");
    served.end().await;
    check_connections(http, dir.path(), &folder);
    check_told(http, protocol, dir.path(), &folder);
}

/// Player and origin have reported to each other (CMCD, CMSD), and the MPD's clock was asked.
fn check_told(http: HttpVersion, protocol: Protocol, player: &Path, origin: &Path) {
    let requests = requests(player);
    let access: Vec<AccessRow> = Reader::read_all(origin).unwrap();
    let version = if http == HttpVersion::Http3 { 2 } else { 1 };
    assert!(access.iter().all(|row| row.cmcd_version == Some(version)), "{access:?}");
    assert!(access.iter().all(|row| row.cmcd_error.is_none()), "{access:?}");
    assert!(access.iter().all(|row| !row.path.contains("CMCD")), "{access:?}");
    assert!(access.iter().all(|row| row.cmcd_session == access[0].cmcd_session), "{access:?}");
    let videos = access.iter().filter(|row| row.cmcd_object.as_deref() == Some("v"));
    let videos: Vec<_> = videos.collect();
    assert!(videos.len() > 3, "{access:?}");
    for row in &videos {
        let request = requests.iter().find(|r| r.url == row.path).expect("it was asked for");
        let asked = request.rung_bps.expect("of a rung") as f64;
        let said = row.cmcd_bitrate_bps.expect("a bit rate") as f64;
        assert!((asked - said).abs() <= 500.0 && row.cmcd_buffer_ms.is_some(), "{row:?}");
        assert_eq!(row.cmcd_latency_ms.is_some(), version == 2, "{row:?}");
        assert_eq!(row.cmcd_next.is_some(), protocol == Protocol::Dash, "{row:?}");
    }
    let last = requests.iter().rev().find(|row| row.done_ns.is_some()).expect("some have ended");
    assert!(last.cmsd_rtt_ms.is_some() && last.cmsd_delay_ms.is_some(), "{last:?}");
    assert_eq!(last.cmsd_throughput_bps.is_some(), http != HttpVersion::Http3, "{last:?}");
    let clocks = requests.iter().filter(|row| row.kind == RequestKind::Clock);
    let offsets: Vec<_> = clocks.map(|row| row.clock_offset_ns).collect();
    let expected = if protocol == Protocol::Dash { vec![Some(0)] } else { Vec::new() };
    assert_eq!(offsets, expected);
}

/// Over HTTP/2 and HTTP/3, manifest, playlists and segments share one connection, and QUIC has its samples.
fn check_connections(http: HttpVersion, player: &Path, origin: &Path) {
    let flows: Vec<FlowRow> = Reader::read_all(player).unwrap();
    let transport = match http {
        HttpVersion::Http3 => Transport::Udp,
        HttpVersion::Http1 | HttpVersion::Http2 => Transport::Tcp,
    };
    assert!(flows.iter().all(|flow| flow.protocol == transport), "{flows:?}");
    assert_eq!(flows.len() == 1, http.is_secure(), "{flows:?}");
    let requests = requests(player);
    let access: Vec<AccessRow> = Reader::read_all(origin).unwrap();
    assert!(requests.len().abs_diff(access.len()) <= 4, "{} {}", requests.len(), access.len());
    assert!(requests.iter().all(|row| row.urgency.is_some() == http.is_secure()), "{requests:?}");
    for row in &access {
        let asked = requests.iter().find(|asked| asked.url == row.path).expect("it was asked for");
        assert_eq!((row.urgency, row.incremental), (asked.urgency, asked.incremental), "{row:?}");
    }
    if http == HttpVersion::Http3 {
        let samples: Vec<QuicRow> = Reader::read_all(origin).unwrap();
        // One each 10 ms, on a machine that keeps up.
        assert!(samples.len() > 50, "{}", samples.len());
        let last = samples.last().expect("more than 50");
        let bodies: i64 = requests.iter().map(|row| row.body_bytes).sum();
        let sent = last.sent_bytes.expect("an open connection");
        assert!(sent > bodies.cast_unsigned() / 2, "{sent} of {bodies}");
    }
}

#[tokio::test]
async fn dash_is_played_near_the_edge() {
    is_played_near_the_edge(Protocol::Dash, HttpVersion::Http1, 500).await;
}

#[tokio::test]
async fn hls_is_played_near_the_edge() {
    is_played_near_the_edge(Protocol::Hls, HttpVersion::Http1, 700).await;
}

#[tokio::test]
async fn dash_is_played_near_the_edge_over_http2() {
    is_played_near_the_edge(Protocol::Dash, HttpVersion::Http2, 500).await;
}

#[tokio::test]
async fn hls_is_played_near_the_edge_over_http2() {
    is_played_near_the_edge(Protocol::Hls, HttpVersion::Http2, 700).await;
}

#[tokio::test]
async fn dash_is_played_near_the_edge_over_http3() {
    is_played_near_the_edge(Protocol::Dash, HttpVersion::Http3, 500).await;
}

#[tokio::test]
async fn hls_is_played_near_the_edge_over_http3() {
    is_played_near_the_edge(Protocol::Hls, HttpVersion::Http3, 700).await;
}
