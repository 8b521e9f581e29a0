//! Our publisher with the viewer of another, over loopback: pion, by WHEP. `make players` builds it; if it is missing, that is
//! printed and the test passes. GStreamer's whepsrc and whipsink are part of gst-plugins-rs, which Debian 12 has no package
//! of. ffmpeg's muxer `whip` is answered by our viewer, but its DTLS times out.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_media::Ffmpeg;
use suiro_media::live::FootageSpec;
use suiro_media::spec::Source;
use suiro_record::Reader;
use suiro_record::tables::WebrtcSessionRow;
use suiro_units::{BitRate, Duration, Seed, Time};
use suiro_webrtc::endpoint::{Common, Meeting};
use suiro_webrtc::publish::{self, PublisherJob};
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
        drop(stop.await)
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
