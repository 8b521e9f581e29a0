//! A station, the access point included: its backoff, and for each receiver its frames on the way and its rate.

use std::collections::VecDeque;

use suiro_units::{Duration, Random, Seed, Time};

use super::config::{WINDOW, WifiConfig};
use super::phy::{AIFS, MAX_AMPDU_BYTES, MCS_COUNT, Mcs, SIFS, SLOT, mpdu_bytes};
use crate::packet::{Cause, Event, Passage, Verdict};
use crate::path::Path;

/// Contention window in slots (IEEE 802.11-2012, table 8-105, best effort).
const CW_MIN: u64 = 15;
const CW_MAX: u64 = 1023;

/// Who contends for the air.
#[derive(Debug)]
pub(crate) struct Station {
    /// Whom it sends to: a station to the access point, the access point to every station.
    pub peers: Vec<Peer>,
    /// Who of them is asked first when it is next its turn.
    turn: usize,
    /// Since when it has had something to send; `None` if it has nothing.
    asked: Option<Time>,
    /// Slots left of its backoff, as of when the air became free.
    slots: u64,
    cw: u64,
    /// Failed attempts in a row, QSRC of the standard.
    failures: u32,
    pub random: Random,
}

/// What a station has for one receiver.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Number of the path whose queue its packets come from.
    pub path: usize,
    /// Number of the channel to it.
    pub channel: usize,
    /// The sender's window and the receiver's reorder buffer in one: received frames wait in it
    /// for those before them.
    window: VecDeque<Frame>,
    pub rate: RateControl,
    short_gi: bool,
    aggregate: usize,
    pub retries: u32,
    lifetime: Option<Duration>,
}

#[derive(Debug)]
struct Frame {
    passage: Passage,
    tries: u32,
    received: bool,
}

/// Frames that are sent at once: at which rate, how many of those that wait, and how long they and their answer take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ampdu {
    pub mcs: Mcs,
    pub frames: usize,
    pub lasts: Duration,
}

impl Station {
    pub fn new(peers: Vec<Peer>, seed: Seed) -> Self {
        let random = seed.random();
        Self { peers, turn: 0, asked: None, slots: 0, cw: CW_MIN, failures: 0, random }
    }

    fn has_some(&self, paths: &[Path]) -> bool {
        self.peers.iter().any(|peer| !peer.is_done(&paths[peer.path]))
    }

    /// Whether something to send has come since it had nothing.
    pub fn has_news(&self, paths: &[Path]) -> bool {
        self.asked.is_none() && self.has_some(paths)
    }

    /// Asks for the air if something to send has come. On idle air it has no backoff but what is left of the last one; if
    /// the air is taken and nothing is left, it draws another (IEEE 802.11-2016, §10.22.2.2, event a).
    pub fn ask(&mut self, now: Time, taken: bool, paths: &[Path]) {
        if self.has_news(paths) {
            self.asked = Some(now);
            if taken && self.slots == 0 {
                self.draw();
            }
        }
    }

    fn draw(&mut self) {
        self.slots = self.random.below(self.cw + 1);
    }

    /// When it sends, if nobody takes the air, free since `free`, before that: at the first slot boundary after its backoff
    /// at which it has something. The first of all is AIFS after `free` (IEEE 802.11-2016, §10.22.2.4).
    pub fn begins(&self, free: Time) -> Option<Time> {
        let passed = self.asked?.saturating_since(free + AIFS).as_nanos();
        Some(free + AIFS + SLOT * self.slots.max(passed.div_ceil(SLOT.as_nanos())))
    }

    /// The air, free since `free`, is taken at `at`. The backoff has been a slot shorter from each slot boundary on, also the
    /// one at which the air is taken (IEEE 802.11-2016, §10.22.2.4).
    pub fn freeze(&mut self, free: Time, at: Time) {
        let first = free + AIFS;
        if at >= first {
            let boundaries = (at - first).as_nanos() / SLOT.as_nanos() + 1;
            self.slots = self.slots.saturating_sub(boundaries);
        }
    }

    /// An attempt has ended at `at`. It backs off in any case, also with nothing left to send (IEEE 802.11-2016, §10.22.2.2,
    /// events b and c).
    pub fn back_off(&mut self, at: Time, paths: &[Path]) {
        self.asked = self.has_some(paths).then_some(at);
        self.draw();
    }

    /// Asks for the air no more.
    pub fn give_way(&mut self) {
        self.asked = None;
    }

