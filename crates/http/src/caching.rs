//! How long a response may be kept, and how old it is (RFC 9111); pure, and bounded: headers come from anybody.

use std::time::UNIX_EPOCH;

use hyper::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderMap, HeaderName, HeaderValue, VARY};
use suiro_units::{Duration, Time};

/// The longest text of directives that is read, in bytes.
const TEXT_MAX: usize = 4096;
/// The most directives that are read.
const DIRECTIVES_MAX: usize = 64;
/// RFC 9111 §1.2.2: longer times are this long, in seconds.
const DELTA_MAX_S: u64 = 1 << 31;

/// The directives of a response that concern a cache that many clients share (RFC 9111 §5.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Directives {
    /// `max-age`.
    pub max_age: Option<Duration>,
    /// `s-maxage`, which precedes `max-age` in such a cache.
    pub shared_max_age: Option<Duration>,
    /// True if it must not be used for another request without asking the origin: `no-store`, `private` and `no-cache`,
    /// with fields or without, and what cannot be read.
    pub not_shared: bool,
}

impl Directives {
    /// Reads a `Cache-Control` header. Of a directive that comes twice, the first counts (§4.2.1).
    pub fn parse(text: &str) -> Self {
        let unread = Self { not_shared: true, ..Self::default() };
        let Some(pairs) = pairs(text, b',') else { return unread };
        let mut directives = Self::default();
        for (name, value) in pairs {
            match name.to_ascii_lowercase().as_str() {
                "max-age" => {
                    directives.max_age.get_or_insert(delta(value.as_deref()));
                }
                "s-maxage" => {
                    directives.shared_max_age.get_or_insert(delta(value.as_deref()));
                }
                "no-store" | "no-cache" | "private" => directives.not_shared = true,
                _ => {}
            }
        }
        directives
    }
}

/// Seconds; what is no number is no time at all: such a response is stale (§4.2.1).
fn delta(value: Option<&str>) -> Duration {
    Duration::from_secs(value.and_then(number).unwrap_or(0).min(DELTA_MAX_S))
}

/// A whole number; one that is too large for 64 bits is the largest.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Names with values that are tokens or quoted strings, between separators: `a, b=1, c="x, y"`. `None` if that is not what
/// it is, or too much of it.
pub(crate) fn pairs(text: &str, separator: u8) -> Option<Vec<(&str, Option<String>)>> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let mut pairs = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let end = rest.bytes().position(|byte| !is_token(byte)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let (value, after) = match after.strip_prefix('=') {
            None => (None, after),
            Some(after) => {
                let (value, after) = value(after)?;
                (Some(value), after)
            }
        };
        if !name.is_empty() {
            if pairs.len() == DIRECTIVES_MAX {
                return None;
            }
            pairs.push((name, value));
        } else if value.is_some() {
            return None;
        }
        let after = after.trim_start_matches([' ', '\t']);
        match after.as_bytes().first() {
            None => return Some(pairs),
            // An empty member is none (RFC 9110 §5.6.1.2).
            Some(byte) if *byte == separator => rest = &after[1..],
            Some(_) => return None,
        }
    }
}

/// A token or a quoted string (RFC 9110 §5.6.4), and what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.bytes().position(|byte| !is_token(byte)).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(char),
        }
    }
    None
}

const fn is_token(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
    ) || byte.is_ascii_alphanumeric()
}

/// How long a response is fresh, and how old it was when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// True if it may answer other requests.
    pub is_shared: bool,
    /// True if it says its age: it was not generated for this request (§5.1).
    pub has_age: bool,
    lifetime: Duration,
    age: Duration,
    received: Time,
}

