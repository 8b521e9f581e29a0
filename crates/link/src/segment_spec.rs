//! What a user writes below `[segments.NAME]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounded, Bounds, Refusal, bounds, bounds_of};
use suiro_units::{Duration, Ratio};

use crate::bounds::DELAY;
use crate::config::LinkConfig;
use crate::medium::cellular::CellularSpec;
use crate::medium::ethernet::EthernetSpec;
use crate::medium::wifi::{Air, WifiSpec};
use crate::schedule::Schedule;
use crate::spec::{LinkSpec, LossSpec, QueueSpec};

/// Most stations of a segment that can run live.
pub const STATIONS_MAX: usize = 32;

bounds! {
    SegmentSpec { stations: Bounds::new(2, STATIONS_MAX); tables: ethernet, wifi, cellular, stations }
}
bounds! { StationSpec { delay: DELAY; tables: queue, wifi, cellular, loss } }

/// A medium that several hosts share: the hub of a half-duplex Ethernet, or a Wi-Fi or cellular cell, whose access point or
/// base station is one of the hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<SegmentSpec>)]
pub struct SegmentSpec {
    /// A hub. For example `ethernet = { rate = "10 Mbit/s" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ethernet: Option<EthernetSpec>,
    /// A Wi-Fi cell: values for all its stations. `busy` is the share of the air that others take outside the cell. For
    /// example `wifi = {}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiSpec>,
    /// The access point of a Wi-Fi cell: the host through which all packets of its stations go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_point: Option<String>,
    /// A cellular cell: values for all its users. For example `cellular = { load = 0.7 }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cellular: Option<CellularSpec>,
    /// The base station of a cellular cell: the host through which all packets of its users go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_station: Option<String>,
    /// The hosts at the hub, or those that the access point or base station serves.
    pub stations: Vec<StationSpec>,
}

/// A host of a segment, with its queue, losses and delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<StationSpec>)]
pub struct StationSpec {
    /// The host's name.
    pub host: String,
    /// The queue of its packets for the medium; in a cell, also that of packets to it at the access point or base station.
    /// Default: that of a link with this medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// Wi-Fi cells: values of this station that differ, such as `{ distance = "20 m", walls = 1 }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiSpec>,
    /// Cellular cells: values of this user that differ, such as `{ distance = "250 m", speed = "30 km/h" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cellular: Option<CellularSpec>,
    /// Which packets are lost before they reach the queue. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSpec>,
    /// One-way delay of packets in addition to that of the medium. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
}

/// A segment resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentLinks {
    /// Each station as a link to it, in their order: from a hub, where its packets go up, or from the access point or base
    /// station.
    pub links: Vec<LinkConfig>,
    /// Of a Wi-Fi cell: the share of the air that others take.
    pub busy: Option<Schedule<Ratio>>,
}

impl SegmentSpec {
    /// Checks what it all means.
    ///
    /// # Errors
    /// A value out of range, or keys that contradict one another or lack another; the error names the key.
    pub fn resolve(&self) -> Result<SegmentLinks, Refusal> {
        self.check_bounds()?;
        let medium = self.medium()?;
        let busy = match &medium {
            Shared::Hub(ethernet) => ethernet.resolve().map(|_| None)?,
            Shared::Wifi(wifi) => Some((*wifi).clone().resolve()?.air.map(|air| air.busy)),
            Shared::Cellular(cellular) => cellular.resolve().map(|_| None)?,
        };
        self.check_centre(&medium)?;
        let stations = self.stations.iter().enumerate();
        let links = stations.map(|(index, station)| {
            let below = |refusal: Refusal| refusal.below(&format!("stations.{index}"));
            self.station(station).map_err(below)
        });
        Ok(SegmentLinks { links: links.collect::<Result<_, _>>()?, busy })
    }

