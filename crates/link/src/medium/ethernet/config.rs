//! What a user writes below `ethernet`, and what a medium needs of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounded, Bounds, Keys, Refusal, bounds, bounds_of};
use suiro_units::{BitRate, Duration};

use super::SLOT_BITS;

/// Largest IP packet: `maxBasicDataSize`.
pub(crate) const MAX_IP_BYTES: u64 = 1_500;

suiro_units::words! {
    /// The rate of a half-duplex Ethernet.
    pub enum EthernetRate {
        /// 10BASE-T and the older ones.
        Ten = "10 Mbit/s",
        /// 100BASE-TX at a repeater.
        Hundred = "100 Mbit/s",
    }
}

impl EthernetRate {
    /// Bits on the medium per second.
    pub const fn bit_rate(self) -> BitRate {
        match self {
            Self::Ten => BitRate::from_bps(10_000_000),
            Self::Hundred => BitRate::from_bps(100_000_000),
        }
    }

    /// Time of a bit.
    pub(crate) const fn bit(self) -> Duration {
        match self {
            Self::Ten => Duration::from_nanos(100),
            Self::Hundred => Duration::from_nanos(10),
        }
    }

    /// Two cables of 100 m and the hub between them.
    const fn delay(self) -> Duration {
        match self {
            Self::Ten => Duration::from_micros(2),
            Self::Hundred => Duration::from_nanos(1_500),
        }
    }
}

const DELAY: Bounds<Duration> = Bounds::new(Duration::ZERO, Duration::from_nanos(25_600));

bounds! { EthernetSpec { delay: DELAY } }
bounds! { EthernetConfig { delay: DELAY } }

/// Half-duplex Ethernet: stations that share a hub, and collide (IEEE 802.3 CSMA/CD). It replaces `rate`. For example
/// `ethernet = { rate = "10 Mbit/s" }`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = bounds_of::<EthernetSpec>)]
pub struct EthernetSpec {
    /// Rate of bits on the medium. Default: 10 Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<EthernetRate>,
    /// From one station to another, cables and hub; at most half a slot of 512 bit times. Default: 2 µs, at 100 Mbit/s
    /// 1.5 µs: two cables of 100 m and a hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
}

/// A half-duplex Ethernet fully described; what each field means stands at [`EthernetSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is documented where the user writes it")]
pub struct EthernetConfig {
    pub rate: EthernetRate,
    pub delay: Duration,
}

impl EthernetSpec {
    pub(crate) fn resolve(&self) -> Result<EthernetConfig, Refusal> {
        let rate = self.rate.unwrap_or(EthernetRate::Ten);
        let config = EthernetConfig { rate, delay: self.delay.unwrap_or(rate.delay()) };
        config.check().map(|()| config)
    }
}

impl EthernetConfig {
    /// A collision must be noticed while the shortest frame is still being sent.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.check_bounds().map_err(|refusal| refusal.below("ethernet"))?;
        let most = self.rate.bit() * (SLOT_BITS / 2);
        let of_rate = Bounds::new(Duration::ZERO, most);
        of_rate.check(Keys::of("ethernet.delay"), self.delay).map(drop)
    }
}
