//! TFRC over the link core in virtual time, against the numbers of RFC 5348.

mod common;

use common::flow::{Controlled, Reports};
use common::reno::Reno;
use common::{Flow, Outcome, SIZE, jain, link, over_starts, run, spec};
use suiro_rate::equation::rfc5348;
use suiro_units::{Duration, Time};

/// Way back of every flow here, and the way there.
const ONE_WAY: Duration = Duration::from_millis(25);

/// Loss events per packet, counted apart from the code under test: a lost packet begins one unless
/// another did at most a round-trip time before it was sent.
fn loss_event_rate(outcome: &Outcome, sent: &[Time], rtt: Duration) -> f64 {
    let mut began: Option<Time> = None;
    let mut events = 0;
    for &number in &outcome.lost[0] {
        let at = sent[number as usize];
        if began.is_none_or(|began| at > began + rtt) {
            began = Some(at);
            events += 1;
        }
    }
    f64::from(events) / sent.len() as f64
}

/// Throughput over random loss, divided by what the equation gives: for the loss events that were,
/// and for the loss event rate that the sender knew at each time.
fn shares_of_equation(reports: Reports, loss: f64, seconds: u64) -> (f64, f64) {
    let mut link = link(&format!("delay = '25 ms'\nloss = {loss}"), 7);
    let spec = spec("kind = 'tfrc'\nmin = '1 kbit/s'");
    let mut flow = Controlled::new(&spec, reports, ONE_WAY, Time::ZERO);
    let outcome = run(&mut link, &mut [&mut flow], seconds);
    let sent = outcome.sent[0] as f64 * SIZE.bits() as f64 / seconds as f64;
    let p = loss_event_rate(&outcome, &flow.sent, ONE_WAY * 2);
    let at_events = rfc5348(SIZE, ONE_WAY * 2, p);
    let at_reports = flow.equation_mean(ONE_WAY * 2);
    eprintln!(
        "loss {loss}, {reports:?}: p {p:.5}, {sent:.0} bit/s, {:.3} and {:.3} of the equation",
        sent / at_events,
        sent / at_reports
    );
    (sent / at_events, sent / at_reports)
}

/// Loss ratios of 0.01 % to 10 %, and for how long, so that there are some thousand loss events.
const LOSSES: [(f64, u64); 7] = [
    (0.0001, 4000),
    (0.0003, 3000),
    (0.001, 2000),
    (0.003, 2000),
    (0.01, 2000),
    (0.03, 2000),
    (0.1, 2000),
];

/// At 10 % the mean of eight short intervals scatters so much that the equation of the mean and the
/// mean of the equation differ: TFRC stays below (Vojnović and Le Boudec, "On the long-run behavior
/// of equation-based rate control", SIGCOMM 2002).
#[test]
fn throughput_is_that_of_the_equation() {
    for (loss, seconds) in LOSSES {
        let (events, reports) = shares_of_equation(Reports::Tfrc, loss, seconds);
        assert!((reports - 1.0).abs() < 0.05, "{reports:.3} at loss {loss}, seed 7");
        let range = if loss < 0.1 { 0.95..1.05 } else { 0.88..1.0 };
        assert!(range.contains(&events), "{events:.3} at loss {loss}, seed 7");
    }
}

/// Reports of packets or of counts do, even at twice the round-trip time.
#[test]
fn other_reports_lead_to_the_same_rate() {
    for every in [50, 100].map(Duration::from_millis) {
        for reports in [Reports::Packets(every), Reports::Counts(every)] {
            for (loss, seconds) in [(0.001, 500), (0.01, 500), (0.1, 1000)] {
                let (events, _) = shares_of_equation(reports, loss, seconds);
                assert!(
                    (0.85..1.1).contains(&events),
                    "{events:.3} at loss {loss}, {reports:?}, seed 7"
                );
            }
        }
    }
}

#[test]
fn two_flows_share_a_droptail_link() {
    for queue in ["20 ms", "50 ms", "200 ms"] {
        let toml = format!("rate = '10 Mbit/s'\ndelay = '25 ms'\nqueue.limit = '{queue}'");
        let index = over_starts(6, |offset| {
            let mut link = link(&toml, 3);
            let spec = spec("kind = 'tfrc'");
            let second = Time::from_secs(10) + offset;
            let mut first = Controlled::new(&spec, Reports::Tfrc, ONE_WAY, Time::ZERO);
            let mut second = Controlled::new(&spec, Reports::Tfrc, ONE_WAY, second);
            let outcome = run(&mut link, &mut [&mut first, &mut second], 180);
            let rates = [0, 1].map(|flow| outcome.rate(flow, 30));
            assert!(rates.iter().sum::<f64>() > 9e6, "the link is used: {rates:?}");
            jain(&rates)
        });
        eprintln!("queue {queue}: Jain's index {index:.3?}");
        assert!(index.min >= 0.9, "{index:.3?}, queue {queue}");
    }
}

