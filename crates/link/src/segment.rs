//! A medium that any number of stations share, as one state machine that is handed the time.

use serde::{Deserialize, Serialize};
use suiro_units::{Seed, Time};

use crate::config::PathConfig;
use crate::machine::Machine;
use crate::medium::Medium;
use crate::medium::ethernet::{Ethernet, EthernetConfig};
use crate::outcomes::Counts;
use crate::packet::{Direction, Event, Packet};
use crate::path::Path;

/// A segment fully described.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SegmentConfig {
    /// What the stations share.
    pub ethernet: EthernetConfig,
    /// The stations: where their packets wait ([`PathConfig::queue`]), and what else happens to them. Their servers are
    /// [`crate::ServerConfig::Ethernet`].
    pub stations: Vec<PathConfig>,
}

/// A half-duplex Ethernet with its stations. The caller reports arrivals and asks for departures as with a
/// [`crate::Link`]; in place of two directions it has the stations that send. The caller decides who receives: behind a hub
/// every station hears everything, at the same time.
#[derive(Debug)]
pub struct Segment(Machine);

impl Segment {
    /// An idle segment.
    pub fn new(config: &SegmentConfig, seed: Seed) -> Self {
        let path = |(index, station): (usize, &PathConfig)| {
            Path::new(station, Direction::Up, seed.derive(&format!("station {index}")))
        };
        let paths = config.stations.iter().enumerate().map(path).collect();
        let ethernet = Ethernet::new(&config.ethernet, config.stations.len(), seed);
        Self(Machine::new(paths, Some(Medium::Ethernet(ethernet))))
    }

    /// A station is handed a packet to send.
    ///
    /// # Panics
    /// If there is no station of this number.
    pub fn arrive(&mut self, now: Time, station: usize, packet: Packet) {
        self.0.arrive(now, station, packet);
    }

    /// When to poll next, as [`crate::Link::next_event`].
    pub fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }

    /// The next event up to `now`, as [`crate::Link::poll`]. The direction of all events is up, towards the medium.
    pub fn poll(&mut self, now: Time) -> Option<Event> {
        self.0.poll(now)
    }

    /// Ends the segment at `now`, as [`crate::Link::drain`].
    pub fn drain(&mut self, now: Time) {
        self.0.drain(now);
    }

    /// What became of the packets of a station.
    ///
    /// # Panics
    /// If there is no station of this number.
    pub fn counts(&self, station: usize) -> Counts {
        self.0.counts(station)
    }
}
