//! What happened in a cell, in one sentence: what its viewers bore, why, and what was lost. It says nothing that
//! [`Why`], the metrics or the links' own counts do not.

use std::collections::BTreeMap;

use suiro_record::words::{Cause, Direction, Effect, LinkCause};
use suiro_record::{LinkTotals, Metrics, Trial};

use super::account::shares;
use super::told::LEAST_SHARE;
use super::wording::{count, label, rate, seconds, span, verb};
use super::{Explained, Why};
use crate::period::warm_up_ns;

/// One valid repetition of a cell.
#[derive(Clone, Copy)]
pub struct One<'a> {
    /// How it went.
    pub trial: &'a Trial,
    /// Its metrics.
    pub metrics: &'a Metrics,
    /// What its records say about causes.
    pub why: &'a Why,
}

/// One sentence about the valid repetitions of a cell, without its end; `None` if there is nothing to say.
pub fn brief(trials: &[One]) -> Option<String> {
    let seen = interruptions(trials);
    let waited_ns = seen.iter().fold(0, |sum: i64, (_, ns)| sum.saturating_add(*ns));
    let mut clauses: Vec<String> = seen.into_iter().map(|(clause, _)| clause).collect();
    clauses.extend(other(trials, waited_ns));
    clauses.extend(fall(trials));
    if clauses.is_empty() {
        clauses.extend(carried(trials));
    }
    clauses.extend(lost(trials));
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Stalls and freezes, and how long they were in all.
fn interruptions(trials: &[One]) -> Vec<(String, i64)> {
    // If one repetition did not measure it, the sum is not known.
    let metric = |name: &str| {
        let values = trials.iter().map(|one| *one.metrics.get(name)?);
        values.reduce(|a, b| Some(a? + b?)).flatten()
    };
    let stalls = metric("player.stalls");
    let freezes = metric("video.freezes").filter(|_| stalls.is_none());
    let (stalled, frozen) = (metric("player.stall_s"), metric("video.freeze_s"));
    let kinds =
        [(Effect::Stall, "stall", stalls, stalled), (Effect::Freeze, "freeze", freezes, frozen)];
    let clause = |(effect, noun, counted, lasted): (Effect, &str, Option<f64>, Option<f64>)| {
        let found = Found::of(trials, |it| it.effect == effect);
        if found.all.is_empty() {
            // One that is too short to be explained is counted all the same.
            let none = counted.is_some_and(|counted| counted == 0.0);
            let many = match trials.len() {
                1 => String::new(),
                n => format!(" in {n} repetitions"),
            };
            return none.then(|| (format!("no {noun}{many}"), 0));
        }
        Some((found.told(noun, counted.zip(lasted)), found.in_all()))
    };
    kinds.into_iter().filter_map(clause).collect()
}

/// Effects of one kind in all repetitions, without those that had ended with the warm-up.
struct Found<'a> {
    all: Vec<&'a Explained>,
    /// When the warm-up ended.
    from_ns: i64,
    /// Repetitions that had one, and all of them.
    had: (usize, usize),
    /// Whether a trial has several viewers.
    several: bool,
}

impl<'a> Found<'a> {
    fn of(trials: &[One<'a>], wanted: impl Fn(&Explained) -> bool) -> Self {
        let from_ns = trials.iter().map(|one| warm_up_ns(one.trial)).max().unwrap_or(0);
        let counts = |it: &&Explained| wanted(it) && it.length_after(from_ns).is_some();
        let own = |one: &One<'a>| one.why.effects.iter().filter(counts).collect();
        let found: Vec<Vec<&Explained>> = trials.iter().map(own).collect();
        let viewers = |why: &Why| why.subjects.iter().filter(|it| it.is_viewer).count();
        Self {
            had: (found.iter().filter(|own| !own.is_empty()).count(), trials.len()),
            several: trials.iter().any(|one| viewers(one.why) > 1),
            all: found.into_iter().flatten().collect(),
            from_ns,
        }
    }

    /// How long an effect was after the warm-up.
    fn length(&self, it: &Explained) -> i64 {
        it.length_after(self.from_ns).unwrap_or(0)
    }

    /// When that began.
    fn begins(&self, it: &Explained) -> i64 {
        if self.from_ns == 0 { it.seen_ns() } else { it.seen_ns().max(self.from_ns) }
    }

    fn in_all(&self) -> i64 {
        super::total(self.all.iter().map(|it| self.length(it)))
    }

    fn longest(&self) -> Option<&'a Explained> {
        self.all.iter().copied().max_by_key(|it| self.length(it))
    }

