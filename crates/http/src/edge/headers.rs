//! What a cache does to headers; pure. Headers of an origin come from anybody, and are bounded.

use hyper::Version;
use hyper::header::{
    AGE, CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use suiro_record::words::CacheOutcome;
use suiro_units::Duration;

use crate::cmsd::{self, Cmsd};

/// RFC 9211.
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// The most headers of a response that are passed on, and the most bytes of them.
const HEADERS_MAX: usize = 64;
const BYTES_MAX: usize = 16 << 10;

/// What of an origin's headers is passed on: not what concerns the connection alone (RFC 9110 §7.6.1), nor what a cache says
/// by itself. `None` if it is too much.
pub(super) fn kept(headers: &HeaderMap) -> Option<HeaderMap> {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> = named
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let is_kept = |name: &HeaderName| {
        let own = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, CONTENT_LENGTH, AGE];
        !own.contains(name)
            && !["keep-alive", "proxy-connection", "proxy-authenticate"].contains(&name.as_str())
            && !named.iter().any(|other| other == name.as_str())
    };
    let mut kept = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| is_kept(name)) {
        kept.append(name.clone(), value.clone());
    }
    is_bounded(&kept).then_some(kept)
}

fn is_bounded(headers: &HeaderMap) -> bool {
    headers.len() <= HEADERS_MAX && weight(headers) <= BYTES_MAX
}

/// Whether a response with status 304 is about the one that was stored (RFC 9111 §4.3.4): their tags are the same, or the new
/// one is weak and has the same text. One without a tag does not say what it is about.
pub(super) fn is_about(stored: &HeaderMap, answered: &HeaderMap) -> bool {
    let tag = |headers: &HeaderMap| headers.get(ETAG).map(|tag| tag.as_bytes().to_vec());
    let Some((stored, answered)) = tag(stored).zip(tag(answered)) else { return false };
    match answered.strip_prefix(b"W/") {
        Some(weak) => weak == stored.strip_prefix(b"W/").unwrap_or(&stored),
        None => answered == stored,
    }
}

/// The headers of a stored response with those of one that says that it is still valid (RFC 9111 §3.2). `None` if it is too
/// much.
pub(super) fn updated(stored: &HeaderMap, newer: &HeaderMap) -> Option<HeaderMap> {
    let mut updated = stored.clone();
    // What servers reported with the stored response was about that alone.
    updated.remove(cmsd::DYNAMIC);
    // The stored response is whole.
    for name in newer.keys().filter(|name| *name != CONTENT_RANGE) {
        updated.remove(name);
        for value in newer.get_all(name) {
            updated.append(name.clone(), value.clone());
        }
    }
    is_bounded(&updated).then_some(updated)
}

/// Adds what this cache knows of its connection to what servers before it have reported (CMSD). Of an answer that did not come
/// for this request, they know nothing but what is true of the object.
pub(super) fn report(headers: &mut HeaderMap, is_new: bool, name: &str, known: &Cmsd) {
    if !is_new {
        headers.remove(cmsd::DYNAMIC);
    }
    if let Some(own) = known.written(name) {
        headers.append(cmsd::DYNAMIC, own);
    }
}

