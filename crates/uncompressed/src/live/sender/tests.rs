use std::net::{Ipv4Addr, SocketAddrV4};

use suiro_units::BitRate;

use super::*;
use crate::live::{At, Event};
use crate::packet::{self, Format, PAYLOAD_TYPE};
use crate::socket::{Datagrams, Inlet};

/// Frames of the synthetic material.
const CYCLE: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(20);

fn geometry() -> Geometry {
    "64x4 4:2:2 10 50".parse().unwrap()
}

fn inlet() -> Inlet {
    Inlet::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), None, 1 << 20).unwrap()
}

fn route(to: &Inlet) -> Route {
    Route { destination: to.address(), source: None, ttl: 1 }
}

fn lane(number: u32) -> LaneConfig {
    LaneConfig {
        number,
        format: Format::Raster,
        geometry: geometry(),
        packet_bytes: 1500,
        stream: packet::Stream { payload_type: PAYLOAD_TYPE, ssrc: 1 },
    }
}

fn node(lanes: &[u32]) -> (Sender, Events) {
    let ring = reader::Options { frames: CYCLE, ..SenderConfig::new(Vec::new()).ring };
    let lanes = lanes.iter().map(|number| lane(*number)).collect();
    Sender::start(SenderConfig { ring, ..SenderConfig::new(lanes) }).unwrap()
}

fn material() -> Material {
    let source = Source::Synthetic { geometry: geometry(), frames: CYCLE };
    Material { source, origin: 3, repeat: true }
}

/// The first event that `wanted` accepts.
fn wait(events: &Events, wanted: impl Fn(&What) -> bool) -> Event {
    let until = clock::monotonic() + PATIENCE;
    while clock::monotonic() < until {
        if let Some(event) = events.wait(Duration::from_millis(100))
            && wanted(&event.what)
        {
            return event;
        }
    }
    panic!("the event did not come");
}

/// The frames that have arrived, by their number since the epoch, with their content's number.
fn arrived(inlet: &Inlet, epoch: Epoch) -> Vec<(u64, u32)> {
    let layout = Layout::new(Format::Raster, &geometry(), 1500).unwrap();
    let (mut buffers, mut frames) = (Datagrams::new(), Vec::new());
    let rate = geometry().rate();
    let now = epoch.frame_at(rate, clock::monotonic());
    loop {
        let taken = inlet.take(&mut buffers, |datagram| {
            for packet in datagram.bytes.chunks(datagram.segment) {
                let packet = layout.parse(packet, PAYLOAD_TYPE).unwrap();
                frames.push((rate.frame_of(packet.timestamp, now), packet.number.unwrap()));
            }
        });
        if taken.unwrap().messages == 0 {
            return frames;
        }
    }
}

/// What `frames` should be: each one once, with the content of its time.
fn expected(frames: std::ops::Range<u64>) -> Vec<(u64, u32)> {
    frames.map(|frame| (frame, ((frame - 3) % u64::from(CYCLE)) as u32)).collect()
}

/// A storage that is only a little faster than the stream fills the slot of one frame during most of the next.
#[test]
fn a_node_with_a_slow_storage_becomes_a_standby() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.frames");
    crate::job::store(&path, &geometry(), 2 * CYCLE, 0).unwrap();
    let slot = Store::open(&path).unwrap().header().slot_bytes();
    let rate = BitRate::from_bps(slot as u64 * 8 * 50 * 3 / 2);
    let shape = reader::Shape { rate, latency: Duration::ZERO, later: None };
    let ring =
        reader::Options { frames: CYCLE, shape: Some(shape), ..SenderConfig::new(Vec::new()).ring };
    let config = SenderConfig { ring, ..SenderConfig::new(vec![lane(0)]) };
    let (node, events) = Sender::start(config).unwrap();
    let material = Material { source: Source::Store(path), ..material() };
    node.order(&Order::one(At::Next, 0, SenderChange::cue(material))).unwrap();
    wait(&events, |what| *what == What::Filled);
    assert_eq!(node.state().lanes[0].phase, Phase::Standby);
}

