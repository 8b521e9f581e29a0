//! A sender and a receiver on loopback: what is sent arrives, bit for bit, and the records agree.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use suiro_record::Reader;
use suiro_record::tables::{
    UncompressedFrameRow, UncompressedReceivedRow, UncompressedRingRow, UncompressedSentRow,
    UncompressedShownRow,
};
use suiro_record::words::Shown;
use suiro_uncompressed::node::{
    self, Received, ReceiverJob, ReceiverStream, Records, SenderJob, SenderStream, SentTotal,
    Source,
};
use suiro_uncompressed::packet::{self, Format, HEADER_BYTES_MAX, Layout, PAYLOAD_TYPE, Stream};
use suiro_uncompressed::socket::{Inlet, Joined, Route, Segmentation};
use suiro_uncompressed::store::{Content, Header, Recorder, Store};
use suiro_uncompressed::{
    Depth, FrameRate, Geometry, Sampling, clock, reader, receive, send, synth,
};
use suiro_units::{Bytes, Duration, Time};

const FRAMES: u64 = 12;
/// Frame times from the beginning of a frame to its tick.
const DELAY: u8 = 6;

fn geometry() -> Geometry {
    Geometry::new((320, 90), Sampling::YCbCr422, Depth::Ten, FrameRate::P59_94).unwrap()
}

fn records(dir: &Path, endpoint: &str) -> Records {
    Records {
        endpoint: endpoint.to_owned(),
        dir: Some(dir.to_owned()),
        peer: None,
        epoch: clock::monotonic(),
    }
}

/// A store of synthetic frames.
fn store(dir: &Path, part: u16) -> std::path::PathBuf {
    let path = dir.join(format!("node-{part}.frames"));
    let mut recorder = Recorder::create(&path, Header::new(geometry(), Content::Picture)).unwrap();
    let mut frame = vec![0; geometry().frame_bytes()];
    for number in 0..FRAMES {
        synth::draw(&geometry(), number, part, &mut frame);
        recorder.write(&frame).unwrap();
    }
    recorder.finish().unwrap();
    path
}

fn sender(dir: &Path, format: Format, packet_bytes: u32, to: &[SocketAddrV4]) -> SenderJob {
    let stream = |(number, destination): (usize, &SocketAddrV4)| SenderStream {
        number: number as u32,
        source: Source::Store(dir.join(format!("node-{number}.frames"))),
        format,
        packet_bytes,
        stream: Stream { payload_type: PAYLOAD_TYPE, ssrc: 7 + number as u32 },
        route: Route { destination: *destination, source: None, ttl: 1 },
    };
    SenderJob {
        streams: to.iter().enumerate().map(stream).collect(),
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
        records: records(dir, "sender"),
    }
}

fn receiver(dir: &Path, format: Format, packet_bytes: u32) -> ReceiverJob {
    let stream = |number: u32| ReceiverStream {
        number,
        address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
        joined: None,
        layout: Layout::new(format, &geometry(), packet_bytes).unwrap(),
        payload_type: PAYLOAD_TYPE,
        record: Some(dir.join(format!("received-{number}.frames"))),
    };
    ReceiverJob {
        streams: vec![stream(0), stream(1)],
        buffer_bytes: 4 << 20,
        replace: false,
        warn: |told| panic!("{told}"),
        verify: true,
        delay: Some(DELAY),
        options: receive::Options { cpu: None, until: None },
        records: records(dir, "receiver"),
    }
}

/// Sends both stores; the receiver is stopped when the sender has ended: what was sent by then is
/// in the sockets, and is taken before the receiver ends.
fn exchange(dir: &Path, format: Format, packet_bytes: u32) -> (Vec<SentTotal>, Received) {
    let job = receiver(dir, format, packet_bytes);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (tell, told) = channel();
        let stop = &stop;
        let receiving = scope.spawn(move || {
            node::receive(&job, |addresses| tell.send(addresses.to_vec()).unwrap(), stop)
        });
        let addresses = told.recv().unwrap();
        let job = sender(dir, format, packet_bytes, &addresses);
        let sent = node::send(&job, |_| {}, &mut |_, _| {}, &AtomicBool::new(false));
        stop.store(true, Ordering::Relaxed);
        (sent.unwrap(), receiving.join().unwrap().unwrap())
    })
}

