//! What a user writes below `wifi`, and what a link needs of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounded, Bounds, Keys, Refusal, bounds, bounds_of};
use suiro_units::{Duration, Ratio};

use crate::bounds::{CHANGE_AT, CHANGES};
use crate::medium::quantity::{Dbm, Decibels, Metres};
use crate::schedule::{Change, Schedule};

/// Frames between the oldest unacknowledged and the newest: the block ACK's bitmap.
pub(crate) const WINDOW: usize = 64;
const TIME: Bounds<Duration> = Bounds::new(Duration::from_millis(1), Duration::from_secs(3600));
const ATTENUATION: Bounds<Decibels> = Bounds::new(Decibels(0.0), Decibels(150.0));
pub(crate) const BUSY: Bounds<Ratio> = Bounds::new(Ratio::ZERO, Ratio::constant(0.95));

/// Bounds of the keys that do not change, for what a user writes and for what a link needs.
macro_rules! wifi_bounds {
    ($type:ident { $($rest:tt)* }) => {
        bounds! {
            $type {
                distance: Bounds::new(Metres(0.1), Metres(1000.0)),
                walls: Bounds::new(0, 20),
                wall_loss: Bounds::new(Decibels(0.0), Decibels(100.0)),
                power: Bounds::new(Dbm(-50.0), Dbm(40.0)),
                shadowing: Bounds::new(Decibels(0.0), Decibels(30.0)),
                shadowing_time: TIME,
                rice_k: Bounds::new(Decibels(-100.0), Decibels(100.0)),
                fading_time: TIME,
                aggregate: Bounds::new(1, WINDOW as u32),
                retries: Bounds::new(0, 255),
                lifetime: TIME,
                $($rest)*
            }
        }
    };
}

wifi_bounds! {
    WifiSpec { busy: BUSY, attenuation: ATTENUATION, changes: CHANGES; tables: changes }
}
wifi_bounds! { WifiConfig {} }
bounds! { WifiChangeSpec { at: CHANGE_AT, attenuation: ATTENUATION, busy: BUSY } }
bounds! { Air { attenuation: ATTENUATION, busy: BUSY } }

/// A Wi-Fi link: 802.11n, one stream, 20 MHz, MCS 0 to 7. Both directions share its air; it
/// replaces `rate`. For example `wifi = { distance = "5 m", walls = 1, changes = [{ at = "10 s",
/// attenuation = "30 dB" }] }`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = bounds_of::<WifiSpec>)]
pub struct WifiSpec {
    /// Between the two stations: path loss as in free space at 2.4 GHz up to 5 m,
    /// then with exponent 3.5 (TGn model B). Default: 5 m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<Metres>,
    /// Walls between them. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walls: Option<u32>,
    /// Attenuation by each wall. Default: 10 dB, between plasterboard and concrete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_loss: Option<Decibels>,
    /// Transmit power of both stations, antenna gain included. Default: 15 dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<Dbm>,
    /// Standard deviation of log-normal shadowing. Default: 3 dB, TGn model B near.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<Decibels>,
    /// Correlation time of shadowing. Default: 2 s, people walking by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowing_time: Option<Duration>,
    /// Power of the direct signal over the scattered one (Rician K); -100 dB is
    /// Rayleigh fading. Default: 6 dB, in sight of one another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rice_k: Option<Decibels>,
    /// Correlation time of fading. Default: 50 ms, stations at rest indoors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fading_time: Option<Duration>,
    /// Short guard interval: 7.2 to 72.2 Mbit/s instead of 6.5 to 65. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_gi: Option<bool>,
    /// Maximum number of frames in an A-MPDU; 1 is no aggregation. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<u32>,
    /// How often a frame is sent again after the first time before it is dropped. Default: 6, which is seven times in all, the
    /// standard's default limit (dot11ShortRetryLimit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// How long a packet may be at its sender, in its queue and while it is sent again, before it is dropped. The standard's
    /// default is 500 TU, 512 ms (dot11EDCATableMSDULifetime). Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Duration>,
    /// Share of the air time that other stations use. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<Ratio>,
    /// Attenuation in addition to distance and walls. Default: 0 dB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attenuation: Option<Decibels>,
    /// Changes during a trial, in order of time. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<WifiChangeSpec>>,
}

/// Changes of a Wi-Fi link at a given time; absent keys keep their values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<WifiChangeSpec>)]
pub struct WifiChangeSpec {
    /// When, counted from the trial's start.
    pub at: Duration,
    /// The attenuation from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attenuation: Option<Decibels>,
    /// The other stations' share of the time from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Ratio>,
}

