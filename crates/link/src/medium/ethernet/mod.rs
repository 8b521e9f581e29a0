//! Half-duplex Ethernet: stations at one hub or cable that listen, send, and notice when they collide (CSMA/CD with
//! truncated binary exponential backoff, IEEE 802.3-2000, clauses 4.2.3 and 4.4.2).
//!
//! A station with a frame waits until it has heard nothing for the interframe gap, and sends. Every other station hears
//! it after the same delay. Those that start before they hear one another collide: they notice, send a jam, and wait a
//! random number of slots, from a range that doubles with each collision of the same frame. A frame that has collided 16
//! times is dropped. Nothing is fair about that for long: who has just sent begins anew with the shortest range (the
//! capture effect: Ramakrishnan and Yang, "The Ethernet capture effect: analysis and solution", LCN 1994).
//!
//! Simplifications: all stations are equally far from one another, as at one hub; nothing but collisions damages a frame.

mod config;

use std::collections::VecDeque;

use suiro_units::{Duration, Random, Seed, Time};

pub(crate) use config::MAX_IP_BYTES;
pub use config::{EthernetConfig, EthernetRate, EthernetSpec};

use crate::packet::{Cause, Event, Passage, Verdict};
use crate::path::Path;

/// Addresses, type and frame check sequence.
const OVERHEAD_BYTES: u64 = 18;
/// `minFrameSize`: a shorter frame is padded.
const MIN_FRAME_BYTES: u64 = 64;
const PREAMBLE_BITS: u64 = 64;
/// `interPacketGap`.
const GAP_BITS: u64 = 96;
const JAM_BITS: u64 = 32;
const SLOT_BITS: u64 = 512;
/// `attemptLimit`.
const ATTEMPTS_MAX: u8 = 16;
/// `backoffLimit`.
const DOUBLINGS_MAX: u8 = 10;

/// A hub, and the stations at it.
#[derive(Debug)]
pub(crate) struct Ethernet {
    bit: Duration,
    delay: Duration,
    stations: Vec<Station>,
    state: State,
}

#[derive(Debug)]
struct Station {
    frame: Option<Frame>,
    /// When it has heard nothing for the interframe gap.
    clear: Time,
    random: Random,
}

/// What a station wants to send.
#[derive(Debug)]
struct Frame {
    passage: Passage,
    /// When its backoff is over: before that it does not send.
    ready: Time,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Nobody sends.
    Free,
    /// Somebody has started; until this time it is not heard everywhere.
    Starting { heard: Time },
    /// A station sends alone, until then.
    Sending { station: usize, ends: Time },
    /// Some have collided; the last of them falls silent then.
    Collision { ends: Time },
}

impl Ethernet {
    pub fn new(config: &EthernetConfig, stations: usize, seed: Seed) -> Self {
        let seed = seed.derive("ethernet");
        let station = |index: usize| Station {
            frame: None,
            clear: Time::ZERO,
            random: seed.derive(&index.to_string()).random(),
        };
        Self {
            bit: config.rate.bit(),
            delay: config.delay,
            stations: (0..stations).map(station).collect(),
            state: State::Free,
        }
    }

    /// Stations without a frame take one.
    pub fn wake(&mut self, now: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        for (station, path) in self.stations.iter_mut().zip(paths) {
            if station.frame.is_none() && !path.is_empty() {
                let passage = path.take_for_medium(now, events);
                station.frame = passage.map(|passage| Frame { passage, ready: now });
            }
        }
    }

    /// When something next happens.
    pub fn next(&self) -> Option<Time> {
        match self.state {
            State::Free => (0..self.stations.len()).filter_map(|index| self.starts(index)).min(),
            State::Starting { heard: at }
            | State::Sending { ends: at, .. }
            | State::Collision { ends: at } => Some(at),
        }
    }

    /// A time before which no frame has come through to the other stations.
    pub fn next_delivery(&self) -> Option<Time> {
        let heard = match self.state {
            State::Sending { ends, .. } => return Some(ends + self.delay),
            State::Free | State::Starting { .. } => Time::ZERO,
            State::Collision { ends } => ends,
        };
        let through = |index: usize| {
            let passage = self.stations[index].frame.as_ref()?.passage;
            // One more collision, and the station gives it up for another, which may be shorter.
            let may_be_given_up = passage.attempts + 1 >= ATTEMPTS_MAX;
            let bytes = if may_be_given_up { 0 } else { passage.size() };
            Some(self.starts(index)?.max(heard) + self.air_time(bytes) + self.delay)
        };
        (0..self.stations.len()).filter_map(through).min()
    }

    /// How long the frame of an IP packet of so many bytes takes, its preamble included.
    fn air_time(&self, bytes: u64) -> Duration {
        let bytes = (bytes + OVERHEAD_BYTES).max(MIN_FRAME_BYTES);
        self.bit * (PREAMBLE_BITS + bytes * 8)
    }

