//! Results folders compared: what differs between them, as a document, in words and as a page.

mod parting;
mod settings;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use suiro_analysis::{CellDiff, Diff, DiffVerdict, MetricDiff, TEST, diff};
use suiro_record::{Cell, Folder, FolderError, Manifest, Summary, TrialSummary};

use crate::assemble;
use crate::cell::{label, short};
use crate::html;
use crate::page::PageMetric;
use crate::{ReportError, number};

pub use parting::{Parting, parting};
pub use settings::{Setting, SettingKind};
pub use suiro_analysis::MARGIN;
pub use text::diff_text;

/// Trials whose values a page has; of more, the first.
const SAMPLES_MAX: usize = 20_000;

/// Digits of a trial's value on a page.
const DIGITS: u8 = 6;

/// Results folders compared: what `suiro diff --json` prints, and what its page shows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Difference {
    /// Version of suiro that compared them.
    pub suiro: String,
    /// The folders; the first is what the others are compared with.
    pub folders: Vec<DiffFolder>,
    /// What each metric is.
    pub metrics: Vec<PageMetric>,
    /// A difference below this share of the first mean counts as none.
    pub margin: f64,
    /// The tests and verdicts, in words.
    pub test: String,
    /// Each folder but the first, compared with the first.
    pub comparisons: Vec<Comparison>,
    /// The trials' values of the main metrics.
    pub samples: Vec<Sample>,
}

/// A results folder.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiffFolder {
    /// `A`, `B` and so on.
    pub letter: String,
    /// Where it is, as typed.
    pub path: String,
    /// The scenario's name.
    pub scenario: String,
    /// Version of suiro that ran it.
    pub suiro: String,
    /// When the run began: UTC, RFC 3339; null in virtual time.
    pub started: Option<String>,
    /// The seed of the run, as text: it may exceed what a JavaScript number holds.
    pub seed: String,
    /// Its trials.
    pub trials: u32,
    /// Those that are valid.
    pub valid: u32,
}

/// A folder compared with the first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Comparison {
    /// The second folder: an index into `folders`.
    pub folder: u32,
    /// What differs in scenario, versions and machine.
    pub settings: Vec<Setting>,
    /// Metrics by verdict, over all cells.
    pub verdicts: BTreeMap<DiffVerdict, u32>,
    /// The cells that both folders have.
    pub cells: Vec<ComparedCell>,
    /// Cells of the first folder that match none of the second.
    pub only_first: Vec<String>,
    /// Cells of the second folder that match none of the first.
    pub only_second: Vec<String>,
}

/// A cell of both folders.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ComparedCell {
    /// What it is called: the labels of both.
    pub label: String,
    /// Its place among the cells of the first folder's samples.
    pub first_label: String,
    /// The same of the second folder's.
    pub second_label: String,
    /// What was compared.
    pub diff: CellDiff,
    /// The causes, as names of metrics, whose shares differ; that with the greatest difference first.
    pub causes: Vec<String>,
}

/// What a trial measured.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Sample {
    /// Its folder: an index into `folders`.
    pub folder: u32,
    /// Its cell's label.
    pub cell: String,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// The main metrics by name; those that were not measured are left out.
    pub values: BTreeMap<String, f64>,
}

/// A results folder as far as a comparison needs it.
struct Run {
    path: String,
    manifest: Manifest,
    summary: Summary,
}

/// Compares each folder but the first with the first. A difference of at most `margin` times the first mean counts as none.
///
/// # Errors
/// A folder has no manifest or no summary.
pub fn difference(folders: &[Folder], margin: f64) -> Result<Difference, FolderError> {
    let read = |folder: &Folder| {
        let path = folder.root().display().to_string();
        Ok(Run { path, manifest: folder.manifest()?, summary: folder.summary()? })
    };
    let runs: Vec<Run> = folders.iter().map(read).collect::<Result<_, FolderError>>()?;
    Ok(compare(&runs, margin))
}

fn compare(runs: &[Run], margin: f64) -> Difference {
    let trials = runs.iter().flat_map(|run| run.summary.trials.iter().cloned());
    let metrics = assemble::metrics(&Summary { trials: trials.collect(), ..Summary::default() });
    let comparison = |(place, second): (usize, &Run)| {
        let first = &runs[0];
        let found = diff(&first.summary.trials, &second.summary.trials, margin);
        let settings = settings::settings(&first.manifest, &second.manifest);
        of_diff(short(place), found, settings)
    };
    Difference {
        suiro: env!("CARGO_PKG_VERSION").to_owned(),
        folders: (0..).zip(runs).map(|(place, run)| folder(place, run)).collect(),
        samples: samples(runs, &metrics),
        metrics,
        margin,
        test: TEST.to_owned(),
        comparisons: runs.iter().enumerate().skip(1).map(comparison).collect(),
    }
}

