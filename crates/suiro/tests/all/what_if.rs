//! `suiro what-if`: the trials of a folder again with a change, in virtual time.

use serde_json::Value;

use crate::common::{Done, Room, Trials};

/// A flood of pings that fills the queue of a slow link, with random loss.
const SCENARIO: &str = "name = 'flood'
title = 'More than a link carries, from one second on'
duration = '4 s'
repetitions = 2
[matrix]
loss = ['0 %', '2 %']
[topology]
shape = 'dumbbell'
link = 'access'
[links.access]
rate = '1 Mbit/s'
delay = '10 ms'
loss = '$loss'
queue.limit = '20 kB'
[endpoints.calm]
kind = 'command'
host = 'server'
command = ['ping', '-i', '0.05', '-s', '972', '-c', '60', 'client']
[endpoints.flood]
kind = 'command'
host = 'server'
start = '1 s'
command = ['ping', '-i', '0.004', '-s', '1172', '-c', '500', 'client']
exit = 'ignored'
";

#[test]
fn a_change_is_compared_with_the_same_trials() {
    let Some(trials) = Trials::find().filter(Trials::are_virtual) else { return };
    let room = Room::new();
    room.write("flood.toml", SCENARIO);
    Done::of(&mut trials.run(&room, "flood.toml")).exits(0);
    let what_if = |more: &[&str]| {
        let mut command = room.suiro(&["what-if", "out"]);
        trials.equip(&mut command);
        Done::of(command.args(more))
    };

    let longer = ["--set", "links.access.queue.limit=30 kB", "--out", "longer"];
    let done = what_if(&longer).exits(0);
    for part in [
        "scenario: links.access.queue.limit: \"20 kB\" → \"30 kB\"",
        "0 %  2 pairs of the same seed",
        "the same until 1.",
    ] {
        assert!(done.stdout.contains(part), "no `{part}` in:\n{}", done.stdout);
    }

    // What changes nothing, changes nothing.
    let itself: Value = what_if(&["--set", "jobs=2", "--out", "same", "--json"]).exits(0).json();
    let verdicts = itself["comparisons"][0]["verdicts"].as_object().unwrap();
    assert_eq!(verdicts.keys().collect::<Vec<_>>(), ["same"], "{verdicts:?}");

    let search = ["--search", "links.access.queue.limit=5 kB..40 kB", "--only", "loss=0 %"];
    let limit = ["--limit", "link.down.queue_delay_p95_ms < 200 ms", "--json", "--out", "search"];
    let found: Value = what_if(&[&search[..], &limit].concat()).exits(0).json();
    // At 1 Mbit/s 25 kB take 200 ms.
    let queue = |key: &str| -> f64 {
        let text = found[key].as_str().unwrap();
        text.strip_suffix(" kB").unwrap().parse().unwrap()
    };
    let (kept, broken) = (queue("kept"), queue("broken"));
    assert!((23.0..27.0).contains(&kept) && kept < broken && broken < kept * 1.011, "{found}");

    what_if(&[]).exits(2).says(&["hint: --set PATH=VALUE"]);
    what_if(&["--set", "links.access.rat=1 Mbit/s"]).exits(2).says(&["did you mean `rate`"]);
    what_if(&["--set", "links.access.loss=2"]).exits(2).says(&["the scenario of out:"]);
    what_if(&["--search", "links.access.queue.limit=5 kB..1 kB"])
        .exits(2)
        .says(&["below the high one"]);
    what_if(&search).exits(2).says(&["--search needs a limit"]);
}
