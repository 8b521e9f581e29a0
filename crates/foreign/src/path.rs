//! What the path between two captures did in one direction: which packets it lost, held or carried, of all flows.

use suiro_record::words::Cause;

use crate::hole::{AROUND_NS, BY_CHANCE, Hole, OUTAGE_MIN};
use crate::media::{Media, Unit};
use crate::model::Evidence;
use crate::numbers::{between, bit_rate, quantile};
use crate::packets::{Capture, Way};
use crate::pair::{Crossing, Passage};
use suiro_analysis::why::wording::{count, rate, span};

/// Less delay above the usual is no queue.
const QUEUE_NS: i64 = 30_000_000;
/// An acknowledgement that is later than this holds up its sender.
const LATE_NS: i64 = 150_000_000;
/// Losses of which this share came behind a long queue are its overflow.
const MOST: f64 = 0.8;
/// A path that became longer may lose this share of the packets, at random.
const FEW_LOST: f64 = 0.05;
/// The path carried nothing if it carried nothing for this share of a gap.
const SILENT: f64 = 0.8;
/// So many packets before a lost one are looked at.
const NEAR: usize = 2000;
/// A flow with this share of the bytes competes.
const COMPETES: f64 = 0.2;
/// The sentence gives the rate before if the path then carried less than this share of it.
const FELL: f64 = 0.8;
/// The delay is uneven if it changes from packet to packet by more than its most, divided by this.
const UNEVEN: i64 = 4;
/// A path became longer at once if the delay rose by this share of its most from one packet to the next, and stayed there.
const STEP: f64 = 0.6;
/// How far back the rate before is looked for.
const BEFORE_NS: i64 = 5_000_000_000;
/// Rates are of periods of this length.
const PERIOD_NS: i64 = 500_000_000;

/// One packet.
#[derive(Debug, Clone, Copy)]
struct Carried {
    way: Way,
    sent_ns: i64,
    /// When it came; none if it did not.
    received_ns: Option<i64>,
    /// Delay above the usual.
    above_ns: i64,
    bytes: u32,
}

/// Why a stream had no packet for a while.
pub(crate) struct Gap {
    pub cause: Cause,
    pub because: String,
    /// Packets that were sent in it.
    pub sent: usize,
    /// The sender's packets.
    pub evidence: Option<Evidence>,
}

/// All packets that went from one capture to another.
#[derive(Debug)]
pub(crate) struct Direction<'c> {
    near: &'c Capture,
    far: &'c Capture,
    /// In the order in which they were sent.
    carried: Vec<Carried>,
    /// When they came, in order, with their bytes.
    came: Vec<(i64, u32, Way)>,
}

/// The directions of some crossings.
pub(crate) fn directions<'c>(crossings: &[Crossing<'c>]) -> Vec<Direction<'c>> {
    let mut directions: Vec<Direction<'c>> = Vec::new();
    for crossing in crossings {
        let same = |it: &Direction<'_>| {
            std::ptr::eq(it.near, crossing.near) && std::ptr::eq(it.far, crossing.far)
        };
        let at = directions.iter().position(same).unwrap_or_else(|| {
            let (near, far) = (crossing.near, crossing.far);
            directions.push(Direction { near, far, carried: Vec::new(), came: Vec::new() });
            directions.len() - 1
        });
        let carried = crossing.passages.iter().map(|passage| Carried {
            way: crossing.way,
            sent_ns: passage.sent.t_ns,
            received_ns: passage.received.map(|(_, got)| got.t_ns),
            above_ns: passage.delay_ns().unwrap_or(0),
            bytes: passage.sent.bytes,
        });
        directions[at].carried.extend(carried);
    }
    for direction in &mut directions {
        direction.carried.sort_by_key(|it| it.sent_ns);
        let delays = direction.carried.iter().filter(|it| it.received_ns.is_some());
        let mut delays: Vec<i64> = delays.map(|it| it.above_ns).collect();
        let least = quantile(&mut delays, 0.0).unwrap_or(0);
        direction.carried.iter_mut().for_each(|it| it.above_ns = it.above_ns.saturating_sub(least));
        let came =
            direction.carried.iter().filter_map(|it| Some((it.received_ns?, it.bytes, it.way)));
        direction.came = came.collect();
        direction.came.sort_by_key(|it| it.0);
    }
    directions
}

