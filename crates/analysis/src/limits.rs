//! Limits judged: what a run must keep to, in each of its cells.

use schemars::JsonSchema;
use serde::Serialize;
use suiro_record::{Axis, Cell, TrialSummary, label_text};
use suiro_study::formula::Relation;
use suiro_study::limit::{Limit, sign};

use crate::diff::Stored;
use crate::stats::{Spread, rounded};
use crate::{compare, describe};

/// What became of a limit in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitOutcome {
    /// It was kept.
    Kept,
    /// It was not kept, or its metric was not measured in every valid trial.
    Broken,
    /// There is no valid trial of the cell, no cell that it is for, or not one cell of the baseline with the metric that is
    /// the same.
    NotJudged,
    /// The cell was not tried on this machine, or `--only` left out what the limit is for, or it needs a baseline and none
    /// was given.
    Skipped,
}

/// A limit and what became of it in each cell that it is for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JudgedLimit {
    /// Its name in `[limits]`; what was typed, for one of the command line.
    pub name: String,
    /// The limit.
    pub limit: String,
    /// The metric of the summary.
    pub metric: String,
    /// The metric in a few words.
    pub label: String,
    /// Its unit; empty for counts and scores.
    pub unit: String,
    /// Digits of the metric that are worth showing.
    pub digits: u8,
    /// `<`, `<=`, `>` or `>=`.
    pub relation: String,
    /// The cells that it is for; if the run has none of them, one of the labels that the limit names, without a value.
    pub cells: Vec<JudgedCell>,
}

/// A limit in one cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JudgedCell {
    /// The cell.
    pub cell: Cell,
    /// What became of it.
    pub outcome: LimitOutcome,
    /// The mean over the valid repetitions; null if the metric was not measured. Next to a baseline whose trials have the same
    /// seeds, only repetitions count that have a partner there, and so for `n` and `kept_in`.
    pub value: Option<f64>,
    /// The bound, in the metric's unit; null if it needs a baseline's value that there is not.
    pub bound: Option<f64>,
    /// The mean of the baseline; null without one.
    pub baseline: Option<f64>,
    /// Valid repetitions in which the metric was measured.
    pub n: u32,
    /// Those of them that keep to the limit by themselves.
    pub kept_in: u32,
    /// Why it was not judged or was skipped, or is broken whatever its value.
    pub because: Option<String>,
}

/// Judges limits, each with its name, by the means of the valid trials. `axes` are those of the plan with all their labels,
/// whatever `--only` left out; `baseline` has the trials of a stored run.
pub fn limits(
    limits: &[(String, Limit)],
    axes: &[Axis],
    trials: &[TrialSummary],
    baseline: Option<&[TrialSummary]>,
) -> Vec<JudgedLimit> {
    let stored = baseline.map(|baseline| Stored::of(baseline, trials));
    let run = Run { axes, trials, stored };
    limits.iter().map(|(name, limit)| judge(name, limit, &run)).collect()
}

/// What limits are judged by.
struct Run<'a> {
    axes: &'a [Axis],
    trials: &'a [TrialSummary],
    stored: Option<Stored<'a>>,
}

fn judge(name: &str, limit: &Limit, run: &Run<'_>) -> JudgedLimit {
    let cells = compare(run.trials).into_iter().filter(|it| is_for(limit, &it.cell));
    let cells = cells.map(|cell| {
        let of: Vec<&TrialSummary> = cell.trials.iter().map(|index| &run.trials[*index]).collect();
        in_cell(limit, cell.cell, &of, run.stored.as_ref())
    });
    let mut cells: Vec<JudgedCell> = cells.collect();
    if cells.is_empty() {
        cells.push(without_cells(limit, run.axes));
    }
    let known = describe(&limit.metric).map(|(metric, instance)| (metric, instance.words()));
    let label = known.as_ref().map_or_else(
        || limit.metric.clone(),
        |(metric, words)| match &**words {
            "" => metric.label.to_owned(),
            words => format!("{}, {words}", metric.label),
        },
    );
    JudgedLimit {
        name: name.to_owned(),
        limit: limit.text.clone(),
        metric: limit.metric.clone(),
        label,
        unit: known.as_ref().map_or("", |(metric, _)| metric.unit).to_owned(),
        digits: known.as_ref().map_or(3, |(metric, _)| metric.digits),
        relation: sign(limit.relation).to_owned(),
        cells,
    }
}

