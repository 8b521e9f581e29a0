//! What a user writes below `[segments.NAME]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounded, Bounds, Refusal, bounds, bounds_of};
use suiro_units::{Duration, Ratio};

use crate::bounds::DELAY;
use crate::config::LinkConfig;
use crate::medium::ethernet::EthernetSpec;
use crate::medium::wifi::{Air, WifiSpec};
use crate::schedule::Schedule;
use crate::spec::{LinkSpec, LossSpec, QueueSpec};

/// Most stations of a segment that can run live.
pub const STATIONS_MAX: usize = 32;

bounds! {
    SegmentSpec { stations: Bounds::new(2, STATIONS_MAX); tables: ethernet, wifi, stations }
}
bounds! { StationSpec { delay: DELAY; tables: queue, wifi, loss } }

/// A medium that several hosts share: the hub of a half-duplex Ethernet, or a Wi-Fi cell, whose access point is one of the
/// hosts.
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
    /// The hosts at the hub, or those that the access point serves.
    pub stations: Vec<StationSpec>,
}

/// A host of a segment, with its queue, losses and delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<StationSpec>)]
pub struct StationSpec {
    /// The host's name.
    pub host: String,
    /// The queue of its packets for the medium; in a Wi-Fi cell, also that of packets to it at the access point.
    /// Default: that of a link with this medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// Wi-Fi cells: values of this station that differ, such as `{ distance = "20 m", walls = 1 }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiSpec>,
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
    /// Each station as a link to it, in their order: from a hub, where its packets go up, or from the access point.
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
        let busy = match (&self.ethernet, &self.wifi) {
            (Some(ethernet), None) => ethernet.resolve().map(|_| None)?,
            (None, Some(wifi)) => Some(wifi.clone().resolve()?.air.map(|air| air.busy)),
            (None, None) => {
                let refusal =
                    Refusal::key("stations", "neither `ethernet` nor `wifi` together with them");
                return Err(refusal.hint("add ethernet = {} or wifi = {}"));
            }
            (Some(_), Some(_)) => {
                let refusal = Refusal::key("wifi", "`wifi` together with `ethernet`");
                return Err(refusal.hint("remove one of the two"));
            }
        };
        match (&self.access_point, &self.wifi) {
            (Some(_), None) => Err(Refusal::key("access_point", "a hub has no access point")
                .hint("remove it, or write `wifi` for `ethernet`")),
            (None, Some(_)) => Err(Refusal::key("wifi", "a Wi-Fi cell without `access_point`")
                .hint("add access_point = \"HOST\"")),
            (None, None) | (Some(_), Some(_)) => Ok(()),
        }?;
        let stations = self.stations.iter().enumerate();
        let links = stations.map(|(index, station)| {
            let below = |refusal: Refusal| refusal.below(&format!("stations.{index}"));
            self.station(station).map_err(below)
        });
        Ok(SegmentLinks { links: links.collect::<Result<_, _>>()?, busy })
    }

    fn station(&self, station: &StationSpec) -> Result<LinkConfig, Refusal> {
        let wifi = match (&self.wifi, &station.wifi) {
            (None, Some(_)) => {
                let refusal = Refusal::key("wifi", "`wifi` at a hub");
                return Err(refusal.hint("remove it, or write `wifi` for the segment's `ethernet`"));
            }
            (Some(_), Some(own)) if own.says_busy() => {
                let refusal = Refusal::key("wifi", "`busy` of one station");
                return Err(refusal.hint("all hear the same: write it in the segment's own `wifi`"));
            }
            (all, own) => all.clone().map(|all| own.clone().unwrap_or_default().over(all)),
        };
        let link = LinkSpec {
            ethernet: self.ethernet.clone(),
            wifi,
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
}
