//! `suiro run`: plan, prepare media, run the trials, report.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

use anyhow::{Context, Result, bail};
use suiro_guest::Kernel;
use suiro_hosts::{Privilege, Sandbox};
use suiro_lab::guests::{self, Guests};
use suiro_lab::runner::{self, Manner, Order, Place};
use suiro_lab::{clock, machine, priority, trial as lab_trial};
use suiro_media::live::FootageSpec;
use suiro_media::{Ffmpeg, MediaSpec};
use suiro_outside::beneath;
use suiro_record::{Folder, Machine, Manifest, PlannedTrial, Trial};
use suiro_scenario::{Date, Plan, Scenario, Setup, TimeKind};
use suiro_units::Bytes;

use crate::args::RunArgs;
use crate::missing::Host;
use crate::progress::{Screens, Trials, label};
use crate::resume::{self, Earlier};
use crate::{Outcome, Usage, capacity, interrupt, limits, media, report, tcp};

/// Largest `order.json` and job that is read. A resolved trace stands in them as numbers.
pub const JOB_BYTES_MAX: u64 = 256 << 20;

/// How a plan is run.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Only what has no valid outcome yet.
    pub resume: bool,
    /// Trials at the same time; `None` for as many as the scenario says, or in virtual time as there are CPUs and memory for.
    pub jobs: Option<u32>,
    /// How often a trial is run again that is invalid only because this machine was busy.
    pub retries: u32,
}

/// `suiro run NAME|FILE`.
pub fn run(args: &RunArgs) -> Result<Outcome> {
    let plan = Scenario::load(&args.scenario)?.plan(&args.changes.overrides())?;
    let limits = limits::asked(plan.limits.clone(), &args.limits, &plan.axes)?;
    let plan = chosen(plan, &args.trial, &args.scenario)?;
    let now = clock::realtime_ns();
    let out = args.out.clone().unwrap_or_else(|| default_out(&plan, &args.trial, now));
    let how = How { resume: args.resume, jobs: args.jobs, retries: args.retries };
    let (folder, _held) = measure(&plan, &out, how)?;
    report::make(&folder, args.trial.is_empty().then_some(&limits))
}

/// Runs the trials of a plan in a results folder. The right to write there lasts as long as the file that is returned.
pub fn measure(plan: &Plan, out: &Path, how: How) -> Result<(Folder, File)> {
    let now = clock::realtime_ns();
    let (folder, held) = open_folder(out, how.resume, plan)?;
    let earlier = if how.resume { Earlier::read(&folder)? } else { None };
    let guests = guests(plan, earlier.as_ref().and_then(Earlier::kernel))?;
    if guests.is_none() {
        suiro_hosts::sandbox::probe(Privilege::of_this_process())
            .context("this host cannot create namespaces; see suiro doctor")?;
    }
    let mut manifest = manifest(plan, now, guests.as_ref());
    if let Some(earlier) = &earlier {
        earlier.check_kernel(manifest.virtual_time.as_ref(), out)?;
    }
    // Held until the run is over; the kernel takes it away even from a process that was killed. Guests have their own.
    let _vegas = if guests.is_none() { tcp::vegas_for(plan) } else { None };
    let (trials, skipped) = possible(plan, &folder, earlier.as_ref());
    // Before anything is written: a run that found no media can be typed again as it was.
    let setups = trials.iter().map(|trial| &*trial.setup);
    let packages = prepare_media(setups, &mut manifest.versions)?;
    let machine = manifest.machine.clone();
    if let Some(earlier) = earlier {
        earlier.keep_in(&mut manifest, out, |planned| outcome(&folder, planned).is_some())?;
    }
    folder.write_manifest(&manifest)?;
    for (trial, because) in skipped {
        say!("{}: skipped: {because}", trial.folder);
        if let Err(error) = runner::skip(&folder, trial, because) {
            say!("{}: {error:#}", trial.folder);
        }
    }
    let orders = trials.into_iter();
    let orders: Vec<Order> =
        orders.map(|trial| order(trial, &folder, &packages, &machine)).collect();
    if !orders.is_empty() {
        if guests.is_none()
            && let Some(warning) = capacity::warning(plan, jobs(how, plan, &orders))
        {
            say!("warning: {warning}");
        }
        run_trials(plan, how, &folder, orders, guests.as_ref())?;
    }
    complete(&mut manifest, &folder);
    folder.write_manifest(&manifest)?;
    if !interrupt::happened() {
        film(&folder, &manifest.plan)?;
    }
    Ok((folder, held))
}

