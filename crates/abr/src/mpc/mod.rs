//! MPC: plans five segments ahead with a throughput that is unlikely to be fallen short of.
//!
//! Yin, Jindal, Sekar and Sinopoli, "A Control-Theoretic Approach for Dynamic Adaptive Video
//! Streaming over HTTP" (SIGCOMM 2015), the variant that they call RobustMPC. The next rung is the
//! first of the plan *R₁ … R₅* of the greatest
//!
//! > Σ Rₖ − λ · Σ |Rₖ − Rₖ₋₁| − μ · (seconds of stall)
//!
//! with their balanced weights: λ is 1, and a second of stall costs as much as a segment of the top
//! rung is worth (their μ of 3000 for a top rung of 3000 kbit/s).
//!
//! **Throughput.** The harmonic mean of the last five downloads, divided by one plus the largest
//! relative error that this prediction had at them. As the sum above does not fall when throughput
//! rises, planning with the least likely throughput is planning for the worst case.
//!
//! **Buffer.** A segment of rung *R* takes R · (its duration) ∕ throughput to arrive; meanwhile the
//! buffer drains, and what is missing is a stall. Then the segment is added. A buffer without room
//! for a segment waits until it has it. A player knows nominal bit rates only, which are peaks:
//! segments are taken to be as large as they can be.
//!
//! **Low latency.** A segment that comes chunk by chunk while it is captured is played while it
//! comes. It drains the buffer only by what it takes longer than it lasts, adds nothing, and needs
//! no room. The paper's segments have 4 s; with shorter ones at low latency, a second of stall costs
//! that many times more, at most [`STALL_MAX`] times. Otherwise a plan would stall for each segment
//! of a rung that is a little too high, because the gain counts once a segment.
//!
//! **Ties.** Of plans of equal worth, the one that begins with the lowest rung is taken. Equal means
//! equal: times are whole nanoseconds and worths integers, so that no rounding separates two plans.
//!
//! **Cost.** Twelve rungs have 12⁵ = 248,832 plans. Compare two beginnings of a plan that end at the same rung. One
//! with no more buffer and a smaller sum cannot become the better one. Nor can one with no more buffer and an equal sum
//! that begins no lower. For each rung only a front remains. A front keeps [`FRONT_MAX`] beginnings, spread evenly
//! where there would be more. A ladder of more than [`RUNGS_MAX`] rungs is looked at in as many. A decision therefore
//! takes at most 4 · 17² · 128 = 147,968 steps whatever a manifest says. With five rungs or fewer nothing is ever left
//! out, and the plan is the best there is.

use std::collections::VecDeque;

use suiro_units::{BitRate, Duration};

use crate::Ladder;
use crate::choice::{Choice, Limits, Look};

/// Segments that a plan has: the paper's horizon.
pub const HORIZON: usize = 5;
/// Downloads that the prediction and its error look back at.
pub const PAST: usize = 5;
/// The weight of a change of bit rate: λ.
pub const SWITCH_WEIGHT: i128 = 1;
/// Beginnings of plans that are kept for each rung.
pub const FRONT_MAX: usize = 128;
/// How much more a second of stall costs at most where segments are short.
pub const STALL_MAX: i64 = 8;
/// The length of the paper's segments.
const PAPERS_SEGMENT: Duration = Duration::from_secs(4);
/// Rungs that are looked at, next to the one that is played; all of a ladder that has no more.
pub const RUNGS_MAX: usize = 16;

/// The last downloads and how wrong the predictions of them were.
#[derive(Debug, Clone, Default)]
struct Predictor {
    rates_bps: VecDeque<f64>,
    errors: VecDeque<f64>,
}

impl Predictor {
    fn add(&mut self, rate: BitRate) {
        let bps = (rate.as_bps() as f64).max(1.0);
        if let Some(predicted) = self.mean_bps() {
            push(&mut self.errors, (predicted - bps).abs() / bps);
        }
        push(&mut self.rates_bps, bps);
    }

