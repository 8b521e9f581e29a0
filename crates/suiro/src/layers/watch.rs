//! `suiro layers watch`: two hosts' agents, joined while they record.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration as StdDuration;

use anyhow::{Context, Result};
use clap::Args;
use suiro_lab::process::Event;
use suiro_layers::agent::{AgentError, Gap, Identity, Stopper, Watched};
use suiro_layers::clock::Alignment;
use suiro_layers::matching::align;
use suiro_layers::report::{Report, report, text};
use suiro_layers::{Moment, Recording};
use suiro_units::Duration;

use super::report::print;
use crate::{Outcome, Usage, interrupt};

pub(super) const EXAMPLES: &str = "Examples:
  suiro layers watch studio.example 192.0.2.7 --identity trust/laptop
  suiro layers watch a b:7471 --identity trust/laptop --duration \"60 s\" --out call";

/// Between two views, at least.
const PERIOD: StdDuration = StdDuration::from_secs(1);

/// Arguments of `layers watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// One host with an agent: HOST or HOST:PORT.
    first: String,
    /// The other.
    second: String,
    /// The folder that `suiro layers keys` made for this watcher.
    #[arg(long, value_name = "DIR")]
    identity: PathBuf,
    /// How long to watch [default: until Ctrl-C].
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// Where both recordings go at the end; `suiro layers report` reads them.
    #[arg(long, value_name = "DIR", default_value = "layers-watch")]
    out: PathBuf,
    /// The report at the end for programs.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &WatchArgs) -> Result<Outcome> {
    if args.out.exists() {
        let told = format!("{} already exists\nhint: choose another --out", args.out.display());
        return Err(Usage(told).into());
    }
    let config = Identity::read(&args.identity)?.client()?;
    let watch = |peer: &String| Watched::new(peer, config.clone(), Moment::now);
    let mut agents = [watch(&args.first), watch(&args.second)];
    let over = end_of_watch(agents.each_ref().map(Watched::stopper), args.duration)?;
    let started = Moment::now();
    let failed = loop {
        let problems = match update(&mut agents) {
            Ok(problems) => problems,
            // What was broken off is no failure of the agent.
            Err(failed) => break Some(failed).filter(|_| goes_on(&over, StdDuration::ZERO)),
        };
        let looked = Moment::now();
        view(&agents, &problems, looked.since(started));
        if agents.iter().all(Watched::is_over) {
            break None;
        }
        // Joining what two busy hosts recorded takes a while: it may take a fifth of the time.
        let pause = PERIOD.max(StdDuration::from_nanos(4 * Moment::now().since(looked)));
        if !goes_on(&over, pause) {
            break None;
        }
    };
    finish(&mut agents, failed, args)
}

/// Disconnected once the time is up or a signal has come. Whoever waits for an agent then is
/// stopped: one that is silent must not hold the watch.
fn end_of_watch(stoppers: [Stopper; 2], duration: Option<Duration>) -> Result<Receiver<()>> {
    let (events, interrupted) = channel::<Event>();
    interrupt::forward_to(events)?;
    let (going_on, over) = channel();
    std::thread::Builder::new().name("end of watch".to_owned()).spawn(move || {
        // Whatever ends the wait, the watch is over.
        match duration {
            Some(duration) => drop(interrupted.recv_timeout(duration.into())),
            None => drop(interrupted.recv()),
        }
        drop(going_on);
        stoppers.iter().for_each(Stopper::stop);
        // Further signals are heard here until the third ends the process.
        while interrupted.recv().is_ok() {}
    })?;
    Ok(over)
}

fn goes_on(over: &Receiver<()>, pause: StdDuration) -> bool {
    matches!(over.recv_timeout(pause), Err(RecvTimeoutError::Timeout))
}

/// Why one of the agents can be watched no longer.
struct Failed {
    /// Which one: 0 or 1.
    place: usize,
    error: AgentError,
}

/// Fetches from both. Temporary errors are reported and retried; permanent ones end the watch.
fn update(agents: &mut [Watched; 2]) -> Result<Vec<String>, Failed> {
    let mut problems = Vec::new();
    for (place, agent) in agents.iter_mut().enumerate() {
        match agent.update() {
            Ok(()) => {}
            Err(error) if error.may_pass() => problems.push(format!("{error}; trying again")),
            Err(error) => return Err(Failed { place, error }),
        }
    }
    Ok(problems)
}

