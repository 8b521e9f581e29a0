//! Conditions of requests, over each version of HTTP.

use hyper::StatusCode;
use hyper::header::{
    AGE, CACHE_CONTROL, CONTENT_LENGTH, ETAG, HeaderMap, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use suiro_scenario::HttpVersion::{Http1, Http2, Http3};

use super::connections::Cache;
use super::*;
use crate::server::{Source, deliver};

/// A server of four bytes that have expired, and how often it said that they are still valid.
fn tagged(http: HttpVersion) -> (Served, Arc<AtomicUsize>) {
    let valid = Arc::<AtomicUsize>::default();
    let count = valid.clone();
    let served = Served::start(http, move |request| {
        let mut headers = HeaderMap::new();
        for (name, value) in [(CACHE_CONTROL, "max-age=60"), (AGE, "90"), (ETAG, "\"1\"")] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let response = deliver(headers, Source::Whole("here".into()), &request.into_parts().0);
        count.fetch_add(usize::from(response.status() == StatusCode::NOT_MODIFIED), Relaxed);
        std::future::ready(response)
    });
    (served, valid)
}

/// RFC 9110 §8.6: a length of 0 would be that of the object.
#[tokio::test]
async fn what_is_unchanged_has_neither_content_nor_a_length() {
    for http in [Http1, Http2, Http3] {
        let (served, _) = tagged(http);
        let client = served.client();
        // Lines are one list.
        let known = ["\"0\"", "\"a,b\", W/\"1\""].map(HeaderValue::from_static);
        let known = known.map(|known| (IF_NONE_MATCH, known));
        let response = client.ask("/", &known).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{http:?}");
        let (tag, length) = (response.headers().get(ETAG), response.headers().get(CONTENT_LENGTH));
        assert!(tag.is_some() && length.is_none(), "{http:?}: {length:?}");
        assert_eq!(rest(&mut response.into_body()).await.expect("an end"), 0, "{http:?}");
        served.stop().await;
    }
}

#[tokio::test]
async fn a_cache_asks_whether_what_has_expired_is_still_valid() {
    for http in [Http1, Http2, Http3] {
        let (served, valid) = tagged(http);
        let certificate = served.folder.path().join("certificate.der");
        let cache = Cache::start(served.url("/"), http, &certificate).await;
        // A request follows the one before while the end of that has not come: over HTTP/3, it comes apart from the body.
        let asking = async {
            while valid.load(Relaxed) < 2 {
                assert_eq!(cache.get("/").await, (200, Some(4)), "{http:?}");
            }
        };
        tokio::time::timeout(BOUND, asking).await.expect("it asks");
        cache.stop().await;
        served.stop().await;
    }
}

/// RFC 9110 §13.1.5: of a weak tag, the bytes may be others.
#[test]
fn a_range_of_another_or_of_a_weak_version_is_the_whole() {
    let status = |tag, wanted: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, HeaderValue::from_static(tag));
        let request = Request::get("/").header(RANGE, "bytes=0-1").header(IF_RANGE, wanted);
        let (request, ()) = request.body(()).expect("a request").into_parts();
        deliver(headers, Source::Whole("here".into()), &request).status()
    };
    assert_eq!(status("\"1\"", "\"1\""), StatusCode::PARTIAL_CONTENT);
    assert_eq!(status("\"1\"", "\"2\""), StatusCode::OK);
    assert_eq!(status("W/\"1\"", "W/\"1\""), StatusCode::OK);
}

/// RFC 9110 §14.1.2: a range without a last byte goes on to the end.
#[tokio::test]
async fn a_range_ends_at_its_last_byte_or_at_the_end() {
    for http in [Http1, Http2, Http3] {
        let (served, _) = tagged(http);
        let url = served.url("/");
        let mut connection = served.client().connect().await.expect("a connection");
        for (range, length) in [((1, Some(2)), 2), ((1, None), 3), ((0, Some(9)), 4)] {
            let response = connection.send(&url, Some(range), &[]).await.expect("an answer");
            assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT, "{http:?} {range:?}");
            let came = rest(&mut response.into_body()).await.expect("an end");
            assert_eq!(came, length, "{http:?} {range:?}");
        }
        drop(connection);
        served.stop().await;
    }
}
