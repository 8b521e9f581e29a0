//! Jitter: delays that vary from packet to packet.
//!
//! Where packets may overtake one another, each delay is drawn by itself.
//!
//! Where they may not, delays that are drawn by themselves cannot be kept at all packet rates. A packet that would
//! overtake has to wait for the one before it, so at 2,000 packets/s a normal jitter of 40 ± 5 ms becomes one of 46 ±
//! 3 ms. Instead the delay wanders: it is a function of time that falls more slowly than time passes, so that order
//! keeps itself, and that at any time has the distribution asked for. It is made of a stationary Gaussian process *z*
//! with mean 0, variance 1 and the correlation
//!
//! > ρ(τ) = (1 + λτ) · e^(−λτ)
//!
//! (Matérn 3/2: Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press 2006,
//! §4.2.1), which is differentiable, with a derivative of standard deviation λ. The delay is the
//! quantile of the distribution at Φ(*z*). [`JitterConfig::slowness`] says how λ is chosen. What would
//! still overtake, because a tail falls steeply, waits: fewer than 1 packet in 100.
//!
//! Packets that follow at longer intervals than the process remembers have independent delays.
//!
//! A truncated Gaussian does not wander, because RFC 8868 specifies what it does (§4.5.2). Each packet's delay is drawn by
//! itself. One that would arrive before its predecessor, or too soon after it for the link's rate, arrives as soon as that
//! rate lets it. Waiting delays no packet by more than the distribution's bound: it left the server no earlier than the
//! packet that it waits for, and arrives right behind it.

use suiro_units::{Duration, Random, Time};

use crate::config::{Distribution, JitterConfig, Order};
use crate::erfc::erfc;

/// Jitter is cut off here, in standard deviations.
const MAX_DEVIATIONS: f64 = 20.0;
/// A truncated Gaussian here already: RFC 8868 §4.5.3, `N_STD`.
const TRUNCATED_AT: f64 = 3.0;
/// The mean of a truncated Gaussian, 2 (φ(0) − φ(3)) + 6 Q(3), where φ is the density of a normal variable and Q its tail.
const TRUNCATED_MEAN: f64 = 0.797_120_252;

impl Distribution {
    /// Whether it may shorten the delay.
    pub(crate) const fn is_centred(self) -> bool {
        matches!(self, Self::Uniform | Self::Normal)
    }

    /// A draw with standard deviation 1 (of a truncated Gaussian, that of the Gaussian): with mean 0 if centred, else not
    /// negative.
    fn draw(self, random: &mut Random) -> f64 {
        let draw = match self {
            Self::Uniform => (2.0 * random.uniform() - 1.0) * 3.0_f64.sqrt(),
            Self::Normal | Self::TruncatedGaussian => self.of_normal(random.normal()),
            Self::Exponential => random.exponential(),
            Self::Pareto => lomax(random.exponential()),
        };
        draw.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
    }

    /// A function of a normal variable `z` that has this distribution. Where it rises with `z`, it is the value that is
    /// exceeded as often as a normal variable exceeds `z`.
    fn of_normal(self, z: f64) -> f64 {
        let value = match self {
            Self::Uniform => (1.0 - 2.0 * exceeds(z)) * 3.0_f64.sqrt(),
            Self::Normal => z,
            Self::Exponential => -exceeds(z).ln(),
            Self::Pareto => lomax(-exceeds(z).ln()),
            Self::TruncatedGaussian => z.abs().min(TRUNCATED_AT),
        };
        value.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
    }

    /// The mean of a draw with standard deviation 1.
    fn mean(self) -> f64 {
        match self {
            Self::Uniform | Self::Normal => 0.0,
            Self::Exponential => 1.0,
            Self::Pareto => 1.0 / 3.0_f64.sqrt(),
            Self::TruncatedGaussian => TRUNCATED_MEAN,
        }
    }
}