impl Freshness {
    /// That of a response to a request of `requested`, whose head came at `received`: by the wall clock `unix_ns`, in
    /// nanoseconds since 1970.
    pub fn of(headers: &HeaderMap, requested: Time, received: Time, unix_ns: u64) -> Self {
        let directives = Directives::parse(&joined(headers, &CACHE_CONTROL));
        let lifetime = lifetime(headers, &directives);
        let is_shared = !directives.not_shared && !lifetime.is_zero() && !varies(headers);
        let said = headers.get(AGE).and_then(|age| Some(age.to_str().ok()?.trim()));
        let said = said.filter(|age| number(age).is_some());
        // §4.2.3, `corrected_age_value`: the answer may be as old as the time that it took.
        let corrected = delta(said) + received.saturating_since(requested);
        // `corrected_initial_age`
        let age = corrected.max(apparent_age(headers, unix_ns));
        Self { is_shared, has_age: said.is_some(), lifetime, age, received }
    }

    /// When its head came.
    pub fn received(&self) -> Time {
        self.received
    }

    /// How old the response is (§4.2.3, `current_age`).
    pub fn age(&self, now: Time) -> Duration {
        self.age + now.saturating_since(self.received)
    }

    /// True if it may still be served without asking the origin.
    pub fn is_fresh(&self, now: Time) -> bool {
        self.is_shared && self.age(now) < self.lifetime
    }

    /// Seconds until it expires, rounded down; negative if it has.
    pub fn ttl_s(&self, now: Time) -> i64 {
        let left = self.lifetime.as_nanos_i64().saturating_sub(self.age(now).as_nanos_i64());
        left.div_euclid(1_000_000_000)
    }
}

/// Fields that differ between requests of a cache of ours for the same object. Of its clients' other fields it passes on only
/// whether they take gzip, which is part of the object's key.
const DIFFERENT: [&str; 6] =
    ["host", "via", "forwarded", "priority", "early-data", "if-none-match"];

/// §4.1: whether `Vary` names a field that may have selected the response. Its values are not compared: such a response fits one
/// request alone.
fn varies(headers: &HeaderMap) -> bool {
    let names = joined(headers, &VARY);
    let is_same = |name: &str| {
        let name = name.trim_matches([' ', '\t']);
        name.bytes().all(|byte| is_token(byte) && byte != b'*')
            && !DIFFERENT.iter().any(|other| name.eq_ignore_ascii_case(other))
    };
    !names.split(',').all(is_same)
}

/// §4.2.3, `apparent_age`: how much later than the date of the response it is. A date is cut to a second, and a response takes
/// its time: that the clock shows the next second says nothing.
fn apparent_age(headers: &HeaderMap, unix_ns: u64) -> Duration {
    let date_s = date_s(headers, &DATE).unwrap_or(u64::MAX);
    let later_s = (unix_ns / 1_000_000_000).saturating_sub(date_s).min(DELTA_MAX_S);
    Duration::from_secs(if later_s > 1 { later_s } else { 0 })
}

fn date_s(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    http_date_s(headers.get(name)?.to_str().ok()?)
}

/// §4.2.1, for a shared cache. A response without a lifetime is not kept: heuristics (§4.2.2) are for pages, not for live streams.
fn lifetime(headers: &HeaderMap, directives: &Directives) -> Duration {
    let said = directives.shared_max_age.or(directives.max_age);
    said.unwrap_or_else(|| {
        // §5.3: what is no date has passed.
        let both = date_s(headers, &EXPIRES).zip(date_s(headers, &DATE));
        both.map_or(Duration::ZERO, |(expires, date)| {
            Duration::from_secs(expires.saturating_sub(date).min(DELTA_MAX_S))
        })
    })
}

/// The lines of one header as one (RFC 9110 §5.3). What is not ASCII cannot be read as directives either.
fn joined(headers: &HeaderMap, name: &HeaderName) -> String {
    let lines = headers.get_all(name).iter();
    let lines: Vec<&str> = lines.map(|line| line.to_str().unwrap_or("=")).collect();
    lines.join(",")
}

