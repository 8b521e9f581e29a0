//! Our ST 2110-20 and GStreamer's, each received by the other, bit for bit: 1920×1080 in 4:2:2 with 10 bits, over
//! loopback. Only a few frames a second, so that other programs have time to write them to disk. Without GStreamer
//! these tests print that and pass.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use suiro_endpoint::net::free_port;
use suiro_uncompressed::node::{
    self, ReceiverJob, ReceiverStream, Records, SenderJob, SenderStream, Source,
};
use suiro_uncompressed::packet::{Format, Layout, PAYLOAD_TYPE, STANDARD_PACKET_BYTES, Stream};
use suiro_uncompressed::socket::{Route, Segmentation};
use suiro_uncompressed::store::{Content, Header, Recorder, Store};
use suiro_uncompressed::{
    Depth, FrameRate, Geometry, Sampling, clock, reader, receive, send, synth,
};
use suiro_units::Bytes;

const FRAMES: u64 = 6;
/// A pipeline, with GStreamer's description of images with this geometry.
const PICTURES: &str = "format=uyvp width=1920 height=1080 framerate=4/1";
const CAPS: &str = "application/x-rtp,media=video,clock-rate=90000,encoding-name=RAW,\
    sampling=YCbCr-4:2:2,depth=(string)10,width=(string)1920,height=(string)1080,\
    colorimetry=BT709-2,payload=96";
/// Time limit for GStreamer.
const PATIENCE: Duration = Duration::from_secs(40);

fn geometry() -> Geometry {
    let rate = FrameRate::new(4, 1).unwrap();
    Geometry::new((1920, 1080), Sampling::YCbCr422, Depth::Ten, rate).unwrap()
}

/// `gst-launch-1.0` with these elements, if it is installed with its plug-in for raw video.
fn gstreamer(pipeline: &str) -> Option<Command> {
    let inspect = Command::new("gst-inspect-1.0").arg("rtpvrawpay").output();
    if !inspect.is_ok_and(|output| output.status.success()) {
        suiro_units::skipped(
            "GStreamer with rtpvrawpay is not installed (Debian: gstreamer1.0-plugins-good)",
        );
        return None;
    }
    let mut command = Command::new("gst-launch-1.0");
    command.arg("-q").arg("-e").args(pipeline.split_whitespace());
    command.stdout(Stdio::null());
    Some(command)
}

fn drawn(number: u64) -> Vec<u8> {
    let mut frame = vec![0; geometry().frame_bytes()];
    synth::draw(&geometry(), number, 0, &mut frame);
    frame
}

/// Waits until `done`; returns false if the time limit passes first.
fn within_patience(mut done: impl FnMut() -> bool) -> bool {
    let end = clock::monotonic() + PATIENCE.into();
    while !done() {
        if clock::monotonic() > end {
            return false;
        }
        clock::wait_until(clock::monotonic() + suiro_units::Duration::from_millis(5));
    }
    true
}

