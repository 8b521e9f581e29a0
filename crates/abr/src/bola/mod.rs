//! BOLA: the buffer level decides, by Lyapunov optimisation.
//!
//! Spiteri, Urgaonkar and Sitaraman, "BOLA: near-optimal bitrate adaptation for online videos"
//! (INFOCOM 2016). Rung *m* of bit rate *S* has the utility υ = ln(S ∕ S₁). At buffer level *Q*,
//! BOLA takes the rung of the greatest score
//!
//! > (V · (υ + γ) − Q) ∕ S
//!
//! and pauses while every score is negative. We measure *Q*, and so *V*, in seconds instead of
//! segments: γ here is the paper's γ·p.
//!
//! **V and γ.** With logarithmic utility and rungs without gaps the score is greatest at Q =
//! V · (υ + γ − 1). Asking that the lowest rung be best at a level `low` and the highest at a level
//! `high` gives V = (high − low) ∕ υ_top and γ = 1 + low ∕ V. `high` is the level at which a full
//! buffer can take one more segment; half of a buffer that does not hold two, as at low latency.
//! `low` is 10 s if the buffer is large: at least 10 s and 2 s
//! for each rung, dash.js's `MINIMUM_BUFFER_S` and `MINIMUM_BUFFER_PER_BITRATE_LEVEL_S`. If it is
//! not, `low` is the same share of `high`: a live buffer of 6 s still uses the whole ladder.
//!
//! **Placeholder** (BOLA-E, Spiteri, Sitaraman and Sparacio, "From theory to practice", MMSys 2018).
//! The buffer level says nothing about the network at the start, while a live segment does not
//! exist yet, or while the buffer is full. A virtual buffer, the placeholder, is added to the level.
//! It follows the authors' simulator Sabre (`BolaEnh` in `sabre.py`):
//! - *Start-up*, at the beginning and after a seek: the throughput rule decides, and the placeholder
//!   becomes what BOLA would need to decide the same. As in dash.js, start-up ends with the first
//!   decision that finds a segment in the buffer and an estimate of throughput; here, half of the
//!   buffer is enough where that does not hold two segments.
//! - Time in which there was nothing to fetch or no room adds to it.
//! - After each segment it is clamped, so that the level at the request lies between the least level
//!   at which BOLA chooses the segment's rung and the level at which BOLA would rather wait.
//! - A decision that would wait takes from the placeholder first. Nothing waits where segments are
//!   played chunk by chunk while they come: the buffer does not grow then.
//! - *Insufficient buffer*: a rung is taken only if its segment arrives, at
//!   [`INSUFFICIENT_BUFFER_SAFETY`] of the estimated throughput, before the real buffer is empty.
//!   One that is played chunk by chunk while it comes may take its own length longer.
//!   The placeholder is lowered to what the rung that is taken instead needs.
//! - A download that is given up lowers it to what the lower rung needs.
//!
//! dash.js does otherwise: its placeholder loses 1 % with each segment, is clamped from above only,
//! is not lowered when the buffer is insufficient, and a stall empties it.
//!
//! **Oscillation** (BOLA-O): BOLA rises above the last rung only as far as the throughput rule goes.
//!
//! **Constants that differ from Sabre's**, all of them dash.js's except the last:
//!
//! | what | here | Sabre |
//! |---|---|---|
//! | share of the estimate up to which BOLA rises, and starts | 0.9 ([`throughput::SAFETY`]) | 1.0, less one latency a segment |
//! | share of the estimate for the insufficient buffer | 0.7 | 0.9, falling by a tenth with each decision to 0.5 |
//! | time taken off the buffer for the request | none: the estimate counts from the request | the measured latency |
//! | `low` where the buffer is small | a share of `high` | 10 s; `high` is raised to 10 s and 2 s a rung |
//! | of two rungs of equal score | the higher | the lower |

use suiro_units::{Duration, Time};

use crate::choice::{Choice, Limits, Look};
use crate::{Ladder, throughput};

/// Level at which a large buffer leaves the lowest rung, in seconds.
const LOW_S: f64 = 10.0;
/// What a large buffer has above [`LOW_S`] for each rung, in seconds.
const PER_RUNG_S: f64 = 2.0;
/// The share of the estimate at which a segment must arrive in time: dash.js's
/// `throughputSafetyFactor` of its `InsufficientBufferRule`.
pub const INSUFFICIENT_BUFFER_SAFETY: f64 = 0.7;

