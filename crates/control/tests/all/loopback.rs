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
use suiro_control::discovery::Registries;
use suiro_control::events::Log;
use suiro_control::net::{self, Exposure};
use suiro_control::nmos::door::Door;
use suiro_control::nmos::{Ask, Reply};
use suiro_control::node::{self, Inlet, Outlet, Place};
use suiro_control::plan::Limits;
use suiro_control::registry;
use suiro_uncompressed::node::Source;
use suiro_uncompressed::packet::Format;
use suiro_uncompressed::sdp::Description;
use suiro_uncompressed::store::Store;
use suiro_uncompressed::{Depth, FrameRate, Geometry, Sampling};
use suiro_units::{Bytes, Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
pub type Running = (oneshot::Sender<()>, JoinHandle<()>);

pub async fn start_registry() -> (Running, Base) {
    let (place, base) = place(Door::open()).await;
    let (over, ended) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stop = async { drop(ended.await) };
        registry::serve::run(place, None, log("registry", None), || {}, stop).await.unwrap();
    });
    ((over, task), base)
}

pub async fn start_node(name: &str, registry: &Base) -> Running {
    start_node_that_stores(name, registry, None).await
}

#[tokio::test]
async fn a_page_in_a_browser_commands_nothing_without_a_token() {
    let (place, base) = place(Door::local()).await;
    let (over, ended) = oneshot::channel::<()>();
    let stop = async { drop(ended.await) };
    let serves = registry::serve::run(place, None, log("registry", None), || {}, stop);
    let asks = async {
        let path = "/x-nmos/registration/v1.3/health/nodes/3b8be755-08ff-452b-b217-c9151eb21193";
        // Nothing is registered: 404 is the answer of who was let in.
        let local = format!("127.0.0.1:{}", base.port);
        let page = "Origin: https://evil.example\r\n";
        for (method, host, more, status) in [
            ("POST", local.as_str(), "", 404),
            ("POST", &local, page, 403),
            ("GET", &local, page, 404),
            ("GET", "evil.example", "", 403),
        ] {
            let mut stream = net::connect(&base.host, base.port).await.unwrap();
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.unwrap();
            assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{request}{reply}");
        }
        drop(over);
    };
    tokio::join!(serves, asks).0.unwrap();
}

/// Small frames: 160 × 90 at 50 Hz, 3 of them in the ring. With a folder it can also store both
/// streams.
async fn start_node_that_stores(name: &str, registry: &Base, folder: Option<&Path>) -> Running {
    start_node_at(name, Registries::only(registry.clone()), folder).await
}

async fn start_node_at(name: &str, registries: Registries, folder: Option<&Path>) -> Running {
    let (place, _) = place(Door::open()).await;
    let rate = FrameRate::new(50, 1).unwrap();
    let geometry = Geometry::new((160, 90), Sampling::YCbCr422, Depth::Ten, rate).unwrap();
    let outlet =
        |stream| Outlet { stream, source: Source::Synthetic { geometry, frames: 5 }, to: None };
    let spec = node::Spec {
        name: name.to_owned(),
        address: Ipv4Addr::LOCALHOST,
        registries,
        manners: Manners::default(),
        outlets: vec![outlet(0), outlet(1)],
        inlets: folder.into_iter().flat_map(|folder| [0, 1].map(|n| inlet(n, folder))).collect(),
        capacity: 1,
        format: Format::St2110,
        geometry,
        packet_bytes: 1500,
        frames: 5,
        shape: None,
        memory: Bytes::new(100_000_000),
        burst: 7,
        cpu: None,
        troff: None,
    };
    let (over, ended) = oneshot::channel::<()>();
    let name = name.to_owned();
    let task = tokio::spawn(async move {
        let stop = async { drop(ended.await) };
        node::run(&spec, place, log(&name, None), || {}, stop).await.unwrap();
    });
    (over, task)
}

