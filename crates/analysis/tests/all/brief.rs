//! A cell in one sentence.

use std::collections::BTreeMap;

use suiro_analysis::Why;
use suiro_analysis::why::{Change, Explained, Limit, One, Subject, brief};
use suiro_record::words::{Cause, Direction, Effect, LinkCause};
use suiro_record::{LinkTotals, Metrics, Trial};

use crate::common::trial;

const S: f64 = 1e9;

fn effect(
    effect: Effect,
    (from, to): (f64, f64),
    (cause, because): (Cause, Option<&str>),
) -> Explained {
    Explained {
        subject: "player".into(),
        effect,
        from_ns: (from * S) as i64,
        to_ns: (to * S) as i64,
        shares: vec![(cause, 1.0)],
        chain: Vec::new(),
        sentence: String::new(),
        because: because.map(Into::into),
        change: None,
    }
}

/// The level of a rung that was requested, and not seen before the trial ended.
const NOT_SEEN: i64 = 7;

/// A rung that is seen two seconds after it was requested.
fn fall(span: (f64, f64), (from, to, level): (&str, &str, i64), cause: Cause) -> Explained {
    let seen_ns = (level != NOT_SEEN).then_some((span.0 * 1e9) as i64 + 2_000_000_000);
    let change = Change { from: from.into(), to: to.into(), level, seen_ns };
    let because = "the link fell from 8 Mbit/s to 1.5 Mbit/s at 12.0 s";
    let fell = effect(Effect::Quality, span, (cause, Some(because)));
    Explained { change: Some(change), ..fell }
}

/// A trial whose link decided on 1000 packets.
fn carried(dropped: &[(LinkCause, u64)]) -> Trial {
    let dropped: BTreeMap<LinkCause, u64> = dropped.iter().copied().collect();
    let lost: u64 = dropped.values().sum();
    let down = LinkTotals {
        delivered: 1000 - lost,
        dropped,
        ..LinkTotals::new("access", Direction::Down)
    };
    let up = LinkTotals { delivered: 500, ..LinkTotals::new("access", Direction::Up) };
    Trial { links: vec![down, up], ..trial(40.0) }
}

fn metrics(all: &[(&str, f64)]) -> Metrics {
    all.iter().map(|(name, value)| ((*name).to_owned(), Some(*value))).collect()
}

/// A trial, metrics of it, and effects.
type Told<'a> = (&'a Trial, &'a [(&'a str, f64)], Vec<Explained>);

fn told(trials: &[Told]) -> Option<String> {
    let viewer = |name: &str| Subject { name: name.into(), is_viewer: true, limits: Vec::new() };
    let all: Vec<_> = trials
        .iter()
        .map(|(trial, values, effects)| {
            // Viewers without an effect do not count here.
            let mut names: Vec<&str> = effects.iter().map(|it| &*it.subject).collect();
            names.dedup();
            let subjects = if names.is_empty() { vec!["player"] } else { names };
            let subjects = subjects.into_iter().map(viewer).collect();
            (*trial, metrics(values), Why { subjects, effects: effects.clone(), ..Why::default() })
        })
        .collect();
    let ones = all.iter().map(|(trial, metrics, why)| One { trial, metrics, why });
    brief(&ones.collect::<Vec<_>>())
}

#[test]
fn what_a_viewer_saw_why_and_what_was_lost() {
    let falls = vec![
        fall((14.0, 30.0), ("720p", "540p", 1_500_000), Cause::RateStep),
        fall((16.0, 28.0), ("540p", "234p", 300_000), Cause::RateStep),
        // Another cause: not part of the same fall.
        fall((18.0, 20.0), ("234p", "100p", 100_000), Cause::Loss),
    ];
    let trial = carried(&[(LinkCause::Queue, 20)]);
    assert_eq!(
        told(&[(&trial, &[("player.stalls", 0.0)], falls)]).unwrap(),
        "no stall; quality fell from 720p to 234p at 16.0 s because the link fell from 8 Mbit/s to 1.5 Mbit/s at 12.0 s; \
         2.0 % of packets were lost in the queue"
    );
    let unseen = vec![fall((38.0, 40.0), ("720p", "540p", NOT_SEEN), Cause::RateStep)];
    assert_eq!(
        told(&[(&carried(&[]), &[("player.stalls", 0.0)], unseen)]).unwrap(),
        "no stall; 540p was requested instead of 720p at 38.0 s because the link fell from 8 Mbit/s to 1.5 Mbit/s at \
         12.0 s; no packet was lost"
    );
    let aged = carried(&[(LinkCause::Lifetime, 20)]);
    assert_eq!(
        told(&[(&aged, &[("player.stalls", 0.0)], Vec::new())]).unwrap(),
        "no stall; 2.0 % of packets were lost because their lifetime on Wi-Fi was over"
    );
}