/// The outcome of a limit that applies to no cell of the run.
fn without_cells(limit: &Limit, axes: &[Axis]) -> JudgedCell {
    let axes: Vec<_> = axes.iter().map(Axis::named).collect();
    let (outcome, because) = match limit.check_labels(&axes) {
        Ok(()) => {
            (LimitOutcome::Skipped, "this run leaves its cells out (--only or --trial)".into())
        }
        Err(refusal) => (LimitOutcome::NotJudged, format!("it is for no cell: {}", refusal.found)),
    };
    let label = |(axis, label): &(String, String)| (axis.clone(), label.as_str().into());
    JudgedCell {
        cell: limit.only.iter().map(label).collect(),
        outcome,
        value: None,
        bound: limit.bound.value(None),
        baseline: None,
        n: 0,
        kept_in: 0,
        because: Some(because),
    }
}

/// Whether a limit is for a cell: it has each label that the limit names.
fn is_for(limit: &Limit, cell: &Cell) -> bool {
    let has = |axis: &String| cell.get(axis).map(label_text);
    limit.only.iter().all(|(axis, label)| has(axis).as_ref() == Some(label))
}

fn in_cell(
    limit: &Limit,
    cell: Cell,
    trials: &[&TrialSummary],
    stored: Option<&Stored<'_>>,
) -> JudgedCell {
    let valid: Vec<&&TrialSummary> = trials.iter().filter(|trial| trial.valid).collect();
    let value = |trial: &&&TrialSummary| trial.metrics.get(&limit.metric).copied().flatten();
    let all: Vec<f64> = valid.iter().filter_map(value).filter(|value| value.is_finite()).collect();
    let missing = valid.len() - all.len();
    let needed = stored.filter(|_| limit.bound.needs_baseline());
    let found = needed.map(|stored| stored.of_metric(&cell, &limit.metric));
    let (values, baseline, unknown) = match found {
        Some(Ok(compared)) => (compared.values, Some(compared.baseline), None),
        Some(Err(because)) => (all, None, Some(because)),
        None => (all, None, None),
    };
    let spread = Spread::of(values.iter().copied());
    let bound = limit.bound.value(baseline);
    let keeps = |value: f64| bound.is_some_and(|bound| keeps(limit.relation, value, bound));
    let (outcome, because) = match (spread, bound) {
        _ if trials.iter().all(|trial| trial.skipped) => {
            (LimitOutcome::Skipped, Some("this machine cannot run it".to_owned()))
        }
        _ if limit.bound.needs_baseline() && stored.is_none() => {
            (LimitOutcome::Skipped, Some("no --baseline was given".to_owned()))
        }
        _ if valid.is_empty() => (LimitOutcome::NotJudged, Some("no trial is valid".to_owned())),
        (None, _) => (LimitOutcome::Broken, Some(not_measured(limit, &valid))),
        _ if missing > 0 => (LimitOutcome::Broken, Some(not_always_measured(missing, valid.len()))),
        (_, None) => (LimitOutcome::NotJudged, unknown),
        (Some(spread), Some(_)) if keeps(spread.mean) => (LimitOutcome::Kept, None),
        (Some(_), Some(_)) => (LimitOutcome::Broken, None),
    };
    JudgedCell {
        outcome,
        value: spread.map(|spread| spread.mean),
        bound,
        baseline,
        n: spread.map_or(0, |spread| spread.n),
        kept_in: u32::try_from(values.into_iter().filter(|value| keeps(*value)).count())
            .unwrap_or(u32::MAX),
        because,
        cell,
    }
}

/// Whether a value keeps to a bound. A value that differs from the bound only by rounding equals it.
fn keeps(relation: Relation, value: f64, bound: f64) -> bool {
    relation.holds(rounded(value, bound), bound)
}

/// That a metric was measured, but not in each valid repetition.
fn not_always_measured(missing: usize, valid: usize) -> String {
    format!("not measured in {missing} of {valid} valid repetitions")
}

