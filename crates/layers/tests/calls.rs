//! System calls by which an application sends and receives several datagrams, or without waiting: at each point the
//! recorder counts what the application counts, or reports that it cannot see it.
#![expect(clippy::print_stdout, reason = "a test program prints its results")]

mod common;

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode};
use std::sync::mpsc::channel;
use std::time::Duration;

use io_uring::{IoUring, squeue};
use rustix::net::sockopt::set_socket_send_buffer_size;
use suiro_hosts::{Privilege, Suite, Test, ipv4};
use suiro_layers::account::Layer;
use suiro_layers::report::joined;
use suiro_layers::verdict::{Deed, Verdict};
use suiro_layers::{Event, Point, Recording};

use common::calls::{
    Receive, recvmmsg, sendmmsg, sendmmsg_fails, uring_receives, uring_sends, uring_sends_later,
};
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
    ("calls without room fail", calls_without_room_fail),
    ("calls that are made again", calls_are_made_again),
    ("calls of every kind fail", calls_of_every_kind_fail),
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
        let bytes = read(to, &mut buffer);
        assert_eq!(buffer[..bytes], payload[..]);
    }
}

/// The size of the next datagram. A request of io_uring that is completed meanwhile interrupts the call.
fn read(from: &UdpSocket, buffer: &mut [u8]) -> usize {
    loop {
        match from.recv(buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read.unwrap(),
        }
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

fn delays(verdict: &Verdict) -> bool {
    matches!(verdict.deed, Deed::Delayed { .. })
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
        let unseen: Vec<Point> = account.unseen.iter().map(|u| u.point).collect();
        assert_eq!(unseen, [Point::SendCall, Point::SendTransport]);
        assert_eq!(account.layers[Layer::SystemCall as usize].loss_between, None);
        // On a busy machine the receiver may read late. No packet is lost.
        assert!(report.verdicts.iter().all(delays), "{:?}", report.verdicts);
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
        return suiro_units::skipped("tc or tbf is missing");
    }
    let payloads: Vec<Vec<u8>> = (0..20).map(|number| vec![number; 1000]).collect();
    let mut ring = IoUring::new(32).unwrap();
    let [a, b] = pair.record(&flow, || {
        uring_sends_later(&mut ring, &from, &payloads);
        payloads.iter().for_each(|_| assert_eq!(read(&to, &mut [0; 2000]), 1000));
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
    assert!(blamed.contains(&Point::SendQdisc), "{:?}", report.verdicts);
    assert!(report.verdicts.iter().all(delays), "{:?}", report.verdicts);
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

/// A socket of `a` that does not wait, has room for a few datagrams, and whose packets leave at 1 Mbit/s; `None` if this
/// machine cannot hold packets back.
fn held_back(pair: &Pair, work: impl FnOnce(&UdpSocket, SocketAddr)) -> Option<[Recording; 2]> {
    let tc = |line: &str| {
        let mut command = Command::new("tc");
        let status = pair.a.command(command.args(line.split(' '))).status();
        status.is_ok_and(|status| status.success())
    };
    let interface = pair.a.enter(interface).unwrap();
    if !tc(&format!("qdisc add dev {interface} root tbf rate 1mbit burst 3kb limit 1000000")) {
        suiro_units::skipped("tc or tbf is missing");
        return None;
    }
    // It is bound to no address, so that its calls do not show from where they send.
    let from = bind(&pair.a, IpAddr::from([0, 0, 0, 0]));
    from.set_nonblocking(true).unwrap();
    set_socket_send_buffer_size(&from, 8_000).unwrap();
    let to = bind(&pair.b, ipv4(1).into());
    to.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let address = to.local_addr().unwrap();
    let recordings = pair.record(&format!("udp:*-{address}"), || {
        work(&from, address);
        while to.recv(&mut [0; 2000]).is_ok() {}
    });
    assert!(tc(&format!("qdisc del dev {interface} root")));
    Some(recordings)
}

fn numbered(number: u32) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[7; 996]].concat()
}

fn calls_without_room_fail(pair: &Pair) {
    let mut failed = 0u64;
    let recordings = held_back(pair, |from, to| {
        for number in 0..100 {
            match from.send_to(&numbered(number), to) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => failed += 1,
                sent => assert_eq!(sent.unwrap(), 1000),
            }
        }
    });
    let Some([a, b]) = recordings else { return };
    assert!((1..100).contains(&failed), "{failed} of 100 failed");
    let report = joined(&a, &b);
    let [account] = &report.accounts[..] else { panic!("{:?}", report.accounts) };
    assert_eq!((account.sent, account.delivered, account.retried), (100, 100 - failed, 0));
    let hop = &account.hops[0];
    assert_eq!((hop.from, hop.to), (Point::SendCall, Point::SendTransport));
    assert_eq!((hop.lost, hop.causes.get("EAGAIN")), (failed, Some(&failed)));
    let own = |layer| account.layers.iter().find(|l| l.layer == layer).unwrap().own_loss;
    assert_eq!(own(Layer::SystemCall), Some(1.0 - account.delivered as f64 / 100.0));
    assert_eq!([Layer::Transport, Layer::Network, Layer::Link].map(own), [Some(0.0); 3]);
    let sentence = &report.verdicts[0].sentence;
    assert!(
        sentence.contains("(EAGAIN): send calls failed: the socket's send buffer"),
        "{sentence}"
    );
    assert!(sentence.starts_with("host a, send, system call → UDP"), "{sentence}");
}

/// A datagram whose call is made again until there is room has taken long, and is not lost.
fn calls_are_made_again(pair: &Pair) {
    let mut failed = 0u64;
    let recordings = held_back(pair, |from, to| {
        for number in 0..40 {
            while let Err(error) = from.send_to(&numbered(number), to) {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                failed += 1;
                let mut wait = [rustix::event::PollFd::new(from, rustix::event::PollFlags::OUT)];
                rustix::event::poll(&mut wait, None).unwrap();
            }
        }
    });
    let Some([a, b]) = recordings else { return };
    assert!(failed > 0);
    let report = joined(&a, &b);
    let [account] = &report.accounts[..] else { panic!("{:?}", report.accounts) };
    assert_eq!((account.sent, account.delivered, account.retried), (40, 40, failed));
    let longest = account.hops[0].delay.unwrap().max_ns;
    assert!(longest > 1_000_000, "{longest} ns from the first call to UDP");
}

/// What a failed call wanted to send, and where, is found for each kind of call.
fn calls_of_every_kind_fail(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    let unconnected = bind(&pair.a, ipv4(0).into());
    let address = to.local_addr().unwrap();
    from.connect(address).unwrap();
    // More than a datagram can be (RFC 768: a length of 16 bits).
    let large = vec![9u8; 70_000];
    let too_large = |error: std::io::Error| assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
    let [a, _] = pair.record(&format!("udp:*-{address}"), || {
        too_large(from.send(&large).unwrap_err());
        too_large(unconnected.send_to(&large, address).unwrap_err());
        too_large((&from).write(&large));
        too_large((&from).writev(&large));
        sendmmsg_fails(&from, &[vec![1; 20], large.clone()]);
    });
    let calls: Vec<u32> = at(&a, Point::SendCall, true).iter().map(|e| e.payload_bytes).collect();
    assert_eq!(calls, [70_000, 70_000, 70_000, 70_000, 20, 70_000]);
    let drops = at(&a, Point::Dropped, true);
    let cause = |event: &&Event| a.causes[usize::from(event.cause.unwrap().0)].to_string();
    assert_eq!(drops.iter().map(cause).collect::<Vec<_>>(), ["EMSGSIZE"; 5]);
}

/// A socket as a file.
trait AsFile {
    fn write(&self, bytes: &[u8]) -> std::io::Error;
    fn writev(&self, bytes: &[u8]) -> std::io::Error;
}

impl AsFile for &UdpSocket {
    fn write(&self, bytes: &[u8]) -> std::io::Error {
        rustix::io::write(self, bytes).unwrap_err().into()
    }
    fn writev(&self, bytes: &[u8]) -> std::io::Error {
        let (head, rest) = bytes.split_at(12);
        rustix::io::writev(self, &[head, rest].map(IoSlice::new)).unwrap_err().into()
    }
}
