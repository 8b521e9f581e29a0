//! `Forwarded` (RFC 7239): what a cache says of the request that it passes on; pure, and bounded.

use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;

use crate::caching::pairs;

/// The header's name.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("forwarded");

/// What a client called the server that it asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Host and port, as in its `Host` header.
    pub host: String,
}

impl Asked {
    /// What a request calls the server that it came to.
    pub fn of(head: &Parts) -> Option<Self> {
        // HTTP/2 and HTTP/3 have it in the URI (RFC 9113 §8.3.1).
        let host = || head.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = head.uri.authority().map(|authority| authority.as_str()).or_else(host)?;
        let scheme = if head.uri.scheme_str() == Some("https") { "https" } else { "http" };
        Some(Self { scheme, host: host.to_owned() })
    }

    /// The header's value; `None` if the host cannot be written.
    pub fn written(&self) -> Option<HeaderValue> {
        let quoted = self.host.replace('\\', "\\\\").replace('"', "\\\"");
        HeaderValue::try_from(format!("host=\"{quoted}\";proto={}", self.scheme)).ok()
    }

    /// What the first server was called that the request came to; `None` without such a header.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(FORWARDED)?.to_str().ok()?)
    }

    /// The same of one header. §4: of several elements, the first is the client's.
    pub fn parse(text: &str) -> Option<Self> {
        let first = first(text);
        let pairs = pairs(first, b';')?;
        let of = |wanted: &str| {
            let found = pairs.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
            found.1.as_deref()
        };
        let scheme = match of("proto") {
            Some("https") => "https",
            Some("http") | None => "http",
            Some(_) => return None,
        };
        Some(Self { scheme, host: of("host")?.to_owned() })
    }
}

/// What comes before the first comma outside of quotes.
fn first(text: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    let end = text.bytes().position(|byte| {
        let was_escaped = std::mem::take(&mut escaped);
        match byte {
            b'\\' if quoted && !was_escaped => escaped = true,
            b'"' if !was_escaped => quoted = !quoted,
            b',' if !quoted => return true,
            _ => {}
        }
        false
    });
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let of = |text| Asked::parse(text).map(|asked| (asked.scheme, asked.host));
        let asked = |scheme, host: &str| Some((scheme, host.to_owned()));
        assert_eq!(of("host=edge"), asked("http", "edge"));
        assert_eq!(
            of("For=\"[::1]:80\";HOST=\"edge:443\"; Proto=https"),
            asked("https", "edge:443")
        );
        assert_eq!(of("host=\"a,b\", host=c"), asked("http", "a,b"));
        for none in ["", "proto=https", "host", "host=a;proto=ftp", "host=\"a", ", host=a"] {
            assert_eq!(of(none), None, "{none}");
        }
        let odd = Asked { scheme: "https", host: "a\"\\,;".into() };
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED, odd.written().unwrap());
        assert_eq!(Asked::read(&headers), Some(odd));
    }
}
