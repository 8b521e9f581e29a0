//! A link fully described: presets applied, traces read, everything checked.
//!
//! Made by [`crate::LinkSpec::resolve`]; serialises, so that a trial's process can be handed it.

use serde::{Deserialize, Serialize};
use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

use crate::medium::cellular::CellularConfig;
use crate::medium::ethernet::EthernetConfig;
use crate::medium::wifi::WifiConfig;
use crate::schedule::Schedule;
use crate::trace::{OpportunityTrace, RateCurve};

/// Both directions of a link. Read from a file it is checked as a scenario is: what is out of range
/// there would be a bug here.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct LinkConfig {
    /// From the link's first end to its second.
    pub down: PathConfig,
    /// From the second to the first.
    pub up: PathConfig,
    /// The air that both directions share; there if and only if both servers are
    /// [`ServerConfig::Wifi`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiConfig>,
    /// The half-duplex Ethernet that both directions share; there if and only if both servers are
    /// [`ServerConfig::Ethernet`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ethernet: Option<EthernetConfig>,
    /// The cellular radio; there if and only if both servers are [`ServerConfig::Cellular`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cellular: Option<CellularConfig>,
}

impl LinkConfig {
    /// One of the directions.
    pub const fn direction(&self, direction: crate::Direction) -> &PathConfig {
        match direction {
            crate::Direction::Down => &self.down,
            crate::Direction::Up => &self.up,
        }
    }
}

/// One direction of a link, in the order in which a packet meets its parts. The default does
/// nothing to packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathConfig {
    /// Which packets are lost at the entrance.
    pub loss: Schedule<LossConfig>,
    /// Where packets wait, and which of them are dropped or marked.
    pub queue: QueueConfig,
    /// How fast packets leave the queue.
    pub server: ServerConfig,
    /// What happens to them on their way.
    pub propagation: PropagationConfig,
}

impl PathConfig {
    /// Whether something happens to packets at random and by themselves, whatever becomes of others.
    pub(crate) fn draws_for_packets(&self) -> bool {
        let PropagationConfig { jitter, reorder, duplicate, corrupt, .. } = &self.propagation;
        let is_lost = self.loss.steps().any(|(_, loss)| matches!(loss, LossConfig::Bernoulli(_)));
        let is_varied = jitter.is_some_and(|jitter| !jitter.wanders());
        let is_changed = *duplicate != Ratio::ZERO || *corrupt != Ratio::ZERO;
        is_lost || is_varied || is_changed || reorder.is_some()
    }
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            loss: Schedule::constant(LossConfig::None),
            queue: QueueConfig {
                limit: LimitConfig::Packets(DEFAULT_AQM_PACKETS),
                discipline: DisciplineConfig::Droptail,
            },
            server: ServerConfig::Unlimited,
            propagation: PropagationConfig::default(),
        }
    }
}

/// Default limit of CoDel and PIE in packets, as in Linux.
pub(crate) const DEFAULT_AQM_PACKETS: u32 = 1_000;

/// A loss model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossConfig {
    /// Nothing is lost.
    None,
    /// Every packet is lost with the same probability, whatever became of the others.
    Bernoulli(Ratio),
    /// Loss in bursts.
    GilbertElliott(GilbertElliott),
    /// Exactly these packets are lost, by their number in this direction, from 0, increasing.
    List(Vec<u64>),
}

impl LossConfig {
    /// The share of packets lost in the long run; `None` for a list, which has no long run.
    pub fn mean(&self) -> Option<Ratio> {
        match self {
            Self::None => Some(Ratio::ZERO),
            Self::Bernoulli(ratio) => Some(*ratio),
            Self::GilbertElliott(model) => Some(model.mean()),
            Self::List(_) => None,
        }
    }
}

/// The Gilbert–Elliott model (Elliott, "Estimates of error rates for codes on burst-noise channels", Bell System
/// Technical Journal 42, 1963): a chain of two states, good and bad, that may change after every packet. Each state
/// loses packets with a probability of its own.
///
/// With *p* = `good_to_bad` and *r* = `bad_to_good` the share of packets that meet the bad state is
/// *p*/(*p*+*r*), and a visit to it lasts 1/*r* packets in the mean. In the terms of netem,
/// `loss_bad` is 1−*h* and `loss_good` is 1−*k*.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GilbertElliott {
    /// Probability that a packet in the good state is followed by the bad state, above 0.
    pub good_to_bad: Ratio,
    /// Probability that a packet in the bad state is followed by the good state, above 0.
    pub bad_to_good: Ratio,
    /// Probability that a packet is lost in the good state.
    pub loss_good: Ratio,
    /// Probability that a packet is lost in the bad state.
    pub loss_bad: Ratio,
}

