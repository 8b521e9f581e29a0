//! What a controller does: standbys for faulty nodes, the next step, and what became of it.

use std::collections::BTreeMap;

use suiro_units::Time;

use super::carry::{self, Outcome};
use super::{Control, HOOK_AFTER, HOOK_EVERY};
use crate::claim::Claim;
use crate::net;
use crate::nmos::Tai;
use crate::nmos::connection::Side;
use crate::node::{self, Status};
use crate::plan::{self, Change, Lane, Observed, Seen, Step};

impl Control {
    /// Gives streams of faulty nodes to standbys. True if there were any.
    pub(super) fn replace(&mut self) -> bool {
        if self.faulty.is_empty() || !self.desired.running {
            return false;
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
            self.want(next);
        }
        replaced
    }

    /// A stream that cannot be brought to where it is wanted: said once for each reason.
    fn stick(&mut self, stream: u32, reason: &str) {
        let known = self.stuck.insert(stream, reason.to_owned());
        if known.as_deref() != Some(reason) {
            self.note("stuck", Some(stream), None, reason);
        }
    }

    /// What is seen of the nodes that answer. One that was faulty and answers again must be commanded to stop what
    /// another sends now.
    fn observed(&self) -> Observed {
        let now = net::monotonic();
        let fresh = self.fresh_for();
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

    pub(super) fn step(&mut self, now: Time) {
        if self.seen.values().any(|(asked, _)| *asked < self.settled) {
            // A node that has not answered since is faulty before long.
            let late = now.saturating_since(self.settled) < self.spec.limits.silence;
            if late && !self.urgent {
                return;
            }
        }
        let mut step = self.next_step();
        // All changes of a step happen at the same time, so they wait together. Other nodes get the plan later.
        let commanded = || step.changes.iter().flat_map(Change::commanded);
        if !self.is_kept_by(commanded(), now) {
            self.give_plan(|node| commanded().any(|own| own == node));
            return;
        }
        self.urgent = false;
        step.changes.retain(|change| self.refusals.allows(change, now));
        self.absent.retain(|node, _| step.absent.contains(node));
        for node in &step.absent {
            let since = *self.absent.entry(node.clone()).or_insert(now);
            if now.saturating_since(since) >= HOOK_AFTER {
                self.hook(node, now);
            }
        }
        let stuck: Vec<u32> = step.stuck.iter().map(|(stream, _)| *stream).collect();
        // A stream without a standby stays stuck while its node is faulty.
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
        let claim = self.leadership.claim().map(Claim::to_string);
        self.carrying.spawn(carry::carry_out(step, places, self.spec.manners.clone(), claim));
    }

    /// What is to be done now: soon, if a stream has no sender or one too many.
    fn next_step(&self) -> Step {
        let (observed, now) = (self.observed(), net::tai());
        let soon = || plan::step(&self.desired, &observed, now, self.spec.lead_fault);
        if self.urgent {
            return soon();
        }
        let step = plan::step(&self.desired, &observed, now, self.spec.lead);
        let ends_double = |change: &Change| {
            change.side == Side::Sender
                && self.desired.running
                && change.on.is_none()
                && self.desired.stream(change.stream).is_some()
        };
        if step.is_empty() || !step.changes.iter().all(ends_double) { step } else { soon() }
    }

    pub(super) fn carried(&mut self, outcomes: Vec<Outcome>) {
        self.settled = net::monotonic();
        for Outcome { change, refused } in outcomes {
            let nodes = change.on.iter().chain(&change.off);
            nodes.for_each(|node| self.faults.forget(node));
            match refused {
                None => {
                    self.refusals.accepted(&change);
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
                    if self.refusals.refused(&change, &reason, self.settled) {
                        self.note("refused", Some(change.stream), change.on.as_deref(), &reason);
                    }
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
                // A node that the hook starts is noticed when it answers.
                tokio::spawn(async move { drop(child.wait().await) });
            }
            Err(error) => {
                self.note("hook", None, Some(node), &format!("{}: {error}", program.display()));
            }
        }
    }
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
        let scheduled = scheduled(lane.scheduled);
        (lane.stream, Lane { on: lane.on, to, scheduled, disputed: false })
    };
    let receiver = |lane: &node::ReceiverStatus| {
        let to = lane.from.clone();
        let scheduled = scheduled(lane.scheduled);
        (lane.stream, Lane { on: lane.on, to, scheduled, disputed: false })
    };
    // A lane whose ring is being filled would start later than the others.
    let ready = |phase: &str| matches!(phase, "standby" | "running");
    let usable = status.lanes.iter().filter(|lane| {
        lane.failed.is_none() && (lane.on || lane.scheduled.is_some() || ready(&lane.phase))
    });
    let receivers = status.receivers.iter().map(receiver).collect();
    Seen { senders: usable.map(sender).collect(), receivers, unfit: None }
}
