//! A medium that stations share: it decides who sends when. It takes packets from the queues of their [`Path`]s, and hands
//! on what came through. A link has two stations, one per direction; a [segment](crate::Segment) has any number.
//!
//! A new medium is a variant here with a module of its own.

pub(crate) mod cellular;
pub(crate) mod ethernet;
pub(crate) mod quantity;
pub(crate) mod wifi;

use std::collections::VecDeque;

use suiro_units::Time;

use crate::packet::{Direction, Event};
use crate::path::Path;
use cellular::Cellular;
use ethernet::Ethernet;
use wifi::Wifi;

#[derive(Debug)]
pub(crate) enum Medium {
    Ethernet(Ethernet),
    Wifi(Box<Wifi>),
    Cellular(Box<Cellular>),
}

/// Number of the path of a station's packets in a direction, where each station has two.
pub(crate) const fn path_of(station: usize, direction: Direction) -> usize {
    station * Direction::BOTH.len() + direction as usize
}

impl Medium {
    /// Packets may have come to the queues: who has nothing to send yet takes one, from `now` on.
    pub fn wake(&mut self, now: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        match self {
            Self::Ethernet(medium) => medium.wake(now, paths, events),
            Self::Wifi(medium) => medium.wake(now, paths),
            Self::Cellular(medium) => medium.wake(now, paths),
        }
    }

    /// When something next happens.
    pub fn next(&self) -> Option<Time> {
        match self {
            Self::Ethernet(medium) => medium.next(),
            Self::Wifi(medium) => medium.next(),
            Self::Cellular(medium) => medium.next(),
        }
    }

    /// A time before which nothing comes through.
    pub fn next_delivery(&self) -> Option<Time> {
        match self {
            Self::Ethernet(medium) => medium.next_delivery(),
            Self::Wifi(medium) => medium.next(),
            Self::Cellular(medium) => medium.next_delivery(),
        }
    }

    /// Does what happens next, at the time that [`Self::next`] gave.
    pub fn step(&mut self, paths: &mut [Path], events: &mut VecDeque<Event>) {
        match self {
            Self::Ethernet(medium) => medium.step(paths, events),
            Self::Wifi(medium) => medium.step(paths, events),
            Self::Cellular(medium) => medium.step(paths, events),
        }
    }

    /// Takes out what waits at the stations: the link is being drained.
    pub fn drain(&mut self, now: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        match self {
            Self::Ethernet(medium) => medium.drain(now, paths, events),
            Self::Wifi(medium) => medium.drain(now, paths, events),
            Self::Cellular(medium) => medium.drain(now, paths, events),
        }
    }
}