    /// `3 stalls, 4.5 s in all, the longest 2.0 s at 14.0 s because the link fell …`. Number and seconds are those of the
    /// metrics, where there are any: they count what is too short to be explained, too. Of several viewers they are means.
    /// Metrics that are less than what is explained are of something else, and do not count.
    fn told(&self, noun: &str, metrics: Option<(f64, f64)>) -> String {
        let Some(longest) = self.longest() else { return String::new() };
        let explained = (self.all.len(), self.in_all());
        let (number, in_all) = match metrics {
            Some((number, seconds)) if self.had.1 == 1 && !self.several => {
                (number as usize, (seconds * 1e9).round() as i64)
            }
            _ => explained,
        };
        let is_less = number < explained.0 || in_all < explained.1;
        let (number, in_all) = if is_less { explained } else { (number, in_all) };
        let times = count(number, noun);
        let opening = match (self.had, number) {
            ((_, 1), 1) => format!("{times} of"),
            ((_, 1), _) => format!("{times}, {} in all, the longest", span(in_all)),
            ((had, of), 1) => format!("{times} in {had} of {of} repetitions,"),
            ((had, of), _) => format!("{times} in {had} of {of} repetitions, the longest"),
        };
        let length = span(self.length(longest));
        format!("{opening} {length}{}", self.where_and_why(longest, self.begins(longest)))
    }

    /// ` of viewer2 at 14.0 s because …`
    fn where_and_why(&self, it: &Explained, at_ns: i64) -> String {
        let whose = if self.several { format!(" of {}", it.subject) } else { String::new() };
        format!("{whose} at {}{}", seconds(at_ns), because(it))
    }
}

/// The cause, only if the records show it.
fn because(it: &Explained) -> String {
    match &it.because {
        Some(clause) => format!(" because {clause}"),
        None if it.cause() == Cause::Unknown => ", cause not known".into(),
        None => String::new(),
    }
}

/// What else viewers bore: the longest, if it was longer than all interruptions.
fn other(trials: &[One], waited_ns: i64) -> Option<String> {
    let kinds = [Effect::Late, Effect::Missing, Effect::Startup, Effect::FrameRate];
    let found = Found::of(trials, |it| kinds.contains(&it.effect));
    let longest = found.longest()?;
    let length = Some(found.length(longest)).filter(|ns| *ns > waited_ns)?;
    let opening = format!("{} {}", verb(longest.effect), span(length));
    Some(format!("{opening}{}", found.where_and_why(longest, found.begins(longest))))
}

/// The fall of the quality that lasted longest, down to the lowest that it led to by the same cause.
fn fall(trials: &[One]) -> Option<String> {
    let found = Found::of(trials, |it| it.change.is_some());
    let first = found.longest()?;
    let change = first.change.as_ref()?;
    let of = trials.iter().find(|one| one.why.effects.iter().any(|it| std::ptr::eq(it, first)))?;
    let within = |it: &&Explained| {
        it.subject == first.subject
            && (first.from_ns..first.to_ns).contains(&it.from_ns)
            && it.cause() == first.cause()
    };
    let lower = of.why.effects.iter().filter(within).filter_map(|it| it.change.as_ref());
    let lowest = lower.min_by_key(|change| change.level).unwrap_or(change);
    let often = match found.had {
        (_, 1) => String::new(),
        (had, all) => format!(" in {had} of {all} repetitions, for longest"),
    };
    let (from, to) = (&change.from, &lowest.to);
    let opening = match change.seen_ns {
        Some(_) => format!("quality fell{often} from {from} to {to}"),
        None => format!("{to} was requested instead of {from}{often}"),
    };
    // No length stands here.
    Some(format!("{opening}{}", found.where_and_why(first, first.seen_ns())))
}

