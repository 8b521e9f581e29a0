//! One plan for all controllers: the one that leads gives its desired state to the nodes before it acts; the others, and the
//! one that leads next, take the newest one from there.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use suiro_outside::{beside, file};
use suiro_units::{Duration, Time};

use super::Control;
use crate::claim::PlanId;
use crate::client::{Base, Client, Manners};
use crate::desired::Desired;
use crate::net;
use crate::nmos::Ask;

/// How long a node may take to keep a plan, or to hand it out.
const PATIENCE: StdDuration = StdDuration::from_millis(500);
/// How long the controller waits for nodes to keep a new plan before it acts all the same.
const WAIT: Duration = Duration::from_millis(100);
/// Longest note next to the file, in bytes.
const NOTE_MAX: u64 = 4096;

/// The plan that a controller follows, and where it comes from.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Which version of the plan it is; `None` before nodes have ever had it.
    pub id: Option<PlanId>,
    /// Whether the operator has changed it since: then it becomes a version of its own.
    pub is_edited: bool,
    /// When it was last changed.
    changed: Time,
    /// A version that nodes have and that cannot be read.
    wrong: Option<PlanId>,
}

/// What became of a plan that was given to a node, or asked for.
#[derive(Debug)]
pub(super) enum Shared {
    /// A node keeps it, or not.
    Kept { node: String, id: PlanId, refused: Option<String> },
    /// A node handed it out.
    Told { node: String, id: PlanId, text: Option<String> },
}

/// The note next to the file: which version of the plan it is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    plan: PlanId,
    /// SHA-256 of the state's canonical text.
    sha256: String,
}

fn place(state: &Path) -> PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(".plan");
    PathBuf::from(name)
}

