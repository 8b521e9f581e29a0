//! What a self-check sends, derived from the link's configuration.

use suiro_link::{
    DisciplineConfig, LimitConfig, LossConfig, OPPORTUNITY, OpportunityTrace, PathConfig,
    RateCurve, Schedule, ServerConfig,
};
use suiro_units::{BitRate, Bytes, Duration, Time};

use super::load::{Burst, PACKET_BYTES_MIN};
use crate::bound::peak;

/// Size of a probe's IP packet.
const PROBE_BYTES: u32 = 100;
/// Share of the rate that the probe takes: low enough that it never waits in a queue.
const PROBE_SHARE: f64 = 0.3;
/// Most packets per second of the probe.
const PROBE_PER_SECOND_MAX: f64 = 2_000.0;
/// On a shared medium: few enough to get through at the slowest coding scheme.
const PROBE_PER_SECOND_AIR: f64 = 100.0;
/// How long the probe lasts, or longer if that would be fewer than [`PROBE_COUNT_MIN`] packets.
const PROBE_S: f64 = 0.6;
/// The longest that it lasts.
const PROBE_S_MAX: f64 = 1.5;
/// Where jitter keeps order: this many times as long as its delays resemble one another …
const PROBE_MEMORIES: f64 = 40.0;
/// … but no longer than this.
const PROBE_JITTER_S_MAX: f64 = 4.0;
/// Fewest packets in a useful probe.
const PROBE_COUNT_MIN: f64 = 12.0;

/// Largest IP packet of the flood.
const FLOOD_BYTES_MAX: f64 = 1250.0;
/// Smallest IP packet of the flood.
const FLOOD_BYTES_MIN: f64 = 200.0;
/// Packets that should leave the link per second of flood.
const FLOOD_PACKETS_PER_SECOND: f64 = 100.0;
/// Packets that should leave the link in the whole flood; twice as many where service is random.
const FLOOD_PACKETS: f64 = 60.0;
/// Shortest duration of the flood.
const FLOOD_S: f64 = 0.5;
/// Longest duration of the flood.
const FLOOD_S_MAX: f64 = 1.2;
/// How long the flood takes to fill the queue.
const FILL_S: f64 = 0.25;
/// The share of the flood in which the queue must be full and a bucket empty.
const FILLED_BY: f64 = 0.7;
/// Highest rate of the flood: what a sender, the carrier and the check can handle on two cores.
const FLOOD_RATE_MAX: f64 = 600e6;
/// Highest rate used to fill a queue that the usual rate would not fill.
const FILL_RATE_MAX: f64 = 100e6;
/// Longest that a full queue may take to drain.
const DRAIN_S_MAX: f64 = 0.8;
/// How long to wait for packets that the machine delays.
const SLACK: Duration = Duration::from_millis(100);
/// Part of a trace that the check meets.
const TRACE_MS: u32 = 8_000;
/// The longest pause of a trace that the check waits for.
const TRACE_PAUSE_MS: u32 = 1_000;
/// The check begins where a trace has, in so many parts of this length, half the opportunities of its mean.
const STEADY_PARTS: u32 = 4;
const STEADY_PART_MS: u32 = 500;

/// The load for one direction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// The direction's initial configuration: later changes are not checked.
    pub path: PathConfig,
    /// Sparse packets, for delay and loss.
    pub probe: Burst,
    /// Packets above the rate, for rate and queue; or why there are none.
    pub flood: Result<Flood, String>,
    /// How long to keep receiving after the last packet.
    pub patience: Duration,
}

/// A load above the link's rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flood {
    /// The packets.
    pub burst: Burst,
    /// How long after the flood's first packet the queue is full and a token bucket empty.
    pub settle: Duration,
    /// How much fills the queue; or why its depth cannot be measured.
    pub queue: Result<Depth, String>,
}

/// How much a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// In bytes.
    Bytes(u64),
    /// In packets.
    Packets(u64),
}

impl Plan {
    pub(crate) fn new(config: &PathConfig) -> Self {
        let path = frozen(config);
        let flood = flood(&path);
        let longest = flood.as_ref().map_or(0.0, |flood| drain_s(&path, flood));
        let spread = path.propagation.jitter.map_or(Duration::ZERO, |jitter| jitter.sd * 5);
        let held = path.propagation.reorder.map_or(Duration::ZERO, |reorder| reorder.by);
        let delay = path.propagation.delay.first;
        let pause = Duration::from_millis(longest_pause_ms(&path).into());
        let drain = Duration::from_secs_f64(longest.min(DRAIN_S_MAX));
        let patience = delay + spread + held + pause + drain + SLACK;
        Self { probe: probe(&path), path, flood, patience }
    }

