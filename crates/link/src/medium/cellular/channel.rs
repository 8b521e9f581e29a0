//! A user's signal over time. It depends on the seed and the time alone, never on what is sent: so it is the same in all
//! trials with a seed.

use std::f64::consts::{PI, TAU};

use suiro_units::{Duration, Random, Seed, Time};

use super::config::CellularConfig;
use super::radio::{self, SITES, Up};
use crate::medium::quantity::KilometresPerHour;

/// How often the mean signal is computed: even at 500 km/h, 14 m are then passed.
const MEAN_EVERY: Duration = Duration::from_millis(100);
/// Over which distance shadowing is correlated (TR 36.814, table A.2.1.1-1).
const SHADOW_M: f64 = 50.0;
/// Where its course is drawn; between, it is a straight line.
const STEP_M: f64 = 5.0;
const CARRIER_HZ: f64 = 2e9;
const LIGHT_M_PER_S: f64 = 299_792_458.0;
/// Receiving antennas at each end.
const BRANCHES: usize = 2;
/// Oscillators of each part of a branch's signal.
const OSCILLATORS: usize = 8;

const fn m_per_s(speed: KilometresPerHour) -> f64 {
    speed.0 / 3.6
}

/// The mean of the signal over its fading: path loss, shadowing, interference.
#[derive(Debug)]
pub(crate) struct Mean {
    losses_db: [f64; SITES],
    shadowing_db: f64,
    metres_per_s: f64,
    load: f64,
    band: u32,
    noise_rise: f64,
    /// What all sites' shadows have in common, then each one's own.
    shadows: [Shadow; SITES + 1],
    random: Random,
    /// The steps of [`STEP_M`] drawn, and of [`MEAN_EVERY`] computed; what the latter gave.
    step: u64,
    computed: Option<u64>,
    pub down_sinr: f64,
    pub up: Up,
}

/// A standard normal process, at the steps before and after now.
#[derive(Debug, Clone, Copy)]
struct Shadow([f64; 2]);

impl Mean {
    pub fn new(config: &CellularConfig, seed: Seed) -> Self {
        let spacing = 3.0 * config.cell_radius.0;
        let mut random = seed.random();
        let losses_db = radio::couplings_db(config.distance.0, spacing, config.penetration);
        let (band, load) = (config.bandwidth.blocks(), config.load.get());
        let outdoors = CellularConfig::default().penetration;
        let mut shadows = [Shadow([0.0; 2]); SITES + 1];
        for shadow in &mut shadows {
            shadow.0[1] = random.normal();
            shadow.go_on(&mut random);
        }
        let noise_rise = radio::noise_rise(spacing, outdoors, band, load);
        Self {
            losses_db,
            shadowing_db: config.shadowing.0,
            metres_per_s: m_per_s(config.speed),
            load,
            band,
            noise_rise,
            shadows,
            random,
            step: 0,
            computed: None,
            down_sinr: 0.0,
            up: Up::new(losses_db[0], band, noise_rise),
        }
    }

    /// Times never decrease.
    pub fn follow(&mut self, now: Time) {
        let tick = now.as_nanos() / MEAN_EVERY.as_nanos();
        if self.computed == Some(tick) {
            return;
        }
        self.computed = Some(tick);
        let metres = (MEAN_EVERY * tick).as_secs_f64() * self.metres_per_s;
        let step = metres / STEP_M;
        while self.step < step as u64 {
            self.step += 1;
            self.shadows.iter_mut().for_each(|shadow| shadow.go_on(&mut self.random));
        }
        let [common, own @ ..] = self.shadows.map(|shadow| shadow.at(step.fract()));
        // Shadows of different sites have a correlation of 0.5 (TR 36.814, table A.2.1.1-1).
        let scale = self.shadowing_db * 0.5f64.sqrt();
        let losses = std::array::from_fn(|i| self.losses_db[i] + scale * (common + own[i]));
        self.down_sinr = radio::down_sinr(&losses, self.load);
        let loss = losses.iter().copied().fold(f64::INFINITY, f64::min);
        self.up = Up::new(loss, self.band, self.noise_rise);
    }
}

