//! `suiro layers` on files.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, SystemTime};

use crate::common::{self, Lines, Room};
use rustix::process::Signal;
use suiro_layers::agent::keys::{self, Role};
use suiro_layers::agent::message::Head;
use suiro_layers::agent::{Agent, Identity, Limits, Tap, listen};
use suiro_layers::{Event, Flow, Key, Moment, Point, PointStatus, Protocol, Recording};

fn suiro(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suiro"));
    command.current_dir(dir).args(args).output().expect("suiro starts")
}

/// A capture of 100 datagrams of 10 bytes from 10.0.0.1 to 10.0.0.2, 1 ms apart, all but those refused;
/// bare IP, seen so much later.
fn capture(later_us: u32, refused: impl Fn(u16) -> bool) -> Vec<u8> {
    let header = [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, 101];
    let mut file: Vec<u8> = header.iter().flat_map(|number| number.to_be_bytes()).collect();
    for number in (1..=100u16).filter(|&number| !refused(number)) {
        let mut packet = vec![0x45, 0, 0, 38];
        packet.extend(number.to_be_bytes());
        packet.extend([0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([0, 53, 0, 54, 0, 18, 0, 0]);
        packet.extend([0; 10]);
        let t_us = u32::from(number) * 1_000 + later_us;
        for number in [1_700_000_000, t_us, 38, 38] {
            file.extend(u32::to_be_bytes(number));
        }
        file.extend(packet);
    }
    file
}

#[test]
fn captures_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.pcap"), capture(0, |_| false)).unwrap();
    std::fs::write(dir.path().join("b.pcap"), capture(300, |number| number == 40)).unwrap();
    let args = ["layers", "analyze", "a.pcap", "b.pcap", "--same-clock"];
    let output = suiro(dir.path(), &args);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let blamed = "between a and b, driver → device: 1.0 % lost: not in a queue";
    assert!(text.contains(blamed), "{text}");

    let json = suiro(dir.path(), &[&args[..], &["--json"]].concat()).stdout;
    let report: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let hop = &report["accounts"][0]["hops"][0];
    assert_eq!((&hop["lost"], &hop["delay"]["mean_ns"]), (&1.into(), &300_000.0.into()));
}

#[test]
fn a_page_replaces_no_file_unless_told() {
    let dir = tempfile::tempdir().unwrap();
    let thesis = dir.path().join("thesis");
    std::fs::write(&thesis, "years of work").unwrap();
    let output = suiro(dir.path(), &["layers", "report", "nowhere", "--html", "thesis"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("thesis is there already\nhint: --replace"), "{told}");
    assert_eq!(std::fs::read(&thesis).unwrap(), b"years of work");
}

#[test]
fn what_is_no_capture_is_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.pcap"), capture(0, |_| false)).unwrap();
    std::fs::write(dir.path().join("text"), "hello").unwrap();
    let output = suiro(dir.path(), &["layers", "analyze", "a.pcap", "text"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.starts_with("error: text: not a capture") && told.contains("hint:"), "{told}");
}

/// An agent that accepts and says nothing.
#[expect(clippy::disallowed_methods, reason = "the test plays the agent")]
fn silent() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "how long a watch takes is what is tested")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// A folder with keys of 127.0.0.1 and of the watcher `me`.
fn with_keys() -> Room {
    let room = Room::new();
    room.run(&["layers", "keys", "trust", "127.0.0.1", "--watcher", "me"]).exits(0);
    room
}

#[test]
fn a_watch_of_silent_agents_ends_in_its_time_and_on_a_signal() {
    let room = with_keys();
    let agents = [silent(), silent()];
    let [a, b] = [0, 1].map(|agent: usize| agents[agent].local_addr().unwrap().to_string());
    let watch = ["layers", "watch", &a, &b, "--identity", "trust/me", "--out", "call"];
    let begun = now();
    let timed = [&watch[..], &["--duration", "1 s"]].concat();
    room.run(&timed).exits(1).says(&["nothing was received from"]);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "a watch of 1 s took {took:?}");

    let mut child = room.suiro(&watch).stderr(Stdio::piped()).spawn().unwrap();
    // It is called for the third time: by the second watch, which waits for an answer.
    let accepted: Vec<_> = agents[0].incoming().take(1).collect();
    common::signal(&child, Signal::TERM);
    let begun = now();
    common::end_of(&mut child);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "after SIGTERM it took {took:?}");
    drop(accepted);
}

