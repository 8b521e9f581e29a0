//! GCC over the link core in virtual time: cases of RFC 8867, several flows, lost reports.

use crate::common::cases::{self, ONE_WAY, path};
use crate::common::flow::{Controlled, Reports};
use crate::common::{jain, run, spec};
use suiro_units::{Bytes, Duration, Time};

/// Feedback as often as libwebrtc sends it at these rates.
const REPORTS: Reports = Reports::Packets(Duration::from_millis(50));

fn gcc(start: Duration) -> Controlled {
    let mut flow = Controlled::new(&spec("kind = 'gcc'"), REPORTS, ONE_WAY, Time::ZERO + start);
    flow.size = Bytes::new(1000);
    // The pace is above the target; a source makes as much as the target.
    flow.paced_by_target = true;
    flow
}

#[test]
fn a_flow_follows_the_capacity() {
    let cases::Followed { rates, delays } = cases::variable_capacity(&gcc);
    for (rate, least) in rates.into_iter().zip([0.8, 1.3, 0.45, 0.8]) {
        assert!(rate > least, "{rate} Mbit/s, at least {least} expected");
    }
    // Of the fall to 600 kbit/s it learns when the queue of 300 ms is full, and a queue that stays full is no overuse: there losses
    // alone hold the rate.
    for (span, (median, most)) in delays.into_iter().enumerate() {
        let bounds = if span == 2 { (310.0, 310.0) } else { (30.0, 120.0) };
        assert!(median < bounds.0 && most < bounds.1, "span {span}: {median} and {most} ms");
    }
}

#[test]
fn two_flows_share_evenly_after_a_minute() {
    let fairness = cases::two_flows(&gcc);
    assert!(fairness.min > 0.95, "{fairness:?}");
}

#[test]
fn three_flows_share_the_link() {
    let (_, rates) = cases::three_flows(&gcc);
    assert!(jain(&rates) > 0.9, "{rates:?}");
}

/// RFC 8867 §5.6: next to a TCP, at a queue of 300 ms.
#[test]
fn next_to_a_tcp_it_is_not_starved() {
    let shares = cases::next_to_a_tcp(&gcc);
    assert!(shares.min > 0.075 && shares.max < 0.9, "{shares:?}");
}

#[test]
fn without_reports_the_rate_falls_to_its_least_and_returns() {
    let [before, without, afterwards] = cases::without_reports(&gcc);
    assert!(before > 0.8e6, "{before}");
    assert!(without < 0.2e6, "{without} bit/s without reports");
    assert!(afterwards > 0.8e6, "{afterwards} bit/s afterwards");
}

/// draft-ietf-rmcat-gcc-02 §6: losses of the path itself, up to some percent, do not slow it down.
#[test]
fn a_path_that_loses_two_percent_is_used() {
    let mut flow = gcc(Duration::ZERO);
    let outcome = run(&mut path("'1 Mbit/s'\nloss = '2 %'"), &mut [&mut flow], 60);
    let rate = outcome.rate(0, 20);
    eprintln!("{rate:.0} bit/s of 1 Mbit/s at 2 % loss");
    assert!(rate > 0.75e6, "{rate}");
}

/// Its filter looks at how the delay changes: 0.2 ms in a second are far below its threshold.
#[test]
fn clocks_that_drift_by_200_ppm_take_no_more_than_they_seem_to_delay() {
    let [slow, even, fast] = cases::clocks_that_drift(&gcc);
    assert!((slow - even).abs() < 0.05 && (fast - even).abs() < 0.05, "{slow} {even} {fast}");
}
