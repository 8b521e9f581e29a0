//! A running controller: it holds the desired state, watches the nodes, and commands them.

mod api;
mod carry;
mod clocks;
mod find;
mod lease;
mod rival;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use suiro_outside::{beside, file};
use suiro_record::RecordError;
use suiro_units::{Duration, Time};
use tokio::sync::{mpsc, watch as value};
use tokio::task::{AbortHandle, JoinSet};

use self::carry::Outcome;
use self::lease::Lease;
use self::watch::{Heard, Silence};
use crate::client::{Base, Manners};
use crate::desired::{BYTES_MAX, Desired};
use crate::events::{Journal, Log};
use crate::net;
use crate::nmos::Tai;
use crate::nmos::connection::Side;
use crate::nmos::door::Door;
use crate::node::{self, Place, Status};
use crate::plan::{self, Change, Fault, Faults, Lane, Limits, Observed, Report, Seen, Step};
use crate::server::Serving;

/// How often the controller compares what is wanted with what is seen.
const TICK: StdDuration = StdDuration::from_millis(10);
/// How often it looks at its file, the lock and the registry.
const LOOK: Duration = Duration::from_millis(200);
/// How often it asks the registry.
const ASK_REGISTRY: StdDuration = StdDuration::from_secs(1);
/// How long a node must be absent before the hook runs: one that is there is heard of before, also after a restart of the
/// controller.
const HOOK_AFTER: Duration = Duration::from_secs(3);
/// How often the hook runs for one node.
const HOOK_EVERY: Duration = Duration::from_secs(30);
/// Events that it remembers.
const EVENTS_MAX: usize = 200;

/// A controller.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Its name, which the lock shows.
    pub name: String,
    /// The desired state.
    pub file: PathBuf,
    /// The registry, if there is one.
    pub registry: Option<Base>,
    /// How it approaches registry and nodes.
    pub manners: Manners,
    /// How long before a change takes effect the nodes receive it.
    pub lead: Duration,
    /// The same when a stream has no sender: as little as nodes need.
    pub lead_fault: Duration,
    /// How often it asks each node.
    pub every: StdDuration,
    /// When a node is faulty.
    pub limits: Limits,
    /// A program that is started with the name of a node that is wanted and not there.
    pub hook: Option<PathBuf>,
}

/// Why a controller ended.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The desired state is not one.
    #[error("{0}")]
    State(suiro_strict::Error),
    /// A file cannot be used.
    #[error("{}: {cause}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Records cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What a controller did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Changes that nodes accepted.
    pub changes: u64,
    /// Changes that they refused.
    pub refused: u64,
    /// Streams that were given another node because theirs was faulty.
    pub replaced: u64,
}

/// Runs a controller until `stop` is ready. Calls `ready` when it serves.
///
/// # Errors
/// [`ControllerError`]: the first desired state must be one; later ones that are not are refused.
pub async fn run(
    spec: &Spec,
    place: Place,
    log: Log,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Done, ControllerError> {
    let mut control = Control::new(spec, place.door, log)?;
    let mut serving = Serving::begin(place.listener, place.tls);
    let (told, mut found) = mpsc::channel(4);
    let finding = spec
        .registry
        .clone()
        .map(|base| tokio::spawn(find::run(base, spec.manners.clone(), ASK_REGISTRY, told)));
    control.look()?;
    ready();
    let mut stop = std::pin::pin!(stop);
    let mut tick = net::every(TICK);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(waiting) = serving.next() => {
                let reply = control.answer(&waiting.ask);
                // Who asked may have gone.
                drop(waiting.reply.send(reply));
            }
            Some(heard) = control.heard.recv() => control.hear(heard),
            Some(places) = found.recv() => control.found(places),
            Some(outcomes) = control.carrying.join_next() => control.carried(outcomes.unwrap_or_default()),
            _ = tick.tick() => control.turn()?,
        }
    }
    serving.end().await;
    if let Some(finding) = finding {
        finding.abort();
    }
    control.journal.close()?;
    Ok(control.done)
}

