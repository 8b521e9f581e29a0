//! A small TCP Reno, for company: slow start, congestion avoidance, fast recovery with selective
//! acknowledgements, timeouts. Every packet is acknowledged; nothing is delayed.

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

use super::Flow;

/// Least retransmission timeout, as in Linux.
const TIMEOUT_MIN: f64 = 0.2;
/// Packets are lost when one sent so many later has arrived.
const LATER: u64 = 3;

pub struct Reno {
    /// In packets.
    window: f64,
    threshold: f64,
    /// Packets under way, by number; a retransmission is a packet of its own.
    flight: VecDeque<(u64, Time)>,
    next: u64,
    /// No second reduction for what was sent before this one.
    recover: u64,
    rtt: Option<(f64, f64)>,
    backoff: f64,
    timeout: Option<Time>,
    acks: VecDeque<(Time, u64)>,
    delay: Duration,
    start: Option<Time>,
}

impl Reno {
    pub fn new(delay: Duration, start: Time) -> Self {
        Self {
            window: 10.0,
            threshold: f64::INFINITY,
            flight: VecDeque::new(),
            next: 0,
            recover: 0,
            rtt: None,
            backoff: 1.0,
            timeout: None,
            acks: VecDeque::new(),
            delay,
            start: Some(start),
        }
    }

    fn acknowledged(&mut self, now: Time, number: u64) {
        let Ok(index) = self.flight.binary_search_by_key(&number, |&(number, _)| number) else {
            return;
        };
        let (_, sent) = self.flight.remove(index).expect("it was just found");
        let sample = (now - sent).as_secs_f64();
        self.rtt = Some(self.rtt.map_or((sample, sample / 2.0), |(mean, variation)| {
            (mean + (sample - mean) / 8.0, variation + ((sample - mean).abs() - variation) / 4.0)
        }));
        self.backoff = 1.0;
        if number >= self.recover {
            self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
        }
        while self.flight.front().is_some_and(|(lost, _)| lost + LATER <= number) {
            let (lost, _) = self.flight.pop_front().expect("there is one");
            if lost >= self.recover {
                self.threshold = (self.flight.len() as f64 / 2.0).max(2.0);
                self.window = self.threshold;
                self.recover = self.next;
            }
        }
        self.restart(now);
    }

    fn restart(&mut self, now: Time) {
        let (mean, variation) = self.rtt.unwrap_or((1.0, 0.0));
        let timeout = (mean + (4.0 * variation).max(TIMEOUT_MIN)) * self.backoff;
        let waits = !self.flight.is_empty();
        self.timeout = waits.then(|| now + Duration::from_secs_f64(timeout.min(60.0)));
    }

    fn timed_out(&mut self) {
        self.threshold = (self.flight.len() as f64 / 2.0).max(2.0);
        self.window = 1.0;
        self.recover = self.next;
        self.backoff *= 2.0;
        self.flight.clear();
    }
}

impl Flow for Reno {
    fn next(&self) -> Option<Time> {
        let heard = self.acks.front().map(|&(at, _)| at);
        [self.start, heard, self.timeout].into_iter().flatten().min()
    }

    fn act(&mut self, now: Time, send: &mut dyn FnMut(u64)) {
        while let Some((_, number)) = self.acks.pop_front_if(|(at, _)| *at <= now) {
            self.acknowledged(now, number);
        }
        if self.timeout.is_some_and(|at| at <= now) {
            self.timed_out();
        }
        if self.start.is_some_and(|at| at <= now) {
            self.start = None;
        }
        let idle = self.flight.is_empty();
        while self.start.is_none() && (self.flight.len() as f64) < self.window.floor() {
            send(self.next);
            self.flight.push_back((self.next, now));
            self.next += 1;
        }
        if idle {
            self.restart(now);
        }
    }

    fn deliver(&mut self, now: Time, number: u64, _marked: bool) {
        self.acks.push_back((now + self.delay, number));
    }
}
