//! Links on a real kernel, judged by independent programs: ping and iperf3. Needs root or user
//! namespaces, iproute2, iputils-ping and iperf3; where something is missing it prints that and
//! passes.
#![expect(clippy::print_stdout, reason = "a test program prints its results")]

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, ExitCode, Stdio};

use suiro_clock::Axis;
use suiro_hosts::sandbox::probe;
use suiro_hosts::{
    CableKind, CableSpec, Equipment, Host, Network, NetworkSpec, Privilege, Suite, Test, ipv4, ipv6,
};
use suiro_link::{
    BaseStationConfig, CellConfig, HubConfig, LinkConfig, LinkSpec, SegmentLinks, SegmentSpec,
};
use suiro_record::tables::LinkRow;
use suiro_record::words::{CheckedQuantity, LinkCause, Verdict};
use suiro_record::{Reader, SelfCheck};
use suiro_units::Seed;
use suiro_wire::{Carrier, CarrierSpec, CheckSpec, Medium, Outcome, check};

fn main() -> ExitCode {
    // Root runs as an ordinary user would: the stricter case.
    let privilege =
        if probe(Privilege::User).is_ok() { Privilege::User } else { Privilege::of_this_process() };
    Suite { privilege, fixture: || Ok(()), tests: TESTS }.main()
}

const TESTS: &[Test<()>] = &[
    ("ping shows the configured delay", |()| with("ping", ping_shows_the_delay)),
    ("copies arrive twice", |()| with("ping", copies_arrive_twice)),
    ("what is in the link at the end is queued", |()| what_is_inside_is_queued()),
    ("three stations share a hub", |()| three_stations_share_a_hub()),
    ("two stations share an access point", |()| two_stations_share_an_access_point()),
    ("two users share a base station", |()| two_users_share_a_base_station()),
    ("a link passes its self-check", |()| a_link_passes_its_check()),
    ("what this host carries can be measured", |()| what_this_host_carries()),
    ("a throttled host fails it", |()| with("tc", a_throttled_host_fails_it)),
    ("iperf3 shows the configured rates, and Reno meets Mathis", |()| with("iperf3", rates)),
];

/// At these rates each link has a thread and most of a core to itself.
fn rates() {
    std::thread::scope(|scope| {
        scope.spawn(iperf3_shows_the_rate);
        scope.spawn(iperf3_over_ipv6);
        scope.spawn(iperf3_with_jumbo_frames);
        scope.spawn(reno_meets_mathis);
    });
}

fn with(program: &str, test: impl FnOnce()) {
    let mut command = Command::new(program);
    match command.arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(_) => test(),
        Err(_) => suiro_units::skipped(&format!("{program} is not installed")),
    }
}

/// `server` and `client`, and the link between them.
struct Bench {
    network: Network,
    config: LinkConfig,
}

impl Bench {
    fn new(config: &str, mtu: u32) -> Self {
        let spec: LinkSpec = toml::from_str(config).unwrap();
        let config = spec.resolve(&mut |_| Err("no traces here".into())).unwrap();
        let spec = NetworkSpec {
            hosts: vec!["server".into(), "client".into()],
            cables: vec![CableSpec { from: 0, to: 1, mtu, kind: CableKind::Emulated }],
            detours: vec![],
        };
        Self { network: Network::build(&spec).unwrap(), config }
    }

    fn medium(&self) -> Medium<'_> {
        Medium::Link { link: &self.network.links()[0], config: self.config.clone() }
    }

    fn carry(&self, records: Option<&std::path::Path>) -> Carrier {
        let (medium, wire) = (&self.medium(), self.network.wire());
        let (clock, seed) = (Axis::starting_now(), Seed(7));
        Carrier::start(&CarrierSpec { name: "live", medium, wire, seed, clock, records }).unwrap()
    }

    fn check(&self) -> Vec<SelfCheck> {
        let (medium, wire, seed) = (&self.medium(), self.network.wire(), Seed(7));
        check(&CheckSpec { name: "live", medium, wire, seed }).unwrap()
    }

    fn server(&self) -> &Host {
        self.network.host("server").unwrap()
    }

    fn client(&self) -> &Host {
        self.network.host("client").unwrap()
    }
}

