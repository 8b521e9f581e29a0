//! What a user writes of a controller: the table `rate` of an endpoint.
//!
//! A plain struct of options, without serde's tagged enums: so an error of `toml` keeps its line and
//! column. Which keys belong to which controller is checked by [`RateSpec::check`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::refusal::listed;
use suiro_strict::{Bounded, Bounds, Keys, Refusal, bounds, bounds_of};
use suiro_units::{BitRate, Bytes, Duration, Time};

use crate::Controller;
use crate::equation::Bounds as Limits;
use crate::fixed::Fixed;
use crate::gcc::{self, Gcc};
use crate::nada::{self, Nada};
use crate::scream::{self, Scream};
use crate::tfrc;
use crate::tfrcp::{self, Decrease, Increase};

/// Slowest rate that may be asked for.
pub const SLOWEST: BitRate = BitRate::from_kbps(1);
/// Fastest rate that may be asked for.
pub const FASTEST: BitRate = BitRate::from_mbps(100_000);

const RATES: Bounds<BitRate> = Bounds::new(SLOWEST, FASTEST);

bounds! {
    RateSpec {
        rate: RATES,
        interval: Bounds::new(1, 1000),
        gop: Bounds::new(Duration::from_millis(10), Duration::from_secs(60)),
        packet: Bounds::new(Bytes::new(100), Bytes::new(65_535)),
        timeout_min: Bounds::new(Duration::ZERO, Duration::from_secs(60)),
        initial: RATES,
        min: RATES,
        max: RATES,
        priority: Bounds::new(0.1, 10.0),
    }
}

/// The study's: 32 round-trip times.
const INTERVAL: u32 = 32;
/// The study's: 30 frames at 30000/1001 per second.
const GOP: Duration = Duration::from_millis(1001);
const PACKET: Bytes = Bytes::new(1500);
const INITIAL: BitRate = BitRate::from_mbps(1);
const MIN: BitRate = BitRate::from_kbps(64);
const MAX: BitRate = BitRate::from_mbps(1000);
/// RFC 8698 table 2, RMIN and RMAX, and RFC 8867 §4.3. With NADA they also say what a flow claims, so that a maximum that nobody
/// meant does harm.
const CODEC_MIN: BitRate = BitRate::from_kbps(150);
const CODEC_MAX: BitRate = BitRate::from_kbps(1500);
/// The first target of libwebrtc.
const GCC_INITIAL: BitRate = BitRate::from_kbps(300);

/// How a sender finds its rate: a controller by name, with the keys that belong to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<RateSpec>)]
pub struct RateSpec {
    /// The controller.
    pub kind: RateKind,
    /// `fixed`: the rate. Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// `tfrcp`: the change of the rate after an interval without loss. Default: additive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub increase: Option<Increase>,
    /// `tfrcp`: the change of the rate after an interval with loss. Default: halve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decrease: Option<Decrease>,
    /// `tfrcp`: the control interval in round-trip times, rounded to whole GoP times.
    /// Default: 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<u32>,
    /// `tfrcp`: the duration of a group of pictures. Default: that of the video;
    /// without a video, 1.001 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gop: Option<Duration>,
    /// `tfrcp`, `tfrc`: size of a full IP packet, for which TCP's throughput is computed.
    /// Default: 1500 B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Bytes>,
    /// `tfrcp`: the least retransmission timeout T0 of a TCP on the path. Default: none beyond Linux's, whose variation counts
    /// as 200 ms at least. RFC 2988 §2.4 has 1 s, and TCPs of the year 2000 rarely less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_min: Option<Duration>,
    /// `tfrcp`, `tfrc`, `nada`, `scream`, `gcc`: the first target, from `min` to `max`. Default: 1 Mbit/s (tfrcp); a packet per second
    /// until the first report, then RFC 3390's initial window per round-trip time (tfrc); `min` (nada, scream); 300 kbit/s (gcc).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<BitRate>,
    /// `tfrcp`, `tfrc`, `nada`, `scream`, `gcc`: the smallest target. Default: 64 kbit/s; 150 kbit/s (nada, scream, gcc).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<BitRate>,
    /// `tfrcp`, `tfrc`, `nada`, `scream`, `gcc`: the largest target. Default: 1 Gbit/s; 1.5 Mbit/s (nada, scream, gcc). With `nada` it is also
    /// what the flow claims: at one bottleneck, rates are proportional to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<BitRate>,
    /// `nada`: the weight of the flow; at one bottleneck, rates are proportional to it. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// `nada`, `scream`: whether packets say that their transport understands ECN, so that a queue can mark them instead of
    /// dropping them. The receiver reports the marks. Default: they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnMode>,
}

