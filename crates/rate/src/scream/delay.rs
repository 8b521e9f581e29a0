//! The queueing delay, its average and its target (§4.2.1.4, §4.5.4).

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

/// Weight of the latest delay in a rising average (QDELAY_AVG_G).
const GAIN: f64 = 0.25;
/// The least and the greatest target of the queueing delay, in seconds (QDELAY_TARGET_LO, QDELAY_TARGET_HI).
pub const TARGET_LOW: f64 = 0.06;
const TARGET_HIGH: f64 = 0.4;
/// How often the target is looked at. The draft leaves it open; the authors' implementation does so every 50 ms.
const LOOK: Duration = Duration::from_millis(50);
/// Looks over which the variance and the mean of the delay are taken.
const VARIANCE_LOOKS: usize = 200;
const MEAN_LOOKS: usize = 50;
/// Losses in more than this share of the round trips are those of competitors.
const LOSS_EVENTS: f64 = 0.002;
/// Weight of the latest round trip in the share of those with losses.
const EVENT_GAIN: f64 = 0.02;

/// The queueing delay over time.
#[derive(Debug, Clone)]
pub struct Delay {
    latest: f64,
    average: f64,
    averaged: Time,
    target: f64,
    /// Delays over [`TARGET_LOW`], the latest last.
    looks: VecDeque<f64>,
    looked: Time,
    /// The share of round trips with losses, whether this one has any, and when it began.
    loss_events: f64,
    lost: bool,
    round: Time,
}

impl Delay {
    pub fn new(start: Time) -> Self {
        Self {
            latest: 0.0,
            average: 0.0,
            averaged: start,
            target: TARGET_LOW,
            looks: VecDeque::new(),
            looked: start,
            loss_events: 0.0,
            lost: false,
            round: start,
        }
    }

    /// The latest queueing delay in seconds.
    pub const fn latest(&self) -> f64 {
        self.latest
    }

    /// Its average: slow to rise, quick to fall.
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// The target of the average, in seconds: the more, the longer the queues that competitors make.
    pub const fn target(&self) -> f64 {
        self.target
    }

    /// A packet of the latest report had this queueing delay; `lost` says whether the report was of losses.
    /// `every` is the least time between two updates of the average.
    pub fn on_report(
        &mut self,
        now: Time,
        queueing: Duration,
        lost: bool,
        (every, rtt): (Duration, Duration),
    ) {
        self.latest = queueing.as_secs_f64();
        if now.saturating_since(self.averaged) >= every {
            self.averaged = now;
            let rise = (self.latest - self.average).max(0.0);
            self.average = self.latest.min(self.average) + GAIN * rise;
        }
        self.lost |= lost;
        if now.saturating_since(self.round) >= rtt {
            let event = f64::from(u8::from(self.lost));
            self.loss_events += EVENT_GAIN * (event - self.loss_events);
            (self.round, self.lost) = (now, false);
        }
        if now.saturating_since(self.looked) >= LOOK {
            self.looked = now;
            self.adjust_target();
        }
    }

    /// §4.5.4: where the delay is long and steady, or packets are lost, a competitor fills the queue.
    fn adjust_target(&mut self) {
        if self.looks.len() == VARIANCE_LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back(self.latest / TARGET_LOW);
        let count = self.looks.len() as f64;
        let mean = self.looks.iter().sum::<f64>() / count;
        let variance = self.looks.iter().map(|look| (look - mean).powi(2)).sum::<f64>() / count;
        let recent = self.looks.len().min(MEAN_LOOKS);
        let recent_mean = self.looks.iter().rev().take(recent).sum::<f64>() / recent as f64;
        let new = (recent_mean + variance.sqrt()) * TARGET_LOW;
        self.target = if self.loss_events > LOSS_EVENTS {
            1.5 * new
        } else if variance < 0.2 {
            new
        } else if new < TARGET_LOW {
            (self.target * 0.5).max(new)
        } else {
            self.target * 0.9
        };
        self.target = self.target.clamp(TARGET_LOW, TARGET_HIGH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(100));

    fn after(delays: &[(u64, bool)]) -> Delay {
        let mut delay = Delay::new(Time::ZERO);
        for (n, (ms, lost)) in (1..).zip(delays) {
            delay.on_report(Time::from_millis(25 * n), Duration::from_millis(*ms), *lost, TIMES);
        }
        delay
    }

    #[test]
    fn the_average_rises_slowly_and_falls_at_once() {
        assert_eq!(after(&[(40, false)]).average(), 0.010);
        let two = after(&[(40, false), (40, false)]).average();
        assert!((two - 0.0175).abs() < 1e-12, "{two}");
        assert_eq!(after(&[(40, false), (40, false), (5, false)]).average(), 0.005);
    }

    #[test]
    fn a_competitor_raises_the_target_and_its_end_lowers_it() {
        assert_eq!(after(&[(20, false); 400]).target(), TARGET_LOW);
        let mut delays = vec![(20, false); 40];
        delays.extend([(300, true); 400]);
        assert_eq!(after(&delays).target(), TARGET_HIGH);
        delays.extend([(5, false); 3000]);
        assert_eq!(after(&delays).target(), TARGET_LOW);
    }
}
