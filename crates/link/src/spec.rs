//! What a user writes: `[links.NAME]` of a scenario, or the options of `suiro link`.
//!
//! Plain structs of options, without serde's `flatten` and tagged enums: so an error of `toml`
//! keeps its line and column.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use suiro_strict::{Bounded, Keys, Refusal, bounds, bounds_of};
use suiro_units::{BitRate, Bytes, Duration, Ratio};

use crate::bounds::{
    BURST, CHANCE, CHANGE_AT, CHANGES, DELAY, DEVIATION, FLOWS, LIST, PIE_BURST, PIE_UPDATE,
    Packets, QUANTUM, QUEUE_BYTES, QUEUE_PACKETS, QUEUE_TIME, RATE, SPAN,
};
use crate::config::{Distribution, Order};
use crate::medium::cellular::CellularSpec;
use crate::medium::ethernet::EthernetSpec;
use crate::medium::wifi::WifiSpec;
use crate::preset::Preset;

/// Defines a struct with the keys that a link and each of its directions have in common.
macro_rules! with_path_keys {
    ($(#[$meta:meta])* $name:ident { $($(#[$own_meta:meta])* $own:ident: $own_type:ty,)* }
        tables: $($table:ident),+) => {
        bounds! {
            $name {
                rate: RATE, burst: BURST, delay: DELAY, changes: CHANGES;
                tables: $($table),+
            }
        }

        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(transform = bounds_of::<$name>)]
        pub struct $name {
            $($(#[$own_meta])* #[serde(skip_serializing_if = "Option::is_none")]
            pub $own: Option<$own_type>,)*
            /// Rate of IP packets; `"0 bit/s"` is an outage. Default: no limit.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rate: Option<BitRate>,
            /// Depth of a token bucket: this much passes at once, the rest at the rate. A packet larger than
            /// the bucket leaves when the rate has filled the difference. Default: none, packets leave bit by
            /// bit. Needs `rate` or a trace of rates.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub burst: Option<Bytes>,
            /// How the rate is served. Default: steady.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub service: Option<ServiceSpec>,
            /// A file with the link's rate over time, instead of `rate`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub trace: Option<TraceSpec>,
            /// Which packets are lost at the entrance. Default: none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub loss: Option<LossSpec>,
            /// Where packets wait. Default: droptail, 100 ms.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub queue: Option<QueueSpec>,
            /// One-way delay. Default: none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delay: Option<Duration>,
            /// Variation of the delay. Default: none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub jitter: Option<JitterSpec>,
            /// Packets held back so that others overtake them. Default: none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub reorder: Option<ReorderSpec>,
            /// Share of packets that arrive twice. Default: none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub duplicate: Option<Ratio>,
            /// Share of packets that get one flipped bit. Default: none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub corrupt: Option<Ratio>,
            /// Changes during a trial, in order of time. Default: nothing.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub changes: Option<Vec<ChangeSpec>>,
        }
    };
}

with_path_keys! {
    /// A link. Keys apply to both directions; those of `down` and `up` override them, and all
    /// override the preset's.
    LinkSpec {
        /// A predefined link; the other keys change it.
        preset: Preset,
        /// From the link's first end (the server's side) to its second.
        down: PathSpec,
        /// From the second end to the first.
        up: PathSpec,
        /// A Wi-Fi network whose air both directions share, instead of `rate`.
        wifi: WifiSpec,
        /// A half-duplex Ethernet that both directions share, instead of `rate`.
        ethernet: EthernetSpec,
        /// A cellular radio between a base station (the first end) and one user, instead of `rate`.
        cellular: CellularSpec,
    }
    tables: down, up, wifi, ethernet, cellular, loss, queue, jitter, reorder, changes
}

with_path_keys! {
    /// One direction of a link.
    PathSpec {}
    tables: loss, queue, jitter, reorder, changes
}

impl LinkSpec {
    /// The keys that apply to both directions.
    pub fn both(&self) -> PathSpec {
        PathSpec {
            rate: self.rate,
            burst: self.burst,
            service: self.service,
            trace: self.trace.clone(),
            loss: self.loss.clone(),
            queue: self.queue,
            delay: self.delay,
            jitter: self.jitter.clone(),
            reorder: self.reorder.clone(),
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            changes: self.changes.clone(),
        }
    }
}

/// How a rate is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceSpec {
    /// Bit by bit at the rate.
    #[default]
    Steady,
    /// Delivery opportunities of 1500 bytes at the times of a Poisson process with this mean rate,
    /// as on a contended radio link.
    Poisson,
}

