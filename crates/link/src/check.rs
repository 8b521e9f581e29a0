//! What holds of every [`LinkConfig`] and [`SegmentConfig`], also of one that somebody wrote by hand.
//!
//! [`LinkSpec::resolve`](crate::LinkSpec::resolve) refuses the same, naming the user's own keys; the
//! bounds stand here once.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use suiro_strict::{Bounds, Keys, Refusal};
use suiro_units::{Duration, Ratio};

use crate::bounds::{
    BURST, DELAY, DUAL_SPAN, FLOWS, LIST, PIE_BURST, PIE_UPDATE, Packets, QUANTUM, QUEUE_PACKETS,
    RATE, SPAN, STATIONS,
};
use crate::config::{
    CodelConfig, DisciplineConfig, Dualpi2Config, FqCodelConfig, LimitConfig, LinkConfig,
    LossConfig, PathConfig, PieConfig, PropagationConfig, ServerConfig,
};
use crate::medium::cellular::CellularConfig;
use crate::medium::ethernet::EthernetConfig;
use crate::medium::wifi::{Air, BUSY, WifiConfig};
use crate::schedule::Schedule;
use crate::segment::{BaseStationConfig, CellConfig, HubConfig, SegmentConfig};
use crate::trace::{MAX_TRACE_LINES, MAX_TRACE_TIME, MIN_PERIOD, OpportunityTrace, RateCurve};

/// [`LinkConfig`] as a file has it.
#[derive(Deserialize)]
struct Unchecked {
    down: PathConfig,
    up: PathConfig,
    #[serde(default)]
    wifi: Option<WifiConfig>,
    #[serde(default)]
    ethernet: Option<EthernetConfig>,
    #[serde(default)]
    cellular: Option<CellularConfig>,
}

impl<'de> Deserialize<'de> for LinkConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Unchecked { down, up, wifi, ethernet, cellular } =
            Unchecked::deserialize(deserializer)?;
        let config = Self { down, up, wifi, ethernet, cellular };
        link(&config).map_err(D::Error::custom)?;
        Ok(config)
    }
}

/// [`SegmentConfig`] as a file has it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum UncheckedSegment {
    Ethernet(HubConfig),
    Wifi(CellConfig),
    Cellular(BaseStationConfig),
}

impl<'de> Deserialize<'de> for SegmentConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let config = match UncheckedSegment::deserialize(deserializer)? {
            UncheckedSegment::Ethernet(config) => Self::Ethernet(config),
            UncheckedSegment::Wifi(config) => Self::Wifi(config),
            UncheckedSegment::Cellular(config) => Self::Cellular(config),
        };
        segment(&config).map_err(D::Error::custom)?;
        Ok(config)
    }
}

type Checked = Result<(), Refusal>;

/// Checks every station; the stations of a cell are links, which were checked on their own.
pub(crate) fn segment(config: &SegmentConfig) -> Checked {
    match config {
        SegmentConfig::Ethernet(HubConfig { ethernet, stations }) => {
            ethernet.check()?;
            range("stations", &stations.len(), &STATIONS)?;
            stations.iter().enumerate().try_for_each(|(index, station)| {
                path(&format!("stations.{index}"), station)?;
                let at_hub = matches!(station.server, ServerConfig::Ethernet);
                let key = format!("stations.{index}.server");
                holds(&key, at_hub, "the server of a station at a hub must be Ethernet")
            })
        }
        SegmentConfig::Wifi(CellConfig { busy, stations }) => {
            schedule("busy", busy, |key, busy| range(key, busy, &BUSY))?;
            range("stations", &stations.len(), &STATIONS)?;
            stations.iter().enumerate().try_for_each(|(index, station)| {
                link(station)?;
                let key = format!("stations.{index}.wifi");
                let quiet = |air: &Air| air.busy == Ratio::ZERO;
                let wifi = station.wifi.as_ref();
                holds(&key, wifi.is_some(), "a station of a Wi-Fi cell must have Wi-Fi")?;
                let quiet = wifi.is_none_or(|wifi| wifi.air.steps().all(|(_, air)| quiet(air)));
                holds(&key, quiet, "`busy` is the cell's, and 0 at its stations")
            })
        }
        SegmentConfig::Cellular(config) => base_station(config),
    }
}

