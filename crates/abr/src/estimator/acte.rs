//! ACTE: the rate of the next chunks, predicted from those before (Bentaleb, Timmerer, Begen and Zimmermann, "Bandwidth
//! prediction in low-latency chunked streaming", NOSSDAV 2019; patent US 11 621 985).
//!
//! The mean over a sliding window of chunks is the measurement. A linear filter predicts the next one from the last few, and
//! learns from each error by recursive least squares (Haykin, "Adaptive Filter Theory", chapter "The RLS algorithm").
//!
//! The sources at hand name the method, but not its parameters: those here are ours. Three things are ours as well. A chunk that
//! came too fast to have a rate does not count. The prediction is kept to what the last measurements make likely. And the inverse
//! correlation matrix is set back when it has grown too much: while the rate is steady, forgetting makes it grow without bound.

use suiro_units::BitRate;

use super::Sample;
use super::chunks::SHORT;

/// Chunks of the sliding window.
const WINDOW: usize = 3;
/// Measurements that a prediction is made of.
const TAPS: usize = 3;
/// The weight of an error is this to the power of its age in chunks.
const FORGETTING: f64 = 0.999;
/// The diagonal of the inverse correlation matrix to begin with, for measurements in Mbit/s: large, as nothing is known.
const INVERSE: f64 = 1000.0;
/// The trace of the matrix that is too much.
const INVERSE_MAX: f64 = 1e6;
/// The least and the most of a prediction, in shares of the least and the greatest of its measurements.
const LIKELY: (f64, f64) = (0.5, 2.0);

type Taps = [f64; TAPS];

/// What has been measured and learnt. All rates are in Mbit/s.
#[derive(Debug, Clone)]
pub(super) struct Acte {
    /// The last chunks, the newest first, and how many there are.
    chunks: [f64; WINDOW],
    count: usize,
    /// The last measurements, the newest first; `None` until there are enough.
    means: Option<Taps>,
    filter: Filter,
    predicted: f64,
}

impl Acte {
    pub fn new() -> Self {
        let (chunks, filter) = ([0.0; WINDOW], Filter::new());
        Self { chunks, count: 0, means: None, filter, predicted: 0.0 }
    }

    /// A chunk came; returns its rate.
    pub fn add(&mut self, chunk: &Sample) -> Option<BitRate> {
        let rate = (chunk.took() > SHORT).then(|| chunk.bytes / chunk.took())?;
        self.add_rate(rate);
        Some(rate)
    }

    fn add_rate(&mut self, rate: BitRate) {
        push(&mut self.chunks, rate.as_bps() as f64 / 1e6);
        self.count = (self.count + 1).min(WINDOW);
        let mean = self.chunks[..self.count].iter().sum::<f64>() / self.count as f64;
        let Some(means) = self.means.as_mut().filter(|_| self.count == WINDOW) else {
            // The window is not full: there is nothing to learn yet.
            (self.means, self.predicted) = (Some([mean; TAPS]), mean);
            return;
        };
        self.filter.learn(means, mean);
        push(means, mean);
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = means.iter().copied().fold(0.0, f64::max);
        self.predicted = self.filter.predict(means).clamp(LIKELY.0 * least, LIKELY.1 * greatest);
        if self.predicted.is_nan() {
            (self.filter, self.predicted) = (Filter::new(), mean);
        }
    }

    /// The rate of the next chunks; `None` before the first.
    pub fn estimate(&self) -> Option<BitRate> {
        (self.count > 0).then(|| BitRate::from_bps((self.predicted * 1e6).round() as u64))
    }
}

/// A linear filter that learns by recursive least squares.
#[derive(Debug, Clone)]
struct Filter {
    weights: Taps,
    /// The inverse correlation matrix of its inputs.
    inverse: [Taps; TAPS],
}

impl Filter {
    fn new() -> Self {
        Self { weights: [0.0; TAPS], inverse: diagonal() }
    }

    fn predict(&self, input: &Taps) -> f64 {
        dot(&self.weights, input)
    }

