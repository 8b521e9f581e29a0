//! How strong the signal is: path loss, walls, shadowing, fading.

use suiro_units::{Duration, Random, Seed, Time};

use super::config::WifiConfig;

/// Free-space loss at 1 m and 2.437 GHz (channel 6), 20 log10(4π d / λ).
const LOSS_AT_1_M_DB: f64 = 40.2;
/// TGn model B (Erceg et al., "TGn Channel Models", IEEE 802.11-03/940): free space up to here,
/// and an exponent of 3.5 beyond.
const BREAKPOINT_M: f64 = 5.0;
const EXPONENT_NEAR: f64 = 2.0;
const EXPONENT_FAR: f64 = 3.5;
/// Thermal noise in 20 MHz, −101 dBm, and a receiver's noise figure of 7 dB.
const NOISE_DBM: f64 = -94.0;

/// The channel between the two stations: the same in both directions.
#[derive(Debug)]
pub(crate) struct Channel {
    mean_snr_db: f64,
    shadowing_db: f64,
    shadowing_time: Duration,
    rice_k: f64,
    fading_time: Duration,
    /// Standard normal processes: of the shadowing, and of both parts of the scattered signal.
    shadow: f64,
    scattered: [f64; 2],
    updated: Time,
    random: Random,
}

impl Channel {
    pub fn new(config: &WifiConfig, seed: Seed) -> Self {
        let mut random = seed.random();
        let mut draw = || random.normal();
        let (shadow, scattered) = (draw(), [draw(), draw()]);
        let walls = f64::from(config.walls) * config.wall_loss.0;
        Self {
            mean_snr_db: config.power.0 - path_loss_db(config.distance.0) - walls - NOISE_DBM,
            shadowing_db: config.shadowing.0,
            shadowing_time: config.shadowing_time,
            rice_k: 10f64.powf(config.rice_k.0 / 10.0),
            fading_time: config.fading_time,
            shadow,
            scattered,
            updated: Time::ZERO,
            random,
        }
    }

    /// Signal-to-noise ratio at a time, with this much attenuation more. Times never decrease.
    pub fn snr_db(&mut self, now: Time, attenuation_db: f64) -> f64 {
        let passed = now.saturating_since(self.updated).as_secs_f64();
        self.updated = now;
        let random = &mut self.random;
        // Shadowing correlated exponentially (Gudmundson, "Correlation model for shadow fading in
        // mobile radio systems", Electronics Letters 27, 1991); the scattered part likewise.
        let mut go_on = |process: &mut f64, span: Duration| {
            let rho = (-passed / span.as_secs_f64()).exp();
            *process = rho * *process + (1.0 - rho * rho).sqrt() * random.normal();
        };
        go_on(&mut self.shadow, self.shadowing_time);
        for part in &mut self.scattered {
            go_on(part, self.fading_time);
        }
        self.mean_snr_db - attenuation_db + self.shadowing_db * self.shadow + self.fading_db()
    }

    /// Gain of a Rician channel with mean 1: a direct part and a scattered one, 1 to `rice_k`.
    fn fading_db(&self) -> f64 {
        let k = self.rice_k;
        let scale = (2.0 * (k + 1.0)).sqrt();
        let [x, y] = self.scattered.map(|part| part / scale);
        let direct = (k / (k + 1.0)).sqrt();
        10.0 * ((direct + x).powi(2) + y * y).max(1e-6).log10()
    }
}

fn path_loss_db(distance_m: f64) -> f64 {
    let near = distance_m.min(BREAKPOINT_M);
    let far = (distance_m / BREAKPOINT_M).max(1.0);
    LOSS_AT_1_M_DB + 10.0 * (EXPONENT_NEAR * near.log10() + EXPONENT_FAR * far.log10())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_and_walls_weaken_the_signal() {
        // 15 dBm − (40.2 + 14.0) dB + 94 dB.
        let config = WifiConfig::default();
        assert!((Channel::new(&config, Seed(1)).mean_snr_db - 54.8).abs() < 0.05);
        let walled = WifiConfig { walls: 2, ..config };
        assert!((Channel::new(&walled, Seed(1)).mean_snr_db - 34.8).abs() < 0.05);
        assert!((path_loss_db(50.0) - path_loss_db(5.0) - 35.0).abs() < 1e-9);
    }

    #[test]
    fn shadowing_and_fading_have_their_means_and_deviations() {
        let mut channel = Channel::new(&WifiConfig::default(), Seed(3));
        let n = 20_000;
        let (mut sum, mut squares, mut gain) = (0.0, 0.0, 0.0);
        for i in 0..n {
            channel.snr_db(Time::from_secs(20 * i), 0.0);
            sum += channel.shadow;
            squares += channel.shadow.powi(2);
            gain += 10f64.powf(channel.fading_db() / 10.0);
        }
        let n = n as f64;
        assert!((sum / n).abs() < 0.04 && (squares / n - 1.0).abs() < 0.05, "{sum} {squares}");
        assert!((gain / n - 1.0).abs() < 0.05, "{gain}");
    }
}
