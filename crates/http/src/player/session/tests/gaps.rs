//! Playlists with segments that are gaps (rfc8216bis §4.4.4.7).

use super::world::SEGMENT;
use super::*;

const MASTER: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,FRAME-RATE=24\nv.m3u8\n";

fn play(playlists: fn(&str, Time) -> Option<&'static str>) -> Run {
    let schedule = Schedule::Vod { length: Duration::from_secs(60) };
    let mut world = world(schedule, &[(0, 8000)]);
    world.instead = Some(playlists);
    run(&mut world, config(Protocol::Hls, Algorithm::Throughput), Time::from_secs(20))
}

/// Numbers and starts of the segments that were asked for.
fn asked(run: &Run) -> Vec<(u64, Duration)> {
    let segments = run.fetches.iter().filter_map(|(_, fetch, _)| match &fetch.what {
        What::Segment { segment, .. } => Some((segment.number, segment.start)),
        _ => None,
    });
    segments.collect()
}

/// Four segments, of which the third is a gap.
const THIRD_IS_A_GAP: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/v0/0.m4s\n#EXTINF:2,\n/v0/1.m4s\n\
     #EXT-X-GAP\n#EXTINF:2,\n/v0/2.m4s\n#EXTINF:2,\n/v0/3.m4s\n#EXT-X-ENDLIST\n";

#[test]
fn a_gap_is_skipped_and_its_frames_are_recorded_as_missing() {
    let mut run = play(|target, _| match target {
        MULTIVARIANT_PATH => Some(MASTER),
        "/v.m3u8" => Some(THIRD_IS_A_GAP),
        _ => None,
    });
    let numbers: Vec<u64> = asked(&run).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [0, 1, 3]);
    assert_eq!((run.session.failure(), run.last().state), (None, State::Ended));
    let totals = run.session.totals().expect("it played");
    let seconds = Duration::from_secs;
    assert_eq!((totals.skipped, totals.playing, totals.stalls), (seconds(2), seconds(6), 1));
    let frames = run.session.take_frames();
    let missing = frames.iter().filter(|frame| frame.received.is_none());
    // 24 a second, from 4 s to 6 s.
    assert!(missing.map(|frame| frame.number).eq(96..144), "{frames:?}");
}

/// Each rung has gaps where the other one has a segment.
#[test]
fn another_rung_is_played_where_one_has_a_gap() {
    let mut run = play(|target, _| match target {
        MULTIVARIANT_PATH => Some(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,FRAME-RATE=24\nv.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=700000,FRAME-RATE=24\nw.m3u8\n",
        ),
        "/v.m3u8" => Some(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/v0/0.m4s\n#EXT-X-GAP\n#EXTINF:2,\n\
             /v0/1.m4s\n#EXTINF:2,\n/v0/2.m4s\n#EXT-X-GAP\n#EXTINF:2,\n/v0/3.m4s\n\
             #EXTINF:2,\n/v0/4.m4s\n#EXT-X-ENDLIST\n",
        ),
        "/w.m3u8" => Some(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/v1/0.m4s\n#EXTINF:2,\n/v1/1.m4s\n\
             #EXT-X-GAP\n#EXTINF:2,\n/v1/2.m4s\n#EXTINF:2,\n/v1/3.m4s\n\
             #EXTINF:2,\n/v1/4.m4s\n#EXT-X-ENDLIST\n",
        ),
        _ => None,
    });
    let segments = run.fetches.iter().map(|(_, fetch, _)| fetch.resource.url.target());
    let segments: Vec<&str> = segments.filter(|target| target.ends_with(".m4s")).collect();
    assert_eq!(segments.len(), 5);
    assert_eq!(segments[1..4], ["/v1/1.m4s", "/v0/2.m4s", "/v1/3.m4s"]);
    assert_eq!((run.session.failure(), run.last().state), (None, State::Ended));
    let totals = run.session.totals().expect("it played");
    let expected = (Duration::ZERO, Duration::from_secs(10), 0);
    assert_eq!((totals.skipped, totals.playing, totals.stalls), expected);
    let frames = run.session.take_frames();
    assert!(!frames.is_empty() && frames.iter().all(|frame| frame.received.is_some()));
}

/// A rung above what the link carries is asked for its playlist once, and nothing else depends on it.
#[test]
fn a_gap_is_skipped_if_the_playlist_of_another_rung_does_not_come() {
    let run = play(|target, _| match target {
        MULTIVARIANT_PATH => Some(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,FRAME-RATE=24\nv.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=50000000,FRAME-RATE=24\nnowhere.m3u8\n",
        ),
        "/v.m3u8" => Some(THIRD_IS_A_GAP),
        _ => None,
    });
    let numbers: Vec<u64> = asked(&run).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [0, 1, 3]);
    let failed = run.fetches.iter().filter(|(_, _, status)| *status == 404);
    let failed: Vec<&str> = failed.map(|(_, fetch, _)| fetch.resource.url.target()).collect();
    assert_eq!(failed, ["/nowhere.m3u8"]);
    assert_eq!((run.session.failure(), run.last().state), (None, State::Ended));
    assert_eq!(run.session.totals().expect("it played").skipped, Duration::from_secs(2));
}