fn inlet(stream: u32, folder: &Path) -> Inlet {
    Inlet { stream, folder: folder.to_owned() }
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
        registries: Registries::only(registry.clone()),
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

pub async fn ask(base: &Base, token: Option<&str>, ask: &Ask) -> Reply {
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
    let at = |status: &Value, stream: usize| on_air(status, stream as u64) == [wanted[stream]];
    shows(base, &format!("the streams are at {wanted:?}"), |status| {
        (0..2).all(|stream| at(status, stream))
    })
    .await;
}

/// Waits until a controller's status is as expected.
async fn shows(base: &Base, what: &str, is_so: impl Fn(&Value) -> bool) {
    let mut last = Value::Null;
    for _ in 0..400 {
        last = status(base).await;
        if is_so(&last) {
            return;
        }
        tokio::time::sleep(StdDuration::from_millis(25)).await;
    }
    panic!("expected: {what}; found: {last:#}");
}

fn post(what: &str) -> Ask {
    Ask::json("POST", &format!("/x-suiro/control/v1.0/{what}"), &json!({}))
}

/// Two UDP ports that are free now.
#[expect(clippy::disallowed_methods, reason = "a receiver of the test's own")]
fn ports() -> [u16; 2] {
    [0; 2]
        .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
        .map(|own| own.local_addr().unwrap().port())
}

/// The frames of the one recording of a stream: the number of the first, and how many.
fn recorded(folder: &Path, stream: u32) -> (u64, u64) {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = format!("stream-{stream}-");
    let own: Vec<_> =
        names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&of)).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    let store = Store::open(&own[0]).unwrap();
    (store.header().first, store.header().frames)
}

#[tokio::test]
async fn nodes_that_store_start_and_stop_at_the_same_frame() {
    let folder = tempfile::tempdir().unwrap();
    let (file, stores) = (folder.path().join("state.toml"), folder.path().join("stores"));
    std::fs::create_dir(&stores).unwrap();
    let stored = "stored_by = [\"n3\"]\nto =";
    std::fs::write(&file, state(ports()).replace("to =", stored)).unwrap();
    let (_registry, registry_base) = start_registry().await;
    let _one = start_node("n1", &registry_base).await;
    let _two = start_node("n2", &registry_base).await;
    let three = start_node_that_stores("n3", &registry_base, Some(&stores)).await;
    let (_controller, base) = start_controller(&file, &registry_base, None).await;
    until(&base, ["n1", "n2"]).await;
    assert_eq!(std::fs::read_dir(&stores).unwrap().count(), 0, "nothing is stored yet");

    assert_eq!(ask(&base, Some(TOKEN), &post("start-storing")).await.status, 202);
    let receivers = |status: &Value| {
        let nodes = status["nodes"].as_array().unwrap().clone();
        let node = nodes.into_iter().find(|node| node["name"] == "n3").unwrap();
        node["status"]["receivers"].as_array().cloned().unwrap_or_default()
    };
    let all = |status: &Value, is_so: fn(&Value) -> bool| {
        let receivers = receivers(status);
        receivers.len() == 2 && receivers.iter().all(is_so)
    };
    shows(&base, "both are stored", |status| all(status, |own| own["frames"].as_u64() > Some(10)))
        .await;
    assert_eq!(ask(&base, Some(TOKEN), &post("stop-storing")).await.status, 202);
    shows(&base, "nothing is stored any more", |status| {
        all(status, |own| own["on"] == false && own["storing"].is_null())
    })
    .await;
    // The streams themselves go on.
    until(&base, ["n1", "n2"]).await;
    drop(three.0);
    three.1.await.unwrap();
    let (one, two) = (recorded(&stores, 0), recorded(&stores, 1));
    assert_eq!(one, two, "first frame and number of frames");
    assert!(one.1 > 10, "{one:?}");
}

