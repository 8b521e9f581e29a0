//! `suiro list`: what can be run, how long it takes, and what it needs.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use suiro_lab::lacking::needs_root;
use suiro_outside::printable;
use suiro_scenario::{Overrides, Plan, Scenario, built_in_by_subject};

use crate::Outcome;
use crate::args::ListArgs;
use crate::missing::Host;
use crate::scenarios::not_virtual;

/// How much there is to run.
#[derive(Debug, Serialize)]
struct Size {
    /// Cells of the matrix.
    cells: usize,
    /// Trials: the repetitions of all cells.
    trials: usize,
    /// Seconds that a run measures, with the scenario's number of trials in parallel.
    measuring_s: f64,
}

/// A built-in scenario, as a line of the list.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    title: String,
    /// What it is about.
    subject: &'static str,
    /// The study that it reproduces.
    study: Option<String>,
    #[serde(flatten)]
    whole: Size,
    /// Its short form; none if it has none.
    quick: Option<Size>,
    /// Trials that run in parallel in the machine's time.
    jobs: u32,
    /// Whether a run in the machine's time needs root.
    needs_root: bool,
    /// Why it cannot run in virtual time; none if it can.
    not_virtual: Option<String>,
    /// Cells that can run on this host.
    cells_possible: usize,
}

/// `suiro list`.
pub fn list(args: &ListArgs) -> Result<Outcome> {
    let host = Host::before_a_run();
    let mut entries = Vec::new();
    for (subject, scenarios) in built_in_by_subject() {
        for scenario in scenarios {
            entries.push(entry(subject, &scenario, &host)?);
        }
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &entries)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text(&entries))?;
    }
    Ok(Outcome::Done)
}

fn entry(subject: &'static str, scenario: &Scenario, host: &Host) -> Result<Entry> {
    let plan = scenario.plan(&Overrides::default())?;
    let quick = Overrides { quick: true, ..Overrides::default() };
    let verdict = host.verdict(&plan);
    Ok(Entry {
        name: scenario.name.clone(),
        title: scenario.title.clone(),
        subject,
        study: plan.study.clone(),
        whole: size(&plan),
        // The only fault that a scenario can have here is that it has no short form: it is tested that all can be planned.
        quick: scenario.plan(&quick).ok().map(|plan| size(&plan)),
        jobs: plan.jobs,
        needs_root: plan.trials.iter().any(|trial| needs_root(&trial.setup)),
        not_virtual: not_virtual(&plan),
        cells_possible: verdict.cells - verdict.skipped.len(),
    })
}

fn size(plan: &Plan) -> Size {
    let seconds = || plan.trials.iter().map(|trial| trial.setup.duration.as_secs_f64());
    let longest = seconds().fold(0.0, f64::max);
    Size {
        cells: plan.trials.iter().filter(|trial| trial.planned.repetition == 1).count(),
        trials: plan.trials.len(),
        measuring_s: longest.max(seconds().sum::<f64>() / f64::from(plan.jobs)),
    }
}

const HEADER: [&str; 5] = ["", "study", "trials", "time", "--quick"];

const FOOTER: &str = "
time: what a run measures, with the scenario's number of trials in parallel; --quick: the same of its short form.
suiro show NAME prints a scenario, suiro check NAME what it would run and what is missing.
";

fn text(entries: &[Entry]) -> String {
    let rows: Vec<[String; 5]> = entries.iter().map(columns).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.chain([HEADER[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let line = |row: [&str; 5]| {
        let [name, study, trials, time, quick] = row;
        let [a, b, c, d, e] = widths;
        format!("  {name:a$}  {study:b$}  {trials:>c$}  {time:>d$}  {quick:>e$}")
    };
    let mut text = format!("{}\n", line(HEADER));
    let mut subject = "";
    for (entry, row) in entries.iter().zip(&rows) {
        if entry.subject != subject {
            subject = entry.subject;
            text += &format!("{subject}\n");
        }
        let row = line(row.each_ref().map(String::as_str));
        text += &format!("{row}  {}{}\n", printable(&entry.title), remarks(entry));
    }
    text + FOOTER
}

fn columns(entry: &Entry) -> [String; 5] {
    [
        entry.name.clone(),
        entry.study.clone().unwrap_or_default(),
        entry.whole.trials.to_string(),
        about(entry.whole.measuring_s),
        entry.quick.as_ref().map(|quick| about(quick.measuring_s)).unwrap_or_default(),
    ]
}

/// What a reader should know before they run it.
fn remarks(entry: &Entry) -> String {
    let mut remarks = Vec::new();
    if entry.needs_root {
        remarks.push("needs root".to_owned());
    }
    if entry.not_virtual.is_some() {
        remarks.push("not in virtual time".to_owned());
    }
    let (possible, cells) = (entry.cells_possible, entry.whole.cells);
    if possible < cells {
        remarks.push(format!("{possible} of {cells} cells can run on this host"));
    }
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) }
}

/// A length of time with two digits: `40 s`, `26 min`, `1.6 h`.
fn about(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..600.0 => format!("{:.1} min", seconds / 60.0).replace(".0 ", " "),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0).replace(".0 ", " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_in_parallel_count_in_the_time() {
        let scenario = Scenario::load("tfrcp").unwrap();
        let plan = scenario.plan(&Overrides::default()).unwrap();
        let whole = size(&plan);
        assert_eq!(whole.trials, 70);
        assert_eq!(whole.measuring_s, 70.0 * 60.0 / f64::from(plan.jobs));
        let alone = size(&Plan { jobs: 64, trials: plan.trials[..2].to_vec(), ..plan });
        assert_eq!(alone.measuring_s, 60.0);
    }

    #[test]
    fn times_have_two_digits() {
        let told = [40.0, 99.0, 100.0, 120.0, 1560.0, 5760.0, 36_000.0].map(about);
        assert_eq!(told, ["40 s", "99 s", "1.7 min", "2 min", "26 min", "96 min", "10 h"]);
    }
}
