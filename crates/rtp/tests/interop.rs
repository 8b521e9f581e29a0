//! Our RTP and that of ffmpeg and GStreamer, each received by the other: every frame comes out of the
//! decoder as it went in. Over loopback. Where a program is missing, these report that and pass.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use suiro_clock::Clock;
use suiro_endpoint::Pulse;
use suiro_endpoint::net::free_port;
use suiro_media::Ffmpeg;
use suiro_payload::Codec;
use suiro_rate::RateSpec;
use suiro_rtp::net::{self, Pair};
use suiro_rtp::receive::{self, ReceiverJob};
use suiro_rtp::receiver::Counters as Received;
use suiro_rtp::send::AGAIN_TYPE;
use suiro_rtp::sender::{Config, Counters, ReportTimes, Sender, SourceFrame, Transmit};
use suiro_scenario::OnBreak;
use suiro_units::{BitRate, Bytes, Duration, Seed, Time};
use suiro_viewer::Policy;
use tempfile::TempDir;

const FPS: u64 = 25;
const FRAMES: usize = 50;

/// Longest that another program may take for two seconds of video.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

fn gstreamer() -> bool {
    let there = Command::new("gst-launch-1.0").arg("--version").output().is_ok();
    if !there {
        suiro_units::skipped("no gst-launch-1.0");
    }
    there
}

/// Two seconds of video, whole and frame by frame, in a folder of its own.
struct Film {
    ffmpeg: Ffmpeg,
    dir: TempDir,
    codec: Codec,
    /// With times, for programs that want them.
    mkv: PathBuf,
    /// The elementary stream.
    file: PathBuf,
    pictures: Vec<Vec<u8>>,
    /// What a decoder makes of each frame.
    decoded: Vec<String>,
}

impl Film {
    /// Makes it, if there is ffmpeg.
    fn make(codec: Codec) -> Option<Self> {
        let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
        let dir = tempfile::tempdir().unwrap();
        let (encoder, name) = match codec {
            Codec::H264 => {
                (&["-c:v", "libx264", "-x264-params", "aud=1:keyint=25:bframes=0"][..], "film.h264")
            }
            Codec::Mpeg2 => {
                (&["-c:v", "mpeg2video", "-g", "25", "-bf", "0", "-q:v", "3"][..], "film.m2v")
            }
        };
        let (mkv, file) = (dir.path().join("film.mkv"), dir.path().join(name));
        let made = Command::new(ffmpeg.path())
            .args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25"])
            .args(["-frames:v", &FRAMES.to_string(), "-pix_fmt", "yuv420p"])
            .args(encoder)
            .arg(&mkv)
            .status();
        assert!(made.unwrap().success());
        let copied = Command::new(ffmpeg.path())
            .args(["-v", "error", "-i"])
            .arg(&mkv)
            .args(["-c", "copy"])
            .arg(&file)
            .status();
        assert!(copied.unwrap().success());
        let pictures = split(codec, &std::fs::read(&file).unwrap());
        assert_eq!(pictures.len(), FRAMES);
        let decoded = decode(&ffmpeg, &file);
        assert_eq!(decoded.len(), FRAMES);
        Some(Self { ffmpeg, dir, codec, mkv, file, pictures, decoded })
    }

    fn payload_type(&self) -> u8 {
        match self.codec {
            Codec::H264 => 96,
            Codec::Mpeg2 => 32,
        }
    }
}

/// Cuts a stream before each access unit delimiter, or before the headers of each frame.
fn split(codec: Codec, stream: &[u8]) -> Vec<Vec<u8>> {
    let begins = |code: u8, after_slice: bool| match codec {
        Codec::H264 => code & 0x1f == 9,
        Codec::Mpeg2 => after_slice && matches!(code, 0x00 | 0xb3 | 0xb8),
    };
    let (mut cuts, mut after_slice) = (Vec::new(), true);
    for at in 0..stream.len().saturating_sub(3) {
        if stream[at..at + 3] == [0, 0, 1] {
            let code = stream[at + 3];
            if begins(code, after_slice) {
                // H.264: with the first byte of a long start code; MPEG: what is before, is stuffing.
                let long = codec == Codec::H264 && at > 0 && stream[at - 1] == 0;
                cuts.push(at - usize::from(long));
                after_slice = false;
            }
            after_slice |= (1..=0xaf).contains(&code);
        }
    }
    let ends = cuts.iter().skip(1).copied().chain([stream.len()]);
    cuts.iter().zip(ends).map(|(&from, to)| stream[from..to].to_vec()).collect()
}