/// A date of HTTP in seconds since 1970, in any of its three forms (RFC 9110 §5.6.7).
pub fn http_date_s(text: &str) -> Option<u64> {
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// A time of the wall clock, in nanoseconds since 1970, as a date of HTTP (RFC 9110 §5.6.7): cut to a second.
pub fn http_date(unix_ns: u64) -> HeaderValue {
    let time = UNIX_EPOCH + std::time::Duration::from_nanos(unix_ns);
    HeaderValue::try_from(httpdate::fmt_http_date(time)).expect("a date is ASCII")
}

/// Whether a line of `If-None-Match` lists an entity tag, compared weakly (RFC 9110 §8.8.3.2, §13.1.2).
pub fn lists_tag(line: &str, tag: &str) -> bool {
    let opaque = tag.strip_prefix("W/").unwrap_or(tag);
    if ["*", tag, opaque].contains(&line.trim()) {
        return true;
    }
    // A tag ends at its second quote, and may have commas before that.
    let mut parts = line.split('"').skip(1).step_by(2);
    let quoted = opaque.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    quoted.is_some_and(|opaque| parts.any(|part| part == opaque))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn seconds(pairs: &[(&'static str, &'static str)]) -> Option<u64> {
        let freshness = Freshness::of(&headers(pairs), Time::ZERO, Time::ZERO, 0);
        freshness.is_shared.then(|| freshness.lifetime.as_nanos() / 1_000_000_000)
    }

    #[test]
    fn lifetimes_by_hand() {
        assert_eq!(seconds(&[("cache-control", "public, max-age=60")]), Some(60));
        assert_eq!(seconds(&[("cache-control", "max-age=60, s-maxage=\"5\"")]), Some(5));
        assert_eq!(
            seconds(&[("cache-control", "max-age=1"), ("cache-control", "public")]),
            Some(1)
        );
        assert_eq!(seconds(&[("cache-control", "MAX-AGE=7,max-age=9")]), Some(7));
        assert_eq!(seconds(&[("cache-control", "max-age=99999999999999999999")]), Some(1 << 31));
        assert_eq!(seconds(&[("cache-control", "x=\"a, max-age=9\", max-age=3")]), Some(3));
        let (date, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(seconds(&[("date", date), ("expires", later)]), Some(30));
        assert_eq!(
            seconds(&[("cache-control", "max-age=2"), ("date", date), ("expires", later)]),
            Some(2),
            "max-age precedes Expires"
        );
        for none in [
            "",
            "public",
            "no-store",
            "max-age=60, no-store",
            "private, max-age=60",
            "max-age=60, no-cache=\"etag\"",
            "max-age=-1",
            "max-age=a",
            "max-age",
            "max-age=60 x",
            "max-age=60, \"",
            "=60",
            "s-maxage=0, max-age=60",
        ] {
            assert_eq!(seconds(&[("cache-control", none)]), None, "{none}");
        }
        let varied = |vary| seconds(&[("cache-control", "max-age=60"), ("vary", vary)]);
        for same in ["origin", "Accept-Encoding, user-agent,, cookie", ""] {
            assert_eq!(varied(same), Some(60), "{same}");
        }
        for different in
            ["*", "Host", "origin,\tVIA", "Forwarded", "priority", "If-None-Match", "a b"]
        {
            assert_eq!(varied(different), None, "{different}");
        }
        let two = [("cache-control", "max-age=60"), ("vary", "origin"), ("vary", "via")];
        assert_eq!(seconds(&two), None);
        for expires in ["0", "", "06 Nov 1994 08:50:07 GMT"] {
            assert_eq!(seconds(&[("date", date), ("expires", expires)]), None, "{expires}");
        }
        for expires in ["Sunday, 06-Nov-94 08:50:07 GMT", "Sun Nov  6 08:50:07 1994"] {
            assert_eq!(seconds(&[("date", date), ("expires", expires)]), Some(30), "{expires}");
        }
        // As `Expires` of what never does.
        let never = [("date", date), ("expires", "Fri, 31 Dec 9999 23:59:59 GMT")];
        assert_eq!(seconds(&never), Some(1 << 31));
        assert_eq!(seconds(&[("date", later), ("expires", date)]), None);
    }

    #[test]
    fn ages_count_what_other_caches_and_the_request_took() {
        let told = headers(&[("cache-control", "max-age=10"), ("age", "4")]);
        let at = Time::from_millis;
        let freshness = Freshness::of(&told, at(1000), at(1500), 0);
        assert_eq!(freshness.age(at(1500)), Duration::from_millis(4500));
        assert_eq!(freshness.age(at(3000)), Duration::from_secs(6));
        assert!(freshness.is_fresh(at(6999)) && !freshness.is_fresh(at(7000)));
        assert_eq!([at(1500), at(7000), at(7500)].map(|at| freshness.ttl_s(at)), [5, 0, -1]);
        let odd = headers(&[("cache-control", "max-age=10"), ("age", "soon")]);
        let odd = Freshness::of(&odd, at(0), at(0), 0);
        assert_eq!((odd.age(at(0)), odd.has_age, freshness.has_age), (Duration::ZERO, false, true));
    }

    #[test]
    fn a_response_is_as_old_as_its_date() {
        let at = Time::from_millis;
        // 784 111 777 s after the beginning of 1970; the head comes so many milliseconds later, half a second after the request.
        let age_ms = |pairs: &[(&'static str, &'static str)], later_ms: u64| {
            let unix_ns = (784_111_777_000 + later_ms) * 1_000_000;
            let freshness = Freshness::of(&headers(pairs), at(1000), at(1500), unix_ns);
            freshness.age(at(1500)).as_nanos() / 1_000_000
        };
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let ages = [0, 1999, 2000, 30_500].map(|later_ms| age_ms(&[date], later_ms));
        assert_eq!(ages, [500, 500, 2000, 30_000]);
        // The larger counts.
        let both = |age| age_ms(&[date, ("age", age)], 30_500);
        assert_eq!(["4", "40"].map(both), [30_000, 40_500]);
        assert_eq!(age_ms(&[("date", "today")], 30_500), 500);
        // A date that is to come.
        let future = [("date", "Sun, 06 Nov 1994 08:50:37 GMT")];
        assert_eq!(age_ms(&future, 0), 500);
    }

    #[test]
    fn dates_by_hand() {
        assert_eq!(http_date_s("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date_s("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        // RFC 9110 §5.6.7: the obsolete forms of the first one.
        assert_eq!(http_date_s("Sunday, 06-Nov-94 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date_s("Sun Nov  6 08:49:37 1994"), Some(784_111_777));
        for bad in ["", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, "] {
            assert_eq!(http_date_s(bad), None, "{bad}");
        }
        assert_eq!(http_date(784_111_777_999_999_999), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(951_782_400_000_000_000), "Tue, 29 Feb 2000 00:00:00 GMT");
        // 2⁶⁴ ns are 18 446 744 073 s: 213 503 days, and 84 873 s.
        assert_eq!(http_date(u64::MAX), "Sun, 21 Jul 2554 23:34:33 GMT");
    }

    #[test]
    fn tags_are_found_in_lists() {
        for line in ["\"a,b\"", "*", " W/\"a,b\" ", "\"x\", W/\"a,b\"", "\"\",\"a,b\""] {
            assert!(lists_tag(line, "\"a,b\"") && lists_tag(line, "W/\"a,b\""), "{line}");
        }
        for line in ["", "\"a\"", "a,b", "\"x\" a,b \"y\"", "\"W/a,b\""] {
            assert!(!lists_tag(line, "\"a,b\""), "{line}");
        }
        assert!(lists_tag("bare", "bare") && !lists_tag("\"bare\"", "bare"));
    }

    proptest! {
        #[test]
        fn a_date_is_read_as_it_was_written(unix_s in 0u64..16_700_000_000) {
            let date = http_date(unix_s * 1_000_000_000);
            prop_assert_eq!(http_date_s(date.to_str().unwrap()), Some(unix_s));
        }

        #[test]
        fn any_text_is_read(text in "[ -~]{0,60}") {
            Directives::parse(&text);
            http_date_s(&text);
            if let Some(pairs) = pairs(&text, b';') {
                prop_assert!(pairs.len() <= DIRECTIVES_MAX);
            }
        }
    }
}
