//! Chromium as an end of WebRTC connections, through one link for a few seconds: what it shows and sends is in the
//! records, with what was negotiated, and it ends when it is asked to.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::common::{self, Done, Room, Trials};
use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::tables::{FrameRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::{FlowRole, Signalling};

const SCENARIO: &str = r#"
name = "browser"
title = "a small stream"
duration = "5 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "4 Mbit/s"
delay = "10 ms"
queue.limit = "100 kB"
[record]
# Nothing here looks at table `tcp`, and each sample takes the guest's time.
tcp_interval = "1 s"
"#;

const CAMERA: &str = r#"
[endpoints.camera]
kind = "webrtc-publisher"
host = "server"
camera = { source = "synthetic", width = 320, height = 180, fps = 15, length = "2 s" }
max_rate = "800 kbit/s"
"#;

const VIEWER: &str = r#"
[endpoints.viewer]
kind = "webrtc-viewer"
host = "client"
"#;

/// Whether this machine has what the tests need; what it does not have is printed.
fn needs() -> Option<(Ffmpeg, Trials)> {
    suiro_browser::chromium().inspect_err(suiro_units::skipped).ok()?;
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
    Some((ffmpeg, Trials::find()?))
}

/// Runs the scenario with these keys of publisher and viewer, and checks what holds for all: frames were shown, and
/// both ends know of one session, in H.264.
fn run(publisher: &str, viewer: &str, signalling: Signalling) -> Option<Vec<WebrtcSessionRow>> {
    let sessions = run_in_any_codec(publisher, viewer, signalling)?;
    for codec in sessions.iter().map(codec) {
        assert!(
            codec.starts_with("H264/90000") && codec.contains("packetization-mode=1"),
            "{codec}"
        );
    }
    Some(sessions)
}

fn codec(session: &WebrtcSessionRow) -> &str {
    session.codec.as_deref().expect("a codec was agreed on")
}

fn run_in_any_codec(
    publisher: &str,
    viewer: &str,
    signalling: Signalling,
) -> Option<Vec<WebrtcSessionRow>> {
    let (ffmpeg, trials) = needs()?;
    // Live, a browser at each of several trials at once would keep the CPUs from all of them.
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let turn = || ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _turn = (!trials.are_virtual()).then(turn);
    let room = Room::new();
    let (camera, viewer) = (format!("{CAMERA}{publisher}\n"), format!("{VIEWER}{viewer}\n"));
    // Who takes offers is there first.
    let endpoints = match signalling {
        Signalling::Whep => [camera, viewer],
        Signalling::Whip => [viewer, camera],
    };
    room.write("browser.toml", &format!("{SCENARIO}{}", endpoints.concat()));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let mut command = trials.run(&room, "browser.toml");
    command.env("XDG_CACHE_HOME", cache).env("SUIRO_FFMPEG", ffmpeg.path());
    let done = Done::of(&mut command);
    let out = room.results("out");
    let trial = &out.summary().trials[0];
    if let Some(because) = &trial.invalid_because {
        // A busy machine may keep an endpoint from running: what is checked below holds all the same.
        let busy = because.contains("did not run") || because.contains("waited for a CPU");
        let excused = !trials.are_virtual() && (busy || !because.contains("endpoint"));
        assert!(excused, "{because}\n{}", done.stderr);
    }
    assert!(out.manifest().versions.contains_key("chromium"), "{:?}", out.manifest().versions);
    let dir = out.root().join("trials/all/1");
    let frames: Vec<FrameRow> = Reader::read_all(&dir).unwrap();
    check_frames(&frames);
    let rows: Vec<WebrtcRow> = Reader::read_all(&dir).unwrap();
    check_rows(&rows);
    let mut sessions: Vec<WebrtcSessionRow> = Reader::read_all(&dir).unwrap();
    sessions.sort_by_key(|session| session.role == FlowRole::Receiver);
    let roles: Vec<FlowRole> = sessions.iter().map(|session| session.role).collect();
    assert_eq!(roles, [FlowRole::Sender, FlowRole::Receiver]);
    for session in &sessions {
        assert_eq!(session.signalling, signalling);
        assert!(
            session.connected_ns >= session.answered_ns && session.pair.is_some(),
            "{session:?}"
        );
        assert!(session.extensions.as_ref().unwrap().contains("transport-wide-cc"), "{session:?}");
    }
    let left = common::entries(&dir);
    assert!(left.iter().all(|path| !path.to_string_lossy().contains("profile")), "{left:?}");
    Some(sessions)
}

/// What holds on a machine that is busy too: some frames, each after it was captured.
fn check_frames(frames: &[FrameRow]) {
    let shown: Vec<&FrameRow> = frames.iter().filter(|row| row.displayed_ns.is_some()).collect();
    assert!(shown.len() >= 15, "{} of {} frames were shown", shown.len(), frames.len());
    let numbers: BTreeSet<i64> = frames.iter().map(|row| row.frame).collect();
    assert_eq!(numbers.len(), frames.len(), "a frame has one row");
    // The stamp has milliseconds, and the browser's clock was asked for once. Of frames that are shown before the first
    // stamp can be read, the times are not known.
    let whole = |row: &&&FrameRow| {
        let times = row.captured_ns.zip(row.received_ns).zip(row.displayed_ns);
        times.is_some_and(|((captured, received), displayed)| {
            (-5_000_000..4_000_000_000).contains(&(received - captured)) && displayed >= received
        }) && row.encoded_bytes.is_some_and(|bytes| bytes > 0)
            && row.decodable
    };
    let known = shown.iter().filter(whole).count();
    assert!(known * 10 >= shown.len() * 9, "{known} of {} frames are whole", shown.len());
}

fn check_rows(rows: &[WebrtcRow]) {
    let of = |role| rows.iter().filter(move |row| row.role == role);
    assert!(of(FlowRole::Sender).count() >= 10 && of(FlowRole::Receiver).count() >= 10);
    assert!(of(FlowRole::Sender).any(|row| row.estimate_bps.is_some() && row.height.is_some()));
    assert!(
        of(FlowRole::Sender).any(|row| row.rtt_ns.is_some_and(|rtt| rtt.as_millis_f64() > 15.0))
    );
    assert!(of(FlowRole::Receiver).all(|row| row.estimate_bps.is_none()));
    assert!(of(FlowRole::Receiver).any(|row| row.received_bps.as_bps() > 50_000));
}

#[test]
fn chromium_views_by_whep() {
    let viewer = "endpoint = \"chromium\"\nfrom = \"camera\"\ntoken = \"s3cret\"";
    let Some(sessions) = run("token = \"s3cret\"", viewer, Signalling::Whep) else { return };
    // It offers the capture time only because the page asks it to.
    let extensions = sessions[1].extensions.as_ref().unwrap();
    assert!(extensions.contains("abs-capture-time"), "{extensions}");
}

#[test]
fn chromium_publishes_by_whip() {
    let publisher = "endpoint = \"chromium\"\nto = \"viewer\"";
    run(publisher, "", Signalling::Whip);
}

#[test]
fn chromium_is_served_at_both_ends() {
    let publisher = "endpoint = \"chromium\"";
    let viewer = "endpoint = \"chromium\"\nfrom = \"camera\"";
    run(publisher, viewer, Signalling::Whep);
}

#[test]
fn chromium_at_both_ends_uses_the_codec_that_is_asked_for() {
    for (name, expected) in [("vp9", "VP9/90000 profile-id=0"), ("av1", "AV1/90000 ")] {
        let publisher = format!("endpoint = \"chromium\"\ncodec = \"{name}\"");
        let viewer = format!("{publisher}\nfrom = \"camera\"");
        let sessions = run_in_any_codec(&publisher, &viewer, Signalling::Whep);
        for codec in sessions.iter().flatten().map(codec) {
            assert!(codec.starts_with(expected), "{codec}");
        }
    }
}
