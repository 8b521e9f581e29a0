//! Registry, nodes and controller over loopback: a stream moves from one node to another while it is received, and a node
//! that dies is replaced.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use serde_json::{Value, json};
use suiro_control::client::{Base, Client, Manners};
use suiro_control::controller;
use suiro_control::events::Log;
use suiro_control::net::{self, Exposure};
use suiro_control::nmos::door::Door;
use suiro_control::nmos::{Ask, Reply};
use suiro_control::node::{self, Outlet, Place};
use suiro_control::plan::Limits;
use suiro_control::registry;
use suiro_uncompressed::node::Source;
use suiro_uncompressed::packet::Format;
use suiro_uncompressed::{Depth, FrameRate, Geometry, Sampling};
use suiro_units::{Bytes, Duration};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const PATIENCE: StdDuration = StdDuration::from_secs(5);
const TOKEN: &str = "a-token-for-tests-only-0123456789";

async fn place(door: Door) -> (Place, Base) {
    let listener = net::listen("127.0.0.1:0".parse().unwrap(), Exposure::Loopback).await.unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { panic!("IPv4") };
    let base = Base { tls: false, host: "127.0.0.1".to_owned(), port: address.port() };
    (Place { listener, door, tls: None }, base)
}

fn log(name: &str, folder: Option<&Path>) -> Log {
    let folder = folder.map(Path::to_owned);
    Log {
        name: name.to_owned(),
        folder,
        epoch: net::monotonic(),
        print: |line| eprintln!("{line}"),
    }
}

/// A task that ends when its sender is dropped.
type Running = (oneshot::Sender<()>, JoinHandle<()>);

async fn start_registry() -> (Running, Base) {
    let (place, base) = place(Door::open()).await;
    let (over, ended) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stop = async { drop(ended.await) };
        registry::serve::run(place, log("registry", None), || {}, stop).await.unwrap();
    });
    ((over, task), base)
}

/// Small pictures: 160 × 90 at 50 Hz, 3 ring frames.
async fn start_node(name: &str, registry: &Base) -> Running {
    let (place, _) = place(Door::open()).await;
    let rate = FrameRate::new(50, 1).unwrap();
    let geometry = Geometry::new((160, 90), Sampling::YCbCr422, Depth::Ten, rate).unwrap();
    let outlet =
        |stream| Outlet { stream, source: Source::Synthetic { geometry, frames: 5 }, to: None };
    let spec = node::Spec {
        name: name.to_owned(),
        address: Ipv4Addr::LOCALHOST,
        registry: Some(registry.clone()),
        manners: Manners::default(),
        outlets: vec![outlet(0), outlet(1)],
        capacity: 1,
        format: Format::St2110,
        geometry,
        packet_bytes: 1500,
        frames: 5,
        shape: None,
        memory: Bytes::new(100_000_000),
        burst: 7,
        cpu: None,
    };
    let (over, ended) = oneshot::channel::<()>();
    let name = name.to_owned();
    let task = tokio::spawn(async move {
        let stop = async { drop(ended.await) };
        node::run(&spec, place, log(&name, None), || {}, stop).await.unwrap();
    });
    (over, task)
}

fn state(ports: [u16; 2]) -> String {
    let mut text =
        String::from("running = true\n[sites.a]\nuplink = \"1 Gbit/s\"\nmaterial = [0, 1]\n");
    for n in 1..=3 {
        text += &format!("[nodes.n{n}]\nsite = \"a\"\n");
    }
    for (stream, port) in ports.into_iter().enumerate() {
        let node = stream + 1;
        text += &format!(
            "[streams.{stream}]\nnode = \"n{node}\"\nrate = \"20 Mbit/s\"\nto = \"127.0.0.1:{port}\"\n"
        );
    }
    text
}

async fn start_controller(file: &Path, registry: &Base, folder: Option<&Path>) -> (Running, Base) {
    let (place, base) = place(Door::with(TOKEN).unwrap()).await;
    let spec = controller::Spec {
        name: "c".to_owned(),
        file: file.to_owned(),
        registry: Some(registry.clone()),
        manners: Manners::default(),
        lead: Duration::from_millis(200),
        lead_fault: Duration::from_millis(60),
        every: StdDuration::from_millis(20),
        // Busy test machines answer late: here only a closed connection is a fault.
        limits: Limits { silence: Duration::from_secs(5), frames: 1_000_000, ..Limits::default() },
        hook: None,
    };
    let (over, ended) = oneshot::channel::<()>();
    let log = log("controller", folder);
    let task = tokio::spawn(async move {
        let stop = async { drop(ended.await) };
        controller::run(&spec, place, log, || {}, stop).await.unwrap();
    });
    ((over, task), base)
}

async fn ask(base: &Base, token: Option<&str>, ask: &Ask) -> Reply {
    let manners = Manners { token: token.map(str::to_owned), tls: None };
    Client::new(base.clone(), manners).ask(ask, PATIENCE).await.unwrap()
}

