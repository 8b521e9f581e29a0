//! The self-check: a short calibrated load through a link, before anything is measured over it.
//!
//! In each direction, a sparse *probe* measures delay and loss, then a *flood* above the rate
//! measures the rate and how much the queue holds. Both are UDP packets of our own, stamped by the
//! kernels of the two hosts, so the check does not rely on the carrier's own figures; the carrier's
//! counts are then compared with what was sent and received.
//!
//! The link is checked in its initial state: later steps of a schedule are not reached, and a trace
//! is compared only over the part that the check covers. It takes about a second per direction,
//! three at most.

use suiro_hosts::{EmulatedLink, Host};
use suiro_link::{Direction, LinkConfig, WifiConfig};
use suiro_record::SelfCheck;
use suiro_units::{BitRate, Duration, Seed};

use crate::{Carrier, CarrierSpec, Clock, Outcome, WireError};
use load::{Heard, Load, Sending};
use plan::Plan;

pub(crate) mod capacity;
mod judge;
mod load;
mod plan;
pub(crate) mod segment;
#[cfg(test)]
mod virtual_time;

/// Both directions are loaded at once up to this total rate; above it, one after the other.
const AT_ONCE_MAX: BitRate = BitRate::from_mbps(300);
/// Pause between probe and flood.
const PAUSE: Duration = Duration::from_millis(20);

/// A link to check.
#[derive(Debug, Clone, Copy)]
pub struct CheckSpec<'a> {
    /// The link's name in the scenario.
    pub name: &'a str,
    /// The link's interfaces. No other traffic may use it during the check.
    pub link: &'a EmulatedLink,
    /// The namespace of its interfaces.
    pub wire: &'a Host,
    /// What it does to packets.
    pub config: &'a LinkConfig,
    /// The seed of the check's randomness.
    pub seed: Seed,
}

/// Carries the link on a core of its own, loads it, and compares what arrives with what `config`
/// asks for. Down, then up.
pub fn check(spec: &CheckSpec<'_>) -> Result<[SelfCheck; 2], WireError> {
    let plans = Direction::BOTH.map(|direction| Plan::new(spec.config.direction(direction)));
    let (heard, outcome) = measure(spec, &plans)?;
    Ok(Direction::BOTH.map(|direction| {
        let at = direction as usize;
        judge::judge(spec.name, &plans[at], &heard[at], &outcome.totals[at])
    }))
}

fn measure(spec: &CheckSpec<'_>, plans: &[Plan; 2]) -> Result<([Heard; 2], Outcome), WireError> {
    let config = LinkConfig {
        down: plans[0].path.clone(),
        up: plans[1].path.clone(),
        wifi: spec.config.wifi.as_ref().map(WifiConfig::frozen),
        ethernet: spec.config.ethernet,
    };
    let clock = Clock::starting_now();
    let carrier = Carrier::start(&CarrierSpec {
        name: spec.name,
        link: spec.link,
        wire: spec.wire,
        config: &config,
        seed: spec.seed,
        clock,
        records: None,
    })?;
    let [from, to] = [&spec.link.from, &spec.link.to];
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
    let delivered = |direction: Direction| outcome.totals[direction as usize].delivered;
    let heard = [down.finish(delivered(Direction::Down))?, up.finish(delivered(Direction::Up))?];
    Ok((heard, outcome))
}