/// The checksum of every frame that a decoder makes of a file; no error is passed over.
fn decode(ffmpeg: &Ffmpeg, file: &Path) -> Vec<String> {
    let out = Command::new(ffmpeg.path())
        .args(["-v", "error", "-xerror", "-i"])
        .arg(file)
        .args(["-fps_mode", "passthrough", "-f", "framemd5", "-"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && errors.is_empty(), "{}: {errors}", file.display());
    checksums(&String::from_utf8_lossy(&out.stdout))
}

/// The last column of ffmpeg's `framemd5`.
fn checksums(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit(", ").next()).map(str::to_owned).collect()
}

/// An even port that is free, and the next one too; another one each time. In a runtime, as sockets are tried.
fn free_ports() -> u16 {
    let is_free = |port: &u16| port.is_multiple_of(2) && Pair::bind(*port).is_ok();
    std::iter::repeat_with(free_port).take(1000).find(is_free).expect("two free ports")
}

/// Waits until a program has bound a UDP port, by what the kernel says.
async fn until_bound(port: u16) {
    let wanted = format!(":{port:04X} ");
    let bound = async {
        let mut tick = tokio::time::interval(std::time::Duration::from_millis(5));
        while !std::fs::read_to_string("/proc/net/udp").unwrap().contains(&wanted) {
            tick.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, bound).await.expect("the other program binds its port");
}

fn config(film: &Film, clock: Clock) -> Config {
    Config {
        codec: film.codec,
        payload_type: film.payload_type(),
        again_type: Some(AGAIN_TYPE),
        packet_max: Bytes::new(1500),
        cname: "suiro@test".into(),
        reports: ReportTimes::Pictures(5),
        rtt: suiro_scenario::RoundTrip::Path,
        feedback: suiro_scenario::FeedbackFormat::Rfc8888,
        drain: None,
        times: (Duration::from_millis(33), Duration::from_secs(1)),
        on_break: OnBreak::Tell,
        pauses: Vec::new(),
        epoch_unix_ns: clock.epoch_unix_ns(),
    }
}

fn frame(film: &Film, number: usize, captured: Time) -> SourceFrame<'_> {
    let key = number.is_multiple_of(25);
    SourceFrame {
        number: number as u64,
        captured,
        references: (!key).then(|| number as u64 - 1),
        data: &film.pictures[number],
        rate: BitRate::from_mbps(2),
        quantiser: None,
        begins_group: key,
        budget: None,
    }
}

/// How many packets the film is, sent in virtual time.
fn packets(film: &Film) -> u64 {
    let control = RateSpec::fixed(BitRate::from_mbps(50)).build(Time::ZERO).unwrap();
    let config = config(film, Clock::from_now());
    let mut sender = Sender::new(Time::ZERO, config, control, Seed(7).random());
    for number in 0..FRAMES {
        sender.on_frame(Time::from_secs(number as u64), &frame(film, number, Time::ZERO)).unwrap();
        while sender.queued() > Bytes::ZERO {
            let now = sender.next_event().unwrap().max(Time::from_secs(number as u64));
            sender.poll(now);
        }
    }
    sender.counters().packets
}

/// Sends the film once, in real time, to a port of this machine.
async fn send(film: &Film, to: u16) -> Counters {
    let clock = Clock::from_now();
    let pair = Pair::bind(free_ports()).unwrap();
    let start = clock.now();
    let control = RateSpec::fixed(BitRate::from_mbps(50)).build(start).unwrap();
    let mut sender = Sender::new(start, config(film, clock), control, Seed(7).random());
    let rtp: SocketAddr = ([127, 0, 0, 1], to).into();
    let rtcp: SocketAddr = ([127, 0, 0, 1], to + 1).into();
    let mut buffer = vec![0; 2000];
    for number in 0..FRAMES {
        let captured = start + Duration::from_millis(1000 / FPS) * number as u64;
        while clock.now() < captured {
            tokio::select! {
                () = clock.sleep_until(captured) => {}
                Ok((length, _)) = net::receive(&pair.rtcp, &mut buffer) =>
                    sender.on_rtcp(clock.now(), &buffer[..length]),
            }
        }
        sender.on_frame(clock.now(), &frame(film, number, captured)).unwrap();
        drain(&mut sender, clock, &pair, (rtp, rtcp)).await;
    }
    sender.counters().clone()
}

/// Sends all that waits, at its pace.
async fn drain(
    sender: &mut Sender,
    clock: Clock,
    pair: &Pair,
    (rtp, rtcp): (SocketAddr, SocketAddr),
) {
    while sender.queued() > Bytes::ZERO {
        match sender.poll(clock.now()) {
            Some(Transmit::Rtp(bytes)) => net::send(&pair.rtp, &bytes, rtp).await.unwrap(),
            Some(Transmit::Rtcp(bytes)) => net::send(&pair.rtcp, &bytes, rtcp).await.unwrap(),
            None => clock.sleep_until(sender.next_event().unwrap()).await,
        }
    }
}

