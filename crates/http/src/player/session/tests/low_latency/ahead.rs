//! Parts that are asked for while the one before them is still coming.

use super::*;
use crate::player::chunked::tests::init;

/// When the first part is asked for; its first byte comes 100 ms later.
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

/// 100 kB come at 1 MB/s from `first_byte` on. Returns the requests that are made at `now`.
fn at(session: &mut Session, first: &Fetch, now: Time) -> Vec<Fetch> {
    let first_byte = BEGUN + Duration::from_millis(100);
    let came = now.saturating_since(first_byte).as_nanos() / 1_000_000 * 1000;
    let progress = Progress {
        requested: Some(BEGUN),
        first_byte: Some(first_byte).filter(|first| *first < now),
        bytes: came,
        length: Some(100_000),
        ..Progress::default()
    };
    session.on_progress(first.number, progress);
    std::iter::from_fn(|| session.poll(now)).collect()
}

/// Whether it is for the next version of the playlist.
fn is_held(fetch: &Fetch) -> bool {
    fetch.resource.url.target().contains("_HLS_msn")
}

/// The session, its request for the first part, and that for the second.
fn both() -> (Session, Fetch, Fetch, Time) {
    let (mut session, first) = up_to_parts(true);
    let held = at(&mut session, &first, BEGUN);
    assert!(held.iter().all(is_held), "{held:?}");
    // 50 kB are left after 50 ms: the next request is sent when as much as comes in 100 ms is left.
    let now = BEGUN + Duration::from_millis(150);
    let mut asked = at(&mut session, &first, now);
    let second = asked.pop().expect("the second part is asked for");
    assert_eq!((asked.len(), second.resource.url.target()), (0, "/v0/4.1.m4s"));
    assert!(second.lane != first.lane && second.attempt == 1, "{second:?}");
    (session, first, second, now)
}

fn buffered(session: &Session) -> Duration {
    let playout = session.stream.as_ref().and_then(|stream| stream.playout.as_ref());
    playout.expect("it plays").end_of(0)
}

/// A part takes 100 ms, as the wait for its first byte does, so the request for the next goes out with its first bytes.
#[test]
fn the_next_part_is_asked_for_a_round_trip_before_the_end_of_the_last() {
    let (mut session, first, second, now) = both();
    assert_eq!(at(&mut session, &first, now).len(), 0, "one at a time");
    session.on_fetched(now, &first, whole(&first, now, ""));
    // It is what is under way now; the part after it is not listed.
    assert!(session.poll(now).is_none());
    session.on_fetched(now, &second, whole(&second, now, ""));
    let hinted = session.poll(now).expect("the hint");
    assert_eq!(hinted.resource.url.target(), "/v0/4.2.m4s");
    assert!(session.abandon(now).is_none());
}

/// 100 kB at 100 kB/s: 900 ms are left after 100 ms, and the wait was 100 ms.
#[test]
fn a_part_that_is_far_from_its_end_is_alone_on_the_link() {
    let (mut session, first) = up_to_parts(true);
    let slow = |now: Time, bytes| Progress {
        requested: Some(BEGUN),
        first_byte: Some(BEGUN + Duration::from_millis(100)).filter(|first| *first < now),
        bytes,
        length: Some(100_000),
        ..Progress::default()
    };
    let now = BEGUN + Duration::from_millis(200);
    session.on_progress(first.number, slow(now, 10_000));
    let asked: Vec<_> = std::iter::from_fn(|| session.poll(now)).collect();
    assert!(asked.iter().all(is_held), "{asked:?}");
    assert_eq!(session.wake, Some(BEGUN + Duration::from_millis(1000)));
}

