//! A medium that any number of stations share, as one state machine that is handed the time.

use serde::{Deserialize, Serialize};
use suiro_units::{Direction, Ratio, Seed, Time};

use crate::config::{LinkConfig, PathConfig};
use crate::machine::Machine;
use crate::medium::cellular::Cellular;
use crate::medium::ethernet::{Ethernet, EthernetConfig};
use crate::medium::wifi::Wifi;
use crate::medium::{Medium, path_of};
use crate::outcomes::Counts;
use crate::packet::{Event, Packet};
use crate::path::Path;
use crate::schedule::Schedule;

/// A segment fully described. Read from a file it is checked as a scenario is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentConfig {
    /// Stations at a hub.
    Ethernet(HubConfig),
    /// An access point with its stations.
    Wifi(CellConfig),
    /// A base station with its users.
    Cellular(BaseStationConfig),
}

/// A half-duplex Ethernet with its stations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HubConfig {
    /// What the stations share.
    pub ethernet: EthernetConfig,
    /// The stations: where their packets wait ([`PathConfig::queue`]), and what else happens to them. Their servers are
    /// [`crate::ServerConfig::Ethernet`].
    pub stations: Vec<PathConfig>,
}

/// A Wi-Fi cell: an access point with its stations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellConfig {
    /// Share of the air time that others use, outside this cell. The stations' own [`crate::Air::busy`] are 0.
    pub busy: Schedule<Ratio>,
    /// The stations, each as a Wi-Fi link from the access point to it: distance, walls, and a queue per direction.
    pub stations: Vec<LinkConfig>,
}

/// A cellular cell: a base station with its users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaseStationConfig {
    /// The users, each as a cellular link from the base station to it: distance, speed, and a queue per direction.
    pub stations: Vec<LinkConfig>,
}

/// A medium with its stations. The caller reports arrivals and asks for departures as with a
/// [`crate::Link`]; there is a pair of directions for each station, up from it to the medium.
///
/// - At a hub only stations send, so everything goes up. The caller decides who receives: every station hears everything,
///   at the same time.
/// - In a Wi-Fi cell what goes up is for the access point, and what the access point sends to a station goes down. A packet
///   from one station to another crosses the air twice: the caller hands what arrived at the access point to it again.
/// - A cellular cell is the same with a base station, whose two directions do not disturb one another.
#[derive(Debug)]
pub struct Segment {
    machine: Machine,
    kind: Kind,
}

/// Which directions a station has.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Up.
    Hub,
    /// Up and down.
    Cell,
}

impl Segment {
    /// An idle segment. A cell of one station does exactly what a link with the same seed does.
    ///
    /// A configuration that was read from a file has been checked; of one put together in code, what is out of range may
    /// panic here or later.
    pub fn new(config: &SegmentConfig, seed: Seed) -> Self {
        match config {
            SegmentConfig::Ethernet(config) => Self::hub(config, seed),
            SegmentConfig::Wifi(config) => Self::wifi(config, seed),
            SegmentConfig::Cellular(config) => Self::cellular(config, seed),
        }
    }

    fn hub(config: &HubConfig, seed: Seed) -> Self {
        let path = |(index, station): (usize, &PathConfig)| {
            Path::new(station, Direction::Up, seed.derive(&format!("station {index}")))
        };
        let paths = config.stations.iter().enumerate().map(path).collect();
        let ethernet = Ethernet::new(&config.ethernet, config.stations.len(), seed);
        Self { machine: Machine::new(paths, Some(Medium::Ethernet(ethernet))), kind: Kind::Hub }
    }

    fn wifi(config: &CellConfig, seed: Seed) -> Self {
        let wifi = |link: &LinkConfig| link.wifi.clone().expect("a station of a cell has Wi-Fi");
        let stations: Vec<_> = config.stations.iter().map(wifi).collect();
        let wifi = Wifi::cell(&stations, config.busy.clone(), seed);
        Self::cell(&config.stations, Medium::Wifi(Box::new(wifi)), seed)
    }

    fn cellular(config: &BaseStationConfig, seed: Seed) -> Self {
        let cellular = |link: &LinkConfig| link.cellular.expect("a user of a cell is on its air");
        let users: Vec<_> = config.stations.iter().map(cellular).collect();
        let cellular = Cellular::new(&users, seed);
        Self::cell(&config.stations, Medium::Cellular(Box::new(cellular)), seed)
    }

    fn cell(stations: &[LinkConfig], medium: Medium, seed: Seed) -> Self {
        let paths = |(index, station): (usize, &LinkConfig)| {
            let seed = if index == 0 { seed } else { seed.derive(&format!("station {index}")) };
            let path = |direction| Path::new(station.direction(direction), direction, seed);
            Direction::BOTH.map(path)
        };
        let paths = stations.iter().enumerate().flat_map(paths).collect();
        Self { machine: Machine::new(paths, Some(medium)), kind: Kind::Cell }
    }

    /// Up: a station is handed a packet to send. Down: the access point is handed a packet for that station.
    ///
    /// # Panics
    /// If there is no station of this number, or the packet goes down at a hub, where stations only send up.
    pub fn arrive(&mut self, now: Time, station: usize, direction: Direction, packet: Packet) {
        self.machine.arrive(now, self.path(station, direction), packet);
    }

    /// When to poll next, as [`crate::Link::next_event`].
    pub fn next_event(&self) -> Option<Time> {
        self.machine.next_event()
    }

    /// The next event up to `now`, as [`crate::Link::poll`]. Events do not name the station: [`Packet::id`] is the caller's.
    pub fn poll(&mut self, now: Time) -> Option<Event> {
        self.machine.poll(now)
    }

    /// Ends the segment at `now`, as [`crate::Link::drain`].
    pub fn drain(&mut self, now: Time) {
        self.machine.drain(now);
    }

    /// What became of the packets of a station, or of those for it.
    ///
    /// # Panics
    /// As [`Self::arrive`].
    pub fn counts(&self, station: usize, direction: Direction) -> Counts {
        self.machine.counts(self.path(station, direction))
    }

    fn path(&self, station: usize, direction: Direction) -> usize {
        match (self.kind, direction) {
            (Kind::Hub, Direction::Up) => station,
            (Kind::Hub, Direction::Down) => panic!("a hub sends nothing of its own"),
            (Kind::Cell, direction) => path_of(station, direction),
        }
    }
}
