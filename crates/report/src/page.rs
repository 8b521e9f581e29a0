//! The page's data. `web/src/generated/page.ts` is generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_analysis::{Better, Panel, Style};
use suiro_record::words::Cause;
use suiro_record::{
    Axis, Cable, ComparedTable, EndpointOutcome, Finding, LinkTotals, Machine, ScreenOutcome,
    SelfCheck, VirtualTime,
};
use suiro_units::Direction;

use crate::causes::EffectCauses;

/// Everything that `report.html` shows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page {
    /// One line on what was run.
    pub title: String,
    /// The scenario's name.
    pub scenario: String,
    /// The study it repeats, such as `S0`.
    pub study: Option<String>,
    /// When the run began: UTC, RFC 3339.
    pub started: String,
    /// The seed of the run, as text: it may exceed what a JavaScript number holds.
    pub seed: String,
    /// Version of suiro that ran it.
    pub suiro: String,
    /// The command line.
    pub command: Vec<String>,
    /// The scenario's text.
    pub text: String,
    /// The machine; the first, if trials ran on several.
    pub machine: Machine,
    /// What made the trials' time virtual; null for the machine's own time.
    pub virtual_time: Option<VirtualTime>,
    /// The machines that trials ran on; empty if they did not record it.
    pub machines: Vec<PageMachine>,
    /// Versions of the programs taking part.
    pub versions: BTreeMap<String, String>,
    /// The matrix.
    pub axes: Vec<Axis>,
    /// What was measured, in the order of the table.
    pub metrics: Vec<PageMetric>,
    /// The panels that figures are drawn in, in the order of the page.
    pub panels: Vec<PagePanel>,
    /// The causes that occur in the trials.
    pub causes: Vec<PageCause>,
    /// What was recorded over time, in the order of the figures.
    pub series: Vec<PageSeries>,
    /// The combinations.
    pub cells: Vec<PageCell>,
    /// True if all cells asked the same of their links, as far as rate, delay and loss go: only then can a value of one be
    /// called the best.
    pub comparable: bool,
    /// The trials, in the order of the plan.
    pub trials: Vec<PageTrial>,
    /// The cells and trials of a page of very many, instead of `cells` and `trials`; null otherwise.
    pub many: Option<PageMany>,
    /// Several trials side by side; null if `suiro compare` has not been asked for it.
    pub comparison: Option<PageComparison>,
    /// Published claims, compared with measured values.
    pub findings: Vec<Finding>,
    /// What the study published; null if the scenario repeats none.
    pub published: Option<PageStudy>,
}

/// Very many cells and trials, column by column. A page expands them when it is opened.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageMany {
    /// Sums over all trials.
    pub totals: PageTotals,
    /// For each axis, the place of each cell's label in it; null where a cell has none.
    pub values: Vec<Vec<Option<u32>>>,
    /// One per metric.
    pub metrics: Vec<PageColumn>,
    /// The cell of each trial.
    pub cells: Vec<u32>,
    /// The repetition of each trial.
    pub repetitions: Vec<u32>,
    /// How long each trial measured, in seconds.
    pub durations: PageValues,
    /// The machine of each trial: an index into the page's `machines`.
    pub machines: Vec<Option<u32>>,
    /// The folder of each trial, below the results folder.
    pub folders: Vec<String>,
    /// The trials that have a page of their own.
    pub own_pages: Vec<u32>,
    /// The trials that are not complete and valid, or have warnings.
    pub exceptions: Vec<PageException>,
    /// How many warnings there are of all trials; the exceptions have those of the first trials.
    pub warnings: u64,
}

/// A metric of very many cells and trials. If every cell has one trial, `mean` has all and the others are empty.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PageColumn {
    /// The mean of each cell.
    pub mean: PageValues,
    /// How many trials of each cell measured it.
    pub n: Vec<u32>,
    /// The standard deviation in each cell.
    pub sd: PageValues,
    /// Half the width of each cell's 95 % confidence interval.
    pub ci95: PageValues,
    /// The value of each trial.
    pub trials: PageValues,
}

/// What is particular about one of very many trials.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageException {
    /// Its index.
    pub trial: u32,
    /// How far it got.
    pub state: PageState,
    /// False if its figures must not be used.
    pub valid: bool,
    /// Why not; null if the page has the reasons of enough others.
    pub invalid_because: Option<String>,
    /// Its warnings; empty if the page has those of enough others.
    pub warnings: Vec<String>,
}

