//! The rate that losses allow: libwebrtc's loss-based estimation v2 (`LossBasedBweV2`), which replaces
//! draft-ietf-rmcat-gcc-02 §6.
//!
//! Losses have two causes: the path loses a share of all packets (the inherent loss), and what is sent beyond the capacity is lost.
//! Of several candidates for the capacity, the one is taken under which the losses of the last seconds are the most likely, with a
//! bias for higher ones.

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

/// An observation is of packets that left within at least this time.
const OBSERVATION: Duration = Duration::from_millis(250);
/// So many are remembered, and each counts this much less than the one after it; so many are needed.
const OBSERVATIONS: usize = 15;
const FADES: f64 = 0.9;
const ENOUGH: usize = 3;
/// The inherent loss at first, its least, and its greatest: a share, and so much more of the rate in bit/s.
const INHERENT: f64 = 0.01;
const INHERENT_MIN: f64 = 0.001;
const INHERENT_MAX: f64 = 0.05;
const INHERENT_MAX_BPS: f64 = 100_000.0;
/// Candidates, in capacities.
const CANDIDATES: [f64; 3] = [1.02, 1.0, 0.95];
/// One step of Newton's method towards the most likely inherent loss.
const NEWTON_STEP: f64 = 0.75;
/// The bias for a higher capacity, by its kbit/s and by their logarithm; the loss above which it is one for a lower capacity.
const BIAS: f64 = 0.0002;
const BIAS_LOG: f64 = 0.02;
const BIAS_LOSS: f64 = 0.2;
const BIAS_SMOOTHING: f64 = 0.002;
/// While losses limit the rate: growth within this time, and in what passes.
const GROWTH: f64 = 1.3;
const GROWTH_WITHIN: Duration = Duration::from_millis(300);
const ABOVE: f64 = 1.5;

/// What became of the packets of some time.
#[derive(Debug, Clone, Copy, Default)]
struct Observation {
    packets: f64,
    lost: f64,
    /// How fast they were sent, in bit/s.
    rate: f64,
}

/// Packets that are not yet an observation.
#[derive(Debug, Clone, Copy, Default)]
struct Partial {
    span: Option<(Time, Time)>,
    packets: f64,
    lost: f64,
    bits: f64,
}

/// A candidate: a capacity in bit/s, and the inherent loss that goes with it.
#[derive(Debug, Clone, Copy)]
struct Channel {
    bps: f64,
    inherent: f64,
}

/// The estimator.
#[derive(Debug, Clone)]
pub struct LossBased {
    partial: Partial,
    observations: VecDeque<Observation>,
    /// When the last packet of the latest observation left.
    observed: Option<Time>,
    best: Option<Channel>,
    /// The most that the rate may grow to, and until when.
    ceiling: Option<(f64, Time)>,
    limits: bool,
    least: f64,
}

impl LossBased {
    /// No estimate is below `least`, in bit/s.
    pub fn new(least: f64) -> Self {
        Self {
            partial: Partial::default(),
            observations: VecDeque::new(),
            observed: None,
            best: None,
            ceiling: None,
            limits: false,
            least,
        }
    }

    /// Whether losses limit the rate.
    pub const fn limits(&self) -> bool {
        self.limits
    }

    /// The share of packets lost, as observed lately.
    pub fn loss(&self) -> f64 {
        let sum = |of: fn(&Observation) -> f64| -> f64 {
            self.observations.iter().zip(weights()).map(|(seen, weight)| weight * of(seen)).sum()
        };
        let packets = sum(|seen| seen.packets);
        if packets > 0.0 { sum(|seen| seen.lost) / packets } else { 0.0 }
    }

    /// A packet was reported.
    pub fn on_packet(&mut self, sent: Time, bytes: f64, lost: bool) {
        let partial = &mut self.partial;
        let (first, last) = partial.span.unwrap_or((sent, sent));
        partial.span = Some((first.min(sent), last.max(sent)));
        partial.packets += 1.0;
        partial.lost += f64::from(u8::from(lost));
        partial.bits += bytes * 8.0;
    }

