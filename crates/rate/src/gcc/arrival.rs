//! How the times between groups of packets change on the path (draft-ietf-rmcat-gcc-02 §5.2 and §5.3, with the trendline filter
//! that libwebrtc has had in place of the Kalman filter since 2016).

use std::collections::VecDeque;

use suiro_units::Time;

/// Packets that leave within this time are one group (§5.2: 5 ms).
const GROUP_MS: f64 = 5.0;
/// Packets that arrive within this time of one another, later ones with less delay, have waited together: one group, up to a bound.
const BURST_MS: f64 = 5.0;
const BURST_MAX_MS: f64 = 100.0;
/// Groups that end before the one before them, after which everything begins anew.
const REORDERED_MAX: u32 = 3;

/// Groups of which the slope is computed.
const WINDOW: usize = 20;
/// Weight of the past in the smoothed delay.
const SMOOTHING: f64 = 0.9;
/// What makes a slope comparable with the threshold.
const GAIN: f64 = 4.0;
/// Groups up to which the slope counts the more, the more there are.
const DELTAS_MAX: u32 = 60;
/// The threshold at first, its least and its greatest value (§5.4: 12.5 ms, 6 ms, 600 ms).
const THRESHOLD: f64 = 12.5;
const THRESHOLD_MIN: f64 = 6.0;
const THRESHOLD_MAX: f64 = 600.0;
/// How fast it follows, per ms: up and down (§5.4, `K_u` and `K_d`, as libwebrtc has them).
const RISE: f64 = 0.0087;
const FALL: f64 = 0.039;
/// What is further above the threshold than this leaves it as it is.
const OFFSET_MAX: f64 = 15.0;
/// A step of the threshold counts no more time than this.
const STEP_MAX_MS: f64 = 100.0;
/// How long the slope must be above the threshold (§5.4: 10 ms).
const OVERUSE_MS: f64 = 10.0;

/// What the delay does (§5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Usage {
    /// Nothing.
    #[default]
    Normal,
    /// It grows: more is sent than passes.
    Over,
    /// It falls: a queue drains.
    Under,
}

/// A group of packets, in ms on each side's clock.
#[derive(Debug, Clone, Copy)]
struct Group {
    first_sent: f64,
    sent: f64,
    first_arrived: f64,
    arrived: f64,
}

/// Two neighbouring groups: what lies between them where they leave, and where they arrive.
#[derive(Debug, Clone, Copy)]
struct Delta {
    sent: f64,
    arrived: f64,
    at: f64,
}

/// From packets to groups.
#[derive(Debug, Clone, Default)]
struct Groups {
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u32,
}

impl Groups {
    fn take(&mut self, sent: f64, arrived: f64) -> Option<Delta> {
        let new = Group { first_sent: sent, sent, first_arrived: arrived, arrived };
        let Some(current) = &mut self.current else {
            self.current = Some(new);
            return None;
        };
        if sent < current.first_sent {
            return None;
        }
        if current.includes(sent, arrived) {
            (current.sent, current.arrived) = (current.sent.max(sent), arrived);
            return None;
        }
        let ended = *current;
        let delta = self.previous.map(|previous| Delta {
            sent: ended.sent - previous.sent,
            arrived: ended.arrived - previous.arrived,
            at: ended.arrived,
        });
        if delta.is_some_and(|delta| delta.arrived < 0.0) {
            self.reordered += 1;
            if self.reordered >= REORDERED_MAX {
                *self = Self::default();
            }
            return None;
        }
        self.reordered = 0;
        (self.previous, self.current) = (Some(ended), Some(new));
        delta
    }
}

impl Group {
    fn includes(&self, sent: f64, arrived: f64) -> bool {
        let (apart_sent, apart_arrived) = (sent - self.sent, arrived - self.arrived);
        let waited_together = apart_arrived - apart_sent < 0.0
            && apart_arrived <= BURST_MS
            && arrived - self.first_arrived < BURST_MAX_MS;
        apart_sent == 0.0 || waited_together || sent - self.first_sent <= GROUP_MS
    }
}

/// Detects from arrivals whether the path is overused.
#[derive(Debug, Clone)]
pub struct Trendline {
    groups: Groups,
    /// Arrival and smoothed delay of the latest groups, from the first arrival on.
    history: VecDeque<(f64, f64)>,
    first: Option<f64>,
    delay: f64,
    smoothed: f64,
    deltas: u32,
    trend: f64,
    threshold: f64,
    threshold_at: Option<f64>,
    /// How long the slope has been above the threshold, and in how many groups.
    over: Option<(f64, u32)>,
    usage: Usage,
}

impl Default for Trendline {
    fn default() -> Self {
        Self {
            groups: Groups::default(),
            history: VecDeque::new(),
            first: None,
            delay: 0.0,
            smoothed: 0.0,
            deltas: 0,
            trend: 0.0,
            threshold: THRESHOLD,
            threshold_at: None,
            over: None,
            usage: Usage::Normal,
        }
    }
}

