//! What limits the sender of TFRC besides the throughput equation (RFC 5348 §4.3): what is received, and what there is to send.

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

/// Receive rates that are remembered at most. The RFC needs three; more come where reports are
/// more frequent than the round-trip time.
const RECEIVE_RATES: usize = 64;

/// The receive rates of the last two round-trip times, of which only the greatest counts: those
/// that a later and greater one outlives are forgotten (RFC 5348 §4.3, X_recv_set).
#[derive(Debug, Clone)]
pub(super) struct ReceiveRates {
    /// In order of time, and falling.
    rates: VecDeque<(Time, f64)>,
}

impl ReceiveRates {
    /// RFC 5348 §4.2: infinite, until there is something to go by.
    pub fn new(start: Time) -> Self {
        Self { rates: [(start, f64::INFINITY)].into() }
    }

    pub fn max(&self) -> f64 {
        self.rates.front().map_or(f64::INFINITY, |&(_, rate)| rate)
    }

    /// Adds a rate and forgets those older than `age`: the greatest left.
    pub fn update(&mut self, now: Time, rate: f64, age: Duration) -> f64 {
        while self.rates.pop_back_if(|(_, older)| *older <= rate).is_some() {}
        self.rates.push_back((now, rate));
        let recent = |(at, _): &(Time, f64)| now.saturating_since(*at) <= age;
        while self.rates.len() > RECEIVE_RATES || !self.rates.front().is_some_and(recent) {
            self.rates.pop_front();
        }
        self.max()
    }

    /// Adds a rate and keeps the greatest alone, as of now; the first, infinite one does not count.
    pub fn maximise(&mut self, now: Time, rate: f64) -> f64 {
        let rates = self.rates.iter().map(|&(_, rate)| rate).filter(|rate| rate.is_finite());
        let greatest = rates.fold(rate, f64::max);
        self.replace(now, greatest);
        greatest
    }

    pub fn halve(&mut self) {
        self.rates.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
    }

    pub fn replace(&mut self, now: Time, rate: f64) {
        self.rates = [(now, rate)].into();
    }
}

/// Whether the application sent less than it was allowed to (RFC 5348 §8.2.1).
#[derive(Debug, Clone, Copy)]
pub(super) struct DataLimits {
    /// When the next packet may be sent, if all that is allowed is sent.
    next: Time,
    /// Times at which all that was allowed was sent: the first in the interval of the next report,
    /// and the first in that of the one after it.
    unlimited: [Option<Time>; 2],
    /// Where these intervals begin.
    intervals: [Time; 2],
}

impl DataLimits {
    pub const fn new(start: Time) -> Self {
        Self { next: start, unlimited: [None; 2], intervals: [start; 2] }
    }

    /// A packet that takes `time` at the allowed rate was sent. Up to `credit` may be made up for
    /// (RFC 5348 §4.6); a quarter of it is the slack of timers.
    pub fn on_sent(&mut self, now: Time, time: Duration, credit: Duration) {
        self.next = self.next.max(now.saturating_sub(credit)) + time;
        if self.next + credit / 4 < now {
            return;
        }
        if self.unlimited[0].is_none_or(|at| at <= self.intervals[0]) {
            self.unlimited[0] = Some(now);
        } else if self.unlimited[1].is_none_or(|at| at <= self.intervals[1]) {
            self.unlimited[1] = Some(now);
        }
    }

    /// Whether the interval that a report covers was limited by data throughout. The latest packet that it covers was sent a
    /// round-trip time ago. The interval is the round-trip time before that, or the time since the latest packet that the
    /// report before covered, if that is longer.
    pub fn interval_was_limited(&mut self, now: Time, rtt: Duration) -> bool {
        let told = now.saturating_sub(rtt);
        let covered = told.saturating_sub(rtt).min(self.intervals[0]);
        let limited = !self.unlimited.iter().flatten().any(|&at| covered < at && at <= told);
        self.intervals = [told, now];
        let [first, second] = self.unlimited;
        if first.is_none_or(|at| at <= told) && second.is_some_and(|at| at > told) {
            self.unlimited[0] = second;
        }
        limited
    }
}
