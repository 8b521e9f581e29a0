//! Requests in the first packets of a connection of HTTP/3 (0-RTT).

use std::sync::Mutex;

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
        let respond = move |_, request: Request<()>| {
            let is_early = request.extensions().get::<Early>().is_some();
            seen.lock().expect("no holder panics").push(is_early);
            async { Response::new(Body::whole("here")) }
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

#[tokio::test]
async fn without_the_key_every_request_waits_for_the_handshake() {
    let (recorded, seen) = connections(false).await;
    assert_eq!((recorded, seen.len()), ([None; 4], 4));
}
