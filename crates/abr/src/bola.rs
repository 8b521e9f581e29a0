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
//! **V and γ.** With logarithmic utility and rungs without gaps the score is greatest at
//! Q = V · (υ + γ − 1). Asking that the lowest rung be best at a level `low` and the highest at a
//! level `high` gives V = (high − low) ∕ υ_top and γ = 1 + low ∕ V. `high` is the level at which a
//! full buffer can take one more segment; `low` is 10 s if the buffer is large (at least 10 s and
//! 2 s for each rung, dash.js's `MINIMUM_BUFFER_S` and `MINIMUM_BUFFER_PER_BITRATE_LEVEL_S`), and
//! the same share of `high` if it is not: a live buffer of 6 s still uses the whole ladder.
//!
//! **What the level does not tell** (BOLA-E, Spiteri, Sitaraman and Sparacio, "From theory to
//! practice", MMSys 2018):
//! - *Placeholder*: an empty buffer at the start says nothing about the network. Until one segment
//!   is buffered the throughput rule decides, and a virtual buffer is added such that BOLA would
//!   have decided the same. Time in which there was nothing to fetch (live) or no room adds to it;
//!   each segment takes 1 % off; a stall or a seek empties it.
//! - *Insufficient buffer*: a rung is taken only if its segment arrives, at 0.7 of the estimated
//!   throughput, before the real buffer is empty.
//! - *Oscillation*: BOLA rises above the last rung only as far as the throughput rule goes.

use suiro_units::{BitRate, Duration, Time};

use crate::{Choice, Ladder, Limits, throughput};

/// Level at which a large buffer leaves the lowest rung, in seconds.
const LOW_S: f64 = 10.0;
/// What a large buffer has above [`LOW_S`] for each rung, in seconds.
const PER_RUNG_S: f64 = 2.0;
/// What a finished segment leaves of the placeholder.
const PLACEHOLDER_DECAY: f64 = 0.99;
/// The share of the estimate at which a segment must arrive in time.
const INSUFFICIENT_BUFFER_SAFETY: f64 = 0.7;

/// What a rule may look at when it chooses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub now: Time,
    pub buffer: Duration,
    pub estimate: Option<BitRate>,
}

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

    /// The level above which the score of `rung` is negative: better to pause.
    fn pause_level_s(&self, rung: usize) -> f64 {
        self.v_s * (self.utilities[rung] + self.gamma)
    }
}

/// `low` and `high` of the module's text, in seconds; low < high.
fn levels(rungs: usize, limits: Limits) -> (f64, f64) {
    let segment_s = limits.segment.as_secs_f64();
    let high_s = (limits.buffer.as_secs_f64() - segment_s).max(segment_s).max(0.001);
    let large_s = LOW_S + PER_RUNG_S * rungs as f64;
    ((high_s * LOW_S / large_s).min(LOW_S), high_s)
}

