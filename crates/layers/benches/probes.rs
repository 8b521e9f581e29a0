//! The cost of recording: RTP at a fixed rate between two hosts on one machine, unwatched, with all points, without
//! system calls; and, where it is installed, with bpftrace counting the same packets. Needs root. It starts this very
//! program again in a sandbox. The total cost is the CPU time above that without a watcher. Afterwards the kernel
//! times each BPF program (BPF_ENABLE_STATS, bpf(2)), which itself adds much to the times. Both hosts share one kernel,
//! so a recorder of one also pays for the other's packets, which it would not on a separate machine: about half of the
//! bystander's cost.
//!
//! `cargo bench -p suiro-layers --bench probes [-- RATE SECONDS]`
#![expect(clippy::disallowed_methods, reason = "the bench is the watched application")]
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration as StdDuration, Instant};

use libbpf_rs::libbpf_sys;
use libbpf_rs::query::ProgInfoIter;
use suiro_bench::Figure;
use suiro_hosts::{CableKind, CableSpec, Host, Network, NetworkSpec, Sandbox, ipv4};
use suiro_layers::report::Overhead;
use suiro_layers::{Point, Recorded, Recorder, RecorderSpec};

const RATE: u64 = 50_000;
const SECONDS: u64 = 3;
const ROUNDS: usize = 3;
/// G.711, 20 ms per packet.
const PAYLOAD_BYTES: usize = 172;
/// The same counts at the hooks that bpftrace supports: no netfilter, no control group.
const BPFTRACE: &str = "tracepoint:raw_syscalls:sys_enter { @enter = count(); }
    tracepoint:net:net_dev_queue { @queue = count(); }
    tracepoint:net:net_dev_start_xmit { @driver = count(); }
    tracepoint:net:netif_receive_skb { @device = count(); }
    tracepoint:skb:kfree_skb { @drop = count(); }";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watch {
    Nobody,
    /// All points of a third host, through which no packets pass: what a recorder costs hosts that it does not watch.
    Bystander,
    /// All points of the host that sends.
    Sender,
    Receiver,
    /// Two recorders on one kernel.
    Both,
    BothWithoutSystemCalls,
    Bpftrace,
}

impl Watch {
    fn hosts(self, network: &Network) -> &[Host] {
        match self {
            Self::Nobody | Self::Bpftrace => &[],
            Self::Sender => &network.hosts()[..1],
            Self::Receiver => &network.hosts()[1..2],
            Self::Both | Self::BothWithoutSystemCalls => &network.hosts()[..2],
            Self::Bystander => &network.hosts()[2..],
        }
    }
}