/// How packets take part in Explicit Congestion Notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// ECT(0): a mark means what a loss means (RFC 3168).
    Classic,
    /// ECT(1): the share of marked packets says how much to slow down (L4S, RFC 9331). Only `scream` does.
    L4s,
}

impl EcnMode {
    /// The two bits in the IP header (RFC 3168 §5).
    pub const fn bits(self) -> u8 {
        match self {
            Self::Classic => 0b10,
            Self::L4s => 0b01,
        }
    }
}

/// Names of the controllers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RateKind {
    /// A constant rate, whatever happens.
    Fixed,
    /// MPEG-TFRCP, as in the study.
    Tfrcp,
    /// TFRC, RFC 5348.
    Tfrc,
    /// NADA, RFC 8698. It needs reports of each packet: the receiver's `feedback`, `"100 ms"` as the RFC recommends.
    Nada,
    /// SCReAM v2, draft-ietf-ccwg-rfc8298bis-screamv2. It needs reports of each packet about once per frame: the
    /// receiver's `feedback`, `"40 ms"` at most.
    Scream,
    /// GCC, draft-ietf-rmcat-gcc-02 with the later parts of libwebrtc. It needs reports of each packet: the receiver's `feedback`,
    /// `"50 ms"` to `"100 ms"` as libwebrtc has it.
    Gcc,
}

impl RateKind {
    /// Every controller there is.
    pub const ALL: [Self; 6] =
        [Self::Fixed, Self::Tfrcp, Self::Tfrc, Self::Nada, Self::Scream, Self::Gcc];

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Tfrcp => "tfrcp",
            Self::Tfrc => "tfrc",
            Self::Nada => "nada",
            Self::Scream => "scream",
            Self::Gcc => "gcc",
        }
    }

    /// The keys that belong to it.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Fixed => &["rate"],
            Self::Tfrcp => &[
                "increase",
                "decrease",
                "interval",
                "gop",
                "packet",
                "timeout_min",
                "initial",
                "min",
                "max",
            ],
            Self::Tfrc => &["packet", "initial", "min", "max"],
            Self::Gcc => &["initial", "min", "max"],
            Self::Nada => &["initial", "min", "max", "priority", "ecn"],
            Self::Scream => &["initial", "min", "max", "ecn"],
        }
    }

    /// Whether it needs a receiver that reports what became of each packet (RFC 8888).
    pub const fn needs_packets(self) -> bool {
        matches!(self, Self::Nada | Self::Scream | Self::Gcc)
    }
}

impl std::fmt::Display for RateKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl RateSpec {
    /// A controller with all its defaults.
    pub const fn new(kind: RateKind) -> Self {
        Self {
            kind,
            rate: None,
            increase: None,
            decrease: None,
            interval: None,
            gop: None,
            packet: None,
            timeout_min: None,
            initial: None,
            min: None,
            max: None,
            priority: None,
            ecn: None,
        }
    }

    /// A rate that nothing changes.
    pub const fn fixed(rate: BitRate) -> Self {
        let mut spec = Self::new(RateKind::Fixed);
        spec.rate = Some(rate);
        spec
    }

