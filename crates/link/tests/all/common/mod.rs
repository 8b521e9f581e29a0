//! What the tests of the core share: links from TOML, and drivers in virtual time.

pub mod greedy;

use std::path::Path;

use suiro_link::{Direction, Ecn, Event, Link, LinkConfig, LinkSpec, Packet, Verdict};
use suiro_units::{Bytes, Duration, Seed, Time};

/// The traces that configurations may name.
pub fn trace(path: &Path) -> Result<String, String> {
    match path.to_str() {
        Some("cell") => Ok("0\n1\n1\n5\n8\n8\n8\n20\n".to_owned()),
        Some("rate.csv") => Ok("time,rate\n0 s,4 Mbit/s\n5 ms,0 bit/s\n9 ms,40 Mbit/s\n\
                                20 ms,1 Mbit/s\n"
            .to_owned()),
        _ => Err(format!("{}: no such file", path.display())),
    }
}

pub fn config(toml: &str) -> LinkConfig {
    let spec: LinkSpec = toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"));
    spec.resolve(&mut trace).unwrap_or_else(|error| panic!("{toml}: {error}"))
}

pub fn link(toml: &str, seed: u64) -> Link {
    Link::new(&config(toml), Seed(seed))
}

pub fn packet(id: u64, bytes: u64) -> Packet {
    Packet { id, size: Bytes::new(bytes), flow: 0, ecn: Ecn::NotEct }
}

pub fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

pub fn us(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

/// A packet that arrives.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub at: Time,
    pub direction: Direction,
    pub packet: Packet,
}

pub fn down(at: Time, packet: Packet) -> Arrival {
    Arrival { at, direction: Direction::Down, packet }
}

/// So many packets of a size at even distances, numbered.
pub fn evenly(count: u64, bytes: u64, every: Duration) -> Vec<Arrival> {
    (0..count).map(|n| down(Time::ZERO + every * n, packet(n, bytes))).collect()
}

/// Polls at every time at which something may come out, up to `until`. No delivery may be late:
/// then the time of the next event would have been reported too late.
pub fn poll_punctually(link: &mut Link, until: Time, events: &mut Vec<Event>) {
    while let Some(at) = link.next_event().filter(|&at| at <= until) {
        let before = events.len();
        events.extend(std::iter::from_fn(|| link.poll(at)));
        let late = events[before..].iter().find(|event| delivered(event) && event.at != at);
        assert_eq!(late, None, "polled at {at}");
        let quiet = events.len() == before;
        assert!(!quiet || link.next_event() != Some(at), "the link stands still at {at}");
    }
}

/// Lets everything arrive, punctually polled, and takes out what comes within an hour.
pub fn run(link: &mut Link, arrivals: &[Arrival]) -> Vec<Event> {
    let mut events = Vec::new();
    for arrival in arrivals {
        poll_punctually(link, arrival.at, &mut events);
        link.arrive(arrival.at, arrival.direction, arrival.packet);
    }
    poll_punctually(link, Time::from_secs(3600), &mut events);
    events
}

pub fn delivered(event: &Event) -> bool {
    matches!(event.verdict, Verdict::Delivered { .. })
}

pub fn dropped(event: &Event) -> bool {
    matches!(event.verdict, Verdict::Dropped(_))
}

/// How long a packet waited in the queue.
pub fn sojourn(event: &Event) -> Option<Duration> {
    event.dequeued.map(|dequeued| dequeued - event.arrived)
}

pub fn mean_ms(spans: impl Iterator<Item = Duration>) -> f64 {
    let spans: Vec<f64> = spans.map(Duration::as_millis_f64).collect();
    spans.iter().sum::<f64>() / spans.len() as f64
}
