//! Two hosts with a cable between them, both recorded, and what tests check in the recordings.
#![expect(clippy::print_stdout, reason = "a test program prints its results")]
#![expect(clippy::disallowed_methods, reason = "the test is the watched application")]

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;

use suiro_hosts::{CableKind, CableSpec, Host, Network, NetworkSpec};
use suiro_layers::report::Overhead;
use suiro_layers::{Event, Key, Point, Recorded, Recorder, RecorderError, RecorderSpec, Recording};

pub const PACKETS: usize = 3000;
/// The path of a packet through both hosts.
pub const OUT: [Point; 6] = [
    Point::SendCall,
    Point::SendTransport,
    Point::SendIp,
    Point::SendLink,
    Point::SendQdisc,
    Point::SendDriver,
];
pub const IN: [Point; 5] = [
    Point::ReceiveDevice,
    Point::ReceiveIp,
    Point::ReceiveLocal,
    Point::ReceiveSocket,
    Point::ReceiveCall,
];

/// The hosts.
pub struct Pair {
    pub a: Host,
    pub b: Host,
}

impl Pair {
    /// Prints the reason if the kernel may not be probed.
    pub fn build() -> Result<Self, String> {
        let cable = CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Plain };
        let spec = NetworkSpec {
            hosts: vec!["a".into(), "b".into()],
            cables: vec![cable],
            detours: vec![],
        };
        let network = Network::build(&spec).unwrap();
        let [a, b] = [0, 1].map(|host| network.hosts()[host].clone());
        let dir = tempfile::tempdir().unwrap();
        match a.enter(|| start("a", "udp:*-*:9", dir.path())).unwrap() {
            Ok(recorder) => drop(recorder.stop().unwrap()),
            Err(RecorderError::Probe(error)) => return Err(error.to_string()),
            Err(error) => panic!("{error}"),
        }
        Ok(Self { a, b })
    }

    /// Records on both hosts while `application` runs.
    pub fn record(&self, flow: &str, application: impl FnOnce()) -> [Recording; 2] {
        let dir = tempfile::tempdir().unwrap();
        let start =
            |host: &Host| host.enter(|| start(host.name(), flow, dir.path())).unwrap().unwrap();
        let recorders = [start(&self.a), start(&self.b)];
        for recorder in &recorders {
            let missing: Vec<_> =
                recorder.points().iter().filter(|p| p.missing.is_some()).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
        application();
        for recorder in recorders {
            let Recorded { recording, events } = recorder.stop().unwrap();
            assert!(recording.points.iter().all(|point| point.lost == 0), "{recording:?}");
            println!("  {}: {events} events; {}", recording.host, Overhead::of(&recording));
        }
        Recording::read_all(dir.path()).unwrap().try_into().unwrap()
    }
}

pub fn start(name: &str, flow: &str, dir: &Path) -> Result<Recorder, RecorderError> {
    start_with(name, flow, dir, true)
}

pub fn start_with(
    name: &str,
    flow: &str,
    dir: &Path,
    system_calls: bool,
) -> Result<Recorder, RecorderError> {
    Recorder::start(spec(name, flow, dir, system_calls))
}

pub fn spec(name: &str, flow: &str, dir: &Path, system_calls: bool) -> RecorderSpec {
    RecorderSpec {
        host: name.into(),
        flows: vec![flow.parse().unwrap()],
        process: None,
        namespace: None,
        system_calls,
        dir: dir.into(),
        name: Some(name.into()),
    }
}

pub fn bind(host: &Host, address: IpAddr) -> UdpSocket {
    host.enter(|| UdpSocket::bind((address, 0))).unwrap().unwrap()
}

/// One datagram at a time, so that none is lost. Not RTP: the first byte is below 128.
pub fn exchange(from: &UdpSocket, to: &UdpSocket) {
    let mut buffer = [0; 2000];
    for number in 0..PACKETS {
        let mut payload = vec![7; 20 + number % 1200];
        payload[..4].copy_from_slice(&(number as u32).to_be_bytes());
        from.send(&payload).unwrap();
        assert_eq!(to.recv(&mut buffer).unwrap(), payload.len());
    }
}

/// In the order of their times.
pub fn at(recording: &Recording, point: Point, sent: bool) -> Vec<&Event> {
    let flows = &recording.flows;
    let is = |event: &&Event| {
        event.point == point && flows[usize::from(event.direction_flow)].sent == sent
    };
    let mut events: Vec<&Event> = recording.events.iter().filter(is).collect();
    events.sort_by_key(|event| event.t_ns);
    events
}

pub fn keys(recording: &Recording, point: Point) -> Vec<Key> {
    at(recording, point, OUT.contains(&point)).iter().map(|event| event.key).collect()
}

/// The same packets in the same order everywhere, at times that increase along the path.
pub fn check_way(recordings: &[Recording; 2], count: usize) -> Vec<Key> {
    let [a, b] = recordings;
    let expected = keys(a, Point::SendIp);
    assert_eq!(expected.len(), count);
    assert_eq!(expected.iter().collect::<BTreeSet<_>>().len(), count, "no two are the same");
    let mut before: Option<Vec<u64>> = None;
    for (recording, point) in way(a, b) {
        assert_eq!(keys(recording, point), expected, "{point}");
        let events = at(recording, point, OUT.contains(&point));
        let times: Vec<u64> = events.iter().map(|event| event.t_ns).collect();
        if let Some(before) = before {
            let rise = before.iter().zip(&times).all(|(before, after)| before < after);
            assert!(rise, "{point} is before what comes before it");
        }
        before = Some(times);
    }
    let drops = [a, b].map(|recording| at(recording, Point::Dropped, true).len());
    assert_eq!((drops, b.unjoined), ([0, 0], 0));
    expected
}

/// The points in the order of the path, each with its host.
pub fn way<'r>(a: &'r Recording, b: &'r Recording) -> impl Iterator<Item = (&'r Recording, Point)> {
    OUT.into_iter().map(move |point| (a, point)).chain(IN.into_iter().map(move |point| (b, point)))
}

/// Sets an option that is an int.
pub fn set_option(
    socket: &UdpSocket,
    (level, name): (libc::c_int, libc::c_int),
    value: libc::c_int,
) {
    // SAFETY: the option is an int, whose address and size are given.
    let set = unsafe {
        let value = std::ptr::from_ref(&value).cast();
        libc::setsockopt(socket.as_raw_fd(), level, name, value, 4)
    };
    assert_eq!(set, 0);
}

/// The interface that is not the loopback.
pub fn interface() -> String {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    names.into_iter().find(|name| name != "lo").unwrap()
}
