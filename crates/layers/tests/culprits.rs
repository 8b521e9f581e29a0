//! Known causes of loss and delay on a real kernel: each is created, and the verdict must name it, with its loss exact
//! to the packet. Host `a` sends to `b` through the router `r`, which is not watched. Needs root and BPF; where they
//! are refused it prints that and passes.
#![expect(clippy::print_stdout, reason = "a test program prints its results")]
#![expect(clippy::disallowed_methods, reason = "the test is the watched application")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use suiro_hosts::{CableKind, CableSpec, Host, Network, NetworkSpec, Privilege, Suite, Test, ipv4};
use suiro_layers::report::{Report, joined};
use suiro_layers::verdict::{Cause, Deed, Verdict};
use suiro_layers::{Point, Recorder, RecorderError, RecorderSpec, Recording};

const PORT: u16 = 5004;
/// A port without a listener.
const OTHER: u16 = 5100;
const PAYLOAD: usize = 1000;
/// With the headers of UDP, IPv4 and Ethernet, which a token bucket counts.
const FRAME: f64 = 1042.0;

fn main() -> ExitCode {
    Suite { privilege: Privilege::Root, fixture: Fixture::build, tests: TESTS }.main()
}

const TESTS: &[Test<Fixture>] = &[
    ("a socket's buffer too small", Fixture::small_buffer),
    ("a slow reader", Fixture::slow_reader),
    ("a queue discipline that drops", Fixture::queue_discipline),
    ("loss between the hosts", Fixture::loss_on_the_way),
    ("a queue between the hosts that drops", Fixture::full_queue_on_the_way),
    ("a queue between the hosts that delays", Fixture::queue_on_the_way),
    ("a firewall rule", Fixture::firewall),
    ("a softirq with too much to do", Fixture::softirq_overload),
    ("back-pressure", Fixture::back_pressure),
];

struct Fixture {
    a: Host,
    r: Host,
    b: Host,
}

impl Fixture {
    fn build() -> Result<Self, String> {
        let cable = |from, to| CableSpec { from, to, mtu: 1500, kind: CableKind::Plain };
        let hosts = ["a", "r", "b"].map(Into::into).to_vec();
        let network = Network::build(&NetworkSpec {
            hosts,
            cables: vec![cable(0, 1), cable(1, 2)],
            detours: vec![],
        });
        let network = network.unwrap();
        let [a, r, b] = [0, 1, 2].map(|host| network.hosts()[host].clone());
        let fixture = Self { a, r, b };
        let dir = tempfile::tempdir().unwrap();
        match fixture.start(&fixture.a, "udp", dir.path()) {
            Err(RecorderError::Probe(error)) => Err(error.to_string()),
            _ if !fixture.has_tools() => Err("tc or nft (nftables) is missing".into()),
            _ => Ok(fixture),
        }
    }

    fn start(
        &self,
        host: &Host,
        protocol: &str,
        dir: &std::path::Path,
    ) -> Result<Recorder, RecorderError> {
        let spec = RecorderSpec {
            host: host.name().into(),
            flows: vec![format!("{protocol}:{}:*-{}:{PORT}", ipv4(0), ipv4(2)).parse().unwrap()],
            process: None,
            namespace: None,
            system_calls: true,
            dir: dir.into(),
            name: Some(host.name().into()),
        };
        host.enter(|| Recorder::start(spec)).unwrap()
    }

    /// The joint report of both hosts' recordings of `application`.
    fn report(&self, protocol: &str, application: impl FnOnce()) -> Report {
        let dir = tempfile::tempdir().unwrap();
        let recorders =
            [&self.a, &self.b].map(|host| self.start(host, protocol, dir.path()).unwrap());
        application();
        for recorder in recorders {
            recorder.stop().unwrap();
        }
        let recordings = Recording::read_all(dir.path()).unwrap();
        let report = joined(&recordings[0], &recordings[1]);
        assert!(report.accounts.iter().all(suiro_layers::account::Account::is_conserved));
        report
    }

