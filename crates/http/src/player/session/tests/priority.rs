//! How urgent requests are that share a connection.

use super::*;

/// The urgency of each request, in order.
fn urgencies(run: &Run, of: fn(&What) -> bool) -> Vec<u8> {
    let fetches = run.fetches.iter().filter(|(_, fetch, _)| of(&fetch.what));
    fetches.map(|(_, fetch, _)| fetch.priority.expect("it shares a connection").urgency).collect()
}

#[test]
fn what_everything_waits_for_comes_before_media_and_what_is_played_next_before_the_rest() {
    let mut world = world(Schedule::Vod { length: Duration::from_secs(60) }, &[(0, 8000)]);
    let config = config(Protocol::Hls, Algorithm::Throughput);
    let run = run(&mut world, config, Time::from_secs(20));
    let small = urgencies(&run, |what| !matches!(what, What::Segment { .. }));
    assert!(small.len() > 3 && small.iter().all(|urgency| *urgency == 1), "{small:?}");
    let media = urgencies(&run, |what| matches!(what, What::Segment { .. }));
    // The first of each track follow an empty buffer; by and by there are twelve seconds.
    assert_eq!(media[..2], [2, 2], "{media:?}");
    assert!(media.len() > 20 && media[10..].iter().all(|urgency| *urgency == 3), "{media:?}");
}

#[test]
fn a_player_with_a_connection_for_each_request_says_nothing() {
    let mut world = world(Schedule::Vod { length: Duration::from_secs(60) }, &[(0, 8000)]);
    let config = Config { priorities: false, ..config(Protocol::Dash, Algorithm::Throughput) };
    let run = run(&mut world, config, Time::from_secs(5));
    assert!(run.fetches.len() > 4);
    assert!(run.fetches.iter().all(|(_, fetch, _)| fetch.priority.is_none()));
}
