//! One direction of a cell: who is given how much of the band in which subframe.

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

use super::bearer::Bearer;
use super::channel::Mean;
use super::radio::{self, BLOCK_BITS, SUBFRAME};
use crate::packet::{Direction, Event};
use crate::path::Path;

/// Subframes over which the scheduler averages what a user was given; Jalali, Padovani and Pankaj have 1000 slots.
const AVERAGE: f64 = 1_000.0;
/// Least average, in bits per subframe: one that was never given anything is not infinitely entitled.
const LEAST: f64 = 1e-3;
/// Until a user who has had nothing to send may send (TR 36.881, table 5.2.1-1), in whole subframes. A scheduling request is
/// possible every 5 ms, so it waits 2.5 ms in the mean, and takes 1 ms. The grant comes 3 ms later and takes 1 ms, and 3 ms
/// after it the user sends.
const GRANT: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Band {
    direction: Direction,
    blocks: u32,
    /// One for each user.
    bearers: Vec<Bearer>,
    /// The next subframe in which anybody may be scheduled.
    next: Option<Time>,
    /// When the next packet has arrived.
    arrives: Option<Time>,
    /// The subframe that the averages are of.
    averaged: Time,
    candidates: Vec<Candidate>,
}

/// Who may be given a part of the band.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    user: usize,
    gain: f64,
    /// Most resource blocks that it can use.
    most: u32,
    /// Its rate over what it was given before.
    priority: f64,
}

impl Band {
    pub fn new(direction: Direction, blocks: u32, bearers: Vec<Bearer>) -> Self {
        Self {
            direction,
            blocks,
            bearers,
            next: None,
            arrives: None,
            averaged: Time::ZERO,
            candidates: Vec::new(),
        }
    }

    /// Who has something to send is scheduled in a later subframe, up only when it has been granted.
    pub fn wake(&mut self, now: Time, paths: &[Path]) {
        let wait = match self.direction {
            Direction::Down => Duration::ZERO,
            Direction::Up => GRANT,
        };
        for bearer in &mut self.bearers {
            if bearer.ready.is_none() && !bearer.is_done(&paths[bearer.path]) {
                // The schedule of a subframe is made before it begins.
                let subframes = (now + wait).as_nanos() / SUBFRAME.as_nanos() + 1;
                let ready = Time::ZERO + SUBFRAME * subframes;
                bearer.ready = Some(ready);
                self.next = Some(self.next.map_or(ready, |next| next.min(ready)));
            }
        }
    }

    /// When something next happens.
    pub fn next(&self) -> Option<Time> {
        self.next.into_iter().chain(self.arrives).min()
    }

    /// A time before which nothing arrives.
    pub fn next_delivery(&self) -> Option<Time> {
        self.next.map(|at| at + SUBFRAME).into_iter().chain(self.arrives).min()
    }

    /// Does what is due.
    pub fn step(
        &mut self,
        at: Time,
        users: &mut [Mean],
        paths: &mut [Path],
        events: &mut VecDeque<Event>,
    ) {
        if self.arrives == Some(at) {
            for bearer in &mut self.bearers {
                bearer.release(at, &mut paths[bearer.path], events);
            }
        }
        if self.next == Some(at) {
            self.schedule(at, users, paths, events);
            let ready = self.bearers.iter().filter_map(|bearer| bearer.ready);
            self.next = ready.map(|ready| ready.max(at + SUBFRAME)).min();
        }
        self.arrives = self.bearers.iter().filter_map(Bearer::arrives).min();
    }

    /// Proportionally fair: the one goes first whose rate is the highest, compared with what it was given (Jalali,
    /// Padovani and Pankaj, "Data throughput of CDMA-HDR", VTC 2000; Viswanath, Tse and Laroia, "Opportunistic beamforming
    /// using dumb antennas", IEEE Trans. Inf. Theory 48, 2002). The next one gets the blocks that it does not need.
    fn schedule(
        &mut self,
        at: Time,
        users: &mut [Mean],
        paths: &mut [Path],
        events: &mut VecDeque<Event>,
    ) {
        self.age(at);
        self.list(at, users);
        let mut left = self.blocks;
        for &Candidate { user, gain, most, .. } in &self.candidates {
            if left == 0 {
                break;
            }
            let (bearer, mean) = (&mut self.bearers[user], &users[user]);
            let path = &mut paths[bearer.path];
            let most = most.min(left);
            let bytes = |blocks: u32| (bits(self.direction, mean, gain, blocks) / 8.0) as u64;
            let used = bearer.send(at, bytes(most), path, events);
            if used > 0 {
                left -= (1..most).find(|&blocks| bytes(blocks) >= used).unwrap_or(most);
            }
            bearer.throughput += used as f64 * 8.0 / AVERAGE;
            if bearer.is_done(path) {
                bearer.ready = None;
                path.rest_in_medium(at, events);
            }
        }
    }

    /// The averages fall by what passed since they were last looked at.
    fn age(&mut self, at: Time) {
        let subframes = at.saturating_since(self.averaged).as_nanos() / SUBFRAME.as_nanos();
        self.averaged = at;
        let kept = (1.0 - 1.0 / AVERAGE).powf(subframes as f64);
        self.bearers.iter_mut().for_each(|bearer| bearer.throughput *= kept);
    }

    /// Lists who may send, the first one first.
    fn list(&mut self, at: Time, users: &mut [Mean]) {
        self.candidates.clear();
        for (user, (bearer, mean)) in self.bearers.iter().zip(users).enumerate() {
            if bearer.ready.is_none_or(|ready| ready > at) {
                continue;
            }
            mean.follow(at);
            let gain = bearer.fading.gain(at);
            let most = match self.direction {
                Direction::Down => self.blocks,
                Direction::Up => mean.up.most(gain),
            };
            let rate = bits(self.direction, mean, gain, most);
            if rate > 0.0 {
                let priority = rate / bearer.throughput.max(LEAST);
                self.candidates.push(Candidate { user, gain, most, priority });
            }
        }
        self.candidates.sort_by(|a, b| b.priority.total_cmp(&a.priority));
    }

    /// Takes out what is on the way.
    pub fn drain(&mut self, now: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        (self.next, self.arrives) = (None, None);
        for bearer in &mut self.bearers {
            bearer.drain(now, &mut paths[bearer.path], events);
        }
    }
}

/// Bits that so many resource blocks carry in a subframe.
fn bits(direction: Direction, mean: &Mean, gain: f64, blocks: u32) -> f64 {
    if blocks == 0 {
        return 0.0;
    }
    let efficiency = match direction {
        Direction::Down => radio::down_efficiency(mean.down_sinr * gain),
        Direction::Up => radio::up_efficiency(mean.up.sinr(blocks) * gain),
    };
    BLOCK_BITS * efficiency * f64::from(blocks)
}
