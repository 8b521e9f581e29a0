//! Whether this host carries what a scenario's links ask for, reported before anything runs.

use suiro_link::Direction;
use suiro_scenario::{Plan, Setup};
use suiro_units::{BitRate, Bytes, Duration};
use suiro_wire::{Capacity, highest_rate};

use crate::doctor::inside;

/// Less than this is carried by any machine that is worth asking.
const ASKED_MIN: BitRate = BitRate::from_mbps(300);
/// Size of the packets of a flow that fills a link.
const PACKET: Bytes = Bytes::new(1500);

/// What is wrong, if the links of the trials that run at the same time ask for more packets than this host carries. It is
/// measured only where they ask for much, and takes a few seconds then.
pub fn warning(plan: &Plan, jobs: usize) -> Option<String> {
    let mut each: Vec<BitRate> = plan.trials.iter().map(|trial| asked(&trial.setup)).collect();
    each.sort_unstable();
    let together = each
        .iter()
        .rev()
        .take(jobs.max(1))
        .fold(0, |sum: u64, rate| sum.saturating_add(rate.as_bps()));
    let asked = BitRate::from_bps(together);
    if asked < ASKED_MIN {
        return None;
    }
    match inside::capacity() {
        Ok(carried) => compare(asked, carried),
        Err(error) => {
            Some(format!("the rate of an emulated link on this machine is not known: {error:#}"))
        }
    }
}

/// What the emulated links of a trial carry at most at the same time: of each, the direction with the higher rate. The
/// other one usually has acknowledgements.
fn asked(setup: &Setup) -> BitRate {
    let links = setup.topology.links.iter().filter_map(|link| link.config.as_ref());
    let rates = links.filter_map(|config| {
        Direction::BOTH.iter().filter_map(|&way| highest_rate(config.direction(way))).max()
    });
    BitRate::from_bps(rates.fold(0, |sum: u64, rate| sum.saturating_add(rate.as_bps())))
}

fn compare(asked: BitRate, carried: Capacity) -> Option<String> {
    let packets = asked * Duration::from_secs(1);
    let per_second = packets.get() / PACKET.get();
    let carries = carried.packets_per_second;
    (per_second > u64::from(carries)).then(|| {
        format!(
            "the links ask for up to {asked}, {per_second} packets a second; this machine carries {carries} a second each \
             way now, so trials that fill the links may be invalid\n\
             hint: lower the rates or --jobs, end other programs, or use plain cables (`cards = true`)"
        )
    })
}

#[cfg(test)]
mod tests {
    use suiro_scenario::{Overrides, Scenario};

    use super::*;

    #[test]
    fn what_is_too_much_is_told() {
        let carried = Capacity { packets_per_second: 100_000 };
        assert_eq!(compare(BitRate::from_mbps(1_000), carried), None);
        let told = compare(BitRate::from_mbps(2_000), carried).unwrap();
        assert!(
            told.contains("2 Gbit/s, 166666 packets") && told.contains("carries 100000"),
            "{told}"
        );
        assert!(told.contains("\nhint: "), "{told}");
    }

    #[test]
    fn no_built_in_scenario_needs_to_ask() {
        for scenario in suiro_scenario::built_in() {
            let plan = Scenario::plan(&scenario, &Overrides::default()).unwrap();
            let most = plan.trials.iter().map(|trial| asked(&trial.setup)).max().unwrap();
            assert!(
                most.as_bps() * u64::from(plan.jobs) < ASKED_MIN.as_bps(),
                "{}: {most}",
                plan.name
            );
        }
    }
}
