//! Origins that are broken, slow, hostile or dead. The player records the fault, tries again within
//! bounds, and neither spins nor grows.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration as StdDuration;
use suiro_record::words::PlayerState;

use crate::common::{job, play, requests, states};
use suiro_http::Clock;
use suiro_http::player::PlayerJob;
use suiro_scenario::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the origin does with one request.
enum Answer {
    /// Status, further headers (each with its CRLF), body.
    Whole(u16, &'static str, Vec<u8>),
    /// This many bytes are promised, these come, then the connection closes.
    CutShort(usize, Vec<u8>),
    /// The connection closes at once.
    Hangup,
    /// Nothing, for ever.
    Silence,
    /// That many bytes, 2 kB every 50 ms: 320 kbit/s.
    Slow(usize),
}

fn ok(body: impl Into<Vec<u8>>) -> Answer {
    Answer::Whole(200, "", body.into())
}

/// An origin that answers as `answer` says, given the path and the number of the request.
async fn origin(answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> SocketAddr {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener: TcpListener = suiro_http::net::listen(address, None).unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, count) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, count) = (answer.clone(), count.clone());
            tokio::spawn(async move {
                let answer = |path: &str| answer(path, count.fetch_add(1, Relaxed));
                let _ = talk(stream, answer).await;
            });
        }
    });
    address
}

async fn talk(mut stream: TcpStream, answer: impl Fn(&str) -> Answer) -> std::io::Result<()> {
    let mut request = Vec::new();
    loop {
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await?);
        }
        let text = String::from_utf8(std::mem::take(&mut request)).unwrap();
        let answer = answer(text.split(' ').nth(1).unwrap());
        match answer {
            Answer::Whole(status, headers, body) => {
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n");
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&body).await?;
            }
            Answer::CutShort(promised, body) => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {promised}\r\n\r\n");
                stream.write_all(head.as_bytes()).await?;
                return stream.write_all(&body).await;
            }
            Answer::Hangup => return Ok(()),
            Answer::Silence => std::future::pending().await,
            Answer::Slow(length) => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all(head.as_bytes()).await?;
                let mut pace = tokio::time::interval(StdDuration::from_millis(50));
                for _ in 0..length / 2000 {
                    pace.tick().await;
                    stream.write_all(&[b'x'; 2000]).await?;
                }
            }
        }
    }
}

/// Ten segments of a tenth of a second, in two rungs.
const MPD: &str = r#"<MPD type="static" mediaPresentationDuration="PT1S"><Period>
<AdaptationSet contentType="video"><SegmentTemplate timescale="10" duration="1" startNumber="0"
media="$RepresentationID$/$Number$"/><Representation id="lo" bandwidth="1000"/>
<Representation id="hi" bandwidth="2000"/></AdaptationSet></Period></MPD>"#;

async fn play_dash(
    address: SocketAddr,
    most_ms: u64,
    dir: &std::path::Path,
) -> Result<suiro_http::player::Summary, suiro_http::player::PlayerError> {
    let job = job(address, Protocol::Dash, dir);
    play(&job, Clock::from_now(), StdDuration::from_millis(most_ms)).await
}

fn segment() -> Answer {
    ok(vec![b'x'; 20_000])
}

