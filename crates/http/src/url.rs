//! URLs of media, as far as a player needs them: `http`, a host, a path, a query.
//!
//! References in manifests and redirects come from outside. They are resolved by RFC 3986 §5.2, and
//! refused if they are anything but `http`, so that no player opens files or other schemes. A
//! document from elsewhere must not refer to an address of this machine or of this link: services
//! listen there that are not meant for strangers (a cloud's metadata at 169.254.169.254, for one).

use std::net::{IpAddr, Ipv4Addr};

/// The longest URL that is accepted, in bytes.
pub const BYTES_MAX: usize = 4096;

/// What a URL may contain next to letters and digits (RFC 3986 §2).
const PUNCTUATION: &[u8] = b"-._~:/?#[]@!$&'()*+,;=%";

/// An absolute `http` URL; or an `https` one, of a server whose certificate is known ([`Url::parse_secure`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Url {
    secure: bool,
    host: String,
    port: u16,
    /// Path and query; begins with `/`.
    target: String,
}

/// Why a text is not a URL to fetch from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme than `http`.
    #[error("`{0}`: only http URLs are fetched")]
    Scheme(String),
    /// Another scheme than `https`.
    #[error("`{0}`: only https URLs are fetched over TLS and QUIC")]
    Insecure(String),
    /// No host, or one with characters that a host has not; or user information.
    #[error("`{0}`: no valid host")]
    Host(String),
    /// The port is not a number from 1 to 65535.
    #[error("`{0}`: the port is not a number from 1 to 65535")]
    Port(String),
    /// A character that a URL must escape, such as a space.
    #[error("`{0}`: a character that a URL must escape (RFC 3986 §2)")]
    Character(String),
    /// An address of this machine or this link, named by a document from elsewhere.
    #[error("`{0}`: a remote manifest must not refer to a local address")]
    Near(String),
    /// Longer than [`BYTES_MAX`].
    #[error("a URL of {0} bytes is too long (at most {BYTES_MAX})")]
    Long(usize),
}

impl Url {
    /// Parses an absolute `http` URL. A fragment is dropped.
    ///
    /// # Errors
    /// [`UrlError`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Self::parse_as(text, false)
    }

    /// Parses an absolute `https` URL. What it names and where it is redirected to must be `https` too.
    ///
    /// # Errors
    /// [`UrlError`] says what is wrong with it.
    pub fn parse_secure(text: &str) -> Result<Self, UrlError> {
        Self::parse_as(text, true)
    }

    fn parse_as(text: &str, secure: bool) -> Result<Self, UrlError> {
        check_characters(text)?;
        let text = text.split('#').next().unwrap_or_default();
        let wanted = if secure { "https" } else { "http" };
        match scheme(text) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(wanted) => {
                let rest = rest.strip_prefix("//").ok_or_else(|| UrlError::Host(show(text)))?;
                Self::from_authority(rest, text, secure)
            }
            _ if secure => Err(UrlError::Insecure(show(text))),
            _ => Err(UrlError::Scheme(show(text))),
        }
    }

    /// Resolves a reference found in the document at this URL (RFC 3986 §5.2.2).
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = reference.trim();
        check_characters(reference)?;
        if scheme(reference).is_some() {
            return self.allow(Self::parse_as(reference, self.secure)?);
        }
        let reference = reference.split('#').next().unwrap_or_default();
        if let Some(rest) = reference.strip_prefix("//") {
            return self.allow(Self::from_authority(rest, reference, self.secure)?);
        }
        let base_path = self.path();
        let target = if reference.is_empty() {
            self.target.clone()
        } else if reference.starts_with('?') {
            format!("{base_path}{reference}")
        } else {
            let folder = base_path.rfind('/').map_or("/", |at| &base_path[..=at]);
            let whole = if reference.starts_with('/') {
                reference.to_owned()
            } else {
                format!("{folder}{reference}")
            };
            without_dots(&whole)
        };
        Self { target, ..self.clone() }.bounded()
    }

    /// This URL, unless it is longer than one that can be parsed: a reference that is not may still make it so.
    fn bounded(self) -> Result<Self, UrlError> {
        check_length(&self.to_string())?;
        Ok(self)
    }

    /// Another host, if the document at this URL may name it.
    fn allow(&self, other: Self) -> Result<Self, UrlError> {
        let reach = reach(other.host());
        let allowed = reach == Reach::Far || reach == self::reach(self.host());
        if allowed { Ok(other) } else { Err(UrlError::Near(show(&other.to_string()))) }
    }

    fn from_authority(rest: &str, whole: &str, secure: bool) -> Result<Self, UrlError> {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(UrlError::Host(show(whole)));
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None | Some("") => default_port(secure),
            Some(port) => {
                port.parse().ok().filter(|p| *p != 0).ok_or_else(|| UrlError::Port(show(whole)))?
            }
        };
        if !is_host(host) {
            return Err(UrlError::Host(show(whole)));
        }
        let target = if target.starts_with('/') { target.into() } else { format!("/{target}") };
        let (host, target) = (host.to_ascii_lowercase(), without_dots(&target));
        Self { secure, host, port, target }.bounded()
    }

    /// The host: a name, an IPv4 address, or an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether it is an `https` URL.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The port; 80 if the URL names none, and 443 of an `https` URL.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, as a request line has them.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// What the `Host` header says (RFC 9110 §7.2).
    pub fn authority(&self) -> String {
        match self.port {
            port if port == default_port(self.secure) => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("/")
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.target)
    }
}

