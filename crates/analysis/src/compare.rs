//! The repetitions of each cell, joined.

use std::collections::BTreeMap;

use suiro_record::{Cell, CellMeans, Interval, Summary, TrialSummary};

use crate::stats::Spread;

/// One cell over its valid repetitions.
#[derive(Debug, Clone)]
pub struct CellSummary {
    /// The combination.
    pub cell: Cell,
    /// Indices of its trials in the summary, valid or not.
    pub trials: Vec<usize>,
    /// Each metric over the valid trials in which it was measured; `None` if in none.
    pub metrics: BTreeMap<String, Option<Spread>>,
}

/// Joins the repetitions of each cell, in the order in which cells first appear. Trials that are not
/// valid are listed but do not count.
pub fn compare(trials: &[TrialSummary]) -> Vec<CellSummary> {
    let names: Vec<&str> = Summary::names(trials).into_iter().map(String::as_str).collect();
    compare_some(trials, &names)
}

/// The same of the metrics of these names: all of 100,000 trials would take more than a gigabyte.
pub fn compare_some(trials: &[TrialSummary], names: &[&str]) -> Vec<CellSummary> {
    let mut cells: Vec<CellSummary> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (index, trial) in trials.iter().enumerate() {
        let key = serde_json::to_string(&trial.cell).expect("a cell is JSON");
        let place = *places.entry(key).or_insert(cells.len());
        if place == cells.len() {
            let (cell, metrics) = (trial.cell.clone(), BTreeMap::new());
            cells.push(CellSummary { cell, trials: Vec::new(), metrics });
        }
        cells[place].trials.push(index);
    }
    for cell in &mut cells {
        let valid: Vec<&TrialSummary> =
            cell.trials.iter().map(|index| &trials[*index]).filter(|trial| trial.valid).collect();
        let some_have = |name: &&&str| valid.iter().any(|it| it.metrics.contains_key(name));
        let spread = |name: &&str| {
            let values = valid.iter().filter_map(|trial| *trial.metrics.get(name)?);
            ((*name).to_owned(), Spread::of(values))
        };
        cell.metrics = names.iter().filter(some_have).map(spread).collect();
    }
    cells
}

/// How the intervals of [`means`] are computed, in words.
pub const INTERVAL: &str = "mean ± t(0.975, n − 1) · sd ∕ √n: the 95 % confidence interval of the mean by Student's t \
     over the n valid repetitions in which the metric was measured; sd is their standard deviation with n − 1";

/// The means of each cell with their intervals, for `summary.json`.
pub fn means(trials: &[TrialSummary]) -> Vec<CellMeans> {
    let interval = |spread: Spread| {
        let Spread { n, mean, sd, ci95 } = spread;
        Interval {
            n,
            mean,
            sd,
            low: ci95.map(|half| mean - half),
            high: ci95.map(|half| mean + half),
        }
    };
    let cell = |cell: CellSummary| {
        let valid = cell.trials.iter().filter(|index| trials[**index].valid).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let metrics = cell.metrics.into_iter();
        CellMeans {
            cell: cell.cell,
            trials: count(cell.trials.len()),
            valid: count(valid),
            metrics: metrics.map(|(name, spread)| (name, spread.map(interval))).collect(),
        }
    };
    compare(trials).into_iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_units::Seed;

    fn trial(tcp: &str, repetition: u32, valid: bool, value: Option<f64>) -> TrialSummary {
        TrialSummary {
            cell: [("tcp".to_owned(), tcp.into())].into_iter().collect(),
            repetition,
            seed: Seed(0),
            valid,
            invalid_because: None,
            skipped: false,
            metrics: [("x".to_owned(), value)].into(),
        }
    }

    #[test]
    fn only_valid_measured_trials_count() {
        let cells = compare(&[
            trial("reno", 1, true, Some(1.0)),
            trial("cubic", 1, true, None),
            trial("reno", 2, true, Some(3.0)),
            trial("reno", 3, false, Some(99.0)),
        ]);
        assert_eq!(cells.len(), 2);
        assert_eq!(cells[0].trials, [0, 2, 3]);
        let reno = cells[0].metrics["x"].unwrap();
        assert_eq!((reno.n, reno.mean), (2, 2.0));
        assert_eq!(cells[1].metrics["x"], None);
    }

    #[test]
    fn the_summary_has_means_with_their_intervals() {
        let means = means(&[
            trial("reno", 1, true, Some(1.0)),
            trial("reno", 2, true, Some(3.0)),
            trial("reno", 3, false, Some(99.0)),
            trial("cubic", 1, true, Some(5.0)),
        ]);
        assert_eq!((means[0].trials, means[0].valid), (3, 2));
        let reno = means[0].metrics["x"].unwrap();
        assert_eq!((reno.n, reno.mean, reno.sd), (2, 2.0, Some(2f64.sqrt())));
        // t(0.975, 1) = tan(0.475·π), as with one degree of freedom it is Cauchy's distribution; sd ∕ √2 = 1.
        let t = (0.475 * std::f64::consts::PI).tan();
        assert!((reno.low.unwrap() - (2.0 - t)).abs() < 1e-9);
        assert!((reno.high.unwrap() - (2.0 + t)).abs() < 1e-9);
        let one = means[1].metrics["x"].unwrap();
        assert_eq!((one.n, one.low, one.high), (1, None, None));
    }
}
