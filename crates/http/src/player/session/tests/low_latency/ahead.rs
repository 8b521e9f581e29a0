//! Parts, and segments in chunks, that are asked for while the one before them is still coming.

use super::*;
use crate::priority::Priority;

/// When the first part is asked for.
const BEGUN: Time = Time::from_millis(900);

/// A session that has asked for the first of two parts that are listed.
fn up_to_parts(priorities: bool) -> (Session, Fetch) {
    let config = config(Protocol::Hls, Algorithm::Throughput);
    let mut session = Session::new(Config { priorities, ..config });
    for _ in 0..20 {
        let fetch = session.poll(BEGUN).expect("it goes on");
        let body = match &fetch.what {
            What::Manifest => MASTER,
            What::Playlist { .. } => PLAYLIST,
            _ => "",
        };
        if fetch.resource.url.target() == "/v0/4.0.m4s" {
            return (session, fetch);
        }
        session.on_fetched(BEGUN, &fetch, whole(&fetch, BEGUN, body));
    }
    panic!("the part is not asked for")
}

/// The requests that are made at `now`.
fn at(session: &mut Session, now: Time) -> Vec<Fetch> {
    std::iter::from_fn(|| session.poll(now)).collect()
}

/// Whether it is for the next version of the playlist.
fn is_held(fetch: &Fetch) -> bool {
    fetch.resource.url.target().contains("_HLS_msn")
}

/// The session, its request for the first part, and that for the second.
fn both() -> (Session, Fetch, Fetch, Time) {
    let (mut session, first) = up_to_parts(true);
    let mut asked = at(&mut session, BEGUN);
    let second = asked.pop().expect("the second part is asked for");
    assert!(asked.len() == 1 && asked.iter().all(is_held), "{asked:?}");
    assert_eq!(second.resource.url.target(), "/v0/4.1.m4s");
    assert!(second.lane != first.lane && second.attempt == 1, "{second:?}");
    (session, first, second, BEGUN + Duration::from_millis(150))
}

fn buffered(session: &Session) -> Duration {
    let playout = session.stream.as_ref().and_then(|stream| stream.playout.as_ref());
    playout.expect("it plays").end_of(0)
}

/// What is asked for, in order, but for playlists.
fn media(asked: &[Fetch]) -> Vec<&str> {
    let media = asked.iter().filter(|fetch| matches!(fetch.what, What::Segment { .. }));
    media.map(|fetch| fetch.resource.url.target()).collect()
}

/// Nothing of the first has come yet, so its rate is not known, as over HTTP/2, where a part is a single frame.
#[test]
fn the_next_part_is_asked_for_at_once_and_the_one_behind_it_when_its_turn_comes() {
    let (mut session, first, second, now) = both();
    assert_eq!(at(&mut session, now).len(), 0, "one at a time");
    session.on_fetched(now, &first, whole(&first, now, ""));
    // The second is what is under way now; the third is only hinted at.
    let hinted = at(&mut session, now);
    assert_eq!(media(&hinted), ["/v0/4.2.m4s"]);
    session.on_fetched(now, &second, whole(&second, now, ""));
    // The playlist names nothing behind the hint.
    assert_eq!(at(&mut session, now).len(), 0);
    assert!(session.abandon(now).is_none());
}

/// It is behind the part under way wherever priorities count.
#[test]
fn what_is_ahead_is_less_urgent_and_in_the_order_of_the_requests() {
    let (_, first, second, _) = both();
    assert_eq!(first.priority.map(|priority| priority.urgency), Some(2));
    assert_eq!(second.priority, Some(Priority { urgency: 3, incremental: false }));
}