    /// It is its turn: to whom it sends, and what. Receivers take turns, one A-MPDU each. `None` if all that there was has
    /// been dropped, by queue disciplines or for its age.
    pub fn sends(
        &mut self,
        at: Time,
        paths: &mut [Path],
        events: &mut VecDeque<Event>,
    ) -> Option<(usize, Ampdu)> {
        let count = self.peers.len();
        for index in (0..count).map(|n| (self.turn + n) % count) {
            let peer = &mut self.peers[index];
            if peer.is_done(&paths[peer.path]) {
                continue;
            }
            peer.fill(at, &mut paths[peer.path], events);
            if let Some(ampdu) = peer.next_ampdu() {
                self.turn = (index + 1) % count;
                return Some((index, ampdu));
            }
        }
        self.give_way();
        None
    }

    pub fn succeeded(&mut self) {
        (self.cw, self.failures) = (CW_MIN, 0);
    }

    /// After so many failed retries in a row, the window is the least again; else it doubles (IEEE 802.11-2016, §10.22.2.2).
    pub fn failed(&mut self, retries: u32) {
        self.failures += 1;
        if self.failures > retries {
            (self.cw, self.failures) = (CW_MIN, 0);
        } else {
            self.cw = (self.cw * 2 + 1).min(CW_MAX);
        }
    }
}

impl Peer {
    pub fn new(path: usize, channel: usize, config: &WifiConfig, rate: RateControl) -> Self {
        Self {
            path,
            channel,
            window: VecDeque::new(),
            rate,
            short_gi: config.short_gi,
            aggregate: config.aggregate as usize,
            retries: config.retries,
            lifetime: config.lifetime,
        }
    }

    /// Whether nothing waits for the receiver, neither here nor in the queue.
    pub fn is_done(&self, path: &Path) -> bool {
        self.window.is_empty() && path.is_empty()
    }

    /// Takes packets from the queue, until the window or an A-MPDU is full, and drops those that have become too old.
    fn fill(&mut self, at: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        self.release(at, path, events);
        while self.window.len() < WINDOW {
            let waiting = self.window.iter().filter(|frame| !frame.received).count();
            let fits = self.next_ampdu().map_or(0, |ampdu| ampdu.frames);
            if waiting >= self.aggregate || fits < waiting {
                return;
            }
            let Some(passage) = path.take_for_medium(at, events) else { return };
            if outlived(&passage, self.lifetime, at) {
                let passage = Passage { dequeued: None, ..passage };
                path.ends_in_medium(at, passage, Verdict::Dropped(Cause::Lifetime), events);
            } else {
                self.window.push_back(Frame { passage, tries: 0, received: false });
            }
        }
    }

    /// How many of the frames that wait go into the next A-MPDU: at least one.
    fn next_ampdu(&self) -> Option<Ampdu> {
        let mcs = self.rate.mcs;
        let (mut frames, mut bytes) = (0, 0);
        let mut airtime = Duration::ZERO;
        for frame in self.window.iter().filter(|frame| !frame.received).take(self.aggregate) {
            let more = bytes + mpdu_bytes(frame.passage.size());
            let longer = mcs.airtime(more, self.short_gi);
            if frames > 0 && (longer > MAX_AIRTIME || more > MAX_AMPDU_BYTES) {
                break;
            }
            (frames, bytes, airtime) = (frames + 1, more, longer);
        }
        let lasts = airtime + SIFS + mcs.block_ack_airtime();
        (frames > 0).then_some(Ampdu { mcs, frames, lasts })
    }

    /// Draws which frames arrived; how many.
    pub fn receive(
        &mut self,
        ampdu: Ampdu,
        answered: bool,
        snr_db: f64,
        random: &mut Random,
    ) -> usize {
        let bit_error = ampdu.mcs.bit_error(snr_db);
        let mut received = 0;
        let waiting = self.window.iter_mut().filter(|frame| !frame.received);
        for frame in waiting.take(ampdu.frames) {
            frame.tries += 1;
            frame.passage.attempts = frame.passage.attempts.saturating_add(1);
            let bits = mpdu_bytes(frame.passage.size()) as f64 * 8.0;
            // The draw is made in any case, so that later random numbers do not depend on the answer.
            let intact = random.chance((1.0 - bit_error).powf(bits));
            frame.received = answered && intact;
            received += usize::from(frame.received);
        }
        received
    }

    /// Gives up what was tried too often or is too old, and hands on what is complete, in order.
    pub fn release(&mut self, at: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        let (retries, lifetime) = (self.retries, self.lifetime);
        self.window.retain(|frame| {
            let cause = frame.given_up(retries, lifetime, at);
            if let Some(cause) = cause {
                path.ends_in_medium(at, frame.passage, Verdict::Dropped(cause), events);
            }
            cause.is_none()
        });
        while let Some(frame) = self.window.pop_front_if(|frame| frame.received) {
            path.out_of_the_medium(at, frame.passage, events);
        }
    }