    /// Mean rate of everything sent, during the longest part.
    pub(crate) fn rate(&self) -> BitRate {
        let burst = self.flood.as_ref().map_or(&self.probe, |flood| &flood.burst);
        Bytes::new(burst.packet_bytes.into()) / burst.interval.max(Duration::from_nanos(1))
    }

    /// The bursts, in order.
    pub(crate) fn bursts(&self) -> Vec<Burst> {
        let flood = self.flood.as_ref().ok().map(|flood| flood.burst);
        std::iter::once(self.probe).chain(flood).collect()
    }
}

/// The link's initial state. An outage at the start is skipped, of a trace also a part that is much slower than its mean:
/// nothing could be measured during it.
fn frozen(config: &PathConfig) -> PathConfig {
    let mut path = config.clone();
    path.loss.changes.clear();
    path.propagation.delay.changes.clear();
    if let LimitConfig::Bytes(limit) = &path.queue.limit {
        path.queue.limit = LimitConfig::Bytes(Schedule::constant(limit.first));
    }
    match &mut path.server {
        ServerConfig::Steady(rate) | ServerConfig::Poisson(rate) => freeze(rate),
        ServerConfig::Bucket { rate, .. } => freeze(rate),
        ServerConfig::Trace(trace) => skip_pause(trace),
        ServerConfig::Unlimited
        | ServerConfig::Wifi
        | ServerConfig::Ethernet
        | ServerConfig::Cellular => {}
    }
    path
}

fn freeze(curve: &mut RateCurve) {
    let first = curve.steps.iter().map(|step| step.rate).find(|rate| !rate.is_zero());
    *curve = RateCurve::constant(first.unwrap_or_default());
}

/// Lets a trace begin where it first has opportunities at about its mean rate; if it never does for long enough, at its first
/// one.
fn skip_pause(trace: &mut OpportunityTrace) {
    let (Some(&first), Some(&last)) = (trace.times_ms.first(), trace.times_ms.last()) else {
        return;
    };
    let is_steady = |from_ms: u32| {
        let of_mean = trace.times_ms.len() as f64 / f64::from(last) * f64::from(STEADY_PART_MS);
        let at = |part: u32| {
            Time::ZERO
                + Duration::from_millis(u64::from(from_ms) + u64::from(part * STEADY_PART_MS))
        };
        (0..STEADY_PARTS)
            .all(|part| opportunities(trace, at(part), at(part + 1)) as f64 >= of_mean / 2.0)
    };
    let mut starts = std::iter::once(0).chain(trace.times_ms.iter().copied());
    let start = starts.find(|start| is_steady(*start)).unwrap_or(first);
    if start >= last {
        return;
    }
    let before = trace.times_ms.partition_point(|ms| *ms < start);
    let rest = trace.times_ms.len() - before;
    trace.times_ms.rotate_left(before);
    trace.times_ms[..rest].iter_mut().for_each(|ms| *ms -= start);
    if trace.repeat {
        // The part before comes when the trace begins again.
        trace.times_ms[rest..].iter_mut().for_each(|ms| *ms += last - start);
    } else {
        trace.times_ms.truncate(rest);
    }
}

/// The longest time without an opportunity that the check may meet, within [`TRACE_PAUSE_MS`]; 0 without a trace.
fn longest_pause_ms(path: &PathConfig) -> u32 {
    let ServerConfig::Trace(trace) = &path.server else { return 0 };
    let met = trace.times_ms.iter().take_while(|&&ms| ms < TRACE_MS).copied();
    let times: Vec<u32> = std::iter::once(0).chain(met).collect();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(TRACE_PAUSE_MS);
    longest.min(TRACE_PAUSE_MS)
}

/// Delivery opportunities of a trace from one time to another.
pub(crate) fn opportunities(trace: &OpportunityTrace, from: Time, to: Time) -> u64 {
    let period_ms = trace.period().as_nanos() / 1_000_000;
    let before = |time: Time| {
        let ms = time.as_nanos().div_ceil(1_000_000);
        let (rounds, rest) =
            if trace.repeat { (ms / period_ms.max(1), ms % period_ms.max(1)) } else { (0, ms) };
        let within = trace.times_ms.partition_point(|&at| u64::from(at) < rest);
        rounds * trace.times_ms.len() as u64 + within as u64
    };
    before(to) - before(from)
}

