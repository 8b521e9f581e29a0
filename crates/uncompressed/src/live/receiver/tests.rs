use std::net::{Ipv4Addr, SocketAddrV4};

use super::*;
use crate::geometry::Geometry;
use crate::live::{Event, LaneConfig, Load, Material, Sender, SenderChange, SenderConfig};
use crate::node::Source;
use crate::packet::{Format, Layout, PAYLOAD_TYPE, Stream};
use crate::reader;
use crate::socket::Route;
use crate::store::Store;

const CYCLE: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(20);
const BUDGET: Duration = Duration::from_millis(100);

fn geometry() -> Geometry {
    "64x20 4:2:2 10 50".parse().unwrap()
}

fn receiver(lanes: u32) -> (Receiver, Events) {
    let layout = Layout::new(Format::Raster, &geometry(), 384).unwrap();
    let lane =
        |number| ReceiverLaneConfig { number, layout, payload_type: PAYLOAD_TYPE, budget: BUDGET };
    let lanes = (0..lanes).map(lane).collect();
    let (buffer_bytes, verify, cpu, frames) = (1 << 20, true, None, None);
    Receiver::start(ReceiverConfig { lanes, buffer_bytes, verify, cpu, frames }).unwrap()
}

/// A standby that sends to `to` from its start on.
fn standby(ssrc: u32, to: SocketAddrV4) -> (Sender, Events) {
    let lane = LaneConfig {
        number: 0,
        format: Format::Raster,
        geometry: geometry(),
        packet_bytes: 384,
        stream: Stream { payload_type: PAYLOAD_TYPE, ssrc },
    };
    let ring = reader::Options { frames: CYCLE, ..SenderConfig::new(Vec::new()).ring };
    let (node, events) =
        Sender::start(SenderConfig { ring, ..SenderConfig::new(vec![lane]) }).unwrap();
    let source = Source::Synthetic { geometry: geometry(), frames: CYCLE };
    let change = SenderChange {
        on: None,
        routes: Some(vec![Route { destination: to, source: None, ttl: 1 }]),
        load: Some(Load::Cue(Material { source, origin: 0, repeat: true })),
    };
    node.order(&Order::one(At::Next, 0, change)).unwrap();
    wait(&events, |what| *what == What::Filled);
    (node, events)
}

fn any() -> Leg {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    Leg { address, interface: Ipv4Addr::UNSPECIFIED, source: None, payload_type: None }
}

fn wait(events: &Events, wanted: impl Fn(&What) -> bool) -> Event {
    let (until, mut all) = (clock::monotonic() + PATIENCE, Vec::new());
    while clock::monotonic() < until {
        if let Some(event) = events.wait(Duration::from_millis(100)) {
            if wanted(&event.what) {
                return event;
            }
            all.push(event);
        }
    }
    panic!("the event did not come: {all:?}");
}

/// Joins, and returns the addresses of the paths.
fn join(node: &Receiver, events: &Events, lane: u32, legs: Vec<Leg>) -> Vec<SocketAddrV4> {
    let count = legs.len();
    node.order(&Order::one(At::Next, lane, ReceiverChange::join(legs))).unwrap();
    wait(events, |what| matches!(what, What::Changed { .. }));
    let until = clock::monotonic() + PATIENCE;
    loop {
        let paths = &node.state().lanes[lane as usize].paths;
        if paths.len() == count {
            return paths.iter().map(|path| path.leg.address).collect();
        }
        assert!(clock::monotonic() < until, "the paths are not in use");
        std::thread::yield_now();
    }
}

#[test]
fn a_stream_moves_to_a_standby_without_a_lost_or_repeated_frame() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("received.frames");
    let (receiver, told) = receiver(1);
    let to = join(&receiver, &told, 0, vec![any()])[0];
    let (old, _old_events) = standby(1, to);
    let (new, _new_events) = standby(2, to);
    let rate = geometry().rate();
    let at = |frame: u64| At::Tai(rate.start_of(frame));
    let begin = receiver.epoch().first_from(rate, clock::monotonic()) + 5;
    old.order(&Order::one(at(begin), 0, SenderChange::start())).unwrap();
    let (seam, end) = (begin + 7, begin + 15);
    old.order(&Order::one(at(seam), 0, SenderChange::stop())).unwrap();
    new.order(&Order::one(at(seam), 0, SenderChange::start())).unwrap();
    let storing = Storing::To { path: path.clone(), replace: false };
    let store = |storing| ReceiverChange::store(storing);
    receiver.order(&Order::one(at(begin + 3), 0, store(storing))).unwrap();
    receiver.order(&Order::one(at(end - 2), 0, store(Storing::Off))).unwrap();
    receiver.order(&Order::one(at(end), 0, ReceiverChange::leave())).unwrap();
    let started = wait(&told, |what| matches!(what, What::Started { .. }));
    assert_eq!(started.what, What::Started { frame: begin });
    let turned = wait(&told, |what| matches!(what, What::Seam { .. }));
    assert_eq!(turned.what, What::Seam { frame: seam, ssrc: 2, before: 1 });
    let stored = wait(&told, |what| matches!(what, What::Stored { .. }));
    assert!(
        matches!(stored.what, What::Stored { frames: 10, missing: 0, slow: 0, .. }),
        "{stored:?}"
    );
    wait(&told, |what| *what == What::Stopped { last: end - 1 });
    let lane = receiver.stop().lanes.remove(0);
    let counts = &lane.counts;
    assert_eq!((counts.frames, counts.seams), (end - begin, 1), "{counts:?}");
    assert_eq!((counts.lost, counts.incomplete, counts.repeated), (0, 0, 0), "{counts:?}");
    assert_eq!((lane.first, lane.last), (Some(begin), Some(end - 1)));
    let store = Store::open(&path).unwrap();
    assert_eq!((store.header().first, store.header().frames), (begin + 3, 10));
}