/// `A` for the first folder; after `Z`, numbers.
fn letter(place: u32) -> String {
    u8::try_from(place)
        .ok()
        .filter(|place| *place < 26)
        .map_or_else(|| place.to_string(), |place| char::from(b'A' + place).to_string())
}

fn folder(place: u32, run: &Run) -> DiffFolder {
    let Run { path, manifest, summary } = run;
    DiffFolder {
        letter: letter(place),
        path: path.clone(),
        scenario: manifest.scenario.clone(),
        suiro: manifest.suiro.clone(),
        started: manifest.virtual_time.is_none().then(|| manifest.started.clone()),
        seed: manifest.seed.to_string(),
        trials: short(summary.trials.len()),
        valid: short(summary.trials.iter().filter(|trial| trial.valid).count()),
    }
}

fn of_diff(folder: u32, found: Diff, settings: Vec<Setting>) -> Comparison {
    let mut verdicts = BTreeMap::new();
    let all = found.cells.iter().flat_map(|cell| cell.metrics.values());
    for verdict in all.filter_map(|metric| metric.verdict) {
        *verdicts.entry(verdict).or_insert(0) += 1;
    }
    let labels = |cells: &[Cell]| cells.iter().map(label).collect();
    Comparison {
        folder,
        settings,
        verdicts,
        only_first: labels(&found.only_first),
        only_second: labels(&found.only_second),
        cells: found.cells.into_iter().map(compared).collect(),
    }
}

fn compared(diff: CellDiff) -> ComparedCell {
    let (first_label, second_label) = (label(&diff.first), label(&diff.second));
    let label = match first_label == second_label {
        true => first_label.clone(),
        false => format!("{first_label} → {second_label}"),
    };
    ComparedCell { label, first_label, second_label, causes: causes(&diff), diff }
}

/// The causes whose shares differ, or that only one side has.
fn causes(cell: &CellDiff) -> Vec<String> {
    let apart = |metric: &MetricDiff| match (metric.verdict, metric.first, metric.second) {
        (Some(DiffVerdict::Higher | DiffVerdict::Lower), ..) => metric.difference,
        (None, Some(alone), None) => Some(-alone),
        (None, None, Some(alone)) => Some(alone),
        _ => None,
    };
    let of_why = cell.metrics.iter().filter(|(name, _)| name.starts_with(CAUSES));
    let mut found: Vec<(f64, &String)> =
        of_why.filter_map(|(name, metric)| Some((apart(metric)?, name))).collect();
    found.retain(|(apart, _)| *apart != 0.0);
    found.sort_by(|one, other| other.0.abs().total_cmp(&one.0.abs()));
    found.into_iter().map(|(_, name)| name.clone()).collect()
}

/// How the names of the causes' metrics begin.
const CAUSES: &str = "why.";

fn samples(runs: &[Run], metrics: &[PageMetric]) -> Vec<Sample> {
    let main: Vec<&String> = metrics.iter().filter(|it| it.main).map(|it| &it.name).collect();
    let sample = |folder: u32, trial: &TrialSummary| {
        let value = |name: &&String| {
            let value = trial.metrics.get(name).copied().flatten()?;
            Some(((*name).clone(), number::significant(value, DIGITS)))
        };
        let values = main.iter().filter_map(value).collect();
        let cell = label(&trial.cell);
        Sample { folder, cell, repetition: trial.repetition, values }
    };
    let valid = (0..).zip(runs).flat_map(|(folder, run)| {
        let valid = run.summary.trials.iter().filter(|trial| trial.valid);
        valid.map(move |trial| (folder, trial))
    });
    valid.take(SAMPLES_MAX).map(|(folder, trial)| sample(folder, trial)).collect()
}

/// Writes the page of a comparison.
///
/// # Errors
/// The file cannot be written.
pub fn diff_page(path: &Path, difference: &Difference) -> Result<u64, ReportError> {
    let paths: Vec<&str> = difference.folders.iter().map(|it| &*it.path).collect();
    html::write_as(html::DIFF, path, &format!("suiro diff {}", paths.join(" ")), difference)
}

#[cfg(test)]
mod tests;
