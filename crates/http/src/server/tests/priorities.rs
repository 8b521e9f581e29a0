//! Two responses share a slow connection: which one ends first.

use std::any::Any;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use moq_noq::congestion::{Controller, ControllerFactory};
use moq_noq::crypto::rustls::QuicServerConfig;
use moq_noq::{ServerConfig, TransportConfig};
use suiro_endpoint::net::udp;
use suiro_quic::{net, tls};
use suiro_scenario::HttpVersion::{Http2, Http3};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Barrier;

use super::*;
use crate::http3;
use crate::http3::client::Sender;
use crate::priority::PRIORITY;

/// Bytes of a response.
const BYTES: usize = 1_000_000;
/// What may be on its way at once: the connection is slow, and what one response has of it the other has not.
const WINDOW: u64 = 20_000;
/// Almost nothing of a response.
const LITTLE: usize = BYTES / 8;

/// Answers to two requests, which are handed over once both have been asked for.
#[derive(Clone)]
struct Answers(Arc<Barrier>);

impl Default for Answers {
    fn default() -> Self {
        Self(Arc::new(Barrier::new(2)))
    }
}

impl Answers {
    async fn next(self) -> Response<Body> {
        self.0.wait().await;
        Response::new(Body::whole(vec![b'.'; BYTES]))
    }
}

/// What has come of two responses on one connection, of which the first was asked for first.
#[derive(Default)]
struct Race {
    taken: RefCell<[usize; 2]>,
    first: RefCell<Option<(usize, usize)>>,
}

impl Race {
    fn came(&self, number: usize, bytes: usize) {
        self.taken.borrow_mut()[number] += bytes;
    }

    fn ended(&self, number: usize) {
        let taken = self.taken.borrow();
        assert_eq!(taken[number], BYTES);
        self.first.borrow_mut().get_or_insert((number, taken[1 - number]));
    }

    /// Which of them ended first, and how much of the other had come by then.
    fn first(self) -> (usize, usize) {
        self.first.into_inner().expect("both have ended")
    }
}

/// Congestion control that never sends faster.
#[derive(Debug, Clone)]
struct Slow;

impl ControllerFactory for Slow {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self)
    }
}

