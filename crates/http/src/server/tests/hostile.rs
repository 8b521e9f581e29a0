//! Clients that flood, reset and give up, and servers that cut off: a bounded load, an error with its reason, an end.

use std::collections::BTreeSet;
use std::sync::Mutex;

use bytes::Bytes;
use hyper::header::CONTENT_LENGTH;
use suiro_scenario::HttpVersion::{Http1, Http2, Http3};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::player::FetchClient;
use crate::player::session::{Fetch, What};
use crate::player::single::{self, Asked};
use crate::presentation::Resource;
use crate::server::{Cut, Passed};

const ALL: [HttpVersion; 3] = [Http1, Http2, Http3];

/// A body whose pieces the test sends.
fn body(pieces: mpsc::Receiver<Result<Bytes, Cut>>) -> Response<Body> {
    Response::new(Body::Passed(Passed::new(pieces, None)))
}

/// A server whose only answer has the pieces that are sent to it.
fn in_pieces(http: HttpVersion) -> (mpsc::Sender<Result<Bytes, Cut>>, Served) {
    let (send, receive) = mpsc::channel(1);
    let receive = Arc::new(Mutex::new(Some(receive)));
    let served = Served::start(http, move |_| {
        let pieces = receive.lock().expect("no holder panics").take().expect("one request");
        async { body(pieces) }
    });
    (send, served)
}