fn is_bit_exact(dir: &Path, number: usize) {
    let sent = Store::open(&dir.join(format!("node-{number}.frames"))).unwrap();
    let received = Store::open(&dir.join(format!("received-{number}.frames"))).unwrap();
    assert_eq!(received.header().frames, FRAMES);
    let (mut one, mut other) =
        (vec![0; sent.header().slot_bytes()], vec![0; sent.header().slot_bytes()]);
    for index in 0..FRAMES {
        sent.read_verified(index, &mut one).unwrap();
        received.read_verified(index, &mut other).unwrap();
        assert!(one[..geometry().frame_bytes()] == other[..geometry().frame_bytes()]);
    }
}

#[test]
fn streams_arrive_bit_for_bit_in_both_formats() {
    for (format, packet_bytes) in [(Format::St2110, 1500), (Format::Raster, 8800)] {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), 0);
        store(dir.path(), 1);
        let (sent, received) = exchange(dir.path(), format, packet_bytes);
        for (sent, total) in sent.iter().zip(&received.totals) {
            assert_eq!((sent.counts.frames, sent.repeats), (FRAMES, 0));
            let counts = &total.counts;
            assert_eq!((counts.frames, counts.packets), (FRAMES, sent.counts.packets));
            assert_eq!((counts.lost, counts.incomplete, counts.corrupt), (0, 0, 0));
            assert_eq!((counts.foreign, counts.malformed, total.dropped), (0, 0, 0));
        }
        is_bit_exact(dir.path(), 0);
        is_bit_exact(dir.path(), 1);
        has_records(dir.path(), format == Format::Raster);
    }
}

fn has_records(dir: &Path, checksums: bool) {
    let frames: Vec<UncompressedFrameRow> = Reader::read_all(dir).unwrap();
    assert_eq!(frames.len() as u64, 2 * FRAMES);
    let first = frames.iter().map(|row| row.frame).min().unwrap();
    for number in 0..2 {
        let recorded = Store::open(&dir.join(format!("received-{number}.frames"))).unwrap();
        assert_eq!(recorded.header().first.cast_signed(), first, "joined by number");
    }
    for row in &frames {
        let (due, last) = (row.due_ns.unwrap(), row.last_ns.unwrap());
        assert!(row.t_ns >= due && last >= row.t_ns, "no frame arrives before it is due");
        assert_eq!((row.lost_packets, row.sound), (0, checksums.then_some(true)));
        // Whatever host they are on, frames are numbered by time, and stores start at their first
        // frame.
        let content = checksums.then_some(row.frame - first);
        assert_eq!(row.content, content);
    }
    has_shown(dir, first);
    let sent: Vec<UncompressedSentRow> = Reader::read_all(dir).unwrap();
    let received: Vec<UncompressedReceivedRow> = Reader::read_all(dir).unwrap();
    let sum = |rows: Vec<i64>| rows.into_iter().sum::<i64>();
    assert_eq!(
        sum(sent.iter().map(|row| row.packets).collect()),
        sum(received.iter().map(|row| row.packets).collect())
    );
    assert_eq!(
        sum(sent.iter().map(|row| row.bytes).collect()),
        sum(received.iter().map(|row| row.bytes).collect())
    );
    let rings: Vec<UncompressedRingRow> = Reader::read_all(dir).unwrap();
    assert_eq!(rings.iter().map(|row| row.sent_frames).max(), Some(FRAMES.cast_signed()));
}

