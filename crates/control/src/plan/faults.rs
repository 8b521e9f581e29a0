//! Which nodes are faulty: they are dead, starve or lag. Decided from what they report of themselves, and from their
//! silence. Pure.

use std::collections::BTreeMap;

use suiro_units::{Duration, Time};

/// When a node is faulty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a node may be silent. Three frame times by default.
    pub silence: Duration,
    /// How many frames a sender may repeat, or send late or not at all, within [`Self::window`].
    pub frames: u64,
    /// The window.
    pub window: Duration,
    /// How long a node must be well again before it may send.
    pub probation: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            silence: Duration::from_millis(50),
            frames: 3,
            window: Duration::from_secs(1),
            probation: Duration::from_secs(10),
        }
    }
}

/// What a node reports of its senders: counts since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Frames that were repeated because the next one had not been read.
    pub repeated: u64,
    /// Frames that were sent late or left out.
    pub late: u64,
}

/// What is wrong with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its connection was closed.
    Dead,
    /// It has not answered for so long.
    Silent(Duration),
    /// It repeated so many frames within the window.
    Starves(u64),
    /// It sent so many frames late, or left them out, within the window.
    Lags(u64),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dead => write!(f, "it closed its connection"),
            Self::Silent(time) => write!(f, "it has not answered for {time}"),
            Self::Starves(frames) => {
                write!(f, "it starves: {frames} frames repeated within a second")
            }
            Self::Lags(frames) => write!(f, "it lags: {frames} frames late within a second"),
        }
    }
}

/// Reports that are remembered of a node.
const REMEMBERED_MAX: usize = 256;

/// The nodes, as far as their health goes.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    nodes: BTreeMap<String, Health>,
}

#[derive(Debug, Clone, Default)]
struct Health {
    heard: Option<Time>,
    reports: Vec<(Time, Report)>,
    closed: bool,
    /// The last fault, and when it was seen last.
    fault: Option<(Fault, Time)>,
}

impl Faults {
    /// A node answered.
    pub fn heard(&mut self, node: &str, report: Report, now: Time, limits: &Limits) {
        let health = self.nodes.entry(node.to_owned()).or_default();
        // A node that started again counts from zero.
        let restarted = health
            .reports
            .last()
            .is_some_and(|(_, last)| report.repeated < last.repeated || report.late < last.late);
        if restarted {
            health.reports.clear();
        }
        let recent = now.saturating_sub(limits.window);
        let old = health.reports.iter().take_while(|(at, _)| *at < recent).count();
        let old = old.max((health.reports.len() + 1).saturating_sub(REMEMBERED_MAX));
        health.reports.drain(..old.min(health.reports.len()));
        health.reports.push((now, report));
        (health.heard, health.closed) = (Some(now), false);
    }

    /// A node's connection was closed, or could not be made.
    pub fn closed(&mut self, node: &str) {
        if let Some(health) = self.nodes.get_mut(node).filter(|health| health.heard.is_some()) {
            health.closed = true;
        }
    }

    /// The controller itself did not run for so long, up to `now`: it could not have heard anything.
    pub fn stalled(&mut self, by: Duration, now: Time) {
        for heard in self.nodes.values_mut().filter_map(|health| health.heard.as_mut()) {
            *heard = (*heard + by).min(now);
        }
    }

    /// The nodes that are faulty now, or were so recently. A node that was never heard of is absent, not faulty. If all of
    /// several nodes are silent, it is the controller that is cut off, and none of them is faulty for that.
    pub fn faulty(&mut self, now: Time, limits: &Limits) -> BTreeMap<String, Fault> {
        let mut found = BTreeMap::new();
        let open = self.nodes.values().filter(|health| !health.closed);
        let silent: Vec<bool> =
            open.filter_map(|health| Some(health.silent(now)? > limits.silence)).collect();
        let is_cut_off = silent.len() > 1 && silent.iter().all(|silent| *silent);
        for (name, health) in &mut self.nodes {
            let fault = health.fault_now(now, limits);
            let is_silent = matches!(fault, Some(Fault::Silent(_)));
            if let Some(fault) = fault.filter(|_| !(is_silent && is_cut_off)) {
                health.fault = Some((fault, now));
            }
            health.fault.take_if(|(_, at)| now.saturating_since(*at) >= limits.probation);
            if let Some((fault, _)) = health.fault {
                found.insert(name.clone(), fault);
            }
        }
        found
    }

    /// Forgets what a node reported, because it has just started or stopped to send.
    pub fn forget(&mut self, node: &str) {
        if let Some(health) = self.nodes.get_mut(node) {
            health.reports.clear();
        }
    }
}

impl Health {
    /// How long it has been silent; `None` if it was never heard of.
    fn silent(&self, now: Time) -> Option<Duration> {
        self.heard.map(|heard| now.saturating_since(heard))
    }

    fn fault_now(&self, now: Time, limits: &Limits) -> Option<Fault> {
        let silent = self.silent(now)?;
        if self.closed {
            return Some(Fault::Dead);
        }
        if silent > limits.silence {
            return Some(Fault::Silent(silent));
        }
        let ((_, first), (_, last)) = self.reports.first().zip(self.reports.last())?;
        let (repeated, late) = (last.repeated - first.repeated, last.late - first.late);
        match () {
            () if repeated > limits.frames => Some(Fault::Starves(repeated)),
            () if late > limits.frames => Some(Fault::Lags(late)),
            () => None,
        }
    }
}
