//! `suiro merge`: results folders of one plan into one, which is reported as if one run had made it.
//!
//! The parts are read only and may come from strangers: links in them are not followed, and nothing is written outside
//! of the trials' folders. A merge that was cut short is repeated by the same command.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use suiro_analysis::why::wording::count;
use suiro_outside::tree;
use suiro_outside::unfinished::gone;
use suiro_record::{Folder, Manifest, PlannedTrial, Trial};

use crate::args::{LimitArgs, MergeArgs};
use crate::folders;
use crate::{Outcome, Usage, limits, report, run};

/// Numbers of trials that a message lists.
const LISTED: usize = 20;

/// What a trial's folder may hold.
const TRIAL: tree::Bounds = tree::Bounds { entries: 100_000, bytes: 1 << 40, depth: 8 };

/// What `suiro sweep` keeps in the folder that it merges into.
const SWEEP: &str = "sweep";

/// A results folder to merge.
struct Part {
    dir: PathBuf,
    folder: Folder,
    manifest: Manifest,
    /// Its trials that were run, each with what a merge needs of its `trial.json`.
    trials: Vec<(PlannedTrial, Trial)>,
}

/// `suiro merge DIR… --out OUT`.
pub fn run(args: &MergeArgs) -> Result<Outcome> {
    check_apart(&args.out, &args.dirs)?;
    let there = args.out.join("manifest.json").exists();
    if !there {
        check_free(&args.out)?;
    }
    let parts: Vec<Part> = args.dirs.iter().map(|dir| Part::read(dir)).collect::<Result<_>>()?;
    let _held = run::hold(&args.out)?;
    let whole = if there { Part::read_merged(&args.out)? } else { Part::empty(&args.out, &parts) };
    for part in &parts {
        check_plan(part, &whole, &parts[0].dir)?;
    }
    let versions = versions(&whole, &parts)?;
    let wanted = wanted(&whole, &parts)?;

    let mut manifest = manifest(&whole, &parts, versions, args)?;
    whole.folder.write_manifest(&manifest)?;
    for (part, planned) in &wanted {
        copy(part, planned, &whole.folder)
            .with_context(|| format!("merging {}", part.dir.join(&planned.folder).display()))?;
    }
    if !manifest.has_many() {
        let parts = std::iter::once(&whole).chain(&parts);
        for (planned, trial) in parts.flat_map(|part| &part.trials) {
            manifest.self_checks.insert(planned.folder.clone(), trial.self_checks.clone());
        }
    }
    whole.folder.write_manifest(&manifest)?;
    tell(&manifest, wanted.len(), &args.out);
    let limits = limits::of_folder(&whole.folder, &LimitArgs::default())?;
    report::make(&whole.folder, Some(&limits))
}

impl Part {
    fn read(dir: &Path) -> Result<Self> {
        if folders::is_being_written(dir)? {
            bail!(Usage(format!(
                "{} is being written by another suiro\nhint: merge it when that has ended",
                dir.display()
            )));
        }
        Self::read_merged(dir)
    }

    fn read_merged(dir: &Path) -> Result<Self> {
        let folder = folders::open(dir)?;
        let manifest = folder.manifest()?;
        let mut trials = Vec::new();
        for planned in &manifest.plan {
            check_place(dir, planned)?;
            let Some(trial) = folder.outcome(planned)? else { continue };
            if (&trial.cell, trial.repetition, trial.seed)
                != (&planned.cell, planned.repetition, planned.seed)
            {
                bail!(
                    "{}: its trial.json is of another trial than the manifest says\n\
                     hint: remove that folder from the manifest's trials, or run the trial again",
                    dir.join(&planned.folder).display()
                );
            }
            let mut kept = trial.short();
            if !manifest.has_many() {
                kept.self_checks = trial.self_checks;
            }
            trials.push((planned.clone(), kept));
        }
        Ok(Self { dir: dir.to_owned(), folder, manifest, trials })
    }

