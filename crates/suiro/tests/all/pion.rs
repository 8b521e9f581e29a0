//! pion as a publisher through one narrow link: suiro's viewer shows its video, and its rate follows the link.

use std::path::Path;

use crate::common::{Done, Room, Trials};
use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::tables::{FlowRow, FrameRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::{Carries, FlowRole};
use suiro_units::{BitRate, Time};

const SCENARIO: &str = r#"
name = "pion"
title = "a camera of pion"
duration = "30 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
delay = "25 ms"
down = { rate = "2 Mbit/s", loss = "0.5 %", changes = [{ at = "18 s", rate = "300 kbit/s" }], queue = { limit = "300 ms" } }
up = { rate = "2 Mbit/s", queue = { limit = "300 ms" } }
[endpoints.camera]
kind = "webrtc-publisher"
endpoint = "pion"
host = "server"
camera = { source = "synthetic", width = 640, height = 360, fps = 30, length = "2 s" }
start_rate = "400 kbit/s"
max_rate = "1.5 Mbit/s"
[endpoints.viewer]
kind = "webrtc-viewer"
host = "client"
from = "camera"
[record]
# Nothing here looks at table `tcp`, and each sample takes the guest's time.
tcp_interval = "1 s"
"#;

/// Runs it; `None`, with the reason printed, where that cannot be.
fn run(room: &Room) -> Option<bool> {
    let pion = suiro_browser::installed::peer(suiro_scenario::PION);
    pion.inspect_err(suiro_units::skipped).ok()?;
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
    let trials = Trials::find()?;
    room.write("pion.toml", SCENARIO);
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    link_peers(&cache);
    let mut command = trials.run(room, "pion.toml");
    command.env("XDG_CACHE_HOME", cache).env("SUIRO_FFMPEG", ffmpeg.path());
    let done = Done::of(&mut command);
    if trials.are_virtual() {
        let because = room.results("out").summary().trials[0].invalid_because.clone();
        assert_eq!(because, None, "{}", done.stderr);
    }
    Some(trials.are_virtual())
}

/// What `make peers` built is in the user's cache; the tests have one of their own.
fn link_peers(cache: &Path) {
    let ours = cache.join("suiro/peers");
    std::fs::create_dir_all(cache.join("suiro")).unwrap();
    if !ours.exists() {
        // Another test may have made it meanwhile.
        let _ = std::os::unix::fs::symlink(suiro_media::cache::folder().join("peers"), ours);
    }
}

#[test]
fn pion_publishes_and_follows_the_link() {
    let room = Room::new();
    let Some(exact) = run(&room) else { return };
    let out = room.results("out");
    assert!(out.manifest().versions.contains_key("pion interceptor"));
    let dir = out.root().join("trials/all/1");
    let frames: Vec<FrameRow> = Reader::read_all(&dir).unwrap();
    let shown: Vec<&FrameRow> = frames.iter().filter(|row| row.displayed_ns.is_some()).collect();
    assert!(shown.len() >= 500, "{} of {} frames were shown", shown.len(), frames.len());
    for row in &shown {
        let (captured, sent) = row.captured_ns.zip(row.sent_ns).expect("pion passes on marks");
        // 25 ms of propagation; marks have units of 20 µs, and RTP's clock of 11.
        assert!(
            row.received_ns >= Some(sent + 24_900_000) && sent + 100_000 >= captured,
            "{row:?}"
        );
    }
    let rows: Vec<WebrtcRow> = Reader::read_all(&dir).unwrap();
    let sent: Vec<&WebrtcRow> = rows.iter().filter(|row| row.role == FlowRole::Sender).collect();
    assert_eq!(sent[0].estimate_bps, Some(BitRate::from_kbps(400)), "it begins as asked");
    // pion's own pacer would drop what is sent again.
    let again: u64 = sent.iter().map(|row| row.retransmissions).sum();
    let asked: u64 = sent.iter().map(|row| row.nacks).sum();
    assert!(asked >= 3 && again >= asked / 2, "{again} of {asked} packets were sent again");
    let rates = |from: u64, to: u64| {
        let within = Time::from_secs(from)..Time::from_secs(to);
        let rates = sent.iter().filter(move |row| within.contains(&row.t_ns));
        let rates: Vec<u64> = rates.filter_map(|row| Some(row.estimate_bps?.as_bps())).collect();
        rates.iter().sum::<u64>() / rates.len().max(1) as u64
    };
    let (before, after) = (rates(16, 18), rates(25, 29));
    if exact {
        assert!(before > 600_000, "it rises to {before} bit/s while there is room");
        assert!((50_000..300_000).contains(&after), "it backs off to {after} bit/s");
    }
    let mut sessions: Vec<WebrtcSessionRow> = Reader::read_all(&dir).unwrap();
    sessions.sort_by_key(|session| session.role == FlowRole::Receiver);
    assert_eq!(sessions.len(), 2);
    for session in &sessions {
        assert!(session.connected_ns.is_some() && session.pair.is_some(), "{session:?}");
    }
    let flows: Vec<FlowRow> = Reader::read_all(&dir).unwrap();
    let video: Vec<&FlowRow> = flows.iter().filter(|row| row.carries == Carries::Video).collect();
    assert_eq!(video.len(), 1, "{flows:?}");
    assert_eq!(&*video[0].endpoint, "camera");
}
