//! Judging what remains of an effect, and removing causes from scenarios.

use suiro_analysis::why::{Change, Crossed};
use suiro_record::words::{Direction, Effect};
use suiro_scenario::{NoFiles, Overrides, parse};

use super::answer::{is_proved, remains};
use super::*;

fn effect(effect: Effect, from_ms: i64, to_ms: i64) -> Explained {
    Explained {
        subject: "player".into(),
        effect,
        from_ns: from_ms * 1_000_000,
        to_ns: to_ms * 1_000_000,
        shares: vec![(Cause::Loss, 1.0)],
        chain: Vec::new(),
        sentence: String::new(),
        because: None,
        change: None,
    }
}

fn remains_ms(was: &Explained, effects: Vec<Explained>) -> i64 {
    remains(was, &Why { effects, ..Why::default() }) / 1_000_000
}

#[test]
fn what_remains_is_the_same_effect_of_the_same_viewer_from_then_on() {
    let was = effect(Effect::Freeze, 1000, 2000);
    let freeze = |from, to| effect(Effect::Freeze, from, to);
    assert_eq!(remains_ms(&was, vec![]), 0);
    assert_eq!(remains_ms(&was, vec![freeze(500, 900)]), 0, "it was over");
    assert_eq!(remains_ms(&was, vec![freeze(500, 1200)]), 200);
    assert_eq!(remains_ms(&was, vec![freeze(1100, 1400), freeze(1300, 1500)]), 400);
    assert_eq!(remains_ms(&was, vec![freeze(2400, 4500)]), 100, "it comes later");
    assert_eq!(remains_ms(&was, vec![freeze(2500, 4500)]), 0, "this is another");
    assert_eq!(remains_ms(&was, vec![freeze(1000, 9000)]), 1000, "no more than it was");
    let other = Explained { subject: "viewer2".into(), ..freeze(1000, 2000) };
    assert_eq!(remains_ms(&was, vec![other, effect(Effect::Late, 1000, 2000)]), 0);
    let late = effect(Effect::Late, 1000, 2000);
    assert_eq!(remains_ms(&late, vec![freeze(1000, 1300)]), 300, "a freeze is no better");
}

#[test]
fn a_quality_that_falls_less_is_not_the_same() {
    let fell = |level| Explained {
        change: Some(Change { from: "720p".into(), to: format!("{level}p"), level, seen_ns: None }),
        ..effect(Effect::Quality, 1000, 2000)
    };
    assert_eq!(remains_ms(&fell(360), vec![fell(540)]), 0);
    assert_eq!(remains_ms(&fell(360), vec![fell(240)]), 1000);
}

#[test]
fn a_cause_is_proved_by_half_of_the_time_that_it_was_blamed_for() {
    let proved = |share, remains_ms: i64| is_proved(1_000_000_000, share, remains_ms * 1_000_000);
    assert!(proved(1.0, 500) && !proved(1.0, 501));
    assert!(proved(0.4, 800) && !proved(0.4, 801));
}

#[test]
fn an_answer_says_what_was_done_and_what_came_of_it() {
    let was = effect(Effect::Freeze, 1000, 2400);
    let change = "without the outage of link access".to_owned();
    let asked = Ok(Asked { variant: 0, change });
    let question = Question { trial: 0, effect: 0, cause: Cause::Outage, share: 1.0, asked };
    let with = |effects| Found::from([((0, 0), Ok(Why { effects, ..Why::default() }))]);
    let told = Answer::of(&question, &was, &with(vec![])).told(&question, &was);
    assert_eq!((told.verdict, told.seeds, told.seeds_with_effect), (Proof::Proved, 1, 1));
    assert_eq!(
        told.sentence,
        "proved: without the outage of link access it does not happen (0 ms of 1.4 s, 1 of 1 seeds)"
    );
    let told = Answer::of(&question, &was, &with(vec![was.clone()])).told(&question, &was);
    assert_eq!(
        told.sentence,
        "refuted: without the outage of link access it still happens (1.4 s of 1.4 s): this was not \
         the cause, outage"
    );
    let invalid = Found::from([((0, 0), Err("the trial without it is not valid: x".into()))]);
    let told = Answer::of(&question, &was, &invalid).told(&question, &was);
    assert_eq!((told.verdict, told.remains_s), (Proof::NotTried, None));
    assert_eq!(told.sentence, "not tried: outage: the trial without it is not valid: x");
}