/// Adds to the manifest what its valid trials recorded: the others run again, with whatever is there then. A trial with another
/// version of a program than those before it gets a warning, and runs again with `--resume`, too.
fn complete(manifest: &mut Manifest, folder: &Folder) {
    let many = manifest.has_many();
    for planned in &manifest.plan {
        let Some(trial) = outcome(folder, planned) else { continue };
        if trial.valid
            && let Err(error) =
                resume::add(&mut manifest.versions, &trial.versions, &label(planned))
        {
            say!("warning: {error:#}");
        }
        if !many {
            manifest.self_checks.insert(planned.folder.clone(), trial.self_checks);
        }
    }
}

/// Only the trials of these numbers, or all if there are none. `typed` is what the command line calls the scenario.
fn chosen(mut plan: Plan, numbers: &[u32], typed: &str) -> Result<Plan> {
    if numbers.is_empty() {
        return Ok(plan);
    }
    let known = |number: &u32| plan.trials.iter().any(|it| it.planned.number == Some(*number));
    if let Some(unknown) = numbers.iter().find(|number| !known(number)) {
        let why = match (1..=plan.total).contains(unknown) {
            true => "found one that --only leaves out".to_owned(),
            false => format!("expected a number from 1 to {}", plan.total),
        };
        bail!(Usage(format!(
            "--trial {unknown}: {why}\nhint: suiro check {typed} --json lists the trials"
        )));
    }
    plan.trials.retain(|trial| trial.planned.number.is_some_and(|it| numbers.contains(&it)));
    Ok(plan)
}

/// `results/NAME-DATE-TIME`, with the numbers of chosen trials: jobs of a cluster begin in the same second.
pub fn default_out(plan: &Plan, numbers: &[u32], now: u64) -> PathBuf {
    let mut name = format!("{}-{}", plan.name, clock::compact(now));
    match numbers {
        [] => {}
        [number] => name.push_str(&format!("-trial-{number}")),
        [first, .., last] => name.push_str(&format!("-trials-{first}-{last}")),
    }
    PathBuf::from("results").join(name)
}

/// One trial, as the init of its sandbox.
pub fn trial(file: &Path) -> Result<Outcome> {
    in_sandbox()?;
    let text = suiro_outside::file::read_text(file, JOB_BYTES_MAX)
        .with_context(|| format!("reading the order {}", file.display()))?;
    let order: Order = serde_json::from_str(&text)
        .with_context(|| format!("{}: not an order of this version", file.display()))?;
    // Ctrl-C is for `suiro run`, which stops this process; endpoints must not receive it first.
    rustix::process::setsid().context("leaving the terminal")?;
    priority::raise();
    let (sender, events) = channel();
    interrupt::forward_inside(sender.clone())?;
    let tell = &mut |phase: &runner::Phase| {
        // The runner may be gone; then so are we.
        if let Ok(line) = serde_json::to_string(phase) {
            use std::io::Write;
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    };
    lab_trial::run(&order, (&sender, &events), tell)?;
    Ok(Outcome::Done)
}

/// Refuses to make hosts and mounts anywhere but in namespaces of their own, whose init this is.
pub fn in_sandbox() -> Result<()> {
    if std::process::id() == 1 {
        return Ok(());
    }
    let hint = "hint: suiro run and suiro link start it; by hand, \
                unshare --net --mount --pid --fork --mount-proc does";
    bail!(Usage(format!("this half of suiro runs in namespaces of its own only\n{hint}")))
}

/// The results folder, empty or new or with `--resume` one of the same plan, and the right to write
/// there, which the kernel gives back when this process ends.
fn open_folder(out: &Path, resume: bool, plan: &Plan) -> Result<(Folder, File)> {
    let held = hold(out)?;
    check_content(out, resume, plan)?;
    // A trial's process has other folders mounted, but the same paths.
    Ok((Folder::new(out.canonicalize()?), held))
}

/// Makes a results folder where there is none, and takes the right to write there.
pub fn hold(out: &Path) -> Result<File> {
    if out.exists() && !out.is_dir() {
        bail!(Usage(format!("{} is a file\nhint: name a folder with --out", out.display())));
    }
    std::fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    let held = File::open(out).with_context(|| format!("opening {}", out.display()))?;
    // A file system without locks has no say.
    if matches!(held.try_lock(), Err(TryLockError::WouldBlock)) {
        bail!(Usage(format!(
            "another suiro run is writing to {}\nhint: name another folder with --out",
            out.display()
        )));
    }
    Ok(held)
}

/// Refuses a folder with anything in it that this run would damage.
fn check_content(out: &Path, resume: bool, plan: &Plan) -> Result<()> {
    let name = out.display();
    if !out.join("manifest.json").exists() {
        if std::fs::read_dir(out)?.next().is_some() {
            bail!(Usage(format!(
                "{name} is not empty and is not a results folder\nhint: choose another one with \
                --out"
            )));
        }
        return Ok(());
    }
    if !resume {
        bail!(Usage(format!(
            "{name} already holds results\n\
             hint: --resume runs what is missing or not valid, --out names another folder"
        )));
    }
    for trial in &plan.trials {
        // What runs again is removed and made anew: not where a link leads.
        match beneath::check_folder(out, Path::new(&trial.planned.folder)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                bail!(Usage(format!("{}: {error}", out.join(&trial.planned.folder).display())));
            }
            _ => {}
        }
    }
    if Folder::new(out).manifest()?.text != plan.text {
        bail!(Usage(format!(
            "{name} holds results of another scenario or with other settings\n\
             hint: repeat the command that made them, with --resume; it is in manifest.json"
        )));
    }
    Ok(())
}

