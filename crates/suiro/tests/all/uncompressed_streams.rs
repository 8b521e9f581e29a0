//! `suiro uncompressed send` and `receive`: a split sequence through eight streams and back, and
//! ffmpeg's ST 2110-20 next to ours, each received by the other, bit for bit. Over loopback.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use suiro_endpoint::net::free_port;
use suiro_media::Ffmpeg;
use suiro_uncompressed::clock;
use suiro_uncompressed::socket::Inlet;
use suiro_uncompressed::store::Store;
use suiro_units::Duration;

/// Longest that another program may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// `suiro uncompressed` with the words of a line; `_` stands for a space within one.
fn suiro(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suiro"));
    let words = line.split(' ').map(|word| word.replace('_', " "));
    command.arg("uncompressed").args(words).current_dir(folder);
    command
}

fn done(folder: &Path, line: &str) {
    let output = suiro(folder, line).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
}

impl Drop for Receiver {
    /// Whatever a test came to: nothing is left.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a sender printed. On a busy machine a frame may be late: then it reports a failure, but has sent everything.
fn sent(folder: &Path, line: &str) -> String {
    let output = suiro(folder, line).output().unwrap();
    eprintln!("{line}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A receiver that is ready.
struct Receiver {
    child: Child,
    /// Its output, kept open so that it can go on printing.
    told: BufReader<ChildStderr>,
    /// Where its streams are.
    addresses: Vec<SocketAddrV4>,
}

impl Receiver {
    fn start(folder: &Path, line: &str) -> Self {
        let mut command = suiro(folder, line);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let ready = told.by_ref().lines().map(Result::unwrap);
        let ready = ready.take_while(|line| !line.contains("Ctrl-C"));
        let ready = ready.filter(|line| line.starts_with("stream "));
        // stream 0 at 127.0.0.1:5004: …
        let address = |line: String| line.split(' ').nth(3).unwrap().trim_end_matches(':').parse();
        let addresses = ready.map(|line| address(line).unwrap()).collect();
        Self { child, told, addresses }
    }

    /// Ends it as Ctrl-C does: it takes what lies in its sockets first. What it says of its streams in the end.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let (mut told, mut results) = (String::new(), String::new());
        self.told.read_to_string(&mut told).unwrap();
        self.child.stdout.take().unwrap().read_to_string(&mut results).unwrap();
        assert!(self.child.wait().unwrap().success(), "not all came whole: {told}");
        results
    }
}

/// Raw frames of 10-bit samples in 16-bit words that look random.
fn raw(path: &Path, samples: usize) -> Vec<u8> {
    let sample = |i: usize| ((i.wrapping_mul(2_654_435_761) >> 7) & 0x3ff) as u16;
    let frames: Vec<u8> = (0..samples).flat_map(|i| sample(i).to_le_bytes()).collect();
    std::fs::write(path, &frames).unwrap();
    frames
}

#[test]
fn a_split_sequence_crosses_eight_streams_and_is_joined_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // 8K-DG of a fortieth of 8K: four planes of 96×54 samples.
    let frames = raw(&folder.join("8k.raw"), 5 * 4 * 96 * 54);
    done(folder, "split 8k.raw --raw --geometry 192x108_RGB_10_60000/1001 --out nodes");
    let part = "--format raster --geometry 48x27_4:2:2_10_60000/1001";
    let all = ["127.0.0.1:0"; 8].join(" ");
    let receiver = Receiver::start(folder, &format!("receive {all} {part} --record received"));
    assert_eq!(receiver.addresses.len(), 8);
    let to: Vec<_> = receiver.addresses.iter().map(ToString::to_string).collect();
    let stores: Vec<_> = (1..=8).map(|node| format!("--store nodes/node-{node}.frames")).collect();
    let (to, stores) = (to.join(" "), stores.join(" "));
    sent(folder, &format!("send {to} {stores} --from memory --once --format raster"));
    receiver.end();
    let received: Vec<_> = (0..8).map(|at| format!("received/stream-{at}.frames")).collect();
    done(folder, &format!("join {} --as dg --out back.raw", received.join(" ")));
    assert!(std::fs::read(folder.join("back.raw")).unwrap() == frames, "other pictures came back");
    // They are kept unless replacing them is asked for.
    let refused = suiro(folder, &format!("receive 127.0.0.1:0 {part} --record received"));
    let refused = { refused }.output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("received/stream-0.frames already exists"), "{error}");
    let line = format!("receive 127.0.0.1:0 {part} --record received --replace --duration 1_ms");
    let replaced = { suiro(folder, &line) }.output().unwrap();
    let error = String::from_utf8(replaced.stderr).unwrap();
    assert!(error.contains("stream 0: 0 frames in received/stream-0.frames"), "{error}");
}

