//! The rate that the delay allows: additive or multiplicative increase, multiplicative decrease (draft-ietf-rmcat-gcc-02 §5.5,
//! with libwebrtc's `AimdRateControl`).

use suiro_units::{Duration, Time};

use super::arrival::Usage;
use super::throughput::Capacity;

/// What is left of what passes, after an overuse (§5.5: beta); and a little less, so that the queue drains. Of a capacity that was
/// measured before, only the first is taken.
const BETA: f64 = 0.85;
const BACKOFF: f64 = 5_000.0;
/// Growth in a second while the capacity is not known (§5.5: 8 %), and the least.
const GROWTH: f64 = 1.08;
const GROWTH_MIN: f64 = 1_000.0;
/// No more than this above what passes.
const ABOVE: f64 = 1.5;
const ABOVE_MORE: f64 = 10_000.0;
/// Near the capacity: about a packet of this size per response time, at a frame rate of 30 per second.
const PACKET: f64 = 1200.0 * 8.0;
const FRAMES: f64 = 30.0;
const RESPONSE: Duration = Duration::from_millis(100);
/// The least growth per second near the capacity.
const NEAR_MIN: f64 = 4_000.0;
/// The rate is reduced again no sooner than after a round-trip time, within these.
const AGAIN_MIN: Duration = Duration::from_millis(10);
const AGAIN_MAX: Duration = Duration::from_millis(200);
/// After so long the first rate is that which passes.
const FIRST: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Hold,
    Increase,
    Decrease,
}

/// What is known at an update.
#[derive(Debug, Clone, Copy)]
pub struct Input {
    /// What the delay does.
    pub usage: Usage,
    /// What passes, in bit/s, if it is known.
    pub passes: Option<f64>,
    /// The round-trip time.
    pub rtt: Duration,
}

/// The controller of the rate by delay, in bit/s.
#[derive(Debug, Clone)]
pub struct Aimd {
    rate: f64,
    /// The least and the greatest rate.
    bounds: (f64, f64),
    /// Whether the rate rests on a measurement.
    measured: bool,
    phase: Phase,
    capacity: Capacity,
    latest: Option<f64>,
    first_at: Option<Time>,
    changed: Time,
}

impl Aimd {
    pub fn new(rate: f64, bounds: (f64, f64), start: Time) -> Self {
        Self {
            rate,
            bounds,
            measured: false,
            phase: Phase::Hold,
            capacity: Capacity::default(),
            latest: None,
            first_at: None,
            changed: start,
        }
    }

    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether the rate rests on a measurement.
    pub const fn is_measured(&self) -> bool {
        self.measured
    }

    /// A probe has found another rate, or silence has ended trust in this one.
    pub fn set(&mut self, now: Time, rate: f64) {
        self.measured = true;
        self.rate = self.clamp(rate);
        self.changed = now;
    }

    /// What was known of the path may no longer be so.
    pub fn forget(&mut self) {
        self.capacity = Capacity::default();
    }

    fn clamp(&self, rate: f64) -> f64 {
        rate.clamp(self.bounds.0, self.bounds.1)
    }

    /// A report has come. While nothing that passes is known, an overuse halves the rate.
    pub fn update(&mut self, now: Time, input: Input) {
        if input.usage == Usage::Over {
            match input.passes {
                Some(passes) if !self.may_reduce(now, passes, input.rtt) => return,
                None if self.may_reduce(now, f64::INFINITY, input.rtt) => {
                    return self.set(now, self.rate / 2.0);
                }
                None => return,
                Some(_) => {}
            }
        }
        self.begin(now, input.passes);
        let passes = input.passes.or(self.latest).unwrap_or(self.rate);
        self.latest = input.passes.or(self.latest);
        if !self.measured && input.usage != Usage::Over {
            return;
        }
        self.turn(now, input.usage);
        match self.phase {
            Phase::Hold => {}
            Phase::Increase => self.increase(now, passes, input),
            Phase::Decrease => self.decrease(now, passes),
        }
    }

    fn may_reduce(&self, now: Time, passes: f64, rtt: Duration) -> bool {
        let wait = rtt.clamp(AGAIN_MIN, AGAIN_MAX);
        now.saturating_since(self.changed) >= wait || self.measured && passes < self.rate / 2.0
    }

    /// The first rate after some time without a probe is that which passes.
    fn begin(&mut self, now: Time, passes: Option<f64>) {
        let Some(passes) = passes.filter(|_| !self.measured) else { return };
        let first = *self.first_at.get_or_insert(now);
        if now.saturating_since(first) > FIRST {
            self.set(now, passes);
        }
    }