/// What the trials' guests have in common, if they run in virtual time; with the kernel of that SHA-256 if there is one.
fn guests(plan: &Plan, kernel: Option<&str>) -> Result<Option<Guests>> {
    match plan.time {
        TimeKind::Real => Ok(None),
        TimeKind::Virtual => guests_from(plan.date, kernel).map(Some),
    }
}

/// Guests whose clocks begin at this date; with the kernel of that SHA-256 if there is one here, else with any.
pub fn guests_from(date: Date, kernel: Option<&str>) -> Result<Guests> {
    let cache = suiro_media::cache::folder();
    let kernel = match kernel {
        Some(sha256) => Kernel::find_or_kept(&cache, sha256)?,
        None => Kernel::find(&cache)?,
    };
    // A guest mounts it.
    std::fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
    let ffmpeg = Ffmpeg::locate().ok().map(|ffmpeg| ffmpeg.path().to_owned());
    let ffmpeg = ffmpeg.filter(|path| path.is_absolute());
    Ok(Guests { kernel, cache, ffmpeg, date_ns: date.as_nanos() })
}

/// In virtual time nothing in it is of this machine or of this moment: the same run writes the same manifest.
fn manifest(plan: &Plan, now: u64, guests: Option<&Guests>) -> Manifest {
    Manifest {
        suiro: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: plan.name.clone(),
        title: plan.title.clone(),
        study: plan.study.clone(),
        text: plan.text.clone(),
        command: match guests {
            Some(_) => without_place(std::env::args()),
            None => std::env::args().collect(),
        },
        started: clock::rfc3339(guests.map_or(now, |guests| guests.date_ns)),
        seed: plan.seed,
        axes: plan.axes.clone(),
        plan: plan.trials.iter().map(|trial| trial.planned.clone()).collect(),
        plan_trials: Some(plan.total),
        machine: guests.map_or_else(machine::describe, Guests::machine),
        virtual_time: guests.map(Guests::virtual_time),
        versions: BTreeMap::new(),
        self_checks: BTreeMap::new(),
    }
}

/// A command line without what names a place or does not bear on the results: `--out`, `--on`, `--jobs`, `--resume`, and
/// where the program is.
pub fn without_place(mut words: impl Iterator<Item = String>) -> Vec<String> {
    words.next();
    let mut kept = vec!["suiro".to_owned()];
    while let Some(word) = words.next() {
        let (name, joined) = word.split_once('=').map_or((&*word, false), |(name, _)| (name, true));
        match name {
            "--out" | "--on" | "--jobs" if !joined => drop(words.next()),
            "--out" | "--on" | "--jobs" | "--resume" => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// A trial that was planned and what it runs.
type Planned = suiro_scenario::Trial;

/// What is to be run of the plan, after an earlier run only what has no valid outcome yet; and what cannot
/// be run on this machine, with the reason.
fn possible<'a>(
    plan: &'a Plan,
    folder: &Folder,
    earlier: Option<&Earlier>,
) -> (Vec<&'a Planned>, Vec<(&'a PlannedTrial, String)>) {
    let done = |planned: &Planned, earlier: &Earlier| {
        let planned = &planned.planned;
        let valid = outcome(folder, planned)
            .filter(|trial| trial.valid && resume::fits(&trial.versions, earlier.versions()));
        valid.is_some_and(|trial| suiro_report::damage(folder, planned, &trial).is_none())
    };
    let host = Host::default();
    let (mut trials, mut skipped) = (Vec::new(), Vec::new());
    let is_open = |trial: &&Planned| !earlier.is_some_and(|earlier| done(trial, earlier));
    for trial in plan.trials.iter().filter(is_open) {
        match host.missing(&trial.setup, plan.time) {
            None => trials.push(trial),
            Some(because) => skipped.push((&trial.planned, because)),
        }
    }
    (trials, skipped)
}

fn order(trial: &Planned, folder: &Folder, packages: &Packages, machine: &Machine) -> Order {
    Order {
        trial: trial.planned.clone(),
        machine: Some(machine.clone()),
        virtual_time: None,
        setup: (*trial.setup).clone(),
        dir: folder.trial(&trial.planned),
        packages: packages.of(&trial.setup),
    }
}

/// How a trial went; nothing if it was not run, or if its record is damaged, which is as good as
/// nothing: `--resume` runs it again, and the report mentions it.
fn outcome(folder: &Folder, planned: &PlannedTrial) -> Option<Trial> {
    folder.outcome(planned).ok().flatten()
}

/// Trials at the same time.
fn jobs(how: How, plan: &Plan, orders: &[Order]) -> usize {
    let setups = orders.iter().map(|order| &order.setup);
    match plan.time {
        TimeKind::Real => how.jobs.unwrap_or(plan.jobs).max(1) as usize,
        TimeKind::Virtual => guests_at_once(how.jobs, orders.len(), setups),
    }
}

/// How many guests run at once, of at most so many `trials` with these setups: as many as were `asked` for, else one per CPU,
/// or fewer if there is too little memory for that, which is reported.
pub fn guests_at_once<'a>(
    asked: Option<u32>,
    trials: usize,
    setups: impl Iterator<Item = &'a Setup>,
) -> usize {
    if let Some(asked) = asked {
        return asked.max(1) as usize;
    }
    let wanted = std::thread::available_parallelism().map_or(1, usize::from).min(trials);
    let (each, available) = (guests::memory_most(setups), machine::available());
    let at_once = guests::at_once(wanted, each, available);
    if let Some(available) = available.filter(|_| at_once < wanted) {
        let gib = |bytes: Bytes| bytes.get() as f64 / f64::from(1_u32 << 30);
        say!(
            "warning: {at_once} of {wanted} trials at a time: each may take {:.1} GiB of memory, and {:.1} GiB are available\n\
             hint: --jobs N runs N at a time all the same",
            gib(each),
            gib(available)
        );
    }
    at_once
}

