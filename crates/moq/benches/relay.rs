//! What a relay needs for many viewers: ours and moq-relay (`make peers`), one after the other in the same run. A publisher sends
//! a track of 300 kbit/s, a stream for every frame; viewers count what they receive. The relay is a process of its own,
//! publisher and viewers are this one; what the machine has left says which of them is the limit.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/light.rs"]
mod light;
#[path = "../tests/common/peers.rs"]
mod peers;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use light::{Counts, Publisher, Socket, Viewer};
use peers::Running;
use suiro_bench::{Figure, Target};
use suiro_clock::Clock;
use suiro_endpoint::net::free_port;
use suiro_moq::relay::{self, RelayJob};
use suiro_units::{Duration, Time};

const VIEWERS: [u64; 4] = [100, 300, 500, 1000];
/// 300 kbit/s at 30 frames per second.
const OBJECT: usize = 1250;
const FRAME: Duration = Duration::from_micros(33_333);
/// Objects before those that count, those that count, and how long the last of them may take.
const WARM: u64 = 60;
const COUNTED: u64 = 300;
const GRACE: Duration = Duration::from_secs(5);
/// Viewers that share a socket, and that connect at the same time.
const SHARE: usize = 125;
const AT_ONCE: usize = 20;
/// Streams of a viewer that reads nothing: so much waits at its side, the rest is the relay's concern.
const NARROW: u32 = 16;
/// Clock ticks per second of /proc/PID/stat: USER_HZ, 100 on every architecture that Linux has today.
const TICKS: f64 = 100.0;
/// The peer's name in the table of figures.
const PEER: &str = "moq-relay";

/// What one relay did with so many viewers.
struct Run {
    lost: u64,
    /// CPU time of the relay for each Gbit that viewers received, in seconds.
    cpu_per_gbit: f64,
    latency_ms: u64,
    memory_mb: f64,
    /// How many CPUs the relay used, how many this process, and how many were idle.
    busy: [f64; 3],
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, inside, dir, port] = &arguments[..]
        && inside == "relay"
    {
        return serve(Path::new(dir), port.parse().expect("a port"));
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("threads can be started");
    let peer = peers::installed(PEER);
    for viewers in VIEWERS {
        let ours = runtime.block_on(run(None, viewers, 0));
        let other = peer.as_deref().map(|peer| runtime.block_on(run(Some(peer), viewers, 0)));
        tell(viewers, &ours, other.as_ref());
    }
    let stalled = runtime.block_on(run(None, 100, 1));
    let lost = Figure::new(
        "moq relay, 100 viewers and one that reads nothing: objects lost",
        stalled.lost as f64,
        "",
    );
    lost.target(Target::AtMost(0.0)).tell();
    Figure::new(
        "moq relay, 100 viewers and one that reads nothing: memory",
        stalled.memory_mb,
        "MB",
    )
    .tell();
}

fn tell(viewers: u64, ours: &Run, other: Option<&Run>) {
    let figure = |what: &str, unit: &str, value: fn(&Run) -> f64, target: Option<Target>| {
        let mut figure =
            Figure::new(format!("moq relay, {viewers} viewers: {what}"), value(ours), unit);
        figure.target = target;
        match other {
            Some(other) => figure.beside(PEER, value(other)).tell(),
            None => figure.tell(),
        }
    };
    figure("objects lost", "", |run| run.lost as f64, Some(Target::AtMost(0.0)));
    figure("CPU time for each Gbit", "s", |run| run.cpu_per_gbit, None);
    figure("latency, 99 %, at most", "ms", |run| run.latency_ms as f64, None);
    figure("memory", "MB", |run| run.memory_mb, None);
    for (name, run) in [("suiro", Some(ours)), (PEER, other)] {
        let Some(Run { busy: [relay, load, idle], .. }) = run else { continue };
        println!("  {name}: CPUs: relay {relay:.2}, clients {load:.2}, unused {idle:.2}");
    }
}

