//! Flows over a link in virtual time: what drives a controller in tests and benches.

pub mod cases;
pub mod flow;
pub mod prague;
pub mod reno;

use suiro_link::{Direction, Ecn, Link, LinkSpec, Packet, Verdict};
use suiro_rate::RateSpec;
use suiro_units::{Bytes, Duration, Seed, Time};

/// Size of the packets of a flow that does not say otherwise.
pub const SIZE: Bytes = Bytes::new(1500);

/// A sender and its receiver, with the way back between them.
pub trait Flow {
    /// When to call [`Self::act`] next.
    fn next(&self) -> Option<Time>;
    /// Does everything that is due; hands the numbers of the packets that leave to `send`.
    fn act(&mut self, now: Time, send: &mut dyn FnMut(u64));
    /// A packet has arrived, with Congestion Experienced if `marked`.
    fn deliver(&mut self, now: Time, number: u64, marked: bool);
    /// What its packets say of ECN.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    /// Size of its packets.
    fn size(&self) -> Bytes {
        SIZE
    }
}

/// What came of the flows of a run.
pub struct Outcome {
    /// Bytes that arrived in each whole second, by flow.
    pub seconds: Vec<Vec<u64>>,
    /// Packets sent, by flow.
    pub sent: Vec<u64>,
    /// Numbers of the packets lost, by flow.
    pub lost: Vec<Vec<u64>>,
}

impl Outcome {
    /// The mean rate of a flow in bit/s from that second on.
    pub fn rate(&self, flow: usize, from: usize) -> f64 {
        let seconds = &self.seconds[flow][from..];
        seconds.iter().sum::<u64>() as f64 * 8.0 / seconds.len() as f64
    }

    /// The mean rate of a flow in Mbit/s in these seconds.
    pub fn mbps(&self, flow: usize, (from, to): (usize, usize)) -> f64 {
        let bytes: u64 = self.seconds[flow][from..to].iter().sum();
        bytes as f64 * 8e-6 / (to - from) as f64
    }

    /// Standard deviation of the rate over spans of so many seconds, divided by its mean.
    pub fn variation(&self, flow: usize, from: usize, span: usize) -> f64 {
        let seconds = &self.seconds[flow][from..];
        let rates: Vec<f64> =
            seconds.chunks_exact(span).map(|span| span.iter().sum::<u64>() as f64).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
        (squares / rates.len() as f64).sqrt() / mean
    }
}

/// A link as a scenario has it.
pub fn link(toml: &str, seed: u64) -> Link {
    let spec: LinkSpec = toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"));
    let config = spec.resolve(&mut |_| Err("no files here".to_owned()));
    Link::new(&config.unwrap_or_else(|error| panic!("{toml}: {error}")), Seed(seed))
}

/// A controller as a scenario has it.
pub fn spec(toml: &str) -> RateSpec {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"))
}

/// Runs flows over the link's downward direction for whole seconds.
pub fn run(link: &mut Link, flows: &mut [&mut dyn Flow], seconds: u64) -> Outcome {
    let end = Time::ZERO + Duration::from_secs(seconds);
    let mut outcome = Outcome {
        seconds: vec![vec![0; seconds as usize]; flows.len()],
        sent: vec![0; flows.len()],
        lost: vec![Vec::new(); flows.len()],
    };
    loop {
        let next = flows.iter().filter_map(|flow| flow.next()).chain(link.next_event()).min();
        let Some(now) = next.filter(|&now| now < end) else { return outcome };
        while let Some(event) = link.poll(now) {
            let flow = event.packet.flow as usize;
            if matches!(event.verdict, Verdict::Delivered { .. }) {
                let second = (event.at.as_nanos() / 1_000_000_000) as usize;
                outcome.seconds[flow][second] += event.packet.size.get();
                let marked = event.packet.ecn == Ecn::Ce;
                flows[flow].deliver(event.at, event.packet.id, marked);
            } else {
                outcome.lost[flow].push(event.packet.id);
            }
        }
        for (index, flow) in flows.iter_mut().enumerate() {
            if flow.next().is_some_and(|at| at <= now) {
                let (size, ecn) = (flow.size(), flow.ecn());
                flow.act(now, &mut |id| {
                    outcome.sent[index] += 1;
                    let packet = Packet { id, size, flow: index as u64, ecn };
                    link.arrive(now, Direction::Down, packet);
                });
            }
        }
    }
}

/// Jain's index of fairness.
pub fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) =
        (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    sum * sum / (rates.len() as f64 * squares)
}

/// Least, median and greatest of the results of several runs.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

/// Runs with several offsets between the flows' starts, of 137 ms each. Over a queue alone nothing
/// is random, and one run would be one case: the offsets show how much the result depends on it.
pub fn over_starts(runs: u64, run: impl Fn(Duration) -> f64) -> Spread {
    let mut results: Vec<f64> = (0..runs).map(|n| run(Duration::from_millis(137 * n))).collect();
    results.sort_by(f64::total_cmp);
    let (min, max) = (results[0], results[results.len() - 1]);
    Spread { min, median: results[results.len() / 2], max }
}
