//! `suiro verify`: the trials of a results folder again, in virtual time, compared byte for byte.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};

use anyhow::{Context, Result, bail};
use suiro_lab::guests::Guests;
use suiro_lab::process::Event;
use suiro_lab::runner::{self, Manner, Order, Place};
use suiro_outside::{beneath, printable};
use suiro_record::{Folder, Manifest, PlannedTrial, Trial, difference};

use crate::args::VerifyArgs;
use crate::progress::{Trials, label};
use crate::work::Work;
use crate::{Outcome, Usage, folders, interrupt, run};

/// What a report adds to a trial's folder after it was run.
const DERIVED: [&str; 4] = ["analysis.json", "causes.parquet", "report.html", "screens.json"];
/// How the files that are made of a viewer's screen begin.
const OF_SCREENS: [&str; 2] = ["screen.", "quality."];

/// `suiro verify DIR`.
pub fn run(args: &VerifyArgs) -> Result<Outcome> {
    let folder = folders::open(&args.dir)?;
    let manifest = folder.manifest().with_context(|| format!("reading {}", args.dir.display()))?;
    let guests = run::guests_from(date(&manifest, "verified")?)?;
    check_kernel(&manifest, &guests.virtual_time().kernel_sha256, &args.dir)?;
    let chosen = sample(measured(&folder, &manifest)?, args.sample);
    let orders: Vec<Order> =
        chosen.iter().map(|planned| order(&folder, planned)).collect::<Result<_>>()?;
    let mut versions = manifest.versions.clone();
    let packages = run::prepare_media(orders.iter().map(|order| &order.setup), &mut versions)?;
    for (name, now) in &versions {
        if let Some(then) = manifest.versions.get(name).filter(|then| *then != now) {
            say!("warning: {name} was {then} and is {now} here: media may differ");
        }
    }
    let work = Work::new("verify")?;
    let again = Folder::new(work.path().to_owned());
    let orders = orders.into_iter().map(|order| Order {
        dir: again.trial(&order.trial),
        packages: packages.of(&order.setup),
        ..order
    });
    let lab = Lab::new(&guests, args.jobs)?;
    lab.run(orders.collect(), &again, "compared")?;
    compare(&folder, &again, &chosen)
}

/// Where trials of a results folder run again.
pub struct Lab<'a> {
    guests: &'a Guests,
    jobs: usize,
    events: (Sender<Event>, Receiver<Event>),
}

impl<'a> Lab<'a> {
    /// In these guests; `jobs` at the same time, else one per CPU. Signals to this process stop the trials from now on.
    pub fn new(guests: &'a Guests, jobs: Option<u32>) -> Result<Self> {
        let (sender, events) = runner::events();
        interrupt::forward_to(sender.clone())?;
        let jobs = jobs.map_or_else(run::cpus, |jobs| jobs as usize);
        Ok(Self { guests, jobs, events: (sender, events) })
    }

    /// Runs trials, each once, into a folder. `then` is what is not done if that is interrupted, such as `compared`.
    pub fn run(&self, orders: Vec<Order>, folder: &Folder, then: &str) -> Result<()> {
        let mut progress = Trials::new(orders.len(), self.jobs, None);
        let manner = Manner { jobs: self.jobs, retries: 0 };
        let (place, (sender, events)) = (Place::Guests(self.guests), &self.events);
        let ended = runner::run(orders, folder, manner, &place, (sender, events), &mut progress);
        progress.finish();
        ended?;
        if interrupt::happened() {
            bail!("interrupted: nothing was {then}");
        }
        Ok(())
    }
}

/// The date at which the guests of the folder began. `done` is what cannot be done without one, such as `verified`.
pub fn date(manifest: &Manifest, done: &str) -> Result<suiro_scenario::Date> {
    if manifest.virtual_time.is_none() {
        bail!(Usage(format!(
            "these trials ran in the time of a machine, which does not come again\n\
             hint: suiro run … --virtual makes results that can be {done}"
        )));
    }
    manifest.started.parse().map_err(|why| Usage(format!("manifest.json: started: {why}")).into())
}

pub fn check_kernel(manifest: &Manifest, own: &str, dir: &Path) -> Result<()> {
    if manifest.suiro != env!("CARGO_PKG_VERSION") {
        let (then, now) = (printable(&manifest.suiro), env!("CARGO_PKG_VERSION"));
        say!("warning: made by suiro {then}, and this is {now}");
    }
    let kernel = manifest.virtual_time.as_ref().expect("checked by `date`");
    if kernel.kernel_sha256 != own {
        bail!(Usage(format!(
            "{}: made with a kernel {} of SHA-256 {}; the one here has {own}\n\
             hint: SUIRO_KERNEL=FOLDER names another one; the same source, compiler and configuration make the same",
            dir.display(),
            printable(&kernel.kernel),
            printable(&kernel.kernel_sha256),
        )));
    }
    Ok(())
}

/// The trials of the plan that were run.
fn measured(folder: &Folder, manifest: &Manifest) -> Result<Vec<PlannedTrial>> {
    let mut trials = Vec::new();
    for planned in &manifest.plan {
        let outcome: Option<Trial> = folder.outcome(planned)?;
        if outcome.is_some_and(|trial| !trial.skipped) {
            trials.push(planned.clone());
        }
    }
    if trials.is_empty() {
        bail!(Usage(format!("{}: no trial was run", folder.root().display())));
    }
    Ok(trials)
}

