//! Publisher, relay and viewers over loopback: QUIC, MoQT and H.264 for real. Where there is no ffmpeg for the camera,
//! these report that and pass.

mod common;

use std::path::Path;

use common::{FPS, client, has_ffmpeg, publisher, relay, viewer};
use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_moq::view;
use suiro_moq::{Summary, publish, relay as relaying};
use suiro_record::Reader;
use suiro_record::tables::{FlowRow, FrameRow, MoqSessionRow, QuicRow};
use suiro_record::words::FlowRole;
use suiro_scenario::MoqStreams;
use suiro_units::Duration;

async fn until(clock: Clock, seconds: u64) {
    clock.sleep_until(clock.now() + Duration::from_secs(seconds)).await;
}

/// A publisher, a relay, a viewer from the beginning, and one that joins after 2 s.
async fn watch(dir: &Path, streams: MoqStreams, draft: u8) -> (Summary, Summary, Summary) {
    let clock = Clock::from_now();
    let pulse = Pulse::new(clock);
    let port = free_port();
    let token = Some("s3cret");
    let job = relay(dir, port, token);
    let mut camera = publisher(client("camera", dir, port, token, draft), streams);
    camera.common.behaviour.qlog = Some((dir.join("qlog"), "camera".to_owned()));
    let screen = |name| viewer(client(name, dir, port, token, draft));
    let (first, second) = (screen("first"), screen("second"));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let serves = relaying::run(&job, clock, move || ready.send(()).unwrap(), until(clock, 10));
    let others = async {
        is_ready.await.unwrap();
        let late = async {
            until(clock, 2).await;
            view::run(&second, &pulse, || (), until(clock, 6)).await
        };
        tokio::join!(
            publish::run(&camera, clock, || (), until(clock, 9)),
            view::run(&first, &pulse, || (), until(clock, 8)),
            late,
        )
    };
    let (served, (sent, seen, late)) = tokio::join!(serves, others);
    assert_eq!(served.unwrap().sessions, 3);
    (sent.unwrap(), seen.unwrap(), late.unwrap())
}

fn check(dir: &Path, version: &str, streams: MoqStreams) {
    let frames: Vec<FrameRow> = Reader::read_all(dir).unwrap();
    for (viewer, least) in [("first", 12), ("second", 3)] {
        let of = frames.iter().filter(|row| &*row.endpoint == viewer);
        let shown: Vec<&FrameRow> = of.filter(|row| row.displayed_ns.is_some()).collect();
        // On a machine that may have other things to do.
        assert!(shown.len() >= least, "{viewer}: {} of {} frames", shown.len(), frames.len());
        for row in &shown {
            let (captured, sent, received) = (row.captured_ns, row.sent_ns, row.received_ns);
            assert!(captured < sent && sent <= received, "{row:?}");
            assert!(received.unwrap() - captured.unwrap() < 5_000_000_000, "{row:?}");
        }
    }
    let sessions: Vec<MoqSessionRow> = Reader::read_all(dir).unwrap();
    assert_eq!(sessions.len(), 6, "each from both ends");
    for session in &sessions {
        assert_eq!(session.version.as_deref(), Some(version), "{session:?}");
        assert!(session.connected_ns <= session.set_up_ns && session.set_up_ns.is_some());
    }
    // The relay's end of each is that to which its clients connected.
    let ends = |row: &MoqSessionRow| {
        let (local, remote) = row.addresses.split_once('>').expect("two ends");
        (local.to_owned(), remote.to_owned())
    };
    let (relays, clients): (Vec<_>, Vec<_>) =
        sessions.iter().partition(|row| row.role == FlowRole::Server);
    let remote = ends(clients[0]).1;
    assert!(relays.len() == 3 && relays.iter().all(|row| ends(row).0 == remote), "{relays:?}");
    let camera = sessions.iter().find(|row| &*row.endpoint == "camera").unwrap();
    assert_eq!((camera.role, &*camera.congestion), (FlowRole::Client, "bbr"));
    let per_second = f64::from(FPS);
    match streams {
        MoqStreams::Frame | MoqStreams::Datagram => {
            assert!(camera.streams as f64 > 3.0 * per_second, "{camera:?}");
        }
        MoqStreams::Gop => assert!((camera.streams as f64) < 2.0 * per_second, "{camera:?}"),
    }
    let qlogs: Vec<_> =
        std::fs::read_dir(dir.join("qlog")).unwrap().map(|file| file.unwrap()).collect();
    assert_eq!(qlogs.len(), 1, "{qlogs:?}");
    assert!(qlogs[0].file_name().to_string_lossy().starts_with("camera"), "{qlogs:?}");
    assert!(std::fs::read_to_string(qlogs[0].path()).unwrap().contains("packet_sent"));
    let flows: Vec<FlowRow> = Reader::read_all(dir).unwrap();
    assert_eq!(flows.len(), 3);
    assert!(flows.iter().all(|flow| flow.peer.as_deref() == Some("relay")), "{flows:?}");
    let rows: Vec<QuicRow> = Reader::read_all(dir).unwrap();
    let sender: Vec<&QuicRow> = rows.iter().filter(|row| &*row.endpoint == "camera").collect();
    assert!(sender.len() >= 100, "{} looks", sender.len());
    assert_eq!(sender[0].target_bps, None, "the encoder runs when somebody has subscribed");
    assert!(sender.iter().any(|row| row.target_bps.is_some()));
    let last = sender.last().unwrap();
    assert!(
        last.sent_bytes > Some(10_000) && last.min_rtt_ns.is_some() && last.cwnd_bytes > Some(2400)
    );
    assert!(
        sender.iter().all(|row| row.waiting_bytes < Some(100_000)),
        "nothing waits on loopback"
    );
    assert!(dir.join("received.second.h264").metadata().unwrap().len() > 1000);
}

#[tokio::test]
async fn a_stream_for_every_frame_reaches_who_is_there_and_who_joins() {
    if !has_ffmpeg() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, seen, late) = watch(dir.path(), MoqStreams::Frame, 18).await;
    assert_eq!((seen.malformed, late.malformed), (0, 0));
    check(dir.path(), "moq-transport-18", MoqStreams::Frame);
}

#[tokio::test]
async fn a_stream_for_every_group_of_pictures_and_an_older_draft() {
    if !has_ffmpeg() {
        return;
    }
    let [older, old] = [14, 16].map(|draft| (tempfile::tempdir().unwrap(), draft));
    tokio::join!(
        watch(older.0.path(), MoqStreams::Gop, older.1),
        watch(old.0.path(), MoqStreams::Gop, old.1),
    );
    for (dir, draft) in [older, old] {
        check(dir.path(), &format!("moq-transport-{draft}"), MoqStreams::Gop);
    }
}
