//! SCReAM over the link core in virtual time: cases of RFC 8867, several flows, lost reports.

use crate::common::cases::{self, ONE_WAY};
use crate::common::flow::{Controlled, Reports};
use crate::common::{jain, spec};
use suiro_units::{Bytes, Duration, Time};

/// Feedback as often as §5 of the draft has tested.
const REPORTS: Reports = Reports::Packets(Duration::from_millis(40));

fn scream(start: Duration) -> Controlled {
    let mut flow = Controlled::new(&spec("kind = 'scream'"), REPORTS, ONE_WAY, Time::ZERO + start);
    flow.size = Bytes::new(1000);
    // The pace is above the target; a source makes as much as the target.
    flow.paced_by_target = true;
    flow
}

#[test]
fn a_flow_follows_the_capacity() {
    let cases::Followed { rates, delays } = cases::variable_capacity(&scream);
    // It needs room to grow and shrink in: about 0.87 of 1 Mbit/s. After the fall to 600 kbit/s, its losses look like a
    // competitor's, and the target of the delay rises (§4.5.4 warns of that).
    for (rate, least) in rates.into_iter().zip([0.8, 1.45, 0.55, 0.8]) {
        assert!(rate > least, "{rate} Mbit/s, at least {least} expected");
    }
    let most = [(20.0, 120.0), (5.0, 20.0), (120.0, 250.0), (20.0, 120.0)];
    for ((median, worst), (p50, p95)) in delays.into_iter().zip(most) {
        assert!(median < p50 && worst < p95, "{median} and {worst} ms");
    }
}

#[test]
fn two_flows_share_evenly_after_a_minute() {
    let fairness = cases::two_flows(&scream);
    assert!(fairness.min > 0.95, "{fairness:?}");
}

#[test]
fn three_flows_share_evenly() {
    let (_, rates) = cases::three_flows(&scream);
    assert!(jain(&rates) > 0.95, "{rates:?}");
}

/// RFC 8867 §5.6: next to a TCP, at a queue of 300 ms, it is left its least rate, 0.075 of the link. The reason: the
/// target of the delay rises to 400 ms at most, of which half is congestion (§4.2.1.4), and the TCP keeps the queue
/// longer than that.
#[test]
fn next_to_a_tcp_it_keeps_its_least_rate() {
    let shares = cases::next_to_a_tcp(&scream);
    assert!(shares.min > 0.075 && shares.max < 0.2, "{shares:?}");
}

#[test]
fn without_reports_the_rate_falls_to_its_least_and_returns() {
    let [_, without, afterwards] = cases::without_reports(&scream);
    assert!(without < 0.2e6, "{without} bit/s without reports");
    assert!(afterwards > 0.8e6, "{afterwards} bit/s afterwards");
}
