//! A small stream server of the test's own: two streams, four nodes at two sites.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{self, Done, Room};

/// The bearer token.
pub const TOKEN: &str = "only-for-this-test-0123456789";
/// Frames that cost next to nothing to send.
const GEOMETRY: &str = "160x90 YCbCr-4:2:2 10 60000/1001";

const STATE: &str = r#"
running = true
[sites.east]
uplink = "100 Mbit/s"
material = [0, 1]
[sites.west]
uplink = "50 Mbit/s"
material = [0, 1]
[nodes.n1]
site = "east"
[nodes.n2]
site = "east"
[nodes.n3]
site = "west"
[nodes.n4]
site = "west"
[nodes.n5]
site = "west"
[streams.0]
node = "n1"
rate = "20 Mbit/s"
to = "127.0.0.1:PORT0"
[streams.1]
node = "n2"
rate = "20 Mbit/s"
to = "127.0.0.1:PORT1"
"#;

/// Registry, nodes and controller, each a process.
pub struct Server {
    pub room: Room,
    processes: Vec<Child>,
    registry: String,
    controller: String,
    /// TLS, or none.
    tls: bool,
    /// Nobody reads what is sent here, but the ports are not anybody else's.
    _sinks: [std::net::UdpSocket; 2],
}

impl Server {
    pub fn start() -> Self {
        Self::with(Room::new(), &[], &[])
    }

    /// With further arguments of all servers, and of the controller, in a room with the files that they name.
    pub fn with(room: Room, all: &[&str], controller: &[&str]) -> Self {
        room.write("token", TOKEN);
        room.run(&[
            "uncompressed",
            "synth",
            "--out",
            "nodes",
            "--frames",
            "5",
            "--nodes",
            "2",
            "--geometry",
            GEOMETRY,
        ])
        .exits(0);
        let sinks = [0; 2].map(|_| sink());
        let ports = [0, 1].map(|n: usize| sinks[n].local_addr().unwrap().port().to_string());
        room.write("desired.toml", &STATE.replace("PORT0", &ports[0]).replace("PORT1", &ports[1]));
        let tls = all.contains(&"--certificate");
        let mut server = Self {
            room,
            processes: Vec::new(),
            registry: String::new(),
            controller: String::new(),
            tls,
            _sinks: sinks,
        };
        let registry = server.serve(&[&["registry"], all].concat());
        server.registry.clone_from(&registry);
        for node in ["n1", "n2", "n3", "n4"] {
            server.node(node, &registry, all);
        }
        server.controller = server.controller(&[controller, all].concat());
        server
    }

    fn node(&mut self, name: &str, registry: &str, all: &[&str]) {
        let own = [
            "node",
            "--name",
            name,
            "--address",
            "127.0.0.1",
            "--registry",
            registry,
            "--stream",
            "0=nodes/node-1.frames",
            "--stream",
            "1=nodes/node-2.frames",
            "--packet",
            "1500",
            "--ring",
            "5",
        ];
        self.serve(&[&own[..], all].concat());
    }

    /// Starts a controller; where it is. Its name is `c` unless `more` has another one.
    pub fn controller(&mut self, more: &[&str]) -> String {
        let registry = self.registry.clone();
        // On a busy machine a node may answer late, and send late.
        let own = ["control", "serve", "desired.toml", "--registry", &registry];
        let patient = ["--silence", "30 s", "--faulty-frames", "1000000"];
        let name: &[&str] = if more.contains(&"--name") { &[] } else { &["--name", "c"] };
        self.serve(&[&own[..], &patient, name, more].concat())
    }

    /// Starts one server; where it is.
    fn serve(&mut self, arguments: &[&str]) -> String {
        let mut command = self.room.suiro(&["uncompressed"]);
        command.args(arguments).args([
            "--listen",
            "127.0.0.1:0",
            "--token-file",
            "token",
            "--out",
            "records",
        ]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        self.processes.push(child);
        let mut before = String::new();
        loop {
            let mut line = String::new();
            assert!(told.read_line(&mut line).unwrap() > 0, "{arguments:?} ended: {before}");
            if let Some((_, rest)) = line.split_once(" at http") {
                let url = rest.split(';').next().unwrap();
                std::thread::spawn(move || drop(told.read_to_end(&mut Vec::new())));
                return format!("http{url}");
            }
            before += &line;
        }
    }

    pub fn url(&self) -> String {
        format!("{}/", self.controller)
    }

    pub fn registry(&self) -> &str {
        &self.registry
    }

    pub fn file(&self) -> String {
        std::fs::read_to_string(self.room.path("work").join("desired.toml")).unwrap()
    }

    /// `suiro uncompressed control`: what it prints.
    pub fn control(&self, arguments: &[&str]) -> String {
        self.control_of(&self.controller, arguments).exits(0).stdout
    }

    /// The same for another controller, and however it ends.
    pub fn control_of(&self, controller: &str, arguments: &[&str]) -> Done {
        let mut command = self.room.suiro(&["uncompressed", "control"]);
        command.args(arguments).args(["--controller", controller, "--token-file", "token"]);
        if self.tls {
            command.args(["--authority", "authority.pem"]);
        }
        Done::of(&mut command)
    }

    /// Waits until the controller's status is so.
    #[track_caller]
    pub fn until(&self, otherwise: &str, holds: impl Fn(&Value) -> bool) {
        let last = std::cell::RefCell::new(Value::Null);
        let looks = || {
            let status: Value =
                self.control_of(&self.controller, &["status", "--json"]).exits(0).json();
            let so = holds(&status);
            *last.borrow_mut() = status;
            so
        };
        common::eventually(looks, || format!("not {otherwise}: {:#}", last.borrow()));
    }

    /// Ends all of them; the folder of their records.
    pub fn end(&mut self) -> PathBuf {
        let mut processes = std::mem::take(&mut self.processes);
        for child in processes.iter_mut().rev() {
            common::signal(child, Signal::INT);
            let status = common::end_of(child);
            assert!(status.success(), "{status}");
        }
        self.room.path("work").join("records")
    }
}

impl Drop for Server {
    /// Whatever a test came to: nothing is left.
    fn drop(&mut self) {
        for child in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a port of the test's own")]
fn sink() -> std::net::UdpSocket {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap()
}

/// Which nodes have a stream on air.
pub fn on_air(status: &Value, stream: u64) -> Vec<&str> {
    let sends = |node: &&Value| {
        let lanes = node["status"]["lanes"].as_array();
        lanes.is_some_and(|all| {
            all.iter().any(|lane| lane["stream"] == stream && lane["on"] == true)
        })
    };
    let nodes = status["nodes"].as_array().unwrap().iter().filter(sends);
    nodes.map(|node| node["name"].as_str().unwrap()).collect()
}