    /// The harmonic mean: the rate at which the same bytes of each would have taken as long.
    fn mean_bps(&self) -> Option<f64> {
        let inverse: f64 = self.rates_bps.iter().map(|bps| 1.0 / bps).sum();
        (inverse > 0.0).then(|| self.rates_bps.len() as f64 / inverse)
    }

    /// What the throughput is unlikely to fall short of.
    fn robust_bps(&self) -> Option<f64> {
        let error = self.errors.iter().copied().fold(0.0, f64::max);
        self.mean_bps().map(|mean| mean / (1.0 + error))
    }
}

fn push(past: &mut VecDeque<f64>, value: f64) {
    if past.len() == PAST {
        past.pop_front();
    }
    past.push_back(value);
}

/// The beginning of a plan, after some of its segments.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// Its first rung.
    first: usize,
    /// Buffer when its last segment has arrived.
    buffer_ns: i64,
    /// The sum so far, in bit/s · ns.
    sum: i128,
}

/// Longer downloads and buffers are taken to be so long, three years: sums then stay within `i128`.
const LONGEST_NS: i64 = 100_000_000_000_000_000;
/// What a bit/s counts in a sum.
const PER_BPS: i128 = 1_000_000_000;

/// What a plan is made in: everything that is the same for all plans.
#[derive(Debug)]
struct Frame {
    bps: Vec<i128>,
    /// How much of the buffer is played until a segment of each rung has arrived.
    drains_ns: Vec<i64>,
    /// What is added to the buffer then.
    adds_ns: i64,
    /// The most buffer that leaves room for a segment.
    room_ns: i64,
    /// What a second of stall costs, in bit/s.
    stall_weight: i128,
}

impl Frame {
    /// For segments that are added when they have arrived.
    fn new(bps: &[u64], limits: Limits, throughput_bps: f64) -> Self {
        let segment_s = limits.segment.as_secs_f64();
        let takes = |&bps: &u64| (bps as f64 * segment_s / throughput_bps * 1e9).round() as i64;
        Self {
            bps: bps.iter().map(|&bps| i128::from(bps)).collect(),
            drains_ns: bps.iter().map(takes).map(|ns| ns.min(LONGEST_NS)).collect(),
            adds_ns: ns(limits.segment),
            room_ns: ns(limits.buffer.saturating_sub(limits.segment)),
            stall_weight: bps.last().map_or(0, |&top| i128::from(top)),
        }
    }

    /// For segments that are played while they come, where they last as long as the frame says.
    fn in_chunks(mut self) -> Self {
        let segment_ns = self.adds_ns.max(1);
        for drains_ns in &mut self.drains_ns {
            *drains_ns = (*drains_ns - segment_ns).max(0);
        }
        let times = ns(PAPERS_SEGMENT).clamp(segment_ns, segment_ns.saturating_mul(STALL_MAX));
        self.stall_weight = self.stall_weight * i128::from(times) / i128::from(segment_ns);
        (self.adds_ns, self.room_ns) = (0, LONGEST_NS);
        self
    }

    /// What follows if a segment of `rung` is fetched next, after one of `last`.
    fn fetch(&self, from: &Start, last: Option<usize>, rung: usize) -> Start {
        let (bps, drains_ns) = (self.bps[rung], self.drains_ns[rung]);
        let buffer_ns = from.buffer_ns.min(self.room_ns);
        let stall_ns = i128::from((drains_ns - buffer_ns).max(0));
        let change = last.map_or(0, |last| (bps - self.bps[last]).abs());
        Start {
            first: from.first,
            buffer_ns: (buffer_ns - drains_ns).max(0) + self.adds_ns,
            sum: from.sum + (bps - SWITCH_WEIGHT * change) * PER_BPS - self.stall_weight * stall_ns,
        }
    }