    /// Whether keys belong to the controller and values are in range.
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_keys()?;
        self.check_bounds()?;
        match self.kind {
            RateKind::Fixed => self.fixed_rate().map(drop),
            RateKind::Nada if self.ecn == Some(EcnMode::L4s) => {
                let refusal = Refusal::key("ecn", "`nada` does not answer marks as L4S demands");
                Err(refusal.hint("write ecn = \"classic\", or choose `scream`"))
            }
            RateKind::Tfrcp
            | RateKind::Tfrc
            | RateKind::Nada
            | RateKind::Scream
            | RateKind::Gcc => self.limits().map(drop),
        }
    }

    /// The controller of a sender that begins at `start`.
    pub fn build(&self, start: Time) -> Result<Box<dyn Controller>, Refusal> {
        self.check()?;
        Ok(match self.kind {
            RateKind::Fixed => Box::new(Fixed::new(self.fixed_rate()?)),
            RateKind::Tfrcp => Box::new(tfrcp::Tfrcp::new(self.tfrcp()?, start)),
            RateKind::Tfrc => Box::new(tfrc::Sender::new(self.tfrc()?, start)),
            RateKind::Nada => Box::new(Nada::new(self.nada()?, start)),
            RateKind::Scream => Box::new(Scream::new(self.scream()?, start)),
            RateKind::Gcc => Box::new(Gcc::new(self.gcc()?, start)),
        })
    }

    fn check_keys(&self) -> Result<(), Refusal> {
        let keys = [
            ("rate", self.rate.is_some()),
            ("increase", self.increase.is_some()),
            ("decrease", self.decrease.is_some()),
            ("interval", self.interval.is_some()),
            ("gop", self.gop.is_some()),
            ("packet", self.packet.is_some()),
            ("timeout_min", self.timeout_min.is_some()),
            ("initial", self.initial.is_some()),
            ("min", self.min.is_some()),
            ("max", self.max.is_some()),
            ("priority", self.priority.is_some()),
            ("ecn", self.ecn.is_some()),
        ];
        let own = self.kind.keys();
        let strange = keys.into_iter().find(|(key, given)| *given && !own.contains(key));
        strange.map_or(Ok(()), |(key, _)| {
            let refusal = Refusal::key(key, format!("`{key}` is not a key of `{}`", self.kind));
            Err(refusal.expected(listed(own.iter().copied()).unwrap_or_default()))
        })
    }

    fn fixed_rate(&self) -> Result<BitRate, Refusal> {
        let missing = || Refusal::key("rate", "the kind `fixed` needs a rate");
        self.rate.ok_or_else(|| missing().hint("add rate = \"5 Mbit/s\""))
    }

    fn tfrcp(&self) -> Result<tfrcp::Config, Refusal> {
        let (limits, initial) = self.limits()?;
        Ok(tfrcp::Config {
            increase: self.increase.unwrap_or_default(),
            decrease: self.decrease.unwrap_or_default(),
            interval_rtts: self.interval.unwrap_or(INTERVAL),
            gop: self.gop.unwrap_or(GOP),
            packet: self.packet.unwrap_or(PACKET),
            timeout_min: self.timeout_min.unwrap_or_default(),
            initial: initial.unwrap_or(INITIAL.clamp(limits.min, limits.max)),
            bounds: limits,
        })
    }

    fn tfrc(&self) -> Result<tfrc::Config, Refusal> {
        let (bounds, initial) = self.limits()?;
        Ok(tfrc::Config { packet: self.packet.unwrap_or(PACKET), initial, bounds })
    }

    fn nada(&self) -> Result<nada::Config, Refusal> {
        let (bounds, initial) = self.limits()?;
        let priority = self.priority.unwrap_or(1.0);
        Ok(nada::Config { priority, initial: initial.unwrap_or(bounds.min), bounds })
    }

    fn scream(&self) -> Result<scream::Config, Refusal> {
        let (bounds, initial) = self.limits()?;
        let l4s = self.ecn == Some(EcnMode::L4s);
        Ok(scream::Config { l4s, initial: initial.unwrap_or(bounds.min), bounds })
    }

    fn gcc(&self) -> Result<gcc::Config, Refusal> {
        let (bounds, initial) = self.limits()?;
        let usual = GCC_INITIAL.clamp(bounds.min, bounds.max);
        Ok(gcc::Config { initial: initial.unwrap_or(usual), bounds })
    }

    /// The smallest and the largest target, and the first one.
    fn limits(&self) -> Result<(Limits, Option<BitRate>), Refusal> {
        let (least, most) = match self.kind {
            RateKind::Nada | RateKind::Scream | RateKind::Gcc => (CODEC_MIN, CODEC_MAX),
            RateKind::Fixed | RateKind::Tfrcp | RateKind::Tfrc => (MIN, MAX),
        };
        let (min, max) = (self.min.unwrap_or(least), self.max.unwrap_or(most));
        let max = Bounds::new(min, *RATES.most()).check(Keys::of("max"), max)?;
        let between = Bounds::new(min, max);
        let initial = self.initial.map(|rate| between.check(Keys::of("initial"), rate));
        Ok((Limits { min, max }, initial.transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> RateSpec {
        toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"))
    }

    fn refusal(toml: &str) -> String {
        let refusal = read(toml).check().unwrap_err();
        assert_eq!(read(toml).build(Time::ZERO).unwrap_err(), refusal);
        refusal.to_string()
    }

    #[test]
    fn every_kind_builds() {
        for kind in RateKind::ALL {
            let mut spec = RateSpec::new(kind);
            spec.rate = (kind == RateKind::Fixed).then_some(BitRate::from_mbps(5));
            spec.check().unwrap();
            let target = spec.build(Time::ZERO).unwrap().target();
            assert!(!target.is_zero(), "{kind}");
            let text = toml::to_string(&spec).unwrap();
            assert_eq!(read(&text), spec, "{text}");
            assert!(text.contains(&format!("kind = \"{kind}\"")), "{text}");
        }
    }

    #[test]
    fn keys_are_of_their_kind_and_values_in_range() {
        let say = refusal("kind = 'tfrc'\ninterval = 16");
        assert_eq!(
            say,
            "interval: `interval` is not a key of `tfrc`\n\
                    expected: `packet`, `initial`, `min` or `max`"
        );
        assert_eq!(
            refusal("kind = 'fixed'"),
            "rate: the kind `fixed` needs a rate\nhint: add rate = \"5 Mbit/s\""
        );
        let say = refusal("kind = 'tfrcp'\ninterval = 0");
        assert_eq!(say, "interval: 0 is out of range\nexpected: 1 to 1000");
        let say = refusal("kind = 'tfrc'\nmin = '2 Mbit/s'\nmax = '1 Mbit/s'");
        assert_eq!(say, "max: 1 Mbit/s is out of range\nexpected: 2 Mbit/s to 100 Gbit/s");
        let say = refusal("kind = 'nada'\necn = 'l4s'");
        assert!(say.contains("`nada` does not answer marks") && say.contains("`scream`"), "{say}");
        read("kind = 'scream'\necn = 'l4s'").check().unwrap();
        let say = refusal("kind = 'tfrcp'\ninitial = '2 Gbit/s'");
        assert_eq!(say, "initial: 2 Gbit/s is out of range\nexpected: 64 kbit/s to 1 Gbit/s");
    }

    #[test]
    fn what_is_unknown_is_refused_with_its_place() {
        let say = toml::from_str::<RateSpec>("kind = 'tfrcp'\nincreese = 'double'").unwrap_err();
        assert!(say.to_string().contains("line 2"), "{say}");
        let say = toml::from_str::<RateSpec>("kind = 'bbr'").unwrap_err().to_string();
        assert!(say.contains("line 1") && say.contains("`tfrcp`"), "{say}");
    }
}
