//! The main cause of an effect of real-time video as a clause with its numbers, and the rows that they were counted in.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::tables::LinkRow;
use suiro_record::words::{Cause, LinkCause, Verdict};

use super::drops::{Dropped, by_queue, was_sent};
use super::evidence::{Evidence, Rows};
use super::falls::{self, Fall};
use super::frames::Frame;
use super::links::Carried;
use super::realtime::Stream;
use super::switches::Switch;
use super::wording::{clause, count, milliseconds, rate, seconds, size, span};
use super::{Step, since};

/// A frame that is so many times as large as the median is worth a word.
const LARGE: i64 = 3;
/// A shorter time is written as 0 ms.
const LEAST_SHOWN_NS: i64 = 1_000_000;
/// A smaller share is written as 0 %.
pub(super) const LEAST_SHARE: f64 = 0.005;

/// A clause about a cause, with its numbers, and rows that show them.
pub(super) struct Told {
    pub clause: String,
    /// What else there is to say, behind the clause.
    pub more: String,
    pub steps: Vec<Step>,
    /// False if the records show nothing of the cause: the number that the clause would name is zero, or the cause is not
    /// known.
    pub is_shown: bool,
}

impl Told {
    pub fn new(clause: String, steps: Vec<Step>) -> Self {
        Self { clause, more: String::new(), steps, is_shown: true }
    }

    /// A cause without numbers.
    pub fn plain(cause: Cause) -> Self {
        let is_shown = cause != Cause::Unknown;
        Self { is_shown, ..Self::new(clause(cause).into(), Vec::new()) }
    }

    /// A cause whose own number is zero.
    pub fn nothing(cause: Cause) -> Self {
        Self { is_shown: false, ..Self::plain(cause) }
    }

    /// A sender that had nothing to send in a stretch of time.
    pub fn of_silence((from, to): (i64, i64)) -> Self {
        let nothing = clause(Cause::Application);
        Self::new(format!("{nothing} from {} to {}", seconds(from), seconds(to)), Vec::new())
    }

    /// All that there is to say.
    pub fn text(&self) -> String {
        format!("{}{}", self.clause, self.more)
    }

    /// The clause alone, if the records show it.
    pub fn because(&self) -> Option<String> {
        self.is_shown.then(|| self.clause.clone())
    }
}

/// How far back what held a sender up is looked for.
fn held_ns(data: &[Carried]) -> i64 {
    data.first().map_or(0, |way| way.rules.held_ns)
}

/// Packets of some flows that something holds for, in a stretch of time; further back if there are none in it.
fn chosen<'v>(
    data: &[Carried<'_, 'v>],
    (from, to): (i64, i64),
    holds: impl Fn(&LinkRow) -> bool,
) -> Rows<'v> {
    let within = |from: i64| {
        let rows = data.iter().flat_map(|way| way.within(from, to).iter().copied());
        rows.filter(|row| holds(row)).collect::<Vec<_>>()
    };
    let (mut from, mut found) = (from, within(from));
    if found.is_empty() {
        from = from.saturating_sub(held_ns(data));
        found = within(from);
    }
    Rows { rows: found, from, to }
}

/// What packets and their acknowledgements met on the links of a flow; `None` of a cause that is none of these. A trial ends at
/// `end_ns`.
pub(super) fn told_path(
    cause: Cause,
    (data, back): (&[Carried], &[Carried]),
    during: (i64, i64),
    end_ns: i64,
    records: &crate::Records,
) -> Option<Told> {
    let told = match cause {
        Cause::Outage => told_outage(data, during, end_ns, records),
        Cause::Delay | Cause::Jitter | Cause::Reordering => {
            told_slow(clause(cause), data, during, records)
        }
        Cause::AckPath => told_back(back, during, records),
        Cause::Loss | Cause::Corruption | Cause::Policer => {
            told_dropped(cause, data, during, records)
        }
        _ => return None,
    };
    // Packets that overtook one another need not have been slow.
    let otherwise = || match cause {
        Cause::Reordering => Told::plain(cause),
        _ => Told::nothing(cause),
    };
    Some(told.unwrap_or_else(otherwise))
}

