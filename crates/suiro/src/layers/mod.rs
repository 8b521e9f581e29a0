//! `suiro layers`: which layer of which host lost or delayed a packet.

mod agent;
mod analyze;
mod keys;
mod report;
mod watch;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration as StdDuration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use suiro_layers::{
    FlowFilter, Namespace, PointStatus, Protocol, Recorded, Recorder, RecorderSpec, Recording,
};
use suiro_units::Duration;

use crate::{Outcome, Usage, interrupt};

const RECORD_EXAMPLES: &str = "Examples:
  suiro layers record --flow udp:10.0.0.1:5000-10.0.0.2:5004     the same on both hosts
  suiro layers record --flow 'udp:*-*:5004' --flow 'tcp:*:443-*' --duration \"30 s\"
  suiro layers record --pid 4711 --out call                      all packets of a process
  suiro layers record --flow 'udp:[fd00::1]:*-*' --netns blue --no-syscalls";

/// How often the recorder is looked at, while nothing is to be done.
const LOOK: StdDuration = StdDuration::from_millis(200);

/// Arguments of `layers`.
#[derive(Debug, Args)]
pub struct LayersArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LayersCommand,
}

/// The commands of `layers`.
#[derive(Debug, Subcommand)]
pub enum LayersCommand {
    /// Record each packet of chosen flows at each layer of this host, while the application runs
    /// untouched, until Ctrl-C. Needs root, or the capabilities that it names.
    #[command(after_help = RECORD_EXAMPLES)]
    Record(RecordArgs),
    /// Join the recordings of two hosts, and report which layer of which host caused loss or delay.
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Join the captures of two hosts, pcapng or pcap, and print the losses and delays of the path between them.
    #[command(after_help = analyze::EXAMPLES)]
    Analyze(analyze::AnalyzeArgs),
    /// Let watchers elsewhere record chosen flows of this host, over mutual TLS. Needs the rights of
    /// `record` until it listens.
    #[command(after_help = agent::EXAMPLES)]
    Agent(agent::AgentArgs),
    /// Watch the agents of two hosts, live, and report in the end.
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// Make credentials for agents and watchers.
    #[command(after_help = keys::EXAMPLES)]
    Keys(keys::KeysArgs),
}

/// Arguments of `layers record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Flows between two ends, in both directions: PROTOCOL:ADDRESS:PORT-ADDRESS:PORT, with `*` for
    /// any; IPv6 in brackets. Up to 8.
    #[arg(long, value_name = "FLOW", required_unless_present = "pid")]
    pub flow: Vec<FlowFilter>,
    /// Only sockets of this process, and its threads; its network namespace.
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// The network namespace: a name of `ip netns`, or a path [default: this one].
    #[arg(long, value_name = "NAME|PATH")]
    pub netns: Option<String>,
    /// How long to record [default: until Ctrl-C].
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// The folder [default: layers-HOST].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The host's name in the records [default: the host's].
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Do not trace system calls, which costs every system call of the machine a little: when
    /// sending calls began is then not known.
    #[arg(long)]
    pub no_syscalls: bool,
}

/// What was typed after `suiro layers`.
pub fn run(command: LayersCommand) -> Result<Outcome> {
    match command {
        LayersCommand::Record(args) => record(args),
        LayersCommand::Report(args) => report::run(&args),
        LayersCommand::Analyze(args) => analyze::run(&args),
        LayersCommand::Agent(args) => agent::run(args),
        LayersCommand::Watch(args) => watch::run(&args),
        LayersCommand::Keys(args) => keys::run(&args),
    }
}

