//! How near a player's estimate of the throughput is to what its link carries.

use suiro_units::Direction;

use crate::family::{Family, Measure, Subject};
use crate::held::Stretch;
use crate::instance::Instance;
use crate::player::Player;
use crate::stats::Distribution;
use crate::view::View;

/// The share of a full packet that is a body: 1448 of 1500 bytes with TCP's timestamps over IPv4.
const BODY: f64 = 1448.0 / 1500.0;
/// For how long after a change of the rate, and after its first, the estimate may be another's.
const SETTLES_NS: i64 = 5_000_000_000;

/// Each player that reports an estimate, where one link towards viewers has a rate.
pub(super) struct Estimates;

/// A player and what its link carries.
pub(super) struct Estimated<'v> {
    player: &'v Player<'v>,
    capacity: Vec<Stretch<f64>>,
}

impl Subject for Estimates {
    type One<'v> = Estimated<'v>;

    const HAS_MEAN: bool = true;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Estimated<'v>)> {
        let down = view.links().iter().filter(|link| link.direction == Direction::Down);
        let mut rated = down.filter_map(|link| link.asked_stretches());
        let (Some(only), None) = (rated.next(), rated.next()) else { return Vec::new() };
        let mut capacity: Vec<Stretch<f64>> = only.collect();
        capacity.dedup_by(|next, before| {
            let same = next.value == before.value && next.from_ns == before.to_ns;
            if same {
                before.to_ns = next.to_ns;
            }
            same
        });
        let players = view.players();
        let several = players.len() > 1;
        let estimating =
            players.iter().filter(|p| p.rows.iter().any(|row| row.estimate_bps.is_some()));
        estimating
            .map(|player| {
                let name = if several { Instance::named(player.name) } else { Instance::only() };
                (name, Estimated { player, capacity: capacity.clone() })
            })
            .collect()
    }
}

impl Estimated<'_> {
    /// The distance of the estimate from the capacity, as a share of it, over the time that was watched; not soon after the
    /// first estimate or a change of the rate.
    fn errors(&self) -> Distribution {
        let first = self.player.rows.iter().find(|row| row.estimate_bps.is_some());
        let begun = first.map_or(0, |row| row.t_ns.saturating_add(SETTLES_NS));
        let error = |stretch: Stretch<f64>| {
            let at = self
                .capacity
                .iter()
                .find(|at| (at.from_ns..at.to_ns).contains(&stretch.from_ns))?;
            let settled = at.from_ns.saturating_add(SETTLES_NS).max(begun);
            let known = stretch.from_ns >= settled && at.value > 0.0;
            known.then(|| ((stretch.value / (at.value * BODY) - 1.0).abs(), stretch.length_ns()))
        };
        let estimates = self.player.stretches(|row| Some(row.estimate_bps? as f64));
        Distribution::weighted(estimates.filter_map(error))
    }
}

pub(super) static FAMILY: Family<Estimates> = Family { metrics: METRICS, series: &[] };

static METRICS: &[Measure<Estimates>] = metrics! {
    player.estimate_error_p50_ratio ["ratio", Lower, 3] "Estimate error, median",
        "Distance of the player's estimate of the throughput from what its link carries of bodies, as a share of that, \
         median over time. A link carries 1448 of 1500 bytes of its rate as bodies. The first 5 s after the first estimate and \
         after each change of the rate do not count. Null without an estimate, or with several links towards viewers.",
        |e| e.errors().percentile(0.5);
    player.estimate_error_p95_ratio ["ratio", Lower, 3] "Estimate error, 95 %",
        "The same, 95th percentile.",
        |e| e.errors().percentile(0.95);
};
