//! A Wi-Fi link: two stations that share the air, 802.11n with one stream in 20 MHz.
//!
//! The access point sends down, the client up. A station with frames waits until the air has been
//! free for AIFS and its backoff, sends an A-MPDU, and gets a block ACK after SIFS. What was lost is
//! sent again; what was received waits for what comes before it. Both sending in the same slot
//! collide, and the contention window doubles (IEEE 802.11-2012, §9.19 and §9.21).
//!
//! Simplifications: the signal does not change during an exchange; every subcarrier has the same;
//! a block ACK that is lost counts as if nothing had arrived; no RTS/CTS, beacons, encryption or
//! management frames, and the receiver knows at once which frames were given up.

mod channel;
mod config;
mod neighbour;
mod phy;
mod quantity;
mod station;

use std::collections::VecDeque;

use suiro_units::{Seed, Time};

use crate::packet::{Cause, Direction, Event, Verdict};
use crate::path::Path;
use crate::schedule::Follow;
use channel::Channel;
pub use config::{Air, WifiChangeSpec, WifiConfig, WifiSpec};
use neighbour::Neighbour;
pub(crate) use phy::MAX_IP_BYTES;
use phy::{MAX_AMPDU_BYTES, Mcs, SIFS, SLOT, mpdu_bytes};
pub use quantity::{Dbm, Decibels, Metres};
use station::{Frame, MAX_AIRTIME, Station, WINDOW};

/// The air of a link, and the stations at both its ends.
#[derive(Debug)]
pub(crate) struct Wifi {
    stations: [Station; 2],
    channel: Channel,
    neighbour: Neighbour,
    air: Follow<Air>,
    short_gi: bool,
    aggregate: usize,
    retries: u32,
    exchange: Option<Exchange>,
    /// Since when the channel has been idle.
    free: Time,
}

