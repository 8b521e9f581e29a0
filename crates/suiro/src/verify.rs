//! `suiro verify`: the trials of a results folder again, in virtual time, compared byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};

use anyhow::{Context, Result, bail};
use suiro_lab::guests::Guests;
use suiro_lab::process::Event;
use suiro_lab::runner::{self, Manner, Observer, Order, Phase, Place};
use suiro_outside::{beneath, printable};
use suiro_record::{Folder, Manifest, PlannedTrial, Trial, difference};
use suiro_units::Time;

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
    let guests = guests(&manifest, &args.dir, "verified")?;
    let (measured, left_out) = measured(&folder, &manifest)?;
    let chosen = sample(measured, args.sample);
    let mut verdicts = Verdicts::new();
    let mut orders = Vec::new();
    for planned in &chosen {
        match order(&folder, planned) {
            Ok(order) => orders.push(order),
            Err(error) => {
                verdicts.insert(planned.folder.clone(), Verdict::NotRun(format!("{error:#}")));
            }
        }
    }
    let mut versions = manifest.versions.clone();
    let packages = run::prepare_media(orders.iter().map(|order| &order.setup), &mut versions)?;
    for (name, now) in &versions {
        if let Some(then) = manifest.versions.get(name).filter(|then| *then != now) {
            say!("warning: {name} was {then} and is {now} here: media may differ");
        }
    }
    // From here on a signal ends the trials, and leaves no folder behind.
    let setups = orders.iter().map(|order| &order.setup);
    let lab = Lab::new(&guests, run::guests_at_once(args.jobs, orders.len(), setups))?;
    let work = Work::new("verify")?;
    let again = Folder::new(work.path().to_owned());
    let orders = orders.into_iter().map(|order| Order {
        dir: again.trial(&order.trial),
        packages: packages.of(&order.setup),
        ..order
    });
    lab.run_each(orders.collect(), &again, &mut |planned, outcome| {
        if let Some(verdict) = Verdict::of((&folder, &again), planned, outcome) {
            verdicts.insert(planned.folder.clone(), verdict);
        }
        // The results of many trials are large. What cannot be removed goes with the folder above.
        let _ = std::fs::remove_dir_all(again.trial(planned));
    })?;
    // Signals end this process again.
    drop(lab);
    let outcome = tell(&mut std::io::stdout().lock(), &chosen, &verdicts, &left_out)?;
    let open = chosen.len() - verdicts.len();
    if open > 0 {
        bail!("interrupted: {open} of {} trials were not compared", chosen.len());
    }
    Ok(outcome)
}

/// What became of the trials that were to be verified, by their folders. Those that were interrupted have none.
type Verdicts = BTreeMap<String, Verdict>;

/// Trials that are not verified, each with the reason.
type LeftOut = Vec<(PlannedTrial, String)>;

/// What became of a trial that was to be verified.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// All of this many files have the same bytes.
    Same(usize),
    /// Where it differs, of this many files.
    Differs(usize, Vec<String>),
    /// It did not run to its end here, so nothing is known. The reason.
    NotRun(String),
}

impl Verdict {
    /// That of a trial which has run again, in the second of these folders; `None` if it was interrupted.
    fn of(
        (folder, again): (&Folder, &Folder),
        planned: &PlannedTrial,
        outcome: &Trial,
    ) -> Option<Self> {
        if runner::was_interrupted(outcome) {
            return None;
        }
        if outcome.virtual_time.is_none() {
            let because = outcome.invalid_because.clone().unwrap_or_default();
            return Some(Self::NotRun(because));
        }
        Some(match differences(&folder.trial(planned), &again.trial(planned)) {
            Ok((files, places)) if places.is_empty() => Self::Same(files),
            Ok((files, places)) => Self::Differs(files, places),
            Err(error) => Self::NotRun(format!("{error:#}")),
        })
    }
}

