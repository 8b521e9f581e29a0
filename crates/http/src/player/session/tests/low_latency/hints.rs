//! Parts that are hinted at and not there, that are gaps, or that are ranges of their segment.

use super::*;

const HINT: &str = "/v0/4.2.m4s";
/// The end of the playlist, which hints at that part.
const HINTED: &str = "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/4.2.m4s\"\n";

fn answer(fetch: &Fetch, now: Time, body: String) -> Fetched {
    Fetched { body: Ok(body.into()), ..whole(fetch, now, "") }
}

fn refusal(fetch: &Fetch, now: Time, status: u16) -> Fetched {
    let body = Err(format!("status {status}"));
    Fetched { status: Some(status), body, ..whole(fetch, now, "") }
}

/// A session that plays `playlist`, and its first request for `wanted`; all requests before it are answered at once.
fn up_to(wanted: &str, playlist: &str, now: Time) -> (Session, Fetch) {
    let mut session = Session::new(config(Protocol::Hls, Algorithm::Throughput));
    for _ in 0..20 {
        let fetch = session.poll(now).expect("it goes on");
        if fetch.resource.url.target() == wanted {
            return (session, fetch);
        }
        let body = match &fetch.what {
            What::Manifest => MASTER,
            What::Playlist { .. } => playlist,
            _ => "",
        };
        session.on_fetched(now, &fetch, answer(&fetch, now, body.to_owned()));
    }
    panic!("{wanted} is not asked for")
}

/// A session whose request for the hinted part gets this status at 1 s, while a request for the next version of the playlist is
/// held.
fn refused(status: u16) -> (Session, Fetch, Time) {
    let (mut session, hinted) = up_to(HINT, PLAYLIST, Time::from_millis(900));
    let now = Time::from_secs(1);
    let held = session.poll(now).expect("the next version is asked for");
    assert_eq!(held.resource.url.target(), "/v.m3u8?_HLS_msn=4&_HLS_part=2");
    session.on_fetched(now, &hinted, refusal(&hinted, now, status));
    (session, held, now)
}

/// rfc8216bis §4.4.5.3: what comes next may turn out to be something else.
#[test]
fn a_hint_that_is_taken_back_is_replaced_at_once_and_once() {
    let (mut session, _, now) = refused(404);
    let list = session.poll(now).expect("the playlist is asked for");
    assert_eq!(list.resource.url.target(), "/v.m3u8");
    let other = PLAYLIST.replace(HINT, "/v0/other.m4s");
    session.on_fetched(now, &list, answer(&list, now, other));
    let next = session.poll(now).expect("another part is hinted at");
    assert_eq!((next.resource.url.target(), next.attempt), ("/v0/other.m4s", 1));
    // A server that takes back each hint is asked no more often than one that has lost a segment.
    session.on_fetched(now, &next, refusal(&next, now, 404));
    assert!(session.poll(now).is_none());
    let again = session.poll(now + Duration::from_secs(1)).expect("it is tried again");
    assert_eq!((again.resource.url.target(), again.attempt), ("/v0/other.m4s", 2));
}

#[test]
fn a_hint_that_is_refused_and_kept_is_asked_for_again_when_it_is_listed() {
    let (mut session, held, now) = refused(404);
    let list = session.poll(now).expect("the playlist is asked for");
    session.on_fetched(now, &list, whole(&list, now, PLAYLIST));
    assert!(session.poll(now).is_none(), "the next version is on its way");
    let listed = PLAYLIST.replace(
        HINTED,
        "#EXT-X-PART:DURATION=0.166666667,URI=\"/v0/4.2.m4s\"\n\
         #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/5.0.m4s\"\n",
    );
    session.on_fetched(now, &held, answer(&held, now, listed));
    let again = session.poll(now).expect("it is there");
    assert_eq!((again.resource.url.target(), again.attempt), (HINT, 1));
}

/// What the server held was asked for before the hint was refused; a newer version has come since.
#[test]
fn a_version_that_was_held_is_no_reason_to_ask_for_another_at_once() {
    let (mut session, held, now) = refused(404);
    let list = session.poll(now).expect("the playlist is asked for");
    session.on_fetched(now, &list, whole(&list, now, PLAYLIST));
    let (requested, later) = (Time::from_millis(950), now + Duration::from_millis(100));
    let unchanged = Fetched { requested, ..whole(&held, later, PLAYLIST) };
    session.on_fetched(later, &held, unchanged);
    assert!(session.poll(later).is_none());
}

#[test]
fn a_server_that_fails_is_not_one_that_takes_a_hint_back() {
    let (mut session, _, now) = refused(503);
    assert!(session.poll(now).is_none());
    let again = session.poll(now + Duration::from_secs(1)).expect("it is tried again");
    assert_eq!((again.resource.url.target(), again.attempt), (HINT, 2));
}

/// Frames after a gap refer to what is missing, up to the next part with which decoding can begin.
#[test]
fn a_part_that_is_a_gap_is_skipped_and_not_asked_for() {
    let mut now = Time::from_millis(900);
    let gap = PLAYLIST.replace("\"/v0/4.1.m4s\"", "\"/v0/4.1.m4s\",GAP=YES");
    let (mut session, last) = up_to("/v0/4.0.m4s", &gap, now);
    session.on_fetched(now, &last, whole(&last, now, ""));
    let held = session.poll(now).expect("the next version is asked for");
    assert_eq!(held.resource.url.target(), "/v.m3u8?_HLS_msn=4&_HLS_part=2");
    assert!(session.poll(now).is_none());
    // What is buffered ends 0.77 s later.
    now = Time::from_secs(2);
    session.advance(now);
    let before = session.totals().expect("it plays").skipped;
    let later = gap.replace(
        HINTED,
        "#EXT-X-GAP\n#EXTINF:1,\n/v0/4.m4s\n\
         #EXT-X-PART:DURATION=0.416666667,URI=\"/v0/5.0.m4s\",INDEPENDENT=YES\n\
         #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/5.1.m4s\"\n",
    );
    session.on_fetched(now, &held, answer(&held, now, later));
    let next = (0..5).find_map(|_| session.poll(now)).expect("it goes on after the gap");
    assert_eq!(next.resource.url.target(), "/v0/5.0.m4s");
    // From 4.416666667 s to 5 s.
    let skipped = session.totals().expect("it plays").skipped - before;
    assert_eq!(skipped, Duration::from_nanos(583_333_333));
}

#[test]
fn parts_that_are_ranges_are_asked_for_as_such() {
    let now = Time::from_millis(900);
    let ranges = PLAYLIST
        .replace("\"/v0/4.0.m4s\"", "\"/v0/4.m4s\",BYTERANGE=\"500@0\"")
        .replace("\"/v0/4.1.m4s\"", "\"/v0/4.m4s\",BYTERANGE=\"700\"")
        .replace("\"/v0/4.2.m4s\"", "\"/v0/4.m4s\",BYTERANGE-START=1200");
    let (mut session, mut fetch) = up_to("/v0/4.m4s", &ranges, now);
    let mut asked = vec![fetch.resource.range];
    for _ in 0..2 {
        session.on_fetched(now, &fetch, whole(&fetch, now, ""));
        fetch = session.poll(now).expect("a part is asked for");
        assert_eq!(fetch.resource.url.target(), "/v0/4.m4s");
        asked.push(fetch.resource.range);
    }
    assert_eq!(asked, [Some((0, Some(499))), Some((500, Some(1199))), Some((1200, None))]);
}