/// That a metric was not measured, and which other of its name was.
fn not_measured(limit: &Limit, valid: &[&&TrialSummary]) -> String {
    let field = limit.metric.rsplit('.').next().unwrap_or_default();
    let has = |name: &&&String| name.rsplit('.').next() == Some(field);
    let others = valid.iter().flat_map(|trial| trial.metrics.keys());
    match others.filter(|name| **name != limit.metric).find(|name| has(&name)) {
        Some(other) => format!("not measured; the trials have {other}"),
        None => "not measured in any valid trial".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_units::Seed;

    const LATENCY: &str = "media.latency_p95_ms";

    fn trial(tcp: &str, repetition: u32, value: Option<f64>) -> TrialSummary {
        TrialSummary {
            cell: [("tcp".to_owned(), tcp.into())].into_iter().collect(),
            repetition,
            seed: Seed(u64::from(repetition)),
            valid: true,
            invalid_because: None,
            skipped: false,
            metrics: [(LATENCY.to_owned(), value)].into(),
        }
    }

    /// Of a plan whose axis `tcp` has more labels than most of these runs.
    fn cells(
        text: &str,
        trials: &[TrialSummary],
        baseline: Option<&[TrialSummary]>,
    ) -> Vec<JudgedCell> {
        let limit = suiro_study::limit::parse(text).unwrap();
        let labels = ["reno", "cubic", "bbr"].map(str::to_owned).to_vec();
        let axes = [Axis { name: "tcp".into(), labels }];
        limits(&[("x".to_owned(), limit)], &axes, trials, baseline).remove(0).cells
    }

    fn outcomes(
        text: &str,
        trials: &[TrialSummary],
        baseline: Option<&[TrialSummary]>,
    ) -> Vec<(LimitOutcome, Option<f64>)> {
        let cells = cells(text, trials, baseline);
        cells.iter().map(|cell| (cell.outcome, cell.bound)).collect()
    }

    #[test]
    fn a_limit_is_judged_by_the_mean_of_each_cell() {
        let trials = [
            trial("reno", 1, Some(200.0)),
            trial("reno", 2, Some(280.0)),
            trial("cubic", 1, Some(260.0)),
        ];
        let bound = Some(250.0);
        let both = [(LimitOutcome::Kept, bound), (LimitOutcome::Broken, bound)];
        assert_eq!(outcomes("media.latency_p95_ms < 250", &trials, None), both);
        assert_eq!(outcomes("tcp=cubic: media.latency_p95_ms < 250", &trials, None), both[1..]);
        let reno = cells("media.latency_p95_ms < 250", &trials, None).remove(0);
        assert_eq!((reno.value, reno.n, reno.kept_in), (Some(240.0), 2, 1));
    }

    #[test]
    fn a_baseline_is_that_of_the_same_cell() {
        let before = [trial("cubic", 1, Some(100.0)), trial("reno", 1, Some(200.0))];
        let after = [trial("reno", 1, Some(204.0)), trial("cubic", 1, Some(106.0))];
        let found = outcomes("media.latency_p95_ms <= baseline + 5 %", &after, Some(&before));
        assert_eq!(found, [(LimitOutcome::Kept, Some(210.0)), (LimitOutcome::Broken, Some(105.0))]);
        let same = outcomes("media.latency_p95_ms <= baseline", &before, Some(&before));
        assert!(same.iter().all(|(outcome, _)| *outcome == LimitOutcome::Kept));
    }

    /// What became of a limit relative to a baseline, in the first cell of a run.
    fn against(after: &[TrialSummary], before: &[TrialSummary]) -> (LimitOutcome, String) {
        let cell = cells("media.latency_p95_ms <= baseline", after, Some(before)).remove(0);
        (cell.outcome, cell.because.unwrap_or_default())
    }

    fn with_abr(abr: &str, trial: TrialSummary) -> TrialSummary {
        let mut trial = trial;
        trial.cell.insert("abr".to_owned(), abr.into());
        trial
    }

    #[test]
    fn a_cell_of_other_labels_is_no_baseline() {
        let reno = || trial("reno", 1, Some(200.0));
        let not_judged = |because: &str| (LimitOutcome::NotJudged, because.to_owned());
        // `suiro diff` compares these two: the one label of each is the question there.
        let none = not_judged("the baseline has no such cell");
        assert_eq!(against(&[trial("cubic", 1, Some(100.0))], &[reno()]), none);
        // An axis of one label that one side alone has.
        let kept = (LimitOutcome::Kept, String::new());
        assert_eq!(against(&[with_abr("bola", reno())], &[reno()]), kept);
        assert_eq!(against(&[reno()], &[with_abr("bola", reno())]), kept);
        let both = [with_abr("bola", reno()), with_abr("mpc", trial("reno", 1, Some(1.0)))];
        let several = "2 cells of the baseline match: this run does not have its axis `abr`";
        assert_eq!(against(&[reno()], &both), not_judged(several));
        let without = not_judged("the baseline does not have the axis `abr`");
        assert_eq!(against(&both, &[reno()]), without);
        // The trials of the same seeds, if a baseline has more of them.
        let more = [reno(), trial("reno", 2, Some(100.0))];
        assert_eq!(against(&[reno()], &more), kept);
    }

    #[test]
    fn a_limit_without_cells_is_not_kept() {
        let reno = [trial("reno", 1, Some(200.0))];
        let of = |labels: &str| {
            let text = format!("{labels}: media.latency_p95_ms < 250");
            let found = cells(&text, &reno, None);
            let [cell] = &found[..] else { panic!("{found:?}") };
            (cell.outcome, cell.because.clone().unwrap(), cell.cell["tcp"].clone())
        };
        let out = "this run leaves its cells out (--only or --trial)".to_owned();
        assert_eq!(of("tcp=cubic"), (LimitOutcome::Skipped, out, "cubic".into()));
        let unknown = "it is for no cell: the axis `tcp` has no value `renno`".to_owned();
        assert_eq!(of("tcp=renno"), (LimitOutcome::NotJudged, unknown, "renno".into()));
        let (outcome, because, _) = of("tcp=reno, tcp=cubic");
        assert_eq!(outcome, LimitOutcome::NotJudged);
        assert_eq!(because, "it is for no cell: it names the axis `tcp` twice");
    }

    #[test]
    fn what_some_repetitions_did_not_measure_is_not_kept() {
        let values = [Some(1.0), None, None];
        let trials: Vec<TrialSummary> =
            (1..).zip(values).map(|(n, value)| trial("reno", n, value)).collect();
        let cell = cells("media.latency_p95_ms < 250", &trials, None).remove(0);
        assert_eq!((cell.outcome, cell.value, cell.n), (LimitOutcome::Broken, Some(1.0), 1));
        let expected = "not measured in 2 of 3 valid repetitions";
        assert_eq!(cell.because.as_deref(), Some(expected));
        let (outcome, because) = against(&trials, &trials);
        assert_eq!((outcome, &*because), (LimitOutcome::Broken, expected));
        // Repetitions that are not valid are not missed.
        let mut some = trials;
        some[1..].iter_mut().for_each(|trial| trial.valid = false);
        assert_eq!(outcomes("media.latency_p95_ms < 250", &some, None)[0].0, LimitOutcome::Kept);
    }

    #[test]
    fn a_run_is_compared_with_a_baseline_of_fewer_repetitions_by_their_seeds() {
        let values = [100.0, 200.0, 300.0, 900.0, 1000.0];
        let trials: Vec<TrialSummary> =
            (1..).zip(values).map(|(n, value)| trial("reno", n, Some(value))).collect();
        let same = cells("media.latency_p95_ms <= baseline", &trials, Some(&trials[..3])).remove(0);
        assert_eq!(
            (same.outcome, same.value, same.baseline),
            (LimitOutcome::Kept, Some(200.0), Some(200.0))
        );
        assert_eq!((same.n, same.kept_in), (3, 2));
        let more = cells("media.latency_p95_ms <= baseline", &trials[..3], Some(&trials)).remove(0);
        assert_eq!((more.outcome, more.n), (LimitOutcome::Kept, 3));
        // Those of other seeds are compared with all.
        let others: Vec<TrialSummary> =
            (11..).zip([100.0, 200.0]).map(|(n, value)| trial("reno", n, Some(value))).collect();
        let apart = cells("media.latency_p95_ms <= baseline", &trials, Some(&others)).remove(0);
        assert_eq!((apart.outcome, apart.value, apart.n), (LimitOutcome::Broken, Some(500.0), 5));
    }

    #[test]
    fn what_was_not_measured_is_not_kept() {
        let none = [trial("reno", 1, None)];
        assert_eq!(outcomes("media.latency_p95_ms < 250", &none, None)[0].0, LimitOutcome::Broken);
        let mut invalid = trial("reno", 1, Some(1.0));
        invalid.valid = false;
        let of = |trial: TrialSummary| outcomes("media.latency_p95_ms < 250", &[trial], None)[0].0;
        assert_eq!(of(invalid.clone()), LimitOutcome::NotJudged);
        assert_eq!(of(TrialSummary { skipped: true, ..invalid }), LimitOutcome::Skipped);
        let measured = [trial("reno", 1, Some(1.0))];
        let relative = "media.latency_p95_ms <= baseline";
        assert_eq!(outcomes(relative, &measured, None)[0].0, LimitOutcome::Skipped);
        assert_eq!(outcomes(relative, &measured, Some(&none))[0].0, LimitOutcome::NotJudged);
        let judged = cells("media.viewer.latency_p95_ms < 1", &measured, None);
        let because = judged[0].because.as_deref();
        assert_eq!(because, Some("not measured; the trials have media.latency_p95_ms"));
    }
}