/// Prints what became of each trial, and how many are the same.
fn tell(
    out: &mut impl Write,
    trials: &[PlannedTrial],
    verdicts: &Verdicts,
    left_out: &LeftOut,
) -> Result<Outcome> {
    let name = |planned: &PlannedTrial| printable(&label(planned)).into_owned();
    let (mut same, mut differing, mut not_run) = (0, 0, 0);
    for planned in trials {
        let Some(verdict) = verdicts.get(&planned.folder) else { continue };
        let name = name(planned);
        match verdict {
            Verdict::Same(files) => {
                same += 1;
                writeln!(out, "{name}: same, {files} files")?;
            }
            Verdict::Differs(files, places) => {
                differing += 1;
                writeln!(out, "{name}: {} of {files} files differ", places.len())?;
                for place in places {
                    writeln!(out, "  {}", printable(place))?;
                }
            }
            Verdict::NotRun(because) => {
                not_run += 1;
                writeln!(out, "{name}: could not be run again: {}", printable(because))?;
            }
        }
    }
    for (planned, because) in left_out {
        writeln!(out, "{}: left out: {}", name(planned), printable(because))?;
    }
    write!(out, "{same} of {} trials are the same", trials.len())?;
    let others = [(not_run, "could not be run again"), (left_out.len(), "left out")];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        write!(out, "; {count} {what}")?;
    }
    writeln!(out)?;
    Ok(if differing + not_run == 0 { Outcome::Done } else { Outcome::Failed })
}

/// The guests of a folder's trials, with the kernel that made them. `done` is what cannot be done without virtual time, such as
/// `verified`.
pub fn guests(manifest: &Manifest, dir: &Path, done: &str) -> Result<Guests> {
    let date = date(manifest, done)?;
    let made_with = manifest.virtual_time.as_ref().map(|time| &*time.kernel_sha256);
    let guests = run::guests_from(date, made_with)?;
    check_kernel(manifest, &guests.virtual_time().kernel_sha256, dir)?;
    Ok(guests)
}

/// Where trials of a results folder run again.
pub struct Lab<'a> {
    guests: &'a Guests,
    jobs: usize,
    events: (Sender<Event>, Receiver<Event>),
}

impl<'a> Lab<'a> {
    /// In these guests, `jobs` at the same time. Signals to this process stop the trials from now on.
    pub fn new(guests: &'a Guests, jobs: usize) -> Result<Self> {
        let (sender, events) = runner::events();
        interrupt::forward_to(sender.clone())?;
        Ok(Self { guests, jobs, events: (sender, events) })
    }

    /// Runs trials, each once, into a folder. `then` is what is not done if that is interrupted, such as `proved`.
    pub fn run(&self, orders: Vec<Order>, folder: &Folder, then: &str) -> Result<()> {
        self.run_each(orders, folder, &mut |_, _| {})?;
        if interrupt::happened() {
            bail!("interrupted: nothing was {then}");
        }
        Ok(())
    }

    /// The same, also if that is interrupted; calls `ended` when a trial has ended.
    fn run_each(&self, orders: Vec<Order>, folder: &Folder, ended: &mut Ended<'_>) -> Result<()> {
        let progress = Trials::new(orders.len(), self.jobs, None);
        let mut watched = Watched { progress, ended };
        let manner = Manner { jobs: self.jobs, retries: 0 };
        let (place, (sender, events)) = (Place::Guests(self.guests), &self.events);
        let ran = runner::run(orders, folder, manner, &place, (sender, events), &mut watched);
        watched.progress.finish();
        ran.map(drop)
    }
}

/// What is done with a trial that has ended.
type Ended<'a> = dyn FnMut(&PlannedTrial, &Trial) + 'a;

/// Shows the progress of trials, and passes on each that has ended.
struct Watched<'a, 'b> {
    progress: Trials,
    ended: &'a mut Ended<'b>,
}

impl Observer for Watched<'_, '_> {
    fn phase(&mut self, trial: &PlannedTrial, phase: &Phase) {
        self.progress.phase(trial, phase);
    }

    fn finished(&mut self, trial: &PlannedTrial, outcome: &Trial) {
        self.progress.finished(trial, outcome);
        (self.ended)(trial, outcome);
    }

    fn repeats(&mut self, trial: &PlannedTrial, outcome: &Trial) {
        self.progress.repeats(trial, outcome);
    }