/// What a test asks of an agent's host.
enum Ask {
    /// As many datagrams of one flow.
    Datagrams(u16),
    Reboot,
}

/// Sees what the test asks for.
struct Asked {
    host: &'static str,
    asked: Receiver<Ask>,
    start: Moment,
    reboots: u32,
}

impl Tap for Asked {
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<Head, String> {
        let count = match self.asked.recv_timeout(Duration::from_millis(20)) {
            Ok(Ask::Datagrams(count)) => count,
            Ok(Ask::Reboot) => {
                self.reboots += 1;
                0
            }
            Err(_) => 0,
        };
        let t_ns = Moment::now().monotonic_ns;
        events.extend((0..count).map(|id| Event {
            t_ns,
            point: Point::SendIp,
            direction_flow: 0,
            key: Key::IpId { id, check: 0 },
            ip_id: id,
            payload_bytes: 100,
            segments: 1,
            cause: None,
        }));
        let flow = Flow {
            protocol: Protocol::Udp,
            local: "10.0.0.1:5000".parse().unwrap(),
            remote: "10.0.0.2:5004".parse().unwrap(),
            sent: true,
        };
        let status = |point| PointStatus { point, missing: None, events: 0, lost: 0, skipped: 0 };
        Ok(Head {
            host: self.host.into(),
            boot_id: format!("boot {}", self.reboots),
            kernel: "kernel".into(),
            start: self.start,
            end: Moment::now(),
            asked: Vec::new(),
            flows: vec![flow],
            causes: Vec::new(),
            points: Point::ALL.map(status).into(),
            fragments: 0,
            unjoined: 0,
            unplaced: 0,
            scheduling: Vec::new(),
            clock: None,
            cost: None,
        })
    }
}

/// Ends these agents whatever the result of the test.
struct Ends<'s>(&'s [AtomicBool]);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|stopped| stopped.store(true, Ordering::Relaxed));
    }
}

/// Starts an agent with the credentials for 127.0.0.1 that are there now, and returns where its host can be asked for something.
fn agent<'scope>(
    scope: &'scope Scope<'scope, '_>,
    host: &'static str,
    room: &Room,
    listener: &'scope TcpListener,
    stopped: &'scope AtomicBool,
) -> (Sender<Ask>, ScopedJoinHandle<'scope, ()>) {
    let identity = Identity::read(&room.path("work").join("trust/127.0.0.1")).unwrap();
    let agent = Agent::new(identity.server().unwrap(), Limits::default(), Moment::now);
    let (ask, asked) = channel();
    let tap = Asked { host, asked, start: Moment::now(), reboots: 0 };
    let serving = scope.spawn(move || agent.run(listener, tap, stopped, &|_| {}).unwrap());
    (ask, serving)
}

#[expect(clippy::disallowed_methods, reason = "certificates are checked against the real time")]
fn long_ago() -> SystemTime {
    SystemTime::now() - Duration::from_secs(40 * 86_400)
}

/// The events of a recording in the working folder.
fn recorded(room: &Room, folder: &str) -> usize {
    Recording::read(&room.path("work").join(folder)).unwrap().events.len()
}

/// Begins to watch the hosts `a` and `b` behind these agents, and returns what the watch prints on standard error.
fn watch(room: &Room, [a, b]: [&str; 2]) -> (Child, Lines) {
    let watch = ["layers", "watch", a, b, "--identity", "trust/me", "--out", "call"];
    let mut command = room.suiro(&watch);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    lines.until("a 0 events; b 0 events");
    (child, lines)
}