/// A controller while it runs.
struct Control {
    spec: Spec,
    door: Door,
    journal: Journal,
    lease: Lease,
    /// What it asks nodes to obey; they are asked while it may lead.
    claim: String,
    claims: value::Sender<Option<String>>,
    leads: bool,
    /// Whether it has the lock next to its file.
    has_lock: bool,
    /// When it judged nodes last.
    judged: Time,
    desired: Desired,
    /// The text of the file when it was read last.
    text: String,
    /// Where nodes are, as the registry says.
    registered: BTreeMap<String, Base>,
    registry_lost: bool,
    watched: BTreeMap<String, (Base, AbortHandle)>,
    tell: mpsc::Sender<Heard>,
    heard: mpsc::Receiver<Heard>,
    seen: BTreeMap<String, (Time, Status)>,
    /// Nodes whose clocks are not ours, and by how much.
    apart: BTreeMap<String, String>,
    faults: Faults,
    faulty: BTreeMap<String, Fault>,
    carrying: JoinSet<Vec<Outcome>>,
    /// What was seen before this time is older than the last step.
    settled: Time,
    looked: Option<Time>,
    /// Since when wanted nodes have not been there.
    absent: BTreeMap<String, Time>,
    hooked: BTreeMap<String, Time>,
    stuck: BTreeMap<u32, String>,
    events: VecDeque<api::Event>,
    done: Done,
}

impl Control {
    fn new(spec: &Spec, door: Door, log: Log) -> Result<Self, ControllerError> {
        let (text, desired) = read(&spec.file)?;
        let failed = |cause| ControllerError::File { file: spec.file.clone(), cause };
        let lease = Lease::beside(&spec.file).map_err(failed)?;
        let (tell, heard) = mpsc::channel(1024);
        Ok(Self {
            spec: spec.clone(),
            door,
            journal: Journal::create(log)?,
            lease,
            claim: node::claim(net::tai(), &spec.name),
            claims: value::Sender::new(None),
            leads: false,
            has_lock: false,
            judged: net::monotonic(),
            desired,
            text,
            registered: BTreeMap::new(),
            registry_lost: false,
            watched: BTreeMap::new(),
            tell,
            heard,
            seen: BTreeMap::new(),
            apart: BTreeMap::new(),
            faults: Faults::default(),
            faulty: BTreeMap::new(),
            carrying: JoinSet::new(),
            settled: Time::ZERO,
            looked: None,
            absent: BTreeMap::new(),
            hooked: BTreeMap::new(),
            stuck: BTreeMap::new(),
            events: VecDeque::new(),
            done: Done::default(),
        })
    }

    fn note(&mut self, what: &str, stream: Option<u32>, node: Option<&str>, detail: &str) {
        self.journal.note(what, stream, node, detail);
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(api::Event {
            tai: net::tai().to_string(),
            what: what.to_owned(),
            stream,
            node: node.map(str::to_owned),
            detail: detail.to_owned(),
        });
    }

    /// One turn: what is due of the slow things, then a step if one is needed.
    fn turn(&mut self) -> Result<(), ControllerError> {
        let now = net::monotonic();
        if self.looked.is_none_or(|at| now.saturating_since(at) >= LOOK) {
            self.look()?;
        }
        self.decide_who_leads();
        self.judge(now);
        if self.leads && self.carrying.is_empty() {
            let replaced = self.replace()?;
            self.step(now, replaced);
        }
        Ok(())
    }

    /// Looks at the lock, the file, and where nodes are.
    fn look(&mut self) -> Result<(), ControllerError> {
        self.looked = Some(net::monotonic());
        let who = format!("{} (process {})", self.spec.name, std::process::id());
        let failed = |cause| ControllerError::File { file: self.spec.file.clone(), cause };
        self.has_lock = self.lease.take(&who).map_err(failed)?;
        self.decide_who_leads();
        self.reread();
        self.watch();
        Ok(())
    }

