//! `suiro link`: any command behind an emulated link, on two hosts of its own.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::fs::MemfdFlags;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use suiro_hosts::{Network, Sandbox};
use suiro_lab::clock::Epoch;
use suiro_lab::instruments::wires;
use suiro_lab::process::{Event, Process, describe};
use suiro_lab::{guests, listening, trial};
use suiro_link::{LinkConfig, LinkSpec, Preset};
use suiro_outside::file;
use suiro_record::{LinkTotals, SelfCheck};
use suiro_scenario::{Date, Link, MTU, TEXT_BYTES_MAX, Topology};
use suiro_strict::source::Source;
use suiro_strict::{Place, Refusal, Span, document};
use suiro_units::{Duration, Seed, Time};

use crate::args::within;
use crate::outputs::{self, Existing};
use crate::work::Work;
use crate::{Outcome, Usage, interrupt, run};

/// How long the command waits for the server's program to open its first socket.
const SERVER_WITHIN: Duration = Duration::from_secs(5);
/// How often the server's sockets are looked at.
const SERVER_POLL: std::time::Duration = std::time::Duration::from_millis(10);
/// How long the server's program may take to stop after SIGTERM.
const SERVER_GRACE: std::time::Duration = std::time::Duration::from_secs(2);

/// How often the clock of a guest is looked at.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
/// The order for a guest, in the folder that it writes to.
const GUEST_ORDER: &str = "link.json";

/// Arguments of `link`.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// Rate towards `client`, such as "2 Mbit/s", of IP packets [default: that of --up, else no
    /// limit].
    #[arg(long, value_name = "RATE")]
    down: Option<String>,
    /// Rate towards `server` [default: that of --down, else no limit].
    #[arg(long, value_name = "RATE")]
    up: Option<String>,
    /// One-way delay of each direction, such as "20 ms" [default: none].
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Share of packets lost at random in each direction, such as 0.01 or "1 %" [default: none].
    #[arg(long, value_name = "RATIO")]
    loss: Option<String>,
    /// Queue of each direction: "100 kB", "50 ms" or "64p" (packets) [default: 100 ms; for codel
    /// and pie 1000p, for fq-codel 10240p, for dualpi2 250 ms].
    #[arg(long, value_name = "SIZE|TIME|NUMBERp")]
    queue: Option<String>,
    /// Queue discipline: droptail, codel, pie, fq-codel or dualpi2 [default: droptail].
    #[arg(long, value_name = "NAME")]
    aqm: Option<String>,
    /// Rate towards `client` from a trace: Mahimahi's format, or a .csv file with the header `time,rate` and lines such
    /// as `1.5 s,8 Mbit/s`.
    #[arg(long, value_name = "FILE", conflicts_with = "down")]
    trace_down: Option<PathBuf>,
    /// A predefined link, which the other options change.
    #[arg(long, value_name = "NAME", help = format!("A predefined link, which the other options change: {}", presets()))]
    preset: Option<String>,
    /// A link as a TOML file: the keys below [links.NAME] in a scenario.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["down", "up", "delay", "loss", "queue", "aqm", "trace_down", "preset"])]
    scenario_link: Option<PathBuf>,
    /// Largest IP packet in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = within(MTU), help = format!("Largest IP packet in bytes, {MTU}"))]
    mtu: u16,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = Seed(1))]
    seed: Seed,
    /// Run in virtual time, in a kernel of its own: exact and repeatable, however busy this machine is. COMMAND then has no
    /// standard input.
    #[arg(long = "virtual")]
    virtual_time: bool,
    /// Folder for the record of every packet, link.link.parquet.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Replace the record that an earlier one left in the folder of --record.
    #[arg(long, requires = "record")]
    replace: bool,
    /// Do not measure the link before the command starts.
    #[arg(long)]
    no_check: bool,
    /// Print the summary as JSON on standard output; the output of COMMAND goes to standard error
    /// instead.
    #[arg(long)]
    json: bool,
    /// Command for the shell of host `server`, started before COMMAND.
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Command to run on host `client`, which can reach host `server` by name. Its exit code is
    /// suiro's: 128 plus the signal's number if a signal ended it, 127 if there is no such command,
    /// 126 if it cannot be executed, 1 if it succeeded but the link did not behave as requested.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The names of the predefined links.
