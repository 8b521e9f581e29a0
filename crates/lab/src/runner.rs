//! Runs the trials of a plan, several side by side, each in its own process.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use suiro_guest::Watch;
use suiro_hosts::Sandbox;
use suiro_record::{Attempt, Folder, PlannedTrial, Trial};
use suiro_scenario::EndpointSpec;
pub use suiro_scenario::Order;
use suiro_units::{Duration, Time};

use crate::clock::{self, Epoch};
use crate::guests::{self, Guests};
use crate::machine;
use crate::process::{Event, Process, describe};

/// How much longer a trial's process may live than its trial: to build hosts and write records.
const OVERHEAD: Duration = Duration::from_secs(60);
/// How long the self-check of one link may take: far longer than it needs.
const PER_LINK: Duration = Duration::from_secs(60);
/// How long one of our own endpoints may take to stop, killing included.
const PER_ENDPOINT: Duration = Duration::from_secs(10);

/// How often the clocks of guests are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Why a process was killed that did not end by itself.
const HUNG: &str = "its process did not end in time";

/// The log of a trial's own process. No endpoint's log has this name, because endpoint names begin
/// with a letter.
const OWN_LOG: &str = "_trial.log";

/// What a trial's process reports, one JSON line each on standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// Hosts and links are being built.
    Building,
    /// The links are being checked.
    Checking,
    /// The endpoints are starting.
    Starting,
    /// The trial is measuring.
    Running {
        /// How long the measurement takes.
        duration_s: f64,
    },
    /// The endpoints are stopping and the records are being closed.
    Finishing,
}

/// What happens while a plan runs, for a progress bar.
pub trait Observer {
    /// A trial enters a phase.
    fn phase(&mut self, trial: &PlannedTrial, phase: &Phase);
    /// A trial is over.
    fn finished(&mut self, trial: &PlannedTrial, outcome: &Trial);
    /// A trial is over and will be run again, because packets left its links late and nothing else was wrong.
    fn repeats(&mut self, trial: &PlannedTrial, outcome: &Trial);
    /// The clock of a trial in virtual time, every second or so.
    fn clock(&mut self, trial: &PlannedTrial, time: Time);
}

/// Where the processes of trials run.
pub enum Place<'a> {
    /// On this machine, in its time, each in a sandbox. The function makes it from the path of the trial's `order.json`.
    Machine(&'a dyn Fn(&Path) -> Sandbox),
    /// Each in a guest, in virtual time.
    Guests(&'a Guests),
}

/// How a plan is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Trials at the same time; 0 is as 1.
    pub jobs: usize,
    /// How often a trial is run again that is invalid only because packets left its links late.
    pub retries: usize,
}

/// The time after which the process of an order is considered hung and is killed.
fn limit(order: &Order) -> Duration {
    let stop = |spec: &EndpointSpec| match spec.command() {
        Some(command) => command.grace + PER_ENDPOINT,
        None => PER_ENDPOINT,
    };
    let links = order.setup.topology.links.iter().map(|_| PER_LINK);
    let endpoints = order.setup.endpoints.iter().map(|endpoint| stop(&endpoint.spec));
    links.chain(endpoints).fold(order.setup.duration + OVERHEAD, |sum, part| sum + part)
}

/// A trial that is to be run, and what came of it before.
struct Waiting {
    order: Order,
    attempts: Vec<Attempt>,
}

struct Running {
    trial: Waiting,
    process: Process,
    bound: Bound,
    /// Why its process was killed.
    killed: Option<String>,
}

/// What bounds a trial's process.
enum Bound {
    /// When it is killed, on this process's clock.
    Deadline(Time),
    /// A guest, which has its own clock.
    Guest(Watch),
}

impl Running {
    /// Kills its process, unless that was done.
    fn kill(&mut self, because: String) {
        if self.killed.is_none() {
            self.process.signal(Signal::KILL);
            self.killed = Some(because);
        }
    }
}

