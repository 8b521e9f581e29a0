//! LoL+: a self-organising map chooses rungs by throughput, latency, stalls and switches at once.
//!
//! Bentaleb, Akcay, Lim, Begen and Zimmermann, "Catching the moment with LoL+ in Twitch-like low-latency live streaming
//! platforms" (IEEE Transactions on Multimedia, 2021). Each rung is a neuron with four features: normalised throughput,
//! latency, stalls and switches. The next rung is the neuron that is nearest to the best that could be: all of the
//! throughput, and none of the others. After each segment, features move towards what was seen for the rung that was
//! played, and towards the best that could be for the rung that won; neighbours move with them. How much each feature counts
//! is chosen for each segment among [`STEPS`] to the fourth power combinations: the one whose rung promises the best
//! quality of experience, among those that stall neither by the throughput nor below [`LEAST_BUFFER`].
//!
//! Where the paper and dash.js (`LoLpRule`) differ, this follows dash.js. The learning rate is 0.01 and falls with the
//! distance of a neuron from the one that is moved. Nothing is learnt when the buffer is too thin for the rung that was
//! played. The quality of experience of a segment has no switch in it, because each is evaluated by itself. The throughput is
//! nine tenths of the estimate ([`throughput::SAFETY`], dash.js's `getSafeAverageThroughput`). A rung is too much for it if it
//! does not leave [`SPARE`] of it.
//!
//! What differs from dash.js:
//!
//! | what | here | dash.js |
//! |---|---|---|
//! | a rung that is too much | is only chosen if it is the lowest; to learn, it is a hundred times as far away | is as far away as a throughput weight of 100 makes it; with a thin buffer, it may leave less |
//! | what a download takes off the buffer | what it takes longer than its segment, which is played while it comes | before the choice, all that it takes; of a candidate, what it takes longer, or a segment if that is more than none |
//! | least buffer | 0.5 s, or a quarter of the target if that is less | 0.3 s |
//! | score of a combination of weights | that of the rung that wins with it | the best of any rung, whose stall and latency are divided by their weights |
//! | latency | a multiple of the target | a share of 100 s; above 1.5 s and its last change the weights stay as they are |
//! | playback speed | does not count | its distance from 1 costs |
//! | what is learnt | latency and stalls; throughput remains the rung's own bit rate, the switch is the one from the last rung | throughput and switches, too |
//! | weights before the first choice | none: if no combination will do, the highest rung that does not stall | random; a trial could not be repeated |

use suiro_units::{BitRate, Duration};

use crate::choice::{Choice, Limits, Look};
use crate::{Ladder, throughput};

/// The weights that a feature may have.
const STEPS: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];
/// Below this much buffer after a download no rung is chosen, except the lowest.
const LEAST_BUFFER: Duration = Duration::from_millis(500);
/// How far features move at once.
const RATE: f64 = 0.01;
/// How far neurons that are not the winner move: the width of the neighbourhood.
const WIDTH: f64 = 0.1;
/// How much farther a rung is that is too much for the throughput.
const TOO_MUCH: f64 = 100.0;
/// What a rung leaves of the throughput: dash.js's `throughputDelta`.
const SPARE: BitRate = BitRate::from_kbps(10);

/// Throughput, latency, stall, switch.
type Features = [f64; 4];

/// The map.
#[derive(Debug, Clone)]
pub(crate) struct Lolp {
    segment: Duration,
    target: Duration,
    least: Duration,
    /// The length of the vector of all bit rates: features are shares of it.
    norm_bps: f64,
    neurons: Vec<Features>,
    last: Option<usize>,
}

impl Lolp {
    pub(crate) fn new(ladder: &Ladder, limits: Limits) -> Self {
        let squares = ladder.rungs().iter().map(|rung| (rung.as_bps() as f64).powi(2));
        let norm_bps = squares.sum::<f64>().sqrt().max(1.0);
        let neuron = |rung: &BitRate| [rung.as_bps() as f64 / norm_bps, 0.0, 0.0, 0.0];
        Self {
            segment: limits.segment,
            target: limits.buffer.max(Duration::from_millis(1)),
            least: LEAST_BUFFER.min(limits.buffer / 4),
            norm_bps,
            neurons: ladder.rungs().iter().map(neuron).collect(),
            last: None,
        }
    }