#[test]
fn a_part_behind_a_gap_is_not_asked_for() {
    let (mut session, first) = up_to_parts(true);
    let held = session.poll(BEGUN).expect("the next version is asked for");
    let gap = PLAYLIST
        .replace("\"/v0/4.1.m4s\"", "\"/v0/4.1.m4s\",GAP=YES")
        .replace("#EXT-X-PRELOAD-HINT:TYPE=PART,", "#EXT-X-PART:DURATION=0.166666667,");
    let version = Fetched { body: Ok(gap.into()), ..whole(&held, BEGUN, "") };
    session.on_fetched(BEGUN, &held, version);
    let asked = at(&mut session, BEGUN + Duration::from_millis(150));
    assert!(asked.iter().all(is_held), "{asked:?}");
    assert!(session.stream.is_some_and(|stream| stream.tracks[0].is_fetching(first.number)));
}

/// The first two parts have come, and the third, which was hinted at, is under way. Of the next version of the list, the end is
/// `listed`, from the third part on.
fn behind_the_hint(mut session: Session, listed: &str) -> Session {
    let held = session.poll(BEGUN).expect("the next version is asked for");
    assert!(is_held(&held), "{held:?}");
    for _ in 0..2 {
        let part = session.in_flight().find(|request| !is_held(&request.fetch));
        let part = part.expect("a part is under way").fetch.clone();
        session.on_fetched(BEGUN, &part, whole(&part, BEGUN, ""));
        session.poll(BEGUN);
    }
    let hint = "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/4.2.m4s\"\n";
    assert!(PLAYLIST.ends_with(hint));
    let body = PLAYLIST.replace(hint, listed).into();
    session.on_fetched(BEGUN, &held, Fetched { body: Ok(body), ..whole(&held, BEGUN, "") });
    session
}

#[test]
fn behind_a_part_that_was_hinted_at_the_next_is_asked_for_once_it_is_known() {
    let listed = "#EXT-X-PART:DURATION=0.1,URI=\"/v0/4.2.m4s\"\n\
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/4.3.m4s\"\n";
    let mut session = behind_the_hint(up_to_parts(true).0, listed);
    assert_eq!(media(&at(&mut session, BEGUN)), ["/v0/4.3.m4s"]);
}

/// The third part ends the segment.
const BOUNDARY: &str = "#EXT-X-PART:DURATION=0.166666667,URI=\"/v0/4.2.m4s\"\n#EXTINF:1,\n/v0/4.m4s\n\
    #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/5.0.m4s\"\n";

#[test]
fn the_first_part_of_a_segment_is_asked_for_ahead_if_its_rung_is_the_same() {
    let mut session = behind_the_hint(up_to_parts(true).0, BOUNDARY);
    assert_eq!(media(&at(&mut session, BEGUN)), ["/v0/5.0.m4s"]);
    assert_eq!(video(&mut session).following, Some(0));
}

/// The rung is chosen a part early, and only once.
#[test]
fn a_change_of_rung_waits_for_the_part_under_way_and_for_none_ahead() {
    let mut session = behind_the_hint(up_to_parts(true).0, BOUNDARY);
    video(&mut session).following = Some(1);
    assert_eq!(media(&at(&mut session, BEGUN)).len(), 0);
    let track = video(&mut session);
    assert_eq!((track.choice, track.following), (Some(0), Some(1)));
    let part = track.in_flight.as_ref().expect("the third part is under way").fetch.clone();
    let What::Segment { segment, .. } = &part.what else { panic!("{:?}", part.what) };
    track.on_segment(segment);
    assert_eq!((track.choice, track.following), (Some(1), None));
}

/// Over HTTP/2 and 3 the second may be there first.
#[test]
fn what_comes_out_of_order_is_played_in_order() {
    let (mut session, first, second, now) = both();
    let before = buffered(&session);
    session.on_chunk(now, second.number, &chunk(now, 106, 0));
    assert_eq!(session.length_of(&second), None);
    session.on_fetched(now, &second, whole(&second, now, ""));
    assert_eq!((buffered(&session), session.in_flight().count()), (before, 2));
    session.on_fetched(now, &first, whole(&first, now, ""));
    // The second is as long as its only chunk: two frames of 24 a second.
    let end = Duration::from_nanos(4_416_666_667 + 83_333_333);
    assert_eq!((buffered(&session), session.in_flight().count()), (end, 1));
}

