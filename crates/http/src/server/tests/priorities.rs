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

#[tokio::test]
async fn the_urgent_response_ends_first_even_if_it_was_asked_for_later() {
    let (first, other) = over_http3(["u=6", "u=1"]).await;
    assert!(first == 1 && other < LITTLE, "{first} {other}");
    let (first, other) = over_http3(["u=1", "u=6"]).await;
    assert!(first == 0 && other < LITTLE, "{first} {other}");
    let (first, other) = over_http3(["", "u=2,i"]).await;
    assert!(first == 1 && other < LITTLE, "what says nothing has urgency 3: {first} {other}");
}

#[tokio::test]
async fn equally_urgent_responses_follow_one_another_unless_they_are_incremental() {
    for alike in ["u=2", "u=9", "nonsense="] {
        let (first, other) = over_http3([alike; 2]).await;
        assert!(first == 0 && other < LITTLE, "{alike}: {first} {other}");
    }
    let (_, other) = over_http3(["u=2,i"; 2]).await;
    assert!(other > BYTES - LITTLE, "they take turns: {other}");
    let (first, other) = over_http3(["u=2,i", "u=2"]).await;
    assert!(first == 1 && other < LITTLE, "the one that needs all of it: {first} {other}");
}

#[tokio::test]
async fn over_http2_responses_take_turns_whatever_their_priority() {
    let (race, answers) = (Race::default(), Answers::default());
    let served = Served::start(HttpVersion::Http2, move |_| answers.clone().next());
    let client = served.client();
    // Both use the same one.
    client.connect().await.expect("a connection");
    let ask = async |number: usize| {
        let said = [(PRIORITY, HeaderValue::from_static(["u=6", "u=1"][number]))];
        let mut body = client.ask("/", &said).await.expect("an answer").into_body();
        while let Some((data, _)) = body.data().await.expect("all of it") {
            race.came(number, data.len());
        }
        race.ended(number);
    };
    tokio::join!(ask(0), ask(1));
    served.stop().await;
    let (_, other) = race.first();
    assert!(other > LITTLE, "if this fails, h2 has priorities, and a server can use them: {other}");
}
