//! Captures on real interfaces: the two ends of a cable between two hosts. Needs root or user namespaces and iproute2.
#![expect(clippy::print_stdout, reason = "a test program prints its results")]

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use suiro_capture::{Counts, End, Point, PointSpec, Prepared, Zero, rows};
use suiro_clock::kernel;
use suiro_hosts::sandbox::probe;
use suiro_hosts::{CableKind, CableSpec, Network, NetworkSpec, Privilege, Suite, Test, ipv4, ipv6};
use suiro_record::tables::HopRow;
use suiro_units::Direction;

fn main() -> ExitCode {
    // Root runs as an ordinary user would: the stricter case.
    let privilege =
        if probe(Privilege::User).is_ok() { Privilege::User } else { Privilege::of_this_process() };
    let fixture = || {
        let spec = NetworkSpec {
            hosts: vec!["server".into(), "client".into()],
            cables: vec![CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Plain }],
            detours: vec![],
        };
        Network::build(&spec).map_err(|error| error.to_string())
    };
    Suite { privilege, fixture, tests: TESTS }.main()
}

const TESTS: &[Test<Network>] = &[
    ("every packet of a cable is in the captures of both ends", every_packet_is_captured),
    ("a full ring drops packets, and that is known", a_full_ring_is_known),
];

/// Sends datagrams from the server, half of them by IPv6.
fn send(network: &Network, count: u64) {
    let sent = network.hosts()[0].enter(|| {
        for (address, any) in [
            (SocketAddr::from((ipv4(1), 9)), "0.0.0.0:0"),
            (SocketAddr::from((ipv6(1), 9)), "[::]:0"),
        ] {
            #[expect(clippy::disallowed_methods, reason = "a test's own traffic")]
            let socket = UdpSocket::bind(any)?;
            for number in 0..count / 2 {
                let mut payload = [0; 200];
                payload[..8].copy_from_slice(&number.to_be_bytes());
                // Port 9 is closed: the answers of ICMP end the next call.
                let _ = socket.send_to(&payload, address);
            }
        }
        Ok::<_, std::io::Error>(())
    });
    sent.unwrap().unwrap();
}

fn open(network: &Network, end: usize, dir: &Path) -> (Prepared, PathBuf) {
    let path = dir.join(format!("{end}.pcapng"));
    let (host, interface) = network.end(0, end).unwrap();
    let spec = PointSpec { interface, description: host.name(), snap: 128, path: &path };
    (host.enter(|| Prepared::open(&spec)).unwrap().unwrap(), path)
}

fn zero() -> Zero {
    let real = kernel::realtime();
    Zero { monotonic_ns: real.monotonic_ns, realtime_ns: real.other }
}

/// The rows of the whole, down and up.
fn whole(ends: [(&Path, Counts); 2], zero: Zero) -> [HopRow; 2] {
    let end = |at: usize, name| End { name, path: ends[at].0, complete: ends[at].1.is_complete() };
    let (from, to) = (end(0, "server"), end(1, "client"));
    let rows = rows("cable", [Some(&from), Some(&to)], zero, u64::MAX / 4).unwrap();
    let whole: Vec<_> = rows.into_iter().filter(|row| row.t_ns.is_none()).collect();
    whole.try_into().unwrap()
}

fn every_packet_is_captured(network: &Network) {
    const COUNT: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let ((from, from_path), (to, to_path)) =
        (open(network, 0, dir.path()), open(network, 1, dir.path()));
    let zero = zero();
    let before = kernel::thread_cpu_ns();
    let [from, to]: [Point; 2] = [from, to].map(|point| point.start(zero).unwrap());
    send(network, COUNT);
    let [from, to] = [from, to].map(|point| point.stop().unwrap());
    assert!(kernel::thread_cpu_ns() >= before);
    println!(
        "  a packet cost {} ns of the capture's thread",
        (from.cpu_ns + to.cpu_ns) / (from.written + to.written)
    );
    assert!(from.is_complete() && to.is_complete(), "{from:?} {to:?}");
    // The answers are limited, the datagrams are not.
    assert!(from.written >= COUNT && from.written == to.written, "{from:?} {to:?}");
    let [down, up] = whole([(&from_path, from), (&to_path, to)], zero);
    assert_eq!((down.direction, up.direction), (Direction::Down, Direction::Up));
    for row in [&down, &up] {
        assert_eq!(row.sent, row.received, "{row:?}");
        assert_eq!([row.lost, row.altered, row.copies, row.unknown], [Some(0); 4], "{row:?}");
    }
    assert!(down.sent >= Some(20_000) && down.sent_bytes >= Some(10_000 * (228 + 248)), "{down:?}");
    assert!(down.delay_mean_ms.is_some_and(|delay| delay < 50.0), "{down:?}");
}

/// Nobody reads the ring while more packets pass than it has room for.
fn a_full_ring_is_known(network: &Network) {
    let dir = tempfile::tempdir().unwrap();
    let ((from, from_path), (to, to_path)) =
        (open(network, 0, dir.path()), open(network, 1, dir.path()));
    let zero = zero();
    let to = to.start(zero).unwrap();
    send(network, 100_000);
    let from = from.start(zero).unwrap().stop().unwrap();
    let to = to.stop().unwrap();
    assert!(from.dropped > 0 && from.written > 10_000, "{from:?}");
    assert_eq!(from.written + from.dropped, to.written + to.dropped, "{from:?} {to:?}");
    let [down, _] = whole([(&from_path, from), (&to_path, to)], zero);
    assert_eq!([down.lost, down.altered, down.copies, down.unknown], [None; 4], "{down:?}");
    // What is in the file is what was counted.
    assert!(down.sent <= Some(from.written.cast_signed()), "{down:?} {from:?}");
}
