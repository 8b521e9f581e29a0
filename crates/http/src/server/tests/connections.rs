//! On which connection the next request is made after one has failed: by players, and by caches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use suiro_scenario::HttpVersion::{Http1, Http2, Http3};
use suiro_units::Seed;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;

use super::hostile::fetch;
use super::*;
use crate::edge::{self, Counted, EdgeJob};
use crate::http3;
use crate::player::FetchClient;

/// RFC 9114 §4.1, by hand: a head with `:status: 200`, which is number 25 of QPACK's static table, and a body.
const HERE: &[u8] = b"\x01\x03\x00\x00\xd9\x00\x04here";

/// An origin that resets the second request of each connection before the head of a response, and answers all others.
struct Resetting {
    url: Url,
    certificate: PathBuf,
    connections: Arc<AtomicUsize>,
}

impl Resetting {
    fn start(http: HttpVersion, folder: &Path) -> Self {
        let certificate = folder.join("certificate.der");
        let (clock, connections) = (Clock::from_now(), Arc::<AtomicUsize>::default());
        let protocol = if http == Http3 { http3::ALPN } else { &b"h2"[..] };
        let (now, names) = (clock.unix_ns(clock.now()), vec!["localhost".to_owned()]);
        let tls = suiro_quic::tls::server(names, now, &certificate, vec![protocol.to_vec()]);
        let (tls, any, seen) =
            (tls.expect("TLS"), (Ipv4Addr::LOCALHOST, 0).into(), connections.clone());
        let port = if http == Http3 {
            let socket = suiro_endpoint::net::udp(any).expect("a socket");
            let endpoint = suiro_quic::net::serve(socket, tls, &http3::behaviour()).expect("QUIC");
            let port = endpoint.local_addr().expect("it is bound").port();
            tokio::spawn(async move {
                while let Some(incoming) = endpoint.accept().await {
                    seen.fetch_add(1, Relaxed);
                    tokio::spawn(over_http3(incoming));
                }
            });
            port
        } else {
            let listener = crate::net::listen(any, None).expect("it listens");
            let port = listener.local_addr().expect("it is bound").port();
            tokio::spawn(over_http2(listener, TlsAcceptor::from(Arc::new(tls)), seen));
            port
        };
        let url = Url::parse_secure(&format!("https://localhost:{port}/")).expect("a URL");
        Self { url, certificate, connections }
    }
}

async fn over_http2(listener: TcpListener, tls: TlsAcceptor, seen: Arc<AtomicUsize>) {
    let serve = async |stream: TcpStream, tls: TlsAcceptor| {
        let stream = tls.accept(stream).await.expect("a handshake");
        let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
        let mut number = 0;
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            number += 1;
            if number == 2 {
                respond.send_reset(h2::Reason::INTERNAL_ERROR);
                continue;
            }
            let mut body = respond.send_response(Response::new(()), false).expect("a client");
            body.send_data("here".into(), true).expect("a client");
        }
    };
    while let Ok((stream, _)) = listener.accept().await {
        seen.fetch_add(1, Relaxed);
        tokio::spawn(serve(stream, tls.clone()));
    }
}

async fn over_http3(incoming: moq_noq::Incoming) {
    let connection = incoming.await.expect("a handshake");
    let mut number = 0;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        number += 1;
        receive.read_to_end(1 << 16).await.expect("a request");
        if number == 2 {
            send.reset(INTERNAL_ERROR.into()).expect("it is open");
            continue;
        }
        send.write_all(HERE).await.expect("a client");
        send.finish().expect("it is open");
    }
}

/// RFC 9114 §8.1, `H3_INTERNAL_ERROR`.
const INTERNAL_ERROR: u32 = 0x102;

/// A cache of an origin, which speaks HTTP/1.1 to its clients.
pub(super) struct Cache {
    client: Client,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Counted, suiro_endpoint::Failure>>,
}

impl Cache {
    pub async fn start(origin: Url, origin_http: HttpVersion, certificate: &Path) -> Self {
        let job = EdgeJob {
            name: "edge".into(),
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            congestion: None,
            secure: None,
            origin,
            origin_http,
            certificate: certificate.to_owned(),
            server: None,
            store: suiro_units::Bytes::new(1_000_000),
            in_flight: 16,
            fault: None,
            seed: Seed(1),
            records: None,
        };
        let ((stop, stopped), (told, ready)) = (oneshot::channel(), oneshot::channel());
        let task = tokio::spawn(async move {
            let ready = |address| told.send(address).expect("the test waits");
            edge::run(&job, Clock::from_now(), ready, async { drop(stopped.await) }).await
        });
        let address: SocketAddr = ready.await.expect("it serves");
        let none = Path::new("none");
        let transport = Transport::new(Download::Segment, None, Http1, none, Clock::from_now());
        let home = Url::parse(&format!("http://{address}/")).expect("a URL");
        Self { client: Client { transport, home }, stop, task }
    }

