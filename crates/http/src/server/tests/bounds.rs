//! What one end of HTTP/3 takes of the other: heads, frames, bodies that nobody reads, and what nobody acknowledges.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use moq_noq::{ConnectionError, Endpoint, VarInt};
use suiro_endpoint::net::{udp, udp_towards};
use suiro_quic::{net, tls};
use suiro_scenario::HttpVersion::Http3;

use super::connections::Cache;
use super::hostile::fetch;
use super::*;
use crate::http3;
use crate::player::FetchClient;

/// Types of frames (RFC 9114 §7.2), the last of which is reserved, and has no meaning.
pub(super) const DATA: u8 = 0x00;
const HEADERS: u8 = 0x01;
const GOAWAY: u8 = 0x07;
const RESERVED: u8 = 0x21;
/// RFC 9114 §8.1, `H3_CLOSED_CRITICAL_STREAM`.
const CLOSED_CRITICAL_STREAM: u32 = 0x104;
/// So many fields do not fit into a map of hyper.
const MANY: usize = 24_600;

/// The head of a frame, which says how long it is, and what comes after that.
pub(super) fn frame(kind: u8, length: u64, content: &[u8]) -> Vec<u8> {
    // RFC 9000 §16: the first two bits are those of a number of eight bytes.
    let length = ((0b11 << 62) | length).to_be_bytes();
    [&[kind][..], &length, content].concat()
}

/// A HEADERS frame with so many fields `accept-encoding: gzip, deflate, br`, number 31 of QPACK's static table. Each counts as
/// 64 bytes (RFC 9114 §4.2.2).
pub(super) fn head(first: &[u8], fields: usize) -> Vec<u8> {
    let head = [&[0, 0][..], first, &vec![0xc0 | 31; fields]].concat();
    frame(HEADERS, head.len() as u64, &head)
}

/// `:method: GET`, `:scheme: https` and `:path: /`, numbers 17, 23 and 1, and `:authority: a`, whose name is number 0: 167
/// bytes. And such fields.
pub(super) fn request(fields: usize) -> Vec<u8> {
    head(&[0xc0 | 17, 0xc0 | 23, 0xc0 | 1, 0x50, 1, b'a'], fields)
}

/// `:status: 200`, number 25: 42 bytes. And such fields, and a body.
fn response(fields: usize) -> Vec<u8> {
    [head(&[0xc0 | 25], fields), frame(DATA, 4, b"here")].concat()
}

