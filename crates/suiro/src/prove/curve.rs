//! Schedules of a link without one of their parts. Times count from the trial's start.

use std::ops::Range;

use suiro_analysis::why::Rules;
use suiro_analysis::why::falls::{self, falls};
use suiro_link::{Change, MAX_RATE, RateCurve, RateStep, Schedule};
use suiro_units::{BitRate, Duration};

/// A fall of a rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fall {
    /// From when on, and until when: the rate rose, or fell again, or the trial ended.
    pub span: Range<Duration>,
    /// What the rate was before.
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

/// The last fall that was in force in a stretch of time, as `why` names it, of a trial that ends `until` then.
pub fn last_fall(curve: &RateCurve, during: &Range<Duration>, until: Duration) -> Option<Fall> {
    let steps = unrolled(curve, until).into_iter();
    let rates: Vec<(i64, f64)> =
        steps.map(|step| (step.at.as_nanos_i64(), step.rate.as_bps() as f64)).collect();
    let found = falls(&rates, until.as_nanos_i64(), Rules::default().fallen);
    let during = (during.start.as_nanos_i64(), during.end.as_nanos_i64());
    let fall = falls::last_fall(&found, during)?;
    let at = |ns: i64| Duration::from_nanos(ns.unsigned_abs());
    let span = at(fall.from_ns)..at(fall.to_ns);
    Some(Fall { span, before: BitRate::from_bps(fall.before_bps as u64) })
}

/// The curve with its rate kept at its level before a fall, of a trial that ends `until` then.
pub fn without_fall(curve: &RateCurve, fall: &Fall, until: Duration) -> RateCurve {
    let kept = |step: RateStep| match fall.span.contains(&step.at) {
        true => RateStep { rate: step.rate.max(fall.before), ..step },
        false => step,
    };
    let steps = unrolled(curve, until).into_iter().map(kept);
    RateCurve { steps: steps.collect(), period: None }
}

/// The curve with the rate before instead of each outage in a stretch of time, of a trial that ends `until` then; none if there
/// is no such outage.
pub fn without_outages(
    curve: &RateCurve,
    during: &Range<Duration>,
    until: Duration,
) -> Option<RateCurve> {
    let mut steps = unrolled(curve, until);
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
        let access = curve(&[(0, 8), (12, 1), (18, 1), (26, 4)]);
        let last = |curve: &RateCurve, from, to| last_fall(curve, &(s(from)..s(to)), s(40));
        let fall = last(&access, 4, 20).unwrap();
        assert_eq!(fall, Fall { span: s(12)..s(26), before: BitRate::from_mbps(8) });
        let kept = without_fall(&access, &fall, s(40));
        assert_eq!(kept, curve(&[(0, 8), (12, 8), (18, 8), (26, 4)]));
        assert_eq!(last(&access, 4, 12), None, "it had not begun");
        assert_eq!(last(&access, 26, 30), None, "it was over");
        assert_eq!(last(&curve(&[(0, 8), (5, 7), (9, 9)]), 0, 20), None);
    }

    #[test]
    fn of_two_falls_in_a_row_the_last_is_left_out_as_why_names_it() {
        // `why` says that the link fell from 10 to 3 Mbit/s at 22 s.
        let access = curve(&[(0, 30), (15, 10), (22, 3), (30, 30)]);
        let fall = last_fall(&access, &(s(14)..s(26)), s(40)).unwrap();
        assert_eq!(fall, Fall { span: s(22)..s(30), before: BitRate::from_mbps(10) });
        let kept = without_fall(&access, &fall, s(40));
        assert_eq!(kept, curve(&[(0, 30), (15, 10), (22, 10), (30, 30)]));
        let first = last_fall(&access, &(s(6)..s(22)), s(40)).unwrap();
        assert_eq!(first, Fall { span: s(15)..s(22), before: BitRate::from_mbps(30) });
    }

    #[test]
    fn a_curve_that_repeats_is_changed_where_it_is_asked_to() {
        let wave = RateCurve { period: Some(s(10)), ..curve(&[(0, 8), (5, 1)]) };
        let fall = last_fall(&wave, &(s(16)..s(18)), s(18)).unwrap();
        assert_eq!(fall.span, s(15)..s(18), "until the end");
        let kept = without_fall(&wave, &fall, s(18));
        assert_eq!(kept, curve(&[(0, 8), (5, 1), (10, 8), (15, 8)]));
        // What comes later is as it was.
        let fall = last_fall(&wave, &(s(6)..s(8)), s(25)).unwrap();
        assert_eq!(fall.span, s(5)..s(10));
        let kept = without_fall(&wave, &fall, s(25));
        assert_eq!(kept, curve(&[(0, 8), (5, 8), (10, 8), (15, 1), (20, 8), (25, 1)]));
    }

    #[test]
    fn an_outage_has_the_rate_before_it() {
        let access = curve(&[(0, 8), (5, 0), (8, 4), (20, 0), (21, 4)]);
        let without =
            |curve: &RateCurve, from, to| without_outages(curve, &(s(from)..s(to)), s(30));
        let one = without(&access, 6, 10).unwrap();
        assert_eq!(one, curve(&[(0, 8), (5, 8), (8, 4), (20, 0), (21, 4)]));
        assert_eq!(without(&access, 8, 20), None);
        let from_the_start = without(&curve(&[(0, 0), (3, 4)]), 0, 1);
        assert_eq!(from_the_start, Some(curve(&[(0, 4), (3, 4)])));
        let wave = RateCurve { period: Some(s(10)), ..curve(&[(0, 8), (5, 0)]) };
        let later = curve(&[(0, 8), (5, 8), (10, 8), (15, 0), (20, 8), (25, 0), (30, 8), (35, 0)]);
        assert_eq!(without(&wave, 4, 8), Some(later));
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
