//! `suiro layers agent` and `watch` between two hosts, as typed, against an application that is not
//! ours. Needs root, BPF and iperf3; where one is missing, it reports that and passes.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};

use serde_json::Value;
use suiro_hosts::{CableKind, CableSpec, Host, Network, NetworkSpec, Privilege, Suite, Test};
use tempfile::TempDir;

const SUIRO: &str = env!("CARGO_BIN_EXE_suiro");
/// Where the agent of `a` listens; `b` has its own namespace, so the same.
const PORT: u16 = 7470;

fn main() -> ExitCode {
    Suite { privilege: Privilege::Root, fixture: Fixture::build, tests: TESTS }.main()
}

const TESTS: &[Test<Fixture>] = &[
    ("an agent that listens may do nothing else", Fixture::agents_have_no_rights),
    ("strangers are refused", Fixture::strangers_are_refused),
    ("what iperf3 sent is what was watched", Fixture::what_iperf3_sent_is_what_was_watched),
    ("an agent ends as asked", Fixture::agents_end_as_asked),
];

/// Two hosts with their agents, and the folder of credentials.
struct Fixture {
    a: Host,
    b: Host,
    agents: RefCell<[Child; 2]>,
    dir: TempDir,
}

impl Fixture {
    fn build() -> Result<Self, String> {
        if Command::new("iperf3").arg("--version").output().is_err() {
            return Err("no iperf3".into());
        }
        let cable = CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Plain };
        let spec = NetworkSpec {
            hosts: vec!["a".into(), "b".into()],
            cables: vec![cable],
            detours: vec![],
        };
        let network = Network::build(&spec).unwrap();
        let [a, b] = [0, 1].map(|host| network.hosts()[host].clone());
        let dir = tempfile::tempdir().unwrap();
        keys(dir.path(), &["10.0.0.1", "10.0.0.2", "--watcher", "watcher"]);
        let agent_a = agent(&a, dir.path(), "10.0.0.1")?;
        let agent_b = agent(&b, dir.path(), "10.0.0.2").expect("what a can, b can");
        Ok(Self { a, b, agents: [agent_a, agent_b].into(), dir })
    }

    /// Loaded and listening, it is nobody and may do nothing.
    fn agents_have_no_rights(&self) {
        let agent = self.agents.borrow()[0].id();
        let status = std::fs::read_to_string(format!("/proc/{agent}/status")).unwrap();
        for line in
            ["Uid:\t65534\t65534\t65534\t65534", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"]
        {
            assert!(status.contains(line), "{line} is not in:\n{status}");
        }
    }

    fn strangers_are_refused(&self) {
        let told = |identity: &Path| {
            let out = self.dir.path().join("never");
            let output: Output = watch(&self.b, identity, &out, "1 s").output().unwrap();
            assert!(!output.status.success() && !out.exists());
            String::from_utf8(output.stderr).unwrap()
        };
        let others = tempfile::tempdir().unwrap();
        keys(others.path(), &["--watcher", "watcher"]);
        let wrong = told(&others.path().join("watcher"));
        assert!(wrong.contains("another authority\nhint: "), "{wrong}");
        let missing = told(&others.path().join("nobody"));
        assert!(missing.contains("hint: run suiro layers keys"), "{missing}");
    }

    /// iperf3 counts its own datagrams; the watcher's report must say the same.
    fn what_iperf3_sent_is_what_was_watched(&self) {
        let Self { a, b, dir, .. } = self;
        let dir = dir.path();
        let mut command = Command::new("iperf3");
        b.command(command.args(["-s", "-1", "--forceflush"])).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        // It prints a line when it listens.
        let mut output = BufReader::new(server.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "iperf3 does not listen");
        }
        let watcher = watch(b, &dir.join("watcher"), &dir.join("call"), "5 s");
        let mut watcher =
            { watcher }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It prints a line when it has looked at both for the first time; from then on they record.
        let mut view = BufReader::new(watcher.stderr.take().unwrap());
        line.clear();
        while !line.contains("a 0 events; b 0 events") {
            line.clear();
            assert!(view.read_line(&mut line).unwrap() > 0, "the watcher does not begin");
        }
        let mut command = Command::new("iperf3");
        command.args(["-c", "10.0.0.2", "-u", "-b", "4M", "-l", "1000", "-t", "1", "-J"]);
        let ran = a.command(&mut command).output().unwrap();
        let iperf: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let sent = iperf["end"]["sum"]["packets"].as_u64().expect("iperf3 tells its packets");

        let mut told = String::new();
        std::io::Read::read_to_string(&mut view, &mut told).unwrap();
        let watched = watcher.wait_with_output().unwrap();
        assert!(watched.status.success(), "{told}");
        let report: Value = serde_json::from_slice(&watched.stdout).unwrap();
        let forward = |account: &&Value| account["sender"] == "a" && account["receiver"] == "b";
        let account = report["accounts"].as_array().unwrap().iter().find(forward);
        let account = account.unwrap_or_else(|| panic!("no account of a's flow: {report:#}"));
        // iperf3 opens with one datagram that it does not count.
        assert_eq!(account["sent"].as_u64(), Some(sent + 1), "{account:#}");
        assert_eq!(account["delivered"], account["sent"], "{account:#}");
        assert!(report["hosts"].as_array().unwrap().iter().all(|host| {
            host["points"].as_array().unwrap().iter().all(|point| point["lost"] == 0)
        }));
        for host in report["hosts"].as_array().unwrap() {
            // An agent has given up the right to have its programs timed.
            let cost = &host["recording"];
            assert!(cost["recorder_ns_per_packet"].as_f64().unwrap() > 0.0, "{cost}");
            assert!(cost["missing"].as_str().unwrap().contains("CAP_SYS_ADMIN"), "{cost}");
        }
        assert!(
            dir.join("call/first/layers.json").exists()
                && dir.join("call/second/layers.parquet").exists()
        );
        server.wait().unwrap();
    }

    /// As Ctrl-C would.
    fn agents_end_as_asked(&self) {
        for agent in self.agents.borrow_mut().iter_mut() {
            let id = rustix::process::Pid::from_child(agent);
            rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
            assert!(agent.wait().unwrap().success());
        }
    }
}