impl<'c> Direction<'c> {
    /// The direction that a stream took.
    pub fn find<'d>(
        directions: &'d [Direction<'c>],
        media: &Media<'c>,
    ) -> Option<&'d Direction<'c>> {
        let crossing = media.crossing?;
        directions
            .iter()
            .find(|it| std::ptr::eq(it.near, crossing.near) && std::ptr::eq(it.far, crossing.far))
    }

    /// Whether this is the opposite direction.
    pub fn is_back_of(&self, other: &Self) -> bool {
        std::ptr::eq(self.near, other.far) && std::ptr::eq(self.far, other.near)
    }

    /// If most packets of a flow that were sent between two times, by the near clock, were lost or came late.
    pub fn hampered(&self, way: Way, (from, to): (i64, i64)) -> Option<String> {
        let first = self.carried.partition_point(|it| it.sent_ns < from - LATE_NS);
        let sent = self.carried[first..].iter().take_while(|it| it.sent_ns <= to);
        let sent: Vec<&Carried> = sent.filter(|it| it.way == way).collect();
        let lost = sent.iter().filter(|it| it.received_ns.is_none()).count();
        let late = sent.iter().filter(|it| it.above_ns > LATE_NS).count();
        ((lost + late) * 2 > sent.len()).then(|| {
            format!(
                "of {} in the opposite direction, {lost} were lost and {late} came more than {} late",
                count(sent.len(), "packet"),
                span(LATE_NS)
            )
        })
    }

    /// Where in `came` this stretch is.
    fn during(&self, from_ns: i64, to_ns: i64) -> &[(i64, u32, Way)] {
        between(&self.came, |it| it.0, (from_ns, to_ns))
    }

    /// Why a stream had no packet between two packets of the far capture.
    pub fn gap(&self, media: &Media<'c>, (a, b): (&Unit, &Unit)) -> Gap {
        let (from, to) = (a.t_ns, b.t_ns);
        let gap = |cause, because, sent| Gap { cause, because, sent, evidence: None };
        let passages =
            |crossing: &Crossing<'c>| Some((*crossing.of(a.number)?, *crossing.of(b.number)?));
        let Some((crossing, (before, after))) =
            media.crossing.and_then(|crossing| Some((crossing, passages(crossing)?)))
        else {
            return gap(Cause::Unknown, format!("{} does not have its packets", self.near.name), 0);
        };
        // By the sender's clock: as long as nothing came.
        let (began, ended) = (before.sent.t_ns, after.sent.t_ns);
        let sent = crossing.sent(began, began + (to - from)).iter();
        let sent: Vec<&Passage<'_>> = sent.filter(|it| media.has(it.sent)).collect();
        let (first, last) = (before.sent.number, after.sent.number);
        let evidence = Some(Evidence::packets(&self.near.name, first, last));
        let times = sent.iter().map(|it| it.sent.t_ns).chain([began, ended]);
        let longest = longest(times);
        if longest as f64 >= SILENT * (to - from) as f64 {
            let text = format!("the sender sent nothing for {}", span(longest));
            return Gap { evidence, ..gap(Cause::Application, text, sent.len()) };
        }
        let asked = sent.first().map_or(from, |it| crossing.there(it.sent.t_ns));
        let (cause, because) = self.held_or_lost(&sent, (from, to, asked), (began, ended));
        Gap { evidence, ..gap(cause, because, sent.len()) }
    }

    /// What became of packets that were sent while nothing came.
    fn held_or_lost(
        &self,
        sent: &[&Passage<'_>],
        (from, to, asked): (i64, i64, i64),
        (began, ended): (i64, i64),
    ) -> (Cause, String) {
        let lost = sent.iter().filter(|it| it.received.is_none()).count();
        let sent_count = count(sent.len(), "packet");
        // What a longer path holds comes with the same spaces as it was sent; what an outage holds comes at once.
        let came = sent.iter().filter_map(|it| Some(it.received?.0));
        let spread = came.clone().max().unwrap_or(0) - came.min().unwrap_or(0);
        let few = lost as f64 <= FEW_LOST * sent.len() as f64;
        if few && spread as f64 >= SILENT * (to - from) as f64 {
            let came = match lost {
                0 => format!("each of {sent_count} sent in this time came later"),
                _ => format!("of {sent_count} sent in this time, all but {lost} came later"),
            };
            return (Cause::Delay, format!("{came}: the path became longer"));
        }
        let others = self.during(from, to);
        // What was not sent could not be carried.
        let silent = longest(others.iter().map(|it| it.0).chain([from, to]));
        let told = silent.min(to - asked.clamp(from, to));
        if silent as f64 >= SILENT * (to - from) as f64
            && self.is_outage((began, began + (to - from)), (began, ended))
        {
            let text = format!(
                "the path carried nothing for {}: of {sent_count} sent in this time, {lost} were lost and {} came after it",
                span(told),
                sent.len() - lost
            );
            return (Cause::Outage, text);
        }
        match lost {
            0 => {
                let others = count(others.len(), "packet");
                let text = format!(
                    "of {sent_count} sent in this time, all came after it; the path carried {others} of others"
                );
                (Cause::Unknown, text)
            }
            lost => {
                (Cause::Loss, format!("the path lost {lost} of {sent_count} sent in this time"))
            }
        }
    }

    /// Whether random loss would lose or hold so many packets of all flows in a row less than once in a thousand times.
    fn is_outage(&self, (from, to): (i64, i64), (began, ended): (i64, i64)) -> bool {
        let sent = |from: i64, to: i64| between(&self.carried, |it| it.sent_ns, (from, to));
        let during = sent(from, to).len();
        let lost = |list: &[Carried]| list.iter().filter(|it| it.received_ns.is_none()).count();
        let around = [sent(began - AROUND_NS, began), sent(ended, ended + AROUND_NS)];
        let all: usize = around.iter().map(|list| list.len()).sum();
        let share = around.iter().map(|list| lost(list)).sum::<usize>() as f64 / all.max(1) as f64;
        during >= OUTAGE_MIN && share.powi(during as i32) < BY_CHANCE
    }

    /// Why packets of a stream came late.
    pub fn late(
        &self,
        media: &Media<'_>,
        (first, last): (usize, usize),
        delays: &[(Unit, i64)],
    ) -> (Cause, String) {
        let (from, to) = (delays[first].0.t_ns, delays[last].0.t_ns);
        let stretch = &delays[first..=last];
        let newest = delays[..first].iter().map(|it| it.0.sequence).max().unwrap_or(i64::MIN);
        if let Some(found) = few_or_uneven(stretch, newest) {
            return found;
        }
        // A queue grows with each packet; a longer path is longer at once.
        let before = first.saturating_sub(1);
        let (jump, peak) = delays[before..=last].windows(2).fold((0, 0), |(jump, peak), pair| {
            (jump.max(pair[1].1.saturating_sub(pair[0].1)), peak.max(pair[1].1))
        });
        let mut all: Vec<i64> = stretch.iter().map(|it| it.1).collect();
        let low = quantile(&mut all, 0.25).unwrap_or(0) as f64;
        let is_step = jump as f64 >= STEP * peak as f64 && low >= STEP * peak as f64;
        if is_step {
            return (
                Cause::Delay,
                format!("the path's delay rose by {} from one packet to the next", span(jump)),
            );
        }
        // While the queue grew: after that, a faster link may empty it.
        let of_stretch = first..=last;
        let at_peak = of_stretch.max_by_key(|at| delays[*at].1).unwrap_or(last);
        let to = if at_peak > first { delays[at_peak].0.t_ns } else { to };
        let came = self.rate_bps(from, to);
        let others = self.share_of_others(media, (from, to));
        if others >= COMPETES {
            let text = format!(
                "they waited in a queue that carried {}, {:.0} % of it of other flows",
                rate(came),
                others * 100.0
            );
            return (Cause::Competing, text);
        }
        let before = (1..=BEFORE_NS / PERIOD_NS)
            .map(|n| (from - peak - n * PERIOD_NS, from - peak - (n - 1) * PERIOD_NS))
            .map(|(a, b)| self.rate_bps(a, b))
            .fold(0.0, f64::max);
        // Whether the link's rate fell, or others that these captures do not show have it, is not known.
        let than_before = match came < FELL * before {
            true => format!(", and {} before", rate(before)),
            false => String::new(),
        };
        let text = format!("they waited in a queue that carried {}{than_before}", rate(came));
        (Cause::LinkRate, text)
    }

    /// What was carried in a stretch of time, of all flows.
    fn rate_bps(&self, from: i64, to: i64) -> f64 {
        bit_rate(self.during(from, to).iter().map(|it| u64::from(it.1)).sum(), to - from)
    }

    /// The share of the bytes carried that other flows had.
    fn share_of_others(&self, media: &Media<'_>, (from, to): (i64, i64)) -> f64 {
        let carried = self.during(from, to);
        let bytes: u64 = carried.iter().map(|it| u64::from(it.1)).sum();
        let is_own = |way: Way| media.crossing.is_some_and(|own| own.way == way);
        let own: u64 = carried.iter().filter(|it| is_own(it.2)).map(|it| u64::from(it.1)).sum();
        if bytes == 0 { 0.0 } else { 1.0 - own as f64 / bytes as f64 }
    }

    /// Why packets were lost: behind a long queue, or without one.
    pub fn loss(&self, media: &Media<'_>, lost: &[&Hole]) -> (Cause, String) {
        let (Some(first), Some(last)) = (lost.first(), lost.last()) else {
            return (Cause::Unknown, String::new());
        };
        let between = format!("between {} and {}", self.near.name, self.far.name);
        let waits = lost.iter().filter_map(|hole| self.waited_before(hole)).collect();
        let Some(waits) = Waits::new(waits) else {
            return (Cause::Unknown, format!("{between}; no packet came before them"));
        };
        let usual = span(waits.median_ns);
        match waits.queue() {
            Queue::Full => {
                let others = self.share_of_others(media, (first.t_ns - waits.median_ns, last.t_ns));
                let (cause, of_others) = match others >= COMPETES {
                    true => (
                        Cause::Competing,
                        format!(", {:.0} % of them of other flows", others * 100.0),
                    ),
                    false => (Cause::LinkRate, String::new()),
                };
                let waited = format!("behind packets that had waited {usual}{of_others}");
                (cause, format!("{between}, {waited}: a queue was full"))
            }
            Queue::Short => {
                (Cause::Loss, format!("{between}, while packets waited {usual}: no queue was full"))
            }
            Queue::Unclear => (Cause::Unknown, format!("{between}, {waits}")),
        }
    }

    /// How long the last packet waited that was sent no later than a lost one, and came. Packets of one burst have one
    /// time of sending.
    fn waited_before(&self, hole: &Hole) -> Option<i64> {
        let at = self.carried.partition_point(|it| it.sent_ns <= hole.sent_ns);
        let mut before = self.carried[..at].iter().rev().take(NEAR);
        Some(before.find(|it| it.received_ns.is_some())?.above_ns)
    }
}

