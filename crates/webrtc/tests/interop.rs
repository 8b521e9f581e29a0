//! Our publisher and viewer with those of others, over loopback: pion as a viewer and as a publisher over WHEP, ffmpeg as a
//! publisher over WHIP, MediaMTX as a server between the two. `make players` installs them; what is missing is printed, and
//! its test passes. GStreamer's whepsrc and whipsink are part of gst-plugins-rs, which Debian 12 has no package of.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_media::Ffmpeg;
use suiro_media::live::FootageSpec;
use suiro_media::spec::Source;
use suiro_record::Reader;
use suiro_record::tables::{EncoderRow, FrameRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::{SessionEnd, Signalling};
use suiro_units::{BitRate, Duration, Seed, Time};
use suiro_webrtc::endpoint::{Common, Meeting};
use suiro_webrtc::pion;
use suiro_webrtc::publish::{self, PublisherJob};
use suiro_webrtc::signalling::client::Server;
use suiro_webrtc::view::{self, ViewerJob};
use tokio::task::spawn_blocking;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A program of another that `scripts/setup players` has built.
fn peer(name: &str) -> Option<PathBuf> {
    let path = suiro_media::cache::folder().join("peers").join(name);
    if path.exists() {
        return Some(path);
    }
    suiro_units::skipped(&format!("{name} is not installed\nhint: make players"));
    None
}

fn ffmpeg() -> Option<Ffmpeg> {
    Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()
}

fn waits(port: u16) -> Meeting {
    Meeting::Waits { address: Some(LOCALHOST), port, token: Some("s3cret".to_owned()) }
}

fn common(name: &str, dir: &Path, meeting: Meeting) -> Common {
    Common {
        name: name.to_owned(),
        meeting,
        peer: None,
        addresses: vec![LOCALHOST],
        dir: dir.to_owned(),
        start: Time::ZERO,
        seed: Seed(1),
        plain: false,
        sound: false,
    }
}

fn publisher(dir: &Path, meeting: Meeting) -> PublisherJob {
    let source = FootageSpec::new(Source::Synthetic);
    let length = Duration::from_secs(1);
    let camera = FootageSpec { width: 320, height: 240, fps: 20, length, ..source };
    let rates = (BitRate::from_kbps(300), BitRate::from_kbps(800));
    let common = common("camera", dir, meeting);
    PublisherJob {
        common,
        camera,
        rates,
        qualities: Vec::new(),
        key_every: None,
        audio: None,
        pauses: Vec::new(),
    }
}

fn viewer(dir: &Path, meeting: Meeting) -> ViewerJob {
    let common = common("viewer", dir, meeting);
    ViewerJob { common, viewer: Default::default(), lip_sync: true, save: true }
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
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let job = publisher(dir.path(), waits(port));
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

/// The numbers, capture times and waits that frames come with are those of our camera, by marks that pion passes on.
#[tokio::test]
async fn we_view_what_pion_publishes() {
    let Some(_) = peer(suiro_scenario::PION).zip(ffmpeg()) else { return };
    let (sent, seen) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let port = free_port();
    let camera = publisher(sent.path(), waits(port));
    let token = Some("s3cret".to_owned());
    let (host, signalling) = ("127.0.0.1".to_owned(), Signalling::Whep);
    let server = Server { host, port, signalling, path: None, token };
    let screen = viewer(seen.path(), Meeting::Offers(server));
    let clock = Clock::from_now();
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let publishes =
        pion::run(&camera, clock, |versions| ready.send(versions.clone()).unwrap(), async {
            drop(stop.await);
        });
    let views = async {
        let versions = is_ready.await.unwrap();
        assert!(versions["pion"].starts_with('4'), "{versions:?}");
        let pulse = Pulse::new(clock);
        let end = clock.now() + Duration::from_secs(4);
        let viewed = view::run(&screen, &pulse, || (), clock.sleep_until(end)).await;
        drop(done);
        viewed.unwrap()
    };
    let (published, viewed) = tokio::join!(publishes, views);
    let published = published.unwrap();
    assert_eq!((published.connections, viewed.connections), (1, 1));
    assert!(published.sent_bytes > 20_000, "{published:?}");
    let frames: Vec<FrameRow> = Reader::read_all(seen.path()).unwrap();
    let made: Vec<EncoderRow> = Reader::read_all(sent.path()).unwrap();
    let shown: Vec<&FrameRow> = frames.iter().filter(|row| row.displayed_ns.is_some()).collect();
    assert!(shown.len() >= 20, "{} of {} frames were shown", shown.len(), frames.len());
    for row in shown {
        let source = made.iter().find(|made| made.frame == row.frame);
        let source = source.unwrap_or_else(|| panic!("no such frame: {row:?}"));
        let captured = row.captured_ns.unwrap();
        // The clock in the extension has units of a quarter of a nanosecond, that of RTP of 11 µs.
        let at = source.captured_ns.as_nanos_i64();
        assert!((captured - at).abs() < 12_000, "{row:?} {source:?}");
        assert!(row.sent_ns >= Some(captured) && row.sent_ns <= row.received_ns, "{row:?}");
    }
    let session = only_session(sent.path());
    assert!(session.codec.as_ref().unwrap().starts_with("H264/90000"), "{session:?}");
    assert_eq!(session.feedback.as_deref(), Some("nack pli fir transport-cc"));
    // Whichever comes first: the end of DTLS, DELETE, or that of the publisher.
    let ends = [Some(SessionEnd::Closed), Some(SessionEnd::Deleted), None];
    assert!(ends.contains(&session.ended), "{session:?}");
    let rows: Vec<WebrtcRow> = Reader::read_all(sent.path()).unwrap();
    assert_eq!(rows[0].estimate_bps, Some(camera.rates.0), "it begins as it is asked to");
    // Up, or on a busy machine down.
    assert!(rows.iter().any(|row| row.estimate_bps != Some(camera.rates.0)), "and it moves");
}

/// What pion's program says when it is written this: its exit status and the last line of its standard error.
async fn pion_is_written(input: Vec<u8>) -> Option<(bool, String)> {
    let program = peer(suiro_scenario::PION)?;
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        // It may have ended before all is written.
        let _ = child.stdin.take().unwrap().write_all(&input);
        child.wait_with_output().unwrap()
    });
    let ended = ended.await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    Some((ended.status.success(), said.lines().last().unwrap_or_default().to_owned()))
}

