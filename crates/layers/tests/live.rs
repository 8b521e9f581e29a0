//! The probes on a real kernel, compared with sockets of this program in two hosts: every packet at every point, exact
//! to the packet and to the byte. Needs root and BPF; where they are refused it prints that and passes.
#![expect(clippy::disallowed_methods, reason = "the test is the watched application")]

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::net::sockopt::{set_ipv6_v6only, set_socket_recv_buffer_size};
use suiro_clock::kernel::thread_cpu_ns;
use suiro_hosts::{Host, Privilege, Suite, Test, ipv4, ipv6};
use suiro_layers::report::{Overhead, joined, text};
use suiro_layers::{
    Event, Key, Moment, Point, Prepared, Recorder, RecorderSpec, Recording, Second,
};

use common::program;
use common::two_hosts::{
    IN, OUT, PACKETS, Pair, at, bind, check_way, exchange, interface, keys, set_option, spec,
    start_with, way,
};

fn main() -> ExitCode {
    if let Some(ended) = program::main() {
        return ended;
    }
    Suite { privilege: Privilege::Root, fixture: Pair::build, tests: TESTS }.main()
}

const STREAM_BYTES: usize = 5_000_000;

const TESTS: &[Test<Pair>] = &[
    ("each datagram is seen at each point", each_datagram_is_seen),
    ("the same over IPv6", each_datagram_is_seen_over_ipv6),
    ("the same with an IPv6 socket over IPv4", an_ipv6_socket_carries_ipv4),
    ("RTP is identified by its numbers", rtp_is_known_by_its_numbers),
    ("what a full socket drops is reported", a_full_socket_is_told),
    ("a socket that other flows use too", other_flows_keep_their_place),
    ("sockets that close with a datagram unread", unread_datagrams_are_nobody_elses),
    ("a super-packet is its datagrams", a_super_packet_is_its_datagrams),
    ("super-packets that are segmented on their way", super_packets_are_cut),
    ("a fragmented datagram is one", a_fragmented_datagram_is_one),
    ("what a queue discipline drops is reported", a_queue_discipline_is_told),
    ("a process is identified by its ports", a_process_is_known_by_its_ports),
    ("each byte of a stream is seen at each point", each_byte_is_seen),
    ("the same over IPv6", each_byte_is_seen_over_ipv6),
    ("without system calls", without_system_calls),
    ("a prepared recorder waits", a_prepared_recorder_waits),
    ("the cost of recording is reported", what_recording_costs_is_told),
    ("threads that have ended make room for others", ended_threads_make_room),
    ("more threads than are followed", more_threads_than_are_followed),
    ("a thread that executes a program", a_thread_executes_a_program),
];

fn each_datagram_is_seen(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    let flow = format!("udp:{}-{}", from.local_addr().unwrap(), to.local_addr().unwrap());
    let recordings = pair.record(&flow, || exchange(&from, &to));
    let keys = check_way(&recordings, PACKETS);
    // The kernel starts counting anywhere: one may be 0, which is as good as none.
    let unnumbered = keys.iter().filter(|key| !matches!(key, Key::IpId { .. })).count();
    assert!(unnumbered <= 1, "{keys:?}");
    let [a, b] = &recordings;
    let sizes = |recording| -> Vec<u32> {
        at(recording, Point::ReceiveCall, false).iter().map(|event| event.payload_bytes).collect()
    };
    assert!(sizes(b).iter().zip(0..).all(|(&bytes, number)| bytes == 20 + number % 1200));
    let flow = format!("udp {}>{}", from.local_addr().unwrap(), to.local_addr().unwrap());
    assert_eq!([&a.flows, &b.flows].map(|flows| flows[0].to_string()), [flow.clone(), flow]);
    for Recording { scheduling, .. } in [a, b] {
        let sum =
            |of: fn(&Second) -> Option<u64>| -> Option<u64> { scheduling.iter().map(of).sum() };
        assert!(sum(|second| second.running_ns).unwrap() > 0, "{scheduling:?}");
        assert!(sum(|second| second.waiting_ns).is_some(), "{scheduling:?}");
        assert!(sum(|second| second.softirq_late_ns).unwrap() > 0, "{scheduling:?}");
    }
}