    /// The first rung of the best plan, and what the plan is worth in bit/s · ns; the lowest of
    /// equals.
    fn plan(&self, rungs: &[usize], last: Option<usize>, buffer: Duration) -> (usize, i128) {
        let begin = |&first: &usize| {
            let nothing = Start { first, buffer_ns: ns(buffer), sum: 0 };
            vec![self.fetch(&nothing, last, first)]
        };
        let mut fronts: Vec<Vec<Start>> = rungs.iter().map(begin).collect();
        for _ in 1..HORIZON {
            fronts = rungs.iter().map(|&rung| self.extend(rungs, &fronts, rung)).collect();
        }
        let better = |best: (usize, i128), start: &Start| {
            let more = start.sum > best.1 || (start.sum == best.1 && start.first < best.0);
            if more { (start.first, start.sum) } else { best }
        };
        fronts.iter().flatten().fold((rungs[0], i128::MIN), better)
    }

    /// The front of what ends at `rung`, one segment later.
    fn extend(&self, rungs: &[usize], fronts: &[Vec<Start>], rung: usize) -> Vec<Start> {
        let before = rungs.iter().zip(fronts);
        let longer = before.flat_map(|(&last, front)| {
            front.iter().map(move |start| self.fetch(start, Some(last), rung))
        });
        front(longer.collect())
    }
}

fn ns(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(LONGEST_NS).min(LONGEST_NS)
}

/// Leaves out whatever can neither become better than another nor win a tie with it; thins what is
/// left.
fn front(mut starts: Vec<Start>) -> Vec<Start> {
    let order = |a: &Start, b: &Start| {
        let buffer = b.buffer_ns.cmp(&a.buffer_ns);
        buffer.then(b.sum.cmp(&a.sum)).then(a.first.cmp(&b.first))
    };
    starts.sort_unstable_by(order);
    // The greatest sum so far, and the lowest rung that a plan of that sum begins with.
    let mut best: Option<(i128, usize)> = None;
    starts.retain(|start| {
        let kept = best.is_none_or(|(sum, first)| {
            start.sum > sum || (start.sum == sum && start.first < first)
        });
        if kept {
            best = Some((start.sum, start.first));
        }
        kept
    });
    if starts.len() > FRONT_MAX {
        starts = spread(starts.len(), FRONT_MAX).map(|at| starts[at]).collect();
    }
    starts
}

/// `count` indices of `of` things, evenly, with the first and the last; `of` is larger, `count` 2 at
/// least.
fn spread(of: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| at * (of - 1) / (count - 1))
}

/// The rule's memory.
#[derive(Debug, Clone)]
pub(crate) struct Mpc {
    bps: Vec<u64>,
    limits: Limits,
    predictor: Predictor,
    /// The rung of the last segment.
    last: Option<usize>,
}

impl Mpc {
    pub(crate) fn new(ladder: &Ladder, limits: Limits) -> Self {
        Self {
            bps: ladder.rungs().iter().map(|rung| rung.as_bps()).collect(),
            limits,
            predictor: Predictor::default(),
            last: None,
        }
    }

    /// The rate of a download that is large enough to measure it.
    pub(crate) fn on_rate(&mut self, rate: BitRate) {
        self.predictor.add(rate);
    }

    /// `rung` was chosen, perhaps by another rule, and is fetched now.
    pub(crate) fn chosen(&mut self, rung: usize) {
        self.last = Some(rung);
    }

    pub(crate) fn choose(&mut self, look: &Look) -> Choice {
        let rung = self.predictor.robust_bps().map_or(0, |throughput_bps| {
            let frame = Frame::new(&self.bps, self.limits, throughput_bps);
            let frame = if look.in_chunks { frame.in_chunks() } else { frame };
            frame.plan(&self.rungs(), self.last, look.buffer).0
        });
        self.chosen(rung);
        Choice::at_once(rung)
    }

    /// The rungs to look at, in rising order.
    fn rungs(&self) -> Vec<usize> {
        let all = self.bps.len();
        if all <= RUNGS_MAX {
            return (0..all).collect();
        }
        let mut rungs: Vec<usize> = spread(all, RUNGS_MAX).chain(self.last).collect();
        rungs.sort_unstable();
        rungs.dedup();
        rungs
    }
}

#[cfg(test)]
mod tests;
