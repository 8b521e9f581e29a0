//! Senders whose interface accepts no more: in a network of their own, where a queue takes hours to pass a packet.
//! Needs root, iproute2 and the token bucket filter (sch_tbf).

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;

use suiro_uncompressed::node::{self, Records, SenderJob, SenderStream, SentTotal, Source};
use suiro_uncompressed::packet::{Format, Layout, PAYLOAD_TYPE, Stream};
use suiro_uncompressed::reader::Ring;
use suiro_uncompressed::send::Lane;
use suiro_uncompressed::socket::{Inlet, Outlet, Route, Segmentation};
use suiro_uncompressed::store::{Content, Header};
use suiro_uncompressed::{Geometry, clock, reader, send};
use suiro_units::{Bytes, Duration};

/// The source address of the slow interface.
const SLOW: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 2), 9);

/// The result of `task` on a machine alone in its network, where a queue of `limit` bytes leads to [`SLOW`]. `None` if
/// such a network cannot be made.
fn alone<T: Send>(limit: u32, done: impl FnOnce() -> T + Send) -> Option<T> {
    let network = format!(
        "ip link set lo up && ip link add slow mtu 9000 type veth peer name far mtu 9000 && \
         ip addr add 10.9.0.1/24 dev slow && ip link set slow up && ip link set far up && \
         ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev slow && \
         tc qdisc replace dev slow root tbf rate 8bit burst 9100 limit {limit}"
    );
    std::thread::scope(|scope| {
        let alone = scope.spawn(|| {
            // SAFETY: this thread alone leaves its network; memory and files stay shared.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                let error = std::io::Error::last_os_error();
                suiro_units::skipped(&format!("cannot make a network: {error}"));
                return None;
            }
            // Programs that it starts are in its network.
            let made = Command::new("sh").args(["-c", &network]).output().unwrap();
            if !made.status.success() {
                suiro_units::skipped(&String::from_utf8_lossy(&made.stderr));
                return None;
            }
            Some(done())
        });
        alone.join().unwrap()
    })
}

fn geometry() -> Geometry {
    "320x90 4:2:2 10 bit 50".parse().unwrap()
}

fn in_memory() -> reader::Options {
    reader::Options {
        source: reader::Source::Memory,
        frames: 2,
        memory: Bytes::new(100_000_000),
        repeat: true,
        depth: reader::DEPTH,
        shape: None,
    }
}

fn job(to: &[SocketAddrV4], segmentation: Segmentation) -> SenderJob {
    let geometry = geometry();
    let stream = |(number, destination): (usize, &SocketAddrV4)| SenderStream {
        number: number as u32,
        source: Source::Synthetic { geometry, frames: 2 },
        format: Format::Raster,
        packet_bytes: 8800,
        stream: Stream { payload_type: PAYLOAD_TYPE, ssrc: 7 },
        route: Route { destination: *destination, source: None, ttl: 1 },
    };
    SenderJob {
        streams: to.iter().enumerate().map(stream).collect(),
        ring: in_memory(),
        burst: send::BURST,
        segmentation,
        options: send::Options { paced: true, cpu: None, begin: None, until: None },
        duration: Some(Duration::from_millis(200)),
        records: Records {
            endpoint: String::new(),
            dir: None,
            peer: None,
            epoch: clock::monotonic(),
        },
    }
}

/// A stream into a queue of `limit` bytes, next to one to this host.
fn sent(limit: u32, segmentation: Segmentation) -> Option<Vec<SentTotal>> {
    alone(limit, || {
        let inlet = Inlet::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), None, 1 << 20).unwrap();
        let job = job(&[SLOW, inlet.address()], segmentation);
        node::send(&job, |_| {}, &mut |_, _| {}, &AtomicBool::new(false)).unwrap()
    })
}

/// 72,000 bytes of frame in 9 packets: more than the queue takes, and more than the socket's buffer holds if the queue
/// takes everything.
#[test]
fn a_stream_without_room_stops_neither_the_others_nor_the_end() {
    // A full socket, and a full interface.
    for limit in [50_000_000, 20_000] {
        for segmentation in [Segmentation::Kernel, Segmentation::None] {
            let Some(sent) = sent(limit, segmentation) else { return };
            let [blocked, other] = &sent[..] else { panic!("two streams") };
            let counts = &blocked.counts;
            assert!(counts.no_room > 100, "the full queue was reported: {counts:?}");
            assert_eq!((counts.skipped, counts.unreachable), (1, 0), "its last frame was given up");
            assert!(blocked.span < Duration::from_secs(3), "{:?}", blocked.span);
            // 10 in 200 ms at 50 a second; a busy machine may start the last one too late. Each is whole.
            assert!(other.counts.frames >= 5, "{:?}", other.counts);
            assert_eq!((other.counts.packets, other.counts.no_room), (9 * other.counts.frames, 0));
        }
    }
}

/// A stream over two paths (ST 2022-7), the first into a full queue: the other one has every packet of its frames.
#[test]
fn a_path_without_room_does_not_starve_the_other() {
    let sent = alone(20_000, || {
        let inlet = Inlet::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), None, 1 << 20).unwrap();
        let layout = Layout::new(Format::Raster, &geometry(), 8800).unwrap();
        let outlet = |destination| {
            let route = Route { destination, source: None, ttl: 1 };
            let bytes = (layout.header_bytes(), layout.datagram_bytes());
            Outlet::open(&route, Segmentation::None, bytes.0, bytes.1).unwrap()
        };
        let outlets = vec![outlet(SLOW), outlet(inlet.address())];
        let header = Header::new(geometry(), Content::Picture);
        let stop = AtomicBool::new(false);
        let ring = Ring::synthetic(&header, 2, &in_memory(), &stop).unwrap();
        let stream = Stream { payload_type: PAYLOAD_TYPE, ssrc: 7 };
        let (epoch, now) = (clock::epoch(), clock::monotonic());
        let mut lane = Lane::standby(0, (layout, stream), outlets, (ring, None), 1, epoch);
        lane.resume(epoch.first_from(geometry().rate(), now));
        let until = Some(now + Duration::from_millis(200));
        let options = send::Options { paced: true, cpu: None, begin: None, until };
        let (told, _heard) = sync_channel(16);
        send::run(std::slice::from_mut(&mut lane), &options, &stop, &told).unwrap();
        lane.counts()
    });
    let Some(counts) = sent else { return };
    // As many as the stream above has next to a blocked one: with a wait for each of its 9 packets, it would be 3.
    assert!(counts.frames >= 5, "{counts:?}");
    let of_the_other = 9 * counts.frames;
    assert!((of_the_other..of_the_other + 9).contains(&counts.packets), "{counts:?}");
    assert!(
        counts.no_room >= of_the_other - 9,
        "the full one is tried with each burst: {counts:?}"
    );
}

/// Of packets sent one by one, those that left are counted, and only the others are sent again.
#[test]
fn packets_before_a_full_queue_are_not_sent_twice() {
    let sent = alone(20_000, || {
        let route = Route { destination: SLOW, source: None, ttl: 1 };
        let mut outlet = Outlet::open(&route, Segmentation::None, 4, 8772).unwrap();
        let piece = [0; 8768];
        let burst =
            || (0..7).map(|_| ([0; suiro_uncompressed::packet::HEADER_BYTES_MAX], &piece[..]));
        [outlet.send(burst()).unwrap(), outlet.send(burst()).unwrap()]
    });
    let Some([first, second]) = sent else { return };
    // One passes at once, two wait.
    assert!((1..7).contains(&first.packets) && first.no_room, "{first:?}");
    assert!(second.packets == 0 && second.no_room, "{second:?}");
}