/// A server of QUIC.
fn endpoint(certificate: &Path) -> Endpoint {
    let clock = Clock::from_now();
    let (now, names) = (clock.unix_ns(clock.now()), vec!["localhost".to_owned()]);
    let tls = tls::server(names, now, certificate, vec![http3::ALPN.to_vec()]).expect("TLS");
    let socket = udp((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    net::serve(socket, tls, &http3::behaviour()).expect("QUIC")
}

/// A connection on which this end speaks no HTTP/3.
pub(super) async fn connect(port: u16, name: &str, certificate: &Path) -> moq_noq::Connection {
    let tls = tls::client(certificate, vec![http3::ALPN.to_vec()]).expect("TLS");
    let socket = udp_towards(Ipv4Addr::LOCALHOST.into()).expect("a socket");
    let (endpoint, config) = net::client(socket, tls, &http3::behaviour()).expect("QUIC");
    let connecting = endpoint.connect_with(config, (Ipv4Addr::LOCALHOST, port).into(), name);
    connecting.expect("an address").await.expect("a handshake")
}

/// A server that answers every request at once, and a connection to it.
async fn served() -> (Served, moq_noq::Connection) {
    let served = Served::start(Http3, async |_| Response::new(Body::whole("here")));
    let certificate = served.folder.path().join("certificate.der");
    let connection = connect(served.port, "127.0.0.1", &certificate).await;
    (served, connection)
}

/// Whether a request is answered; otherwise its response is reset.
async fn is_answered(connection: &moq_noq::Connection, request: &[u8]) -> bool {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    send.write_all(request).await.expect("a server");
    send.finish().expect("it is open");
    let answer = tokio::time::timeout(BOUND, receive.read_to_end(1 << 16)).await.expect("an end");
    answer.is_ok_and(|answer| answer.windows(4).any(|part| part == b"here"))
}

#[tokio::test]
async fn a_server_takes_a_head_of_64_kib() {
    let (served, connection) = served().await;
    // 167 + 1021 × 64 = 65 511.
    for (fields, taken) in [(1021, true), (1022, false), (MANY, false), (0, true)] {
        assert_eq!(is_answered(&connection, &request(fields)).await, taken, "{fields}");
    }
    served.stop().await;
}

#[tokio::test]
async fn a_server_refuses_a_request_with_a_frame_that_is_too_long() {
    let (served, connection) = served().await;
    let padded = [frame(RESERVED, 65_536, &[0; 65_536]), request(0)].concat();
    assert!(is_answered(&connection, &padded).await);
    for kind in [HEADERS, RESERVED] {
        let (mut send, _receive) = connection.open_bi().await.expect("a stream");
        send.write_all(&frame(kind, 1 << 40, b"")).await.expect("a server");
        let stopped = tokio::time::timeout(BOUND, send.stopped()).await.expect("an end");
        let code = stopped.expect("the connection is open");
        assert_eq!(code, Some(VarInt::from_u32(http3::EXCESSIVE_LOAD)), "{kind}");
    }
    assert!(is_answered(&connection, &request(0)).await);
    let mut control = connection.open_uni().await.expect("a stream");
    // Its type, and SETTINGS without any.
    control.write_all(b"\x00\x04\x00").await.expect("a server");
    control.write_all(&frame(RESERVED, 1 << 40, b"")).await.expect("a server");
    let closed = tokio::time::timeout(BOUND, connection.closed()).await.expect("an end");
    match closed {
        ConnectionError::ApplicationClosed(closed) => {
            assert_eq!(closed.error_code, VarInt::from_u32(CLOSED_CRITICAL_STREAM));
        }
        other => panic!("{other}"),
    }
    served.stop().await;
}

/// How many bytes a connection takes of several streams before anything of them is sent.
async fn taken(connection: &moq_noq::Connection) -> usize {
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(connection.open_bi().await.expect("a stream"));
    }
    let mut context = Context::from_waker(Waker::noop());
    let mut bytes = 0;
    for (stream, _) in &mut streams {
        let mut stream = Pin::new(stream);
        while let Poll::Ready(taken) = stream.as_mut().poll_write(&mut context, &[0; 1000]) {
            bytes += taken.expect("it is open");
        }
    }
    bytes
}

/// noq lets a peer send 1.25 MB on each stream before they are read.
#[tokio::test]
async fn what_nobody_reads_or_acknowledges_is_bounded_for_all_streams_of_a_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = folder.path().join("certificate.der");
    let server = endpoint(&certificate);
    let port = server.local_addr().expect("it is bound").port();
    tokio::spawn(async move {
        let incoming = server.accept().await.expect("a client");
        incoming.await.expect("a handshake").closed().await
    });
    let connection = connect(port, "localhost", &certificate).await;
    assert_eq!(taken(&connection).await, 4_000_000, "the send window of either end");
    let (served, connection) = served().await;
    assert_eq!(taken(&connection).await, 1_000_000, "the receive window of a server");
    served.stop().await;
}

type Answers = Arc<Mutex<std::vec::IntoIter<Vec<u8>>>>;

/// A server that has an answer for each request, one after the other.
struct Scripted {
    url: Url,
    certificate: PathBuf,
    connections: Arc<AtomicUsize>,
}