fn record(args: RecordArgs) -> Result<Outcome> {
    let host = args.host.unwrap_or_else(own_name);
    let dir = args.out.unwrap_or_else(|| format!("layers-{host}").into());
    // A link is there, too, wherever it leads.
    if dir.join("layers.json").symlink_metadata().is_ok() {
        let taken = format!(
            "{} already contains a recording\nhint: choose another \
        --out",
            dir.display()
        );
        return Err(Usage(taken).into());
    }
    let all = || [Protocol::Udp, Protocol::Tcp].map(FlowFilter::all).to_vec();
    let spec = RecorderSpec {
        host,
        flows: if args.flow.is_empty() { all() } else { args.flow },
        process: args.pid,
        namespace: args.netns.as_deref().map(Namespace::named).transpose()?,
        system_calls: !args.no_syscalls,
        dir: dir.clone(),
        name: None,
    };
    let made = Folders::make(&dir).with_context(|| format!("making {}", dir.display()))?;
    let recorder = Recorder::start(spec).inspect_err(|_| made.remove())?;
    for PointStatus { point, missing, .. } in recorder.points() {
        if let Some(reason) = missing {
            say!("{point}: not recorded: {reason}");
        }
    }
    wait(&recorder, args.duration)?;
    let recorded = recorder.stop()?;
    let mut out = crate::say::results();
    tell(&recorded, &mut out)?;
    writeln!(out, "{}", dir.display())?;
    Ok(Outcome::Done)
}

/// Folders that were not there before, the innermost first.
struct Folders(Vec<PathBuf>);

impl Folders {
    /// Makes one, and what it lies in.
    fn make(dir: &Path) -> std::io::Result<Self> {
        let is_new = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        let new = Self(dir.ancestors().take_while(is_new).map(Path::to_owned).collect());
        std::fs::create_dir_all(dir).inspect_err(|_| new.remove())?;
        Ok(new)
    }

    /// Takes them away again, but for those that something was put into.
    fn remove(&self) {
        for dir in &self.0 {
            // One that is not empty stays.
            let _ = std::fs::remove_dir(dir);
        }
    }
}

/// Until the time is over, Ctrl-C, or the recorder has ended by itself.
fn wait(recorder: &Recorder, duration: Option<Duration>) -> Result<()> {
    let (events, interrupted) = channel();
    interrupt::forward_to(events)?;
    match duration {
        Some(duration) => say!("recording for {duration}, or until Ctrl-C"),
        None => say!("recording until Ctrl-C"),
    }
    let mut rest = duration.map(StdDuration::from);
    while !recorder.has_ended() && rest != Some(StdDuration::ZERO) {
        let look = rest.map_or(LOOK, |rest| rest.min(LOOK));
        if !matches!(interrupted.recv_timeout(look), Err(RecvTimeoutError::Timeout)) {
            break;
        }
        rest = rest.map(|rest| rest - look);
    }
    Ok(())
}

fn tell(recorded: &Recorded, out: &mut impl Write) -> Result<()> {
    let Recording { flows, points, fragments, unjoined, unplaced, clock, .. } = &recorded.recording;
    writeln!(out, "{:16} {:>12} {:>8}", "point", "events", "lost")?;
    for PointStatus { point, missing, events, lost, .. } in points {
        match missing {
            None => writeln!(out, "{point:16} {events:>12} {lost:>8}")?,
            Some(_) => writeln!(out, "{point:16} {:>12} {:>8}", "-", "-")?,
        }
    }
    for flow in flows.iter().take(20) {
        writeln!(out, "{} {flow}", if flow.sent { "sent    " } else { "received" })?;
    }
    match flows.len() {
        0 => writeln!(out, "no packets of the chosen flows were seen")?,
        count @ 21.. => writeln!(out, "and {} flows more", count - 20)?,
        _ => {}
    }
    for (count, what) in [
        (fragments, "later fragments, which have no port"),
        (unjoined, "receiving calls whose datagram is not known"),
        (unplaced, "packets of flows beyond the bound"),
    ] {
        if *count > 0 {
            writeln!(out, "{count} {what}")?;
        }
    }
    match clock {
        Some(clock) => writeln!(out, "clock: {}, {} ns at most", clock.source, clock.error_ns)?,
        None => writeln!(out, "clock: neither chrony nor ptp4l disciplines it")?,
    }
    Ok(())
}

fn own_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_usual = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    Some(name)
        .filter(|name| !name.is_empty() && name.chars().all(is_usual))
        .unwrap_or("host".into())
}