fn presets() -> String {
    Preset::ALL.map(Preset::name).join(", ")
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    config: LinkConfig,
    mtu: u16,
    seed: Seed,
    record: Option<PathBuf>,
    check: bool,
    json: bool,
    server: Option<String>,
    command: Vec<String>,
}

#[derive(Debug, Serialize)]
struct LinkSummary<'a> {
    exit_code: Option<i32>,
    duration_s: f64,
    valid: bool,
    invalid_because: Option<String>,
    links: &'a [LinkTotals],
    self_checks: &'a [SelfCheck],
}

/// `suiro link … -- COMMAND`.
pub fn run(args: &LinkArgs) -> Result<Outcome> {
    let order = Order {
        config: config(args)?,
        mtu: args.mtu,
        seed: args.seed,
        record: args.record.clone(),
        check: !args.no_check,
        json: args.json,
        server: args.server.clone(),
        command: args.command.clone(),
    };
    if let Some(dir) = &order.record {
        outputs::make_room(dir, "link", Existing::of(args.replace))?;
    }
    let (sender, events) = channel();
    interrupt::forward_to(sender.clone())?;
    if args.virtual_time {
        return in_guest(order, &sender, &events);
    }
    let handed = hand_over(&order)?;
    let number = handed.as_raw_fd().to_string();
    let mut worker = Sandbox::new(["link-inside".to_owned(), number]).spawn()?;
    drop(handed);
    let pidfd = worker.pidfd().try_clone_to_owned()?;
    let waiter = std::thread::spawn(move || {
        let status = worker.wait();
        // The receiver lives until this event.
        let _ = sender.send(Event::Line { process: 0, text: String::new() });
        status
    });
    while let Ok(Event::Interrupted) = events.recv() {
        // ESRCH: it has ended.
        let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::TERM);
    }
    let status =
        waiter.join().expect("the waiter does not panic").context("waiting for the link")?;
    Ok(code_of(status))
}

/// The inner half in virtual time, as the program of a guest.
fn in_guest(order: Order, sender: &Sender<Event>, events: &Receiver<Event>) -> Result<Outcome> {
    let work = Work::new("link")?;
    // The guest writes to one folder: the record's, where there is one.
    let dir = order.record.clone().unwrap_or_else(|| work.path().to_owned());
    let dir = dir.canonicalize().with_context(|| format!("opening {}", dir.display()))?;
    let order = Order { record: order.record.map(|_| guests::DIR.into()), ..order };
    let file = dir.join(GUEST_ORDER);
    let text = serde_json::to_vec(&order).context("an order is JSON")?;
    std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    let status = attend(&dir, order.seed, sender, events);
    guests::tidy(&dir);
    // It was read, or will never be.
    let _ = std::fs::remove_file(&file);
    Ok(code_of(status?))
}

/// Starts the guest whose order is in this folder, and waits for its end.
fn attend(
    dir: &Path,
    seed: Seed,
    sender: &Sender<Event>,
    events: &Receiver<Event>,
) -> Result<ExitStatus> {
    let arguments = vec!["link-inside".to_owned(), format!("{}/{GUEST_ORDER}", guests::DIR)];
    let guests = run::guests_from(Date::default(), None)?;
    let (guest, mut watch) = guests.start_attached(arguments, dir, seed, sender)?;
    let (mut stopped, mut asked) = (None, false);
    loop {
        match events.recv_timeout(LOOK_EVERY) {
            Ok(Event::Exited { status, .. }) => match stopped {
                Some(because) => bail!("the guest was ended: {because}"),
                None => return Ok(status),
            },
            // Its program has not begun, and would not notice.
            Ok(Event::Interrupted) if watch.time() == Time::ZERO => {
                stopped.get_or_insert_with(|| "interrupted before the command began".to_owned());
                guest.signal(Signal::KILL);
            }
            Ok(Event::Interrupted) if !asked => {
                asked = true;
                guest.signal(Signal::TERM);
            }
            // A second SIGTERM would end the guest at once, without its record. A terminal that is closed may interrupt twice.
            Ok(Event::Interrupted) if stopped.is_none() => say!(
                "suiro link: the command has not ended yet\n\
                 hint: the third Ctrl-C ends it at once, without its record"
            ),
            Err(_) if stopped.is_none() => {
                stopped = watch.look().inspect(|_| guest.signal(Signal::KILL));
            }
            Ok(Event::Interrupted | Event::Line { .. }) | Err(_) => {}
        }
    }
}