/// What the link did to packets, with how many; `None` if it was none.
fn told_dropped(
    cause: Cause,
    data: &[Carried],
    during: (i64, i64),
    records: &crate::Records,
) -> Option<Told> {
    let (dropped, verb, how, filter) = match cause {
        // By what, its rows say.
        Cause::Loss => (Dropped::Lost, "lost", "", ""),
        Cause::Corruption => {
            (Dropped::Corrupted, "corrupted", "", "verdict=delivered,cause=corrupt")
        }
        Cause::Policer => (
            Dropped::Policed,
            "dropped",
            " above its rate, without a queue",
            "verdict=dropped,cause=queue,queue_packets<2",
        ),
        _ => return None,
    };
    let done = |row: &LinkRow| data.iter().find(|way| way.carries(row))?.way.dropped(row);
    let rows = chosen(data, during, |row| done(row) == Some(dropped));
    if rows.rows.is_empty() {
        return None;
    }
    let told = |rows: &[&LinkRow]| format!("the link {verb} {}{how}", count(rows.len(), "packet"));
    let clause = told(&rows.rows);
    let steps = match cause {
        Cause::Loss => {
            by_cause(rows).flat_map(|(filter, rows)| rows.steps(records, told, &filter)).collect()
        }
        _ => rows.steps(records, told, filter),
    };
    Some(Told::new(clause, steps))
}

/// Dropped packets by the cause that the link names, each with a filter that selects those of that cause. Of those whose
/// lifetime was over, the queue dropped the ones that were never sent.
pub(super) fn by_cause<'v>(rows: Rows<'v>) -> impl Iterator<Item = (String, Rows<'v>)> {
    let Rows { rows, from, to } = rows;
    let kind = |row: &LinkRow| {
        let sent = (row.cause == Some(LinkCause::Lifetime)).then(|| was_sent(row));
        (row.cause, sent)
    };
    let kinds: BTreeSet<(Option<LinkCause>, Option<bool>)> =
        rows.iter().map(|row| kind(row)).collect();
    kinds.into_iter().map(move |(cause, sent)| {
        let own = rows.iter().copied().filter(|row| kind(row) == (cause, sent)).collect();
        let cause = cause.map_or(String::new(), |cause| format!(",cause={cause}"));
        let attempts = match sent {
            Some(true) => ",attempts>0",
            Some(false) => ",attempts=0",
            None => "",
        };
        (format!("verdict=dropped{cause}{attempts}"), Rows { rows: own, from, to })
    })
}

/// The link on which packets were queued for most of a stretch of time.
fn busiest<'d, 'a, 'v>(
    ways: impl Iterator<Item = &'d Carried<'a, 'v>>,
    (from, to): (i64, i64),
) -> Option<&'d Carried<'a, 'v>>
where
    'v: 'a,
    'a: 'd,
{
    ways.max_by_key(|way| way.queued_ns(from, to))
}

/// The share of bytes that others had of the link on which packets were queued for most of a stretch of time.
pub(super) fn others(data: &[Carried], during: (i64, i64)) -> f64 {
    busiest(data.iter(), during).map_or(0.0, |way| {
        let range = way.slices.at(during.0)..way.slices.at(during.1) + 1;
        way.others(range)
    })
}

/// The last fall of the rate that was in force in a stretch of time; of several links that had one, of the one on which packets
/// were queued for most of it.
pub(super) fn last_fall(data: &[Carried], during: (i64, i64)) -> Option<Fall> {
    let of = |way: &Carried| falls::last_fall(&way.way.falls, during);
    let fallen = data.iter().filter(|way| of(way).is_some());
    of(busiest(fallen, during)?)
}

/// A fall of a link's rate, as a clause.
pub(super) fn told_fall(fall: &Fall) -> String {
    let (was, is) = (rate(fall.before_bps), rate(fall.after_bps));
    format!("the link fell from {was} to {is} at {}", seconds(fall.from_ns))
}

