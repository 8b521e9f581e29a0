//! A baseline: a stored run whose cells are those of another run.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::{Cell, TrialSummary, label_text};

use super::cells::{self, labels};
use super::{Values, pairs, valid, values};
use crate::stats::Spread;

/// The trials of a cell.
type Trials<'a> = Vec<&'a TrialSummary>;

/// The cells of a stored run next to those of another, each with the one that is the same.
///
/// It has the same label on every axis that both runs have. An axis that one run alone has does not count as long as it
/// has one label there. This is stricter than [`diff`](super::diff()): a bound is that of the cell itself.
pub(crate) struct Stored<'a> {
    /// The axes that both runs have.
    axes: Vec<String>,
    /// By the labels on these axes: the trials of the stored cell and of the other, or why they are not known.
    cells: BTreeMap<Vec<String>, Result<[Trials<'a>; 2], String>>,
}

impl<'a> Stored<'a> {
    pub fn of(stored: &'a [TrialSummary], trials: &'a [TrialSummary]) -> Self {
        let (before, now) = (cells::cells(stored), cells::cells(trials));
        let [of_before, of_now] =
            [&before, &now].map(|run| labels(run.iter().map(|(cell, _)| *cell)));
        let axes: Vec<String> = of_now
            .keys()
            .filter(|axis| of_before.contains_key(*axis))
            .map(|axis| (*axis).to_owned())
            .collect();
        let mut groups: BTreeMap<Vec<String>, [Vec<Trials<'a>>; 2]> = BTreeMap::new();
        for (side, run) in [before, now].into_iter().enumerate() {
            for (cell, trials) in run {
                groups.entry(key(&axes, cell)).or_default()[side].push(trials);
            }
        }
        let alone = [several(&of_before, &of_now), several(&of_now, &of_before)];
        let cells = groups.into_iter().map(|(key, group)| (key, one_each(group, &alone)));
        Self { cells: cells.collect(), axes }
    }

    /// A metric in the stored cell that is this one, and its values that are compared with that: of the trials with the same
    /// seeds, if they are paired.
    ///
    /// # Errors
    /// No stored cell is this one, several are, or it does not have the metric.
    pub fn of_metric(&self, cell: &Cell, metric: &str) -> Result<Compared, String> {
        let found = self.cells.get(&key(&self.axes, cell));
        let [before, now] = found.ok_or("the baseline has no such cell")?.as_ref()?;
        let pairs = pairs(before, now);
        let found = values(metric, pairs.as_deref(), (&valid(before), &valid(now)));
        let (before, values): (Vec<f64>, Vec<f64>) = match found {
            Values::Paired(pairs) => pairs.into_iter().unzip(),
            Values::Apart(before, now) => (before, now),
        };
        let stored = Spread::of(before).ok_or("the baseline has no value of it in this cell")?;
        Ok(Compared { baseline: stored.mean, values })
    }
}

/// A metric of a cell next to the stored one.
pub(crate) struct Compared {
    /// The mean of the stored cell.
    pub baseline: f64,
    /// The values of the cell that are compared with it.
    pub values: Vec<f64>,
}

/// The labels of a cell on some axes.
fn key(axes: &[String], cell: &Cell) -> Vec<String> {
    axes.iter().map(|axis| cell.get(axis).map(label_text).unwrap_or_default()).collect()
}

/// The axes of several labels that one run has and the other does not, in words.
fn several(
    own: &BTreeMap<&str, BTreeSet<String>>,
    others: &BTreeMap<&str, BTreeSet<String>>,
) -> String {
    let axes = own.iter().filter(|(axis, found)| found.len() > 1 && !others.contains_key(*axis));
    let axes: Vec<String> = axes.map(|(axis, _)| format!("`{axis}`")).collect();
    axes.join(", ")
}

fn one_each<'a>(
    [mut before, mut now]: [Vec<Trials<'a>>; 2],
    [of_before, of_now]: &[String; 2],
) -> Result<[Trials<'a>; 2], String> {
    match (before.len(), now.len()) {
        (0, _) => Err("the baseline has no such cell".to_owned()),
        (2.., _) => Err(format!(
            "{} cells of the baseline match: this run does not have its axis {of_before}",
            before.len()
        )),
        (1, 2..) => Err(format!("the baseline does not have the axis {of_now}")),
        (1, _) => Ok([before.remove(0), now.pop().unwrap_or_default()]),
    }
}