/// The output showed the frames whose ticks were due before receiving ended, each at its own tick.
fn has_shown(dir: &Path, first: i64) {
    let rows: Vec<UncompressedShownRow> = Reader::read_all(dir).unwrap();
    let streams: Vec<_> = rows.iter().map(|row| row.stream).collect();
    assert!(streams.contains(&0) && streams.contains(&1), "{streams:?}");
    for row in &rows {
        assert_eq!(row.wanted_frame, row.tick - i64::from(DELAY));
        assert!(row.wanted_frame >= first && row.late_ns >= 0);
        assert_eq!(row.margin_ns.is_some(), row.outcome != Shown::Underrun);
        // What becomes of a frame depends on this machine; that a tick shows its own frame or an older one does not.
        let is_own = row.frame == Some(row.wanted_frame);
        assert_eq!(is_own, row.outcome != Shown::Underrun, "{row:?}");
    }
}

#[test]
fn a_stream_ends_when_its_time_is_up() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path(), 0);
    let mut job =
        sender(dir.path(), Format::Raster, 8800, &[SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9)]);
    job.ring.repeat = true;
    job.options.until = Some(Time::ZERO);
    let sent = node::send(&job, |_| {}, &mut |_, _| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(sent[0].counts.frames, 1, "the current frame is sent completely");
}

/// Frames that do not exist are not read, and the user is not led to believe that they were sent.
#[test]
fn a_store_truncated_while_it_is_sent_ends_its_stream_with_the_reason() {
    for source in [reader::Source::Cached, reader::Source::Mapped] {
        cut_while_sent(source);
    }
}

fn cut_while_sent(source: reader::Source) {
    // On a real file system, which O_DIRECT needs.
    let dir = tempfile::tempdir_in(".").unwrap();
    store(dir.path(), 0);
    store(dir.path(), 1);
    let to = [Inlet::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), None, 1000).unwrap(), {
        Inlet::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), None, 1000).unwrap()
    }];
    let to = to.each_ref().map(Inlet::address);
    let mut job = sender(dir.path(), Format::Raster, 8800, &to);
    (job.ring.source, job.ring.frames) = (source, 4);
    let cut = |_: &[reader::Ring]| {
        let path = dir.path().join("node-1.frames");
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(5000).unwrap();
    };
    let mut warnings = Vec::new();
    let mut warn = |stream, reason: &str| warnings.push((stream, reason.to_owned()));
    // Without a time or a stop: it ends because the frames do.
    let sent = node::send(&job, cut, &mut warn, &AtomicBool::new(false)).unwrap();
    assert_eq!((sent[0].counts.frames, &sent[0].failure), (FRAMES, &None));
    // A mapped frame is gone with its file.
    let there = if source == reader::Source::Mapped { 0 } else { 4 };
    assert!(sent[1].counts.frames - sent[1].repeats >= there, "what was read is sent");
    assert!(sent[1].counts.frames - sent[1].repeats < FRAMES);
    let failure = sent[1].failure.clone().unwrap();
    let reasons = ["node-1.frames: reading frame", "is no longer in its store"];
    assert!(reasons.iter().any(|reason| failure.contains(reason)), "{failure}");
    assert_eq!(warnings, [(1, failure)]);
}