    /// Takes out what waits.
    pub fn drain(&mut self, now: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        for frame in self.window.drain(..) {
            path.ends_in_medium(now, frame.passage, Verdict::Queued, events);
        }
    }
}

impl Frame {
    /// Why it is given up, if it is.
    fn given_up(&self, retries: u32, lifetime: Option<Duration>, at: Time) -> Option<Cause> {
        if self.received {
            None
        } else if self.tries > retries {
            Some(Cause::Retry)
        } else {
            outlived(&self.passage, lifetime, at).then_some(Cause::Lifetime)
        }
    }
}

/// Whether a packet has been here for longer than it may. The time counts from when the station was handed it (IEEE
/// 802.11-2012, §9.19.2.6).
fn outlived(passage: &Passage, lifetime: Option<Duration>, at: Time) -> bool {
    lifetime.is_some_and(|lifetime| at.saturating_since(passage.arrived) > lifetime)
}

/// The fastest scheme that the channel of the latest exchange carries, with a margin upwards. These
/// are receiver-based rates: Holland, Vaidya and Bahl, "A rate-adaptive MAC protocol for multi-hop
/// wireless networks", MobiCom 2001. Here the channel is reciprocal, so the answer shows it.
#[derive(Debug, Clone)]
pub(crate) struct RateControl {
    pub mcs: Mcs,
    /// Least SNR at which each scheme loses at most [`LOSS`] of [`BYTES`]-byte frames.
    needs_db: [f64; MCS_COUNT],
}

const LOSS: f64 = 0.1;
const BYTES: u64 = 1542;
/// How much more than its need a faster scheme than the present one must find.
const MARGIN_DB: f64 = 2.0;

impl RateControl {
    pub fn new() -> Self {
        let grid = || (0..500).map(|i| f64::from(i) / 10.0 - 5.0);
        let mut needs_db = [0.0; MCS_COUNT];
        for mcs in Mcs::all() {
            let enough = grid().find(|&db| mcs.arrives(db, BYTES) >= 1.0 - LOSS);
            needs_db[mcs.index()] = enough.expect("45 dB carry every scheme");
        }
        Self { mcs: Mcs::LEAST, needs_db }
    }

    /// An answer came, over this channel.
    pub fn answered(&mut self, snr_db: f64) {
        let carries = |mcs: &Mcs| {
            let margin = if *mcs > self.mcs { MARGIN_DB } else { 0.0 };
            snr_db >= self.needs_db[mcs.index()] + margin
        };
        self.mcs = Mcs::all().rev().find(carries).unwrap_or(Mcs::LEAST);
    }

    /// No answer came: one scheme slower.
    pub fn unanswered(&mut self) {
        self.mcs = self.mcs.below();
    }
}

/// Time on air is bounded for A-MPDUs, in addition to their number.
pub(crate) const MAX_AIRTIME: Duration = Duration::from_millis(4);

#[cfg(test)]
mod tests {
    use super::*;

    fn station(slots: u64) -> Station {
        Station { slots, ..Station::new(Vec::new(), Seed(1)) }
    }

    #[test]
    fn each_slot_boundary_shortens_the_backoff() {
        let free = Time::from_millis(3);
        let left = |at: Time| {
            let mut station = station(5);
            station.freeze(free, at);
            station.slots
        };
        let boundary = |n| free + AIFS + SLOT * n;
        assert_eq!(left(boundary(0).saturating_sub(Duration::from_nanos(1))), 5);
        assert_eq!([0, 1, 4, 5, 900].map(|n| left(boundary(n))), [4, 3, 0, 0, 0]);
        assert_eq!(left(boundary(2).saturating_sub(Duration::from_nanos(1))), 3);
    }

    #[test]
    fn a_station_sends_at_slot_boundaries() {
        let free = Time::from_millis(3);
        let begins = |slots, asked| {
            let asked = Some(free + Duration::from_micros(asked));
            let begins = Station { asked, ..station(slots) }.begins(free);
            begins.map(|at| (at - free).as_nanos() / 1000)
        };
        assert_eq!([0, 43, 44, 52, 53].map(|us| begins(0, us)), [43, 43, 52, 52, 61].map(Some));
        assert_eq!([0, 60, 89, 200].map(|us| begins(5, us)), [88, 88, 97, 205].map(Some));
        assert_eq!(station(5).begins(free), None);
    }

    #[test]
    fn the_window_doubles_up_to_the_retry_limit() {
        let mut station = station(0);
        let windows: Vec<u64> = (0..8)
            .map(|_| {
                station.failed(6);
                station.cw
            })
            .collect();
        assert_eq!(windows, [31, 63, 127, 255, 511, 1023, 15, 31]);
        station.succeeded();
        assert_eq!((station.cw, station.failures), (15, 0));
    }
}
