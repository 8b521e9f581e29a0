//! Matching ten million events of one flow, as the recorders of two hosts leave them: the time it
//! takes, and the peak memory of the process, recordings included.

use std::time::Instant;

use suiro_bench::Figure;
use suiro_layers::clock::Alignment;
use suiro_layers::matching::{matched, way};
use suiro_layers::{Event, Flow, Key, Moment, Point, PointStatus, Protocol, Recording};

/// Packets, each seen at ten points; one in a hundred is lost between the hosts.
const PACKETS: u64 = 1_000_000;

fn recording(protocol: Protocol, sent: bool) -> Recording {
    let (a, b) = ("10.0.0.1:5000", "10.0.0.2:5004");
    let (local, remote) = if sent { (a, b) } else { (b, a) };
    let address = |text: &str| text.parse().expect("it is an address");
    let moment = Moment { monotonic_ns: 0, realtime_ns: 0 };
    let status = |point| PointStatus { point, missing: None, events: 0, lost: 0, skipped: 0 };
    Recording {
        host: "host".into(),
        boot_id: "boot".into(),
        kernel: "6.18".into(),
        start: moment,
        end: moment,
        pauses: Vec::new(),
        asked: Vec::new(),
        flows: vec![Flow { protocol, local: address(local), remote: address(remote), sent }],
        causes: Vec::new(),
        points: way().map(status).collect(),
        fragments: 0,
        unjoined: 0,
        unplaced: 0,
        scheduling: Vec::new(),
        clock: None,
        cost: None,
        events: events(protocol, sent),
    }
}

fn events(protocol: Protocol, sent: bool) -> Vec<Event> {
    let points: Vec<Point> = way().filter(|&p| (p < Point::ReceiveDevice) == sent).collect();
    let numbers = (0..PACKETS).filter(|number| sent || number % 100 != 7);
    let of = |number| points.iter().map(move |&point| event(protocol, number, point));
    numbers.flat_map(of).collect()
}

fn event(protocol: Protocol, number: u64, point: Point) -> Event {
    Event {
        t_ns: number * 10_000 + point as u64 * 1_000,
        point,
        direction_flow: 0,
        key: match protocol {
            Protocol::Udp => Key::Rtp { ssrc: 1, sequence: number as u16 },
            Protocol::Tcp => Key::Bytes { start: (number * 1_400) as u32 },
        },
        ip_id: number as u16,
        payload_bytes: 1_400,
        segments: 1,
        cause: None,
    }
}

#[expect(clippy::disallowed_methods, reason = "it is a benchmark")]
fn run(name: &str, protocol: Protocol) {
    let (a, b) = (recording(protocol, true), recording(protocol, false));
    let events = a.events.len() + b.events.len();
    let begun = Instant::now();
    let result = matched([&a, &b], &Alignment::SAME);
    let seconds = begun.elapsed().as_secs_f64();
    let lost = result[0].1.passages.iter().filter(|p| p.at(Point::ReceiveCall).is_none()).count();
    assert_eq!(lost as u64, PACKETS / 100);
    let name = format!("matching {events} events, {name}");
    Figure::new(&name, seconds, "s").tell();
    if let Some(bytes) = peak_bytes() {
        Figure::new(format!("{name}: peak memory"), bytes as f64 / 1e6, "MB").tell();
    }
}

/// Peak resident memory of this process (proc(5), `VmHWM`).
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

fn main() {
    run("udp", Protocol::Udp);
    run("tcp", Protocol::Tcp);
}