/// What the packets just before lost ones say about the queue.
enum Queue {
    Full,
    Short,
    Unclear,
}

/// How long the packets just before lost ones had waited.
struct Waits {
    /// Those that had waited as long as a long queue takes.
    long: usize,
    all: usize,
    median_ns: i64,
}

impl Waits {
    fn new(mut waits: Vec<i64>) -> Option<Self> {
        let long = waits.iter().filter(|wait| **wait >= QUEUE_NS).count();
        Some(Self { long, all: waits.len(), median_ns: quantile(&mut waits, 0.5)? })
    }

    fn queue(&self) -> Queue {
        let most = MOST * self.all as f64;
        match self.long {
            long if long as f64 >= most => Queue::Full,
            long if (self.all - long) as f64 >= most => Queue::Short,
            _ => Queue::Unclear,
        }
    }
}

impl std::fmt::Display for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { long, all, .. } = self;
        write!(f, "{long} of {all} behind packets that had waited {} or more", span(QUEUE_NS))
    }
}

/// If only some packets of a stretch are late: overtaken ones, or by jitter.
fn few_or_uneven(stretch: &[(Unit, i64)], mut newest: i64) -> Option<(Cause, String)> {
    let most = stretch.iter().map(|it| it.1).max()?;
    let is_late = |delay: i64| delay as f64 > most as f64 / 2.0;
    let late = stretch.iter().filter(|it| is_late(it.1)).count();
    let steps = stretch.windows(2).map(|pair| i128::from(pair[1].1) - i128::from(pair[0].1));
    let steps: i128 = steps.map(i128::abs).sum();
    let step = (steps / (stretch.len() as i128 - 1).max(1)) as i64;
    if step > most / UNEVEN {
        let text = format!(
            "delays changed by {} from packet to packet, and by {} in all",
            span(step),
            span(most)
        );
        return Some((Cause::Jitter, text));
    }
    if late * 2 >= stretch.len() {
        return None;
    }
    let overtaken = stretch.iter().filter(|(unit, delay)| {
        let is_overtaken = unit.sequence < newest;
        newest = newest.max(unit.sequence);
        is_overtaken && is_late(*delay)
    });
    let overtaken = overtaken.count();
    let of = format!("{late} of {} came late", count(stretch.len(), "packet"));
    Some(match overtaken as f64 >= MOST * late as f64 {
        true => (Cause::Reordering, format!("{of}, and later ones overtook them")),
        false => (Cause::Unknown, of),
    })
}