    /// The one medium.
    fn medium(&self) -> Result<Shared<'_>, Refusal> {
        match (&self.ethernet, &self.wifi, &self.cellular) {
            (Some(ethernet), None, None) => Ok(Shared::Hub(ethernet)),
            (None, Some(wifi), None) => Ok(Shared::Wifi(wifi)),
            (None, None, Some(cellular)) => Ok(Shared::Cellular(cellular)),
            (None, None, None) => {
                let found = "neither `ethernet` nor `wifi` nor `cellular` together with them";
                let hint = "add ethernet = {}, wifi = {} or cellular = {}";
                Err(Refusal::key("stations", found).hint(hint))
            }
            (ethernet, wifi, _) => {
                let (key, first) = match (ethernet, wifi) {
                    (Some(_), Some(_)) => ("wifi", "ethernet"),
                    (Some(_), None) => ("cellular", "ethernet"),
                    (None, _) => ("cellular", "wifi"),
                };
                let refusal = Refusal::key(key, format!("`{key}` together with `{first}`"));
                Err(refusal.hint("remove one of the two"))
            }
        }
    }

    /// A cell has its own kind of host in the centre, a hub has none.
    fn check_centre(&self, medium: &Shared<'_>) -> Result<(), Refusal> {
        let (key, found, hint) = match (medium, &self.access_point, &self.base_station) {
            (Shared::Hub(_), None, None)
            | (Shared::Wifi(_), Some(_), None)
            | (Shared::Cellular(_), None, Some(_)) => return Ok(()),
            (Shared::Hub(_), Some(_), _) => (
                "access_point",
                "a hub has no access point",
                "remove it, or write `wifi` for `ethernet`",
            ),
            (Shared::Hub(_), None, Some(_)) => (
                "base_station",
                "a hub has no base station",
                "remove it, or write `cellular` for `ethernet`",
            ),
            (Shared::Wifi(_), _, Some(_)) => (
                "base_station",
                "a Wi-Fi cell has an access point, no base station",
                "write `access_point` for `base_station`",
            ),
            (Shared::Wifi(_), None, None) => {
                ("wifi", "a Wi-Fi cell without `access_point`", "add access_point = \"HOST\"")
            }
            (Shared::Cellular(_), Some(_), _) => (
                "access_point",
                "a cellular cell has a base station, no access point",
                "write `base_station` for `access_point`",
            ),
            (Shared::Cellular(_), None, None) => (
                "cellular",
                "a cellular cell without `base_station`",
                "add base_station = \"HOST\"",
            ),
        };
        Err(Refusal::key(key, found).hint(hint))
    }

    fn station(&self, station: &StationSpec) -> Result<LinkConfig, Refusal> {
        let link = LinkSpec {
            ethernet: self.ethernet.clone(),
            wifi: self.wifi_of(station)?,
            cellular: self.cellular_of(station)?,
            queue: station.queue,
            loss: station.loss.clone(),
            delay: station.delay,
            ..LinkSpec::default()
        };
        let mut config = link.resolve(&mut |_| Err("a station has no trace".to_owned()))?;
        if let Some(wifi) = &mut config.wifi {
            wifi.air = wifi.air.map(|air| Air { busy: Ratio::ZERO, ..*air });
        }
        Ok(config)
    }

    fn wifi_of(&self, station: &StationSpec) -> Result<Option<WifiSpec>, Refusal> {
        match (&self.wifi, &station.wifi) {
            (None, Some(_)) => Err(self.misplaced("wifi")),
            (Some(_), Some(own)) if own.says_busy() => {
                let refusal = Refusal::key("wifi", "`busy` of one station");
                Err(refusal.hint("all hear the same: write it in the segment's own `wifi`"))
            }
            (all, own) => Ok(all.clone().map(|all| own.clone().unwrap_or_default().over(all))),
        }
    }

    fn cellular_of(&self, station: &StationSpec) -> Result<Option<CellularSpec>, Refusal> {
        match (&self.cellular, &station.cellular) {
            (None, Some(_)) => Err(self.misplaced("cellular")),
            (all, own) => {
                let own = own.unwrap_or_default();
                if let Some(key) = own.of_cell() {
                    let refusal = Refusal::key("cellular", format!("`{key}` of one user"));
                    let hint = "it is the cell's: write it in the segment's own `cellular`";
                    return Err(refusal.hint(hint));
                }
                Ok(all.map(|all| own.over(all)))
            }
        }
    }

    /// A station's key of another medium.
    fn misplaced(&self, key: &str) -> Refusal {
        let (place, own) = match (&self.ethernet, &self.wifi) {
            (Some(_), _) => ("at a hub", "ethernet"),
            (None, Some(_)) => ("in a Wi-Fi cell", "wifi"),
            (None, None) => ("in a cellular cell", "cellular"),
        };
        let refusal = Refusal::key(key, format!("`{key}` {place}"));
        refusal.hint(format!("remove it, or write `{key}` for the segment's `{own}`"))
    }
}

/// What the stations share.
enum Shared<'a> {
    Hub(&'a EthernetSpec),
    Wifi(&'a WifiSpec),
    Cellular(&'a CellularSpec),
}
