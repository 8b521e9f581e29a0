//! NADA over the link core in virtual time: cases of RFC 8867, several flows, lost reports, clocks that differ.

use crate::common::flow::{Controlled, Reports};
use crate::common::reno::Reno;
use crate::common::{Flow, Outcome, jain, link, over_starts, run, spec};
use suiro_units::{Bytes, Duration, Time};

/// RFC 8867 §4.2: 50 ms each way, 300 ms of queue; feedback as RFC 8698 recommends.
const ONE_WAY: Duration = Duration::from_millis(50);
const REPORTS: Reports = Reports::Packets(Duration::from_millis(100));
/// As in the simulations of RFC 8698's authors (§7).
const SIZE: Bytes = Bytes::new(1000);
const PATH: &str = "delay = '50 ms'\nqueue.limit = '300 ms'\n";

fn nada(more: &str, start: Duration) -> Controlled {
    let spec = spec(&format!("kind = 'nada'\n{more}"));
    let mut flow = Controlled::new(&spec, REPORTS, ONE_WAY, Time::ZERO + start);
    flow.size = SIZE;
    flow
}

/// Several flows that begin at these seconds, over a path of that rate.
fn flows(rate: &str, starts: &[u64], seconds: u64, offset: Duration) -> Outcome {
    let mut link = link(&format!("{PATH}rate = '{rate}'"), 1);
    let start = |second: &u64| Duration::from_secs(*second) + offset * (second / 10);
    let mut flows: Vec<Controlled> = starts.iter().map(|at| nada("", start(at))).collect();
    let mut flows: Vec<&mut dyn Flow> = flows.iter_mut().map(|flow| flow as _).collect();
    run(&mut link, &mut flows, seconds)
}

/// RFC 8867 §5.1: the capacity is 1, 2.5, 0.6 and 1 Mbit/s, from 0, 40, 60 and 80 s on.
#[test]
fn a_flow_follows_the_capacity() {
    let changes = "changes = [{ at = '40 s', rate = '2.5 Mbit/s' }, { at = '60 s', rate = '600 kbit/s' }, \
                   { at = '80 s', rate = '1 Mbit/s' }]";
    let mut link = link(&format!("{PATH}rate = '1 Mbit/s'\n{changes}"), 1);
    let mut flow = nada("", Duration::ZERO);
    let outcome = run(&mut link, &mut [&mut flow], 100);
    let mbps = |from: usize, to: usize| {
        let bytes: u64 = outcome.seconds[0][from..to].iter().sum();
        bytes as f64 * 8e-6 / (to - from) as f64
    };
    let rates = [mbps(10, 40), mbps(45, 60), mbps(65, 80), mbps(85, 100)];
    let delays =
        [(10, 40), (45, 60), (65, 80), (85, 100)].map(|(from, to)| flow.queueing(from, to));
    eprintln!("Mbit/s {rates:.3?}, queueing delay p50 and p95 in ms {delays:.1?}");
    // All of the capacity, but for 2.5 Mbit/s the flow's maximum. After the fall to 600 kbit/s, a packet takes 10.1 ms longer
    // than before without any queue: the ramp-up does not begin below 10 ms, and the rate rises gradually.
    for (rate, least) in rates.into_iter().zip([0.95, 1.45, 0.4, 0.95]) {
        assert!(rate > least, "{rate} Mbit/s, at least {least} expected");
    }
    // The equilibrium is 10 ms · 1.5 / C: 15, 10 or less, 25 and 15 ms; a packet takes up to 20 ms by itself.
    for ((median, most), equilibrium) in delays.into_iter().zip([15.0, 0.0, 25.0, 15.0]) {
        assert!(
            median < equilibrium + 10.0 && most < 60.0,
            "{median} and {most} of {equilibrium} ms"
        );
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
    assert!(rates.iter().sum::<f64>() > 0.95 * 3.5e6, "{rates:?}");
    assert!(outcome.lost.iter().all(Vec::is_empty), "nothing is lost");
}

/// RFC 8698 §4.3: at equilibrium, rates are proportional to priorities (RFC 8867 §6.1).
#[test]
fn a_flow_of_twice_the_priority_gets_twice_the_rate() {
    let mut link = link(&format!("{PATH}rate = '1.5 Mbit/s'"), 1);
    let mut first = nada("priority = 2.0", Duration::ZERO);
    let mut second = nada("", Duration::ZERO);
    let outcome = run(&mut link, &mut [&mut first, &mut second], 200);
    let ratio = outcome.rate(0, 100) / outcome.rate(1, 100);
    eprintln!("ratio {ratio:.3}");
    assert!((1.7..2.3).contains(&ratio), "{ratio}");
}

/// RFC 8867 §5.6: next to a TCP, at a queue of 300 ms, in which the delay alone would leave the flow its least rate, 0.075 of
/// the link. By some starts it is left near that: at 17 packets per second, one loss is a tenth of a window.
#[test]
fn next_to_a_tcp_it_has_more_than_its_least_rate_by_most_starts() {
    let shares = over_starts(4, |offset| {
        let mut link = link(&format!("{PATH}rate = '2 Mbit/s'"), 1);
        let mut tcp = Reno::new(ONE_WAY, Time::ZERO);
        let mut flow = nada("", Duration::from_secs(5) + offset);
        let outcome = run(&mut link, &mut [&mut tcp, &mut flow], 120);
        outcome.rate(1, 30) / 2e6
    });
    eprintln!("share of the link {shares:.3?}");
    assert!(shares.min > 0.075 && shares.median > 0.15 && shares.max < 0.9, "{shares:?}");
}

#[test]
fn without_reports_the_rate_falls_to_its_least_and_returns() {
    let mut link = link(&format!("{PATH}rate = '1 Mbit/s'"), 1);
    let mut flow = nada("", Duration::ZERO);
    flow.deaf = Time::from_secs(30)..Time::from_secs(40);
    let outcome = run(&mut link, &mut [&mut flow], 80);
    let second = |n: usize| outcome.seconds[0][n] as f64 * 8.0;
    assert!(second(29) > 0.9e6);
    assert!(second(38) < 0.2e6, "{} bit/s without reports", second(38));
    assert!(second(60) > 0.9e6, "{} bit/s afterwards", second(60));
}

/// The receiver's clock runs slow or fast by 20 ppm, as two crystals may: 6 ms in five minutes. (By 100 ppm, 30 ms, it took
/// 0.4 of the rate: the least delay of ten minutes is the base, as RFC 8698 §5.1.1 has it.)
#[test]
fn clocks_that_drift_take_little() {
    for ppm in [-20, 20] {
        let mut link = link(&format!("{PATH}rate = '1 Mbit/s'"), 1);
        let mut flow = nada("", Duration::ZERO);
        flow.drift_ppm = ppm;
        let outcome = run(&mut link, &mut [&mut flow], 300);
        let rate = outcome.rate(0, 240);
        eprintln!("{ppm} ppm: {rate:.0} bit/s in the last minute, of 1 Mbit/s");
        assert!(rate > 0.9e6, "{ppm} ppm: {rate}");
    }
}