/// A server that answers `/held` never, and anything else at once.
fn holding(http: HttpVersion, load: &Load) -> Served {
    let load = load.clone();
    Served::start(http, move |request| {
        let running = load.begin();
        async move {
            if request.uri().path() == "/held" {
                std::future::pending::<()>().await;
            }
            drop(running);
            Response::new(Body::whole("here"))
        }
    })
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_any_more_ends() {
    for http in ALL {
        let load = Load::default();
        let served = holding(http, &load);
        let client = served.client();
        let asking = tokio::spawn(async move { client.ask("/held", &[]).await.map(drop) });
        load.reach(1).await;
        asking.abort();
        load.reach(0).await;
        assert_eq!(load.most(), 1, "{http:?}");
        served.stop().await;
    }
}

#[tokio::test]
async fn a_body_that_nobody_reads_any_more_ends() {
    for http in ALL {
        let (send, served) = in_pieces(http);
        let client = served.client();
        send.send(Ok("first".into())).await.expect("room");
        let mut response = client.ask("/", &[]).await.expect("an answer").into_body();
        let (piece, _) = response.data().await.expect("no error").expect("not the end");
        assert_eq!(piece, "first", "{http:?}");
        drop((response, client));
        let ended = tokio::time::timeout(BOUND, send.closed()).await;
        assert!(ended.is_ok(), "{http:?}: the server still holds the body");
        served.stop().await;
    }
}

/// Asks on one connection and gives up, again and again, as in CVE-2023-44487; returns why that ended.
async fn flood(connection: &mut Connection, url: &Url) -> String {
    for _ in 0..20_000 {
        tokio::select! {
            biased;
            answer = connection.send(url, None, &[]) => match answer {
                Ok(_) => panic!("it is held"),
                Err(error) => return error.to_string(),
            },
            () = tokio::task::yield_now() => {}
        }
    }
    panic!("20 000 requests were given up on one connection, and the server went on");
}

#[tokio::test]
async fn requests_that_are_given_up_one_after_the_other_end_their_connection_alone() {
    for http in [Http2, Http3] {
        let load = Load::default();
        let served = holding(http, &load);
        let (hostile, other) = (served.client(), served.client());
        assert_eq!(other.length("/").await.expect("an answer"), 4);
        let mut connection = hostile.connect().await.expect("a connection");
        let why = flood(&mut connection, &served.url("/held")).await;
        assert!(http == Http2 || why.contains("EXCESSIVE"), "{why}");
        assert!(load.most() <= 256, "{http:?}: {} at once", load.most());
        load.reach(0).await;
        assert_eq!(other.length("/").await.expect("an answer"), 4, "{http:?}");
        assert!(connection.is_closed());
        served.stop().await;
    }
}

#[tokio::test]
async fn requests_at_the_same_time_on_one_connection_are_bounded() {
    for (http, most) in [(Http2, 128), (Http3, 256)] {
        let load = Load::default();
        let served = holding(http, &load);
        let (hostile, other) = (served.client(), served.client());
        let asked: Vec<_> = (0..400)
            .map(|_| {
                let client = hostile.clone();
                tokio::spawn(async move { client.ask("/held", &[]).await.map(drop) })
            })
            .collect();
        load.reach(most).await;
        assert_eq!(other.length("/").await.expect("an answer"), 4, "{http:?}");
        assert_eq!(load.most(), most + 1, "{http:?}: those that are held, and this one");
        asked.iter().for_each(tokio::task::JoinHandle::abort);
        load.reach(0).await;
        served.stop().await;
    }
}

/// Requests of HTTP/1.1 whose answers nobody reads.
#[tokio::test]
async fn requests_one_after_the_other_on_one_connection_wait_for_their_turn() {
    let load = Load::default();
    let served = holding(Http1, &load);
    let stream = crate::net::connect("127.0.0.1", served.port, None).await.expect("it listens");
    let (mut read, mut write) = stream.into_split();
    let flooding = tokio::spawn(async move {
        let requests = "GET /held HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100);
        // Until the kernel takes no more of them, and then until the server is gone.
        while write.write_all(requests.as_bytes()).await.is_ok() {}
    });
    load.reach(1).await;
    for _ in 0..3 {
        assert_eq!(served.client().length("/").await.expect("an answer"), 4);
    }
    assert_eq!((load.now(), load.most()), (1, 2), "one of the flood, and one of another");
    served.stop().await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(BOUND, read.read_to_end(&mut answer)).await.expect("an end");
    assert_eq!(answer, b"", "none was answered");
    flooding.await.expect("no panic");
    assert_eq!(load.now(), 0);
}

#[tokio::test]
async fn an_address_has_so_many_connections() {
    for http in ALL {
        let load = Load::default();
        let served = holding(http, &load);
        let clients: Vec<Client> = (0..CONNECTIONS).map(|_| served.client()).collect();
        let mut open = Vec::new();
        for client in &clients {
            let mut connection = client.connect().await.expect("a connection");
            let url = client.home.clone();
            let answer = connection.send(&url, None, &[]).await.expect("an answer");
            assert_eq!(rest(&mut answer.into_body()).await.expect("all of it"), 4, "{http:?}");
            open.push(connection);
        }
        let refused = tokio::time::timeout(BOUND, served.client().length("/")).await;
        assert!(refused.expect("an end").is_err(), "{http:?}: one connection too many");
        served.stop().await;
    }
}

#[tokio::test]
async fn a_body_that_the_server_cuts_off_is_an_error_and_the_next_request_is_answered() {
    for http in ALL {
        let served = Served::start(http, move |request| async move {
            if request.uri().path() == "/whole" {
                return Response::new(Body::whole("here"));
            }
            let (send, receive) = mpsc::channel(2);
            for piece in [Ok("first".into()), Err(Cut)] {
                send.send(piece).await.expect("room");
            }
            body(receive)
        });
        let client = served.client();
        let cut = tokio::time::timeout(BOUND, client.length("/cut")).await.expect("an end");
        assert!(cut.is_err(), "{http:?}: it must not look whole");
        assert_eq!(client.length("/whole").await.expect("an answer"), 4, "{http:?}");
        served.stop().await;
    }
}

/// Fetches what is at a URL, as a player, and notifies `go` when four bytes have come.
async fn fetched(client: &Client, url: Url, go: &Notify) -> Result<Bytes, String> {
    let home = Arc::new(client.home.clone());
    let head = tokio::sync::watch::Sender::default().subscribe();
    let transport = client.transport.clone();
    let mut client = FetchClient::new(Clock::from_now(), transport, home, None, head);
    let (mut progress, _chunks) = client.follow();
    let wanted = fetch(1, url);
    let told = async {
        progress.wait_for(|progress| progress.bytes == 4).await.expect("it fetches");
        go.notify_one();
    };
    let both = async { tokio::join!(client.fetch(&wanted), told).0 };
    tokio::time::timeout(BOUND, both).await.expect("an end").body
}

/// Neither TLS nor QUIC would notice that (RFC 9114 §4.1.2).
#[tokio::test]
async fn a_body_that_is_shorter_than_its_head_promised_is_an_error() {
    let served = Served::start(Http3, async |_| {
        let mut response = Response::new(Body::whole("here"));
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("10"));
        response
    });
    let (client, url) = (served.client(), served.url("/"));
    let body = fetched(&client, url.clone(), &Notify::new()).await;
    assert_eq!(body, Err("4 bytes came of 10".into()));
    let certificate = served.folder.path().join("certificate.der");
    let asked = Asked { home: &url, url: &url, http: Http3, certificate: &certificate };
    let read = single::get(asked, Clock::from_now(), 100, BOUND).await;
    assert_eq!(read, Err("4 bytes came of 10".into()));
    served.stop().await;
}