    /// The state machine of §5.5.
    fn turn(&mut self, now: Time, usage: Usage) {
        self.phase = match (usage, self.phase) {
            (Usage::Over, _) => Phase::Decrease,
            (Usage::Under, _) => Phase::Hold,
            (Usage::Normal, Phase::Hold) => {
                self.changed = now;
                Phase::Increase
            }
            (Usage::Normal, phase) => phase,
        };
    }

    fn increase(&mut self, now: Time, passes: f64, input: Input) {
        self.capacity.check(passes, true);
        let most = ABOVE * passes + ABOVE_MORE;
        let elapsed = now.saturating_since(self.changed).as_secs_f64();
        if self.rate < most {
            let more = if self.capacity.is_known() {
                elapsed * self.near(input.rtt)
            } else {
                (self.rate * (GROWTH.powf(elapsed.min(1.0)) - 1.0)).max(GROWTH_MIN)
            };
            self.rate = self.clamp((self.rate + more).min(most));
        }
        self.changed = now;
    }

    /// Growth per second near the capacity.
    fn near(&self, rtt: Duration) -> f64 {
        let frame = self.rate / FRAMES;
        let packet = frame / (frame / PACKET).ceil().max(1.0);
        (packet / ((rtt + RESPONSE) * 2).as_secs_f64()).max(NEAR_MIN)
    }

    fn decrease(&mut self, now: Time, passes: f64) {
        let mut reduced = BETA * passes;
        if reduced > BACKOFF {
            reduced -= BACKOFF;
        }
        if reduced > self.rate {
            reduced = self.capacity.bps().map_or(reduced, |capacity| BETA * capacity);
        }
        self.capacity.check(passes, false);
        self.rate = self.clamp(reduced.min(self.rate));
        self.measured = true;
        self.capacity.on_overuse(passes);
        self.phase = Phase::Hold;
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn input(usage: Usage, kbps: f64) -> Input {
        Input { usage, passes: Some(kbps * 1e3), rtt: RTT }
    }

    fn aimd() -> Aimd {
        let mut aimd = Aimd::new(300e3, (100e3, 5e6), Time::ZERO);
        aimd.set(Time::ZERO, 1e6);
        aimd
    }

    #[test]
    fn it_grows_by_eight_percent_a_second_until_the_capacity_is_known() {
        let mut aimd = aimd();
        (0..=100).for_each(|n| {
            aimd.update(Time::from_millis(100 * n), input(Usage::Normal, 5000.0));
        });
        let expected = 1e6 * 1.08_f64.powi(10);
        assert!((aimd.rate() / expected - 1.0).abs() < 0.001, "{} {expected}", aimd.rate());
    }

    #[test]
    fn an_overuse_leaves_a_share_of_what_passes_and_then_it_grows_slowly() {
        let mut aimd = aimd();
        aimd.update(Time::from_secs(1), input(Usage::Over, 900.0));
        assert!((aimd.rate() - (0.85 * 900e3 - 5e3)).abs() < 1.0, "{}", aimd.rate());
        let reduced = aimd.rate();
        aimd.update(Time::from_millis(1050), input(Usage::Over, 890.0));
        assert_eq!(aimd.rate(), reduced, "not twice in a round-trip time");
        (11..=41).for_each(|n| {
            aimd.update(Time::from_millis(100 * n), input(Usage::Normal, 760.0));
        });
        // 760 kbit/s are three packets of 1.06 kB in a frame: one more per 400 ms, for 3 s.
        let grown = (aimd.rate() - reduced) / 3.0;
        assert!((19e3..23e3).contains(&grown), "{grown}");
    }

    #[test]
    fn where_more_passes_than_the_rate_a_share_of_the_capacity_is_left() {
        let mut aimd = aimd();
        aimd.update(Time::from_secs(1), input(Usage::Over, 1000.0));
        assert!((aimd.rate() - (0.85 * 1000e3 - 5e3)).abs() < 1.0, "{}", aimd.rate());
        aimd.set(Time::from_secs(2), 870e3);
        // 0.85 · 1050 - 5 are 887.5 kbit/s, more than the rate; the capacity is 1000 kbit/s.
        aimd.update(Time::from_secs(3), input(Usage::Over, 1050.0));
        assert!((aimd.rate() - 850e3).abs() < 1.0, "{}", aimd.rate());
    }

    #[test]
    fn it_grows_no_further_than_what_passes_allows() {
        let mut aimd = aimd();
        (0..600).for_each(|n| {
            aimd.update(Time::from_millis(100 * n), input(Usage::Normal, 800.0));
        });
        assert!((aimd.rate() - 1210e3).abs() < 1.0, "{}", aimd.rate());
    }

    #[test]
    fn under_an_overuse_without_a_measurement_it_is_halved() {
        let mut aimd = aimd();
        let unknown = Input { passes: None, ..input(Usage::Over, 0.0) };
        aimd.update(Time::from_secs(1), unknown);
        assert_eq!(aimd.rate(), 500e3);
    }
}
