//! The JSON documents that `suiro report` makes of a results folder: metrics, and findings.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_units::Seed;

use crate::documents::Cell;
use crate::metrics::Metrics;
use crate::words::FindingVerdict;

/// `summary.json`: the flat metrics of every trial.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// A row per trial.
    pub trials: Vec<TrialSummary>,
    /// The means of each cell over its valid repetitions, with their intervals.
    #[serde(default)]
    pub cells: Vec<CellMeans>,
    /// How the intervals were computed.
    #[serde(default)]
    pub interval: String,
    /// What each metric is.
    #[serde(default)]
    pub metrics: BTreeMap<String, Meaning>,
    /// `summary.parquet` if the rows of `trials` are there alone, as of more than 10,000 trials; `cells` is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_in: Option<String>,
}

impl Summary {
    /// Most trials whose rows `summary.json` has; those of more are in [`Summary::TABLE`] alone.
    pub const ROWS_MAX: usize = 10_000;

    /// The table that has a row per trial, whatever their number.
    pub const TABLE: &'static str = "summary.parquet";

    /// The names of all metrics of these trials. Most trials have the same, so that few names are looked up.
    pub fn names(trials: &[TrialSummary]) -> BTreeSet<&String> {
        let mut names = BTreeSet::new();
        let mut latest: Option<&TrialSummary> = None;
        for trial in trials {
            if !latest.is_some_and(|it| it.metrics.has_names_of(&trial.metrics)) {
                names.extend(trial.metrics.keys());
            }
            latest = Some(trial);
        }
        names
    }
}

/// What a metric is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meaning {
    /// A few words for tables and figures.
    pub label: String,
    /// Its unit: `bit/s`, `B`, `s`, `1/s`, `ms`, `µs`, `dB`, `ratio`, `cores`; empty for counts and scores.
    pub unit: String,
    /// `higher` or `lower`; `neither` if it is descriptive.
    pub better: String,
    /// What it means, precisely.
    pub meaning: String,
}

/// One cell over its valid repetitions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CellMeans {
    /// The cell.
    pub cell: Cell,
    /// Its trials.
    pub trials: u32,
    /// Those of them that are valid.
    pub valid: u32,
    /// Each metric; null where no valid trial measured it.
    pub metrics: BTreeMap<String, Option<Interval>>,
}

/// The mean of a metric over repetitions and its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Valid repetitions in which it was measured.
    pub n: u32,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, with n − 1; null for one.
    pub sd: Option<f64>,
    /// The lower end of the 95 % confidence interval of the mean; null for one.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// The metrics of one trial.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TrialSummary {
    /// Its cell.
    pub cell: Cell,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Its seed.
    pub seed: Seed,
    /// False if its figures must not be used.
    pub valid: bool,
    /// Why not.
    pub invalid_because: Option<String>,
    /// True if it was not tried because this machine is missing something it needs: it is then not
    /// valid, but nothing failed.
    #[serde(default)]
    pub skipped: bool,
    /// Name to number; null where it could not be measured.
    pub metrics: Metrics,
}

/// `findings.json`: published claims and tables next to measured figures.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// The study, such as `S0`; null if the scenario repeats none.
    pub study: Option<String>,
    /// One per claim.
    pub findings: Vec<Finding>,
    /// The published tables.
    #[serde(default)]
    pub tables: Vec<ComparedTable>,
}

/// One claim and what was measured.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Such as `S0.1`.
    pub id: String,
    /// What was claimed.
    pub claim: String,
    /// The published figure, in words.
    pub published: Option<String>,
    /// The measured figure, in words.
    pub measured: Option<String>,
    /// Whether it holds over the means of the valid repetitions; null if that is inconclusive, or cannot be judged.
    pub holds: Option<bool>,
    /// The same in words; null if it cannot be judged.
    #[serde(default)]
    pub verdict: Option<FindingVerdict>,
    /// Why.
    pub because: String,
    /// The formula that is judged, as in the study's file.
    #[serde(default)]
    pub formula: String,
    /// Why it is judged this way.
    #[serde(default)]
    pub note: Option<String>,
    /// Repetitions that can be judged by themselves.
    #[serde(default)]
    pub judged_in: u32,
    /// The number of them in which it holds.
    #[serde(default)]
    pub held_in: u32,
}

/// A published table and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedTable {
    /// Such as `4-1`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How its figures were read.
    pub note: Option<String>,
    /// The greatest factor, either way, between measured and published for "near".
    pub tolerance: f64,
    /// Titles of its columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<ComparedRow>,
    /// How many numbers are near, and how many were measured.
    pub near: (u32, u32),
    /// How many pairs of numbers are in the published order, and how many pairs were measured and
    /// published as different, in one unit.
    pub ordered: (u32, u32),
}

/// A row of a published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRow {
    /// Its title.
    pub title: String,
    /// One per column.
    pub entries: Vec<ComparedEntry>,
}

/// A published number and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedEntry {
    /// The metric of the summary.
    pub metric: String,
    /// The unit of both numbers.
    pub unit: String,
    /// As printed.
    pub published: f64,
    /// The mean of the valid repetitions; null if there is none.
    pub measured: Option<f64>,
    /// Measured over published; null if either is missing or zero.
    pub ratio: Option<f64>,
    /// Whether they are within the table's tolerance; null if not measured.
    pub near: Option<bool>,
    /// Why it was not measured.
    pub because: Option<String>,
}
