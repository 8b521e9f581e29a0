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

#[test]
fn a_gap_is_skipped_and_its_frames_are_recorded_as_missing() {
    let mut run = play(|target, _| match target {
        MULTIVARIANT_PATH => Some(MASTER),
        "/v.m3u8" => Some(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/v0/0.m4s\n#EXTINF:2,\n/v0/1.m4s\n\
             #EXT-X-GAP\n#EXTINF:2,\n/v0/2.m4s\n#EXTINF:2,\n/v0/3.m4s\n#EXT-X-ENDLIST\n",
        ),
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