    /// The playhead has jumped: what came before says nothing about switches.
    pub(crate) fn on_seek(&mut self) {
        self.last = None;
    }

    /// Another rung than the one that was chosen is fetched.
    pub(crate) fn held(&mut self, rung: usize) {
        self.last = Some(rung);
    }

    /// The rung of the next segment; `latency` is how old the frame under the playhead is.
    pub(crate) fn choose(&mut self, ladder: &Ladder, look: &Look, latency: Duration) -> Choice {
        let safe = look.estimate.map(|estimate| estimate.mul_f64(throughput::SAFETY));
        let Some(rate) = safe.filter(|rate| !rate.is_zero()) else {
            self.last = Some(0);
            return Choice::at_once(0);
        };
        let seen = Seen { ladder, rate, buffer: look.buffer, latency };
        let last = self.last.unwrap_or(0);
        let rung = if self.stalls(&seen, last) {
            self.below(&seen, last)
        } else {
            let rung = self.best(&seen);
            // Without the second step, a rung that is played for long would seem worse than rungs that were never tried.
            self.learn(last, self.late(seen.latency), self.stall(&seen, last).as_secs_f64());
            self.learn(rung, 0.0, 0.0);
            rung
        };
        self.last = Some(rung);
        Choice::at_once(rung)
    }

    /// Moves latency and stall of a rung, and a little those of its neighbours, towards these.
    fn learn(&mut self, rung: usize, latency: f64, stall: f64) {
        let place = self.neurons[rung][0];
        for neuron in &mut self.neurons {
            let away = (neuron[0] - place).powi(2);
            let near = (-away / (2.0 * WIDTH * WIDTH)).exp();
            for (feature, now) in neuron[1..].iter_mut().zip([latency, stall]) {
                *feature += RATE * near * (now - *feature);
            }
        }
    }

    /// The rung with the best experience that any weighting promises.
    fn best(&self, seen: &Seen<'_>) -> usize {
        let mut best = (f64::NEG_INFINITY, self.below(seen, self.neurons.len()));
        for weights in weightings() {
            let rung = self.winner(seen, weights);
            let score = self.experience(seen, rung);
            if !self.stalls(seen, rung) && score > best.0 {
                best = (score, rung);
            }
        }
        best.1
    }

    /// The neuron nearest to all of the throughput without latency, stall or switch.
    fn winner(&self, seen: &Seen<'_>, weights: Features) -> usize {
        let wanted = [self.share(seen.rate), 0.0, 0.0, 0.0];
        let distance = |rung: &usize| {
            let mut weights = weights;
            if seen.is_too_much(*rung) && *rung > 0 {
                weights[0] *= TOO_MUCH;
            }
            let mut state = self.neurons[*rung];
            state[3] = self.switch(*rung);
            let parts = state.iter().zip(wanted).zip(weights);
            parts.map(|((is, wanted), weight)| weight * (is - wanted).powi(2)).sum::<f64>()
        };
        let all = 0..self.neurons.len();
        all.min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
    }

    /// Quality of experience of a segment by itself, linear as in the paper: kilobits, less stalls and the rung's latency.
    fn experience(&self, seen: &Seen<'_>, rung: usize) -> f64 {
        let kbps = |rung: usize| seen.ladder.rungs()[rung].as_bps() as f64 / 1000.0;
        let top = kbps(seen.ladder.top());
        let seconds = self.segment.as_secs_f64();
        let latency_s = self.neurons[rung][1] * self.target.as_secs_f64();
        let stall_s = self.stall(seen, rung).as_secs_f64();
        seconds * kbps(rung) - top * stall_s - 0.05 * kbps(0) * latency_s
    }

