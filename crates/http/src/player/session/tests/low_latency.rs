//! Segments and parts that come chunk by chunk, which the tests hand over one by one.

use super::super::super::chunked::Chunk;
use suiro_units::Bytes;

use super::*;
use crate::origin::chunks::{self, Chunks};

mod ahead;
mod faults;
mod hints;
mod parts;

/// Two frames of 24 a second.
const TICKS: u64 = 2;

/// Chunk `number` of the segment or part that begins at that tick.
fn chunk(now: Time, start: u64, number: u64) -> Chunk {
    let decode_time = start + number * TICKS;
    Chunk {
        at: now,
        decode_time,
        duration: TICKS,
        timescale: 24,
        bytes: Bytes::ZERO,
        begun: now,
        burst: None,
    }
}

/// What has come of a request, all of it at once.
fn whole(fetch: &Fetch, now: Time, body: &'static str) -> Fetched {
    Fetched {
        requested: now,
        first_byte: Some(now),
        finished: now,
        held: Duration::ZERO,
        handshake: Duration::ZERO,
        server: Default::default(),
        retry_after: None,
        status: Some(200),
        early: None,
        bytes: 1000,
        url: fetch.resource.url.clone(),
        body: Ok(body.into()),
    }
}

/// A camera without sound, whose segments of 2 s come in 24 chunks.
fn in_chunks() -> Catalogue {
    let mut catalogue = catalogue(live());
    catalogue.tracks.truncate(1);
    let cut = |n| chunks::Chunk { duration: TICKS, independent: n == 0 };
    let segment: Vec<_> = (0..24).map(cut).collect();
    for rung in &mut catalogue.tracks[0].rungs {
        rung.chunks = Chunks::new(24, &vec![segment.clone(); 15], Duration::from_millis(500));
    }
    catalogue
}

/// Answers requests until one for a segment comes.
fn next_segment(session: &mut Session, world: &mut World, now: Time) -> Fetch {
    while let Some(fetch) = session.poll(now) {
        if let What::Segment { .. } = fetch.what {
            return fetch;
        }
        let fetched = Fetched { finished: now, ..world.fetch(&fetch, now) };
        session.on_fetched(now, &fetch, fetched);
    }
    panic!("no segment is asked for")
}

fn video(session: &mut Session) -> &mut TrackState {
    &mut session.stream.as_mut().expect("a manifest has come").tracks[0]
}

/// DASH in chunks near the live edge, after its manifest has come: the next request is for segment 15 of the higher rung.
fn begun() -> (World, Session, Time) {
    let mut world = world(live(), &[(0, 8000)]);
    world.catalogue = in_chunks();
    let target_latency = Some(Duration::from_millis(1500));
    let config = config(Protocol::Dash, Algorithm::Throughput);
    let mut session = Session::new(Config { target_latency, ..config });
    // Segment 15 of the stream, which began 30 s before, begins at the playhead.
    let now = Time::from_millis(1500);
    let manifest = session.poll(now).expect("the manifest is asked for");
    let fetched = Fetched { finished: now, ..world.fetch(&manifest, now) };
    session.on_fetched(now, &manifest, fetched);
    video(&mut session).choice = Some(1);
    (world, session, now)
}

/// After a segment is given up, the part of it that was buffered is played, and the rest comes from the rung requested next.
#[test]
fn frames_and_the_playhead_agree_on_the_rung_of_a_segment_that_was_given_up() {
    let (mut world, mut session, mut now) = begun();
    let first = next_segment(&mut session, &mut world, now);
    assert_eq!(first.resource.url.target(), "/v1/15.m4s");
    for number in 0..12 {
        session.on_chunk(now, first.number, &chunk(now, 15 * 48, number));
    }
    let track = video(&mut session);
    (track.in_flight, track.choice) = (None, Some(0));
    track.watch.end();
    let second = next_segment(&mut session, &mut world, now);
    assert_eq!(second.resource.url.target(), "/v0/15.m4s");
    for number in 0..24 {
        session.on_chunk(now, second.number, &chunk(now, 15 * 48, number));
    }
    session.on_fetched(now, &second, whole(&second, now, ""));
    let (mut shown, mut rates) = (None, Vec::new());
    for _ in 0..270 {
        now += Duration::from_millis(7);
        session.advance(now);
        let frames = session.take_frames();
        let last = frames.iter().rev().find(|frame| frame.displayed.is_some());
        shown = last.map_or(shown, |frame| frame.rate);
        let view = session.view();
        assert_eq!((view.state, view.rung), (State::Playing, shown), "at {}", view.position);
        rates.extend(shown.map(|rate| rate.as_bps() / 1000));
    }
    // A second of the first.
    assert_eq!((rates[141], rates[142]), (700, 300), "{rates:?}");
    rates.dedup();
    assert_eq!(rates, [700, 300]);
}

const MASTER: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000,FRAME-RATE=24\nv.m3u8\n";
/// A stream that began 4 s before the epoch, in parts of five chunks, and of two at the end of a segment.
const PLAYLIST: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n\
    #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.251\n#EXT-X-PART-INF:PART-TARGET=0.417\n\
    #EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:56:56.000Z\n\
    #EXTINF:1,\n/v0/0.m4s\n#EXTINF:1,\n/v0/1.m4s\n#EXTINF:1,\n/v0/2.m4s\n#EXTINF:1,\n/v0/3.m4s\n\
    #EXT-X-PART:DURATION=0.416666667,URI=\"/v0/4.0.m4s\",INDEPENDENT=YES\n\
    #EXT-X-PART:DURATION=0.416666667,URI=\"/v0/4.1.m4s\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/v0/4.2.m4s\"\n";

#[test]
fn a_part_that_was_hinted_at_is_as_long_as_its_chunks() {
    let mut session = Session::new(config(Protocol::Hls, Algorithm::Throughput));
    let now = Time::from_millis(900);
    let mut asked = Vec::new();
    let hinted = loop {
        let fetch = session.poll(now).expect("it goes on to the hint");
        let target = fetch.resource.url.target().to_owned();
        let body = match &fetch.what {
            What::Manifest => MASTER,
            // The next version is held.
            What::Playlist { .. } if target.contains("_HLS_msn") => continue,
            What::Playlist { .. } => PLAYLIST,
            _ if target == "/v0/4.2.m4s" => break fetch,
            _ => "",
        };
        asked.push(target);
        session.on_fetched(now, &fetch, whole(&fetch, now, body));
    };
    assert_eq!(asked[2..], ["/v0/3.m4s", "/v0/4.0.m4s", "/v0/4.1.m4s"]);
    let What::Segment { segment, .. } = &hinted.what else { panic!("{:?}", hinted.what) };
    assert_eq!((segment.duration, session.length_of(&hinted)), (Duration::from_millis(417), None));
    for number in 0..2 {
        session.on_chunk(now, hinted.number, &chunk(now, 116, number));
    }
    // Of two chunks, 167 ms.
    let length = session.length_of(&hinted);
    assert_eq!(length, Some(Duration::from_nanos(166_666_666)));
    session.on_fetched(now, &hinted, whole(&hinted, now, ""));
    assert_eq!(session.length_of(&hinted), None, "it is over");
}