    /// A report has ended: what losses allow, no more than what the delay does. `passes` is what was acknowledged, unless the
    /// application limits that.
    pub fn update(&mut self, now: Time, by_delay: f64, passes: Option<f64>) -> f64 {
        if !self.observe() {
            let limit = self.best.filter(|_| self.limits).map_or(by_delay, |best| best.bps);
            return limit.min(by_delay);
        }
        let current = self.best.unwrap_or(Channel { bps: by_delay, inherent: INHERENT });
        if self.observations.len() < ENOUGH {
            self.best = Some(Channel { bps: by_delay, ..current });
            return by_delay;
        }
        let mut best = self.candidate(current, by_delay, passes);
        // What was lost is more than the path itself loses: no time to grow.
        if best.bps > current.bps && self.loss() > best.inherent && self.limits {
            best.bps = current.bps;
        }
        if let Some((ceiling, _)) = self.ceiling.filter(|(_, until)| self.limits && now < *until) {
            best.bps = best.bps.min(ceiling);
        }
        // The rate that passes is not too high.
        let least = self.least.max(passes.unwrap_or(0.0));
        let allowed = best.bps.min(self.at_once()).max(least);
        self.limits = allowed < by_delay;
        best.bps = allowed.min(by_delay);
        let expired = self.ceiling.is_none_or(|(_, until)| now >= until);
        if self.limits && (expired || best.bps < current.bps) {
            self.ceiling = Some((best.bps * GROWTH, now + GROWTH_WITHIN));
        }
        self.best = Some(best);
        best.bps
    }

    /// Silence, or a probe, has changed what is believed.
    pub fn set(&mut self, bps: f64) {
        if let Some(best) = &mut self.best {
            best.bps = best.bps.min(bps);
        }
    }

    /// Makes an observation of what was reported, if that is enough.
    fn observe(&mut self) -> bool {
        let Some((first, last)) = self.partial.span else { return false };
        // The gap before its first packet is part of it.
        let span = last.saturating_since(self.observed.unwrap_or(first));
        if span < OBSERVATION {
            return false;
        }
        self.observed = Some(last);
        let Partial { packets, lost, bits, .. } = std::mem::take(&mut self.partial);
        self.observations.push_front(Observation {
            packets,
            lost,
            rate: bits / span.as_secs_f64(),
        });
        self.observations.truncate(OBSERVATIONS);
        true
    }

    fn candidate(&self, current: Channel, by_delay: f64, passes: Option<f64>) -> Channel {
        let most = match passes {
            Some(passes) if self.limits => (ABOVE * passes).max(current.bps),
            _ => f64::INFINITY,
        };
        let factors = CANDIDATES.map(|factor| factor * current.bps);
        let others = [passes, (by_delay > current.bps).then_some(by_delay)];
        let candidates = factors.into_iter().chain(others.into_iter().flatten());
        let judged = candidates.map(|bps| {
            let channel = self.likely(Channel { bps: bps.min(most).max(1.0), ..current });
            (self.score(channel), channel)
        });
        judged.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(current, |(_, channel)| channel)
    }

    /// The channel with an inherent loss that is nearer to the most likely one.
    fn likely(&self, channel: Channel) -> Channel {
        let most = (INHERENT_MAX + INHERENT_MAX_BPS / channel.bps).min(1.0);
        let inherent = channel.inherent.clamp(INHERENT_MIN, most);
        let channel = Channel { inherent, ..channel };
        let (mut slope, mut bend) = (0.0, 0.0);
        for (seen, weight) in self.observations.iter().zip(weights()) {
            let loss = channel.loss_at(seen.rate);
            let received = seen.packets - seen.lost;
            slope += weight * (seen.lost / loss - received / (1.0 - loss));
            bend -= weight * (seen.lost / loss.powi(2) + received / (1.0 - loss).powi(2));
        }
        let step = if bend < 0.0 { NEWTON_STEP * slope / bend } else { 0.0 };
        Channel { inherent: (inherent - step).clamp(INHERENT_MIN, most), ..channel }
    }

    /// How likely the observations are, as a logarithm, with the bias.
    fn score(&self, channel: Channel) -> f64 {
        let kbps = channel.bps / 1e3;
        let distance = BIAS_LOSS - self.loss();
        let bias = distance / (BIAS_SMOOTHING + distance.abs())
            * (BIAS * kbps + BIAS_LOG * (1.0 + kbps).ln());
        let of = |(seen, weight): (&Observation, f64)| {
            let loss = channel.loss_at(seen.rate);
            let received = seen.packets - seen.lost;
            weight * (seen.lost * loss.ln() + received * (1.0 - loss).ln() + bias * seen.packets)
        };
        self.observations.iter().zip(weights()).map(of).sum()
    }

