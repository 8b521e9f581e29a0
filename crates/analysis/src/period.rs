//! The time that metrics are about.

use suiro_record::Trial;

use crate::duration_ns;
use crate::held::Stretch;

/// From the end of a trial's warm-up to the end of the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    /// When the warm-up ended; 0 without one.
    pub from_ns: i64,
    /// When the trial ended.
    pub to_ns: i64,
}

impl Period {
    /// The whole trial.
    pub fn whole(trial: &Trial) -> Self {
        Self { from_ns: 0, to_ns: duration_ns(trial) }
    }

    /// The trial without its warm-up: no time if it ended before that was over.
    pub fn measured(trial: &Trial) -> Self {
        let Self { to_ns, .. } = Self::whole(trial);
        Self { from_ns: warm_up_ns(trial).min(to_ns), to_ns }
    }

    /// True without a warm-up.
    pub const fn is_whole(self) -> bool {
        self.from_ns == 0
    }

    /// Whether a time is in it, its end excluded.
    pub fn contains(self, t_ns: i64) -> bool {
        (self.from_ns..self.to_ns).contains(&t_ns)
    }

    pub fn length_ns(self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64
    }

    /// Whether something of that time is of the warm-up.
    pub const fn skips(self, t_ns: i64) -> bool {
        !self.is_whole() && t_ns < self.from_ns
    }

    /// Whether a sample of that time says what had been counted in the warm-up.
    pub const fn is_counted_before(self, t_ns: i64) -> bool {
        !self.is_whole() && t_ns <= self.from_ns
    }

    /// Rows that are sorted by time, without those of the warm-up.
    pub fn after_warm_up<'r, 'a, R>(
        self,
        rows: &'r [&'a R],
        t_ns: impl Fn(&R) -> i64,
    ) -> &'r [&'a R] {
        &rows[rows.partition_point(|row| self.skips(t_ns(row)))..]
    }

    /// The last of such rows that says what had been counted in the warm-up; `None` without a warm-up.
    pub fn last_before<'a, R>(self, rows: &[&'a R], t_ns: impl Fn(&R) -> i64) -> Option<&'a R> {
        let after = rows.partition_point(|row| self.is_counted_before(t_ns(row)));
        after.checked_sub(1).map(|last| rows[last])
    }

    /// Such rows from that one on, or all of them if there is none.
    pub fn since_last_before<'r, 'a, R>(
        self,
        rows: &'r [&'a R],
        t_ns: impl Fn(&R) -> i64,
    ) -> &'r [&'a R] {
        let after = rows.partition_point(|row| self.is_counted_before(t_ns(row)));
        &rows[after.saturating_sub(1)..]
    }

    /// The parts of stretches that are in it.
    pub fn cut<T>(self, stretches: Vec<Stretch<T>>) -> Vec<Stretch<T>> {
        let part = |stretch: Stretch<T>| {
            let (from_ns, to_ns) = self.part((stretch.from_ns, stretch.to_ns))?;
            Some(Stretch { from_ns, to_ns, ..stretch })
        };
        stretches.into_iter().filter_map(part).collect()
    }

    /// The part of a time, from when until when, that is in it; `None` if there is none.
    pub fn part(self, (from_ns, to_ns): (i64, i64)) -> Option<(i64, i64)> {
        let (from_ns, to_ns) = (from_ns.max(self.from_ns), to_ns.min(self.to_ns));
        (from_ns < to_ns).then_some((from_ns, to_ns))
    }
}

/// For how long a trial warmed up, in nanoseconds; 0 if that is not a positive finite number.
pub fn warm_up_ns(trial: &Trial) -> i64 {
    let ns = trial.warm_up_s * 1e9;
    if ns.is_finite() && ns > 0.0 { ns.round() as i64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_in_the_warm_up_counts_with_its_part_after_it() {
        let period = Period { from_ns: 10, to_ns: 30 };
        assert_eq!(period.part((5, 12)), Some((10, 12)));
        assert_eq!(period.part((25, 99)), Some((25, 30)));
        assert_eq!(period.part((5, 10)), None);
        let stretches = [(0, 10, 'a'), (10, 20, 'b'), (29, 40, 'c')];
        let stretches = stretches.map(|(from_ns, to_ns, value)| Stretch { from_ns, to_ns, value });
        let cut: Vec<_> =
            period.cut(stretches.to_vec()).iter().map(|it| (it.value, it.to_ns)).collect();
        assert_eq!(cut, [('b', 20), ('c', 30)]);
    }

    #[test]
    fn rows_of_the_warm_up_are_left_out_and_the_last_has_what_was_counted() {
        let times: [i64; 5] = [-5, 0, 9, 10, 11];
        let rows: Vec<&i64> = times.iter().collect();
        let period = Period { from_ns: 10, to_ns: 30 };
        assert_eq!(period.after_warm_up(&rows, |t_ns| *t_ns), [&10, &11]);
        assert_eq!(period.last_before(&rows, |t_ns| *t_ns), Some(&10));
        assert_eq!(period.since_last_before(&rows, |t_ns| *t_ns), [&10, &11]);
        assert_eq!(period.since_last_before(&rows[4..], |t_ns| *t_ns), [&11]);
        // Without a warm-up, nothing is left out, and nothing was counted before.
        let period = Period { from_ns: 0, to_ns: 30 };
        assert_eq!(period.after_warm_up(&rows, |t_ns| *t_ns).len(), 5);
        assert_eq!(period.last_before(&rows, |t_ns| *t_ns), None);
    }
}