/// The longest time that packets waited for the link.
pub(super) fn told_waited(
    data: &[Carried],
    during: (i64, i64),
    records: &crate::Records,
) -> Option<Told> {
    let wait = |row: &LinkRow| row.dequeued_ns.map(|at| since(at, row.t_ns));
    let rows = chosen(data, during, |row| wait(row).is_some_and(|ns| ns >= LEAST_SHOWN_NS));
    let longest = |rows: &[&LinkRow]| rows.iter().filter_map(|row| wait(row)).max();
    let told = |ns: i64| format!("packets waited up to {}", milliseconds(ns));
    let clause = told(longest(&rows.rows)?);
    let of_flow = |rows: &[&LinkRow]| told(longest(rows).unwrap_or(0));
    let filter = format!("dequeued_ns-t_ns>{}", LEAST_SHOWN_NS - 1);
    let steps = rows.steps(records, of_flow, &filter);
    Some(Told::new(clause, steps))
}

/// The longest time that packets took from their service to the other end, and what is usual.
fn told_slow(
    what: &str,
    data: &[Carried],
    during: (i64, i64),
    records: &crate::Records,
) -> Option<Told> {
    let took = |row: &LinkRow| Some(since(row.scheduled_ns?, row.dequeued_ns?));
    let usual = data
        .iter()
        .map(|way| way.usual.at(during.0))
        .max()?
        .saturating_add(data.first().map_or(0, |way| way.rules.least_ns));
    let rows = chosen(data, during, |row| took(row).is_some_and(|ns| ns > usual));
    let told = |rows: &[&LinkRow]| {
        let longest = rows.iter().copied().max_by_key(|row| took(row))?;
        let own = data.iter().find(|way| way.carries(longest))?.usual.at(during.0);
        Some(format!(
            "{what}: packets took up to {} on it; {} is usual",
            milliseconds(took(longest)?),
            milliseconds(own)
        ))
    };
    let clause = told(&rows.rows)?;
    let filter = format!("scheduled_ns-dequeued_ns>{usual}");
    let steps = rows.steps(records, |rows| told(rows).unwrap_or_default(), &filter);
    Some(Told::new(clause, steps))
}

/// When a link carried nothing, and for how long.
fn told_outage(
    data: &[Carried],
    (from, to): (i64, i64),
    end_ns: i64,
    records: &crate::Records,
) -> Option<Told> {
    let outages = data.iter().flat_map(|way| way.way.outages(end_ns));
    let meets = |(a, b): &(i64, i64)| *a < to && *b > from.saturating_sub(held_ns(data));
    let (a, b) = outages.filter(meets).max_by_key(|(a, b)| since(*b, *a))?;
    let clause = format!("the link carried nothing for {} at {}", span(since(b, a)), seconds(a));
    let rows = chosen(data, (from.min(a), b), |_| true);
    let steps = rows.steps(records, |_| "packets arrived at the link in that time".into(), "");
    Some(Told::new(clause, steps))
}

/// Acknowledgements and requests that were lost or waited.
fn told_back(back: &[Carried], during: (i64, i64), records: &crate::Records) -> Option<Told> {
    let lost = chosen(back, during, |row| row.verdict == Verdict::Dropped);
    if !lost.rows.is_empty() {
        let told = |rows: &[&LinkRow]| {
            let packets = count(rows.len(), "packet");
            let were = if rows.len() == 1 { "was" } else { "were" };
            format!("{packets} of acknowledgements and requests {were} lost on the path back")
        };
        let clause = told(&lost.rows);
        let steps = lost.steps(records, told, "verdict=dropped");
        return Some(Told::new(clause, steps));
    }
    let waited = told_waited(back, during, records).map(|told| {
        let back = |clause: &str| clause.replace("packets", "acknowledgements and requests");
        let named = |step: Step| Step { what: back(&step.what), ..step };
        Told::new(back(&told.clause), told.steps.into_iter().map(named).collect())
    });
    let slow = told_slow("the path back was slow", back, during, records);
    slow.or(waited)
}

