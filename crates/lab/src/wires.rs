//! The emulated links of a network: checked, carried, accounted for.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use suiro_hosts::{EmulatedLink, EmulatedSegment, Network};
use suiro_link::{CellConfig, HubConfig, LinkConfig};
use suiro_record::{LinkTotals, SelfCheck};
use suiro_scenario::{Link, Topology, WifiCell};
use suiro_units::Seed;
use suiro_wire::{
    Carrier, CarrierSpec, CellCheckSpec, CellSpec, CheckSpec, Clock, Fault, HubCheckSpec, HubSpec,
    WireError,
};

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
            let name = &spec.name;
            let checked = until_passed(name, seed, &|seed| {
                let wire = network.wire();
                suiro_wire::check(&CheckSpec { name, link, wire, config, seed }).map(Vec::from)
            })?;
            found.extend(checked);
        }
        for Hub { segment, links, config } in &hubs(network, topology) {
            let name = &segment.hub;
            let checked = until_passed(name, seed, &|seed| {
                let wire = network.wire();
                suiro_wire::check_hub(&HubCheckSpec { name, links, segment, wire, config, seed })
            })?;
            found.extend(checked);
        }
        for Cell { name, links, ends, config } in &cells(network, topology) {
            let checked = until_passed(name, seed, &|seed| {
                let wire = network.wire();
                suiro_wire::check_cell(&CellCheckSpec { name, links, ends, wire, config, seed })
            })?;
            found.extend(checked);
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
        let clock = Clock::since(epoch.monotonic_ns);
        let wire = network.wire();
        for Hub { segment, links, config } in &hubs(network, topology) {
            let (name, seed) = (&segment.hub, link_seed(seed, &segment.hub));
            let hub = HubSpec { name, links, segment, wire, config, seed, clock, records };
            let carrier =
                Carrier::start_hub(&hub).with_context(|| format!("carrying segment {name}"))?;
            carriers.push(carrier);
        }
        for Cell { name, links, ends, config } in &cells(network, topology) {
            let seed = link_seed(seed, name);
            let cell = CellSpec { name, links, ends, wire, config, seed, clock, records };
            let carrier =
                Carrier::start_cell(&cell).with_context(|| format!("carrying segment {name}"))?;
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

/// Checks a link or segment, and again, with another seed, until it passes or [`ATTEMPTS`] are over.
fn until_passed(
    name: &str,
    seed: Seed,
    check: &dyn Fn(Seed) -> Result<Vec<SelfCheck>, WireError>,
) -> Result<Vec<SelfCheck>> {
    let check = |attempt: u32| {
        let seed = link_seed(seed, name).derive(&format!("self-check {attempt}"));
        check(seed).with_context(|| format!("checking link {name}"))
    };
    let (mut attempt, mut checks) = (1, check(1)?);
    while attempt < ATTEMPTS && checks.iter().any(|check| !check.ok) {
        attempt += 1;
        checks = check(attempt)?;
    }
    Ok(checks.into_iter().map(|check| SelfCheck { attempt, ..check }).collect())
}

/// Each emulated link that is no part of a segment, with its configuration from the scenario.
fn emulated<'a>(
    network: &'a Network,
    topology: &'a Topology,
) -> impl Iterator<Item = (&'a EmulatedLink, &'a Link, &'a LinkConfig)> {
    network.links().iter().filter_map(|link| {
        let spec = &topology.links[link.cable];
        let in_cell = topology.cells.iter().any(|cell| cell.links.contains(&spec.name));
        let config = spec.config.as_ref().expect("an emulated cable has a configuration");
        (!in_cell).then_some((link, spec, config))
    })
}

/// A hub with its stations' configuration from the scenario.
struct Hub<'a> {
    segment: &'a EmulatedSegment,
    links: Vec<&'a str>,
    config: HubConfig,
}

/// Each hub.
fn hubs<'a>(network: &'a Network, topology: &'a Topology) -> Vec<Hub<'a>> {
    let hub = |segment: &'a EmulatedSegment| {
        let links: Vec<&Link> =
            segment.stations.iter().map(|station| &topology.links[station.cable]).collect();
        let configs = || links.iter().filter_map(|link| link.config.as_ref());
        let config = HubConfig {
            ethernet: configs().find_map(|config| config.ethernet)?,
            stations: configs().map(|config| config.up.clone()).collect(),
        };
        Some(Hub { segment, links: links.iter().map(|link| &*link.name).collect(), config })
    };
    network.segments().iter().filter_map(hub).collect()
}

/// A Wi-Fi cell with its stations' configuration from the scenario.
struct Cell<'a> {
    name: &'a str,
    links: Vec<&'a str>,
    ends: Vec<&'a EmulatedLink>,
    config: CellConfig,
}

/// Each Wi-Fi cell.
fn cells<'a>(network: &'a Network, topology: &'a Topology) -> Vec<Cell<'a>> {
    let cell = |cell: &'a WifiCell| {
        let of = |link: &&EmulatedLink| cell.links.contains(&topology.links[link.cable].name);
        let ends: Vec<&EmulatedLink> = network.links().iter().filter(of).collect();
        let links = || ends.iter().map(|link| &topology.links[link.cable]);
        let config = CellConfig {
            busy: cell.busy.clone(),
            stations: links().filter_map(|link| link.config.clone()).collect(),
        };
        let names = links().map(|link| &*link.name).collect();
        Cell { name: &cell.name, links: names, ends, config }
    };
    topology.cells.iter().map(cell).collect()
}

/// The seed of a link's randomness: it depends only on the trial's seed and the link's name.
fn link_seed(trial: Seed, link: &str) -> Seed {
    trial.derive("link").derive(link)
}
