//! `suiro show`, `check` and `schema`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::path::Component::{CurDir, Normal};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use suiro_analysis::why::wording::count;
use suiro_hosts::Privilege;
use suiro_lab::guests;
use suiro_outside::printable;
use suiro_record::{PlannedTrial, label_text};
use suiro_scenario::{Disk, Files, NamedLimit, Plan, Scenario, TimeKind, Trial};

use crate::Outcome;
use crate::args::{CheckArgs, ShowArgs};
use crate::missing::Host;
use crate::{capacity, limits};

/// `suiro show NAME`.
pub fn show(args: &ShowArgs) -> Result<Outcome> {
    let scenario = Scenario::load(&args.scenario)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let keys: toml::Table = toml::from_str(scenario.text())?;
        serde_json::to_writer_pretty(&mut out, &keys)?;
        writeln!(out)?;
        return Ok(Outcome::Done);
    }
    // A file gets every byte; a terminal would obey some.
    let text = if out.is_terminal() { printable(scenario.text()) } else { scenario.text().into() };
    write!(out, "{text}")?;
    Ok(Outcome::Done)
}

/// `suiro check FILE`: what it would run, or what is wrong with it.
pub fn check(args: &CheckArgs) -> Result<Outcome> {
    let scenario = Scenario::load(&args.scenario)?;
    let files = Named::beside(&scenario);
    let plan = match args.scenario.contains(['/', '.']) {
        true => scenario.plan_with(&args.changes.overrides(), &files)?,
        false => scenario.plan(&args.changes.overrides())?,
    };
    limits::check(&plan.limits)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &as_json(&plan, &files))?;
        writeln!(out)?;
        return Ok(Outcome::Done);
    }
    let cells = plan.trials.iter().filter(|t| t.planned.repetition == 1).count();
    let seconds: f64 = plan.trials.iter().map(|t| t.setup.duration.as_secs_f64()).sum();
    writeln!(out, "{}: {}", plan.name, printable(&plan.title))?;
    for axis in &plan.axes {
        let cells = || plan.trials.iter().filter_map(|it| it.planned.cell.get(&axis.name));
        let is_kept = |label: &&String| cells().any(|value| label_text(value) == **label);
        let kept: Vec<&str> = axis.labels.iter().filter(is_kept).map(String::as_str).collect();
        writeln!(out, "  {} = {}", axis.name, printable(&kept.join(", ")))?;
    }
    write!(
        out,
        "{}, {}, {:.0} s of measuring, ",
        count(cells, "cell"),
        count(plan.trials.len(), "trial"),
        seconds,
    )?;
    match plan.time {
        TimeKind::Real => writeln!(out, "{} at a time", plan.jobs)?,
        TimeKind::Virtual => writeln!(out, "in virtual time, one trial per CPU")?,
    }
    for NamedLimit { name, limit, .. } in &plan.limits {
        writeln!(out, "limit {name}: {}", printable(&limit.text))?;
    }
    write_commands(&mut out, &plan)?;
    write_outside(&mut out, &files)?;
    if plan.time == TimeKind::Real {
        match not_virtual(&plan) {
            None => writeln!(out, "it can also run in virtual time (--virtual)")?,
            Some(because) => writeln!(out, "it cannot run in virtual time: {because}")?,
        }
    }
    if plan.time == TimeKind::Real
        && let Some(warning) = capacity::warning(&plan, plan.jobs as usize)
    {
        writeln!(out, "warning: {warning}")?;
    }
    let verdict = Host::before_a_run().verdict(&plan);
    if !verdict.is_whole() {
        writeln!(out, "{}; suiro run skips the others:", verdict.summary())?;
        for reason in verdict.reasons() {
            writeln!(out, "  {}", reason.replace('\n', "\n  "))?;
        }
    }
    Ok(Outcome::Done)
}

/// Why no trial of the plan can run in virtual time, or not all of them; `None` if all can.
pub fn not_virtual(plan: &Plan) -> Option<String> {
    let because = plan.trials.iter().find_map(|trial| guests::unsuitable(&trial.setup))?;
    because.lines().next().map(str::to_owned)
}

/// The files next to a scenario, and which of them it names.
struct Named {
    disk: Disk,
    names: RefCell<BTreeSet<PathBuf>>,
}

impl Named {
    fn beside(scenario: &Scenario) -> Self {
        let folder = Path::new(scenario.file()).parent().unwrap_or(Path::new(""));
        Self { disk: Disk::new(folder), names: RefCell::default() }
    }
}

