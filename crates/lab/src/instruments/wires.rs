//! The emulated links of a network: checked, carried, accounted for.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use suiro_clock::Axis;
use suiro_hosts::{EmulatedLink, EmulatedSegment, Network};
use suiro_link::{BaseStationConfig, CellConfig, HubConfig, LinkConfig};
use suiro_record::{LinkTotals, SelfCheck};
use suiro_scenario::{Link, RadioCell, Topology};
use suiro_units::Seed;
use suiro_wire::{Carrier, CarrierSpec, CheckSpec, Fault, Medium};

use super::{Found, Instrument, Prepared, Running, Scene};
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
    /// By the link's name: CLOCK_MONOTONIC until which the packets that it was offered count.
    pub until_monotonic_ns: BTreeMap<String, u64>,
}

/// The links themselves: they carry packets and record each. They begin at time zero.
pub struct Links;

impl Instrument for Links {
    fn prepare(&self, _: Scene<'_>) -> Result<Option<Box<dyn Prepared>>> {
        Ok(Some(Box::new(Self)))
    }
}

impl Prepared for Links {
    fn start(self: Box<Self>, scene: Scene<'_>, epoch: Epoch) -> Result<Box<dyn Running>> {
        let Scene { network, setup, dir, seed } = scene;
        let records = setup.record.link.then_some(dir);
        Ok(Box::new(Wires::start(network, &setup.topology, seed, epoch, records)?))
    }
}

impl Running for Wires {
    fn stop(self: Box<Self>, _: Scene<'_>, _: Epoch, found: &mut Found) -> Result<()> {
        found.links = (*self).stop()?;
        Ok(())
    }
}

/// Running links.
pub struct Wires {
    carriers: Vec<Carrier>,
}

impl Wires {
    /// Checks every emulated medium, one after the other, before anything else uses it. One that
    /// fails or measures nothing is checked again, at most [`ATTEMPTS`] times in all: its settings do not change, but
    /// the load on the machine does.
    pub fn check(network: &Network, topology: &Topology, seed: Seed) -> Result<Vec<SelfCheck>> {
        let mut found = Vec::new();
        for (name, medium) in &media(network, topology) {
            let (wire, seed) = (network.wire(), link_seed(seed, name));
            found.extend(until_passed(|attempt| {
                let seed = seed.derive(&format!("self-check {attempt}"));
                suiro_wire::check(&CheckSpec { name, medium, wire, seed })
                    .with_context(|| format!("checking {name}"))
            })?);
        }
        Ok(found)
    }

    /// Starts to carry packets on every emulated medium; the trial's time counts from `epoch`.
    /// `records` is the folder for the packet records.
    pub fn start(
        network: &Network,
        topology: &Topology,
        seed: Seed,
        epoch: Epoch,
        records: Option<&Path>,
    ) -> Result<Self> {
        let (wire, clock) = (network.wire(), Axis::since(epoch.monotonic_ns));
        let media = media(network, topology);
        let carriers = media.iter().map(|(name, medium)| {
            let seed = link_seed(seed, name);
            Carrier::start(&CarrierSpec { name, medium, wire, seed, clock, records })
                .with_context(|| format!("carrying {name}"))
        });
        Ok(Self { carriers: carriers.collect::<Result<_>>()? })
    }

    /// Stops the links.
    pub fn stop(mut self) -> Result<Stopped> {
        // All at the same time: what hosts still send must not be on one link's record and missing on another's.
        self.carriers.iter_mut().for_each(Carrier::ask_to_stop);
        let mut stopped = Stopped::default();
        for carrier in self.carriers {
            let outcome = carrier.stop().context("closing a link")?;
            for totals in &outcome.totals {
                stopped.until_monotonic_ns.insert(totals.link.clone(), outcome.until_monotonic_ns);
            }
            stopped.totals.extend(outcome.totals);
            stopped.faults.extend(outcome.faults);
        }
        Ok(stopped)
    }
}

/// Checks a medium, and again, until it passes or [`ATTEMPTS`] are over. A check that measured nothing has not passed.
fn until_passed(check: impl Fn(u32) -> Result<Vec<SelfCheck>>) -> Result<Vec<SelfCheck>> {
    let (mut attempt, mut checks) = (1, check(1)?);
    let is_wanting = |check: &SelfCheck| !check.ok || check.measured_nothing();
    while attempt < ATTEMPTS && checks.iter().any(is_wanting) {
        attempt += 1;
        checks = check(attempt)?;
    }
    Ok(checks.into_iter().map(|check| SelfCheck { attempt, ..check }).collect())
}