/// Runs `orders` and returns the outcome of each, in the order in which they ended. A trial that is run again waits until
/// the others have been started: the machine may be less busy then.
///
/// An [`Event::Interrupted`] on the channel ends the running trials early, keeps what they
/// measured, and starts no more trials.
pub fn run(
    orders: Vec<Order>,
    folder: &Folder,
    manner: Manner,
    place: &Place<'_>,
    (sender, events): (&Sender<Event>, &Receiver<Event>),
    observer: &mut dyn Observer,
) -> Result<Vec<Trial>> {
    let fresh = |order| Waiting { order, attempts: Vec::new() };
    let mut waiting: VecDeque<Waiting> = orders.into_iter().map(fresh).collect();
    let mut running: BTreeMap<usize, Running> = BTreeMap::new();
    let mut outcomes = Vec::new();
    let mut next = 0;
    let mut retries = manner.retries;
    let epoch = Epoch::now();
    loop {
        while running.len() < manner.jobs.max(1)
            && let Some(trial) = waiting.pop_front()
        {
            let deadline = epoch.elapsed() + limit(&trial.order);
            match start(&trial.order, next, place, deadline, sender) {
                Ok((process, bound)) => {
                    let started = Running { trial, process, bound, killed: None };
                    running.insert(next, started);
                }
                Err(error) => {
                    let because = format!("it could not be started: {error:#}");
                    let planned = &trial.order.trial;
                    let outcome = write_unmeasured(folder, planned, &trial.attempts, because);
                    observer.finished(planned, &outcome);
                    outcomes.push(outcome);
                }
            }
            next += 1;
        }
        if running.is_empty() {
            return Ok(outcomes);
        }
        let Some(event) = next_event(events, &mut running, epoch, observer) else { continue };
        match event {
            Event::Line { process, text } => {
                if let Some(trial) = running.get(&process)
                    && let Ok(phase) = serde_json::from_str(&text)
                {
                    observer.phase(&trial.trial.order.trial, &phase);
                }
            }
            Event::Exited { process, status } => {
                let Some(ended) = running.remove(&process) else { continue };
                let outcome = outcome(folder, &ended, status);
                let mut trial = ended.trial;
                if outcome.only_late && trial.attempts.len() < retries {
                    observer.repeats(&trial.order.trial, &outcome);
                    trial.attempts.push(attempt(outcome));
                    waiting.push_back(trial);
                } else {
                    observer.finished(&trial.order.trial, &outcome);
                    outcomes.push(outcome);
                }
            }
            Event::Interrupted => {
                // What was to be run again keeps the outcome that it has.
                retries = 0;
                waiting.clear();
                running.values().for_each(|trial| trial.process.signal(Signal::TERM));
            }
        }
    }
}

/// The next event; `None` if none came in a while, or before the time of a trial ran out. A trial whose time has run out is
/// killed.
fn next_event(
    events: &Receiver<Event>,
    running: &mut BTreeMap<usize, Running>,
    epoch: Epoch,
    observer: &mut dyn Observer,
) -> Option<Event> {
    let now = epoch.elapsed();
    // After a kill only the exit is awaited, and the kernel delivers that soon.
    let mut within = OVERHEAD;
    for trial in running.values_mut() {
        match &mut trial.bound {
            Bound::Deadline(deadline) if *deadline <= now => trial.kill(HUNG.to_owned()),
            Bound::Deadline(deadline) => within = within.min(deadline.saturating_since(now)),
            Bound::Guest(watch) => {
                within = within.min(LOOK_EVERY);
                observer.clock(&trial.trial.order.trial, watch.time());
                if let Some(because) = watch.look() {
                    trial.kill(because);
                }
            }
        }
    }
    match events.recv_timeout(within.into()) {
        Ok(event) => Some(event),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => {
            unreachable!("the caller of `run` holds a sender")
        }
    }
}

/// The channel that [`run`] listens on; its sender also accepts [`Event::Interrupted`].
pub fn events() -> (Sender<Event>, Receiver<Event>) {
    channel()
}

fn start(
    order: &Order,
    number: usize,
    place: &Place<'_>,
    deadline: Time,
    events: &Sender<Event>,
) -> Result<(Process, Bound)> {
    if order.dir.exists() {
        std::fs::remove_dir_all(&order.dir).context("removing an earlier attempt")?;
    }
    let logs = order.dir.join("logs");
    std::fs::create_dir_all(&logs).with_context(|| format!("making {}", logs.display()))?;
    let file = order.dir.join("order.json");
    let log = logs.join(OWN_LOG);
    let write = |order: &Order| {
        let text = serde_json::to_string_pretty(order).context("an order is JSON")?;
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
    };
    match place {
        Place::Machine(sandbox) => {
            write(order)?;
            let process = Process::start_sandboxed(sandbox(&file), number, &log, events)?;
            Ok((process, Bound::Deadline(deadline)))
        }
        Place::Guests(guests) => {
            write(&guests.order(order))?;
            let limit = Time::ZERO + limit(order);
            let (process, watch) = guests.start(order, number, (&log, limit), events)?;
            Ok((process, Bound::Guest(watch)))
        }
    }
}

