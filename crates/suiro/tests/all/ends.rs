//! Endpoints that end before the trial does.

use crate::common::{Done, Room, Trials};

/// `early` would fail the trial if it exited by itself. `stubborn` takes no notice of being asked, in one cell.
const SCENARIO: &str = "name = 'ends'
title = 'an endpoint ends early'
duration = '8 s'
matrix.stubborn = [0, 1]
[topology]
shape = 'explicit'
hosts = ['server']
[links]
[endpoints.early]
kind = 'command'
host = 'server'
start = '1 s'
end = '3 s'
exit = 'fails'
command = ['sh', '-c', 'trap \"date +%s; exit 3\" TERM; date +%s; while :; do sleep 0.1; done']
[endpoints.stubborn]
kind = 'command'
host = 'server'
count = '$stubborn'
end = '3 s'
grace = '1 s'
command = ['sh', '-c', 'trap : TERM; while :; do sleep 0.1; done']
";

#[test]
fn an_endpoint_ends_at_its_time_and_the_trial_goes_on() {
    let Some(trials) = Trials::find() else { return };
    let room = Room::new();
    room.write("x.toml", SCENARIO);
    let done = Done::of(&mut trials.run(&room, "x.toml")).exits(1);
    let out = room.results("out");
    let trial = out.trial("stubborn=0/1");
    assert!(trial.valid, "{:?}\n{}", trial.invalid_because, done.stderr);
    let early = trial.endpoints.iter().find(|endpoint| endpoint.name == "early").unwrap();
    // Its own way to end is none of the trial's business, because it was asked to.
    assert_eq!((early.exit_code, &early.failure), (Some(3), &None));
    let log = out.root().join("trials/stubborn=0/1/logs/early.out");
    let told = std::fs::read_to_string(log).unwrap();
    let seconds: Vec<i64> = told.lines().map(|line| line.parse().unwrap()).collect();
    assert!(seconds.len() == 2 && (2..=3).contains(&(seconds[1] - seconds[0])), "{seconds:?}");
    let trial = out.trial("stubborn=1/1");
    let reason = trial.invalid_because.as_deref().unwrap_or_default();
    assert!(!trial.valid && reason.contains("stubborn: did not stop at its end"), "{reason}");
}