    /// The most that such losses allow, whatever the model says.
    fn at_once(&self) -> f64 {
        let above = self.loss() - INHERENT_MAX;
        if above > 0.0 { INHERENT_MAX_BPS / above } else { f64::INFINITY }
    }
}

impl Channel {
    /// The share of packets that is lost at a rate of sending.
    fn loss_at(&self, rate: f64) -> f64 {
        let beyond = if rate > self.bps { (rate - self.bps) / rate } else { 0.0 };
        (self.inherent + (1.0 - self.inherent) * beyond).clamp(1e-6, 1.0 - 1e-6)
    }
}

/// What each observation counts, the latest first.
fn weights() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(1.0), |weight| Some(weight * FADES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends at a rate for so many seconds over a path that loses every so manieth packet, and what is beyond a capacity.
    fn run(loss: &mut LossBased, from: u64, seconds: u64, every: u64, capacity: f64) -> f64 {
        let mut allowed: f64 = 1e6;
        let mut excess: f64 = 0.0;
        for n in 0..seconds * 20 {
            let start = from * 1000 + 50 * n;
            let packets = (allowed * 0.05 / 8000.0).round().max(1.0) as u64;
            let share = (1.0 - capacity / (packets as f64 * 160e3)).max(0.0);
            let mut came: f64 = 0.0;
            for k in 0..packets {
                excess += share;
                let lost = (n * packets + k) % every == every - 1 || excess >= 1.0;
                excess -= excess.floor();
                let sent = Time::from_millis(start) + Duration::from_millis(50) * k / packets;
                loss.on_packet(sent, 1000.0, lost);
                came += f64::from(u8::from(!lost));
            }
            allowed = loss.update(Time::from_millis(start + 50), 1e6, Some(came * 160e3));
        }
        allowed
    }

    #[test]
    fn a_path_that_loses_some_packets_does_not_lower_the_rate() {
        let mut loss = LossBased::new(50e3);
        assert_eq!(run(&mut loss, 0, 20, 50, 10e6), 1e6, "2 % are the path's own");
        assert!((loss.loss() - 0.02).abs() < 0.01);
        assert!(!loss.limits());
    }

    #[test]
    fn losses_of_a_capacity_lower_it_to_about_the_capacity() {
        let mut loss = LossBased::new(50e3);
        let allowed = run(&mut loss, 0, 20, u64::MAX, 500e3);
        assert!((400e3..700e3).contains(&allowed), "{allowed}");
        assert!(loss.limits());
        // And it grows again when nothing is lost.
        let allowed = run(&mut loss, 20, 30, u64::MAX, 10e6);
        assert_eq!(allowed, 1e6);
    }

    /// Reports packets of 1000 bytes, one each 50 ms, none lost, and what is allowed after that.
    fn quiet(loss: &mut LossBased, from: u64, packets: u64, by_delay: f64) -> f64 {
        let mut allowed = 0.0;
        for n in from..from + packets {
            loss.on_packet(Time::from_millis(50 * n), 1000.0, false);
            allowed = loss.update(Time::from_millis(50 * n + 20), by_delay, Some(1e6));
        }
        allowed
    }

    #[test]
    fn without_losses_nothing_limits_the_rate() {
        let mut loss = LossBased::new(50e3);
        assert_eq!(quiet(&mut loss, 0, 25, 1e6), 1e6);
        assert_eq!(quiet(&mut loss, 25, 5, 3e6), 3e6, "three times what passes, as a probe found");
        assert!(!loss.limits());
    }

    #[test]
    fn the_gap_between_observations_belongs_to_the_next() {
        let mut loss = LossBased::new(50e3);
        quiet(&mut loss, 0, 20, 1e6);
        // One packet each 50 ms is 160 kbit/s; the first observation begins with a packet.
        let rates: Vec<f64> = loss.observations.iter().map(|seen| seen.rate).collect();
        assert_eq!(rates, [160e3, 160e3, 192e3]);
    }

    #[test]
    fn heavy_losses_lower_it_at_once() {
        let mut loss = LossBased::new(50e3);
        let allowed = run(&mut loss, 0, 3, 2, 10e6);
        assert!(allowed < 250e3, "half of all is lost: {allowed}");
    }
}
