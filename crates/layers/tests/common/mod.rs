//! Recordings of two hosts, made up packet by packet.
#![allow(dead_code, reason = "each test uses its part")]

pub mod calls;
pub mod program;
pub mod two_hosts;

use suiro_layers::matching::way;
use suiro_layers::{
    Cost, DropCause, Event, Flow, KernelSample, Key, Moment, Point, PointStatus, Protocol,
    Recording, Second,
};

pub const SECOND: u64 = 1_000_000_000;
pub const MS: u64 = 1_000_000;

/// A ten-second recording of a host that sends (`a`) or receives (`b`), without events.
pub fn recording(host: &str, protocol: Protocol, sent: bool) -> Recording {
    let (a, b) = ("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:5004".parse().unwrap());
    let (local, remote) = if sent { (a, b) } else { (b, a) };
    let at =
        |s: u64| Moment { monotonic_ns: s * SECOND, realtime_ns: (s + 1_700_000_000) * SECOND };
    let scheduling = |second| Second {
        second,
        waiting_ns: Some(10 * MS),
        running_ns: Some(90 * MS),
        softirq_late_ns: Some(MS),
    };
    Recording {
        host: host.into(),
        boot_id: "one kernel".into(),
        kernel: "6.18.0".into(),
        start: at(100),
        end: at(110),
        pauses: Vec::new(),
        asked: vec!["udp".into()],
        flows: vec![Flow { protocol, local, remote, sent }],
        causes: [
            "NOT_SPECIFIED",
            "SOCKET_RCVBUFF",
            "QDISC_DROP",
            "NETFILTER_DROP",
            "CPU_BACKLOG",
            "EAGAIN",
        ]
        .map(Into::into)
        .into(),
        points: Point::ALL
            .map(|point| PointStatus { point, missing: None, events: 0, lost: 0, skipped: 0 })
            .into(),
        fragments: 0,
        unjoined: 0,
        unplaced: 0,
        scheduling: (0..10).map(scheduling).collect(),
        clock: None,
        cost: Some(Cost {
            packets: 100_000,
            recorder_ns: 30 * MS,
            writing_ns: 75 * MS,
            kernel: Some(KernelSample {
                packets: 50_000,
                runs: 550_000,
                run_ns: 61 * MS,
                lasted_ns: SECOND,
            }),
            kernel_missing: None,
        }),
        events: Vec::new(),
    }
}

/// The path of one packet.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// Where it was last seen.
    pub last: Point,
    /// Why it was dropped there, if the kernel reports it: an index into the causes.
    pub cause: Option<u16>,
    /// How long it took from each point to the next.
    pub took_ns: [u64; 11],
}

impl Way {
    /// All the way, with 10 µs from point to point and 2 ms between the hosts.
    pub fn through() -> Self {
        let mut took_ns = [10_000; 11];
        took_ns[Point::SendDriver as usize] = 2 * MS;
        Self { last: Point::ReceiveCall, cause: None, took_ns }
    }
    pub fn lost_after(last: Point, cause: Option<u16>) -> Self {
        Self { last, cause, ..Self::through() }
    }
    pub fn slow(mut self, from: Point, ns: u64) -> Self {
        self.took_ns[from as usize] = ns;
        self
    }
}

/// One call: packets of 1000 bytes, every `every_ns` from 100.5 s on, each with its path.
pub fn call(every_ns: u64, ways: &[Way]) -> (Recording, Recording) {
    let mut a = recording("A", Protocol::Udp, true);
    let mut b = recording("B", Protocol::Udp, false);
    for (number, way_) in (0u64..).zip(ways) {
        let mut t_ns = 100 * SECOND + SECOND / 2 + number * every_ns;
        let mut event = Event {
            t_ns,
            point: Point::SendCall,
            direction_flow: 0,
            key: Key::Rtp { ssrc: 9, sequence: number as u16 },
            ip_id: number as u16,
            payload_bytes: 1_000,
            segments: 1,
            cause: None,
        };
        for point in way().filter(|&point| point <= way_.last) {
            event = Event { t_ns, point, ..event };
            host(&mut a, &mut b, point).events.push(event);
            t_ns += way_.took_ns[point as usize];
        }
        if let Some(cause) = way_.cause {
            let dropped =
                Event { t_ns, point: Point::Dropped, cause: Some(DropCause(cause)), ..event };
            host(&mut a, &mut b, way_.last).events.push(dropped);
        }
    }
    (a, b)
}

fn host<'a>(a: &'a mut Recording, b: &'a mut Recording, point: Point) -> &'a mut Recording {
    if point < Point::ReceiveDevice { a } else { b }
}
