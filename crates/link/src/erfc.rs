//! The complementary error function, which jitter and the bit errors of Wi-Fi need.

/// Complementary error function for `x` ≥ 0, relative error below 1.2 × 10⁻⁷ (Press et al.,
/// "Numerical Recipes in C", 2nd edition, §6.2).
pub(crate) fn erfc(x: f64) -> f64 {
    const C: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x);
    let polynomial = C.iter().rev().fold(0.0, |sum, c| sum * t + c);
    t * (polynomial - x * x).exp()
}
