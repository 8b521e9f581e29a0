//! What one link can carry, with what lateness and at what cost: UDP packets of 1200 bytes between
//! two hosts, with sender, carrier and receiver on the same two cores. Prints a table of medians
//! over [`RUNS`] runs.
//!
//! Then TCP, one flow each: how much of a link's rate it fills, and whether that is valid.
//!
//! Run it with `cargo bench -p suiro-wire`; add `-- user` to measure as an ordinary user, numbers to measure at these
//! rates only (packets a second in each direction), and `tcp` for TCP only.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use suiro_bench::{Figure, Target};
use suiro_clock::Axis;
use suiro_hosts::{
    CableKind, CableSpec, EmulatedLink, LinkEnd, Network, NetworkSpec, Privilege, Sandbox, ipv4,
};
use suiro_link::{LinkConfig, LinkSpec, Schedule};
use suiro_record::LinkTotals;
use suiro_units::{Duration, Seed, Time};
use suiro_wire::{Carrier, CarrierSpec, Medium, Outcome};

const RUNS: usize = 5;
const SECONDS: u64 = 2;
const PACKET_BYTES: usize = 1200;
/// Up to this rate the figures have targets: 1 Gbit/s of such packets.
const JUDGED: u64 = 104_167;
const PORT: u16 = 9;
/// Rates of the links that TCP fills.
const TCP_GBPS: [u64; 3] = [1, 2, 3];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asks = |word: &str| arguments.iter().any(|argument| argument == word);
    let rates: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if asks("inside") {
        measure(&rates, asks("tcp"));
        return ExitCode::SUCCESS;
    }
    if !asks("--bench") {
        suiro_units::skipped("this takes a minute; run `cargo bench -p suiro-wire`");
        return ExitCode::SUCCESS;
    }
    let privilege = if asks("user") { Privilege::User } else { Privilege::of_this_process() };
    let words = ["inside", if asks("tcp") { "tcp" } else { "all" }].map(str::to_owned);
    let inside = words.into_iter().chain(rates.iter().map(u64::to_string));
    match Sandbox::new(inside).privilege(privilege).spawn() {
        Ok(mut worker) => match worker.wait() {
            Ok(status) if status.success() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        },
        Err(error) => {
            suiro_units::skipped(&error);
            ExitCode::SUCCESS
        }
    }
}

fn measure(rates: &[u64], only_tcp: bool) {
    let cores = keep_to_two_cores();
    if !only_tcp {
        measure_udp(rates, cores);
    }
    if rates.is_empty() && !only_tcp {
        let told = suiro_wire::capacity().expect("what this host carries can be measured");
        println!("what `suiro doctor` prints: {} packets/s each way", told.packets_per_second);
    }
    if only_tcp || rates.is_empty() {
        TCP_GBPS.iter().for_each(|&gbps| fill(gbps));
    }
}

fn measure_udp(rates: &[u64], cores: usize) {
    println!(
        "one link, both directions, {PACKET_BYTES}-byte packets, {SECONDS} s, median of {RUNS} \
         runs, {cores} cores"
    );
    println!(
        "{:>10} {:>8} {:>12} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9} {:>10}",
        "pkt/s",
        "Gbit/s",
        "unaccounted",
        "p50 us",
        "p99 us",
        "max us",
        "call p99",
        "cores",
        "real time",
        "takeovers",
        "scheduled"
    );
    let all = [1_000, 10_000, 50_000, 104_167, 150_000, 200_000];
    for &per_second in if rates.is_empty() { &all } else { rates } {
        let runs: Vec<_> = (0..RUNS).map(|_| run(per_second)).collect();
        row(per_second, &runs);
    }
    if rates.is_empty() {
        ten_links();
    }
}

/// Each direction carries `per_second` packets a second.
fn run(per_second: u64) -> Outcome {
    Link::new().run(per_second)
}

/// Hosts and a link of 20 ms between them.
struct Link {
    network: Network,
    config: LinkConfig,
}