/// The bytes of names and values.
pub(super) fn weight(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// `Via` of what was received in that version (RFC 9110 §7.6.3).
pub(super) fn via(received: Version, name: &str) -> Option<HeaderValue> {
    let version = match received {
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    HeaderValue::try_from(format!("{version} {name}")).ok()
}

/// What a cache says of an answer.
pub(super) struct Said<'a> {
    /// Its name.
    pub name: &'a str,
    pub outcome: CacheOutcome,
    /// True if it had the object, but not fresh.
    pub expired: bool,
    /// True if it keeps the answer.
    pub stored: bool,
    /// What the origin answered.
    pub status: u16,
    pub ttl_s: i64,
    /// `None` for an answer that was generated for this request (RFC 9111 §5.1).
    pub age: Option<Duration>,
    pub received: Version,
}

impl Said<'_> {
    /// Adds it to the headers of the answer.
    pub fn add(&self, headers: &mut HeaderMap) {
        if let Some(age) = self.age {
            headers.insert(AGE, HeaderValue::from(age.as_nanos() / 1_000_000_000));
        }
        if let Some(via) = via(self.received, self.name) {
            headers.append(VIA, via);
        }
        if let Ok(status) = HeaderValue::try_from(self.cache_status()) {
            headers.append(CACHE_STATUS, status);
        }
    }

    /// RFC 9211 §2: this cache's member of the list.
    fn cache_status(&self) -> String {
        let Self { ttl_s, status, .. } = self;
        let name = as_item(self.name);
        // It does not look whether it has the object in another coding.
        let forwarded = if self.expired { "stale" } else { "miss" };
        let stored = if self.stored { "; stored" } else { "" };
        match self.outcome {
            CacheOutcome::Hit | CacheOutcome::Stale => format!("{name}; hit; ttl={ttl_s}"),
            CacheOutcome::Joined => format!(
                "{name}; fwd={forwarded}; fwd-status={status}; ttl={ttl_s}{stored}; collapsed"
            ),
            CacheOutcome::Miss | CacheOutcome::Revalidated => {
                format!("{name}; fwd={forwarded}; fwd-status={status}; ttl={ttl_s}{stored}")
            }
            CacheOutcome::Own => name,
        }
    }
}