/// What is kept of a trial that is run again.
fn attempt(outcome: Trial) -> Attempt {
    Attempt {
        started: outcome.started,
        duration_s: outcome.duration_s,
        invalid_because: outcome.invalid_because.unwrap_or_default(),
        links: outcome.links,
    }
}

/// The outcome that the trial's process wrote, with the attempts before; if it died before that, an outcome with the
/// reason.
fn outcome(folder: &Folder, ended: &Running, status: ExitStatus) -> Trial {
    let planned = &ended.trial.order.trial;
    let guest = matches!(ended.bound, Bound::Guest(_));
    if guest {
        guests::tidy(&ended.trial.order.dir);
    }
    let because = match folder.outcome(planned) {
        // A guest that did not end well may have written half of what it measured.
        Ok(Some(_)) if guest && !status.success() => death(ended, status),
        Ok(Some(trial)) if ended.trial.attempts.is_empty() => return trial,
        Ok(Some(trial)) => {
            let trial = Trial { attempts: ended.trial.attempts.clone(), ..trial };
            match suiro_record::folder::write_outcome(&folder.trial(planned), &trial) {
                Ok(()) => return trial,
                Err(error) => format!("writing its earlier attempts: {error}"),
            }
        }
        Ok(None) => death(ended, status),
        Err(error) => format!("its record cannot be read: {error}"),
    };
    write_unmeasured(folder, planned, &ended.trial.attempts, because)
}

/// Why a trial's process wrote no outcome.
fn death(ended: &Running, status: ExitStatus) -> String {
    if let Some(because) = &ended.killed {
        return because.clone();
    }
    let words = ended.process.last_words().unwrap_or_else(|| "it printed nothing".to_owned());
    format!("its process ended with {}: {words}", describe(status))
}

/// Records that a trial measured nothing. If even that cannot be written, only this trial fails, not
/// the others: the report will find it without a record.
fn write_unmeasured(
    folder: &Folder,
    planned: &PlannedTrial,
    attempts: &[Attempt],
    because: String,
) -> Trial {
    let trial = Trial { attempts: attempts.to_vec(), ..unmeasured(planned, because) };
    match suiro_record::folder::write_outcome(&folder.trial(planned), &trial) {
        Ok(()) => trial,
        Err(error) => {
            let because = trial.invalid_because.as_deref().unwrap_or_default();
            unmeasured(planned, format!("{because}; writing its record: {error}"))
        }
    }
}

/// Records that a trial was skipped because something was missing, as `because` says.
///
/// # Errors
/// If its folder cannot be written.
pub fn skip(folder: &Folder, planned: &PlannedTrial, because: String) -> Result<Trial> {
    let dir = folder.trial(planned);
    std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let trial = Trial { skipped: true, ..unmeasured(planned, because) };
    suiro_record::folder::write_outcome(&dir, &trial)?;
    Ok(trial)
}

/// The outcome of a trial that did not write its own.
fn unmeasured(planned: &PlannedTrial, because: String) -> Trial {
    Trial {
        cell: planned.cell.clone(),
        repetition: planned.repetition,
        seed: planned.seed,
        valid: false,
        invalid_because: Some(because),
        only_late: false,
        attempts: Vec::new(),
        skipped: false,
        machine: Some(machine::describe()),
        virtual_time: None,
        started: clock::rfc3339(clock::realtime_ns()),
        duration_s: 0.0,
        epoch_monotonic_ns: 0,
        self_checks: Vec::new(),
        links: Vec::new(),
        standstills: None,
        link_rates: Vec::new(),
        cables: Vec::new(),
        tcp: Vec::new(),
        captures: Vec::new(),
        endpoints: Vec::new(),
        versions: BTreeMap::new(),
    }
}