/// What is on the air.
#[derive(Debug)]
struct Exchange {
    ends: Time,
    snr_db: f64,
    /// Per direction that sends: at which rate, and how many of the frames that wait.
    sending: [Option<Sending>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Sending {
    mcs: Mcs,
    frames: usize,
}

impl Wifi {
    pub fn new(config: &WifiConfig, seed: Seed) -> Self {
        let seed = seed.derive("wifi");
        Self {
            stations: Direction::BOTH.map(|direction| Station::new(seed.derive(direction.name()))),
            channel: Channel::new(config, seed.derive("channel")),
            neighbour: Neighbour::new(seed.derive("neighbour")),
            air: Follow::new(config.air.clone()),
            short_gi: config.short_gi,
            aggregate: config.aggregate as usize,
            retries: config.retries,
            exchange: None,
            free: Time::ZERO,
        }
    }

    /// Whoever has something to send waits for its turn, from `now` on.
    pub fn wake(&mut self, now: Time, paths: &[Path]) {
        if self.exchange.is_some() {
            return;
        }
        for (station, path) in self.stations.iter_mut().zip(paths) {
            if station.contention.is_none() && !(station.window.is_empty() && path.is_empty()) {
                station.contend(now);
            }
        }
    }

    /// When something next happens.
    pub fn next(&self) -> Option<Time> {
        match &self.exchange {
            Some(exchange) => Some(exchange.ends),
            None => self.stations.iter().filter_map(|s| Some(s.contention?.begins())).min(),
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

    /// A backoff has ended: others hold the air by then, or those whose slot it is send.
    fn begin(&mut self, at: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        let air = *self.air.at(at);
        let waiting = || self.stations.iter().filter_map(|station| station.contention);
        let from = waiting().map(|contention| contention.from).min().unwrap_or(at);
        if let Some((begins, ends)) = self.neighbour.holds(self.free, from, at, air.busy.get()) {
            self.freeze(begins, ends);
            self.free = ends;
            return;
        }
        let mut sending = [None; 2];
        let mut ends = at;
        for index in 0..2 {
            let due = |s: &Station| s.contention.is_some_and(|c| c.begins() < at + SLOT);
            if due(&self.stations[index]) {
                self.stations[index].contention = None;
                self.fill(index, at, &mut paths[index], events);
                sending[index] = self.aggregate(index);
            }
            if let Some(Sending { mcs, .. }) = sending[index] {
                let airtime = mcs.airtime(self.bytes_on_air(index, sending[index]), self.short_gi);
                ends = ends.max(at + airtime + SIFS + mcs.block_ack_airtime());
            }
        }
        // A queue discipline may have dropped all there was.
        if sending.iter().all(Option::is_none) {
            return;
        }
        self.freeze(at, ends);
        let snr_db = self.channel.snr_db(at, air.attenuation.0);
        self.exchange = Some(Exchange { ends, snr_db, sending });
    }

    fn freeze(&mut self, at: Time, until: Time) {
        for contention in self.stations.iter_mut().filter_map(|s| s.contention.as_mut()) {
            contention.freeze(at, until);
        }
    }

    /// Takes packets from the queue, until the window or an A-MPDU is full.
    fn fill(&mut self, index: usize, at: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        while self.stations[index].window.len() < WINDOW {
            let waiting = self.stations[index].window.iter().filter(|f| !f.received).count();
            let fits = self.aggregate(index).map_or(0, |sending| sending.frames);
            if waiting >= self.aggregate || fits < waiting {
                return;
            }
            let Some(passage) = path.take_for_medium(at, events) else { return };
            self.stations[index].window.push_back(Frame { passage, tries: 0, received: false });
        }
    }

    /// How many of the frames that wait go into the next A-MPDU: at least one.
    fn aggregate(&self, index: usize) -> Option<Sending> {
        let station = &self.stations[index];
        let mcs = station.rate.mcs;
        let (mut frames, mut bytes) = (0, 0);
        for frame in station.window.iter().filter(|frame| !frame.received).take(self.aggregate) {
            bytes += mpdu_bytes(frame.passage.size());
            let long = mcs.airtime(bytes, self.short_gi) > MAX_AIRTIME || bytes > MAX_AMPDU_BYTES;
            if frames > 0 && long {
                break;
            }
            frames += 1;
        }
        (frames > 0).then_some(Sending { mcs, frames })
    }

    fn bytes_on_air(&self, index: usize, sending: Option<Sending>) -> u64 {
        let frames = self.stations[index].window.iter().filter(|frame| !frame.received);
        let count = sending.map_or(0, |sending| sending.frames);
        frames.take(count).map(|frame| mpdu_bytes(frame.passage.size())).sum()
    }

    fn end(&mut self, exchange: &Exchange, paths: &mut [Path], events: &mut VecDeque<Event>) {
        self.free = exchange.ends;
        let collided = exchange.sending.iter().all(Option::is_some);
        for (index, path) in paths.iter_mut().enumerate() {
            let Some(sending) = exchange.sending[index] else { continue };
            let station = &mut self.stations[index];
            let answer = sending.mcs.block_ack_arrives(exchange.snr_db);
            let answered = !collided && station.random.chance(answer);
            let received = station.receive(sending, answered, exchange.snr_db);
            match (collided, received) {
                (true, _) => station.failed(),
                (false, 0) => {
                    station.failed();
                    station.rate.unanswered();
                }
                (false, _) => {
                    station.succeeded();
                    station.rate.answered(exchange.snr_db);
                }
            }
            station.release(exchange.ends, self.retries, path, events);
            if station.window.is_empty() && path.is_empty() {
                path.rest_in_medium(exchange.ends, events);
            }
        }
    }

    /// Takes out what waits at the stations: the link is being drained.
    pub fn drain(&mut self, now: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        self.exchange = None;
        for (station, path) in self.stations.iter_mut().zip(paths) {
            station.contention = None;
            for frame in station.window.drain(..) {
                path.ends_in_medium(now, frame.passage, Verdict::Queued, events);
            }
        }
    }
}

impl Station {
    /// Draws which frames arrived; how many.
    fn receive(&mut self, sending: Sending, answered: bool, snr_db: f64) -> usize {
        let bit_error = sending.mcs.bit_error(snr_db);
        let mut received = 0;
        let waiting = self.window.iter_mut().filter(|frame| !frame.received);
        for frame in waiting.take(sending.frames) {
            frame.tries += 1;
            frame.passage.attempts = frame.passage.attempts.saturating_add(1);
            let bits = mpdu_bytes(frame.passage.size()) as f64 * 8.0;
            // The draw is made in any case, so that chance does not hang on the answer.
            let intact = self.random.chance((1.0 - bit_error).powf(bits));
            frame.received = answered && intact;
            received += usize::from(frame.received);
        }
        received
    }

    /// Gives up what was tried too often, and hands on what is complete, in order.
    fn release(&mut self, at: Time, retries: u32, path: &mut Path, events: &mut VecDeque<Event>) {
        self.window.retain(|frame| {
            let given_up = !frame.received && frame.tries > retries;
            if given_up {
                path.ends_in_medium(at, frame.passage, Verdict::Dropped(Cause::Retry), events);
            }
            !given_up
        });
        while let Some(frame) = self.window.pop_front_if(|frame| frame.received) {
            path.out_of_the_medium(at, frame.passage, events);
        }
    }
}
