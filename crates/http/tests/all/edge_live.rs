//! Players play a live stream in chunks through a cache, over each version of HTTP, and through its faults.
//!
//! Without ffmpeg these tests report that and pass.

use std::path::Path;
use std::time::Duration as StdDuration;

use suiro_http::edge::{self, Counted, EdgeJob};
use suiro_http::flows::Records;
use suiro_http::origin::{ChunkSpec, OriginJob, Secure};
use suiro_http::player::{PlayerJob, Summary};
use suiro_http::{Clock, Url};
use suiro_media::spec::Format;
use suiro_record::Reader;
use suiro_record::tables::AccessRow;
use suiro_record::words::{CacheFault, CacheOutcome};
use suiro_scenario::{Cmcd, EdgeFault, HttpVersion, Mode, Protocol, QuicCongestion};
use suiro_units::{Bytes, Duration, Ratio, Seed};
use tokio::sync::oneshot;

use crate::common::{job, play, plays_near_its_latency_or_stalls, states};
use crate::real::{Served, ffmpeg, origin_job, package};

/// How long each plays.
const LONG: StdDuration = StdDuration::from_secs(5);

fn secure(http: HttpVersion, certificate: &Path) -> Option<Secure> {
    http.is_secure().then(|| Secure {
        http,
        names: vec!["localhost".to_owned()],
        certificate: certificate.to_owned(),
        congestion: QuicCongestion::Cubic,
    })
}

fn url(http: HttpVersion, port: u16, path: &str) -> Url {
    match http.is_secure() {
        true => Url::parse_secure(&format!("https://localhost:{port}{path}")).unwrap(),
        false => Url::parse(&format!("http://localhost:{port}{path}")).unwrap(),
    }
}

/// What came of two players behind a cache.
struct Played {
    players: [Summary; 2],
    /// How far each was from its target at the end, in milliseconds.
    off_ms: [f64; 2],
    cache: Counted,
    access: Vec<AccessRow>,
    asked_of_origin: u64,
}

