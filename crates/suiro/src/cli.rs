//! What was typed. What it means is decided in the module of each command.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use suiro_scenario::{Bounds, JOBS, Overrides};
use suiro_units::{Duration, Seed};

/// A laboratory for media transport: streams real video over real protocols through an emulated
/// link, measures every layer, and reports what happened and why.
#[derive(Debug, Parser)]
#[command(name = "suiro", version, max_term_width = 100, propagate_version = true, after_help = FIRST_STEPS)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What was typed; ends the process where it is wrong, or asks for help.
    pub fn from_command_line() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            let typed: Vec<String> = std::env::args().skip(1).collect();
            match forgotten_dashes(&error, &typed) {
                Some(told) => Self::command().error(ErrorKind::UnknownArgument, told).exit(),
                None => error.exit(),
            }
        })
    }
}

/// What to say of `suiro link ping`, whose command has no `--` before it.
fn forgotten_dashes(error: &clap::Error, typed: &[String]) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let at = typed.iter().position(|typed| typed == word)?;
    let is_command = typed[0] == "link" && !word.starts_with('-');
    let quoted =
        |word: &String| if word.contains(' ') { format!("\"{word}\"") } else { word.clone() };
    let [before, command] = [&typed[..at], &typed[at..]]
        .map(|words| words.iter().map(quoted).collect::<Vec<_>>().join(" "));
    is_command.then(|| format!("`{word}` needs `--` before it\nhint: suiro {before} -- {command}"))
}

const FIRST_STEPS: &str = "First steps:
  suiro doctor               can this host do it?
  suiro list                 the built-in scenarios
  suiro run ping             a run of 12 seconds, without media
  suiro run quick            real video over a link whose rate falls and rises";

const RUN_EXAMPLES: &str = "Examples:
  suiro run quick --out results/first
  suiro run quick --set abr=bola --repeat 5    another parameter, five repetitions of each cell
  suiro run quick --only tcp=reno --duration \"1 min\"
  suiro run quick --virtual --repeat 20        in virtual time: exact, repeatable, one trial per CPU
  suiro run mine.toml --out results/mine --resume    go on after Ctrl-C
  suiro run mine.toml --virtual --baseline results/before \\
      --limit \"player.stall_s <= baseline\"    exit code 3 if it stalls longer";