impl Stream<'_, '_> {
    /// The main cause of an effect that some frames had.
    pub fn told(
        &self,
        cause: Cause,
        frames: &[Frame],
        data: &[Carried],
        during: (i64, i64),
    ) -> Told {
        let told = match cause {
            Cause::LinkRate | Cause::Competing | Cause::Bufferbloat | Cause::RateStep => {
                let mut told = self.told_queue(cause, data, during);
                if cause == Cause::LinkRate {
                    told.more.push_str(&self.told_large(frames));
                }
                Some(told)
            }
            Cause::OversizedRung => self.told_rung(during),
            Cause::QualityChange => self.told_switch(frames),
            Cause::ServerProcessor => {
                let busy = || self.told_busy(frames).map(|clause| Told::new(clause, Vec::new()));
                self.told_absence(&self.senders, during).or_else(busy)
            }
            Cause::ClientProcessor => self.told_absence(&self.receivers, during),
            _ => {
                let (ways, end_ns) = ((data, &*self.back), self.slices.end_ns);
                self.told_ends(cause, frames, during)
                    .or_else(|| told_path(cause, ways, during, end_ns, self.records))
            }
        };
        told.unwrap_or_else(|| Told::plain(cause))
    }

    /// What the sender and the viewer did themselves; nothing if its number is zero.
    fn told_ends(&self, cause: Cause, frames: &[Frame], (from, to): (i64, i64)) -> Option<Told> {
        let clause = match cause {
            Cause::EncoderChoice => {
                return Some(self.told_left_out(frames).map_or_else(
                    || Told::nothing(cause),
                    |(clause, step)| Told::new(clause, step.into_iter().collect()),
                ));
            }
            Cause::Encoder => {
                let at =
                    frames.iter().map(|frame| frame.captured_ns).find(|at| self.overshoots(*at))?;
                let begun = at.saturating_sub(1_000_000_000);
                let (made, set) = (self.made_bps(begun, at)?, self.encoder_bps(begun, at)?);
                format!("the encoder made {} and was set to {}", rate(made), rate(set))
            }
            Cause::Pacing => {
                let bytes = self.held_bytes(from, to);
                if bytes <= 0 {
                    return Some(Told::nothing(cause));
                }
                let held = |frame: &Frame| Some(since(frame.row.sent_ns?, frame.captured_ns));
                // Held packets of a frame that has begun to leave are on their way by its own times.
                let longest =
                    frames.iter().filter_map(held).max().filter(|ns| *ns > self.rules.least_ns);
                let longest = longest.map(|ns| format!(", and a frame for {}", milliseconds(ns)));
                format!(
                    "the sender's pacing held up to {} back{}{}",
                    size(bytes),
                    longest.unwrap_or_default(),
                    self.told_large(frames)
                )
            }
            Cause::JitterBuffer => {
                let held =
                    |frame: &Frame| Some(since(frame.row.displayed_ns?, frame.row.received_ns?));
                let longest = frames.iter().filter_map(held).max()?;
                if longest < LEAST_SHOWN_NS {
                    return Some(Told::nothing(cause));
                }
                format!("the jitter buffer held frames for up to {}", milliseconds(longest))
            }
            Cause::Unknown => {
                let clause = "not known: table `layers` of both hosts may show it".into();
                return Some(Told { clause, ..Told::nothing(cause) });
            }
            _ => return None,
        };
        Some(Told::new(clause, Vec::new()))
    }

    /// A frame that is much larger than others, if the slowest link on its way needs long for it.
    fn told_large(&self, frames: &[Frame]) -> String {
        let bytes = |frame: &Frame| frame.row.encoded_bytes.filter(|bytes| *bytes > 0);
        let largest = frames.iter().max_by_key(|frame| bytes(frame));
        let told = largest.and_then(|frame| {
            let own = bytes(frame)?;
            let rates = self.data.iter().filter_map(|way| way.way.rate_bps(frame.captured_ns));
            let bps = rates.filter(|bps| *bps > 0.0).min_by(f64::total_cmp)?;
            let takes = (own as f64 * 8e9 / bps) as i64;
            let is_large =
                takes > self.rules.queued_ns && own > self.usual.bytes.saturating_mul(LARGE);
            is_large.then(|| {
                let (size, takes) = (size(own), milliseconds(takes));
                format!("; frame {} of {size} takes {takes} at {}", frame.row.frame, rate(bps))
            })
        });
        told.unwrap_or_default()
    }

