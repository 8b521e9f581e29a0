//! The endpoints of a trial, from start to end: when each starts, whether it is ready, and what its
//! exit means. What an endpoint does meanwhile is not decided here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde::Deserialize;
use suiro_hosts::{Confinement, Network};
use suiro_record::EndpointOutcome;
use suiro_record::flows::{End, Flow, FlowLog};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_scenario::{Endpoint, Exit, Job, Pause, Peer, Ready, Setup, StopSignal};
use suiro_units::{Duration, Seed, Time};

use crate::clock::Epoch;
use crate::listening;
use crate::process::{Event, Process, describe};
use crate::scheduler::{EVERY, EVERY_VIRTUAL, Scheduled, Watch};

/// Longest time from an endpoint's start until it must be ready.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How long our own endpoints have to close their records after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// In virtual time starting a program takes none, and nothing but the seed varies repetitions: each endpoint waits for a part
/// of this before it starts. Live, a start takes about as long, and varies.
const STARTS_WITHIN: Duration = Duration::from_millis(20);
/// How often `/proc` is read to see whether a port is listening.
const PORT_POLL: Duration = Duration::from_millis(20);

/// What the endpoints of a trial have in common.
pub struct Surroundings<'a> {
    /// What the trial runs.
    pub setup: &'a Setup,
    /// The hosts.
    pub network: &'a Network,
    /// The trial's zero.
    pub epoch: Epoch,
    /// The trial's folder.
    pub dir: &'a Path,
    /// What limits its commands; `None` if all of them are privileged.
    pub confinement: Option<Confinement>,
    /// The prepared media.
    pub packages: &'a BTreeMap<String, PathBuf>,
    /// The trial's seed.
    pub seed: Seed,
    /// Whether this is a guest.
    pub virtual_time: bool,
}

/// The endpoints and the state of each.
pub struct Supervisor<'a> {
    surroundings: Surroundings<'a>,
    members: Vec<Member<'a>>,
    versions: BTreeMap<String, String>,
    ending: Option<Ending>,
    watch: Watch,
    /// When the last endpoint that started was ready: the next one may start.
    free_since: Time,
}

struct Member<'a> {
    endpoint: &'a Endpoint,
    /// How long after it may start it does.
    hesitates: Duration,
    state: State,
    /// When it was asked to stop at its end, if that was before the trial's.
    left: Option<Time>,
    failure: Option<String>,
}

enum State {
    Waiting,
    Starting {
        process: Process,
        since: Time,
    },
    Ready {
        process: Process,
    },
    /// Asked to stop before the trial ends, and killed if it has not by that time.
    Leaving {
        process: Process,
        until: Time,
    },
    Stopping,
    Exited {
        status: ExitStatus,
    },
}

/// Why the endpoints stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// An endpoint reported that the trial is over, or all have exited.
    Over,
    /// An endpoint failed.
    Failed(String),
    /// The trial was interrupted.
    Interrupted,
}

/// The outcome of the endpoints.
pub struct Supervised {
    /// One per endpoint, in the scenario's order.
    pub outcomes: Vec<EndpointOutcome>,
    /// Versions that the endpoints reported.
    pub versions: BTreeMap<String, String>,
    /// Why it ended early, if it did.
    pub ending: Option<Ending>,
    /// When the endpoints were asked to stop: the end of what was measured.
    pub ended: Time,
    /// What the scheduler says about programs of others, until then.
    pub scheduled: Scheduled,
}

#[derive(Deserialize)]
struct ReadyLine {
    ready: bool,
    #[serde(default)]
    versions: BTreeMap<String, String>,
}

impl<'a> Supervisor<'a> {
    /// Endpoints that have not started.
    pub fn new(surroundings: Surroundings<'a>) -> Self {
        let starts_within = if surroundings.virtual_time { STARTS_WITHIN } else { Duration::ZERO };
        let mut random = surroundings.seed.derive("starts").random();
        let mut member = |endpoint| Member {
            endpoint,
            hesitates: starts_within.mul_f64(random.uniform()),
            state: State::Waiting,
            left: None,
            failure: None,
        };
        let members = surroundings.setup.endpoints.iter().map(&mut member).collect();
        let every = if surroundings.virtual_time { EVERY_VIRTUAL } else { EVERY };
        let (watch, free_since) = (Watch::new(every), Time::ZERO);
        Self { surroundings, members, versions: BTreeMap::new(), ending: None, watch, free_since }
    }

