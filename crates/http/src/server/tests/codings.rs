//! Content codings, between a server and a player over each version of HTTP.

use std::collections::BTreeSet;
use std::sync::Mutex;

use hyper::StatusCode;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use suiro_scenario::HttpVersion::{Http1, Http2, Http3};

use super::hostile::fetch;
use super::*;
use crate::coding::gzip;
use crate::player::FetchClient;
use crate::player::session::{Fetch, What};

const PLAYLIST: &str = "#EXTM3U\n#EXT-X-VERSION:9\n";

/// A server of a playlist in gzip, whatever coding its path says it is in. `/asked` is in the coding that was asked for.
fn coding(http: HttpVersion, connections: &Arc<AtomicUsize>) -> Served {
    let (peers, connections) = (Arc::<Mutex<BTreeSet<_>>>::default(), connections.clone());
    Served::start(http, move |request| {
        let mut peers = peers.lock().expect("no holder panics");
        peers.insert(*request.extensions().get::<SocketAddr>().expect("a peer"));
        connections.store(peers.len(), Relaxed);
        let path = request.uri().path().trim_start_matches('/').to_owned();
        let asked = request.headers().get(ACCEPT_ENCODING).cloned();
        let (coding, body) = match path.as_str() {
            "asked" => match asked {
                Some(asked) => (Some(asked), gzip(PLAYLIST.as_bytes())),
                None => (None, PLAYLIST.into()),
            },
            "bomb" => (HeaderValue::from_static("gzip").into(), gzip(&[b'#'; 5000])),
            "damaged" => (HeaderValue::from_static("gzip").into(), PLAYLIST.into()),
            other => (HeaderValue::try_from(other).ok(), gzip(PLAYLIST.as_bytes())),
        };
        let mut response = Response::new(Body::whole(body));
        response.headers_mut().extend(coding.map(|coding| (CONTENT_ENCODING, coding)));
        std::future::ready(response)
    })
}

#[tokio::test]
async fn a_player_asks_for_manifests_in_gzip_and_for_nothing_else() {
    for http in [Http1, Http2, Http3] {
        let connections = Arc::<AtomicUsize>::default();
        let served = coding(http, &connections);
        let (transport, home) = (served.client().transport, Arc::new(served.url("/")));
        let head = tokio::sync::watch::Sender::default().subscribe();
        let mut client = FetchClient::new(Clock::from_now(), transport, home, None, head);
        let mut number = 0;
        let mut ask = async |what, path| {
            number += 1;
            client.fetch(&Fetch { what, ..fetch(number, served.url(path)) }).await
        };
        for what in [What::Manifest, What::Playlist { rung: 0 }] {
            let fetched = ask(what, "/asked").await;
            assert_eq!(fetched.body.as_deref(), Ok(PLAYLIST.as_bytes()), "{http:?}");
            let coded = gzip(PLAYLIST.as_bytes()).len();
            assert_eq!(fetched.bytes, coded as u64, "what came over the network");
        }
        let fetched = ask(What::Clock, "/asked").await;
        let plain = (fetched.body.as_deref(), fetched.bytes);
        assert_eq!(plain, (Ok(PLAYLIST.as_bytes()), PLAYLIST.len() as u64), "{http:?}");
        for (path, what, why) in [
            ("/br", What::Manifest, "in content coding `br`, which was not asked for"),
            ("/gzip", What::Clock, "in content coding `gzip`, which was not asked for"),
            ("/damaged", What::Manifest, "is no gzip, as its head says it is"),
            ("/bomb", What::Manifest, "larger than 1000 bytes without gzip"),
        ] {
            let fetched = ask(what, path).await;
            assert_eq!(fetched.status, Some(StatusCode::OK.as_u16()), "{http:?} {path}");
            let error = fetched.body.expect_err("it cannot be read");
            assert!(error.contains(why), "{http:?} {path}: {error}");
        }
        let fetched = ask(What::Manifest, "/asked").await;
        assert_eq!(fetched.body.as_deref(), Ok(PLAYLIST.as_bytes()), "it goes on");
        // After what it does not read to the end, it does so on another connection.
        assert_eq!(connections.load(Relaxed), 3, "{http:?}");
        drop(client);
        served.stop().await;
    }
}
