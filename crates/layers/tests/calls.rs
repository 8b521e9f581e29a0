//! System calls by which an application sends and receives several datagrams, or without waiting: at each point the
//! recorder counts what the application counts, or reports that it cannot see it.
#![expect(clippy::print_stdout, reason = "a test program prints its results")]

mod common;

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode};
use std::sync::mpsc::channel;
use std::time::Duration;

use io_uring::{IoUring, squeue};
use rustix::net::sockopt::set_socket_send_buffer_size;
use suiro_hosts::{Privilege, Suite, Test, ipv4};
use suiro_layers::account::Layer;
use suiro_layers::report::joined;
use suiro_layers::{Point, Recording};

use common::calls::{Receive, recvmmsg, sendmmsg, uring_receives, uring_sends, uring_sends_later};
use common::two_hosts::{Pair, at, bind, check_way, interface, keys, set_option, way};

fn main() -> ExitCode {
    Suite { privilege: Privilege::Root, fixture: Pair::build, tests: TESTS }.main()
}

const TESTS: &[Test<Pair>] = &[
    ("many by one sendmmsg", sendmmsg_sends_many),
    ("many by one recvmmsg", recvmmsg_receives_many),
    ("io_uring's receives", io_uring_receives),
    ("io_uring's sends", io_uring_sends),
    ("sends of io_uring's own threads", io_urings_threads_send),
    ("sends that io_uring makes later", io_uring_sends_later),
    ("many as one by UDP_GRO", many_are_received_as_one),
];

const ROUNDS: usize = 50;
const BATCH: usize = 30;

/// A batch of numbered datagrams of different lengths.
fn batch(round: usize) -> Vec<Vec<u8>> {
    let payload = |at: usize| {
        let number = (round * BATCH + at) as u32;
        [&number.to_be_bytes()[..], &vec![7; 20 + at * 30]].concat()
    };
    (0..BATCH).map(payload).collect()
}

fn sockets(pair: &Pair) -> (UdpSocket, UdpSocket, String) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    let address = to.local_addr().unwrap();
    from.connect(address).unwrap();
    // A datagram that never arrives fails the test.
    to.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    (from, to, format!("udp:*-{address}"))
}

fn receives(to: &UdpSocket, sent: &[Vec<u8>]) {
    let mut buffer = [0; 2048];
    for payload in sent {
        let bytes = to.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..bytes], payload[..]);
    }
}

fn sends(from: &UdpSocket, payloads: &[Vec<u8>]) {
    payloads.iter().for_each(|payload| assert_eq!(from.send(payload).unwrap(), payload.len()));
}

/// Each datagram at each point, in order, and its bytes.
fn check(recordings: &[Recording; 2], rounds: usize) {
    check_way(recordings, rounds * BATCH);
    let expected: Vec<u32> =
        (0..rounds).flat_map(batch).map(|payload| payload.len() as u32).collect();
    let [a, b] = recordings;
    for (recording, point) in way(a, b) {
        let events = at(recording, point, point < Point::ReceiveDevice);
        let bytes: Vec<u32> = events.iter().map(|event| event.payload_bytes).collect();
        assert_eq!(bytes, expected, "{point}");
    }
}

fn sendmmsg_sends_many(pair: &Pair) {
    let (from, to, flow) = sockets(pair);
    let recordings = pair.record(&flow, || {
        for round in 0..ROUNDS {
            sendmmsg(&from, &batch(round));
            receives(&to, &batch(round));
        }
    });
    check(&recordings, ROUNDS);
}

fn recvmmsg_receives_many(pair: &Pair) {
    let (from, to, flow) = sockets(pair);
    let recordings = pair.record(&flow, || {
        for round in 0..ROUNDS {
            sends(&from, &batch(round));
            let mut received = Vec::new();
            while received.len() < BATCH {
                received.extend(recvmmsg(&to, BATCH));
            }
            assert_eq!(received, batch(round));
        }
    });
    check(&recordings, ROUNDS);
}

fn io_uring_receives(pair: &Pair) {
    for how in [Receive::One, Receive::Message, Receive::Multishot] {
        let (from, to, flow) = sockets(pair);
        let (received, receives) = channel();
        let recordings = pair.record(&flow, || {
            std::thread::scope(|scope| {
                let each = move |payload| received.send(payload).unwrap();
                scope.spawn(move || uring_receives(&to, how, ROUNDS * BATCH, each));
                for round in 0..ROUNDS {
                    sends(&from, &batch(round));
                    let received: Vec<Vec<u8>> = receives.iter().take(BATCH).collect();
                    assert_eq!(received, batch(round), "{how:?}");
                }
            });
        });
        check(&recordings, ROUNDS);
    }
}