#[test]
fn what_is_behind_a_part_that_does_not_come_is_given_up() {
    let (mut session, first, second, now) = both();
    let reason = "the body ends within a chunk, of which 7 bytes came";
    let torn = Fetched { body: Err(reason.to_owned()), ..whole(&first, now, "") };
    session.on_fetched(now, &first, torn);
    let gone = session.abandon(now).expect("the second is of no use");
    assert_eq!(gone.request.fetch.number, second.number);
    assert_eq!(gone.reason, "what comes before it did not come");
    assert!(session.abandon(now).is_none());
}

/// A row of the table `requests` for each request, and no second one.
#[test]
fn what_has_come_is_not_given_up_by_a_seek_over_it() {
    let (mut session, first) = up_to_parts(true);
    let late = BEGUN + Duration::from_secs(10);
    session.on_fetched(late, &first, whole(&first, late, ""));
    let skipped = session.totals().expect("it plays").skipped;
    assert!(!skipped.is_zero(), "there was a seek");
    assert!(session.abandon(late).is_none());
}

/// Both parts are passed over.
#[test]
fn a_seek_gives_both_up_for_the_same_reason() {
    let (mut session, first, second, now) = both();
    let late = now + Duration::from_secs(10);
    let gone: Vec<_> = std::iter::from_fn(|| session.abandon(late)).collect();
    let mut numbers: Vec<u64> = gone.iter().map(|gone| gone.request.fetch.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [first.number, second.number]);
    assert!(gone.iter().all(|gone| gone.reason == "what it holds was passed over"), "{gone:?}");
}

/// DASH in chunks, with the segment at the playhead under way, of which these chunks have come; and when the next can be asked for.
fn segment_under_way(rung: usize, chunks: u64) -> (Session, Fetch, Time) {
    let (mut world, mut session, now) = begun();
    video(&mut session).choice = Some(rung);
    let first = next_segment(&mut session, &mut world, now);
    assert_eq!(first.resource.url.target(), format!("/v{rung}/15.m4s"));
    for number in 0..chunks {
        session.on_chunk(now, first.number, &chunk(now, 15 * 48, number));
    }
    assert_eq!(at(&mut session, now).len(), 0, "the next one does not exist");
    // Segment 16 begins to be captured at 2 s, and its first chunk, of two frames, is there 83 ms later.
    let there = session.wake.expect("it waits for the next one");
    assert_eq!(there.as_nanos() / 1_000_000, 2083);
    (session, first, there)
}

/// The last packet of a segment was lost: what comes behind it is what TCP repairs it by.
#[test]
fn the_next_segment_in_chunks_is_asked_for_when_it_begins_to_be_there() {
    let (mut session, first, there) = segment_under_way(1, 23);
    assert_eq!(at(&mut session, there - Duration::from_millis(1)).len(), 0);
    video(&mut session).following = Some(1);
    let asked = at(&mut session, there);
    assert_eq!(media(&asked), ["/v1/16.m4s"]);
    assert_eq!(asked[0].priority, Some(Priority { urgency: 3, incremental: false }));
    assert_eq!(at(&mut session, there).len(), 0, "one at a time");
    // All of the first has come: what came of the second is played behind it.
    let second = &asked[0];
    session.on_chunk(there, second.number, &chunk(there, 16 * 48, 0));
    session.on_fetched(there, &first, whole(&first, there, ""));
    assert_eq!(buffered(&session), Duration::from_secs(32) + Duration::from_nanos(83_333_333));
    assert!(video(&mut session).is_fetching(second.number));
}