impl Shadow {
    /// One step further: correlated exponentially (Gudmundson, "Correlation model for shadow fading in mobile radio
    /// systems", Electronics Letters 27, 1991).
    fn go_on(&mut self, random: &mut Random) {
        let rho = (-STEP_M / SHADOW_M).exp();
        let [_, last] = self.0;
        self.0 = [last, rho * last + (1.0 - rho * rho).sqrt() * random.normal()];
    }

    fn at(self, share: f64) -> f64 {
        let [before, after] = self.0;
        // A straight line between two points varies less than they do; this keeps the variance.
        let rho = (-STEP_M / SHADOW_M).exp();
        let variance = 1.0 - 2.0 * share * (1.0 - share) * (1.0 - rho);
        (before + share * (after - before)) / variance.sqrt()
    }
}

/// Fading of one direction: the power of Rician signals at two antennas, each added with its weight (maximal ratio), with
/// mean 1. The gain of two antennas over one is in the rate's formula already ([`radio`]).
///
/// The scattered part of each is a sum of oscillators (Zheng and Xiao, "Improved models for the generation of multiple
/// uncorrelated Rayleigh fading waveforms", IEEE Commun. Lett. 6, 2002): it has the spectrum of Clarke's model with the user's
/// greatest Doppler shift. The direct part, if there is one, has no Doppler shift.
#[derive(Debug)]
pub(crate) struct Fading {
    direct: f64,
    scattered: f64,
    branches: [[[Oscillator; OSCILLATORS]; 2]; BRANCHES],
}

#[derive(Debug, Clone, Copy)]
struct Oscillator {
    radians_per_s: f64,
    phase: f64,
}

impl Fading {
    pub fn new(config: &CellularConfig, seed: Seed) -> Self {
        let mut random = seed.random();
        let k = radio::mw(config.rice_k.0);
        let doppler = TAU * CARRIER_HZ * m_per_s(config.speed) / LIGHT_M_PER_S;
        let mut branch = || {
            let theta = TAU * random.uniform() - PI;
            [f64::cos, f64::sin].map(|part| {
                std::array::from_fn(|n| {
                    let alpha = (TAU * n as f64 + PI + theta) / (4 * OSCILLATORS) as f64;
                    let radians_per_s = doppler * part(alpha);
                    Oscillator { radians_per_s, phase: TAU * random.uniform() }
                })
            })
        };
        Self {
            direct: (k / (k + 1.0)).sqrt(),
            scattered: (1.0 / ((k + 1.0) * OSCILLATORS as f64)).sqrt(),
            branches: [branch(), branch()],
        }
    }

