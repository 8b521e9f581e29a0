//! What a carrier carries packets over: a link, a hub, a Wi-Fi cell or a cellular one.

use suiro_hosts::{EmulatedLink, EmulatedSegment, LinkEnd};
use suiro_link::{BaseStationConfig, CellConfig, Direction, HubConfig, LinkConfig, PathConfig};
use suiro_units::{Duration, Seed};

use crate::bound::{self, lateness_bound};
use crate::link_core::Core;

/// A medium: its interfaces, and what it does to packets.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a trial has few of them")]
pub enum Medium<'a> {
    /// Between two hosts.
    Link {
        /// The link's interfaces.
        link: &'a EmulatedLink,
        /// What it does to packets.
        config: LinkConfig,
    },
    /// A hub. A frame goes to the station that it is addressed to.
    Hub {
        /// The stations' interfaces.
        segment: &'a EmulatedSegment,
        /// The names of the stations' links, in the order of [`EmulatedSegment::stations`]; the records carry them.
        links: Vec<&'a str>,
        /// What it does to packets; as many stations as `links`.
        config: HubConfig,
    },
    /// An access point with its stations.
    Cell {
        /// The interfaces of the stations' links, each from the access point to its station.
        ends: Vec<&'a EmulatedLink>,
        /// The names of those links; the records carry them.
        links: Vec<&'a str>,
        /// What it does to packets; as many stations as `links`.
        config: CellConfig,
    },
    /// A base station with its users.
    BaseStation {
        /// The interfaces of the users' links, each from the base station to its user.
        ends: Vec<&'a EmulatedLink>,
        /// The names of those links; the records carry them.
        links: Vec<&'a str>,
        /// What it does to packets; as many users as `links`.
        config: BaseStationConfig,
    },
}

/// What one side of a medium sends.
#[derive(Debug)]
pub(crate) struct Way {
    /// The link's name in the records.
    pub link: String,
    pub direction: Direction,
    pub end: LinkEnd,
    /// The side whose interface loses what this one has sent: of a hub, where that depends on the packet, its own.
    pub loses: usize,
    /// How late one packet in a hundred may be.
    pub bound: Duration,
}

impl Medium<'_> {
    /// What the medium's sides send, in the order of the accounts: of a link, down, then up; of a hub, what each station
    /// sends; of a cell, down, then up, of each station or user. `name` is the medium's.
    pub(crate) fn ways(&self, name: &str) -> Vec<Way> {
        match self {
            Self::Link { link, config } => both_ways(name, link, config, 0).into(),
            Self::Hub { segment, links, config } => {
                let stations = segment.stations.iter().zip(links).zip(&config.stations);
                let ways = stations.enumerate().map(|(index, ((station, link), path))| Way {
                    link: (*link).to_owned(),
                    direction: Direction::Up,
                    end: station.end.clone(),
                    loses: index,
                    bound: lateness_bound(path),
                });
                ways.collect()
            }
            Self::Cell { ends, links, config } => ways_of_cell(ends, links, &config.stations),
            Self::BaseStation { ends, links, config } => {
                ways_of_cell(ends, links, &config.stations)
            }
        }
    }

    /// What each of its directions does to packets, in the order of [`Self::ways`].
    pub(crate) fn paths(&self) -> Vec<&PathConfig> {
        match self {
            Self::Link { config, .. } => vec![&config.down, &config.up],
            Self::Hub { config, .. } => config.stations.iter().collect(),
            Self::Cell { config: CellConfig { stations, .. }, .. }
            | Self::BaseStation { config: BaseStationConfig { stations }, .. } => {
                stations.iter().flat_map(|station| [&station.down, &station.up]).collect()
            }
        }
    }

    /// What decides when packets leave.
    pub(crate) fn core(&self, seed: Seed) -> Core {
        match self {
            Self::Link { config, .. } => Core::link(config, seed),
            Self::Hub { segment, config, .. } => {
                let macs = segment.stations.iter().map(|station| station.mac).collect();
                Core::hub(config, macs, seed)
            }
            Self::Cell { config, .. } => Core::cell(config, seed),
            Self::BaseStation { config, .. } => Core::base_station(config, seed),
        }
    }

    /// Every packet stays in it at least this long.
    pub(crate) fn least_delay(&self) -> Duration {
        let paths = self.paths().into_iter().map(|path| bound::least_delay(&path.propagation));
        let least = paths.min().unwrap_or_default();
        match self {
            Self::Link { .. } | Self::Cell { .. } | Self::BaseStation { .. } => least,
            Self::Hub { config, .. } => least + config.ethernet.delay,
        }
    }

    /// Whether stations share it, so that attempts to send are counted.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Link { config, .. } => config.down.server.is_shared(),
            Self::Hub { .. } | Self::Cell { .. } | Self::BaseStation { .. } => true,
        }
    }
}

/// Down, then up, of each station of a cell.
fn ways_of_cell(ends: &[&EmulatedLink], links: &[&str], stations: &[LinkConfig]) -> Vec<Way> {
    let stations = ends.iter().zip(links).zip(stations).enumerate();
    let ways = stations
        .flat_map(|(index, ((ends, link), config))| both_ways(link, ends, config, 2 * index));
    ways.collect()
}

/// Both directions of a link, whose sides are this one and the next.
fn both_ways(name: &str, link: &EmulatedLink, config: &LinkConfig, side: usize) -> [Way; 2] {
    Direction::BOTH.map(|direction| Way {
        link: name.to_owned(),
        direction,
        end: [&link.from, &link.to][direction as usize].clone(),
        loses: side + direction.opposite() as usize,
        bound: lateness_bound(config.direction(direction)),
    })
}
