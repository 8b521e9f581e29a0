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

mod account;
mod asked;
mod behind;
mod between;
mod blocking;
mod brief;
mod caches;
mod connections;
mod drops;
mod encoded;
mod endpoints;
mod evidence;
pub mod falls;
mod frames;
mod lasting;
mod links;
mod low;
mod paced;
mod path;
mod queues;
mod realtime;
mod rows;
mod rules;
mod rungs;
mod segments;
mod sender;
mod sending;
mod sessions;
mod slices;
mod sockets;
mod switches;
mod told;
mod traces;
mod transfers;
mod turns;
mod upstream;
mod usual;
pub mod wording;

use crate::view::View;

pub use account::{
    Change, Crossed, EFFECTS_MAX, Explained, FLOWS_MAX, Limit, Subject, Why, covered_ns,
};
pub use between::between;
pub use brief::{One, brief};
pub use evidence::{Evidence, Step};
pub use rows::rows;
pub use rules::{Change as RuleChange, Rules};
pub use wording::label;

use links::Links;
use realtime::Stream;
use segments::Story;
use slices::Slices;

/// Length of a slice, in which a flow has one cause; of a trial of more than half an hour, the least.
pub const SLICE_NS: i64 = 50_000_000;

/// Everything that the records of a trial say about causes.
pub(crate) fn of<'v>(view: &'v View<'_>) -> &'v Why {
    view.why.get_or_init(|| explain(view))
}

fn explain(view: &View<'_>) -> Why {
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