fn each_datagram_is_seen_over_ipv6(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv6(0).into()), bind(&pair.b, ipv6(1).into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    let flow = format!("udp:*-{}", to.local_addr().unwrap());
    let recordings = pair.record(&flow, || exchange(&from, &to));
    let keys = check_way(&recordings, PACKETS);
    assert!(keys.iter().all(|key| matches!(key, Key::Hash(_))), "{:?}", keys[0]);
}

fn an_ipv6_socket_carries_ipv4(pair: &Pair) {
    let from = bind(&pair.a, ipv4(0).into());
    let to = bind(&pair.b, IpAddr::V6(0.into()));
    set_ipv6_v6only(&to, false).expect_err("it is bound, so it is what the system's default says");
    let port = to.local_addr().unwrap().port();
    from.connect((ipv4(1), port)).unwrap();
    let recordings = pair.record(&format!("udp:*-*:{port}"), || exchange(&from, &to));
    check_way(&recordings, PACKETS);
}

fn rtp_is_known_by_its_numbers(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    let send = || {
        for sequence in 0..100u16 {
            let mut packet = [0x80, 96, 0, 0, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3];
            packet[2..4].copy_from_slice(&sequence.to_be_bytes());
            from.send(&packet).unwrap();
            assert_eq!(to.recv(&mut [0; 100]).unwrap(), packet.len());
        }
    };
    let recordings = pair.record(&format!("udp:*-{}", to.local_addr().unwrap()), send);
    let expected = (0..100).map(|sequence| Key::Rtp { ssrc: 0xdead_beef, sequence });
    assert_eq!(check_way(&recordings, 100), expected.collect::<Vec<_>>());
}

fn a_full_socket_is_told(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    set_socket_recv_buffer_size(&to, 20_000).unwrap();
    to.set_nonblocking(true).unwrap();
    let mut read = Vec::new();
    let overflow = || {
        for number in 0..1000u32 {
            from.send(&[&number.to_be_bytes()[..], &[0; 500]].concat()).unwrap();
            // Makes some room every now and then.
            if number % 100 == 99 {
                let mut buffer = [0; 600];
                while read.len() as u32 % 20 != 19 && to.recv(&mut buffer).is_ok() {
                    read.push(u32::from_be_bytes(*buffer.first_chunk().unwrap()));
                }
                if to.recv(&mut buffer).is_ok() {
                    read.push(u32::from_be_bytes(*buffer.first_chunk().unwrap()));
                }
            }
        }
        let mut buffer = [0; 600];
        while to.recv(&mut buffer).is_ok() {
            read.push(u32::from_be_bytes(*buffer.first_chunk().unwrap()));
        }
    };
    let [a, b] = pair.record(&format!("udp:*-{}", to.local_addr().unwrap()), overflow);
    let sent = keys(&a, Point::SendCall);
    assert_eq!(sent.len(), 1000);
    assert_eq!(keys(&b, Point::ReceiveSocket), sent);
    let expected: Vec<Key> = read.iter().map(|&number| sent[number as usize]).collect();
    assert_eq!(keys(&b, Point::ReceiveCall), expected, "the very datagrams that were read");
    let drops = at(&b, Point::Dropped, false);
    assert_eq!(drops.len() + read.len(), 1000, "and the others were dropped");
    let cause = |event: &&Event| b.causes[usize::from(event.cause.unwrap().0)].to_string();
    assert!(drops.iter().all(|drop| cause(drop) == "SOCKET_RCVBUFF"), "{:?}", b.causes);
}

fn other_flows_keep_their_place(pair: &Pair) {
    let [from, other] = [(), ()].map(|()| bind(&pair.a, ipv4(0).into()));
    let to = bind(&pair.b, ipv4(1).into());
    let address = to.local_addr().unwrap();
    from.connect(address).unwrap();
    let mixed = || {
        for number in 0..100u32 {
            other.send_to(&number.to_be_bytes(), address).unwrap();
            from.send(&number.to_be_bytes()).unwrap();
        }
        (0..200).for_each(|_| assert_eq!(to.recv(&mut [0; 100]).unwrap(), 4));
    };
    let flow = format!("udp:{}-{address}", from.local_addr().unwrap());
    let recordings = pair.record(&flow, mixed);
    check_way(&recordings, 100);
    assert_eq!(recordings.each_ref().map(|recording| recording.flows.len()), [1, 1]);
}