#[test]
fn lanes_start_stop_and_turn_at_the_frames_that_were_ordered() {
    let (node, events) = node(&[0, 7]);
    let (here, there, other) = (inlet(), inlet(), inlet());
    let rate = geometry().rate();
    let (one, epoch) = (|change| Order::one(At::Next, 0, change), node.epoch());
    let cue = SenderChange { routes: Some(vec![route(&here)]), ..SenderChange::cue(material()) };
    node.order(&one(cue.clone())).unwrap();
    wait(&events, |what| *what == What::Filled);
    assert_eq!(node.state().lanes[0].phase, Phase::Standby);
    let begin = epoch.first_from(rate, clock::monotonic()) + 10;
    let at = |frame: u64| At::Tai(rate.start_of(frame));
    // Both in one step, the other one with its frames in the same order.
    let second = SenderChange { on: Some(true), routes: Some(vec![route(&other)]), ..cue };
    let changes = vec![(0, SenderChange::start()), (7, second)];
    let accepted = node.order(&Order { at: at(begin), issued: None, changes }).unwrap();
    assert_eq!(accepted.frame, Some(begin));
    let turn = Order::one(at(begin + 4), 0, SenderChange::to(vec![route(&there)]));
    node.order(&turn).unwrap();
    node.order(&Order::all(at(begin + 9), [7, 0], &SenderChange::stop())).unwrap();
    for _ in 0..2 {
        let stopped = wait(&events, |what| matches!(what, What::Stopped { .. }));
        assert_eq!(stopped.what, What::Stopped { last: begin + 8 });
    }
    assert_eq!(arrived(&here, epoch), expected(begin..begin + 4));
    assert_eq!(arrived(&there, epoch), expected(begin + 4..begin + 9));
    assert_eq!(arrived(&other, epoch), expected(begin..begin + 9));
    let state = node.stop();
    assert_eq!(state.lanes[0].counts.frames, 9);
    assert_eq!((state.lanes[0].phase, state.lanes[0].frame), (Phase::Standby, None));
}

#[test]
fn both_paths_carry_the_same_packets() {
    let (node, events) = node(&[0]);
    let (here, there) = (inlet(), inlet());
    let routes = Some(vec![route(&here), route(&there)]);
    let change = SenderChange { on: Some(true), routes, ..SenderChange::cue(material()) };
    node.order(&Order::one(At::Next, 0, change)).unwrap();
    let started = wait(&events, |what| matches!(what, What::Started { .. }));
    let What::Started { frame } = started.what else { unreachable!() };
    let stop = At::Tai(geometry().rate().start_of(frame + 8));
    node.order(&Order::one(stop, 0, SenderChange::stop())).unwrap();
    wait(&events, |what| *what == What::Stopped { last: frame + 7 });
    assert_eq!(arrived(&here, node.epoch()), expected(frame..frame + 8));
    assert_eq!(arrived(&there, node.epoch()), expected(frame..frame + 8));
}

#[test]
fn what_cannot_be_done_is_refused_whole() {
    let (node, _events) = node(&[0, 1]);
    let text = |order: &Order<SenderChange>| node.order(order).unwrap_err().to_string();
    let start = Order::one(At::Next, 0, SenderChange::start());
    assert!(text(&start).contains("lane 0 has no frames to send"), "{}", text(&start));
    let far = Geometry::HD;
    let source = Source::Synthetic { geometry: far, frames: 2 };
    let wrong = SenderChange::cue(Material { source, ..material() });
    let changes = vec![(1, SenderChange::cue(material())), (0, wrong)];
    let order = Order { at: At::Next, issued: None, changes };
    assert!(text(&order).contains("expected frames of 64x4"), "{}", text(&order));
    let start = Order::one(At::Next, 1, SenderChange::start());
    assert!(text(&start).contains("no frames"), "nothing of a refused order happens");
    let cue = Order::one(At::Next, 1, SenderChange::cue(material()));
    node.order(&cue).unwrap();
    assert!(text(&start).contains("no destination"), "{}", text(&start));
    let past = Order::one(At::Tai(Duration::from_secs(5)), 1, SenderChange::stop());
    assert!(text(&past).contains("in the past"), "{}", text(&past));
    let issued = Some(Duration::from_secs(5));
    let apart = Order { issued, ..Order::one(At::Next, 1, SenderChange::stop()) };
    assert!(text(&apart).contains("the clocks are apart"), "{}", text(&apart));
    let ended = Material { repeat: false, ..material() };
    let ended = Order::one(At::Next, 1, SenderChange::cue(ended));
    assert!(text(&ended).contains("the material has ended"), "{}", text(&ended));
}

#[test]
fn a_ring_that_fills_too_slowly_is_late_by_what_is_left_at_its_rate() {
    let second = Duration::from_secs(1);
    // 100 of 600 frames in a second: the others take five.
    assert_eq!(lateness((100, 600), second, second * 2), Some(second * 3));
    assert_eq!(lateness((100, 600), second, second * 5), None);
    assert_eq!(lateness((0, 600), second, second), None, "nothing is known yet");
    assert_eq!(lateness((600, 600), second, Duration::ZERO), None);
}