    /// The status and the length of what is at a path; no length if the body was cut off.
    pub async fn get(&self, path: &str) -> (u16, Option<usize>) {
        let response = self.client.ask(path, &[]).await.expect("an answer");
        let status = response.status().as_u16();
        (status, rest(&mut response.into_body()).await.ok())
    }

    pub async fn stop(self) {
        drop(self.stop);
        self.task.await.expect("no panic").expect("it served");
    }
}

#[tokio::test]
async fn a_request_that_is_reset_before_its_answer_leaves_a_player_its_connection() {
    for (http, prefix) in [(Http2, "http: "), (Http3, "http/3: ")] {
        let folder = tempfile::tempdir().expect("a folder");
        let Resetting { url, certificate, connections } = Resetting::start(http, folder.path());
        let clock = Clock::from_now();
        let transport = Transport::new(Download::Segment, None, http, &certificate, clock);
        let head = tokio::sync::watch::Sender::default().subscribe();
        let mut client = FetchClient::new(clock, transport, Arc::new(url.clone()), None, head);
        for number in 1..=3 {
            let wanted = fetch(number, url.clone());
            let fetched = tokio::time::timeout(BOUND, client.fetch(&wanted)).await.expect("an end");
            match number {
                2 => {
                    let error = fetched.body.expect_err("it was reset");
                    assert!(error.starts_with(prefix), "{http:?}: {error}");
                }
                _ => assert_eq!(fetched.body.as_deref(), Ok(&b"here"[..]), "{http:?}, {number}"),
            }
        }
        assert_eq!(connections.load(Relaxed), 1, "{http:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_reset_before_its_answer_leaves_a_cache_its_connection() {
    for http in [Http2, Http3] {
        let folder = tempfile::tempdir().expect("a folder");
        let Resetting { url, certificate, connections } = Resetting::start(http, folder.path());
        let cache = Cache::start(url, http, &certificate).await;
        for (path, status) in [("/1", 200), ("/2", 502), ("/3", 200)] {
            assert_eq!(cache.get(path).await.0, status, "{http:?}, {path}");
        }
        assert_eq!(connections.load(Relaxed), 1, "{http:?}");
        cache.stop().await;
    }
}

/// An origin of HTTP/2 that answers on its second connection alone. On the first it promises `/body`, and nothing more comes
/// of it. It reports each request.
fn silent() -> (Served, Arc<Notify>, Arc<Mutex<BTreeSet<SocketAddr>>>) {
    let (asked, connections) = (Arc::new(Notify::new()), Arc::<Mutex<BTreeSet<_>>>::default());
    let (tell, seen) = (asked.clone(), connections.clone());
    let served = Served::start(Http2, move |request| {
        let (tell, seen) = (tell.clone(), seen.clone());
        async move {
            let peer = *request.extensions().get::<SocketAddr>().expect("it has a peer");
            let is_first = {
                let mut seen = seen.lock().expect("no holder panics");
                seen.insert(peer);
                seen.len() == 1
            };
            tell.notify_one();
            if !is_first {
                return Response::new(Body::whole("here"));
            }
            let (send, receive) = mpsc::channel(1);
            if request.uri().path() == "/body" {
                tokio::spawn(async move { send.closed().await });
                return Response::new(Body::Passed(crate::server::Passed::new(receive, None)));
            }
            std::future::pending().await
        }
    });
    (served, asked, connections)
}

#[tokio::test]
async fn a_cache_leaves_a_connection_on_which_nothing_comes() {
    for (path, want) in [("/head", (504, Some(36))), ("/body", (200, None))] {
        let (served, asked, connections) = silent();
        let certificate = served.folder.path().join("certificate.der");
        let cache = Cache::start(served.url("/"), Http2, &certificate).await;
        let late = async {
            asked.notified().await;
            // The clock is paused: time passes at once.
            tokio::time::pause();
        };
        let (got, ()) = tokio::join!(cache.get(path), late);
        tokio::time::resume();
        assert_eq!(got, want, "{path}");
        assert_eq!(cache.get("/next").await, (200, Some(4)), "{path}");
        assert_eq!(connections.lock().expect("no holder panics").len(), 2, "{path}");
        cache.stop().await;
        served.stop().await;
    }
}

#[tokio::test]
async fn a_connection_that_fails_late_does_not_end_the_one_that_has_taken_its_place() {
    let served = Served::start(Http2, async |_| Response::new(Body::whole("here")));
    let (client, url) = (served.client(), served.url("/"));
    let connect = async || client.transport.connect(&url, (&url, None)).await.expect("it listens");
    let (first, _) = connect().await;
    client.transport.forget(&first).await;
    let (_second, was_open) = connect().await;
    assert!(!was_open);
    client.transport.forget(&first).await;
    assert!(connect().await.1, "another lane uses the second");
    served.stop().await;
}
