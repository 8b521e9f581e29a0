//! A formula over the figures of a run.
//!
//! Every part is looked at, also where the verdict stands already: a reader wants all figures. If
//! one figure is missing, there is no verdict.
//!
//! A comparison is judged by the means, and by its margin in each repetition, where all cells have the same seeds: if the
//! 95 % confidence interval of the mean margin has both signs, it is inconclusive. If all figures are of the same one
//! repetition, nothing is known about its margin; then the figures decide alone. If they are of several, and at most one
//! of these has all of them, there is no margin to judge, and it is inconclusive as well.

use std::collections::BTreeSet;

use suiro_record::words::FindingVerdict;
use suiro_study::formula::{
    Binding, Comparison, Fold, Join, Number, Reference, Relation, Truth, Value,
};
use suiro_study::unit::Unit;

use super::cells::Cells;
use crate::stats::{Distribution, Spread, rounded};

/// A formula judged.
#[derive(Debug, Default)]
pub(super) struct Judged {
    verdict: Option<FindingVerdict>,
    /// Every comparison, in the order of the formula.
    pub compared: Vec<Compared>,
    /// Why figures lack, each once.
    pub missing: Vec<String>,
}

impl Judged {
    /// The verdict; `None` if a figure does not have.
    pub fn verdict(&self) -> Option<FindingVerdict> {
        self.verdict.filter(|_| self.missing.is_empty())
    }
}

/// One comparison and its figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compared {
    /// The labels that all metrics on the left have in common, joined.
    pub place: String,
    pub left: Figure,
    pub right: Figure,
    pub relation: Relation,
    /// What the figures say, margin or not.
    pub holds: bool,
    pub verdict: FindingVerdict,
    /// By how much it holds (below zero: fails), over the repetitions; `None` if that is not known.
    pub margin: Option<Spread>,
    /// Repetitions that have some of its values and repetitions that have all, if that is at most one of several.
    pub apart: Option<Apart>,
    /// Whether the right side is a number of the formula, not of the run.
    pub bound: bool,
}

/// Values of several repetitions that cannot be compared within these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Apart {
    /// Repetitions that have at least one of the values.
    pub some: u32,
    /// Those that have all of them: none or one.
    pub all: u32,
}

/// A number to print.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// In base units.
    pub value: f64,
    pub unit: Unit,
    pub quotient: bool,
    /// What it is, where the study has words for it.
    pub title: Option<String>,
    /// What is counted, where it has neither words nor unit.
    pub noun: Option<String>,
}

/// Judges a formula over `cells`; `alone` has the same cells in each repetition.
pub(super) fn evaluate(truth: &Truth, cells: &Cells<'_>, alone: &[Cells<'_>]) -> Judged {
    let labels = vec![None; cells.study.axes.len()];
    let mut run = Run { cells, alone, labels, used: BTreeSet::new(), judged: Judged::default() };
    let verdict = run.truth(truth);
    Judged { verdict, ..run.judged }
}

struct Run<'a> {
    cells: &'a Cells<'a>,
    alone: &'a [Cells<'a>],
    /// The label that each axis takes at the time.
    labels: Vec<Option<usize>>,
    /// The repetitions that the figures of the comparison are of.
    used: BTreeSet<u32>,
    judged: Judged,
}

