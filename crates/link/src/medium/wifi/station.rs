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
    pub contention: Option<Contention>,
    cw: u64,
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
    retries: u32,
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

/// A station that waits for its turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contention {
    /// Since when it finds the air free.
    pub from: Time,
    slots: u64,
}

impl Contention {
    pub fn begins(&self) -> Time {
        self.from + AIFS + SLOT * self.slots
    }

    /// Somebody else took the air at `at`, until `until`: the slots counted so far stay counted.
    pub fn freeze(&mut self, at: Time, until: Time) {
        let waited = at.saturating_since(self.from + AIFS);
        self.slots -= (waited.as_nanos() / SLOT.as_nanos()).min(self.slots);
        self.from = until.max(self.from);
    }
}

impl Station {
    pub fn new(peers: Vec<Peer>, seed: Seed) -> Self {
        Self { peers, turn: 0, contention: None, cw: CW_MIN, random: seed.random() }
    }

    /// Whether it has something to send.
    pub fn has_some(&self, paths: &[Path]) -> bool {
        self.peers.iter().any(|peer| !peer.is_done(&paths[peer.path]))
    }

    pub fn contend(&mut self, from: Time) {
        let slots = self.random.below(self.cw + 1);
        self.contention.get_or_insert(Contention { from, slots });
    }

    /// It is its turn: to whom it sends, and what. Receivers take turns, one A-MPDU each. `None` if queue disciplines have
    /// dropped all that there was.
    pub fn begins(
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
        None
    }

    pub fn succeeded(&mut self) {
        self.cw = CW_MIN;
    }

    pub fn failed(&mut self) {
        self.cw = (self.cw * 2 + 1).min(CW_MAX);
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
        }
    }

    /// Whether nothing waits for the receiver, neither here nor in the queue.
    pub fn is_done(&self, path: &Path) -> bool {
        self.window.is_empty() && path.is_empty()
    }

    /// Takes packets from the queue, until the window or an A-MPDU is full.
    fn fill(&mut self, at: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        while self.window.len() < WINDOW {
            let waiting = self.window.iter().filter(|frame| !frame.received).count();
            let fits = self.next_ampdu().map_or(0, |ampdu| ampdu.frames);
            if waiting >= self.aggregate || fits < waiting {
                return;
            }
            let Some(passage) = path.take_for_medium(at, events) else { return };
            self.window.push_back(Frame { passage, tries: 0, received: false });
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

    /// Gives up what was tried too often, and hands on what is complete, in order.
    pub fn release(&mut self, at: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        self.window.retain(|frame| {
            let given_up = !frame.received && frame.tries > self.retries;
            if given_up {
                path.ends_in_medium(at, frame.passage, Verdict::Dropped(Cause::Retry), events);
            }
            !given_up
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