/// RFC 9113 §8.1: with NO_ERROR, a server asks for the rest of a request no more, and hyper ends the body.
#[tokio::test]
async fn a_body_that_is_reset_without_an_error_is_not_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = folder.path().join("certificate.der");
    let (clock, names) = (Clock::from_now(), vec!["localhost".to_owned()]);
    let now = clock.unix_ns(clock.now());
    let tls = suiro_quic::tls::server(names, now, &certificate, vec![b"h2".to_vec()]);
    let tls = TlsAcceptor::from(Arc::new(tls.expect("TLS")));
    let listener = crate::net::listen((Ipv4Addr::LOCALHOST, 0).into(), None).expect("it listens");
    let port = listener.local_addr().expect("it is bound").port();
    let go = Arc::new(Notify::new());
    let told = go.clone();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let stream = tls.accept(stream).await.expect("a handshake");
        let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
        let (_, mut respond) = connection.accept().await.expect("a request").expect("no error");
        let head = Response::builder().header(CONTENT_LENGTH, 10).body(()).expect("a head");
        let mut body = respond.send_response(head, false).expect("a client");
        body.send_data(Bytes::from_static(b"here"), false).expect("a client");
        tokio::select! {
            _ = connection.accept() => panic!("one request"),
            () = told.notified() => body.send_reset(h2::Reason::NO_ERROR),
        }
        while connection.accept().await.is_some() {}
    });
    let home = Url::parse_secure(&format!("https://localhost:{port}/")).expect("a URL");
    let transport = Transport::new(Download::Segment, None, Http2, &certificate, clock);
    let client = Client { transport, home: home.clone() };
    let body = fetched(&client, home, &go).await;
    assert_eq!(body, Err("4 bytes came of 10".into()));
}

#[tokio::test]
async fn a_connection_that_ends_inside_a_body_is_an_error() {
    for http in ALL {
        let (send, served) = in_pieces(http);
        let client = served.client();
        send.send(Ok("first".into())).await.expect("room");
        let mut response = client.ask("/", &[]).await.expect("an answer").into_body();
        response.data().await.expect("no error").expect("not the end");
        served.stop().await;
        let cut = tokio::time::timeout(BOUND, rest(&mut response)).await.expect("an end");
        assert!(cut.is_err(), "{http:?}: it must not look whole");
        drop(send);
    }
}

/// What a server does to a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// It resets the stream in the middle of the body.
    Reset,
    /// It closes the connection in the middle of the body.
    Close,
    /// It closes the connection instead of answering, once.
    CloseFirst,
}