    /// Takes the file's state, if it has changed and is one.
    fn reread(&mut self) {
        let Ok(text) = file::read_text(&self.spec.file, BYTES_MAX as u64) else { return };
        if text == self.text {
            return;
        }
        self.text.clone_from(&text);
        match Desired::parse(&text, &self.spec.file.display().to_string()) {
            Ok(desired) => {
                self.note("accepted", None, None, "the file has changed");
                self.desired = desired;
            }
            Err(error) => {
                self.note("refused", None, None, &format!("the old state is kept: {error}"));
            }
        }
    }

    /// Watches the nodes whose place is known: from the file, or from the registry.
    fn watch(&mut self) {
        let place = |(name, node): (&String, &crate::desired::Node)| {
            let own = node.href.as_deref().and_then(|href| Base::parse(href).ok());
            Some((name.clone(), own.or_else(|| self.registered.get(name).cloned())?))
        };
        let places: BTreeMap<String, Base> = self.desired.nodes.iter().filter_map(place).collect();
        self.watched.retain(|name, (base, task)| {
            let same = places.get(name) == Some(base);
            if !same {
                task.abort();
            }
            same
        });
        for (name, base) in places {
            if self.watched.contains_key(&name) {
                continue;
            }
            let (manners, tell) = (self.spec.manners.clone(), self.tell.clone());
            let (every, claim) = (self.spec.every, self.claims.subscribe());
            let asking = watch::run(name.clone(), base.clone(), manners, every, claim, tell);
            let task = tokio::spawn(asking);
            self.watched.insert(name, (base, task.abort_handle()));
        }
    }

    /// What the registry said; `None`: nothing.
    fn found(&mut self, places: Option<BTreeMap<String, Base>>) {
        match places {
            Some(places) => {
                if std::mem::take(&mut self.registry_lost) {
                    self.note("registry", None, None, "it answers again");
                }
                // Who is not listed any more is watched on: the registry may have lost it, not we.
                self.registered.extend(places);
            }
            None if !self.registry_lost => {
                self.registry_lost = true;
                self.note(
                    "registry",
                    None,
                    None,
                    "it does not answer: the nodes that are known are kept",
                );
            }
            None => {}
        }
    }

    fn hear(&mut self, heard: Heard) {
        let Heard { node, asked, said } = heard;
        let known = self.seen.contains_key(&node);
        match said {
            Ok(status) => {
                if !known {
                    self.note("heard", None, Some(&node), "it answers");
                }
                let on = status.lanes.iter().filter(|lane| lane.on);
                let report = on.fold(Report::default(), |sum, lane| Report {
                    repeated: sum.repeated + lane.repeated,
                    late: sum.late + lane.late,
                });
                self.compare_clocks(&node, asked, &status);
                self.faults.heard(&node, report, net::monotonic(), &self.spec.limits);
                self.seen.insert(node, (asked, status));
            }
            Err(Silence::Late) => {}
            Err(Silence::Closed(_)) => {
                self.faults.closed(&node);
                self.seen.remove(&node);
                self.apart.remove(&node);
            }
            Err(Silence::Strange(reason)) => {
                if self.seen.remove(&node).is_some() {
                    self.note("refused", None, Some(&node), &reason);
                }
            }
        }
    }

    /// Which nodes are faulty now.
    fn judge(&mut self, now: Time) {
        let since = now.saturating_since(std::mem::replace(&mut self.judged, now));
        if since > Duration::from(TICK) * 2 {
            self.faults.stalled(since.saturating_sub(TICK.into()), now);
        }
        let faulty = self.faults.faulty(now, &self.spec.limits);
        for (node, fault) in &faulty {
            if !self.faulty.contains_key(node) {
                self.note("fault", None, Some(node), &fault.to_string());
            }
        }
        let well: Vec<String> =
            self.faulty.keys().filter(|node| !faulty.contains_key(*node)).cloned().collect();
        for node in well {
            self.note("well", None, Some(&node), "it is a standby again");
        }
        self.faulty = faulty;
    }

