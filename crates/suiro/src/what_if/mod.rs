//! `suiro what-if`: the trials of a results folder again with a change, and what that changes; or the value of a key up to
//! which limits are kept.

mod range;
mod search;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use suiro_lab::clock;
use suiro_outside::printable;
use suiro_record::{Folder, Manifest, PlannedTrial};
use suiro_report::{between_named, causes, difference, parting};
use suiro_scenario::{Disk, JOBS, Overrides, Plan, Scenario, TimeKind};
use suiro_screens::compare::{Chosen, Request, TRIALS_MAX};

use crate::args::within;
use crate::diff::share;
use crate::folders;
use crate::outputs::{self, Existing};
use crate::run::{self, How};
use crate::{Outcome, Usage, compare, diff, interrupt, say};

pub use range::Range;

/// Shown below the help.
pub const EXAMPLES: &str = "Examples:
  suiro run quick --virtual --repeat 3 --out results/first
  suiro what-if results/first --set links.access.queue.limit=\"20 kB\"
  suiro what-if results/first --set abr=bola --only tcp=reno --html changes.html
  suiro what-if results/seen --set links.access.rate=\"1 Mbit/s\" --film changes.mp4
  suiro what-if results/first --search links.access.queue.limit=\"10 kB..1 MB\" \\
      --limit \"link.down.queue_delay_p95_ms < 200 ms\"      the longest queue that keeps the limit";

/// Arguments of `what-if`.
#[derive(Debug, Args)]
pub struct WhatIfArgs {
    /// The results folder, which is only read. In virtual time all differences come from the change; live trials also vary.
    pub dir: PathBuf,
    /// A change of a parameter or any key of the scenario; may be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Run only the cells whose axis KEY has the value VALUE.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Find the value of this key, between both ends, up to which the limits are kept: both ends are tried, then the middle
    /// of what is left, until it is known to 1 %. This assumes that there is one such value.
    #[arg(long, value_name = "PATH=LOW..HIGH")]
    pub search: Option<Range>,
    /// A limit of --search, for all cells; may be repeated [default: the scenario's limits].
    #[arg(long, value_name = "LIMIT", requires = "search")]
    pub limit: Vec<String>,
    /// Results folder of the new trials; with --search it has a numbered one for each value
    /// [default: results/NAME-what-if-DATE-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Trials to run in parallel.
    #[arg(long, value_name = "N", value_parser = within(JOBS), help = format!("Trials to run in parallel, {JOBS} [default: the scenario's; in virtual time, one per CPU, or fewer if memory is short]"))]
    pub jobs: Option<u32>,
    /// List every metric, as for `suiro diff`.
    #[arg(long, conflicts_with = "search")]
    pub all: bool,
    /// A difference counts as none if its 95 % interval is within this share of the first mean, 0 to 1.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = suiro_report::MARGIN, conflicts_with = "search")]
    pub margin: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Also write the page of `suiro diff`.
    #[arg(long, value_name = "FILE", conflicts_with = "search")]
    pub html: Option<PathBuf>,
    /// Also write a video with the screens before and after the change side by side, for the first repetition of up to four
    /// cells. Needs `[record] quality = true` in the scenario, or `--set record.quality=true`.
    #[arg(long, value_name = "FILE", conflicts_with = "search")]
    pub film: Option<PathBuf>,
    /// Replace the files of --html and --film if they are there already.
    #[arg(long)]
    pub replace: bool,
}

/// `suiro what-if DIR`.
pub fn run(args: &WhatIfArgs) -> Result<Outcome> {
    let origin = Origin::read(args)?;
    if let Some(range) = &args.search {
        return search::run(args, &origin, range);
    }
    if args.set.is_empty() {
        bail!(Usage(
            "there is nothing to change\nhint: --set PATH=VALUE makes a change, --search finds a value".to_owned()
        ));
    }
    for file in args.html.iter().chain(&args.film) {
        outputs::check(std::slice::from_ref(file), &[], Existing::of(args.replace))?;
    }
    // A damaged one would be found only after the trials.
    folders::summary(&origin.folder)?;
    let plan = origin.plan(&args.set)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&plan));
    let (changed, _held) = again(&plan, &out, args.jobs)?;
    let folders = [origin.folder.clone(), changed.clone()];
    let found = difference(&folders, args.margin).context("reading the results")?;
    diff::print(&found, args.json, args.all)?;
    if !args.json {
        tell_moments(&origin, &changed, &plan)?;
    }
    if let Some(page) = &args.html {
        diff::write_page(page, &found)?;
    }
    if let Some(output) = &args.film {
        film(&origin, &changed, &plan, output)?;
    }
    say!("results: {}", changed.root().display());
    let valid = changed.summary()?.trials.iter().all(|trial| trial.valid || trial.skipped);
    Ok(if valid && !interrupt::happened() { Outcome::Done } else { Outcome::Failed })
}

