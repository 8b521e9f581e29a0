//! What waits and is on the way for one user in one direction: packets are cut into transport blocks, sent until they
//! arrive, and handed on in order.

use std::collections::VecDeque;

use suiro_units::{Duration, Seed, Time};

use super::channel::Fading;
use super::radio::SUBFRAME;
use crate::packet::{Event, Passage, Verdict};
use crate::path::Path;

/// From an attempt to send a block to the next one (TS 36.213, §7 and §8: eight HARQ processes of FDD).
const HARQ: Duration = Duration::from_millis(8);
/// Attempts for a block: the first and three retransmissions.
const ATTEMPTS: u64 = 4;
/// From the last of them to the next transmission, which RLC in acknowledged mode (TS 36.322, §5.2) begins: t-Reordering
/// of 35 ms (TS 36.331, §9.2.1.1) runs out, a status report goes back, and the block is scheduled anew.
const RLC: Duration = Duration::from_millis(48);
/// Most attempts in all: with half of them failing, one block in 10¹⁹ would need more.
const ATTEMPTS_MAX: u64 = 64;

#[derive(Debug)]
pub(crate) struct Bearer {
    /// Number of the path whose queue its packets come from.
    pub path: usize,
    /// From when it may be scheduled; `None` while nothing waits.
    pub ready: Option<Time>,
    pub fading: Fading,
    /// Mean of what it has been given, in bits per subframe.
    pub throughput: f64,
    block_errors: f64,
    /// The packet of which a part has been sent.
    head: Option<Cut>,
    /// Packets whose last block arrives at this time, and all before it have arrived.
    air: VecDeque<(Time, Passage)>,
    /// When all blocks so far have arrived.
    latest: Time,
    /// Of the blocks' attempts, by subframe: what was sent before does not change them.
    attempts: Seed,
}

#[derive(Debug)]
struct Cut {
    passage: Passage,
    /// Bytes not yet sent.
    left: u64,
}

impl Bearer {
    pub fn new(path: usize, block_errors: f64, fading: Fading, seed: Seed) -> Self {
        Self {
            path,
            ready: None,
            fading,
            throughput: 0.0,
            block_errors,
            head: None,
            air: VecDeque::new(),
            latest: Time::ZERO,
            attempts: seed,
        }
    }

    /// Whether nothing waits to be sent.
    pub fn is_done(&self, path: &Path) -> bool {
        self.head.is_none() && path.is_empty()
    }

    /// Sends a block of at most so many bytes in the subframe that begins at `at`; how many it has.
    pub fn send(
        &mut self,
        at: Time,
        bytes: u64,
        path: &mut Path,
        events: &mut VecDeque<Event>,
    ) -> u64 {
        let mut used = 0;
        let mut attempts = None;
        while used < bytes {
            let next = self.head.take().or_else(|| {
                let passage = path.take_for_medium(at, events)?;
                Some(Cut { passage, left: passage.size() })
            });
            let Some(Cut { mut passage, left }) = next else { break };
            let attempts = *attempts.get_or_insert_with(|| self.transmit(at));
            passage.attempts = passage.attempts.max(attempts);
            let part = left.min(bytes - used);
            used += part;
            if part < left {
                self.head = Some(Cut { passage, left: left - part });
            } else {
                self.air.push_back((self.latest, passage));
            }
        }
        used
    }

    /// Draws how often the block of this subframe is sent, and notes when it has arrived.
    fn transmit(&mut self, at: Time) -> u8 {
        let mut random = self.attempts.nth(at.as_nanos() / SUBFRAME.as_nanos()).random();
        let mut failed = 0;
        while failed < ATTEMPTS_MAX && random.chance(self.block_errors) {
            failed += 1;
        }
        let by_rlc = failed / ATTEMPTS;
        let later = HARQ * (failed - by_rlc) + RLC * by_rlc;
        self.latest = self.latest.max(at + SUBFRAME + later);
        u8::try_from(failed + 1).unwrap_or(u8::MAX)
    }

    /// When the next packet has arrived.
    pub fn arrives(&self) -> Option<Time> {
        self.air.front().map(|(at, _)| *at)
    }

    /// Hands on what has arrived by then.
    pub fn release(&mut self, now: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        while let Some((at, passage)) = self.air.pop_front_if(|(at, _)| *at <= now) {
            path.out_of_the_medium(at, passage, events);
        }
    }

    /// Takes out what is on the way.
    pub fn drain(&mut self, now: Time, path: &mut Path, events: &mut VecDeque<Event>) {
        self.ready = None;
        let head = self.head.take().map(|cut| cut.passage);
        for passage in self.air.drain(..).map(|(_, passage)| passage).chain(head) {
            path.ends_in_medium(now, passage, Verdict::Queued, events);
        }
    }
}
