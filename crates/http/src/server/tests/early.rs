//! Requests in the first packets of a connection of HTTP/3 (0-RTT).

use std::sync::Mutex;

use bytes::Bytes;
use hyper::StatusCode;
use moq_noq::ServerConfig;
use moq_noq::crypto::rustls::QuicServerConfig;
use rustls::server::ServerSessionMemoryCache;
use suiro_endpoint::net::udp;
use suiro_quic::{net, tls};

use super::hostile::fetch;
use super::*;
use crate::http3::client::Early;
use crate::http3::{self, server};
use crate::player::FetchClient;

/// A server that forgets clients on request, and whether each request came before the handshake was done.
struct Forgetful {
    endpoint: moq_noq::Endpoint,
    tls: rustls::ServerConfig,
    certificate: std::path::PathBuf,
    early: Arc<Mutex<Vec<bool>>>,
}

impl Forgetful {
    fn start(folder: &std::path::Path) -> Self {
        Self::answering(folder, |_| Response::new("here"))
    }

    /// A server whose answer depends on whether the request came early.
    fn answering(
        folder: &std::path::Path,
        answer: impl Fn(bool) -> Response<&'static str> + Clone + Send + Sync + 'static,
    ) -> Self {
        let certificate = folder.join("certificate.der");
        let clock = Clock::from_now();
        let (now, names) = (clock.unix_ns(clock.now()), vec!["localhost".to_owned()]);
        let tls = tls::server(names, now, &certificate, vec![http3::ALPN.to_vec()]);
        let mut tls = tls.expect("TLS");
        tls.max_early_data_size = u32::MAX;
        let socket = udp((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
        let endpoint = net::serve(socket, tls.clone(), &http3::behaviour()).expect("QUIC");
        let early: Arc<Mutex<Vec<bool>>> = Arc::default();
        let (limits, seen) = (Limits::per_address(CONNECTIONS), early.clone());
        let respond = move |_, request: Request<Posted>| {
            let is_early = request.extensions().get::<Early>().is_some();
            seen.lock().expect("no holder panics").push(is_early);
            let answer = answer(is_early).map(Body::whole);
            async { answer }
        };
        let (endpoint, served) = (endpoint.clone(), endpoint);
        tokio::spawn(async move {
            let (witness, samples) = (None, None);
            let server = server::Server { endpoint: served, clock, limits, witness, samples };
            server.run(respond, std::future::pending()).await.expect("no record");
        });
        Self { endpoint, tls, certificate, early }
    }

    fn url(&self) -> Url {
        let port = self.endpoint.local_addr().expect("it is bound").port();
        Url::parse_secure(&format!("https://localhost:{port}/")).expect("a URL")
    }

    fn forget(&self) {
        let mut tls = self.tls.clone();
        tls.session_storage = ServerSessionMemoryCache::new(32);
        let crypto = QuicServerConfig::try_from(tls).expect("TLS of QUIC");
        self.endpoint.set_server_config(Some(ServerConfig::with_crypto(Arc::new(crypto))));
    }
}

/// Whether each of four connections carried its request early, as the player records it: none before, then one to a server
/// that knows the player, one to a server that has forgotten it, and another.
async fn connections(early_data: bool) -> ([Option<bool>; 4], Vec<bool>) {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Forgetful::start(folder.path());
    let (http, clock) = (HttpVersion::Http3, Clock::from_now());
    let transport = Transport::new(Download::Segment, None, http, &served.certificate, clock);
    let transport = if early_data { transport.with_early_data() } else { transport };
    let mut recorded = [None; 4];
    for (number, early) in recorded.iter_mut().enumerate() {
        if number == 2 {
            served.forget();
        }
        let (home, head) = (Arc::new(served.url()), tokio::sync::watch::Sender::default());
        let mut client = FetchClient::new(clock, transport.clone(), home, None, head.subscribe());
        let wanted = fetch(number as u64, served.url());
        let fetching = client.fetch(&wanted);
        let fetched = tokio::time::timeout(BOUND, fetching).await.expect("an end");
        assert_eq!(fetched.body.as_deref(), Ok(&b"here"[..]), "{number}");
        *early = fetched.early;
        let (connection, _) =
            transport.connect(&served.url(), (&served.url(), None)).await.expect("it is open");
        transport.forget(&connection).await;
    }
    let seen = served.early.lock().expect("no holder panics").clone();
    (recorded, seen)
}

#[tokio::test]
async fn a_further_connection_carries_requests_before_its_handshake() {
    let (recorded, seen) = connections(true).await;
    assert_eq!(recorded, [None, Some(true), Some(false), Some(true)]);
    // The server does not see a refused request; the client sends it again after the handshake.
    assert_eq!((seen.len(), seen[1], seen[3]), (4, true, true), "{seen:?}");
}

/// RFC 8470 §5.2: a server that takes no risk with a replay answers 425, and may get the request again after the handshake.
#[tokio::test]
async fn a_request_that_was_too_early_is_a_failure_and_goes_well_on_the_same_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Forgetful::answering(folder.path(), |is_early| {
        let status = if is_early { StatusCode::TOO_EARLY } else { StatusCode::OK };
        let mut response = Response::new("here");
        *response.status_mut() = status;
        response
    });
    let (http, clock, url) = (HttpVersion::Http3, Clock::from_now(), served.url());
    let transport = Transport::new(Download::Segment, None, http, &served.certificate, clock);
    let transport = transport.with_early_data();
    let (home, head) = (Arc::new(url.clone()), tokio::sync::watch::Sender::default());
    let client =
        || FetchClient::new(clock, transport.clone(), home.clone(), None, head.subscribe());
    let (mut client, next) = (client(), client);
    let mut came = Vec::new();
    for number in 0..3 {
        let wanted = fetch(number, url.clone());
        let fetched = tokio::time::timeout(BOUND, client.fetch(&wanted)).await.expect("an end");
        came.push((fetched.body.map_err(|error| error.to_string()), fetched.early));
        if number == 0 {
            // The next one begins with a ticket.
            let (connection, _) = transport.connect(&url, (&url, None)).await.expect("it is open");
            transport.forget(&connection).await;
            client = next();
        }
    }
    let here = || Ok(Bytes::from_static(b"here"));
    assert_eq!(came, [(here(), None), (Err("status 425".to_owned()), Some(true)), (here(), None)]);
    assert_eq!(*served.early.lock().expect("no holder panics"), [false, true, false]);
}

#[tokio::test]
async fn without_the_key_every_request_waits_for_the_handshake() {
    let (recorded, seen) = connections(false).await;
    assert_eq!((recorded, seen.len()), ([None; 4], 4));
}