    fn told_queue(&self, cause: Cause, data: &[Carried], during: (i64, i64)) -> Told {
        let mut told = Told::plain(cause);
        if let (Cause::RateStep, Some(fall)) = (cause, last_fall(data, during)) {
            told.clause = told_fall(&fall);
        }
        if matches!(cause, Cause::Competing | Cause::Bufferbloat) {
            let others = others(data, during);
            told.clause.push_str(&format!(", {:.0} % of its bytes", others * 100.0));
            told.is_shown = others >= LEAST_SHARE;
        }
        if let Some(waited) = told_waited(data, during, self.records) {
            told.more.push_str(&format!("; {}", waited.clause));
            told.steps.extend(waited.steps);
        }
        let within = data.iter().flat_map(|way| way.within(during.0, during.1));
        let rows: Vec<&LinkRow> = within.copied().filter(|row| by_queue(row)).collect();
        if !rows.is_empty() {
            let dropped =
                |rows: &[&LinkRow]| format!("the queue dropped {}", count(rows.len(), "packet"));
            told.more.push_str(&format!("; {}", dropped(&rows)));
            let rows = Rows { rows, from: during.0, to: during.1 };
            for (filter, rows) in by_cause(rows) {
                told.steps.extend(rows.steps(self.records, dropped, &filter));
            }
        }
        told
    }

    fn told_rung(&self, (_, to): (i64, i64)) -> Option<Told> {
        let (quality, carried) = self.newest(to).and_then(|frame| self.too_high(frame))?;
        let (quality, carried) = (rate(quality), rate(carried));
        let clause = format!("the viewer played {quality}, and the link carries {carried}");
        Some(Told::new(clause, Vec::new()))
    }

    /// The change of quality in which most of some frames were left out.
    fn told_switch(&self, frames: &[Frame]) -> Option<Told> {
        let mut counts: BTreeMap<i64, (usize, &Switch)> = BTreeMap::new();
        for switch in frames.iter().filter_map(|it| self.switches.left_out(it.row.frame)) {
            counts.entry(switch.last.frame).or_insert((0, switch)).0 += 1;
        }
        let (left_out, switch) = counts.into_values().max_by_key(|(left_out, _)| *left_out)?;
        let (last, first) = (switch.last, switch.first);
        let (was, is) = (rate(last.rung_bps? as f64), rate(first.rung_bps? as f64));
        let what = format!("the viewer changed from {was} to {is}");
        let clause = format!("{what}, and left out {} between them", count(left_out, "frame"));
        let end = first.frame.saturating_add(1);
        let own = format!("endpoint={},frame={}..{end}", self.player.name, last.frame);
        let evidence = Evidence::of("frames", &self.records.frames, last, first);
        let step = evidence.map(|evidence| Step { what, evidence: evidence.only(own) });
        Some(Told::new(clause, step.into_iter().collect()))
    }

    fn told_absence(
        &self,
        absences: &[super::endpoints::Absence],
        (from, to): (i64, i64),
    ) -> Option<Told> {
        let from = from.saturating_sub(self.rules.held_ns);
        let absence = absences.iter().max_by_key(|absence| absence.overlap_ns(from, to))?;
        if absence.overlap_ns(from, to) == 0 {
            return None;
        }
        let length = span(since(absence.to_ns, absence.from_ns));
        let clause = format!(
            "{} did not run for {length} at {}",
            absence.endpoint,
            seconds(absence.from_ns)
        );
        let step = absence.evidence(self.records);
        let steps = step.map(|evidence| Step { what: clause.clone(), evidence });
        Some(Told::new(clause, steps.into_iter().collect()))
    }
}