#[test]
fn a_seed_counts_only_if_the_unchanged_trial_has_the_effect() {
    const CHANGED: usize = 0;
    const CONTROL: usize = 1;
    let freeze = |from, to| effect(Effect::Freeze, from, to);
    let was = freeze(1000, 2400);
    let change = "without the outage of link access".to_owned();
    let asked = Ok(Asked { variant: CHANGED, change });
    let question = Question { trial: 0, effect: 0, cause: Cause::Outage, share: 1.0, asked };
    let one = |variant, number, effects| ((variant, number), Ok(Why { effects, ..Why::default() }));
    let mut answer = Answer::of(&question, &was, &Found::from([one(CHANGED, 0, vec![])]));
    let mut found = Found::from([
        // The effect, and without the cause none.
        one(CONTROL, 1, vec![freeze(1500, 2500)]),
        one(CHANGED, 1, vec![]),
        // No effect at that time, and so nothing that could be proved.
        one(CONTROL, 2, vec![freeze(4000, 9000)]),
        one(CHANGED, 2, vec![]),
        // A short one, which remains.
        one(CONTROL, 3, vec![freeze(2000, 2200)]),
        one(CHANGED, 3, vec![freeze(2000, 2200)]),
        // The unchanged trial is not valid: nothing is known.
        one(CHANGED, 4, vec![]),
    ]);
    found.insert((CONTROL, 4), Err("it is not valid".into()));
    answer.repeat(&question, &was, (&found, CONTROL, 5));
    let told = answer.told(&question, &was);
    assert_eq!((told.seeds, told.seeds_with_effect, told.seeds_proved), (4, 3, 2));
    assert_eq!(
        told.sentence,
        "proved: without the outage of link access it does not happen (0 ms of 1.4 s, 2 of 3 seeds; \
         3 of 4 seeds have the effect)"
    );
}

#[test]
fn two_causes_that_are_each_enough_are_proved_together() {
    let was = effect(Effect::Freeze, 1000, 2000);
    let one = |variant, effects| ((variant, 0), Ok(Why { effects, ..Why::default() }));
    let change = "without the loss of link l".to_owned();
    let asked = Ok(Asked { variant: 0, change });
    let question = Question { trial: 0, effect: 0, cause: Cause::Loss, share: 0.5, asked };
    let found = Found::from([one(0, vec![was.clone()]), one(1, vec![])]);
    let mut answer = Answer::of(&question, &was, &found);
    assert_eq!(answer.verdict, Proof::Refuted);
    let change = "without the loss of link l and without load".to_owned();
    answer.together = Some((Asked { variant: 1, change }, 1.0));
    answer.joined(&question, &was, &found);
    let told = answer.told(&question, &was);
    assert_eq!((told.verdict, told.remains_s), (Proof::Proved, Some(0.0)));
    assert_eq!(
        told.sentence,
        "proved: without the loss of link l and without load it does not happen (0 ms of 1.0 s, \
         1 of 1 seeds); without one of them alone it still happens"
    );
}

/// A player behind a link with every fault, and a load.
const SCENARIO: &str = r#"
name = "x"
title = "x"
duration = "20 s"
[topology]
shape = "dumbbell"
link = "l"
[links.l]
rate = "8 Mbit/s"
delay = "10 ms"
jitter = { distribution = "normal", sd = "2 ms" }
queue = { limit = "100 ms" }
down.corrupt = "1 %"
down.changes = [
  { at = "5 s", rate = "1 Mbit/s" },
  { at = "7 s", rate = "8 Mbit/s", loss = "5 %", delay = "300 ms" },
  { at = "9 s", rate = "0 bit/s", loss = "0 %", delay = "10 ms" },
  { at = "11 s", rate = "8 Mbit/s" },
]
up.changes = [{ at = "5 s", loss = "20 %" }, { at = "6 s", loss = "0 %" }]
[media.main]
source = "synthetic"
length = "4 s"
segment = "500 ms"
ladder = [{ bitrate = "800 kbit/s", height = 360 }]
[endpoints.origin]
kind = "origin"
host = "server"
media = "main"
mode = "vod"
tcp = "bbr"
[endpoints.edge]
kind = "cache"
host = "server"
port = 8080
origin = "origin"
tcp = "bbr"
fault = { kind = "slow", rate = "100 kbit/s" }
[endpoints.player]
kind = "player"
host = "client"
origin = "edge"
abr = "throughput"
[endpoints.sink]
kind = "command"
host = "client"
command = ["nc", "-l", "5000"]
ready = { port = 5000 }
[endpoints.source]
kind = "command"
host = "server"
command = ["nc", "10.0.0.2", "5000"]
[endpoints.stopper]
kind = "command"
host = "server"
start = "5 s"
command = ["true"]
"#;

fn setup() -> Setup {
    setup_of(SCENARIO)
}

fn setup_of(text: &str) -> Setup {
    let scenario = parse(text, "x.toml").unwrap();
    let plan = scenario.plan_with(&Overrides::default(), &NoFiles).unwrap();
    (*plan.trials[0].setup).clone()
}

fn crossed() -> Crossed {
    Crossed {
        subject: "player".into(),
        data: vec![("l".into(), Direction::Down)],
        back: vec![("l".into(), Direction::Up)],
    }
}

