//! Means, percentiles, and the confidence interval of a mean.

use crate::student::half_width_of_whole;

/// Weighted values, sorted: what means and percentiles are taken from.
///
/// The weight is the time that a value stood, or 1 for a packet. Values that are not finite and
/// weights that are not positive are left out.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    sorted: Vec<(f64, f64)>,
    weight: f64,
}

impl Distribution {
    /// From values and their weights, in any order.
    pub fn weighted(values: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut sorted: Vec<(f64, f64)> = values
            .into_iter()
            .filter(|(value, weight)| value.is_finite() && weight.is_finite() && *weight > 0.0)
            .collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let weight = sorted.iter().map(|(_, weight)| weight).sum();
        Self { sorted, weight }
    }

    /// From values that all count the same, in any order.
    pub fn equal(values: impl IntoIterator<Item = f64>) -> Self {
        Self::weighted(values.into_iter().map(|value| (value, 1.0)))
    }

    /// The mean; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        let (min, max) = (self.min()?, self.max()?);
        let mean = self.sorted.iter().map(|(value, weight)| value * (weight / self.weight)).sum();
        Some(f64::clamp(mean, min, max))
    }

    /// The least value; `None` of nothing.
    pub fn min(&self) -> Option<f64> {
        self.sorted.first().map(|(value, _)| *value)
    }

    /// The greatest value; `None` of nothing.
    pub fn max(&self) -> Option<f64> {
        self.sorted.last().map(|(value, _)| *value)
    }

    /// The least value that at least `share` (0 to 1) of the weight does not exceed; `None` of
    /// nothing. Hyndman and Fan, "Sample quantiles in statistical packages", 1996, definition 1.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let wanted = share * self.weight;
        let mut below = 0.0;
        let reached = self.sorted.iter().find(|(_, weight)| {
            below += weight;
            below >= wanted * (1.0 - 1e-12)
        });
        reached.map(|(value, _)| *value).or(self.max())
    }
}

/// Several measurements of one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// How many.
    pub n: u32,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, with n − 1; `None` of one.
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t; `None` of one.
    pub ci95: Option<f64>,
}

impl Spread {
    /// Of the finite values; `None` if there is none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let n = u32::try_from(values.len()).ok()?;
        let mean = Distribution::equal(values.iter().copied()).mean()?;
        if n < 2 {
            return Some(Self { n, mean, sd: None, ci95: None });
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = (squares / f64::from(n - 1)).sqrt();
        let ci95 = half_width_of_whole(n - 1) * sd / f64::from(n).sqrt();
        Some(Self { n, mean, sd: Some(sd), ci95: Some(ci95) })
    }
}

/// By how much, of its own size, a computed value may differ from a number that it equals: the mean of equal values must
/// equal their value to the last bit but one.
pub(crate) const ROUNDING: f64 = 1e-12;

/// A value for a comparison with a bound: the bound itself if it differs from that only by rounding.
pub(crate) fn rounded(value: f64, bound: f64) -> f64 {
    if (value - bound).abs() <= ROUNDING * bound.abs() { bound } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let ten = Distribution::equal((1..=10).map(f64::from));
        assert_eq!(ten.percentile(0.5), Some(5.0));
        assert_eq!(ten.percentile(0.95), Some(10.0));
        assert_eq!(ten.percentile(0.9), Some(9.0));
        assert_eq!(ten.percentile(0.0), Some(1.0));
        assert_eq!(ten.percentile(1.0), Some(10.0));
        assert_eq!(Distribution::default().percentile(0.5), None);
    }

    #[test]
    fn weights_count() {
        // 10 for three seconds, 50 for one.
        let held = Distribution::weighted([(50.0, 1.0), (10.0, 3.0), (f64::NAN, 9.0), (7.0, 0.0)]);
        assert_eq!(held.mean(), Some(20.0));
        assert_eq!(held.percentile(0.75), Some(10.0));
        assert_eq!(held.percentile(0.76), Some(50.0));
    }

    #[test]
    fn spread_by_hand() {
        // 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, sd √13, t(2) = 0.95·√(2/0.0975).
        let spread = Spread::of([2.0, 4.0, 9.0]).unwrap();
        assert_eq!((spread.n, spread.mean), (3, 5.0));
        assert!((spread.sd.unwrap() - 13f64.sqrt()).abs() < 1e-12);
        let t = 0.95 * (2.0f64 / 0.0975).sqrt();
        assert!((spread.ci95.unwrap() - t * (13.0f64 / 3.0).sqrt()).abs() < 1e-9);
        assert_eq!(Spread::of([7.0]).unwrap().ci95, None);
        assert_eq!(Spread::of([f64::NAN]), None);
    }

    #[test]
    fn values_that_differ_by_rounding_equal_their_bound() {
        assert_eq!(rounded(0.1 + 0.2, 0.3), 0.3);
        assert_eq!((rounded(0.300_001, 0.3), rounded(1e-300, 0.0)), (0.300_001, 1e-300));
    }

    proptest! {
        #[test]
        fn mean_and_percentiles_lie_between_min_and_max(
            values in prop::collection::vec((-1e12..1e12, 1e-3..1e9), 1..60),
            share in 0.0..=1.0,
        ) {
            let held = Distribution::weighted(values);
            let (min, max) = (held.min().unwrap(), held.max().unwrap());
            for value in [held.mean().unwrap(), held.percentile(share).unwrap()] {
                prop_assert!(min <= value && value <= max);
            }
        }
    }
}
