//! What was typed. What it means is decided in the module of each command.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::args::{
    CheckArgs, CompareArgs, CompletionsFor, DoctorArgs, FindingsArgs, ListArgs, MergeArgs,
    ReportArgs, RunArgs, ShowArgs, SweepArgs, TcpArgs, VerifyArgs, WhyArgs,
};

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
  suiro sweep mine.toml \\
      --tune goal=\"min links.access.queue.limit while media.latency_p95_ms < 200\" \\
      over=\"links.access.queue.limit=10 kB..1 MB\"";

const VERIFY_EXAMPLES: &str = "Examples:
  suiro run quick --virtual --out results/first
  suiro verify results/first                   every trial again: are its bytes the same?
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
  suiro serve bbb --whep --token s3cret      a camera over WebRTC, at http://localhost:8080/whep";

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