fn run_trials(
    plan: &Plan,
    how: How,
    folder: &Folder,
    orders: Vec<Order>,
    guests: Option<&Guests>,
) -> Result<()> {
    let (sender, events) = runner::events();
    interrupt::forward_to(sender.clone())?;
    let jobs = jobs(how, plan, &orders);
    let seconds = orders.iter().map(|order| order.setup.duration.as_secs_f64()).fold(0.0, f64::max);
    let expected = guests.is_none().then_some(seconds);
    let mut progress = Trials::new(orders.len(), jobs, expected);
    let sandbox = |order: &Path| Sandbox::new(["trial".into(), order.as_os_str().to_owned()]);
    let place = guests.map_or(Place::Machine(&sandbox), Place::Guests);
    // In virtual time the same trial would end the same again.
    let retries = if guests.is_some() { 0 } else { how.retries as usize };
    let manner = Manner { jobs, retries };
    let ended = runner::run(orders, folder, manner, &place, (&sender, &events), &mut progress);
    progress.finish();
    ended.map(drop)
}

/// Films what each viewer saw. Never next to a trial, which would be disturbed; nothing that goes wrong
/// here touches what was recorded.
fn film(folder: &Folder, plan: &[PlannedTrial]) -> Result<()> {
    let mut progress = Screens::default();
    let made = suiro_screens::make(folder, plan, &mut progress);
    progress.finish();
    made
}

/// The prepared packages, each media specification once.
pub struct Packages(Vec<(MediaSpec, PathBuf)>);

impl Packages {
    /// Where each media of a prepared setup lies, by its name.
    pub fn of(&self, setup: &Setup) -> BTreeMap<String, PathBuf> {
        let path = |spec: &MediaSpec| {
            let found = self.0.iter().find(|(prepared, _)| prepared == spec);
            found.expect("every media of the plan was prepared").1.clone()
        };
        setup.media.iter().map(|(name, spec)| (name.clone(), path(spec))).collect()
    }
}

/// Prepares what the setups stream; the versions of the programs that made it go into `versions`.
pub fn prepare_media<'a>(
    setups: impl Iterator<Item = &'a Setup> + Clone,
    versions: &mut BTreeMap<String, String>,
) -> Result<Packages> {
    let mut packages = Packages(Vec::new());
    for (name, spec) in setups.clone().flat_map(|setup| &setup.media) {
        if packages.0.iter().any(|(prepared, _)| prepared == spec) {
            continue;
        }
        let path = media::prepare(name, spec, versions)?;
        packages.0.push((spec.clone(), path));
    }
    let endpoints = setups.flat_map(|setup| &setup.endpoints);
    let cameras: BTreeMap<String, &FootageSpec> = endpoints
        .filter_map(|endpoint| endpoint.spec.kind().camera())
        .map(|camera| (format!("{camera:?}"), camera))
        .collect();
    for camera in cameras.values() {
        media::prepare_footage(camera, versions)?;
    }
    Ok(packages)
}
