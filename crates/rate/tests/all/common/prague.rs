//! A small TCP Prague, for company (draft-briscoe-iccrg-prague-congestion-control-04): a window that half of the share of marked packets
//! reduces, paced, with the virtual round trip of its §2.4.4. Every packet is acknowledged; nothing is delayed.

use std::collections::VecDeque;

use suiro_link::Ecn;
use suiro_units::{Duration, Time};

use super::Flow;

/// Weight of the latest round trip in the share of marked packets.
const GAIN: f64 = 1.0 / 16.0;
/// Flows with shorter round trips behave as if they had this one, in seconds.
const VIRTUAL_RTT: f64 = 0.025;
/// How much faster than a window per round trip packets leave, and in slow start.
const PACING: f64 = 1.2;
const PACING_FIRST: f64 = 2.0;
/// Packets are lost when one sent so many later has arrived.
const LATER: u64 = 3;

/// Packets that leave together: the least burst of Linux' Prague.
const BURST: u64 = 2;

pub struct Prague {
    /// In packets.
    window: f64,
    is_slow_start: bool,
    /// The smoothed share of marked packets.
    alpha: f64,
    /// Packets that were acknowledged in this virtual round trip, those of them that were marked, and when it ends.
    acked: u64,
    marked: u64,
    round_ends: Time,
    /// No second reduction before.
    reduces: Time,
    rtt: f64,
    flight: VecDeque<(u64, Time)>,
    next: u64,
    next_send: Time,
    acks: VecDeque<(Time, u64, bool)>,
    /// Of the way back.
    delay: Duration,
}

impl Prague {
    pub fn new(delay: Duration, start: Time) -> Self {
        Self {
            window: 10.0,
            is_slow_start: true,
            alpha: 1.0,
            acked: 0,
            marked: 0,
            round_ends: start,
            reduces: start,
            rtt: delay.as_secs_f64().max(0.001),
            flight: VecDeque::new(),
            next: 0,
            next_send: start,
            acks: VecDeque::new(),
            delay,
        }
    }

    /// The virtual round trip in seconds.
    fn round(&self) -> f64 {
        self.rtt.max(VIRTUAL_RTT)
    }

    fn acknowledged(&mut self, now: Time, number: u64, marked: bool) {
        let Ok(index) = self.flight.binary_search_by_key(&number, |&(number, _)| number) else {
            return;
        };
        let (_, sent) = self.flight.remove(index).expect("it was just found");
        self.rtt += ((now - sent).as_secs_f64() - self.rtt) / 8.0;
        self.acked += 1;
        self.marked += u64::from(marked);
        if now >= self.round_ends {
            let share = self.marked as f64 / self.acked as f64;
            self.alpha += GAIN * (share - self.alpha);
            (self.acked, self.marked) = (0, 0);
            self.round_ends = now + Duration::from_secs_f64(self.round());
        }
        let mut is_lost = false;
        while self.flight.front().is_some_and(|(lost, _)| lost + LATER <= number) {
            self.flight.pop_front();
            is_lost = true;
        }
        if is_lost {
            self.reduce(now, 0.5);
        } else if marked {
            let share = if self.is_slow_start { 1.0 } else { self.alpha };
            self.reduce(now, share / 2.0);
        } else if self.is_slow_start {
            self.window += 1.0;
        } else {
            // A packet per virtual round trip and virtual window: the rate grows as with the virtual round trip.
            self.window += (self.rtt / self.round()).powi(2) / self.window;
        }
    }

    fn reduce(&mut self, now: Time, by: f64) {
        if now < self.reduces {
            return;
        }
        self.window = (self.window * (1.0 - by)).max(2.0);
        self.reduces = now + Duration::from_secs_f64(self.round());
        self.is_slow_start = false;
    }

    fn is_open(&self) -> bool {
        (self.flight.len() as f64) < self.window.floor()
    }
}

impl Flow for Prague {
    fn next(&self) -> Option<Time> {
        let heard = self.acks.front().map(|&(at, _, _)| at);
        let send = self.is_open().then_some(self.next_send);
        [heard, send].into_iter().flatten().min()
    }

    fn act(&mut self, now: Time, send: &mut dyn FnMut(u64)) {
        while let Some((_, number, marked)) = self.acks.pop_front_if(|(at, _, _)| *at <= now) {
            self.acknowledged(now, number, marked);
        }
        if self.next_send <= now && self.is_open() {
            for _ in 0..BURST {
                send(self.next);
                self.flight.push_back((self.next, now));
                self.next += 1;
            }
            let faster = if self.is_slow_start { PACING_FIRST } else { PACING };
            let gap = BURST as f64 * self.rtt / self.window / faster;
            self.next_send = now + Duration::from_secs_f64(gap);
        }
    }

    fn ecn(&self) -> Ecn {
        Ecn::Ect1
    }

    fn deliver(&mut self, now: Time, number: u64, marked: bool) {
        self.acks.push_back((now + self.delay, number, marked));
    }
}
