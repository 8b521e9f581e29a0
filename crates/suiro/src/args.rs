//! The arguments that commands take.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use suiro_scenario::{Bounds, JOBS, Overrides};
use suiro_units::{Duration, Seed};

/// Parses a value with the bounds that a scenario's key has.
pub fn within<T>(bounds: Bounds<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display + Copy,
{
    move |text| {
        let value = text.parse().ok().filter(|value| bounds.contains(value));
        value.ok_or_else(|| format!("expected {bounds}"))
    }
}

/// What is changed of a scenario.
#[derive(Debug, Args)]
pub struct Changes {
    /// The scenario's short form: fewer seconds, fewer cells.
    #[arg(long)]
    pub quick: bool,
    /// Keep only the cells whose axis KEY has the value VALUE; several with commas, such as tcp=reno,tcp=cubic.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Change a parameter or any key of the scenario; may be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// How long each trial measures, such as "40 s".
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Repetitions of each cell.
    #[arg(long, value_name = "N")]
    pub repeat: Option<u32>,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N")]
    pub seed: Option<Seed>,
    /// Run each trial in virtual time, in a kernel of its own: exact and repeatable on any machine, and usually faster.
    #[arg(long = "virtual")]
    pub virtual_time: bool,
}

impl Changes {
    /// As the scenario takes them.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            set: self.set.clone(),
            only: self.only.clone(),
            duration: self.duration,
            repetitions: self.repeat,
            seed: self.seed,
            virtual_time: self.virtual_time,
            quick: self.quick,
        }
    }
}

/// Limits that results must keep to.
#[derive(Debug, Default, Args)]
pub struct LimitArgs {
    /// A limit on a metric, such as "media.latency_p95_ms < 250 ms" or, with --baseline, "player.stall_s <= baseline + 5 %";
    /// may be repeated. The scenario's [limits] count as well. If one is not kept, the exit code is 3; limits.json,
    /// limits.xml (JUnit) and limits.md in the results folder have all of them. A part of a plan (--trial) is not judged.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// The results folder that limits with the word `baseline` refer to.
    #[arg(long, value_name = "DIR")]
    pub baseline: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A built-in scenario's name (see `suiro list`) or a TOML file.
    pub scenario: String,
    /// Results folder [default: results/NAME-DATE-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What is changed.
    #[command(flatten)]
    pub changes: Changes,
    /// Run only the trials of these numbers, such as 1,2, counted from 1 in the order of the plan; `suiro merge` makes one
    /// folder of several.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub trial: Vec<u32>,
    /// Trials to run in parallel.
    #[arg(long, value_name = "N", value_parser = within(JOBS), help = format!("Trials to run in parallel, {JOBS} [default: the scenario's; in virtual time, one per CPU, or fewer if memory is short]"))]
    pub jobs: Option<u32>,
    /// How often to run a trial again that is invalid only because this machine was busy: packets left its links too
    /// late, or an endpoint waited for a CPU. Every attempt is recorded.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=2), default_value_t = 2)]
    pub retries: u32,
    /// Continue an interrupted run: run only the trials that are missing, not valid or damaged in --out. What those recorded is
    /// replaced.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// What the results must keep to.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The results folder of a run in virtual time; nothing in it is changed.
    pub dir: PathBuf,
    /// Verify only this many trials, spread evenly over the plan [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: Option<u32>,
    /// Trials to run in parallel.
    #[arg(long, value_name = "N", value_parser = within(JOBS), help = format!("Trials to run in parallel, {JOBS} [default: one per CPU, or fewer if memory is short]"))]
    pub jobs: Option<u32>,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The results folder.
    pub dir: PathBuf,
    /// Only draw the page of this trial, by its number, as `report.html` in its folder: a report of more than 10,000
    /// trials draws none of them.
    #[arg(long, value_name = "N", conflicts_with_all = ["limit", "baseline"])]
    pub trial: Option<u32>,
    /// What the results must keep to.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The results folders. They are read only.
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// The results folder to make, or one of the same plan to add to.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The command that made the parts, as a JSON array, for the manifest.
    #[arg(long, hide = true)]
    pub made_by: Option<String>,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// A built-in scenario's name (see `suiro list`) or a TOML file.
    pub scenario: String,
    /// Where the trials run: `local`; `ray`, the cluster of this machine; `ray:HOST:PORT` or `ray://HOST:PORT`, another
    /// one; `slurm`, with --out on a file system that all machines share.
    #[arg(long, value_name = "ENGINE", default_value = "local")]
    pub on: String,
    /// Results folder [default: results/NAME-DATE-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What is changed.
    #[command(flatten)]
    pub changes: Changes,
    /// Trials to run in parallel: for `local` [default: the scenario's] and `slurm`; machines of a Ray cluster have the
    /// resource suiro_link.
    #[arg(long, value_name = "N", value_parser = within(JOBS), help = format!("Trials to run in parallel, {JOBS}, for `local` [default: the scenario's] and `slurm`; machines of a Ray cluster have the resource suiro_link"))]
    pub jobs: Option<u32>,
    /// How often a trial that is not valid because its machine was too slow is repeated, on another machine if possible.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub retries: u32,
    /// Continue an interrupted sweep: run only the trials without a valid outcome.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Search instead: goal="min NAME while METRIC < NUMBER", over="PATH=LOW..HIGH" or over="PATH=WORD|WORD" (may be
    /// repeated), rounds=N, parallel=N of them at one time.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    pub tune: Vec<String>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The results folder. Its trials need screen videos: `[record] quality = true`.
    pub dir: PathBuf,
    /// The cells, each by its values joined with `+`, and `#N` for a repetition other than the
    /// first [default: all].
    #[arg(long, value_name = "CELL", value_delimiter = ',')]
    pub cells: Vec<String>,
    /// The player whose screen is shown, where a trial has several [default: the first].
    #[arg(long, value_name = "NAME")]
    pub player: Option<String>,
    /// The video; a poster is written next to it [default: compare.mp4 in DIR].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the files of --out if they are there already.
    #[arg(long, requires = "out")]
    pub replace: bool,
}

/// Arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The results folder; or a file of another program: a capture (pcap, pcapng), a dump of chrome://webrtc-internals,
    /// reports of getStats() as JSON, a qlog, a log of ffmpeg.
    pub dir: PathBuf,
    /// More files of other programs, which are explained together.
    #[arg(value_name = "FILE", conflicts_with_all = ["cell", "between", "prove"])]
    pub more: Vec<PathBuf>,
    /// Only this cell: its values, or `AXIS=VALUE`, joined with `+`; `#N` for one repetition. Several may be named.
    #[arg(long, value_name = "CELL", value_delimiter = ',')]
    pub cell: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print the differences between two cells, and the time when they begin.
    #[arg(long, value_name = "CELL", num_args = 2, conflicts_with = "cell")]
    pub between: Vec<String>,
    /// Run each trial again without each cause that is named, and print whether the effect remains. Needs results of
    /// `suiro run --virtual`. Table `causes` of each trial keeps what was proved.
    #[arg(long, conflicts_with = "between")]
    pub prove: bool,
    /// Print, and prove, only this effect of each trial, by its number in brackets. JSON has all of them.
    #[arg(long, value_name = "N", conflicts_with = "between")]
    pub effect: Option<u64>,
    /// Seeds with which a cause that was proved is tried again, the trial's own among them.
    #[arg(long, value_name = "N", requires = "prove", value_parser = clap::value_parser!(u32).range(1..=20), default_value_t = 3)]
    pub seeds: u32,
    /// Trials to run in parallel.
    #[arg(long, value_name = "N", requires = "prove", value_parser = within(JOBS), help = format!("Trials to run in parallel, {JOBS} [default: one per CPU, or fewer if memory is short]"))]
    pub jobs: Option<u32>,
}

/// Arguments of `findings`.
#[derive(Debug, Args)]
pub struct FindingsArgs {
    /// The results folder.
    pub dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A built-in scenario's name or a TOML file.
    pub scenario: String,
    /// Print its keys as JSON, without the comments.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A TOML file, or a built-in scenario's name.
    pub scenario: String,
    /// What is changed.
    #[command(flatten)]
    pub changes: Changes,
    /// Print the plan as JSON: each trial with its number, cell, repetition, seed, folder and seconds.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Measure how many trials this host can run side by side, by running them; takes about a minute.
    #[arg(long, conflicts_with = "uncompressed")]
    pub capacity: bool,
    /// The scenario whose trials are run; one without a matrix.
    #[arg(long, value_name = "NAME", requires = "capacity", default_value = "ping")]
    pub scenario: String,
    /// Check the requirements of uncompressed video: socket memory, interfaces, CPUs.
    #[arg(long)]
    pub uncompressed: bool,
    /// Apply the fixes that are possible, until --undo or a restart; interfaces only if --interface
    /// names them. Needs root.
    #[arg(long, requires = "uncompressed", conflicts_with = "json")]
    pub apply: bool,
    /// Revert the changes of --apply.
    #[arg(long, requires = "uncompressed", conflicts_with_all = ["json", "apply"])]
    pub undo: bool,
    /// An interface to check; may be repeated [default: those with a device that are up].
    #[arg(long, value_name = "NAME", requires = "uncompressed")]
    pub interface: Vec<String>,
    /// The file with the changes of --apply.
    #[arg(long, value_name = "FILE", requires = "uncompressed", default_value = crate::doctor::tuning::STATE)]
    pub state: PathBuf,
}

/// Arguments of `tcp`.
#[derive(Debug, Args)]
pub struct TcpArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TcpCommand,
}

/// The commands of `tcp`.
#[derive(Debug, Subcommand)]
pub enum TcpCommand {
    /// List the congestion controls of this kernel and who may use them.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Load a congestion control into this kernel, for every user, until `unload` or a restart.
    /// Needs root.
    Load {
        /// Which.
        name: Loadable,
    },
    /// Unload what `load` has loaded. Needs root.
    Unload {
        /// Which.
        name: Loadable,
    },
}

/// The congestion controls that suiro brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Loadable {
    /// TCP Vegas (Brakmo and Peterson, 1995).
    Vegas,
}

/// The shells that suiro has completions for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CompletionsFor {
    /// GNU Bash, with the package bash-completion.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}