/// The name of each emulated medium and the medium, with its configuration from the scenario.
fn media<'a>(network: &'a Network, topology: &'a Topology) -> Vec<(&'a str, Medium<'a>)> {
    let links = network.links().iter().filter_map(|link| alone(link, topology));
    let hubs = network.segments().iter().filter_map(|segment| hub(segment, topology));
    let cells = topology.cells.iter().map(|spec| cell(spec, network, topology));
    links.chain(hubs).chain(cells).collect()
}

/// A link, unless it is one of a cell's.
fn alone<'a>(link: &'a EmulatedLink, topology: &'a Topology) -> Option<(&'a str, Medium<'a>)> {
    let Link { name, config, .. } = &topology.links[link.cable];
    let in_cell = topology.cells.iter().any(|cell| cell.links.contains(name));
    let config = config.clone().expect("an emulated cable has a configuration");
    (!in_cell).then_some((name, Medium::Link { link, config }))
}

fn hub<'a>(segment: &'a EmulatedSegment, topology: &'a Topology) -> Option<(&'a str, Medium<'a>)> {
    let links: Vec<&Link> =
        segment.stations.iter().map(|station| &topology.links[station.cable]).collect();
    let configs = || links.iter().filter_map(|link| link.config.as_ref());
    let config = HubConfig {
        ethernet: configs().find_map(|config| config.ethernet)?,
        stations: configs().map(|config| config.up.clone()).collect(),
    };
    let links = links.iter().map(|link| &*link.name).collect();
    Some((&segment.hub, Medium::Hub { segment, links, config }))
}

fn cell<'a>(
    cell: &'a RadioCell,
    network: &'a Network,
    topology: &'a Topology,
) -> (&'a str, Medium<'a>) {
    let of = |link: &&EmulatedLink| cell.links.contains(&topology.links[link.cable].name);
    let ends: Vec<&EmulatedLink> = network.links().iter().filter(of).collect();
    let links = || ends.iter().map(|link| &topology.links[link.cable]);
    let stations: Vec<LinkConfig> = links().filter_map(|link| link.config.clone()).collect();
    let links = links().map(|link| &*link.name).collect();
    let medium = match cell.busy.clone() {
        Some(busy) => Medium::Cell { ends, links, config: CellConfig { busy, stations } },
        None => Medium::BaseStation { ends, links, config: BaseStationConfig { stations } },
    };
    (&cell.name, medium)
}

/// The seed of a link's randomness: it depends only on the trial's seed and the link's name.
fn link_seed(trial: Seed, link: &str) -> Seed {
    trial.derive("link").derive(link)
}

#[cfg(test)]
mod tests {
    use suiro_link::Direction;
    use suiro_record::Check;
    use suiro_record::words::{CheckedQuantity, CheckedUnit};

    use super::*;

    /// A check of a delay that passed or failed; or that measured nothing.
    fn found(ok: Option<bool>) -> SelfCheck {
        let check = Check {
            what: CheckedQuantity::Delay,
            unit: CheckedUnit::Milliseconds,
            asked: None,
            measured: None,
            at_least: None,
            at_most: None,
            ok,
            note: None,
        };
        SelfCheck {
            link: "access".into(),
            direction: Direction::Down,
            attempt: 1,
            checks: vec![check],
            ok: ok != Some(false),
        }
    }

    #[test]
    fn a_check_that_measured_nothing_is_repeated() {
        let (passed, failed, blind) = (Some(true), Some(false), None);
        for (results, attempts) in [
            ([passed, failed, failed], 1),
            ([blind, passed, failed], 2),
            ([failed, blind, passed], 3),
            ([blind, blind, blind], 3),
        ] {
            let checks = until_passed(|attempt| Ok(vec![found(results[attempt as usize - 1])]));
            let last = &checks.unwrap()[0];
            assert_eq!((last.attempt, last.ok), (attempts, true), "{results:?}");
            assert_eq!(last.measured_nothing(), results == [blind; 3], "{results:?}");
        }
    }
}
