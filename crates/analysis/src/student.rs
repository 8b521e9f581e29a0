//! Student's t distribution for any number of degrees of freedom, also one that is not whole.

use std::sync::LazyLock;

/// The probability that the size of a variable with Student's t distribution exceeds that of `t`: the p value of a two-sided
/// test. `degrees` is at least 1.
///
/// It is the regularised incomplete beta function I(ν/2, 1/2) at ν/(ν + t²): Abramowitz and Stegun, 26.7.1 and 26.5.27.
pub(crate) fn two_sided(t: f64, degrees: f64) -> f64 {
    let square = t * t;
    match square.is_finite() {
        true => beta(degrees / 2.0, 0.5, degrees / (degrees + square)),
        false => 0.0,
    }
}

/// The value that the size of such a variable exceeds with a probability of 5 %: half the width of a 95 % interval, in standard
/// errors.
pub(crate) fn half_width(degrees: f64) -> f64 {
    // It falls from 12.71 with one degree of freedom to 1.96.
    let (mut low, mut high) = (1.9, 12.8);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, degrees) > 0.05 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Degrees of freedom up to which [`half_width_of_whole`] computes each value once: a report asks for thousands of intervals.
const KEPT: usize = 100;

/// The same for a whole number of degrees.
pub(crate) fn half_width_of_whole(degrees: u32) -> f64 {
    static FOUND: LazyLock<Vec<f64>> =
        LazyLock::new(|| (0..=KEPT).map(|degrees| half_width(degrees.max(1) as f64)).collect());
    let kept = usize::try_from(degrees).ok().and_then(|place| FOUND.get(place)).copied();
    kept.unwrap_or_else(|| half_width(f64::from(degrees)))
}

/// Steps of the continued fraction; it needs a few dozen for the arguments here.
const STEPS: u32 = 300;

/// The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22) in Lentz's method.
fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side only (DLMF 8.17.4 is the other).
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(b, a, 1.0 - x);
    }
    const LEAST: f64 = 1e-300;
    let away = |value: f64| if value.abs() < LEAST { LEAST } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    let front = a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    front.exp() * fraction / a
}

/// The logarithm of the gamma function of a positive number, by Lanczos's approximation with g = 7 and nine terms; right to
/// fourteen digits.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let terms = (1..).map(f64::from).zip(TERMS).map(|(place, term)| term / (x + place));
    let sum = 0.999_999_999_999_809_9 + terms.sum::<f64>();
    let t = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.10.
        for (degrees, want) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (5.0, 2.571),
            (10.0, 2.228),
            (30.0, 2.042),
            (120.0, 1.980),
        ] {
            assert!((half_width(degrees) - want).abs() < 6e-4, "{degrees}");
        }
    }

    #[test]
    fn probabilities_by_hand() {
        // With one degree of freedom it is Cauchy's distribution: 1 − 2/π · atan(t).
        let cauchy = |t: f64| 1.0 - 2.0 / std::f64::consts::PI * t.atan();
        for t in [0.1, 1.0, 3.0, 50.0] {
            assert!((two_sided(t, 1.0) - cauchy(t)).abs() < 1e-12, "{t}");
        }
        // With two: 1 − t/√(2 + t²).
        for t in [0.1f64, 1.0, 3.0, 50.0] {
            let want = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 2.0) - want).abs() < 1e-12, "{t}");
        }
        assert_eq!(two_sided(0.0, 3.0), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn whole_degrees_have_the_exact_quantile() {
        for degrees in [1, 2, 30, 100, 101, 500] {
            assert_eq!(half_width_of_whole(degrees), half_width(f64::from(degrees)), "{degrees}");
        }
        // 1 − t/√(2 + t²) is 0.05 at t = 0.95·√(2/0.0975).
        assert!((half_width_of_whole(2) - 0.95 * (2.0_f64 / 0.0975).sqrt()).abs() < 1e-9);
        assert!((half_width_of_whole(10_000) - 1.9602).abs() < 1e-4);
    }

    #[test]
    fn degrees_between_whole_numbers_lie_between_them() {
        let [low, middle, high] = [3.0, 3.5, 4.0].map(half_width);
        assert!(low > middle && middle > high);
    }
}