fn digest(desired: &Desired) -> String {
    Sha256::digest(desired.text()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Plan {
    /// The plan of a file: the version that its note names, unless the file was changed since.
    pub fn of(state: &Path, desired: &Desired) -> Self {
        let text = file::read_text(&place(state), NOTE_MAX).ok();
        let note: Option<Note> = text.and_then(|text| serde_json::from_str(&text).ok());
        let is_edited = note.as_ref().is_none_or(|note| note.sha256 != digest(desired));
        Self { id: note.map(|note| note.plan), is_edited, ..Self::default() }
    }

    /// Writes the note.
    pub fn write(&self, state: &Path, desired: &Desired) -> io::Result<()> {
        let Some(plan) = self.id.clone() else { return Ok(()) };
        let note = Note { plan, sha256: digest(desired) };
        beside::write(&place(state), serde_json::to_string(&note)?.as_bytes())
    }
}

impl Control {
    /// The newest plan that nodes keep, and a node that has it.
    fn newest(&self) -> Option<(PlanId, &str)> {
        let plans = self.seen.iter().filter_map(|(node, (_, status))| {
            let id = status.plan.clone()?;
            (Some(&id) != self.plan.wrong.as_ref()).then_some((id, node.as_str()))
        });
        plans.max_by(|(one, _), (other, _)| one.cmp(other))
    }

    /// Whether nodes have no newer plan than this controller. A file that was never a plan of nodes is one that the operator
    /// wants now: nodes have no newer one unless a controller leads.
    pub(super) fn has_newest_plan(&self) -> bool {
        let Some(own) = &self.plan.id else { return true };
        self.newest().is_none_or(|(id, _)| id <= *own)
    }

    /// This controller has begun to lead: its plan becomes the newest one.
    pub(super) fn lead_with_plan(&mut self) {
        if self.plan.id.is_none()
            && let Some((id, _)) = self.newest()
        {
            let left = id.claim.name().to_owned();
            let detail =
                format!("the file replaces the plan that the controller {left} left at the nodes");
            self.note("accepted", None, None, &detail);
        }
        self.renew();
    }

    /// The desired state is a new version of the plan.
    pub(super) fn renew(&mut self) {
        self.plan.changed = net::monotonic();
        self.plan.is_edited = true;
        let Some(claim) = self.leadership.claim().cloned() else { return };
        let known = self.newest().map_or(0, |(id, _)| id.revision);
        let own = self.plan.id.as_ref().map_or(0, |id| id.revision);
        self.plan.id = Some(PlanId { claim, revision: known.max(own).saturating_add(1) });
        self.plan.is_edited = false;
        self.unsaved = true;
    }

    /// Whether these nodes keep the plan, or had the time to take it. A node that acts on a plan keeps it before it is
    /// commanded: as long as it answers, whoever leads next finds the plan there.
    pub(super) fn is_kept_by<'a>(
        &self,
        mut nodes: impl Iterator<Item = &'a String>,
        now: Time,
    ) -> bool {
        let keeps = |node: &String| {
            self.seen.get(node).is_none_or(|(_, status)| status.plan == self.plan.id)
        };
        self.plan.id.is_none() || now.saturating_since(self.plan.changed) > WAIT || nodes.all(keeps)
    }

    /// Gives the plan to those of these nodes that answer and do not have it yet.
    pub(super) fn give_plan(&mut self, to: impl Fn(&str) -> bool) {
        let Some(id) = self.plan.id.clone() else { return };
        let (fresh, now) = (self.fresh_for(), net::monotonic());
        let lacking = self.seen.iter().filter(|(_, (asked, status))| {
            now.saturating_since(*asked) <= fresh && status.plan.as_ref() != Some(&id)
        });
        let lacking = lacking.filter(|(node, _)| to(node));
        let lacking: Vec<String> = lacking.map(|(node, _)| node.clone()).collect();
        for node in lacking {
            let Some((base, _)) = self.watched.get(&node) else { continue };
            if self.given.insert(node.clone(), id.clone()).as_ref() == Some(&id) {
                continue;
            }
            let (base, manners) = (base.clone(), self.spec.manners.clone());
            let (id, text) = (id.clone(), self.desired.text());
            self.sharing.spawn(async move {
                let refused = give(base, manners, &id, text).await.err();
                Shared::Kept { node, id, refused }
            });
        }
    }

    /// Asks for the newest plan, if nodes have one that this controller does not know.
    pub(super) fn catch_up(&mut self) {
        let own = self.plan.id.as_ref();
        let newer = self.newest().filter(|(id, _)| own.is_none_or(|own| id > own));
        let Some((id, node)) = newer else { return };
        // One question at a time.
        if self.asking_for.is_some() {
            return;
        }
        let Some((base, _)) = self.watched.get(node) else { return };
        let (base, manners, node) = (base.clone(), self.spec.manners.clone(), node.to_owned());
        self.asking_for = Some(id.clone());
        self.sharing.spawn(async move {
            let text = get(base, manners, &id).await.ok();
            Shared::Told { node, id, text }
        });
    }

    /// What became of a plan.
    pub(super) fn shared(&mut self, shared: Shared) {
        match shared {
            Shared::Kept { node, id, refused: None } => {
                if let Some((_, status)) = self.seen.get_mut(&node) {
                    status.plan = Some(id);
                }
            }
            Shared::Kept { node, id, refused: Some(reason) } => {
                // It is given again.
                self.given.remove(&node);
                if self.plan.id.as_ref() == Some(&id) && self.unshared.insert(node.clone()) {
                    self.note(
                        "refused",
                        None,
                        Some(&node),
                        &format!("it does not keep the plan: {reason}"),
                    );
                }
            }
            Shared::Told { node, id, text } => {
                self.asking_for = None;
                // It may have a newer one meanwhile, or be gone.
                let Some(text) = text else { return };
                if self.plan.id.as_ref().is_none_or(|own| id > *own) {
                    self.adopt(&node, id, &text);
                }
            }
        }
    }

    /// Follows the plan of another controller from now on.
    fn adopt(&mut self, node: &str, id: PlanId, text: &str) {
        let desired = match Desired::parse(text, &format!("the plan of the node {node}")) {
            Ok(desired) => desired,
            Err(error) => {
                self.note("refused", None, Some(node), &error.to_string());
                self.plan.wrong = Some(id);
                return;
            }
        };
        let is_other = desired != self.desired;
        if is_other && self.plan.is_edited {
            self.keep_refused();
        }
        if is_other {
            let name = id.claim.name().to_owned();
            self.note("accepted", None, Some(node), &format!("the plan of the controller {name}"));
            self.desired = desired;
        }
        (self.plan.id, self.plan.is_edited) = (Some(id), false);
        self.unsaved = true;
        self.save();
    }

    /// Keeps what the operator wrote next to the file, because the file is about to have another plan.
    pub(super) fn keep_refused(&mut self) {
        let mut name = self.spec.file.as_os_str().to_owned();
        name.push(".refused");
        let place = PathBuf::from(name);
        let kept = match beside::rewrite(&place, self.text.as_bytes()) {
            Ok(()) => format!("it is kept in {}", place.display()),
            Err(error) => format!("keeping it in {}: {error}", place.display()),
        };
        let detail =
            format!("{}: another plan is newer than this file; {kept}", self.spec.file.display());
        self.note("refused", None, None, &detail);
    }

    /// Brings the file to the desired state, if that is this controller's to do. What cannot be written now is written later.
    pub(super) fn save(&mut self) {
        if !self.unsaved || !self.has_lock {
            return;
        }
        match self.write() {
            Ok(()) => {
                self.unsaved = false;
                if self.unwritten.take().is_some() {
                    self.note("well", None, None, "the file is written again");
                }
            }
            Err(error) => {
                let reason = format!("{}: {error}", self.spec.file.display());
                if self.unwritten.replace(reason.clone()).is_none() {
                    let detail = format!(
                        "{reason}; the streams go on, and it is written when that is possible"
                    );
                    self.note("unwritten", None, None, &detail);
                }
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let is_there =
            Desired::parse(&self.text, "the file").is_ok_and(|there| there == self.desired);
        if !is_there {
            let text = self.desired.text();
            beside::rewrite(&self.spec.file, text.as_bytes())?;
            self.text = text;
        }
        self.plan.write(&self.spec.file, &self.desired)
    }
}

fn path(id: &PlanId) -> String {
    format!("/x-suiro/node/v1.0/plan/{}/{}", id.claim, id.revision)
}

async fn give(base: Base, manners: Manners, id: &PlanId, text: String) -> Result<(), String> {
    let ask = Ask {
        method: "PUT".to_owned(),
        path: path(id),
        content_type: Some("application/toml".to_owned()),
        body: text.into_bytes(),
        ..Ask::default()
    };
    reply(base, manners, &ask).await.map(|_| ())
}

async fn get(base: Base, manners: Manners, id: &PlanId) -> Result<String, String> {
    reply(base, manners, &Ask::read(&path(id))).await
}

async fn reply(base: Base, manners: Manners, ask: &Ask) -> Result<String, String> {
    match Client::new(base, manners).ask(ask, PATIENCE).await {
        Ok(reply) if reply.status < 300 => Ok(reply.body),
        Ok(reply) => Err(format!("{} (status {})", reply.reason(), reply.status)),
        Err(error) => Err(error.to_string()),
    }
}
