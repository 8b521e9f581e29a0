//! Servers at low latency that never answer what they have promised.

use super::*;

const MASTER: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,FRAME-RATE=24\nv.m3u8\n";
/// A stream that began 4 s before the epoch, with two segments and a part.
const PLAYLIST: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n\
    #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-PART-INF:PART-TARGET=0.5\n\
    #EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:56:56.000Z\n\
    #EXTINF:2,\n/v0/0.m4s\n#EXTINF:2,\n/v0/1.m4s\n#EXT-X-PART:DURATION=0.5,URI=\"/v0/2.m4s\",INDEPENDENT=YES\n\
    #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/never.m4s\"\n";

fn manifests(target: &str, _: Time) -> Option<&'static str> {
    match target {
        MULTIVARIANT_PATH => Some(MASTER),
        "/v.m3u8" => Some(PLAYLIST),
        _ => None,
    }
}

/// The same, by a server, or a cache before it, that answers at once what it should hold.
fn stale(target: &str, at: Time) -> Option<&'static str> {
    manifests(target.split('?').next().unwrap_or_default(), at)
}

fn play(silent: &'static str, seconds: u64) -> Run {
    play_from(manifests, silent, seconds)
}

fn play_from(
    manifests: fn(&str, Time) -> Option<&'static str>,
    silent: &'static str,
    seconds: u64,
) -> Run {
    let mut world = world(live(), &[(0, 8000)]);
    world.instead = Some(manifests);
    world.silent = silent;
    let config = config(Protocol::Hls, Algorithm::Throughput);
    let run = run(&mut world, config, Time::from_secs(seconds));
    assert!(run.session.totals().is_some_and(|totals| totals.playing > Duration::ZERO));
    run
}

fn asked(run: &Run, what: &str) -> Vec<u64> {
    let of = |fetch: &Fetch| fetch.resource.url.target().contains(what);
    let fetches = run.fetches.iter().filter(|(_, fetch, _)| of(fetch));
    fetches.map(|(at, ..)| at.as_nanos() / 1_000_000_000).collect()
}

/// Each request ends after 10 s, and the next follows a second later at the earliest. Meanwhile the playlist is fetched without
/// waiting, as from a server that cannot block.
#[test]
fn a_playlist_that_blocks_for_ever_is_fetched_without() {
    let run = play("_HLS_msn", 120);
    let times = asked(&run, "_HLS_msn");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 11), "{times:?}");
    let plain = run.fetches.iter().filter(|(_, f, _)| f.resource.url.target() == "/v.m3u8");
    assert!((3..60).contains(&plain.count()), "a list that does not change is not asked for often");
    assert!(run.rounds < 5000, "{} rounds", run.rounds);
}

/// The player jumps when the live edge is 3 s further away than it should be, and gives the request up: no sooner.
#[test]
fn a_part_that_never_comes_is_tried_again_within_bounds() {
    // Later, the server no longer has the part before it.
    let run = play("never", 40);
    let times = asked(&run, "never");
    assert!(times.len() > 3 && times.windows(2).all(|pair| pair[1] - pair[0] >= 2), "{times:?}");
    let given_up = run.abandoned.iter().filter(|(_, gone)| gone.reason.contains("passed over"));
    assert!(given_up.count() + 2 >= times.len(), "{:?}", run.abandoned);
    let last = run.last();
    assert!(last.stalls >= 1 && last.state == State::Stalled, "{last:?}");
    assert!(run.rounds < 5000, "{} rounds", run.rounds);
}

#[test]
fn a_playlist_that_is_not_held_and_has_nothing_new_is_asked_for_at_intervals() {
    let run = play_from(stale, "never", 30);
    let held = run.fetches.iter().filter(|(_, f, _)| f.resource.url.target().contains("_HLS_msn"));
    let times: Vec<Time> = held.map(|(at, ..)| *at).collect();
    assert!(times.len() > 10, "{times:?}");
    // Half of a part; the first is held to nothing that was known before.
    let gaps = times.windows(2).map(|pair| pair[1].saturating_since(pair[0]));
    assert!(gaps.skip(1).all(|gap| gap >= Duration::from_millis(250)), "{times:?}");
}