/// A trace: a file's name, or a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TraceSpec {
    /// The file.
    File(PathBuf),
    /// The file and how to read it.
    Table(TraceTable),
}

/// A trace and how to read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceTable {
    /// The file, relative to the scenario's. A name that ends in `.csv` is a table: its first line is a header that
    /// names both columns, each other line has a time and the rate from then on. The header is `time,rate` if the
    /// values carry their units (`1.5 s,8 Mbit/s`). Otherwise it names the units: `time_s` or `time_ms`, and
    /// `rate_bps`, `rate_kbps` or `rate_mbps`. The first time is 0, and times increase. Empty lines and lines that
    /// begin with `#` are ignored. Any other file is in Mahimahi's format: a line for each 1500 bytes with its
    /// millisecond.
    pub file: PathBuf,
    /// Whether the trace begins again at its end. Default: Mahimahi's does, CSV does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<bool>,
}

/// A loss model: a share of packets, each lost independently, or a table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LossSpec {
    /// Every packet is lost with this probability.
    Ratio(Ratio),
    /// A model by name.
    Table(LossTable),
}

bounds! { LossTable { good_to_bad: CHANCE, bad_to_good: CHANCE, packets: LIST } }

/// A loss model by name, with the keys that belong to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<LossTable>)]
pub struct LossTable {
    /// The model.
    pub model: LossModel,
    /// `bernoulli`: probability that a packet is lost. Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// `gilbert-elliott`: probability that the bad state follows a packet in the good one.
    /// Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_to_bad: Option<Ratio>,
    /// `gilbert-elliott`: probability that the good state follows a packet in the bad one; the
    /// mean burst is its inverse. Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_to_good: Option<Ratio>,
    /// `gilbert-elliott`: probability of loss in the good state. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_good: Option<Ratio>,
    /// `gilbert-elliott`: probability of loss in the bad state. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bad: Option<Ratio>,
    /// `list`: numbers of the packets that are lost, counted in this direction from 0, increasing.
    /// Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Vec<u64>>,
}

/// Names of the loss models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossModel {
    /// Nothing is lost.
    None,
    /// Every packet independently.
    Bernoulli,
    /// In bursts: a good and a bad state, each with its own loss probability.
    GilbertElliott,
    /// Exactly the listed packets.
    List,
}

bounds! { QueueSpec { target: SPAN,
ce_threshold: SPAN,
interval: SPAN,
update: PIE_UPDATE,
burst: PIE_BURST,
flows: FLOWS,
quantum: QUANTUM;
tables: limit } }

/// A queue and its discipline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = bounds_of::<QueueSpec>)]
pub struct QueueSpec {
    /// How much it holds: `"100 kB"`, `"50 ms"` at the rate in force, or `"64p"` packets; the
    /// packet in service does not count. Without a rate nothing waits, and the limit has no effect.
    /// Default: droptail 100 ms, codel and pie 1000 packets, fq-codel 10240 packets, dualpi2 250 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitSpec>,
    /// Default: droptail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discipline: Option<Discipline>,
    /// The delay that is tolerated. Default: 5 ms (codel, fq-codel), 15 ms (pie, dualpi2: of packets that are
    /// not of L4S; at least 100 us).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Duration>,
    /// `codel`, `fq-codel`: how long the delay must be exceeded before packets are dropped. `dualpi2`: the longest round-trip
    /// time of most flows, at least 100 us. Default: 100 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// `pie`: how often the drop probability is computed. Default: 15 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Duration>,
    /// `pie`: how long a burst passes after an idle time. Default: 150 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Duration>,
    /// Mark packets instead of dropping them if the transport supports ECN. Default: true; not for
    /// droptail and dualpi2, which always marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// `codel`, `fq-codel`: the delay above which every packet whose transport supports ECN is marked, as in Linux: a shallow
    /// threshold for scalable congestion controls (L4S). Default: none. `dualpi2`: the delay from which packets of L4S are
    /// marked; above one and a half times of it, all are. Default: 800 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
    /// `fq-codel`: number of flow queues. Default: 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// `fq-codel`: bytes that a queue may send per turn. Default: 1514 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Bytes>,
}

/// Names of the queue disciplines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped.
    #[default]
    Droptail,
    /// RFC 8289.
    Codel,
    /// RFC 8033.
    Pie,
    /// RFC 8290.
    FqCodel,
    /// RFC 9332: two coupled queues, one for packets of L4S (ECT(1) or CE), one for all others.
    Dualpi2,
}

/// How much a queue holds, as text: a size, a time, or a number of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSpec {
    /// `"64p"`.
    Packets(u32),
    /// `"100 kB"`.
    Size(Bytes),
    /// `"50 ms"`.
    Time(Duration),
}

