//! A metric of a cell of a study, over means or in one repetition.

use std::collections::BTreeSet;

use suiro_record::{TrialSummary, label_text};
use suiro_study::{Metric, Study};

use crate::stats::Spread;

/// What a cell's figure is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The mean over valid repetitions.
    Means,
    /// One repetition.
    Repetition(u32),
}

/// A figure of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mean {
    /// As the summary has it.
    pub value: f64,
    /// The repetitions that it is the mean of.
    pub of: BTreeSet<u32>,
}

/// The figures of a run by a study's names.
pub(super) struct Cells<'a> {
    pub study: &'a Study,
    trials: &'a [TrialSummary],
    which: Which,
}

impl<'a> Cells<'a> {
    pub fn new(study: &'a Study, trials: &'a [TrialSummary], which: Which) -> Self {
        Self { study, trials, which }
    }

    /// The labels of a cell, joined.
    pub fn name(&self, cell: &[usize]) -> String {
        let axes = self.study.axes.iter().zip(cell);
        let labels: Vec<&str> = axes.map(|(axis, label)| axis.labels[*label].as_str()).collect();
        labels.join(" · ")
    }

    /// A metric of a cell, or why there is none.
    pub fn figure(&self, metric: &Metric, cell: &[usize]) -> Result<Mean, String> {
        let trials = self.trials_of(cell)?;
        let valid: Vec<&&TrialSummary> = trials.iter().filter(|trial| trial.valid).collect();
        let measured = |trial: &&&TrialSummary| {
            Some((trial.repetition, trial.metrics.get(&metric.metric).copied().flatten()?))
        };
        let values: Vec<(u32, f64)> = valid.iter().filter_map(measured).collect();
        match Spread::of(values.iter().map(|(_, value)| *value)) {
            None if valid.is_empty() => Err(self.unusable(cell, &trials)),
            None => Err(format!("{}: {} was not measured", self.name(cell), metric.metric)),
            Some(spread) => Ok(Mean {
                value: spread.mean,
                of: values.iter().map(|(repetition, _)| *repetition).collect(),
            }),
        }
    }

    /// The trials of one cell. A run may have more axes than the study; then they must have one value.
    pub fn trials_of(&self, cell: &[usize]) -> Result<Vec<&'a TrialSummary>, String> {
        let wanted = |trial: &&TrialSummary| {
            let mut axes = self.study.axes.iter().zip(cell);
            let fits = |(axis, label): (&suiro_study::Axis, &usize)| {
                trial
                    .cell
                    .get(&axis.name)
                    .is_some_and(|value| label_text(value) == axis.labels[*label])
            };
            axes.all(fits)
        };
        let found: Vec<&TrialSummary> = self.trials.iter().filter(wanted).collect();
        let Some(first) = found.first() else {
            return Err(format!("{}: was not run", self.name(cell)));
        };
        if let Some(other) = found.iter().find(|trial| trial.cell != first.cell) {
            let differs =
                first.cell.iter().find(|(axis, value)| other.cell.get(*axis) != Some(value));
            let axis = differs.map(|(axis, _)| axis.as_str()).unwrap_or_default();
            return Err(format!(
                "{}: the run has several values of the axis `{axis}`, which the study does not \
                use; choose one with --only",
                self.name(cell)
            ));
        }
        let now = |trial: &&TrialSummary| match self.which {
            Which::Means => true,
            Which::Repetition(repetition) => trial.repetition == repetition,
        };
        Ok(found.into_iter().filter(now).collect())
    }

    /// Why none of a cell's trials counts.
    fn unusable(&self, cell: &[usize], trials: &[&TrialSummary]) -> String {
        let name = self.name(cell);
        let Some(first) = trials.first() else { return format!("{name}: was not run") };
        let why = first.invalid_because.as_deref().unwrap_or("no reason was recorded");
        let verdict = if first.skipped { "was skipped" } else { "is not valid" };
        format!("{name}: {verdict}: {why}")
    }
}