/// The order in memory, in a descriptor that the inner half inherits. A trace makes it larger than
/// an argument may be, and standard input is the command's.
fn hand_over(order: &Order) -> Result<OwnedFd> {
    let memory = rustix::fs::memfd_create("suiro-link", MemfdFlags::empty());
    let mut memory = File::from(memory.context("making room for the order")?);
    serde_json::to_writer(&mut memory, order).context("writing the order")?;
    memory.rewind().context("writing the order")?;
    Ok(memory.into())
}

/// The order in this file, or in the descriptor of this number that [`hand_over`] left, which is closed.
fn take_over(order: &Path) -> Result<Order> {
    let descriptor = order.to_str().and_then(|text| text.parse().ok());
    let input = match descriptor {
        // SAFETY: the outer half names a descriptor that it made for this, and nothing else here knows.
        Some(descriptor) => unsafe { File::from_raw_fd(descriptor) },
        None => file::open(order).with_context(|| format!("opening {}", order.display()))?,
    };
    serde_json::from_reader(io::BufReader::new(input)).context("not an order of this version")
}

/// A command's end as a shell reports it: its exit code, or 128 and the number of the signal.
fn code_of(status: ExitStatus) -> Outcome {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    match code {
        Some(0) => Outcome::Done,
        Some(code) => Outcome::Code(u8::try_from(code).unwrap_or(1)),
        None => Outcome::Failed,
    }
}

/// The link that the options describe, through the same words as a scenario.
fn config(args: &LinkArgs) -> Result<LinkConfig> {
    let Some(file) = &args.scenario_link else { return config_of_options(args) };
    let text = file::read_text(file, TEXT_BYTES_MAX).map_err(|error| Usage::file(file, error))?;
    let source = Source::new(file.display().to_string(), text);
    let refused = |refusals: Vec<Refusal<Span>>| Usage(source.error(refusals).to_string());
    let root = document::parse(source.text()).map_err(refused)?;
    let spec = document::read::<LinkSpec>(root, "the link", &[]);
    let spec = spec.map_err(|refusal| refused(vec![refusal]))?;
    let base = file.parent().unwrap_or(Path::new(""));
    let mut read = |trace: &Path| {
        let path = base.join(trace);
        file::read_text(&path, TEXT_BYTES_MAX).map_err(|e| format!("{}: {e}", path.display()))
    };
    Ok(spec.resolve(&mut read).map_err(|refusal| Usage::file(file, refusal))?)
}

/// The same without a file. A refusal names the option.
fn config_of_options(args: &LinkArgs) -> Result<LinkConfig> {
    let trace = args.trace_down.as_ref().map(|path| {
        let text = file::read_text(path, TEXT_BYTES_MAX);
        text.map_err(|error| Usage(format!("--trace-down: {}: {error}", path.display())))
    });
    let trace = trace.transpose()?.unwrap_or_default();
    let text = options_as_toml(args);
    let in_text = |refusal: Refusal<Span>| {
        let span = refusal.place.bytes.clone().unwrap_or_default();
        let line = text[..span.start.min(text.len())].matches('\n').count();
        let key = text.lines().nth(line).and_then(|line| line.split(' ').next());
        Usage(refusal.at(|_| Place::from(option_of(args, key.unwrap_or_default()))).to_string())
    };
    let root = document::parse(&text).map_err(|refusals| {
        refusals.into_iter().next().map_or_else(|| Usage(text.clone()), in_text)
    })?;
    let spec: LinkSpec = document::read(root, "the link", &[]).map_err(in_text)?;
    let config = spec.resolve(&mut |_| Ok(trace.clone()));
    let named = |refusal: Refusal| {
        Usage(refusal.at(|keys| Place::from(option_of(args, &keys.0.join(".")))).to_string())
    };
    Ok(config.map_err(named)?)
}