/// Both have one clock here. What of the frames is shown in time depends on the machine.
#[test]
fn what_a_converter_would_show_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let part = "--format raster --geometry 48x27_4:2:2_10_60000/1001";
    let line = format!("receive 127.0.0.1:0 {part} --delay 6 --json --record received");
    let receiver = Receiver::start(folder, &line);
    sent(folder, &format!("send {} {part} --ring 20 --once", receiver.addresses[0]));
    let told = receiver.end();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let count = |key: &str| told["shown"][key].as_u64().unwrap();
    let (ticks, fresh) = (count("ticks"), count("ticks") - count("underruns"));
    assert!(ticks >= 1 && fresh <= 20, "{told}");
    assert_eq!((count("repeats"), told["frames"].as_u64()), (0, Some(20)), "{told}");
}

/// Frames that ffmpeg has planes of and our streams pixel groups: 640×16 at 4 a second. Of shorter rows
/// ffmpeg puts more into a packet than the three that ST 2110-20 allows.
const PICTURES: (usize, usize) = (640, 16);
const GEOMETRY: &str = "640x16_4:2:2_10_4";
const FRAMES: usize = 6;

fn ffmpeg() -> Option<Ffmpeg> {
    Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()
}

/// Planes Y, Cb, Cr of 16-bit words as ST 2110-20 has them: Cb Y Cr Y of 10 bits in 5 octets.
fn packed(planes: &[u8]) -> Vec<u8> {
    let (width, height) = PICTURES;
    let sample = |at: usize| u64::from(u16::from_le_bytes([planes[2 * at], planes[2 * at + 1]]));
    let pair = |at: usize| {
        let (luma, blue) = (2 * at, width * height + at);
        let red = blue + width * height / 2;
        let group = [blue, luma, red, luma + 1];
        let group = group.into_iter().fold(0, |group, at| group << 10 | sample(at));
        group.to_be_bytes()[3..].to_vec()
    };
    (0..width * height / 2).flat_map(pair).collect()
}

fn samples() -> usize {
    PICTURES.0 * PICTURES.1 * 2
}

/// Ends by itself within patience, or is ended.
fn ended(mut child: Child) -> bool {
    let until = clock::monotonic() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if clock::monotonic() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
        clock::wait_until(clock::monotonic() + Duration::from_millis(5));
    }
}

#[test]
fn what_cannot_be_received_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    for (line, reason) in [
        ("receive 127.0.0.1:0 --buffer 5_GB", "--buffer \"5 GB\": 4 KiB to 1 GB can be had"),
        ("receive x.sdp --format raster", "x.sdp: a session description is of st2110"),
    ] {
        let output = suiro(folder.path(), line).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn we_take_ffmpegs() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let planes = raw(&folder.join("sent.raw"), FRAMES * samples());
    let line = format!("receive 127.0.0.1:0 --geometry {GEOMETRY} --record received");
    let receiver = Receiver::start(folder, &line);
    let mut command = Command::new(ffmpeg.path());
    command.args(["-v", "error", "-nostdin", "-re", "-f", "rawvideo", "-pix_fmt", "yuv422p10le"]);
    command.args(["-s", "640x16", "-r", "4", "-i", "sent.raw", "-field_order", "progressive"]);
    command.args(["-c:v", "bitpacked", "-pix_fmt", "yuv422p10", "-payload_type", "96"]);
    command.args(["-f", "rtp", &format!("rtp://{}?pkt_size=1472", receiver.addresses[0])]);
    command.current_dir(folder).stdout(Stdio::null());
    assert!(ended(command.spawn().unwrap()), "ffmpeg failed");
    receiver.end();
    let received = store(&folder.join("received/stream-0.frames"));
    let sent: Vec<_> = planes.chunks(2 * samples()).map(packed).collect();
    assert_eq!(received.len(), FRAMES);
    assert!(received == sent, "other frames came");
}