/// Starts a program whose output [`end`] takes.
fn start(program: &mut Command) -> Child {
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for a program, which has to succeed; it is killed if that takes too long.
async fn end(child: Child) -> Output {
    let pid = rustix::process::Pid::from_child(&child);
    let waiting = tokio::task::spawn_blocking(move || child.wait_with_output());
    tokio::pin!(waiting);
    tokio::select! {
        done = &mut waiting => {
            let out = done.unwrap().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            return out;
        }
        () = tokio::time::sleep(PATIENCE) => {}
    }
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    panic!("it did not end: {:?}", waiting.await.unwrap().unwrap());
}

fn sdp(film: &Film, port: u16) -> PathBuf {
    let kind = film.payload_type();
    let map = match film.codec {
        Codec::H264 => "a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\n",
        Codec::Mpeg2 => "a=rtpmap:32 MPV/90000\r\n",
    };
    let text = format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=suiro\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
         m=video {port} RTP/AVP {kind}\r\n{map}"
    );
    let file = film.dir.path().join("stream.sdp");
    std::fs::write(&file, text).unwrap();
    file
}

async fn ffmpeg_takes(codec: Codec) {
    let Some(film) = Film::make(codec) else { return };
    let port = free_ports();
    // The last one ends with the next, which does not come.
    let wanted = FRAMES - 2;
    let mut program = Command::new(film.ffmpeg.path());
    program
        .args(["-v", "error", "-threads", "1", "-protocol_whitelist", "file,udp,rtp", "-i"])
        .arg(sdp(&film, port))
        .args([
            "-fps_mode",
            "passthrough",
            "-frames:v",
            &wanted.to_string(),
            "-f",
            "framemd5",
            "-",
        ]);
    let child = start(&mut program);
    until_bound(port + 1).await;
    let counters = send(&film, port).await;
    let out = end(child).await;
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
    assert_eq!(checksums(&String::from_utf8_lossy(&out.stdout)), film.decoded[..wanted]);
    assert_eq!(counters.frames_left_out, 0);
    assert!(counters.disbelieved.is_empty(), "what ffmpeg reports is believed: {counters:?}");
}

#[tokio::test]
async fn ffmpeg_takes_our_h264() {
    ffmpeg_takes(Codec::H264).await;
}

#[tokio::test]
async fn ffmpeg_takes_our_mpeg2() {
    ffmpeg_takes(Codec::Mpeg2).await;
}

fn launch(pipeline: &str) -> Command {
    let mut program = Command::new("gst-launch-1.0");
    program.arg("-q").args(pipeline.split(' '));
    program
}

async fn gstreamer_takes(codec: Codec) {
    let Some(film) = Film::make(codec).filter(|_| gstreamer()) else { return };
    let port = free_ports();
    let (name, elements, extension) = match codec {
        Codec::H264 => {
            ("H264", "rtph264depay ! h264parse ! video/x-h264,stream-format=byte-stream", "h264")
        }
        Codec::Mpeg2 => ("MPV", "rtpmpvdepay", "m2v"),
    };
    let file = film.dir.path().join(format!("taken.{extension}"));
    let pipeline = format!(
        "udpsrc port={port} num-buffers={} buffer-size=4000000 caps=application/x-rtp,media=video,clock-rate=90000,\
         encoding-name={name},payload={} ! {elements} ! filesink location={}",
        packets(&film),
        film.payload_type(),
        file.display()
    );
    let child = start(&mut launch(&pipeline));
    until_bound(port).await;
    send(&film, port).await;
    end(child).await;
    assert_eq!(decode(&film.ffmpeg, &file), film.decoded);
}

#[tokio::test]
async fn gstreamer_takes_our_h264() {
    gstreamer_takes(Codec::H264).await;
}

#[tokio::test]
async fn gstreamer_takes_our_mpeg2() {
    gstreamer_takes(Codec::Mpeg2).await;
}

/// What our receiver makes of what comes to its port while `sends` lasts, and the frames of that.
async fn receive(
    film: &Film,
    (port, retransmission): (u16, bool),
    sends: impl Future<Output = ()>,
) -> (Received, Vec<String>) {
    let dir = film.dir.path();
    let job = ReceiverJob {
        name: "viewer".into(),
        sender: None,
        port,
        codec: film.codec,
        payload_type: film.payload_type(),
        answer: true,
        feedback: None,
        retransmission,
        viewer: Policy::default(),
        save: true,
        dir: dir.to_owned(),
        seed: Seed(3),
    };
    let (ready, begun) = tokio::sync::oneshot::channel();
    let ended = async {
        begun.await.unwrap();
        sends.await;
    };
    let begin = || ready.send(()).unwrap();
    let counters = receive::run(&job, &Pulse::new(Clock::from_now()), begin, ended).await.unwrap();
    let extension = film.file.extension().unwrap().to_str().unwrap();
    (counters, decode(&film.ffmpeg, &dir.join(format!("received.viewer.{extension}"))))
}