/// Nothing is known of the network, so the lowest rung it is.
#[test]
fn the_rung_of_a_segment_is_chosen_when_the_one_before_has_begun_to_come() {
    let (mut session, first, there) = segment_under_way(0, 1);
    assert_eq!(media(&at(&mut session, there)), ["/v0/16.m4s"]);
    assert_eq!(video(&mut session).following, Some(0));
    // At the end of the first it is not chosen again.
    session.on_fetched(there, &first, whole(&first, there, ""));
    assert_eq!(video(&mut session).following, None);
    assert_eq!(at(&mut session, there).len(), 0);
}

#[test]
fn before_that_nothing_is_asked_for() {
    let (mut world, mut session, now) = begun();
    let first = next_segment(&mut session, &mut world, now);
    assert_eq!(first.resource.url.target(), "/v1/15.m4s");
    let late = now + Duration::from_secs(1);
    assert_eq!((at(&mut session, late).len(), video(&mut session).following), (0, None));
}

/// Its server's clock is behind.
#[test]
fn a_segment_that_was_not_there_ahead_is_asked_for_in_its_turn() {
    let (mut session, first, there) = segment_under_way(0, 23);
    let second = at(&mut session, there).remove(0);
    let missing = Fetched { body: Err("status 404".into()), ..whole(&second, there, "") };
    session.on_fetched(there, &second, missing);
    assert_eq!(at(&mut session, there).len(), 0);
    session.on_fetched(there, &first, whole(&first, there, ""));
    let again = at(&mut session, there).remove(0);
    assert_eq!((again.resource.url.target(), again.attempt), ("/v0/16.m4s", 1));
}

#[test]
fn behind_a_segment_that_fails_the_next_is_given_up() {
    let (mut session, first, there) = segment_under_way(0, 23);
    let second = at(&mut session, there).remove(0);
    let torn = Fetched { body: Err("reset".into()), ..whole(&first, there, "") };
    session.on_fetched(there, &first, torn);
    let gone = session.abandon(there).expect("the second is of no use");
    assert_eq!(
        (gone.request.fetch.number, gone.reason.as_str()),
        (second.number, "what comes before it did not come")
    );
}

#[test]
fn a_segment_in_chunks_of_another_rung_waits_for_the_one_under_way() {
    let (mut session, _, there) = segment_under_way(1, 23);
    video(&mut session).following = Some(0);
    assert_eq!(at(&mut session, there).len(), 0);
}

/// Each would wait for a whole segment of video.
#[test]
fn a_segment_of_sound_is_not_asked_for_ahead() {
    let (mut session, _, there) = segment_under_way(1, 23);
    video(&mut session).following = Some(1);
    video(&mut session).kind = TrackKind::Audio;
    assert_eq!(at(&mut session, there).len(), 0);
}

/// Without chunks the whole of it must be there before any of it is.
#[test]
fn a_whole_segment_is_not_asked_for_ahead() {
    let mut world = world(live(), &[(0, 400)]);
    let target_latency = Some(Duration::from_secs(6));
    let run = run(
        &mut world,
        Config { target_latency, ..config(Protocol::Dash, Algorithm::Throughput) },
        Time::from_secs(30),
    );
    let is_media = |fetch: &Fetch| matches!(fetch.what, What::Segment { .. });
    let mut asked = run.fetches.iter().filter(|(_, fetch, _)| is_media(fetch));
    assert!(asked.clone().count() > 10);
    assert!(asked.all(|(_, fetch, _)| fetch.lane < RELOADS), "one for each track at a time");
}

#[test]
fn a_player_with_a_connection_for_each_request_asks_for_parts_one_by_one() {
    let (mut session, first) = up_to_parts(false);
    let is_media = |fetch: &Fetch| matches!(fetch.what, What::Segment { .. });
    let asked = at(&mut session, BEGUN);
    assert!(is_media(&first) && !asked.iter().any(is_media), "{asked:?}");
}

#[test]
fn and_for_segments_in_chunks_too() {
    let (mut session, _, there) = segment_under_way(1, 23);
    session.config.priorities = false;
    assert_eq!(at(&mut session, there).len(), 0);
}