    /// The highest rung below another that does not stall; the lowest if all do.
    fn below(&self, seen: &Seen<'_>, than: usize) -> usize {
        (0..than).rev().find(|rung| !self.stalls(seen, *rung)).unwrap_or(0)
    }

    /// How long the buffer is empty if a segment of the rung is fetched.
    fn stall(&self, seen: &Seen<'_>, rung: usize) -> Duration {
        self.takes(seen, rung).saturating_sub(seen.buffer)
    }

    /// Whether too little is buffered after it. While a segment comes as it is captured, as much comes as is played.
    fn stalls(&self, seen: &Seen<'_>, rung: usize) -> bool {
        let more = self.takes(seen, rung).saturating_sub(self.segment);
        seen.buffer.saturating_sub(more) < self.least || seen.is_too_much(rung)
    }

    fn takes(&self, seen: &Seen<'_>, rung: usize) -> Duration {
        (seen.ladder.rungs()[rung] * self.segment) / seen.rate
    }

    fn share(&self, rate: BitRate) -> f64 {
        // More than the highest rung needs is no better.
        let top = self.neurons.last().map_or(1.0, |neuron| neuron[0]);
        (rate.as_bps() as f64 / self.norm_bps).min(top)
    }

    fn late(&self, latency: Duration) -> f64 {
        latency.as_secs_f64() / self.target.as_secs_f64()
    }

    fn switch(&self, rung: usize) -> f64 {
        self.last.map_or(0.0, |last| (self.neurons[rung][0] - self.neurons[last][0]).abs())
    }
}

/// The inputs to the choice of a rung.
struct Seen<'a> {
    ladder: &'a Ladder,
    /// The throughput: less than the estimate.
    rate: BitRate,
    buffer: Duration,
    latency: Duration,
}

impl Seen<'_> {
    /// Whether a rung is too much for the throughput.
    fn is_too_much(&self, rung: usize) -> bool {
        let needs_bps = self.ladder.rungs()[rung].as_bps();
        needs_bps.saturating_add(SPARE.as_bps()) > self.rate.as_bps()
    }
}

