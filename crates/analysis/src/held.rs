//! Samples that stand until the next one.

use crate::stats::Distribution;

/// A stretch of time over which one sample stood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch<T> {
    pub from_ns: i64,
    pub to_ns: i64,
    pub value: T,
}

impl<T> Stretch<T> {
    /// How long, in nanoseconds; positive.
    pub fn length_ns(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64
    }
}

/// Lets each sample stand until the next, and the last until `last_ns`, within `0..end_ns`.
/// `samples` must be sorted by time; of several at one time the last counts.
pub(crate) fn hold<T>(
    samples: impl IntoIterator<Item = (i64, T)>,
    last_ns: i64,
    end_ns: i64,
) -> Vec<Stretch<T>> {
    let mut stretches: Vec<Stretch<T>> = Vec::new();
    let mut samples = samples.into_iter().peekable();
    while let Some((from, value)) = samples.next() {
        let until = samples.peek().map_or(last_ns, |(next, _)| *next);
        let (from_ns, to_ns) = (from.max(0), until.min(end_ns));
        if from_ns < to_ns {
            stretches.push(Stretch { from_ns, to_ns, value });
        }
    }
    stretches
}

/// What `value` makes of each stretch, weighted by its length.
pub(crate) fn distribution<'a, T: 'a>(
    stretches: impl IntoIterator<Item = &'a Stretch<T>>,
    value: impl Fn(&T) -> Option<f64>,
) -> Distribution {
    let weighted = stretches
        .into_iter()
        .filter_map(|stretch| Some((value(&stretch.value)?, stretch.length_ns())));
    Distribution::weighted(weighted)
}

/// The total time, in nanoseconds, of the stretches that `holds` is true of.
pub(crate) fn total_ns<T>(stretches: &[Stretch<T>], holds: impl Fn(&T) -> bool) -> f64 {
    stretches.iter().filter(|stretch| holds(&stretch.value)).map(Stretch::length_ns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_until_the_next() {
        let held = hold([(-5, 'a'), (10, 'b'), (10, 'c'), (30, 'd'), (99, 'e')], 200, 50);
        let got: Vec<_> = held.iter().map(|s| (s.from_ns, s.to_ns, s.value)).collect();
        assert_eq!(got, [(0, 10, 'a'), (10, 30, 'c'), (30, 50, 'd')]);
        assert_eq!(total_ns(&held, |value| *value != 'c'), 30.0);
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let held = hold([(i64::MIN, 1.0), (i64::MAX, 2.0)], i64::MAX, i64::MAX);
        assert_eq!(distribution(&held, |value| Some(*value)).mean(), Some(1.0));
    }
}
