//! TFRCP over the link core in virtual time: the study's network, pairs of rules, lost reports.

use crate::common::flow::{Controlled, Reports};
use crate::common::reno::Reno;
use crate::common::{Outcome, link, over_starts, run, spec};
use suiro_units::{Duration, Time};

const ONE_WAY: Duration = Duration::from_millis(10);
/// A report for every five frames, as in the study.
const REPORTS: Reports = Reports::Counts(Duration::from_micros(166_833));
const SECONDS: u64 = 400;
const WARM_UP: usize = 40;

/// The four pairs of rules: how the rate rises, and how it falls.
const PAIRS: [(&str, &str); 4] =
    [("double", "equation"), ("double", "halve"), ("additive", "equation"), ("additive", "halve")];

/// One flow and one TCP over 10 Mbit/s, with a queue of 60 packets. The flow receives no report
/// during `deaf`.
fn beside_tcp(
    (increase, decrease): (&str, &str),
    deaf: std::ops::Range<u64>,
    offset: Duration,
) -> (Outcome, Controlled) {
    let mut link = link("rate = '10 Mbit/s'\ndelay = '10 ms'\nqueue.limit = '60p'", 1);
    let rules = format!("increase = '{increase}'\ndecrease = '{decrease}'");
    let spec = spec(&format!("kind = 'tfrcp'\nmax = '30 Mbit/s'\n{rules}"));
    let mut video = Controlled::new(&spec, REPORTS, ONE_WAY, Time::ZERO);
    video.deaf = Time::from_secs(deaf.start)..Time::from_secs(deaf.end);
    let mut tcp = Reno::new(ONE_WAY, Time::ZERO + offset);
    let outcome = run(&mut link, &mut [&mut video, &mut tcp], SECONDS);
    (outcome, video)
}

#[test]
fn every_pair_leaves_the_tcp_its_part_and_the_improved_one_is_the_fairest() {
    let ratios = PAIRS.map(|pair| {
        let ratio = over_starts(6, |offset| {
            let (outcome, _) = beside_tcp(pair, 0..0, offset);
            let [video, tcp] = [0, 1].map(|flow| outcome.rate(flow, WARM_UP));
            assert!(video + tcp > 9e6, "the link is used");
            video / tcp
        });
        eprintln!("{pair:?}: ratio {ratio:.2?}");
        ratio
    });
    assert!(ratios.iter().all(|ratio| ratio.min > 0.33 && ratio.max < 2.0), "{ratios:?}");
    let unfairness = ratios.map(|ratio| ratio.median.ln().abs());
    assert!(unfairness[..3].iter().all(|&other| unfairness[3] < other), "{ratios:?}");
}

#[test]
fn the_target_changes_by_its_rules_alone_and_between_gop_times() {
    for (increase, decrease) in PAIRS {
        let (_, video) = beside_tcp((increase, decrease), 0..0, Duration::ZERO);
        assert!(video.targets.len() > 30, "{} changes", video.targets.len());
        for step in video.targets.windows(2) {
            let (before, after) = (step[0].1, step[1].1);
            let factor = after / before;
            let doubled = (factor - 2.0).abs() < 1e-3 || after == 30e6;
            let rose = if increase == "double" { doubled } else { factor > 1.0 };
            let fell = decrease == "equation" || (factor - 0.5).abs() < 1e-3;
            assert!(rose || fell, "from {before} to {after} with {increase} and {decrease}");
            let gops = (step[1].0 - step[0].0) / Duration::from_millis(1001);
            assert!(gops > 0.9, "a GoP has one target, not {gops} of one");
        }
    }
}

#[test]
fn lost_reports_neither_freeze_nor_inflate() {
    for pair in PAIRS {
        let (_, video) = beside_tcp(pair, 100..130, Duration::ZERO);
        let at = |second| {
            let until = Time::from_secs(second);
            let told = video.targets.iter().take_while(|(at, _)| *at <= until);
            told.last().expect("there is a first target").1
        };
        let (before, after) = (at(100), at(130));
        // What was heard before may count once more.
        let latest = at(103).max(before);
        assert!((104..130).all(|second| at(second) <= latest), "{pair:?}: it rises unheard");
        assert!(after <= latest / 32.0, "{pair:?}: from {before} to {after} in half a minute");
        assert!(at(200) > 1e6, "{pair:?}: {} long after", at(200));
    }
}
