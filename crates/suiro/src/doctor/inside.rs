//! What works inside a trial's sandbox: tried by a copy of this program in one.
//!
//! The copy is `suiro doctor` again, asked by [`ASK`] in its environment to run the checks, or only to measure what a link
//! carries, and to answer in JSON.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use suiro_hosts::{Host, Sandbox};
use suiro_wire::Capacity;

use super::{Check, Need, State};

const GROUP: &str = "sandbox";
const ASK: &str = "SUIRO_DOCTOR_INSIDE";
/// In [`ASK`]: all checks.
const CHECKS: &str = "checks";
/// In [`ASK`]: only what an emulated link carries.
const CAPACITY: &str = "capacity";
/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// What is tried, in this order.
const TRIALS: [Trial; 6] = [
    Trial {
        name: "hosts",
        need: Need::Required,
        purpose: "a network namespace per host",
        mend: "",
        attempt: hosts,
    },
    Trial {
        name: "veth cables",
        need: Need::Required,
        purpose: "links between hosts",
        mend: "sudo modprobe veth; sudo apt install iproute2",
        attempt: cables,
    },
    Trial {
        name: "packet sockets",
        need: Need::Required,
        purpose: "the emulated link",
        mend: "sudo modprobe af_packet",
        attempt: packet_socket,
    },
    Trial {
        name: "link capacity",
        need: Need::Optional,
        purpose: "the rate of one emulated link now, in each direction",
        mend: "",
        attempt: carried,
    },
    Trial {
        name: "socket diagnostics",
        need: Need::Required,
        purpose: "the tcp table: congestion window, RTT, retransmits",
        mend: "sudo modprobe tcp_diag",
        attempt: diagnostics,
    },
    Trial {
        name: "congestion per socket",
        need: Need::Required,
        purpose: "a TCP algorithm per trial, without root",
        mend: "",
        attempt: congestion,
    },
];

struct Trial {
    name: &'static str,
    need: Need,
    purpose: &'static str,
    mend: &'static str,
    attempt: fn() -> anyhow::Result<String>,
}

/// What a trial found, or why it failed.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    works: bool,
    text: String,
}

/// True in the copy.
pub fn is_asked_for() -> bool {
    std::env::var_os(ASK).is_some()
}

/// What the copy does.
pub fn answer() -> anyhow::Result<()> {
    if std::env::var_os(ASK).is_some_and(|asked| asked == CAPACITY) {
        let carried = suiro_wire::capacity()?.packets_per_second;
        std::io::stdout().write_all(&serde_json::to_vec(&carried)?)?;
        return Ok(());
    }
    let answers = TRIALS.map(|trial| match (trial.attempt)() {
        Ok(text) => Answer { works: true, text },
        Err(error) => Answer { works: false, text: format!("{error:#}") },
    });
    std::io::stdout().write_all(&serde_json::to_vec(&answers)?)?;
    Ok(())
}

/// What the asker makes of it.
pub fn checks() -> Vec<Check> {
    let answers = ask().unwrap_or_else(|error| {
        let text = format!("not tried: {error:#}");
        TRIALS.iter().map(|_| Answer { works: false, text: text.clone() }).collect()
    });
    TRIALS.iter().zip(answers).map(|(trial, answer)| trial.check(&answer)).collect()
}

impl Trial {
    fn check(&self, answer: &Answer) -> Check {
        let check = Check::ok(GROUP, self.name, self.purpose, &answer.text);
        match (self.need, answer.works) {
            (Need::Required, true) => check.required(),
            (Need::Required, false) => check.required().but(State::Missing, self.mend),
            (Need::Optional, true) => check,
            // A machine that is too busy now carries packets when it is not.
            (Need::Optional, false) => check.but(State::Limited, self.mend),
        }
    }
}

fn ask() -> anyhow::Result<Vec<Answer>> {
    let answers: Vec<Answer> = serde_json::from_slice(&ask_for(CHECKS)?)?;
    anyhow::ensure!(answers.len() == TRIALS.len(), "the copy is another version");
    Ok(answers)
}

/// What one emulated link carries on this host, now; takes one to five seconds.
pub fn capacity() -> anyhow::Result<Capacity> {
    let packets_per_second = serde_json::from_slice(&ask_for(CAPACITY)?)?;
    Ok(Capacity { packets_per_second })
}

fn ask_for(what: &str) -> anyhow::Result<Vec<u8>> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut worker =
        Sandbox::new(["doctor"]).env(ASK, what).stdout(OwnedFd::from(writer)).spawn()?;
    let mut answer = Vec::new();
    reader.by_ref().take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let status = worker.wait()?;
    anyhow::ensure!(status.success(), "the copy in the sandbox failed: {status}");
    Ok(answer)
}

fn hosts() -> anyhow::Result<String> {
    let pair = [Host::new("a")?, Host::new("b")?];
    Ok(format!("made {}", pair.len()))
}

fn cables() -> anyhow::Result<String> {
    let host = Host::new("a")?;
    host.ip(&[
        "link add left type veth peer name right".into(),
        "link set left up mtu 9000".into(),
    ])?;
    Ok("made, MTU 9000".into())
}

fn packet_socket() -> anyhow::Result<String> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    Ok("opened".into())
}

fn carried() -> anyhow::Result<String> {
    let carried = suiro_wire::capacity()?;
    anyhow::ensure!(carried.packets_per_second > 0, "packets are late or lost even at 48 Mbit/s");
    Ok(format!("{}: {} packets/s of 1200 bytes", carried.rate(), carried.packets_per_second))
}

fn diagnostics() -> anyhow::Result<String> {
    let sockets = Host::new("a")?.enter(suiro_tcp::count_sockets)??;
    Ok(format!("queried: {sockets} sockets in a new host"))
}

fn congestion() -> anyhow::Result<String> {
    let controls = suiro_tcp::Controls::read();
    let names = controls.available.unwrap_or_else(|| vec!["reno".into(), "cubic".into()]);
    let mut accepted = Vec::new();
    for name in names {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        if suiro_tcp::set_congestion(&socket, &name).is_ok() {
            accepted.push(name);
        }
    }
    anyhow::ensure!(!accepted.is_empty(), "no algorithm can be set");
    Ok(accepted.join(" "))
}