/// A server that harms what is asked for at `/harmed`: in the middle of a body when `go` is notified. And which connections
/// it had.
fn harmful(
    http: HttpVersion,
    harm: Harm,
    go: &Arc<Notify>,
) -> (Served, Arc<Mutex<BTreeSet<SocketAddr>>>) {
    let (go, asked) = (go.clone(), Arc::new(AtomicUsize::new(0)));
    let connections = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = connections.clone();
    let served = Served::start(http, move |request| {
        let (go, asked, seen) = (go.clone(), asked.clone(), seen.clone());
        async move {
            let peer = request.extensions().get().expect("it has a peer");
            seen.lock().expect("no holder panics").insert(*peer);
            if request.uri().path() == "/whole" {
                return Response::new(Body::whole("here"));
            }
            let connection = request.extensions().get::<moq_noq::Connection>().cloned();
            let close = move || {
                connection.expect("one of QUIC").close(INTERNAL_ERROR.into(), b"");
            };
            if harm == Harm::CloseFirst {
                return match asked.fetch_add(1, Relaxed) {
                    0 => {
                        close();
                        Response::new(Body::EMPTY)
                    }
                    _ => Response::new(Body::whole("there")),
                };
            }
            let (send, receive) = mpsc::channel(2);
            tokio::spawn(async move {
                send.send(Ok("first".into())).await.expect("room");
                go.notified().await;
                match harm {
                    Harm::Reset => drop(send.send(Err(Cut)).await),
                    _ => close(),
                }
            });
            body(receive)
        }
    });
    (served, connections)
}

/// RFC 9114 §8.1, `H3_INTERNAL_ERROR`.
const INTERNAL_ERROR: u32 = 0x102;

pub(super) fn fetch(number: u64, url: Url) -> Fetch {
    Fetch {
        number,
        lane: 0,
        what: What::Manifest,
        resource: Resource { url, range: None },
        attempt: 1,
        bytes_max: 1000,
        keep_body: true,
        room: None,
        chunks: None,
        told: None,
        priority: None,
    }
}

#[tokio::test]
async fn a_player_goes_on_after_a_reset_on_the_same_connection_and_otherwise_on_another() {
    for (http, harm) in [
        (Http2, Harm::Reset),
        (Http3, Harm::Reset),
        (Http3, Harm::Close),
        (Http3, Harm::CloseFirst),
    ] {
        let go = Arc::new(Notify::new());
        let (served, connections) = harmful(http, harm, &go);
        let (transport, home) = (served.client().transport, Arc::new(served.url("/")));
        let head = tokio::sync::watch::Sender::default().subscribe();
        let mut client = FetchClient::new(Clock::from_now(), transport, home, None, head);
        let fetched = client.fetch(&fetch(1, served.url("/whole"))).await;
        assert_eq!(fetched.body.as_deref(), Ok(&b"here"[..]));
        let (mut progress, _chunks) = client.follow();
        let harmed = fetch(2, served.url("/harmed"));
        let told = async {
            if harm != Harm::CloseFirst {
                progress.wait_for(|progress| progress.bytes == 5).await.expect("it fetches");
                go.notify_one();
            }
        };
        let both = async { tokio::join!(client.fetch(&harmed), told).0 };
        let fetched = tokio::time::timeout(BOUND, both).await.expect("an end");
        match harm {
            // RFC 9110 §9.2.2: a connection that ended while it was idle is replaced once.
            Harm::CloseFirst => assert_eq!(fetched.body.as_deref(), Ok(&b"there"[..])),
            _ => {
                let error = fetched.body.expect_err("it must not look whole");
                let prefix = if http == Http2 { "http: " } else { "http/3: " };
                assert!(error.starts_with(prefix), "{error}");
                assert_eq!((fetched.bytes, fetched.status), (5, Some(200)), "{http:?}, {harm:?}");
            }
        }
        let fetched = client.fetch(&fetch(3, served.url("/whole"))).await;
        assert_eq!(fetched.body.as_deref(), Ok(&b"here"[..]), "{http:?}, {harm:?}");
        let connections = connections.lock().expect("no holder panics").len();
        assert_eq!(connections, if harm == Harm::Reset { 1 } else { 2 }, "{http:?}, {harm:?}");
        served.stop().await;
    }
}
