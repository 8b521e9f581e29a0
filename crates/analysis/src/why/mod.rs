//! Why: what limited each flow at each moment, and what each stall, freeze, late stretch and fall of the quality came
//! from, with the rows that show it.
//!
//! A flow's time is cut into slices of [`SLICE_NS`]. Each gets one cause, by rules in the order of T-RAT (Zhang, Breslau,
//! Paxson, Shenker: On the Characteristics and Origins of Internet Flow Rates, SIGCOMM 2002). T-RAT infers from packets
//! what the kernel of a sender knows: Linux's chronographs (`tcp_chrono_start` in `net/ipv4/tcp_output.c`) account for
//! the time in which the receive window and the send buffer held it back. The link's record decides the rest: whether its
//! queue was empty, who filled it, and what it lost.
//!
//! An effect is followed back through the media, from the frame to what carried it, and inherits the causes of the
//! flow's slices in the time that it took.

mod asked;
mod between;
mod brief;
mod caches;
mod encoded;
mod endpoints;
mod evidence;
mod frames;
mod lasting;
mod links;
mod path;
mod realtime;
mod rows;
mod rules;
mod segments;
mod sending;
mod slices;
mod sockets;
mod told;
mod transfers;
pub mod wording;

use suiro_record::words::{Cause, Direction, Effect};

use crate::view::View;

pub use between::between;
pub use brief::{One, brief};
pub use evidence::Evidence;
pub use rows::rows;
pub use rules::{Change as RuleChange, Rules};
pub use wording::label;

use links::{Carried, Links};
use realtime::Stream;
use segments::Story;
use slices::Slices;

/// Length of a slice, in which a flow has one cause; of a trial of more than half an hour, the least.
pub const SLICE_NS: i64 = 50_000_000;

/// Most flows of a trial that are explained; the busiest are. More would be of a crowd, whose mean is what counts.
pub const FLOWS_MAX: usize = 64;

/// Most effects of a trial that are explained; further ones are counted.
pub const EFFECTS_MAX: usize = 1000;

/// What the records of a trial say about causes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Why {
    /// Viewers, and flows that belong to no viewer, by name.
    pub subjects: Vec<Subject>,
    /// What viewers had to bear, in the order of time.
    pub effects: Vec<Explained>,
    /// What the media of viewers crossed, viewer by viewer.
    pub crossed: Vec<Crossed>,
    /// Flows beyond [`FLOWS_MAX`] and effects beyond [`EFFECTS_MAX`]: not explained.
    pub left_out: usize,
}

/// A viewer or a flow, and what limited it.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// The viewer's endpoint, or the flow as table `tcp` or `link` names it.
    pub name: String,
    /// True for a viewer.
    pub is_viewer: bool,
    /// What limited it, in order; gaps where it did not exist.
    pub limits: Vec<Limit>,
}

/// A stretch of time in which one cause limited a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// When it began.
    pub from_ns: i64,
    /// When it ended.
    pub to_ns: i64,
    /// The cause.
    pub cause: Cause,
    /// Where that is recorded.
    pub evidence: Vec<Evidence>,
}

/// The directions of links that a viewer's media crossed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossed {
    /// The viewer.
    pub subject: String,
    /// From the sender to the viewer, each link with its direction.
    pub data: Vec<(String, Direction)>,
    /// From the viewer back to the sender.
    pub back: Vec<(String, Direction)>,
}

impl Crossed {
    fn new(subject: &str, data: &[Carried], back: &[Carried]) -> Self {
        let of = |ways: &[Carried]| {
            let rows = ways.iter().filter_map(|way| way.rows.first());
            rows.map(|row| (row.link.to_string(), row.direction)).collect()
        };
        Self { subject: subject.to_owned(), data: of(data), back: of(back) }
    }
}

/// An effect and its causes.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The viewer.
    pub subject: String,
    /// What it was.
    pub effect: Effect,
    /// When it began.
    pub from_ns: i64,
    /// When it ended.
    pub to_ns: i64,
    /// Causes and their shares, the greatest first; the shares make 1.
    pub shares: Vec<(Cause, f64)>,
    /// From the effect back to its cause.
    pub chain: Vec<Step>,
    /// All of it in one sentence.
    pub sentence: String,
    /// The main cause as a clause with its numbers; none if it is not known, or if the number that it names is zero.
    pub because: Option<String>,
    /// From what to what the quality fell; none of other effects.
    pub change: Option<Change>,
}

/// A fall of the quality.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What it was, such as `1080p`.
    pub from: String,
    /// What it became.
    pub to: String,
    /// Orders what `to` may be: less is worse.
    pub level: i64,
}

/// A step of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What happened.
    pub what: String,
    /// Where that is recorded.
    pub evidence: Evidence,
}

impl Subject {
    /// The share of its time that each cause limited, the greatest first.
    pub fn shares(&self) -> Vec<(Cause, f64)> {
        shares(self.limits.iter().map(|limit| (limit.cause, length(limit))))
    }
}

impl Explained {
    /// The cause with the greatest share.
    pub fn cause(&self) -> Cause {
        self.shares.first().map_or(Cause::Unknown, |(cause, _)| *cause)
    }
}

fn length(limit: &Limit) -> f64 {
    limit.to_ns.saturating_sub(limit.from_ns) as f64
}

/// Everything that the records of a trial say about causes.
pub(crate) fn of(view: &View<'_>) -> Why {
    let slices = Slices::new(view.duration_ns);
    let links = Links::new(view, slices);
    let (mut subjects, found) = transfers::subjects(view, &links, slices);
    let streams = realtime::streams(view, &links, slices);
    let stories = segments::stories(view, &links, &found);
    subjects.extend(streams.iter().map(Stream::subject));
    let mut effects: Vec<Explained> = stories.iter().flat_map(Story::explain).collect();
    effects.extend(streams.iter().flat_map(Stream::effects));
    let crossed =
        stories.iter().map(Story::crossed).chain(streams.iter().map(Stream::crossed)).collect();
    subjects.sort_by(|a, b| (!a.is_viewer, &a.name).cmp(&(!b.is_viewer, &b.name)));
    effects.sort_by(|a, b| (a.from_ns, &a.subject).cmp(&(b.from_ns, &b.subject)));
    let left_out = found.left_out + effects.len().saturating_sub(EFFECTS_MAX);
    effects.truncate(EFFECTS_MAX);
    Why { subjects, effects, crossed, left_out }
}

/// The other direction of a flow.
fn turned(name: &str) -> Option<String> {
    let (protocol, ends) = name.split_once(' ')?;
    let (from, to) = ends.split_once('>')?;
    Some(format!("{protocol} {to}>{from}"))
}

/// From one time to another; times come from files.
const fn since(to_ns: i64, from_ns: i64) -> i64 {
    to_ns.saturating_sub(from_ns)
}

/// A sum of numbers that come from files.
fn total(numbers: impl Iterator<Item = i64>) -> i64 {
    numbers.fold(0, i64::saturating_add)
}

/// Weights by cause as shares of their sum, the greatest first.
fn shares(weights: impl Iterator<Item = (Cause, f64)>) -> Vec<(Cause, f64)> {
    let mut sums: Vec<(Cause, f64)> = Vec::new();
    for (cause, weight) in weights {
        match sums.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum += weight,
            None => sums.push((cause, weight)),
        }
    }
    let whole: f64 = sums.iter().map(|(_, sum)| sum).sum();
    sums.retain(|(_, sum)| *sum > 0.0);
    sums.iter_mut().for_each(|(_, sum)| *sum /= whole);
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    sums
}