/// How long the bytes of the first read had been there is not known.
#[test]
fn the_first_read_says_nothing_about_the_rate() {
    let (mut session, first) = up_to_parts(true);
    let first_byte = BEGUN + Duration::from_millis(100);
    let progress = Progress {
        requested: Some(BEGUN),
        first_byte: Some(first_byte),
        first_bytes: 16_000,
        bytes: 16_000,
        length: Some(100_000),
        ..Progress::default()
    };
    session.on_progress(first.number, progress);
    let now = first_byte + Duration::from_millis(1);
    let asked: Vec<_> = std::iter::from_fn(|| session.poll(now)).collect();
    assert!(asked.iter().all(is_held), "{asked:?}");
}

/// DASH and players over HTTP/1.1 ask for nothing ahead, and what is no part comes as a whole.
#[test]
fn the_rate_of_parts_matters_before_their_first_chunk_where_they_share_a_connection() {
    let (_, part) = up_to_parts(true);
    let awaits = |protocol, priorities, chunks| {
        let config = config(protocol, Algorithm::Throughput);
        let session = Session::new(Config { priorities, ..config });
        session.awaits_rate(&Fetch { chunks, ..part.clone() })
    };
    assert!(awaits(Protocol::Hls, true, Some(init())));
    assert!(!awaits(Protocol::Hls, true, None));
    assert!(!awaits(Protocol::Hls, false, Some(init())));
    assert!(!awaits(Protocol::Dash, true, Some(init())));
}

#[test]
fn a_part_behind_a_gap_is_not_asked_for() {
    let (mut session, first) = up_to_parts(true);
    let held = at(&mut session, &first, BEGUN).pop().expect("the next version is asked for");
    let gap = PLAYLIST
        .replace("\"/v0/4.1.m4s\"", "\"/v0/4.1.m4s\",GAP=YES")
        .replace("#EXT-X-PRELOAD-HINT:TYPE=PART,", "#EXT-X-PART:DURATION=0.166666667,");
    let version = Fetched { body: Ok(gap.into()), ..whole(&held, BEGUN, "") };
    session.on_fetched(BEGUN, &held, version);
    let asked = at(&mut session, &first, BEGUN + Duration::from_millis(150));
    assert!(asked.iter().all(is_held), "{asked:?}");
}

/// The server holds the request for it until it is there, which says nothing about the one after it.
#[test]
fn behind_a_part_that_was_hinted_at_no_part_is_asked_for() {
    let (mut session, first) = up_to_parts(true);
    let held = at(&mut session, &first, BEGUN).pop().expect("the next version is asked for");
    session.on_fetched(BEGUN, &first, whole(&first, BEGUN, ""));
    let second = session.poll(BEGUN).expect("the second part is asked for");
    session.on_fetched(BEGUN, &second, whole(&second, BEGUN, ""));
    let hinted = session.poll(BEGUN).expect("the hint");
    assert_eq!(hinted.resource.url.target(), "/v0/4.2.m4s");
    let listed = PLAYLIST.replace(
        "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/4.2.m4s\"\n",
        "#EXT-X-PART:DURATION=0.1,URI=\"/v0/4.2.m4s\"\n\
         #EXT-X-PART:DURATION=0.1,URI=\"/v0/4.3.m4s\"\n",
    );
    assert!(listed.contains("4.3"));
    let version = Fetched { body: Ok(listed.into()), ..whole(&held, BEGUN, "") };
    session.on_fetched(BEGUN, &held, version);
    let asked = at(&mut session, &hinted, BEGUN + Duration::from_millis(150));
    assert!(asked.iter().all(is_held), "{asked:?}");
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
    assert_eq!(gone.reason, "the part before it did not come");
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

#[test]
fn a_player_with_a_connection_for_each_request_asks_for_parts_one_by_one() {
    let (mut session, first) = up_to_parts(false);
    let is_media = |fetch: &Fetch| matches!(fetch.what, What::Segment { .. });
    for ms in [100, 150, 199] {
        let asked = at(&mut session, &first, BEGUN + Duration::from_millis(ms));
        assert!(!asked.iter().any(is_media), "{asked:?}");
    }
}