/// A Wi-Fi link fully described; what each field means stands at [`WifiSpec`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is documented where the user writes it")]
pub struct WifiConfig {
    pub distance: Metres,
    pub walls: u32,
    pub wall_loss: Decibels,
    pub power: Dbm,
    pub shadowing: Decibels,
    pub shadowing_time: Duration,
    pub rice_k: Decibels,
    pub fading_time: Duration,
    pub short_gi: bool,
    pub aggregate: u32,
    pub retries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Duration>,
    pub air: Schedule<Air>,
}

/// What may change on a Wi-Fi link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Air {
    /// Attenuation in addition to distance and walls.
    pub attenuation: Decibels,
    /// Share of the time that other stations hold the air.
    pub busy: Ratio,
}

impl Default for WifiConfig {
    fn default() -> Self {
        Self {
            distance: Metres(5.0),
            walls: 0,
            wall_loss: Decibels(10.0),
            power: Dbm(15.0),
            shadowing: Decibels(3.0),
            shadowing_time: Duration::from_secs(2),
            rice_k: Decibels(6.0),
            fading_time: Duration::from_millis(50),
            short_gi: false,
            aggregate: WINDOW as u32,
            retries: 6,
            lifetime: None,
            air: Schedule::constant(Air { attenuation: Decibels(0.0), busy: Ratio::ZERO }),
        }
    }
}

impl WifiConfig {
    /// The link as it begins, without its changes.
    #[must_use]
    pub fn frozen(&self) -> Self {
        Self { air: Schedule::constant(self.air.first), ..self.clone() }
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.check_bounds().map_err(|refusal| refusal.below("wifi"))?;
        CHANGES.check(Keys::of("wifi.changes"), self.air.changes.len())?;
        let mut before = Duration::ZERO;
        for (index, Change { at, value }) in self.air.changes.iter().enumerate() {
            let key = format!("wifi.changes.{index}");
            Bounds::above(before, *CHANGE_AT.most()).check(Keys::of(&key).below("at"), *at)?;
            before = *at;
            value.check_bounds().map_err(|refusal| refusal.below(&key))?;
        }
        self.air.first.check_bounds().map_err(|refusal| refusal.below("wifi"))
    }
}

impl WifiSpec {
    /// Whether it has the others' share of the air, at any time.
    pub(crate) fn says_busy(&self) -> bool {
        let mut changes = self.changes.iter().flatten();
        self.busy.is_some() || changes.any(|change| change.busy.is_some())
    }

    /// These keys over a preset's.
    pub(crate) fn over(self, lower: Self) -> Self {
        Self {
            distance: self.distance.or(lower.distance),
            walls: self.walls.or(lower.walls),
            wall_loss: self.wall_loss.or(lower.wall_loss),
            power: self.power.or(lower.power),
            shadowing: self.shadowing.or(lower.shadowing),
            shadowing_time: self.shadowing_time.or(lower.shadowing_time),
            rice_k: self.rice_k.or(lower.rice_k),
            fading_time: self.fading_time.or(lower.fading_time),
            short_gi: self.short_gi.or(lower.short_gi),
            aggregate: self.aggregate.or(lower.aggregate),
            retries: self.retries.or(lower.retries),
            lifetime: self.lifetime.or(lower.lifetime),
            busy: self.busy.or(lower.busy),
            attenuation: self.attenuation.or(lower.attenuation),
            changes: self.changes.or(lower.changes),
        }
    }

    pub(crate) fn resolve(self) -> Result<WifiConfig, Refusal> {
        let default = WifiConfig::default();
        let first = Air {
            attenuation: self.attenuation.unwrap_or(default.air.first.attenuation),
            busy: self.busy.unwrap_or(default.air.first.busy),
        };
        let mut air = Schedule::constant(first);
        let mut current = first;
        for WifiChangeSpec { at, attenuation, busy } in self.changes.unwrap_or_default() {
            current.attenuation = attenuation.unwrap_or(current.attenuation);
            current.busy = busy.unwrap_or(current.busy);
            air.changes.push(Change { at, value: current });
        }
        let config = WifiConfig {
            distance: self.distance.unwrap_or(default.distance),
            walls: self.walls.unwrap_or(default.walls),
            wall_loss: self.wall_loss.unwrap_or(default.wall_loss),
            power: self.power.unwrap_or(default.power),
            shadowing: self.shadowing.unwrap_or(default.shadowing),
            shadowing_time: self.shadowing_time.unwrap_or(default.shadowing_time),
            rice_k: self.rice_k.unwrap_or(default.rice_k),
            fading_time: self.fading_time.unwrap_or(default.fading_time),
            short_gi: self.short_gi.unwrap_or(default.short_gi),
            aggregate: self.aggregate.unwrap_or(default.aggregate),
            retries: self.retries.unwrap_or(default.retries),
            lifetime: self.lifetime,
            air,
        };
        config.check().map(|()| config)
    }
}
