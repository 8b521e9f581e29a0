//! The self-check of a hub: each station sends to the next one, one after the other.

use suiro_hosts::{EmulatedSegment, Host};
use suiro_link::HubConfig;
use suiro_record::SelfCheck;
use suiro_units::Seed;

use super::load::{Load, Sending};
use super::plan::Plan;
use super::{PAUSE, judge};
use crate::{Carrier, Clock, HubSpec, WireError};

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
    let config = HubConfig { ethernet: config.ethernet, stations };
    let clock = Clock::starting_now();
    let records = None;
    let carrier = Carrier::start_hub(&HubSpec {
        name,
        links,
        segment,
        wire,
        config: &config,
        seed,
        clock,
        records,
    })?;
    let mut loads = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        let next = (index + 1) % plans.len();
        let [from, to] = [index, next].map(|station| &segment.stations[station].end);
        let mut load = Load::open(clock, (from, to), Sending::OnTime)?;
        load.run(&plan.bursts(), PAUSE, plan.patience)?;
        loads.push(load);
    }
    let outcome = carrier.stop()?;
    let mut found = Vec::new();
    for ((load, plan), totals) in loads.into_iter().zip(&plans).zip(&outcome.totals) {
        let heard = load.finish(totals.delivered)?;
        found.push(judge::judge(&totals.link, plan, &heard, totals));
    }
    Ok(found)
}
