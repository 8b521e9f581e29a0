//! Bit by bit, at the rate in force.

use suiro_units::Time;

use super::curve::Curve;
use super::work;
use crate::trace::RateCurve;

#[derive(Debug)]
pub(crate) struct Steady {
    rate: Curve,
    /// When the last service ended, and how much more could have been served by then: the next
    /// packet, if it follows at once, is served from there, so that rounding does not add up.
    ended: Option<Time>,
    surplus: u64,
}

impl Steady {
    pub fn new(rate: &RateCurve) -> Self {
        Self { rate: Curve::new(rate), ended: None, surplus: 0 }
    }

    /// At once, but not in an outage.
    pub fn takes_at(&mut self, now: Time) -> Option<Time> {
        self.rate.flows_at(now)
    }

    pub fn serve(&mut self, now: Time, bytes: u64) -> Option<Time> {
        if self.ended != Some(now) {
            self.surplus = 0;
        }
        let work = work(bytes);
        self.ended = if let Some(left) = work.checked_sub(self.surplus) {
            let done = self.rate.finish(now, left)?;
            self.surplus = done.surplus;
            Some(done.at)
        } else {
            self.surplus -= work;
            Some(now)
        };
        self.ended
    }

    pub fn period(&self) -> Option<u64> {
        self.rate.period()
    }
}