fn suiro(host: &Host, arguments: &[&str]) -> Command {
    let mut command = Command::new(SUIRO);
    command.args(arguments).stdin(Stdio::null());
    host.command(&mut command);
    command
}

fn keys(folder: &Path, names: &[&str]) {
    let mut command = Command::new(SUIRO);
    let made = command.args(["layers", "keys"]).arg(folder).args(names).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let named = names.iter().filter(|name| !name.starts_with("--")).count();
    assert_eq!(String::from_utf8(made.stdout).unwrap().lines().count(), named);
}

/// An agent that listens, or what it says if it may not probe.
fn agent(host: &Host, keys: &Path, name: &str) -> Result<Child, String> {
    let identity = keys.join(name);
    let identity = identity.to_str().unwrap();
    let arguments = [
        "layers",
        "agent",
        "--identity",
        identity,
        "--flow",
        "udp:*-*:5201",
        "--host",
        host.name(),
    ];
    let mut agent = suiro(host, &arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(agent.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    if line.starts_with("listening") {
        assert!(line.contains(&PORT.to_string()), "{line}");
        return Ok(agent);
    }
    agent.wait().unwrap();
    Err(line)
}

fn watch(host: &Host, identity: &Path, out: &Path, time: &str) -> Command {
    let (identity, out) = (identity.to_str().unwrap(), out.to_str().unwrap());
    let arguments = ["layers", "watch", "10.0.0.1", "10.0.0.2", "--identity", identity];
    let mut command = suiro(host, &arguments);
    command.args(["--out", out, "--duration", time, "--json"]);
    command
}
