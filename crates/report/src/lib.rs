//! What a results folder says: `summary.json`, `findings.json`, the page `report.html`, and a table
//! for the terminal.
//!
//! The report knows records and findings, no protocol: what a metric or a series means stands in
//! [`suiro_analysis`]. A trial that is missing, cut short or invalid is shown as such, with its
//! reason; it never keeps the others from being shown.

mod assemble;
mod causes;
mod cell;
mod comparison;
mod diff;
mod flows;
mod html;
mod kept;
mod limits;
mod many;
mod number;
mod page;
mod read;
mod strip;
mod study;
mod sums;
mod terminal;
mod why;

pub use causes::*;
pub use diff::*;
pub use limits::*;
pub use page::*;
pub use terminal::{Unjudged, findings_text, terminal_table};
pub use why::*;

/// What the records of a trial say about causes.
///
/// # Errors
/// What is wrong with its records, in words.
pub fn why_of(folder: &Folder, planned: &PlannedTrial) -> Result<suiro_analysis::Why, String> {
    read::why(folder, planned)
}

/// How a trial went and all of its records, for other questions than a report's.
///
/// # Errors
/// What is wrong with them, in words.
pub fn records_of(folder: &Folder, planned: &PlannedTrial) -> Result<(Trial, Records), String> {
    read::whole(folder, planned)
}

use std::path::{Path, PathBuf};

use suiro_analysis::Records;

use suiro_record::{Findings, Folder, FolderError, Manifest, PlannedTrial, Summary, Trial};

use crate::read::{Depth, Read};

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A document of the folder could not be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The page could not be written.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The page's data could not be put into JSON.
    #[error("report.html: {0}")]
    Json(serde_json::Error),
}

/// A report that was made.
#[derive(Debug)]
pub struct Built {
    /// As in `summary.json`.
    pub summary: Summary,
    /// As in `findings.json`.
    pub findings: Findings,
    /// What happened in each cell, in one sentence, with the cell's label; empty for very many trials.
    pub briefs: Vec<(String, String)>,
    /// Whether the cells' links are alike, so that a value can be called the best.
    pub comparable: bool,
    /// What the longest stalls, freezes, late and missing stretches came from, a sentence each.
    pub longest: Vec<String>,
    /// The page.
    pub report: PathBuf,
    /// Its size.
    pub report_bytes: u64,
}

/// Reads every trial of a results folder and writes `summary.json`, `findings.json` and
/// `report.html`.
///
/// Fails only if the manifest cannot be read or the results cannot be written: what is wrong with a
/// trial is reported in the summary and on the page.
pub fn build(folder: &Folder) -> Result<Built, ReportError> {
    build_of(folder, Run::Over)
}

/// From this number of trials on, the page shows maps instead of figures, and each trial has a page of its own.
pub const MANY: usize = Manifest::MANY;

/// Most trials that each get a page of their own; of more, those would fill gigabytes. [`own_page_of`] draws one.
pub const OWN_PAGES_MAX: usize = 10_000;

/// How many trials there are to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    /// The page shows all of each.
    Few,
    /// The same, but they are a part of a plan of many: their own pages are made now, so that a merge need not.
    PartOfMany,
    /// The page shows metrics, and links to each trial's own page.
    Many,
}

impl Size {
    fn of(manifest: &Manifest) -> Self {
        let planned = manifest.plan_trials.map_or(0, |trials| trials as usize);
        match manifest.plan.len() {
            here if here >= MANY => Self::Many,
            _ if planned >= MANY => Self::PartOfMany,
            _ => Self::Few,
        }
    }
}

/// What the manifest says of every trial.
fn bare(manifest: &Manifest) -> Manifest {
    let Manifest { suiro, scenario, title, study, text, command, started, .. } = manifest.clone();
    Manifest {
        suiro,
        scenario,
        title,
        study,
        text,
        command,
        started,
        seed: manifest.seed,
        axes: manifest.axes.clone(),
        plan: Vec::new(),
        plan_trials: manifest.plan_trials,
        machine: manifest.machine.clone(),
        virtual_time: manifest.virtual_time.clone(),
        versions: manifest.versions.clone(),
        self_checks: Default::default(),
    }
}