/// Users of one cell, which agree on what is the cell's.
fn base_station(BaseStationConfig { stations }: &BaseStationConfig) -> Checked {
    range("stations", &stations.len(), &STATIONS)?;
    let first = stations.first().and_then(|station| station.cellular.as_ref());
    stations.iter().enumerate().try_for_each(|(index, station)| {
        link(station)?;
        let key = format!("stations.{index}.cellular");
        let own = station.cellular.as_ref();
        holds(&key, own.is_some(), "a station of a cellular cell must be on its air")?;
        let alike = own.zip(first).is_some_and(|(own, first)| own.shares_cell(first));
        holds(
            &key,
            alike,
            "`bandwidth`, `cell_radius` and `load` are the cell's, and the same at all",
        )
    })
}

/// Checks both directions.
pub(crate) fn link(config: &LinkConfig) -> Checked {
    path("down", &config.down)?;
    path("up", &config.up)?;
    let on_air = |path: &PathConfig| matches!(path.server, ServerConfig::Wifi);
    let shared = [&config.down, &config.up].map(on_air) == [config.wifi.is_some(); 2];
    holds("wifi", shared, "Wi-Fi must serve both directions or neither")?;
    config.wifi.as_ref().map_or(Ok(()), WifiConfig::check)?;
    let at_hub = |path: &PathConfig| matches!(path.server, ServerConfig::Ethernet);
    let shared = [&config.down, &config.up].map(at_hub) == [config.ethernet.is_some(); 2];
    holds("ethernet", shared, "half-duplex Ethernet must serve both directions or neither")?;
    config.ethernet.as_ref().map_or(Ok(()), EthernetConfig::check)?;
    let in_cell = |path: &PathConfig| matches!(path.server, ServerConfig::Cellular);
    let shared = [&config.down, &config.up].map(in_cell) == [config.cellular.is_some(); 2];
    holds("cellular", shared, "cellular radio must serve both directions or neither")?;
    config.cellular.as_ref().map_or(Ok(()), CellularConfig::check)
}

fn path(name: &str, config: &PathConfig) -> Checked {
    let key = |part: &str| format!("{name}.{part}");
    schedule(&key("loss"), &config.loss, loss)?;
    match &config.queue.limit {
        LimitConfig::Packets(packets) => {
            range(&key("queue.limit"), &Packets(*packets), &QUEUE_PACKETS)?;
        }
        LimitConfig::Bytes(bytes) => schedule(&key("queue.limit"), bytes, |_, _| Ok(()))?,
    }
    discipline(&key("queue.discipline"), &config.queue.discipline)?;
    server(&key("server"), &config.server)?;
    propagation(&key("propagation"), &config.propagation)
}

fn range<T: PartialOrd + Copy + std::fmt::Display>(
    key: &str,
    value: &T,
    of: &Bounds<T>,
) -> Checked {
    of.check(Keys::of(key), *value).map(drop)
}

fn holds(key: &str, holds: bool, message: &str) -> Checked {
    if holds { Ok(()) } else { Err(Refusal::key(key, message)) }
}

/// Times that increase from above zero, and values that `each` accepts.
fn schedule<T>(key: &str, schedule: &Schedule<T>, each: fn(&str, &T) -> Checked) -> Checked {
    let times = || schedule.steps().map(|(at, _)| at);
    holds(key, times().is_sorted_by(|a, b| a < b), "times of changes must increase")?;
    holds(
        key,
        times().all(|at| at <= MAX_TRACE_TIME),
        &format!("a time must not exceed {MAX_TRACE_TIME}"),
    )?;
    schedule.steps().try_for_each(|(_, value)| each(key, value))
}