    /// Gives streams of faulty nodes to standbys. True if there were any.
    fn replace(&mut self) -> Result<bool, ControllerError> {
        if self.faulty.is_empty() || !self.desired.running {
            return Ok(false);
        }
        let found = plan::replacements(&self.desired, &self.observed(), &self.faulty);
        let mut next = self.desired.clone();
        let mut replaced = false;
        for plan::Replacement { stream, node: old, standby } in found {
            match standby {
                Ok(node) => {
                    let why = self.faulty.get(&old).map(ToString::to_string).unwrap_or_default();
                    self.note(
                        "replaced",
                        Some(stream),
                        Some(&node),
                        &format!("instead of {old}: {why}"),
                    );
                    if let Some(own) = next.streams.get_mut(&stream.to_string()) {
                        own.replace(&old, &node);
                    }
                    replaced = true;
                    self.done.replaced += 1;
                }
                Err(reason) => self.stick(stream, &reason),
            }
        }
        if replaced {
            self.want(next)?;
        }
        Ok(replaced)
    }

    /// A stream that cannot be brought to where it is wanted: said once for each reason.
    fn stick(&mut self, stream: u32, reason: &str) {
        let known = self.stuck.insert(stream, reason.to_owned());
        if known.as_deref() != Some(reason) {
            self.note("stuck", Some(stream), None, reason);
        }
    }

    /// Wants another state, and keeps it in the file.
    fn want(&mut self, desired: Desired) -> Result<(), ControllerError> {
        let text = desired.text();
        let failed = |cause| ControllerError::File { file: self.spec.file.clone(), cause };
        beside::write(&self.spec.file, text.as_bytes()).map_err(failed)?;
        (self.text, self.desired) = (text, desired);
        Ok(())
    }

    /// What is seen of the nodes that answer. One that was faulty and answers again must be told to stop what another sends
    /// now.
    fn observed(&self) -> Observed {
        let now = net::monotonic();
        let fresh = self.spec.limits.silence.max(Duration::from(self.spec.every * 3));
        let usable =
            self.seen.iter().filter(|(_, (asked, _))| now.saturating_since(*asked) <= fresh);
        let seen = |(name, (_, status)): (&String, &(Time, Status))| {
            let seen = match self.apart.get(name) {
                Some(reason) => Seen { unfit: Some(reason.clone()), ..Seen::default() },
                None => seen(status),
            };
            (name.clone(), seen)
        };
        usable.map(seen).collect()
    }

    fn step(&mut self, now: Time, replaced: bool) {
        if self.seen.values().any(|(asked, _)| *asked < self.settled) {
            // A node that has not answered since is faulty before long.
            let late = now.saturating_since(self.settled) < self.spec.limits.silence;
            if late && !replaced {
                return;
            }
        }
        let lead = if replaced { self.spec.lead_fault } else { self.spec.lead };
        let step = plan::step(&self.desired, &self.observed(), net::tai(), lead);
        self.absent.retain(|node, _| step.absent.contains(node));
        for node in &step.absent {
            let since = *self.absent.entry(node.clone()).or_insert(now);
            if now.saturating_since(since) >= HOOK_AFTER {
                self.hook(node, now);
            }
        }
        let stuck: Vec<u32> = step.stuck.iter().map(|(stream, _)| *stream).collect();
        // What is stuck because there is no standby stays so while its node is faulty.
        let (desired, faulty) = (&self.desired, &self.faulty);
        self.stuck.retain(|stream, _| {
            let own = desired.stream(*stream);
            let is_faulty = |node: &str| faulty.contains_key(node);
            stuck.contains(stream)
                || own.is_some_and(|own| own.legs().any(|(node, _)| is_faulty(node)))
        });
        let mut reasons: BTreeMap<u32, String> = BTreeMap::new();
        for (stream, reason) in &step.stuck {
            let all = reasons.entry(*stream).or_default();
            *all += if all.is_empty() { "" } else { "; " };
            *all += reason;
        }
        for (stream, reason) in &reasons {
            // Why a faulty node has no standby was noted before; that it is not there is no news.
            let is_faulty = |node: &str| self.faulty.contains_key(node);
            let own = self.desired.stream(*stream);
            if !own.is_some_and(|own| own.legs().any(|(node, _)| is_faulty(node))) {
                self.stick(*stream, reason);
            }
        }
        if step.is_empty() {
            return;
        }
        for change in &step.changes {
            let detail = told(change, &step);
            self.note("ordered", Some(change.stream), change.on.as_deref(), &detail);
        }
        let places =
            self.watched.iter().map(|(name, (base, _))| (name.clone(), base.clone())).collect();
        self.carrying.spawn(carry::carry_out(step, places, self.spec.manners.clone()));
    }