const WATCHES: [Watch; 7] = [
    Watch::Nobody,
    Watch::Bystander,
    Watch::Sender,
    Watch::Receiver,
    Watch::Both,
    Watch::BothWithoutSystemCalls,
    Watch::Bpftrace,
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize, usual| arguments.get(at).and_then(|n| n.parse().ok()).unwrap_or(usual);
    if arguments.get(1).is_none_or(|first| first != "inside") {
        let (rate, seconds) = (number(1, RATE).to_string(), number(2, SECONDS).to_string());
        let sandbox = Sandbox::new(["inside".to_owned(), rate, seconds]);
        assert!(sandbox.spawn().expect("root makes sandboxes").wait().expect("it ran").success());
        return;
    }
    // bpftrace looks there for its hooks; this sandbox has its own mounts.
    let mounted =
        Command::new("mount").args(["-t", "tracefs", "none", "/sys/kernel/tracing"]).status();
    println!("tracefs for bpftrace: {mounted:?}");
    let (rate, seconds) = (number(2, RATE), number(3, SECONDS));
    // Alternating, because the machine may change from minute to minute.
    let rounds: Vec<[Option<f64>; 7]> =
        (0..ROUNDS).map(|_| WATCHES.map(|watch| measure(watch, rate, seconds, None))).collect();
    let timed = time_programs();
    for watch in WATCHES {
        measure(watch, rate, seconds, Some(&timed));
    }
    let medians =
        [0, 1, 2, 3, 4, 5, 6].map(|at| median(rounds.iter().filter_map(|round| round[at])));
    for (watch, ns) in WATCHES.into_iter().zip(medians) {
        match ns.zip(medians[0]) {
            Some((ns, unwatched)) => {
                let name = format!("layer probes, {watch:?}: CPU, each packet above unwatched");
                Figure::new(name, ns - unwatched, "ns").tell();
            }
            None => println!("{watch:?}: not installed, or refused"),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The kernel times programs while this is open.
fn time_programs() -> OwnedFd {
    // SAFETY: the call takes a number.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    assert!(fd >= 0, "root may time BPF programs: {}", std::io::Error::from_raw_os_error(-fd));
    // SAFETY: it was just opened and has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// CPU time per packet, in nanoseconds; `None` if the watcher is not available.
fn measure(watch: Watch, rate: u64, seconds: u64, timed: Option<&OwnedFd>) -> Option<f64> {
    let cable = CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Plain };
    let spec = NetworkSpec {
        hosts: ["a", "b", "c"].map(Into::into).to_vec(),
        cables: vec![cable],
        detours: vec![],
    };
    let network = Network::build(&spec).expect("root makes hosts");
    let dir = tempfile::tempdir().expect("there is a folder for temporary files");
    let watched = watch.hosts(&network).iter();
    let recorders: Vec<Recorder> = watched.map(|host| start(host, dir.path(), watch)).collect();
    let bpftrace = match watch {
        Watch::Bpftrace => Some(start_bpftrace()?),
        _ => None,
    };
    let (cpu, programs) = (cpu_ns(), program_runs());
    let (sent, received) = exchange(&network, rate, seconds);
    let (cpu, programs) = (cpu_ns() - cpu, since(&programs));
    let cpu_ns = cpu as f64 / sent as f64;
    println!("{watch:?}: {sent} sent, {received} received; CPU time {cpu_ns:.0} ns a packet");
    if timed.is_some() {
        tell_programs(&programs, sent);
    }
    if let Some(mut child) = bpftrace {
        child.kill().expect("it runs");
        child.wait().expect("it was killed");
    }
    for recorder in recorders {
        tell(&recorder.stop().expect("it ran"), sent);
    }
    Some(cpu_ns)
}

fn tell_programs(programs: &BTreeMap<String, Run>, sent: u64) {
    let ns: u64 = programs.values().map(|run| run.ns).sum();
    println!("  timed: BPF programs {:.0} ns a packet", ns as f64 / sent as f64);
    for (name, Run { count, ns }) in programs {
        let (often, each) = (*count as f64 / sent as f64, *ns as f64 / *count as f64);
        println!("    {name}: {often:.1} a packet, {each:.0} ns each");
    }
}

fn start(host: &Host, dir: &Path, watch: Watch) -> Recorder {
    let spec = RecorderSpec {
        host: host.name().into(),
        flows: vec!["udp:*-*:5004".parse().expect("it is a flow")],
        process: None,
        namespace: None,
        system_calls: watch != Watch::BothWithoutSystemCalls,
        dir: dir.into(),
        name: Some(host.name().into()),
    };
    host.enter(|| Recorder::start(spec)).expect("it is there").expect("root may probe")
}

fn tell(recorded: &Recorded, sent: u64) {
    let counts = |of: fn(Point) -> bool| -> Vec<u64> {
        let points = recorded.recording.points.iter().filter(|status| of(status.point));
        points.filter(|status| status.missing.is_none()).map(|status| status.events).collect()
    };
    let cost = recorded.recording.cost.as_ref().expect("recorders know it");
    let lost: u64 = recorded.recording.points.iter().map(|status| status.lost).sum();
    println!(
        "  {}: out {:?}, in {:?}, dropped {:?}, lost {lost}, unjoined {}; recorder {:.0} ns a packet, \
         {:.0} when it has ended",
        recorded.recording.host,
        counts(|point| point < Point::ReceiveDevice),
        counts(|point| (Point::ReceiveDevice..Point::Dropped).contains(&point)),
        counts(|point| point == Point::Dropped),
        recorded.recording.unjoined,
        cost.recorder_ns as f64 / sent as f64,
        cost.writing_ns as f64 / sent as f64,
    );
    println!("  it says: {}", Overhead::of(&recorded.recording));
}

/// How often a program ran, and its total run time.
#[derive(Debug, Default, Clone, Copy)]
struct Run {
    count: u64,
    ns: u64,
}

/// All BPF programs of the machine, summed by name.
fn program_runs() -> BTreeMap<String, Run> {
    let mut runs: BTreeMap<String, Run> = BTreeMap::new();
    for program in ProgInfoIter::default() {
        let run = runs.entry(program.name.to_string_lossy().into_owned()).or_default();
        run.count += program.run_cnt;
        run.ns += program.run_time_ns;
    }
    runs
}

/// The runs since an earlier reading.
fn since(before: &BTreeMap<String, Run>) -> BTreeMap<String, Run> {
    let mut runs = program_runs();
    for (name, run) in &mut runs {
        let before = before.get(name).copied().unwrap_or_default();
        run.count = run.count.saturating_sub(before.count);
        run.ns = run.ns.saturating_sub(before.ns);
    }
    runs.retain(|_, run| run.count > 0);
    runs
}

/// CPU time of all threads of this program: those that send, receive and record, including the softirqs and BPF
/// programs that run on top of them. (/proc/stat samples at ticks, which a burst every millisecond can run in step
/// with.)
fn cpu_ns() -> u64 {
    suiro_clock::kernel::process_cpu_ns()
}

fn start_bpftrace() -> Option<Child> {
    let mut command = Command::new("bpftrace");
    command.args(["-e", BPFTRACE]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut said = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    // "Attaching 5 probes..." is printed before they are attached; the next exchange is long enough for that.
    match said.next() {
        Some(Ok(line)) if line.starts_with("Attaching") => Some(child),
        _ => None,
    }
}

/// Sends at the rate, in one burst per millisecond; returns the packets sent and received.
fn exchange(network: &Network, rate: u64, seconds: u64) -> (u64, u64) {
    let bind = |host: usize, port| {
        let bind = || UdpSocket::bind((ipv4(host), port));
        network.hosts()[host].enter(bind).expect("it is there").expect("the port is free")
    };
    let (from, to) = (bind(0, 0), bind(1, 5004));
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&to, 64 << 20).expect("root may");
    from.connect((ipv4(1), 5004)).expect("it is an address");
    to.set_read_timeout(Some(StdDuration::from_secs(1))).expect("it is a socket");
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let (began, mut sent) = (Instant::now(), 0);
            let mut packet = [0x80; PAYLOAD_BYTES];
            packet[1] = 0; // G.711
            while sent < rate * seconds {
                let due = began.elapsed().as_micros() as u64 * rate / 1_000_000;
                while sent < due.min(rate * seconds) {
                    packet[2..4].copy_from_slice(&(sent as u16).to_be_bytes());
                    from.send(&packet).expect("the cable is up");
                    sent += 1;
                }
                std::thread::sleep(StdDuration::from_millis(1));
            }
            sent
        });
        let mut received = 0;
        while received < rate * seconds && to.recv(&mut [0; 2000]).is_ok() {
            received += 1;
        }
        (sender.join().expect("it sends"), received)
    })
}