/// The rate at which bits leave the link, per second; `None` if it is unlimited.
pub(crate) fn rate_bps(path: &PathConfig) -> Option<f64> {
    path.server.rate_at(Time::ZERO).map(|rate| rate.as_bps() as f64)
}

/// Whether the link serves in opportunities of 1500 bytes instead of bit by bit.
pub(crate) fn by_opportunity(path: &PathConfig) -> bool {
    matches!(path.server, ServerConfig::Poisson(_) | ServerConfig::Trace(_))
}

fn probe(path: &PathConfig) -> Burst {
    // One packet per delivery opportunity, where the link has those: others would wait for the
    // next.
    let service_bytes =
        if by_opportunity(path) { OPPORTUNITY.get() } else { PROBE_BYTES.into() } as f64;
    let unlimited =
        if path.server.is_shared() { PROBE_PER_SECOND_AIR } else { PROBE_PER_SECOND_MAX };
    let per_second = rate_bps(path).map_or(unlimited, |rate| {
        (PROBE_SHARE * rate / (service_bytes * 8.0)).min(PROBE_PER_SECOND_MAX)
    });
    let memory = path.propagation.jitter.map_or(0.0, |jitter| jitter.memory().as_secs_f64());
    let seconds = (PROBE_MEMORIES * memory).clamp(PROBE_S, PROBE_JITTER_S_MAX);
    let longest = per_second * seconds.max(PROBE_S_MAX);
    let count = (per_second * seconds).max(PROBE_COUNT_MIN).min(longest);
    Burst {
        packet_bytes: PROBE_BYTES,
        interval: Duration::from_secs_f64(1.0 / per_second.max(1.0)),
        count: count.max(2.0) as u32,
    }
}

fn flood(path: &PathConfig) -> Result<Flood, String> {
    let Some(rate) = rate_bps(path) else {
        return Err(match path.server {
            ServerConfig::Wifi => "the rate of Wi-Fi varies with its channel".into(),
            ServerConfig::Ethernet => {
                "both directions share the rate of half-duplex Ethernet".into()
            }
            ServerConfig::Cellular => "the rate of a cellular radio varies with its channel".into(),
            _ => "the rate is unlimited, so packets do not queue".into(),
        });
    };
    if rate == 0.0 {
        return Err("the link's rate is 0".into());
    }
    let queue = depth(path, rate);
    let keep = 1.0 - path.loss.first.mean().map_or(0.0, |mean| mean.get());
    let peak = match &path.server {
        ServerConfig::Trace(trace) => {
            let met = trace.times_ms.partition_point(|&ms| ms < TRACE_MS);
            (peak(&trace.times_ms[..met]).as_bps() as f64).max(rate)
        }
        _ => rate,
    };
    let packet_bytes = packet_bytes(path, rate);
    let held =
        bucket_bytes(path) + queue.as_ref().map_or(0.0, |depth| depth.bytes(packet_bytes) as f64);
    let fill = (1.2 * peak + held * 8.0 / FILL_S).min(FILL_RATE_MAX);
    let sent = ((1.5 * peak).max(fill) / keep.max(0.01)).min(FLOOD_RATE_MAX);
    if sent * keep < 1.2 * peak {
        return Err(format!(
            "the self-check sends at most {:.0} Mbit/s, which does not fill this link",
            FLOOD_RATE_MAX / 1e6
        ));
    }
    let excess = (sent * keep - peak).max(1.0);
    let (fill_s, empty_s) = (held * 8.0 / excess, bucket_bytes(path) * 8.0 / excess);
    let bits = f64::from(packet_bytes) * 8.0;
    let packets = if by_opportunity(path) { 2.0 * FLOOD_PACKETS } else { FLOOD_PACKETS };
    let seconds = FLOOD_S.max(packets * bits / rate).min(FLOOD_S_MAX);
    if empty_s > seconds * FILLED_BY {
        return Err("a short load cannot empty this bucket".into());
    }
    let queue = queue.and_then(|depth| {
        if fill_s > seconds * FILLED_BY {
            Err("a short load cannot fill this queue".into())
        } else {
            Ok(depth)
        }
    });
    Ok(Flood {
        burst: Burst {
            packet_bytes,
            interval: Duration::from_secs_f64(bits / sent),
            count: (seconds * sent / bits).ceil() as u32,
        },
        settle: Duration::from_secs_f64((fill_s * 1.2).max(seconds / 3.0).min(seconds * 0.8)),
        queue,
    })
}

