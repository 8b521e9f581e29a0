//! Both directions of a link, as one state machine that is handed the time.

use suiro_units::{Seed, Time};

use crate::config::LinkConfig;
use crate::machine::Machine;
use crate::medium::Medium;
use crate::medium::cellular::Cellular;
use crate::medium::ethernet::Ethernet;
use crate::medium::wifi::Wifi;
use crate::outcomes::Counts;
use crate::packet::{Direction, Event, Packet};
use crate::path::Path;

/// An emulated link.
///
/// Tell it what arrives, ask it what comes out:
///
/// ```
/// use suiro_link::{Direction, Ecn, Link, LinkSpec, Packet, Verdict};
/// use suiro_units::{Bytes, Seed, Time};
///
/// let spec: LinkSpec = toml::from_str("rate = '12 Mbit/s'\ndelay = '20 ms'")?;
/// let config = spec.resolve(&mut |_| Err("no files here".to_owned()))?;
/// let mut link = Link::new(&config, Seed(1));
/// let packet = Packet { id: 7, size: Bytes::new(1500), flow: 0, ecn: Ecn::NotEct };
/// link.arrive(Time::ZERO, Direction::Down, packet);
/// assert_eq!(link.next_event(), Some(Time::from_millis(21)));
/// let event = link.poll(Time::from_millis(21)).expect("one packet is due");
/// assert_eq!(event.packet.id, 7);
/// assert!(matches!(event.verdict, Verdict::Delivered { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Times never decrease: an arrival stamped before something that the link has already done counts
/// as arriving then ([`Event::arrived`] says when). What happens depends on arrivals and the seed
/// alone, not on when or how often the link is polled: a late poll yields the events, with the
/// times, that a punctual one would have. At equal times the link's own doings come before an
/// arrival, and down before up.
///
/// A caller that lets packets arrive without polling lets events pile up: poll after each batch.
#[derive(Debug)]
pub struct Link(Machine);

impl Link {
    /// A link with nothing in it, at [`Time::ZERO`], from which schedules and traces count.
    ///
    /// A configuration that [`crate::LinkSpec::resolve`] made or that was read from a file has been
    /// checked; of one put together in code, what is out of range may panic here or later.
    pub fn new(config: &LinkConfig, seed: Seed) -> Self {
        let path = |direction| Path::new(config.direction(direction), direction, seed);
        let wifi = config.wifi.as_ref().map(|it| Medium::Wifi(Box::new(Wifi::new(it, seed))));
        let ethernet = config.ethernet.map(|it| Medium::Ethernet(Ethernet::new(&it, 2, seed)));
        let cellular = config.cellular.map(|it| Cellular::new(&[it], seed));
        let medium = wifi.or(ethernet).or(cellular.map(|it| Medium::Cellular(Box::new(it))));
        Self(Machine::new(Direction::BOTH.map(path).into(), medium))
    }

    /// A packet arrives at the link's entrance of this direction.
    pub fn arrive(&mut self, now: Time, direction: Direction, packet: Packet) {
        self.0.arrive(now, direction as usize, packet);
    }

    /// When to poll next: no later event comes before this time. It may come to nothing, for
    /// example if a queue discipline drops what would have been delivered; then ask again. `None`:
    /// nothing more comes out without another arrival.
    pub fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }

    /// The next event up to `now`, in order of their scheduled times; call until `None`.
    ///
    /// Drops inside the link (by an AQM at the head of a queue) are reported with the next
    /// delivery that is due, not each at its own time: no caller needs them earlier.
    pub fn poll(&mut self, now: Time) -> Option<Event> {
        self.0.poll(now)
    }

    /// Ends the link at `now`: what is due by then comes first, then everything still inside, as
    /// [`crate::Verdict::Queued`]. Fetch it all with [`Self::poll`].
    pub fn drain(&mut self, now: Time) {
        self.0.drain(now);
    }

    /// What a direction has seen until now: until the latest arrival, or event polled.
    pub fn counts(&self, direction: Direction) -> Counts {
        self.0.counts(direction as usize)
    }
}