#[test]
fn a_watch_that_cannot_go_on_writes_what_it_has() {
    let room = with_keys();
    let listeners = [(); 2].map(|()| listen("127.0.0.1:0".parse().unwrap()).unwrap());
    let [a, b] = listeners.each_ref().map(|it| it.local_addr().unwrap().to_string());
    let stops = [(); 3].map(|()| AtomicBool::new(false));
    let code = std::thread::scope(|scope| {
        let _ends = Ends(&stops);
        let (ask_a, first) = agent(scope, "a", &room, &listeners[0], &stops[0]);
        let (ask_b, _second) = agent(scope, "b", &room, &listeners[1], &stops[1]);
        let (mut child, lines) = watch(&room, [&a, &b]);
        ask_a.send(Ask::Datagrams(10)).unwrap();
        ask_b.send(Ask::Datagrams(20)).unwrap();
        lines.until("a 10 events; b 20 events");
        // The agent ends, and comes back with a certificate that expired ten days ago.
        stops[0].store(true, Ordering::Relaxed);
        first.join().unwrap();
        let trust = room.path("work").join("trust");
        keys::make(&trust, &[("127.0.0.1".into(), Role::Host)], 30, long_ago()).unwrap();
        let (_ask, _third) = agent(scope, "a", &room, &listeners[0], &stops[2]);
        lines.until(&format!("error: {a}: the other end's certificate has expired"));
        lines.until("hint: renew it");
        common::end_of(&mut child).code()
    });
    assert_eq!(code, Some(1));
    assert_eq!((recorded(&room, "call/first"), recorded(&room, "call/second")), (10, 20));
}

#[test]
fn a_watch_of_one_silent_agent_writes_the_others_recording() {
    let room = with_keys();
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let silent = silent();
    let [a, b] = [&listener, &silent].map(|it| it.local_addr().unwrap().to_string());
    let stops = [AtomicBool::new(false)];
    std::thread::scope(|scope| {
        let _ends = Ends(&stops);
        let (_ask, _serving) = agent(scope, "a", &room, &listener, &stops[0]);
        let watch = ["layers", "watch", &a, &b, "--identity", "trust/me", "--out", "call"];
        let timed = [&watch[..], &["--duration", "1 s"]].concat();
        room.run(&timed).exits(1).says(&[&format!("nothing was received from {b}")]);
    });
    assert_eq!(recorded(&room, "call/first"), 0);
    assert!(!room.path("work").join("call/second").exists());
}

/// Of a host that has rebooted there is nothing more to come; of the other there is.
#[test]
fn a_watch_ends_when_both_hosts_have_rebooted() {
    let room = with_keys();
    let listeners = [(); 2].map(|()| listen("127.0.0.1:0".parse().unwrap()).unwrap());
    let [a, b] = listeners.each_ref().map(|it| it.local_addr().unwrap().to_string());
    let stops = [(); 2].map(|()| AtomicBool::new(false));
    let code = std::thread::scope(|scope| {
        let _ends = Ends(&stops);
        let (ask_a, _first) = agent(scope, "a", &room, &listeners[0], &stops[0]);
        let (ask_b, _second) = agent(scope, "b", &room, &listeners[1], &stops[1]);
        let (mut child, lines) = watch(&room, [&a, &b]);
        ask_a.send(Ask::Datagrams(10)).unwrap();
        lines.until("a 10 events; b 0 events");
        ask_a.send(Ask::Reboot).unwrap();
        lines.until(&format!("{a}: it has rebooted; its recording ends there"));
        ask_b.send(Ask::Datagrams(20)).unwrap();
        lines.until("a 10 events; b 20 events");
        ask_b.send(Ask::Reboot).unwrap();
        lines.until(&format!("{b}: it has rebooted; its recording ends there"));
        common::end_of(&mut child).code()
    });
    assert_eq!(code, Some(0));
    assert_eq!((recorded(&room, "call/first"), recorded(&room, "call/second")), (10, 20));
}