#[tokio::test]
async fn a_stream_with_a_twin_goes_on_when_its_node_dies() {
    let folder = tempfile::tempdir().unwrap();
    let (ports, stop, [receiver, _other]) = receive_two();
    let file = folder.path().join("state.toml");
    let twin = "[streams.0]\ntwins = [{ node = \"n3\" }]";
    std::fs::write(&file, state(ports).replace("[streams.0]", twin)).unwrap();
    let (_registry, registry_base) = start_registry().await;
    let one = start_node("n1", &registry_base).await;
    let _two = start_node("n2", &registry_base).await;
    let _three = start_node("n3", &registry_base).await;
    let (controller, base) = start_controller(&file, &registry_base, None).await;
    shows(&base, "both send stream 0", |status| on_air(status, 0) == ["n1", "n3"]).await;
    drop(one.0);
    one.1.await.unwrap();
    // There is no standby: the twin goes on alone.
    shows(&base, "the fault is noted", |status| status["streams"][0]["stuck"].is_string()).await;
    assert_eq!(on_air(&status(&base).await, 0), ["n3"]);
    let sent = |status: &Value| {
        let node = status["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "n3");
        node.unwrap()["status"]["lanes"][0]["frames"].as_u64()
    };
    let before = sent(&status(&base).await);
    let later = before.map(|frames| frames + 10);
    shows(&base, "the twin sends on", |status| sent(status) > later).await;
    drop(controller.0);
    controller.1.await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let frames = receiver.join().unwrap();
    let stamps: Vec<u32> = frames.keys().copied().collect();
    assert!(
        stamps.windows(2).all(|pair| pair[1] - pair[0] == 1800),
        "no frame is missing: {frames:?}"
    );
    let most = frames.values().max().copied().unwrap();
    let last = stamps[stamps.len() - 1];
    let twice = frames.values().filter(|packets| **packets == most).count();
    let once = frames.values().filter(|packets| **packets == most / 2).count();
    assert!(twice > 0 && once > 0, "first from both, then from one: {frames:?}");
    let whole =
        |(stamp, packets): (&u32, &u32)| *packets >= most / 2 || *stamp == last || *stamp == 0;
    assert!(frames.iter().all(whole), "{frames:?}");
}

/// Their locks are apart; they meet at the nodes, where the plan is, too.
#[tokio::test]
async fn of_two_controllers_with_different_files_one_leads_and_both_have_its_plan() {
    let folder = tempfile::tempdir().unwrap();
    let ports = ports();
    let files = ["one.toml", "two.toml"].map(|name| folder.path().join(name));
    let other = state(ports).replace("node = \"n1\"", "node = \"n3\"");
    std::fs::write(&files[0], state(ports)).unwrap();
    std::fs::write(&files[1], &other).unwrap();
    let (_registry, registry_base) = start_registry().await;
    let _one = start_node("n1", &registry_base).await;
    let _two = start_node("n2", &registry_base).await;
    let _three = start_node("n3", &registry_base).await;
    let (first, base) = start_controller(&files[0], &registry_base, None).await;
    until(&base, ["n1", "n2"]).await;
    let old =
        [&files[0], &folder.path().join("one.toml.plan")].map(|path| std::fs::read(path).unwrap());

    let (_second, second_base) = start_controller(&files[1], &registry_base, None).await;
    shows(&second_base, "the second one follows", |status| {
        let leader = status["leader"].as_str().unwrap_or_default();
        status["leads"] == false && leader.starts_with("c, with another file: the node n")
    })
    .await;
    let refused = ask(&second_base, Some(TOKEN), &post("stop")).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let seen = status(&base).await;
    assert!(seen["leads"] == true && on_air(&seen, 0) == ["n1"], "{seen:#}");
    let planned = |status: &Value| status["streams"][0]["node"].clone();
    shows(&second_base, "the second one has the plan", |status| planned(status) == "n1").await;
    let kept = std::fs::read_to_string(folder.path().join("two.toml.refused")).unwrap();
    assert_eq!(kept, other, "what the operator wrote is kept");

    // The plan changes, and the first one dies.
    let body = json!({ "stream": 0, "node": "n3" });
    let moved =
        ask(&base, Some(TOKEN), &Ask::json("POST", "/x-suiro/control/v1.0/move", &body)).await;
    assert_eq!(moved.status, 202, "{}", moved.body);
    until(&base, ["n3", "n2"]).await;
    first.1.abort();
    drop(first.1.await);
    shows(&second_base, "the second one leads", |status| status["leads"] == true).await;
    // One that comes back with an older file takes the plan, and moves nothing.
    std::fs::write(&files[0], &old[0]).unwrap();
    std::fs::write(folder.path().join("one.toml.plan"), &old[1]).unwrap();
    let (_first, base) = start_controller(&files[0], &registry_base, None).await;
    shows(&base, "the first one follows", |status| {
        status["leads"] == false && planned(status) == "n3"
    })
    .await;
    let seen = status(&second_base).await;
    assert_eq!(
        (on_air(&seen, 0), on_air(&seen, 1)),
        (vec!["n3".to_owned()], vec!["n2".to_owned()])
    );
    let events = seen["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["what"] != "ordered"), "{events:#?}");
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(text.contains("node = \"n3\"") && !text.contains("node = \"n1\""), "{text}");
}

/// The labels of the nodes that a registry knows.
async fn known_to(registry: &Base) -> Vec<Value> {
    let nodes = ask(registry, None, &Ask::read("/x-nmos/query/v1.3/nodes")).await.value();
    nodes.as_array().unwrap().iter().map(|node| node["label"].clone()).collect()
}

async fn is_known_to(registry: &Base, node: &str) {
    for _ in 0..1500 {
        if known_to(registry).await == [node] {
            return;
        }
        tokio::time::sleep(StdDuration::from_millis(10)).await;
    }
    panic!("{node} does not register at {registry}");
}

#[tokio::test]
async fn the_next_registry_is_used_when_one_fails() {
    let (_, absent) = place(Door::open()).await;
    let (first, first_base) = start_registry().await;
    let (_second, second_base) = start_registry().await;
    let fixed = vec![absent, first_base.clone(), second_base.clone()];
    let registries = Registries { fixed, search: None };
    let _one = start_node_at("n1", registries, None).await;
    is_known_to(&first_base, "n1").await;
    assert_eq!(known_to(&second_base).await, Vec::<Value>::new());
    drop(first.0);
    first.1.await.unwrap();
    is_known_to(&second_base, "n1").await;
}

/// Where the only node of a registry is, as soon as it has registered.
pub async fn only_node(registry: &Base) -> Base {
    let places = Ask::read("/x-nmos/query/v1.3/nodes");
    for _ in 0..400 {
        let found = ask(registry, None, &places).await.value();
        let port = found[0]["api"]["endpoints"][0]["port"].as_u64();
        if let Some(port) = port.and_then(|port| u16::try_from(port).ok()) {
            return Base { tls: false, host: "127.0.0.1".to_owned(), port };
        }
        tokio::time::sleep(StdDuration::from_millis(10)).await;
    }
    panic!("the node does not register");
}

/// A controller that was replaced may have sent its command before; it arrives after.
#[tokio::test]
async fn a_node_refuses_a_controller_that_was_replaced() {
    let (_registry, registry_base) = start_registry().await;
    let _one = start_node("n1", &registry_base).await;
    let node = only_node(&registry_base).await;
    let status = |claim: &str| Ask::read(&format!("/x-suiro/node/v1.0/status/{claim}"));
    assert_eq!(ask(&node, None, &status("2-5-new")).await.value()["controller"], "2-5-new");
    let seen = ask(&node, None, &status("1-9-old")).await.value();
    assert_eq!(seen["controller"], "2-5-new");
    let id = seen["lanes"][0]["id"].as_str().unwrap().to_owned();
    let patch = |claim: Option<&str>| Ask {
        claim: claim.map(str::to_owned),
        ..Ask::json(
            "PATCH",
            &format!("/x-nmos/connection/v1.1/single/senders/{id}/staged"),
            &json!({ "master_enable": false }),
        )
    };
    let refused = ask(&node, None, &patch(Some("1-9-old"))).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.reason().contains("obeys the controller new"), "{}", refused.reason());
    assert_eq!(ask(&node, None, &patch(Some("2-5-new"))).await.status, 200);
    assert_eq!(ask(&node, None, &patch(None)).await.status, 200, "other programs have no claim");
    assert_eq!(ask(&node, None, &patch(Some("x"))).await.status, 400);
    // The plan of a controller that was replaced is refused too.
    let plan = |claim: &str| Ask {
        method: "PUT".to_owned(),
        body: b"running = true".to_vec(),
        ..Ask::read(&format!("/x-suiro/node/v1.0/plan/{claim}/1"))
    };
    assert_eq!(ask(&node, None, &plan("1-9-old")).await.status, 409);
    assert_eq!(ask(&node, None, &plan("2-5-new")).await.status, 204);
    let kept = ask(&node, None, &Ask::read("/x-suiro/node/v1.0/plan/2-5-new/1")).await;
    assert_eq!((kept.status, kept.body.as_str()), (200, "running = true"));
}

/// What [`receive`] returns.
type Receiving = std::thread::JoinHandle<BTreeMap<u32, u32>>;

/// Receives two streams until `stop` is set.
#[expect(clippy::disallowed_methods, reason = "receivers of the test's own")]
fn receive_two() -> ([u16; 2], Arc<AtomicBool>, [Receiving; 2]) {
    let sockets = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let ports = [0, 1].map(|n: usize| sockets[n].local_addr().unwrap().port());
    let stop = Arc::new(AtomicBool::new(false));
    let receivers = sockets.map(|socket| receive(socket, Arc::clone(&stop)));
    (ports, stop, receivers)
}

/// Counts packets in a thread until `stop` is set. The result has the number of packets of each frame; the key is the frame's
/// RTP timestamp minus that of the first frame.
fn receive(socket: UdpSocket, stop: Arc<AtomicBool>) -> Receiving {
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
async fn a_stream_moves_without_a_lost_frame_and_a_dead_node_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (ports, stop, [receiver, _other]) = receive_two();
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
    let described = Ask::read("/x-suiro/control/v1.0/streams/0/description");
    assert_eq!(ask(&base, None, &described).await.status, 401);
    let first = ask(&base, Some(TOKEN), &described).await;
    assert_eq!(
        (first.status, ask(&base, Some(TOKEN), &described).await.body),
        (200, first.body.clone())
    );
    let first: Description = first.body.parse().unwrap();
    assert_eq!((first.path.port, first.twin.is_none()), (ports[0], true));
    // An impossible move is rejected.
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
    // Another node sends it, from the same address to the same port: its description is the same.
    let moved = ask(&base, Some(TOKEN), &described).await.body.parse::<Description>().unwrap();
    assert_eq!(moved, first);

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