    /// Starts, watches and stops the endpoints; returns when all have ended.
    pub fn run(
        mut self,
        (sender, events): (&Sender<Event>, &Receiver<Event>),
        on_running: &mut dyn FnMut(),
    ) -> Result<Supervised> {
        let end = Time::ZERO + self.surroundings.setup.duration;
        let mut told = false;
        while self.ending.is_none() {
            let now = self.surroundings.epoch.elapsed();
            if now >= end {
                break;
            }
            self.start_due(now, sender)?;
            self.end_due(now);
            self.check_starting(now);
            self.watch.look(now);
            if !told && self.members.iter().all(|a| !matches!(a.state, State::Starting { .. })) {
                told = true;
                on_running();
            }
            self.receive(events, self.next_look(now, end));
        }
        let ended = self.surroundings.epoch.elapsed().min(end);
        let watch = std::mem::replace(&mut self.watch, Watch::new(EVERY));
        let scheduled = watch.finish(ended);
        if self.ending.is_none() {
            self.fail_unready();
        }
        self.stop(events);
        Ok(self.outcome(ended, scheduled))
    }

    /// Starts the next endpoint if it is due and the one before it is ready.
    fn start_due(&mut self, now: Time, events: &Sender<Event>) -> Result<()> {
        while let Some(number) = self.members.iter().position(|a| matches!(a.state, State::Waiting))
        {
            let busy = self.members.iter().any(|a| matches!(a.state, State::Starting { .. }));
            if busy || now < self.due(number) {
                break;
            }
            let endpoint = self.members[number].endpoint;
            let started = self.surroundings.command(endpoint).and_then(|command| {
                Process::start(command, number, &self.surroundings.log(endpoint), events)
                    .with_context(|| format!("starting {}", program(endpoint)))
            });
            match started {
                Ok(process) => {
                    let command = endpoint.spec.command();
                    self.watch.add(number, &endpoint.name, process.pid(), command.is_some());
                    self.members[number].state = State::Starting { process, since: now };
                    if command.is_some_and(|command| command.ready == Ready::AtOnce) {
                        self.ready(number, now);
                    }
                }
                Err(error) => {
                    self.fail(number, format!("{error:#}"));
                    break;
                }
            }
        }
        Ok(())
    }

    /// When an endpoint that waits starts, if none before it is still starting.
    fn due(&self, number: usize) -> Time {
        let member = &self.members[number];
        self.free_since.max(Time::ZERO + member.endpoint.start) + member.hesitates
    }

