//! `suiro why`: what limited each flow, and what each stall, freeze and fall of the quality came from.

use std::io::Write;

use anyhow::{Context, Result};
use suiro_record::PlannedTrial;
use suiro_report::{TrialCauses, between, causes, causes_text, proofs_text};
use suiro_screens::compare::{fitting, one};

use crate::cli::WhyArgs;
use crate::{Outcome, prove, report};

/// `suiro why DIR`.
pub fn run(args: &WhyArgs) -> Result<Outcome> {
    let folder = report::results(&args.dir)?;
    let plan = folder.manifest().context("reading the results folder")?.plan;
    if let [a, b] = &args.between[..] {
        let (a, b) = (one(&plan, a)?, one(&plan, b)?);
        let of = |trial: &PlannedTrial| {
            let mut found = causes(&folder, |planned| planned.folder == trial.folder)?;
            found.pop().context("the plan has this trial: it was chosen from it")
        };
        let (a, b) = (of(a)?, of(b)?);
        return told(args, &[a.clone(), b.clone()], || between(&a, &b) + "\n");
    }
    let mut chosen: Vec<&str> = Vec::new();
    for cell in &args.cell {
        chosen.extend(fitting(&plan, cell)?.iter().map(|planned| &*planned.folder));
    }
    let is_chosen =
        |planned: &PlannedTrial| args.cell.is_empty() || chosen.contains(&&*planned.folder);
    let mut trials = causes(&folder, is_chosen)?;
    if !args.prove {
        return told(args, &trials, || causes_text(&trials));
    }
    let planned: Vec<PlannedTrial> = plan.iter().filter(|it| is_chosen(it)).cloned().collect();
    prove::prove(args, &folder, &planned, &mut trials)?;
    told(args, &trials, || causes_text(&trials) + &proofs_text(&trials))
}

/// Prints JSON or text. Fails if nothing is known of a trial.
fn told(args: &WhyArgs, trials: &[TrialCauses], text: impl FnOnce() -> String) -> Result<Outcome> {
    let mut out = crate::say::results();
    match args.json {
        true => {
            serde_json::to_writer_pretty(&mut out, trials)?;
            writeln!(out)?;
        }
        false => write!(out, "{}", text())?,
    }
    let known = trials.iter().all(|trial| trial.problem.is_none());
    Ok(if known { Outcome::Done } else { Outcome::Failed })
}
