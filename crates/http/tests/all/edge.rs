//! A cache between an origin and viewers, over loopback: what it passes on and when, what it keeps, its faults, and origins
//! that are hostile.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use suiro_endpoint::Failure;
use suiro_http::edge::{self, Counted, EdgeJob};
use suiro_http::flows::Records;
use suiro_http::{Clock, Url};
use suiro_record::Reader;
use suiro_record::tables::AccessRow;
use suiro_record::words::{CacheFault, CacheOutcome};
use suiro_scenario::{EdgeFault, HttpVersion};
use suiro_units::{BitRate, Duration, Ratio, Seed};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

/// What the origin does with one request.
pub enum Step {
    Send(Vec<u8>),
    /// Until the test goes on.
    Wait(Arc<Notify>),
    Close,
}

/// A head, and what follows it.
pub fn head(headers: &str) -> Step {
    Step::Send(format!("HTTP/1.1 200 OK\r\n{headers}\r\n").into_bytes())
}

fn chunk(text: &str) -> Step {
    Step::Send(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

fn end() -> Step {
    Step::Send(b"0\r\n\r\n".to_vec())
}

/// A whole object with these headers, each with its CRLF.
pub fn object(headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    vec![head(&format!("content-length: {length}\r\n{headers}")), Step::Send(body.into())]
}

/// An origin, the heads of the requests that came to it, and how many did.
pub struct Origin {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Origin {
    pub fn start(answer: impl Fn(&str, usize) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = suiro_http::net::listen(address, None).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (answer, asked) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, count) = (answer.clone(), count.clone());
                tokio::spawn(async move {
                    let answer = |head: &str| answer(head, count.fetch_add(1, Relaxed));
                    // A cache that has gone away ends the connection.
                    let _ = talk(stream, answer).await;
                });
            }
        });
        Self { address, asked }
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Relaxed)
    }
}

async fn talk(mut stream: TcpStream, answer: impl Fn(&str) -> Vec<Step>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await?);
        }
        for step in answer(&String::from_utf8_lossy(&request)) {
            match step {
                Step::Send(bytes) => stream.write_all(&bytes).await?,
                Step::Wait(until) => until.notified().await,
                Step::Close => return Ok(()),
            }
        }
    }
}

/// A cache of that origin.
pub struct Edge {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<Counted, Failure>>,
}

impl Edge {
    pub async fn start(origin: &Origin) -> Self {
        Self::start_with(origin, |_| {}).await
    }

    pub async fn faulty(origin: &Origin, fault: EdgeFault) -> Self {
        Self::start_with(origin, |job| job.fault = Some(fault)).await
    }

    /// One whose records go to that folder.
    pub async fn recorded(origin: &Origin, dir: &TempDir) -> Self {
        Self::start_with(origin, |job| job.records = Some(records(dir))).await
    }

    pub async fn start_with(origin: &Origin, change: impl FnOnce(&mut EdgeJob)) -> Self {
        let mut job = EdgeJob {
            name: "edge".into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            congestion: None,
            secure: None,
            origin: Url::parse(&format!("http://{}/", origin.address)).expect("a URL"),
            origin_http: HttpVersion::Http1,
            certificate: "none".into(),
            server: None,
            store: suiro_units::Bytes::new(10_000_000),
            in_flight: 16,
            fault: None,
            seed: Seed(1),
            records: None,
        };
        change(&mut job);
        let (stop, stopped) = oneshot::channel();
        let (told, ready) = oneshot::channel();
        let task = tokio::spawn(async move {
            let ready = |address| told.send(address).expect("the test waits");
            edge::run(&job, Clock::from_now(), ready, async { drop(stopped.await) }).await
        });
        let address = ready.await.expect("the cache serves");
        Self { address, stop, task }
    }

    pub async fn get(&self, path: &str) -> Response<Incoming> {
        self.ask(Method::GET, path, &[]).await
    }

