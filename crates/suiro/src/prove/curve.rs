//! Schedules of a link without one of their parts. Times count from the trial's start.

use std::ops::Range;

use suiro_link::{Change, MAX_RATE, RateCurve, RateStep, Schedule};
use suiro_units::{BitRate, Duration};

/// A rate below this share of the one before has fallen; as `why` has it.
const STEP: f64 = 0.8;

/// A fall of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fall {
    /// When it began.
    pub at: Duration,
    /// When the rate rose again; `None` if it did not.
    pub ends: Option<Duration>,
    /// What it was before.
    pub before: BitRate,
}

/// A curve that does not repeat, with the same rates until a time.
fn unrolled(curve: &RateCurve, until: Duration) -> Vec<RateStep> {
    let Some(period) = curve.period.filter(|period| !period.is_zero()) else {
        return curve.steps.clone();
    };
    let begins = (0..).map(|n: u64| period * n).take_while(|begin| *begin <= until);
    let steps = begins.flat_map(|begin| {
        curve.steps.iter().map(move |step| RateStep { at: begin + step.at, rate: step.rate })
    });
    steps.collect()
}

/// Whether something ends after a time; what has no end does.
fn after(end: Option<Duration>, time: Duration) -> bool {
    end.is_none_or(|end| end > time)
}

/// The last fall that was in force in a stretch of time.
pub fn last_fall(curve: &RateCurve, during: &Range<Duration>) -> Option<Fall> {
    let mut level: Option<BitRate> = None;
    let mut found: Option<Fall> = None;
    let mut open: Option<(Duration, BitRate, BitRate)> = None;
    let steps = unrolled(curve, during.end);
    let in_force = |fall: &Fall| fall.at < during.end && after(fall.ends, during.start);
    for RateStep { at, rate } in steps {
        let was = *level.get_or_insert(rate);
        let rises = |low: BitRate| rate.as_bps() as f64 * STEP > low.as_bps() as f64;
        match open {
            Some((begun, before, low)) if rises(low) => {
                found = Some(Fall { at: begun, ends: Some(at), before }).filter(in_force).or(found);
                (open, level) = (None, Some(rate));
            }
            Some((begun, before, low)) => open = Some((begun, before, low.min(rate))),
            None if (rate.as_bps() as f64) < was.as_bps() as f64 * STEP => {
                open = Some((at, was, rate));
            }
            None => level = Some(was.max(rate)),
        }
    }
    let last = open.map(|(at, before, _)| Fall { at, ends: None, before });
    last.filter(in_force).or(found)
}

/// The curve with its rate kept at its level before a fall.
pub fn without_fall(curve: &RateCurve, fall: &Fall, until: Duration) -> RateCurve {
    let steps = unrolled(curve, until).into_iter().map(|step| match step.at {
        at if at >= fall.at && after(fall.ends, at) => {
            RateStep { rate: step.rate.max(fall.before), ..step }
        }
        _ => step,
    });
    RateCurve { steps: steps.collect(), period: None }
}

/// The curve with the rate before instead of each outage in a stretch of time; none if there is no such outage.
pub fn without_outages(curve: &RateCurve, during: &Range<Duration>) -> Option<RateCurve> {
    let mut steps = unrolled(curve, during.end);
    let mut found = false;
    let first = steps.iter().map(|step| step.rate).find(|rate| !rate.is_zero())?;
    for index in 0..steps.len() {
        let ends = steps.get(index + 1).map(|next| next.at);
        let acts = steps[index].at < during.end && after(ends, during.start);
        if steps[index].rate.is_zero() && acts {
            steps[index].rate = index.checked_sub(1).map_or(first, |before| steps[before].rate);
            found = true;
        }
    }
    found.then_some(RateCurve { steps, period: None })
}

/// The curve with so many times its rate.
pub fn raised(curve: &RateCurve, times: u64) -> RateCurve {
    let more = |step: &RateStep| {
        let bps = step.rate.as_bps().saturating_mul(times);
        RateStep { rate: BitRate::from_bps(bps).min(MAX_RATE), ..*step }
    };
    RateCurve { steps: curve.steps.iter().map(more).collect(), period: curve.period }
}