/// The kernel gives the memory of a closed socket to a later one, whose calls take its own datagrams only.
fn unread_datagrams_are_nobody_elses(pair: &Pair) {
    let from = bind(&pair.a, ipv4(0).into());
    // Closed, so that each round has this port to itself.
    let address = bind(&pair.b, ipv4(1).into()).local_addr().unwrap();
    let rounds = || {
        for round in 0..3000u32 {
            let payload = |number: u32| [round.to_be_bytes(), number.to_be_bytes()].concat();
            let to = UdpSocket::bind(address).unwrap();
            to.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            for number in 0..3 {
                assert_eq!(from.send_to(&payload(number), address).unwrap(), 8);
            }
            let mut buffer = [0; 8];
            for number in 0..2 {
                assert_eq!(to.recv(&mut buffer).unwrap(), 8);
                assert_eq!(buffer[..], payload(number)[..]);
            }
            // The third waits there when the socket closes.
            assert_eq!(to.peek(&mut buffer).unwrap(), 8);
        }
    };
    let [a, b] =
        pair.record(&format!("udp:*-{address}"), || pair.b.enter(rounds).expect("b is there"));
    let sent = keys(&a, Point::SendIp);
    assert_eq!(sent.len(), 3 * 3000);
    let (rounds, _) = sent.as_chunks::<3>();
    let read: Vec<Key> = rounds.iter().flat_map(|[first, second, _]| [*first, *second]).collect();
    assert_eq!(keys(&b, Point::ReceiveCall), read);
    assert_eq!(b.unjoined, 0);
}

/// UDP_SEGMENT: one call, one packet down to the driver, many on the other side.
fn a_super_packet_is_its_datagrams(pair: &Pair) {
    // Most of the larger one is in pages outside of the packet's first piece.
    for (bytes, addresses) in
        [(4_700, [ipv4(0).into(), ipv4(1).into()]), (30_200, [ipv6(0), ipv6(1)].map(IpAddr::from))]
    {
        let (from, to) = (bind(&pair.a, addresses[0]), bind(&pair.b, addresses[1]));
        from.connect(to.local_addr().unwrap()).unwrap();
        set_option(&from, (libc::SOL_UDP, libc::UDP_SEGMENT), 500);
        let segments = bytes / 500 + 1;
        let send = || {
            for number in 0..20u8 {
                // Each datagram begins with a number of its own.
                let part = |at: usize| [number, (at / 500) as u8, 7, 7, 7][(at % 500).min(4)];
                let payload: Vec<u8> = (0..bytes).map(part).collect();
                assert_eq!(from.send(&payload).unwrap(), bytes);
                for at in 1..=segments {
                    let part = if at == segments { 200 } else { 500 };
                    assert_eq!(to.recv(&mut [0; 2000]).unwrap(), part);
                }
            }
        };
        let [at_a, at_b] = pair.record(&format!("udp:*-{}", to.local_addr().unwrap()), send);
        // The kernel numbers super-packets consecutively, and the datagrams in each from its number on: the payload
        // distinguishes datagrams with the same number.
        let expected = keys(&at_a, Point::SendIp);
        assert_eq!(expected.iter().collect::<BTreeSet<_>>().len(), 20 * segments);
        assert_eq!(expected.len(), 20 * segments);
        let events = at(&at_a, Point::SendIp, true);
        let sum: usize = events.iter().map(|event| event.payload_bytes as usize).sum();
        assert_eq!(sum, 20 * bytes);
        for (recording, point) in way(&at_a, &at_b) {
            assert_eq!(keys(recording, point), expected, "{point}");
        }
    }
}