/// BOLA with what BOLA-E adds.
#[derive(Debug, Clone)]
pub(crate) struct Bola {
    scores: Option<Scores>,
    segment: Duration,
    placeholder_s: f64,
    /// True until one segment is buffered, at the start and after a seek.
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
            placeholder_s: 0.0,
            starting: true,
            last: 0,
            idle_since: None,
        }
    }

    pub(crate) fn on_download(&mut self, done: Time) {
        self.placeholder_s *= PLACEHOLDER_DECAY;
        self.idle_since = Some(done);
    }

    pub(crate) fn on_stall(&mut self) {
        self.placeholder_s = 0.0;
    }

    pub(crate) fn on_seek(&mut self) {
        self.placeholder_s = 0.0;
        self.starting = true;
        self.idle_since = None;
    }

    /// A download was given up for one of `rung`: the placeholder must not claim more (dash.js).
    pub(crate) fn on_abandon(&mut self, rung: usize, buffer: Duration) {
        let level_s = self.scores.as_ref().map_or(0.0, |scores| scores.least_level_s(rung));
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
        if self.starting && look.buffer < self.segment {
            self.placeholder_s = (scores.least_level_s(by_throughput) - buffer_s).max(0.0);
            return Choice::at_once(by_throughput);
        }
        self.starting = false;
        let idle = self.idle_since.map_or(Duration::ZERO, |since| look.now.saturating_since(since));
        self.placeholder_s =
            (self.placeholder_s + idle.as_secs_f64()).min((pause_s - buffer_s).max(0.0));

        let level_s = buffer_s + self.placeholder_s;
        let mut rung = scores.best(level_s);
        if rung > by_throughput && rung > self.last {
            rung = by_throughput.max(self.last);
        }
        rung = rung.min(self.arrives_in_time(ladder, look));
        self.pause(scores, ladder, rung, level_s)
    }

    /// The highest rung whose segment arrives before the buffer is empty.
    fn arrives_in_time(&self, ladder: &Ladder, look: &Look) -> usize {
        let Some(estimate) = look.estimate else { return ladder.top() };
        if self.segment.is_zero() {
            return ladder.top();
        }
        let segments = look.buffer / self.segment;
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
mod tests {
    use super::*;

    /// Rungs 1, 2, 4 and 8 Mbit/s; segments of 2 s; a buffer of 30 s.
    /// High is 28 s; large is 10 + 2·4 = 18 s, 28·10÷18 = 15.6, so low is 10 s.
    /// Top utility is ln 8 = 2.0794; V = 18 ÷ 2.0794 = 8.6562 s; γ = 1 + 10 ÷ 8.6562 = 2.1552.
    fn ladder() -> Ladder {
        Ladder::new([1, 2, 4, 8].map(BitRate::from_mbps).to_vec()).unwrap()
    }

    fn limits(buffer_s: u64) -> Limits {
        Limits { segment: Duration::from_secs(2), buffer: Duration::from_secs(buffer_s) }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.001
    }

    fn look(now_s: u64, buffer_ms: u64, estimate_mbps: u64) -> Look {
        Look {
            now: Time::from_secs(now_s),
            buffer: Duration::from_millis(buffer_ms),
            estimate: Some(BitRate::from_mbps(estimate_mbps)),
        }
    }

    #[test]
    fn parameters_by_hand() {
        let scores = Scores::new(&ladder(), limits(30)).unwrap();
        assert!(close(scores.v_s, 8.6562), "{}", scores.v_s);
        assert!(close(scores.gamma, 2.1552), "{}", scores.gamma);
    }

    #[test]
    fn thresholds_by_hand() {
        let scores = Scores::new(&ladder(), limits(30)).unwrap();
        // Rung 1 equals rung 0 at V·(γ + (2·0 − 1·ln 2) ÷ 1) = 8.6562·(2.1552 − 0.6931) = 12.656 s.
        // Rung 2 equals rung 1 at V·(γ + (4·ln 2 − 2·ln 4) ÷ 2) = V·γ = 18.656 s.
        // Rung 3 equals rung 2 at V·(γ + (8·ln 4 − 4·ln 8) ÷ 4) = V·(γ + ln 2) = 24.656 s.
        let least: Vec<f64> = (0..4).map(|rung| scores.least_level_s(rung)).collect();
        for (found, want) in least.iter().zip([0.0, 12.656, 18.656, 24.656]) {
            assert!(close(*found, want), "{least:?}");
        }
        for (level_s, want) in [(12.6, 0), (12.7, 1), (18.6, 1), (18.7, 2), (24.6, 2), (24.7, 3)] {
            assert_eq!(scores.best(level_s), want, "at {level_s} s");
        }
        // The top rung is worth fetching up to high + V.
        assert!(close(scores.pause_level_s(3), 36.656));
    }

    #[test]
    fn a_small_buffer_uses_the_whole_ladder() {
        // High is 4 s, low 4·10÷18 = 2.222 s: V = 1.7778 ÷ 2.0794 = 0.85494 s, γ = 3.5993.
        let scores = Scores::new(&ladder(), limits(6)).unwrap();
        assert!(close(scores.v_s, 0.85494) && close(scores.gamma, 3.5993), "{scores:?}");
        assert_eq!((scores.best(2.0), scores.best(4.0)), (0, 3));
    }

    #[test]
    fn starts_by_throughput_and_keeps_to_it() {
        let ladder = ladder();
        let mut bola = Bola::new(&ladder, limits(30));
        // 5 Mbit/s · 0.9 = 4.5: rung 2, whose least level is 18.656 s: all of it placeholder.
        assert_eq!(bola.choose(&ladder, &look(0, 0, 5)), Choice::at_once(2));
        assert!(close(bola.placeholder_s, 18.656), "{}", bola.placeholder_s);
        bola.on_download(Time::from_secs(2));
        // Level 0.99·18.656 + 4 = 22.47 s: still rung 2. In time: 5·0.7·(4÷2) = 7: rung 2.
        assert_eq!(bola.choose(&ladder, &look(2, 4000, 5)), Choice::at_once(2));
    }

    #[test]
    fn a_stall_empties_the_placeholder() {
        let ladder = ladder();
        let mut bola = Bola::new(&ladder, limits(30));
        bola.choose(&ladder, &look(0, 0, 5));
        bola.on_stall();
        // Level 4 s alone: rung 0.
        assert_eq!(bola.choose(&ladder, &look(0, 4000, 5)), Choice::at_once(0));
    }

    #[test]
    fn a_segment_given_up_lowers_the_placeholder() {
        let ladder = ladder();
        let mut bola = Bola::new(&ladder, limits(30));
        bola.choose(&ladder, &look(0, 0, 5));
        assert!(close(bola.placeholder_s, 18.656), "{}", bola.placeholder_s);
        // Rung 1 is due from 12.656 s on, of which 2 s are there.
        bola.on_abandon(1, Duration::from_secs(2));
        assert!(close(bola.placeholder_s, 10.656), "{}", bola.placeholder_s);
        bola.on_abandon(0, Duration::from_secs(2));
        assert_eq!((bola.placeholder_s, bola.last), (0.0, 0));
    }

    #[test]
    fn a_thin_buffer_forbids_a_rung_that_would_come_late() {
        let ladder = ladder();
        let mut bola = Bola::new(&ladder, limits(30));
        bola.choose(&ladder, &look(0, 0, 5));
        bola.choose(&ladder, &look(0, 2000, 5));
        // 1 s of buffer is half a segment: 5·0.7·0.5 = 1.75 Mbit/s: rung 0.
        assert_eq!(bola.choose(&ladder, &look(0, 1000, 5)).rung, 0);
    }

    #[test]
    fn rises_no_higher_than_throughput_but_does_not_fall_for_it() {
        let ladder = ladder();
        let mut bola = Bola::new(&ladder, limits(30));
        bola.starting = false;
        bola.last = 1;
        // Level 26 s says rung 3; 5 Mbit/s says rung 2.
        assert_eq!(bola.choose(&ladder, &look(0, 26_000, 5)).rung, 2);
        // Then 2.5 Mbit/s says rung 1, but the buffer may be spent on rung 2.
        let mut look = look(0, 26_000, 5);
        look.estimate = Some(BitRate::from_kbps(2500));
        assert_eq!(bola.choose(&ladder, &look).rung, 2);
    }

    #[test]
    fn idle_time_counts_as_buffer() {
        let ladder = ladder();
        let mut bola = Bola::new(&ladder, limits(30));
        bola.starting = false;
        bola.on_download(Time::from_secs(10));
        // 11 s of buffer is rung 0; with 2 s without anything to fetch, 13 s, it is rung 1.
        assert_eq!(bola.choose(&ladder, &look(12, 11_000, 9)).rung, 1);
    }

    #[test]
    fn a_download_that_fails_is_no_idle_time() {
        let ladder = ladder();
        let mut bola = Bola::new(&ladder, limits(30));
        bola.starting = false;
        bola.on_download(Time::from_secs(10));
        assert_eq!(bola.choose(&ladder, &look(10, 11_000, 9)).rung, 0);
        // Its request took 4 s and brought nothing: 12 s of buffer is rung 0, 16 s were rung 1.
        assert_eq!(bola.choose(&ladder, &look(14, 12_000, 9)).rung, 0);
    }

    #[test]
    fn pauses_rather_than_fill_the_buffer_with_a_low_rung() {
        let ladder = ladder();
        let mut bola = Bola::new(&ladder, limits(30));
        bola.starting = false;
        // Rung 0 pauses above V·γ = 18.656 s: 1.344 s at 20 s. (1.5 Mbit/s says rung 0.)
        let mut look = look(0, 20_000, 1);
        look.estimate = Some(BitRate::from_kbps(1500));
        let choice = bola.choose(&ladder, &look);
        assert_eq!(choice.rung, 0);
        assert!(close(choice.wait.as_secs_f64(), 1.344), "{choice:?}");
        // The pause itself is not idle time.
        look.now += choice.wait;
        look.buffer = Duration::from_millis(18_656);
        assert!(bola.choose(&ladder, &look).wait < Duration::from_millis(1));
        assert!(bola.placeholder_s < 1e-9);
    }

    #[test]
    fn one_bit_rate_leaves_nothing_to_decide() {
        let ladder = Ladder::new(vec![BitRate::from_mbps(1); 3]).unwrap();
        let mut bola = Bola::new(&ladder, limits(30));
        assert_eq!(bola.choose(&ladder, &look(0, 20_000, 9)), Choice::at_once(0));
    }
}