    /// The power at a time, over its mean.
    pub fn gain(&self, now: Time) -> f64 {
        let seconds = now.as_nanos() as f64 * 1e-9;
        let sum = |part: &[Oscillator; OSCILLATORS]| {
            part.iter().map(|of| (of.radians_per_s * seconds + of.phase).cos()).sum::<f64>()
        };
        let power = |branch: &[[Oscillator; OSCILLATORS]; 2]| {
            let [x, y] = branch.each_ref().map(|part| self.scattered * sum(part));
            (self.direct + x).powi(2) + y * y
        };
        self.branches.iter().map(power).sum::<f64>() / BRANCHES as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::quantity::{Decibels, Metres};

    fn fading(speed: f64, seed: u64) -> Fading {
        let config =
            CellularConfig { speed: KilometresPerHour(speed), ..CellularConfig::default() };
        Fading::new(&config, Seed(seed))
    }

    /// Two Rayleigh branches: the sum of their powers has mean 1 and variance 1/2, and falls below a tenth of its mean for
    /// 1 − e^(−0.2) · 1.2 = 1.75 % of the time. With a finite number N of oscillators, the variance is 1 − 3/(4N) of that.
    #[test]
    fn fading_has_its_mean_and_its_dips() {
        let gains: Vec<f64> = (0..40)
            .flat_map(|seed| {
                let fading = fading(30.0, seed);
                (0..5_000u64).map(move |n| fading.gain(Time::from_millis(7 * n)))
            })
            .collect();
        let n = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / n;
        let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / n;
        let dips = gains.iter().filter(|gain| **gain < 0.1).count() as f64 / n;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 0.453).abs() < 0.03, "{mean} {variance}");
        assert!((dips - 0.0175).abs() < 0.005, "{dips}");
    }

    /// Clarke's model: the correlation of the power is J0² of 2π times the Doppler shift and the time. At 3 km/h that
    /// shift is 5.56 Hz, and J0 is 0.5 after 43.6 ms and 0 after 68.8 ms.
    #[test]
    fn fading_is_as_fast_as_the_user() {
        let correlation = |speed: f64, ms: u64| {
            let (mut sum, mut n) = (0.0, 0.0);
            for seed in 0..200 {
                let fading = fading(speed, seed);
                for at in (0..20_000).step_by(101) {
                    let pair = [at, at + ms].map(|ms| fading.gain(Time::from_millis(ms)) - 1.0);
                    (sum, n) = (sum + pair[0] * pair[1], n + 1.0);
                }
            }
            sum / n / 0.453
        };
        assert!((correlation(3.0, 1) - 1.0).abs() < 0.05, "{}", correlation(3.0, 1));
        assert!((correlation(3.0, 44) - 0.25).abs() < 0.06, "{}", correlation(3.0, 44));
        assert!(correlation(3.0, 69).abs() < 0.1, "{}", correlation(3.0, 69));
        assert!(correlation(30.0, 7).abs() < 0.1, "{}", correlation(30.0, 7));
        assert!((correlation(0.0, 10_000) - 1.0).abs() < 0.2, "{}", correlation(0.0, 10_000));
    }

    #[test]
    fn a_steady_signal_does_not_fade() {
        let config = CellularConfig::default().steady();
        let fading = Fading::new(&config, Seed(1));
        for ms in [0, 10, 5000] {
            assert!((fading.gain(Time::from_millis(ms)) - 1.0).abs() < 1e-3);
        }
    }

    /// After 50 m a correlation of 1/e is left, and the variance is the same between the steps as at them.
    #[test]
    fn shadowing_is_correlated_over_50_m() {
        let config = CellularConfig { speed: KilometresPerHour(90.0), ..CellularConfig::default() };
        let (mut squares, mut products, mut n) = (0.0, 0.0, 0.0);
        for seed in 0..40 {
            let mut mean = Mean::new(&config, Seed(seed));
            let mut walk = |s: u64| {
                mean.follow(Time::from_secs(s));
                let share = (s as f64 * 25.0 / STEP_M).fract();
                mean.shadows[1].at(share)
            };
            // 25 m/s: 50 m in 2 s.
            let all: Vec<f64> = (0..400).map(&mut walk).collect();
            for pair in all.windows(3) {
                (squares, products) = (squares + pair[0].powi(2), products + pair[0] * pair[2]);
                n += 1.0;
            }
        }
        let (variance, correlation) = (squares / n, products / squares);
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
        assert!((correlation - (-1f64).exp()).abs() < 0.1, "{correlation}");
    }

    #[test]
    fn the_mean_signal_is_that_of_the_formula_and_does_not_depend_on_questions() {
        let steady =
            CellularConfig { distance: Metres(150.0), ..CellularConfig::default() }.steady();
        let mut mean = Mean::new(&steady, Seed(1));
        mean.follow(Time::from_secs(5));
        let expected = radio::down_sinr(&radio::couplings_db(150.0, 500.0, Decibels(20.0)), 0.5);
        assert!((mean.down_sinr / expected - 1.0).abs() < 1e-9);
        let config = CellularConfig { speed: KilometresPerHour(50.0), ..CellularConfig::default() };
        let [mut often, mut once] = [0, 1].map(|_| Mean::new(&config, Seed(7)));
        (0..=300).for_each(|tick| often.follow(Time::from_millis(100 * tick)));
        once.follow(Time::from_secs(30));
        assert_eq!((often.down_sinr, often.up), (once.down_sinr, once.up));
    }
}