/// The longest time between two of these.
fn longest(times: impl Iterator<Item = i64>) -> i64 {
    let mut times: Vec<i64> = times.collect();
    times.sort_unstable();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

/// Makes delays those above the least of the time around each: clocks drift.
pub(crate) fn above_usual(delays: &mut [(Unit, i64)], bucket_ns: i64, around: i64) {
    let mut least = std::collections::BTreeMap::new();
    for (unit, delay) in delays.iter() {
        let entry = least.entry(unit.t_ns.div_euclid(bucket_ns)).or_insert(*delay);
        *entry = (*entry).min(*delay);
    }
    let mut usual = std::collections::BTreeMap::new();
    for (unit, delay) in delays.iter_mut() {
        let bucket = unit.t_ns.div_euclid(bucket_ns);
        let of = || least.range(bucket - around..=bucket + around).map(|(_, least)| *least).min();
        *delay = delay.saturating_sub(*usual.entry(bucket).or_insert_with(|| of().unwrap_or(0)));
    }
}

/// Packets of a stream that its receiver's capture does not have, each when it should have come.
pub(crate) fn lost(media: &Media<'_>, crossing: &Crossing<'_>) -> Vec<Hole> {
    let (mut holes, mut missing): (Vec<Hole>, Vec<i64>) = (Vec::new(), Vec::new());
    let delays = crossing.passages.iter().filter_map(Passage::delay_ns);
    let least = delays.min().unwrap_or(0);
    for passage in crossing.passages.iter().filter(|it| media.has(it.sent)) {
        match passage.received {
            None => missing.push(passage.sent.t_ns),
            Some((_, got)) => {
                let hole = |sent_ns: i64| {
                    let t_ns = crossing.there(sent_ns.saturating_add(least));
                    Hole { t_ns, number: got.number, sent_ns, missing: 1 }
                };
                holes.extend(missing.drain(..).map(hole));
            }
        }
    }
    holes.sort_by_key(|hole| hole.t_ns);
    holes
}

/// What one capture says about losses: whether the packets before them had come late.
pub(crate) fn loss_alone(lost: &[&Hole], delays: &[(Unit, i64)]) -> (Cause, String) {
    let before = |hole: &&Hole| {
        let at = delays.partition_point(|(unit, _)| unit.t_ns < hole.t_ns);
        Some(delays.get(at.checked_sub(1)?)?.1)
    };
    let Some(waits) = Waits::new(lost.iter().filter_map(before).collect()) else {
        return (Cause::Loss, "before this capture".into());
    };
    let usual = span(waits.median_ns);
    let next_to = format!("before this capture, next to packets {usual} later than usual");
    match waits.queue() {
        Queue::Full => (Cause::LinkRate, format!("{next_to}: a queue was full")),
        Queue::Short => (Cause::Loss, format!("{next_to}: no queue was full")),
        Queue::Unclear => (Cause::Unknown, format!("before this capture, {waits}")),
    }
}