fn removal(cause: Cause, from_ms: i64, to_ms: i64) -> Result<Removal, &'static str> {
    let crossed = crossed();
    let (setup, effect) = (setup(), effect(Effect::Stall, from_ms, to_ms));
    Blamed { setup: &setup, effect: &effect, cause, crossed: Some(&crossed) }.removal()
}

#[test]
fn each_cause_has_the_smallest_change_that_removes_it() {
    let change = |cause, from, to| removal(cause, from, to).map(|it| it.change).unwrap();
    let all = [
        change(Cause::RateStep, 5500, 6500),
        change(Cause::Outage, 9000, 10_000),
        change(Cause::Loss, 7500, 8000),
        change(Cause::Delay, 7500, 8000),
        change(Cause::Jitter, 7500, 8000),
        change(Cause::Corruption, 7500, 8000),
        change(Cause::AckPath, 5000, 8000),
        change(Cause::LinkRate, 5000, 8000),
        change(Cause::Bufferbloat, 5000, 8000),
        change(Cause::Competing, 5000, 8000),
        change(Cause::ServerProcessor, 5500, 8000),
        change(Cause::CongestionWindow, 5500, 8000),
        change(Cause::OversizedRung, 5500, 8000),
        change(Cause::Cache, 5500, 8000),
    ];
    assert_eq!(
        all,
        [
            "without the fall of link l at 5.0 s",
            "without the outage of link l",
            "without the loss of link l",
            "without the rise of link l's delay",
            "without the jitter of link l",
            "without the corruption of link l",
            "without the loss of link l and without the jitter of link l",
            "with 10 times the rate of link l",
            "with a queue of 50 kB before link l",
            "without sink, source",
            "without stopper",
            "with another congestion control, cubic",
            "without the rungs above 1 Mbit/s",
            "without the fault of cache edge",
        ]
    );
}

#[test]
fn the_fall_that_why_names_is_left_out() {
    let again =
        "{ at = \"5 s\", rate = \"1 Mbit/s\" },\n  { at = \"6500 ms\", rate = \"500 kbit/s\" },";
    let text = SCENARIO.replace("{ at = \"5 s\", rate = \"1 Mbit/s\" },", again);
    let setup = setup_of(&text);
    let of = |kind, from_ms, to_ms| {
        let (effect, crossed) = (effect(kind, from_ms, to_ms), crossed());
        Blamed { setup: &setup, effect: &effect, cause: Cause::RateStep, crossed: Some(&crossed) }
            .removal()
            .unwrap()
    };
    let second = of(Effect::Stall, 6600, 6900);
    assert_eq!(second.change, "without the fall of link l at 6.5 s");
    let config = second.setup.topology.links[0].config.clone().unwrap();
    let at = |ms| config.down.server.rate_at(suiro_units::Time::from_millis(ms)).unwrap();
    assert_eq!([at(4000), at(5500), at(6800)].map(|rate| rate.as_bps() / 1000), [8000, 1000, 1000]);
    assert_eq!(of(Effect::Stall, 5500, 6500).change, "without the fall of link l at 5.0 s");
    // A rung that was requested before the second fall, and lasts.
    assert_eq!(of(Effect::Quality, 6000, 8000).change, "without the fall of link l at 5.0 s");
}

#[test]
fn a_change_leaves_everything_else_as_it_was() {
    let was = setup();
    let without = removal(Cause::Loss, 7500, 8000).unwrap().setup;
    let config = |setup: &Setup| setup.topology.links[0].config.clone().unwrap();
    let mut expected = config(&was);
    expected.down.loss = config(&without).down.loss;
    assert_eq!(config(&without), expected);
    assert_ne!(config(&without).down.loss, config(&was).down.loss);
    assert_eq!(without.endpoints, was.endpoints);
    // The queue held 100 ms of the rate; without the fall it goes on to.
    let limit = |setup: &Setup| config(setup).down.queue.limit;
    let kept = removal(Cause::RateStep, 5500, 6500).unwrap().setup;
    let at = |setup: &Setup, s: u64| match limit(setup) {
        suiro_link::LimitConfig::Bytes(bytes) => *bytes.at(suiro_units::Time::from_secs(s)),
        suiro_link::LimitConfig::Packets(_) => panic!("its limit is a time"),
    };
    assert!(at(&was, 6) < at(&was, 4));
    assert_eq!([at(&kept, 4), at(&kept, 6), at(&kept, 12)], [at(&was, 4); 3]);
}

#[test]
fn what_cannot_be_removed_is_not_tried() {
    assert_eq!(removal(Cause::Unknown, 0, 1000), Err("no change of a scenario removes it"));
    let none = "no link on its path has a part that can be left out";
    assert_eq!(removal(Cause::RateStep, 1000, 4000), Err(none), "it has not fallen yet");
    assert_eq!(removal(Cause::Reordering, 1000, 4000), Err(none));
    let client = "no command of the scenario on its host can have stopped it";
    assert_eq!(removal(Cause::ClientProcessor, 1000, 4000), Err(client));
}