    fn clock(&mut self, trial: &PlannedTrial, time: Time) {
        self.progress.clock(trial, time);
    }
}

/// The date at which the guests of the folder began.
fn date(manifest: &Manifest, done: &str) -> Result<suiro_scenario::Date> {
    if manifest.virtual_time.is_none() {
        bail!(Usage(format!(
            "these trials ran in the time of a machine, which does not come again\n\
             hint: suiro run … --virtual makes results that can be {done}"
        )));
    }
    manifest.started.parse().map_err(|why| Usage(format!("manifest.json: started: {why}")).into())
}

fn check_kernel(manifest: &Manifest, own: &str, dir: &Path) -> Result<()> {
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

/// The trials of the plan that were run, and those of them that nobody can run again to the same end, with the reason.
fn measured(folder: &Folder, manifest: &Manifest) -> Result<(Vec<PlannedTrial>, LeftOut)> {
    let (mut trials, mut left_out) = (Vec::new(), Vec::new());
    for planned in &manifest.plan {
        match folder.outcome(planned) {
            Ok(None) => {}
            Ok(Some(trial)) if trial.skipped => {}
            Ok(Some(trial)) => match unrepeatable(&trial) {
                None => trials.push(planned.clone()),
                Some(because) => left_out.push((planned.clone(), because)),
            },
            // A record that is damaged is not the one that its trial wrote.
            Err(_) => trials.push(planned.clone()),
        }
    }
    if trials.is_empty() {
        let dir = folder.root().display();
        let Some((first, because)) = left_out.first() else {
            bail!(Usage(format!("{dir}: no trial was run")));
        };
        bail!(Usage(format!(
            "{dir}: no trial can be verified: {}: {because}\n\
             hint: suiro run … --resume runs what is not valid",
            label(first)
        )));
    }
    Ok((trials, left_out))
}

/// Why a trial has no outcome that another run would have; `None` if it has one.
fn unrepeatable(trial: &Trial) -> Option<String> {
    if runner::was_interrupted(trial) {
        return Some("it was interrupted".to_owned());
    }
    // A guest writes its kernel into its record; this record is of the host, which ended the guest or saw it die.
    let because = trial.invalid_because.as_deref().unwrap_or("its guest wrote no record");
    trial.virtual_time.is_none().then(|| because.to_owned())
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
    fn each_trial_has_its_verdict_and_only_a_difference_or_a_failure_fails() {
        let mut trials = trials(4);
        trials.iter_mut().for_each(|trial| trial.folder = trial.repetition.to_string());
        let told = |verdicts: [(&str, Verdict); 3], left_out: LeftOut| {
            let verdicts = verdicts.map(|(folder, verdict)| (folder.to_owned(), verdict)).into();
            let mut out = Vec::new();
            let outcome = tell(&mut out, &trials[..3], &verdicts, &left_out).unwrap();
            (String::from_utf8(out).unwrap(), outcome)
        };
        let differs = || Verdict::Differs(9, vec!["a: line 1: x / y".to_owned()]);
        let not_run = || Verdict::NotRun("its process did not end in time".to_owned());
        let (text, outcome) = told(
            [("0", Verdict::Same(9)), ("1", differs()), ("2", not_run())],
            vec![(trials[3].clone(), "it was interrupted".to_owned())],
        );
        let expected = "trial #0: same, 9 files\n\
            trial #1: 1 of 9 files differ\n  a: line 1: x / y\n\
            trial #2: could not be run again: its process did not end in time\n\
            trial #3: left out: it was interrupted\n\
            1 of 3 trials are the same; 1 could not be run again; 1 left out\n";
        assert_eq!((&*text, outcome), (expected, Outcome::Failed));
        let same = || Verdict::Same(9);
        let (text, outcome) = told([("0", same()), ("1", same()), ("2", same())], vec![]);
        assert!(text.ends_with("#2: same, 9 files\n3 of 3 trials are the same\n"), "{text}");
        assert_eq!(outcome, Outcome::Done);
        let failed = |one| told([("0", same()), ("1", same()), ("2", one)], vec![]).1;
        assert_eq!([failed(differs()), failed(not_run())], [Outcome::Failed; 2]);
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