/// Waits for it to end within the time limit, or kills it.
fn ended(child: &mut Child) -> bool {
    let ended = within_patience(|| child.try_wait().unwrap().is_some());
    if !ended {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ended
}

fn store(path: &Path) {
    let mut recorder = Recorder::create(path, Header::new(geometry(), Content::Picture)).unwrap();
    (0..FRAMES).for_each(|number| recorder.write(&drawn(number)).unwrap());
    recorder.finish().unwrap();
}

fn send(path: PathBuf, port: u16) {
    let job = SenderJob {
        streams: vec![SenderStream {
            number: 0,
            source: Source::Store(path),
            format: Format::St2110,
            packet_bytes: STANDARD_PACKET_BYTES,
            stream: Stream { payload_type: PAYLOAD_TYPE, ssrc: 1 },
            route: Route {
                destination: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
                source: None,
                ttl: 1,
            },
        }],
        ring: reader::Options {
            source: reader::Source::Memory,
            frames: 600,
            memory: Bytes::new(100_000_000),
            repeat: false,
            depth: reader::DEPTH,
            shape: None,
        },
        burst: send::BURST,
        segmentation: Segmentation::Kernel,
        options: send::Options { paced: true, cpu: None, begin: None, until: None },
        duration: None,
        records: records("sender"),
    };
    let sent = node::send(&job, |_| {}, &mut |_, _| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(sent[0].counts.frames, FRAMES);
}

fn records(endpoint: &str) -> Records {
    Records { endpoint: endpoint.to_owned(), dir: None, peer: None, epoch: clock::monotonic() }
}

#[test]
fn gstreamer_takes_ours() {
    let dir = tempfile::tempdir().unwrap();
    let (port, file) = (free_port(), dir.path().join("received.raw"));
    let pipeline = format!(
        "udpsrc address=127.0.0.1 port={port} buffer-size=67108864 caps={CAPS} ! rtpvrawdepay ! \
         filesink buffer-mode=unbuffered location={}",
        file.display()
    );
    let Some(mut command) = gstreamer(&pipeline) else { return };
    let mut receiving = command.spawn().unwrap();
    let bound = format!(":{port:04X} ");
    let is_bound =
        within_patience(|| std::fs::read_to_string("/proc/net/udp").unwrap().contains(&bound));
    let from = dir.path().join("node.frames");
    store(&from);
    send(from, port);
    // It recognises the end of a frame by the marker.
    let length = || std::fs::metadata(&file).map_or(0, |file| file.len());
    let wanted = FRAMES * geometry().frame_bytes() as u64;
    let arrived = within_patience(|| length() >= wanted);
    receiving.kill().unwrap();
    receiving.wait().unwrap();
    assert!(is_bound && arrived, "{} of {wanted} bytes arrived", length());
    let received = std::fs::read(&file).unwrap();
    let frames = received.chunks_exact(geometry().frame_bytes());
    for (frame, number) in frames.zip(0..FRAMES) {
        assert!(frame == drawn(number), "frame {number} differs");
    }
}

#[test]
fn we_take_gstreamers() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent.raw");
    let all: Vec<u8> = (0..FRAMES).flat_map(drawn).collect();
    std::fs::write(&file, all).unwrap();
    let to = dir.path().join("received.frames");
    let job = ReceiverJob {
        streams: vec![ReceiverStream {
            number: 0,
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
            joined: None,
            layout: Layout::new(Format::St2110, &geometry(), STANDARD_PACKET_BYTES).unwrap(),
            payload_type: PAYLOAD_TYPE,
            record: Some(to.clone()),
        }],
        buffer_bytes: 4 << 20,
        replace: false,
        warn: |told| panic!("{told}"),
        verify: true,
        delay: None,
        options: receive::Options { cpu: None, until: None },
        records: records("receiver"),
    };
    let stop = AtomicBool::new(false);
    let received = std::thread::scope(|scope| {
        let (tell, told) = channel();
        let (job, stop) = (&job, &stop);
        let receiving = scope.spawn(move || {
            node::receive(job, |addresses| tell.send(addresses[0].port()).unwrap(), stop)
        });
        let port = told.recv().unwrap();
        let pipeline = format!(
            "filesrc location={} blocksize={} ! rawvideoparse {PICTURES} ! rtpvrawpay mtu=1472 ! \
             udpsink host=127.0.0.1 port={port}",
            file.display(),
            geometry().frame_bytes()
        );
        let sent = gstreamer(&pipeline).map(|mut command| ended(&mut command.spawn().unwrap()));
        stop.store(true, Ordering::Relaxed);
        let received = receiving.join().unwrap().unwrap();
        sent.map(|sent| (sent, received))
    });
    let Some((sent, received)) = received else { return };
    let counts = &received.totals[0].counts;
    assert!(sent, "GStreamer did not end");
    assert_eq!((counts.frames, counts.lost, counts.malformed), (FRAMES, 0, 0), "{counts:?}");
    let store = Store::open(&to).unwrap();
    let mut slot = vec![0; store.header().slot_bytes()];
    for number in 0..FRAMES {
        store.read_verified(number, &mut slot).unwrap();
        assert!(slot[..geometry().frame_bytes()] == drawn(number), "frame {number} differs");
    }
}
