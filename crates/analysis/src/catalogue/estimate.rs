//! How near a player's estimate of the throughput is to what its link carries.

use suiro_record::tables::FlowRow;
use suiro_record::words::Transport;
use suiro_units::Direction;

use crate::family::{Family, Measure, Subject};
use crate::held::Stretch;
use crate::instance::Instance;
use crate::player::Player;
use crate::stats::Distribution;
use crate::view::View;

/// A full packet, in bytes.
const PACKET: f64 = 1500.0;
/// What of it is the header of IPv4 and of IPv6.
const IP: (f64, f64) = (20.0, 40.0);
/// The header of TCP with timestamps.
const TCP: f64 = 32.0;
/// The header of UDP; and of QUIC 11 of a short header with a connection ID of 8 and a packet number of 2, 16 of
/// authentication (RFC 9001 §5.3) and 8 of a STREAM frame.
const QUIC: f64 = 8.0 + 11.0 + 16.0 + 8.0;
/// For how long after a change of the rate, and after its first, the estimate may be another's.
const SETTLES_NS: i64 = 5_000_000_000;

/// Each player that reports an estimate, where one link towards viewers has a rate.
pub(super) struct Estimates;

/// A player and what its link carries.
pub(super) struct Estimated<'v> {
    player: &'v Player<'v>,
    /// The share of what the link carries that is bodies.
    body: f64,
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
                let name = Instance::among(several, player.name);
                let own = |flow: &&FlowRow| *flow.endpoint == *player.name;
                let body = body(view.records.flows.iter().find(own));
                (name, Estimated { player, body, capacity: capacity.clone() })
            })
            .collect()
    }
}

/// The share of full packets that is bodies; over TCP and IPv4 if the flow is not known.
fn body(flow: Option<&FlowRow>) -> f64 {
    let six = flow.is_some_and(|flow| flow.remote.starts_with('['));
    let ip = if six { IP.1 } else { IP.0 };
    let over_quic = flow.is_some_and(|flow| flow.protocol == Transport::Udp);
    let transport = if over_quic { QUIC } else { TCP };
    (PACKET - ip - transport) / PACKET
}

impl Estimated<'_> {
    /// The distance of the estimate from the capacity, as a share of it, over the time that was watched; not soon after the
    /// first estimate or a change of the rate.
    fn errors(&self) -> Distribution {
        self.settled(|estimate, capacity| (estimate / (capacity * self.body) - 1.0).abs())
    }

    /// The estimate itself, at the same times.
    fn estimates(&self) -> Distribution {
        self.settled(|estimate, _| estimate)
    }

    /// What `value` makes of an estimate and the capacity then.
    fn settled(&self, value: impl Fn(f64, f64) -> f64) -> Distribution {
        let first = self.player.rows.iter().find(|row| row.estimate_bps.is_some());
        let begun = first.map_or(0, |row| row.t_ns.saturating_add(SETTLES_NS));
        let of = |stretch: Stretch<f64>| {
            let at = self
                .capacity
                .iter()
                .find(|at| (at.from_ns..at.to_ns).contains(&stretch.from_ns))?;
            let settled = at.from_ns.saturating_add(SETTLES_NS).max(begun);
            let known = stretch.from_ns >= settled && at.value > 0.0;
            known.then(|| (value(stretch.value, at.value), stretch.length_ns()))
        };
        let estimates = self.player.stretches(|row| Some(row.estimate_bps? as f64));
        Distribution::weighted(estimates.filter_map(of))
    }
}

pub(super) static FAMILY: Family<Estimates> = Family { metrics: METRICS, series: &[] };

static METRICS: &[Measure<Estimates>] = metrics! {
    player.estimate_error_p50_ratio ["ratio", Lower, 3] "Estimate error, median",
        "Distance of the player's estimate of the throughput from what its link carries of bodies, as a share of that, \
         median over time. Of 1500 bytes that a link carries, 1448 are bodies over TCP and IPv4, 1428 over IPv6; over QUIC 1437 \
         and 1417. The first 5 s after the first estimate and \
         after each change of the rate do not count. Null without an estimate, or with several links towards viewers.",
        |e| e.errors().percentile(0.5);
    player.estimate_error_p95_ratio ["ratio", Lower, 3] "Estimate error, 95 %",
        "The same, 95th percentile.",
        |e| e.errors().percentile(0.95);
    player.estimate_p50_bps ["bit/s", Neither, 3] "Estimate, median",
        "The player's estimate of the throughput, median over the times in which `player.estimate_error_p50_ratio` counts.",
        |e| e.estimates().percentile(0.5);
    player.estimate_p95_bps ["bit/s", Neither, 3] "Estimate, 95 %",
        "The same, 95th percentile.",
        |e| e.estimates().percentile(0.95);
};

#[cfg(test)]
mod tests {
    use suiro_record::words::{Carries, FlowRole};
    use suiro_units::Time;

    use super::*;

    #[test]
    fn the_share_of_bodies_is_that_of_the_protocols_beneath() {
        let flow = |protocol, remote: &str| FlowRow {
            t_ns: Time::ZERO,
            endpoint: "player".into(),
            role: FlowRole::Client,
            protocol,
            local: remote.into(),
            remote: remote.into(),
            carries: Carries::HttpMedia,
            flows: 1,
            closed_ns: None,
            peer: None,
        };
        let bytes = |flow: Option<&FlowRow>| (body(flow) * PACKET).round() as i64;
        let (four, six) = ("10.0.0.1:80", "[fd00::1]:80");
        let tcp = [four, six].map(|remote| bytes(Some(&flow(Transport::Tcp, remote))));
        let quic = [four, six].map(|remote| bytes(Some(&flow(Transport::Udp, remote))));
        assert_eq!((tcp, quic, bytes(None)), ([1448, 1428], [1437, 1417], 1448));
    }
}