impl Link {
    fn new() -> Self {
        let spec = NetworkSpec {
            hosts: vec!["server".into(), "client".into()],
            cables: vec![CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Emulated }],
            detours: vec![],
        };
        let mut config = LinkConfig::default();
        for path in [&mut config.down, &mut config.up] {
            path.propagation.delay = Schedule::constant(Duration::from_millis(20));
        }
        Self { network: Network::build(&spec).expect("the network can be made"), config }
    }

    /// With this rate, and a delay at which a window of TCP's usual size fills it.
    fn with_rate(gbps: u64) -> Self {
        let spec = format!("rate = '{gbps} Gbit/s'\ndelay = '2 ms'");
        let spec: LinkSpec = toml::from_str(&spec).expect("a link of a rate and a delay");
        let no_trace = |_: &std::path::Path| unreachable!("it has no trace");
        Self { config: spec.resolve(&mut { no_trace }).expect("it is complete"), ..Self::new() }
    }

    fn start(&self) -> Carrier {
        let link = &self.network.links()[0];
        Carrier::start(&CarrierSpec {
            name: "bench",
            medium: &Medium::Link { link, config: self.config.clone() },
            wire: self.network.wire(),
            seed: Seed(1),
            clock: Axis::starting_now(),
            records: None,
        })
        .expect("the link can be carried")
    }

    fn run(&self, per_second: u64) -> Outcome {
        let link = &self.network.links()[0];
        let carrier = self.start();
        std::thread::scope(|scope| {
            for (from, to) in [(&link.from, &link.to), (&link.to, &link.from)] {
                scope.spawn(move || load(from, to, per_second));
            }
        });
        carrier.stop().expect("the link ends")
    }
}

/// One TCP flow through links of a rate, one after the other.
fn fill(gbps: u64) {
    let runs: Vec<(u64, Outcome)> = (0..RUNS)
        .map(|_| {
            let link = Link::with_rate(gbps);
            let carrier = link.start();
            let bytes = tcp(&link.network.links()[0]);
            (bytes, carrier.stop().expect("the link ends"))
        })
        .collect();
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let outcomes = || runs.iter().map(|(_, outcome)| outcome);
    let goodput = median(runs.iter().map(|(bytes, _)| *bytes as f64 * 8.0 / 1e9).collect());
    let goodput = goodput / SECONDS as f64;
    let late_us = median(
        outcomes()
            .flat_map(|outcome| &outcome.totals)
            .map(|totals| totals.lateness.p99_us.unwrap_or(f64::NAN))
            .collect(),
    );
    let cores = median(outcomes().map(|run| run.totals[0].cpu_cores.unwrap_or(f64::NAN)).collect());
    let valid = outcomes().filter(|outcome| outcome.faults.is_empty()).count();
    let unaccounted: u64 = outcomes().flat_map(|run| &run.totals).map(|t| t.unaccounted).sum();
    let name = format!("link of {gbps} Gbit/s, TCP");
    println!(
        "{name}: goodput {goodput:.2} Gbit/s, p99 {late_us:.0} us, {cores:.3} cores, {unaccounted} unaccounted, {valid} of \
         {RUNS} runs valid"
    );
    Figure::new(format!("{name}: goodput"), goodput, "Gbit/s").tell();
    Figure::new(format!("{name}: runs that are valid"), valid as f64, "").tell();
}

/// Sends for a while; the bytes that arrived.
#[expect(clippy::disallowed_methods, reason = "the sockets of this bench")]
fn tcp(link: &EmulatedLink) -> u64 {
    let (from, to) = (&link.from, &link.to);
    let address = (ipv4(from.index), PORT);
    let listener = from.host.enter(|| TcpListener::bind(address)).unwrap().unwrap();
    let sending = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let clock = Axis::starting_now();
        let piece = vec![0; 128 << 10];
        while clock.now() < Time::from_secs(SECONDS) {
            stream.write_all(&piece).unwrap();
        }
    });
    let mut stream = to.host.enter(|| TcpStream::connect(address)).unwrap().unwrap();
    let (mut piece, mut bytes) = (vec![0; 256 << 10], 0);
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            read => bytes += read as u64,
        }
    }
    sending.join().unwrap();
    bytes
}

