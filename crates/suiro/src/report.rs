//! `suiro report`, `suiro findings`, and the end of `suiro run`.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result, bail};
use suiro_record::{Folder, PlannedTrial};
use suiro_report::{Run, Unjudged};

use crate::args::{FindingsArgs, ReportArgs};
use crate::folders;
use crate::limits::{self, Asked};
use crate::{Outcome, Usage, interrupt, say};

/// Width of the table if the terminal's is unknown.
const WIDTH: usize = 100;

/// `suiro report DIR`.
pub fn report(args: &ReportArgs) -> Result<Outcome> {
    let folder = folders::open(&args.dir)?;
    if let Some(number) = args.trial {
        return own_page(&folder, number);
    }
    let run = if folders::is_being_written(&args.dir)? { Run::UnderWay } else { Run::Over };
    if run == Run::UnderWay {
        say!("{}: a run is in progress; this is its measurement so far", args.dir.display());
    }
    check_trials(&folder, run)?;
    let limits = limits::of_folder(&folder, &args.limits)?;
    make_of(&folder, run, Some(&limits))
}

/// Refuses a folder whose trials are elsewhere, such as a baseline: its summary would become that of no trial.
fn check_trials(folder: &Folder, run: Run) -> Result<()> {
    let plan = folder.manifest().context("reading the results folder")?.plan;
    let is_there = |planned: &PlannedTrial| folder.trial(planned).join("trial.json").exists();
    if run == Run::UnderWay || plan.iter().any(is_there) {
        return Ok(());
    }
    let ran = folder.summary().is_ok_and(|summary| summary.trials.iter().any(|trial| trial.valid));
    if ran {
        bail!(Usage(format!(
            "{} has only the summary of a run: its trials are not here\n\
             hint: run suiro report where they are",
            folder.root().display()
        )));
    }
    Ok(())
}

/// Draws the page of one trial.
fn own_page(folder: &Folder, number: u32) -> Result<Outcome> {
    let manifest = folder.manifest()?;
    let found = manifest.plan.iter().find(|planned| planned.number == Some(number));
    let Some(planned) = found else {
        let numbers = manifest.plan.iter().filter_map(|planned| planned.number);
        let ends = numbers.clone().min().zip(numbers.max());
        let has = ends.map_or("none".into(), |(least, most)| format!("some of {least} to {most}"));
        bail!(Usage(format!(
            "--trial {number}: {} has no trial of this number; it has {has}",
            folder.root().display()
        )));
    };
    interrupt::leave_nothing_half()?;
    let page = suiro_report::own_page_of(folder, planned)
        .with_context(|| format!("drawing the page of trial {number}"))?;
    writeln!(say::results(), "report: {}", page.display())?;
    Ok(Outcome::Done)
}

/// Writes summary and page, prints the table, and judges the limits, if there are any. Fails if a trial is not valid, unless
/// it was skipped and others were not; then it does not matter whether limits are kept.
pub fn make(folder: &Folder, limits: Option<&Asked>) -> Result<Outcome> {
    make_of(folder, Run::Over, limits)
}

fn make_of(folder: &Folder, run: Run, limits: Option<&Asked>) -> Result<Outcome> {
    interrupt::leave_nothing_half()?;
    let built = suiro_report::build_of(folder, run)
        .with_context(|| format!("reporting on {}", folder.root().display()))?;
    let mut out = say::results();
    let (width, colour) = look(&std::io::stdout());
    write!(out, "{}", suiro_report::terminal_table(&built, width, colour))?;
    if !built.longest.is_empty() {
        write!(out, "\n{}", suiro_report::longest_text(&built.longest, folder.root(), width))?;
    }
    let findings = suiro_report::findings_text(&built.findings, Unjudged::Named, width, colour);
    if !findings.is_empty() {
        write!(out, "\n{findings}")?;
    }
    drop(out);
    let kept = limits.map_or(Ok(Outcome::Done), |limits| limits.judge(folder, &built.summary))?;
    let mut run = built.summary.trials.iter().filter(|trial| !trial.skipped).peekable();
    let good = run.peek().is_some() && run.all(|trial| trial.valid);
    Ok(if good { kept } else { Outcome::Failed })
}

/// `suiro findings DIR`. Fails if a finding does not hold.
pub fn findings(args: &FindingsArgs) -> Result<Outcome> {
    let folder = folders::open(&args.dir)?;
    folders::check_document(&folder, "findings.json")?;
    let found = folder.findings().context("reading the findings")?;
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &found)?;
        writeln!(out)?;
    } else if found.findings.is_empty() {
        writeln!(
            out,
            "this scenario does not reproduce a study: there are no published findings to \
        judge"
        )?;
    } else {
        let (width, colour) = look(&out);
        write!(out, "{}", suiro_report::findings_text(&found, Unjudged::Whole, width, colour))?;
    }
    let failed = found.findings.iter().any(|finding| finding.holds == Some(false));
    Ok(if failed { Outcome::Failed } else { Outcome::Done })
}

/// Width and colour of what is written to.
fn look(out: &impl IsTerminal) -> (usize, bool) {
    let colour = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    (terminal_width().unwrap_or(WIDTH), colour)
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}