/// What is known so far, on the terminal: the whole report, or a line where it cannot be drawn over.
fn view(agents: &[Watched; 2], problems: &[String], elapsed_ns: u64) {
    let mut out = std::io::stderr().lock();
    let terminal = out.is_terminal();
    let mut shown = format!("watching for {} s, until Ctrl-C", elapsed_ns / 1_000_000_000);
    match join(agents) {
        Some((_, report)) if terminal => shown = format!("{shown}\n\n{}", text(&report)),
        Some((recordings, report)) => {
            for recording in &recordings {
                shown += &format!("; {} {} events", recording.host, recording.events.len());
            }
            for verdict in &report.verdicts {
                shown += &format!("; {}", verdict.sentence);
            }
        }
        None => {}
    }
    let lines: Vec<String> = problems.iter().cloned().chain(missing(agents)).collect();
    let clear = if terminal { "\x1b[H\x1b[2J" } else { "" };
    // The terminal is closed, so it cannot be reported.
    let _ = writeln!(out, "{clear}{shown}");
    lines.iter().for_each(|line| drop(writeln!(out, "{line}")));
}

/// What is missing from the recordings, in words.
fn missing(agents: &[Watched; 2]) -> Vec<String> {
    let told = |agent: &Watched, gap: &Gap| {
        let peer = agent.peer();
        match gap {
            Gap::Missed(events) => {
                format!("{peer}: {events} events were gone before they were fetched")
            }
            Gap::Restarted { from_ns, to_ns } => {
                let seconds = to_ns.saturating_sub(*from_ns) as f64 / 1e9;
                format!("{peer}: its recording restarted; {seconds:.1} s are missing")
            }
            Gap::Rebooted => format!("{peer}: it has rebooted; its recording ends there"),
            Gap::Restarts => {
                format!("{peer}: it has restarted more than 1,000 times; its recording ends there")
            }
            Gap::Unplaced(events) => {
                format!("{peer}: {events} events of flows beyond the bound were not recorded")
            }
            Gap::Full => format!("{peer}: no room for more events on this machine"),
        }
    };
    agents
        .iter()
        .flat_map(|agent| agent.gaps().into_iter().map(|gap| told(agent, &gap)).collect::<Vec<_>>())
        .collect()
}

/// Both recordings joined, by the surer of their clocks' own words and the watcher's exchanges with
/// both; `None` until both have been heard.
fn join(agents: &[Watched; 2]) -> Option<([Recording; 2], Report)> {
    let [first, second] = agents;
    let recordings = [first.recording()?, second.recording()?];
    let best = align(&recordings[0], &recordings[1]);
    let here = |agent: &Watched| agent.alignment();
    let through = here(first).zip(here(second)).map(|(a, b)| Alignment::through(&a, &b));
    let error = |clock: &Alignment| clock.error_ns.unwrap_or(u64::MAX);
    let clock = through.filter(|through| error(through) < error(&best)).unwrap_or(best);
    let report = report(&recordings[0], &recordings[1], &clock);
    Some((recordings, report))
}

/// Ends both recordings, writes them, and reports what they show together. A failure that ended the watch is returned
/// thereafter.
fn finish(agents: &mut [Watched; 2], failed: Option<Failed>, args: &WatchArgs) -> Result<Outcome> {
    for (place, agent) in agents.iter_mut().enumerate() {
        // One that failed would fail again, and the other may not have begun.
        let is_over = |failed: &Failed| failed.place == place || !agent.is_recording();
        if failed.as_ref().is_some_and(is_over) {
            continue;
        }
        if let Err(error) = agent.end() {
            say!("{error}: the end of its recording is missing");
        }
    }
    missing(agents).iter().for_each(|line| say!("{line}"));
    let concluded = conclude(agents, args);
    let Some(Failed { error, .. }) = failed else { return concluded };
    if let Err(other) = concluded {
        say!("{other:#}");
    }
    Err(error.into())
}

/// Writes the recordings, and prints the report of both.
fn conclude(agents: &[Watched; 2], args: &WatchArgs) -> Result<Outcome> {
    let mut silent = Vec::new();
    for (agent, name) in agents.iter().zip(["first", "second"]) {
        let Some(recording) = agent.recording() else {
            silent.push(agent.peer());
            continue;
        };
        let dir = args.out.join(name);
        write(&recording, &dir)?;
        say!("{}: its recording is in {}", agent.peer(), dir.display());
    }
    match join(agents) {
        Some((_, report)) => print(&report, args.json),
        None => anyhow::bail!("nothing was received from {}", silent.join(" and ")),
    }
}

fn write(recording: &Recording, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(recording.write(dir)?)
}
