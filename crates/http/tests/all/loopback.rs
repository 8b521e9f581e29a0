//! A player plays from an origin, over loopback.

use std::time::Duration as StdDuration;
use suiro_record::words::{RequestKind, Track};

use crate::common::{Origin, job, play, plays_near_its_latency_or_stalls, requests, states, vod};
use suiro_abr::Algorithm;
use suiro_http::Clock;
use suiro_http::origin::catalogue::Container;
use suiro_http::origin::timeline::Schedule;
use suiro_http::player::PlayerJob;
use suiro_record::tables::RequestRow;
use suiro_scenario::{Download, Protocol};
use suiro_units::{Bytes, Duration, Time};

const LONG: StdDuration = StdDuration::from_secs(20);

/// The pieces of a saved file: what stands before each semicolon.
fn pieces(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let pieces = text.split(';').map(|piece| piece.trim_start_matches('.').to_owned());
    pieces.filter(|piece| !piece.is_empty()).collect()
}

async fn plays_all_of_it(protocol: Protocol, container: Container) {
    let clock = Clock::from_now();
    let origin = Origin::start(vod(2), container, clock);
    let dir = tempfile::tempdir().unwrap();
    let summary = play(&job(origin.address, protocol, dir.path()), clock, LONG).await.unwrap();
    assert_eq!(summary.failure, None);
    let totals = summary.totals.unwrap();
    assert_eq!(totals.stalls, 0);
    // 2 s of media take 2 s, and what a busy machine adds.
    assert!((2.0..2.5).contains(&totals.playing.as_secs_f64()), "{totals:?}");

    let rows = requests(dir.path());
    assert!(rows.iter().all(|row| row.error.is_none() && row.status == Some(200)), "{rows:?}");
    let segments = |track: Track| {
        let of = rows.iter().filter(|r| r.kind == RequestKind::Segment && r.track == Some(track));
        of.map(|row| row.segment.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(segments(Track::Video), [0, 1, 2, 3]);
    // Loopback is fast: from the second on the higher rung is chosen.
    let video = |row: &&suiro_record::tables::RequestRow| {
        row.kind == RequestKind::Segment && row.track == Some(Track::Video)
    };
    let rungs: Vec<_> = rows.iter().filter(video).map(|row| row.rung_bps.unwrap()).collect();
    assert!(rungs[0] < rungs[1] && rungs[1..] == [rungs[1]; 3], "{rungs:?}");
    for row in rows.iter().filter(video) {
        assert!(row.t_ns < row.first_byte_ns.unwrap() && row.first_byte_ns <= row.done_ns);
    }
    // Each lane opens its connection with its first request, and keeps it.
    let opened = rows.iter().filter(|row| row.handshake_ns > Some(0)).count();
    let lanes = if container == Container::Fmp4 { 3 } else { 2 };
    assert_eq!(opened, lanes, "{rows:?}");
    for row in &rows {
        let until = row.t_ns + row.handshake_ns.expect("ours reports it");
        assert!(Some(until) <= row.first_byte_ns, "{row:?}");
    }
    let counts = origin.stop().await;
    assert_eq!((counts.requests, counts.body_bytes), (summary.requests, summary.body_bytes));

    let names: Vec<_> =
        summary.saved.iter().map(|p| p.file_name().unwrap().to_str().unwrap()).collect();
    match container {
        Container::Fmp4 => {
            assert_eq!(segments(Track::Audio), [0, 1, 2, 3]);
            let of = |n: &str| pieces(&dir.path().join(format!("played.player.{n}.mp4")));
            assert_eq!(of("video.0001"), ["init 0 0", "0 0 0"]);
            assert_eq!(of("video.0002"), ["init 0 1", "0 1 1", "0 1 2", "0 1 3"]);
            assert_eq!(of("audio.0001"), ["init 1 0", "1 0 0", "1 0 1", "1 0 2", "1 0 3"]);
            assert_eq!(names.len(), 3);
        }
        Container::MpegTs => {
            assert_eq!(names, ["played.player.video.0001.ts", "played.player.video.0002.ts"]);
            assert_eq!(pieces(&summary.saved[0]), ["0 0 0"]);
            assert_eq!(pieces(&summary.saved[1]), ["0 1 1", "0 1 2", "0 1 3"]);
        }
    }
}

#[tokio::test]
async fn dash_on_demand() {
    plays_all_of_it(Protocol::Dash, Container::Fmp4).await;
}

#[tokio::test]
async fn hls_on_demand_in_mp4() {
    plays_all_of_it(Protocol::Hls, Container::Fmp4).await;
}

#[tokio::test]
async fn hls_on_demand_in_transport_streams() {
    plays_all_of_it(Protocol::Hls, Container::MpegTs).await;
}

/// Plays a live stream that began a while ago for some seconds.
async fn plays_live(protocol: Protocol, target_ms: u64) {
    let clock = Clock::from_now();
    let zero_unix_ns = clock.epoch_unix_ns() - 60_000_000_000;
    let window = Duration::from_secs(6);
    let origin = Origin::start(Schedule::Live { zero_unix_ns, window }, Container::Fmp4, clock);
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(origin.address, protocol, dir.path());
    job.target_latency = Some(Duration::from_millis(target_ms));
    let summary = play(&job, clock, StdDuration::from_secs(4)).await.unwrap();
    assert_eq!(summary.failure, None);
    let last = states(dir.path()).pop().unwrap();
    plays_near_its_latency_or_stalls(&summary, last.latency_ms.unwrap() - target_ms as f64);
    // As much is buffered as is captured and not played, less what is not whole yet.
    assert!(last.buffer_ms <= last.latency_ms, "{last:?}");

    let rows = requests(dir.path());
    assert!(rows.iter().all(|r| r.status.is_none_or(|status| status == 200)), "{rows:?}");
    let numbers: Vec<_> = rows
        .iter()
        .filter(|r| r.kind == RequestKind::Segment && r.track == Some(Track::Video))
        .map(|r| r.segment.unwrap())
        .collect();
    // Every segment once, in order, and none before it was captured.
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    assert!(numbers.len() >= 8, "{numbers:?}");
    // Manifests are fetched about once per segment, not all the time.
    let manifests = rows.iter().filter(|r| r.kind == RequestKind::Manifest).count();
    assert!(manifests <= 2 * numbers.len() + 4, "{manifests} for {} segments", numbers.len());
    origin.stop().await;
}

#[tokio::test]
async fn dash_live() {
    plays_live(Protocol::Dash, 1500).await;
}

#[tokio::test]
async fn hls_live() {
    // A target duration is a whole second: RFC 8216 §4.3.3.1.
    plays_live(Protocol::Hls, 3000).await;
}

#[tokio::test]
async fn begins_at_its_time_and_stops_when_told() {
    let clock = Clock::from_now();
    let origin = Origin::start(vod(60), Container::Fmp4, clock);
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(origin.address, Protocol::Dash, dir.path());
    job.start = Time::from_millis(300);
    let summary = play(&job, clock, StdDuration::from_millis(1300)).await.unwrap();
    let first = requests(dir.path()).first().unwrap().t_ns;
    assert!((300_000_000..800_000_000).contains(&first), "{first}");
    // The buffer is full, and no more than full.
    let fullest = states(dir.path()).iter().filter_map(|row| row.buffer_ms).fold(0.0, f64::max);
    assert!((3500.0..=4000.0).contains(&fullest), "{fullest}");
    let playing = summary.totals.unwrap().playing.as_secs_f64();
    assert!((0.4..1.1).contains(&playing), "{playing}");
    // A row of the state at least every 100 ms, and what a busy machine adds.
    let times: Vec<_> = states(dir.path()).iter().map(|row| row.t_ns).collect();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest < 400_000_000, "{longest}");
    origin.stop().await;
}

#[tokio::test]
async fn a_stream_is_read_no_faster_than_the_buffer_has_room() {
    let clock = Clock::from_now();
    let origin = Origin::start(vod(2), Container::Fmp4, clock);
    let dir = tempfile::tempdir().unwrap();
    let job = PlayerJob {
        buffer: Duration::from_secs(1),
        download: Download::Stream,
        receive_buffer: Some(Bytes::new(16_000)),
        ..job(origin.address, Protocol::Dash, dir.path())
    };
    let summary = play(&job, clock, LONG).await.unwrap();
    assert_eq!((summary.failure, summary.totals.unwrap().stalls), (None, 0));
    let rows = requests(dir.path());
    let video =
        rows.iter().filter(|r| r.kind == RequestKind::Segment && r.track == Some(Track::Video));
    // Asked for when its beginning fits, half a second before its end does.
    let took = video.map(|row| row.done_ns.unwrap() - row.t_ns).max().unwrap();
    assert!(took > 300_000_000, "the longest took {took} ns");
    origin.stop().await;
}

/// With one segment of video in the buffer, whether playback has begun or waits for audio, the
/// throughput rule decides.
#[tokio::test]
async fn bola_rises_with_the_second_segment() {
    for container in [Container::Fmp4, Container::MpegTs] {
        for attempt in 0..16 {
            let clock = Clock::from_now();
            let origin = Origin::start(vod(2), container, clock);
            let dir = tempfile::tempdir().unwrap();
            let job = PlayerJob {
                algorithm: Algorithm::Bola,
                buffer: Duration::from_secs(60),
                ..job(origin.address, Protocol::Hls, dir.path())
            };
            play(&job, clock, StdDuration::from_millis(200)).await.unwrap();
            let rows = requests(dir.path());
            let video = |row: &&RequestRow| {
                row.kind == RequestKind::Segment && row.track == Some(Track::Video)
            };
            let rungs: Vec<_> =
                rows.iter().filter(video).map(|row| row.rung_bps.unwrap()).collect();
            assert!(rungs.len() >= 2, "{container:?}, attempt {attempt}: {rows:?}");
            assert!(rungs[0] < rungs[1], "{container:?}, attempt {attempt}: {rungs:?}");
            origin.stop().await;
        }
    }
}
