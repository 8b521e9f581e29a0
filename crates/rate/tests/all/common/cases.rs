//! Test cases of RFC 8867 that every controller of real-time media passes through, each with its own bounds.

use super::flow::Controlled;
use super::reno::Reno;
use super::{Flow, Outcome, Spread, jain, link, over_starts, run};
use suiro_link::Link;
use suiro_units::{Duration, Time};

/// RFC 8867 §4.2: 50 ms in each direction, 300 ms of queue.
pub const ONE_WAY: Duration = Duration::from_millis(50);
const PATH: &str = "delay = '50 ms'\nqueue.limit = '300 ms'\n";

/// A controller's flow that begins then.
pub type Start<'a> = &'a dyn Fn(Duration) -> Controlled;

/// The path at a rate, and what else its link has.
pub fn path(rate: &str) -> Link {
    link(&format!("{PATH}rate = {rate}"), 1)
}

/// Several flows that begin at these seconds, over a path of that rate.
pub fn flows(begin: Start, rate: &str, starts: &[u64], seconds: u64, offset: Duration) -> Outcome {
    let start = |second: &u64| Duration::from_secs(*second) + offset * (second / 10);
    let mut flows: Vec<Controlled> = starts.iter().map(|at| begin(start(at))).collect();
    let mut flows: Vec<&mut dyn Flow> = flows.iter_mut().map(|flow| flow as _).collect();
    run(&mut path(rate), &mut flows, seconds)
}

/// Rates in Mbit/s, queueing delays in ms (median and 95th percentile) in each span of [`variable_capacity`].
pub struct Followed {
    pub rates: [f64; 4],
    pub delays: [(f64, f64); 4],
}

/// RFC 8867 §5.1: the capacity is 1, 2.5, 0.6 and 1 Mbit/s, from 0, 40, 60 and 80 s on. A span counts from some seconds after
/// each change on.
pub fn variable_capacity(begin: Start) -> Followed {
    const SPANS: [(u64, u64); 4] = [(10, 40), (45, 60), (65, 80), (85, 100)];
    let changes = "changes = [{ at = '40 s', rate = '2.5 Mbit/s' }, { at = '60 s', rate = '600 kbit/s' }, \
                   { at = '80 s', rate = '1 Mbit/s' }]";
    let mut flow = begin(Duration::ZERO);
    let outcome = run(&mut path(&format!("'1 Mbit/s'\n{changes}")), &mut [&mut flow], 100);
    let rates = SPANS.map(|(from, to)| outcome.mbps(0, (from as usize, to as usize)));
    let delays = SPANS.map(|(from, to)| flow.queueing(from, to));
    eprintln!(
        "Mbit/s {rates:.3?}, queueing delay p50 and p95 in ms {delays:.1?}, lost {}",
        outcome.lost[0].len()
    );
    Followed { rates, delays }
}

/// Jain's index of two flows of 2 Mbit/s after 70 s, by six starts.
pub fn two_flows(begin: Start) -> Spread {
    let fairness = over_starts(6, |offset| {
        let outcome = flows(begin, "'2 Mbit/s'", &[0, 10], 120, offset);
        jain(&[0, 1].map(|flow| outcome.rate(flow, 70)))
    });
    eprintln!("Jain's index {fairness:.4?}");
    fairness
}

/// RFC 8867 §5.4: three flows, begun at 0, 20 and 40 s, over 3.5 Mbit/s; and their rates from 60 s on.
pub fn three_flows(begin: Start) -> (Outcome, [f64; 3]) {
    let outcome = flows(begin, "'3.5 Mbit/s'", &[0, 20, 40], 120, Duration::ZERO);
    let rates = [0, 1, 2].map(|flow| outcome.rate(flow, 60));
    eprintln!("bit/s {rates:.0?}, Jain's index {:.4}", jain(&rates));
    (outcome, rates)
}

/// RFC 8867 §5.6: the share of 2 Mbit/s next to a TCP, by four starts.
pub fn next_to_a_tcp(begin: Start) -> Spread {
    let shares = over_starts(4, |offset| {
        let mut tcp = Reno::new(ONE_WAY, Time::ZERO);
        let mut flow = begin(Duration::from_secs(5) + offset);
        let outcome = run(&mut path("'2 Mbit/s'"), &mut [&mut tcp, &mut flow], 120);
        outcome.rate(1, 30) / 2e6
    });
    eprintln!("share of the link {shares:.3?}");
    shares
}

/// How much slower or faster than the sender's the clock of [`clocks_that_drift`] runs, in millionths: more than crystals do.
pub const DRIFT_PPM: [i64; 3] = [-200, 0, 200];

/// Shares of 1 Mbit/s in the last half of two minutes, in which the receiver's clock drifts so: by 24 ms at most.
pub fn clocks_that_drift(begin: Start) -> [f64; 3] {
    let shares = DRIFT_PPM.map(|ppm| {
        let mut flow = begin(Duration::ZERO);
        flow.drift_ppm = ppm;
        run(&mut path("'1 Mbit/s'"), &mut [&mut flow], 120).rate(0, 60) / 1e6
    });
    eprintln!("shares {shares:.3?} of the link at {DRIFT_PPM:?} ppm");
    shares
}

/// A flow that has no reports from 30 to 40 s: its rate in bit/s in the seconds 29, 38 and 60.
pub fn without_reports(begin: Start) -> [f64; 3] {
    let mut flow = begin(Duration::ZERO);
    flow.deaf = Time::from_secs(30)..Time::from_secs(40);
    let outcome = run(&mut path("'1 Mbit/s'"), &mut [&mut flow], 80);
    [29, 38, 60].map(|second| outcome.seconds[0][second] as f64 * 8.0)
}
