//! What NMOS has in common: identifiers, timestamps, requests and replies as data. Pure.

pub mod connection;
pub mod door;
pub mod node;
pub mod resources;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use suiro_units::Duration;

/// The header with what a node stops when it starts: URLs with spaces between them.
pub const AFTER: &str = "x-suiro-after";
/// The header with a controller's claim.
pub const CLAIM: &str = "x-suiro-claim";
/// Longest body of a request that is read, in bytes.
pub const BODY_MAX: usize = 256 << 10;

/// An identifier of a resource: a UUID in lower case (IS-04 v1.3, resource_core).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(String);

impl Id {
    /// The identifier of what has this name: the same name always has the same one, so that a node keeps its identifiers when
    /// it starts again (IS-04 v1.3, Data Model: Identifier Mapping).
    ///
    /// Made as in RFC 9562 §5.5, but with SHA-256: version 8, which is for that, does not match AMWA's pattern.
    pub fn named(name: &str) -> Self {
        let digest = Sha256::digest(name.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        bytes[6] = bytes[6] & 0x0f | 0x50;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let hex = hex.concat();
        let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        Self(groups.join("-"))
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Id {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        let fits = text.len() == 36
            && text.bytes().enumerate().all(|(at, c)| match at {
                8 | 13 | 18 | 23 => c == b'-',
                14 => (b'1'..=b'5').contains(&c),
                19 => matches!(c, b'8' | b'9' | b'a' | b'b'),
                _ => is_hex(c),
            });
        fits.then(|| Self(text.to_owned())).ok_or("a UUID in lower case")
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A time in TAI since 1970-01-01 00:00:00 TAI, written `SECONDS:NANOSECONDS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Tai(u64);

impl Tai {
    /// From nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Later by a duration.
    pub const fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }

    /// How much later it is than `earlier`; zero if it is earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Tai {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl FromStr for Tai {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "SECONDS:NANOSECONDS, with less than 1000000000 nanoseconds";
        let number = |digits: &str| -> Option<u64> {
            let plain = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
            plain.then(|| digits.parse().ok())?
        };
        let (seconds, nanos) = text.split_once(':').ok_or(EXPECTED)?;
        let (seconds, nanos) = number(seconds).zip(number(nanos)).ok_or(EXPECTED)?;
        if nanos >= 1_000_000_000 {
            return Err(EXPECTED);
        }
        let whole = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanos));
        whole.map(Self).ok_or(EXPECTED)
    }
}

/// A request, as far as it matters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// The method, such as `GET`.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// The query, without `?`.
    pub query: Option<String>,
    /// `Content-Type`, as it came.
    pub content_type: Option<String>,
    /// `Authorization`, as it came.
    pub authorization: Option<String>,
    /// `Host`, as it came.
    pub host: Option<String>,
    /// `Origin`, as it came: browsers send it with every command of a page.
    pub origin: Option<String>,
    /// `X-Suiro-Claim`, as it came: the claim of the controller that commands ([`crate::claim::Claim`]).
    pub claim: Option<String>,
    /// `X-Suiro-After`, as it came: the senders or receivers that a node must stop when it starts ([`crate::node`]).
    pub after: Option<String>,
    /// `Sec-WebSocket-Key` of a request to become a WebSocket of version 13.
    pub upgrade: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Ask {
    /// A request with a JSON body.
    pub fn json(method: &str, path: &str, body: &Value) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            content_type: Some("application/json".to_owned()),
            body: body.to_string().into_bytes(),
            ..Self::default()
        }
    }

    /// A request for what is there.
    pub fn read(path: &str) -> Self {
        Self { method: "GET".to_owned(), path: path.to_owned(), ..Self::default() }
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// The reply: not JSON by its type, too long, or not JSON.
    pub fn body(&self) -> Result<Value, Reply> {
        let found = self.content_type.as_deref().unwrap_or("none");
        let kind = found.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let error = format!("Content-Type: expected application/json, found {found}");
            return Err(Reply::refusal(415, error));
        }
        if self.body.len() > BODY_MAX {
            let error = format!("body: expected at most {BODY_MAX} bytes");
            return Err(Reply::refusal(413, error));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Reply::refusal(400, format!("body: {error}")))
    }
}

/// A reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

/// The content type of nearly all replies.
pub const JSON: &str = "application/json";

impl Reply {
    /// A reply with JSON.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        let body = serde_json::to_string(body).expect("values of JSON have text as keys");
        Self { status, content_type: JSON, headers: Vec::new(), body }
    }

    /// A reply without a body.
    pub const fn empty(status: u16) -> Self {
        Self { status, content_type: JSON, headers: Vec::new(), body: String::new() }
    }

    /// A text of another type.
    pub const fn text(content_type: &'static str, body: String) -> Self {
        Self { status: 200, content_type, headers: Vec::new(), body }
    }

    /// A refusal with its reason, as IS-04 and IS-05 write it.
    pub fn refusal(status: u16, error: impl Into<String>) -> Self {
        let error: String = error.into();
        Self::json(status, &json!({ "code": status, "error": error, "debug": null }))
    }

    /// The same with another header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The body as JSON; null if it is none.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The reason of a refusal; the body, if it is none.
    pub fn reason(&self) -> String {
        match &self.value()["error"] {
            Value::String(error) => error.clone(),
            _ => self.body.clone(),
        }
    }
}

/// The value as an error names it: its beginning only.
pub fn found(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_one_identifier() {
        let id = Id::named("n1/sender/3");
        assert_eq!(id, Id::named("n1/sender/3"));
        assert_ne!(id, Id::named("n1/sender/4"));
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        for wrong in
            ["", "3b8be755-08ff-452b-b217-c9151eb2119", "3B8BE755-08FF-452B-B217-C9151EB21193"]
        {
            assert!(wrong.parse::<Id>().is_err(), "{wrong}");
        }
        // Version 6 and variant 7 are not in AMWA's pattern.
        assert!("3b8be755-08ff-652b-b217-c9151eb21193".parse::<Id>().is_err());
        assert!("3b8be755-08ff-452b-7217-c9151eb21193".parse::<Id>().is_err());
        assert!("3b8be755-08ff-452b-b217-c9151eb21193".parse::<Id>().is_ok());
    }

    #[test]
    fn a_time_is_written_and_read() {
        let time: Tai = "1439299836:10".parse().unwrap();
        assert_eq!(time.as_nanos(), 1_439_299_836_000_000_010);
        assert_eq!(time.to_string(), "1439299836:10");
        for wrong in
            ["", "1", "1.5", ":", "1:", ":1", "-1:0", "+1:0", "1:1000000000", "18446744074:0"]
        {
            assert!(wrong.parse::<Tai>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_time_comes_back(ns: u64) {
            prop_assert_eq!(Tai::from_nanos(ns).to_string().parse(), Ok(Tai::from_nanos(ns)));
        }

        #[test]
        fn every_name_has_a_valid_identifier(name: String) {
            let id = Id::named(&name);
            prop_assert_eq!(id.as_str().parse(), Ok(id.clone()));
        }
    }
}
