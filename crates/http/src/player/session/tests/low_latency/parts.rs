//! Where the player goes on in the parts of HLS: after a jump, and when a part comes too slowly.

use super::*;

const RUNGS: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,FRAME-RATE=24\nv0.m3u8\n\
    #EXT-X-STREAM-INF:BANDWIDTH=1500000,FRAME-RATE=24\nv1.m3u8\n";
/// The same stream four seconds later.
const LATER: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n\
    #EXT-X-SERVER-CONTROL:PART-HOLD-BACK=1.251\n#EXT-X-PART-INF:PART-TARGET=0.417\n\
    #EXT-X-MEDIA-SEQUENCE:6\n#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:02.000Z\n\
    #EXTINF:1,\n/v0/6.m4s\n#EXTINF:1,\n/v0/7.m4s\n\
    #EXT-X-PART:DURATION=0.416666667,URI=\"/v0/8.0.m4s\",INDEPENDENT=YES\n\
    #EXT-X-PART:DURATION=0.416666667,URI=\"/v0/8.1.m4s\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/8.2.m4s\"\n";

/// A session of two rungs, and the first request for `wanted`; all requests before it are answered at once. From segment 4 on,
/// the higher rung is chosen.
fn up_to(wanted: &str, now: Time) -> (Session, Fetch) {
    let mut session = Session::new(config(Protocol::Hls, Algorithm::Throughput));
    // Its server holds no playlists.
    let playlist = PLAYLIST.replace("CAN-BLOCK-RELOAD=YES,", "");
    for _ in 0..20 {
        let fetch = session.poll(now).expect("it goes on");
        let target = fetch.resource.url.target().to_owned();
        if target == wanted {
            return (session, fetch);
        }
        let body = match &fetch.what {
            What::Manifest => RUNGS.to_owned(),
            What::Playlist { rung } => playlist.replace("/v0/", &format!("/v{rung}/")),
            _ => String::new(),
        };
        let fetched = Fetched { body: Ok(body.into()), ..whole(&fetch, now, "") };
        session.on_fetched(now, &fetch, fetched);
        if target == "/v0/3.m4s" {
            video(&mut session).choice = Some(1);
        }
    }
    panic!("{wanted} is not asked for")
}

/// Within a segment, frames refer to what came before them of the same rung.
#[test]
fn a_part_is_given_up_for_another_rung_only_where_decoding_can_begin() {
    let begun = Time::from_millis(900);
    for (wanted, given_up) in [("/v1/4.0.m4s", true), ("/v1/4.1.m4s", false)] {
        let (mut session, fetch) = up_to(wanted, begun);
        // 1 kB/s of 100 kB.
        let gone = (1..=10u64).find_map(|look| {
            let progress = Progress {
                requested: Some(begun),
                first_byte: Some(begun),
                bytes: 100 * look,
                length: Some(100_000),
                ..Progress::default()
            };
            session.on_progress(fetch.number, progress);
            session.abandon(begun + Duration::from_millis(100 * look))
        });
        assert_eq!(gone.is_some(), given_up, "{wanted}: {gone:?}");
    }
}

/// A part that was hinted at is asked for before it is there.
#[test]
fn the_wait_for_a_part_that_is_given_up_says_nothing_about_the_network() {
    let begun = Time::from_millis(900);
    let (mut session, fetch) = up_to("/v1/4.0.m4s", begun);
    let first_byte = begun + Duration::from_millis(400);
    let gone = (0..20u64).find_map(|look| {
        let progress = Progress {
            requested: Some(begun),
            first_byte: (look > 4).then_some(first_byte),
            bytes: 3000 * look.saturating_sub(4),
            length: Some(200_000),
            ..Progress::default()
        };
        session.on_progress(fetch.number, progress);
        session.abandon(begun + Duration::from_millis(100 * look))
    });
    assert!(gone.is_some(), "after six looks at what has come");
    // 18 kB in 0.6 s, and not in a second; the segment before was 1 kB in no time.
    let kbps = session.view().estimate.map(|rate| rate.as_bps() / 1000);
    assert_eq!(kbps, Some(253));
}

/// The last part that was listed before is seconds older than what is shown next, and takes the link's time for nothing.
#[test]
fn after_a_jump_beyond_the_list_the_list_of_the_next_rung_comes_first() {
    let mut now = Time::from_millis(900);
    // It never comes.
    let (mut session, _) = up_to("/v1/4.2.m4s", now);
    let gone = loop {
        now += Duration::from_millis(100);
        assert!(now < Time::from_secs(10), "the player jumps when it is 3 s late");
        if let Some(gone) = session.abandon(now) {
            break gone;
        }
    };
    assert_eq!(gone.request.fetch.resource.url.target(), "/v1/4.2.m4s");
    let list = session.poll(now).expect("a list is asked for");
    assert_eq!(list.resource.url.target(), "/v0.m3u8");
    session.on_fetched(now, &list, whole(&list, now, LATER));
    // The playhead is at 7.8 s.
    let next = session.poll(now).expect("media is asked for");
    assert_eq!(next.resource.url.target(), "/v0/7.m4s");
}
