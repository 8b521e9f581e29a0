//! Walks along a [`RateCurve`] and integrates it exactly.

use suiro_units::Time;

use crate::trace::RateCurve;

/// A rate over time, read forwards. Times in nanoseconds, rates in bit/s, work in nanobits.
#[derive(Debug)]
pub(super) struct Curve {
    steps: Vec<Step>,
    period: Option<u64>,
    /// Work of a whole period; of a curve that does not repeat, 0.
    per_period: u128,
    /// The step in force, and when the period that it belongs to began.
    index: usize,
    base: u64,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    at: u64,
    rate: u64,
}

/// When a piece of work is done, and how much more is done by then: a time is a whole nanosecond,
/// rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub at: Time,
    pub surplus: u64,
}

impl Curve {
    pub fn new(curve: &RateCurve) -> Self {
        let steps: Vec<Step> = curve
            .steps
            .iter()
            .map(|step| Step { at: step.at.as_nanos(), rate: step.rate.as_bps() })
            .collect();
        let period = curve.period.map(|period| period.as_nanos());
        let ends = steps.iter().skip(1).map(|step| step.at).chain(period);
        let per_period = match period {
            None => 0,
            Some(_) => steps
                .iter()
                .zip(ends)
                .map(|(step, end)| u128::from(step.rate) * u128::from(end - step.at))
                .sum(),
        };
        Self { steps, period, per_period, index: 0, base: 0 }
    }

    pub fn period(&self) -> Option<u64> {
        self.period
    }

    fn rate(&self) -> u64 {
        self.steps[self.index].rate
    }

    /// When the step in force ends.
    fn end(&self) -> Option<u64> {
        let next = self.steps.get(self.index + 1).map(|step| step.at).or(self.period);
        next.map(|offset| self.base.saturating_add(offset))
    }

    /// Goes on to the next step; true if a new period begins. There is one: [`Self::end`] said so.
    fn step(&mut self) -> bool {
        self.index += 1;
        if self.index < self.steps.len() {
            return false;
        }
        self.index = 0;
        self.base = self.base.saturating_add(self.period.unwrap_or(0));
        true
    }

    fn skip_periods(&mut self, count: u64) -> u64 {
        let span = self.period.unwrap_or(0).saturating_mul(count);
        self.base = self.base.saturating_add(span);
        span
    }

    /// Goes on to the step in force at a time, not before the one it stands at.
    pub fn seek(&mut self, now: Time) {
        let now = now.as_nanos();
        if self.end().is_none_or(|end| now < end) {
            return;
        }
        if let Some(period) = self.period {
            let base = now / period * period;
            if base > self.base {
                self.base = base;
                self.index = 0;
            }
        }
        let since = now - self.base;
        self.index += self.steps[self.index..].partition_point(|step| step.at <= since) - 1;
    }

    /// The first time at or after `now` at which the rate is not zero.
    pub fn flows_at(&mut self, now: Time) -> Option<Time> {
        self.seek(now);
        let mut at = now;
        // A curve that repeats carries something in each period, so this ends.
        while self.rate() == 0 {
            at = Time::from_nanos(self.end()?);
            if self.step() && self.per_period == 0 {
                return None;
            }
        }
        Some(at)
    }

    /// When `work`, begun at `now`, is done. `None`: never.
    pub fn finish(&mut self, now: Time, mut work: u64) -> Option<Done> {
        if work == 0 {
            return Some(Done { at: now, surplus: 0 });
        }
        self.seek(now);
        let mut at = now.as_nanos();
        loop {
            let end = self.end();
            let rate = self.rate();
            if rate > 0 {
                let takes = work.div_ceil(rate);
                let done = at.checked_add(takes)?;
                if end.is_none_or(|end| done <= end) {
                    let surplus = u128::from(takes) * u128::from(rate) - u128::from(work);
                    let surplus = u64::try_from(surplus).expect("less than the rate");
                    return Some(Done { at: Time::from_nanos(done), surplus });
                }
            }
            let end = end?;
            // Less than `work`, or it would be done by now.
            work -= rate * (end - at);
            at = end;
            if self.step() {
                let periods = u128::from(work - 1).checked_div(self.per_period)?;
                work -= u64::try_from(periods * self.per_period).expect("at most the work");
                at = at.saturating_add(self.skip_periods(periods as u64));
            }
        }
    }

