//! The slices of a trial's time.

use super::SLICE_NS;

/// Most slices; in a trial of more than half an hour, each is longer.
const MOST: i64 = 36_000;

/// A trial's time in slices of [`SLICE_NS`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Slices {
    pub end_ns: i64,
    pub count: usize,
    step_ns: i64,
}

impl Slices {
    pub fn new(end_ns: i64) -> Self {
        let end_ns = end_ns.max(0);
        let step_ns = SLICE_NS.max(end_ns / MOST + 1);
        let count = end_ns / step_ns + i64::from(end_ns % step_ns > 0);
        Self { end_ns, count: usize::try_from(count).unwrap_or(0), step_ns }
    }

    /// The slice of a time, or the nearest.
    pub fn at(self, t_ns: i64) -> usize {
        let index = usize::try_from(t_ns.max(0) / self.step_ns).unwrap_or(usize::MAX);
        index.min(self.count.saturating_sub(1))
    }

    /// When a slice begins and ends.
    pub fn span(self, index: usize) -> (i64, i64) {
        let from = (index as i64).saturating_mul(self.step_ns);
        (from, from.saturating_add(self.step_ns).min(self.end_ns))
    }

    /// Adds to each slice how much of a stretch of time lies in it.
    pub fn spread(self, from_ns: i64, to_ns: i64, mut add: impl FnMut(usize, i64)) {
        let (from, to) = (from_ns.max(0), to_ns.min(self.end_ns));
        if from >= to || self.count == 0 {
            return;
        }
        for index in self.at(from)..=self.at(to - 1) {
            let (start, end) = self.span(index);
            let part = to.min(end) - from.max(start);
            if part > 0 {
                add(index, part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_shared_among_the_slices_that_it_touches() {
        let slices = Slices::new(2 * SLICE_NS + 10);
        assert_eq!((slices.count, slices.span(2)), (3, (2 * SLICE_NS, 2 * SLICE_NS + 10)));
        let mut parts = Vec::new();
        slices.spread(SLICE_NS - 3, i64::MAX, |index, ns| parts.push((index, ns)));
        assert_eq!(parts, [(0, 3), (1, SLICE_NS), (2, 10)]);
        slices.spread(5, 5, |_, _| unreachable!("nothing lies in no time"));
        Slices::new(-1).spread(0, 9, |_, _| unreachable!("a trial without time has no slices"));
    }
}
