//! A running controller: it holds the desired state, watches the nodes, and commands them.

mod act;
mod api;
mod carry;
mod clocks;
mod describe;
mod find;
mod leadership;
mod lease;
mod refusals;
mod share;
mod standing;
mod status;
mod watch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use suiro_outside::file;
use suiro_record::RecordError;
use suiro_uncompressed::sdp::Description;
use suiro_units::{Duration, Time};
use tokio::sync::{mpsc, watch as value};
use tokio::task::{AbortHandle, JoinSet};

use self::carry::Outcome;
use self::describe::Described;
use self::find::Found;
use self::leadership::{Leadership, Standing};
use self::lease::Lease;
use self::refusals::Refusals;
use self::share::{Plan, Shared};
use self::watch::{Heard, Silence};
use crate::claim::PlanId;
use crate::client::{Base, Manners};
use crate::desired::{BYTES_MAX, Desired};
use crate::discovery::Registries;
use crate::events::{Journal, Log};
use crate::net;
use crate::nmos::door::Door;
use crate::node::{Place, Status};
use crate::plan::{Fault, Faults, Limits, Report};
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
/// Nodes with a label of another one that are reported at most.
const STRANGERS_MAX: usize = 100;
/// Events that it remembers.
const EVENTS_MAX: usize = 200;

