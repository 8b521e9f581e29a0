//! L2A: rungs chosen by online convex optimisation, for low latency.
//!
//! Karagkioules, Mekuria, Griffioen and Wagenaar, "Online learning for low-latency adaptive streaming" (MMSys 2020). A
//! probability for each rung is learnt: after each segment, a step along the gradient of the Lagrangian moves it towards
//! rungs that the throughput of that segment bore, and away from those that it did not. A multiplier grows with the time
//! by which downloads took longer than the segments last, and with it the caution. The rung is the one whose bit rate is
//! nearest to the mean over the probabilities, and rises by one step at a time.
//!
//! Constants and start-up are those of dash.js (`L2ARule`): a horizon of four segments; before [`WARM`] is buffered, the
//! throughput rule decides. Five things differ from dash.js 5.1. Half of the buffer is enough to begin, where that is less than
//! [`WARM`]; there, a player with a target of 1 s hardly begins. The throughput is that of [`crate::estimator`]; there, it is
//! the last segment's, as with [`crate::ChunkEstimator::LastSegment`]. The multiplier follows the mean over the new probabilities;
//! there, what the step has changed is added once more. There, bit rates are multiplied by the playback rate. And there, the
//! multiplier and the rise by one step take bit/s for kbit/s; here units agree.

use suiro_units::{BitRate, Duration};

use crate::choice::{Choice, Limits, Look};
use crate::{Ladder, throughput};

/// Segments over which the cost is kept small.
const HORIZON: f64 = 4.0;
/// How much the multiplier grows when a rung above the throughput is chosen.
const REACT: f64 = 2.0;
/// The buffer with which learning begins; half of what a smaller one holds.
const WARM: Duration = Duration::from_millis(1500);

/// What has been learnt.
#[derive(Debug, Clone)]
pub(crate) struct L2a {
    /// Duration of a segment, in seconds.
    segment_s: f64,
    warm: Duration,
    /// The probability of each rung; empty before learning has begun.
    weights: Vec<f64>,
    multiplier: f64,
    last: usize,
}

impl L2a {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            segment_s: limits.segment.as_secs_f64(),
            warm: WARM.min(limits.buffer / 2),
            weights: Vec::new(),
            multiplier: 0.0,
            last: 0,
        }
    }

    /// The playhead has jumped: learning begins again.
    pub(crate) fn on_seek(&mut self) {
        self.weights.clear();
        self.multiplier = 0.0;
    }

    /// Another rung than the one that was chosen is fetched.
    pub(crate) fn held(&mut self, rung: usize) {
        self.last = rung;
    }

    pub(crate) fn choose(&mut self, ladder: &Ladder, look: &Look) -> Choice {
        let estimate = look.estimate.filter(|rate| !rate.is_zero());
        let rung = match estimate {
            Some(rate) if !self.weights.is_empty() => self.step(ladder, rate),
            _ => throughput::rung(ladder, estimate),
        };
        if self.weights.is_empty() && estimate.is_some() && look.buffer >= self.warm {
            self.weights = vec![0.0; ladder.len()];
            self.weights[rung] = 1.0;
            self.multiplier = caution();
        }
        self.last = rung;
        Choice::at_once(rung)
    }

    /// Learns from the throughput, and chooses.
    fn step(&mut self, ladder: &Ladder, rate: BitRate) -> usize {
        // How long a second of each rung takes to come.
        let share = |rung: &BitRate| rung.as_bps() as f64 / rate.as_bps() as f64;
        let shares: Vec<f64> = ladder.rungs().iter().map(share).collect();
        let caution = caution();
        let pace = self.segment_s / (2.0 * HORIZON.max(caution * HORIZON.sqrt()));
        let mut weights: Vec<f64> = self
            .weights
            .iter()
            .zip(&shares)
            .map(|(weight, share)| {
                let sign = if *share > 1.0 { -1.0 } else { 1.0 };
                weight + sign * pace * (self.multiplier + caution) * share
            })
            .collect();
        project(&mut weights);
        let mean = |of: &[f64]| of.iter().zip(&shares).map(|(weight, share)| weight * share).sum();
        // What the downloads took longer than the segments last: the mean before the step, and what the step changes.
        let took: f64 = mean(&weights);
        self.multiplier = (self.multiplier + self.segment_s * (took - 1.0)).max(0.0);
        self.weights = weights;
        let mut rung = nearest(&shares, took);
        if rung > self.last && shares[self.last + 1] <= 1.0 {
            rung = self.last + 1;
        }
        if shares[rung] >= 1.0 {
            self.multiplier = REACT * self.multiplier.max(caution);
        }
        rung
    }
}

/// The multiplier with which learning begins, and the least that a rung above the throughput leaves: dash.js's `VL`.
fn caution() -> f64 {
    HORIZON.powf(0.99)
}