fn io_uring_sends(pair: &Pair) {
    let (from, to, flow) = sockets(pair);
    let mut ring = IoUring::new(8).unwrap();
    let recordings = pair.record(&flow, || {
        for round in 0..ROUNDS {
            uring_sends(&mut ring, &from, &batch(round), squeue::Flags::empty());
            receives(&to, &batch(round));
        }
    });
    check(&recordings, ROUNDS);
}

/// They start no system call: this is reported, and no loss is claimed.
fn io_urings_threads_send(pair: &Pair) {
    let (from, to, flow) = sockets(pair);
    let polled = IoUring::builder().setup_sqpoll(1000).build(8).unwrap();
    let plain = IoUring::new(8).unwrap();
    for (mut ring, flags) in [(polled, squeue::Flags::empty()), (plain, squeue::Flags::ASYNC)] {
        let [a, b] = pair.record(&flow, || {
            for round in 0..ROUNDS {
                uring_sends(&mut ring, &from, &batch(round), flags);
                receives(&to, &batch(round));
            }
        });
        let report = joined(&a, &b);
        let account = &report.accounts[0];
        assert_eq!((account.sent, account.delivered, account.appeared), (1500, 1500, 0));
        assert_eq!(account.unseen.iter().map(|u| u.point).collect::<Vec<_>>(), [Point::SendCall]);
        assert_eq!(account.layers[Layer::SystemCall as usize].loss_between, None);
        assert_eq!(report.verdicts, []);
    }
}

/// The socket has room for two, and the device lets one through every 8 ms: io_uring sends the others while their
/// thread is in a call that does not send, whose beginning says nothing about them.
fn io_uring_sends_later(pair: &Pair) {
    let (from, to, flow) = sockets(pair);
    set_socket_send_buffer_size(&from, 0).unwrap();
    let interface = pair.a.enter(interface).unwrap();
    let tc = |line: &str| {
        let mut command = Command::new("tc");
        let status = pair.a.command(command.args(line.split(' '))).status();
        status.is_ok_and(|status| status.success())
    };
    if !tc(&format!("qdisc add dev {interface} root tbf rate 1mbit burst 2kb limit 50000")) {
        return println!("  skipped: tc or tbf is missing");
    }
    let payloads: Vec<Vec<u8>> = (0..20).map(|number| vec![number; 1000]).collect();
    let mut ring = IoUring::new(32).unwrap();
    let [a, b] = pair.record(&flow, || {
        uring_sends_later(&mut ring, &from, &payloads);
        payloads.iter().for_each(|_| assert_eq!(to.recv(&mut [0; 2000]).unwrap(), 1000));
    });
    assert!(tc(&format!("qdisc del dev {interface} root")));
    let calls = keys(&a, Point::SendCall);
    println!("  {} of 20 were sent by the call that asked for it", calls.len());
    assert!((1..20).contains(&calls.len()));
    assert_eq!(keys(&a, Point::SendIp)[..calls.len()], calls);
    let report = joined(&a, &b);
    let account = &report.accounts[0];
    assert_eq!((account.sent + account.appeared, account.delivered), (20, 20));
    let blamed: Vec<Point> = report.verdicts.iter().map(|verdict| verdict.from).collect();
    assert_eq!(blamed, [Point::SendQdisc], "{:?}", report.verdicts);
}

/// The socket receives several datagrams as one, and the application gets them in one call.
fn many_are_received_as_one(pair: &Pair) {
    let (from, to, flow) = sockets(pair);
    set_option(&from, (libc::SOL_UDP, libc::UDP_SEGMENT), 500);
    together(&to);
    let interface = pair.b.enter(interface).unwrap();
    pair.b.offloads_of_a_card(&interface).unwrap();
    let mut calls = 0;
    let recordings = pair.record(&flow, || {
        for round in 0..ROUNDS {
            let payload: Vec<u8> = (0..10_000).map(|at| (at / 500 + round) as u8).collect();
            assert_eq!(from.send(&payload).unwrap(), payload.len());
            let mut received: Vec<u8> = Vec::new();
            while received.len() < payload.len() {
                let mut buffer = vec![0; 65_536];
                let bytes = to.recv(&mut buffer).unwrap();
                received.extend(&buffer[..bytes]);
                calls += 1;
            }
            assert_eq!(received, payload);
        }
    });
    pair.b.offloads_off(&interface).unwrap();
    println!("  {} datagrams by {calls} calls", ROUNDS * 20);
    assert!(calls < ROUNDS * 20, "no datagrams were combined");
    let [a, b] = &recordings;
    let expected = keys(a, Point::SendIp);
    assert_eq!(expected.len(), ROUNDS * 20);
    for (recording, point) in way(a, b) {
        assert_eq!(keys(recording, point), expected, "{point}");
    }
}

fn together(socket: &UdpSocket) {
    let on: libc::c_int = 1;
    // SAFETY: the option is an int, of which address and size are given.
    let set = unsafe {
        let value = (&raw const on).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, value, 4)
    };
    assert_eq!(set, 0);
}