/// Small where the link is slow, so that enough packets leave it for a measurement.
fn packet_bytes(path: &PathConfig, rate: f64) -> u32 {
    let bytes = rate / 8.0 / FLOOD_PACKETS_PER_SECOND;
    let bytes = if by_opportunity(path) { FLOOD_BYTES_MAX } else { bytes };
    let bytes = bytes.clamp(FLOOD_BYTES_MIN, FLOOD_BYTES_MAX) as u32;
    match &path.server {
        ServerConfig::Bucket { burst, .. } => {
            bytes.min(u32::try_from(burst.get()).unwrap_or(u32::MAX)).max(PACKET_BYTES_MIN)
        }
        _ => bytes,
    }
}

fn bucket_bytes(path: &PathConfig) -> f64 {
    match &path.server {
        ServerConfig::Bucket { burst, .. } => burst.get() as f64,
        _ => 0.0,
    }
}

/// How much the queue holds; or why the check cannot measure it.
fn depth(path: &PathConfig, rate: f64) -> Result<Depth, String> {
    if path.queue.discipline != DisciplineConfig::Droptail {
        let name = path.queue.discipline.name();
        return Err(format!("{name} keeps the queue shorter than its limit"));
    }
    if by_opportunity(path) {
        return Err(
            "packets wait for delivery opportunities, so delay does not show the queue".into()
        );
    }
    let propagation = &path.propagation;
    if propagation.jitter.is_some() || propagation.reorder.is_some() {
        return Err("the delay varies, so it does not show the queue".into());
    }
    let depth = match &path.queue.limit {
        LimitConfig::Bytes(limit) => Depth::Bytes(limit.first.get()),
        LimitConfig::Packets(packets) => Depth::Packets((*packets).into()),
    };
    let drain_s = depth.bytes(packet_bytes(path, rate)) as f64 * 8.0 / rate;
    if drain_s > DRAIN_S_MAX {
        return Err(format!("the queue holds {drain_s:.1} s, too much for a short load"));
    }
    Ok(depth)
}

impl Depth {
    /// The depth in bytes, if packets have this size.
    pub(crate) fn bytes(self, packet_bytes: u32) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Packets(packets) => packets * u64::from(packet_bytes),
        }
    }
}

/// The longest that the flood's last packet may wait.
fn drain_s(path: &PathConfig, flood: &Flood) -> f64 {
    let limit = match &path.queue.limit {
        LimitConfig::Bytes(limit) => Depth::Bytes(limit.first.get()),
        LimitConfig::Packets(packets) => Depth::Packets((*packets).into()),
    };
    let held = limit.bytes(flood.burst.packet_bytes) + 2 * u64::from(flood.burst.packet_bytes);
    rate_bps(path).map_or(0.0, |rate| held as f64 * 8.0 / rate)
}

/// The share of the first `count` packets that the loss model drops, and its standard deviation.
pub(crate) fn loss(model: &LossConfig, count: u32) -> (f64, f64) {
    let n = f64::from(count);
    // The share in independent trials: p (1 - p) / n.
    let spread = |p: f64| (p * (1.0 - p) / n).sqrt();
    match model {
        LossConfig::None => (0.0, 0.0),
        LossConfig::Bernoulli(ratio) => (ratio.get(), spread(ratio.get())),
        LossConfig::GilbertElliott(model) => {
            let p = model.mean().get();
            // The mean of a two-state chain: its correlation from packet to packet is 1 - p - r.
            let r = (1.0 - model.good_to_bad.get() - model.bad_to_good.get()).clamp(0.0, 0.999);
            // A few long bursts skew it: half as wide again.
            (p, 1.5 * spread(p) * ((1.0 + r) / (1.0 - r)).sqrt())
        }
        LossConfig::List(numbers) => {
            let lost = numbers.iter().filter(|&&number| number < u64::from(count)).count();
            (lost as f64 / n, 0.0)
        }
    }
}