/// Lomax with shape 3: of scale 1 its variance is 3/4. The cube root of a uniform number through
/// the exponential of which it is the logarithm.
fn lomax(exponential: f64) -> f64 {
    ((exponential / 3.0).exp() - 1.0) * 2.0 / 3.0_f64.sqrt()
}

impl JitterConfig {
    /// What it adds to the delay in the mean, before anything is cut off at zero and without [`Self::waits`].
    pub fn mean(&self) -> Duration {
        self.sd.mul_f64(self.distribution.mean())
    }

    /// For how long one packet's delay says something about later ones: the integral of the
    /// correlation over all times. The mean delay of *n* packets at intervals *τ* has about the
    /// standard deviation `sd` · √((1 + memory ∕ τ) ∕ *n*). Zero where packets may overtake.
    pub fn memory(&self) -> Duration {
        match self.order {
            Order::Free => Duration::ZERO,
            Order::Kept if self.queues() => self.sd.mul_f64(TRUNCATED_AT),
            Order::Kept => self.slowness() * 4,
        }
    }

    /// What packets that wait for the one before add to the mean at most. It depends on how fast they follow one another.
    pub fn waits(&self) -> Duration {
        match self.queues() {
            true => self.sd.mul_f64(TRUNCATED_AT - TRUNCATED_MEAN),
            false => Duration::ZERO,
        }
    }

    /// Whether the delay is a function of time; otherwise each packet has its own.
    pub(crate) fn wanders(&self) -> bool {
        self.order == Order::Kept && !self.queues()
    }

    /// Whether each packet has a delay of its own, and waits for the one before it.
    pub(crate) fn queues(&self) -> bool {
        self.order == Order::Kept && self.distribution == Distribution::TruncatedGaussian
    }

    /// 1/λ: so many standard deviations that the delay hardly ever falls faster than time passes.
    ///
    /// Between two packets a time τ apart, *z* changes by less than λτ in standard deviation. With a
    /// normal distribution and 1/λ = 4 `sd` a packet would overtake when *z* falls by four
    /// deviations: 3 times in 100,000. Longer tails fall more steeply and need more.
    fn slowness(&self) -> Duration {
        self.sd
            * match self.distribution {
                Distribution::Uniform | Distribution::Normal | Distribution::TruncatedGaussian => 4,
                Distribution::Exponential => 6,
                Distribution::Pareto => 8,
            }
    }
}

/// Jitter at work.
#[derive(Debug)]
pub(crate) struct Jitter {
    config: JitterConfig,
    wander: Option<Wander>,
}

impl Jitter {
    pub fn new(config: JitterConfig) -> Self {
        Self { config, wander: None }
    }

    pub fn config(&self) -> JitterConfig {
        self.config
    }

    /// The delay of a packet that leaves at `now`, not before an earlier one.
    pub fn vary(&mut self, now: Time, delay: Duration, random: &mut Random) -> Duration {
        let JitterConfig { distribution, sd, .. } = self.config;
        let by = match self.config.wanders() {
            false => distribution.draw(random),
            true => {
                let slowness = self.config.slowness();
                let wander = self.wander.get_or_insert_with(|| Wander::new(now, random));
                distribution.of_normal(wander.follow(now, slowness, random))
            }
        };
        let size = sd.mul_f64(by.abs());
        if by < 0.0 { delay.saturating_sub(size) } else { delay + size }
    }
}

/// The Gaussian process *z* of the module's text, and its derivative divided by λ: both have
/// variance 1 and do not depend on each other at one time.
#[derive(Debug)]
struct Wander {
    at: Time,
    z: f64,
    slope: f64,
}

impl Wander {
    fn new(at: Time, random: &mut Random) -> Self {
        Self { at, z: random.normal(), slope: random.normal() }
    }

