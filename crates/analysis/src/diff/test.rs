//! The test that decides whether two groups of values differ.

use crate::stats::{ROUNDING, Spread};
use crate::student;

/// The variance of a value that was rounded to a whole number (Sheppard, 1898): the least that a count can have.
const OF_ROUNDING: f64 = 1.0 / 12.0;

/// Two groups of values and their difference.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tested {
    /// The mean of the second minus that of the first.
    pub difference: f64,
    /// Half the 95 % confidence interval of the difference, and the p value of a difference of 0; `None` if either group has
    /// one value.
    pub certainty: Option<Certainty>,
    /// True if every value equals its partner, or all values of both groups are the same.
    pub identical: bool,
}

/// How certain a difference is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Certainty {
    pub half: f64,
    pub p: f64,
}

/// Student's paired t test.
pub(super) fn paired(pairs: &[(f64, f64)]) -> Option<Tested> {
    let differences = Spread::of(pairs.iter().map(|(a, b)| b - a))?;
    let counts = are_counts(pairs.iter().flat_map(|(a, b)| [*a, *b]));
    let certainty = differences.sd.map(|sd| {
        let n = f64::from(differences.n);
        // Both values of a pair were rounded.
        let variance = sd.powi(2).max(if counts { 2.0 * OF_ROUNDING } else { 0.0 });
        let found = certainty(differences.mean, (variance / n).sqrt(), n - 1.0);
        // As for unpaired groups: that a few differences are equal says little about further ones.
        let greatest = pairs.iter().flat_map(|(a, b)| [a.abs(), b.abs()]).fold(0.0, f64::max);
        let ties = sd <= ROUNDING * greatest;
        let least = if ties { by_signs(differences.n) } else { 0.0 };
        Certainty { p: found.p.max(least), ..found }
    });
    let identical = pairs.iter().all(|(a, b)| a == b);
    Some(Tested { difference: differences.mean, certainty, identical })
}

/// Welch's t test: Student's for two groups whose variances differ.
pub(super) fn unpaired(a: &[f64], b: &[f64]) -> Option<Tested> {
    let (one, other) = (Spread::of(a.iter().copied())?, Spread::of(b.iter().copied())?);
    let difference = other.mean - one.mean;
    let counts = are_counts(a.iter().chain(b).copied());
    let least = if counts { OF_ROUNDING } else { 0.0 };
    // The variance of a group's mean, and the degrees of freedom of that estimate.
    let of = |group: &Spread| {
        let n = f64::from(group.n);
        Some((group.sd?.powi(2).max(least) / n, n - 1.0))
    };
    let certainty = of(&one).zip(of(&other)).map(|((v, n), (w, m))| {
        // Welch and Satterthwaite. Without any variance both groups are known exactly, whatever the degrees.
        let degrees = (v + w).powi(2) / (v * v / n + w * w / m);
        let degrees = if degrees.is_finite() { degrees } else { n.min(m) };
        let found = certainty(difference, (v + w).sqrt(), degrees.max(1.0));
        // A group of equal values is not normally distributed: that a few values are equal says little about further ones.
        let ties = one.sd == Some(0.0) || other.sd == Some(0.0);
        let least = if ties { by_permutation(one.n, other.n) } else { 0.0 };
        Certainty { p: found.p.max(least), ..found }
    });
    let identical = a.iter().chain(b).all(|value| *value == a[0]);
    Some(Tested { difference, certainty, identical })
}

/// The least p value that a permutation test of two groups of these sizes can have: that of groups that do not overlap.
fn by_permutation(n: u32, m: u32) -> f64 {
    let ways = (1..=n.min(m)).map(|k| f64::from(n.max(m) + k) / f64::from(k)).product::<f64>();
    2.0 / ways
}

/// The least p value that a test of so many pairs by the signs of their differences can have: that of equal signs.
fn by_signs(n: u32) -> f64 {
    (1.0 - f64::from(n)).exp2()
}

fn certainty(difference: f64, error: f64, degrees: f64) -> Certainty {
    let p = match error > 0.0 {
        true => student::two_sided(difference / error, degrees),
        false if difference == 0.0 => 1.0,
        false => 0.0,
    };
    Certainty { half: student::half_width(degrees) * error, p }
}

fn are_counts(mut values: impl Iterator<Item = f64>) -> bool {
    values.all(|value| value.fract() == 0.0 && value.abs() < 1e9)
}

