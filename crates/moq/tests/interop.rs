//! Our publisher, relay and viewer with those of others, over loopback: moq-pub (draft-18, Cloudflare's moq-rs), moqtransport of
//! Eyevinn (draft-14, Go), and moq-relay. `make peers` installs them; what is missing is printed, and its test passes.
//! `@moq/net` is tested where Chromium is.

mod common;
#[path = "common/peers.rs"]
mod peers;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use common::{client, publisher, relay, viewer};
use peers::{Running, installed, moq_relay};
use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_media::Ffmpeg;
use suiro_moq::{ViewerJob, view};
use suiro_moq::{publish, relay as relaying, tls};
use suiro_record::Reader;
use suiro_record::tables::{FrameRow, MoqSessionRow};
use suiro_scenario::MoqStreams;
use suiro_units::Duration;
use tokio::task::spawn_blocking;

const BROADCAST: &str = "yard/camera";
/// Four seconds of 400 kbit/s.
const SAVED_LEAST: u64 = 200_000;

/// A program of another that `make peers` has installed, and the ffmpeg that makes its video.
fn peer(name: &str) -> Option<(PathBuf, Ffmpeg)> {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
    installed(name).zip(Some(ffmpeg))
}

/// ffmpeg, which writes a clip in real time to the standard input of the other program.
fn pipe(ffmpeg: &Ffmpeg, format: &str, into: &mut Command) -> [Running; 2] {
    let mut clip = Command::new(ffmpeg.path());
    clip.args("-v error -re -f lavfi -i testsrc2=size=320x240:rate=20 -t 60".split(' '));
    clip.args("-c:v libx264 -preset ultrafast -tune zerolatency -g 10 -bf 0".split(' '));
    clip.args("-pix_fmt yuv420p -b:v 400k".split(' ')).args(format.split(' ')).arg("-");
    let mut clip = Running::start(clip.stderr(Stdio::null()));
    let video = clip.0.stdout.take().unwrap();
    let other = into.stdin(Stdio::from(video)).stdout(Stdio::null()).stderr(Stdio::null());
    let other = Running(other.spawn().unwrap());
    [clip, other]
}

/// Until the viewer has saved some seconds of video; a machine that has other things to do gets a minute.
async fn saved(clock: Clock, dir: &Path) {
    let last = clock.now() + Duration::from_secs(60);
    let saved = || dir.join("received.viewer.h264").metadata().map_or(0, |file| file.len());
    while saved() < SAVED_LEAST && clock.now() < last {
        clock.sleep_until(clock.now() + Duration::from_millis(100)).await;
    }
}

fn screen(dir: &Path, port: u16) -> ViewerJob {
    viewer(client("viewer", dir, port, None, 18))
}

/// Frames that ffmpeg decodes of a file, every error being the end.
async fn decoded(ffmpeg: &Ffmpeg, file: PathBuf) -> usize {
    let mut command = Command::new(ffmpeg.path());
    command.args(["-v", "error", "-xerror", "-err_detect", "explode", "-f", "h264", "-i"]);
    command.arg(file).args(["-f", "framecrc", "-"]).stdin(Stdio::null());
    let ended = spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap().lines().filter(|line| !line.starts_with('#')).count()
}

/// A relay of ours, and a viewer of ours, while another publishes what ffmpeg makes.
async fn we_view(dir: &Path, ffmpeg: &Ffmpeg, format: &str, other: impl FnOnce(u16) -> Command) {
    let (clock, port) = (Clock::from_now(), free_port());
    let (pulse, job, screen) = (Pulse::new(clock), relay(dir, port, None), screen(dir, port));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let serves = relaying::run(&job, clock, move || ready.send(()).unwrap(), async {
        drop(stop.await);
    });
    let views = async {
        is_ready.await.unwrap();
        let _publishing = pipe(ffmpeg, format, &mut other(port));
        let viewed = view::run(&screen, &pulse, || (), saved(clock, dir)).await;
        drop(done);
        viewed
    };
    let (served, viewed) = tokio::join!(serves, views);
    assert_eq!((viewed.unwrap().malformed, served.unwrap().sessions), (0, 2));
    let frames: Vec<FrameRow> = Reader::read_all(dir).unwrap();
    let shown = frames.iter().filter(|row| row.displayed_ns.is_some()).count();
    assert!(shown >= 20, "{shown} of {} frames were shown", frames.len());
    let pictures = decoded(ffmpeg, dir.join("received.viewer.h264")).await;
    assert!(pictures >= shown, "{pictures} frames, {shown} shown");
}

/// The drafts of the sessions that the relay had, sorted.
fn versions(dir: &Path) -> Vec<String> {
    let sessions: Vec<MoqSessionRow> = Reader::read_all(dir).unwrap();
    let of_relay = sessions.iter().filter(|row| &*row.endpoint == "relay");
    let mut versions: Vec<String> =
        of_relay.map(|row| row.version.as_deref().unwrap_or("none").to_owned()).collect();
    versions.sort();
    versions
}

/// DER as PEM (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