#[test]
fn two_paths_are_one_stream_and_other_lanes_are_not_touched() {
    let (receiver, told) = receiver(2);
    let to = join(&receiver, &told, 0, vec![any(), any()]);
    let beside = join(&receiver, &told, 1, vec![any()])[0];
    let (one, _one) = standby(9, to[0]);
    let (twin, _twin) = standby(9, to[1]);
    let (other, _other) = standby(3, beside);
    let rate = geometry().rate();
    let begin = receiver.epoch().first_from(rate, clock::monotonic()) + 5;
    let at = |frame: u64| At::Tai(rate.start_of(frame));
    for node in [&one, &twin, &other] {
        node.order(&Order::one(at(begin), 0, SenderChange::start())).unwrap();
    }
    // One path vanishes, amid the stream.
    wait(&told, |what| *what == What::Started { frame: begin });
    drop(one);
    receiver.order(&Order::one(at(begin + 30), 0, ReceiverChange::leave())).unwrap();
    wait(&told, |what| *what == What::Stopped { last: begin + 29 });
    let state = receiver.state();
    let counts = &state.lanes[0].counts;
    assert_eq!((counts.frames, counts.lost, counts.incomplete), (30, 0, 0), "{counts:?}");
    assert!(state.lanes[0].paths.is_empty());
    let counts = &state.lanes[1].counts;
    assert!(counts.frames > 20 && counts.lost + counts.incomplete == 0, "{counts:?}");
}

#[test]
fn what_is_cancelled_does_not_happen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("received.frames");
    let (receiver, told) = receiver(1);
    join(&receiver, &told, 0, vec![any()]);
    let rate = geometry().rate();
    let begin = receiver.epoch().first_from(rate, clock::monotonic()) + 10;
    let at = |frame: u64| At::Tai(rate.start_of(frame));
    let storing = Some(Storing::To { path, replace: false });
    let change = ReceiverChange { store: storing, ..ReceiverChange::leave() };
    receiver.order(&Order::one(at(begin), 0, change)).unwrap();
    receiver.cancel(0, rate.start_of(begin)).unwrap();
    let stored = wait(&told, |what| matches!(what, What::Stored { .. }));
    assert!(matches!(stored.what, What::Stored { frames: 0, .. }), "{stored:?}");
    let again = receiver.cancel(0, rate.start_of(begin)).unwrap_err().to_string();
    assert!(again.contains(&format!("ordered for frame {begin} can be cancelled")), "{again}");
    // The same path goes on: to stay is no change of it.
    receiver.order(&Order::one(at(begin + 2), 0, ReceiverChange::join(vec![any()]))).unwrap();
    receiver.order(&Order::one(at(begin + 5), 0, ReceiverChange::leave())).unwrap();
    let stopped = wait(&told, |what| matches!(what, What::Stopped { .. }));
    assert_eq!(stopped.what, What::Stopped { last: begin + 4 });
    let foreign = receiver.cancel(7, rate.start_of(begin + 50)).unwrap_err().to_string();
    assert!(foreign.contains("lane 7"), "{foreign}");
}

#[test]
fn what_cannot_be_received_is_refused() {
    let (receiver, _events) = receiver(1);
    let refused =
        |change| receiver.order(&Order::one(At::Next, 0, change)).unwrap_err().to_string();
    let leg = |address: &str| Leg { address: address.parse().unwrap(), ..any() };
    let twice = refused(ReceiverChange::join(vec![leg("239.0.0.1:5004"), leg("239.0.0.1:5004")]));
    assert!(twice.contains("two paths have the address"), "{twice}");
    let group = refused(ReceiverChange::join(vec![leg("255.255.255.255:5004")]));
    assert!(group.contains("is not a multicast group"), "{group}");
    let foreign = refused(ReceiverChange::join(vec![leg("192.0.2.77:5004")]));
    assert!(foreign.contains("binding to 192.0.2.77:5004"), "{foreign}");
    let budget = Some(Duration::from_secs(1));
    let long = refused(ReceiverChange { budget, ..ReceiverChange::default() });
    assert!(long.contains("delay budget"), "{long}");
    let path = PathBuf::from("/nowhere/received.frames");
    let store = refused(ReceiverChange::store(Storing::To { path, replace: false }));
    assert!(store.contains("lane 0: recording to /nowhere/received.frames"), "{store}");
}
