//! When a rate has settled after a change of the capacity.

use crate::held::{self, Stretch};
use crate::link::Direction;

/// How far from its settled rate a flow may be when it has settled.
const SETTLED_WITHIN: f64 = 0.15;

/// Rates in a row that must be near it.
const IN_A_ROW: usize = 5;

/// Changes of the capacity that are looked at one by one: a trace has thousands.
const CHANGES_MAX: usize = 100;

/// When the rate that was asked of the link with the least changes; a ramp of more than a few changes counts as none.
pub(crate) fn changes(links: &[Direction]) -> Vec<i64> {
    let towards = links.iter().filter(|link| link.is_towards_viewers());
    let asked = towards.filter_map(|link| {
        let stretches: Vec<Stretch<f64>> = link.asked_stretches()?.collect();
        let rate = held::distribution(&stretches, |rate| Some(*rate)).mean()?;
        Some((rate, stretches))
    });
    let Some((_, stretches)) = asked.min_by(|a, b| a.0.total_cmp(&b.0)) else { return Vec::new() };
    let changed = stretches.windows(2).filter(|pair| pair[0].value != pair[1].value);
    let changes: Vec<i64> = changed.map(|pair| pair[1].from_ns).collect();
    if changes.len() > CHANGES_MAX { Vec::new() } else { changes }
}

/// The first of five rates in a row that are near the mean of the second half; all of them if there is none.
pub(crate) fn first(rates: &[f64]) -> usize {
    let settled = mean(&rates[rates.len() / 2..]);
    let near = |rate: &f64| (rate - settled).abs() <= SETTLED_WITHIN * settled;
    rates.windows(IN_A_ROW).position(|five| five.iter().all(near)).unwrap_or(rates.len())
}

fn mean(rates: &[f64]) -> f64 {
    if rates.is_empty() { 0.0 } else { rates.iter().sum::<f64>() / rates.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_settled_with_the_first_of_five_that_are_near_its_mean() {
        let mut rates = vec![1.0, 5.0, 9.0, 10.0, 12.0, 10.0, 9.0];
        rates.extend([10.0; 13]);
        // 12 is too far from 10.
        assert_eq!(first(&rates), 5);
        rates[19] = 100.0;
        assert_eq!(first(&rates), 20, "the mean of the second half is 19");
    }
}
