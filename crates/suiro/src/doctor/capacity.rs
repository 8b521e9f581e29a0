//! How many trials this machine can run side by side: tried, not computed from the number of CPUs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use suiro_record::Folder;

use crate::Usage;

/// Most trials that are tried side by side, for each CPU.
const PER_CORE_MAX: u32 = 4;

/// How long each trial measures.
const DURATION: &str = "5 s";

/// One number of trials side by side, tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Tried {
    /// How many.
    jobs: u32,
    /// How many of them were valid.
    valid: u32,
    /// Why the first that is not was not.
    because: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Capacity {
    /// The scenario whose trials were run.
    scenario: String,
    /// Most trials side by side that were all valid; 0 if not even one was.
    capacity: u32,
    /// What was tried, in this order.
    tried: Vec<Tried>,
}

/// `suiro doctor --capacity`: doubles the number of trials until one is not valid, then halves the interval. True if at
/// least one trial can run.
pub fn run(scenario: &str, json: bool) -> Result<bool> {
    let room = std::env::temp_dir().join(format!("suiro-capacity-{}", std::process::id()));
    std::fs::create_dir(&room).with_context(|| format!("making {}", room.display()))?;
    let found = search(|jobs| attempt(scenario, &room, jobs));
    std::fs::remove_dir_all(&room).with_context(|| format!("removing {}", room.display()))?;
    let (capacity, tried) = found?;
    let report = Capacity { scenario: scenario.to_owned(), capacity, tried };
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        write(&mut out, &report)?;
    }
    Ok(capacity > 0)
}

fn write(out: &mut impl Write, report: &Capacity) -> Result<()> {
    for Tried { jobs, valid, because } in &report.tried {
        write!(out, "{valid} of {jobs} side by side valid")?;
        match because {
            Some(because) => writeln!(out, ": {because}")?,
            None => writeln!(out)?,
        }
    }
    let Capacity { scenario, capacity, .. } = report;
    writeln!(out, "this machine can run {capacity} trials of `{scenario}` side by side")?;
    if *capacity > 0 {
        writeln!(out, "for a cluster: ray start … --resources '{{\"suiro_link\": {capacity}}}'")?;
    }
    Ok(())
}

/// The greatest number that holds, and what was tried.
fn search(mut attempt: impl FnMut(u32) -> Result<Tried>) -> Result<(u32, Vec<Tried>)> {
    let cores =
        std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let most = cores * PER_CORE_MAX;
    let (mut holds, mut fails) = (0, most + 1);
    let mut tried = Vec::new();
    let mut jobs = 1;
    while holds + 1 < fails {
        let one = attempt(jobs)?;
        if one.valid == one.jobs {
            holds = jobs;
        } else {
            fails = jobs;
        }
        tried.push(one);
        jobs = if fails > most { (2 * holds).min(most) } else { holds.midpoint(fails) };
    }
    Ok((holds, tried))
}

/// Runs that many trials side by side, by this program.
fn attempt(scenario: &str, room: &Path, jobs: u32) -> Result<Tried> {
    let out = room.join(jobs.to_string());
    let program = std::env::current_exe().context("finding the program itself")?;
    let mut run = Command::new(program);
    let number = jobs.to_string();
    run.args(["run", scenario, "--duration", DURATION, "--repeat", &number, "--jobs", &number]);
    run.arg("--out").arg(&out).stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = run.output().context("starting suiro run")?;
    let folder = Folder::new(&out);
    let Ok(manifest) = folder.manifest() else {
        let words = String::from_utf8_lossy(&ended.stderr);
        bail!(Usage(format!(
            "suiro run {scenario}: {}",
            words.trim().trim_start_matches("error: ")
        )));
    };
    if manifest.axes.iter().any(|axis| axis.labels.len() > 1) {
        let hint = "hint: name a scenario without a matrix, such as ping";
        bail!(Usage(format!("--scenario {scenario}: expected one cell, found several\n{hint}")));
    }
    let outcomes = manifest.plan.iter().map(|planned| folder.outcome(planned));
    let outcomes = outcomes.collect::<Result<Vec<_>, _>>()?;
    let valid = outcomes.iter().flatten().filter(|trial| trial.valid).count();
    let because = outcomes.into_iter().flatten().find_map(|trial| trial.invalid_because);
    Ok(Tried { jobs, valid: u32::try_from(valid).unwrap_or(u32::MAX), because })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_number_that_holds_is_found() {
        let cores = std::thread::available_parallelism().unwrap().get() as u32;
        for holds in 0..=cores * PER_CORE_MAX {
            let tried = |jobs: u32| Ok(Tried { jobs, valid: jobs.min(holds), because: None });
            let (found, tried) = search(tried).unwrap();
            assert_eq!(found, holds, "{tried:?}");
            let numbers: std::collections::BTreeSet<u32> = tried.iter().map(|it| it.jobs).collect();
            assert_eq!(numbers.len(), tried.len(), "none twice: {tried:?}");
        }
    }
}
