//! `suiro layers agent` and `watch` between two hosts, as typed, against an application that is not
//! ours. Needs root, BPF and iperf3; where they lack it says so and passes. It has a `main` of its own
//! because a sandbox starts this very program again.
#![expect(clippy::print_stdout, reason = "a test tells how it went")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};

use serde_json::Value;
use suiro_hosts::{CableKind, CableSpec, Host, Network, NetworkSpec, Privilege, Sandbox};

const SUIRO: &str = env!("CARGO_BIN_EXE_suiro");
/// Where the agent of `a` listens; `b` has its own namespace, so the same.
const PORT: u16 = 7470;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("inside") {
        return inside();
    }
    if Privilege::of_this_process() != Privilege::Root {
        println!("skipped: only root may probe the kernel");
        return ExitCode::SUCCESS;
    }
    if Command::new("iperf3").arg("--version").output().is_err() {
        println!("skipped: no iperf3");
        return ExitCode::SUCCESS;
    }
    let mut worker = Sandbox::new(["inside"]).spawn().unwrap();
    if worker.wait().unwrap().success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn inside() -> ExitCode {
    let cable = CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Plain };
    let spec = NetworkSpec { hosts: vec!["a".into(), "b".into()], cables: vec![cable] };
    let network = Network::build(&spec).unwrap();
    let [a, b] = [0, 1].map(|host| &network.hosts()[host]);
    // What gives up its rights must still reach its credentials' folder: they are read before.
    let dir = tempfile::tempdir().unwrap();
    keys(dir.path(), &["10.0.0.1", "10.0.0.2", "watcher"]);
    let Some((mut agent_a, listens)) = agent(a, dir.path(), "10.0.0.1") else {
        return ExitCode::SUCCESS;
    };
    let (mut agent_b, _) = agent(b, dir.path(), "10.0.0.2").expect("what a can, b can");
    assert!(listens.contains(&PORT.to_string()), "{listens}");
    has_no_rights(&agent_a);
    strangers_are_refused(b, dir.path());
    what_iperf3_sent_is_what_was_watched(a, b, dir.path());
    for agent in [&mut agent_a, &mut agent_b] {
        end(agent);
    }
    println!("agents and a watcher ... ok");
    ExitCode::SUCCESS
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
    assert_eq!(String::from_utf8(made.stdout).unwrap().lines().count(), names.len());
}

/// An agent, and what it says when it listens; `None` after saying that it may not probe.
fn agent(host: &Host, keys: &Path, name: &str) -> Option<(Child, String)> {
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
        return Some((agent, line));
    }
    println!("skipped: {line}");
    agent.wait().unwrap();
    None
}

/// Loaded and listening, it is nobody and may do nothing.
fn has_no_rights(agent: &Child) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.id())).unwrap();
    for line in ["Uid:\t65534\t65534\t65534\t65534", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"]
    {
        assert!(status.contains(line), "{line} is not in:\n{status}");
    }
}

fn watch(host: &Host, identity: &Path, out: &Path, time: &str) -> Command {
    let (identity, out) = (identity.to_str().unwrap(), out.to_str().unwrap());
    let arguments = ["layers", "watch", "10.0.0.1", "10.0.0.2", "--identity", identity];
    let mut command = suiro(host, &arguments);
    command.args(["--out", out, "--duration", time, "--json"]);
    command
}

fn strangers_are_refused(host: &Host, keys_of_all: &Path) {
    let told = |identity: &Path| {
        let out = keys_of_all.join("never");
        let output: Output = watch(host, identity, &out, "1 s").output().unwrap();
        assert!(!output.status.success() && !out.exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let others = tempfile::tempdir().unwrap();
    keys(others.path(), &["watcher"]);
    let wrong = told(&others.path().join("watcher"));
    assert!(wrong.contains("another authority\nhint: "), "{wrong}");
    let missing = told(&others.path().join("nobody"));
    assert!(missing.contains("hint: suiro layers keys"), "{missing}");
}

/// iperf3 counts its own datagrams; the watcher's report must say the same.
fn what_iperf3_sent_is_what_was_watched(a: &Host, b: &Host, dir: &Path) {
    let mut command = Command::new("iperf3");
    b.command(command.args(["-s", "-1", "--forceflush"])).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    // It says so when it listens.
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "iperf3 does not listen");
    }
    let watcher = watch(b, &dir.join("watcher"), &dir.join("call"), "5 s");
    let mut watcher = { watcher }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It tells its first look at both, from when on they record.
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
    assert!(
        report["hosts"].as_array().unwrap().iter().all(|host| {
            host["points"].as_array().unwrap().iter().all(|point| point["lost"] == 0)
        })
    );
    assert!(
        dir.join("call/first/layers.json").exists()
            && dir.join("call/second/layers.parquet").exists()
    );
    server.wait().unwrap();
}

/// As Ctrl-C would.
fn end(agent: &mut Child) {
    let id = rustix::process::Pid::from_child(agent);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert!(agent.wait().unwrap().success());
}