/// All frames of a store.
fn store(path: &Path) -> Vec<Vec<u8>> {
    let store = Store::open(path).unwrap();
    let mut slot = vec![0; store.header().slot_bytes()];
    let bytes = store.header().geometry.frame_bytes();
    let frame = |index| {
        store.read_verified(index, &mut slot).unwrap();
        slot[..bytes].to_vec()
    };
    (0..store.header().frames).map(frame).collect()
}

#[test]
fn ffmpeg_takes_ours() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &format!("synth --out nodes --nodes 1 --frames 30 --geometry {GEOMETRY}"));
    let to = format!("127.0.0.1:{}", free_port());
    let store_of = "--store nodes/node-1.frames --from memory";
    sent(folder, &format!("send {to} {store_of} --sdp . --duration 1_ms"));
    let mut command = Command::new(ffmpeg.path());
    command.args(["-v", "error", "-nostdin", "-protocol_whitelist", "file,udp,rtp"]);
    // It has the frames' form from the description, and need not look at any.
    command.args(["-analyzeduration", "0", "-probesize", "32", "-i", "stream-0.sdp"]);
    // The frame during which it joins is cut, as its start has passed.
    command.args(["-frames:v", &(1 + FRAMES).to_string(), "-pix_fmt", "yuv422p10le"]);
    command.args(["-f", "rawvideo", "received.raw"]).current_dir(folder).stdout(Stdio::null());
    let receiving = command.spawn().unwrap();
    let sending = suiro(folder, &format!("send {to} {store_of}")).stderr(Stdio::null()).spawn();
    let (sending, well) = (sending.unwrap(), ended(receiving));
    kill_process(Pid::from_child(&sending), Signal::INT).unwrap();
    ended(sending);
    assert!(well, "ffmpeg did not take {} frames", 1 + FRAMES);
    let sent = store(&folder.join("nodes/node-1.frames"));
    let received = std::fs::read(folder.join("received.raw")).unwrap();
    assert_eq!(received.len(), (1 + FRAMES) * 2 * samples());
    let received: Vec<_> = received.chunks(2 * samples()).skip(1).map(packed).collect();
    // Once it has joined, it misses nothing.
    let first = sent.iter().position(|frame| *frame == received[0]).expect("one of ours");
    let round = (0..FRAMES).map(|at| &sent[(first + at) % sent.len()]);
    assert!(received.iter().eq(round), "other frames came");
}

#[test]
fn a_bench_reads_and_sends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    done(folder.path(), "synth --out nodes --nodes 1 --frames 4 --geometry 64x16_4:2:2_10_50");
    // Nobody need take them; the port is only ours.
    let anywhere = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let inlet = Inlet::open(anywhere, None, 1 << 20).unwrap();
    let to = inlet.address();
    let line = format!(
        "bench both --store nodes/node-1.frames --from cached --to {to} --rate 0.6_Gbit/s --duration 1_s --json"
    );
    let told = sent(folder.path(), &line);
    let rows: Vec<serde_json::Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [read, sent] = &rows[..] else { panic!("{told}") };
    let number = |row: &serde_json::Value, name: &str| row[name].as_u64().unwrap();
    assert!(number(read, "frames") > 60 && number(read, "groups") > 0, "{read}");
    assert_eq!(number(read, "bytes"), number(read, "frames") * 64 * 16 * 5 / 2, "{read}");
    // 709 packets of 8800 bytes make a raster.
    let frames = number(sent, "frames");
    assert!(frames > 0 && number(sent, "packets") == frames * 709, "{sent}");
}
