//! Our publisher and viewer with those of others, over loopback: pion as a viewer by WHEP, ffmpeg as a publisher by WHIP.
//! `make players` installs them; what is missing is printed, and its test passes. GStreamer's whepsrc and whipsink are part of
//! gst-plugins-rs, which Debian 12 has no package of.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_media::Ffmpeg;
use suiro_media::live::FootageSpec;
use suiro_media::spec::Source;
use suiro_record::Reader;
use suiro_record::tables::{FrameRow, WebrtcSessionRow};
use suiro_units::{BitRate, Duration, Seed, Time};
use suiro_webrtc::endpoint::{Common, Meeting};
use suiro_webrtc::publish::{self, PublisherJob};
use suiro_webrtc::view::{self, ViewerJob};
use tokio::task::spawn_blocking;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A program of another that `scripts/setup players` has built.
fn peer(name: &str) -> Option<PathBuf> {
    let path = suiro_media::cache::folder().join("peers").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {name} is not installed\nhint: make players");
    None
}

fn ffmpeg() -> Option<Ffmpeg> {
    Ffmpeg::locate().inspect_err(|error| eprintln!("skipped: {error}")).ok()
}

async fn free_port() -> u16 {
    let listener = suiro_webrtc::net::listen(LOCALHOST, 0).await.unwrap();
    listener.local_addr().unwrap().port()
}

/// An endpoint that waits for offers at that port.
fn common(name: &str, dir: &Path, (port, token): (u16, &str)) -> Common {
    Common {
        name: name.to_owned(),
        meeting: Meeting::Waits { address: Some(LOCALHOST), port, token: Some(token.to_owned()) },
        peer: None,
        addresses: vec![LOCALHOST],
        dir: dir.to_owned(),
        start: Time::ZERO,
        seed: Seed(1),
        plain: false,
    }
}

/// The program's output, while an endpoint of ours runs; it has ended well.
async fn output(mut command: Command) -> String {
    let ended = spawn_blocking(move || command.stdin(Stdio::null()).output().unwrap());
    let ended = ended.await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{said}");
    String::from_utf8(ended.stdout).unwrap()
}

fn only_session(dir: &Path) -> WebrtcSessionRow {
    let sessions: Vec<WebrtcSessionRow> = Reader::read_all(dir).unwrap();
    let [session] = sessions.try_into().unwrap();
    session
}

#[tokio::test]
async fn pion_views_what_we_publish() {
    let Some((pion, _)) = peer("whep-pion").zip(ffmpeg()) else { return };
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port().await);
    let source = FootageSpec::new(Source::Synthetic);
    let length = Duration::from_secs(1);
    let camera = FootageSpec { width: 320, height: 240, fps: 20, length, ..source };
    let rates = (BitRate::from_kbps(300), BitRate::from_kbps(800));
    let job =
        PublisherJob { common: common("camera", dir.path(), (port, "s3cret")), camera, rates };
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let publishes = publish::run(&job, Clock::from_now(), move || ready.send(()).unwrap(), async {
        drop(stop.await);
    });
    let views = async {
        is_ready.await.unwrap();
        let mut command = Command::new(pion);
        command.args([&format!("http://127.0.0.1:{port}/whep"), "3", "s3cret"]);
        let counted = output(command).await;
        drop(done);
        counted
    };
    let (published, counted) = tokio::join!(publishes, views);
    assert_eq!(published.unwrap().connections, 1);
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert_eq!(counted["codec"], "video/H264", "{counted}");
    assert_eq!(counted["missing"], 0, "{counted}");
    assert!(counted["frames"].as_u64() > Some(20), "{counted}");
    assert!(counted["key_units"].as_u64() >= Some(1), "{counted}");
    let session = only_session(dir.path());
    assert!(session.connected_ns.is_some() && session.ended.is_some(), "{session:?}");
}

#[tokio::test]
async fn we_view_what_ffmpeg_publishes() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let muxers = Command::new(ffmpeg.path()).args(["-hide_banner", "-muxers"]).output().unwrap();
    if !String::from_utf8_lossy(&muxers.stdout).contains(" whip ") {
        eprintln!("skipped: this ffmpeg has no muxer `whip`\nhint: make players");
        return;
    }
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port().await);
    let job = ViewerJob {
        common: common("viewer", dir.path(), (port, "s3cret")),
        viewer: Default::default(),
        save: true,
    };
    let pulse = Pulse::new(Clock::from_now());
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let views =
        view::run(&job, &pulse, move || ready.send(()).unwrap(), async { drop(stop.await) });
    let publishes = async {
        is_ready.await.unwrap();
        let mut command = Command::new(ffmpeg.path());
        let encoder = "-c:v libx264 -profile:v baseline -bf 0 -g 25 -pix_fmt yuv420p -b:v 500k";
        command.args("-v error -re -f lavfi -i testsrc2=size=320x240:rate=25 -t 4".split(' '));
        command.args(encoder.split(' ')).args(["-f", "whip"]);
        command.args(["-authorization", "s3cret"]).arg(format!("http://127.0.0.1:{port}/whip"));
        output(command).await;
        drop(done);
    };
    let (viewed, ()) = tokio::join!(views, publishes);
    assert_eq!(viewed.unwrap().connections, 1);
    let frames: Vec<FrameRow> = Reader::read_all(dir.path()).unwrap();
    let shown = frames.iter().filter(|row| row.displayed_ns.is_some()).count();
    assert!(shown > 50, "{shown} of {} frames were shown", frames.len());
    assert!(only_session(dir.path()).connected_ns.is_some());
}