/// Ten links side by side with 521 packets/s in each direction: 5 Mbit/s.
fn ten_links() {
    let links: Vec<_> = (0..10).map(|_| Link::new()).collect();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = links.iter().map(|link| scope.spawn(|| link.run(521))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let invalid: Vec<_> = outcomes.iter().flat_map(|outcome| &outcome.faults).collect();
    println!("ten links at once, 5 Mbit/s each way; faults: {invalid:?}; each:");
    row(521, &outcomes);
}

/// Sends at an even pace; the receiver reads whatever arrives.
#[expect(clippy::disallowed_methods, reason = "the sockets of this bench")]
fn load(from: &LinkEnd, to: &LinkEnd, per_second: u64) {
    let receiver = to.host.enter(|| UdpSocket::bind((ipv4(to.index), PORT))).unwrap().unwrap();
    let sender = from.host.enter(|| UdpSocket::bind((ipv4(from.index), 0))).unwrap().unwrap();
    sender.connect((ipv4(to.index), PORT)).unwrap();
    let quiet = std::time::Duration::from_millis(200);
    receiver.set_read_timeout(Some(quiet)).unwrap();
    let reading = std::thread::spawn(move || {
        let mut packet = [0; PACKET_BYTES];
        while receiver.recv(&mut packet).is_ok() {}
    });
    let clock = Axis::starting_now();
    let packet = [0; PACKET_BYTES - 28];
    let mut sent = 0;
    while clock.now() < Time::from_secs(SECONDS) {
        let due = Time::from_nanos(sent * 1_000_000_000 / per_second);
        let early = due.saturating_since(clock.now());
        if early > Duration::from_micros(5) {
            wait(&sender, early);
            continue;
        }
        match sender.send(&packet) {
            Ok(_) => sent += 1,
            // A receiver that got no CPU for so long has given up.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => sent += 1,
            Err(error) => panic!("sending: {error}"),
        }
    }
    reading.join().unwrap();
}

/// A sender receives nothing, so its socket is never readable.
fn wait(socket: &UdpSocket, time: Duration) {
    let mut fd = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = libc::timespec { tv_sec: 0, tv_nsec: time.as_nanos().cast_signed() };
    // SAFETY: one live entry and a live time.
    unsafe { libc::ppoll(&raw mut fd, 1, &raw const time, std::ptr::null()) };
}

/// The values for the table of all benchmarks, and what issue and design ask of them: 1 Gbit/s in each direction.
fn tell(per_second: u64, lateness_us: f64, unaccounted: u64, cores: f64) {
    let name = format!("link, {per_second} packets/s each way");
    let judged = per_second <= JUDGED;
    let figure = |what: &str, value: f64, unit: &str, most: f64| {
        let figure = Figure::new(format!("{name}: {what}"), value, unit);
        if judged { figure.target(Target::AtMost(most)).tell() } else { figure.tell() }
    };
    figure("lateness, 99 %", lateness_us, "µs", 500.0);
    figure("packets not accounted for", unaccounted as f64, "", 0.0);
    Figure::new(format!("{name}: CPU"), cores, "cores").tell();
}

fn row(per_second: u64, runs: &[Outcome]) {
    let each = |value: fn(&LinkTotals) -> f64| {
        let mut all: Vec<f64> = runs.iter().flat_map(|run| &run.totals).map(value).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let bits = (PACKET_BYTES * 8) as f64 / SECONDS as f64 / 1e9;
    let unaccounted: u64 = runs.iter().flat_map(|run| &run.totals).map(|t| t.unaccounted).sum();
    println!(
        "{per_second:>10} {:>8.3} {unaccounted:>12} {:>10.1} {:>10.1} {:>10.1} {:>10.1} {:>8.3} {:>9.2} {:>9} {:>10}",
        each(|totals| totals.delivered as f64) * bits,
        each(|totals| totals.lateness.p50_us.unwrap_or(f64::NAN)),
        each(|totals| totals.lateness.p99_us.unwrap_or(f64::NAN)),
        each(|totals| totals.lateness.max_us.unwrap_or(f64::NAN)),
        each(|totals| totals.departure_error.p99_us.unwrap_or(f64::NAN)),
        each(|totals| totals.cpu_cores.unwrap_or(f64::NAN)),
        each(|totals| totals.real_time.unwrap_or(f64::NAN)),
        each(|totals| totals.takeovers as f64),
        format!("{:?}", runs[0].priority),
    );
    let late = each(|totals| totals.lateness.p99_us.unwrap_or(f64::NAN));
    let cores = each(|totals| totals.cpu_cores.unwrap_or(f64::NAN));
    if runs.len() == RUNS {
        tell(per_second, late, unaccounted, cores);
    }
}

/// Pins this process to two of the cores that it may use; returns how many it has.
fn keep_to_two_cores() -> usize {
    // SAFETY: plain bits, read and written with their own size.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut set) != 0 {
            return 0;
        }
        let usable = |core: &usize| libc::CPU_ISSET(*core, &set);
        let two: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(usable).take(2).collect();
        libc::CPU_ZERO(&mut set);
        two.iter().for_each(|&core| libc::CPU_SET(core, &mut set));
        libc::sched_setaffinity(0, size, &raw const set);
        two.len()
    }
}
