//! Entity tags of an origin's responses, and its answers to clients that have one already.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, DATE, ETAG, HeaderValue,
    IF_NONE_MATCH, IF_RANGE, RANGE, VARY,
};
use hyper::http::request;
use hyper::{Method, Request, Response, StatusCode};

use super::Media;
use super::parts_tests::{ZERO, catalogue};
use super::serve::Service;
use crate::Clock;
use crate::server::Body;

/// Segments of as many chunks as those of the video have, each an empty box.
struct Chunked;

impl Media for Chunked {
    fn init(&self, _: usize, _: usize) -> io::Result<Bytes> {
        Ok(Bytes::from_static(b"init"))
    }

    fn segment(&self, _: usize, _: usize, _: u64) -> io::Result<Bytes> {
        Ok(b"\0\0\0\x08mdat".repeat(24).into())
    }
}

/// What the origin answers to a client that has the version of that tag, with time that does not pass.
async fn ask(method: Method, path: &str, at_ms: u64, known: &str) -> Response<Body> {
    ask_for(method, path, at_ms, known, "identity").await
}

/// The same, to a client that takes these content codings.
async fn ask_for(
    method: Method,
    path: &str,
    at_ms: u64,
    known: &str,
    codings: &str,
) -> Response<Body> {
    let request = Request::builder().method(method).uri(path).header("host", "origin");
    let request = request.header(IF_NONE_MATCH, known).header(ACCEPT_ENCODING, codings);
    respond(request, at_ms).await
}

async fn respond(request: request::Builder, at_ms: u64) -> Response<Body> {
    let reading = Clock::new(0, 0).now().as_nanos();
    let clock = Clock::new(reading, ZERO + at_ms * 1_000_000);
    let service = Service::new(catalogue(500), Arc::new(Chunked), clock, 0, None, None);
    let request = request.body(Ok(Bytes::new())).expect("a request");
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    Arc::new(service).respond(peer, request).await
}

async fn tag(path: &str, at_ms: u64) -> Option<HeaderValue> {
    let response = ask(Method::GET, path, at_ms, "\"none\"").await;
    assert_eq!(response.status(), StatusCode::OK, "{path} at {at_ms} ms");
    response.headers().get(ETAG).cloned()
}

/// At 21.1 s, segments up to 9 and two parts of segment 10 are there.
#[tokio::test(start_paused = true)]
async fn what_is_there_has_a_tag_and_what_is_being_captured_has_none() {
    for (path, at_ms, is_whole) in [
        ("/v0/init.mp4", 21_100, true),
        ("/v0/9.m4s", 21_100, true),
        ("/v0/10.1.m4s", 21_100, true),
        ("/v0/10.2.m4s", 21_100, false),
        ("/v0/10.m4s", 21_100, false),
        ("/v0/10.m4s", 22_100, true),
        ("/time", 21_100, false),
    ] {
        assert_eq!(tag(path, at_ms).await.is_some(), is_whole, "{path} at {at_ms} ms");
    }
}

/// RFC 9110 §15.4.5: what a 304 must have.
#[tokio::test(start_paused = true)]
async fn an_unchanged_object_is_not_sent_again() {
    for path in ["/manifest.mpd", "/master.m3u8", "/v0.m3u8", "/v0/9.m4s", "/v0/10.1.m4s"] {
        let first = ask(Method::GET, path, 21_100, "\"none\"").await;
        assert_eq!(first.headers()[DATE], "Sat, 21 Nov 2026 01:57:21 GMT");
        let known = first.headers()[ETAG].to_str().expect("ASCII").to_owned();
        for method in [Method::GET, Method::HEAD] {
            let again = ask(method, path, 21_100, &known).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path}");
            for name in [CACHE_CONTROL, DATE, ETAG] {
                assert_eq!(again.headers()[&name], first.headers()[&name], "{path}");
            }
            assert!(!again.headers().contains_key(CONTENT_TYPE), "{path}");
            let body = again.into_body().collect().await.expect("an end").to_bytes();
            assert!(body.is_empty(), "{path}");
        }
    }
}

/// RFC 9110 §8.8.3.3: who has a playlist in one coding has not got it in another.
#[tokio::test(start_paused = true)]
async fn each_coding_of_a_playlist_has_a_tag_of_its_own() {
    let mut tags = Vec::new();
    for codings in ["gzip", "identity"] {
        let response = ask_for(Method::GET, "/v0.m3u8", 21_100, "\"none\"", codings).await;
        tags.push(response.headers()[ETAG].to_str().expect("ASCII").to_owned());
    }
    for (codings, known, status) in [
        ("gzip", 0, StatusCode::NOT_MODIFIED),
        ("gzip", 1, StatusCode::OK),
        ("identity", 0, StatusCode::OK),
        ("identity", 1, StatusCode::NOT_MODIFIED),
    ] {
        let response = ask_for(Method::GET, "/v0.m3u8", 21_100, &tags[known], codings).await;
        assert_eq!(response.status(), status, "{codings} {known}");
        assert_eq!(response.headers()[VARY], "accept-encoding");
        let is_coded = response.headers().contains_key(CONTENT_ENCODING);
        assert_eq!(is_coded, codings == "gzip" && status == StatusCode::OK);
    }
}

/// RFC 9110 §13.1.5: a range is one of the coding that it is asked of.
#[tokio::test(start_paused = true)]
async fn a_range_of_another_coding_is_the_whole() {
    let ask = async |method, tag: &str, codings| {
        let request = Request::builder().method(method).uri("/v0.m3u8").header("host", "origin");
        let request = request.header(ACCEPT_ENCODING, codings).header(IF_RANGE, tag);
        respond(request.header(RANGE, "bytes=0-9"), 21_100).await
    };
    let plain = ask(Method::GET, "\"none\"", "identity").await;
    let coded = ask(Method::GET, "\"none\"", "gzip").await;
    let tag =
        |response: &Response<Body>| response.headers()[ETAG].to_str().expect("ASCII").to_owned();
    let status = async |tag, codings| ask(Method::GET, tag, codings).await.status();
    let (plain_tag, coded_tag) = (tag(&plain), tag(&coded));
    assert_eq!(status(&plain_tag, "identity").await, StatusCode::PARTIAL_CONTENT);
    assert_eq!(status(&coded_tag, "gzip").await, StatusCode::PARTIAL_CONTENT);
    assert_eq!(status(&plain_tag, "gzip").await, StatusCode::OK);
    assert_eq!(status(&coded_tag, "identity").await, StatusCode::OK);
    // HEAD says what GET would.
    let head = ask(Method::HEAD, &coded_tag, "gzip").await;
    assert_eq!((head.status(), tag(&head)), (StatusCode::OK, coded_tag));
    assert_eq!(head.headers()[CONTENT_ENCODING], "gzip");
}

/// In chunks, an MPD says how segments are counted, and no more.
#[tokio::test(start_paused = true)]
async fn manifests_have_the_tag_of_their_text() {
    assert_eq!(tag("/manifest.mpd", 21_100).await, tag("/manifest.mpd", 41_100).await);
    assert_eq!(tag("/v0.m3u8", 21_100).await, tag("/v0.m3u8", 21_200).await);
    assert_ne!(tag("/v0.m3u8", 21_200).await, tag("/v0.m3u8", 21_600).await);
}
