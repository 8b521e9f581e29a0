//! Two runs compared, cell by cell and metric by metric: what differs, by how much, and how certain that is.

mod cells;
mod stored;
mod test;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use suiro_record::{Cell, TrialSummary};
use suiro_units::Seed;

use crate::{Better, Spread, describe};
pub(crate) use stored::Stored;
use test::Tested;

/// The share of verdicts that are expected to be wrong, of those that name a difference.
pub const WRONG: f64 = 0.05;

/// A difference below this share of the first mean counts as none, unless another is asked for.
pub const MARGIN: f64 = 0.02;

/// The fewest repetitions, or pairs, that a verdict needs. Two values are often close to each other at random: of runs
/// that differed in their seed alone, more than a quarter then had a false verdict (docs/method.md).
pub const VERDICT_LEAST: u32 = 3;

/// The tests and the verdicts, in words.
pub const TEST: &str = "Student's paired t test where both folders have trials of the same seeds, else, or if no pair has both \
     values, Welch's t test; 95 % \
     intervals of the difference of the means. Better, worse, higher and lower: the p value, adjusted for the number of metrics \
     and cells (Benjamini and Hochberg), is at most 0.05. Same: all values are identical, or the whole interval is within the \
     margin. Too noisy: neither, or fewer than 3 repetitions";

/// What became of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffVerdict {
    /// It changed, to the worse.
    Worse,
    /// It changed, to the better.
    Better,
    /// It grew; neither direction is better.
    Higher,
    /// It fell; neither direction is better.
    Lower,
    /// The repetitions vary too much, or are too few, for a verdict.
    TooNoisy,
    /// All values are identical, or the difference is within the margin.
    Same,
}

impl DiffVerdict {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::TooNoisy => "too noisy",
            Self::Same => "same",
        }
    }
}

/// What two runs differ in.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// The cells that both have.
    pub cells: Vec<CellDiff>,
    /// Cells of the first that match none of the second.
    pub only_first: Vec<Cell>,
    /// Cells of the second that match none of the first.
    pub only_second: Vec<Cell>,
}

/// A cell of each run, compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellDiff {
    /// The cell of the first run.
    pub first: Cell,
    /// The cell of the second run.
    pub second: Cell,
    /// Valid trials of the first.
    pub first_valid: u32,
    /// Valid trials of the second.
    pub second_valid: u32,
    /// Pairs of valid trials with the same seed; null if trials are not paired, because the seeds differ. A metric that was
    /// not measured in both trials of any pair is compared as if they were not paired.
    pub pairs: Option<u32>,
    /// Each metric that either has.
    pub metrics: BTreeMap<String, MetricDiff>,
}

/// A metric of both cells, compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct MetricDiff {
    /// Its mean over the valid trials of the first in which it was measured; null if in none. If trials are paired, and it was
    /// measured in both trials of a pair, only such pairs count.
    pub first: Option<f64>,
    /// The same of the second.
    pub second: Option<f64>,
    /// Trials of the first, or pairs, that the difference is of.
    pub first_n: u32,
    /// Trials of the second, or pairs.
    pub second_n: u32,
    /// The mean of the second minus that of the first, of pairs if any was measured in both trials; null if either side is
    /// not measured.
    pub difference: Option<f64>,
    /// The lower end of the 95 % confidence interval of the difference; null for one repetition.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The p value of no difference, before it was adjusted; null for fewer than three repetitions, and if all values are
    /// identical.
    pub p: Option<f64>,
    /// The p value adjusted for the number of metrics and cells.
    pub q: Option<f64>,
    /// What became of it; null if either is not measured.
    pub verdict: Option<DiffVerdict>,
}