impl std::str::FromStr for Url {
    type Err = UrlError;
    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text.trim())
    }
}

const fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

/// The beginning of a URL, to be named in an error.
fn show(text: &str) -> String {
    text.chars().take(80).collect()
}

fn check_length(text: &str) -> Result<(), UrlError> {
    if text.len() > BYTES_MAX { Err(UrlError::Long(text.len())) } else { Ok(()) }
}

fn check_characters(text: &str) -> Result<(), UrlError> {
    check_length(text)?;
    let fine = text.bytes().all(|b| b.is_ascii_alphanumeric() || PUNCTUATION.contains(&b));
    if fine { Ok(()) } else { Err(UrlError::Character(show(text))) }
}

/// Splits `SCHEME:REST`; `None` for a relative reference (RFC 3986 §4.2: a colon in the first
/// segment makes it a scheme).
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let valid = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    valid.then_some((scheme, rest))
}

/// From where a host can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This machine alone.
    Machine,
    /// This link alone.
    Link,
    Far,
}

impl Reach {
    /// Of an address, by what it says itself: this machine may have far ones too.
    pub(crate) fn of(address: IpAddr) -> Self {
        let v4 = |address: Ipv4Addr| match address {
            a if a.is_loopback() || a.is_unspecified() => Self::Machine,
            a if a.is_link_local() => Self::Link,
            _ => Self::Far,
        };
        match address {
            IpAddr::V4(address) => v4(address),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(mapped) => v4(mapped),
                None if address.is_loopback() || address.is_unspecified() => Self::Machine,
                None if address.is_unicast_link_local() => Self::Link,
                None => Self::Far,
            },
        }
    }
}

/// By its name or its address. What a name resolves to is looked at when it is connected to.
fn reach(host: &str) -> Reach {
    let host = host.trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => Reach::of(address),
        Err(_) if host == "localhost" || host.ends_with(".localhost") => Reach::Machine,
        Err(_) => Reach::Far,
    }
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    let host_end = authority.find(']').map_or(0, |at| at + 1);
    match authority[host_end..].rfind(':') {
        Some(at) => (&authority[..host_end + at], Some(&authority[host_end + at + 1..])),
        None => (authority, None),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let name = !host.is_empty() && host.len() <= 253 && host.bytes().all(valid);
    // What ends in a number is an address (WHATWG URL), and has to be a plain one: the resolver also
    // takes `2130706433` and `0x7f.1` for 127.0.0.1.
    name && (!ends_in_number(host) || host.parse::<Ipv4Addr>().is_ok())
}