    /// For this input, that is the desired response.
    fn learn(&mut self, input: &Taps, desired: f64) {
        let spread = self.inverse.map(|row| dot(&row, input));
        let scale = FORGETTING + dot(&spread, input);
        let gain = spread.map(|it| it / scale);
        let error = desired - self.predict(input);
        for (weight, gain) in self.weights.iter_mut().zip(gain) {
            *weight += gain * error;
        }
        for (row, gain) in self.inverse.iter_mut().zip(gain) {
            for (cell, spread) in row.iter_mut().zip(spread) {
                *cell = (*cell - gain * spread) / FORGETTING;
            }
        }
        let trace: f64 = (0..TAPS).map(|at| self.inverse[at][at]).sum();
        if trace.is_nan() || trace > INVERSE_MAX {
            self.inverse = diagonal();
        }
    }
}

fn diagonal() -> [Taps; TAPS] {
    std::array::from_fn(|row| {
        std::array::from_fn(|column| if row == column { INVERSE } else { 0.0 })
    })
}

fn dot(one: &Taps, other: &Taps) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Puts a value in front; the last is left out.
fn push(values: &mut [f64], value: f64) {
    values.rotate_right(1);
    values[0] = value;
}

#[cfg(test)]
mod tests {
    use suiro_units::{Bytes, Time};

    use super::*;

    fn kbps(acte: &Acte) -> u64 {
        acte.estimate().expect("an estimate").as_bps() / 1000
    }

    #[test]
    fn a_steady_rate_is_the_prediction_for_half_an_hour_of_frames() {
        let mut acte = Acte::new();
        assert_eq!(acte.estimate(), None);
        for chunk in 0..50_000 {
            acte.add_rate(BitRate::from_kbps(1500));
            assert!((1490..=1510).contains(&kbps(&acte)), "{} after {chunk}", kbps(&acte));
        }
    }

    #[test]
    fn a_fall_is_the_prediction_after_two_windows() {
        let mut acte = Acte::new();
        for chunk in 0..100u64 {
            acte.add_rate(BitRate::from_kbps(4000 + 10 * (chunk % 7)));
        }
        for _ in 0..2 * WINDOW {
            acte.add_rate(BitRate::from_kbps(1000));
        }
        assert!((950..=1050).contains(&kbps(&acte)), "{}", kbps(&acte));
    }

    #[test]
    fn a_chunk_without_duration_does_not_count() {
        let mut acte = Acte::new();
        let (requested, bytes) = (Time::ZERO, Bytes::new(1250));
        assert_eq!(acte.add(&Sample { bytes, requested, done: requested }), None);
        let done = Time::from_millis(10);
        assert_eq!(acte.add(&Sample { bytes, requested, done }), Some(BitRate::from_mbps(1)));
        assert_eq!(acte.estimate(), Some(BitRate::from_mbps(1)));
    }

    #[test]
    fn a_filter_learns_how_its_input_goes_on() {
        // Each value is 1.6 times the last less 0.8 times the one before: a damped swing, kept up by a little noise.
        let mut filter = Filter::new();
        let mut last = [1.0, 0.5, 0.0];
        let mut seed = 1u32;
        for _ in 0..1000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f64::from(seed >> 16) / 65_536.0 - 0.5;
            let next = 1.6 * last[0] - 0.8 * last[1] + 0.1 * noise;
            filter.learn(&last, next);
            push(&mut last, next);
        }
        let weights = filter.weights;
        let near = |weight: f64, wanted: f64| (weight - wanted).abs() < 0.1;
        assert!(near(weights[0], 1.6) && near(weights[1], -0.8), "{weights:?}");
    }

    #[test]
    fn rates_from_nothing_to_the_largest_are_predicted() {
        let mut acte = Acte::new();
        for step in 0..1000u64 {
            acte.add_rate(BitRate::from_bps(if step % 3 == 0 { u64::MAX } else { step % 2 }));
            assert!(acte.predicted.is_finite() && acte.predicted >= 0.0, "{acte:?}");
        }
    }
}
