//! Over loopback: a data track and sound next to the video, and datagrams. Where there is no ffmpeg for the camera, these
//! report that and pass. A viewer that changes between qualities is tested in virtual time, with the program.

mod common;

use std::path::Path;

use common::{beside, client, has_ffmpeg, publisher, relay, viewer};
use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_moq::{PublisherJob, ViewerJob, publish, view};
use suiro_moq::{Summary, data};
use suiro_record::Reader;
use suiro_record::tables::{AudioRow, FrameRow, MoqDataRow, MoqSessionRow};
use suiro_record::words::AudioFate;
use suiro_scenario::MoqStreams;
use suiro_units::{BitRate, Bytes, Duration};

/// A relay and a publisher, and a viewer for that long; what the viewer did.
async fn watch(
    dir: &Path,
    camera: impl FnOnce(PublisherJob) -> PublisherJob,
    screen: impl FnOnce(ViewerJob) -> ViewerJob,
    seconds: u64,
) -> Summary {
    let (clock, port) = (Clock::from_now(), free_port());
    let pulse = Pulse::new(clock);
    let camera = camera(publisher(client("camera", dir, port, None, 18), MoqStreams::Frame));
    let screen = screen(viewer(client("viewer", dir, port, None, 18)));
    let until = |seconds| clock.sleep_until(clock.now() + Duration::from_secs(seconds));
    let mut viewed = None;
    beside(&relay(dir, port, None), clock, || async {
        let (sent, seen) = tokio::join!(
            publish::run(&camera, clock, || (), until(seconds + 1)),
            view::run(&screen, &pulse, || (), until(seconds)),
        );
        sent.unwrap();
        viewed = Some(seen.unwrap());
    })
    .await;
    viewed.unwrap()
}

/// The row of the only session of an endpoint that is a client.
fn session(dir: &Path, endpoint: &str) -> MoqSessionRow {
    let sessions: Vec<MoqSessionRow> = Reader::read_all(dir).unwrap();
    sessions.into_iter().find(|row| &*row.endpoint == endpoint).unwrap()
}

fn shown(dir: &Path) -> Vec<FrameRow> {
    let frames: Vec<FrameRow> = Reader::read_all(dir).unwrap();
    frames.into_iter().filter(|row| row.displayed_ns.is_some()).collect()
}

#[tokio::test]
async fn a_data_track_is_received_beside_the_video() {
    if !has_ffmpeg() {
        return;
    }
    for format in [data::Format::Json, data::Format::Binary] {
        let dir = tempfile::tempdir().unwrap();
        let every = Duration::from_millis(50);
        let spec = data::Spec { format, every, size: Bytes::new(300), priority: 200 };
        let camera = |job| PublisherJob { data: Some(spec), ..job };
        let summary = watch(dir.path(), camera, |job| job, 4).await;
        assert_eq!(summary.malformed, 0);
        let mut rows: Vec<MoqDataRow> = Reader::read_all(dir.path()).unwrap();
        rows.sort_by_key(|row| row.number);
        // On a machine that may have other things to do.
        assert!(rows.len() >= 8, "{} objects", rows.len());
        let numbers: Vec<u64> = rows.iter().map(|row| row.number - rows[0].number).collect();
        assert_eq!(numbers, (0..rows.len() as u64).collect::<Vec<_>>(), "none is lost on loopback");
        for row in &rows {
            assert!(row.bytes == 300 && row.published_ns <= row.t_ns.as_nanos_i64(), "{row:?}");
        }
        assert!(shown(dir.path()).len() >= 4);
        assert_eq!(session(dir.path(), "camera").datagrams, Some(0));
    }
}

#[tokio::test]
async fn sound_is_played_beside_the_video() {
    if !has_ffmpeg() {
        return;
    }
    for streams in [MoqStreams::Frame, MoqStreams::Datagram] {
        let dir = tempfile::tempdir().unwrap();
        let audio = Some(BitRate::from_kbps(32));
        let camera = |job| PublisherJob { audio, streams, ..job };
        let summary = watch(dir.path(), camera, |job| job, 4).await;
        assert_eq!(summary.malformed, 0);
        let mut rows: Vec<AudioRow> = Reader::read_all(dir.path()).unwrap();
        rows.sort_by_key(|row| row.frame);
        // On a machine that may have other things to do.
        assert!(rows.len() >= 20, "{} frames", rows.len());
        let played = rows.iter().filter(|row| row.fate == AudioFate::Played);
        assert!(played.clone().count() > 0);
        for row in played {
            assert!(row.captured_ns < row.played_ns.map(|at| at.as_nanos_i64()), "{row:?}");
            assert_eq!(row.encoded_bytes, Some(80), "32 kbit/s");
        }
        assert!(rows.iter().all(|row| row.fate != AudioFate::Lost), "none is lost on loopback");
        assert!(shown(dir.path()).len() >= 4);
    }
}

#[tokio::test]
async fn frames_that_fit_go_by_datagram_and_the_others_by_stream() {
    if !has_ffmpeg() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (streams, follows) = (MoqStreams::Datagram, false);
    let rates = vec![BitRate::from_kbps(60)];
    let camera = |job| PublisherJob { streams, follows, rates, ..job };
    watch(dir.path(), camera, |job| job, 5).await;
    let shown = shown(dir.path());
    assert!(shown.len() >= 8, "{} frames", shown.len());
    let fits = |row: &&FrameRow| row.encoded_bytes.unwrap() + 100 < suiro_moq::DATAGRAM_MAX as i64;
    let small = shown.iter().filter(fits).count() as u64;
    let large = shown.iter().filter(|row| row.encoded_bytes > Some(1100)).count() as u64;
    assert!(small >= 10 && large >= 1, "{small} fit, {large} do not");
    for endpoint in ["camera", "relay"] {
        let sessions: Vec<MoqSessionRow> = Reader::read_all(dir.path()).unwrap();
        let of = sessions.iter().filter(|row| &*row.endpoint == endpoint);
        let sent = of.map(|row| (row.datagrams.unwrap(), row.streams)).max().unwrap();
        assert!(sent.0 >= small && sent.1 >= large, "{endpoint}: {sent:?}");
    }
}