#[test]
fn the_longest_of_several_stalls_has_the_cause() {
    let stall = |from, to| {
        effect(Effect::Stall, (from, to), (Cause::Loss, Some("the link lost 7 packets")))
    };
    let trial = carried(&[(LinkCause::Loss, 10), (LinkCause::Queue, 5)]);
    let stalls = [("player.stalls", 2.0)];
    assert_eq!(
        told(&[(&trial, &stalls, vec![stall(3.0, 3.5), stall(9.0, 11.0)])]).unwrap(),
        "2 stalls, 2.5 s in all, the longest 2.0 s at 9.0 s because the link lost 7 packets; 1.0 % of packets were lost to \
         the link's loss model and 0.5 % in the queue"
    );
    // A third one was too short to be explained; the metrics, which stand in the table, count it.
    let counted = [("player.stalls", 3.0), ("player.stall_s", 2.56)];
    let text = told(&[(&trial, &counted, vec![stall(3.0, 3.5), stall(9.0, 11.0)])]).unwrap();
    assert!(
        text.starts_with("3 stalls, 2.6 s in all, the longest 2.0 s at 9.0 s because"),
        "{text}"
    );
    let none: Told = (&trial, &[("player.stalls", 0.0)], Vec::new());
    let text = told(&[none.clone(), (&trial, &stalls, vec![stall(9.0, 11.0)])]).unwrap();
    assert!(text.starts_with("1 stall in 1 of 2 repetitions, 2.0 s at 9.0 s because"), "{text}");
    let text = told(&[none.clone(), none.clone()]).unwrap();
    assert!(text.starts_with("no stall in 2 repetitions; 1.0 %"), "{text}");
    // What one repetition did not measure may have happened there.
    let text = told(&[none, (&trial, &[], Vec::new())]).unwrap();
    assert!(text.starts_with("1.0 % of packets were lost"), "{text}");
}

#[test]
fn what_had_ended_with_the_warm_up_is_not_told() {
    let stall = |from, to| {
        effect(Effect::Stall, (from, to), (Cause::Loss, Some("the link lost 7 packets")))
    };
    let trial = Trial { warm_up_s: 10.0, ..carried(&[]) };
    let counted = [("player.stalls", 2.0), ("player.stall_s", 2.5)];
    // The second one has 2 s after the warm-up, from its end on.
    let stalls = vec![stall(3.0, 6.0), stall(9.0, 12.0), stall(20.0, 20.5)];
    assert_eq!(
        told(&[(&trial, &counted, stalls)]).unwrap(),
        "2 stalls, 2.5 s in all, the longest 2.0 s at 10.0 s because the link lost 7 packets; no packet was lost"
    );
    let early: Told = (&trial, &[("player.stalls", 0.0)], vec![stall(3.0, 6.0)]);
    assert_eq!(told(&[early]).unwrap(), "no stall; no packet was lost");
    // A fall has no length, and its own time.
    let late = effect(Effect::Late, (4.0, 13.0), (Cause::Loss, Some("the link lost 7 packets")));
    let fell = fall((5.0, 30.0), ("720p", "540p", 1_500_000), Cause::RateStep);
    let text = told(&[(&trial, &[("player.stalls", 0.0)], vec![late, fell])]).unwrap();
    assert!(
        text.contains(" 3.0 s at 10.0 s because the link lost 7 packets; quality fell"),
        "{text}"
    );
    assert!(text.contains("quality fell from 720p to 540p at 7.0 s because"), "{text}");
}

