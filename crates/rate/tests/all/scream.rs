//! SCReAM over the link core in virtual time: cases of RFC 8867, several flows, lost reports.

use crate::common::flow::{Controlled, Reports};
use crate::common::reno::Reno;
use crate::common::{Flow, Outcome, jain, link, over_starts, run, spec};
use suiro_units::{Bytes, Duration, Time};

/// RFC 8867 §4.2: 50 ms each way, 300 ms of queue; feedback as often as §5 of the draft has tested.
const ONE_WAY: Duration = Duration::from_millis(50);
const REPORTS: Reports = Reports::Packets(Duration::from_millis(40));
const PATH: &str = "delay = '50 ms'\nqueue.limit = '300 ms'\n";

fn scream(start: Duration) -> Controlled {
    let mut flow = Controlled::new(&spec("kind = 'scream'"), REPORTS, ONE_WAY, Time::ZERO + start);
    flow.size = Bytes::new(1000);
    // The pace is above the target; a source makes as much as the target.
    flow.paced_by_target = true;
    flow
}

fn flows(rate: &str, starts: &[u64], seconds: u64, offset: Duration) -> Outcome {
    let mut link = link(&format!("{PATH}rate = '{rate}'"), 1);
    let start = |second: &u64| Duration::from_secs(*second) + offset * (second / 10);
    let mut flows: Vec<Controlled> = starts.iter().map(|at| scream(start(at))).collect();
    let mut flows: Vec<&mut dyn Flow> = flows.iter_mut().map(|flow| flow as _).collect();
    run(&mut link, &mut flows, seconds)
}

/// RFC 8867 §5.1: the capacity is 1, 2.5, 0.6 and 1 Mbit/s, from 0, 40, 60 and 80 s on.
#[test]
fn a_flow_follows_the_capacity() {
    let changes = "changes = [{ at = '40 s', rate = '2.5 Mbit/s' }, { at = '60 s', rate = '600 kbit/s' }, \
                   { at = '80 s', rate = '1 Mbit/s' }]";
    let mut link = link(&format!("{PATH}rate = '1 Mbit/s'\n{changes}"), 1);
    let mut flow = scream(Duration::ZERO);
    let outcome = run(&mut link, &mut [&mut flow], 100);
    let mbps = |from: usize, to: usize| {
        let bytes: u64 = outcome.seconds[0][from..to].iter().sum();
        bytes as f64 * 8e-6 / (to - from) as f64
    };
    let rates = [mbps(10, 40), mbps(45, 60), mbps(65, 80), mbps(85, 100)];
    let delays =
        [(10, 40), (45, 60), (65, 80), (85, 100)].map(|(from, to)| flow.queueing(from, to));
    // It needs room to grow and shrink in: about 0.87 of 1 Mbit/s. After the fall to 600 kbit/s, its losses look like a
    // competitor's, and the target of the delay rises (§4.5.4 warns of that).
    eprintln!(
        "Mbit/s {rates:.3?}, queueing delay p50 and p95 in ms {delays:.1?}, lost {}",
        outcome.lost[0].len()
    );
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
    let fairness = over_starts(6, |offset| {
        let outcome = flows("2 Mbit/s", &[0, 10], 120, offset);
        jain(&[0, 1].map(|flow| outcome.rate(flow, 70)))
    });
    eprintln!("Jain's index {fairness:.4?}");
    assert!(fairness.min > 0.95, "{fairness:?}");
}

/// RFC 8867 §5.4: three flows, begun at 0, 20 and 40 s, over 3.5 Mbit/s.
#[test]
fn three_flows_share_evenly() {
    let outcome = flows("3.5 Mbit/s", &[0, 20, 40], 120, Duration::ZERO);
    let rates = [0, 1, 2].map(|flow| outcome.rate(flow, 60));
    eprintln!("bit/s {rates:.0?}, Jain's index {:.4}", jain(&rates));
    assert!(jain(&rates) > 0.95, "{rates:?}");
}

/// RFC 8867 §5.6: next to a TCP, at a queue of 300 ms, it is left its least rate, 0.075 of the link: the target of the
/// delay rises to 400 ms at most, of which half is congestion (§4.2.1.4), and the TCP keeps the queue longer than that.
#[test]
fn next_to_a_tcp_it_keeps_its_least_rate() {
    let shares = over_starts(4, |offset| {
        let mut link = link(&format!("{PATH}rate = '2 Mbit/s'"), 1);
        let mut tcp = Reno::new(ONE_WAY, Time::ZERO);
        let mut flow = scream(Duration::from_secs(5) + offset);
        let outcome = run(&mut link, &mut [&mut tcp, &mut flow], 120);
        outcome.rate(1, 30) / 2e6
    });
    eprintln!("share of the link {shares:.3?}");
    assert!(shares.min > 0.075 && shares.max < 0.2, "{shares:?}");
}

#[test]
fn without_reports_the_rate_falls_to_its_least_and_returns() {
    let mut link = link(&format!("{PATH}rate = '1 Mbit/s'"), 1);
    let mut flow = scream(Duration::ZERO);
    flow.deaf = Time::from_secs(30)..Time::from_secs(40);
    let outcome = run(&mut link, &mut [&mut flow], 80);
    let second = |n: usize| outcome.seconds[0][n] as f64 * 8.0;
    eprintln!("{} {} {}", second(29), second(38), second(60));
    assert!(second(38) < 0.2e6, "{} bit/s without reports", second(38));
    assert!(second(60) > 0.8e6, "{} bit/s afterwards", second(60));
}
