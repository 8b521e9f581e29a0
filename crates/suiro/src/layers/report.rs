//! `suiro layers report`: two recordings joined.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use suiro_layers::Recording;
use suiro_layers::report::{Report, html, joined, text};
use suiro_record::Reader;
use suiro_record::tables::FlowRow;

use crate::outputs::{self, Existing};
use crate::{Outcome, Usage};

pub(super) const EXAMPLES: &str = "Examples:
  suiro layers report layers-a layers-b                 folders that `suiro layers record` made
  suiro layers report results/call/trials/load/1        a trial whose scenario has `layers = true`
  suiro layers report layers-a layers-b --json
  suiro layers report layers-a layers-b --html layers.html    a page";

/// Arguments of `layers report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A recording's folder, or one that holds the recordings of two hosts.
    first: PathBuf,
    /// The other host's.
    second: Option<PathBuf>,
    /// For programs.
    #[arg(long)]
    json: bool,
    /// Also writes a page, which a browser opens: both hosts as stacks of layers, over time.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Replace the page if it is there already.
    #[arg(long, requires = "html")]
    replace: bool,
}

pub(super) fn run(args: &ReportArgs) -> Result<Outcome> {
    outputs::check(args.html.as_slice(), &[], Existing::of(args.replace))?;
    let folders = [Some(&args.first), args.second.as_ref()];
    if let Some(missing) = folders.into_iter().flatten().find(|folder| !folder.is_dir()) {
        let told = format!(
            "{} is not a folder\nhint: name a folder that `suiro layers record` made, or a trial's folder with `layers = true`",
            missing.display()
        );
        return Err(Usage(told).into());
    }
    let [first, second] = match &args.second {
        Some(second) => [Recording::read(&args.first)?, Recording::read(second)?],
        None => both(&args.first)?,
    };
    if first.host == second.host {
        let told = format!(
            "both recordings are of a host named {}\nhint: `suiro layers record --host NAME`",
            first.host
        );
        return Err(Usage(told).into());
    }
    let mut report = joined(&first, &second);
    let mut flows: Vec<FlowRow> = Vec::new();
    for folder in folders.into_iter().flatten() {
        flows.extend(Reader::read_all(folder)?);
    }
    report.name_flows(&flows);
    if let Some(path) = &args.html {
        outputs::write(path, &html(&report))?;
    }
    print(&report, args.json)
}

/// The recordings of a folder, which must be two. Of more, those count that have flows.
fn both(dir: &Path) -> Result<[Recording; 2]> {
    let mut recordings = Recording::read_all(dir)?;
    if recordings.len() > 2 {
        recordings.retain(|recording| !recording.flows.is_empty());
    }
    recordings.try_into().map_err(|found: Vec<Recording>| {
        let hosts: Vec<String> = found.into_iter().map(|recording| recording.host).collect();
        let found = if hosts.is_empty() { "no recording".into() } else { hosts.join(", ") };
        let told = format!(
            "{}: holds {found}, where two hosts are needed\n\
             hint: name two folders of `suiro layers record`",
            dir.display()
        );
        Usage(told).into()
    })
}

/// Prints a report for people, or for programs.
pub(super) fn print(report: &Report, json: bool) -> Result<Outcome> {
    let mut out = crate::say::results();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text(report))?;
    }
    Ok(Outcome::Done)
}