    /// The folder that is made.
    fn empty(out: &Path, parts: &[Self]) -> Self {
        let first = &parts[0].manifest;
        let started = parts.iter().map(|part| &part.manifest.started).min();
        let manifest = Manifest {
            started: started.unwrap_or(&first.started).clone(),
            plan: Vec::new(),
            versions: BTreeMap::new(),
            self_checks: BTreeMap::new(),
            ..first.clone()
        };
        let folder = Folder::new(out);
        Self { dir: out.to_owned(), folder, manifest, trials: Vec::new() }
    }
}

/// Refuses to write into a part, by whatever name: parts are only read.
fn check_apart(out: &Path, parts: &[PathBuf]) -> Result<()> {
    let out = std::path::absolute(out).with_context(|| format!("finding {}", out.display()))?;
    // What is not there yet has no links in it.
    let there = out.ancestors().find_map(|above| above.canonicalize().ok()).unwrap_or_default();
    for part in parts {
        let Ok(dir) = part.canonicalize() else { continue };
        if there.starts_with(&dir) {
            bail!(Usage(format!(
                "--out {}: it is in the part {}, which would be changed\nhint: name a folder outside of all parts",
                out.display(),
                part.display()
            )));
        }
    }
    Ok(())
}

/// Refuses to make a results folder of one that holds something else.
fn check_free(out: &Path) -> Result<()> {
    let doing = || format!("reading {}", out.display());
    let entries = match std::fs::read_dir(out) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(doing)?,
    };
    for entry in entries {
        if entry.with_context(doing)?.file_name() != SWEEP {
            bail!(Usage(format!(
                "{} is not empty and is not a results folder\nhint: choose another one with --out",
                out.display()
            )));
        }
    }
    Ok(())
}

/// Refuses a trial that lies elsewhere than in `trials/CELL/REP`, or that has no number.
fn check_place(dir: &Path, planned: &PlannedTrial) -> Result<()> {
    let manifest = dir.join("manifest.json");
    let manifest = manifest.display();
    let parts: Vec<Component<'_>> = Path::new(&planned.folder).components().collect();
    let named = parts.iter().all(|part| matches!(part, Component::Normal(_)));
    if !named || parts.len() != 3 || parts[0].as_os_str() != "trials" {
        bail!(
            "{manifest}: expected a trial's folder `trials/CELL/REP`, found `{}`",
            planned.folder
        );
    }
    if planned.number.is_none() {
        bail!(
            "{manifest}: its trials have no numbers, because an earlier version of suiro made it\n\
             hint: run its trials again with this version"
        );
    }
    Ok(())
}

/// Refuses a folder of another plan or of another version of suiro.
fn check_plan(part: &Part, whole: &Part, first: &Path) -> Result<()> {
    let (found, expected) = (&part.manifest, &whole.manifest);
    let (dir, other) =
        (part.dir.display(), if whole.trials.is_empty() { first } else { &whole.dir });
    let other = other.display();
    if found.suiro != expected.suiro {
        bail!(Usage(format!(
            "{dir}: made by suiro {}, but {other} by suiro {}\n\
             hint: run the trials of one of them again with the other's version",
            found.suiro, expected.suiro
        )));
    }
    let plan = |manifest: &Manifest| {
        (manifest.scenario.clone(), manifest.text.clone(), manifest.seed, manifest.plan_trials)
    };
    if plan(found) != plan(expected) || found.axes != expected.axes {
        bail!(Usage(format!(
            "{dir}: holds trials of another plan than {other}: the scenario or its settings differ\n\
             hint: merge only folders of the same command, apart from --trial, --only, --jobs and --out"
        )));
    }
    if found.virtual_time != expected.virtual_time {
        let (which, hint) = match (&found.virtual_time, &expected.virtual_time) {
            (Some(_), Some(_)) => (
                "the guests' kernel is another one than in",
                "run the trials of one of them again with the other's kernel (SUIRO_KERNEL)",
            ),
            (Some(_), None) => ("ran in virtual time, unlike", "run all with --virtual, or none"),
            (None, _) => ("did not run in virtual time, unlike", "run all with --virtual, or none"),
        };
        bail!(Usage(format!("{dir}: {which} {other}\nhint: {hint}")));
    }
    Ok(())
}

