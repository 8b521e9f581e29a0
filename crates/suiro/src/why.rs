//! `suiro why`: what limited each flow, and what each stall, freeze and fall of the quality came from; and the same for what
//! other programs recorded.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use suiro_foreign::Source;
use suiro_record::PlannedTrial;
use suiro_report::{TrialCauses, between, causes, causes_text, proofs_text};
use suiro_screens::compare::{fitting, one};

use crate::args::WhyArgs;
use crate::folders;
use crate::{Outcome, Usage, prove};

/// Most bytes of a file of another program.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// `suiro why DIR` or `suiro why FILE...`.
pub fn run(args: &WhyArgs) -> Result<Outcome> {
    if !args.dir.exists() {
        bail!(Usage::file(&args.dir, "there is no such file or folder"));
    }
    if args.dir.is_file() || !args.more.is_empty() {
        return foreign(args);
    }
    let folder = folders::open(&args.dir)?;
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
    prove::check_effect(args, &trials)?;
    if !args.prove {
        return told(args, &trials, || causes_text(&trials, args.effect));
    }
    let planned: Vec<PlannedTrial> = plan.iter().filter(|it| is_chosen(it)).cloned().collect();
    prove::prove(args, &folder, &planned, &mut trials)?;
    told(args, &trials, || causes_text(&trials, args.effect) + &proofs_text(&trials))
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

/// `suiro why FILE...`.
fn foreign(args: &WhyArgs) -> Result<Outcome> {
    let of_folders = args.prove || args.effect.is_some() || !args.cell.is_empty();
    if of_folders || !args.between.is_empty() {
        bail!(Usage(
            "--cell, --between, --effect and --prove need a results folder; found files of other programs"
                .into()
        ));
    }
    let paths: Vec<&Path> = std::iter::once(&args.dir).chain(&args.more).map(|it| &**it).collect();
    if let Some(dir) = paths.iter().find(|path| path.is_dir()) {
        let hint = "hint: give one folder alone, or only files";
        bail!(Usage::file(dir, format!("it is a folder, next to other files\n{hint}")));
    }
    let read = |path: &&Path| {
        // Two hosts may have files of the same name.
        let same = paths.iter().filter(|it| it.file_name() == path.file_name()).count();
        let name = path.file_name().filter(|_| same == 1).map_or(path.as_os_str(), |it| it);
        let name = name.to_string_lossy().into_owned();
        let content = suiro_outside::file::read(path, FILE_BYTES_MAX);
        content.map(|content| (name, content)).map_err(|error| Usage::file(path, error))
    };
    let files: Vec<(String, Vec<u8>)> = paths.iter().map(read).collect::<Result<_, _>>()?;
    let sources: Vec<Source<'_>> =
        files.iter().map(|(name, content)| Source { name, content }).collect();
    let account = suiro_foreign::explain(&sources).map_err(|error| Usage(error.to_string()))?;
    let mut out = crate::say::results();
    match args.json {
        true => {
            serde_json::to_writer_pretty(&mut out, &account)?;
            writeln!(out)?;
        }
        false => write!(out, "{}", suiro_foreign::text(&account))?,
    }
    Ok(Outcome::Done)
}
