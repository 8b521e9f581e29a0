//! Origins whose chunks and parts are not what they should be.

use super::*;

/// A body that is whole by its length, and ends within a chunk.
fn torn(fetch: &Fetch, now: Time) -> Fetched {
    let reason = "the body ends within a chunk, of which 7 bytes came";
    Fetched { body: Err(reason.to_owned()), ..whole(fetch, now, "") }
}

/// It is asked for again after one second and after two, of the lowest rung, and then the live edge is too far away. What comes of
/// each segment is played, so playback goes on.
#[test]
fn a_segment_that_ends_within_a_chunk_is_asked_for_again_within_bounds() {
    let (mut world, mut session, mut now) = begun();
    let mut asked = Vec::new();
    while now < Time::from_secs(60) && session.failure().is_none() {
        while let Some(fetch) = session.poll(now) {
            let What::Segment { segment, .. } = &fetch.what else {
                let fetched = Fetched { finished: now, ..world.fetch(&fetch, now) };
                session.on_fetched(now, &fetch, fetched);
                continue;
            };
            asked.push((now, fetch.resource.url.target().to_owned()));
            for number in 0..12 {
                session.on_chunk(now, fetch.number, &chunk(now, segment.number * 48, number));
            }
            session.on_fetched(now, &fetch, torn(&fetch, now));
        }
        now += Duration::from_millis(100);
        session.advance(now);
    }
    let targets: Vec<&str> = asked.iter().take(3).map(|(_, target)| target.as_str()).collect();
    assert_eq!(targets, ["/v1/15.m4s", "/v0/15.m4s", "/v0/15.m4s"]);
    for (pair, least) in asked.windows(2).zip([1.0, 2.0]) {
        let wait = (pair[1].0 - pair[0].0).as_secs_f64();
        assert!((least..least + 0.2).contains(&wait), "{asked:?}");
    }
    // Each try but that which skips a segment waits for a second at least.
    assert!(asked.len() < 80, "{} requests in a minute", asked.len());
    assert_eq!(session.failure(), None);
}

/// Plays until playback is given up, and answers requests for media by `answer`: when that was, why, and how many were made.
fn until_it_gives_up(answer: fn(&Fetch, Time) -> Option<Fetched>) -> (Time, String, usize) {
    let (mut world, mut session, mut now) = begun();
    let mut asked = 0;
    while now < Time::from_secs(200) {
        if let Some(reason) = session.failure() {
            return (now, reason.to_owned(), asked);
        }
        while let Some(fetch) = session.poll(now) {
            let fetched = match &fetch.what {
                What::Segment { .. } => {
                    asked += 1;
                    answer(&fetch, now)
                }
                _ => Some(Fetched { finished: now, ..world.fetch(&fetch, now) }),
            };
            if let Some(fetched) = fetched {
                session.on_fetched(now, &fetch, fetched);
            }
        }
        while session.abandon(now).is_some() {}
        now += Duration::from_millis(100);
        session.advance(now);
    }
    panic!("it goes on: {:?}", session.no_media());
}

/// The live edge moves away before a segment has been tried often enough to be skipped.
#[test]
fn media_that_is_not_there_is_given_up_after_two_minutes() {
    let (at, reason, asked) = until_it_gives_up(|fetch, now| {
        let body = Err("status 404".to_owned());
        Some(Fetched { status: Some(404), body, ..whole(fetch, now, "") })
    });
    assert!((120.0..130.0).contains(&at.as_secs_f64()), "{at}");
    assert!(reason.starts_with("no video for 2.0") && reason.ends_with("status 404"), "{reason}");
    assert!((40..200).contains(&asked), "{asked} requests");
}

#[test]
fn media_that_never_comes_is_given_up_after_two_minutes() {
    let (at, reason, asked) = until_it_gives_up(|_, _| None);
    assert!((120.0..130.0).contains(&at.as_secs_f64()), "{at}");
    assert!(reason.ends_with("nothing came in time"), "{reason}");
    assert!((20..80).contains(&asked), "{asked} requests");
}

/// While nothing is asked for, as of a source that pauses, no time counts.
#[test]
fn two_failures_far_apart_are_not_one_trouble() {
    let (_, mut session, _) = begun();
    let track = video(&mut session);
    track.without_media(Time::from_secs(10), "status 404");
    assert_eq!(track.is_hopeless(Time::from_secs(140)), None);
    track.without_media(Time::from_secs(140), "status 404");
    let (lasts, _) = track.trouble(Time::from_secs(145)).expect("the second");
    assert_eq!(lasts, Duration::from_secs(5));
    track.on_media();
    assert_eq!(track.trouble(Time::from_secs(145)), None);
}

#[test]
fn a_hold_back_of_less_than_two_parts_is_two_parts() {
    for (told, taken_ms) in [("0", 834), ("0.1", 834), ("1.251", 1251)] {
        let playlist = PLAYLIST.replace("BACK=1.251", &format!("BACK={told}"));
        let mut session = Session::new(config(Protocol::Hls, Algorithm::Throughput));
        let now = Time::from_millis(900);
        for body in [MASTER, playlist.as_str()] {
            let fetch = session.poll(now).expect("a playlist is asked for");
            let fetched = Fetched { body: Ok(body.to_owned().into()), ..whole(&fetch, now, "") };
            session.on_fetched(now, &fetch, fetched);
        }
        let (hold_back, _) = video(&mut session).hold_back_and_edge().expect("it has parts");
        assert_eq!(hold_back, Some(Duration::from_millis(taken_ms)), "{told}");
        let next = next_of(&mut session, now);
        assert!(next.starts_with("/v0/"), "{next}");
    }
}

/// The first request that is for media.
fn next_of(session: &mut Session, now: Time) -> String {
    for _ in 0..10 {
        let Some(fetch) = session.poll(now) else { break };
        if let What::Segment { .. } = fetch.what {
            return fetch.resource.url.target().to_owned();
        }
    }
    panic!("no media is asked for")
}