fn nothing_is_missing(outcome: &Outcome) {
    for totals in &outcome.totals {
        assert_eq!(totals.unaccounted, 0, "{totals:#?}");
    }
}

fn output(host: &Host, program: &str, arguments: &[&str]) -> String {
    let output = host.command(Command::new(program).args(arguments)).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn ping_shows_the_delay() {
    let bench = Bench::new("delay = '25 ms'", 1500);
    let dir = tempfile::tempdir().unwrap();
    let carrier = bench.carry(Some(dir.path()));
    let addresses = [ipv4(1).to_string(), ipv6(1).to_string()];
    for address in &addresses {
        let said = output(bench.server(), "ping", &["-c", "20", "-i", "0.02", address]);
        // rtt min/avg/max/mdev = 50.1/50.3/51.0/0.1 ms
        let line = said.lines().find(|line| line.starts_with("rtt")).unwrap();
        let least: f64 = line.split(['=', '/']).nth(4).unwrap().trim().parse().unwrap();
        assert!((50.0..51.0).contains(&least), "{address}: {line}");
    }
    let outcome = carrier.stop().unwrap();
    nothing_is_missing(&outcome);
    let (down, up) = (&outcome.totals[0], &outcome.totals[1]);
    assert_eq!((&down.segment, &up.segment), (&None, &None));
    assert_eq!((down.offered, down.delivered, up.offered, up.delivered), (40, 40, 40, 40));
    for totals in [down, up] {
        // What a call takes is little, but not nothing.
        assert!(totals.departure_error.p50_us > Some(0.0), "{:?}", totals.departure_error);
        assert!(totals.departure_error.p50_us <= totals.departure_error.max_us);
    }
    let rows = Reader::read_all::<LinkRow>(dir.path()).unwrap();
    assert_eq!(rows.len(), 80, "one record per packet");
    for row in &rows {
        assert_eq!(row.scheduled_ns, Some(row.t_ns + 25_000_000), "the delay is exact: {row:?}");
        assert!(row.departed_ns >= row.scheduled_ns, "nothing leaves early: {row:?}");
    }
    let flow = |name: &str| rows.iter().filter(|row| &*row.flow == name).count();
    assert_eq!((flow("icmp 10.0.0.1>10.0.0.2"), flow("icmp6 fd00::2>fd00::1")), (20, 20));
}

/// How much that is depends on what else runs; on a machine that is busy enough it is nothing.
fn what_this_host_carries() {
    let carried = suiro_wire::capacity().unwrap();
    println!("({} packets/s each way, {})", carried.packets_per_second, carried.rate());
    assert_eq!(carried.rate().as_bps(), u64::from(carried.packets_per_second) * 9_600);
}

fn copies_arrive_twice() {
    let bench = Bench::new("down = { duplicate = 1.0 }", 1500);
    let carrier = bench.carry(None);
    let said = output(bench.client(), "ping", &["-c", "5", "-i", "0.02", &ipv4(0).to_string()]);
    let outcome = carrier.stop().unwrap();
    nothing_is_missing(&outcome);
    assert!(said.contains("DUP!"), "{said}");
    let down = &outcome.totals[0];
    assert_eq!((down.offered, down.duplicated, down.delivered), (5, 5, 10));
}

#[expect(clippy::disallowed_methods, reason = "the sockets of this test")]
fn what_is_inside_is_queued() {
    let bench = Bench::new("delay = '1 h'\ndown = { duplicate = 1.0 }", 1500);
    let dir = tempfile::tempdir().unwrap();
    let carrier = bench.carry(Some(dir.path()));
    let socket = bench.server().enter(|| std::net::UdpSocket::bind((ipv4(0), 0))).unwrap().unwrap();
    for _ in 0..5 {
        socket.send_to(b"slowly", (ipv4(1), 9)).unwrap();
    }
    let outcome = carrier.stop().unwrap();
    nothing_is_missing(&outcome);
    let down = &outcome.totals[0];
    assert_eq!((down.offered, down.duplicated, down.queued, down.delivered), (5, 5, 10, 0));
    let rows = Reader::read_all::<LinkRow>(dir.path()).unwrap();
    assert!(rows.iter().all(|row| row.verdict == Verdict::Queued && row.payload_bytes == Some(6)));
}

/// Each station floods the next one, 2 s of packets at once; together 1.6 times as much as 10 Mbit/s carries.
#[expect(clippy::disallowed_methods, reason = "the sockets of this test")]
fn three_stations_share_a_hub() {
    let spec: SegmentSpec = toml::from_str(
        "ethernet = {}\nstations = [{ host = 'a' }, { host = 'b', queue.limit = '20p' }, { host = 'c' }]",
    )
    .unwrap();
    let links = spec.resolve().unwrap().links;
    let config = HubConfig {
        ethernet: links[0].ethernet.unwrap(),
        stations: links.into_iter().map(|link| link.up).collect(),
    };
    let cable = |station| CableSpec { from: 3, to: station, mtu: 1500, kind: CableKind::Emulated };
    let spec = NetworkSpec {
        hosts: ["a", "b", "c", "lan"].map(str::to_owned).to_vec(),
        cables: (0..3).map(cable).collect(),
        detours: vec![],
    };
    let equipment = Equipment { hubs: vec![3], ..Equipment::default() };
    let network = Network::equipped(&spec, &equipment).unwrap();
    let (segment, wire) = (&network.segments()[0], network.wire());
    let links = vec!["lan-a", "lan-b", "lan-c"];
    let (name, seed) = ("lan", Seed(7));
    let medium = &Medium::Hub { segment, links, config };
    let checks = check(&CheckSpec { name, medium, wire, seed }).unwrap();
    assert!(checks.len() == 3 && checks.iter().all(|check| check.ok), "{checks:#?}");

    let dir = tempfile::tempdir().unwrap();
    let (clock, records) = (Axis::starting_now(), Some(dir.path()));
    let spec = CarrierSpec { name, medium, wire, seed, clock, records };
    let carrier = Carrier::start(&spec).unwrap();
    let bind = |host: usize| {
        network.hosts()[host].enter(|| UdpSocket::bind((ipv4(host), 4000))).unwrap().unwrap()
    };
    let sockets: Vec<UdpSocket> = (0..3).map(bind).collect();
    sockets[0].set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    for n in 0..1_200 {
        for (host, socket) in sockets.iter().enumerate() {
            socket.send_to(&[n as u8; 1472], (ipv4((host + 1) % 3), 4000)).unwrap();
        }
        // A burst of 40 fits into the ring, however fast it is.
        if n % 40 == 39 {
            let bytes = &mut [0; 2000];
            sockets[0].recv_from(bytes).unwrap();
        }
    }
    let outcome = carrier.stop().unwrap();
    nothing_is_missing(&outcome);
    let offered: Vec<_> = outcome.totals.iter().map(|of| (&*of.link, of.offered)).collect();
    assert_eq!(offered, [("lan-a", 1_200), ("lan-b", 1_200), ("lan-c", 1_200)]);
    assert!(outcome.totals.iter().all(|of| of.segment.as_deref() == Some("lan")));
    let rows = Reader::read_all::<LinkRow>(dir.path()).unwrap();
    assert_eq!(rows.len(), 3_600, "one record per packet");
    for (of, other) in outcome.totals.iter().zip(["10.0.0.2", "10.0.0.3", "10.0.0.1"]) {
        let own: Vec<_> = rows.iter().filter(|row| *row.link == *of.link).collect();
        let delivered = own.iter().filter(|row| row.verdict == Verdict::Delivered).count() as u64;
        assert_eq!(delivered, of.delivered);
        assert!(own.iter().all(|row| row.flow.contains(&format!(">{other}:"))), "{:?}", own[0]);
        assert!(of.delivered > 0 && of.dropped.contains_key(&LinkCause::Queue), "{of:#?}");
    }
    // No two at once: 1538 B of frame, preamble and gap before each next one.
    let mut departures: Vec<i64> = rows.iter().filter_map(|row| row.scheduled_ns).collect();
    departures.sort_unstable();
    assert!(departures.windows(2).all(|pair| pair[1] - pair[0] >= 1_230_400));
    assert!(rows.iter().any(|row| row.attempts > Some(1)), "nothing collided");
}

/// Hosts `near`, `far` and `centre`, with links from the last to the others.
fn two_and_their_centre() -> Network {
    let cable = |station| CableSpec { from: 2, to: station, mtu: 1500, kind: CableKind::Emulated };
    let spec = NetworkSpec {
        hosts: ["near", "far", "centre"].map(str::to_owned).to_vec(),
        cables: (0..2).map(cable).collect(),
        detours: vec![],
    };
    Network::build(&spec).unwrap()
}

/// Both stations flood the centre of a medium, which floods both, each with so many packets of so many bytes, once the medium has
/// passed its self-check. `heard`: how many of them the far one waits for. What came of it, with a row for each packet.
#[expect(clippy::disallowed_methods, reason = "the sockets of this test")]
fn flooded(
    (network, medium): (&Network, &Medium<'_>),
    (packets, bytes): (usize, usize),
    heard: usize,
) -> (Outcome, Vec<LinkRow>) {
    let (name, wire, seed) = ("cell", network.wire(), Seed(7));
    let checks = check(&CheckSpec { name, medium, wire, seed }).unwrap();
    assert!(checks.len() == 4 && checks.iter().all(|check| check.ok), "{checks:#?}");

    let dir = tempfile::tempdir().unwrap();
    let (clock, records) = (Axis::starting_now(), Some(dir.path()));
    let spec = CarrierSpec { name, medium, wire, seed, clock, records };
    let carrier = Carrier::start(&spec).unwrap();
    let bind = |host: usize| {
        network.hosts()[host].enter(|| UdpSocket::bind((ipv4(host), 4000))).unwrap().unwrap()
    };
    let [near, far, centre] = [0, 1, 2].map(bind);
    far.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    for n in 0..packets {
        for (from, to) in [(&near, 2), (&far, 2), (&centre, 0), (&centre, 1)] {
            from.send_to(&vec![n as u8; bytes], (ipv4(to), 4000)).unwrap();
        }
    }
    for _ in 0..heard {
        far.recv_from(&mut [0; 2000]).unwrap();
    }
    let outcome = carrier.stop().unwrap();
    nothing_is_missing(&outcome);
    let rows = Reader::read_all::<LinkRow>(dir.path()).unwrap();
    assert_eq!(rows.len(), 4 * packets, "one record per packet");
    (outcome, rows)
}

/// One of the stations is far away.
fn two_stations_share_an_access_point() {
    let spec: SegmentSpec = toml::from_str(
        "wifi = { aggregate = 1, shadowing = '0 dB', rice_k = '60 dB' }\naccess_point = 'ap'\n\
         stations = [{ host = 'near' }, { host = 'far', wifi = { attenuation = '48.8 dB' } }]",
    )
    .unwrap();
    let SegmentLinks { links, busy } = spec.resolve().unwrap();
    let config = CellConfig { busy: busy.unwrap(), stations: links };
    let network = two_and_their_centre();
    let (ends, links) = (network.links().iter().collect(), vec!["cell-near", "cell-far"]);
    let medium = Medium::Cell { ends, links, config };
    // Half a second of air for the far station's first packets.
    let (outcome, rows) = flooded((&network, &medium), (200, 1472), 100);
    let all: Vec<_> =
        outcome.totals.iter().map(|of| (&*of.link, of.direction.name(), of.offered)).collect();
    assert!(outcome.totals.iter().all(|of| of.segment.as_deref() == Some("cell")));
    let (near, far) = ("cell-near", "cell-far");
    assert_eq!(all, [(near, "down", 200), (near, "up", 200), (far, "down", 200), (far, "up", 200)]);
    let mut ends: Vec<i64> = rows.iter().filter_map(|row| row.scheduled_ns).collect();
    ends.sort_unstable();
    // AIFS, the shortest PPDU of such a packet, SIFS and its answer.
    assert!(ends.windows(2).all(|pair| pair[1] - pair[0] >= (43 + 228 + 16 + 32) * 1_000));
    assert!(rows.iter().all(|row| row.attempts.is_some()));
}

/// Packets arrive in subframes of 1 ms, those of a user up after its grant at the earliest.
fn two_users_share_a_base_station() {
    let spec: SegmentSpec = toml::from_str(
        "cellular = {}\nbase_station = 'centre'\n\
         stations = [{ host = 'near' }, { host = 'far', cellular = { distance = '200 m' } }]",
    )
    .unwrap();
    let config = BaseStationConfig { stations: spec.resolve().unwrap().links };
    let network = two_and_their_centre();
    let (ends, links) = (network.links().iter().collect(), vec!["cell-near", "cell-far"]);
    let medium = Medium::BaseStation { ends, links, config };
    let (outcome, rows) = flooded((&network, &medium), (100, 1000), 100);
    assert_eq!(outcome.totals.iter().map(|of| of.offered).collect::<Vec<_>>(), [100; 4]);
    let mut due = rows.iter().filter(|row| row.verdict == Verdict::Delivered);
    assert!(due.all(|row| row.scheduled_ns.is_some_and(|at| at % 1_000_000 == 0)));
    assert!(rows.iter().any(|row| row.attempts > Some(1)), "no block failed");
}

fn failed(checks: &[SelfCheck]) -> Vec<String> {
    let all = checks.iter().flat_map(|check| &check.checks);
    all.filter(|part| part.ok == Some(false)).map(|part| format!("{part:?}")).collect()
}

fn a_link_passes_its_check() {
    for config in [
        "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '60 kB' }\nup = { loss = '2 %' }",
        "preset = 'cable'",
    ] {
        let checks = Bench::new(config, 1500).check();
        assert!(checks.iter().all(|check| check.ok), "{config}: {:#?}", failed(&checks));
        let measured = |what: &str| {
            checks[0].checks.iter().any(|part| part.what.name() == what && part.ok == Some(true))
        };
        for what in ["rate", "delay", "loss", "queue", "accounting"] {
            assert!(measured(what), "{config}: {what}: {:#?}", checks[0]);
        }
    }
}

/// The hosts see something other than what the link was configured to do, as if the emulator were
/// not working.
fn a_throttled_host_fails_it() {
    let bench = Bench::new("rate = '4 Mbit/s'\ndelay = '20 ms'", 1500);
    let throttle = [
        "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "2mbit", "burst", "3000", "limit",
        "1000000",
    ];
    let tc = bench.server().command(Command::new("tc").args(throttle)).output().unwrap();
    if !tc.status.success() {
        suiro_units::skipped(&format!("no tbf: {}", String::from_utf8_lossy(&tc.stderr).trim()));
        return;
    }
    let checks: [SelfCheck; 2] = bench.check().try_into().unwrap();
    let [down, up] = &checks;
    let rate = down.checks.iter().find(|part| part.what == CheckedQuantity::Rate).unwrap();
    assert!(!down.ok && rate.ok == Some(false), "{down:#?}");
    assert!(up.ok, "{up:#?}");
}

/// An iperf3 server in `server` that serves one client and exits.
fn iperf3_server(bench: &Bench) -> Child {
    let mut command = Command::new("iperf3");
    command.args(["-s", "-1", "--forceflush"]).stdout(Stdio::piped());
    let mut server = bench.server().command(&mut command).spawn().unwrap();
    let mut said = BufReader::new(server.stdout.as_mut().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("listening")), "iperf3 -s does not listen");
    server
}

/// Goodput from server to client in each second except the first, sorted.
fn goodput_bps(bench: &Bench, address: &str, arguments: &[&str]) -> Vec<f64> {
    let carrier = bench.carry(None);
    let mut server = iperf3_server(bench);
    let mut all = vec!["-c", address, "-R", "-J", "-O", "1"];
    all.extend(arguments);
    let said = output(bench.client(), "iperf3", &all);
    // Its final output is not needed.
    drop(server.stdout.take());
    server.wait().unwrap();
    nothing_is_missing(&carrier.stop().unwrap());
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    let seconds = report["intervals"].as_array().unwrap().iter().map(|second| &second["sum"]);
    let counted = seconds.filter(|sum| sum["omitted"] == false);
    let mut rates: Vec<f64> = counted.map(|sum| sum["bits_per_second"].as_f64().unwrap()).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// A machine that is busy with other work may spoil a second.
fn median(rates: &[f64]) -> f64 {
    rates[rates.len() / 2]
}

/// The link counts IP packets, TCP only their payload.
fn near(measured: f64, rate_mbps: f64, payload: f64, packet: f64, tolerance: f64) {
    let expected = rate_mbps * 1e6 * payload / packet;
    let off = measured / expected - 1.0;
    println!(
        "({:.3} Mbit/s where {:.3} were expected: {:+.1} %)",
        measured / 1e6,
        expected / 1e6,
        off * 100.0
    );
    assert!(
        off.abs() <= tolerance,
        "{measured:.0} bit/s where {expected:.0} were expected: {off:+.3}"
    );
}

fn iperf3_shows_the_rate() {
    let bench = Bench::new("rate = '10 Mbit/s'\ndelay = '5 ms'", 1500);
    let measured = goodput_bps(&bench, &ipv4(0).to_string(), &["-t", "4"]);
    near(median(&measured), 10.0, 1448.0, 1500.0, 0.02);
}

fn iperf3_over_ipv6() {
    let bench = Bench::new("rate = '10 Mbit/s'\ndelay = '5 ms'", 1500);
    let measured = goodput_bps(&bench, &ipv6(0).to_string(), &["-t", "4"]);
    near(median(&measured), 10.0, 1428.0, 1500.0, 0.02);
}

fn iperf3_with_jumbo_frames() {
    let bench = Bench::new("rate = '50 Mbit/s'\ndelay = '5 ms'", 9000);
    let measured = goodput_bps(&bench, &ipv4(0).to_string(), &["-t", "4"]);
    near(median(&measured), 50.0, 8948.0, 9000.0, 0.02);
}

/// Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm", CCR 27(3),
/// 1997: MSS / RTT × sqrt(3/2) / sqrt(p). Linux counts acknowledged bytes (RFC 3465), so delayed
/// ACKs do not slow it down. Four flows, for a steadier mean.
fn reno_meets_mathis() {
    let bench = Bench::new("delay = '10 ms'\ndown = { loss = '1 %' }", 1500);
    let arguments = ["-t", "9", "-P", "4", "-C", "reno"];
    let measured = goodput_bps(&bench, &ipv4(0).to_string(), &arguments);
    let mathis_mbps = 1448.0 * 8.0 / 0.020 * 1.5f64.sqrt() / 0.01f64.sqrt() / 1e6;
    let mean = measured.iter().sum::<f64>() / measured.len() as f64;
    near(mean / 4.0, mathis_mbps, 1.0, 1.0, 0.25);
}
