//! From content to a response: conditions, ranges, headers, refusals.

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::body::Body;
use super::range::{Part, part};
use crate::caching::{http_date, lists_tag};

/// What a response brings.
pub(crate) enum Source {
    /// All of it is there.
    Whole(Bytes),
    /// The rest is still to come.
    Coming(Body),
}

/// A request that gets no content, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal(pub StatusCode, pub &'static str);

impl Refusal {
    pub fn response(self) -> Response<Body> {
        let Self(status, reason) = self;
        refusal(status, reason)
    }
}

/// The answer without what was asked for, for a reason.
pub(crate) fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    let mut response = Response::new(Body::whole(format!("{reason}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, text);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    }
    response
}

/// The answer to a method that asks for no object: what is allowed, or that it is not.
pub(crate) fn without_object(method: &Method) -> Response<Body> {
    match *method {
        Method::OPTIONS => preflight(),
        _ => Refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD and OPTIONS").response(),
    }
}

/// Headers that pages of any site may send.
const ASKED: &str =
    "cmcd-object, cmcd-request, cmcd-session, cmcd-status, content-type, if-none-match, range";

/// The answer to a browser that asks whether it may (Fetch standard, CORS preflight).
fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::EMPTY);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ASKED),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Lets pages of any site read a response (Fetch standard, CORS; Resource Timing).
pub(crate) fn share(headers: &mut HeaderMap) {
    let any = HeaderValue::from_static("*");
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any.clone());
    headers.insert("timing-allow-origin", any);
    let exposed = HeaderValue::from_static(
        "content-length, content-range, date, etag, age, cache-status, cmsd-static, cmsd-dynamic",
    );
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

/// Gives a response a `Date` if it has none (RFC 9110 §6.6.1). Over HTTP/1.1 and 2 hyper would; over HTTP/3 no library does.
pub(crate) fn date(headers: &mut HeaderMap, unix_ns: u64) {
    headers.entry(header::DATE).or_insert_with(|| http_date(unix_ns));
}

/// The response with these headers, after conditions and ranges in the order of RFC 9110 §13.2.2.
pub(crate) fn deliver(headers: HeaderMap, source: Source, request: &Parts) -> Response<Body> {
    let text = |name| request.headers.get(name).and_then(|value| value.to_str().ok());
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    let tag = tag.as_deref();
    let mut response = Response::new(Body::EMPTY);
    *response.headers_mut() = headers;
    // Several lines are one list (§5.3).
    let mut known = request.headers.get_all(header::IF_NONE_MATCH).iter();
    let is_ours = |line: &HeaderValue| {
        line.to_str().ok().zip(tag).is_some_and(|(line, tag)| lists_tag(line, tag))
    };
    if known.any(is_ours) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(header::CONTENT_TYPE);
        response.headers_mut().remove(header::CONTENT_ENCODING);
        return response;
    }
    let whole = match source {
        Source::Whole(whole) => whole,
        // Its length is not known: a range of it may be ignored (§14.2).
        Source::Coming(body) => {
            *response.body_mut() = body;
            return response;
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let length = whole.len() as u64;
    // §13.1.5: a range of another version is no use; the whole is. Bytes of versions with the same weak tag may differ.
    let range = match text(header::IF_RANGE) {
        Some(wanted) if Some(wanted) != tag || wanted.starts_with("W/") => None,
        // §14.2: only GET has ranges.
        _ => text(header::RANGE).filter(|_| request.method == Method::GET),
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