impl GilbertElliott {
    /// The share of packets that meet the bad state.
    pub fn share_bad(&self) -> Ratio {
        let (p, r) = (self.good_to_bad.get(), self.bad_to_good.get());
        Ratio::new(p / (p + r)).expect("p and r lie in (0, 1]: checked when resolved")
    }

    /// The share of packets lost in the long run.
    pub fn mean(&self) -> Ratio {
        let bad = self.share_bad().get();
        let mean = bad * self.loss_bad.get() + (1.0 - bad) * self.loss_good.get();
        Ratio::new(mean.clamp(0.0, 1.0)).expect("a mean of ratios is a ratio")
    }
}

/// A queue and its discipline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueConfig {
    /// How much it holds. The packet in service does not count; an empty queue always takes one
    /// packet.
    pub limit: LimitConfig,
    /// Which packets it drops or marks, and which one leaves next.
    pub discipline: DisciplineConfig,
}

/// How much a queue holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitConfig {
    /// So many packets.
    Packets(u32),
    /// So many bytes of IP packets. A limit in time becomes this: what the rate in force carries in
    /// that time (of a trace, its mean rate; in an outage, the rate before it).
    Bytes(Schedule<Bytes>),
}

/// A queue discipline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisciplineConfig {
    /// First in, first out; what does not fit is dropped.
    Droptail,
    /// Controlled delay, RFC 8289.
    Codel(CodelConfig),
    /// Proportional integral controller enhanced, RFC 8033.
    Pie(PieConfig),
    /// Flow queues by deficit round robin, each with CoDel, RFC 8290.
    FqCodel(FqCodelConfig),
    /// Two coupled queues, for L4S and for all other packets, RFC 9332.
    Dualpi2(Dualpi2Config),
}

impl DisciplineConfig {
    /// Its name in scenarios.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Droptail => "droptail",
            Self::Codel(_) => "codel",
            Self::Pie(_) => "pie",
            Self::FqCodel(_) => "fq-codel",
            Self::Dualpi2(_) => "dualpi2",
        }
    }
}

/// CoDel's parameters; defaults from RFC 8289 §5.3.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CodelConfig {
    /// Standing delay that is tolerated. Default 5 ms.
    pub target: Duration,
    /// For how long it must stand above the target: a round-trip time of most flows. Default
    /// 100 ms.
    pub interval: Duration,
    /// Mark packets of ECN-capable transports instead of dropping them. Default true.
    pub ecn: bool,
    /// The delay above which every packet of an ECN-capable transport is marked, as in Linux (tc-codel(8), `ce_threshold`).
    /// Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
}

impl Default for CodelConfig {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self { target: ms(5), interval: ms(100), ecn: true, ce_threshold: None }
    }
}

/// PIE's parameters; defaults from RFC 8033 §4 and §5.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PieConfig {
    /// The delay to be held (QDELAY_REF). Default 15 ms.
    pub target: Duration,
    /// How often the drop probability is computed (T_UPDATE); its weights follow from it (§4.2).
    /// Default 15 ms.
    pub update: Duration,
    /// How long a burst passes untouched after an idle time (MAX_BURST). Default 150 ms.
    pub burst: Duration,
    /// Mark packets of ECN-capable transports instead of dropping them while the probability is
    /// below 10 % (§5.1). Default true.
    pub ecn: bool,
}

impl Default for PieConfig {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self { target: ms(15), update: ms(15), burst: ms(150), ecn: true }
    }
}

/// FQ-CoDel's parameters; defaults from RFC 8290 §5.2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FqCodelConfig {
    /// Of every flow queue's CoDel.
    pub codel: CodelConfig,
    /// Number of flow queues; flows are hashed onto them. Default 1024.
    pub flows: u32,
    /// Bytes a queue may send in its turn. Default 1514.
    pub quantum: Bytes,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self { codel: CodelConfig::default(), flows: 1024, quantum: Bytes::new(1514) }
    }
}

/// DualPI2's parameters; defaults from RFC 9332, appendix A.1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Dualpi2Config {
    /// The delay at which the classic queue is held (target). Default 15 ms.
    pub target: Duration,
    /// The longest round-trip time of most flows (`RTT_max`), from which the gains of the controller follow. Default 100 ms.
    pub interval: Duration,
    /// The delay from which packets of L4S are marked (minTh); from one and a half times of it on all are. Default 800 µs.
    pub ce_threshold: Duration,
}

impl Default for Dualpi2Config {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self { target: ms(15), interval: ms(100), ce_threshold: Duration::from_micros(800) }
    }
}

