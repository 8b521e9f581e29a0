//! One of the two stations: its frames on the way, its backoff, its rate.

use std::collections::VecDeque;

use suiro_units::{Duration, Random, Seed, Time};

use super::phy::{AIFS, MCS_COUNT, Mcs, SLOT};
use crate::packet::Passage;

/// Contention window in slots (IEEE 802.11-2012, table 8-105, best effort).
const CW_MIN: u64 = 15;
const CW_MAX: u64 = 1023;
/// Frames between the oldest unacknowledged and the newest: the block ACK's bitmap.
pub(crate) const WINDOW: usize = 64;

#[derive(Debug)]
pub(crate) struct Station {
    /// The sender's window and the receiver's reorder buffer in one: received frames wait in it
    /// for those before them.
    pub window: VecDeque<Frame>,
    pub rate: RateControl,
    pub contention: Option<Contention>,
    cw: u64,
    pub random: Random,
}

#[derive(Debug)]
pub(crate) struct Frame {
    pub passage: Passage,
    pub tries: u32,
    pub received: bool,
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
    pub fn new(seed: Seed) -> Self {
        Self {
            window: VecDeque::new(),
            rate: RateControl::new(),
            contention: None,
            cw: CW_MIN,
            random: seed.random(),
        }
    }

    pub fn contend(&mut self, from: Time) {
        let slots = self.random.below(self.cw + 1);
        self.contention.get_or_insert(Contention { from, slots });
    }

    pub fn succeeded(&mut self) {
        self.cw = CW_MIN;
    }

    pub fn failed(&mut self) {
        self.cw = (self.cw * 2 + 1).min(CW_MAX);
    }
}

/// The fastest scheme that the channel of the latest exchange carries, with a margin upwards
/// (receiver-based rates: Holland, Vaidya and Bahl, "A rate-adaptive MAC protocol for multi-hop
/// wireless networks", MobiCom 2001; here the channel is reciprocal, so the answer tells it).
#[derive(Debug)]
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
    fn new() -> Self {
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

/// Time on air is bounded for A-MPDUs, besides their number.
pub(crate) const MAX_AIRTIME: Duration = Duration::from_millis(4);