fn options_as_toml(args: &LinkArgs) -> String {
    let mut text = String::new();
    let mut put = |key: &str, value: &Option<String>| {
        if let Some(value) = value {
            writeln!(text, "{key} = {}", toml::Value::String(value.clone()))
                .expect("a string takes all");
        }
    };
    put("preset", &args.preset);
    put("delay", &args.delay);
    put("loss", &args.loss);
    put("queue.limit", &args.queue);
    put("queue.discipline", &args.aqm);
    match (&args.down, &args.up) {
        (Some(_), Some(_)) => {
            put("down.rate", &args.down);
            put("up.rate", &args.up);
        }
        // A trace sets the rate down, so that the other option is not for both.
        (_, up) if args.trace_down.is_some() => put("up.rate", up),
        (one, other) => put("rate", if one.is_some() { one } else { other }),
    }
    put("down.trace", &args.trace_down.as_ref().map(|path| path.display().to_string()));
    text
}

/// The option that gives this key.
fn option_of(args: &LinkArgs, key: &str) -> &'static str {
    match key {
        "preset" => "--preset",
        "delay" => "--delay",
        "loss" => "--loss",
        "queue.limit" => "--queue",
        "queue.discipline" => "--aqm",
        "down.rate" => "--down",
        "up.rate" => "--up",
        "rate" if args.down.is_some() => "--down",
        "rate" => "--up",
        "down.trace" => "--trace-down",
        _ => "the link's options",
    }
}

/// The inner half, as the init of its sandbox.
pub fn inside(order: &Path) -> Result<Outcome> {
    run::in_sandbox()?;
    let order = take_over(order)?;
    let (sender, events) = channel();
    interrupt::forward_inside(sender.clone())?;
    let link = Link {
        name: "link".to_owned(),
        from: "server".to_owned(),
        to: "client".to_owned(),
        config: Some(order.config.clone()),
        cards: false,
        capacity: None,
        mtu: order.mtu,
    };
    let topology = Topology {
        hosts: vec!["server".to_owned(), "client".to_owned()],
        links: vec![link],
        detours: vec![],
        switches: vec![],
        hubs: vec![],
        cells: vec![],
        multicast: None,
    };
    let network = trial::build(&topology)?;
    let self_checks = if order.check {
        wires::Wires::check(&network, &topology, order.seed)?
    } else {
        Vec::new()
    };
    let epoch = Epoch::now();
    let wires =
        wires::Wires::start(&network, &topology, order.seed, epoch, order.record.as_deref())?;
    let session = Session { network: &network, sender: &sender, events: &events };
    let ended = session.both(&order)?;
    let duration_s = epoch.elapsed().as_secs_f64();
    let stopped = wires.stop()?;
    let mut reasons = trial::failed_checks(&self_checks);
    reasons.extend(stopped.faults.into_iter().map(|fault| fault.because));
    let summary = LinkSummary {
        exit_code: match ended {
            Ended::Exited(status) => status.code(),
            Ended::NotStarted(_) | Ended::Interrupted => None,
        },
        duration_s,
        valid: reasons.is_empty(),
        invalid_because: (!reasons.is_empty()).then(|| reasons.join("; ")),
        links: &stopped.totals,
        self_checks: &self_checks,
    };
    tell(&summary, order.json)?;
    Ok(match ended {
        Ended::Exited(status) => match code_of(status) {
            Outcome::Done if !summary.valid => Outcome::Failed,
            outcome => outcome,
        },
        Ended::NotStarted(code) => Outcome::Code(code),
        Ended::Interrupted => Outcome::Failed,
    })
}

/// How the client's command ended.
enum Ended {
    Exited(ExitStatus),
    /// It could not be executed: the exit code that shells have for it.
    NotStarted(u8),
    Interrupted,
}

/// Numbers of the two processes.
const SERVER: usize = 0;
const CLIENT: usize = 1;