fn ends_in_number(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").or(last.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => last.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// RFC 3986 §5.2.4: removes `.` and `..` from the path, leaving the query alone.
fn without_dots(target: &str) -> String {
    let (path, query) = target.find('?').map_or((target, ""), |at| target.split_at(at));
    let mut kept: Vec<&str> = Vec::new();
    let mut folder = false;
    for part in path.split('/').skip(1) {
        folder = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    let end = if folder && !kept.is_empty() { "/" } else { "" };
    format!("/{}{end}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn join(reference: &str) -> String {
        let base = Url::parse("http://a/b/c/d;p?q").unwrap();
        base.join(reference).map_or_else(|e| e.to_string(), |u| u.to_string())
    }

    /// RFC 3986 §5.4: the references that stay with http and have no fragment.
    #[test]
    fn resolves_the_examples_of_the_rfc() {
        for (reference, want) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("g#s", "http://a/b/c/g"),
        ] {
            assert_eq!(join(reference), want, "{reference}");
        }
    }

    #[test]
    fn refuses_what_is_not_to_be_fetched() {
        for hostile in [
            "file:///etc/passwd",
            "https://a/",
            "javascript:alert(1)",
            "data:,x",
            "http:/a",
            "http://",
            "http://a:0/",
            "http://a:70000/",
            "http://user@a/",
            "http://[::1/",
            "http://a b/",
            "g h",
            "g\"h",
            "g<h",
            "g{h",
            "g\\h",
            "http://ä/",
            "g\nHost: x",
            "//",
        ] {
            let base = Url::parse("http://a/b/c/d").unwrap();
            assert!(base.join(hostile).is_err(), "{hostile}");
        }
        assert!(Url::parse("seg.m4s").is_err());
        assert!(Url::parse(&format!("http://a/{}", "x".repeat(5000))).is_err());
    }

    #[test]
    fn nothing_of_this_machine_or_link_is_named_from_elsewhere() {
        let joins = |base: &str, reference: &str| Url::parse(base).unwrap().join(reference).is_ok();
        let near = [
            "http://127.0.0.1/a",
            "//127.9.9.9:8080/a",
            "http://localhost/a",
            "http://a.LocalHost/",
            "http://[::1]/a",
            "http://[::]/a",
            "http://0.0.0.0/a",
            "http://[::ffff:127.0.0.1]/a",
            "http://169.254.169.254/latest/meta-data",
            "http://[fe80::1]/a",
            // No names: what a resolver would take for 127.0.0.1.
            "http://2130706433/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://localhost./",
        ];
        for reference in near {
            for base in ["http://origin/a", "http://10.0.0.1/", "http://[fd00::1]/"] {
                assert!(!joins(base, reference), "{reference} from {base}");
            }
        }
        // Among themselves they may; and everybody may lead away.
        assert!(joins("http://127.0.0.1/a", "http://localhost:8080/b"));
        assert!(joins("http://169.254.1.1/a", "http://169.254.1.2/b"));
        assert!(!joins("http://169.254.1.1/a", "http://127.0.0.1/b"));
        assert!(joins("http://127.0.0.1/a", "http://10.0.0.1/b"));
        assert!(joins("http://origin/a", "http://192.168.0.1/b"));
    }

    /// Found by libfuzzer, as a loop of redirects.
    #[test]
    fn references_do_not_make_longer_urls_than_can_be_parsed() {
        let base = Url::parse("http://media.example:8080/live/").unwrap();
        for length in [4000, 4080, BYTES_MAX - 9] {
            let relative = "x".repeat(length);
            let absolute = format!("//h/{}", "y".repeat(length));
            let query = format!("http://h?{}", "z".repeat(length));
            for reference in [relative, absolute, query] {
                match base.join(&reference) {
                    Ok(url) => assert_eq!(Url::parse(&url.to_string()), Ok(url)),
                    Err(error) => assert!(matches!(error, UrlError::Long(_)), "{error}"),
                }
            }
        }
        assert!(matches!(base.join(&"x".repeat(4090)), Err(UrlError::Long(_))));
        assert!(base.join(&"x".repeat(4000)).is_ok());
    }

    #[test]
    fn hosts_and_ports() {
        let url = Url::parse("http://[fd00::1]:8080/x?y=1").unwrap();
        assert_eq!((url.host(), url.port(), url.target()), ("fd00::1", 8080, "/x?y=1"));
        assert_eq!(url.authority(), "[fd00::1]:8080");
        let url = Url::parse("HTTP://Server?x").unwrap();
        assert_eq!((url.authority().as_str(), url.target()), ("server", "/?x"));
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_stays_so(text in "[a-z:/?#.@\\[\\]0-9]{0,40}", any in "\\PC{0,30}") {
            let base = Url::parse("http://a:81/b/c").expect("valid");
            for t in [&text, &any] {
                if let Ok(url) = base.join(t) {
                    prop_assert!(url.target().starts_with('/'));
                    prop_assert_eq!(Url::parse(&url.to_string()), Ok(url));
                }
            }
        }
    }
}