/// Replaces the values of a schedule that act in a stretch of time. Returns whether there was one that `replace` changes.
pub fn replace<T: Clone>(
    schedule: &mut Schedule<T>,
    during: &Range<Duration>,
    mut replace: impl FnMut(&T) -> Option<T>,
) -> bool {
    let ends: Vec<Duration> = schedule.changes.iter().map(|change| change.at).collect();
    let mut found = false;
    let mut value = |value: &mut T, from: Duration, to: Option<&Duration>| {
        let acts = from < during.end && after(to.copied(), during.start);
        if let Some(other) = acts.then(|| replace(value)).flatten() {
            (*value, found) = (other, true);
        }
    };
    value(&mut schedule.first, Duration::ZERO, ends.first());
    for (index, Change { at, value: old }) in schedule.changes.iter_mut().enumerate() {
        value(old, *at, ends.get(index + 1));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn curve(steps: &[(u64, u64)]) -> RateCurve {
        let step =
            |(at, mbps): &(u64, u64)| RateStep { at: s(*at), rate: BitRate::from_mbps(*mbps) };
        RateCurve { steps: steps.iter().map(step).collect(), period: None }
    }

    #[test]
    fn a_fall_is_kept_at_its_level() {
        let access = curve(&[(0, 8), (12, 2), (13, 1), (26, 4)]);
        let fall = last_fall(&access, &(s(4)..s(20))).unwrap();
        assert_eq!(fall, Fall { at: s(12), ends: Some(s(26)), before: BitRate::from_mbps(8) });
        let kept = without_fall(&access, &fall, s(40));
        assert_eq!(kept, curve(&[(0, 8), (12, 8), (13, 8), (26, 4)]));
        assert_eq!(last_fall(&access, &(s(4)..s(12))), None, "it had not begun");
        assert_eq!(last_fall(&access, &(s(26)..s(30))), None, "it was over");
        assert_eq!(last_fall(&curve(&[(0, 8), (5, 7), (9, 9)]), &(s(0)..s(20))), None);
    }

    #[test]
    fn a_curve_that_repeats_is_changed_where_it_is_asked_to() {
        let wave = RateCurve { period: Some(s(10)), ..curve(&[(0, 8), (5, 1)]) };
        let fall = last_fall(&wave, &(s(16)..s(18))).unwrap();
        assert_eq!((fall.at, fall.ends), (s(15), None));
        let kept = without_fall(&wave, &fall, s(18));
        assert_eq!(kept, curve(&[(0, 8), (5, 1), (10, 8), (15, 8)]));
    }

    #[test]
    fn an_outage_has_the_rate_before_it() {
        let access = curve(&[(0, 8), (5, 0), (8, 4), (20, 0), (21, 4)]);
        let without = without_outages(&access, &(s(6)..s(10))).unwrap();
        assert_eq!(without, curve(&[(0, 8), (5, 8), (8, 4), (20, 0), (21, 4)]));
        assert_eq!(without_outages(&access, &(s(8)..s(20))), None);
        let from_the_start = without_outages(&curve(&[(0, 0), (3, 4)]), &(s(0)..s(1)));
        assert_eq!(from_the_start, Some(curve(&[(0, 4), (3, 4)])));
    }

    #[test]
    fn a_rate_is_raised_up_to_the_highest_of_a_link() {
        assert_eq!(raised(&curve(&[(0, 8), (10, 2)]), 10), curve(&[(0, 80), (10, 20)]));
        assert_eq!(raised(&curve(&[(0, 500_000)]), 10), curve(&[(0, 1_000_000)]));
    }

    #[test]
    fn only_values_that_act_are_replaced() {
        let change = |at, value| Change { at: s(at), value };
        let of = |first, later: [u32; 2]| Schedule {
            first,
            changes: vec![change(5, later[0]), change(9, later[1])],
        };
        let mut loss = of(1, [2, 3]);
        assert!(replace(&mut loss, &(s(6)..s(9)), |_| Some(0)));
        assert_eq!(loss, of(1, [0, 3]));
        assert!(!replace(&mut loss, &(s(6)..s(9)), |value| (*value > 0).then_some(0)));
    }
}