    fn sockets(&self) -> (UdpSocket, UdpSocket) {
        let from = self.a.enter(|| UdpSocket::bind((ipv4(0), 0))).unwrap().unwrap();
        let to = self.b.enter(|| UdpSocket::bind((ipv4(2), PORT))).unwrap().unwrap();
        from.connect((ipv4(2), PORT)).unwrap();
        to.set_nonblocking(true).unwrap();
        set_socket_recv_buffer_size_force(&to, 8 << 20).unwrap();
        (from, to)
    }

    fn line(host: &Host, line: &str) -> bool {
        Self::run(host, &line.split(' ').collect::<Vec<_>>())
    }

    fn run(host: &Host, words: &[&str]) -> bool {
        let mut command = Command::new(words[0]);
        host.command(command.args(&words[1..]).stdout(Stdio::null()))
            .status()
            .is_ok_and(|status| status.success())
    }

    fn has_tools(&self) -> bool {
        ["tc -V", "nft -v"].iter().all(|line| Self::line(&self.r, line))
    }

    /// Limits the rate towards `b` while `application` runs.
    fn shaped(host: &Host, bucket: &str, application: impl FnOnce() -> Report) -> Report {
        let interface = Self::interface_towards(host, ipv4(2));
        assert!(Self::line(host, &format!("tc qdisc add dev {interface} root tbf {bucket}")));
        let report = application();
        assert!(Self::line(host, &format!("tc qdisc del dev {interface} root")));
        report
    }

    fn interface_towards(host: &Host, address: Ipv4Addr) -> String {
        let mut command = Command::new("ip");
        let route = host.command(command.args(["route", "get", &address.to_string()])).output();
        let route = String::from_utf8(route.unwrap().stdout).unwrap();
        route.split(" dev ").nth(1).unwrap().split(' ').next().unwrap().into()
    }

    /// Drops every n-th packet of the flow at a hook of the host's firewall while `application` runs.
    fn filtered(
        host: &Host,
        hook: &str,
        every: u32,
        application: impl FnOnce() -> Report,
    ) -> Report {
        for line in [
            "nft add table ip t".into(),
            format!("nft add chain ip t c {{ type filter hook {hook} priority 0 ; }}"),
            format!("nft add rule ip t c udp dport {PORT} numgen inc mod {every} == 0 drop"),
        ] {
            assert!(Self::line(host, &line), "{line}");
        }
        let report = application();
        assert!(Self::line(host, "nft delete table ip t"));
        report
    }

    fn small_buffer(&self) {
        let (from, to) = self.sockets();
        set_socket_recv_buffer_size(&to, 20_000).unwrap();
        let mut received = 0;
        let report = self.report("udp", || {
            for _ in 0..10 {
                send(&from, 100);
                received += drain(&to);
            }
        });
        let cause = lost(&report, Point::ReceiveSocket, 1000 - received);
        // On a machine that others use, the reader may really have waited.
        let named = matches!(cause, Cause::BufferTooSmall { .. } | Cause::NotScheduled { .. });
        assert!(named, "{cause:?}");
        assert_eq!(cause.reason_in_words().unwrap(), "socket buffer full");
    }