/// Without viewers: what was carried, and what limited it for longest.
fn carried(trials: &[One]) -> Option<String> {
    let rates = trials.iter().filter_map(|one| *one.metrics.get("flow.goodput_mean_bps")?);
    let (sum, n) = rates.fold((0.0, 0.0), |(sum, n), bps| (sum + bps, n + 1.0));
    if n == 0.0 || sum <= 0.0 {
        return None;
    }
    let goodput = format!("goodput {}", rate(sum / n));
    let limits = trials.iter().flat_map(|one| {
        let limits = one.why.subjects.iter().flat_map(|it| &it.limits);
        let from_ns = warm_up_ns(one.trial);
        limits.filter_map(move |limit| Some((limit.cause, limit.length_after(from_ns)? as f64)))
    });
    match shares(limits).first() {
        Some((cause, share)) if *cause != Cause::Unknown => {
            let percent = share * 100.0;
            Some(format!("{goodput}, limited {percent:.0} % of the time by: {}", label(*cause)))
        }
        _ => Some(goodput),
    }
}

/// Packets dropped, by cause.
type Dropped = BTreeMap<LinkCause, u64>;

/// What the links lost: of the direction that lost most.
fn lost(trials: &[One]) -> Option<String> {
    let mut ways: BTreeMap<(&str, Direction), (u64, Dropped)> = BTreeMap::new();
    for totals in trials.iter().flat_map(|one| &one.trial.links) {
        let (packets, dropped) = ways.entry((&totals.link, totals.direction)).or_default();
        *packets = packets.saturating_add(decided(totals));
        for (cause, number) in &totals.dropped {
            let sum = dropped.entry(*cause).or_default();
            *sum = sum.saturating_add(*number);
        }
    }
    let several = ways.keys().any(|(link, _)| ways.keys().any(|(other, _)| other != link));
    let all = |dropped: &Dropped| {
        dropped.values().fold(0, |sum: u64, number| sum.saturating_add(*number))
    };
    let carried = ways.into_iter().filter(|(_, (packets, _))| *packets > 0);
    let ((link, direction), (packets, dropped)) =
        carried.max_by_key(|(_, (_, dropped))| all(dropped))?;
    if all(&dropped) == 0 {
        return Some("no packet was lost".into());
    }
    let mut causes: Vec<(LinkCause, u64)> = dropped.into_iter().filter(|(_, n)| *n > 0).collect();
    causes.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let told = |(cause, number): &(LinkCause, u64)| {
        format!("{} {}", percent(*number as f64 / packets as f64), place(*cause))
    };
    let [first, rest @ ..] = &causes[..] else { return None };
    let mut text = told(first).replacen('%', "% of packets were lost", 1);
    let worth = |(_, number): &&(LinkCause, u64)| *number as f64 >= LEAST_SHARE * packets as f64;
    text.extend(rest.iter().find(worth).map(|second| format!(" and {}", told(second))));
    text.push_str(&match (several, direction) {
        (false, Direction::Down) => String::new(),
        (false, _) => format!(" ({direction})"),
        (true, _) => format!(" ({link} {direction})"),
    });
    Some(text)
}

/// Packets that were delivered or dropped: those still in the link count as neither.
fn decided(totals: &LinkTotals) -> u64 {
    totals.delivered.saturating_add(totals.all_dropped())
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        percent @ 9.95.. => format!("{percent:.0} %"),
        percent @ 0.095.. => format!("{percent:.1} %"),
        percent @ 0.001.. => format!("{percent:.3} %"),
        _ => "less than 0.001 %".into(),
    }
}

/// Where or how packets were lost.
const fn place(cause: LinkCause) -> &'static str {
    match cause {
        LinkCause::Loss => "to the link's loss model",
        LinkCause::Queue => "in the queue",
        LinkCause::Aqm => "to the queue's management",
        LinkCause::Size => "as too large for the link",
        LinkCause::Retry => "after every retry on Wi-Fi",
        LinkCause::Lifetime => "because their lifetime on Wi-Fi was over",
        LinkCause::Collisions => "to collisions",
        LinkCause::Limit => "at a limit of the emulator",
        LinkCause::Duplicate | LinkCause::Corrupt => "on the link",
    }
}