/// Compares the trials of two runs. Only valid trials count. A difference of at most `margin` times the first mean counts as
/// none.
pub fn diff(first: &[TrialSummary], second: &[TrialSummary], margin: f64) -> Diff {
    let (a, b) = (cells::cells(first), cells::cells(second));
    let [of_a, of_b] = [&a, &b].map(|run| run.iter().map(|(cell, _)| *cell).collect::<Vec<_>>());
    let pairs = cells::matched(&of_a, &of_b);
    let compared = pairs.iter().map(|(i, j)| cell((of_a[*i], &a[*i].1), (of_b[*j], &b[*j].1)));
    let mut cells: Vec<CellDiff> = compared.collect();
    judge(&mut cells, margin);
    let left = |cells: Vec<&Cell>, paired: BTreeSet<usize>| {
        let left = cells.into_iter().enumerate().filter(|(index, _)| !paired.contains(index));
        left.map(|(_, cell)| cell.clone()).collect()
    };
    let only_first = left(of_a, pairs.iter().map(|(i, _)| *i).collect());
    let only_second = left(of_b, pairs.iter().map(|(_, j)| *j).collect());
    Diff { cells, only_first, only_second }
}

/// Two cells without verdicts.
fn cell(
    (first, a): (&Cell, &Vec<&TrialSummary>),
    (second, b): (&Cell, &Vec<&TrialSummary>),
) -> CellDiff {
    let pairs = pairs(a, b);
    let [a, b] = [a, b].map(|trials| valid(trials));
    let names: BTreeSet<&String> =
        a.iter().chain(&b).flat_map(|trial| trial.metrics.keys()).collect();
    let metrics =
        names.into_iter().map(|name| (name.clone(), of_metric(name, pairs.as_deref(), (&a, &b))));
    CellDiff {
        first: first.clone(),
        second: second.clone(),
        first_valid: count(a.len()),
        second_valid: count(b.len()),
        metrics: metrics.collect(),
        pairs: pairs.map(|pairs| count(pairs.len())),
    }
}

fn valid<'a>(trials: &[&'a TrialSummary]) -> Vec<&'a TrialSummary> {
    trials.iter().filter(|trial| trial.valid).copied().collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Trials of the same seed.
type Pair<'a> = (&'a TrialSummary, &'a TrialSummary);