/// Rungs, utilities and the two parameters: BOLA's decision without memory.
#[derive(Debug, Clone)]
pub(crate) struct Scores {
    bps: Vec<f64>,
    utilities: Vec<f64>,
    v_s: f64,
    gamma: f64,
}

impl Scores {
    /// `None` if all rungs have one bit rate: then there is nothing to decide.
    pub(crate) fn new(ladder: &Ladder, limits: Limits) -> Option<Self> {
        let bps: Vec<f64> = ladder.rungs().iter().map(|r| r.as_bps() as f64).collect();
        let utilities: Vec<f64> = bps.iter().map(|s| (s / bps[0]).ln()).collect();
        let top = *utilities.last()?;
        if top <= 0.0 {
            return None;
        }
        let (low_s, high_s) = levels(ladder.len(), limits);
        let v_s = (high_s - low_s) / top;
        Some(Self { bps, utilities, v_s, gamma: 1.0 + low_s / v_s })
    }

    fn score(&self, rung: usize, level_s: f64) -> f64 {
        (self.v_s * (self.utilities[rung] + self.gamma) - level_s) / self.bps[rung]
    }

    /// The rung of the greatest score; the higher of equals.
    pub(crate) fn best(&self, level_s: f64) -> usize {
        let better = |best: usize, rung: usize| {
            if self.score(rung, level_s) >= self.score(best, level_s) { rung } else { best }
        };
        (1..self.bps.len()).fold(0, better)
    }

    /// The least level at which `rung` scores no less than any lower one.
    fn least_level_s(&self, rung: usize) -> f64 {
        let (s, u) = (self.bps[rung], self.utilities[rung]);
        let equal_with = |(&lower_s, &lower_u): (&f64, &f64)| {
            self.v_s * (self.gamma + (s * lower_u - lower_s * u) / (s - lower_s))
        };
        let lower = self.bps[..rung].iter().zip(&self.utilities);
        lower.filter(|(lower_s, _)| **lower_s < s).map(equal_with).fold(0.0, f64::max)
    }

    /// What an abandoned download leaves of the level, placeholder included, for a try at `rung`:
    /// the least at which BOLA chooses it, and `low` for the lowest (Sabre's `minimum_buffer`).
    fn conservative_level_s(&self, rung: usize) -> f64 {
        if rung > 0 { self.least_level_s(rung) } else { self.v_s * (self.gamma - 1.0) }
    }

    /// The level above which the score of `rung` is negative: better to pause.
    fn pause_level_s(&self, rung: usize) -> f64 {
        self.v_s * (self.utilities[rung] + self.gamma)
    }
}

/// `low` and `high` of the module's text, in seconds; low < high.
fn levels(rungs: usize, limits: Limits) -> (f64, f64) {
    let least_s = enough(limits).as_secs_f64();
    let spare_s = limits.buffer.saturating_sub(limits.segment).as_secs_f64();
    let high_s = spare_s.max(least_s).max(0.001);
    let large_s = LOW_S + PER_RUNG_S * rungs as f64;
    ((high_s * LOW_S / large_s).min(LOW_S), high_s)
}

/// A segment, or half of a buffer that does not hold two.
fn enough(limits: Limits) -> Duration {
    limits.segment.min(limits.buffer / 2)
}

/// BOLA with what BOLA-E adds.
#[derive(Debug, Clone)]
pub(crate) struct Bola {
    scores: Option<Scores>,
    segment: Duration,
    /// The buffer with which start-up ends.
    enough: Duration,
    placeholder_s: f64,
    /// True until a decision finds enough in the buffer and an estimate, at the start and after a
    /// seek.
    starting: bool,
    last: usize,
    /// Since when there has been nothing to fetch; `None` while a download runs.
    idle_since: Option<Time>,
}

impl Bola {
    pub(crate) fn new(ladder: &Ladder, limits: Limits) -> Self {
        Self {
            scores: Scores::new(ladder, limits),
            segment: limits.segment,
            enough: enough(limits),
            placeholder_s: 0.0,
            starting: true,
            last: 0,
            idle_since: None,
        }
    }

    pub(crate) fn on_download(&mut self, done: Time) {
        self.idle_since = Some(done);
    }

    /// A segment of `rung` is in the buffer, which holds `buffer` with it, `took` after its request.
    pub(crate) fn on_segment(&mut self, rung: usize, took: Duration, buffer: Duration) {
        let Some(scores) = &self.scores else { return };
        // As Sabre has it: the level counts the segment itself.
        let level_was_s = buffer.as_secs_f64() + took.as_secs_f64();
        let most_s = (scores.pause_level_s(rung) - level_was_s).max(0.0);
        let least_s = scores.least_level_s(rung) - level_was_s;
        self.placeholder_s = self.placeholder_s.min(most_s).max(least_s);
    }

