//! The self-check of a medium that several stations share: one after the other sends.

use suiro_hosts::{EmulatedLink, EmulatedSegment, Host, LinkEnd};
use suiro_link::{CellConfig, Direction, HubConfig, LinkConfig, Schedule, WifiConfig};
use suiro_record::SelfCheck;
use suiro_units::Seed;

use super::load::{Load, Sending};
use super::plan::Plan;
use super::{PAUSE, judge};
use crate::{Carrier, CellSpec, Clock, HubSpec, WireError};

/// A hub to check.
#[derive(Debug, Clone, Copy)]
pub struct HubCheckSpec<'a> {
    /// The hub's name in the scenario.
    pub name: &'a str,
    /// The names of its stations' links, in the order of [`EmulatedSegment::stations`].
    pub links: &'a [&'a str],
    /// Its stations' interfaces. No other traffic may use them during the check.
    pub segment: &'a EmulatedSegment,
    /// The namespace of those interfaces.
    pub wire: &'a Host,
    /// What it does to packets.
    pub config: &'a HubConfig,
    /// The seed of the check's randomness.
    pub seed: Seed,
}

/// A Wi-Fi cell to check.
#[derive(Debug, Clone, Copy)]
pub struct CellCheckSpec<'a> {
    /// The cell's name in the scenario.
    pub name: &'a str,
    /// The names of its stations' links, in their order.
    pub links: &'a [&'a str],
    /// The interfaces of those links, each from the access point to its station. No other traffic may use them during the
    /// check.
    pub ends: &'a [&'a EmulatedLink],
    /// The namespace of those interfaces.
    pub wire: &'a Host,
    /// What it does to packets.
    pub config: &'a CellConfig,
    /// The seed of the check's randomness.
    pub seed: Seed,
}

/// Carries the hub on a core of its own. Each station sends a sparse probe to the next one, while the others are silent: so
/// there is no collision, and delay, loss and accounts are compared with what `config` asks for. One check for each station,
/// in their order; it takes about a second for each.
///
/// # Errors
/// If the kernel refuses something that carrying or checking needs.
pub fn check_hub(spec: &HubCheckSpec<'_>) -> Result<Vec<SelfCheck>, WireError> {
    let HubCheckSpec { name, links, segment, wire, config, seed } = *spec;
    let plans: Vec<Plan> = config.stations.iter().map(Plan::new).collect();
    let stations = plans.iter().map(|plan| plan.path.clone()).collect();
    let config = &HubConfig { ethernet: config.ethernet, stations };
    let clock = Clock::starting_now();
    let records = None;
    let hub = HubSpec { name, links, segment, wire, config, seed, clock, records };
    let carrier = Carrier::start_hub(&hub)?;
    let end = |station: usize| &segment.stations[station % segment.stations.len()].end;
    let ways: Vec<_> = (0..plans.len()).map(|station| (end(station), end(station + 1))).collect();
    one_by_one(carrier, clock, &ways, &plans)
}

/// Carries the cell on a core of its own. The access point sends a sparse probe to each station, and each station to it,
/// while all others are silent; least delay, loss and accounts are compared with what `config` asks for. Two checks for each
/// station, down, then up; it takes about two seconds for each.
///
/// # Errors
/// If the kernel refuses something that carrying or checking needs.
pub fn check_cell(spec: &CellCheckSpec<'_>) -> Result<Vec<SelfCheck>, WireError> {
    let CellCheckSpec { name, links, ends, wire, config, seed } = *spec;
    let both = |station: &LinkConfig| Direction::BOTH.map(|d| Plan::new(station.direction(d)));
    let plans: Vec<Plan> = config.stations.iter().flat_map(both).collect();
    let frozen = |(station, plans): (&LinkConfig, &[Plan])| LinkConfig {
        down: plans[0].path.clone(),
        up: plans[1].path.clone(),
        wifi: station.wifi.as_ref().map(WifiConfig::frozen),
        ethernet: None,
    };
    let stations = config.stations.iter().zip(plans.chunks(2)).map(frozen).collect();
    let config = &CellConfig { busy: Schedule::constant(config.busy.first), stations };
    let clock = Clock::starting_now();
    let records = None;
    let cell = CellSpec { name, links, ends, wire, config, seed, clock, records };
    let carrier = Carrier::start_cell(&cell)?;
    let ways: Vec<_> =
        ends.iter().flat_map(|link| [(&link.from, &link.to), (&link.to, &link.from)]).collect();
    one_by_one(carrier, clock, &ways, &plans)
}

/// Loads each way while the others are silent, ends the carrier, and compares.
fn one_by_one(
    carrier: Carrier,
    clock: Clock,
    ways: &[(&LinkEnd, &LinkEnd)],
    plans: &[Plan],
) -> Result<Vec<SelfCheck>, WireError> {
    let mut heard = Vec::new();
    for (way, plan) in ways.iter().zip(plans) {
        let mut load = Load::open(clock, *way, Sending::OnTime)?;
        load.run(&plan.bursts(), PAUSE, plan.patience)?;
        // Its port is needed again, but only when its host has taken the last packets: else that answers them. They have been
        // heard; what is waited for does not come.
        heard.push(load.finish(u64::MAX)?);
    }
    let outcome = carrier.stop()?;
    let all = heard.iter().zip(plans).zip(&outcome.totals);
    Ok(all.map(|((heard, plan), totals)| judge::judge(&totals.link, plan, heard, totals)).collect())
}