#[test]
fn metrics_that_count_less_than_was_explained_are_not_told() {
    let stalls = vec![
        effect(Effect::Stall, (3.0, 4.2), (Cause::Loss, Some("the link lost 7 packets"))),
        effect(Effect::Stall, (9.0, 9.5), (Cause::Loss, Some("the link lost 7 packets"))),
    ];
    let trial = carried(&[]);
    let text = |number: f64, seconds: f64| {
        let counted = [("player.stalls", number), ("player.stall_s", seconds)];
        let text = told(&[(&trial, &counted, stalls.clone())]).unwrap();
        text.split(" at ").next().unwrap().to_owned()
    };
    let explained = "2 stalls, 1.7 s in all, the longest 1.2 s";
    assert_eq!(text(0.0, 0.0), explained);
    assert_eq!(text(1.0, 1.9), explained, "fewer");
    assert_eq!(text(3.0, 1.2), explained, "shorter than what was explained");
    assert_eq!(text(2.0, 1.2 + 0.5), explained, "the same");
    assert_eq!(text(4.0, 1.78), "4 stalls, 1.8 s in all, the longest 1.2 s");
}

#[test]
fn what_several_viewers_bore_is_added_up() {
    let stall = |subject: &str, from, to| Explained {
        subject: subject.into(),
        ..effect(Effect::Stall, (from, to), (Cause::Loss, Some("the link lost 7 packets")))
    };
    let trial = carried(&[]);
    let means = [("player.stalls", 1.5), ("player.stall_s", 1.75)];
    let stalls = vec![stall("a", 3.0, 3.5), stall("b", 9.0, 11.0), stall("b", 12.0, 13.0)];
    let text = told(&[(&trial, &means, stalls)]).unwrap();
    let expected = "3 stalls, 3.5 s in all, the longest 2.0 s of b at 9.0 s because";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_cause_whose_number_is_zero_is_not_told() {
    let trial = carried(&[]);
    let freezes = [("video.freezes", 1.0)];
    let of = |cause| vec![effect(Effect::Freeze, (5.0, 6.0), (cause, None))];
    assert_eq!(
        told(&[(&trial, &freezes, of(Cause::Loss))]).unwrap(),
        "1 freeze of 1.0 s at 5.0 s; no packet was lost"
    );
    assert_eq!(
        told(&[(&trial, &freezes, of(Cause::Unknown))]).unwrap(),
        "1 freeze of 1.0 s at 5.0 s, cause not known; no packet was lost"
    );
    // Something that lasted longer than all freezes is reported as well.
    let mut missing = of(Cause::Unknown);
    missing.push(effect(
        Effect::Missing,
        (8.0, 12.0),
        (Cause::Loss, Some("the link lost 3 packets")),
    ));
    let text = told(&[(&trial, &freezes, missing)]).unwrap();
    assert!(
        text.contains("; frames were missing during 4.0 s at 8.0 s because the link lost 3"),
        "{text}"
    );
    // A stall that the player counted, and that is too short to be explained.
    let text = told(&[(&trial, &[("player.stalls", 1.0)], Vec::new())]).unwrap();
    assert_eq!(text, "no packet was lost");
}

#[test]
fn without_viewers_what_was_carried_and_what_limited_it() {
    let limit = |from_ns, to_ns, cause| Limit { from_ns, to_ns, cause, evidence: Vec::new() };
    let limits = vec![limit(0, 3, Cause::CongestionWindow), limit(3, 4, Cause::Loss)];
    let subject = Subject { name: "tcp".into(), is_viewer: false, limits };
    let why = Why { subjects: vec![subject], ..Why::default() };
    let (trial, metrics) = (trial(1.0), metrics(&[("flow.goodput_mean_bps", 3.9e6)]));
    let one = |why| One { trial: &trial, metrics: &metrics, why };
    assert_eq!(
        brief(&[one(&why)]).unwrap(),
        "goodput 3.9 Mbit/s, limited 75 % of the time by: congestion window"
    );
    let nothing = Why::default();
    let nothing = One { metrics: &Metrics::default(), ..one(&nothing) };
    assert_eq!(brief(&[nothing]), None);
}

#[test]
fn the_direction_that_lost_is_named() {
    let mut trial = carried(&[]);
    trial.links[1].dropped = [(LinkCause::Queue, 500)].into();
    assert_eq!(
        told(&[(&trial, &[], Vec::new())]).unwrap(),
        "50 % of packets were lost in the queue (up)"
    );
    trial.links.push(LinkTotals::new("core", Direction::Down));
    assert_eq!(
        told(&[(&trial, &[], Vec::new())]).unwrap(),
        "50 % of packets were lost in the queue (access up)"
    );
}