    pub(crate) fn on_seek(&mut self) {
        self.placeholder_s = 0.0;
        self.starting = true;
        self.idle_since = None;
    }

    /// A download was given up for one of `rung`: the placeholder must not claim more.
    pub(crate) fn on_abandon(&mut self, rung: usize, buffer: Duration) {
        let level_s = self.scores.as_ref().map_or(0.0, |scores| scores.conservative_level_s(rung));
        let most_s = (level_s - buffer.as_secs_f64()).max(0.0);
        self.placeholder_s = self.placeholder_s.min(most_s);
        self.chosen(rung);
    }

    /// `rung` is taken instead of what was chosen last.
    pub(crate) fn held(&mut self, rung: usize) {
        self.last = rung;
    }

    /// `rung` was chosen, perhaps by another rule, and is fetched now.
    pub(crate) fn chosen(&mut self, rung: usize) {
        self.last = rung;
        self.on_request();
    }

    /// A download runs.
    pub(crate) fn on_request(&mut self) {
        self.idle_since = None;
    }

    pub(crate) fn choose(&mut self, ladder: &Ladder, look: &Look) -> Choice {
        let Some(scores) = self.scores.take() else { return Choice::at_once(0) };
        let choice = self.choose_by(&scores, ladder, look);
        self.scores = Some(scores);
        self.chosen(choice.rung);
        if !choice.wait.is_zero() {
            // A pause is no idle time, and what follows it is.
            self.idle_since = Some(look.now + choice.wait);
        }
        choice
    }

    fn choose_by(&mut self, scores: &Scores, ladder: &Ladder, look: &Look) -> Choice {
        let buffer_s = look.buffer.as_secs_f64();
        let by_throughput = throughput::rung(ladder, look.estimate);
        let pause_s = scores.pause_level_s(ladder.top());
        if self.starting {
            self.placeholder_s = (scores.least_level_s(by_throughput) - buffer_s).max(0.0);
            self.starting = look.estimate.is_none() || look.buffer < self.enough;
            return Choice::at_once(by_throughput);
        }
        let idle = self.idle_since.map_or(Duration::ZERO, |since| look.now.saturating_since(since));
        self.placeholder_s =
            (self.placeholder_s + idle.as_secs_f64()).min((pause_s - buffer_s).max(0.0));

        let level_s = buffer_s + self.placeholder_s;
        let mut rung = scores.best(level_s);
        if rung > by_throughput && rung > self.last {
            rung = by_throughput.max(self.last);
        }
        let mut choice = self.pause(scores, ladder, rung, level_s);
        if look.in_chunks {
            choice.wait = Duration::ZERO;
        }
        let in_time = self.arrives_in_time(ladder, look);
        if choice.rung <= in_time {
            return choice;
        }
        let most_s = (scores.least_level_s(in_time) - buffer_s).max(0.0);
        self.placeholder_s = self.placeholder_s.min(most_s);
        Choice::at_once(in_time)
    }

    /// The highest rung whose segment arrives before the buffer is empty.
    fn arrives_in_time(&self, ladder: &Ladder, look: &Look) -> usize {
        let Some(estimate) = look.estimate else { return ladder.top() };
        if self.segment.is_zero() {
            return ladder.top();
        }
        let own = if look.in_chunks { self.segment } else { Duration::ZERO };
        let segments = (look.buffer + own) / self.segment;
        ladder.highest_within(estimate.mul_f64(INSUFFICIENT_BUFFER_SAFETY * segments))
    }

    /// Where the level is above what `rung` deserves: lowers the placeholder, and where that is
    /// not enough, waits. The top rung never waits: the player's capacity bounds it.
    fn pause(&mut self, scores: &Scores, ladder: &Ladder, rung: usize, level_s: f64) -> Choice {
        let over_s = (level_s - scores.pause_level_s(rung)).max(0.0);
        let wait_s = (over_s - self.placeholder_s).max(0.0);
        self.placeholder_s = (self.placeholder_s - over_s).max(0.0);
        let wait_s = if rung < ladder.top() { wait_s } else { 0.0 };
        Choice { rung, wait: Duration::from_secs_f64(wait_s) }
    }
}

#[cfg(test)]
mod tests;
