//! Wi-Fi: stations that share the air, 802.11n with one stream in 20 MHz.
//!
//! An access point and its stations, one on a link, any number in a cell. A station with frames waits until the air has
//! been free for AIFS and its backoff, sends an A-MPDU, and gets a block ACK after SIFS. What was lost is
//! sent again; what was received waits for what comes before it. Those that send in the same slot
//! collide, and their contention windows double, up to the retry limit. After each attempt a station backs off, also with
//! nothing left to send: what comes to air that has been idle for longer is sent at once (IEEE 802.11-2012, §9.19.2). What is
//! older than its lifetime, if it has one, is dropped instead of being sent, or sent again (§9.19.2.6). The access point
//! contends as any station does, with one backoff for all; it has a queue for each station, and they take turns.
//!
//! Simplifications: the signal does not change during an exchange, and every subcarrier has the same. All stations hear
//! one another, and whatever collides is lost. A block ACK that is lost counts as if nothing had arrived. A frame alone
//! gets one too, where the standard has an ACK, 4 µs shorter at 24 Mbit/s. There are no
//! RTS/CTS, beacons, encryption, broadcast or management frames, and the receiver knows at once which frames were given
//! up.

mod channel;
mod config;
mod neighbour;
mod phy;
mod station;

use std::collections::VecDeque;

use suiro_units::{Ratio, Seed, Time};

use super::path_of;
use crate::packet::{Direction, Event};
use crate::path::Path;
use crate::schedule::{Follow, Schedule};
use channel::Channel;
pub(crate) use config::BUSY;
pub use config::{Air, WifiChangeSpec, WifiConfig, WifiSpec};
use neighbour::Neighbour;
pub(crate) use phy::MAX_IP_BYTES;
use station::{Ampdu, Peer, RateControl, Station};

/// The air, and who sends on it.
#[derive(Debug)]
pub(crate) struct Wifi {
    /// The access point, then the stations in their order.
    stations: Vec<Station>,
    /// Between each station and the access point.
    hops: Vec<Hop>,
    neighbour: Neighbour,
    busy: Follow<Ratio>,
    exchange: Option<Exchange>,
    /// Since when the channel has been idle, or until when it is taken.
    free: Time,
}

/// The channel between a station and the access point, and what is in its way.
#[derive(Debug)]
struct Hop {
    channel: Channel,
    air: Follow<Air>,
}

/// What is on the air.
#[derive(Debug)]
struct Exchange {
    ends: Time,
    /// Whoever sends; several collide.
    sending: Vec<Sending>,
}

#[derive(Debug)]
struct Sending {
    station: usize,
    peer: usize,
    ampdu: Ampdu,
    snr_db: f64,
}

impl Wifi {
    /// The air of a link.
    pub fn new(config: &WifiConfig, seed: Seed) -> Self {
        Self::cell(std::slice::from_ref(config), config.air.map(|air| air.busy), seed)
    }

    /// The air of several stations. `busy` is the others' share of it, whatever the stations' own air says. A cell of one
    /// station has the same random numbers as a link.
    pub fn cell(stations: &[WifiConfig], busy: Schedule<Ratio>, seed: Seed) -> Self {
        let seed = seed.derive("wifi");
        let seed_of = |word: &str, station: usize| match station {
            0 => seed.derive(word),
            _ => seed.derive(&format!("{word} {station}")),
        };
        let rate = RateControl::new();
        let peer = |station: usize, direction| {
            let path = path_of(station, direction);
            Peer::new(path, station, &stations[station], rate.clone())
        };
        let down = (0..stations.len()).map(|station| peer(station, Direction::Down)).collect();
        let access_point = Station::new(down, seed.derive("down"));
        let up = (0..stations.len()).map(|station| {
            Station::new(vec![peer(station, Direction::Up)], seed_of("up", station))
        });
        let hop = |(station, config): (usize, &WifiConfig)| Hop {
            channel: Channel::new(config, seed_of("channel", station)),
            air: Follow::new(config.air.clone()),
        };
        Self {
            stations: std::iter::once(access_point).chain(up).collect(),
            hops: stations.iter().enumerate().map(hop).collect(),
            neighbour: Neighbour::new(seed.derive("neighbour")),
            busy: Follow::new(busy),
            exchange: None,
            free: Time::ZERO,
        }
    }