fn loss(key: &str, loss: &LossConfig) -> Checked {
    match loss {
        LossConfig::None | LossConfig::Bernoulli(_) => Ok(()),
        LossConfig::GilbertElliott(model) => {
            let changes = model.good_to_bad > Ratio::ZERO && model.bad_to_good > Ratio::ZERO;
            holds(key, changes, "good_to_bad and bad_to_good must be above 0")
        }
        LossConfig::List(packets) => {
            range(key, &packets.len(), &LIST)?;
            let rising = packets.is_sorted_by(|a, b| a < b);
            holds(key, rising, "numbers of packets must increase")
        }
    }
}

fn discipline(key: &str, discipline: &DisciplineConfig) -> Checked {
    let codel = |CodelConfig { target, interval, .. }: &CodelConfig| {
        range(key, target, &SPAN).and_then(|()| range(key, interval, &SPAN))
    };
    match discipline {
        DisciplineConfig::Droptail => Ok(()),
        DisciplineConfig::Codel(config) => codel(config),
        DisciplineConfig::Pie(PieConfig { target, update, burst, .. }) => {
            range(key, target, &SPAN)?;
            range(key, update, &PIE_UPDATE)?;
            range(key, burst, &PIE_BURST)
        }
        DisciplineConfig::FqCodel(FqCodelConfig { codel: config, flows, quantum }) => {
            codel(config)?;
            range(key, flows, &FLOWS)?;
            range(key, quantum, &QUANTUM)
        }
        DisciplineConfig::Dualpi2(Dualpi2Config { target, interval, ce_threshold }) => {
            range(key, target, &DUAL_SPAN)?;
            range(key, interval, &DUAL_SPAN)?;
            range(key, ce_threshold, &SPAN)
        }
    }
}

fn server(key: &str, server: &ServerConfig) -> Checked {
    match server {
        ServerConfig::Unlimited
        | ServerConfig::Wifi
        | ServerConfig::Ethernet
        | ServerConfig::Cellular => Ok(()),
        ServerConfig::Steady(rate) | ServerConfig::Poisson(rate) => curve(key, rate),
        ServerConfig::Bucket { rate, burst } => {
            range(key, burst, &BURST)?;
            curve(key, rate)
        }
        ServerConfig::Trace(trace) => opportunities(key, trace),
    }
}

fn curve(key: &str, curve: &RateCurve) -> Checked {
    let steps = &curve.steps;
    let begins = steps.first().is_some_and(|first| first.at.is_zero());
    holds(key, begins, "the first step of a rate must be at 0 s")?;
    holds(key, steps.len() <= MAX_TRACE_LINES, "too many steps of a rate")?;
    holds(key, steps.is_sorted_by(|a, b| a.at < b.at), "times of steps must increase")?;
    steps.iter().try_for_each(|step| range(key, &step.rate, &RATE))?;
    let last = steps.last().map_or(Duration::ZERO, |last| last.at);
    range(key, &last, &Bounds::new(Duration::ZERO, MAX_TRACE_TIME))?;
    if let Some(period) = curve.period {
        range(key, &period, &Bounds::new(MIN_PERIOD, MAX_TRACE_TIME))?;
        holds(key, period > last, "a period must end after its last step")?;
    }
    holds(key, curve.carries(), "a rate of 0 that never changes carries no packets")
}

fn opportunities(key: &str, trace: &OpportunityTrace) -> Checked {
    holds(key, trace.times_ms.len() <= MAX_TRACE_LINES, "too many delivery opportunities")?;
    holds(key, trace.times_ms.is_sorted(), "times of opportunities must not decrease")?;
    // This is also false if there is no opportunity at all.
    range(key, &trace.period(), &Bounds::new(MIN_PERIOD, MAX_TRACE_TIME))
}

fn propagation(key: &str, config: &PropagationConfig) -> Checked {
    schedule(key, &config.delay, |key, delay| range(key, delay, &DELAY))?;
    let jitter = config.jitter.iter().map(|jitter| &jitter.sd);
    let held = config.reorder.iter().map(|reorder| &reorder.by);
    jitter.chain(held).try_for_each(|span| range(key, span, &SPAN))
}
