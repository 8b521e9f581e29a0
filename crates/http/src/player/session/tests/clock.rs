//! A player whose clock is wrong, and the clock that the manifest names.

use super::world::{AuthorsTime, EPOCH};
use super::*;

/// Plays for a while with a clock that is 700 ms ahead; the latency as the player sees it and as it is, in seconds.
fn play(clock: AuthorsTime) -> (Run, f64, f64) {
    let mut world = world(live(), &[(0, 8000)]);
    world.clock = clock;
    let zero = match world.catalogue.schedule {
        Schedule::Live { zero_unix_ns, .. } => zero_unix_ns,
        Schedule::Vod { .. } => unreachable!("it is live"),
    };
    let config = config(Protocol::Dash, Algorithm::Throughput);
    let ahead = Config { epoch_unix_ns: EPOCH + 700_000_000, ..config };
    let run = run(&mut world, ahead, Time::from_secs(20));
    let (at, view) = run.views.last().expect("a run has views");
    let captured = EPOCH + at.as_nanos() - zero;
    let real_s = (captured - view.position.as_nanos()) as f64 / 1e9;
    let seen_s = view.latency_ns.expect("live") as f64 / 1e9;
    (run, seen_s, real_s)
}

#[test]
fn the_players_clock_is_corrected_by_the_authors() {
    let (run, seen_s, real_s) = play(AuthorsTime::Ahead(0));
    // Half of the round trip of 40 ms is not known, because here the server looks at its clock at once.
    assert!((seen_s - real_s).abs() < 0.022, "{seen_s} {real_s}");
    let clocks: Vec<_> = run.fetches.iter().filter(|(_, f, _)| f.what == What::Clock).collect();
    assert_eq!(clocks.len(), 1);
    assert!(clocks[0].0 < Time::from_millis(100), "{}", clocks[0].0);
    let (_, seen_s, real_s) = play(AuthorsTime::Unnamed);
    assert!((seen_s - real_s - 0.7).abs() < 0.001, "{seen_s} {real_s}");
}

#[test]
fn a_clock_that_does_not_answer_is_not_waited_for_for_long() {
    let (run, seen_s, real_s) = play(AuthorsTime::Silent);
    assert!((seen_s - real_s - 0.7).abs() < 0.001, "{seen_s} {real_s}");
    let (at, gone) = &run.abandoned[0];
    assert_eq!(gone.request.fetch.what, What::Clock);
    assert_eq!(gone.reason, "the clock did not answer within 2 s");
    assert!(*at <= Time::from_millis(2200), "{at}");
    assert!(run.session.totals().expect("it plays").playing > Duration::from_secs(15));
}

#[test]
fn a_clock_of_before_the_stream_is_not_believed() {
    let (run, seen_s, real_s) = play(AuthorsTime::Ahead(-3_600_000));
    assert!((seen_s - real_s - 0.7).abs() < 0.001, "{seen_s} {real_s}");
    assert_eq!(run.session.failure(), None);
}

/// An hour ahead, nothing is listed; and two minutes ago, nothing that is listed is new.
#[test]
fn a_clock_that_lies_is_not_believed_where_segments_are_listed() {
    for lie_ms in [3_600_000, 60_000, -120_000] {
        let (run, seen_s, real_s) = play(AuthorsTime::Ahead(lie_ms));
        assert!((seen_s - real_s - 0.7).abs() < 0.001, "{lie_ms}: {seen_s} {real_s}");
        let playing = run.session.totals().expect("it plays").playing;
        assert!(playing > Duration::from_secs(15), "{lie_ms}: {playing}");
    }
}