    /// Whoever has something to send waits for its turn, from `now` on.
    pub fn wake(&mut self, now: Time, paths: &[Path]) {
        if !self.stations.iter().any(|station| station.has_news(paths)) {
            return;
        }
        while self.exchange.is_none() && self.others_held(now) {}
        let taken = now < self.free;
        for station in &mut self.stations {
            station.ask(now, taken, paths);
        }
    }

    /// When something next happens.
    pub fn next(&self) -> Option<Time> {
        match &self.exchange {
            Some(exchange) => Some(exchange.ends),
            None => self.stations.iter().filter_map(|station| station.begins(self.free)).min(),
        }
    }

    /// Does what happens next, at the time that [`Self::next`] gave.
    pub fn step(&mut self, paths: &mut [Path], events: &mut VecDeque<Event>) {
        let Some(at) = self.next() else { return };
        match self.exchange.take() {
            Some(exchange) => self.end(&exchange, paths, events),
            None => self.begin(at, paths, events),
        }
        self.wake(at, paths);
    }

    /// Whether others have held the air since it was free, up to `now`; then it is free after the first time that they did.
    fn others_held(&mut self, now: Time) -> bool {
        let busy = self.busy.at(now).get();
        let held = self.neighbour.holds(self.free, now, busy);
        if let Some((begins, ends)) = held {
            self.take(begins, ends);
        }
        held.is_some()
    }

    /// A backoff has ended: others hold the air by then, or those whose slot it is send.
    fn begin(&mut self, at: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        if self.others_held(at) {
            return;
        }
        let mut sending: Vec<Sending> = Vec::new();
        for index in 0..self.stations.len() {
            let station = &mut self.stations[index];
            if station.begins(self.free) != Some(at) {
                continue;
            }
            let Some((peer, ampdu)) = station.sends(at, paths, events) else { continue };
            let channel = station.peers[peer].channel;
            let snr_db = self.snr_db(at, channel, &sending);
            sending.push(Sending { station: index, peer, ampdu, snr_db });
        }
        // All there was may have been dropped.
        let Some(lasts) = sending.iter().map(|sending| sending.ampdu.lasts).max() else { return };
        self.take(at, at + lasts);
        self.exchange = Some(Exchange { ends: at + lasts, sending });
    }

    /// Signal-to-noise ratio on a channel: the one that an exchange has already found there.
    fn snr_db(&mut self, at: Time, channel: usize, sending: &[Sending]) -> f64 {
        let on_it = |s: &&Sending| self.stations[s.station].peers[s.peer].channel == channel;
        match sending.iter().find(on_it) {
            Some(sending) => sending.snr_db,
            None => {
                let Hop { channel, air } = &mut self.hops[channel];
                channel.snr_db(at, air.at(at).attenuation.0)
            }
        }
    }

    /// Somebody has the air from `at` until `until`.
    fn take(&mut self, at: Time, until: Time) {
        for station in &mut self.stations {
            station.freeze(self.free, at);
        }
        self.free = until;
    }

    fn end(&mut self, exchange: &Exchange, paths: &mut [Path], events: &mut VecDeque<Event>) {
        let collided = exchange.sending.len() > 1;
        for sending in &exchange.sending {
            let station = &mut self.stations[sending.station];
            station.sent(sending, collided);
            let peer = &mut station.peers[sending.peer];
            let path = &mut paths[peer.path];
            peer.release(exchange.ends, path, events);
            if peer.is_done(path) {
                path.rest_in_medium(exchange.ends, events);
            }
            station.back_off(exchange.ends, paths);
        }
    }

    /// Takes out what waits at the stations: the link is being drained.
    pub fn drain(&mut self, now: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        self.exchange = None;
        for station in &mut self.stations {
            station.give_way();
            for peer in &mut station.peers {
                peer.drain(now, &mut paths[peer.path], events);
            }
        }
    }
}

impl Station {
    /// An A-MPDU of its has ended: which frames arrived, and what that says of the channel.
    fn sent(&mut self, sending: &Sending, collided: bool) {
        let Sending { ampdu, snr_db, .. } = *sending;
        let random = &mut self.random;
        let peer = &mut self.peers[sending.peer];
        let answered = !collided && random.chance(ampdu.mcs.block_ack_arrives(snr_db));
        let received = peer.receive(ampdu, answered, snr_db, random);
        let retries = peer.retries;
        match (collided, received) {
            (true, _) => {}
            (false, 0) => peer.rate.unanswered(),
            (false, _) => peer.rate.answered(snr_db),
        }
        if received == 0 { self.failed(retries) } else { self.succeeded() }
    }
}
