//! Two clocks compared by the packets that both hosts saw, in both directions: we send no packets of our own. As in NTP
//! (RFC 5905 §8, §10), the fastest packets of each direction give the best estimate.
//!
//! A packet that the first host sent at *t₁* by its clock and the second received at *t₂* by its own shows *t₂ − t₁* =
//! offset + delay; one in the other direction shows offset − delay. Delays are not negative, so the offset lies between
//! the maximum of the latter and the minimum of the former: the middle is the estimate, and half the width is its
//! largest error, however unequal the two directions are.

use super::{Alignment, How};

/// Windows into which the time is divided to estimate drift.
const WINDOWS: usize = 16;
/// With fewer windows that have packets in both directions, drift is not estimated.
const WINDOWS_LEAST: usize = 8;
/// Clocks do not drift more than this (RFC 5905 §11.3 bounds it at 500 ppm).
const DRIFT_MOST_PPB: f64 = 500_000.0;

/// One packet that both hosts saw, each by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// By the first host's clock, in nanoseconds.
    pub first_ns: i64,
    /// By the second host's clock.
    pub second_ns: i64,
    /// Whether the first host sent it.
    pub outward: bool,
}

impl Pair {
    fn difference(&self) -> i64 {
        self.second_ns.saturating_sub(self.first_ns)
    }
}

/// Bounds of the second clock's offset from the first.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    least: Option<f64>,
    most: Option<f64>,
}

impl Bounds {
    fn narrow(&mut self, outward: bool, difference: f64) {
        if outward {
            self.most = Some(self.most.map_or(difference, |most| most.min(difference)));
        } else {
            self.least = Some(self.least.map_or(difference, |least| least.max(difference)));
        }
    }
    fn both(self) -> Option<(f64, f64)> {
        self.least.zip(self.most)
    }
}

/// The alignment of the second clock to the first; `None` unless packets went in both directions.
pub fn estimate(pairs: &[Pair]) -> Option<Alignment> {
    let reference = pairs.iter().map(|pair| pair.second_ns).min()?;
    let base = pairs.first()?.difference();
    let drifts = [0.0, drift_ppb(pairs, reference, base)];
    let estimates =
        drifts.into_iter().filter_map(|drift| with_drift(pairs, reference, base, drift));
    estimates.min_by_key(|alignment| alignment.error_ns)
}

fn elapsed(pair: &Pair, reference: i64) -> f64 {
    pair.second_ns.saturating_sub(reference) as f64
}

/// The offset at the reference, if the clocks drift at this rate. Bounds that cross mean that they do not: the error is
/// then the amount by which they cross.
fn with_drift(pairs: &[Pair], reference: i64, base: i64, drift_ppb: f64) -> Option<Alignment> {
    let mut bounds = Bounds::default();
    for pair in pairs {
        let drifted = elapsed(pair, reference) * drift_ppb / 1e9;
        bounds.narrow(pair.outward, pair.difference().saturating_sub(base) as f64 - drifted);
    }
    let (least, most) = bounds.both()?;
    let middle = ((least + most) / 2.0).round() as i64;
    Some(Alignment {
        how: How::Exchange,
        offset_ns: base.saturating_add(middle).saturating_neg(),
        reference_ns: u64::try_from(reference).ok()?,
        drift_ppb: -drift_ppb,
        error_ns: Some(((most - least) / 2.0).abs().ceil() as u64),
    })
}

/// Slope of the middles of the bounds over the windows, by least squares; 0 where too little is known.
fn drift_ppb(pairs: &[Pair], reference: i64, base: i64) -> f64 {
    let span = pairs.iter().map(|pair| elapsed(pair, reference)).fold(0.0, f64::max) + 1.0;
    let mut windows = [Bounds::default(); WINDOWS];
    for pair in pairs {
        let window = (elapsed(pair, reference) / span * WINDOWS as f64) as usize;
        let difference = pair.difference().saturating_sub(base) as f64;
        windows[window.min(WINDOWS - 1)].narrow(pair.outward, difference);
    }
    let middles: Vec<(f64, f64)> = (0..)
        .zip(windows)
        .filter_map(|(number, window)| {
            let (least, most) = window.both()?;
            Some((f64::from(number) * span / WINDOWS as f64, (least + most) / 2.0))
        })
        .collect();
    if middles.len() < WINDOWS_LEAST {
        return 0.0;
    }
    let slope = slope(&middles) * 1e9;
    if slope.abs() <= DRIFT_MOST_PPB { slope } else { 0.0 }
}

fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let above: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let below: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if below > 0.0 { above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use suiro_units::Seed;

    use super::*;

    const MS: i64 = 1_000_000;

    /// Packets every 10 ms for `seconds`, in both directions, each taking at least 1 ms and usually more.
    fn exchange(seed: u64, seconds: i64, offset: i64, drift_ppb: f64) -> Vec<Pair> {
        let mut random = Seed(seed).random();
        let second = |t: i64| t + offset + (t as f64 * drift_ppb / 1e9) as i64;
        (0..seconds * 100)
            .map(|number| {
                let (sent, took) =
                    (1_000_000 * MS + number * 10 * MS, MS + random.below(8_000_000) as i64);
                let outward = number % 2 == 0;
                let (first, at_second) =
                    if outward { (sent, sent + took) } else { (sent + took, sent) };
                Pair { first_ns: first, second_ns: second(at_second), outward }
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn the_truth_is_within_the_error(
            seed: u64,
            seconds in 2i64..120,
            offset in -900_000_000_000i64..900_000_000_000,
            drift in -100_000.0f64..100_000.0,
        ) {
            let pairs = exchange(seed, seconds, offset, drift);
            let alignment = estimate(&pairs).unwrap();
            let error = alignment.error_ns.unwrap() as i64;
            for pair in &pairs {
                // By the first host's clock, the packet cannot have taken less than its 1 ms.
                let second = alignment.to_first(pair.second_ns as u64);
                let took = if pair.outward { second - pair.first_ns } else { pair.first_ns - second };
                prop_assert!(took + error >= -1_000, "{took} ns ± {error} ns");
            }
            // Half of the shortest round trip, plus what remains of two minutes' drift.
            prop_assert!(error < 3 * MS, "{error} ns");
        }
    }

    #[test]
    fn a_steady_clock_is_known_to_half_the_least_round_trip() {
        let alignment = estimate(&exchange(1, 60, 5_000 * MS, 0.0)).unwrap();
        let error = alignment.error_ns.unwrap();
        assert!((1_000_000..1_100_000).contains(&error), "{error} ns");
        assert!((alignment.offset_ns + 5_000 * MS).unsigned_abs() <= error);
    }

    #[test]
    fn one_direction_is_not_enough() {
        let outward = exchange(1, 5, 0, 0.0).into_iter().filter(|pair| pair.outward);
        assert_eq!(estimate(&outward.collect::<Vec<_>>()), None);
        assert_eq!(estimate(&[]), None);
    }
}