/// Our relay, as an endpoint of a trial runs it, until it is killed.
fn serve(dir: &Path, port: u16) {
    let clock = Clock::from_now();
    let job = RelayJob { sessions: 2000, ..common::relay(dir, port, None) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ready = || println!("ready");
    let served = relay::run(&job, clock, ready, std::future::pending());
    runtime.expect("a runtime can be made").block_on(served).expect("the relay runs");
}

fn start(dir: &Path, peer: Option<&Path>) -> (Running, u16) {
    if let Some(program) = peer {
        return peers::moq_relay(program, dir);
    }
    let port = free_port();
    let mut command = Command::new(std::env::current_exe().expect("this program is a file"));
    command.arg("relay").arg(dir).arg(port.to_string()).stdout(Stdio::piped());
    let mut relay = Running::start(&mut command);
    let mut said = BufReader::new(relay.0.stdout.take().expect("it is a pipe")).lines();
    said.next().expect("it becomes ready").expect("it is text");
    (relay, port)
}

async fn run(peer: Option<&Path>, viewers: u64, stalled: u64) -> Run {
    let dir = tempfile::tempdir().expect("there is a folder for temporary files");
    let (clock, counts) = (Clock::from_now(), Arc::new(Counts::default()));
    let (relay, port) = start(dir.path(), peer);
    let mut publisher = Publisher::connect(&Socket::open(clock, dir.path(), port, 1000)).await;
    let all = connect(clock, dir.path(), port, &counts, viewers).await;
    let narrow = Socket::open(clock, dir.path(), port, NARROW);
    let mut reading_nothing = Vec::new();
    for _ in 0..stalled {
        let viewer = Viewer::connect(&narrow, Arc::new(Counts::default())).await;
        viewer.link.stall();
        reading_nothing.push(viewer);
    }
    let mut due = clock.now();
    let mut before = None;
    for number in 0..WARM + COUNTED {
        if number == WARM {
            before = Some(Used::now(relay.0.id(), clock.now()));
            counts.from.store(number, Relaxed);
            counts.to.store(number + COUNTED, Relaxed);
        }
        clock.sleep_until(due).await;
        publisher.send(clock, OBJECT);
        due += FRAME;
    }
    let used = Used::now(relay.0.id(), clock.now()).since(&before.expect("some objects count"));
    let (expected, last) = (viewers * COUNTED, clock.now() + GRACE);
    while counts.objects.load(Relaxed) < expected && clock.now() < last {
        clock.sleep_until(clock.now() + FRAME).await;
    }
    let gbit = counts.bytes.load(Relaxed) as f64 * 8e-9;
    let memory_mb = resident(relay.0.id());
    drop((all, reading_nothing));
    Run {
        lost: expected.saturating_sub(counts.objects.load(Relaxed)),
        cpu_per_gbit: used.relay / gbit,
        latency_ms: counts.percentile_ms(0.99),
        memory_mb,
        busy: [used.relay, used.load, used.idle].map(|seconds| seconds / used.seconds),
    }
}

async fn connect(
    clock: Clock,
    dir: &Path,
    port: u16,
    counts: &Arc<Counts>,
    viewers: u64,
) -> Vec<Viewer> {
    let (mut all, mut connecting) = (Vec::new(), tokio::task::JoinSet::new());
    let mut socket = Socket::open(clock, dir, port, 1000);
    for number in 0..viewers as usize {
        if number % SHARE == 0 {
            socket = Socket::open(clock, dir, port, 1000);
        }
        if connecting.len() >= AT_ONCE {
            all.extend(connecting.join_next().await.map(|viewer| viewer.expect("it connects")));
        }
        let (socket, counts) = (socket.clone(), Arc::clone(counts));
        connecting.spawn(async move { Viewer::connect(&socket, counts).await });
    }
    all.extend(connecting.join_all().await);
    all
}

/// CPU time until now, in seconds.
struct Used {
    relay: f64,
    load: f64,
    idle: f64,
    seconds: f64,
}

impl Used {
    fn now(relay: u32, at: Time) -> Self {
        let text = std::fs::read_to_string("/proc/stat").expect("Linux has it");
        let first: Vec<f64> =
            text.split_whitespace().skip(1).map_while(|it| it.parse().ok()).collect();
        Self {
            relay: process(relay),
            load: process(std::process::id()),
            // Fields `idle` and `iowait` (proc_stat(5)), in ticks.
            idle: (first[3] + first[4]) / TICKS,
            seconds: at.as_nanos() as f64 / 1e9,
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            relay: self.relay - before.relay,
            load: self.load - before.load,
            idle: self.idle - before.idle,
            seconds: self.seconds - before.seconds,
        }
    }
}

/// `utime` and `stime` (proc_pid_stat(5)).
fn process(id: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("the process runs");
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |index: usize| fields[index].parse::<f64>().expect("a number");
    (field(11) + field(12)) / TICKS
}

/// The most that was resident, in MB.
fn resident(id: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux counts it");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1000.0
}
