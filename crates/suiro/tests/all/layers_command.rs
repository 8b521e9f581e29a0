//! `suiro layers` on files.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::{self, Room};
use rustix::process::Signal;

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
fn silent() -> std::net::TcpListener {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "how long a watch takes is what is tested")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

#[test]
fn a_watch_of_silent_agents_ends_in_its_time_and_on_a_signal() {
    let room = Room::new();
    room.run(&["layers", "keys", "trust", "127.0.0.1", "--watcher", "me"]).exits(0);
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
