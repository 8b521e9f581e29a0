//! Delivery opportunities of 1500 bytes, at recorded or random times.
//!
//! As in Mahimahi (Netravali et al., USENIX ATC 2015): an opportunity carries several small packets
//! or a part of a large one; what an empty queue leaves of it is lost.

use suiro_units::{Random, Seed, Time};

use super::curve::Curve;
use super::work;
use crate::trace::{OPPORTUNITY, OpportunityTrace, RateCurve};

/// The opportunity in use.
#[derive(Debug, Default)]
struct Opportunity {
    at: Time,
    bytes_left: u64,
}

impl Opportunity {
    /// Serves from this opportunity and as many more as it takes.
    fn serve(&mut self, bytes: u64, mut next: impl FnMut(Time) -> Option<Time>) -> Option<Time> {
        let mut need = bytes;
        while need > self.bytes_left {
            need -= self.bytes_left;
            self.bytes_left = 0;
            self.at = next(self.at)?;
            self.bytes_left = OPPORTUNITY.get();
        }
        self.bytes_left -= need;
        Some(self.at)
    }

    fn take(&mut self, at: Option<Time>) -> Option<Time> {
        self.at = at?;
        self.bytes_left = OPPORTUNITY.get();
        at
    }
}

/// Opportunities at the times of a Poisson process.
#[derive(Debug)]
pub(crate) struct Poisson {
    rate: Curve,
    random: Random,
    current: Opportunity,
}

impl Poisson {
    pub fn new(rate: &RateCurve, seed: Seed) -> Self {
        Self { rate: Curve::new(rate), random: seed.random(), current: Opportunity::default() }
    }

    pub fn takes_at(&mut self, now: Time) -> Option<Time> {
        if self.current.bytes_left > 0 {
            return Some(now);
        }
        // The process has no memory: after a rest the next opportunity is as far away as ever.
        let next = gap(&mut self.rate, &mut self.random, now);
        self.current.take(next)
    }

    pub fn serve(&mut self, _now: Time, bytes: u64) -> Option<Time> {
        let Self { rate, random, current } = self;
        current.serve(bytes, |after| gap(rate, random, after))
    }

    pub fn rest(&mut self) {
        self.current.bytes_left = 0;
    }

    pub fn period(&self) -> Option<u64> {
        self.rate.period()
    }
}

/// The next opportunity: the time in which the rate carries an exponentially distributed amount
/// with a mean of one opportunity, so that changes of the rate are met exactly.
fn gap(rate: &mut Curve, random: &mut Random, after: Time) -> Option<Time> {
    let mean = work(OPPORTUNITY.get()) as f64;
    rate.finish(after, (mean * random.exponential()) as u64).map(|done| done.at)
}

/// Opportunities at recorded times.
#[derive(Debug)]
pub(crate) struct Recorded {
    times_ms: Box<[u32]>,
    repeat: bool,
    period_ms: u64,
    /// The next opportunity not yet used, and when the period that it belongs to began.
    index: usize,
    base_ms: u64,
    current: Opportunity,
    /// The queue was empty: opportunities up to the next arrival, that time included, are lost.
    rested: bool,
}

impl Recorded {
    pub fn new(trace: &OpportunityTrace) -> Self {
        Self {
            times_ms: trace.times_ms.clone().into_boxed_slice(),
            repeat: trace.repeat,
            period_ms: trace.period().as_nanos() / NANOS_PER_MILLI,
            index: 0,
            base_ms: 0,
            current: Opportunity::default(),
            rested: true,
        }
    }

    pub fn takes_at(&mut self, now: Time) -> Option<Time> {
        if self.current.bytes_left > 0 {
            return Some(now);
        }
        if std::mem::take(&mut self.rested) {
            self.skip(now);
        }
        let next = self.next();
        self.current.take(next)
    }

    pub fn serve(&mut self, _now: Time, bytes: u64) -> Option<Time> {
        let mut current = std::mem::take(&mut self.current);
        let done = current.serve(bytes, |_| self.next());
        self.current = current;
        done
    }

    pub fn rest(&mut self) {
        self.current.bytes_left = 0;
        self.rested = true;
    }

    pub fn period(&self) -> Option<u64> {
        self.repeat.then_some(self.period_ms * NANOS_PER_MILLI)
    }

    fn next(&mut self) -> Option<Time> {
        if self.index == self.times_ms.len() {
            if !self.repeat {
                return None;
            }
            self.index = 0;
            self.base_ms += self.period_ms;
        }
        let at = self.base_ms + u64::from(self.times_ms[self.index]);
        self.index += 1;
        Some(Time::from_millis(at))
    }

    /// Passes over every opportunity up to `now`.
    fn skip(&mut self, now: Time) {
        let now_ms = now.as_nanos() / NANOS_PER_MILLI;
        if self.repeat {
            let base = now_ms / self.period_ms * self.period_ms;
            // At a period's very end its last opportunity is passed over with it.
            if base > self.base_ms {
                self.base_ms = base;
                self.index = 0;
            }
        }
        let since = now_ms.saturating_sub(self.base_ms);
        let rest = &self.times_ms[self.index..];
        self.index += rest.partition_point(|&time| u64::from(time) <= since);
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(times_ms: &[u32], repeat: bool) -> Recorded {
        Recorded::new(&OpportunityTrace { times_ms: times_ms.to_vec(), repeat })
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut server = recorded(&[5, 5, 9], true);
        let ms = |ms| Some(Time::from_millis(ms));
        assert_eq!(server.takes_at(Time::ZERO), ms(5));
        assert_eq!(server.serve(Time::from_millis(5), 700), ms(5));
        assert_eq!(server.takes_at(Time::from_millis(5)), ms(5));
        assert_eq!(server.serve(Time::from_millis(5), 801), ms(5));
        assert_eq!(server.serve(Time::from_millis(5), 1500), ms(9));
        // One byte less than an opportunity is left; the next is 5 ms into the second period.
        assert_eq!(server.serve(Time::from_millis(9), 1500), ms(14));
    }

    #[test]
    fn opportunities_that_nobody_waited_for_are_lost() {
        let mut server = recorded(&[0, 2, 4], true);
        let ms = Time::from_millis;
        assert_eq!(server.takes_at(ms(2)), Some(ms(4)));
        assert_eq!(server.serve(ms(4), 100), Some(ms(4)));
        server.rest();
        assert_eq!(server.takes_at(ms(4)), Some(ms(6)));
        server.rest();
        assert_eq!(server.takes_at(ms(1_000_001)), Some(ms(1_000_002)));
    }

    #[test]
    fn a_trace_that_does_not_repeat_ends() {
        let mut server = recorded(&[3], false);
        assert_eq!(server.takes_at(Time::ZERO), Some(Time::from_millis(3)));
        assert_eq!(server.serve(Time::from_millis(3), 1501), None);
        assert_eq!(server.takes_at(Time::from_millis(3)), None);
    }
}