/// The p values of several tests, adjusted so that of all differences that are called so when the adjusted value is at most
/// *q*, a share of at most *q* is expected to be none: Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995.
pub(super) fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut found = vec![1.0; p.len()];
    let mut least = 1.0f64;
    for (rank, index) in order.iter().enumerate().rev() {
        least = least.min(p[*index] * p.len() as f64 / (rank + 1) as f64);
        found[*index] = least;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, want: f64) {
        assert!((found - want).abs() < 5e-4 * want.abs().max(1e-3), "{found}, expected {want}");
    }

    #[test]
    fn sleep_of_ten_patients() {
        // Student's own example (Biometrika 6, 1908): hours of sleep gained with two drugs.
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let other = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<(f64, f64)> = one.iter().copied().zip(other).collect();
        let tested = paired(&pairs).unwrap();
        near(tested.difference, 1.58);
        let Certainty { half, p } = tested.certainty.unwrap();
        near(p, 0.002_833);
        near(half, 2.459_886 - 1.58);
        // The same as if the patients were not: R's t.test gives p = 0.07939 and 3.365483 at most.
        let tested = unpaired(&one, &other).unwrap();
        let Certainty { half, p } = tested.certainty.unwrap();
        near(p, 0.079_39);
        near(half, 3.365_483 - 1.58);
    }

    #[test]
    fn one_value_is_not_certain() {
        let tested = paired(&[(1.0, 2.0)]).unwrap();
        assert_eq!((tested.difference, tested.certainty), (1.0, None));
        assert_eq!(unpaired(&[1.0], &[2.0, 3.0]).unwrap().certainty, None);
        assert_eq!(unpaired(&[], &[2.0]), None);
    }

    #[test]
    fn identical_values_are_so_whatever_their_number() {
        assert!(paired(&[(1.5, 1.5)]).unwrap().identical);
        assert!(unpaired(&[2.0, 2.0], &[2.0]).unwrap().identical);
        assert!(!unpaired(&[2.0, 2.0], &[2.0, 2.5]).unwrap().identical);
    }

    #[test]
    fn counts_are_not_known_better_than_to_a_half() {
        // From 0, 0, 0 and 1, 1, 1 alone it does not follow that the next value is the same.
        let counts = paired(&[(0.0, 1.0), (0.0, 1.0), (0.0, 1.0)]).unwrap().certainty.unwrap();
        assert!(counts.p > 0.05, "{counts:?}");
        let more = paired(&[(0.0, 2.0), (0.0, 3.0), (1.0, 3.0)]).unwrap().certainty.unwrap();
        assert!(more.p < 0.05, "{more:?}");
    }

    #[test]
    fn pairs_of_equal_differences_are_judged_by_their_signs() {
        // Of n signs there are 2ⁿ combinations; two are as extreme.
        let tied = |n: usize| paired(&vec![(1.5, 2.25); n]).unwrap().certainty.unwrap();
        assert_eq!((tied(3).p, tied(5).p, tied(10).p), (0.25, 2.0 / 32.0, 2.0 / 1024.0));
        assert_eq!(tied(3).half, 0.0);
        // The same of counts, and of differences that are equal but for rounding.
        assert_eq!(paired(&[(0.0, 2.0); 3]).unwrap().certainty.unwrap().p, 0.25);
        let rounded = paired(&[(0.1, 0.3), (0.2, 0.4), (0.3, 0.5)]).unwrap().certainty.unwrap();
        assert_eq!(rounded.p, 0.25);
        // Differences of one sign that vary a little are judged by Student's test alone.
        let varied = paired(&[(0.0, 1.5), (0.0, 1.51), (0.0, 1.52)]).unwrap().certainty.unwrap();
        assert!(varied.p < 0.001, "{varied:?}");
    }

    #[test]
    fn groups_of_equal_values_are_judged_by_permutation() {
        // Of 3 and 3 there are 20 divisions, of 5 and 5 252; two of each are as extreme.
        let p = |n: usize| unpaired(&vec![1.5; n], &vec![2.25; n]).unwrap().certainty.unwrap().p;
        assert!((p(3) - 0.1).abs() < 1e-12 && (p(5) - 2.0 / 252.0).abs() < 1e-12);
    }

    #[test]
    fn adjusted_by_hand() {
        // Ranks 1, 2, 3 and 4 of four: 0.01 · 4, 0.02 · 2, 0.04 · 4/3, 0.5.
        let found = adjusted(&[0.02, 0.5, 0.01, 0.04]);
        for (found, want) in found.iter().zip([0.04, 0.5, 0.04, 0.16 / 3.0]) {
            assert!((found - want).abs() < 1e-12);
        }
        assert!(adjusted(&[]).is_empty());
    }
}
