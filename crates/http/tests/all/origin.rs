//! The origin as a client sees it, request by request.

use crate::common::{Origin, vod};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use suiro_http::Clock;
use suiro_http::origin::catalogue::Container;
use suiro_http::origin::timeline::Schedule;
use suiro_units::Duration;

/// A client with one connection, which must last.
struct Client {
    connection: SendRequest<Empty<Bytes>>,
}

impl Client {
    async fn new(origin: &Origin) -> Self {
        let host = origin.address.ip().to_string();
        let stream = suiro_http::net::connect(&host, origin.address.port(), None).await.unwrap();
        let (connection, driver) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        Self { connection }
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<Bytes> {
        let mut request = Request::builder().method(method).uri(path).header("host", "origin:8080");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.connection.ready().await.expect("the connection is kept alive");
        let request = request.body(Empty::new()).unwrap();
        let (head, body) = self.connection.send_request(request).await.unwrap().into_parts();
        Response::from_parts(head, body.collect().await.unwrap().to_bytes())
    }

    async fn get(&mut self, path: &str) -> Response<Bytes> {
        self.ask(Method::GET, path, &[]).await
    }

    async fn range(&mut self, range: &str) -> Response<Bytes> {
        self.ask(Method::GET, SEGMENT, &[("range", range)]).await
    }
}

const SEGMENT: &str = "/v0/1.m4s";
/// 0.5 s at 400 kbit/s.
const LENGTH: usize = 25_000;

fn header<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

async fn on_demand() -> (Origin, Client) {
    let origin = Origin::start(vod(10), Container::Fmp4, Clock::from_now());
    let client = Client::new(&origin).await;
    (origin, client)
}

#[tokio::test]
async fn whole_segments() {
    let (origin, mut client) = on_demand().await;
    let response = client.get(SEGMENT).await;
    assert_eq!((response.status(), response.body().len()), (StatusCode::OK, LENGTH));
    assert!(response.body().starts_with(b"0 0 1;"));
    assert_eq!(header(&response, "content-type"), "video/mp4");
    assert_eq!(header(&response, "content-length"), "25000");
    assert_eq!(header(&response, "cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(header(&response, "accept-ranges"), "bytes");
    assert_eq!(header(&response, "access-control-allow-origin"), "*");
    assert!(!header(&response, "date").is_empty());
    let head = client.ask(Method::HEAD, SEGMENT, &[]).await;
    assert_eq!((head.status(), head.body().len()), (StatusCode::OK, 0));
    assert_eq!(header(&head, "content-length"), "25000");
    assert_eq!(header(&head, "etag"), header(&response, "etag"));
    let audio = client.get("/a/init.mp4").await;
    assert_eq!(
        (header(&audio, "content-type"), &audio.body()[..]),
        ("audio/mp4", &b"init 1 0;"[..])
    );
    let counts = origin.stop().await;
    assert_eq!((counts.requests, counts.body_bytes, counts.refused), (3, LENGTH as u64 + 9, 0));
}

#[tokio::test]
async fn ranges() {
    let (origin, mut client) = on_demand().await;
    let whole = client.get(SEGMENT).await.into_body();
    for (range, from, to) in
        [("bytes=0-9", 0, 9), ("bytes=24990-", 24_990, 24_999), ("bytes=-5", 24_995, 24_999)]
    {
        let response = client.range(range).await;
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(header(&response, "content-range"), format!("bytes {from}-{to}/25000"));
        assert_eq!(response.body(), &whole.slice(from..=to));
    }
    let beyond = client.range("bytes=25000-").await;
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(header(&beyond, "content-range"), "bytes */25000");
    let several = client.range("bytes=0-1,5-6").await;
    assert_eq!((several.status(), several.body().len()), (StatusCode::OK, LENGTH));
    // A range of a version that we do not have is the whole of ours.
    let other = [("range", "bytes=0-9"), ("if-range", "\"other\"")];
    assert_eq!(client.ask(Method::GET, SEGMENT, &other).await.status(), StatusCode::OK);
    // HEAD has no ranges.
    for range in ["bytes=0-0", "bytes=25000-"] {
        let head = client.ask(Method::HEAD, SEGMENT, &[("range", range)]).await;
        let said = (header(&head, "content-length"), header(&head, "content-range"));
        assert_eq!((head.status(), said), (StatusCode::OK, ("25000", "")), "{range}");
    }
    origin.stop().await;
}

#[tokio::test]
async fn conditions() {
    let (origin, mut client) = on_demand().await;
    let tag = header(&client.get(SEGMENT).await, "etag").to_owned();
    for matching in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".into()] {
        let response = client.ask(Method::GET, SEGMENT, &[("if-none-match", &matching)]).await;
        assert_eq!((response.status(), response.body().len()), (StatusCode::NOT_MODIFIED, 0));
        assert_eq!(header(&response, "etag"), tag);
    }
    let other = client.ask(Method::GET, SEGMENT, &[("if-none-match", "\"x\"")]).await;
    assert_eq!(other.status(), StatusCode::OK);
    let tag = header(&client.get("/v0.m3u8").await, "etag").to_owned();
    let same = client.ask(Method::GET, "/v0.m3u8", &[("if-none-match", &tag)]).await;
    assert_eq!(same.status(), StatusCode::NOT_MODIFIED);
    origin.stop().await;
}

#[tokio::test]
async fn what_is_not_there_says_so() {
    let (origin, mut client) = on_demand().await;
    for path in [
        "/",
        "/x",
        "/v0",
        "/v9.m3u8",
        "/v9/1.m4s",
        "/v0/1.ts",
        "/v0/-1.m4s",
        "/v0/+1.m4s",
        "/v0/1",
        "/v0/99999999999999999999.m4s",
        "/v0/9999999999999999999.m4s",
        "/v0/../../etc/passwd",
        "/v0/%2e%2e/x.m4s",
        "/v0/20.m4s",
        "//v0/1.m4s",
    ] {
        let response = client.get(path).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(header(&response, "cache-control"), "no-store");
        assert_eq!(header(&response, "access-control-allow-origin"), "*");
    }
    let post = client.ask(Method::POST, SEGMENT, &[]).await;
    assert_eq!(post.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(header(&post, "allow"), "GET, HEAD, OPTIONS");
    let preflight = client.ask(Method::OPTIONS, SEGMENT, &[("origin", "http://page")]).await;
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    assert!(header(&preflight, "access-control-allow-headers").contains("range"));
    assert_eq!(origin.stop().await.refused, 16);
}

#[tokio::test]
async fn live_segments_have_their_time() {
    let clock = Clock::from_now();
    let zero_unix_ns = clock.epoch_unix_ns() - 3_600_000_000_000;
    let window = Duration::from_secs(4);
    let origin = Origin::start(Schedule::Live { zero_unix_ns, window }, Container::Fmp4, clock);
    let mut client = Client::new(&origin).await;
    // An hour of segments of half a second.
    let mut status = async |number: u64| client.get(&format!("/v1/{number}.m4s")).await.status();
    assert_eq!(status(7199).await, StatusCode::OK);
    // The test would have to take an hour for this one.
    assert_eq!(status(14_400).await, StatusCode::NOT_FOUND);
    // Kept for two windows and a second: 9 s.
    assert_eq!(status(7199 - 10).await, StatusCode::OK);
    assert_eq!(status(7199 - 100).await, StatusCode::GONE);
    let mpd = client.get("/manifest.mpd").await;
    assert_eq!(header(&mpd, "content-type"), "application/dash+xml");
    assert_eq!(header(&mpd, "cache-control"), "public, max-age=1");
    let text = std::str::from_utf8(mpd.body()).unwrap();
    assert!(text.contains("value=\"http://origin:8080/time\""), "{text}");
    let time = client.get("/time").await;
    assert_eq!(header(&time, "cache-control"), "no-store");
    assert!(time.body().ends_with(b"Z") && time.body().starts_with(b"20"), "{time:?}");
    origin.stop().await;
}

#[tokio::test]
async fn transport_streams_have_no_mpd() {
    let origin = Origin::start(vod(10), Container::MpegTs, Clock::from_now());
    let mut client = Client::new(&origin).await;
    let refusal = client.get("/manifest.mpd").await;
    assert_eq!(refusal.status(), StatusCode::NOT_FOUND);
    assert!(refusal.body().starts_with(b"this package is MPEG-TS"));
    let segment = client.get("/v0/0.ts").await;
    assert_eq!(
        (segment.status(), header(&segment, "content-type")),
        (StatusCode::OK, "video/mp2t")
    );
    origin.stop().await;
}

#[tokio::test]
async fn one_socket_serves_both_families() {
    let listener = suiro_http::net::listen(suiro_http::net::any_address(0), None).unwrap();
    let address = listener.local_addr().unwrap();
    suiro_http::net::connect("127.0.0.1", address.port(), None).await.unwrap();
    if address.is_ipv6() {
        suiro_http::net::connect("::1", address.port(), None).await.unwrap();
    }
}

#[tokio::test]
async fn a_congestion_control_that_is_not_there_names_the_remedy() {
    let address = ([127, 0, 0, 1], 0).into();
    let error = suiro_http::net::listen(address, Some("nosuchcontrol")).unwrap_err().to_string();
    assert!(error.contains("nosuchcontrol") && error.contains("hint:"), "{error}");
    let listener = suiro_http::net::listen(address, Some("reno")).unwrap();
    let taken =
        suiro_http::net::listen(listener.local_addr().unwrap(), None).unwrap_err().to_string();
    assert!(taken.contains("hint: another program listens"), "{taken}");
    // A connection inherits the control from its listener.
    let connecting =
        suiro_http::net::connect("127.0.0.1", listener.local_addr().unwrap().port(), None);
    let (accepted, connected) = tokio::join!(listener.accept(), connecting);
    let (accepted, _) = accepted.unwrap();
    assert_eq!(rustix::net::sockopt::tcp_congestion(&accepted).unwrap(), "reno");
    drop(connected);
}