/// The valid trials of the same seeds; `None` if a seed of the side with fewer trials is not on the other.
fn pairs<'a>(a: &[&'a TrialSummary], b: &[&'a TrialSummary]) -> Option<Vec<Pair<'a>>> {
    let by_seed = |trials: &[&'a TrialSummary]| -> BTreeMap<Seed, &'a TrialSummary> {
        trials.iter().map(|trial| (trial.seed, *trial)).collect()
    };
    let (of_a, of_b) = (by_seed(a), by_seed(b));
    let (few, many) = if of_a.len() <= of_b.len() { (&of_a, &of_b) } else { (&of_b, &of_a) };
    if few.is_empty() || !few.keys().all(|seed| many.contains_key(seed)) {
        return None;
    }
    let both = few.keys().map(|seed| (of_a[seed], of_b[seed]));
    Some(both.filter(|(one, other)| one.valid && other.valid).collect())
}

fn value(trial: &TrialSummary, name: &str) -> Option<f64> {
    trial.metrics.get(name).copied().flatten().filter(|value| value.is_finite())
}

/// The values of a metric that are compared with each other.
enum Values {
    /// Those of the pairs in which both trials measured it.
    Paired(Vec<(f64, f64)>),
    /// Those of both groups.
    Apart(Vec<f64>, Vec<f64>),
}

/// The values of a metric in two groups of valid trials: of the pairs in which both trials measured it; if there is none, of
/// both groups.
fn values(
    name: &str,
    pairs: Option<&[Pair<'_>]>,
    (a, b): (&[&TrialSummary], &[&TrialSummary]),
) -> Values {
    let both = |(one, other): &Pair<'_>| Some((value(one, name)?, value(other, name)?));
    let paired: Vec<(f64, f64)> = pairs.into_iter().flatten().filter_map(both).collect();
    match paired.is_empty() {
        true => Values::Apart(of(a, name), of(b, name)),
        false => Values::Paired(paired),
    }
}

/// A metric of two groups of valid trials, compared.
fn of_metric(
    name: &str,
    pairs: Option<&[Pair<'_>]>,
    groups: (&[&TrialSummary], &[&TrialSummary]),
) -> MetricDiff {
    match values(name, pairs, groups) {
        Values::Paired(pairs) => {
            let tested = test::paired(&pairs);
            let (one, other): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            measured(&one, &other, tested)
        }
        Values::Apart(one, other) => measured(&one, &other, test::unpaired(&one, &other)),
    }
}

fn of(trials: &[&TrialSummary], name: &str) -> Vec<f64> {
    trials.iter().filter_map(|trial| value(trial, name)).collect()
}

/// A metric without verdict, except that identical values are the same.
fn measured(one: &[f64], other: &[f64], tested: Option<Tested>) -> MetricDiff {
    let mean = |values: &[f64]| Spread::of(values.iter().copied()).map(|spread| spread.mean);
    let identical = tested.as_ref().is_some_and(|tested| tested.identical);
    let certainty = tested.as_ref().and_then(|tested| tested.certainty);
    let difference = tested.map(|tested| if identical { 0.0 } else { tested.difference });
    let interval = difference.zip(certainty);
    let enough = one.len().min(other.len()) >= VERDICT_LEAST as usize;
    MetricDiff {
        first: mean(one),
        second: mean(other),
        first_n: count(one.len()),
        second_n: count(other.len()),
        difference,
        low: interval.map(|(difference, certain)| difference - certain.half),
        high: interval.map(|(difference, certain)| difference + certain.half),
        p: certainty.filter(|_| enough && !identical).map(|certain| certain.p),
        q: None,
        verdict: identical.then_some(DiffVerdict::Same),
    }
}

/// Adjusts the p values of all cells together, and gives each metric its verdict.
fn judge(cells: &mut [CellDiff], margin: f64) {
    let all = cells.iter().flat_map(|cell| cell.metrics.values());
    let p: Vec<f64> = all.filter_map(|metric| metric.p).collect();
    let mut q = test::adjusted(&p).into_iter();
    for (name, metric) in cells.iter_mut().flat_map(|cell| &mut cell.metrics) {
        if metric.p.is_some() {
            metric.q = q.next();
        }
        let better = describe(name).map_or(Better::Neither, |(found, _)| found.better);
        metric.verdict = metric.verdict.or_else(|| verdict(metric, better, margin));
    }
}

/// The verdict on values that are not identical.
fn verdict(metric: &MetricDiff, better: Better, margin: f64) -> Option<DiffVerdict> {
    let difference = metric.difference?;
    let (Some(low), Some(high), Some(q)) = (metric.low, metric.high, metric.q) else {
        return Some(DiffVerdict::TooNoisy);
    };
    let most = margin * metric.first?.abs();
    if -most <= low && high <= most {
        return Some(DiffVerdict::Same);
    }
    if q > WRONG {
        return Some(DiffVerdict::TooNoisy);
    }
    Some(match (better, difference > 0.0) {
        (Better::Higher, true) | (Better::Lower, false) => DiffVerdict::Better,
        (Better::Higher, false) | (Better::Lower, true) => DiffVerdict::Worse,
        (Better::Neither, true) => DiffVerdict::Higher,
        (Better::Neither, false) => DiffVerdict::Lower,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial for each value, of seeds that follow `seed`.
    fn run(cell: &str, seed: u64, name: &str, values: &[Option<f64>]) -> Vec<TrialSummary> {
        let trial = |(place, value): (u64, &Option<f64>)| TrialSummary {
            cell: [("tcp".to_owned(), cell.into())].into_iter().collect(),
            repetition: place as u32 + 1,
            seed: Seed(seed + place),
            valid: true,
            invalid_because: None,
            skipped: false,
            metrics: [(name.to_owned(), *value)].into(),
        };
        (0..).zip(values).map(trial).collect()
    }

    const STALLS: &str = "player.stall_s";
    const GOODPUT: &str = "flow.goodput_mean_bps";
    const WINDOW: &str = "tcp.cwnd_mean_bytes";

    fn only(first: &[TrialSummary], second: &[TrialSummary]) -> (Option<u32>, MetricDiff) {
        let found = diff(first, second, MARGIN);
        let [cell] = &found.cells[..] else { panic!("{found:?}") };
        (cell.pairs, *cell.metrics.values().next().unwrap())
    }

    fn verdict_of(name: &str, a: &[f64], b: &[f64]) -> DiffVerdict {
        let run = |values: &[f64]| {
            run("reno", 1, name, &values.iter().copied().map(Some).collect::<Vec<_>>())
        };
        only(&run(a), &run(b)).1.verdict.unwrap()
    }

    #[test]
    fn better_and_worse_follow_the_metric() {
        let (low, high) = ([1.0, 1.1, 0.9, 1.05], [2.0, 2.1, 1.95, 2.0]);
        assert_eq!(verdict_of(STALLS, &low, &high), DiffVerdict::Worse);
        assert_eq!(verdict_of(STALLS, &high, &low), DiffVerdict::Better);
        assert_eq!(verdict_of(GOODPUT, &low, &high), DiffVerdict::Better);
        assert_eq!(verdict_of(WINDOW, &low, &high), DiffVerdict::Higher);
        assert_eq!(verdict_of(WINDOW, &high, &low), DiffVerdict::Lower);
    }

    #[test]
    fn what_varies_more_than_it_differs_is_too_noisy() {
        assert_eq!(verdict_of(STALLS, &[1.0, 3.0, 2.0], &[3.0, 1.5, 2.5]), DiffVerdict::TooNoisy);
        assert_eq!(verdict_of(STALLS, &[1.0], &[3.0]), DiffVerdict::TooNoisy, "one repetition");
        assert_eq!(verdict_of(STALLS, &[1.0, 1.0], &[3.0, 3.0]), DiffVerdict::TooNoisy, "two");
    }

    #[test]
    fn the_same_is_identical_or_within_the_margin() {
        assert_eq!(verdict_of(STALLS, &[0.0], &[0.0]), DiffVerdict::Same);
        assert_eq!(verdict_of(GOODPUT, &[1e6, 1.3e6], &[1e6, 1.3e6]), DiffVerdict::Same);
        assert_eq!(verdict_of(GOODPUT, &[1e6, 1e6], &[1.001e6, 1.001e6]), DiffVerdict::TooNoisy);
        // About 1 % more in each pair, well known: within 2 %.
        let (a, b) = ([1.0e6, 1.1e6, 1.2e6], [1.01e6, 1.11e6, 1.211e6]);
        assert_eq!(verdict_of(GOODPUT, &a, &b), DiffVerdict::Same);
        let found = diff(
            &run("reno", 1, GOODPUT, &a.map(Some)),
            &run("reno", 1, GOODPUT, &b.map(Some)),
            0.001,
        );
        assert_eq!(found.cells[0].metrics[GOODPUT].verdict, Some(DiffVerdict::Better));
    }

    #[test]
    fn trials_are_paired_by_seed_and_not_by_place() {
        let a = run("reno", 1, STALLS, &[1.0, 5.0, 9.0].map(Some));
        let mut b = run("reno", 1, STALLS, &[2.0, 6.01, 9.99].map(Some));
        b.reverse();
        let (pairs, metric) = only(&a, &b);
        assert_eq!((pairs, metric.verdict), (Some(3), Some(DiffVerdict::Worse)));
        // The same values with other seeds prove nothing.
        let other = run("reno", 7, STALLS, &[2.0, 6.01, 9.99].map(Some));
        let (pairs, metric) = only(&a, &other);
        assert_eq!((pairs, metric.verdict), (None, Some(DiffVerdict::TooNoisy)));
    }

    #[test]
    fn only_valid_trials_and_measured_values_count() {
        let mut a = run("reno", 1, STALLS, &[1.0, 5.0, 99.0, 3.0].map(Some));
        a[2].valid = false;
        let b = run("reno", 1, STALLS, &[Some(1.0), Some(5.0), Some(0.0), None]);
        let (pairs, metric) = only(&a, &b);
        assert_eq!(pairs, Some(3), "of valid trials");
        assert_eq!(
            (metric.first_n, metric.second_n),
            (2, 2),
            "of pairs in which both were measured"
        );
        assert_eq!(metric.verdict, Some(DiffVerdict::Same));
    }

    #[test]
    fn what_one_side_did_not_measure_has_no_verdict() {
        let (pairs, metric) = only(
            &run("reno", 1, STALLS, &[None, None]),
            &run("reno", 1, STALLS, &[1.0, 2.0].map(Some)),
        );
        assert_eq!(pairs, Some(2));
        assert_eq!((metric.first, metric.second, metric.difference), (None, Some(1.5), None));
        assert_eq!(metric.verdict, None);
    }

    #[test]
    fn what_no_pair_has_is_compared_between_the_groups() {
        // Of four seeds each side measured two, and no seed on both sides.
        let a = run("reno", 1, STALLS, &[Some(1.0), Some(2.0), None, None]);
        let b = run("reno", 1, STALLS, &[None, None, Some(3.0), Some(5.0)]);
        let (pairs, metric) = only(&a, &b);
        assert_eq!((pairs, metric.first_n, metric.second_n), (Some(4), 2, 2));
        assert_eq!((metric.first, metric.second), (Some(1.5), Some(4.0)));
        assert_eq!((metric.difference, metric.verdict), (Some(2.5), Some(DiffVerdict::TooNoisy)));
        // Trials that are not valid make no pair either; three on each side are enough for a verdict.
        let values = [1.0, 1.1, 1.2, 9.0, 9.1, 9.2].map(Some);
        let (mut a, mut b) = (run("reno", 1, STALLS, &values), run("reno", 1, STALLS, &values));
        a[3..].iter_mut().for_each(|trial| trial.valid = false);
        b[..3].iter_mut().for_each(|trial| trial.valid = false);
        let (pairs, metric) = only(&a, &b);
        assert_eq!((pairs, metric.first_n, metric.second_n), (Some(0), 3, 3));
        assert_eq!(metric.verdict, Some(DiffVerdict::Worse));
        assert!((metric.difference.unwrap() - 8.0).abs() < 1e-12);
        // One value each is too few.
        let a = run("reno", 1, STALLS, &[Some(1.0), None]);
        let (_, metric) = only(&a, &run("reno", 1, STALLS, &[None, Some(5.0)]));
        assert_eq!((metric.difference, metric.verdict), (Some(4.0), Some(DiffVerdict::TooNoisy)));
    }

    #[test]
    fn cells_of_one_run_alone_are_named() {
        let mut a = run("reno", 1, STALLS, &[Some(1.0)]);
        a.extend(run("cubic", 1, STALLS, &[Some(1.0)]));
        let mut b = run("reno", 1, STALLS, &[Some(1.0)]);
        b.extend(run("bbr", 1, STALLS, &[Some(1.0)]));
        let found = diff(&a, &b, MARGIN);
        assert_eq!(found.cells.len(), 1);
        assert_eq!(found.only_first[0]["tcp"], "cubic");
        assert_eq!(found.only_second[0]["tcp"], "bbr");
    }

    #[test]
    fn many_metrics_are_judged_together() {
        // One difference of p = 0.01 alone, and the same among twenty that show nothing.
        let with = |more: usize, values: &[f64]| {
            let mut trials =
                run("reno", 1, STALLS, &values.iter().copied().map(Some).collect::<Vec<_>>());
            for index in 0..more {
                for (place, trial) in trials.iter_mut().enumerate() {
                    let value = [1.0, 2.5, 4.0][(place + values[0] as usize) % 3];
                    trial.metrics.insert(format!("tcp.h{index}.retransmits"), Some(value));
                }
            }
            trials
        };
        let verdict = |more| {
            let found = diff(&with(more, &[1.0, 1.0, 1.0]), &with(more, &[2.9, 3.5, 3.2]), MARGIN);
            found.cells[0].metrics[STALLS].verdict
        };
        assert_eq!(verdict(0), Some(DiffVerdict::Worse));
        assert_eq!(verdict(20), Some(DiffVerdict::TooNoisy));
    }
}
