//! What a user writes of a controller: the table `rate` of an endpoint.
//!
//! A plain struct of options, without serde's tagged enums: so an error of `toml` keeps its line and
//! column. Which keys belong to which controller is checked by [`RateSpec::check`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_units::{BitRate, Time};

use crate::Controller;
use crate::fixed::Fixed;

/// Slowest rate that may be asked for.
pub const SLOWEST: BitRate = BitRate::from_kbps(1);
/// Fastest rate that may be asked for.
pub const FASTEST: BitRate = BitRate::from_mbps(100_000);

/// How a sender finds its rate: a controller by name, with the keys that belong to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateSpec {
    /// The controller.
    pub kind: RateKind,
    /// `fixed`: the rate, 1 kbit/s to 100 Gbit/s. Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
}

/// Names of the controllers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RateKind {
    /// One rate, whatever happens ([`crate::fixed`]).
    Fixed,
}

impl RateKind {
    /// Every controller there is.
    pub const ALL: [Self; 1] = [Self::Fixed];

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
        }
    }
}

impl std::fmt::Display for RateKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Why a description of a controller cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SpecError {
    /// The key at fault.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
}

impl RateSpec {
    /// A rate that nothing changes.
    pub const fn fixed(rate: BitRate) -> Self {
        Self { kind: RateKind::Fixed, rate: Some(rate) }
    }

    /// Whether keys belong to the controller and values are in range.
    pub fn check(&self) -> Result<(), SpecError> {
        self.build(Time::ZERO).map(drop)
    }

    /// The controller of a sender that begins at `start`.
    pub fn build(&self, _start: Time) -> Result<Box<dyn Controller>, SpecError> {
        match self.kind {
            RateKind::Fixed => Ok(Box::new(Fixed::new(required_rate("rate", self.rate)?))),
        }
    }
}

fn required_rate(key: &'static str, value: Option<BitRate>) -> Result<BitRate, SpecError> {
    let rate =
        value.ok_or_else(|| SpecError { key, message: "missing: say how fast to send".into() })?;
    if !(SLOWEST..=FASTEST).contains(&rate) {
        let message = format!("{rate} is out of range: {SLOWEST} to {FASTEST}");
        return Err(SpecError { key, message });
    }
    Ok(rate)
}
