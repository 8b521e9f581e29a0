//! The self-check: a short calibrated load through a link, before anything is measured over it.
//!
//! In each direction a sparse *probe* tells delay and loss, then a *flood* above the rate tells the
//! rate and how much the queue holds. Both are UDP packets of our own, stamped by the kernels of
//! the two hosts, so that nothing the carrier says of itself is taken on trust; then its accounts
//! are compared with what was sent and heard.
//!
//! The link is checked in the state in which it begins: later changes of a schedule are not
//! reached; of a trace, the part that the check meets is compared. It takes about a second a
//! direction, at most three.

use suiro_hosts::{EmulatedLink, Host};
use suiro_link::{Direction, LinkConfig, WifiConfig};
use suiro_record::SelfCheck;
use suiro_units::{BitRate, Duration, Seed};

use crate::{Carrier, CarrierSpec, Clock, Outcome, WireError};
use load::{Heard, Load};
use plan::Plan;

mod judge;
mod load;
mod plan;
#[cfg(test)]
mod virtual_time;

/// Both directions are loaded at once up to this rate together; above, one after the other.
const AT_ONCE_MAX: BitRate = BitRate::from_mbps(300);
/// Between probe and flood.
const PAUSE: Duration = Duration::from_millis(20);

/// A link to be checked.
#[derive(Debug, Clone, Copy)]
pub struct CheckSpec<'a> {
    /// The link's name in the scenario.
    pub name: &'a str,
    /// Where it is. Nobody else may use it meanwhile.
    pub link: &'a EmulatedLink,
    /// The namespace of its interfaces.
    pub wire: &'a Host,
    /// What it does to packets.
    pub config: &'a LinkConfig,
    /// Where the chance of the check starts from.
    pub seed: Seed,
}

/// Carries the link with a core of its own, loads it, and compares what arrives with what `config`
/// asks. Down, then up.
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
    let [mut down, mut up] = [Load::open(clock, from, to)?, Load::open(clock, to, from)?];
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
    let [of_down, of_up] = &outcome.totals;
    let heard = [down.finish(of_down.delivered)?, up.finish(of_up.delivered)?];
    Ok((heard, outcome))
}