/// The two programs at the ends of the link.
struct Session<'a> {
    network: &'a Network,
    sender: &'a Sender<Event>,
    events: &'a Receiver<Event>,
}

impl Session<'_> {
    /// Runs both; how the client's program ended.
    fn both(&self, order: &Order) -> Result<Ended> {
        let server = match &order.server {
            Some(line) => Some(self.start_server(line)?),
            None => None,
        };
        let client = match self.start_client(order) {
            Ok(client) => client,
            Err(error) => {
                say!("error: {}: {error}", order.command[0]);
                if let Some(server) = server {
                    self.stop(&server);
                }
                let missing = error.kind() == io::ErrorKind::NotFound;
                return Ok(Ended::NotStarted(if missing { 127 } else { 126 }));
            }
        };
        let mut server_runs = server.is_some();
        let mut interrupted = false;
        let status = loop {
            match self.events.recv().context("a sender is held")? {
                Event::Exited { process: CLIENT, status } => break status,
                Event::Exited { .. } => server_runs = false,
                Event::Interrupted => {
                    interrupted = true;
                    client.signal(Signal::INT);
                }
                Event::Line { .. } => {}
            }
        };
        if let Some(server) = server.filter(|_| server_runs) {
            self.stop(&server);
        }
        Ok(if interrupted { Ended::Interrupted } else { Ended::Exited(status) })
    }

    /// Starts the client's command with our own standard streams.
    fn start_client(&self, order: &Order) -> io::Result<Process> {
        let mut command = Command::new(&order.command[0]);
        command.args(&order.command[1..]);
        if order.json {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        self.host("client").map_err(io::Error::other)?.command(&mut command);
        Process::start_attached(command, CLIENT, self.sender)
    }

    fn host(&self, name: &str) -> Result<&suiro_hosts::Host> {
        self.network.host(name).context("the link joins `server` and `client`")
    }

    /// Starts the server's program and waits until something listens in its host.
    fn start_server(&self, line: &str) -> Result<Process> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        // Standard output belongs to the client's program and to the summary.
        command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        self.host("server")?.command(&mut command);
        let process = Process::start_attached(command, SERVER, self.sender)
            .context("starting the shell of host server")?;
        let started = Epoch::now();
        while !listening::at_all(process.pid()) {
            match self.events.recv_timeout(SERVER_POLL) {
                Ok(Event::Exited { status, .. }) => {
                    bail!(
                        "the server's command ended before the client's began: {}",
                        describe(status)
                    )
                }
                Ok(Event::Interrupted) => bail!("interrupted"),
                Ok(Event::Line { .. }) | Err(_) => {}
            }
            if started.elapsed() > Time::ZERO + SERVER_WITHIN {
                say!(
                    "suiro: nothing listens on host server after {SERVER_WITHIN}; continuing\n\
                     hint: what its command printed stands above; it must listen on every address"
                );
                break;
            }
        }
        Ok(process)
    }

    /// Asks the server's program to stop, and after a while does not ask.
    fn stop(&self, server: &Process) {
        server.signal(Signal::TERM);
        while let Ok(event) = self.events.recv_timeout(SERVER_GRACE) {
            if matches!(event, Event::Exited { process: SERVER, .. }) {
                return;
            }
        }
        server.signal(Signal::KILL);
    }
}

/// The summary: JSON on standard output, or a line a direction on standard error.
fn tell(summary: &LinkSummary<'_>, json: bool) -> Result<()> {
    if json {
        let mut out = crate::say::results();
        serde_json::to_writer_pretty(&mut out, summary)?;
        writeln!(out)?;
        return Ok(());
    }
    for link in summary.links {
        let dropped = link.all_dropped();
        let lateness = link.lateness.p99_us.map_or("—".to_owned(), |us| format!("{us:.0} µs"));
        say!(
            "suiro link {}: {} packets in, {} delivered, {dropped} dropped on purpose, {} \
             still inside, {} unaccounted; lateness p99 {lateness}",
            link.direction,
            link.offered,
            link.delivered,
            link.queued,
            link.unaccounted
        );
    }
    if let Some(because) = &summary.invalid_because {
        say!("suiro link: NOT VALID: {because}");
    }
    Ok(())
}