/// Super-packets of a socket that is not connected and discovers the path's MTU itself have no identification; the
/// packets that the kernel segments them into have one.
fn super_packets_are_cut(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    let address = to.local_addr().unwrap();
    set_option(&from, (libc::SOL_UDP, libc::UDP_SEGMENT), 500);
    set_option(&from, (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE);
    let send = || {
        for number in 0..50u8 {
            let part = |at: usize| [number, (at / 500) as u8, 7, 7, 7][(at % 500).min(4)];
            let payload: Vec<u8> = (0..4_700).map(part).collect();
            assert_eq!(from.send_to(&payload, address).unwrap(), 4_700);
            for at in 1..=10 {
                let part = if at == 10 { 200 } else { 500 };
                assert_eq!(to.recv(&mut [0; 2000]).unwrap(), part);
            }
        }
    };
    let recordings = pair.record(&format!("udp:*-{address}"), send);
    let [a, b] = &recordings;
    let kinds = |recording, point| {
        keys(recording, point).iter().filter(|key| matches!(key, Key::IpId { .. })).count()
    };
    assert_eq!((kinds(a, Point::SendIp), kinds(b, Point::ReceiveIp)), (0, 450));
    let report = joined(a, b);
    let [account] = &report.accounts[..] else { panic!("{:?}", report.accounts) };
    assert_eq!((account.sent, account.delivered), (500, 500));
    assert_eq!((account.unsettled, account.appeared, account.repeated), (0, 0, 0));
    for sap in &account.saps {
        assert_eq!((sap.passed, sap.unseen, sap.duplicates), (500, 0, 0), "{sap:?}");
    }
}

/// The first fragment stands for the datagram, the others are counted.
fn a_fragmented_datagram_is_one(pair: &Pair) {
    for addresses in [[ipv4(0).into(), ipv4(1).into()], [ipv6(0), ipv6(1)].map(IpAddr::from)] {
        let (from, to) = (bind(&pair.a, addresses[0]), bind(&pair.b, addresses[1]));
        from.connect(to.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 9000];
        let send = || {
            for number in 0..100u8 {
                assert_eq!(from.send(&[number; 4000]).unwrap(), 4000);
                assert_eq!(to.recv(&mut buffer).unwrap(), 4000);
            }
        };
        let [at_a, at_b] = pair.record(&format!("udp:*-{}", to.local_addr().unwrap()), send);
        let expected = keys(&at_a, Point::SendIp);
        for (recording, point) in way(&at_a, &at_b) {
            assert_eq!(keys(recording, point), expected, "{point}");
            let events = at(recording, point, OUT.contains(&point));
            assert!(events.iter().all(|event| event.payload_bytes == 4000), "{point}");
        }
        assert_eq!((expected.len(), at_a.fragments, at_b.fragments), (100, 200, 200));
    }
}

fn a_queue_discipline_is_told(pair: &Pair) {
    let tc = |line: &str| {
        let mut command = Command::new("tc");
        let status = pair.a.command(command.args(line.split(' '))).status();
        status.is_ok_and(|status| status.success())
    };
    let interface = pair.a.enter(interface).unwrap();
    if !tc(&format!("qdisc add dev {interface} root tbf rate 1mbit burst 2kb limit 5000")) {
        return suiro_units::skipped("tc or tbf is missing");
    }
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    to.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut received = 0;
    let burst = || {
        (0..200).for_each(|number| drop(from.send(&[number; 1000])));
        while to.recv(&mut [0; 2000]).is_ok() {
            received += 1;
        }
    };
    let [at_a, at_b] = pair.record(&format!("udp:*-{}", to.local_addr().unwrap()), burst);
    assert!(tc(&format!("qdisc del dev {interface} root")));
    let count = |recording: &Recording, point| at(recording, point, OUT.contains(&point)).len();
    assert_eq!(OUT[..5].iter().map(|&point| count(&at_a, point)).collect::<Vec<_>>(), [200; 5]);
    // What waited leaves in an interrupt of whatever thread runs, and BPF programs of tracepoints may be left out then
    // (docs/method.md, "Packets that no program saw"). An account reports such a packet as unseen, not as lost.
    let [driver, device] = [(&at_a, Point::SendDriver), (&at_b, Point::ReceiveDevice)]
        .map(|(recording, point)| count(recording, point));
    assert!((1..=received).contains(&driver), "{driver} of {received}");
    assert!((1..=received).contains(&device), "{device} of {received}");
    let mut later = IN.into_iter().filter(|point| *point != Point::ReceiveDevice);
    assert!(later.all(|point| count(&at_b, point) == received), "{:?}", at_b.points);
    let drops = at(&at_a, Point::Dropped, true);
    let dropped: BTreeSet<Key> = drops.iter().map(|event| event.key).collect();
    let passed: BTreeSet<Key> = keys(&at_a, Point::SendDriver).into_iter().collect();
    assert!(received < 200 && dropped.is_disjoint(&passed));
    assert_eq!((drops.len(), dropped.len()), (200 - received, 200 - received));
    let cause = |event: &&Event| at_a.causes[usize::from(event.cause.unwrap().0)].to_string();
    assert!(drops.iter().all(|drop| cause(drop).starts_with("QDISC_")), "{:?}", at_a.causes);
}

/// In the namespace of this process, which made `a` and `b`.
fn a_process_is_known_by_its_ports(_: &Pair) {
    let here = Host::current("here").unwrap();
    here.ip(&["link set lo up".into()]).unwrap();
    let (from, to) = (bind(&here, [127, 0, 0, 1].into()), bind(&here, [127, 0, 0, 1].into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    let mut other = Command::new("sleep").arg("100").spawn().unwrap();
    for (process, flows) in [(std::process::id(), 2), (other.id(), 0)] {
        let dir = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(RecorderSpec {
            host: "here".into(),
            flows: vec!["udp:*-*".parse().unwrap()],
            process: Some(process),
            namespace: None,
            system_calls: true,
            dir: dir.path().into(),
            name: None,
        });
        let recorder = recorder.unwrap();
        exchange(&from, &to);
        let recording = recorder.stop().unwrap().recording;
        assert_eq!(recording.flows.len(), flows, "{:?}", recording.flows);
        for status in recording.points.iter().filter(|status| status.point != Point::Dropped) {
            assert_eq!(status.events, if flows == 0 { 0 } else { PACKETS as u64 }, "{status:?}");
        }
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

fn connect(pair: &Pair, address: IpAddr) -> (TcpStream, TcpStream) {
    let listener = pair.b.enter(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let from = pair.a.enter(|| TcpStream::connect(address)).unwrap().unwrap();
    (from, listener.accept().unwrap().0)
}

fn stream(mut from: TcpStream, mut to: TcpStream) {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for piece in vec![7; STREAM_BYTES].chunks(70_001) {
                from.write_all(piece).unwrap();
            }
        });
        let (mut read, mut buffer) = (0, vec![0; 33_333]);
        while let count @ 1.. = to.read(&mut buffer).unwrap() {
            read += count;
        }
        assert_eq!(read, STREAM_BYTES);
    });
}

/// All byte ranges of a point, joined from the first byte of the stream: how far they reach. There is a gap
/// only where the kernel skipped a run of the point's program, which the recording counts.
fn covered(recording: &Recording, point: Point, first: u32) -> u64 {
    let events = at(recording, point, OUT.contains(&point));
    let mut ranges: Vec<(u32, u32)> = events
        .iter()
        .map(|event| {
            let Key::Bytes { start } = event.key else { panic!("{event:?}") };
            (start.wrapping_sub(first), event.payload_bytes)
        })
        .collect();
    ranges.sort_unstable();
    let skipped = recording.points.iter().find(|status| status.point == point).unwrap().skipped;
    let mut gaps = 0;
    let end = ranges.iter().fold(0, |end: u64, &(start, bytes)| {
        gaps += u64::from(u64::from(start) > end);
        end.max(u64::from(start) + u64::from(bytes))
    });
    assert!(gaps <= skipped, "{point}: {gaps} holes, {skipped} runs skipped");
    end
}

fn check_stream(pair: &Pair, address: IpAddr) {
    let (from, to) = connect(pair, address);
    let ends: [SocketAddr; 2] = [from.local_addr().unwrap(), to.local_addr().unwrap()];
    let [a, b] = pair.record(&format!("tcp:{}-{}", ends[0], ends[1]), || stream(from, to));
    let calls = at(&a, Point::SendCall, true);
    let Key::Bytes { start: first } = calls[0].key else { panic!("{:?}", calls[0]) };
    // TCP is not watched between the call and IP.
    for (recording, point) in way(&a, &b).filter(|(_, point)| *point != Point::SendTransport) {
        assert_eq!(covered(recording, point, first), STREAM_BYTES as u64, "{point}");
    }
    for (recording, point) in [(&a, Point::SendCall), (&b, Point::ReceiveCall)] {
        let events = at(recording, point, point == Point::SendCall);
        let bytes: u64 = events.iter().map(|event| u64::from(event.payload_bytes)).sum();
        assert_eq!(bytes, STREAM_BYTES as u64, "{point}: each byte once");
    }
}

fn each_byte_is_seen(pair: &Pair) {
    check_stream(pair, ipv4(1).into());
}

fn each_byte_is_seen_over_ipv6(pair: &Pair) {
    check_stream(pair, ipv6(1).into());
}

fn without_system_calls(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let flow = format!("udp:*-{}", to.local_addr().unwrap());
    let recorder = pair.a.enter(|| start_with("a", &flow, dir.path(), false)).unwrap().unwrap();
    exchange(&from, &to);
    let recording = recorder.stop().unwrap().recording;
    for status in &recording.points {
        let expected = if OUT[2..].contains(&status.point) { PACKETS as u64 } else { 0 };
        assert_eq!(status.events, expected, "{status:?}");
        assert_eq!(status.missing.is_some(), status.point < Point::SendIp, "{status:?}");
    }
}

fn a_prepared_recorder_waits(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    let flow = format!("udp:*-{}", to.local_addr().unwrap());
    let (dir, unused) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let prepare =
        |dir| pair.a.enter(|| Prepared::new(spec("a", &flow, dir, true))).unwrap().unwrap();
    let prepared = prepare(dir.path());
    drop(prepare(unused.path()));
    exchange(&from, &to);
    let zero = Moment::now();
    let recorder = prepared.start(Some(zero.monotonic_ns));
    exchange(&from, &to);
    let recording = recorder.stop().unwrap().recording;
    assert!(recording.start.monotonic_ns >= zero.monotonic_ns, "{:?}", recording.start);
    let read = Recording::read_all(dir.path()).unwrap().remove(0);
    for point in OUT {
        let events = at(&read, point, true);
        let later = events.iter().filter(|event| event.t_ns >= zero.monotonic_ns);
        assert_eq!(later.count(), PACKETS, "{point}: each from the beginning on");
    }
    let document = std::fs::read_to_string(dir.path().join("layers.a.json")).unwrap();
    let epoch = format!("\"epoch_monotonic_ns\": {},", zero.monotonic_ns);
    assert!(document.contains(&epoch), "no {epoch} in {document}");
    assert_eq!(std::fs::read_dir(unused.path()).unwrap().count(), 0, "it recorded nothing");
}

/// Long enough that packets arrive after the recorder has seen the first.
fn what_recording_costs_is_told(pair: &Pair) {
    const ROUNDS: u64 = 10;
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    from.connect(to.local_addr().unwrap()).unwrap();
    let flow = format!("udp:*-{}", to.local_addr().unwrap());
    let recordings = pair.record(&flow, || (0..ROUNDS).for_each(|_| exchange(&from, &to)));
    for recording in &recordings {
        let cost = recording.cost.as_ref().unwrap();
        assert_eq!(cost.packets, ROUNDS * PACKETS as u64, "{cost:?}");
        assert!(cost.recorder_ns > 0 && cost.writing_ns > 0, "{cost:?}");
        let sample = cost.kernel.unwrap_or_else(|| panic!("{:?}", cost.kernel_missing));
        assert!(sample.packets > 0 && sample.packets <= cost.packets, "{sample:?}");
        // Each packet passes several programs, and each takes some time.
        assert!(sample.runs > sample.packets && sample.run_ns > sample.packets, "{sample:?}");
        assert_eq!(Overhead::of(recording).missing, None);
    }
    let [a, b] = &recordings;
    let text = text(&joined(a, b));
    assert_eq!(text.matches("µs a packet in the kernel, ").count(), 2, "{text}");
}

/// Most threads that are followed at once.
const FOLLOWED: usize = 4096;

/// Time that the application's threads ran; `None` if it is not known for all seconds.
fn running_ns(recording: &Recording) -> Option<u64> {
    recording.scheduling.iter().map(|second| second.running_ns).sum()
}

/// Thousands of threads send one datagram each, one thread after the other. Then one sends that runs for longer than all of
/// them together.
fn ended_threads_make_room(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    let address = to.local_addr().unwrap();
    from.connect(address).unwrap();
    // A thread is followed from its datagram on. Returns its CPU time since.
    let send_and_run = |least_ns: u64| {
        assert_eq!(from.send(&[7]).unwrap(), 1);
        let (begin_ns, mut ran_ns) = (thread_cpu_ns(), 0);
        while ran_ns < least_ns {
            ran_ns = thread_cpu_ns() - begin_ns;
        }
        ran_ns
    };
    let thread = |least_ns: u64| {
        std::thread::scope(|scope| scope.spawn(|| send_and_run(least_ns)).join().unwrap())
    };
    let mut ran_ns = 0;
    let [a, _] = pair.record(&format!("udp:*-{address}"), || {
        let begin = Moment::now();
        ran_ns += (0..FOLLOWED + 100).map(|_| thread(50_000)).sum::<u64>();
        ran_ns += thread(2 * Moment::now().since(begin));
    });
    let recorded_ns = running_ns(&a).unwrap();
    // The kernel's clock of CPU time may be a little faster.
    assert!(recorded_ns >= ran_ns - ran_ns / 100, "{recorded_ns} of {ran_ns} ns");
}

/// How long those ran that are not followed is not known, so neither is the sum.
fn more_threads_than_are_followed(pair: &Pair) {
    let (from, to) = (bind(&pair.a, ipv4(0).into()), bind(&pair.b, ipv4(1).into()));
    let address = to.local_addr().unwrap();
    from.connect(address).unwrap();
    let (gate, (sent, have_sent)) = (Mutex::new(()), channel());
    let (from, gate) = (&from, &gate);
    let mut refused = None;
    let [a, _] = pair.record(&format!("udp:*-{address}"), || {
        std::thread::scope(|scope| {
            let held = gate.lock().unwrap();
            for _ in 0..FOLLOWED + 100 {
                let sent = sent.clone();
                let work = move || {
                    sent.send(from.send(&[7])).unwrap();
                    drop(gate.lock().unwrap());
                };
                let builder = std::thread::Builder::new().stack_size(64 << 10);
                match builder.spawn_scoped(scope, work) {
                    Ok(_) => assert_eq!(have_sent.recv().unwrap().unwrap(), 1),
                    Err(error) => {
                        refused = Some(error);
                        break;
                    }
                }
            }
            drop(held);
        });
    });
    if let Some(error) = refused {
        return suiro_units::skipped(&format!("this machine allows too few threads: {error}"));
    }
    assert_eq!(running_ns(&a), None);
    assert!(a.scheduling.iter().all(|second| second.softirq_late_ns.is_some()));
}

/// A thread that is not the leader has the leader's id from then on. It is followed as before.
fn a_thread_executes_a_program(pair: &Pair) {
    const WAIT_NS: u64 = 500_000_000;
    let to = bind(&pair.b, ipv4(1).into());
    let address = to.local_addr().unwrap();
    let [a, _] = pair.record(&format!("udp:*-{address}"), || {
        let mut command = program::sends_and_works(address);
        let mut child = pair.a.command(&mut command).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!((line.as_str(), to.recv(&mut [0; 9]).unwrap()), ("up\n", 1));
        // Meanwhile it waits for the end of its input.
        program::run_for(WAIT_NS);
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    });
    let ran_ns = running_ns(&a).unwrap();
    // The kernel's clock of CPU time may be a little faster.
    let least_ns = program::WORK_NS - program::WORK_NS / 100;
    assert!((least_ns..program::WORK_NS + WAIT_NS).contains(&ran_ns), "{ran_ns} ns");
}
