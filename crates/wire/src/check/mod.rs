//! The self-check: a short calibrated load through a medium, before anything is measured over it.
//!
//! In each direction of a link, a sparse *probe* measures delay and loss, then a *flood* above the rate
//! measures the rate and how much the queue holds. What several stations share has the probe only, one way after the
//! other: so at a hub nothing collides. Both are UDP packets of our own, stamped by the
//! kernels of the two hosts, so the check does not rely on the carrier's own figures; the carrier's
//! counts are then compared with what was sent and received.
//!
//! A medium is checked in its initial state: later steps of a schedule are not reached, and a trace is compared only over the
//! part that the check covers. That begins where the trace first has opportunities at about its mean rate. If too few packets
//! can cross a link during the check, rate and queue are not compared. A cellular medium is checked without shadowing, fading
//! and errors of blocks: where a user's signal is too weak for a while, packets would only wait. It takes about a second per
//! direction, three at most.

use suiro_clock::Axis;
use suiro_hosts::{EmulatedLink, Host, LinkEnd};
use suiro_link::{
    BaseStationConfig, CellConfig, CellularConfig, HubConfig, LinkConfig, Schedule, WifiConfig,
};
use suiro_record::SelfCheck;
use suiro_units::{BitRate, Duration, Seed};

use crate::{Carrier, CarrierSpec, Medium, Outcome, WireError};
use load::{Heard, Load, Sending};
use plan::Plan;

pub(crate) mod capacity;
mod judge;
mod load;
mod plan;
#[cfg(test)]
mod virtual_time;

/// Both directions are loaded at once up to this total rate; above it, one after the other.
const AT_ONCE_MAX: BitRate = BitRate::from_mbps(300);
/// Pause between probe and flood.
const PAUSE: Duration = Duration::from_millis(20);

/// A medium to check.
#[derive(Debug, Clone, Copy)]
pub struct CheckSpec<'a> {
    /// The medium's name in the scenario.
    pub name: &'a str,
    /// What packets go over. No other traffic may use it during the check.
    pub medium: &'a Medium<'a>,
    /// The namespace of its interfaces.
    pub wire: &'a Host,
    /// The seed of the check's randomness.
    pub seed: Seed,
}

/// Carries the medium on a core of its own, loads it, and compares what arrives with what its configuration asks for.
/// One check for each direction: of a link, down, then up; of a hub, what each station sends to the next; of a
/// cell, down, then up, of each station.
///
/// # Errors
/// If the kernel refuses something that carrying or checking needs.
pub fn check(spec: &CheckSpec<'_>) -> Result<Vec<SelfCheck>, WireError> {
    let CheckSpec { name, medium, wire, seed } = *spec;
    let plans: Vec<Plan> = medium.paths().into_iter().map(Plan::new).collect();
    let medium = &calm(medium, &plans);
    let clock = Axis::starting_now();
    let carrier = Carrier::start(&CarrierSpec { name, medium, wire, seed, clock, records: None })?;
    let (heard, outcome) = match medium {
        Medium::Link { link, .. } => both_ways(carrier, clock, link, &plans)?,
        Medium::Hub { segment, .. } => {
            let ends: Vec<_> = segment.stations.iter().map(|station| &station.end).collect();
            let next = ends.iter().cycle().skip(1);
            let ways: Vec<_> = ends.iter().zip(next).map(|(from, to)| (*from, *to)).collect();
            one_by_one(carrier, clock, &ways, &plans)?
        }
        Medium::Cell { ends, .. } | Medium::BaseStation { ends, .. } => {
            let ways: Vec<_> = ends
                .iter()
                .flat_map(|EmulatedLink { from, to, .. }| [(from, to), (to, from)])
                .collect();
            one_by_one(carrier, clock, &ways, &plans)?
        }
    };
    let all = heard.iter().zip(&plans).zip(&outcome.totals);
    Ok(all.map(|((heard, plan), totals)| judge::judge(&totals.link, plan, heard, totals)).collect())
}

/// The medium as it begins, with the paths of the plans.
fn calm<'a>(medium: &Medium<'a>, plans: &[Plan]) -> Medium<'a> {
    let of_link = |(config, plans): (&LinkConfig, &[Plan])| LinkConfig {
        down: plans[0].path.clone(),
        up: plans[1].path.clone(),
        wifi: config.wifi.as_ref().map(WifiConfig::frozen),
        ethernet: config.ethernet,
        cellular: config.cellular.map(CellularConfig::steady),
    };
    match medium {
        Medium::Link { link, config } => Medium::Link { link, config: of_link((config, plans)) },
        Medium::Hub { segment, links, config } => {
            let stations = plans.iter().map(|plan| plan.path.clone()).collect();
            let config = HubConfig { ethernet: config.ethernet, stations };
            Medium::Hub { segment, links: links.clone(), config }
        }
        Medium::Cell { ends, links, config } => {
            let stations = config.stations.iter().zip(plans.chunks(2)).map(of_link).collect();
            let config = CellConfig { busy: Schedule::constant(config.busy.first), stations };
            Medium::Cell { ends: ends.clone(), links: links.clone(), config }
        }
        Medium::BaseStation { ends, links, config } => {
            let stations = config.stations.iter().zip(plans.chunks(2)).map(of_link).collect();
            let config = BaseStationConfig { stations };
            Medium::BaseStation { ends: ends.clone(), links: links.clone(), config }
        }
    }
}

/// Loads both directions of a link, at once where the machine can, and ends the carrier.
fn both_ways(
    carrier: Carrier,
    clock: Axis,
    link: &EmulatedLink,
    plans: &[Plan],
) -> Result<(Vec<Heard>, Outcome), WireError> {
    let EmulatedLink { from, to, .. } = link;
    let [mut down, mut up] = [
        Load::open(clock, (from, to), Sending::OnTime)?,
        Load::open(clock, (to, from), Sending::OnTime)?,
    ];
    let run = |load: &mut Load, plan: &Plan| load.run(&plan.bursts(), PAUSE, plan.patience);
    if plans[0].rate().as_bps() + plans[1].rate().as_bps() <= AT_ONCE_MAX.as_bps() {
        let both = std::thread::scope(|scope| {
            let other = scope.spawn(|| run(&mut down, &plans[0]));
            let own = run(&mut up, &plans[1]);
            [other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), own]
        });
        both.into_iter().collect::<Result<(), _>>()?;
    } else {
        run(&mut down, &plans[0])?;
        run(&mut up, &plans[1])?;
    }
    let outcome = carrier.stop()?;
    let loads = [down, up].into_iter().zip(&outcome.totals);
    let heard =
        loads.map(|(load, totals)| load.finish(totals.delivered)).collect::<Result<_, _>>()?;
    Ok((heard, outcome))
}

/// Loads each direction while the others are silent, and ends the carrier.
fn one_by_one(
    carrier: Carrier,
    clock: Axis,
    ways: &[(&LinkEnd, &LinkEnd)],
    plans: &[Plan],
) -> Result<(Vec<Heard>, Outcome), WireError> {
    let mut heard = Vec::new();
    for (way, plan) in ways.iter().zip(plans) {
        let mut load = Load::open(clock, *way, Sending::OnTime)?;
        load.run(&plan.bursts(), PAUSE, plan.patience)?;
        // Its port is needed again, but only when its host has taken the last packets: else that answers them. They have been
        // heard; what is waited for does not come.
        heard.push(load.finish(u64::MAX)?);
    }
    Ok((heard, carrier.stop()?))
}