    /// When this station starts to send, if it hears nothing until then.
    fn starts(&self, index: usize) -> Option<Time> {
        let station = &self.stations[index];
        let frame = station.frame.as_ref()?;
        Some(frame.ready.max(station.clear))
    }

    /// Does what happens next, at the time that [`Self::next`] gave.
    pub fn step(&mut self, paths: &mut [Path], events: &mut VecDeque<Event>) {
        let Some(at) = self.next() else { return };
        match self.state {
            State::Free => self.state = State::Starting { heard: at + self.delay },
            State::Starting { heard } => self.heard(heard),
            State::Sending { station, ends } => {
                self.state = State::Free;
                if let Some(frame) = self.stations[station].frame.take() {
                    paths[station].out_of_the_medium(ends + self.delay, frame.passage, events);
                }
                self.rest(station, ends, &mut paths[station], events);
            }
            State::Collision { ends } => {
                self.state = State::Free;
                for (index, path) in paths.iter_mut().enumerate() {
                    let station = &mut self.stations[index];
                    let given_up = |frame: &mut Frame| frame.passage.attempts == ATTEMPTS_MAX;
                    if let Some(frame) = station.frame.take_if(given_up) {
                        let verdict = Verdict::Dropped(Cause::Collisions);
                        path.ends_in_medium(ends, frame.passage, verdict, events);
                        self.rest(index, ends, path, events);
                    }
                }
            }
        }
        self.wake(at, paths, events);
    }

    /// Asks the empty queue of a station that is through, as a network card does.
    fn rest(&self, station: usize, at: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        debug_assert!(self.stations[station].frame.is_none());
        if path.is_empty() {
            path.rest_in_medium(at, events);
        }
    }

    /// The signal of the station that began first has reached all others: those that have begun by now collide, and no more
    /// can.
    fn heard(&mut self, at: Time) {
        let started = |index: usize| self.starts(index).filter(|&start| start <= at);
        let starts: Vec<Option<Time>> = (0..self.stations.len()).map(started).collect();
        let mut sending = starts.iter().enumerate().filter(|(_, start)| start.is_some());
        self.state = match (sending.next(), sending.next()) {
            (Some((station, &Some(start))), None) => self.alone(station, start),
            _ => self.collision(&starts),
        };
    }

    fn alone(&mut self, sender: usize, start: Time) -> State {
        let frame = self.stations[sender].frame.as_mut().expect("it has started to send one");
        frame.passage.attempts += 1;
        let bytes = frame.passage.size();
        let ends = start + self.air_time(bytes);
        for (index, station) in self.stations.iter_mut().enumerate() {
            let quiet = if index == sender { ends } else { ends + self.delay };
            station.clear = quiet + self.bit * GAP_BITS;
        }
        State::Sending { station: sender, ends }
    }

    /// Each notices the first of the others that it hears, completes its preamble, and sends the jam.
    fn collision(&mut self, starts: &[Option<Time>]) -> State {
        let first_other = |index: usize| {
            let others = starts.iter().enumerate().filter(|(other, _)| *other != index);
            others.filter_map(|(_, start)| *start).min()
        };
        let silent = |index: usize| {
            let start = starts[index]?;
            let noticed = first_other(index)? + self.delay;
            Some(noticed.max(start + self.bit * PREAMBLE_BITS) + self.bit * JAM_BITS)
        };
        let ends: Vec<Option<Time>> = (0..starts.len()).map(silent).collect();
        let last = ends.iter().flatten().max().copied().unwrap_or_default();
        for (index, station) in self.stations.iter_mut().enumerate() {
            let others = ends.iter().enumerate().filter(|(other, _)| *other != index);
            let heard = others.filter_map(|(_, end)| *end).max().map(|end| end + self.delay);
            let quiet = ends[index].max(heard);
            station.clear = quiet.map_or(station.clear, |quiet| quiet + self.bit * GAP_BITS);
            if let (Some(end), Some(frame)) = (ends[index], &mut station.frame) {
                frame.passage.attempts += 1;
                let range = 1 << frame.passage.attempts.min(DOUBLINGS_MAX);
                let slots = station.random.below(range);
                frame.ready = end + self.bit * (SLOT_BITS * slots);
            }
        }
        State::Collision { ends: last }
    }

    /// Takes out what waits at the stations: the medium is being drained.
    pub fn drain(&mut self, now: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        self.state = State::Free;
        for (station, path) in self.stations.iter_mut().zip(paths) {
            if let Some(frame) = station.frame.take() {
                path.ends_in_medium(now, frame.passage, Verdict::Queued, events);
            }
        }
    }
}