/// `results/NAME-what-if-DATE-TIME`.
fn default_out(plan: &Plan) -> PathBuf {
    let now = clock::compact(clock::realtime_ns());
    PathBuf::from("results").join(format!("{}-what-if-{now}", plan.name))
}

/// The results folder whose trials run again.
struct Origin {
    folder: Folder,
    manifest: Manifest,
    scenario: Scenario,
    only: Vec<String>,
}

impl Origin {
    fn read(args: &WhatIfArgs) -> Result<Self> {
        let folder = folders::open(&args.dir)?;
        let manifest = folder.manifest().context("reading the results folder")?;
        let scenario = suiro_scenario::parse(&manifest.text, &folders::scenario_of(&folder))?;
        Ok(Self { folder, manifest, scenario, only: args.only.clone() })
    }

    /// The same trials with these changes: those of the same cells, if there still are such cells, and of repetitions that
    /// the folder has.
    fn plan(&self, set: &[String]) -> Result<Plan> {
        let overrides =
            Overrides { set: set.to_vec(), only: self.only.clone(), ..Overrides::default() };
        // The scenario's own folder is not recorded: files that it names are looked for in the working folder.
        let mut plan = self.scenario.plan_with(&overrides, &Disk::new("."))?;
        let folders: BTreeSet<&str> = self.manifest.plan.iter().map(|it| &*it.folder).collect();
        let repetitions: BTreeSet<u32> =
            self.manifest.plan.iter().map(|it| it.repetition).collect();
        let is_there = |planned: &PlannedTrial| folders.contains(&*planned.folder);
        let any = plan.trials.iter().any(|trial| is_there(&trial.planned));
        plan.trials.retain(|trial| {
            let planned = &trial.planned;
            repetitions.contains(&planned.repetition) && (!any || is_there(planned))
        });
        if plan.time == TimeKind::Real {
            say!(
                "warning: these trials run in the machine's time, in which the same trial varies\n\
                 hint: suiro run … --virtual makes results whose differences come from the change alone"
            );
        }
        Ok(plan)
    }
}

/// Runs a plan and computes its summary.
fn again(plan: &Plan, out: &Path, jobs: Option<u32>) -> Result<(Folder, File)> {
    let how = How { resume: false, jobs, retries: 2 };
    let (folder, held) = run::measure(plan, out, how)?;
    let report = suiro_report::build(&folder);
    report.with_context(|| format!("reporting on {}", folder.root().display()))?;
    Ok((folder, held))
}

/// Prints for the first repetition of each cell from which moment on its trials differ, and in what.
fn tell_moments(origin: &Origin, changed: &Folder, plan: &Plan) -> Result<()> {
    let mut out = say::results();
    for after in plan.trials.iter().map(|it| &it.planned).filter(|it| it.repetition == 1) {
        let before = origin.manifest.plan.iter().find(|it| is_same(it, after, plan));
        let Some(before) = before else { continue };
        let words = match parting((&origin.folder, before), (changed, after)) {
            Some(at) => format!(
                "the same until {:.3} s, when a packet of link {} {} fares otherwise",
                at.t_s, at.link, at.direction
            ),
            None => "no packet of a link fares otherwise".to_owned(),
        };
        let name = printable(&before.folder).into_owned();
        writeln!(out, "\n{name}: {}", printable(&words))?;
        let of = |folder: &Folder, planned: &PlannedTrial| {
            causes(folder, |it| it.folder == planned.folder).ok()?.pop()
        };
        if let (Some(one), Some(other)) = (of(&origin.folder, before), of(changed, after)) {
            writeln!(out, "  {}", between_named(("before", &one), ("after", &other)))?;
        }
    }
    Ok(())
}

/// The screens of trials before and after the change, side by side.
fn film(origin: &Origin, changed: &Folder, plan: &Plan, output: &Path) -> Result<()> {
    let mut trials = Vec::new();
    for after in plan.trials.iter().map(|it| &it.planned).filter(|it| it.repetition == 1) {
        let before = origin.manifest.plan.iter().find(|it| is_same(it, after, plan));
        let Some(before) = before.filter(|_| trials.len() + 2 <= TRIALS_MAX) else { continue };
        let name = |when: &str| match after.cell.is_empty() {
            true => when.to_owned(),
            false => format!("{}, {when}", printable(&after.folder)),
        };
        trials.push(Chosen { results: &origin.folder, planned: before, label: name("before") });
        trials.push(Chosen { results: changed, planned: after, label: name("after") });
    }
    let title = &origin.manifest.title;
    let poster = compare::film(&Request { title, trials: &trials, player: None, output })?;
    writeln!(say::results(), "{}\n{}", output.display(), poster.display())?;
    Ok(())
}

/// Whether a trial of the folder is one of the plan: of the same seed, and of the same cell or of the only one.
fn is_same(before: &PlannedTrial, after: &PlannedTrial, plan: &Plan) -> bool {
    let alone = plan.trials.iter().all(|trial| trial.planned.cell == after.cell);
    before.seed == after.seed && (before.cell == after.cell || alone)
}
