//! What a user writes below `[segments.NAME]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounded, Bounds, Refusal, bounds, bounds_of};
use suiro_units::Duration;

use crate::bounds::DELAY;
use crate::config::LinkConfig;
use crate::medium::ethernet::EthernetSpec;
use crate::spec::{LinkSpec, LossSpec, QueueSpec};

/// Most stations of a segment that can run live.
pub const STATIONS_MAX: usize = 32;

bounds! { SegmentSpec { stations: Bounds::new(2, STATIONS_MAX); tables: ethernet, stations } }
bounds! { StationSpec { delay: DELAY; tables: queue, loss } }

/// A half-duplex Ethernet whose hub several hosts share. Each host has one cable to it and a queue of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<SegmentSpec>)]
pub struct SegmentSpec {
    /// The medium. For example `ethernet = { rate = "10 Mbit/s" }`.
    pub ethernet: EthernetSpec,
    /// The hosts at the hub.
    pub stations: Vec<StationSpec>,
}

/// A host at a hub, and what its interface does to the packets that it sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<StationSpec>)]
pub struct StationSpec {
    /// The host's name.
    pub host: String,
    /// Where its packets wait for the medium. Default: droptail, 50 packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// Which of its packets are lost before they reach the queue. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSpec>,
    /// Delay of its packets besides what the medium takes. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
}

impl SegmentSpec {
    /// Each station as a link from the hub to it, in their order: its packets go up.
    ///
    /// # Errors
    /// A value out of range, or keys that contradict one another; the error names the key.
    pub fn resolve(&self) -> Result<Vec<LinkConfig>, Refusal> {
        self.check_bounds()?;
        self.ethernet.resolve()?;
        let station = |(index, station): (usize, &StationSpec)| {
            let link = LinkSpec {
                ethernet: Some(self.ethernet.clone()),
                queue: station.queue,
                loss: station.loss.clone(),
                delay: station.delay,
                ..LinkSpec::default()
            };
            let config = link.resolve(&mut |_| Err("a station has no trace".to_owned()));
            config.map_err(|refusal| refusal.below(&format!("stations.{index}")))
        };
        self.stations.iter().enumerate().map(station).collect()
    }
}