/// Draws the page of one trial, into its folder. A report of more than [`OWN_PAGES_MAX`] trials draws none.
///
/// # Errors
/// If the manifest cannot be read, or the page cannot be written.
pub fn own_page_of(folder: &Folder, planned: &PlannedTrial) -> Result<PathBuf, ReportError> {
    let bare = bare(&folder.manifest()?);
    let plan = std::slice::from_ref(planned);
    let trials = read::trials(folder, plan, Run::Over, Depth::Whole);
    let mut files = trials.into_iter().map(|read| own_page(folder, &bare, read));
    files.next().expect("a plan of one trial has one")
}

/// Writes a trial's own page into its folder.
fn own_page(folder: &Folder, bare: &Manifest, read: Read) -> Result<PathBuf, ReportError> {
    let dir = Path::new(&read.planned.folder);
    let path = folder.root().join(dir);
    suiro_outside::beneath::check_folder(folder.root(), dir)
        .map_err(|cause| ReportError::Io { path: path.clone(), cause })?;
    let file = path.join(OWN_PAGE);
    let machine = read.machine().unwrap_or(&bare.machine).clone();
    let plan = vec![read.planned.clone()];
    let manifest = Manifest { plan, machine, ..bare.clone() };
    let mut trials = vec![read];
    let summary = assemble::summary(&manifest, &mut trials);
    let page = assemble::page(manifest, &summary, &Findings::default(), None, trials, Size::Few);
    html::write(&file, &page)?;
    Ok(file)
}

/// A trial's own page, in its folder.
const OWN_PAGE: &str = "report.html";

/// What is wrong with the tables of a trial that was measured: one cannot be read, or is not that of the trial's accounts.
/// Such a trial is not valid, whatever its `trial.json` says. `None` if there is nothing.
pub fn damage(folder: &Folder, planned: &PlannedTrial, outcome: &Trial) -> Option<String> {
    read::damage(folder, planned, outcome)
}

/// Whether the folder's trials are all that there will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// Nobody is measuring: what is missing stays missing.
    Over,
    /// `suiro run` is at work in the folder.
    UnderWay,
}

/// The same of a folder in which a run may be under way.
///
/// # Errors
/// As [`build`].
pub fn build_of(folder: &Folder, run: Run) -> Result<Built, ReportError> {
    let manifest = folder.manifest()?;
    let bare = bare(&manifest);
    let size = Size::of(&manifest);
    let planned = manifest.plan_trials.map_or(0, |trials| trials as usize);
    let draws = manifest.plan.len().max(planned) <= OWN_PAGES_MAX;
    let make_own = |read: Read| {
        if draws {
            // If that is not possible the large page has no link to it.
            let _ = own_page(folder, &bare, read);
        }
    };
    let depth = match size {
        Size::Many => Depth::Metrics(&make_own),
        Size::Few | Size::PartOfMany => Depth::Whole,
    };
    let mut trials = read::trials(folder, &manifest.plan, run, depth);
    if size == Size::PartOfMany && draws {
        trials.iter().filter(|read| read.state == PageState::Complete).cloned().for_each(make_own);
    }
    let summary = assemble::summary(&manifest, &mut trials);
    let study = manifest.study.as_deref().and_then(suiro_study::find);
    let findings = match &study {
        Some(study) => suiro_analysis::findings::judge(study, &summary.trials),
        None => Findings { study: manifest.study.clone(), ..Findings::default() },
    };
    let longest = why::longest(trials.iter().map(|read| {
        let warm_up_ns = read.outcome.as_ref().map_or(0, suiro_analysis::warm_up_ns);
        (&read.planned.cell, &read.why, warm_up_ns)
    }));
    folder.write_summary(&summary, &manifest.axes, &manifest.plan)?;
    folder.write_findings(&findings)?;
    let totals = sums::total(trials.iter().map(|read| &read.sums));
    let mut page = assemble::page(manifest, &summary, &findings, study.as_ref(), trials, size);
    if size == Size::Many {
        many::reduce(&mut page, totals, folder);
    }
    page.comparison = comparison::find(folder.root());
    let report = folder.report();
    let report_bytes = html::write(&report, &page)?;
    let comparable = page.comparable;
    let briefs = page.cells.into_iter().filter_map(|cell| Some((cell.label, cell.brief?)));
    let briefs = briefs.collect();
    Ok(Built { summary, findings, briefs, comparable, longest, report, report_bytes })
}
