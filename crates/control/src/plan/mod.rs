//! From what is wanted and what is seen to what is to be done. Pure: the time is an argument, and nothing is remembered
//! here.

mod faults;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;

use suiro_units::Duration;

pub use faults::{Fault, Faults, Limits, Report};

use crate::desired::Desired;
use crate::nmos::Tai;
use crate::nmos::connection::Side;

/// How long after a step's time something must be scheduled to be another program's.
const FOREIGN: Duration = Duration::from_secs(2);

/// What is seen of the nodes that answer.
pub type Observed = BTreeMap<String, Seen>;

/// What is seen of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its senders, by the number of the stream.
    pub senders: BTreeMap<u32, Lane>,
    /// Its receivers that store, by the number of the stream.
    pub receivers: BTreeMap<u32, Lane>,
    /// Why it cannot be commanded, although it answers.
    pub unfit: Option<String>,
}

impl Seen {
    const fn lanes(&self, side: Side) -> &BTreeMap<u32, Lane> {
        match side {
            Side::Sender => &self.senders,
            Side::Receiver => &self.receivers,
        }
    }
}

/// What is seen of a sender or receiver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    /// Whether it sends, or receives and stores.
    pub on: bool,
    /// Where it sends to or what it receives, or did: an address for each leg.
    pub to: Vec<SocketAddrV4>,
    /// What is scheduled: on or off, and when.
    pub scheduled: Option<(bool, Tai)>,
    /// Whether another program has scheduled the opposite of what it does.
    pub disputed: bool,
}

impl Lane {
    /// Whether it is on when everything that is scheduled has come to pass.
    pub fn will_be_on(&self) -> bool {
        self.disputed || self.scheduled.map_or(self.on, |(on, _)| on)
    }
}

/// What is to be done in one step: everything at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// The time, on which all nodes agree.
    pub at: Tai,
    /// The changes, at most one for a stream.
    pub changes: Vec<Change>,
    /// Nodes that are wanted but not there: the hook may make them.
    pub absent: Vec<String>,
    /// Streams that cannot be brought to where they are wanted now, and why.
    pub stuck: Vec<(u32, String)>,
}

impl Step {
    /// Whether there is nothing to be done.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// The change of one stream: the new sender starts with the frame before which the old one stops. The same for nodes that
/// store it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Whether nodes that send it change, or nodes that store it.
    pub side: Side,
    /// The stream.
    pub stream: u32,
    /// Where it goes: the address that `on` sends to, or those that it receives.
    pub to: Vec<SocketAddrV4>,
    /// The node that starts.
    pub on: Option<String>,
    /// The nodes that stop. If `on` refuses, they go on.
    pub off: Vec<String>,
}

impl Change {
    /// The nodes that a controller commands: the one that starts, which commands the others itself, or those that stop.
    pub fn commanded(&self) -> impl Iterator<Item = &String> {
        self.on.iter().chain(self.off.iter().filter(|_| self.on.is_none()))
    }
}

/// What to do so that the streams are where they are wanted. `lead` is how far ahead nodes must know of a change.
///
/// A stream whose node is faulty has no other node here: [`replacements`] gives it one first.
pub fn step(desired: &Desired, observed: &Observed, now: Tai, lead: Duration) -> Step {
    let mut step = Step { at: now.after(lead), ..Step::default() };
    let observed = &without_foreign(observed, step.at);
    for side in [Side::Sender, Side::Receiver] {
        let mut waiting = Vec::new();
        let wanted: BTreeSet<u32> = desired.streams().map(|(stream, _)| stream).collect();
        let known = observed.values().flat_map(|seen| seen.lanes(side).keys().copied());
        for stream in wanted.iter().copied().chain(known).collect::<BTreeSet<u32>>() {
            if !one(desired, observed, (side, stream), &mut step) {
                waiting.push(stream.to_string());
            }
        }
        hold_together(observed, side, &waiting, &mut step);
    }
    step
}

/// What is seen, without the plans of others: a controller schedules nothing for later than its lead, so what is scheduled for
/// long after `at` is not its own. It is as if it were not there; the node cancels it when it is commanded.
fn without_foreign(observed: &Observed, at: Tai) -> Observed {
    let mut observed = observed.clone();
    let lanes = observed
        .values_mut()
        .flat_map(|seen| seen.senders.values_mut().chain(seen.receivers.values_mut()));
    for lane in lanes {
        if let Some((on, _)) = lane.scheduled.take_if(|(_, then)| *then > at.after(FOREIGN)) {
            // It would have changed its state: the command must be sent again.
            lane.disputed = on != lane.on;
        }
    }
    observed
}