/// The versions of all programs. Refuses two of one program.
fn versions(whole: &Part, parts: &[Part]) -> Result<BTreeMap<String, String>> {
    let mut known: BTreeMap<String, (String, &Path)> = BTreeMap::new();
    for part in std::iter::once(whole).chain(parts) {
        for (name, version) in &part.manifest.versions {
            match known.get(name) {
                Some((other, dir)) if other != version => bail!(Usage(format!(
                    "{}: made with {name} {version}, but {} with {name} {other}\n\
                     hint: install the same version on every machine, and run the trials of one of them again",
                    part.dir.display(),
                    dir.display()
                ))),
                Some(_) => {}
                None => drop(known.insert(name.clone(), (version.clone(), &part.dir))),
            }
        }
    }
    Ok(known.into_iter().map(|(name, (version, _))| (name, version)).collect())
}

/// What is to be copied. Refuses a trial that was measured twice; one that is not valid or damaged in the merged folder is
/// replaced, as `--resume` does.
fn wanted<'a>(whole: &Part, parts: &'a [Part]) -> Result<Vec<(&'a Part, &'a PlannedTrial)>> {
    let own = whole.trials.iter().map(|(planned, trial)| (planned.folder.as_str(), (whole, trial)));
    let mut known: BTreeMap<&str, (&Part, &Trial)> = own.collect();
    let mut wanted = Vec::new();
    for part in parts {
        for (planned, trial) in &part.trials {
            if let Some((holder, other)) = known.get(planned.folder.as_str()) {
                let in_whole = std::ptr::eq(*holder, whole);
                let damaged = in_whole && damaged(whole, planned)?;
                if same(trial, other) && !damaged {
                    continue;
                }
                if !in_whole || (other.valid && !damaged) {
                    bail!(Usage(twice(part, holder, planned)));
                }
                let why = if damaged { "damaged" } else { "not valid" };
                say!("trial {}: replaced, as it was {why}", planned.number.unwrap_or(0));
            }
            known.insert(&planned.folder, (part, trial));
            wanted.push((part, planned));
        }
    }
    Ok(wanted)
}

/// Whether tables of a trial that was merged before are damaged.
fn damaged(whole: &Part, planned: &PlannedTrial) -> Result<bool> {
    let outcome = whole.folder.outcome(planned)?;
    let found = outcome.map(|outcome| suiro_report::damage(&whole.folder, planned, &outcome));
    Ok(found.flatten().is_some())
}

fn twice(part: &Part, holder: &Part, planned: &PlannedTrial) -> String {
    format!(
        "{}: holds trial {} ({}), which {} holds too, from another measurement\n\
         hint: leave one of the two folders out",
        part.dir.display(),
        planned.number.unwrap_or(0),
        planned.folder,
        holder.dir.display()
    )
}

/// Whether these are copies of one measurement.
fn same(a: &Trial, b: &Trial) -> bool {
    (&a.started, a.epoch_monotonic_ns, a.valid, &a.machine, &a.virtual_time)
        == (&b.started, b.epoch_monotonic_ns, b.valid, &b.machine, &b.virtual_time)
}