impl Scripted {
    fn start(folder: &Path, answers: Vec<Vec<u8>>) -> Self {
        let certificate = folder.join("certificate.der");
        let server = endpoint(&certificate);
        let port = server.local_addr().expect("it is bound").port();
        let connections = Arc::<AtomicUsize>::default();
        let (seen, answers) = (connections.clone(), Arc::new(Mutex::new(answers.into_iter())));
        tokio::spawn(async move {
            while let Some(incoming) = server.accept().await {
                seen.fetch_add(1, Relaxed);
                tokio::spawn(answer(incoming, answers.clone()));
            }
        });
        let url = Url::parse_secure(&format!("https://localhost:{port}/")).expect("a URL");
        Self { url, certificate, connections }
    }
}

async fn answer(incoming: moq_noq::Incoming, answers: Answers) {
    let connection = incoming.await.expect("a handshake");
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        receive.read_to_end(1 << 16).await.expect("a request");
        let next = answers.lock().expect("no holder panics").next();
        send.write_all(&next.expect("an answer for each request")).await.expect("a client");
        send.finish().expect("it is open");
    }
}

/// What a player gets for these answers, and how many connections it needs.
async fn fetched(answers: Vec<Vec<u8>>) -> (Vec<Result<Bytes, String>>, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let count = answers.len() as u64;
    let Scripted { url, certificate, connections } = Scripted::start(folder.path(), answers);
    let clock = Clock::from_now();
    let transport = Transport::new(Download::Segment, None, Http3, &certificate, clock);
    let head = tokio::sync::watch::Sender::default().subscribe();
    let mut client = FetchClient::new(clock, transport, Arc::new(url.clone()), None, head);
    let mut bodies = Vec::new();
    for number in 0..count {
        let wanted = fetch(number, url.clone());
        let fetched = tokio::time::timeout(BOUND, client.fetch(&wanted)).await.expect("an end");
        bodies.push(fetched.body);
    }
    (bodies, connections.load(Relaxed))
}

#[tokio::test]
async fn a_player_takes_a_head_of_64_kib_and_goes_on_after_a_larger_one() {
    // 42 + 1023 × 64 = 65 514.
    let fields = [0, 1023, 1024, MANY, 0];
    let (bodies, connections) = fetched(fields.map(response).to_vec()).await;
    for (fields, body) in fields.into_iter().zip(bodies) {
        match fields {
            0 | 1023 => assert_eq!(body.as_deref(), Ok(&b"here"[..]), "{fields}"),
            _ => {
                let error = body.expect_err("it is too large");
                assert!(error.starts_with("http/3: Header too big"), "{fields}: {error}");
            }
        }
    }
    assert_eq!(connections, 1);
}

#[tokio::test]
async fn a_player_takes_no_frame_that_is_too_long_too_short_or_cut_off() {
    let small = [head(&[0xc0 | 25], 0), frame(DATA, 1, b".").repeat(500)].concat();
    let (bodies, _) = fetched(vec![small]).await;
    assert_eq!(bodies[0].as_deref(), Ok(&[b'.'; 500][..]));
    let long = "a frame of 1099511627776 bytes";
    let body = frame(RESERVED, 1 << 40, b"");
    let more = frame(DATA, 4, b"here");
    for (answer, why) in [
        (frame(HEADERS, 1 << 40, b""), long),
        ([head(&[0xc0 | 25], 0), body].concat(), long),
        ([head(&[0xc0 | 25], 0), frame(DATA, 5, b"here")].concat(), "ends within a frame"),
        ([head(&[0xc0 | 25], 0), frame(GOAWAY, 0, b""), more].concat(), "ends within its number"),
    ] {
        let (bodies, _) = fetched(vec![answer]).await;
        let error = bodies[0].as_ref().expect_err("it must not look whole");
        assert!(error.contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_cache_asks_again_after_a_head_that_is_too_large() {
    let folder = tempfile::tempdir().expect("a folder");
    let answers = vec![response(MANY), response(0)];
    let Scripted { url, certificate, connections } = Scripted::start(folder.path(), answers);
    let cache = Cache::start(url, Http3, &certificate).await;
    assert_eq!(cache.get("/a").await.0, 502);
    assert_eq!(cache.get("/a").await, (200, Some(4)));
    assert_eq!(connections.load(Relaxed), 1);
    cache.stop().await;
}
