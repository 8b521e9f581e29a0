//! What holds for every viewer, whatever arrives and however it is polled.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use suiro_strict::Bounded;
use suiro_units::{Duration, Time};
use suiro_viewer::{Fate, Frame, Outcome, Parts, Playout, Policy, Refused};

const POLICIES: &[&str] = &[
    "",
    "late = 'skip'\npercentile = '50 %'\nwindow = '200 ms'",
    "buffer = '0 s'\nwait = '0 s'",
    "buffer = '80 ms'\nlate = 'skip'\nwait = '100 ms'\nscreen = 30",
    "buffer = '200 ms'\nscreen = 1000\nbuffer_max = '0 s'",
    "buffer_max = '100 ms'\nwait = '20 ms'\npercentile = 1",
    "buffer = '80 ms'\nloss = 'show'\nwait = '100 ms'",
    "loss = 'show'\nlate = 'skip'\nwait = '0 s'",
];

/// One arrival: how long after the one before, in microseconds, and the frame.
type Arrival = (u64, Frame);

fn any_frame() -> impl Strategy<Value = Frame> {
    let references = option::weighted(0.8, 1..4u64);
    let wild = option::weighted(0.02, select(&[0, 1 << 40, u64::MAX][..]));
    let all = prop_oneof![9 => Just(Parts::All), 1 => Just(Parts::Some), 1 => Just(Parts::TooFew)];
    let parts = (0..60u64, -20_000..20_000i64, wild, references, all);
    parts.prop_map(|(number, wobble, wild, back, parts)| {
        let captured = (33_333 * number + 20_000).saturating_add_signed(wobble);
        Frame {
            number,
            captured: Time::from_nanos(wild.unwrap_or(1000 * captured)),
            references: back.and_then(|back| number.checked_sub(back)),
            parts,
        }
    })
}

fn any_arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    vec((select(&[0u64, 1, 900, 33_333, 40_000, 300_000][..]), any_frame()), 0..80)
}

/// Arrivals in order of number, as most are: all paths are then gone through, the good ones too.
fn mostly_in_order() -> impl Strategy<Value = Vec<Arrival>> {
    any_arrivals().prop_map(|mut arrivals| {
        for run in arrivals.chunks_mut(20) {
            run.sort_by_key(|(_, frame)| frame.number);
        }
        arrivals
    })
}

/// What came of a run: the outcomes, and the frames that were taken.
#[derive(Debug, PartialEq)]
struct Run {
    outcomes: Vec<Outcome>,
    taken: BTreeMap<u64, (Frame, Time)>,
}

/// Polls to the moment before each arrival if `punctual`, else only at the end.
fn play(policy: Policy, arrivals: &[Arrival], punctual: bool) -> Run {
    let mut playout = Playout::new(policy);
    let (mut outcomes, mut taken, mut now) = (Vec::new(), BTreeMap::new(), Time::ZERO);
    for &(gap, frame) in arrivals {
        now += Duration::from_micros(gap);
        while let Some(at) = playout.next_event().filter(|&at| punctual && at <= now) {
            let outcome = playout.poll(at).expect("it is due, as was told");
            assert_eq!(outcome.at, at);
            outcomes.push(outcome);
        }
        match playout.on_frame(now, frame) {
            Ok(()) => assert!(taken.insert(frame.number, (frame, now)).is_none()),
            Err(Refused::Duplicate(number) | Refused::TooLate(number)) => {
                assert_eq!(number, frame.number);
            }
            Err(other) => panic!("{other}"),
        }
    }
    now += Duration::from_millis(200);
    playout.finish(now);
    outcomes.extend(std::iter::from_fn(|| playout.poll(now)));
    assert_eq!(playout.next_event(), None);
    Run { outcomes, taken }
}

/// Every number from the first to the last has one outcome, and it is one that can be.
fn conserved(run: &Run) {
    let numbers: Vec<u64> = run.outcomes.iter().map(|outcome| outcome.frame).collect();
    let first = run.taken.keys().next().copied().unwrap_or(0);
    let last = run.taken.keys().next_back().map_or(0, |last| last + 1);
    let lowest = numbers.first().copied().unwrap_or(first);
    assert_eq!(numbers, (lowest..last).collect::<Vec<_>>());
    assert!(lowest <= first);
    for outcome in &run.outcomes {
        let taken = run.taken.get(&outcome.frame);
        assert_eq!(outcome.received, taken.map(|&(_, received)| received));
        assert_eq!(outcome.captured, taken.map(|(frame, _)| frame.captured));
        assert_eq!(outcome.fate == Fate::Missing, taken.is_none());
        let parts = taken.map(|(frame, _)| frame.parts);
        let decodable = parts == Some(Parts::All) || parts == Some(Parts::Some) && outcome.damaged;
        assert!(!outcome.decodable() || decodable);
        assert!(outcome.decodable() || !outcome.damaged);
    }
}

fn in_order_of_time(run: &Run, screen: u32) {
    assert!(run.outcomes.is_sorted_by_key(|outcome| outcome.at));
    let displayed: Vec<Time> = run.outcomes.iter().filter_map(Outcome::displayed).collect();
    let spacing = Duration::from_secs(1) / u64::from(screen);
    assert!(displayed.windows(2).all(|pair| pair[1] >= pair[0] + spacing));
    let after = |outcome: &Outcome| outcome.received.is_none_or(|received| outcome.at >= received);
    assert!(run.outcomes.iter().all(after), "nothing is decided before it came");
}

/// A frame was decoded without damage only if what it refers to was.
fn decoded_with_what_they_need(run: &Run) {
    let sound = |outcome: &Outcome| outcome.decodable() && !outcome.damaged;
    let decoded: BTreeMap<u64, bool> =
        run.outcomes.iter().map(|outcome| (outcome.frame, sound(outcome))).collect();
    for outcome in run.outcomes.iter().filter(|outcome| sound(outcome)) {
        let (frame, _) = run.taken[&outcome.frame];
        let needed = frame.references.map(|other| decoded.get(&other).copied().unwrap_or(false));
        assert!(needed.unwrap_or(true), "{frame:?}");
    }
}

proptest! {
    #[test]
    fn what_always_holds(
        policy in select(POLICIES),
        arrivals in prop_oneof![any_arrivals(), mostly_in_order()],
    ) {
        let policy: Policy = toml::from_str(policy).unwrap();
        policy.check_bounds().unwrap();
        let run = play(policy, &arrivals, true);
        conserved(&run);
        in_order_of_time(&run, policy.screen);
        decoded_with_what_they_need(&run);
        prop_assert_eq!(&play(policy, &arrivals, false), &run, "it matters when it is polled");
    }

    /// Of frames that all come whole and in order, at any pace, none is lost: what is not shown is
    /// skipped for a newer one.
    #[test]
    fn what_comes_whole_is_decoded(policy in select(POLICIES), gaps in vec(0..90_000u64, 1..80)) {
        let policy: Policy = toml::from_str(policy).unwrap();
        let frames = (0..).map(|number| Frame {
            number,
            captured: Time::from_nanos(33_333_333 * number),
            references: number.checked_sub(1),
            parts: Parts::All,
        });
        let arrivals: Vec<Arrival> = gaps.into_iter().zip(frames).collect();
        let run = play(policy, &arrivals, true);
        prop_assert!(run.outcomes.iter().all(Outcome::decodable));
        prop_assert_eq!(run.outcomes.len(), arrivals.len());
    }
}