const MERGE_EXAMPLES: &str = "Examples:
  suiro run quick --trial 1 --out parts/1      on one machine
  suiro run quick --trial 2 --out parts/2      on another one
  suiro merge parts/* --out results/quick";

const SWEEP_EXAMPLES: &str = "Examples:
  suiro sweep quick --repeat 50 --on local --out results/many
  suiro sweep mine.toml --on ray --out results/mine           the Ray cluster of this machine
  suiro sweep mine.toml --on ray://head:10001 --out results/mine --resume
  suiro sweep mine.toml --on slurm --jobs 40 --out /shared/results/mine
  suiro sweep mine.toml --tune goal=\"min links.access.queue.limit while media.latency_p95_ms < 200\" \\
      over=\"links.access.queue.limit=10 kB..1 MB\"";

const VERIFY_EXAMPLES: &str = "Examples:
  suiro run quick --virtual --out results/first
  suiro verify results/first                   every trial again: the same bytes, or where they differ
  suiro verify results/paper --sample 5        five of its trials";

const LINK_EXAMPLES: &str = "Examples:
  suiro link --delay \"20 ms\" -- ping -c 5 server
  suiro link --down \"2 Mbit/s\" --up \"1 Mbit/s\" --delay \"20 ms\" --queue \"100 kB\" \\
      --server \"iperf3 -s -1\" -- iperf3 -c server --reverse
  suiro link --preset 4g --record trace --json -- ping -c 20 server
  suiro link --virtual --preset satellite -- ping -c 1000 server";

const COMPARE_EXAMPLES: &str = "Examples:
  suiro run quick --set quality=true --out results/seen
  suiro compare results/seen
  suiro compare results/seen --cells reno,cubic --out both.mp4
  suiro compare DIR --cells tcp=reno+abr=bola,tcp=cubic+abr=bola,tcp=cubic+abr=bola#2";

const WHY_EXAMPLES: &str = "Examples:
  suiro why results/quick
  suiro why results/quick --cell tcp=reno --json
  suiro why results/quick --between tcp=reno tcp=cubic
  suiro why results/quick --prove                     each cause, by the trial without it
  suiro why results/quick --cell tcp=reno --prove --effect 0
  suiro why call.pcapng webrtc-internals.json         what other programs recorded";

const SERVE_EXAMPLES: &str = "Examples:
  suiro serve                                Big Buck Bunny on demand, ten minutes, on port 8080
  suiro serve film.mp4 --live --tcp reno     your own file, live, over TCP Reno
  suiro serve --bind 0.0.0.0                 for other machines too
  suiro serve bbb --whep --token s3cret      a live camera over WebRTC, at http://localhost:8080/whep";

const PLAY_EXAMPLES: &str = "Examples:
  suiro play http://localhost:8080/manifest.mpd --duration \"1 min\"
  suiro play http://192.0.2.1:8080/master.m3u8 --abr bola --save --out played
  suiro play http://localhost:8080/whep --token s3cret --duration \"10 s\"";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario and write a report.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Run the trials of a results folder in virtual time again, and compare every byte.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Regenerate the summary, the tables and the page of a results folder.
    Report(ReportArgs),
    /// Merge results folders of the same plan into one, as if one run had made it.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Run the trials of a plan on many machines, or search for the best values of parameters.
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
    /// Print a study's published claims next to the measured values.
    Findings(FindingsArgs),
    /// Show several trials side by side in one synchronised video.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Write the metrics or the tables of a results folder for other programs.
    #[command(after_help = crate::export::EXAMPLES)]
    Export {
        /// The format.
        #[command(subcommand)]
        command: crate::export::ExportCommand,
    },
    /// Print what limited each flow, and the cause of each stall, freeze and fall of the quality.
    #[command(after_help = WHY_EXAMPLES)]
    Why(WhyArgs),
    /// Compare results folders: what became better, worse or stayed the same, and what differs in how they were made.
    #[command(after_help = crate::diff::EXAMPLES)]
    Diff(crate::diff::DiffArgs),
    /// Run the trials of a results folder again with a change, and compare; or find the value of a key up to which limits
    /// are kept.
    #[command(after_help = crate::what_if::EXAMPLES)]
    WhatIf(crate::what_if::WhatIfArgs),
    /// List the built-in scenarios.
    List(ListArgs),
    /// Print a scenario's text.
    Show(ShowArgs),
    /// Check a scenario without running it.
    Check(CheckArgs),
    /// Print the JSON Schema of scenarios.
    Schema,
    /// Check what this host can do, and print how to fix what is missing.
    Doctor(DoctorArgs),
    /// Run any command behind an emulated link.
    #[command(after_help = LINK_EXAMPLES)]
    Link(crate::link::LinkArgs),
    /// Serve a package of media over HTTP, as DASH and HLS; or a live camera over WebRTC.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(crate::endpoint::ServeArgs),
    /// Publish a live camera over WebRTC to a server, with WHIP.
    #[command(after_help = crate::webrtc::PUBLISH_EXAMPLES)]
    Publish(crate::webrtc::PublishArgs),
    /// Play a DASH, HLS or WebRTC stream without a screen, and record how it went.
    #[command(after_help = PLAY_EXAMPLES)]
    Play(crate::endpoint::PlayArgs),
    /// TCP congestion control.
    Tcp(TcpArgs),
    /// The uncompressed 8K stream server.
    #[command(after_help = crate::uncompressed::EXAMPLES)]
    Uncompressed {
        /// What to do.
        #[command(subcommand)]
        command: crate::uncompressed::UncompressedCommand,
    },
    /// Which layer of which host lost or delayed a packet.
    Layers(crate::layers::LayersArgs),
    /// Print the completions for a shell; `make install` installs them.
    #[command(hide = true)]
    Completions {
        /// Which shell.
        shell: CompletionsFor,
    },
    /// Write the man pages; `make install` installs them.
    #[command(hide = true)]
    Man {
        /// The folder; it is made where there is none.
        dir: PathBuf,
    },
    /// One endpoint of a trial; `lab` starts it.
    #[command(hide = true)]
    Endpoint {
        /// The job: a JSON file.
        job: PathBuf,
    },
    /// One trial, in namespaces of its own; `run` starts it.
    #[command(hide = true)]
    Trial {
        /// What to run: the trial's `order.json`.
        order: PathBuf,
    },
    /// The init of a guest, in whose virtual time a trial runs.
    #[command(hide = true)]
    Guest {
        /// What to do: a JSON file.
        handover: PathBuf,
    },
    /// The inner half of `link`, in namespaces of its own.
    #[command(hide = true)]
    LinkInside {
        /// What to run, as JSON: a file, or the number of an open one.
        order: PathBuf,
    },
}

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
    /// Keep only the cells whose axis KEY has the value VALUE.
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
    /// Run only the trials of these numbers, from 1, in the order of the plan; `suiro merge` makes one folder of several.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub trial: Vec<u32>,
    /// Trials to run in parallel.
    #[arg(long, value_name = "N", value_parser = within(JOBS), help = format!("Trials to run in parallel, {JOBS} [default: the scenario's; in virtual time, one per CPU]"))]
    pub jobs: Option<u32>,
    /// How often to run a trial again that is invalid only because this machine was busy: packets left its links too
    /// late, or an endpoint waited for a CPU. Every attempt is recorded.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=2), default_value_t = 2)]
    pub retries: u32,
    /// Continue an interrupted run: run only the trials that are missing in --out.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// What the results must keep to.
    #[command(flatten)]
    pub limits: crate::limits::LimitArgs,
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
    #[arg(long, value_name = "N", value_parser = within(JOBS), help = format!("Trials to run in parallel, {JOBS} [default: one per CPU]"))]
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
    pub limits: crate::limits::LimitArgs,
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
    #[arg(long, value_name = "N", requires = "prove", value_parser = within(JOBS), help = format!("Trials to run in parallel, {JOBS} [default: one per CPU]"))]
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
