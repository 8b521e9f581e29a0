//! Ours against ours over loopback, IPv4 and IPv6: offers over HTTP, media over ICE, DTLS and SRTP. Where there is no
//! ffmpeg for the camera, these report that and pass.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_media::Ffmpeg;
use suiro_media::live::FootageSpec;
use suiro_media::spec::Source;
use suiro_record::Reader;
use suiro_record::tables::{AudioRow, FrameRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::{AudioFate, FlowRole, SessionEnd, Signalling};
use suiro_units::{BitRate, Duration, Seed, Time};
use suiro_webrtc::EndpointError;
use suiro_webrtc::endpoint::{Common, Meeting, Summary};
use suiro_webrtc::peer::{Certificate, Peer, Setup, Way};
use suiro_webrtc::publish::{self, PublisherJob};
use suiro_webrtc::signalling::client::{Server, SignallingError};
use suiro_webrtc::view::{self, ViewerJob};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const FPS: u32 = 12;

fn has_ffmpeg() -> bool {
    Ffmpeg::locate().inspect_err(suiro_units::skipped).is_ok()
}

fn common(name: &str, dir: &Path, meeting: Meeting) -> Common {
    let addresses = vec![LOCALHOST, IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let (name, dir) = (name.to_owned(), dir.to_owned());
    let (peer, start, seed, plain) = (None, Time::ZERO, Seed(1), true);
    Common { name, meeting, peer, addresses, dir, start, seed, plain, sound: false }
}

fn publisher(dir: &Path, meeting: Meeting) -> PublisherJob {
    let length = Duration::from_secs(1);
    let source = FootageSpec::new(Source::Synthetic);
    let camera = FootageSpec { width: 320, height: 240, fps: FPS, length, ..source };
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

fn waits(port: u16, token: Option<&str>) -> Meeting {
    Meeting::Waits { address: Some(LOCALHOST), port, token: token.map(str::to_owned) }
}

fn offers(port: u16, signalling: Signalling, token: Option<&str>) -> Meeting {
    let token = token.map(str::to_owned);
    Meeting::Offers(Server { host: "127.0.0.1".to_owned(), port, signalling, path: None, token })
}

/// A publisher and a viewer meet, and nothing else happens.
async fn meet(dir: &Path, whep: bool, token: Option<&str>) {
    let (sent, seen) = meet_after(dir, whep, token, async |_, _| ()).await;
    assert_eq!((sent.connections, seen.connections), (1, 1));
    assert!(seen.received_bytes > 10_000 && seen.malformed == 0, "{seen:?}");
    check(dir, if whep { Signalling::Whep } else { Signalling::Whip });
}

/// Runs both ends until the time is up: what the publisher and the viewer did. The one that waits for offers is ready
/// before `first` asks it for something, and before the other begins.
async fn meet_after(
    dir: &Path,
    whep: bool,
    token: Option<&str>,
    first: impl AsyncFnOnce(Clock, &Server),
) -> (Summary, Summary) {
    let clock = Clock::from_now();
    let pulse = Pulse::new(clock);
    let port = free_port();
    let signalling = if whep { Signalling::Whep } else { Signalling::Whip };
    let (waits, offers) = (waits(port, token), offers(port, signalling, token));
    let Meeting::Offers(server) = offers.clone() else { unreachable!() };
    let (camera, screen) = if whep { (waits, offers) } else { (offers, waits) };
    let (camera, screen) = (publisher(dir, camera), viewer(dir, screen));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let until = |clock: Clock| async move {
        let end = clock.now() + Duration::from_secs(4);
        clock.sleep_until(end).await;
    };
    let tell = move || ready.send(()).unwrap();
    let begins = async {
        is_ready.await.unwrap();
        first(clock, &server).await;
    };
    let (sent, seen) = if whep {
        let sends = publish::run(&camera, clock, tell, until(clock));
        let sees = async {
            begins.await;
            view::run(&screen, &pulse, || (), until(clock)).await
        };
        tokio::join!(sends, sees)
    } else {
        let sees = view::run(&screen, &pulse, tell, until(clock));
        let sends = async {
            begins.await;
            publish::run(&camera, clock, || (), until(clock)).await
        };
        tokio::join!(sends, sees)
    };
    (sent.unwrap(), seen.unwrap())
}

fn check(dir: &Path, signalling: Signalling) {
    let frames: Vec<FrameRow> = Reader::read_all(dir).unwrap();
    let shown: Vec<&FrameRow> = frames.iter().filter(|row| row.displayed_ns.is_some()).collect();
    // Some 3 s of 12 frames a second, on a machine that may have other things to do.
    assert!(shown.len() >= 4, "{} of {} frames were shown", shown.len(), frames.len());
    for row in &shown {
        let (captured, sent, received) = (row.captured_ns, row.sent_ns, row.received_ns);
        assert!(captured < sent && sent <= received, "{row:?}");
        assert!(received.unwrap() - captured.unwrap() < 5_000_000_000, "{row:?}");
    }
    let mut sessions: Vec<WebrtcSessionRow> = Reader::read_all(dir).unwrap();
    sessions.sort_by_key(|row| row.role == FlowRole::Receiver);
    assert_eq!(sessions.len(), 2);
    for session in &sessions {
        assert_eq!(session.signalling, signalling);
        assert!(session.connected_ns > session.answered_ns && session.first_packet_ns.is_some());
        assert!(session.pair.is_some() && session.candidates.contains("[::1]:"), "{session:?}");
        assert!(session.codec.as_ref().unwrap().contains("packetization-mode=1"));
        let gone = [None, Some(SessionEnd::Closed), Some(SessionEnd::Deleted)];
        assert!(gone.contains(&session.ended), "{session:?}");
    }
    let rows: Vec<WebrtcRow> = Reader::read_all(dir).unwrap();
    let sender: Vec<&WebrtcRow> = rows.iter().filter(|row| row.role == FlowRole::Sender).collect();
    assert!(sender.len() >= 5, "{} intervals of 100 ms", sender.len());
    assert!(sender.iter().all(|row| row.estimate_bps.is_some() && row.fps.is_some()));
    assert!(rows.iter().any(|row| row.rtt_ns.is_some()));
    assert!(dir.join("received.viewer.h264").metadata().unwrap().len() > 1000);
    for name in ["camera", "viewer"] {
        check_plain(&dir.join(format!("{name}.rtp.pcapng")));
    }
}

/// RTP and RTCP without encryption: by our own reader, and by Wireshark's if it is installed.
fn check_plain(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let (mut rtp, mut feedback) = (0, 0);
    suiro_capture::file::read(&bytes, |frame| {
        let is_rtcp = frame.data[4..8] == *b"rtcp";
        match is_rtcp {
            true => feedback += 1,
            false => rtp += 1,
        }
    })
    .unwrap();
    assert!(rtp > 20 && feedback > 3, "{rtp} of RTP, {feedback} of RTCP");
    let tshark = |filter: &str| {
        let mut command = std::process::Command::new("tshark");
        let output = command.arg("-r").arg(path).args(["-Y", filter]).output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap().lines().count())
    };
    let Some(shown) = tshark("rtp && rtp.version == 2 && rtp.p_type == 102") else {
        suiro_units::skipped("tshark is not installed");
        return;
    };
    assert!(shown > 20, "{shown} packets of video");
    assert!(tshark("rtcp.rtpfb.fmt == 15") > Some(2), "transport-wide feedback");
    assert_eq!(tshark("_ws.malformed"), Some(0));
}

#[tokio::test]
async fn a_viewer_asks_a_publisher_by_whep() {
    if has_ffmpeg() {
        meet(tempfile::tempdir().unwrap().path(), true, Some("s3cret")).await;
    }
}

#[tokio::test]
async fn a_publisher_asks_a_viewer_by_whip() {
    if has_ffmpeg() {
        meet(tempfile::tempdir().unwrap().path(), false, None).await;
    }
}

#[tokio::test]
async fn sound_comes_with_the_video_by_whep_and_by_whip() {
    if !has_ffmpeg() {
        return;
    }
    for whep in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::from_now();
        let (pulse, port) = (Pulse::new(clock), free_port());
        let signalling = if whep { Signalling::Whep } else { Signalling::Whip };
        let (waits, offers) = (waits(port, None), offers(port, signalling, None));
        let (camera, screen) = if whep { (waits, offers) } else { (offers, waits) };
        let (mut camera, mut screen) = (publisher(dir.path(), camera), viewer(dir.path(), screen));
        (camera.common.sound, screen.common.sound) = (true, true);
        camera.audio = Some(BitRate::from_kbps(32));
        let until = |after: Duration| clock.sleep_until(clock.now() + after);
        let first = Duration::from_millis(500);
        let late = |is_first: bool| until(if is_first { Duration::ZERO } else { first });
        let (sent, seen) = tokio::join!(
            async {
                late(whep).await;
                publish::run(&camera, clock, || (), until(Duration::from_secs(4))).await
            },
            async {
                late(!whep).await;
                view::run(&screen, &pulse, || (), until(Duration::from_secs(4))).await
            },
        );
        sent.unwrap();
        seen.unwrap();
        let mut rows: Vec<AudioRow> = Reader::read_all(dir.path()).unwrap();
        rows.sort_by_key(|row| row.frame);
        // On a machine that may have other things to do.
        assert!(rows.len() >= 20, "{} frames of sound", rows.len());
        let played = rows.iter().filter(|row| row.fate == AudioFate::Played);
        assert!(played.clone().count() > 0);
        for row in played {
            assert!(row.captured_ns < row.played_ns.map(|at| at.as_nanos_i64()), "{row:?}");
            assert_eq!(row.encoded_bytes, Some(80), "32 kbit/s");
        }
        let frames: Vec<FrameRow> = Reader::read_all(dir.path()).unwrap();
        let shown = frames.iter().filter(|row| row.displayed_ns.is_some()).count();
        assert!(shown >= 4, "{shown} frames of video");
        let sessions: Vec<WebrtcSessionRow> = Reader::read_all(dir.path()).unwrap();
        for session in &sessions {
            assert!(session.codec.as_ref().unwrap().contains(", opus/48000/2"), "{session:?}");
            assert_eq!(session.payload_types.as_deref(), Some("102 103 111"));
        }
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::from_now();
    let pulse = Pulse::new(clock);
    let port = free_port();
    let screen = viewer(dir.path(), waits(port, Some("s3cret")));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let serves =
        view::run(&screen, &pulse, move || ready.send(()).unwrap(), async { drop(stop.await) });
    let asks = async {
        is_ready.await.unwrap();
        let server = |token: &str| Server {
            host: "127.0.0.1".to_owned(),
            port,
            signalling: Signalling::Whip,
            path: None,
            token: Some(token.to_owned()),
        };
        let refused = server("wrong").offer("v=0".to_owned()).await;
        let error = refused.map_err(EndpointError::from).unwrap_err().to_string();
        assert!(error.contains("found 401") && error.contains("another"), "{error}");
        let refused = server("s3cret").offer("v=0".to_owned()).await;
        assert!(
            matches!(refused, Err(SignallingError::Refused { status: 400, .. })),
            "{refused:?}"
        );
        let reply =
            raw(port, "OPTIONS /whip HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(reply.starts_with("HTTP/1.1 204") && reply.contains("accept-post"), "{reply}");
        let patch = "PATCH /whip/session/none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
            Authorization: Bearer s3cret\r\nContent-Type: application/trickle-ice-sdpfrag\r\n\
            Content-Length: 19\r\n\r\na=end-of-candidates";
        assert!(raw(port, patch).await.starts_with("HTTP/1.1 404"));
        drop(done);
    };
    let (served, ()) = tokio::join!(serves, asks);
    assert_eq!(served.unwrap().connections, 0);
    let sessions: Vec<WebrtcSessionRow> = Reader::read_all(dir.path()).unwrap();
    assert!(sessions.is_empty(), "a refused offer leaves nothing");
}

#[tokio::test]
async fn candidates_that_cannot_be_used_do_not_keep_others_out() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::from_now();
    let (pulse, port) = (Pulse::new(clock), free_port());
    let screen = viewer(dir.path(), waits(port, None));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let serves =
        view::run(&screen, &pulse, move || ready.send(()).unwrap(), async { drop(stop.await) });
    let asks = async {
        is_ready.await.unwrap();
        let offer = offer_from(clock, Way::Sends, "127.0.0.1:9");
        let length = offer.len();
        let post = format!(
            "POST /whip HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/sdp\r\n\
            Content-Length: {length}\r\n\r\n{offer}"
        );
        let created = raw(port, &post).await;
        let header = |name: &str| {
            let mut lines = created.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(found, _)| *found == name).expect("it has this header").1
        };
        let (location, tag) = (header("location"), header("etag"));
        let trickle = async |candidates: &[&str]| {
            let body: String =
                candidates.iter().map(|text| format!("a=candidate:{text}\r\n")).collect();
            let length = body.len();
            let patch = format!(
                "PATCH {location} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIf-Match: {tag}\r\n\
                Content-Type: application/trickle-ice-sdpfrag\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            raw(port, &patch).await
        };
        let tcp = "1 1 tcp 1518280447 10.0.0.9 9 typ host tcptype active";
        let named = "2 1 udp 2113937151 4f2a9d5e-0b1c.local 9000 typ host";
        let udp: Vec<String> =
            (1..34).map(|n| format!("3 1 udp 2113937151 127.0.0.{n} 9 typ host")).collect();
        let udp: Vec<&str> = udp.iter().map(String::as_str).collect();
        let reply = trickle(&[tcp, named, udp[0]]).await;
        assert!(reply.starts_with("HTTP/1.1 204"), "{reply}");
        // Of the 32 that there may be, that was one.
        let reply = trickle(&udp[1..32]).await;
        assert!(reply.starts_with("HTTP/1.1 204"), "{reply}");
        let reply = trickle(&udp[32..]).await;
        assert!(reply.contains("more than 32 candidates"), "{reply}");
        assert!(trickle(&["nonsense"]).await.starts_with("HTTP/1.1 400"));
        drop(done);
    };
    let (served, ()) = tokio::join!(serves, asks);
    assert_eq!(served.unwrap().unused, 2);
}

#[tokio::test]
async fn no_offer_ends_the_endpoint_by_its_addresses() {
    if !has_ffmpeg() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let hostile = async |clock, server: &Server| {
        // Linux sends nothing to any of these: EINVAL, EACCES, EINVAL.
        for nowhere in ["127.0.0.1 0", "255.255.255.255 9", "240.0.0.1 0"] {
            let offer =
                offer_from(clock, Way::Receives, "127.0.0.1:9").replace("127.0.0.1 9", nowhere);
            assert!(offer.contains(nowhere), "{offer}");
            server.offer(offer).await.unwrap();
        }
    };
    let (sent, seen) = meet_after(dir.path(), true, None, hostile).await;
    assert!(sent.unsent > 0, "{sent:?}");
    assert!(seen.connections == 1 && seen.received_bytes > 10_000, "{seen:?}");
}

#[tokio::test]
async fn an_offer_that_never_connects_keeps_no_publisher_out() {
    if !has_ffmpeg() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let absent = async |clock, server: &Server| {
        // Nobody is at port 9.
        server.offer(offer_from(clock, Way::Sends, "127.0.0.1:9")).await.unwrap();
    };
    let (sent, seen) = meet_after(dir.path(), false, None, absent).await;
    assert!(sent.connections == 1 && seen.received_bytes > 10_000, "{sent:?} {seen:?}");
    let sessions: Vec<WebrtcSessionRow> = Reader::read_all(dir.path()).unwrap();
    let ended: Vec<_> = sessions.iter().filter(|row| row.connected_ns.is_none()).collect();
    assert!(ended.len() == 1 && ended[0].ended == Some(SessionEnd::Displaced), "{sessions:?}");
}

#[tokio::test]
async fn a_viewer_that_is_stopped_before_it_has_met_its_publisher_completes_its_tables() {
    // Takes connections, and answers nothing.
    let silent = suiro_webrtc::net::listen(LOCALHOST, 0).await.unwrap();
    let port = silent.local_addr().unwrap().port();
    for waits_to_start in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let pulse = Pulse::new(Clock::from_now());
        let mut screen = viewer(dir.path(), offers(port, Signalling::Whep, None));
        if waits_to_start {
            screen.common.start = Time::from_secs(3600);
        }
        let mut held = None;
        let stop = async {
            if !waits_to_start {
                held = silent.accept().await.ok();
            }
        };
        let ended = view::run(&screen, &pulse, || (), stop);
        let ended = tokio::time::timeout(std::time::Duration::from_secs(5), ended).await;
        assert_eq!(ended.expect("it stops").unwrap().connections, 0);
        let sessions: Vec<WebrtcSessionRow> = Reader::read_all(dir.path()).unwrap();
        assert_eq!(sessions.len(), usize::from(!waits_to_start));
        let frames: Vec<FrameRow> = Reader::read_all(dir.path()).unwrap();
        assert!(frames.is_empty());
    }
}

/// An offer of one candidate.
fn offer_from(clock: Clock, way: Way, candidate: &str) -> String {
    let setup = Setup {
        way,
        local: vec![candidate.parse().unwrap()],
        certificate: Certificate::generate().unwrap(),
        rates: (BitRate::from_kbps(300), BitRate::from_kbps(800)),
        answers: false,
        sound: false,
        plain: false,
    };
    let mut peer = Peer::new(Time::ZERO, clock.instant(Time::ZERO), setup).unwrap();
    peer.offer(Time::ZERO).unwrap().description
}

async fn raw(port: u16, request: &str) -> String {
    let mut stream = suiro_webrtc::net::connect("127.0.0.1", port).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    reply
}