/// So many of them, spread evenly.
fn sample(trials: Vec<PlannedTrial>, count: Option<u32>) -> Vec<PlannedTrial> {
    let (all, count) = (trials.len(), count.map_or(trials.len(), |count| count as usize));
    let keep = |n: &usize| *n * count / all != (*n + 1) * count / all || count >= all;
    let chosen = trials.into_iter().enumerate().filter(|(n, _)| keep(n));
    chosen.map(|(_, planned)| planned).collect()
}

/// What a trial ran, as its folder has it. The folder may be a stranger's: no link is followed.
pub fn order(folder: &Folder, planned: &PlannedTrial) -> Result<Order> {
    let file = Path::new(&planned.folder).join("order.json");
    let shown = folder.root().join(&file);
    let bytes = beneath::open(folder.root(), &file)
        .and_then(|file| suiro_outside::file::bytes(file, run::JOB_BYTES_MAX))
        .with_context(|| format!("reading {}", shown.display()))?;
    let order: Order = serde_json::from_slice(&bytes)
        .with_context(|| format!("{}: not an order of this version", shown.display()))?;
    // What it says about its place does not count.
    Ok(Order { trial: planned.clone(), virtual_time: None, ..order })
}

/// Prints `same`, or where it differs first, for each trial.
fn compare(folder: &Folder, again: &Folder, trials: &[PlannedTrial]) -> Result<Outcome> {
    let mut out = std::io::stdout().lock();
    let mut differing = 0;
    for planned in trials {
        let (one, other) = (folder.trial(planned), again.trial(planned));
        let (files, differences) = differences(&one, &other)?;
        let name = printable(&label(planned)).into_owned();
        match &differences[..] {
            [] => writeln!(out, "{name}: same, {files} files")?,
            all => {
                differing += 1;
                writeln!(out, "{name}: {} of {files} files differ", all.len())?;
                for place in all {
                    writeln!(out, "  {}", printable(place))?;
                }
            }
        }
    }
    writeln!(out, "{} of {} trials are the same", trials.len() - differing, trials.len())?;
    Ok(if differing == 0 { Outcome::Done } else { Outcome::Failed })
}

/// How many files the two folders of a trial have, and where they differ.
fn differences(one: &Path, other: &Path) -> Result<(usize, Vec<String>)> {
    let (before, after) = (files(one)?, files(other)?);
    let mut found = Vec::new();
    let all: BTreeSet<&PathBuf> = before.iter().chain(&after).collect();
    for file in &all {
        let name = file.display();
        if !after.contains(*file) {
            found.push(format!("{name}: was not made again"));
        } else if !before.contains(*file) {
            found.push(format!("{name}: was not there before"));
        } else {
            let place = difference(&one.join(file), &other.join(file));
            let place = place.with_context(|| format!("comparing {name}"))?;
            found.extend(place.map(|place| format!("{name}: {place}")));
        }
    }
    Ok((all.len(), found))
}

/// The files that a trial itself made, below its folder.
fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let path = folder.join(&below);
        let doing = || format!("reading {}", path.display());
        for entry in std::fs::read_dir(&path).with_context(doing)? {
            let entry = entry.with_context(doing)?;
            let file = below.join(entry.file_name());
            if entry.file_type().with_context(doing)?.is_dir() {
                folders.push(file);
            } else if !is_derived(&file) {
                found.insert(file);
            }
        }
    }
    Ok(found)
}

fn is_derived(file: &Path) -> bool {
    let name = file.to_string_lossy();
    DERIVED.contains(&&*name) || OF_SCREENS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(count: u32) -> Vec<PlannedTrial> {
        let trial = |repetition| PlannedTrial {
            cell: Default::default(),
            repetition,
            seed: suiro_units::Seed(1),
            folder: String::new(),
            number: Some(repetition),
        };
        (0..count).map(trial).collect()
    }

    #[test]
    fn a_sample_is_spread_evenly() {
        let chosen = |all, count| {
            let kept = sample(trials(all), count);
            kept.iter().map(|trial| trial.repetition).collect::<Vec<_>>()
        };
        assert_eq!(chosen(3, None), [0, 1, 2]);
        assert_eq!(chosen(3, Some(9)), [0, 1, 2]);
        assert_eq!(chosen(10, Some(2)), [4, 9]);
        assert_eq!(chosen(7, Some(3)).len(), 3);
    }

    #[test]
    fn files_that_differ_are_found_and_a_report_does_not_count() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |dir: &Path, name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for dir in [a.path(), b.path()] {
            write(dir, "logs/origin.log", "one\n");
        }
        write(a.path(), "analysis.json", "{}");
        write(a.path(), "screen.player.mp4", "");
        assert_eq!(differences(a.path(), b.path()).unwrap(), (1, vec![]));
        write(b.path(), "logs/origin.log", "two\n");
        write(a.path(), "trial.json", "{}");
        write(b.path(), "new", "");
        let expected = [
            "logs/origin.log: line 1: one / two",
            "new: was not there before",
            "trial.json: was not made again",
        ];
        assert_eq!(
            differences(a.path(), b.path()).unwrap(),
            (3, expected.map(String::from).to_vec())
        );
    }
}