impl Trendline {
    /// A packet has arrived; times of both clocks.
    pub fn on_packet(&mut self, sent: Time, arrived: Time) {
        let ms = |at: Time| at.as_secs_f64() * 1e3;
        if let Some(delta) = self.groups.take(ms(sent), ms(arrived)) {
            self.on_delta(delta);
        }
    }

    /// What the delay does.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    fn on_delta(&mut self, delta: Delta) {
        self.deltas = (self.deltas + 1).min(DELTAS_MAX);
        let first = *self.first.get_or_insert(delta.at);
        self.delay += delta.arrived - delta.sent;
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.delay;
        self.history.push_back((delta.at - first, self.smoothed));
        if self.history.len() > WINDOW {
            self.history.pop_front();
        }
        let slope = (self.history.len() == WINDOW).then(|| slope(&self.history)).flatten();
        self.judge(slope.unwrap_or(self.trend), delta);
    }

    /// §5.4.
    fn judge(&mut self, trend: f64, delta: Delta) {
        if self.deltas < 2 {
            return;
        }
        let offset = f64::from(self.deltas) * trend * GAIN;
        if offset > self.threshold {
            let (time, groups) = self.over.unwrap_or((-delta.sent / 2.0, 0));
            let (time, groups) = (time + delta.sent, groups + 1);
            self.over = Some((time, groups));
            if time > OVERUSE_MS && groups > 1 && trend >= self.trend {
                (self.usage, self.over) = (Usage::Over, Some((0.0, 0)));
            }
        } else {
            self.usage = if offset < -self.threshold { Usage::Under } else { Usage::Normal };
            self.over = None;
        }
        self.trend = trend;
        self.adapt(offset.abs(), delta.at);
    }

    /// §5.4: so that a competing flow that keeps the queue full does not starve this one.
    fn adapt(&mut self, offset: f64, at: f64) {
        let before = self.threshold_at.replace(at).unwrap_or(at);
        if offset > self.threshold + OFFSET_MAX {
            return;
        }
        let gain = if offset < self.threshold { FALL } else { RISE };
        let step = (at - before).clamp(0.0, STEP_MAX_MS);
        self.threshold = (self.threshold + gain * (offset - self.threshold) * step)
            .clamp(THRESHOLD_MIN, THRESHOLD_MAX);
    }
}

/// The slope of the line through points by least squares; `None` if all are at one time.
fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let count = points.len() as f64;
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (mut above, mut below) = (0.0, 0.0);
    for (x, y) in points {
        above += (x - mean_x) * (y - mean_y);
        below += (x - mean_x) * (x - mean_x);
    }
    (below > 0.0).then(|| above / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet each 20 ms, whose delay grows by so many ms each time; what is said last.
    fn usage(trend: &mut Trendline, from: u64, count: u64, delay: impl Fn(u64) -> f64) -> Usage {
        for n in from..from + count {
            let sent = 20.0 * n as f64;
            let at = |ms: f64| Time::from_nanos((ms * 1e6) as u64);
            trend.on_packet(at(sent), at(sent + 1000.0 + delay(n)));
        }
        trend.usage()
    }

    #[test]
    fn a_delay_that_grows_is_overuse_and_one_that_falls_is_not() {
        let mut trend = Trendline::default();
        assert_eq!(usage(&mut trend, 0, 100, |_| 50.0), Usage::Normal);
        assert_eq!(usage(&mut trend, 100, 25, |n| 50.0 + 2.0 * (n - 100) as f64), Usage::Over);
        assert_eq!(usage(&mut trend, 125, 30, |n| 100.0 - 1.5 * (n - 125) as f64), Usage::Under);
    }

    #[test]
    fn the_threshold_follows_what_it_sees_within_bounds() {
        let mut trend = Trendline::default();
        usage(&mut trend, 0, 400, |_| 50.0);
        assert!((trend.threshold - THRESHOLD_MIN).abs() < 1e-9, "{}", trend.threshold);
        // Jitter of ±4 ms.
        usage(&mut trend, 400, 400, |n| 50.0 + 4.0 * (n % 3) as f64);
        assert!((6.0..600.0).contains(&trend.threshold), "{}", trend.threshold);
        assert_eq!(trend.usage(), Usage::Normal);
    }

    #[test]
    fn packets_of_a_burst_are_one_group() {
        let mut groups = Groups::default();
        // Three leave within 5 ms; a fourth leaves later, but arrives right behind them.
        for (sent, arrived) in [(0.0, 50.0), (2.0, 52.0), (4.0, 54.0), (12.0, 55.0)] {
            assert!(groups.take(sent, arrived).is_none());
        }
        assert!(groups.take(30.0, 80.0).is_none(), "the first group has none before it");
        let delta = groups.take(60.0, 115.0).expect("the second group has ended");
        assert_eq!((delta.sent, delta.arrived), (18.0, 25.0));
    }
}