impl Run<'_> {
    fn truth(&mut self, truth: &Truth) -> Option<FindingVerdict> {
        match truth {
            Truth::Each { any, over, body } => {
                let mut each = Vec::new();
                self.over(over, &mut |run| each.push(run.truth(body)));
                joined(*any, each)
            }
            Truth::And(parts) => {
                let parts = parts.iter().map(|part| self.truth(part)).collect();
                joined(false, parts)
            }
            Truth::Or(parts) => {
                let parts = parts.iter().map(|part| self.truth(part)).collect();
                joined(true, parts)
            }
            Truth::Not(inner) => self.truth(inner).map(contrary),
            Truth::Compare(comparison) => self.compare(comparison),
        }
    }

    fn compare(&mut self, comparison: &Comparison) -> Option<FindingVerdict> {
        let Comparison { left, relation, right } = comparison;
        self.used.clear();
        let (of_left, of_right) = (self.number(left), self.number(right));
        let of_right = of_right?;
        let of_left = rounded(of_left?, of_right);
        let holds = relation.holds(of_left, of_right);
        let margin = self.margin(comparison);
        let has_margin = relation.margin(of_left, of_right).is_some();
        let apart = apart(&self.used, margin.as_ref()).filter(|_| has_margin);
        let verdict = match apart {
            Some(_) => FindingVerdict::Inconclusive,
            None => shown(holds, margin.as_ref(), left.is_constant() || right.is_constant()),
        };
        let metrics = &self.cells.study.metrics;
        let words = |of: &Number| match &of.value {
            Value::Metric(reference) => {
                let metric = &metrics[reference.metric];
                let counted = metric.title.is_none() && of.unit.name.is_empty();
                (metric.title.clone(), counted.then(|| metric.name.clone()))
            }
            _ => (None, None),
        };
        let figure = |value, of: &Number| {
            let (title, noun) = words(of);
            Figure { value, unit: of.unit, quotient: of.is_quotient(), title, noun }
        };
        let compared = Compared {
            place: self.words(&self.common(left)),
            left: figure(of_left, left),
            right: figure(of_right, right),
            relation: *relation,
            holds,
            verdict,
            margin,
            apart,
            bound: right.is_constant(),
        };
        self.judged.compared.push(compared);
        Some(verdict)
    }

    /// By how much a comparison holds in the repetitions.
    fn margin(&self, comparison: &Comparison) -> Option<Spread> {
        let Comparison { left, relation, right } = comparison;
        let margins = self.alone.iter().filter_map(|cells| {
            let labels = self.labels.clone();
            let (used, judged) = (BTreeSet::new(), Judged::default());
            let mut run = Run { cells, alone: &[], labels, used, judged };
            let right = run.number(right)?;
            relation.margin(rounded(run.number(left)?, right), right)
        });
        Spread::of(margins)
    }

    /// Labels in words.
    fn words(&self, labels: &[Option<usize>]) -> String {
        let axes = self.cells.study.axes.iter().zip(labels);
        let labels: Vec<&str> =
            axes.filter_map(|(axis, label)| Some(axis.labels[(*label)?].as_str())).collect();
        labels.join(" ")
    }

    /// The labels that all metrics of a number have in common; of none, those that vary.
    fn common(&self, number: &Number) -> Vec<Option<usize>> {
        let mut cells = number.references().into_iter().map(|reference| self.cell(reference));
        let Some(mut common) = cells.next() else { return self.labels.clone() };
        for cell in cells {
            for (label, other) in common.iter_mut().zip(cell) {
                *label = label.filter(|label| other == Some(*label));
            }
        }
        common
    }

    /// The labels of a metric's cell at the time.
    fn cell(&self, reference: &Reference) -> Vec<Option<usize>> {
        let at = reference.at.iter().zip(&self.labels);
        at.map(|(chosen, varies)| chosen.or(*varies)).collect()
    }

    /// A number in base units; `None` if a figure does not have or it has no finite value.
    fn number(&mut self, number: &Number) -> Option<f64> {
        let value = match &number.value {
            Value::Constant(value) => Some(*value),
            Value::Metric(reference) => self.metric(reference),
            Value::Negative(of) => self.number(of).map(|value| -value),
            Value::Join(join, left, right) => {
                let (left, right) = (self.number(left), self.number(right));
                joined_numbers(*join, left?, right?)
            }
            Value::Fold(fold, of) => {
                let values: Vec<Option<f64>> = of.iter().map(|of| self.number(of)).collect();
                folded(*fold, values)
            }
            Value::FoldOver(fold, over, of) => {
                let mut values = Vec::new();
                self.over(over, &mut |run| values.push(run.number(of)));
                folded(*fold, values)
            }
        };
        if value.is_some_and(|value| !value.is_finite()) {
            let place = self.words(&self.common(number));
            self.lacks(format!("{place}: not a number: division by zero"));
            return None;
        }
        value
    }

    fn metric(&mut self, reference: &Reference) -> Option<f64> {
        let cell: Option<Vec<usize>> = self.cell(reference).into_iter().collect();
        let cell = cell.expect("every axis is chosen or varies: checked by the parser");
        let metric = &self.cells.study.metrics[reference.metric];
        match self.cells.figure(metric, &cell) {
            Ok(mean) => {
                self.used.extend(mean.of);
                Some(metric.base(mean.value))
            }
            Err(why) => {
                self.lacks(why);
                None
            }
        }
    }

    fn lacks(&mut self, why: String) {
        if !self.judged.missing.contains(&why) {
            self.judged.missing.push(why);
        }
    }

    /// Does it for every combination of labels.
    fn over(&mut self, over: &[Binding], body: &mut dyn FnMut(&mut Self)) {
        let Some((first, rest)) = over.split_first() else { return body(self) };
        for label in &first.labels {
            self.labels[first.axis] = Some(*label);
            self.over(rest, body);
        }
        self.labels[first.axis] = None;
    }
}

