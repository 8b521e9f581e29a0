//! What a link is asked to carry over time: the line that a throughput is drawn against.

use suiro_units::{BitRate, Bytes, Duration};

use crate::config::ServerConfig;
use crate::trace::{OPPORTUNITY, OpportunityTrace, RateCurve};

impl ServerConfig {
    /// The mean rate asked for in each of `count` spans of length `span`, from the trial's start;
    /// `None` if nothing limits it, or a medium that stations share does. Of a token bucket it is the rate at which tokens come.
    pub fn mean_rates(&self, span: Duration, count: usize) -> Option<Vec<BitRate>> {
        if span.is_zero() {
            return None;
        }
        match self {
            Self::Unlimited | Self::Wifi | Self::Ethernet | Self::Cellular => None,
            Self::Steady(rate) | Self::Bucket { rate, .. } | Self::Poisson(rate) => {
                Some(of_curve(rate, span.as_nanos(), count))
            }
            Self::Trace(trace) => Some(of_opportunities(trace, span, count)),
        }
    }
}

fn of_curve(curve: &RateCurve, span_ns: u64, count: usize) -> Vec<BitRate> {
    let carried = Carried::new(curve);
    (0..count as u64)
        .map(|index| {
            let nanobits = carried.until((index + 1) * span_ns) - carried.until(index * span_ns);
            BitRate::from_bps(u64::try_from(nanobits / u128::from(span_ns)).unwrap_or(u64::MAX))
        })
        .collect()
}

/// What a curve carries up to a time, in bits × 10⁹.
struct Carried<'a> {
    curve: &'a RateCurve,
    /// Up to the beginning of each step.
    before: Vec<u128>,
}

impl<'a> Carried<'a> {
    fn new(curve: &'a RateCurve) -> Self {
        let mut before = vec![0];
        for pair in curve.steps.windows(2) {
            let span = u128::from((pair[1].at - pair[0].at).as_nanos());
            before.push(before[before.len() - 1] + span * u128::from(pair[0].rate.as_bps()));
        }
        Self { curve, before }
    }

    fn until(&self, time_ns: u64) -> u128 {
        match self.curve.period.map(Duration::as_nanos) {
            None => self.within(time_ns),
            Some(period) => {
                u128::from(time_ns / period) * self.within(period) + self.within(time_ns % period)
            }
        }
    }

    fn within(&self, time_ns: u64) -> u128 {
        let steps = &self.curve.steps;
        let past = steps.partition_point(|step| step.at.as_nanos() <= time_ns).max(1) - 1;
        let since = u128::from(time_ns.saturating_sub(steps[past].at.as_nanos()));
        self.before[past] + since * u128::from(steps[past].rate.as_bps())
    }
}

fn of_opportunities(trace: &OpportunityTrace, span: Duration, count: usize) -> Vec<BitRate> {
    let period_ms = trace.period().as_nanos() / 1_000_000;
    let within = |ms: u64| trace.times_ms.partition_point(|&t| u64::from(t) < ms) as u64;
    let all = trace.times_ms.len() as u64;
    // Opportunities before a time. Those at the end of a round are not before the next one's start.
    let until = |time_ns: u64| {
        let time_ms = time_ns.div_ceil(1_000_000);
        match (trace.repeat, time_ms / period_ms, time_ms % period_ms) {
            (false, ..) | (true, 0, _) => within(time_ms),
            (true, rounds, 0) => (rounds - 1) * all + within(period_ms),
            (true, rounds, rest) => rounds * all + within(rest),
        }
    };
    (0..count as u64)
        .map(|index| {
            let (from, to) = (index * span.as_nanos(), (index + 1) * span.as_nanos());
            Bytes::new((until(to) - until(from)) * OPPORTUNITY.get()) / span
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{RateStep, parse_mahimahi};

    fn step(ms: u64, mbps: u64) -> RateStep {
        RateStep { at: Duration::from_millis(ms), rate: BitRate::from_mbps(mbps) }
    }

    fn mbps(rates: &[BitRate]) -> Vec<f64> {
        rates.iter().map(|rate| rate.as_mbps_f64()).collect()
    }

    #[test]
    fn a_step_within_a_span_counts_for_its_part() {
        let curve = RateCurve { steps: vec![step(0, 8), step(150, 2)], period: None };
        let rates = ServerConfig::Steady(curve).mean_rates(Duration::from_millis(100), 4);
        assert_eq!(mbps(&rates.unwrap()), [8.0, 5.0, 2.0, 2.0]);
    }

    #[test]
    fn a_curve_that_repeats_repeats() {
        let period = Some(Duration::from_millis(200));
        let curve = RateCurve { steps: vec![step(0, 8), step(100, 0)], period };
        let rates = ServerConfig::Steady(curve).mean_rates(Duration::from_millis(100), 5);
        assert_eq!(mbps(&rates.unwrap()), [8.0, 0.0, 8.0, 0.0, 8.0]);
    }

    #[test]
    fn opportunities_are_counted() {
        // Two in the first 10 ms; at 20 ms the last one and the next round's first, then its second.
        let trace = parse_mahimahi("0\n5\n20\n").unwrap();
        let rates = ServerConfig::Trace(trace).mean_rates(Duration::from_millis(10), 4).unwrap();
        assert_eq!(mbps(&rates), [2.4, 0.0, 3.6, 0.0]);
        assert_eq!(ServerConfig::Unlimited.mean_rates(Duration::from_millis(10), 4), None);
    }
}