/// How fast packets leave the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerConfig {
    /// At once.
    Unlimited,
    /// Bit by bit at the rate in force. A packet in service when the rate changes goes on at the
    /// new rate; a rate of 0 is an outage.
    Steady(RateCurve),
    /// A token bucket: a packet leaves at once when there is a token for each of its bytes; tokens
    /// come at the rate, and the bucket, full at the start, holds `burst`. A packet that is larger than
    /// that leaves when the rate has brought what the bucket lacked.
    Bucket {
        /// How fast tokens come.
        rate: RateCurve,
        /// How many bytes' worth of tokens the bucket holds.
        burst: Bytes,
    },
    /// Delivery opportunities of 1500 bytes at the times of a Poisson process with this mean rate.
    Poisson(RateCurve),
    /// Delivery opportunities of 1500 bytes at recorded times.
    Trace(OpportunityTrace),
    /// As the air of a Wi-Fi link lets them: [`LinkConfig::wifi`].
    Wifi,
    /// As the other stations of a half-duplex Ethernet let them: [`LinkConfig::ethernet`].
    Ethernet,
    /// As the base station's scheduler lets them: [`LinkConfig::cellular`].
    Cellular,
}

impl ServerConfig {
    /// Whether it is a medium that stations share, which adds its own delays and losses.
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Wifi | Self::Ethernet | Self::Cellular)
    }

    /// The rate in force at a time (of opportunities at recorded times, their mean); `None` if
    /// nothing limits it, or if it has none of its own (a medium that stations share).
    pub fn rate_at(&self, time: Time) -> Option<BitRate> {
        match self {
            Self::Unlimited | Self::Wifi | Self::Ethernet | Self::Cellular => None,
            Self::Steady(rate) | Self::Bucket { rate, .. } | Self::Poisson(rate) => {
                Some(rate.at(time))
            }
            Self::Trace(trace) => Some(trace.mean()),
        }
    }
}

/// What happens to packets on their way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PropagationConfig {
    /// One-way delay; the one in force when a packet leaves the server.
    pub delay: Schedule<Duration>,
    /// Variation of the delay, from packet to packet.
    pub jitter: Option<JitterConfig>,
    /// Packets held back so that others overtake them.
    pub reorder: Option<ReorderConfig>,
    /// Probability that a packet arrives twice.
    pub duplicate: Ratio,
    /// Probability that one bit of a packet is flipped.
    pub corrupt: Ratio,
}

impl Default for PropagationConfig {
    fn default() -> Self {
        Self {
            delay: Schedule::constant(Duration::ZERO),
            jitter: None,
            reorder: None,
            duplicate: Ratio::ZERO,
            corrupt: Ratio::ZERO,
        }
    }
}

/// Variation of the delay from packet to packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JitterConfig {
    /// Its shape.
    pub distribution: Distribution,
    /// Its standard deviation, before anything is cut off; of a truncated Gaussian, that of the Gaussian.
    pub sd: Duration,
    /// Whether packets may overtake one another by it.
    pub order: Order,
}

/// The shape of jitter. Values above 20 standard deviations are clipped to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Uniform and centred on the delay: ±√3 standard deviations.
    Uniform,
    /// Normal and centred on the delay; the sum is clipped at zero.
    Normal,
    /// Exponential and added to the delay: its mean is its standard deviation.
    Exponential,
    /// Pareto (Lomax) with shape 3, heavy-tailed, added to the delay: its mean is 1/√3 of its
    /// standard deviation.
    Pareto,
    /// A truncated Gaussian, the jitter of RFC 8868 (section 4.5.3): the absolute value of a normal variable with the
    /// deviation `sd`, at most 3 `sd`, is added to the delay. Its mean is 0.80 `sd`, its standard deviation 0.60 `sd`. The RFC
    /// recommends an `sd` of 5 ms.
    TruncatedGaussian,
}

/// Whether packets may overtake one another.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// They may not. At any time the delay has the given distribution, but it changes slowly: packets less than about
    /// twenty standard deviations apart have similar delays. So mean and deviation are correct at every packet rate,
    /// and packets stay in order. A truncated Gaussian is drawn for each packet, and a packet that would overtake waits for
    /// the one before it (RFC 8868, section 4.5.2), so the mean rises with the packet rate.
    #[default]
    Kept,
    /// They may: each packet's delay is drawn independently.
    Free,
}

/// Packets held back so that others overtake them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReorderConfig {
    /// Probability that a packet is held back.
    pub chance: Ratio,
    /// For how long, on top of its delay.
    pub by: Duration,
}
