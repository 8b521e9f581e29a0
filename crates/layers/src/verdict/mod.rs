//! The verdict: which part of the path lost or delayed packets, and why, in a sentence.

mod cause;

use serde::Serialize;

use crate::account::{Account, Delay, Hop};
use crate::event::{Point, Recording};
use crate::matching::{Matched, Side, side};

pub use cause::Cause;

/// A part of the path is named for its loss from this share on.
const LOSS_LEAST: f64 = 0.001;
/// A part of the path is named for its delay from this mean on, …
const DELAY_LEAST_NS: f64 = 5e6;
/// … if it is this share of the total delay.
const DELAY_SHARE: f64 = 0.3;

/// What a part of the path did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// It lost packets.
    Lost {
        /// Packets for UDP, bytes for TCP.
        count: u64,
        /// Share of what reached its beginning.
        share: f64,
    },
    /// It delayed what got through.
    Delayed {
        /// How long.
        delay: Delay,
        /// Share of the total delay, from the first point to the last, as means.
        share: f64,
    },
}

/// One part of the path that caused loss or delay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The direction's name.
    pub flow: String,
    /// The host; `None` for loss or delay between the hosts, unless one of them reports the drop.
    pub host: Option<String>,
    /// `send`, `receive` or `between`.
    pub part: &'static str,
    /// The beginning of the part.
    pub from: Point,
    /// Its end.
    pub to: Point,
    /// What it did.
    pub deed: Deed,
    /// Why.
    pub cause: Cause,
    /// The whole verdict as text.
    pub sentence: String,
}

/// The inputs of a verdict: a direction's account, its passages and the hosts' recordings.
pub struct Evidence<'a> {
    /// The account.
    pub account: &'a Account,
    /// The passages that it was computed from.
    pub matched: &'a Matched,
    /// The host that sends.
    pub sender: Option<&'a Recording>,
    /// The host that receives.
    pub receiver: Option<&'a Recording>,
}

/// All parts that caused loss, largest first, then those that caused delay. Empty if nothing was lost and nothing was
/// slow. Delays below the clocks' error are not considered.
pub fn verdicts(evidence: &Evidence) -> Vec<Verdict> {
    let account = evidence.account;
    let mut losses: Vec<(&Hop, f64)> =
        account.hops.iter().filter_map(|hop| lost(hop, account)).collect();
    losses.sort_by_key(|(hop, _)| std::cmp::Reverse(hop.lost));
    let losses = losses.into_iter().map(|(hop, share)| {
        let deed = Deed::Lost { count: hop.lost, share };
        verdict(evidence, hop, deed, cause::of_loss(evidence, hop))
    });
    let whole = whole_delay(account);
    let mut delays: Vec<(&Hop, Delay, f64)> =
        account.hops.iter().filter_map(|hop| delayed(hop, whole)).collect();
    delays.sort_by(|a, b| b.1.mean_ns.total_cmp(&a.1.mean_ns));
    let delays = delays.into_iter().map(|(hop, delay, share)| {
        verdict(evidence, hop, Deed::Delayed { delay, share }, cause::of_delay(evidence, hop))
    });
    losses.chain(delays).collect()
}

fn lost<'a>(hop: &'a Hop, account: &Account) -> Option<(&'a Hop, f64)> {
    let sent = account.sent.max(hop.entered).max(1);
    let share = hop.lost as f64 / sent as f64;
    (hop.lost > 0 && share >= LOSS_LEAST).then_some((hop, share))
}

/// Sum of the means of all parts, as far as they are certain.
fn whole_delay(account: &Account) -> f64 {
    let certain = account.hops.iter().filter_map(|hop| hop.delay.filter(Delay::is_certain));
    certain.map(|delay| delay.mean_ns).sum()
}

fn delayed(hop: &Hop, whole_ns: f64) -> Option<(&Hop, Delay, f64)> {
    let delay = hop.delay.filter(Delay::is_certain)?;
    let share = delay.mean_ns / whole_ns;
    (delay.mean_ns >= DELAY_LEAST_NS && share >= DELAY_SHARE).then_some((hop, delay, share))
}

fn verdict(evidence: &Evidence, hop: &Hop, deed: Deed, cause: Cause) -> Verdict {
    let account = evidence.account;
    let (host, part) = match side_of(hop, &deed) {
        Some(Side::Sender) => (account.sender.clone(), "send"),
        Some(Side::Receiver) => (account.receiver.clone(), "receive"),
        None => (None, "between"),
    };
    let place = match &host {
        Some(host) => format!("host {host}, {part}, {} → {}", place(hop.from), place(hop.to)),
        None => format!(
            "between {} and {}, {} → {}",
            account.sender.as_deref().unwrap_or("the sender"),
            account.receiver.as_deref().unwrap_or("the receiver"),
            place(hop.from),
            place(hop.to)
        ),
    };
    let what = match &deed {
        Deed::Lost { share, .. } => format!("{:.1} % lost", share * 100.0),
        Deed::Delayed { delay, .. } => format!(
            "{:.1} ms of delay on average, {:.1} ms at most",
            delay.mean_ns / 1e6,
            delay.max_ns as f64 / 1e6
        ),
    };
    let reason = cause.reason_in_words().map_or(String::new(), |reason| format!(" ({reason})"));
    let sentence = format!("{place}: {what}{reason}: {cause}");
    let (from, to) = (hop.from, hop.to);
    Verdict { flow: account.flow.clone(), host, part, from, to, deed, cause, sentence }
}

/// The side that a part of the path belongs to. Losses between the hosts belong to the host that reports having dropped
/// most of them: the receiver, before its device's softirq.
fn side_of(hop: &Hop, deed: &Deed) -> Option<Side> {
    if side(hop.from) == side(hop.to) {
        return Some(side(hop.from));
    }
    let Deed::Lost { count, .. } = deed else { return None };
    let (most, reported) = hop.reported_by.iter().max_by_key(|(_, reported)| **reported)?;
    (*reported > count / 2).then_some(*most)
}

/// A point's displayed name.
pub fn place(point: Point) -> &'static str {
    match point {
        Point::SendCall | Point::ReceiveCall => "system call",
        Point::SendTransport => "UDP",
        Point::SendIp => "IP",
        Point::SendLink => "link",
        Point::SendQdisc => "queue discipline",
        Point::SendDriver => "driver",
        Point::ReceiveDevice => "device",
        Point::ReceiveIp => "IP",
        Point::ReceiveLocal => "UDP or TCP",
        Point::ReceiveSocket => "socket queue",
        Point::Dropped => "dropped",
    }
}