/// Where the highest rung has a gap, the lowest is at hand, and the one between was never played.
#[test]
fn no_playlist_is_fetched_where_one_at_hand_has_the_segment() {
    let run = play(|target, _| match target {
        MULTIVARIANT_PATH => Some(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,FRAME-RATE=24\nv.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=700000,FRAME-RATE=24\nw.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=1500000,FRAME-RATE=24\nx.m3u8\n",
        ),
        "/v.m3u8" => Some(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/v0/0.m4s\n#EXTINF:2,\n/v0/1.m4s\n\
             #EXTINF:2,\n/v0/2.m4s\n#EXTINF:2,\n/v0/3.m4s\n#EXT-X-ENDLIST\n",
        ),
        "/w.m3u8" => Some(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/v1/0.m4s\n#EXTINF:2,\n/v1/1.m4s\n\
             #EXTINF:2,\n/v1/2.m4s\n#EXTINF:2,\n/v1/3.m4s\n#EXT-X-ENDLIST\n",
        ),
        "/x.m3u8" => Some(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/v2/0.m4s\n#EXTINF:2,\n/v2/1.m4s\n\
             #EXT-X-GAP\n#EXTINF:2,\n/v2/2.m4s\n#EXTINF:2,\n/v2/3.m4s\n#EXT-X-ENDLIST\n",
        ),
        _ => None,
    });
    let targets: Vec<&str> =
        run.fetches.iter().map(|(_, fetch, _)| fetch.resource.url.target()).collect();
    let segments = targets.iter().filter(|target| target.ends_with(".m4s"));
    assert!(segments.eq(&["/v0/0.m4s", "/v2/1.m4s", "/v0/2.m4s", "/v2/3.m4s"]), "{targets:?}");
    assert!(!targets.contains(&"/w.m3u8"), "{targets:?}");
}

/// Our own playlists, where segments 20 and 25 are gaps, and that of the third rung is not there.
fn with_gaps(text: &str) -> String {
    let mut text = text.replace("v2.m3u8", "nowhere.m3u8");
    for number in [20, 25] {
        for rung in ["v0", "v1", "v3"] {
            let uri = format!("{rung}/{number}.m4s");
            text = text.replace(&uri, &format!("#EXT-X-GAP\n{uri}"));
        }
    }
    text
}

/// 1.2 Mbit/s carry the second rung, of 0.7, with a margin for the estimate, but not the third, of 1.5.
#[test]
fn a_live_player_keeps_its_rung_where_the_playlist_of_another_does_not_come() {
    let mut world = world(live(), &[(0, 1200)]);
    world.catalogue.tracks.truncate(1);
    world.lie = Some(with_gaps);
    // Nor is a segment given up for one of the lowest rung because nothing is buffered behind a gap.
    let config = Config { abandon: false, ..config(Protocol::Hls, Algorithm::Throughput) };
    let run = run(&mut world, config, Time::from_secs(34));
    // It is asked for in the first gap, and not again in the second.
    let failed = run.fetches.iter().filter(|(_, _, status)| *status != 200);
    let failed: Vec<&str> = failed.map(|(_, fetch, _)| fetch.resource.url.target()).collect();
    assert_eq!(failed, ["/nowhere.m3u8"]);
    assert_eq!(run.session.failure(), None);
    let video = run.video().into_iter().map(|(_, number, kbps)| (number, kbps));
    let around: Vec<_> = video.filter(|(number, _)| (19..=26).contains(number)).collect();
    assert_eq!(around, [19, 21, 22, 23, 24, 26].map(|number| (number, 700)));
}

/// Without dates, a playlist is placed by the number of its first segment that can be fetched.
#[test]
fn what_follows_a_gap_at_the_start_of_a_playlist_keeps_its_place() {
    let run = play(|target, at| match target {
        MULTIVARIANT_PATH => Some(MASTER),
        "/v.m3u8" if at < Time::from_secs(1) => Some(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:2,\n/v0/0.m4s\n\
             #EXTINF:2,\n/v0/1.m4s\n#EXTINF:2,\n/v0/2.m4s\n#EXTINF:2,\n/v0/3.m4s\n",
        ),
        "/v.m3u8" => Some(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-GAP\n#EXTINF:2,\n\
             /v0/1.m4s\n#EXTINF:2,\n/v0/2.m4s\n#EXTINF:2,\n/v0/3.m4s\n#EXTINF:2,\n/v0/4.m4s\n",
        ),
        _ => None,
    });
    let places: Vec<(u64, Duration)> = asked(&run);
    assert_eq!(places.last(), Some(&(4, Duration::from_secs(8))));
    assert!(places.iter().all(|(number, start)| *start == SEGMENT * *number), "{places:?}");
}