    /// The work done between two times, at most `cap`.
    pub fn work(&mut self, from: Time, to: Time, cap: u64) -> u64 {
        self.seek(from);
        let mut done: u128 = 0;
        let mut at = from.as_nanos();
        let to = to.as_nanos();
        while at < to {
            let end = self.end().map_or(to, |end| end.min(to));
            done += u128::from(self.rate()) * u128::from(end - at);
            at = end;
            if done >= u128::from(cap) {
                return cap;
            }
            if self.end() == Some(at) && self.step() {
                let periods = (to - at) / self.period.expect("a new period began");
                done += self.per_period * u128::from(periods);
                at += self.skip_periods(periods);
            }
        }
        u64::try_from(done).map_or(cap, |done| done.min(cap))
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::{BitRate, Duration};

    use super::*;
    use crate::trace::RateStep;

    fn curve(steps: &[(u64, u64)], period_ms: Option<u64>) -> Curve {
        let steps = steps
            .iter()
            .map(|&(ms, kbps)| RateStep {
                at: Duration::from_millis(ms),
                rate: BitRate::from_kbps(kbps),
            })
            .collect();
        Curve::new(&RateCurve { steps, period: period_ms.map(Duration::from_millis) })
    }

    const BIT: u64 = 1_000_000_000;

    fn done_ms(curve: &mut Curve, from_ms: u64, bits: u64) -> Option<f64> {
        let done = curve.finish(Time::from_millis(from_ms), bits * BIT)?;
        Some(done.at.as_nanos() as f64 / 1e6)
    }

    #[test]
    fn work_goes_on_at_the_new_rate() {
        // 12 bits/ms for 10 ms, nothing for 5 ms, then 6 bits/ms.
        let mut curve = curve(&[(0, 12), (10, 0), (15, 6)], None);
        assert_eq!(done_ms(&mut curve, 0, 120), Some(10.0));
        assert_eq!(done_ms(&mut curve, 10, 6), Some(16.0));
        let mut again = self::curve(&[(0, 12), (10, 0), (15, 6)], None);
        assert_eq!(done_ms(&mut again, 5, 66), Some(16.0));
        assert_eq!(again.flows_at(Time::from_millis(20)), Some(Time::from_millis(20)));
    }

    #[test]
    fn an_outage_at_the_end_is_for_ever() {
        let mut curve = curve(&[(0, 12), (10, 0)], None);
        assert_eq!(done_ms(&mut curve, 5, 61), None);
        assert_eq!(curve.flows_at(Time::from_millis(11)), None);
    }

    #[test]
    fn periods_repeat_and_are_skipped_whole() {
        // 10 bits in each period of 10 ms.
        let mut curve = curve(&[(0, 2), (5, 0)], Some(10));
        assert_eq!(done_ms(&mut curve, 0, 10), Some(5.0));
        assert_eq!(done_ms(&mut curve, 5, 1_000_000_000), Some(1_000_000_000.0 - 10.0 + 15.0));
        assert_eq!(
            curve.flows_at(Time::from_millis(1_000_000_006)).unwrap().as_nanos() % 10_000_000,
            0
        );
    }

    #[test]
    fn work_between_times() {
        let bits = |from, to| {
            let mut curve = curve(&[(0, 2), (5, 0)], Some(10));
            curve.work(Time::from_millis(from), Time::from_millis(to), u64::MAX) / BIT
        };
        assert_eq!(bits(0, 5), 10);
        assert_eq!(bits(3, 12), 8);
        assert_eq!(bits(3, 100_003), 100_000);
        let mut capped = curve(&[(0, 2)], None);
        assert_eq!(capped.work(Time::ZERO, Time::from_secs(1 << 30), 77), 77);
    }

    #[test]
    fn a_nanosecond_rounded_up_is_handed_back() {
        let mut curve = curve(&[(0, 7_000_000)], None);
        let done = curve.finish(Time::ZERO, 12_000 * BIT).unwrap();
        assert_eq!(done.at.as_nanos(), 1715);
        assert_eq!(done.surplus, 1715 * 7_000_000_000 - 12_000 * BIT);
    }
}