/// A controller.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Its name, which the lock shows.
    pub name: String,
    /// The desired state.
    pub file: PathBuf,
    /// The registries that may know the nodes.
    pub registries: Registries,
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
    let finding = (!spec.registries.is_none()).then(|| {
        tokio::spawn(find::run(spec.registries.clone(), spec.manners.clone(), ASK_REGISTRY, told))
    });
    control.look();
    ready();
    let mut stop = std::pin::pin!(stop);
    let mut tick = net::every(TICK);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(waiting) = serving.next() => control.serve(waiting),
            Some(Ok(described)) = control.describing.join_next() => control.described(described),
            Some(heard) = control.heard.recv() => {
                let is_news = matches!(heard.said, Err(Silence::Closed(_)));
                control.hear(heard);
                // A stream may have lost its sender: that does not wait for the next turn.
                if is_news {
                    control.act();
                }
            }
            Some(answer) = found.recv() => control.found(answer),
            Some(outcomes) = control.carrying.join_next() => control.carried(outcomes.unwrap_or_default()),
            Some(Ok(shared)) = control.sharing.join_next() => {
                control.shared(shared);
                // An urgent step waits for its nodes to have the plan.
                if control.urgent {
                    control.act();
                }
            }
            _ = tick.tick() => control.turn(),
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
    leadership: Leadership,
    standing: Standing,
    /// The claim that nodes are asked to obey.
    claims: value::Sender<Option<String>>,
    /// The leader that was reported last.
    told_leader: Option<String>,
    /// Whether it has the lock next to its file.
    has_lock: bool,
    /// When it judged nodes last.
    judged: Time,
    desired: Desired,
    /// Which version of the plan that is.
    plan: Plan,
    /// The text of the file when it was read last.
    text: String,
    /// Whether the file must be written, and why it could not be.
    unsaved: bool,
    unwritten: Option<String>,
    /// What is given to nodes now, and what is asked of one.
    sharing: JoinSet<Shared>,
    given: BTreeMap<String, PlanId>,
    asking_for: Option<PlanId>,
    /// Nodes that refused the plan.
    unshared: BTreeSet<String>,
    /// Where nodes are, as the registry says.
    registered: BTreeMap<String, Base>,
    registry_lost: bool,
    /// Nodes that have the label of another one, and were reported.
    strangers: BTreeSet<(String, String)>,
    watched: BTreeMap<String, (Base, AbortHandle)>,
    tell: mpsc::Sender<Heard>,
    heard: mpsc::Receiver<Heard>,
    seen: BTreeMap<String, (Time, Status)>,
    /// Nodes whose clocks are not ours, and by how much.
    apart: BTreeMap<String, String>,
    faults: Faults,
    faulty: BTreeMap<String, Fault>,
    carrying: JoinSet<Vec<Outcome>>,
    /// Descriptions of streams that are asked for, and the last one of each.
    describing: JoinSet<Described>,
    descriptions: BTreeMap<u32, Description>,
    refusals: Refusals,
    /// Whether the next step is for a faulty node.
    urgent: bool,
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
            leadership: Leadership::new(&spec.name, net::monotonic()),
            standing: Standing::Asks,
            claims: value::Sender::new(None),
            told_leader: None,
            has_lock: false,
            judged: net::monotonic(),
            plan: Plan::of(&spec.file, &desired),
            desired,
            text,
            unsaved: false,
            unwritten: None,
            sharing: JoinSet::new(),
            given: BTreeMap::new(),
            asking_for: None,
            unshared: BTreeSet::new(),
            registered: BTreeMap::new(),
            registry_lost: false,
            strangers: BTreeSet::new(),
            watched: BTreeMap::new(),
            tell,
            heard,
            seen: BTreeMap::new(),
            apart: BTreeMap::new(),
            faults: Faults::default(),
            faulty: BTreeMap::new(),
            carrying: JoinSet::new(),
            describing: JoinSet::new(),
            descriptions: BTreeMap::new(),
            refusals: Refusals::default(),
            urgent: false,
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

    /// One turn: what is due of the slow things, then what is to be done.
    fn turn(&mut self) {
        if self.looked.is_none_or(|at| net::monotonic().saturating_since(at) >= LOOK) {
            self.look();
        }
        self.act();
    }

    /// Standbys for nodes that are faulty, then a step if one is needed.
    fn act(&mut self) {
        let now = net::monotonic();
        self.decide_who_leads();
        self.judge(now);
        if !self.leads() {
            self.catch_up();
        } else if self.carrying.is_empty() {
            self.urgent |= self.replace();
            self.step(now);
            if !self.urgent {
                self.give_plan(|_| true);
            }
        }
    }

    /// Looks at the lock, the file, and where nodes are.
    fn look(&mut self) {
        let now = net::monotonic();
        self.looked = Some(now);
        let who = format!("{} (process {})", self.spec.name, std::process::id());
        match self.lease.take(&who, now, net::date()) {
            Ok(has_lock) => self.has_lock = has_lock,
            Err(error) => {
                // The lock that it has, it keeps: nodes decide who leads.
                let reason = format!("{}.lock: {error}", self.spec.file.display());
                if self.unwritten.replace(reason.clone()).is_none() {
                    self.note("unwritten", None, None, &reason);
                }
            }
        }
        self.watch();
        self.decide_who_leads();
        self.reread();
        self.save();
    }

    /// Takes the file's state, if it has changed and is one.
    fn reread(&mut self) {
        let Ok(text) = file::read_text(&self.spec.file, BYTES_MAX as u64) else { return };
        if text == self.text {
            return;
        }
        self.text.clone_from(&text);
        match Desired::parse(&text, &self.spec.file.display().to_string()) {
            // It was written by another controller with the same file, or only its comments have changed.
            Ok(desired) if desired == self.desired => {}
            Ok(_) if self.has_lock && matches!(self.standing, Standing::Follows(..)) => {
                self.keep_refused();
                self.unsaved = true;
            }
            Ok(desired) => {
                self.note("accepted", None, None, "the file has changed");
                self.desired = desired;
                self.renew();
                // The file has this plan, the note next to it does not yet.
                self.save();
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
    fn found(&mut self, found: Option<Found>) {
        match found {
            Some(Found { places, strangers }) => {
                for (label, id) in strangers {
                    let is_news = self.desired.nodes.contains_key(&label)
                        && self.strangers.len() < STRANGERS_MAX
                        && self.strangers.insert((label.clone(), id.clone()));
                    if is_news {
                        let detail = format!(
                            "another node with this label is registered, with the identifier {id}: it is not used"
                        );
                        self.note("refused", None, Some(&label), &detail);
                    }
                }
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
                let now = net::monotonic();
                let obeys = status
                    .controller
                    .as_ref()
                    .map(|claim| (claim, Duration::from_nanos(status.lease_ns)));
                self.leadership.heard(&node, asked, now, obeys);
                self.faults.heard(&node, report, now, &self.spec.limits);
                self.seen.insert(node, (asked, status));
            }
            Err(Silence::Late) => {}
            Err(Silence::Closed(_)) => {
                self.faults.closed(&node);
                self.leadership.closed(&node, asked);
                self.seen.remove(&node);
                self.apart.remove(&node);
            }
            Err(Silence::Strange(reason)) => {
                self.leadership.closed(&node, asked);
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

    /// Wants another state, and keeps it in the file; if that cannot be written now, later.
    fn want(&mut self, desired: Desired) {
        self.desired = desired;
        self.unsaved = true;
        self.renew();
        self.save();
    }

    /// How old what a node said may be.
    fn fresh_for(&self) -> Duration {
        self.spec.limits.silence.max(Duration::from(self.spec.every * 3))
    }
}

fn read(path: &Path) -> Result<(String, Desired), ControllerError> {
    let failed = |cause| ControllerError::File { file: path.to_owned(), cause };
    let text = file::read_text(path, BYTES_MAX as u64).map_err(failed)?;
    let desired =
        Desired::parse(&text, &path.display().to_string()).map_err(ControllerError::State)?;
    Ok((text, desired))
}
