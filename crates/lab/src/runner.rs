//! Runs the trials of a plan, several side by side, each in its own process.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use suiro_guest::Watch;
use suiro_hosts::{Confinement, Sandbox};
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
/// Why a trial that was interrupted is not valid.
pub(crate) const INTERRUPTED: &str = "it was interrupted";

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
    /// Whether it has reported a phase: from then on it handles a request to stop.
    is_up: bool,
    /// Whether it was asked to stop.
    asked: bool,
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
    const fn new(trial: Waiting, process: Process, bound: Bound) -> Self {
        Self { trial, process, bound, is_up: false, asked: false, killed: None }
    }

    /// Asks the trial to end and to keep what it measured. One that is not up has measured nothing, and would not notice.
    fn interrupt(&mut self) {
        if !self.is_up {
            return self.kill(INTERRUPTED.to_owned());
        }
        // The second SIGTERM ends a guest at once, without what it measured.
        if matches!(self.bound, Bound::Deadline(_)) || !self.asked {
            self.process.signal(Signal::TERM);
        }
        self.asked = true;
    }

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
                    running.insert(next, Running::new(trial, process, bound));
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
                if let Some(trial) = running.get_mut(&process)
                    && let Ok(phase) = serde_json::from_str(&text)
                {
                    trial.is_up = true;
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
                running.values_mut().for_each(Running::interrupt);
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

/// Whether a trial was interrupted. What it measured ends when somebody asked it to.
pub fn was_interrupted(trial: &Trial) -> bool {
    let reasons = trial.invalid_because.as_deref().unwrap_or_default();
    reasons.split("; ").any(|reason| reason == INTERRUPTED)
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
    remove_left(&ended.trial.order.dir);
    let refusal = refusal(ended);
    let because = match folder.outcome(planned) {
        // A guest that did not end well may have written half of what it measured.
        Ok(Some(_)) if guest && !status.success() => death(ended, status),
        Ok(Some(_)) if refusal.is_some() => refusal.unwrap_or_default(),
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

/// Removes what processes of ours that were killed left in a trial's folder: profiles of browsers, and the empty folders where
/// memory was mounted. Other hidden folders are those of commands, and stay.
fn remove_left(dir: &Path) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        // What stays is in nobody's way.
        let _ = match entry.file_name() {
            name if is_profile(&name) => std::fs::remove_dir_all(entry.path()),
            name if Confinement::is_memory(&name) => std::fs::remove_dir(entry.path()),
            _ => Ok(()),
        };
    }
}

/// Whether it is the profile of an endpoint's browser: `.NAME.profile`.
fn is_profile(folder: &OsStr) -> bool {
    let name = folder.as_encoded_bytes().strip_prefix(b".");
    name.and_then(|name| name.strip_suffix(b".profile")).is_some_and(|name| !name.is_empty())
}

/// That this machine refused the guest what it needed, if its kernel said so. One that was interrupted keeps what it measured.
fn refusal(ended: &Running) -> Option<String> {
    if ended.asked || !matches!(ended.bound, Bound::Guest(_)) {
        return None;
    }
    let words = ended.process.refusal()?;
    Some(format!(
        "this machine refused the guest memory or killed one of its processes, because its memory is full or vm.max_map_count \
         is too small: {words}"
    ))
}

/// Why a trial's process wrote no outcome.
fn death(ended: &Running, status: ExitStatus) -> String {
    if let Some(because) = &ended.killed {
        return because.clone();
    }
    if let Some(because) = refusal(ended) {
        return because;
    }
    if matches!(ended.bound, Bound::Guest(_)) && status.signal() == Some(Signal::KILL.as_raw()) {
        return "its guest was killed (signal 9), by the machine if its memory was full".to_owned();
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
        warm_up_s: 0.0,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;
    use std::process::Command;

    use suiro_guest::Clock;
    use suiro_scenario::{Overrides, Scenario};
    use tempfile::TempDir;

    use super::*;

    /// Prints a line when it is asked to stop, and goes on until SIGWINCH, which shells handle after a SIGTERM that came
    /// before it.
    const STUBBORN: &str = "trap 'echo asked' TERM; trap 'echo end; exit 3' WINCH; echo up; \
                            while :; do sleep 0.05; done";

    fn waiting() -> Waiting {
        let plan = Scenario::load("ping").unwrap().plan(&Overrides::default()).unwrap();
        let trial = plan.trials[0].planned.clone();
        let setup = (*plan.trials[0].setup).clone();
        let (dir, packages) = ("/nowhere".into(), BTreeMap::new());
        let order = Order { trial, machine: None, virtual_time: None, setup, dir, packages };
        Waiting { order, attempts: Vec::new() }
    }

    /// [`STUBBORN`] with this bound, which has printed its first line; its events; the folder of its logs.
    fn stubborn(bound: impl FnOnce(&Process) -> Bound) -> (Running, Receiver<Event>, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let (sender, events) = channel();
        let mut command = Command::new("sh");
        command.args(["-c", STUBBORN]);
        let process = Process::start(command, 0, &dir.path().join("log"), &sender).unwrap();
        let bound = bound(&process);
        let running = Running::new(waiting(), process, bound);
        assert_eq!(line(&events), "up");
        (running, events, dir)
    }

    fn line(events: &Receiver<Event>) -> String {
        match events.recv().unwrap() {
            Event::Line { text, .. } => text,
            other => panic!("no line, but {other:?}"),
        }
    }

    fn exit(events: &Receiver<Event>) -> ExitStatus {
        match events.recv().unwrap() {
            Event::Exited { status, .. } => status,
            other => panic!("it has not ended, but {other:?}"),
        }
    }

    fn guest(process: &Process) -> Bound {
        Bound::Guest(Watch::new(Clock::new().unwrap(), None, process.pid(), None))
    }

    #[test]
    fn a_guest_is_asked_to_stop_once_and_a_process_of_the_machine_as_often_as_the_user_asks() {
        let machine = |_: &Process| Bound::Deadline(Time::from_secs(1000));
        for (is_guest, last) in [(true, "end"), (false, "asked")] {
            let (mut trial, events, _logs) =
                if is_guest { stubborn(guest) } else { stubborn(machine) };
            trial.is_up = true;
            trial.interrupt();
            assert_eq!(line(&events), "asked");
            trial.interrupt();
            trial.process.signal(Signal::WINCH);
            assert_eq!(line(&events), last, "guest: {is_guest}");
            assert_eq!(trial.killed, None);
            trial.kill("the test is over".to_owned());
        }
    }

    #[test]
    fn a_trial_that_is_not_up_is_ended_at_once() {
        let (mut trial, events, _logs) = stubborn(guest);
        trial.interrupt();
        assert_eq!(describe(exit(&events)), "signal 9");
        assert_eq!(death(&trial, ExitStatus::default()), INTERRUPTED);
    }

    /// The outcome of a guest whose program printed these errors and then wrote that its trial is valid.
    fn after(errors: &str) -> Trial {
        let dir = tempfile::tempdir().unwrap();
        let (sender, events) = channel();
        let mut command = Command::new("sh");
        command.args(["-c", "printf %s \"$0\" >&2", errors]);
        let process = Process::start(command, 0, &dir.path().join("log"), &sender).unwrap();
        let bound = guest(&process);
        let running = Running::new(waiting(), process, bound);
        let status = exit(&events);
        let folder = Folder::new(dir.path());
        let planned = &running.trial.order.trial;
        let wrote =
            Trial { valid: true, invalid_because: None, ..unmeasured(planned, String::new()) };
        std::fs::create_dir_all(folder.trial(planned)).unwrap();
        suiro_record::folder::write_outcome(&folder.trial(planned), &wrote).unwrap();
        outcome(&folder, &running, status)
    }

    #[test]
    fn a_guest_that_this_machine_refused_memory_has_measured_nothing() {
        assert!(after("").valid);
        assert!(after("a warning\n").valid);
        let later = "a later line\n".repeat(400);
        let refused = after(&format!("userspace - Error flushing stub syscalls\n{later}"));
        assert!(!refused.valid);
        let because = refused.invalid_because.unwrap();
        let end = "vm.max_map_count is too small: userspace - Error flushing stub syscalls";
        assert!(because.ends_with(end), "{because}");
    }

    #[test]
    fn a_guest_that_was_killed_is_told_from_one_that_ended() {
        let (trial, events, _logs) = stubborn(guest);
        trial.process.signal(Signal::KILL);
        let because = death(&trial, exit(&events));
        assert!(because.contains("its memory was full"), "{because}");
    }

    #[test]
    fn what_killed_programs_left_is_removed_and_results_stay() {
        let dir = tempfile::tempdir().unwrap();
        for path in [".it.profile/Default/Cache", ".var-tmp", ".run/x", ".cache/x", "logs"] {
            std::fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        for path in [".it.profile/Default/x", ".file", "link.a.parquet"] {
            std::fs::write(dir.path().join(path), "x").unwrap();
        }
        remove_left(dir.path());
        remove_left(Path::new("/nowhere"));
        let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let names: BTreeSet<_> = names.collect();
        let stay = [".cache", ".file", ".run", "link.a.parquet", "logs"];
        assert_eq!(names, stay.map(OsString::from).into(), "of commands, and records");
    }

    #[test]
    fn an_interrupted_trial_is_known_by_its_reason() {
        let trial = |because: &str| unmeasured(&waiting().order.trial, because.to_owned());
        assert!(was_interrupted(&trial("it was interrupted; endpoint a: ended early")));
        assert!(was_interrupted(&trial("it was interrupted")));
        assert!(!was_interrupted(&trial("endpoint a: it was interrupted by b")));
    }
}
