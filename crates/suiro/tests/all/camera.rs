//! A live camera by hand: `suiro serve --whep` and `suiro play` of it, and `suiro publish` to a server.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::common::{Done, Lines, Room, signal};
use rustix::process::Signal;

use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_http::Clock;
use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::tables::{AudioRow, EncoderRow, FrameRow, WebrtcSessionRow};
use suiro_units::{Seed, Time};
use suiro_webrtc::endpoint::{Common, Meeting, Summary};
use suiro_webrtc::view::{self, ViewerJob};
use tokio::sync::oneshot;

const CAMERA: &[&str] = &[
    "serve",
    "synthetic",
    "--whep",
    "--size",
    "320x180",
    "--fps",
    "15",
    "--token",
    "s3cret",
    "--qualities",
    "200 kbit/s",
    "--audio",
    "32 kbit/s",
];

fn ffmpeg() -> Option<Ffmpeg> {
    Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()
}

/// The camera at a free port of loopback, its sessions recorded in `camera`; it takes offers. `None` without ffmpeg.
fn serve(room: &Room) -> Option<(Child, String)> {
    let ffmpeg = ffmpeg()?;
    let port = free_port();
    let mut command = room.suiro(CAMERA);
    command.args(["--port", &port.to_string(), "--out", "camera"]);
    command.env("SUIRO_FFMPEG", ffmpeg.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    Lines::of(child.stderr.take().unwrap()).until("press Ctrl-C");
    Some((child, format!("http://127.0.0.1:{port}/whep")))
}

/// A viewer that takes offers over WHIP at this port, as a server does, until the first of the pair is sent.
fn take(port: u16, dir: PathBuf) -> (oneshot::Sender<()>, JoinHandle<Summary>) {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let token = Some("s3cret".to_owned());
    let common = Common {
        name: "viewer".to_owned(),
        meeting: Meeting::Waits { address: Some(address), port, token },
        peer: None,
        addresses: vec![address],
        dir,
        start: Time::ZERO,
        seed: Seed(1),
        plain: false,
        sound: false,
    };
    let job = ViewerJob { common, viewer: Default::default(), lip_sync: true, save: false };
    let (stop, stopped) = oneshot::channel();
    let (ready, is_ready) = mpsc::channel();
    let viewing = std::thread::spawn(move || {
        let pulse = Pulse::new(Clock::from_now());
        let stopped = async { stopped.await.unwrap() };
        let view = view::run(&job, &pulse, || ready.send(()).unwrap(), stopped);
        pulse.block_on(async { Ok::<_, std::io::Error>(view.await.unwrap()) }).unwrap()
    });
    is_ready.recv().unwrap();
    (stop, viewing)
}

#[test]
fn who_has_the_token_sees_the_camera_and_a_stranger_does_not() {
    let room = Room::new();
    let Some((camera, url)) = serve(&room) else { return };
    let low = format!("{url}?quality=low");
    let play = |token: &[&str]| {
        let play = ["play", low.as_str(), "--duration", "6 s", "--out", "viewer", "--replace"];
        room.run(&[&play, token].concat())
    };
    play(&[]).exits(1).says(&["401"]);
    play(&["--token", "guess"]).exits(1).says(&["401"]);
    let seen = play(&["--token", "s3cret"]).exits(0);
    assert!(seen.stdout.starts_with("1 connection; "), "{}", seen.stdout);
    let frames: Vec<FrameRow> = Reader::read_all(&room.path("work/viewer")).unwrap();
    let shown = frames.iter().filter(|row| row.displayed_ns.is_some()).count();
    // On a machine that may have other things to do.
    assert!(shown >= 2, "{shown} of {} frames were shown in six seconds", frames.len());
    let sound: Vec<AudioRow> = Reader::read_all(&room.path("work/viewer")).unwrap();
    assert!(sound.len() >= 10, "{} frames of sound in six seconds", sound.len());

    signal(&camera, Signal::INT);
    let ended = Done::wait(camera).exits(0);
    assert!(ended.stdout.starts_with("1 connection; "), "{}", ended.stdout);
    let sessions: Vec<WebrtcSessionRow> = Reader::read_all(&room.path("work/camera")).unwrap();
    assert_eq!(sessions.len(), 1, "strangers have no session");
    assert!(sessions[0].connected_ns.is_some() && sessions[0].ended.is_some());
    let encoded: Vec<EncoderRow> = Reader::read_all(&room.path("work/camera")).unwrap();
    assert!(
        !encoded.is_empty() && encoded.iter().all(|row| row.quality == 1),
        "only the lower runs"
    );
}

#[test]
fn a_server_that_knows_the_token_gets_the_camera_and_one_that_does_not_refuses_it() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let room = Room::new();
    let (port, seen) = (free_port(), room.path("work/viewer"));
    std::fs::create_dir(&seen).unwrap();
    let (stop, viewing) = take(port, seen.clone());
    let url = format!("http://127.0.0.1:{port}/whip");
    let publish = |token: &[&str]| {
        let camera = ["publish", &url, "--source", "synthetic", "--size", "320x180", "--fps", "15"];
        let mut command = room.suiro(&[&camera, token].concat());
        command.args(["--duration", "6 s", "--out", "camera", "--replace"]);
        Done::of(command.env("SUIRO_FFMPEG", ffmpeg.path()))
    };
    publish(&[]).exits(1).says(&["401"]);
    publish(&["--token", "guess"]).exits(1).says(&["401"]);
    let sent = publish(&["--token", "s3cret"]).exits(0);
    assert!(sent.stdout.starts_with("1 connection; "), "{}", sent.stdout);

    stop.send(()).unwrap();
    assert_eq!(viewing.join().unwrap().connections, 1, "strangers have no session");
    let frames: Vec<FrameRow> = Reader::read_all(&seen).unwrap();
    let shown = frames.iter().filter(|row| row.displayed_ns.is_some()).count();
    // On a machine that may have other things to do.
    assert!(shown >= 2, "{shown} of {} frames were shown in six seconds", frames.len());
}
