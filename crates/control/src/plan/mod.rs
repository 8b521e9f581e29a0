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

/// What is seen of the nodes that answer.
pub type Observed = BTreeMap<String, Seen>;

/// What is seen of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its senders, by the number of the stream.
    pub senders: BTreeMap<u32, Sender>,
    /// Why it cannot be commanded, although it answers.
    pub unfit: Option<String>,
}

/// What is seen of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sender {
    /// Whether it sends.
    pub on: bool,
    /// Where it sends to, or did.
    pub to: Option<SocketAddrV4>,
    /// What is scheduled: to send or not, and when.
    pub scheduled: Option<(bool, Tai)>,
}

impl Sender {
    /// Whether it sends when everything that is scheduled has come to pass.
    pub fn will_be_on(&self) -> bool {
        self.scheduled.map_or(self.on, |(on, _)| on)
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

/// The change of one stream: the new sender starts with the frame before which the old one stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The stream.
    pub stream: u32,
    /// Where it goes.
    pub to: Option<SocketAddrV4>,
    /// The node that starts to send.
    pub on: Option<String>,
    /// The nodes that stop. If `on` refuses, they go on.
    pub off: Vec<String>,
}

/// What to do so that the streams are where they are wanted. `lead` is how far ahead nodes must know of a change.
///
/// A stream whose node is faulty has no other node here: [`replacements`] gives it one first.
pub fn step(desired: &Desired, observed: &Observed, now: Tai, lead: Duration) -> Step {
    let mut step = Step { at: now.after(lead), ..Step::default() };
    let wanted: BTreeSet<u32> = desired.streams().map(|(stream, _)| stream).collect();
    let known = observed.values().flat_map(|seen| seen.senders.keys().copied());
    for stream in wanted.iter().copied().chain(known).collect::<BTreeSet<u32>>() {
        one(desired, observed, stream, &mut step);
    }
    hold_together(desired, observed, &mut step);
    step
}

fn one(desired: &Desired, observed: &Observed, stream: u32, step: &mut Step) {
    let own = desired.stream(stream).filter(|_| desired.running);
    let sending = |node: &&String| {
        let sender = observed[*node].senders.get(&stream);
        sender.is_some_and(Sender::will_be_on)
    };
    let wanted = own.map(|own| own.node.as_str());
    let others = observed.keys().filter(sending).filter(|node| wanted != Some(node.as_str()));
    let off: Vec<String> = others.cloned().collect();
    let Some(own) = own else {
        if !off.is_empty() {
            step.changes.push(Change { stream, to: None, on: None, off });
        }
        return;
    };
    let Some(seen) = observed.get(&own.node) else {
        if !step.absent.contains(&own.node) {
            step.absent.push(own.node.clone());
        }
        step.stuck.push((stream, format!("node {} is not there", own.node)));
        return;
    };
    if let Some(reason) = &seen.unfit {
        step.stuck.push((stream, format!("node {}: {reason}", own.node)));
        return;
    }
    let Some(sender) = seen.senders.get(&stream) else {
        step.stuck.push((
            stream,
            format!("node {} has no sender of stream {stream} that is ready", own.node),
        ));
        return;
    };
    // A sender whose destination is another is told anew.
    let on = !sender.will_be_on() || (sender.scheduled.is_none() && sender.to != Some(own.to));
    if sender.scheduled.is_some_and(|(on, _)| !on) {
        step.stuck.push((stream, format!("node {} is about to stop", own.node)));
        return;
    }
    if on || !off.is_empty() {
        let on = on.then(|| own.node.clone());
        step.changes.push(Change { stream, to: Some(own.to), on, off });
    }
}

/// All streams start at the same frame: none of them as long as a node is missing.
fn hold_together(desired: &Desired, observed: &Observed, step: &mut Step) {
    let on = |seen: &Seen| seen.senders.values().any(Sender::will_be_on);
    if !desired.running || step.stuck.is_empty() || observed.values().any(on) {
        return;
    }
    let missing: Vec<String> = step.stuck.iter().map(|(stream, _)| stream.to_string()).collect();
    let missing = missing.join(", ");
    for change in std::mem::take(&mut step.changes) {
        let reason = format!("all streams start together: it waits for {missing}");
        step.stuck.push((change.stream, reason));
    }
}

/// Another node for each stream whose node is faulty; `Err` has the reason why there is none.
pub fn replacements(
    desired: &Desired,
    observed: &Observed,
    faulty: &BTreeMap<String, Fault>,
) -> Vec<(u32, Result<String, String>)> {
    let mut planned = desired.clone();
    let mut found = Vec::new();
    let lost =
        desired.streams().filter(|(_, own)| desired.running && faulty.contains_key(&own.node));
    for (stream, _) in lost {
        let standby = standby(&planned, observed, faulty, stream);
        if let Ok(node) = &standby
            && let Some(own) = planned.streams.get_mut(&stream.to_string())
        {
            own.node.clone_from(node);
        }
        found.push((stream, standby));
    }
    found
}

/// The standby that is best for a stream: at the same site, else at the site with the most room; the first by name.
fn standby(
    planned: &Desired,
    observed: &Observed,
    faulty: &BTreeMap<String, Fault>,
    stream: u32,
) -> Result<String, String> {
    let own = planned.stream(stream).ok_or("there is no such stream")?;
    let at = planned.nodes.get(&own.node).map(|node| node.site.as_str());
    let (mut well, mut free, mut material, mut best) = (0, 0, 0, None);
    for (name, node) in planned.nodes.iter().filter(|(name, _)| !faulty.contains_key(*name)) {
        let Some(seen) = observed.get(name).filter(|seen| seen.unfit.is_none()) else { continue };
        well += 1;
        if planned.on(name) >= node.streams as usize {
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
        let rank = (same, room);
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