    fn slow_reader(&self) {
        let (from, to) = self.sockets();
        set_socket_recv_buffer_size(&to, 20_000).unwrap();
        let mut received = 0;
        let report = self.report("udp", || {
            send(&from, 200);
            while to.recv(&mut [0; 2000]).is_ok() {
                received += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let cause = lost(&report, Point::ReceiveSocket, 200 - received);
        let named = matches!(cause, Cause::ReadsSlowly { .. } | Cause::NotScheduled { .. });
        assert!(named, "{cause:?}");
    }

    fn queue_discipline(&self) {
        let (from, to) = self.sockets();
        let mut received = 0;
        let report = Self::shaped(&self.a, "rate 5mbit burst 2kb limit 5000", || {
            self.report("udp", || received = exchange(&from, &to, 200).len() as u64)
        });
        let cause = lost(&report, Point::SendQdisc, 200 - received);
        assert!(matches!(cause, Cause::QueueDiscipline { reason: Some(_) }), "{cause:?}");
    }

    fn loss_on_the_way(&self) {
        let (from, to) = self.sockets();
        let report = Self::filtered(&self.r, "forward", 10, || {
            self.report("udp", || assert_eq!(exchange(&from, &to, 1000).len(), 900))
        });
        let cause = lost(&report, Point::SendDriver, 100);
        assert!(matches!(cause, Cause::LinkLoss), "{cause:?}");
    }

    fn full_queue_on_the_way(&self) {
        let (from, to) = self.sockets();
        let mut received = 0;
        let report = Self::shaped(&self.r, "rate 5mbit burst 2kb limit 20000", || {
            self.report("udp", || received = exchange(&from, &to, 200).len() as u64)
        });
        let cause = lost(&report, Point::SendDriver, 200 - received);
        assert!(matches!(cause, Cause::LinkQueue { .. }), "{cause:?}");
    }

    /// A token bucket's queue is known: what is behind a packet's beginning leaves at the rate.
    fn queue_on_the_way(&self) {
        let (from, to) = self.sockets();
        let mut delays = Vec::new();
        let report = Self::shaped(&self.r, "rate 10mbit burst 2kb limit 500000", || {
            self.report("udp", || delays = exchange(&from, &to, 200))
        });
        let [verdict] = &report.verdicts[..] else { panic!("{:?}", report.verdicts) };
        let Deed::Delayed { delay, .. } = &verdict.deed else { panic!("{verdict:?}") };
        assert_eq!((delays.len(), verdict.from), (200, Point::SendDriver));
        assert!(matches!(verdict.cause, Cause::LinkQueue { .. }), "{verdict:?}");
        let known = delays.iter().map(|(sent, number)| (*number, sent.as_secs_f64()));
        let leaves = |number: usize| ((number + 1) as f64 * FRAME - 2048.0).max(0.0) * 8.0 / 10e6;
        let mean = known.map(|(number, sent)| leaves(number) - sent).sum::<f64>() / 200.0;
        let ratio = delay.mean_ns / 1e9 / mean;
        println!("  {:.1} ms, known {:.1} ms", delay.mean_ns / 1e6, mean * 1e3);
        assert!((0.95..1.05).contains(&ratio), "{ratio}");
    }

    fn firewall(&self) {
        let (from, to) = self.sockets();
        let report = Self::filtered(&self.b, "input", 4, || {
            self.report("udp", || assert_eq!(exchange(&from, &to, 1000).len(), 750))
        });
        let cause = lost(&report, Point::ReceiveIp, 250);
        assert!(matches!(cause, Cause::Firewall { .. }), "{cause:?}");
    }

    /// All packets that arrive at `b` are handled by one CPU, which thousands of rules make slow, while the other
    /// brings more: most of it is other traffic, which the last rule drops.
    fn softirq_overload(&self) {
        if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
            return suiro_units::skipped("one CPU cannot overload another");
        }
        let interface = Self::interface_towards(&self.b, ipv4(0));
        let steered = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
        let line = format!("mount -t sysfs sysfs /sys && echo 2 > {steered}");
        assert!(Self::run(&self.b, &["unshare", "-m", "sh", "-c", &line]));
        let rules: String = (1..=3000).map(|port| format!("udp dport {port} drop;")).collect();
        let hook = "type filter hook prerouting priority raw;";
        let rules =
            format!("table ip t {{ chain c {{ {hook} {rules} udp dport {OTHER} drop; }}; }}");
        assert!(Self::run(&self.b, &["nft", &rules]));
        let (from, to) = self.sockets();
        let other = self.a.enter(|| UdpSocket::bind((ipv4(0), 0))).unwrap().unwrap();
        other.connect((ipv4(2), OTHER)).unwrap();
        let mut received = 0;
        let report = self.report("udp", || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    run_on(0);
                    for _ in 0..1000 {
                        (0..20).for_each(|_| drop(other.send(&[7; 100])));
                        send(&from, 1);
                    }
                });
            });
            to.set_nonblocking(false).unwrap();
            to.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            received = drain(&to);
        });
        assert!(Self::run(&self.b, &["nft", "delete table ip t"]));
        let verdict = only_loss(&report, Point::SendDriver, 1000 - received);
        println!("  {}", verdict.sentence);
        assert!(matches!(verdict.cause, Cause::SoftirqOverload { .. }), "{verdict:?}");
        assert_eq!((verdict.host.as_deref(), verdict.part), (Some("b"), "receive"));
    }

    fn back_pressure(&self) {
        let listen = || TcpListener::bind((ipv4(2), PORT));
        let listener = self.b.enter(listen).unwrap().unwrap();
        let report = Self::shaped(&self.a, "rate 10mbit burst 4kb limit 500000", || {
            self.report("tcp", || {
                let connect = || TcpStream::connect((ipv4(2), PORT));
                let mut from = self.a.enter(connect).unwrap().unwrap();
                let mut to = listener.accept().unwrap().0;
                std::thread::scope(|scope| {
                    scope.spawn(move || from.write_all(&[7; 600_000]).unwrap());
                    assert_eq!(to.read_to_end(&mut Vec::new()).unwrap(), 600_000);
                });
            })
        });
        let is_cause = |verdict: &&Verdict| matches!(verdict.cause, Cause::BackPressure);
        let verdict = report.verdicts.iter().find(is_cause);
        let verdict = verdict.unwrap_or_else(|| panic!("{:?}", report.verdicts));
        assert_eq!((verdict.host.as_deref(), verdict.from), (Some("a"), Point::SendCall));
    }
}