/// A name as a token, or else as a string (RFC 8941 §3.3.4, §3.3.3).
fn as_item(name: &str) -> String {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'*';
    let is_next = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
    let mut bytes = name.bytes();
    match bytes.next().is_some_and(is_first) && bytes.all(is_next) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_a_connection_ends_with_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("age", "3"),
            ("cmsd-dynamic", "\"origin\";etp=5"),
            ("content-type", "video/mp4"),
            ("x-end", "2"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let kept = kept(&headers).unwrap();
        let mut names: Vec<&str> = kept.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["cmsd-dynamic", "content-type", "x-end"]);
    }

    /// CTA-5006: each server on the path adds an item to `CMSD-Dynamic`, and leaves `CMSD-Static` alone.
    #[test]
    fn a_cache_reports_after_the_origin() {
        let origin = map(&[("cmsd-static", "n=\"o\",ot=v"), ("cmsd-dynamic", "\"o\";etp=96;rd=9")]);
        let known = Cmsd { throughput_bps: Some(115_400), rtt_ms: Some(16), ..Cmsd::default() };
        for (is_new, expected) in [
            (true, &["\"o\";etp=96;rd=9", "\"edge\";etp=115;rtt=16"][..]),
            (false, &["\"edge\";etp=115;rtt=16"][..]),
        ] {
            let mut headers = origin.clone();
            report(&mut headers, is_new, "edge", &known);
            let dynamic: Vec<_> = headers.get_all(cmsd::DYNAMIC).iter().collect();
            assert_eq!(dynamic, expected);
            assert_eq!(headers[cmsd::STATIC], "n=\"o\",ot=v");
            // What is true of the cache's connection is what a player goes by.
            assert_eq!(Cmsd::read(&headers).throughput_bps, Some(115_000));
            assert_eq!(Cmsd::read(&headers).delay_ms, None);
        }
    }

    #[test]
    fn headers_without_end_are_refused() {
        let mut many = HeaderMap::new();
        for number in 0..=HEADERS_MAX {
            let name = HeaderName::try_from(format!("x-{number}")).unwrap();
            many.append(name, HeaderValue::from_static("1"));
        }
        assert_eq!(kept(&many), None);
        let mut long = HeaderMap::new();
        long.append("x", HeaderValue::try_from("a".repeat(BYTES_MAX)).unwrap());
        assert_eq!(kept(&long), None);
    }

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_is_still_valid_has_its_new_headers_and_the_others_of_before() {
        let stored = map(&[
            ("etag", "\"1\""),
            ("content-type", "video/mp4"),
            ("date", "before"),
            ("x-two", "1"),
            ("x-two", "2"),
        ]);
        let newer = map(&[
            ("etag", "\"1\""),
            ("date", "now"),
            ("x-two", "3"),
            ("x-new", "4"),
            ("content-range", "bytes 0-1/2"),
        ]);
        let found = updated(&stored, &newer).unwrap();
        let expected = map(&[
            ("etag", "\"1\""),
            ("content-type", "video/mp4"),
            ("date", "now"),
            ("x-two", "3"),
            ("x-new", "4"),
        ]);
        assert_eq!(found, expected);
        // What servers reported with the stored response is not of the new one.
        let mut reported = stored.clone();
        reported.append(cmsd::DYNAMIC, HeaderValue::from_static("\"o\";rd=9"));
        assert_eq!(updated(&reported, &newer).unwrap(), expected);
        // An origin cannot make it grow with each answer.
        let mut grown = stored;
        let grow = |headers: &HeaderMap, number: usize| {
            let mut newer = HeaderMap::new();
            let name = HeaderName::try_from(format!("x-{number}")).unwrap();
            newer.append(name, HeaderValue::from_static("1"));
            updated(headers, &newer)
        };
        for number in grown.len()..HEADERS_MAX {
            grown = grow(&grown, number).unwrap();
        }
        assert_eq!(grow(&grown, HEADERS_MAX), None);
    }

    #[test]
    fn a_304_is_about_what_has_its_tag() {
        let is_about =
            |stored, answered| is_about(&map(&[("etag", stored)]), &map(&[("etag", answered)]));
        assert!(is_about("\"1\"", "\"1\"") && is_about("W/\"1\"", "W/\"1\""));
        assert!(is_about("\"1\"", "W/\"1\""));
        // A strong tag is that of one version alone.
        assert!(!is_about("W/\"1\"", "\"1\"") && !is_about("\"1\"", "\"2\""));
        assert!(!super::is_about(&map(&[("etag", "\"1\"")]), &HeaderMap::new()));
        assert!(!super::is_about(&HeaderMap::new(), &HeaderMap::new()));
    }

    #[test]
    fn what_the_cache_did_is_in_the_answer() {
        let said = |outcome, expired| Said {
            name: "edge",
            outcome,
            expired,
            stored: true,
            status: 200,
            ttl_s: 5,
            age: (outcome == CacheOutcome::Hit).then_some(Duration::from_millis(2700)),
            received: Version::HTTP_11,
        };
        let of = |outcome, expired| said(outcome, expired).cache_status();
        assert_eq!(of(CacheOutcome::Hit, false), "edge; hit; ttl=5");
        assert_eq!(of(CacheOutcome::Miss, true), "edge; fwd=stale; fwd-status=200; ttl=5; stored");
        assert_eq!(
            of(CacheOutcome::Joined, false),
            "edge; fwd=miss; fwd-status=200; ttl=5; stored; collapsed"
        );
        let valid = Said { status: 304, ..said(CacheOutcome::Revalidated, true) };
        assert_eq!(valid.cache_status(), "edge; fwd=stale; fwd-status=304; ttl=5; stored");
        let mut headers = HeaderMap::new();
        headers.append(VIA, HeaderValue::from_static("2 core"));
        said(CacheOutcome::Hit, false).add(&mut headers);
        let via: Vec<_> = headers.get_all(VIA).iter().collect();
        assert_eq!(via, ["2 core", "1.1 edge"]);
        assert_eq!(headers[AGE], "2");
        let mut headers = HeaderMap::new();
        said(CacheOutcome::Miss, false).add(&mut headers);
        assert!(!headers.contains_key(AGE) && headers.contains_key(CACHE_STATUS));
        assert_eq!([as_item("edge-1"), as_item("1 \"edge")], ["edge-1", "\"1 \\\"edge\""]);
    }
}
