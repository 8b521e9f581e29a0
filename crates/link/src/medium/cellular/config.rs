//! What a user writes below `cellular`, and what a link needs of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounded, Bounds, Refusal, bounds, bounds_of};
use suiro_units::Ratio;

use crate::medium::quantity::{Decibels, KilometresPerHour, Metres};

/// Largest IP packet: a PDCP service data unit (TS 36.323, §4.3.1).
pub(crate) const MAX_IP_BYTES: u64 = 8_188;

suiro_units::words! {
    /// The bandwidth of each direction of a cell (TS 36.101, table 5.6-1).
    pub enum Bandwidth {
        /// 6 resource blocks.
        Mhz1 = "1.4 MHz",
        /// 15 resource blocks.
        Mhz3 = "3 MHz",
        /// 25 resource blocks.
        Mhz5 = "5 MHz",
        /// 50 resource blocks.
        Mhz10 = "10 MHz",
        /// 75 resource blocks.
        Mhz15 = "15 MHz",
        /// 100 resource blocks.
        Mhz20 = "20 MHz",
    }
}

impl Bandwidth {
    /// Resource blocks of 180 kHz in the band.
    pub const fn blocks(self) -> u32 {
        match self {
            Self::Mhz1 => 6,
            Self::Mhz3 => 15,
            Self::Mhz5 => 25,
            Self::Mhz10 => 50,
            Self::Mhz15 => 75,
            Self::Mhz20 => 100,
        }
    }
}

/// Bounds of the keys, for what a user writes and for what a link needs.
macro_rules! cellular_bounds {
    ($type:ident) => {
        bounds! {
            $type {
                distance: Bounds::new(super::radio::NEAREST, Metres(20_000.0)),
                speed: Bounds::new(KilometresPerHour(0.0), KilometresPerHour(500.0)),
                penetration: Bounds::new(Decibels(0.0), Decibels(100.0)),
                shadowing: Bounds::new(Decibels(0.0), Decibels(30.0)),
                rice_k: Bounds::new(Decibels(-100.0), Decibels(100.0)),
                block_errors: Bounds::new(Ratio::ZERO, Ratio::constant(0.5)),
                cell_radius: Bounds::new(Metres(50.0), Metres(10_000.0)),
            }
        }
    };
}

cellular_bounds! { CellularSpec }
cellular_bounds! { CellularConfig }

/// A cellular radio at 2 GHz, as LTE: a base station shares each direction of its band among its users, proportionally
/// fair, and every user has one bearer without priority. It replaces `rate`. For example `cellular = { distance = "250 m",
/// speed = "30 km/h" }`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = bounds_of::<CellularSpec>)]
pub struct CellularSpec {
    /// From the base station to the user, towards the corner between two neighbouring sites: path loss of the macro
    /// cells of 3GPP cases 1 and 3. Default: 100 m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<Metres>,
    /// How fast the user moves: it determines how fast the signal fades and how fast shadows pass. The distance stays.
    /// Default: 3 km/h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<KilometresPerHour>,
    /// Attenuation by the walls around the user, of the signal and of the neighbours' interference. Default: 20 dB, as
    /// in the 3GPP cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penetration: Option<Decibels>,
    /// Standard deviation of log-normal shadowing, which is correlated over 50 m. Default: 8 dB, as in the 3GPP cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<Decibels>,
    /// Power of the direct signal over the scattered one (Rician K) at each of the two receiving antennas; 60 dB is a
    /// steady signal. Default: -100 dB, Rayleigh fading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rice_k: Option<Decibels>,
    /// Share of transport blocks that must be sent again, after 8 ms each time. Default: 10 %, the usual target of link
    /// adaptation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_errors: Option<Ratio>,
    /// The cell's bandwidth, in each direction. Default: 10 MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// The cell's radius: base stations are three times as far apart. Default: 166.667 m, 3GPP case 1; case 3 has
    /// 577.333 m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_radius: Option<Metres>,
    /// Share of the time in which the six neighbouring cells send, in each direction. Default: 50 %, between an empty
    /// network and the full buffers of the 3GPP cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Ratio>,
}

/// A cellular radio fully described; what each field means stands at [`CellularSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is documented where the user writes it")]
pub struct CellularConfig {
    pub distance: Metres,
    pub speed: KilometresPerHour,
    pub penetration: Decibels,
    pub shadowing: Decibels,
    pub rice_k: Decibels,
    pub block_errors: Ratio,
    pub bandwidth: Bandwidth,
    pub cell_radius: Metres,
    pub load: Ratio,
}

impl Default for CellularConfig {
    fn default() -> Self {
        Self {
            distance: Metres(100.0),
            speed: KilometresPerHour(3.0),
            penetration: Decibels(20.0),
            shadowing: Decibels(8.0),
            rice_k: Decibels(-100.0),
            block_errors: Ratio::constant(0.1),
            bandwidth: Bandwidth::Mhz10,
            cell_radius: Metres(500.0 / 3.0),
            load: Ratio::constant(0.5),
        }
    }
}

impl CellularConfig {
    /// The link without what is random: neither shadowing, nor fading, nor errors of blocks.
    #[must_use]
    pub const fn steady(self) -> Self {
        Self {
            shadowing: Decibels(0.0),
            rice_k: Decibels(100.0),
            block_errors: Ratio::ZERO,
            ..self
        }
    }

    /// Whether both may be users of one cell.
    pub(crate) fn shares_cell(&self, other: &Self) -> bool {
        let cell = |of: &Self| (of.bandwidth, of.cell_radius, of.load);
        cell(self) == cell(other)
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.check_bounds().map_err(|refusal| refusal.below("cellular"))
    }
}

impl CellularSpec {
    /// The key among its own that is the whole cell's, if it has one.
    pub(crate) fn of_cell(&self) -> Option<&'static str> {
        let keys = [
            ("bandwidth", self.bandwidth.is_some()),
            ("cell_radius", self.cell_radius.is_some()),
            ("load", self.load.is_some()),
        ];
        keys.into_iter().find_map(|(key, is_there)| is_there.then_some(key))
    }

    /// These keys over those of all users.
    pub(crate) fn over(self, lower: Self) -> Self {
        Self {
            distance: self.distance.or(lower.distance),
            speed: self.speed.or(lower.speed),
            penetration: self.penetration.or(lower.penetration),
            shadowing: self.shadowing.or(lower.shadowing),
            rice_k: self.rice_k.or(lower.rice_k),
            block_errors: self.block_errors.or(lower.block_errors),
            bandwidth: self.bandwidth.or(lower.bandwidth),
            cell_radius: self.cell_radius.or(lower.cell_radius),
            load: self.load.or(lower.load),
        }
    }

    pub(crate) fn resolve(self) -> Result<CellularConfig, Refusal> {
        let default = CellularConfig::default();
        let config = CellularConfig {
            distance: self.distance.unwrap_or(default.distance),
            speed: self.speed.unwrap_or(default.speed),
            penetration: self.penetration.unwrap_or(default.penetration),
            shadowing: self.shadowing.unwrap_or(default.shadowing),
            rice_k: self.rice_k.unwrap_or(default.rice_k),
            block_errors: self.block_errors.unwrap_or(default.block_errors),
            bandwidth: self.bandwidth.unwrap_or(default.bandwidth),
            cell_radius: self.cell_radius.unwrap_or(default.cell_radius),
            load: self.load.unwrap_or(default.load),
        };
        config.check().map(|()| config)
    }
}