/// Whether values are of several repetitions, of which at most one has all of them.
fn apart(used: &BTreeSet<u32>, margin: Option<&Spread>) -> Option<Apart> {
    let some = u32::try_from(used.len()).unwrap_or(u32::MAX);
    let all = margin.map_or(0, |margin| margin.n);
    (some > 1 && all < 2).then_some(Apart { some, all })
}

/// What the figures say is shown if the margin's confidence interval keeps to their side. Two figures that were measured
/// and are equal show nothing, whichever way they are compared. One that equals its bound does: the comparison decides.
fn shown(holds: bool, margin: Option<&Spread>, bound: bool) -> FindingVerdict {
    let certain = match margin {
        Some(Spread { mean, ci95: Some(ci95), .. }) if holds => {
            mean - ci95 > 0.0 || bound && mean - ci95 >= 0.0
        }
        Some(Spread { mean, ci95: Some(ci95), .. }) => {
            mean + ci95 < 0.0 || bound && mean + ci95 <= 0.0
        }
        _ => true,
    };
    match (certain, holds) {
        (false, _) => FindingVerdict::Inconclusive,
        (true, true) => FindingVerdict::Holds,
        (true, false) => FindingVerdict::DoesNotHold,
    }
}

const fn contrary(verdict: FindingVerdict) -> FindingVerdict {
    match verdict {
        FindingVerdict::Holds => FindingVerdict::DoesNotHold,
        FindingVerdict::Inconclusive => FindingVerdict::Inconclusive,
        FindingVerdict::DoesNotHold => FindingVerdict::Holds,
    }
}

/// One verdict of several; `None` if one does not have.
fn joined(any: bool, parts: Vec<Option<FindingVerdict>>) -> Option<FindingVerdict> {
    let parts: Option<Vec<FindingVerdict>> = parts.into_iter().collect();
    let parts = parts?.into_iter();
    if any {
        Some(parts.max().unwrap_or(FindingVerdict::DoesNotHold))
    } else {
        Some(parts.min().unwrap_or(FindingVerdict::Holds))
    }
}

fn joined_numbers(join: Join, left: f64, right: f64) -> Option<f64> {
    Some(match join {
        Join::Add => left + right,
        Join::Subtract => left - right,
        Join::Multiply => left * right,
        Join::Divide => left / right,
    })
}

fn folded(fold: Fold, values: Vec<Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
    Some(match fold {
        Fold::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Fold::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        // Of no values it is none: `number` refuses what is not finite.
        Fold::Mean => Distribution::equal(values).mean().unwrap_or(f64::NAN),
    })
}