/// Two receivers on a host join one group's stream; a third, in another group, receives nothing of
/// it.
#[test]
fn a_group_is_received_by_all_who_joined_it() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path(), 0);
    let (group, other) = (Ipv4Addr::new(239, 255, 77, 1), Ipv4Addr::new(239, 255, 77, 2));
    let port = {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        Inlet::open(any, None, 1000).unwrap().address().port()
    };
    let (format, packet_bytes) = (Format::Raster, 1500);
    let interface = Ipv4Addr::LOCALHOST;
    let mut job = receiver(dir.path(), format, packet_bytes);
    let one = ReceiverStream {
        address: SocketAddrV4::new(group, port),
        joined: Some(Joined { group, interface, source: None }),
        record: None,
        ..job.streams[0].clone()
    };
    let elsewhere = ReceiverStream {
        number: 2,
        address: SocketAddrV4::new(other, port),
        joined: Some(Joined { group: other, interface, source: None }),
        ..one.clone()
    };
    job.streams = vec![one.clone(), ReceiverStream { number: 1, ..one }, elsewhere];
    job.records.dir = None;
    let mut sending = sender(dir.path(), format, packet_bytes, &[SocketAddrV4::new(group, port)]);
    sending.streams[0].route.source = Some(interface);
    sending.records.dir = None;
    let (stop, (tell, told)) = (AtomicBool::new(false), channel());
    let received = std::thread::scope(|scope| {
        let (job, stop) = (&job, &stop);
        let receiving =
            scope.spawn(move || node::receive(job, |_| tell.send(()).unwrap(), stop).unwrap());
        told.recv().unwrap();
        node::send(&sending, |_| {}, &mut |_, _| {}, &AtomicBool::new(false)).unwrap();
        stop.store(true, Ordering::Relaxed);
        receiving.join().unwrap()
    });
    let frames: Vec<_> = received.totals.iter().map(|total| total.counts.frames).collect();
    assert_eq!(frames, [FRAMES, FRAMES, 0]);
    assert!(received.totals.iter().all(|total| total.counts.lost == 0));
}

/// Each packet implies that 599 frames did not arrive: enough rows that the records are written. The disk is
/// full as soon as a file has a few kilobytes, which only a process of its own can be made to believe.
#[test]
fn records_that_cannot_be_written_end_the_receiver_at_once() {
    const FULL: &str = "SUIRO_TEST_OF_A_FULL_DISK";
    if std::env::var_os(FULL).is_none() {
        let limited = "ulimit -f 32; trap '' XFSZ; exec \"$0\" \"$@\"";
        let name = "records_that_cannot_be_written_end_the_receiver_at_once";
        let mut again = std::process::Command::new("sh");
        again.arg("-c").arg(limited).arg(std::env::current_exe().unwrap());
        let output = again.args(["--exact", name]).env(FULL, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut job = receiver(dir.path(), Format::Raster, 8800);
    job.streams.truncate(1);
    job.streams[0].record = None;
    let (stop, (tell, told)) = (AtomicBool::new(false), channel());
    let patience = clock::monotonic() + Duration::from_secs(60);
    let received = std::thread::scope(|scope| {
        let (job, stop) = (&job, &stop);
        let receiving = scope
            .spawn(move || node::receive(job, |own| tell.send(own[0]).unwrap(), stop).map(drop));
        let to = told.recv().unwrap();
        #[expect(clippy::disallowed_methods, reason = "a sender that none of ours is")]
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for number in 1.. {
            if receiving.is_finished() || clock::monotonic() > patience {
                break;
            }
            socket.send_to(&first_packet(number), to).unwrap();
        }
        assert!(receiving.is_finished() || !stop.swap(true, Ordering::Relaxed), "it did not stop");
        receiving.join().unwrap()
    });
    let error = received.unwrap_err().to_string();
    assert!(error.contains("uncompressed_frames.receiver.parquet"), "{error}");
    assert!(clock::monotonic() < patience, "it ended only because it was stopped");
}

/// The first packet of every 600th frame.
fn first_packet(number: u32) -> Vec<u8> {
    let layout = Layout::new(Format::Raster, &geometry(), 8800).unwrap();
    let frame = packet::Frame {
        timestamp: FrameRate::P59_94.rtp_timestamp(u64::from(number) * 600),
        sequence: number,
        number,
        checksum: 0,
    };
    let mut header = [0; HEADER_BYTES_MAX];
    layout.write_header(Stream { payload_type: PAYLOAD_TYPE, ssrc: 1 }, &frame, 0, &mut header);
    let mut packet = header[..layout.header_bytes()].to_vec();
    packet.resize(layout.datagram_bytes(), 0);
    packet
}