    /// Asks the endpoints to stop whose end has come, and kills those that were asked and did not.
    fn end_due(&mut self, now: Time) {
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            let due = member.endpoint.end.is_some_and(|end| Time::ZERO + end <= now);
            let before = std::mem::replace(&mut member.state, State::Stopping);
            let mut overdue = false;
            member.state = match before {
                State::Ready { process } if due => {
                    let (signal, grace) = farewell(member.endpoint);
                    process.signal(signal);
                    member.left = Some(now);
                    State::Leaving { process, until: now + grace }
                }
                State::Leaving { process, until } if until <= now => {
                    process.signal(Signal::KILL);
                    overdue = member.failure.is_none();
                    State::Leaving { process, until: now + GRACE }
                }
                other => other,
            };
            if overdue {
                self.fail(number, "did not stop at its end".to_owned());
            }
        }
    }

    /// When an endpoint that runs is to be asked to stop, or killed.
    fn next_end(&self) -> Option<Time> {
        let of = |member: &Member<'_>| match &member.state {
            State::Ready { .. } => member.endpoint.end.map(|end| Time::ZERO + end),
            State::Leaving { until, .. } => Some(*until),
            _ => None,
        };
        self.members.iter().filter_map(of).min()
    }

    /// Checks the endpoints that are starting: does the port listen, has the time run out?
    fn check_starting(&mut self, now: Time) {
        for number in 0..self.members.len() {
            let member = &self.members[number];
            let State::Starting { process, since } = &member.state else { continue };
            let port = match member.endpoint.spec.command().map(|command| &command.ready) {
                Some(Ready::Port(port)) => Some(*port),
                Some(Ready::AtOnce | Ready::Line(_)) | None => None,
            };
            if port.is_some_and(|port| listening::at_port(process.pid(), port)) {
                self.ready(number, now);
            } else if now > *since + READY_WITHIN {
                let because = match process.last_words() {
                    Some(words) => format!("not ready within {READY_WITHIN}: {words}"),
                    None => format!("not ready within {READY_WITHIN}"),
                };
                self.fail(number, because);
            }
        }
    }

    /// At the end of the trial: an endpoint that is not ready yet, or could not start because an
    /// earlier one was not ready, has measured nothing.
    fn fail_unready(&mut self) {
        let waits = self.members.iter().any(|a| matches!(a.state, State::Starting { .. }));
        for number in 0..self.members.len() {
            let because = match &self.members[number].state {
                State::Starting { process, since } => {
                    let after = self.surroundings.epoch.elapsed().saturating_since(*since);
                    let words = process.last_words().map(|w| format!(": {w}")).unwrap_or_default();
                    let seconds = after.as_secs_f64();
                    format!("not ready when the trial ended, {seconds:.1} s after its start{words}")
                }
                State::Waiting if waits => {
                    "never started: an earlier endpoint was not ready in time".to_owned()
                }
                State::Waiting => "never started: the trial ended first".to_owned(),
                State::Ready { .. }
                | State::Leaving { .. }
                | State::Stopping
                | State::Exited { .. } => continue,
            };
            self.fail(number, because);
        }
    }

    /// When to act next if no event arrives.
    fn next_look(&self, now: Time, end: Time) -> Duration {
        let starting = self.members.iter().any(|a| matches!(a.state, State::Starting { .. }));
        let next = self.members.iter().position(|a| matches!(a.state, State::Waiting));
        let next_start = next.map(|number| self.due(number)).filter(|_| !starting);
        let look = if starting { Some(now + PORT_POLL) } else { next_start };
        let leaves = self.next_end().unwrap_or(end);
        look.unwrap_or(end).min(leaves).min(end).min(self.watch.due()).saturating_since(now)
    }

    /// Waits for one event, at most `within`, and handles it.
    fn receive(&mut self, events: &Receiver<Event>, within: Duration) {
        match events.recv_timeout(within.into()) {
            Ok(Event::Line { process, text }) => self.line(process, &text),
            Ok(Event::Exited { process, status }) => self.exited(process, status),
            Ok(Event::Interrupted) => {
                self.ending.get_or_insert(Ending::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("the trial holds a sender of events")
            }
        }
    }

    fn line(&mut self, number: usize, text: &str) {
        let member = &self.members[number];
        if !matches!(member.state, State::Starting { .. }) {
            return;
        }
        match member.endpoint.spec.command() {
            Some(command) => {
                if !matches!(&command.ready, Ready::Line(wanted) if text.contains(wanted)) {
                    return;
                }
            }
            None => match serde_json::from_str::<ReadyLine>(text) {
                Ok(line) if line.ready => self.versions.extend(line.versions),
                Ok(_) | Err(_) => return,
            },
        }
        self.ready(number, self.surroundings.epoch.elapsed());
    }

    /// An endpoint that was starting is ready, and the next one may start.
    fn ready(&mut self, number: usize, now: Time) {
        let state = &mut self.members[number].state;
        let before = std::mem::replace(state, State::Waiting);
        *state = match before {
            State::Starting { process, .. } => State::Ready { process },
            other => other,
        };
        self.free_since = now;
    }

    /// Handles the exit of an endpoint before the end of the trial.
    fn exited(&mut self, number: usize, status: ExitStatus) {
        self.watch.remove(number, self.surroundings.epoch.elapsed());
        let member = &mut self.members[number];
        let before = std::mem::replace(&mut member.state, State::Exited { status });
        if let State::Leaving { process, .. } = before {
            let ours = self.members[number].endpoint.spec.command().is_none();
            if ours && !status.success() {
                let words = process.last_words().map(|w| format!(": {w}")).unwrap_or_default();
                self.fail(number, format!("at its end: {}{words}", describe(status)));
            }
            return;
        }
        let was_ready = !matches!(before, State::Starting { .. });
        let policy = member.endpoint.spec.kind().exit();
        let failed = match policy {
            Exit::Ignored => false,
            Exit::Fails => true,
            Exit::Allowed | Exit::EndsTrial => !status.success() || !was_ready,
        };
        if failed {
            let words = match &before {
                State::Starting { process, .. } | State::Ready { process } => process.last_words(),
                State::Waiting | State::Leaving { .. } | State::Stopping | State::Exited { .. } => {
                    None
                }
            };
            let early = if was_ready { "ended early" } else { "ended before it was ready" };
            let words = words.map(|w| format!(": {w}")).unwrap_or_default();
            self.fail(number, format!("{early} with {}{words}", describe(status)));
        } else if policy == Exit::EndsTrial
            || self.members.iter().all(|a| matches!(a.state, State::Exited { .. }))
        {
            self.ending.get_or_insert(Ending::Over);
        }
    }

    fn fail(&mut self, number: usize, because: String) {
        let name = &self.members[number].endpoint.name;
        self.ending.get_or_insert(Ending::Failed(format!("endpoint {name}: {because}")));
        self.members[number].failure = Some(because);
    }

    /// Asks every endpoint to stop, last started first, and kills those that do not.
    fn stop(&mut self, events: &Receiver<Event>) {
        for number in (0..self.members.len()).rev() {
            let member = &mut self.members[number];
            let before = std::mem::replace(&mut member.state, State::Stopping);
            let (process, asked) = match before {
                State::Starting { process, .. } | State::Ready { process } => (process, false),
                State::Leaving { process, .. } => (process, true),
                State::Waiting | State::Stopping | State::Exited { .. } => {
                    member.state = before;
                    continue;
                }
            };
            let ours = member.endpoint.spec.command().is_none();
            let (signal, grace) = farewell(member.endpoint);
            if !asked {
                process.signal(signal);
            }
            let killed = self.await_exit(number, grace, events).is_none();
            if killed {
                process.signal(Signal::KILL);
                self.await_exit(number, GRACE, events);
            }
            let State::Exited { status } = self.members[number].state else {
                self.fail(number, "did not exit, even when killed".to_owned());
                continue;
            };
            if ours && (killed || !status.success()) {
                let words = process.last_words().map(|w| format!(": {w}")).unwrap_or_default();
                let how = if killed { "did not stop".to_owned() } else { describe(status) };
                self.fail(number, format!("while stopping: {how}{words}"));
            }
        }
    }

    fn await_exit(
        &mut self,
        number: usize,
        within: Duration,
        events: &Receiver<Event>,
    ) -> Option<()> {
        let deadline = self.surroundings.epoch.elapsed() + within;
        loop {
            let left = deadline.saturating_since(self.surroundings.epoch.elapsed());
            match events.recv_timeout(left.into()) {
                Ok(Event::Exited { process, status }) => {
                    self.members[process].state = State::Exited { status };
                    if process == number {
                        return Some(());
                    }
                    self.exited_unasked(process, status);
                }
                // It is already stopping, and its measurement is complete.
                Ok(Event::Interrupted | Event::Line { .. }) => {}
                Err(_) => return None,
            }
        }
    }

    /// An exit while another endpoint is being stopped, before this one was asked to stop. Our own
    /// endpoints never give up, whatever happens at the other side.
    fn exited_unasked(&mut self, number: usize, status: ExitStatus) {
        let ours = self.members[number].endpoint.spec.command().is_none();
        if ours && !status.success() {
            self.fail(number, format!("while stopping: {}", describe(status)));
        }
    }

    fn outcome(self, ended: Time, scheduled: Scheduled) -> Supervised {
        let setup = self.surroundings.setup;
        let pause = |Pause { from, to }: &Pause| suiro_record::Pause {
            from_s: from.as_secs_f64(),
            to_s: to.as_secs_f64(),
        };
        let of = |member: Member<'_>| {
            let status = match member.state {
                State::Exited { status } => Some(status),
                _ => None,
            };
            EndpointOutcome {
                name: member.endpoint.name.clone(),
                host: member.endpoint.host.clone(),
                kind: member.endpoint.spec.name().to_owned(),
                exit_code: status.and_then(|s| s.code()),
                signal: status.and_then(|s| std::os::unix::process::ExitStatusExt::signal(&s)),
                failure: member.failure,
                log: format!("logs/{}.log", member.endpoint.name),
                left_s: member.left.map(Time::as_secs_f64),
                pauses: setup.pauses_of(&member.endpoint.name).iter().map(pause).collect(),
                lateness: None,
            }
        };
        Supervised {
            outcomes: self.members.into_iter().map(of).collect(),
            versions: self.versions,
            ending: self.ending,
            ended,
            scheduled,
        }
    }
}

