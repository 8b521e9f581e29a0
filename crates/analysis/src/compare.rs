//! The repetitions of each cell, joined.

use std::collections::BTreeMap;

use suiro_record::{Cell, TrialSummary};

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
    let mut cells: Vec<CellSummary> = Vec::new();
    for (index, trial) in trials.iter().enumerate() {
        match cells.iter_mut().find(|known| known.cell == trial.cell) {
            Some(known) => known.trials.push(index),
            None => cells.push(CellSummary {
                cell: trial.cell.clone(),
                trials: vec![index],
                metrics: BTreeMap::new(),
            }),
        }
    }
    for cell in &mut cells {
        let valid: Vec<&TrialSummary> =
            cell.trials.iter().map(|index| &trials[*index]).filter(|trial| trial.valid).collect();
        let names = valid.iter().flat_map(|trial| trial.metrics.keys().cloned());
        cell.metrics = names
            .map(|name| {
                let values = valid.iter().filter_map(|trial| *trial.metrics.get(&name)?);
                let spread = Spread::of(values);
                (name, spread)
            })
            .collect();
    }
    cells
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
}