/// What self-checks and links showed, over all trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageTotals {
    /// Quantities that passed their self-check.
    pub checks_passed: u64,
    /// Those that did not.
    pub checks_failed: u64,
    /// Those that were not measured.
    pub checks_skipped: u64,
    /// Packets that arrived at links.
    pub offered: u64,
    /// Packets that the emulator itself lost.
    pub unaccounted: u64,
    /// The greatest of all 99th percentiles of lateness; null if no link carried a packet.
    pub late_p99_us: Option<f64>,
}

/// A machine that trials ran on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageMachine {
    /// What it is.
    pub machine: Machine,
    /// How many trials ran on it.
    pub trials: u32,
}

/// A study as published, compared with what was measured.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageStudy {
    /// Such as `S0`.
    pub id: String,
    /// One line on what it is about.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// How its figures were read.
    pub notes: Option<String>,
    /// Its tables.
    pub tables: Vec<ComparedTable>,
    /// Its figures, drawn from this run.
    pub figures: Vec<PageFigure>,
}

/// A published figure, to be drawn from this run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageFigure {
    /// Such as `4.5`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The unit that the study draws it in.
    pub unit: String,
    /// Each point is the mean over this many seconds; null if as recorded.
    pub mean_over_s: Option<f64>,
    /// Where the time axis ends, in seconds.
    pub seconds: f64,
    /// The axis whose labels are the lines; null if the lines are quantities of one cell.
    pub axis: Option<String>,
    /// Its lines.
    pub lines: Vec<PageFigureLine>,
    /// The study's comments on periods of time.
    pub bands: Vec<PageBand>,
    /// Which repetition is drawn.
    pub drawn: String,
}

/// A line of a figure of a study.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageFigureLine {
    /// The label.
    pub label: String,
    /// Which of `series`; null if this run recorded none of the name.
    pub series: Option<u32>,
    /// Size of the series' unit in the figure's unit.
    pub scale: f64,
    /// The trial drawn: an index into `trials`; null if there is none.
    pub trial: Option<u32>,
    /// Why there is none.
    pub because: Option<String>,
}

/// A period of time and the study's comment on it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageBand {
    /// Where it begins, in seconds.
    pub from: f64,
    /// Where it ends, in seconds.
    pub to: f64,
    /// The comment.
    pub text: String,
}

/// Several trials side by side, as `suiro compare` filmed them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageComparison {
    /// The video's name in the results folder.
    pub file: String,
    /// Its poster, a data URL; null if there is none.
    pub poster: Option<String>,
    /// The video, a data URL; null if it is too large for a page.
    pub video: Option<String>,
}

/// One metric.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PageMetric {
    /// Its name in `summary.json`.
    pub name: String,
    /// A short label.
    pub label: String,
    /// Its unit: `bit/s`, `B`, `s`, `ms`, `µs`, `ratio`, `cores`, or empty for counts.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Significant digits worth showing.
    pub digits: u8,
    /// True for what a short table shows.
    pub main: bool,
    /// What it means.
    pub doc: String,
}

/// A panel: how the figures of its series are drawn.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PagePanel {
    /// Which one.
    pub id: Panel,
    /// The heading.
    pub title: String,
    /// The one direction of its series, if all have the same one (the title names it); null
    /// otherwise.
    pub direction: Option<Direction>,
    /// Its height in pixels.
    pub height_px: u32,
    /// True if the times at which the viewer's video froze are shaded.
    pub stalls: bool,
    /// True if its vertical axis need not begin at zero.
    pub floating: bool,
    /// True if the figure of an up direction is left out where nothing happened in it.
    pub quiet_up: bool,
}

/// One kind of time series.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PageSeries {
    /// Its name, such as `tcp.cwnd_bytes`.
    pub name: String,
    /// The figure it belongs to.
    pub panel: Panel,
    /// A few words for the legend.
    pub label: String,
    /// Which of several players, links or hosts it belongs to, in words; null if there is one, or
    /// all are drawn in one figure.
    pub instance: Option<String>,
    /// The direction of a link; null if it has none.
    pub direction: Option<Direction>,
    /// `bit/s`, `B`, `ms`, `s` or `packets`.
    pub unit: String,
    /// How it is drawn.
    pub style: Style,
    /// What it means.
    pub doc: String,
}

/// One combination of the matrix.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageCell {
    /// Its values' labels, joined.
    pub label: String,
    /// What happened in its valid trials, in one sentence without a full stop; null if nothing is known, and on a page of
    /// very many trials.
    pub brief: Option<String>,
    /// Its value's label on each axis.
    pub values: Vec<String>,
    /// Its trials: indices into `trials`.
    pub trials: Vec<u32>,
    /// One per metric, over valid trials; null where none measured it.
    pub metrics: Vec<Option<PageSpread>>,
}