#[tokio::test]
async fn we_view_what_moq_pub_publishes() {
    let Some((program, ffmpeg)) = peer("moq-pub") else { return };
    let dir = tempfile::tempdir().unwrap();
    let format = "-f mp4 -movflags cmaf+separate_moof+delay_moov+skip_trailer+frag_every_frame";
    let command = |port| {
        let root = dir.path().join("root.pem");
        let der = std::fs::read(tls::file(dir.path(), "relay")).unwrap();
        std::fs::write(&root, pem("CERTIFICATE", &der)).unwrap();
        let mut command = Command::new(&program);
        command.args(["--bind", "127.0.0.1:0", "--name", BROADCAST]);
        // Without, it gives nothing to who joins late.
        command.args(["--fetch-groups", "4", "--tls-root"]);
        command.arg(root).arg(format!("moqt://127.0.0.1:{port}"));
        command
    };
    we_view(dir.path(), &ffmpeg, format, command).await;
    assert_eq!(versions(dir.path()), ["moq-transport-18", "moq-transport-18"]);
}

#[tokio::test]
async fn we_view_what_moqtransport_publishes() {
    let Some((program, ffmpeg)) = peer("moqt-eyevinn") else { return };
    let dir = tempfile::tempdir().unwrap();
    let command = |port| {
        let mut command = Command::new(&program);
        command.args(["publish", &format!("127.0.0.1:{port}"), BROADCAST]);
        command.arg(tls::file(dir.path(), "relay"));
        command
    };
    we_view(dir.path(), &ffmpeg, "-bsf:v h264_metadata=aud=insert -f h264", command).await;
    assert_eq!(versions(dir.path()), ["moq-transport-14", "moq-transport-18"]);
}

#[tokio::test]
async fn moqtransport_views_what_we_publish() {
    let Some((program, ffmpeg)) = peer("moqt-eyevinn") else { return };
    for streams in [MoqStreams::Gop, MoqStreams::Frame] {
        let dir = tempfile::tempdir().unwrap();
        let (clock, port) = (Clock::from_now(), free_port());
        let job = relay(dir.path(), port, None);
        let camera = publisher(client("camera", dir.path(), port, None, 18), streams);
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let (done, stop) = tokio::sync::oneshot::channel::<()>();
        let serves = relaying::run(&job, clock, move || ready.send(()).unwrap(), async {
            drop(stop.await);
        });
        let (told, ends) = tokio::sync::oneshot::channel::<()>();
        let publishes = async {
            is_ready.await.unwrap();
            let sent = publish::run(&camera, clock, || (), async { drop(ends.await) }).await;
            drop(done);
            sent
        };
        let mut command = Command::new(&program);
        command.args(["view", &format!("127.0.0.1:{port}"), BROADCAST]);
        command.arg(tls::file(dir.path(), "relay")).arg("30").stdin(Stdio::null());
        let views = async {
            let ended = spawn_blocking(move || command.output().unwrap()).await.unwrap();
            drop(told);
            ended
        };
        let (served, sent, viewed) = tokio::join!(serves, publishes, views);
        let said = String::from_utf8_lossy(&viewed.stderr);
        assert!(viewed.status.success(), "{streams:?}: {said}");
        let counted: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(counted["objects"], 30, "{counted}");
        assert!(counted["keys"].as_u64() >= Some(1), "{counted}");
        assert!(counted["renditions"][0].as_str().unwrap().starts_with("video avc3."), "{counted}");
        std::fs::write(dir.path().join("viewed.h264"), &viewed.stdout).unwrap();
        let pictures = decoded(&ffmpeg, dir.path().join("viewed.h264")).await;
        assert!(pictures >= 10 && counted["written"] == pictures, "{pictures} of {counted}");
        assert_eq!((served.unwrap().sessions, sent.unwrap().sessions), (2, 1));
        assert_eq!(versions(dir.path()), ["moq-transport-14", "moq-transport-18"]);
    }
}

#[tokio::test]
async fn moq_relay_passes_our_video_on() {
    let Some((program, ffmpeg)) = peer("moq-relay") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (_relay, port) = moq_relay(&program, dir.path());
    let clock = Clock::from_now();
    let (pulse, screen) = (Pulse::new(clock), screen(dir.path(), port));
    let camera = publisher(client("camera", dir.path(), port, None, 18), MoqStreams::Frame);
    let (sent, viewed) = tokio::join!(
        publish::run(&camera, clock, || (), saved(clock, dir.path())),
        view::run(&screen, &pulse, || (), saved(clock, dir.path())),
    );
    assert_eq!((sent.unwrap().sessions, viewed.unwrap().malformed), (1, 0));
    let frames: Vec<FrameRow> = Reader::read_all(dir.path()).unwrap();
    let shown = frames.iter().filter(|row| row.displayed_ns.is_some()).count();
    assert!(shown >= 20, "{shown} of {} frames were shown", frames.len());
    assert!(decoded(&ffmpeg, dir.path().join("received.viewer.h264")).await >= shown);
    let sessions: Vec<MoqSessionRow> = Reader::read_all(dir.path()).unwrap();
    let drafts: Vec<Option<&str>> = sessions.iter().map(|row| row.version.as_deref()).collect();
    assert_eq!(drafts, [Some("moq-transport-18"); 2]);
}
