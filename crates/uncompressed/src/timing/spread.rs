//! Many values as a few: least, mean and greatest, and how often each whole number occurred.

use std::collections::BTreeMap;

use serde::Serialize;

/// Least, mean and greatest of several measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// Their mean.
    pub mean: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut gather = Gather::default();
        values.into_iter().for_each(|value| gather.add(value));
        gather.spread()
    }
}

/// A spread of values that come one by one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gather {
    count: f64,
    spread: Option<Spread>,
}

impl Gather {
    /// One more.
    pub fn add(&mut self, value: f64) {
        self.count += 1.0;
        let Spread { min, mean, max } =
            self.spread.unwrap_or(Spread { min: value, mean: value, max: value });
        // A running mean: the sum of many large values would lose digits.
        let mean = mean + (value - mean) / self.count;
        self.spread = Some(Spread { min: min.min(value), mean, max: max.max(value) });
    }

    /// Of all until now; `None` if there are none.
    pub const fn spread(&self) -> Option<Spread> {
        self.spread
    }
}

/// Whole numbers of packets: least, mean, greatest, and how often each occurred.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Levels {
    /// The least; 0 if there are none.
    pub min: i64,
    /// Their mean.
    pub mean: f64,
    /// The greatest.
    pub max: i64,
    /// Each value that occurred and how often, from the least.
    pub histogram: Vec<(i64, u64)>,
}

impl Levels {
    /// Of a count of each value.
    pub fn of(counts: &BTreeMap<i64, u64>) -> Self {
        let total: u64 = counts.values().sum();
        let sum: f64 = counts.iter().map(|(value, times)| *value as f64 * *times as f64).sum();
        Self {
            min: counts.first_key_value().map_or(0, |(value, _)| *value),
            mean: if total == 0 { 0.0 } else { sum / total as f64 },
            max: counts.last_key_value().map_or(0, |(value, _)| *value),
            histogram: counts.iter().map(|(value, times)| (*value, *times)).collect(),
        }
    }

    /// How many values are less than `limit`.
    pub fn below(&self, limit: i64) -> u64 {
        self.histogram.iter().filter(|(value, _)| *value < limit).map(|(_, times)| times).sum()
    }

    /// How many values are greater than `limit`.
    pub fn above(&self, limit: i64) -> u64 {
        self.histogram.iter().filter(|(value, _)| *value > limit).map(|(_, times)| times).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_and_levels() {
        let spread = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.min, spread.mean, spread.max), (1.0, 2.0, 3.0));
        assert_eq!(Spread::of([]), None);
        let levels = Levels::of(&BTreeMap::from([(-1, 1), (2, 3)]));
        assert_eq!((levels.min, levels.mean, levels.max), (-1, 1.25, 2));
        assert_eq!((levels.below(0), levels.above(0), levels.above(2)), (1, 3, 0));
    }
}
