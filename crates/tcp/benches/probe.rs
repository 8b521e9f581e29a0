//! The cost of a row for each ACK: one flow of 1 Gbit/s between two hosts whose offloads are off, with samples alone
//! and with the trace. Needs root. It starts this very program again in a sandbox. While it runs, the kernel times all
//! BPF programs (`kernel.bpf_stats_enabled`).
#![expect(clippy::disallowed_methods, reason = "the bench is the peer, and opens sockets")]
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration as StdDuration, Instant};

use libbpf_rs::query::ProgInfoIter;
use suiro_hosts::{CableKind, CableSpec, Network, NetworkSpec, Sandbox, ipv4};
use suiro_tcp::{PERIOD, Prepared, SamplerSpec};

const RUN: StdDuration = StdDuration::from_secs(5);
const RATE_BPS: f64 = 1e9;
const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";

fn main() {
    if std::env::args().nth(1).as_deref() == Some("inside") {
        let usual = fs::read_to_string(STATS).expect("the kernel has BPF");
        fs::write(STATS, "1").expect("root may time BPF programs");
        for each_ack in [false, true, false, true] {
            measure(each_ack);
        }
        fs::write(STATS, usual).expect("it was written before");
    } else {
        let mut worker = Sandbox::new(["inside"]).spawn().expect("root makes sandboxes");
        assert!(worker.wait().expect("it was started").success());
    }
}

fn measure(each_ack: bool) {
    let cable = CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Plain };
    let spec =
        NetworkSpec { hosts: vec!["a".into(), "b".into()], cables: vec![cable], detours: vec![] };
    let network = Network::build(&spec).expect("root makes hosts");
    let dir = tempfile::tempdir().expect("there is a folder for temporary files");
    let sampler = |name: &str| {
        let host = network.host(name).expect("it was made");
        let (period, dir) = (PERIOD, dir.path().to_owned());
        let host_name = name.to_owned();
        let spec = SamplerSpec { host: host_name, period, each_ack, dir };
        let began = Instant::now();
        let started = host.enter(|| Prepared::new(&spec).and_then(|sampler| sampler.start(0)));
        (started.expect("it is there").expect("root may trace"), began.elapsed())
    };
    let ((at_a, start), (at_b, _)) = (sampler("a"), sampler("b"));
    let before = cpu_ns();
    let bytes = transfer(&network);
    let cpu = cpu_ns() - before;
    // The kernel removes a program together with its sampler.
    let (calls, ns) = program();
    let (a, b) = (at_a.stop().expect("it ran"), at_b.stop().expect("it ran"));
    let seconds = RUN.as_secs_f64();
    let percent = |ns: f64| ns / 1e7 / seconds;
    println!(
        "each ACK: {each_ack}; {:.0} Mbit/s; {} + {} ACKs, {} lost; samplers {:.2} + {:.2} % of a core; \
         {calls} calls of {:.0} ns, {:.2} % of a core; all of the machine {:.0} %; started in {start:?}; {} kB",
        bytes as f64 * 8.0 / 1e6 / seconds,
        a.acks,
        b.acks,
        a.acks_lost + b.acks_lost,
        percent(a.cpu.as_nanos() as f64),
        percent(b.cpu.as_nanos() as f64),
        ns as f64 / calls.max(1) as f64,
        percent(ns as f64),
        percent(cpu as f64),
        fs::metadata(dir.path().join("tcp.a.parquet")).expect("it was written").len() / 1000,
    );
}

/// Number of calls of all programs named `probe`, and the time that they took.
fn program() -> (u64, u64) {
    let ours = ProgInfoIter::default().filter(|program| program.name == "probe");
    ours.fold((0, 0), |(calls, ns), program| (calls + program.run_cnt, ns + program.run_time_ns))
}

/// Busy time of all cores: user, nice, system, irq and softirq of /proc/stat, in hundredths of a second.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/stat").expect("procfs is mounted");
    let words: Vec<u64> =
        text.lines().next().unwrap_or("").split_whitespace().skip(1).flat_map(str::parse).collect();
    (words[0] + words[1] + words[2] + words[5] + words[6]) * 10_000_000
}

/// Sends one second of data at a time, in pieces, none before it is due. Returns the bytes received.
fn transfer(network: &Network) -> usize {
    let [a, b] = [0, 1].map(|host| &network.hosts()[host]);
    let listener = b.enter(|| TcpListener::bind((ipv4(1), 0))).expect("it is there").expect("free");
    let address = listener.local_addr().expect("it is bound");
    let mut sender =
        a.enter(|| TcpStream::connect(address)).expect("it is there").expect("it listens");
    let mut receiver = listener.accept().expect("it was connected").0;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let piece = vec![7; 125_000];
            let began = Instant::now();
            let mut sent = 0.0;
            while began.elapsed() < RUN {
                sender.write_all(&piece).expect("the peer reads");
                sent += piece.len() as f64 * 8.0;
                let due = StdDuration::from_secs_f64(sent / RATE_BPS);
                std::thread::sleep(due.saturating_sub(began.elapsed()));
            }
            sender.shutdown(Shutdown::Write).expect("it is open");
        });
        let mut buffer = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match receiver.read(&mut buffer).expect("the peer sends") {
                0 => return bytes,
                read => bytes += read,
            }
        }
    })
}
