//! `suiro sweep`: starts the Python package of the same name, which hands trials out to machines. The program plans,
//! runs and merges them.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;
use suiro_lab::clock;

use crate::args::{Changes, SweepArgs};
use crate::{Outcome, Usage};

/// Another Python than that next to the program.
const PYTHON: &str = "SUIRO_PYTHON";
/// The package that `make install` puts here, from the folder of the program.
const INSTALLED: &str = "../lib/suiro/python";

/// `suiro sweep SCENARIO --on …`.
pub fn run(args: &SweepArgs) -> Result<Outcome> {
    let tune = tune(args)?;
    let program = std::env::current_exe().context("finding the program itself")?;
    let python = python(&program)?;
    let name = Path::new(&args.scenario).file_stem().unwrap_or_default().to_string_lossy();
    let now = clock::compact(clock::realtime_ns());
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from("results").join(format!("{name}-{now}")));
    let request = json!({
        "binary": program,
        "command": std::env::args().collect::<Vec<_>>(),
        "scenario": args.scenario,
        "changes": changes(&args.changes),
        "out": out,
        "on": args.on,
        "jobs": args.jobs,
        "retries": args.retries,
        "resume": args.resume,
        "tune": tune,
    });
    let mut command = interpreter(&python);
    command.args(["-m", "suiro.sweep", &request.to_string()]);
    // In our place: whoever ends this process ends the sweep.
    let error = command.exec();
    Err(error).with_context(|| format!("starting {}", python.display()))
}

/// What `--tune` says; nothing without it.
fn tune(args: &SweepArgs) -> Result<Option<serde_json::Value>> {
    if args.tune.is_empty() {
        return Ok(None);
    }
    let (mut goal, mut over, mut rounds, mut parallel) = (None, Vec::new(), None, None);
    for word in &args.tune {
        match word.split_once('=') {
            Some(("goal", value)) if goal.is_none() => goal = Some(value),
            Some(("over", value)) => over.push(value),
            Some(("rounds", value)) if value.parse::<u32>().is_ok() => rounds = Some(value),
            Some(("parallel", value)) if value.parse::<u32>().is_ok() => parallel = Some(value),
            _ => bail!(Usage(format!(
                "--tune {word}: expected goal=…, over=…, rounds=NUMBER or parallel=NUMBER\n\
                 hint: --tune goal=\"min queue while media.latency_p95_ms < 200\" over=\"queue=10 kB..1 MB\""
            ))),
        }
    }
    let Some(goal) = goal.filter(|_| !over.is_empty()) else {
        bail!(Usage("--tune: expected a goal=… and an over=…".to_owned()));
    };
    Ok(Some(json!({ "goal": goal, "over": over, "rounds": rounds, "parallel": parallel })))
}

/// The changes as arguments of `check`.
fn changes(changes: &Changes) -> Vec<String> {
    let Changes { quick, only, set, duration, repeat, seed, virtual_time } = changes;
    let mut words: Vec<String> = quick.then(|| "--quick".to_owned()).into_iter().collect();
    words.extend(virtual_time.then(|| "--virtual".to_owned()));
    words.extend(only.iter().map(|it| format!("--only={it}")));
    words.extend(set.iter().map(|it| format!("--set={it}")));
    words.extend(duration.map(|it| format!("--duration={it}")));
    words.extend(repeat.map(|it| format!("--repeat={it}")));
    words.extend(seed.map(|it| format!("--seed={it}")));
    words
}

/// A Python that has the package: of the environment that the program is installed in, or the first on the PATH.
fn python(program: &Path) -> Result<PathBuf> {
    if let Some(own) = std::env::var_os(PYTHON) {
        return has_package(own.into()).map_err(|why| Usage(format!("{PYTHON}: {why}")).into());
    }
    let beside = program.with_file_name("python3");
    let mut reasons = Vec::new();
    for python in [beside.exists().then_some(beside), Some("python3".into())].into_iter().flatten()
    {
        match has_package(python) {
            Ok(python) => return Ok(python),
            Err(why) => reasons.push(why),
        }
    }
    bail!(Usage(format!(
        "suiro sweep needs its Python package: {}\nhint: `make install` brings it; or install suiro's wheel, or set {PYTHON} to the Python \
         that has it",
        reasons.join("; ")
    )))
}

/// This Python, which finds an installed package. A file in the working folder must not take the package's place.
fn interpreter(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.env("PYTHONSAFEPATH", "1");
    let program = std::env::current_exe().unwrap_or_default();
    let installed = program.parent().unwrap_or(Path::new("")).join(INSTALLED);
    if let Ok(installed) = installed.canonicalize() {
        let before = std::env::var_os("PYTHONPATH").unwrap_or_default();
        let folders = std::iter::once(installed).chain(std::env::split_paths(&before));
        // A folder whose name has a colon cannot be named there; then the package is not found, which is reported.
        command.envs(std::env::join_paths(folders).map(|folders| ("PYTHONPATH", folders)));
    }
    command
}

fn has_package(python: PathBuf) -> Result<PathBuf, String> {
    let mut look = interpreter(&python);
    look.args(["-c", "import suiro; print(suiro.__version__)"]);
    let look = look.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let name = python.display();
    let output = look.map_err(|error| format!("{name}: {error}"))?;
    let found = String::from_utf8_lossy(&output.stdout);
    match (output.status.success(), found.trim()) {
        (true, env!("CARGO_PKG_VERSION")) => Ok(python),
        (true, other) => {
            Err(format!("{name} has suiro {other}, expected {}", env!("CARGO_PKG_VERSION")))
        }
        (false, _) => Err(format!("{name} has no package suiro")),
    }
}
