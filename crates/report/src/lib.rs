//! What a results folder says: `summary.json`, `findings.json`, the page `report.html`, and a table
//! for the terminal.
//!
//! The report knows records and findings, no protocol: what a metric or a series means stands in
//! [`suiro_analysis`]. A trial that is missing, cut short or invalid is shown as such, with its
//! reason; it never keeps the others from being shown.

mod assemble;
mod comparison;
mod flows;
mod html;
mod number;
mod page;
mod read;
mod strip;
mod study;
mod terminal;
mod why;

pub use page::*;
pub use terminal::{findings_text, terminal_table};
pub use why::*;

use std::path::PathBuf;

use suiro_record::{Findings, Folder, FolderError, Summary};

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
/// trial is told in the summary and on the page.
pub fn build(folder: &Folder) -> Result<Built, ReportError> {
    build_of(folder, Run::Over)
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
    let trials = read::trials(folder, &manifest.plan, run);
    let summary = assemble::summary(&manifest, &trials);
    let study = manifest.study.as_deref().and_then(suiro_study::find);
    let findings = match &study {
        Some(study) => suiro_analysis::findings::judge(study, &summary.trials),
        None => Findings { study: manifest.study.clone(), ..Findings::default() },
    };
    let longest = why::longest(trials.iter().map(|read| (&read.planned.cell, &read.why)));
    folder.write_summary(&summary)?;
    folder.write_findings(&findings)?;
    let mut page = assemble::page(manifest, &summary, &findings, study.as_ref(), trials);
    page.comparison = comparison::find(folder.root());
    let report = folder.report();
    let report_bytes = html::write(&report, &page)?;
    Ok(Built { summary, findings, longest, report, report_bytes })
}
