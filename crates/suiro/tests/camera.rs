//! A live camera by hand: `suiro serve --whep`, and `suiro play` of it.

mod common;

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Stdio};

use common::{Done, Lines, Room, signal};
use rustix::process::Signal;
use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::tables::{FrameRow, WebrtcSessionRow};

const CAMERA: &[&str] =
    &["serve", "synthetic", "--whep", "--size", "320x180", "--fps", "15", "--token", "s3cret"];

/// The camera at a free port of loopback, its sessions recorded in `camera`; it takes offers. `None` without ffmpeg.
#[expect(clippy::disallowed_methods, reason = "a port for the server of this test")]
fn serve(room: &Room) -> Option<(Child, String)> {
    let ffmpeg = Ffmpeg::locate().inspect_err(|reason| eprintln!("skipped: {reason}")).ok()?;
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let mut command = room.suiro(CAMERA);
    command.args(["--port", &free.port().to_string(), "--out", "camera"]);
    command.env("SUIRO_FFMPEG", ffmpeg.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    Lines::of(child.stderr.take().unwrap()).until("press Ctrl-C");
    Some((child, format!("http://{free}/whep")))
}

#[test]
fn who_has_the_token_sees_the_camera_and_a_stranger_does_not() {
    let room = Room::new();
    let Some((camera, url)) = serve(&room) else { return };
    let play = |token: &[&str]| {
        let play = ["play", url.as_str(), "--duration", "4 s", "--out", "viewer"];
        room.run(&[&play, token].concat())
    };
    play(&[]).exits(1).says(&["401"]);
    play(&["--token", "guess"]).exits(1).says(&["401"]);
    let seen = play(&["--token", "s3cret"]).exits(0);
    assert!(seen.stdout.starts_with("1 connection; "), "{}", seen.stdout);
    let frames: Vec<FrameRow> = Reader::read_all(&room.path("work/viewer")).unwrap();
    let shown = frames.iter().filter(|row| row.displayed_ns.is_some()).count();
    assert!(shown >= 15, "{shown} of {} frames were shown in four seconds", frames.len());

    signal(&camera, Signal::INT);
    let ended = Done::wait(camera).exits(0);
    assert!(ended.stdout.starts_with("1 connection; "), "{}", ended.stdout);
    let sessions: Vec<WebrtcSessionRow> = Reader::read_all(&room.path("work/camera")).unwrap();
    assert_eq!(sessions.len(), 1, "strangers have no session");
    assert!(sessions[0].connected_ns.is_some() && sessions[0].ended.is_some());
}
