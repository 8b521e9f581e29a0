//! An origin and players in one process, over loopback.
//!
//! The bodies are patterns of bytes, not video: an origin and a player do not look into them. What
//! a decoder makes of real ones is tested in `real.rs`.

#![allow(dead_code, reason = "each test file uses a part")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use suiro_abr::{Algorithm, CatchUp, ChunkEstimator};
use suiro_endpoint::Pulse;
use suiro_http::Clock;
use suiro_http::Url;
use suiro_http::origin::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use suiro_http::origin::timeline::{Loop, Schedule};
use suiro_http::origin::{self, Counts, Media};
use suiro_http::player::{self, PlayerError, PlayerJob, Summary};
use suiro_http::presentation::TrackKind;
use suiro_record::Reader;
use suiro_record::tables::{PlayerRow, RequestRow};
use suiro_scenario::{Download, HlsRungs, HttpVersion, Protocol};
use suiro_units::{BitRate, Duration, Time};
use tokio::sync::oneshot;

/// Two rungs of video and one of audio, of pattern bytes.
pub struct Pattern {
    pub rates: Vec<Vec<u64>>,
    pub segment_ms: u64,
}

impl Media for Pattern {
    fn init(&self, track: usize, rung: usize) -> io::Result<Bytes> {
        Ok(format!("init {track} {rung};").into())
    }

    fn segment(&self, track: usize, rung: usize, number: u64) -> io::Result<Bytes> {
        let length = self.rates[track][rung] * self.segment_ms / 8000;
        let mut body = format!("{track} {rung} {number};").into_bytes();
        body.resize(usize::try_from(length).expect("a segment's length"), b'.');
        Ok(body.into())
    }
}

fn rung(id: &str, rate: u64, timeline: Loop) -> RungEntry {
    RungEntry {
        id: id.into(),
        rate: BitRate::from_bps(rate),
        declared: BitRate::from_bps(rate),
        codecs: if id.starts_with('v') { "avc1.64001f" } else { "mp4a.40.2" }.into(),
        size: id.starts_with('v').then_some((1280, 720)),
        frame_rate: id.starts_with('v').then_some((30, 1)),
        channels: (!id.starts_with('v')).then_some(2),
        mean_rate: BitRate::from_bps(rate),
        nominal: BitRate::from_bps(rate),
        timeline,
        chunks: None,
    }
}

/// Segments of 0.5 s (video, 15 of 30 frames) and about as much (audio, in frames of 1024).
pub fn catalogue(
    schedule: Schedule,
    container: Container,
    rates: [u64; 2],
) -> (Catalogue, Pattern) {
    let pictures = Loop::new(15_360, &[7680; 4]).expect("a loop");
    let sound = Loop::new(48_000, &[24_576, 23_552, 24_576, 23_296]).expect("a loop");
    let video = TrackEntry {
        kind: TrackKind::Video,
        container,
        rungs: vec![rung("v0", rates[0], pictures.clone()), rung("v1", rates[1], pictures)],
    };
    let audio =
        TrackEntry { kind: TrackKind::Audio, container, rungs: vec![rung("a", 96_000, sound)] };
    let tracks = match container {
        Container::Fmp4 => vec![video, audio],
        Container::MpegTs => vec![video],
    };
    let rates = tracks.iter().map(|t| t.rungs.iter().map(|r| r.rate.as_bps()).collect()).collect();
    let (hls_rungs, version) = (HlsRungs::All, "test".into());
    let catalogue = Catalogue { tracks, schedule, hls_rungs, version };
    (catalogue, Pattern { rates, segment_ms: 500 })
}

pub fn vod(seconds: u64) -> Schedule {
    Schedule::Vod { length: Duration::from_secs(seconds) }
}

/// A running origin.
pub struct Origin {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Counts>,
}

impl Origin {
    /// With rungs of 400 and 1200 kbit/s.
    pub fn start(schedule: Schedule, container: Container, clock: Clock) -> Self {
        Self::start_with(schedule, container, clock, [400_000, 1_200_000])
    }

    pub fn start_with(
        schedule: Schedule,
        container: Container,
        clock: Clock,
        rates: [u64; 2],
    ) -> Self {
        let (catalogue, media) = catalogue(schedule, container, rates);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = suiro_http::net::listen(address, None).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { drop(stopped.await) };
        let task =
            tokio::spawn(origin::serve(listener, catalogue, Arc::new(media), clock, stopped));
        Self { address, stop, task }
    }

    pub async fn stop(self) -> Counts {
        drop(self.stop);
        self.task.await.expect("the origin does not panic")
    }
}

/// Where an origin listens that has a thread of its own as long as the program runs. Segments of its rung `v1` have 2 MB:
/// half a second of the pattern at 32 Mbit/s.
pub fn start_apart() -> SocketAddr {
    let (told, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let rates = [400_000, 32_000_000];
            let origin = Origin::start_with(vod(600), Container::Fmp4, Clock::from_now(), rates);
            told.send(origin.address).expect("who started it waits");
            std::future::pending::<()>().await;
        });
    });
    address.recv().expect("the origin starts")
}

pub fn job(address: SocketAddr, protocol: Protocol, dir: &Path) -> PlayerJob {
    let path = match protocol {
        Protocol::Dash => origin::MPD_PATH,
        Protocol::Hls => origin::MULTIVARIANT_PATH,
    };
    PlayerJob {
        name: "player".into(),
        url: Url::parse(&format!("http://{address}{path}")).expect("a valid URL"),
        server: None,
        protocol,
        http: HttpVersion::Http1,
        certificate: dir.join("certificate.der"),
        algorithm: Algorithm::Throughput,
        chunks: ChunkEstimator::Bursts,
        buffer: Duration::from_secs(4),
        download: Download::Segment,
        receive_buffer: None,
        target_latency: None,
        catch_up: CatchUp::Steps,
        speed_change: None,
        max_drift: None,
        abandon: true,
        cmcd: None,
        early_data: false,
        save: true,
        dir: dir.into(),
        start: Time::ZERO,
        leave_at_end: true,
    }
}

/// Plays to the end, or for `most`.
pub async fn play(
    job: &PlayerJob,
    clock: Clock,
    most: std::time::Duration,
) -> Result<Summary, PlayerError> {
    player::run(job, &Pulse::new(clock), || {}, tokio::time::sleep(most)).await
}

pub fn requests(dir: &Path) -> Vec<RequestRow> {
    Reader::read_all(dir).expect("a table of requests")
}

pub fn states(dir: &Path) -> Vec<PlayerRow> {
    Reader::read_all(dir).expect("a table of the player")
}

/// Some seconds of live play, in the end this far from the target: far from it only after a stall, which a busy machine may
/// cost. On a machine in virtual time, the test `low_latency` of the program measures the latency and allows no stall.
pub fn plays_near_its_latency_or_stalls(summary: &Summary, off_ms: f64) {
    let totals = summary.totals.unwrap();
    assert!(totals.playing > Duration::from_secs(2), "{totals:?}");
    // It may still be catching up, at a speed that differs by a twentieth.
    assert!(off_ms.abs() <= 1000.0 || totals.stalls > 0, "{off_ms} {totals:?}");
}