/// Each of its forms has bounds of its own.
impl Bounded for LimitSpec {
    fn refuse(&self, at: &Keys, refusals: &mut Vec<Refusal>) {
        let refusal = match *self {
            Self::Packets(count) => QUEUE_PACKETS.check(at.clone(), Packets(count)).err(),
            Self::Size(size) => QUEUE_BYTES.check(at.clone(), size).err(),
            Self::Time(time) => QUEUE_TIME.check(at.clone(), time).err(),
        };
        refusals.extend(refusal);
    }

    fn describe(schema: &mut schemars::Schema) {
        let schema = schema.ensure_object();
        QUEUE_PACKETS.describe_value(schema);
        QUEUE_BYTES.describe_value(schema);
        QUEUE_TIME.describe_value(schema);
    }
}

impl Bounded for LossSpec {
    fn refuse(&self, at: &Keys, refusals: &mut Vec<Refusal>) {
        match self {
            Self::Ratio(_) => {}
            Self::Table(table) => table.refuse(at, refusals),
        }
    }

    fn describe(_: &mut schemars::Schema) {}
}

impl std::str::FromStr for LimitSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let packets = text.strip_suffix('p').map(str::trim_end);
        if let Some(count) = packets.filter(|count| count.bytes().all(|b| b.is_ascii_digit())) {
            let count = count.parse().map_err(|_| format!("`{text}` is not a number of packets"));
            return count.map(Self::Packets);
        }
        if let Ok(size) = text.parse() {
            return Ok(Self::Size(size));
        }
        text.parse().map(Self::Time).map_err(|_| {
            format!("`{text}` is not a limit; write a size \"100 kB\", a time \"50 ms\" or packets \"64p\"")
        })
    }
}

impl fmt::Display for LimitSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(count) => write!(f, "{count}p"),
            Self::Size(size) => write!(f, "{size}"),
            Self::Time(time) => write!(f, "{time}"),
        }
    }
}

impl Serialize for LimitSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LimitSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = LimitSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size \"100 kB\", a time \"50 ms\" or packets \"64p\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LimitSpec, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl JsonSchema for LimitSpec {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LimitSpec".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = schemars::json_schema!({
            "type": "string",
            "pattern": r"^([0-9]+ ?p|[0-9]+(\.[0-9]+)? ?(B|kB|KiB|MB|MiB|GB|GiB|ns|us|µs|μs|ms|s|min|h))$",
            "examples": ["100 kB", "50 ms", "64p"],
        });
        Self::describe(&mut schema);
        schema
    }
}

bounds! { JitterSpec { sd: DEVIATION } }

/// Variation of the delay from packet to packet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<JitterSpec>)]
pub struct JitterSpec {
    /// Its shape.
    pub distribution: Distribution,
    /// Its standard deviation; with 0 there is no jitter. Mean and deviation are correct at every packet rate; only what
    /// would shorten the delay below zero is cut off. Of `truncated-gaussian`: that of the Gaussian; its mean rises with the
    /// packet rate where the order is kept.
    pub sd: Duration,
    /// Whether packets may overtake one another. Default: kept.
    #[serde(default)]
    pub order: Order,
}

bounds! { ReorderSpec { by: SPAN } }

/// Packets held back so that others overtake them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<ReorderSpec>)]
pub struct ReorderSpec {
    /// Share of packets held back.
    pub chance: Ratio,
    /// For how long.
    pub by: Duration,
}

bounds! { ChangeSpec { at: CHANGE_AT, rate: RATE, delay: DELAY; tables: loss } }

/// Changes at a given time; absent keys keep their values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<ChangeSpec>)]
pub struct ChangeSpec {
    /// When, counted from the trial's start.
    pub at: Duration,
    /// The rate from then on. A packet in service continues at the new rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// The delay of packets that leave the queue from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// The loss from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSpec>,
}

impl<'de> Deserialize<'de> for LossSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = LossSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a ratio (0.01 or \"1 %\") or a table with the key `model`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<LossSpec, E> {
                text.parse().map(LossSpec::Ratio).map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<LossSpec, E> {
                Ratio::deserialize(value.into_deserializer()).map(LossSpec::Ratio)
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<LossSpec, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<LossSpec, E> {
                self.visit_f64(value as f64)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<LossSpec, A::Error> {
                LossTable::deserialize(MapAccessDeserializer::new(map)).map(LossSpec::Table)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for TraceSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = TraceSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file or a table with the key `file`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TraceSpec, E> {
                Ok(TraceSpec::File(text.into()))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TraceSpec, A::Error> {
                TraceTable::deserialize(MapAccessDeserializer::new(map)).map(TraceSpec::Table)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