/// The manifest of the whole, in the order of the plan.
fn manifest(
    whole: &Part,
    parts: &[Part],
    versions: BTreeMap<String, String>,
    args: &MergeArgs,
) -> Result<Manifest> {
    let mut plan: BTreeMap<u32, &PlannedTrial> = BTreeMap::new();
    let all = std::iter::once(whole).chain(parts);
    let measured = all.clone().flat_map(|part| part.trials.iter().map(move |(one, _)| (part, one)));
    for (part, planned) in measured {
        let number = planned.number.unwrap_or(0);
        let known = plan.entry(number).or_insert(planned);
        if *known != planned {
            bail!(
                "{}: trial {number} is {} there, but {} elsewhere\nhint: this manifest.json is damaged; run the trial again",
                part.dir.display(),
                planned.folder,
                known.folder
            );
        }
    }
    let first = plan.keys().next().copied();
    let holds = |part: &&Part| part.trials.iter().any(|(planned, _)| planned.number == first);
    let machine =
        all.clone().find(holds).map_or(&whole.manifest.machine, |part| &part.manifest.machine);
    let mut command: Vec<String> = match &args.made_by {
        Some(words) => serde_json::from_str(words).context("reading --made-by")?,
        None => command(&whole.manifest.command, &args.out),
    };
    if whole.manifest.virtual_time.is_some() {
        command = run::without_place(command.into_iter());
    }
    Ok(Manifest {
        command,
        plan: plan.into_values().cloned().collect(),
        machine: machine.clone(),
        versions,
        ..whole.manifest.clone()
    })
}

/// The command that would run the whole at once: without `--trial`, and with the merged folder.
fn command(part: &[String], out: &Path) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = part.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--trial" => drop(rest.next()),
            "--out" => {
                words.extend([word.clone(), out.display().to_string()]);
                rest.next();
            }
            one if one.starts_with("--trial=") => {}
            one if one.starts_with("--out=") => words.push(format!("--out={}", out.display())),
            _ => words.push(word.clone()),
        }
    }
    words
}

/// Copies a trial's folder next to its place and renames it, so that no reader sees half of it.
fn copy(part: &Part, planned: &PlannedTrial, whole: &Folder) -> Result<()> {
    let place = whole.trial(planned);
    let cell =
        place.parent().context("a trial's folder is in its cell's: checked by check_place")?;
    std::fs::create_dir_all(cell).with_context(|| format!("making {}", cell.display()))?;
    // The folder of the cell is below OUT, and not where a link leads.
    let below = Path::new(&planned.folder).parent().unwrap_or(Path::new(""));
    suiro_outside::beneath::check_folder(whole.root(), below)
        .with_context(|| format!("opening {}", cell.display()))?;
    let beside = cell.join(format!(".{}.{}.part", planned.repetition, std::process::id()));
    let copied = tree::copy(&part.dir, Path::new(&planned.folder), &beside, TRIAL);
    let moved = copied.and_then(|()| {
        remove(&place)?;
        std::fs::rename(&beside, &place)
    });
    if moved.is_err() {
        // The first failure is the one to report.
        let _ = remove(&beside);
    }
    moved.context("copying it")
}

fn remove(folder: &Path) -> std::io::Result<()> {
    gone(std::fs::remove_dir_all(folder))
}

/// How much of the plan is there.
fn tell(manifest: &Manifest, merged: usize, out: &Path) {
    let total = manifest.plan_trials.unwrap_or(0);
    let there: BTreeSet<u32> = manifest.plan.iter().filter_map(|it| it.number).collect();
    say!(
        "{}: merged {}; it holds {} of {total}",
        out.display(),
        count(merged, "trial"),
        there.len()
    );
    let missing: Vec<u32> = (1..=total).filter(|number| !there.contains(number)).collect();
    if !missing.is_empty() {
        let listed: Vec<String> = missing.iter().take(LISTED).map(u32::to_string).collect();
        let more = if missing.len() > LISTED { ", …" } else { "" };
        say!("hint: suiro run … --trial N runs the others: {}{more}", listed.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_that_of_the_whole() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for part in
            ["suiro run x --trial 7 --out p/7 --seed 3", "suiro run x --trial=7 --out=p/7 --seed 3"]
        {
            let made = command(&words(part), Path::new("w")).join(" ").replace('=', " ");
            assert_eq!(made, "suiro run x --out w --seed 3", "{part}");
        }
    }
}
