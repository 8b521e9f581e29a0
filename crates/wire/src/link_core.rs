//! The link core that an engine drives: a link between two sides, or a segment that several share.

use suiro_link::{
    BaseStationConfig, CellConfig, Counts, Direction, Event, HubConfig, Link, LinkConfig, Packet,
    Segment, SegmentConfig,
};
use suiro_units::{Seed, Time};

/// Hardware address of a station.
pub(crate) type Mac = [u8; 6];

/// What decides when packets leave, and for which side. Sides are numbered from 0.
pub(crate) enum Core {
    /// From the first side down, from the second up.
    Link(Box<Link>),
    /// From all sides up.
    Hub {
        segment: Box<Segment>,
        /// By side.
        stations: Vec<Mac>,
    },
    /// Two sides for each station: that of the access point or base station, from which packets go down, then the
    /// station's own.
    Cell(Box<Segment>),
}

impl Core {
    pub(crate) fn link(config: &LinkConfig, seed: Seed) -> Self {
        Self::Link(Box::new(Link::new(config, seed)))
    }

    pub(crate) fn hub(config: &HubConfig, stations: Vec<Mac>, seed: Seed) -> Self {
        let config = SegmentConfig::Ethernet(config.clone());
        Self::Hub { segment: Box::new(Segment::new(&config, seed)), stations }
    }

    pub(crate) fn cell(config: &CellConfig, seed: Seed) -> Self {
        let config = SegmentConfig::Wifi(config.clone());
        Self::Cell(Box::new(Segment::new(&config, seed)))
    }

    pub(crate) fn base_station(config: &BaseStationConfig, seed: Seed) -> Self {
        let config = SegmentConfig::Cellular(config.clone());
        Self::Cell(Box::new(Segment::new(&config, seed)))
    }

    /// Which way packets from a side go.
    #[inline]
    pub(crate) fn direction(&self, from: usize) -> Direction {
        match self {
            Self::Link(_) | Self::Cell(_) => Direction::BOTH[from % 2],
            Self::Hub { .. } => Direction::Up,
        }
    }

    /// The side that a frame is for. At a hub that is the station to which it is addressed: the others hear it as well, and
    /// their interfaces would discard it. `None` if there is no such station.
    #[inline]
    pub(crate) fn receiver(&self, from: usize, frame: &[u8]) -> Option<usize> {
        match self {
            Self::Link(_) | Self::Cell(_) => Some(from ^ 1),
            Self::Hub { stations, .. } => {
                let receiver = stations.iter().position(|mac| frame.starts_with(mac))?;
                (receiver != from).then_some(receiver)
            }
        }
    }

    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, from: usize, packet: Packet) {
        let direction = self.direction(from);
        match self {
            Self::Link(link) => link.arrive(now, direction, packet),
            Self::Hub { segment, .. } => segment.arrive(now, from, direction, packet),
            Self::Cell(segment) => segment.arrive(now, from / 2, direction, packet),
        }
    }

    pub(crate) fn next_event(&self) -> Option<Time> {
        match self {
            Self::Link(link) => link.next_event(),
            Self::Hub { segment, .. } | Self::Cell(segment) => segment.next_event(),
        }
    }

    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Option<Event> {
        match self {
            Self::Link(link) => link.poll(now),
            Self::Hub { segment, .. } | Self::Cell(segment) => segment.poll(now),
        }
    }

    pub(crate) fn drain(&mut self, now: Time) {
        match self {
            Self::Link(link) => link.drain(now),
            Self::Hub { segment, .. } | Self::Cell(segment) => segment.drain(now),
        }
    }

    /// What became of the packets from a side.
    pub(crate) fn counts(&self, from: usize) -> Counts {
        match self {
            Self::Link(link) => link.counts(self.direction(from)),
            Self::Hub { segment, .. } => segment.counts(from, self.direction(from)),
            Self::Cell(segment) => segment.counts(from / 2, self.direction(from)),
        }
    }
}