/// So many flows and as many TCPs: the ratio of their mean rates, and of their variations.
fn beside_tcp(toml: &str, count: u64, offset: Duration) -> (f64, f64) {
    let mut link = link(toml, 3);
    let spec = spec("kind = 'tfrc'");
    let start = |n: u64| Time::from_millis(700 * n);
    let video = |n| Controlled::new(&spec, Reports::Tfrc, ONE_WAY, start(n));
    let mut videos: Vec<_> = (0..count).map(video).collect();
    let mut tcps: Vec<_> =
        (0..count).map(|n| Reno::new(ONE_WAY, start(n + count) + offset)).collect();
    let videos = videos.iter_mut().map(|flow| flow as &mut dyn Flow);
    let mut flows: Vec<_> = videos.chain(tcps.iter_mut().map(|flow| flow as _)).collect();
    let outcome = run(&mut link, &mut flows, 300);
    let mean = |flows: std::ops::Range<u64>| -> f64 {
        flows.map(|flow| outcome.rate(flow as usize, 60)).sum::<f64>()
    };
    let variation = |flow: u64| outcome.variation(flow as usize, 60, 1);
    (mean(0..count) / mean(count..2 * count), variation(0) / variation(count))
}

/// The median is friendly everywhere. One flow beside one TCP is not in every run: with two
/// flows in a droptail queue, which of them meets the losses is a matter of phase.
#[test]
fn a_flow_and_a_tcp_share_a_droptail_link() {
    for (count, runs, run_bounds) in [(1, 6, 0.4..2.5), (4, 3, 0.5..2.0)] {
        for queue in ["20 ms", "50 ms", "100 ms", "200 ms"] {
            let rate = format!("rate = '{} Mbit/s'", 10 * count);
            let toml = format!("{rate}\ndelay = '25 ms'\nqueue.limit = '{queue}'");
            let ratio = over_starts(runs, |offset| beside_tcp(&toml, count, offset).0);
            eprintln!("{count} beside {count}, queue {queue}: ratio {ratio:.2?}");
            assert!((0.5..2.0).contains(&ratio.median), "{ratio:.2?}, queue {queue}");
            assert!(
                run_bounds.contains(&ratio.min) && run_bounds.contains(&ratio.max),
                "{ratio:.2?}"
            );
        }
    }
}

#[test]
fn a_flow_varies_less_than_a_tcp() {
    let toml = "rate = '10 Mbit/s'\ndelay = '25 ms'\nqueue.limit = '50 ms'";
    let ratio = over_starts(6, |offset| beside_tcp(toml, 1, offset).1);
    assert!(ratio.max < 1.0, "{ratio:.2?}");
}

#[test]
fn a_flow_is_friendly_to_a_tcp_over_random_loss() {
    for loss in [0.01, 0.02, 0.05] {
        let mut link = link(&format!("delay = '25 ms'\nloss = {loss}"), 3);
        let spec = spec("kind = 'tfrc'");
        let mut video = Controlled::new(&spec, Reports::Tfrc, ONE_WAY, Time::ZERO);
        let mut tcp = Reno::new(ONE_WAY, Time::ZERO);
        let outcome = run(&mut link, &mut [&mut video, &mut tcp], 600);
        let ratio = outcome.rate(0, 60) / outcome.rate(1, 60);
        eprintln!("loss {loss}: ratio {ratio:.2}");
        assert!((0.5..2.0).contains(&ratio), "{ratio:.2} at loss {loss}, seed 3");
    }
}

#[test]
fn lost_reports_neither_freeze_nor_inflate() {
    let mut link = link("rate = '10 Mbit/s'\ndelay = '25 ms'\nqueue.limit = '50 ms'", 3);
    let mut flow = Controlled::new(&spec("kind = 'tfrc'"), Reports::Tfrc, ONE_WAY, Time::ZERO);
    flow.deaf = Time::from_secs(60)..Time::from_secs(70);
    run(&mut link, &mut [&mut flow], 120);
    let within = |from, to| {
        let span = Time::from_secs(from)..Time::from_secs(to);
        flow.targets.iter().filter(move |(at, _)| span.contains(at)).map(|&(_, target)| target)
    };
    assert!(within(61, 70).is_sorted_by(|a, b| a >= b), "it rises unheard");
    assert!(within(61, 70).next_back().is_some_and(|last| last < 200e3), "ten seconds of silence");
    assert!(within(80, 120).all(|target| target > 5e6), "it recovers");
}
