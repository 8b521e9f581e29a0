//! From content to a response: conditions, ranges, headers, refusals.

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use suiro_units::Time;

use super::body::{Body, Live};
use super::range::{Part, part};
use crate::Clock;

/// What a response brings.
pub(super) enum Source {
    /// All of it is there.
    Whole(Bytes),
    /// It is still being captured: pieces and when each may be sent.
    Live(Vec<(Time, Bytes)>),
}

/// A response before the request's conditions and ranges are applied.
pub(super) struct Content {
    pub body: Source,
    pub kind: &'static str,
    pub caching: &'static str,
    /// Quoted; `None` for what changes all the time.
    pub tag: Option<String>,
}

/// How long caches may keep what (RFC 9111 §5.2.2, RFC 8246).
pub(super) mod caching {
    /// What never changes.
    pub const FOR_EVER: &str = "public, max-age=31536000, immutable";
    /// Manifests of what is on demand.
    pub const SHORT: &str = "public, max-age=60";
    /// Live manifests: half a second would do, but the unit is a second.
    pub const LEAST: &str = "public, max-age=1";
    /// The clock, and what is not there yet.
    pub const NONE: &str = "no-store";
}

/// A request that gets no content, and why.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal(pub StatusCode, pub &'static str);

pub(super) const NOTHING: Refusal = Refusal(StatusCode::NOT_FOUND, "there is nothing at this path");

impl Refusal {
    pub fn response(self) -> Response<Body> {
        let Self(status, reason) = self;
        let mut response = Response::new(Body::whole(format!("{reason}\n")));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, text);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching::NONE));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        }
        response
    }
}

/// The answer to a browser that asks whether it may (Fetch standard, CORS preflight).
pub(super) fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::EMPTY);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "range, if-none-match, cmcd-request, cmcd-object, cmcd-status, cmcd-session",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Applies conditions and ranges in the order of RFC 9110 §13.2.2.
pub(super) fn deliver(content: Content, request: &HeaderMap, clock: Clock) -> Response<Body> {
    let text = |name| request.get(name).and_then(|value| value.to_str().ok());
    let tag = content.tag.as_deref();
    let mut response = Response::new(Body::EMPTY);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(content.caching));
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(tag).ok()) {
        headers.insert(header::ETAG, tag);
    }
    if text(header::IF_NONE_MATCH).is_some_and(|wanted| matches_tag(wanted, tag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content.kind));
    let whole = match content.body {
        Source::Whole(whole) => whole,
        // Its length is not known: a range of it may be ignored (§14.2).
        Source::Live(pieces) => {
            *response.body_mut() = Body::Live(Live::new(clock, pieces));
            return response;
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let length = whole.len() as u64;
    // §13.1.5: a range of another version is no use; the whole is.
    let range = match text(header::IF_RANGE) {
        Some(wanted) if Some(wanted) != tag => None,
        _ => text(header::RANGE),
    };
    let (status, body, range) = match part(range, length) {
        Part::Whole => (StatusCode::OK, whole, None),
        Part::Range(first, last) => {
            let bounds = usize::try_from(first).ok().zip(usize::try_from(last).ok());
            let (from, to) = bounds.expect("a range lies within the body");
            let body = whole.slice(from..=to);
            (StatusCode::PARTIAL_CONTENT, body, Some(format!("bytes {first}-{last}/{length}")))
        }
        Part::Unsatisfiable => {
            let range = Some(format!("bytes */{length}"));
            (StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new(), range)
        }
    };
    if let Some(range) = range.and_then(|range| HeaderValue::from_str(&range).ok()) {
        headers.insert(header::CONTENT_RANGE, range);
    }
    *response.status_mut() = status;
    *response.body_mut() = Body::whole(body);
    response
}

/// §13.1.2: whether one of the listed tags is ours, compared weakly.
fn matches_tag(wanted: &str, tag: Option<&str>) -> bool {
    let Some(tag) = tag else { return false };
    let strip = |t: &str| t.trim().trim_start_matches("W/").to_owned();
    wanted.trim() == "*" || wanted.split(',').any(|one| strip(one) == tag)
}