#[tokio::test]
async fn pion_refuses_what_is_no_order() {
    let set = r#"{"do":"set","setup":{"addresses":["127.0.0.1"],"start_bps":300000,"max_bps":800000,"epoch_monotonic_ns":0}}"#;
    let frame = |bytes: i64| {
        let times = r#""captured_ns":1,"captured_unix_ns":1,"timestamp":1"#;
        format!(
            r#"{{"do":"frame","frame":{{"number":1,"references":0,"rate_bps":1,"key":true,{times},"bytes":{bytes}}}}}"#
        )
    };
    let hostile = [
        ("{\n".to_owned(), "an order: unexpected EOF"),
        (set.to_owned(), "an order is cut"),
        (format!("{}\n", r#"{"do":"begin"}"#), "order `begin`: expected `set` first"),
        (format!("{}\n", set.replace("800000", "1")), "rates of 300000 and 1 bit/s"),
        (format!("{set}\n{set}\n"), "order `set`: not expected here"),
        (format!("{set} {{}}\n"), "more than one value in a line"),
        (format!("{set}\n{}\n", r#"{"do":"close","sessions":1}"#), "unknown field"),
        (format!("{set}\n{}\n", r#"{"do":"frame"}"#), "its keys are those of another"),
        (format!("{set}\n{}\n", r#"{"do":"close","session":-1}"#), "cannot unmarshal"),
        (format!("{set}\n{}\n", frame(-1)), "a frame of -1 bytes"),
        (format!("{set}\n{}\n", frame(5 << 20)), "a frame of 5242880 bytes"),
        (format!("{set}\n{}\nabc", frame(4)), "a frame is cut"),
        ("x".repeat(600 << 10), "an order of more than 524288 bytes"),
    ];
    for (input, expected) in hostile {
        let shown = input.chars().take(200).collect::<String>();
        let Some((well, said)) = pion_is_written(input.into_bytes()).await else { return };
        assert!(!well && said.contains(expected), "{shown}: {said}");
    }
    // Orders for sessions that are not there, an offer that is none, a frame that is none.
    let close = r#"{"do":"close","session":7}"#;
    let candidate = r#"{"do":"candidate","session":7,"candidate":"candidate:"}"#;
    let answer = r#"{"do":"answer","session":7,"offer":"v=0"}"#;
    // The longest that a viewer can post, in the characters for which JSON needs most; and one that pion's error quotes.
    let offer = |text: &str| format!(r#"{{"do":"answer","session":8,"offer":"{text}"}}"#);
    let escaped = offer(&"\\u0001".repeat(64 << 10));
    let quoted = offer(&format!(r"v=0\r\no=- 1 1 {} IP4 1.1.1.1\r\n", "<".repeat(20_000)));
    let offers = format!("{answer}\n{escaped}\n{quoted}");
    let harmless = format!("{set}\n{close}\n{candidate}\n{offers}\n{}\nabcd{close}\n", frame(4));
    assert_eq!(pion_is_written(harmless.into_bytes()).await, Some((true, String::new())));
    assert_eq!(pion_is_written(Vec::new()).await, Some((true, String::new())));
}

#[tokio::test]
async fn we_view_what_ffmpeg_publishes() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let muxers = Command::new(ffmpeg.path()).args(["-hide_banner", "-muxers"]).output().unwrap();
    if !String::from_utf8_lossy(&muxers.stdout).contains(" whip ") {
        suiro_units::skipped("this ffmpeg has no muxer `whip`\nhint: make players");
        return;
    }
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let job = viewer(dir.path(), waits(port));
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

/// MediaMTX on loopback, of which only the WebRTC server runs.
struct MediaMtx {
    process: Child,
    lines: std::sync::mpsc::Receiver<String>,
    port: u16,
}

impl MediaMtx {
    async fn start(program: &Path, dir: &Path) -> Self {
        let port = free_port();
        let media = free_port();
        let settings = format!(
            "rtsp: no\nrtmp: no\nhls: no\nsrt: no\nwebrtcAddress: 127.0.0.1:{port}\n\
             webrtcLocalUDPAddress: 127.0.0.1:{media}\nwebrtcIPsFromInterfacesList: [lo]\npaths:\n  all_others:\n"
        );
        let file = dir.join("mediamtx.yml");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new(program);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (said, lines) = std::sync::mpsc::channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| said.send(line))
        });
        Self { process, lines, port }
    }

    /// Waits until it says that; panics with what it said instead if it ends or a minute passes.
    fn until_it_says(&self, text: &str) {
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(std::time::Duration::from_secs(60)) {
            if line.contains(text) {
                return;
            }
            said.push(line);
        }
        panic!("MediaMTX did not say `{text}`:\n{}", said.join("\n"));
    }

    fn offers(&self, signalling: Signalling) -> Meeting {
        let path = match signalling {
            Signalling::Whip => "/camera/whip",
            Signalling::Whep => "/camera/whep",
        };
        let (host, path) = ("127.0.0.1".to_owned(), Some(path.to_owned()));
        Meeting::Offers(Server { host, port: self.port, signalling, path, token: None })
    }
}

impl Drop for MediaMtx {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).unwrap();
    }
}

#[tokio::test]
async fn mediamtx_takes_what_we_publish_and_we_view_it_there() {
    let Some((program, _)) = peer("mediamtx").zip(ffmpeg()) else { return };
    let (sent, seen) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = MediaMtx::start(&program, sent.path()).await;
    let server = spawn_blocking(move || {
        server.until_it_says("[WebRTC] listener opened");
        server
    });
    let server = server.await.unwrap();
    let camera = publisher(sent.path(), server.offers(Signalling::Whip));
    let screen = viewer(seen.path(), server.offers(Signalling::Whep));
    let clock = Clock::from_now();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let publishes = publish::run(&camera, clock, || (), async { drop(stop.await) });
    let views = async {
        let server = spawn_blocking(move || {
            server.until_it_says("is publishing to path 'camera'");
            server
        });
        let server = server.await.unwrap();
        let pulse = Pulse::new(clock);
        let end = clock.now() + Duration::from_secs(4);
        let viewed = view::run(&screen, &pulse, || (), clock.sleep_until(end)).await;
        drop(done);
        (viewed, server)
    };
    let (published, (viewed, _server)) = tokio::join!(publishes, views);
    let (published, viewed) = (published.unwrap(), viewed.unwrap());
    assert_eq!((published.connections, viewed.connections), (1, 1));
    let frames: Vec<FrameRow> = Reader::read_all(seen.path()).unwrap();
    let shown = frames.iter().filter(|row| row.displayed_ns.is_some()).count();
    assert!(shown >= 20, "{shown} of {} frames were shown", frames.len());
    for dir in [sent.path(), seen.path()] {
        let session = only_session(dir);
        assert!(session.connected_ns.is_some(), "{session:?}");
    }
}