#[tokio::test]
async fn a_truncated_segment_is_fetched_again_at_the_lowest_rung() {
    let address = origin(|path, count| match path {
        "/manifest.mpd" => ok(MPD),
        _ if count == 4 => Answer::CutShort(20_000, vec![b'x'; 7_000]),
        _ => segment(),
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let summary = play_dash(address, 8000, dir.path()).await.unwrap();
    assert_eq!(summary.failure, None);
    let rows = requests(dir.path());
    let cut = rows.iter().position(|row| row.error.is_some()).unwrap();
    assert!(rows[cut].error.as_ref().unwrap().contains("end of file"), "{:?}", rows[cut]);
    assert_eq!((rows[cut].body_bytes, rows[cut].done_ns, rows[cut].attempt), (7_000, None, 1));
    let again = &rows[cut + 1];
    assert_eq!((again.segment, again.attempt, again.error.clone()), (rows[cut].segment, 2, None));
    assert_eq!(again.rung_bps, Some(1000));
    // A second later (RFC 9110 says nothing; players wait), and all was played.
    assert!(again.t_ns - rows[cut].t_ns >= 1_000_000_000);
    assert_eq!(states(dir.path()).last().map(|row| row.state == PlayerState::Ended), Some(true));
}

#[tokio::test]
async fn an_origin_that_dies_ends_playback_within_bounds() {
    let address = origin(|path, count| match path {
        "/manifest.mpd" => ok(MPD),
        _ if count < 4 => segment(),
        _ => Answer::Hangup,
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    // 4 tries (1 + 2 + 4 s) at the next segment alone take 7 s: the test looks at the first.
    let summary = play_dash(address, 2500, dir.path()).await.unwrap();
    assert!(summary.requests <= 8, "{} requests", summary.requests);
    let last = states(dir.path()).pop().unwrap();
    assert_eq!((last.state, last.stalls), (PlayerState::Stalled, 1));
    assert!(
        requests(dir.path())
            .iter()
            .any(|row| row.error.as_deref().is_some_and(|e| e.starts_with("http: ")))
    );
}

#[tokio::test]
async fn nothing_to_play_is_an_error_with_its_reason() {
    for (answer, want) in [
        (&b"<html></html>"[..], "<html> where <MPD> was expected"),
        (&b"<MPD><Period/></MPD>"[..], "no <AdaptationSet>"),
        (&b"\xff\xfe"[..], "not UTF-8"),
    ] {
        let address = origin(move |_, _| ok(answer)).await;
        let dir = tempfile::tempdir().unwrap();
        // One try; the further ones only repeat it.
        let summary = play_dash(address, 500, dir.path()).await.unwrap();
        assert_eq!((summary.totals, summary.requests), (None, 1), "{want}");
        assert!(states(dir.path()).last().unwrap().state == PlayerState::Starting);
        let url = suiro_http::Url::parse("http://origin/manifest.mpd").unwrap();
        let error = suiro_http::presentation::from_mpd(answer, &url).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}

#[tokio::test]
async fn redirects_are_followed_within_bounds_and_to_http_only() {
    for (location, want) in [
        ("location: /manifest.mpd\r\n", "more than 5 redirects"),
        ("location: file:///etc/passwd\r\n", "redirect: `file:///etc/passwd`: only http"),
        (
            "location: http://169.254.169.254/latest\r\n",
            "redirect: `http://169.254.169.254/latest`",
        ),
        ("location: http://user:secret@127.0.0.1/\r\n", "no valid host"),
        ("location: ///../..//\r\n", "no valid host"),
        ("", "a redirect without a location"),
    ] {
        let address = origin(move |_, _| Answer::Whole(302, location, Vec::new())).await;
        let dir = tempfile::tempdir().unwrap();
        play_dash(address, 500, dir.path()).await.unwrap();
        let error = requests(dir.path())[0].error.clone().unwrap();
        assert!(error.contains(want), "{error}");
    }
    let address = origin(|path, _| match path {
        "/manifest.mpd" => Answer::Whole(307, "location: /far/away.mpd\r\n", Vec::new()),
        "/far/away.mpd" => ok(MPD),
        path if path.starts_with("/far/") => segment(),
        _ => Answer::Whole(404, "", Vec::new()),
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    // Relative URLs are relative to where the manifest was found at last.
    assert_eq!(play_dash(address, 4000, dir.path()).await.unwrap().failure, None);
    assert!(requests(dir.path()).iter().all(|row| row.error.is_none()));
}

#[tokio::test]
async fn a_manifest_without_end_is_cut_off() {
    let address = origin(|_, _| ok(vec![b' '; (4 << 20) + 1])).await;
    let dir = tempfile::tempdir().unwrap();
    play_dash(address, 900, dir.path()).await.unwrap();
    let error = requests(dir.path())[0].error.clone().unwrap();
    assert_eq!(&*error, "the body is larger than 4194304 bytes");
}

/// Segments of 2 s: 25 kB of the lower rung, 200 kB of the higher.
const LONG: &str = r#"<MPD type="static" mediaPresentationDuration="PT8S"><Period>
<AdaptationSet contentType="video"><SegmentTemplate duration="2" startNumber="0"
media="$RepresentationID$/$Number$"/><Representation id="lo" bandwidth="100000"/>
<Representation id="hi" bandwidth="800000"/></AdaptationSet></Period></MPD>"#;

#[tokio::test]
async fn a_segment_that_comes_too_slowly_is_given_up_for_a_lower_rung() {
    for abandon in [true, false] {
        let address = origin(|path, _| match path {
            "/manifest.mpd" => ok(LONG),
            "/hi/1" => Answer::Slow(200_000),
            path if path.starts_with("/hi/") => ok(vec![b'x'; 200_000]),
            _ => ok(vec![b'x'; 25_000]),
        })
        .await;
        let dir = tempfile::tempdir().unwrap();
        let job = PlayerJob { abandon, ..job(address, Protocol::Dash, dir.path()) };
        play(&job, Clock::from_now(), StdDuration::from_millis(1500)).await.unwrap();
        let rows = requests(dir.path());
        let at = rows.iter().position(|row| &*row.url == "/hi/1").unwrap();
        let given_up = rows[at].abandoned.as_deref();
        if !abandon {
            assert_eq!((given_up, at + 1), (None, rows.len()));
            continue;
        }
        // After 0.5 s and six looks; some 24 kB have come, the rest takes 4.4 s, 1.3 s are buffered.
        let reason = given_up.unwrap();
        assert!(reason.ends_with(" s buffered: 100 kbit/s instead"), "{reason}");
        assert_eq!((rows[at].done_ns, &rows[at].error, rows[at].status), (None, &None, Some(200)));
        assert!((2000..200_000).contains(&rows[at].body_bytes), "{:?}", rows[at]);
        assert_eq!((&*rows[at + 1].url, rows[at + 1].attempt), ("/lo/1", 1));
        // And for a while no higher one again.
        assert!(rows[at + 1..].iter().all(|row| row.url.starts_with("/lo/")), "{rows:?}");
        assert!(rows[at + 1].done_ns.is_some());
    }
}

#[tokio::test]
async fn a_request_under_way_is_recorded_when_the_player_stops() {
    let address = origin(|path, _| match path {
        "/manifest.mpd" => ok(MPD),
        _ => Answer::Silence,
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    play_dash(address, 500, dir.path()).await.unwrap();
    let row = requests(dir.path()).pop().unwrap();
    assert_eq!(
        (row.status, row.done_ns, row.error.as_deref()),
        (None, None, Some("the player was stopped"))
    );
}

#[tokio::test]
async fn a_playlist_that_never_changes_is_not_asked_for_all_the_time() {
    let address = origin(|path, _| match path {
        "/master.m3u8" => ok("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\nv.m3u8\n"),
        "/v.m3u8" => ok("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.5,\na\n#EXTINF:0.5,\nb\n"),
        _ => segment(),
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let job = job(address, Protocol::Hls, dir.path());
    play(&job, Clock::from_now(), StdDuration::from_millis(3200)).await.unwrap();
    let rows = requests(dir.path());
    let lists: Vec<_> = rows.iter().filter(|r| &*r.url == "/v.m3u8").map(|r| r.t_ns).collect();
    // RFC 8216 §6.3.4: a target duration after the first, then half of one each.
    let waits: Vec<_> = lists.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
    assert!((3..=5).contains(&waits.len()) && waits[0] >= 1000, "{waits:?}");
    assert!(waits[1..].iter().all(|wait| *wait >= 500), "{waits:?}");
}