    /// Its value at `now`: the exact solution of z″ + 2λz′ + λ²z = white noise.
    fn follow(&mut self, now: Time, slowness: Duration, random: &mut Random) -> f64 {
        let a = now.saturating_since(self.at) / slowness;
        if a == 0.0 {
            return self.z;
        }
        self.at = now;
        let left = (-a).exp();
        let z = left * ((1.0 + a) * self.z + a * self.slope);
        let slope = left * ((1.0 - a) * self.slope - a * self.z);
        // The covariance of what is new, with x = 2a: what the variances of 1 lack.
        let (x, left) = (2.0 * a, left * left);
        let of_z = three_or_more(x);
        let of_both = x * x / 2.0 * left;
        let of_slope = 1.0 - (1.0 - x + x * x / 2.0) * left;
        let (first, second) = (random.normal(), random.normal());
        let by_z = of_z.sqrt();
        let shared = of_both / by_z;
        self.z = z + by_z * first;
        self.slope = slope + shared * first + (of_slope - shared * shared).max(0.0).sqrt() * second;
        self.z
    }
}

/// 1 − (1 + x + x²∕2) · e^−x, above 0 for x above 0: as a series where the difference would cancel.
fn three_or_more(x: f64) -> f64 {
    if x > 1.0 {
        return 1.0 - (1.0 + x + x * x / 2.0) * (-x).exp();
    }
    let mut term = (-x).exp() * x * x * x / 6.0;
    let mut sum = 0.0;
    for k in 4..20 {
        sum += term;
        term *= x / f64::from(k);
    }
    sum.max(f64::MIN_POSITIVE)
}

/// How often a normal variable exceeds `z`: half the complementary error function of z∕√2.
fn exceeds(z: f64) -> f64 {
    let above = erfc(z.abs() / std::f64::consts::SQRT_2) / 2.0;
    if z >= 0.0 { above } else { 1.0 - above }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_units::Seed;

    #[test]
    fn the_normal_tail_by_its_tables() {
        for (z, share) in
            [(0.0, 0.5), (1.0, 0.158_655_254), (2.0, 0.022_750_132), (5.0, 2.866_516e-7)]
        {
            assert!((exceeds(z) / share - 1.0).abs() < 1e-6, "{z}: {}", exceeds(z));
            assert!((exceeds(-z) - (1.0 - share)).abs() < 1e-6, "{z}");
        }
    }

    #[test]
    fn the_series_joins_the_difference() {
        // 1 − 2.5·e^−1 = 0.0803014.
        assert!((three_or_more(1.0) - 0.080_301_397).abs() < 1e-9);
        assert!((three_or_more(1.0 + 1e-9) - three_or_more(1.0)).abs() < 1e-9);
        // x³∕6 for small x.
        assert!((three_or_more(1e-6) / (1e-18 / 6.0) - 1.0).abs() < 1e-5);
        assert!(three_or_more(1e-200) > 0.0);
    }

    /// ρ(τ) = (1 + λτ)·e^(−λτ), whatever the steps: 0.7358 at 1/λ, 0.1991 at 3/λ.
    #[test]
    fn the_process_has_its_correlation() {
        let slowness = Duration::from_millis(10);
        for (step_us, steps, expected) in
            [(10_000, 1, 0.7358), (2500, 4, 0.7358), (10_000, 3, 0.1991)]
        {
            let mut random = Seed(step_us).random();
            let mut wander = Wander::new(Time::ZERO, &mut random);
            let mut at = Time::ZERO;
            let values: Vec<f64> = std::iter::repeat_with(|| {
                at += Duration::from_micros(step_us);
                wander.follow(at, slowness, &mut random)
            })
            .take(200_000)
            .collect();
            let pairs = values.iter().zip(&values[steps..]);
            let products: f64 = pairs.map(|(a, b)| a * b).sum();
            let found = products / values.len() as f64;
            assert!((found - expected).abs() < 0.02, "{step_us} µs, {steps} steps: {found}");
        }
    }
}