/// Two players of that protocol play through a cache, which asks its origin over the first version of HTTP and serves the
/// second. `None` without ffmpeg.
async fn plays(
    protocol: Protocol,
    (above, below): (HttpVersion, HttpVersion),
    fault: Option<EdgeFault>,
) -> Option<Played> {
    ffmpeg()?;
    let package = package(Format::Fmp4, Duration::from_secs(1));
    // Faults are at times of this clock.
    let clock = Clock::from_now();
    let chunks = ChunkSpec::new(Duration::from_millis(100), Some(Duration::from_millis(200)));
    let dir = tempfile::tempdir().unwrap();
    let [above_file, below_file] = ["origin.der", "edge.der"].map(|name| dir.path().join(name));
    let any = suiro_http::net::any_address(0);
    let origin = OriginJob {
        listen: any,
        secure: secure(above, &above_file),
        ..origin_job(&package, Mode::Live, 0, Some(chunks))
    };
    let origin = Served::start_job(origin, clock).await;
    let folder = dir.path().join("edge");
    std::fs::create_dir(&folder).unwrap();
    let edge = EdgeJob {
        name: "edge".into(),
        listen: any,
        congestion: None,
        secure: secure(below, &below_file),
        origin: url(above, origin.address.port(), "/"),
        origin_http: above,
        certificate: above_file,
        server: None,
        store: Bytes::new(50_000_000),
        in_flight: 64,
        fault,
        seed: Seed(1),
        records: Some(Records {
            endpoint: "edge".into(),
            dir: folder.clone(),
            clients: Vec::new(),
        }),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let (told, ready) = oneshot::channel();
    let caching = tokio::spawn(async move {
        let ready = |address: std::net::SocketAddr| told.send(address).expect("the test waits");
        edge::run(&edge, clock, ready, async { drop(stopped.await) }).await
    });
    let address = ready.await.expect("the cache serves");
    let player = |name: &str| {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let job = job(address, protocol, &folder);
        let url = url(below, address.port(), job.url.target());
        let target_latency = Some(Duration::from_millis(700));
        let (http, certificate, cmcd) = (below, below_file.clone(), Some(Cmcd::Query));
        PlayerJob { url, http, certificate, cmcd, target_latency, ..job }
    };
    let jobs = [player("one"), player("two")];
    let (one, two) = tokio::join!(play(&jobs[0], clock, LONG), play(&jobs[1], clock, LONG));
    let last = |job: &PlayerJob| {
        let last = states(&job.dir).pop().and_then(|row| row.latency_ms);
        last.unwrap_or(f64::INFINITY) - 700.0
    };
    drop(stop);
    let cache = caching.await.expect("no panic").expect("it served");
    let access = Reader::read_all(&folder).unwrap();
    Some(Played {
        players: [one.unwrap(), two.unwrap()],
        off_ms: jobs.each_ref().map(last),
        cache,
        access,
        asked_of_origin: origin.end().await.requests,
    })
}

/// Both keep their latency, and the origin sees little more than one of them.
async fn two_players_are_like_one(protocol: Protocol, versions: (HttpVersion, HttpVersion)) {
    let Some(played) = plays(protocol, versions, None).await else { return };
    let Played { players, off_ms, cache, access, asked_of_origin } = played;
    for (summary, off_ms) in players.iter().zip(off_ms) {
        assert_eq!(summary.failure, None);
        plays_near_its_latency_or_stalls(summary, off_ms);
    }
    assert_eq!((cache.failed, cache.full), (0, 0), "{cache:?}");
    assert!(cache.joined > 5, "{cache:?}");
    // Where they have different rungs, both are misses.
    assert!(cache.hits + cache.joined >= cache.misses / 3, "{cache:?}");
    // Those that were held when the cache was stopped are counted by the origin alone: at most four of each player.
    let asked = cache.misses + cache.revalidated;
    assert!(asked_of_origin <= asked + 8, "{asked_of_origin} {cache:?}");
    assert!(access.iter().all(|row| row.cmcd_session.is_some() && row.cmcd_error.is_none()));
    let own = access.iter().filter(|row| row.cache == Some(CacheOutcome::Own));
    assert_eq!(own.count(), 0, "{access:?}");
}

#[tokio::test]
async fn two_players_of_dash_are_like_one() {
    two_players_are_like_one(Protocol::Dash, (HttpVersion::Http1, HttpVersion::Http1)).await;
}

#[tokio::test]
async fn two_players_of_hls_are_like_one() {
    two_players_are_like_one(Protocol::Hls, (HttpVersion::Http1, HttpVersion::Http1)).await;
}

#[tokio::test]
async fn dash_comes_over_http2_and_goes_over_http3() {
    two_players_are_like_one(Protocol::Dash, (HttpVersion::Http2, HttpVersion::Http3)).await;
}

#[tokio::test]
async fn hls_comes_over_http3_and_goes_over_http2() {
    two_players_are_like_one(Protocol::Hls, (HttpVersion::Http3, HttpVersion::Http2)).await;
}

/// For a second of the play, every request meets the fault.
async fn is_survived(protocol: Protocol, below: HttpVersion, kind: CacheFault) {
    let fault = EdgeFault {
        kind: Some(kind),
        from: Duration::from_millis(1500),
        to: Some(Duration::from_millis(2500)),
        share: Ratio::constant(1.0),
        delay: None,
        rate: None,
        retry_after: Some(Duration::from_secs(1)).filter(|_| kind == CacheFault::Unavailable),
        age: None,
    };
    let versions = (HttpVersion::Http1, below);
    let Some(played) = plays(protocol, versions, Some(fault)).await else { return };
    let met = played.access.iter().filter(|row| row.cache_fault == Some(kind)).count();
    assert!(met > 0, "{kind} met nobody");
    // A flood of tries would be hundreds.
    assert!(met < 200, "{kind} met {met} requests of two players in a second");
    for summary in &played.players {
        assert_eq!(summary.failure, None, "{kind}");
        let totals = summary.totals.unwrap();
        assert!(totals.playing > Duration::from_millis(1500), "{kind}: {totals:?}");
    }
}

#[tokio::test]
async fn players_survive_a_cache_that_is_unavailable() {
    is_survived(Protocol::Dash, HttpVersion::Http1, CacheFault::Unavailable).await;
    is_survived(Protocol::Hls, HttpVersion::Http1, CacheFault::Unavailable).await;
}

#[tokio::test]
async fn players_survive_a_cache_that_resets() {
    tokio::join!(
        is_survived(Protocol::Dash, HttpVersion::Http1, CacheFault::Reset),
        is_survived(Protocol::Dash, HttpVersion::Http2, CacheFault::Reset),
        is_survived(Protocol::Dash, HttpVersion::Http3, CacheFault::Reset),
        is_survived(Protocol::Hls, HttpVersion::Http1, CacheFault::Reset),
    );
}

#[tokio::test]
async fn players_survive_a_cache_that_is_stale() {
    is_survived(Protocol::Hls, HttpVersion::Http1, CacheFault::Stale).await;
}