async fn status(base: &Base) -> Value {
    ask(base, Some(TOKEN), &Ask::read("/x-suiro/control/v1.0/status")).await.value()
}

/// Which nodes have a stream on air.
fn on_air(status: &Value, stream: u64) -> Vec<String> {
    let nodes = status["nodes"].as_array().unwrap();
    let sends = |node: &&Value| {
        let lanes = node["status"]["lanes"].as_array();
        lanes.is_some_and(|all| {
            all.iter().any(|lane| lane["stream"] == stream && lane["on"] == true)
        })
    };
    nodes.iter().filter(sends).map(|node| node["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until exactly these nodes send the two streams.
async fn until(base: &Base, wanted: [&str; 2]) {
    let mut last = Value::Null;
    for _ in 0..400 {
        last = status(base).await;
        if (0..2).all(|stream| on_air(&last, stream) == [wanted[stream as usize]]) {
            return;
        }
        tokio::time::sleep(StdDuration::from_millis(25)).await;
    }
    panic!("the streams are not at {wanted:?}: {last:#}");
}

/// Receives until it is told to stop: how many packets came of each frame, by its RTP timestamp, counted from the first.
fn receive(
    socket: UdpSocket,
    stop: Arc<AtomicBool>,
) -> std::thread::JoinHandle<BTreeMap<u32, u32>> {
    socket.set_read_timeout(Some(StdDuration::from_millis(50))).unwrap();
    std::thread::spawn(move || {
        let (mut seen, mut buffer, mut first) = (BTreeMap::new(), [0; 2000], None);
        while !stop.load(Ordering::Relaxed) {
            let Ok(length) = socket.recv(&mut buffer) else { continue };
            assert!(length > 12);
            let stamp = u32::from_be_bytes(buffer[4..8].try_into().unwrap());
            *seen.entry(stamp.wrapping_sub(*first.get_or_insert(stamp))).or_default() += 1;
        }
        seen
    })
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a receiver of the test's own")]
async fn a_stream_moves_without_a_lost_frame_and_a_dead_node_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let ports = [0, 1].map(|n: usize| sockets[n].local_addr().unwrap().port());
    let stop = Arc::new(AtomicBool::new(false));
    let [receiver, _other] = sockets.map(|socket| receive(socket, Arc::clone(&stop)));
    let file = folder.path().join("state.toml");
    std::fs::write(&file, state(ports)).unwrap();

    let (registry, registry_base) = start_registry().await;
    let _one = start_node("n1", &registry_base).await;
    let two = start_node("n2", &registry_base).await;
    let _three = start_node("n3", &registry_base).await;
    let (controller, base) = start_controller(&file, &registry_base, None).await;
    until(&base, ["n1", "n2"]).await;

    // Nobody without the token.
    let refused = ask(&base, None, &Ask::read("/x-suiro/control/v1.0/status")).await;
    assert_eq!(refused.status, 401);
    // What cannot be is refused whole.
    let body = |stream: u32, node: &str| json!({ "stream": stream, "node": node });
    let moving = |body: &Value| Ask::json("POST", "/x-suiro/control/v1.0/move", body);
    let refused = ask(&base, Some(TOKEN), &moving(&body(0, "n2"))).await;
    assert_eq!(refused.status, 400);
    assert!(refused.reason().contains("streams 0, 1 on one node"), "{}", refused.reason());
    // A second controller does not lead.
    let (second, second_base) = start_controller(&file, &registry_base, None).await;
    let refused = ask(&second_base, Some(TOKEN), &moving(&body(0, "n3"))).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.reason().contains("another controller leads: c (process"),
        "{}",
        refused.reason()
    );
    drop(second.0);
    second.1.await.unwrap();

    // Without controller and registry, the streams go on; a new controller touches nothing.
    drop(registry.0);
    registry.1.await.unwrap();
    let moved = ask(&base, Some(TOKEN), &moving(&body(0, "n3"))).await;
    assert_eq!(moved.status, 202, "{}", moved.body);
    until(&base, ["n3", "n2"]).await;

    // The node of stream 1 is asked to end: its connection is closed.
    drop(two.0);
    two.1.await.unwrap();
    until(&base, ["n3", "n1"]).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("n1") && !text.contains("node = \"n2\""), "{text}");
    drop(controller.0);
    controller.1.await.unwrap();

    // 50 frames a second are 1800 ticks of 90 kHz each: across the move no frame is missing, and none has a packet too few
    // or too many. (That it arrives in time is not asked of a busy test machine.)
    stop.store(true, Ordering::Relaxed);
    let frames = receiver.join().unwrap();
    assert!(frames.len() > 10, "{frames:?}");
    let stamps: Vec<u32> = frames.keys().copied().collect();
    assert!(stamps.windows(2).all(|pair| pair[1] - pair[0] == 1800), "{frames:?}");
    let whole = frames[&0];
    let last = stamps[stamps.len() - 1];
    assert!(
        frames.iter().all(|(stamp, packets)| *packets == whole || *stamp == last),
        "{frames:?}"
    );
}
