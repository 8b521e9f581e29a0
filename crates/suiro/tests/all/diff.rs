//! `suiro diff`: results folders compared, in virtual time.

use serde_json::Value;

use crate::common::{Done, Room, Trials};

/// Web pages over a link that loses packets at random; they are loaded again and again.
const SCENARIO: &str = "name = 'pages'
title = 'Web pages over a lossy link'
duration = '5 s'
repetitions = 3
[matrix]
rate = ['2 Mbit/s', '4 Mbit/s']
[topology]
shape = 'dumbbell'
link = 'access'
[links.access]
rate = '$rate'
delay = '10 ms'
loss = 0.02
queue.limit = '30 kB'
[endpoints.web]
kind = 'web-server'
host = 'server'
[endpoints.users]
kind = 'web-clients'
host = 'client'
server = 'web'
users = 4
";

fn run(trials: &Trials, room: &Room, out: &str, more: &[&str]) {
    Done::of(trials.run_to(room, "pages.toml", out).args(more)).exits(0);
}

/// How many metrics have each verdict.
fn verdicts(found: &Value) -> Vec<(&str, u64)> {
    let verdicts = found["comparisons"][0]["verdicts"].as_object().unwrap();
    verdicts.iter().map(|(name, count)| (&**name, count.as_u64().unwrap())).collect()
}

#[test]
fn runs_are_compared() {
    let Some(trials) = Trials::find().filter(Trials::are_virtual) else { return };
    let room = Room::new();
    room.write("pages.toml", SCENARIO);
    run(&trials, &room, "before", &[]);
    run(&trials, &room, "seed", &["--seed", "2"]);
    run(&trials, &room, "far", &["--set", "links.access.delay=60 ms"]);

    let itself: Value = room.run(&["diff", "before", "before", "--json"]).exits(0).json();
    let found = verdicts(&itself);
    assert!(matches!(found[..], [("same", count)] if count > 50), "{found:?}");

    let seed: Value = room.run(&["diff", "before", "seed", "--json"]).exits(0).json();
    let found = verdicts(&seed);
    assert!(found.iter().all(|(verdict, _)| ["same", "too_noisy"].contains(verdict)), "{found:?}");
    assert_eq!(seed["comparisons"][0]["settings"][0]["name"], "seed");

    let far = room.run(&["diff", "before", "far", "--html", "page.html"]).exits(0);
    for part in [
        "versions and machine are the same",
        "scenario: links.access.delay: \"10 ms\" → \"60 ms\"",
        "4 Mbit/s  3 pairs of the same seed",
        "worse",
    ] {
        assert!(far.stdout.contains(part), "no `{part}` in:\n{}", far.stdout);
    }
    let delay = far.stdout.lines().find(|line| line.contains("worse") && line.contains("delay"));
    assert!(delay.is_some(), "{}", far.stdout);
    let page = std::fs::read_to_string(room.path("work").join("page.html")).unwrap();
    assert!(page.contains("<title>suiro diff before far</title>"));
    room.run(&["diff", "before", "far", "--html", "page.html"]).exits(2).says(&["--replace"]);
}

#[test]
fn what_cannot_be_compared_is_named() {
    let room = Room::new();
    std::fs::create_dir(room.path("work").join("empty")).unwrap();
    room.run(&["diff", "empty"]).exits(2);
    room.run(&["diff", "empty", "empty"]).exits(2).says(&["not a results folder"]);
    room.run(&["diff", "empty", "empty", "--margin", "2"]).exits(2).says(&["from 0 to 1"]);
}