/// The place of the value that is nearest to `wanted`; the first of several.
fn nearest(values: &[f64], wanted: f64) -> usize {
    let off = |place: &usize| (values[*place] - wanted).abs();
    (0..values.len()).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(0)
}

/// The nearest probabilities: what is not negative, with the sum 1 (Wang and Carreira-Perpiñán, "Projection onto the
/// probability simplex", arXiv 1309.1541).
fn project(weights: &mut [f64]) {
    let mut sorted = weights.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (value, count) in sorted.iter().zip(1u32..) {
        sum += value;
        let candidate = (1.0 - sum) / f64::from(count);
        if value + candidate > 0.0 {
            shift = candidate;
        }
    }
    for weight in weights {
        *weight = (*weight + shift).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use suiro_units::Time;

    use super::*;

    fn ladder() -> Ladder {
        Ladder::new([300, 700, 1500, 3000].map(BitRate::from_kbps).to_vec()).unwrap()
    }

    fn look(buffer_ms: u64, kbps: u64) -> Look {
        let (now, buffer) = (Time::ZERO, Duration::from_millis(buffer_ms));
        Look { now, buffer, estimate: Some(BitRate::from_kbps(kbps)), in_chunks: true }
    }

    fn learner() -> L2a {
        L2a::new(Limits { segment: Duration::from_secs(1), buffer: Duration::from_secs(4) })
    }

    #[test]
    fn throughput_decides_until_the_buffer_is_warm_then_rungs_rise_by_one() {
        let (ladder, mut learner) = (ladder(), learner());
        assert_eq!(learner.choose(&ladder, &look(0, 1000)).rung, 1);
        assert!(learner.weights.is_empty());
        assert_eq!(learner.choose(&ladder, &look(1500, 1000)).rung, 1);
        assert_eq!(learner.weights, [0.0, 1.0, 0.0, 0.0]);
        let rungs: Vec<usize> =
            (0..60).map(|_| learner.choose(&ladder, &look(2000, 10_000)).rung).collect();
        assert!(rungs.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{rungs:?}");
        assert_eq!(rungs.last(), Some(&3));
        // The throughput falls: the rung follows within three segments.
        let rungs: Vec<usize> =
            (0..6).map(|_| learner.choose(&ladder, &look(2000, 1000)).rung).collect();
        assert!(rungs[3..].iter().all(|rung| *rung <= 1), "{rungs:?}");
    }

    #[test]
    fn the_first_step_by_hand() {
        let (ladder, mut learner) = (ladder(), learner());
        learner.choose(&ladder, &look(1500, 1000));
        assert!((learner.multiplier - 3.945).abs() < 1e-3, "4^0.99: {}", learner.multiplier);
        learner.choose(&ladder, &look(2000, 10_000));
        // Half of each rung's share of the throughput is added: [0.015, 1.035, 0.075, 0.15]. The nearest probabilities:
        let off = learner.weights.iter().zip([0.0, 0.9425, 0.0, 0.0575]);
        assert!(off.clone().all(|(is, wanted)| (is - wanted).abs() < 1e-9), "{off:?}");
        // Their mean takes 0.083 s for a segment of 1 s.
        assert!((learner.multiplier - 3.028).abs() < 1e-3, "{}", learner.multiplier);
    }

    #[test]
    fn the_nearest_probabilities_by_hand() {
        let projected = |mut weights: Vec<f64>| {
            project(&mut weights);
            weights
        };
        assert_eq!(projected(vec![0.5, 0.5]), [0.5, 0.5]);
        assert_eq!(projected(vec![2.0, 0.0]), [1.0, 0.0]);
        assert_eq!(projected(vec![1.0, 1.0]), [0.5, 0.5]);
        assert_eq!(projected(vec![-3.0, 0.25, 0.75]), [0.0, 0.25, 0.75]);
    }

    proptest! {
        /// Whatever is measured, probabilities are probabilities, and rungs are rungs.
        #[test]
        fn it_goes_on_with_any_throughput(steps in prop::collection::vec((0u64..6000, 0u64..100_000_000), 1..60)) {
            let (ladder, mut learner) = (ladder(), learner());
            for (buffer, kbps) in steps {
                let rung = learner.choose(&ladder, &look(buffer, kbps)).rung;
                prop_assert!(rung < ladder.len());
                let sum: f64 = learner.weights.iter().sum();
                prop_assert!(learner.weights.is_empty() || (sum - 1.0).abs() < 1e-6, "{sum}");
                prop_assert!(learner.weights.iter().all(|weight| *weight >= 0.0));
                prop_assert!(learner.multiplier.is_finite());
            }
        }
    }
}