fn send(from: &UdpSocket, count: u64) {
    (0..count).for_each(|_| assert_eq!(from.send(&[7; PAYLOAD]).unwrap(), PAYLOAD));
}

/// Everything that waits, or arrives before the socket's timeout.
fn drain(to: &UdpSocket) -> u64 {
    std::iter::from_fn(|| to.recv(&mut [0; 2000]).ok()).count() as u64
}

/// Sends while another thread receives, until nothing has arrived for a while. Returns when each packet that arrived
/// was sent, counted from the first, and its number.
fn exchange(from: &UdpSocket, to: &UdpSocket, count: usize) -> Vec<(Duration, usize)> {
    to.set_nonblocking(false).unwrap();
    to.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut buffer = [0; 2000];
            let number = |bytes: &[u8]| u32::from_be_bytes(*bytes.first_chunk().unwrap()) as usize;
            std::iter::from_fn(|| to.recv(&mut buffer).ok().map(|_| number(&buffer)))
                .collect::<Vec<_>>()
        });
        let began = Instant::now();
        let sent: Vec<Duration> = (0..count as u32)
            .map(|number| {
                let mut payload = [7; PAYLOAD];
                payload[..4].copy_from_slice(&number.to_be_bytes());
                let now = began.elapsed();
                assert_eq!(from.send(&payload).unwrap(), PAYLOAD);
                now
            })
            .collect();
        receiver.join().unwrap().into_iter().map(|number| (sent[number], number)).collect()
    })
}

/// Pins the calling thread to this CPU.
fn run_on(processor: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}

/// The cause of the only loss, which must be of `count` packets after this point.
fn lost(report: &Report, behind: Point, count: u64) -> &Cause {
    &only_loss(report, behind, count).cause
}

fn only_loss(report: &Report, behind: Point, count: u64) -> &Verdict {
    let is_loss = |verdict: &&Verdict| matches!(verdict.deed, Deed::Lost { .. });
    let losses: Vec<&Verdict> = report.verdicts.iter().filter(is_loss).collect();
    let [verdict @ Verdict { from, deed: Deed::Lost { count: lost, .. }, .. }] = losses[..] else {
        panic!("{:?}", report.verdicts)
    };
    assert_eq!((*from, *lost), (behind, count), "{:?}", report.verdicts);
    verdict
}
