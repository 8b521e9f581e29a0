//! The emulated links of a network: checked, carried, accounted for.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use suiro_hosts::{EmulatedLink, EmulatedSegment, Network};
use suiro_link::{HubConfig, LinkConfig};
use suiro_record::{LinkTotals, SelfCheck};
use suiro_scenario::{Link, Topology};
use suiro_units::Seed;
use suiro_wire::{Carrier, CarrierSpec, CheckSpec, Clock, Fault, HubCheckSpec, HubSpec};

use crate::clock::Epoch;

/// How many times a link is checked before the trial becomes invalid.
const ATTEMPTS: u32 = 3;

/// What links did.
#[derive(Default)]
pub struct Stopped {
    /// Of each link: down, then up.
    pub totals: Vec<LinkTotals>,
    /// Why the measurements must not be used, if so.
    pub faults: Vec<Fault>,
    /// By the link's name: CLOCK_REALTIME until which the packets that it was offered count.
    pub until_realtime_ns: BTreeMap<String, u64>,
}

/// Running links.
pub struct Wires {
    carriers: Vec<Carrier>,
}

impl Wires {
    /// Checks every emulated link, one after the other, before anything else uses it. A link that
    /// fails is checked again, at most [`ATTEMPTS`] times in all: its settings do not change, but
    /// the load on the machine does.
    pub fn check(network: &Network, topology: &Topology, seed: Seed) -> Result<Vec<SelfCheck>> {
        let mut found = Vec::new();
        for (link, spec, config) in emulated(network, topology) {
            let check = |attempt: u32| {
                suiro_wire::check(&CheckSpec {
                    name: &spec.name,
                    link,
                    wire: network.wire(),
                    config,
                    seed: link_seed(seed, &spec.name).derive(&format!("self-check {attempt}")),
                })
                .with_context(|| format!("checking link {}", spec.name))
            };
            let (mut attempt, mut checks) = (1, check(1)?);
            while attempt < ATTEMPTS && checks.iter().any(|check| !check.ok) {
                attempt += 1;
                checks = check(attempt)?;
            }
            found.extend(checks.map(|check| SelfCheck { attempt, ..check }));
        }
        for hub in hubs(network, topology) {
            let check = |attempt: u32| {
                suiro_wire::check_hub(&HubCheckSpec {
                    name: &hub.segment.hub,
                    links: &hub.links,
                    segment: hub.segment,
                    wire: network.wire(),
                    config: &hub.config,
                    seed: link_seed(seed, &hub.segment.hub)
                        .derive(&format!("self-check {attempt}")),
                })
                .with_context(|| format!("checking segment {}", hub.segment.hub))
            };
            let (mut attempt, mut checks) = (1, check(1)?);
            while attempt < ATTEMPTS && checks.iter().any(|check| !check.ok) {
                attempt += 1;
                checks = check(attempt)?;
            }
            found.extend(checks.into_iter().map(|check| SelfCheck { attempt, ..check }));
        }
        Ok(found)
    }

    /// Starts to carry packets on every emulated link; the trial's time counts from `epoch`.
    /// `records` is the folder for the packet records.
    pub fn start(
        network: &Network,
        topology: &Topology,
        seed: Seed,
        epoch: Epoch,
        records: Option<&Path>,
    ) -> Result<Self> {
        let mut carriers = Vec::new();
        for (link, spec, config) in emulated(network, topology) {
            let carrier = Carrier::start(&CarrierSpec {
                name: &spec.name,
                link,
                wire: network.wire(),
                config,
                seed: link_seed(seed, &spec.name),
                clock: Clock::since(epoch.monotonic_ns),
                records,
            })
            .with_context(|| format!("carrying link {}", spec.name))?;
            carriers.push(carrier);
        }
        for hub in hubs(network, topology) {
            let name = &hub.segment.hub;
            let carrier = Carrier::start_hub(&HubSpec {
                name,
                links: &hub.links,
                segment: hub.segment,
                wire: network.wire(),
                config: &hub.config,
                seed: link_seed(seed, name),
                clock: Clock::since(epoch.monotonic_ns),
                records,
            })
            .with_context(|| format!("carrying segment {name}"))?;
            carriers.push(carrier);
        }
        Ok(Self { carriers })
    }

    /// Stops the links.
    pub fn stop(mut self) -> Result<Stopped> {
        // All at the same time: what hosts still send must not be on one link's record and missing on another's.
        self.carriers.iter_mut().for_each(Carrier::ask_to_stop);
        let mut stopped = Stopped::default();
        for carrier in self.carriers {
            let outcome = carrier.stop().context("closing a link")?;
            for totals in &outcome.totals {
                stopped.until_realtime_ns.insert(totals.link.clone(), outcome.until_realtime_ns);
            }
            stopped.totals.extend(outcome.totals);
            stopped.faults.extend(outcome.faults);
        }
        Ok(stopped)
    }
}

/// Each emulated link with its configuration from the scenario.
fn emulated<'a>(
    network: &'a Network,
    topology: &'a Topology,
) -> impl Iterator<Item = (&'a EmulatedLink, &'a Link, &'a LinkConfig)> {
    network.links().iter().map(|link| {
        let spec = &topology.links[link.cable];
        let config = spec.config.as_ref().expect("an emulated cable has a configuration");
        (link, spec, config)
    })
}

/// A hub with its stations' configuration from the scenario.
struct Hub<'a> {
    segment: &'a EmulatedSegment,
    links: Vec<&'a str>,
    config: HubConfig,
}

/// Each hub.
fn hubs<'a>(network: &'a Network, topology: &'a Topology) -> impl Iterator<Item = Hub<'a>> {
    network.segments().iter().filter_map(|segment| {
        let links: Vec<&Link> =
            segment.stations.iter().map(|station| &topology.links[station.cable]).collect();
        let configs = || links.iter().filter_map(|link| link.config.as_ref());
        let config = HubConfig {
            ethernet: configs().find_map(|config| config.ethernet)?,
            stations: configs().map(|config| config.up.clone()).collect(),
        };
        Some(Hub { segment, links: links.iter().map(|link| &*link.name).collect(), config })
    })
}

/// The seed of a link's randomness: it depends only on the trial's seed and the link's name.
fn link_seed(trial: Seed, link: &str) -> Seed {
    trial.derive("link").derive(link)
}