    /// One request on a connection of its own.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<Incoming> {
        let (host, port) = (self.address.ip().to_string(), self.address.port());
        let stream = suiro_http::net::connect(&host, port, None).await.unwrap();
        let (mut connection, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        let mut request = Request::builder().method(method).uri(path).header("host", "edge:80");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        connection.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap()
    }

    /// The text at a path, and what the cache says that it did.
    pub async fn text(&self, path: &str) -> (String, String) {
        let response = self.get(path).await;
        let status = header(&response, "cache-status");
        (rest(response).await.expect("a whole body"), status)
    }

    pub async fn stop(self) -> Counted {
        drop(self.stop);
        self.task.await.expect("no panic").expect("it served")
    }
}

pub fn header(response: &Response<Incoming>, name: &str) -> String {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
}

/// The next piece of a body.
async fn next(response: &mut Response<Incoming>) -> String {
    let frame = response.body_mut().frame().await.expect("not the end").expect("no error");
    String::from_utf8(frame.into_data().expect("data").to_vec()).unwrap()
}

/// What is left of a body; an error if it was cut off.
pub async fn rest(response: Response<Incoming>) -> Result<String, hyper::Error> {
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

pub const KEPT: &str = "cache-control: max-age=60\r\n";

/// Where the records of a cache go.
pub fn records(dir: &TempDir) -> Records {
    Records { endpoint: "edge".into(), dir: dir.path().to_owned(), clients: Vec::new() }
}

/// What a cache recorded there of its answers, in order.
pub fn answers(dir: &TempDir) -> Vec<AccessRow> {
    let mut rows: Vec<AccessRow> = Reader::read_all(dir.path()).unwrap();
    rows.sort_by_key(|row| row.t_ns);
    rows
}

#[tokio::test]
async fn a_second_viewer_gets_what_is_there_of_an_object_in_flight() {
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let origin = Origin::start(move |_, _| {
        let chunked = head(&format!("transfer-encoding: chunked\r\n{KEPT}"));
        vec![chunked, chunk("first;"), Step::Wait(gate.clone()), chunk("second;"), end()]
    });
    let edge = Edge::start(&origin).await;
    let mut one = edge.get("/v0/1.m4s").await;
    assert_eq!(next(&mut one).await, "first;");
    let mut two = edge.get("/v0/1.m4s").await;
    assert_eq!(next(&mut two).await, "first;", "before the object is whole");
    let said = [&one, &two].map(|response| header(response, "cache-status"));
    assert_eq!(said[0], "edge; fwd=miss; fwd-status=200; ttl=59; stored");
    assert_eq!(said[1], "edge; fwd=miss; fwd-status=200; ttl=59; stored; collapsed");
    assert_eq!(header(&one, "via"), "1.1 edge");
    // It was generated for the first request alone (RFC 9111, section 5.1).
    assert_eq!([&one, &two].map(|response| header(response, "age")), ["", "0"]);
    go_on.notify_one();
    for response in [one, two] {
        assert_eq!(rest(response).await.unwrap(), "second;");
    }
    let (text, said) = edge.text("/v0/1.m4s").await;
    assert_eq!((text.as_str(), said.as_str()), ("first;second;", "edge; hit; ttl=59"));
    assert_eq!(header(&edge.get("/v0/1.m4s").await, "age"), "0");
    assert_eq!(origin.asked(), 1);
    let counted = edge.stop().await;
    assert_eq!((counted.hits, counted.joined, counted.misses), (2, 1, 1));
    assert_eq!(counted.body_bytes, 4 * 13);
}

#[tokio::test]
async fn viewers_who_ask_before_the_origin_has_answered_are_one_request() {
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let origin = Origin::start(move |_, _| {
        let mut steps = vec![Step::Wait(gate.clone())];
        steps.extend(object(KEPT, "playlist"));
        steps
    });
    let edge = Edge::start(&origin).await;
    // Whichever comes second follows the first.
    let release = async {
        while origin.asked() == 0 {
            tokio::task::yield_now().await;
        }
        go_on.notify_one();
    };
    let path = "/v0.m3u8?_HLS_msn=3&_HLS_part=1";
    let (one, two, ()) = tokio::join!(edge.text(path), edge.text(path), release);
    assert_eq!([one.0.as_str(), two.0.as_str()], ["playlist"; 2]);
    assert_eq!(origin.asked(), 1);
    let counted = edge.stop().await;
    assert_eq!(counted.misses, 1);
    assert_eq!(counted.hits + counted.joined, 1);
}

#[tokio::test]
async fn what_is_not_to_be_shared_is_brought_for_each() {
    let origin = Origin::start(|head, number| {
        let caching = match head.split(' ').nth(1).unwrap() {
            "/none" => "",
            "/private" => "cache-control: private, max-age=60\r\n",
            _ => "cache-control: no-store\r\n",
        };
        object(caching, &number.to_string())
    });
    let edge = Edge::start(&origin).await;
    for path in ["/none", "/private", "/time"] {
        let (one, two) = tokio::join!(edge.text(path), edge.text(path));
        let (three, said) = edge.text(path).await;
        assert!(one.0 != two.0 && three != one.0 && three != two.0, "{path}");
        assert!(said.starts_with("edge; fwd=miss; fwd-status=200; ttl="), "{said}");
        assert!(!said.contains("stored"), "{said}");
    }
    assert_eq!(origin.asked(), 9);
    let counted = edge.stop().await;
    assert_eq!((counted.hits, counted.misses + counted.joined), (0, 9));
}

#[tokio::test]
async fn queries_count_and_what_players_say_of_themselves_does_not() {
    let origin = Origin::start(|head, _| object(KEPT, head.split(' ').nth(1).unwrap()));
    let dir = tempfile::tempdir().unwrap();
    let edge = Edge::recorded(&origin, &dir).await;
    let one = edge.text("/v0.m3u8?_HLS_msn=1&CMCD=sid%3D%22a%22%2Csn%3D1").await;
    let two = edge.text("/v0.m3u8?_HLS_msn=1&CMCD=sid%3D%22b%22").await;
    let three = edge.text("/v0.m3u8?_HLS_msn=2").await;
    assert_eq!(
        [&one.0, &two.0, &three.0].map(String::as_str),
        ["/v0.m3u8?_HLS_msn=1", "/v0.m3u8?_HLS_msn=1", "/v0.m3u8?_HLS_msn=2"]
    );
    edge.stop().await;
    let rows = answers(&dir);
    let told: Vec<_> = rows.iter().map(|row| (row.cache, row.cmcd_session.as_deref())).collect();
    assert_eq!(
        told,
        [
            (Some(CacheOutcome::Miss), Some("a")),
            (Some(CacheOutcome::Hit), Some("b")),
            (Some(CacheOutcome::Miss), None)
        ]
    );
    assert!(rows.iter().all(|row| row.cache_age_ms.is_some() && row.cache_fault.is_none()));
    assert_eq!(&*rows[0].path, "/v0.m3u8?_HLS_msn=1");
}

#[tokio::test]
async fn the_origin_learns_of_the_cache_and_what_it_is_called() {
    let origin = Origin::start(|head, _| object(KEPT, head));
    let edge = Edge::start(&origin).await;
    let said = [("via", "2 phone"), ("range", "bytes=0-"), ("priority", "u=1, i, x=7")];
    let asked = edge.ask(Method::GET, "/a", &said).await;
    let head = rest(asked).await.unwrap();
    let lines: Vec<&str> = head.lines().collect();
    let forwarded = "forwarded: host=\"edge:80\";proto=http";
    for line in ["via: 2 phone", "via: 1.1 edge", forwarded, "priority: u=1, i, x=7"] {
        assert!(lines.contains(&line), "{head}");
    }
    assert!(!head.contains("range:"), "the cache asks for the whole: {head}");
    edge.stop().await;
}

#[tokio::test]
async fn ranges_conditions_and_heads_are_answered_from_what_is_kept() {
    let origin = Origin::start(|_, _| object(&format!("{KEPT}etag: \"1\"\r\n"), "0123456789"));
    let edge = Edge::start(&origin).await;
    let range = |range| [("range", range)];
    // Also of an object that is still to come.
    let first = edge.ask(Method::GET, "/a", &range("bytes=2-4")).await;
    assert_eq!(
        (first.status().as_u16(), header(&first, "content-range").as_str()),
        (206, "bytes 2-4/10")
    );
    assert_eq!(rest(first).await.unwrap(), "234");
    let last = edge.ask(Method::GET, "/a", &range("bytes=-1")).await;
    assert!(header(&last, "cache-status").contains("hit"));
    assert_eq!(rest(last).await.unwrap(), "9");
    let beyond = edge.ask(Method::GET, "/a", &range("bytes=10-")).await;
    assert_eq!(beyond.status(), 416);
    let same = edge.ask(Method::GET, "/a", &[("if-none-match", "\"1\"")]).await;
    assert_eq!(same.status(), 304);
    for said in [&[][..], &range("bytes=0-0")] {
        let head = edge.ask(Method::HEAD, "/a", said).await;
        assert_eq!((head.status().as_u16(), header(&head, "content-length").as_str()), (200, "10"));
        assert_eq!(rest(head).await.unwrap(), "");
    }
    assert_eq!(edge.ask(Method::POST, "/a", &[]).await.status(), 405);
    assert_eq!(edge.ask(Method::GET, "//elsewhere/a", &[]).await.status(), 400);
    assert_eq!(origin.asked(), 1);
    edge.stop().await;
}

/// RFC 9111 §5.1: only an answer that was not generated for the request has an age.
#[tokio::test]
async fn an_age_is_that_of_what_was_kept_here_or_before() {
    let origin = Origin::start(|head, _| match head.split(' ').nth(1).unwrap() {
        "/kept-before" => object(&format!("{KEPT}age: 7\r\n"), "x"),
        "/no-store" => object("cache-control: no-store\r\n", "x"),
        _ => object(KEPT, "x"),
    });
    let edge = Edge::start(&origin).await;
    for (path, ages) in [("/new", ["", "0"]), ("/kept-before", ["7", "7"]), ("/no-store", ["", ""])]
    {
        for age in ages {
            let response = edge.get(path).await;
            assert_eq!(header(&response, "age"), age, "{path}");
            rest(response).await.unwrap();
        }
    }
    edge.stop().await;
}

pub fn fault(kind: CacheFault) -> EdgeFault {
    EdgeFault {
        kind: Some(kind),
        from: Duration::ZERO,
        to: None,
        share: Ratio::constant(1.0),
        delay: None,
        rate: None,
        retry_after: None,
        age: None,
    }
}

#[tokio::test]
async fn a_cache_that_is_unavailable_says_when_to_come_again() {
    let origin = Origin::start(|_, _| object(KEPT, "x"));
    let retry_after = Some(Duration::from_secs(2));
    let unavailable = EdgeFault { retry_after, ..fault(CacheFault::Unavailable) };
    let edge = Edge::faulty(&origin, unavailable).await;
    let response = edge.get("/a").await;
    assert_eq!((response.status().as_u16(), header(&response, "retry-after").as_str()), (503, "2"));
    assert_eq!((origin.asked(), header(&response, "cache-control").as_str()), (0, "no-store"));
    edge.stop().await;
}

#[tokio::test]
async fn a_reset_cuts_a_body_off_inside_a_piece() {
    let origin = Origin::start(|_, _| {
        let chunked = head(&format!("transfer-encoding: chunked\r\n{KEPT}"));
        vec![chunked, chunk("0123456789"), chunk("abc"), end()]
    });
    let edge = Edge::faulty(&origin, fault(CacheFault::Reset)).await;
    // On its way, and kept.
    for _ in 0..2 {
        let mut response = edge.get("/a").await;
        let first = next(&mut response).await;
        assert!(!first.is_empty() && "0123456789abc".starts_with(&first), "{first}");
        assert!(rest(response).await.is_err(), "it must not look whole");
    }
    assert_eq!(origin.asked(), 1);
    edge.stop().await;
}

#[tokio::test]
async fn a_slow_cache_sends_all_of_it_and_a_wrong_age_is_said() {
    let body = "x".repeat(20_000);
    let sent = body.clone();
    let origin = Origin::start(move |_, _| object(KEPT, &sent));
    let slow = EdgeFault { rate: Some(BitRate::from_mbps(4)), ..fault(CacheFault::Slow) };
    let edge = Edge::faulty(&origin, slow).await;
    for _ in 0..2 {
        let mut response = edge.get("/a").await;
        assert_eq!(header(&response, "content-length"), "20000");
        // 20 ms at 4 Mbit/s come first.
        let first = next(&mut response).await.len();
        assert!((1..=10_000).contains(&first), "{first}");
        assert_eq!(first + rest(response).await.unwrap().len(), 20_000);
    }
    edge.stop().await;
    let old = EdgeFault { age: Some(Duration::from_secs(90)), ..fault(CacheFault::Age) };
    let edge = Edge::faulty(&origin, old).await;
    assert_eq!(header(&edge.get("/a").await, "age"), "90");
    edge.stop().await;
}

#[tokio::test]
async fn a_stale_cache_serves_the_last_playlist_whatever_was_asked_for() {
    let origin = Origin::start(|head, _| object(KEPT, head.split(' ').nth(1).unwrap()));
    let edge = Edge::faulty(&origin, fault(CacheFault::Stale)).await;
    edge.text("/v0.m3u8?_HLS_msn=1").await;
    let (text, _) = edge.text("/v0.m3u8?_HLS_msn=2").await;
    assert_eq!(text, "/v0.m3u8?_HLS_msn=1");
    assert_eq!(edge.text("/v0/2.m4s").await.0, "/v0/2.m4s", "and what it has not, it brings");
    edge.stop().await;
}

#[tokio::test]
async fn a_body_that_is_cut_short_is_cut_off_and_not_kept() {
    let origin = Origin::start(|head_of, number| {
        let chunked = || head(&format!("transfer-encoding: chunked\r\n{KEPT}"));
        match (head_of.split(' ').nth(1).unwrap(), number % 2) {
            // Inside a box; less than was promised.
            ("/chunk", 0) => vec![chunked(), Step::Send(b"a\r\nmoof12".to_vec()), Step::Close],
            ("/length", 0) => {
                vec![
                    head(&format!("content-length: 100\r\n{KEPT}")),
                    Step::Send(b"moof12".to_vec()),
                    Step::Close,
                ]
            }
            _ => object(KEPT, "whole"),
        }
    });
    let edge = Edge::start(&origin).await;
    for path in ["/chunk", "/length"] {
        let response = edge.get(path).await;
        assert_eq!(response.status(), 200);
        assert!(rest(response).await.is_err(), "{path}: it must not look whole");
        assert_eq!(edge.text(path).await.0, "whole", "{path}: the origin was asked again");
    }
    let counted = edge.stop().await;
    assert_eq!((counted.failed, counted.misses), (2, 4));
}

#[tokio::test]
async fn an_origin_without_an_answer_is_a_bad_gateway() {
    let origin = Origin::start(|head_of, _| match head_of.split(' ').nth(1).unwrap() {
        "/hangup" => vec![Step::Close],
        "/nonsense" => vec![Step::Send(b"moof\r\n\r\n".to_vec()), Step::Close],
        // One header too many for the cache, and headers without end.
        "/many" => {
            let many: String = (0..80).map(|n| format!("x-{n}: 1\r\n")).collect();
            object(&many, "x")
        }
        _ => {
            let long = format!("x: {}\r\n", "a".repeat(1000)).repeat(1000);
            vec![head(&long), Step::Close]
        }
    });
    let edge = Edge::start(&origin).await;
    for path in ["/hangup", "/nonsense", "/many", "/endless"] {
        let response = edge.get(path).await;
        assert_eq!((path, response.status().as_u16()), (path, 502));
        assert_eq!(rest(response).await.unwrap(), "the origin has not answered\n");
    }
    edge.stop().await;
    let nobody = Origin { address: (Ipv4Addr::LOCALHOST, 1).into(), asked: Arc::default() };
    let dir = tempfile::tempdir().unwrap();
    let edge = Edge::recorded(&nobody, &dir).await;
    for path in ["/a", "/a", "/b"] {
        assert_eq!(edge.get(path).await.status(), 502);
    }
    assert_eq!(edge.ask(Method::GET, "//elsewhere/a", &[]).await.status(), 400);
    let counted = edge.stop().await;
    assert_eq!((counted.misses, counted.hits, counted.failed), (3, 0, 3));
    let rows = answers(&dir);
    let of = |outcome| rows.iter().filter(|row| row.cache == Some(outcome)).count();
    assert_eq!([CacheOutcome::Miss, CacheOutcome::Own].map(of), [3, 1]);
    assert!(rows.iter().all(|row| row.cache_age_ms.is_none()));
}

/// Time passes only where everybody waits: for the test, at once.
#[tokio::test]
async fn an_origin_that_never_answers_is_waited_for_within_bounds() {
    let origin = Origin::start(|head_of, _| {
        let never = Step::Wait(Arc::default());
        match head_of.split(' ').nth(1).unwrap() {
            "/blocked.m3u8" => vec![never],
            _ => {
                let chunked = head(&format!("transfer-encoding: chunked\r\n{KEPT}"));
                vec![chunked, chunk("first;"), never]
            }
        }
    });
    let edge = Edge::start(&origin).await;
    let asking = async {
        let response = edge.get("/blocked.m3u8").await;
        assert_eq!(response.status(), 504);
        assert_eq!(rest(response).await.unwrap(), "the origin has not answered in time\n");
    };
    let asked = async {
        while origin.asked() == 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
    };
    tokio::join!(asking, asked);
    tokio::time::resume();
    let mut part = edge.get("/v0/2.4.m4s").await;
    assert_eq!(next(&mut part).await, "first;");
    tokio::time::pause();
    assert!(rest(part).await.is_err(), "it must not look whole");
    tokio::time::resume();
    let counted = edge.stop().await;
    assert_eq!((counted.failed, counted.misses), (2, 2));
}

#[tokio::test]
async fn objects_in_flight_and_kept_are_bounded() {
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let origin = Origin::start(move |head_of, _| {
        let chunked = head(&format!("transfer-encoding: chunked\r\n{KEPT}"));
        let mut steps = vec![chunked, chunk(&"x".repeat(600_000)), end()];
        if head_of.starts_with("GET /held ") {
            steps.insert(1, Step::Wait(gate.clone()));
        }
        steps
    });
    let edge = Edge::start_with(&origin, |job| {
        (job.in_flight, job.store) = (1, suiro_units::Bytes::new(1_000_000));
    })
    .await;
    let held = edge.get("/held").await;
    let refused = edge.get("/other").await;
    assert_eq!((refused.status().as_u16(), header(&refused, "retry-after").as_str()), (503, "1"));
    go_on.notify_one();
    assert_eq!(rest(held).await.unwrap().len(), 600_000);
    edge.text("/other").await;
    go_on.notify_one();
    let (_, said) = edge.text("/held").await;
    assert!(said.contains("fwd=miss"), "it made room: {said}");
    let counted = edge.stop().await;
    assert_eq!((counted.full, counted.evicted), (1, 2));
}
