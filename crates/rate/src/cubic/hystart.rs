//! The end of slow start: HyStart++ (RFC 9406). A round-trip time that grows from one round to the next shows a queue;
//! slow start then goes on at a quarter of its speed for some rounds, to see whether it was one, and ends.

use suiro_units::{Duration, Time};

/// §4.3: a round-trip time that is longer by an eighth, at least by this and at most by that, shows a queue.
const THRESHOLD_LEAST: Duration = Duration::from_millis(4);
const THRESHOLD_MOST: Duration = Duration::from_millis(16);
const THRESHOLD_SHARE: u64 = 8;
/// §4.3: a round with fewer samples says nothing.
const SAMPLES: u32 = 8;
/// §4.3: the window grows by this part of what is acknowledged while slow start is about to end.
const GROWTH: f64 = 1.0 / 4.0;
/// §4.3: so many rounds are that slow, then slow start ends.
const ROUNDS: u32 = 5;

/// Where slow start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Fast,
    /// The least round-trip time of the round in which it was slowed down, and the rounds since then.
    Slow(Duration, u32),
    Over,
}

/// What a slow start knows of its rounds.
#[derive(Debug, Clone)]
pub(super) struct HyStart {
    phase: Phase,
    /// A round ends when a packet is acknowledged that was sent after this.
    round: Option<Time>,
    least_before: Option<Duration>,
    least: Option<Duration>,
    samples: u32,
}

impl Default for HyStart {
    fn default() -> Self {
        Self { phase: Phase::Fast, round: None, least_before: None, least: None, samples: 0 }
    }
}

impl HyStart {
    /// A packet that was sent at `sent` and took `rtt` is acknowledged. By which part of it the window grows; `None`:
    /// slow start is over.
    pub fn on_ack(&mut self, now: Time, sent: Time, rtt: Duration) -> Option<f64> {
        if self.round.is_none_or(|began| sent >= began) {
            self.begin_round(now);
        }
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.samples += 1;
        match (self.phase, self.judged()) {
            (Phase::Fast, Some((before, least))) => {
                let share = Duration::from_nanos(before.as_nanos() / THRESHOLD_SHARE);
                if least >= before + share.clamp(THRESHOLD_LEAST, THRESHOLD_MOST) {
                    self.phase = Phase::Slow(least, 0);
                }
            }
            // §4.2: it was no queue.
            (Phase::Slow(baseline, _), Some((_, least))) if least < baseline => {
                self.phase = Phase::Fast;
            }
            _ => {}
        }
        match self.phase {
            Phase::Fast => Some(1.0),
            Phase::Slow(..) => Some(GROWTH),
            Phase::Over => None,
        }
    }

    /// The least round-trip times of the round before and of this one, if that has enough samples.
    fn judged(&self) -> Option<(Duration, Duration)> {
        (self.samples >= SAMPLES).then_some(())?;
        self.least_before.zip(self.least)
    }

    fn begin_round(&mut self, now: Time) {
        if let (Phase::Slow(baseline, rounds), Some(_)) = (self.phase, self.round) {
            let rounds = rounds + 1;
            self.phase = if rounds >= ROUNDS { Phase::Over } else { Phase::Slow(baseline, rounds) };
        }
        self.round = Some(now);
        (self.least_before, self.least, self.samples) = (self.least.or(self.least_before), None, 0);
    }
}