impl Controller for Slow {
    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        WINDOW
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A server of HTTP/3 whose connections are slow.
fn slow(certificate: &Path, answers: &Answers) -> (SocketAddr, JoinHandle<()>) {
    let names = vec!["localhost".to_owned()];
    let clock = Clock::from_now();
    let now = clock.unix_ns(clock.now());
    let tls = |names| tls::server(names, now, certificate, vec![http3::ALPN.to_vec()]);
    let socket = udp((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    let endpoint = net::serve(socket, tls(names.clone()).expect("TLS"), &http3::behaviour());
    let endpoint = endpoint.expect("QUIC");
    let crypto = QuicServerConfig::try_from(tls(names).expect("TLS")).expect("TLS of QUIC");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Slow));
    config.transport_config(Arc::new(transport));
    endpoint.set_server_config(Some(config));
    let address = endpoint.local_addr().expect("it is bound");
    let limits = Limits::per_address(CONNECTIONS);
    let server = http3::server::Server { endpoint, clock, limits, witness: None, samples: None };
    let answers = answers.clone();
    let task = tokio::spawn(async move {
        let respond = move |_, _| answers.clone().next();
        server.run(respond, std::future::pending()).await.expect("no record");
    });
    (address, task)
}

async fn over_http3(priorities: [&'static str; 2]) -> (usize, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = folder.path().join("certificate.der");
    let (race, answers) = (Race::default(), Answers::default());
    let (to, server) = slow(&certificate, &answers);
    let tls = tls::client(&certificate, vec![http3::ALPN.to_vec()]).expect("TLS");
    let sender = Sender::connect(to, "localhost", tls, &http3::behaviour(), || {}).await;
    let sender = sender.expect("a connection");
    let ask = async |number: usize| {
        let request = Request::get("https://localhost/").header(PRIORITY, priorities[number]);
        let response = sender.clone().send(request.body(()).expect("a request")).await;
        let mut body = response.expect("an answer").into_body();
        while let Some(data) = body.data().await.expect("all of it") {
            race.came(number, data.len());
        }
        race.ended(number);
    };
    tokio::join!(ask(0), ask(1));
    server.abort();
    race.first()
}

/// How a client begins (RFC 9113 §3.4), with both windows as large as they can be (§6.5.2, §6.9).
const WIDE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x7f\xff\xff\xff\
    \x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00";

/// A request for `/` on a stream of HTTP/2: `:method: GET`, `:scheme: https` and `:path: /`, numbers 2, 7 and 4 of HPACK's static
/// table, `:authority: a`, whose name is number 1, and the priority.
fn request(stream: u8, priority: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).expect("it is short");
    let header = PRIORITY;
    let name = header.as_str();
    let fixed = [0x82, 0x87, 0x84, 0x01, 1, b'a', 0, length(name)];
    let value = [length(priority)];
    let head = [&fixed[..], name.as_bytes(), &value, priority.as_bytes()].concat();
    // HEADERS, with the end of the head and of the request.
    let frame = [0, 0, u8::try_from(head.len()).expect("it is short"), 1, 0b101, 0, 0, 0, stream];
    [&frame[..], &head].concat()
}

/// The order is that of the frames, however the client reads them.
async fn over_http2(priorities: [&'static str; 2]) -> (usize, usize) {
    let answers = Answers::default();
    let served = Served::start(HttpVersion::Http2, move |_| answers.clone().next());
    let mut stream = served.tls().await;
    let [one, other] = priorities;
    let asked = [WIDE, &request(1, one), &request(3, other)].concat();
    stream.write_all(&asked).await.expect("a server");
    let mut taken = [0; 2];
    let first = loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("a frame");
        let [a, b, c, kind, flags, .., id] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        stream.read_exact(&mut vec![0; length]).await.expect("a frame");
        if kind == 0 {
            let number = usize::from(id / 2);
            taken[number] += length;
            if flags & 1 != 0 {
                break number;
            }
        }
    };
    drop(stream);
    served.stop().await;
    assert_eq!(taken[first], BYTES);
    (first, taken[1 - first])
}

async fn race(http: HttpVersion, priorities: [&'static str; 2]) -> (usize, usize) {
    let race = async {
        match http {
            Http2 => over_http2(priorities).await,
            _ => over_http3(priorities).await,
        }
    };
    tokio::time::timeout(BOUND, race).await.expect("an end")
}

#[tokio::test]
async fn the_urgent_response_ends_first_even_if_it_was_asked_for_later() {
    for http in [Http2, Http3] {
        let (first, other) = race(http, ["u=6", "u=1"]).await;
        assert!(first == 1 && other < LITTLE, "{http:?}: {first} {other}");
        let (first, other) = race(http, ["u=1", "u=6"]).await;
        assert!(first == 0 && other < LITTLE, "{http:?}: {first} {other}");
        let (first, other) = race(http, ["", "u=2,i"]).await;
        assert!(first == 1 && other < LITTLE, "{http:?}: without one it is 3: {first} {other}");
    }
}

#[tokio::test]
async fn equally_urgent_responses_follow_one_another_unless_they_are_incremental() {
    for http in [Http2, Http3] {
        for alike in ["u=2", "u=9", "nonsense="] {
            let (first, other) = race(http, [alike; 2]).await;
            assert!(first == 0 && other < LITTLE, "{http:?}, {alike}: {first} {other}");
        }
        let (_, other) = race(http, ["u=2,i"; 2]).await;
        assert!(other > BYTES - LITTLE, "{http:?}: they take turns: {other}");
        let (first, other) = race(http, ["u=2,i", "u=2"]).await;
        assert!(first == 1 && other < LITTLE, "{http:?}: it needs all of it: {first} {other}");
    }
}