/// Every combination of weights.
fn weightings() -> impl Iterator<Item = Features> {
    let step = |place: usize| STEPS[place % STEPS.len()];
    let n = STEPS.len();
    (0..n.pow(4)).map(move |i| [step(i), step(i / n), step(i / n / n), step(i / n / n / n)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use suiro_units::Time;

    use super::*;

    fn set_up() -> (Ladder, Lolp) {
        let ladder = Ladder::new([300, 700, 1500, 3000].map(BitRate::from_kbps).to_vec()).unwrap();
        let limits = Limits { segment: Duration::from_secs(1), buffer: Duration::from_secs(2) };
        let map = Lolp::new(&ladder, limits);
        (ladder, map)
    }

    fn look(buffer_ms: u64, kbps: u64) -> Look {
        let (now, buffer) = (Time::ZERO, Duration::from_millis(buffer_ms));
        Look { now, buffer, estimate: Some(BitRate::from_kbps(kbps)), in_chunks: true }
    }

    const TARGET: Duration = Duration::from_secs(2);

    #[test]
    fn the_rung_follows_the_throughput() {
        let (ladder, mut map) = set_up();
        let blind = Look { estimate: None, ..look(0, 1) };
        assert_eq!(map.choose(&ladder, &blind, TARGET).rung, 0);
        for (kbps, rung) in [(1000, 1), (10_000, 3), (2000, 2), (350, 0), (100, 0)] {
            let chosen = (0..4).map(|_| map.choose(&ladder, &look(1800, kbps), TARGET).rung);
            let chosen: Vec<usize> = chosen.collect();
            assert_eq!(chosen.last(), Some(&rung), "{kbps} kbit/s: {chosen:?}");
        }
    }

    /// Nine tenths of 1600, 1670 and 1678 kbit/s are 1440, 1503 and 1510.2; the third rung needs 1500 and leaves 10.
    #[test]
    fn a_rung_needs_less_than_nine_tenths_of_the_estimate() {
        for (kbps, rung) in [(1600, 1), (1670, 1), (1678, 2)] {
            let (ladder, mut map) = set_up();
            let chosen = (0..4).map(|_| map.choose(&ladder, &look(1800, kbps), TARGET).rung);
            let chosen: Vec<usize> = chosen.collect();
            assert_eq!(chosen.last(), Some(&rung), "{kbps} kbit/s: {chosen:?}");
        }
    }

    #[test]
    fn with_a_thin_buffer_nothing_that_takes_longer_than_it_lasts() {
        let (ladder, mut map) = set_up();
        assert_eq!(map.choose(&ladder, &look(400, 5000), TARGET).rung, 0);
        assert_eq!(map.choose(&ladder, &look(1000, 1400), TARGET).rung, 1);
    }

    #[test]
    fn a_rung_that_the_link_bears_is_kept() {
        let rungs = [1000, 1500, 2000, 2500, 3000].map(BitRate::from_kbps);
        let ladder = Ladder::new(rungs.to_vec()).unwrap();
        let limits = Limits { segment: Duration::from_secs(1), buffer: Duration::from_secs(2) };
        let mut map = Lolp::new(&ladder, limits);
        let chosen = (0..600).map(|_| map.choose(&ladder, &look(1800, 10_000), TARGET).rung);
        let chosen: Vec<usize> = chosen.collect();
        assert!(chosen[1..].iter().all(|rung| *rung == 4), "{chosen:?}");
    }

    /// The challenge's ladder, and one that is steeper; a segment is worth its length, whatever a switch costs.
    #[test]
    fn short_segments_reach_the_top_rung_as_long_ones_do() {
        for (rungs, kbps) in [(&[200, 600, 1000][..], 3000), (&[300, 700, 1500, 3000], 10_000)] {
            let rungs: Vec<BitRate> = rungs.iter().copied().map(BitRate::from_kbps).collect();
            let ladder = Ladder::new(rungs).unwrap();
            for segment_ms in [500, 960, 1000, 2000] {
                let (segment, buffer) = (Duration::from_millis(segment_ms), Duration::from_secs(1));
                let mut map = Lolp::new(&ladder, Limits { segment, buffer });
                let chosen = (0..40).map(|_| map.choose(&ladder, &look(900, kbps), buffer).rung);
                let chosen: Vec<usize> = chosen.collect();
                let top = chosen.iter().all(|rung| *rung == ladder.top());
                assert!(top, "{segment_ms} ms: {chosen:?}");
            }
        }
    }

    #[test]
    fn a_rung_that_was_played_late_is_worth_less() {
        let (ladder, mut map) = set_up();
        let (rate, buffer) = (BitRate::from_mbps(10), Duration::from_millis(1800));
        let seen = Seen { ladder: &ladder, rate, buffer, latency: TARGET };
        let before = map.experience(&seen, 3);
        map.learn(3, 1.0, 0.0);
        // A hundredth of 2 s is learnt, and a second costs a twentieth of 300 kbit/s.
        let lost = before - map.experience(&seen, 3);
        assert!((lost - 0.3).abs() < 1e-9, "{lost}");
    }

    #[test]
    fn every_combination_of_weights_is_tried() {
        let all: Vec<Features> = weightings().collect();
        assert_eq!(all.len(), 625);
        assert_eq!((all[0], all[624]), ([0.2; 4], [1.0; 4]));
        assert_eq!(all[1], [0.4, 0.2, 0.2, 0.2]);
    }

    proptest! {
        #[test]
        fn it_never_chooses_above_the_throughput(steps in prop::collection::vec((0u64..6000, 1u64..100_000, 0u64..20_000), 1..20)) {
            let (ladder, mut map) = set_up();
            for (buffer, kbps, latency) in steps {
                let rung = map.choose(&ladder, &look(buffer, kbps), Duration::from_millis(latency)).rung;
                let needs = ladder.rungs()[rung].as_bps() + SPARE.as_bps();
                prop_assert!(rung == 0 || needs <= kbps * 900, "{rung} at {kbps}");
            }
        }
    }
}