/// A metric over repetitions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageSpread {
    /// How many trials measured it.
    pub n: u32,
    /// Mean.
    pub mean: f64,
    /// Standard deviation; null for a single trial.
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval (Student's t); null for a single trial.
    pub ci95: Option<f64>,
}

/// How far a trial got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageState {
    /// It ended and its records could be read.
    Complete,
    /// It was not tried: this machine is missing something it needs.
    Skipped,
    /// It did not run, or was cut short: there is no outcome.
    Missing,
    /// Its outcome or a record cannot be read.
    Damaged,
}

/// One trial.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageTrial {
    /// Its cell: an index into `cells`.
    pub cell: u32,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Its seed, as text.
    pub seed: String,
    /// Its folder below the results folder.
    pub folder: String,
    /// True if it has a page of its own there, `report.html`.
    pub own_page: bool,
    /// How far it got.
    pub state: PageState,
    /// False if its figures must not be used.
    pub valid: bool,
    /// Why not.
    pub invalid_because: Option<String>,
    /// The machine that it ran on: an index into `machines`; null if it did not record it.
    pub machine: Option<u32>,
    /// When it began.
    pub started: Option<String>,
    /// How long it measured.
    pub duration_s: Option<f64>,
    /// For how long it warmed up, which its metrics leave out.
    pub warm_up_s: f64,
    /// One per metric.
    pub metrics: Vec<Option<f64>>,
    /// The links before the trial.
    pub self_checks: Vec<SelfCheck>,
    /// The links during the trial.
    pub links: Vec<LinkTotals>,
    /// The plain cables.
    pub cables: Vec<Cable>,
    /// The endpoints.
    pub endpoints: Vec<EndpointOutcome>,
    /// Its flows, as endpoints reported them.
    pub flows: Vec<PageFlow>,
    /// What was made of the screens of its viewers.
    pub screens: Vec<ScreenOutcome>,
    /// Warnings: what a reader of its figures should know and what does not make it invalid.
    pub warnings: Vec<String>,
    /// Width of a bin of its series, in seconds.
    pub bin_s: f64,
    /// One per kind of series; null if this trial has no such series.
    pub series: Vec<Option<Points>>,
    /// When playback stalled (with several players, in at least half of them): from and to, in
    /// seconds.
    pub stalls: Vec<(f64, f64)>,
    /// What limited its viewers and flows; the viewers first.
    pub limits: Vec<PageLimits>,
    /// Its stalls, freezes, late and missing stretches and falls of the quality, the longest first.
    pub effects: Vec<EffectCauses>,
    /// Effects that are not among them, because there are too many.
    pub effects_left_out: u32,
}

/// What limited a viewer or a flow over time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageLimits {
    /// The viewer's endpoint, or the flow.
    pub name: String,
    /// Stretches of time: from and to in seconds, and the cause, an index into the page's `causes`.
    pub spans: Vec<(f64, f64, u32)>,
}

/// A cause, as the legend of a page has it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageCause {
    /// The cause.
    pub cause: Cause,
    /// What the legend calls it.
    pub label: String,
    /// What it means.
    pub doc: String,
}

/// Flows of a trial that one endpoint opened for the same purpose.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PageFlow {
    /// What they carry, and between which endpoints: `video from film to viewer`.
    pub what: String,
    /// The transport protocol.
    pub protocol: String,
    /// The endpoint's own end, `ADDRESS:PORT`; `*` for any.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// How many.
    pub flows: u64,
    /// When the first was opened, in seconds.
    pub opened_s: f64,
    /// When the last was closed; null if some were open when the trial ended, or that is not known.
    pub closed_s: Option<f64>,
}

/// A value per bin, to four significant digits; null where nothing was measured.
#[derive(Debug, JsonSchema)]
#[schemars(transparent)]
pub struct Points(pub Vec<Option<f64>>);

impl Serialize for Points {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|value| value.map(|value| Short(value, 4))))
    }
}

/// A value per cell or trial, to five significant digits: a map cannot show more. Null where nothing was measured.
#[derive(Debug, Default, JsonSchema)]
#[schemars(transparent)]
pub struct PageValues(pub Vec<Option<f64>>);

impl Serialize for PageValues {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|value| value.map(|value| Short(value, 5))))
    }
}

/// A number written as briefly as so many significant digits allow.
struct Short(f64, u8);

impl Serialize for Short {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = crate::number::significant(self.0, self.1);
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_brief() {
        let points = Points(vec![Some(0.0), Some(123_456.0), Some(1.23456), None, Some(-0.5)]);
        assert_eq!(serde_json::to_string(&points).unwrap(), "[0,123500,1.235,null,-0.5]");
    }
}