/// The nodes that shall send or store a stream, and its addresses there.
fn wanted(desired: &Desired, side: Side, stream: u32) -> Vec<(&str, Vec<SocketAddrV4>)> {
    let Some(own) = desired.stream(stream) else { return Vec::new() };
    match side {
        Side::Sender if desired.running => own.legs().map(|(node, to)| (node, vec![to])).collect(),
        Side::Receiver if desired.storing => {
            let to = own.destinations();
            own.stored_by.iter().map(|node| (node.as_str(), to.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// What one stream needs. False if it is not complete and must not start yet; a missing twin keeps none from starting.
fn one(desired: &Desired, observed: &Observed, what: (Side, u32), step: &mut Step) -> bool {
    let (side, stream) = what;
    let wanted = wanted(desired, side, stream);
    let is_wanted = |node: &str| wanted.iter().any(|(own, _)| *own == node);
    let is_on = |seen: &Seen| seen.lanes(side).get(&stream).is_some_and(Lane::will_be_on);
    let others = observed.iter().filter(|(node, seen)| is_on(seen) && !is_wanted(node));
    let mut off: Vec<String> = others.map(|(node, _)| node.clone()).collect();
    let (mut begin, mut is_complete) = (Vec::new(), true);
    for (leg, (node, to)) in wanted.iter().enumerate() {
        match begins(observed, what, node, to) {
            Ok(true) => begin.push((node, to)),
            Ok(false) => {}
            Err(Stuck { reason, absent }) => {
                if absent && !step.absent.iter().any(|own| own == node) {
                    step.absent.push((*node).to_owned());
                }
                step.stuck.push((stream, reason));
                // Who sends it goes on until its successor is there.
                off.clear();
                is_complete &= leg > 0 && side == Side::Sender;
            }
        }
    }
    for (node, to) in begin {
        let (on, off) = (Some((*node).to_owned()), std::mem::take(&mut off));
        step.changes.push(Change { side, stream, to: to.clone(), on, off });
    }
    if !off.is_empty() {
        step.changes.push(Change { side, stream, to: Vec::new(), on: None, off });
    }
    is_complete
}

/// Why a node cannot begin.
struct Stuck {
    reason: String,
    /// It is not there.
    absent: bool,
}

/// Whether a node must be commanded to send or store a stream.
fn begins(
    observed: &Observed,
    (side, stream): (Side, u32),
    node: &str,
    to: &[SocketAddrV4],
) -> Result<bool, Stuck> {
    let stuck = |reason, absent| Err(Stuck { reason, absent });
    let Some(seen) = observed.get(node) else {
        return stuck(format!("node {node} is not there"), true);
    };
    if let Some(reason) = &seen.unfit {
        return stuck(format!("node {node}: {reason}"), false);
    }
    let Some(lane) = seen.lanes(side).get(&stream) else {
        let reason = match side {
            Side::Sender => format!("node {node} has no sender of stream {stream} that is ready"),
            Side::Receiver => format!("node {node} cannot store stream {stream}"),
        };
        return stuck(reason, false);
    };
    if lane.scheduled.is_some_and(|(on, _)| !on) {
        return stuck(format!("node {node} is about to stop"), false);
    }
    // A lane whose addresses have changed must receive the new ones.
    Ok(!lane.will_be_on() || lane.disputed || (lane.scheduled.is_none() && lane.to != to))
}

/// All streams start at the same frame, and so do all recordings: none of them as long as a node is missing.
fn hold_together(observed: &Observed, side: Side, waiting: &[String], step: &mut Step) {
    let on = |seen: &Seen| seen.lanes(side).values().any(Lane::will_be_on);
    if waiting.is_empty() || observed.values().any(on) {
        return;
    }
    let what = match side {
        Side::Sender => "streams",
        Side::Receiver => "recordings",
    };
    let missing = waiting.join(", ");
    for change in step.changes.extract_if(.., |change| change.side == side) {
        let reason = format!("all {what} start together: it waits for {missing}");
        step.stuck.push((change.stream, reason));
    }
}

/// A faulty node's part of a stream, and who can take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The stream.
    pub stream: u32,
    /// The node that is faulty.
    pub node: String,
    /// The standby, or why there is none.
    pub standby: Result<String, String>,
}

/// Another node for each stream, or twin, whose node is faulty.
pub fn replacements(
    desired: &Desired,
    observed: &Observed,
    faulty: &BTreeMap<String, Fault>,
) -> Vec<Replacement> {
    let mut planned = desired.clone();
    let mut found = Vec::new();
    for (stream, own) in desired.streams().filter(|_| desired.running) {
        for (node, _) in own.legs().filter(|(node, _)| faulty.contains_key(*node)) {
            let standby = standby(&planned, observed, faulty, (stream, node));
            if let Ok(by) = &standby
                && let Some(own) = planned.streams.get_mut(&stream.to_string())
            {
                own.replace(node, by);
            }
            found.push(Replacement { stream, node: node.to_owned(), standby });
        }
    }
    found
}

/// The standby that is best for a node's part of a stream: where no twin of it is, at the same site, else at the site with
/// the most room; the first by name.
fn standby(
    planned: &Desired,
    observed: &Observed,
    faulty: &BTreeMap<String, Fault>,
    (stream, node): (u32, &str),
) -> Result<String, String> {
    let own = planned.stream(stream).ok_or("there is no such stream")?;
    let site_of = |node: &str| planned.nodes.get(node).map(|node| node.site.as_str());
    let at = site_of(node);
    let twins: Vec<_> =
        own.legs().filter(|(own, _)| *own != node).map(|(own, _)| site_of(own)).collect();
    let (mut well, mut free, mut material, mut best) = (0, 0, 0, None);
    for (name, node) in planned.nodes.iter().filter(|(name, _)| !faulty.contains_key(*name)) {
        let Some(seen) = observed.get(name).filter(|seen| seen.unfit.is_none()) else { continue };
        well += 1;
        if planned.on(name) >= node.streams as usize || own.is_sent_by(name) {
            continue;
        }
        free += 1;
        let site = &planned.sites[&node.site];
        if !site.material.contains(&stream) || !seen.senders.contains_key(&stream) {
            continue;
        }
        material += 1;
        let same = at == Some(node.site.as_str());
        let room = site.uplink.as_bps().saturating_sub(planned.sent_by(&node.site));
        // At the same site, the faulty node's share is free again.
        if !same && room < own.rate.as_bps() {
            continue;
        }
        let rank = (!twins.contains(&Some(node.site.as_str())), same, room);
        if best.as_ref().is_none_or(|(other, _)| rank > *other) {
            best = Some((rank, name.clone()));
        }
    }
    best.map(|(_, name)| name).ok_or_else(|| {
        format!(
            "no standby: of {well} nodes that are well, {free} have room, {material} of them the material of stream \
             {stream}, and none of those an uplink with {} to spare",
            own.rate
        )
    })
}