    fn carried(&mut self, outcomes: Vec<Outcome>) {
        self.settled = net::monotonic();
        for Outcome { change, refused } in outcomes {
            let nodes = change.on.iter().chain(&change.off);
            nodes.for_each(|node| self.faults.forget(node));
            match refused {
                None => {
                    self.done.changes += 1;
                    self.note(
                        "done",
                        Some(change.stream),
                        change.on.as_deref(),
                        "the nodes have accepted it",
                    );
                }
                Some(reason) => {
                    self.done.refused += 1;
                    self.note("refused", Some(change.stream), change.on.as_deref(), &reason);
                }
            }
        }
    }

    /// Runs the hook for a node that is wanted and not there.
    fn hook(&mut self, node: &str, now: Time) {
        let Some(program) = self.spec.hook.clone() else { return };
        if self.hooked.get(node).is_some_and(|at| now.saturating_since(*at) < HOOK_EVERY) {
            return;
        }
        self.hooked.insert(node.to_owned(), now);
        let mut command = tokio::process::Command::new(&program);
        command.arg(node).stdin(std::process::Stdio::null()).kill_on_drop(false);
        match command.spawn() {
            Ok(mut child) => {
                self.note("hook", None, Some(node), &format!("{} runs", program.display()));
                // What it makes is noticed when it answers.
                tokio::spawn(async move { drop(child.wait().await) });
            }
            Err(error) => {
                self.note("hook", None, Some(node), &format!("{}: {error}", program.display()));
            }
        }
    }
}

fn read(path: &Path) -> Result<(String, Desired), ControllerError> {
    let failed = |cause| ControllerError::File { file: path.to_owned(), cause };
    let text = file::read_text(path, BYTES_MAX as u64).map_err(failed)?;
    let desired =
        Desired::parse(&text, &path.display().to_string()).map_err(ControllerError::State)?;
    Ok((text, desired))
}

/// What a change does, in words.
fn told(change: &Change, step: &Step) -> String {
    let off = change.off.join(", ");
    let (starts, stops) = match change.side {
        Side::Sender => ("starts", "stops"),
        Side::Receiver => ("starts to store", "stops storing"),
    };
    match (&change.on, off.is_empty()) {
        (Some(_), true) => format!("{starts} at {}", step.at),
        (Some(_), false) => format!("takes over from {off} at {}", step.at),
        (None, _) => format!("{off} {stops} at {}", step.at),
    }
}

fn seen(status: &Status) -> Seen {
    let scheduled = |own: Option<(bool, u64)>| own.map(|(on, at)| (on, Tai::from_nanos(at)));
    let sender = |lane: &node::LaneStatus| {
        let to = lane.to.into_iter().collect();
        (lane.stream, Lane { on: lane.on, to, scheduled: scheduled(lane.scheduled) })
    };
    let receiver = |lane: &node::ReceiverStatus| {
        let to = lane.from.clone();
        (lane.stream, Lane { on: lane.on, to, scheduled: scheduled(lane.scheduled) })
    };
    // A lane whose ring is being filled would start later than the others.
    let ready = |phase: &str| matches!(phase, "standby" | "running");
    let usable = status.lanes.iter().filter(|lane| {
        lane.failed.is_none() && (lane.on || lane.scheduled.is_some() || ready(&lane.phase))
    });
    let receivers = status.receivers.iter().map(receiver).collect();
    Seen { senders: usable.map(sender).collect(), receivers, unfit: None }
}
