//! What a link asks of its carrier: how late packets may leave it before what was measured over it must not be used, and
//! how many there are. The argument is in `docs/method.md`.

use suiro_link::{
    DisciplineConfig, Distribution, LimitConfig, OPPORTUNITY, PathConfig, PropagationConfig,
    RateCurve, ServerConfig,
};
use suiro_units::{BitRate, Bytes, Duration};

/// Never less: the resolution of emulators that count in milliseconds.
const LEAST: Duration = Duration::from_millis(1);
/// Never more, however long the queue: a third of the time that a frame of 60 a second is shown.
const MOST: Duration = Duration::from_millis(5);
/// The share of a packet's stay in the link that lateness may add.
const SHARE: u64 = 10;
/// The time over which the peak of delivery opportunities is taken.
const PEAK_GRAIN_MS: u32 = 100;
/// A full-sized packet.
const PACKET: Bytes = Bytes::new(1500);

/// The largest 99th percentile of lateness at which a direction of a link is valid, 1 ms at least and 5 ms at most. It is
/// a tenth of the time for which a packet stays in the link when its queue is full, or the time from one packet to the
/// next at its rate if that is longer.
pub fn lateness_bound(path: &PathConfig) -> Duration {
    let rate = highest_rate(path).filter(|rate| !rate.is_zero());
    let spacing = rate.map_or(Duration::ZERO, |rate| PACKET / rate);
    let queue = rate.map_or(Duration::ZERO, |rate| longest_queue(path, rate));
    let stay = least_delay(&path.propagation) + queue;
    (stay / SHARE).max(spacing).clamp(LEAST, MOST)
}

/// Every packet stays on its way at least this long.
pub(crate) fn least_delay(propagation: &PropagationConfig) -> Duration {
    let delay = propagation.delay.steps().map(|(_, delay)| *delay).min().unwrap_or_default();
    let shorter = propagation.jitter.map_or(Duration::ZERO, |jitter| match jitter.distribution {
        Distribution::Exponential | Distribution::Pareto | Distribution::TruncatedGaussian => {
            Duration::ZERO
        }
        // The minimum is √3 standard deviations below the mean.
        Distribution::Uniform => jitter.sd * 2,
        Distribution::Normal => delay,
    });
    delay.saturating_sub(shorter)
}

/// The highest rate of delivery opportunities over [`PEAK_GRAIN_MS`]; their times do not decrease.
pub(crate) fn peak(times_ms: &[u32]) -> BitRate {
    let grains = times_ms.chunk_by(|a, b| a / PEAK_GRAIN_MS == b / PEAK_GRAIN_MS);
    let most = grains.map(<[u32]>::len).max().unwrap_or(0) as u64;
    Bytes::new(OPPORTUNITY.get() * most) / Duration::from_millis(PEAK_GRAIN_MS.into())
}

/// The highest rate that a direction ever has, of delivery opportunities over 100 ms; `None` if nothing limits it, or a medium
/// that it shares does.
pub fn highest_rate(path: &PathConfig) -> Option<BitRate> {
    let highest = |curve: &RateCurve| curve.steps.iter().map(|step| step.rate).max();
    match &path.server {
        ServerConfig::Unlimited
        | ServerConfig::Wifi
        | ServerConfig::Ethernet
        | ServerConfig::Cellular => None,
        ServerConfig::Steady(rate) | ServerConfig::Poisson(rate) => highest(rate),
        ServerConfig::Bucket { rate, .. } => highest(rate),
        ServerConfig::Trace(trace) => {
            let mean = trace.mean();
            Some(peak(&trace.times_ms).max(mean))
        }
    }
}

/// How long packets wait in a queue that is as long as its discipline lets it be for a while.
fn longest_queue(path: &PathConfig, rate: BitRate) -> Duration {
    match &path.queue.discipline {
        DisciplineConfig::Codel(codel) => return codel.target,
        DisciplineConfig::FqCodel(fq) => return fq.codel.target,
        DisciplineConfig::Pie(pie) => return pie.target,
        DisciplineConfig::Dualpi2(dual) => return dual.target.min(dual.ce_threshold),
        DisciplineConfig::Droptail => {}
    }
    let limit = match &path.queue.limit {
        LimitConfig::Bytes(limit) => {
            limit.steps().map(|(_, bytes)| *bytes).min().unwrap_or_default()
        }
        LimitConfig::Packets(packets) => Bytes::new(u64::from(*packets) * PACKET.get()),
    };
    (limit / rate).min(MOST * SHARE)
}

#[cfg(test)]
mod tests {
    use suiro_link::LinkSpec;

    use super::*;

    fn bound_us(link: &str) -> u64 {
        let spec: LinkSpec = toml::from_str(link).unwrap();
        let trace = |file: &std::path::Path| match file.to_str() {
            // Both have 3 Mbit/s in the mean over a second, the second one all of it within 100 ms.
            Some("even") => Ok((1..=250).map(|i| format!("{}\n", 4 * i)).collect()),
            Some("bursts") => Ok(format!("{}1000\n", "50\n".repeat(249))),
            _ => Ok("4\n8\n12\n".to_owned()),
        };
        let config = spec.resolve(&mut { trace }).unwrap();
        lateness_bound(&config.down).as_nanos() / 1000
    }

    #[test]
    fn it_follows_what_the_link_is_for() {
        for (link, us) in [
            ("delay = '1 ms'", 1000),
            ("delay = '20 ms'", 2000),
            ("delay = '100 ms'", 5000),
            // It only adds to the delay.
            (
                "delay = '20 ms'\njitter = { distribution = 'truncated-gaussian', sd = '9 ms' }",
                2000,
            ),
            // 100 kB at 10 Mbit/s drain in 80 ms.
            ("rate = '10 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '100 kB' }", 5000),
            // 25 kB drain in 20 ms.
            ("rate = '10 Mbit/s'\ndelay = '5 ms'\nqueue = { limit = '25 kB' }", 2500),
            ("rate = '10 Mbit/s'\ndelay = '5 ms'\nqueue = { discipline = 'codel' }", 1200),
            // A packet takes 3 ms.
            ("rate = '4 Mbit/s'\nqueue = { limit = '1p' }", 3000),
            ("trace = 'steady'\ndelay = '5 ms'\nqueue = { limit = '1p' }", 4000),
            ("rate = '1 Gbit/s'\nqueue = { limit = '1p' }", 1000),
            // 25 packets drain in 100 ms at 3 Mbit/s, but in 10 ms at 30.
            ("trace = 'even'\ndelay = '5 ms'\nqueue = { limit = '25p' }", 5000),
            ("trace = 'bursts'\ndelay = '5 ms'\nqueue = { limit = '25p' }", 1500),
        ] {
            let found = bound_us(link);
            assert!(found.abs_diff(us) <= us / 12, "{link}: {found} µs, expected {us} µs");
        }
    }
}
