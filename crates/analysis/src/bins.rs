//! Uniform time bins.

use std::ops::Range;

use crate::held::Stretch;

/// A trial's time cut into equal bins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bins {
    end_ns: i64,
    count: usize,
}

/// No bin is shorter, unless the trial is.
const SHORTEST_NS: i64 = 100_000_000;

impl Bins {
    /// Bins of 100 ms, or wider where that would be more than `most`.
    pub fn new(end_ns: i64, most: usize) -> Self {
        let finest = usize::try_from(end_ns.max(0) / SHORTEST_NS).unwrap_or(usize::MAX);
        let count = if end_ns > 0 { finest.clamp(1, most.max(1)) } else { 0 };
        Self { end_ns, count }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    pub fn width_ns(&self) -> f64 {
        self.end_ns as f64 / self.count.max(1) as f64
    }

    pub fn width_s(&self) -> f64 {
        self.width_ns() / 1e9
    }

    /// The bin of a time; `None` outside the trial.
    pub fn index(&self, t_ns: i64) -> Option<usize> {
        let inside = self.count > 0 && (0..self.end_ns).contains(&t_ns);
        inside.then(|| ((t_ns as f64 / self.width_ns()) as usize).min(self.count - 1))
    }

    /// Adds up amounts by bin.
    pub fn sum(&self, amounts: impl IntoIterator<Item = (i64, f64)>) -> Vec<f64> {
        let mut bins = vec![0.0; self.count];
        for (t_ns, amount) in amounts {
            if let Some(index) = self.index(t_ns) {
                bins[index] += amount;
            }
        }
        bins
    }

    /// The mean of the values in each bin; `None` in a bin without any.
    pub fn mean(&self, values: impl IntoIterator<Item = (i64, f64)>) -> Vec<Option<f64>> {
        let mut bins = vec![(0.0, 0u32); self.count];
        for (t_ns, value) in values {
            if let Some(index) = self.index(t_ns) {
                bins[index].0 += value;
                bins[index].1 += 1;
            }
        }
        bins.into_iter().map(|(sum, n)| (n > 0).then(|| sum / f64::from(n))).collect()
    }

    /// Which bins a part of these times is in.
    pub fn reached(&self, times: &[Range<i64>]) -> Vec<bool> {
        let mut reached = vec![false; self.count];
        for time in times {
            let stretch = Stretch { from_ns: time.start, to_ns: time.end, value: () };
            reached[self.touched(&stretch)].fill(true);
        }
        reached
    }

    /// The greatest value in each bin; `None` in a bin without any.
    pub fn max(&self, values: impl IntoIterator<Item = (i64, f64)>) -> Vec<Option<f64>> {
        let mut bins: Vec<Option<f64>> = vec![None; self.count];
        for (t_ns, value) in values {
            if let Some(index) = self.index(t_ns) {
                bins[index] = Some(bins[index].map_or(value, |seen| seen.max(value)));
            }
        }
        bins
    }

    /// The mean over time of values that stand over stretches; `None` in a bin that none touches.
    /// Stretches may overlap: then each counts for its time.
    pub fn held_mean(&self, stretches: impl IntoIterator<Item = Stretch<f64>>) -> Vec<Option<f64>> {
        let ratio = |(sum, time): (f64, f64)| (time > 0.0).then(|| sum / time);
        self.overlaps(stretches).into_iter().map(ratio).collect()
    }

    /// The value that stands at the end of each bin, or last stood in it; `None` in a bin that none
    /// touches. Stretches must be sorted.
    pub fn held_last(&self, stretches: impl IntoIterator<Item = Stretch<f64>>) -> Vec<Option<f64>> {
        let mut bins = vec![None; self.count];
        for stretch in stretches {
            for index in self.touched(&stretch) {
                bins[index] = Some(stretch.value);
            }
        }
        bins
    }

    /// For each bin, value × time and time.
    fn overlaps(&self, stretches: impl IntoIterator<Item = Stretch<f64>>) -> Vec<(f64, f64)> {
        let mut bins = vec![(0.0, 0.0); self.count];
        let width = self.width_ns();
        for stretch in stretches {
            for index in self.touched(&stretch) {
                let (start, end) = (index as f64 * width, (index + 1) as f64 * width);
                let time = end.min(stretch.to_ns as f64) - start.max(stretch.from_ns as f64);
                if time > 0.0 {
                    bins[index].0 += stretch.value * time;
                    bins[index].1 += time;
                }
            }
        }
        bins
    }

    fn touched<T>(&self, stretch: &Stretch<T>) -> Range<usize> {
        let (from, to) = (stretch.from_ns.max(0), stretch.to_ns.min(self.end_ns));
        if from >= to {
            return 0..0;
        }
        match (self.index(from), self.index(to - 1)) {
            (Some(first), Some(last)) => first..last + 1,
            _ => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn bins_are_at_least_a_tenth_of_a_second_and_at_most_as_many_as_asked() {
        assert_eq!(Bins::new(60 * SECOND, 600).count, 600);
        assert_eq!(Bins::new(40 * SECOND, 600).count, 400);
        assert_eq!(Bins::new(600 * SECOND, 600).width_s(), 1.0);
        assert_eq!(Bins::new(5, 600).count, 1);
        assert_eq!(Bins::new(0, 600).count, 0);
    }

    #[test]
    fn stretches_are_shared_among_bins() {
        let bins = Bins::new(SECOND, 4);
        let of = |from, to, value| Stretch { from_ns: from, to_ns: to, value };
        let held = [of(0, SECOND / 8, 2.0), of(SECOND / 8, SECOND / 2, 4.0)];
        assert_eq!(bins.held_mean(held), [Some(3.0), Some(4.0), None, None]);
        assert_eq!(bins.held_last(held), [Some(4.0), Some(4.0), None, None]);
    }

    proptest! {
        #[test]
        fn sums_conserve(
            end in 1i64..200 * SECOND,
            amounts in prop::collection::vec((any::<i64>(), 0u32..100_000), 0..50),
            inside in prop::collection::vec((0.0..1.0f64, 0u32..100_000), 0..50),
        ) {
            let scaled = inside.iter().map(|&(at, n)| ((at * end as f64) as i64, n));
            let all: Vec<(i64, u32)> = amounts.into_iter().chain(scaled).collect();
            let bins = Bins::new(end, 600).sum(all.iter().map(|&(t, n)| (t, f64::from(n))));
            let within = all.iter().filter(|(t, _)| (0..end).contains(t));
            let want: f64 = within.map(|&(_, n)| f64::from(n)).sum();
            prop_assert_eq!(bins.iter().sum::<f64>(), want);
        }

        #[test]
        fn means_lie_within_what_they_are_of(
            end in 1i64..200 * SECOND,
            held in prop::collection::vec((any::<i64>(), any::<i64>(), -1e9..1e9), 0..30),
        ) {
            let stretches = held.iter().map(|&(from_ns, to_ns, value)| {
                Stretch { from_ns, to_ns, value }
            });
            let (min, max) = held.iter().fold((f64::MAX, f64::MIN), |(min, max), h| {
                (min.min(h.2), max.max(h.2))
            });
            for mean in Bins::new(end, 100).held_mean(stretches).into_iter().flatten() {
                prop_assert!(min - 1e-3 <= mean && mean <= max + 1e-3);
            }
        }
    }
}