impl Files for Named {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        self.names.borrow_mut().insert(path.to_owned());
        self.disk.read(path)
    }

    fn locate(&self, path: &Path) -> std::io::Result<PathBuf> {
        self.names.borrow_mut().insert(path.to_owned());
        self.disk.locate(path)
    }
}

/// The plan for programs.
fn as_json(plan: &Plan, files: &Named) -> Value {
    let host = Host::before_a_run();
    let trial = |trial: &Trial| {
        let PlannedTrial { cell, repetition, seed, folder, number } = &trial.planned;
        json!({
            "number": number, "cell": cell, "repetition": repetition, "seed": seed, "folder": folder,
            "seconds": trial.setup.duration.as_secs_f64(),
            "missing": host.missing(&trial.setup, plan.time),
        })
    };
    json!({
        "suiro": env!("CARGO_PKG_VERSION"), "scenario": plan.name, "title": plan.title, "study": plan.study,
        "text": plan.text, "seed": plan.seed, "axes": plan.axes, "jobs": plan.jobs, "plan_trials": plan.total,
        "time": if plan.time == TimeKind::Virtual { "virtual" } else { "real" },
        "files": files.names.borrow().iter().collect::<Vec<_>>(),
        "command_files": command_files(plan),
        "trials": plan.trials.iter().map(trial).collect::<Vec<_>>(),
    })
}

/// The programs that the scenario names, with the rights that each would have.
fn write_commands(out: &mut impl Write, plan: &Plan) -> Result<()> {
    let mut commands = BTreeSet::new();
    for endpoint in plan.trials.iter().flat_map(|trial| &trial.setup.endpoints) {
        if let Some(spec) = endpoint.spec.command() {
            commands.insert((spec.privileged, &endpoint.host, spec.command.join(" ")));
        }
    }
    // Of a script only the beginning: several may have the same.
    let mut counted: BTreeMap<_, usize> = BTreeMap::new();
    for (privileged, host, command) in commands {
        *counted.entry((privileged, host, beginning(&command))).or_default() += 1;
    }
    let who = match Privilege::of_this_process() {
        Privilege::Root => "root",
        Privilege::User => "you",
    };
    for privileged in [false, true] {
        let mut commands = counted.iter().filter(|((own, ..), _)| *own == privileged).peekable();
        if commands.peek().is_none() {
            continue;
        }
        let rights = if privileged {
            "with all capabilities"
        } else {
            "without capabilities beyond their host"
        };
        writeln!(out, "runs these commands as {who}, {rights}:")?;
        for ((_, host, command), times) in commands {
            let different =
                if *times > 1 { format!(", {times} different ones") } else { String::new() };
            writeln!(out, "  {}: {}{different}", printable(host), printable(command))?;
        }
    }
    Ok(())
}

/// The first line of a command, and how many more there are.
fn beginning(command: &str) -> String {
    match command.trim_end().split_once('\n') {
        Some((first, rest)) => format!("{first} … ({})", count(rest.lines().count(), "more line")),
        None => command.to_owned(),
    }
}

/// The files that the scenario names outside of its own folder: `suiro sweep` does not send them to other machines.
fn write_outside(out: &mut impl Write, files: &Named) -> Result<()> {
    let names = files.names.borrow();
    let inside = |path: &Path| path.components().all(|part| matches!(part, Normal(_) | CurDir));
    let mut outside = names.iter().filter(|path| !inside(path)).peekable();
    if outside.peek().is_some() {
        writeln!(out, "reads these files outside of the scenario's folder:")?;
    }
    for path in outside {
        writeln!(out, "  {}", printable(&path.display().to_string()))?;
    }
    Ok(())
}

/// The files of the working folder that commands name, as words of their own or within a shell's text: a machine with
/// another working folder must be sent them.
fn command_files(plan: &Plan) -> BTreeSet<String> {
    let endpoints = plan.trials.iter().flat_map(|trial| &trial.setup.endpoints);
    let commands = endpoints.filter_map(|endpoint| endpoint.spec.command());
    let words = commands.flat_map(|spec| spec.command.iter().chain(&spec.needs));
    let apart = |c: char| c.is_whitespace() || "'\";|&()<>=$`".contains(c);
    let names = words.flat_map(|word| std::iter::once(&**word).chain(word.split(apart)));
    let is_there = |name: &&str| !name.starts_with('/') && Path::new(name).is_file();
    names.filter(is_there).map(str::to_owned).collect()
}

/// `suiro schema`.
pub fn schema() -> Result<Outcome> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &suiro_scenario::schema())?;
    writeln!(out)?;
    Ok(Outcome::Done)
}