impl Surroundings<'_> {
    fn log(&self, endpoint: &Endpoint) -> PathBuf {
        self.dir.join("logs").join(format!("{}.log", endpoint.name))
    }

    /// The command of an endpoint, to run in its host.
    fn command(&self, endpoint: &Endpoint) -> Result<Command> {
        let mut command = match endpoint.spec.command() {
            Some(spec) => {
                let mut command = Command::new(&spec.command[0]);
                command.args(&spec.command[1..]);
                if let Ready::Port(port) = spec.ready {
                    let flows = [connections_to(port, spec.carries.unwrap_or(Carries::Unknown))];
                    FlowLog::write(self.dir, &endpoint.name, self.epoch.elapsed(), flows)?;
                }
                command
            }
            None => {
                let job = self.dir.join(format!("{}.job.json", endpoint.name));
                let text = serde_json::to_string_pretty(&self.job(endpoint))?;
                std::fs::write(&job, text).with_context(|| format!("writing {}", job.display()))?;
                let mut command = Command::new("/proc/self/exe");
                command.arg("endpoint").arg(job);
                command
            }
        };
        let host = self.network.host(&endpoint.host).context("the plan names its hosts")?;
        host.command(&mut command);
        if let (Some(limits), Some(spec)) = (&self.confinement, endpoint.spec.command())
            && !spec.privileged
        {
            limits.command(&mut command);
        }
        Ok(command)
    }

    fn job(&self, endpoint: &Endpoint) -> Job {
        let peer = |e: &Endpoint| {
            let refers_to = e.spec.references().into_iter().map(|reference| reference.name);
            let (host, port) = (e.host.clone(), e.spec.port());
            let http = e.spec.kind().http().unwrap_or_default();
            let (refers_to, sound) = (refers_to.collect(), e.spec.kind().has_sound());
            (e.name.clone(), Peer { host, port, http, refers_to, sound })
        };
        let medium = endpoint.spec.kind().medium();
        let media = medium.and_then(|medium| self.packages.get(medium.name).cloned());
        Job {
            endpoint: endpoint.clone(),
            epoch_monotonic_ns: self.epoch.monotonic_ns,
            epoch_realtime_ns: self.epoch.realtime_ns,
            duration: self.setup.duration,
            dir: self.dir.to_owned(),
            media,
            peers: self.setup.endpoints.iter().map(peer).collect(),
            seed: self.seed.derive(&endpoint.name),
            rtp: self.setup.record.rtp,
        }
    }
}

/// The flow of a command that listens on a port, and what the scenario says it carries.
fn connections_to(port: u16, carries: Carries) -> Flow {
    Flow {
        role: FlowRole::Server,
        protocol: Transport::Tcp,
        local: End::Port(port),
        remote: End::Any,
        carries,
        peer: None,
    }
}

fn program(endpoint: &Endpoint) -> String {
    match endpoint.spec.command() {
        Some(spec) => format!("`{}`", spec.command.join(" ")),
        None => endpoint.spec.name().to_owned(),
    }
}

/// The signal that asks an endpoint to stop, and how long it may take then.
fn farewell(endpoint: &Endpoint) -> (Signal, Duration) {
    match endpoint.spec.command() {
        Some(command) => (stop_signal(command.stop), command.grace),
        None => (Signal::TERM, GRACE),
    }
}

const fn stop_signal(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::TERM,
        StopSignal::Int => Signal::INT,
        StopSignal::Quit => Signal::QUIT,
        StopSignal::Hup => Signal::HUP,
        StopSignal::Kill => Signal::KILL,
    }
}