/// Our receiver takes what `program` sends to its port; all frames come out as they went in.
async fn we_take(film: &Film, program: impl Fn(u16) -> Command) {
    let port = free_ports();
    let sends = async {
        end(start(&mut program(port))).await;
    };
    let (counters, decoded) = receive(film, (port, false), sends).await;
    assert_eq!((counters.missing, counters.refused, counters.malformed), (0, 0, 0), "{counters:?}");
    assert_eq!(decoded, film.decoded, "{counters:?}");
}

async fn we_take_from_ffmpeg(codec: Codec) {
    let Some(film) = Film::make(codec) else { return };
    let program = |port: u16| {
        let mut command = Command::new(film.ffmpeg.path());
        command.args(["-v", "error", "-re", "-i"]).arg(&film.mkv);
        if codec == Codec::H264 {
            // Parameter sets in the stream, for who reads no SDP.
            command.args(["-bsf:v", "h264_mp4toannexb"]);
        }
        command.args(["-c", "copy", "-payload_type", &film.payload_type().to_string()]);
        command.args(["-f", "rtp", &format!("rtp://127.0.0.1:{port}?pkt_size=1400")]);
        command
    };
    we_take(&film, program).await;
}

#[tokio::test]
async fn we_take_h264_of_ffmpeg() {
    we_take_from_ffmpeg(Codec::H264).await;
}

#[tokio::test]
async fn we_take_mpeg2_of_ffmpeg() {
    we_take_from_ffmpeg(Codec::Mpeg2).await;
}

async fn we_take_from_gstreamer(codec: Codec) {
    let Some(film) = Film::make(codec).filter(|_| gstreamer()) else { return };
    let elements = match codec {
        // STAP-A for the parameter sets.
        Codec::H264 => {
            "h264parse ! rtph264pay pt=96 mtu=1400 config-interval=-1 aggregate-mode=zero-latency"
        }
        Codec::Mpeg2 => "mpegvideoparse ! rtpmpvpay pt=32 mtu=1400",
    };
    let program = |port: u16| {
        let file = film.mkv.display();
        launch(&format!(
            "filesrc location={file} ! matroskademux ! {elements} ! udpsink host=127.0.0.1 port={port} sync=true"
        ))
    };
    we_take(&film, program).await;
}

#[tokio::test]
async fn we_take_h264_of_gstreamer() {
    we_take_from_gstreamer(Codec::H264).await;
}

#[tokio::test]
async fn we_take_mpeg2_of_gstreamer() {
    we_take_from_gstreamer(Codec::Mpeg2).await;
}

/// Passes on what comes to `pair`: from the receiver at port `to` to the sender, and from the sender to the
/// receiver, but for each fifteenth packet of the first 150. How many those are it counts in `lost`.
async fn relay(pair: Pair, to: u16, lost: &AtomicU16) {
    let local = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let (mut sender, mut count) = (None, 0);
    let (mut rtp, mut rtcp) = (vec![0; 2000], vec![0; 2000]);
    loop {
        tokio::select! {
            Ok((length, from)) = net::receive(&pair.rtp, &mut rtp) => {
                sender = Some(from.port());
                count += 1;
                if count <= 150 && count % 15 == 0 {
                    lost.fetch_add(1, Ordering::Relaxed);
                } else {
                    net::send(&pair.rtp, &rtp[..length], local(to)).await.unwrap();
                }
            }
            Ok((length, from)) = net::receive(&pair.rtcp, &mut rtcp) => {
                let onward = if from == local(to + 1) { sender.map(|port| port + 1) } else { Some(to + 1) };
                if let Some(port) = onward {
                    net::send(&pair.rtcp, &rtcp[..length], local(port)).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn what_is_lost_on_the_way_is_sent_again_in_time() {
    let Some(film) = Film::make(Codec::Mpeg2) else { return };
    let (port, between) = (free_ports(), free_ports());
    let lost = AtomicU16::new(0);
    let pair = Pair::bind(between).unwrap();
    let sends = async {
        tokio::select! {
            counters = send(&film, between) => assert!(counters.sent_again >= 9, "{counters:?}"),
            () = relay(pair, port, &lost) => {}
        }
    };
    let (counters, decoded) = receive(&film, (port, true), sends).await;
    // One of the ten may have been sent again already.
    assert_eq!(lost.into_inner(), 10);
    assert!(counters.missing >= 9, "{counters:?}");
    assert_eq!(counters.recovered, counters.missing, "{counters:?}");
    // The last one may still be on the way between.
    let whole = FRAMES - 1;
    let differ: Vec<usize> =
        (0..whole).filter(|n| decoded.get(*n) != film.decoded.get(*n)).collect();
    assert!(differ.is_empty(), "frames {differ:?} of {}: {counters:?}", decoded.len());
}
