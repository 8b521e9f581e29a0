//! Flow filters: `udp:10.0.0.1:5000-10.0.0.2:5004`, for both directions.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::event::{Flow, Protocol};

/// Longest text that is parsed: two IPv6 addresses with ports take 99 bytes.
const TEXT_BYTES_MAX: usize = 128;

const SYNTAX: &str = "PROTOCOL:ADDRESS:PORT-ADDRESS:PORT, such as udp:10.0.0.1:5000-10.0.0.2:5004, \
                      tcp:*:443-* or udp:[fd00::1]:5000-*:*";

/// Flows between two ends, in both directions; the same text selects the same flows on either host.
///
/// `PROTOCOL:END-END`, where `PROTOCOL` is `udp` or `tcp`, and `END` is `ADDRESS:PORT` or `*`.
/// Either half of an `END` may be `*` for any. IPv6 addresses are in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowFilter {
    /// The transport protocol.
    pub protocol: Protocol,
    /// The two ends, in either order.
    pub ends: [Endpoint; 2],
}

/// One end of a flow, or many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// `None` for any. Never IPv4-mapped.
    pub address: Option<IpAddr>,
    /// 1 to 65535; `None` for any.
    pub port: Option<u16>,
}

/// Why a flow's text is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("flow `{text}`: {problem}\nhint: {SYNTAX}")]
pub struct FlowError {
    /// The text, truncated if it is too long.
    pub text: String,
    /// What is wrong, and where.
    pub problem: String,
}

impl FlowFilter {
    /// All flows of a protocol.
    pub const fn all(protocol: Protocol) -> Self {
        Self { protocol, ends: [Endpoint { address: None, port: None }; 2] }
    }

    /// Whether this flow is selected.
    pub fn matches(&self, flow: &Flow) -> bool {
        let [a, b] = &self.ends;
        let either = a.matches(flow.local) && b.matches(flow.remote)
            || a.matches(flow.remote) && b.matches(flow.local);
        self.protocol == flow.protocol && either
    }

    /// Whether it can select flows of IPv4, and of IPv6.
    pub fn families(&self) -> (bool, bool) {
        let named = self.ends.iter().find_map(|end| end.address);
        named.map_or((true, true), |address| (address.is_ipv4(), address.is_ipv6()))
    }
}

impl Endpoint {
    fn matches(&self, socket: SocketAddr) -> bool {
        self.address.is_none_or(|address| address == socket.ip().to_canonical())
            && self.port.is_none_or(|port| port == socket.port())
    }
}

impl FromStr for FlowFilter {
    type Err = FlowError;

    fn from_str(text: &str) -> Result<Self, FlowError> {
        let shown: String = text.chars().take(TEXT_BYTES_MAX).collect();
        parse(text).map_err(|problem| FlowError { text: shown, problem })
    }
}

fn parse(text: &str) -> Result<FlowFilter, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("longer than {TEXT_BYTES_MAX} bytes"));
    }
    let (protocol, ends) = text.split_once(':').ok_or("no protocol before a `:`")?;
    let protocol = match protocol {
        "udp" => Protocol::Udp,
        "tcp" => Protocol::Tcp,
        other => return Err(format!("expected protocol `udp` or `tcp`, found `{other}`")),
    };
    let (first, second) = ends.split_once('-').ok_or("no `-` between its two ends")?;
    let ends = [end(first, "first")?, end(second, "second")?];
    match ends.map(|end| end.address.map(|address| address.is_ipv4())) {
        [Some(first), Some(second)] if first != second => {
            Err("one end is IPv4, the other IPv6".into())
        }
        _ => Ok(FlowFilter { protocol, ends }),
    }
}

fn end(text: &str, which: &str) -> Result<Endpoint, String> {
    if text == "*" {
        return Ok(Endpoint { address: None, port: None });
    }
    let of = |problem: &str| format!("{which} end `{text}`: {problem}");
    let (address, port) = split(text).map_err(of)?;
    let address = match address {
        "*" => None,
        address => Some(named(address).map_err(|problem| of(&problem))?),
    };
    let port = match port {
        "*" => None,
        port => match port.parse() {
            Ok(0) | Err(_) => {
                return Err(of(&format!("expected a port from 1 to 65535 or `*`, found `{port}`")));
            }
            Ok(number) => Some(number),
        },
    };
    Ok(Endpoint { address, port })
}

/// Address, with the brackets of IPv6, and port.
fn split(text: &str) -> Result<(&str, &str), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let length = rest.find(']').ok_or("the bracket is not closed")? + 2;
        let (address, port) = text.split_at(length);
        return Ok((address, port.strip_prefix(':').ok_or("no `:PORT` after the bracket")?));
    }
    let (address, port) = text.split_once(':').ok_or("no `:PORT` after the address")?;
    if port.contains(':') {
        return Err("an IPv6 address needs brackets, such as [fd00::1]:5000");
    }
    Ok((address, port))
}

fn named(text: &str) -> Result<IpAddr, String> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match inner {
        Some(inner) if inner.contains('%') => {
            return Err("zones are not allowed: remove `%` and what follows".into());
        }
        Some(inner) => inner.parse::<Ipv6Addr>().map(|v6| IpAddr::V6(v6).to_canonical()).ok(),
        None => text.parse::<Ipv4Addr>().map(IpAddr::V4).ok(),
    };
    match address {
        Some(address) if address.is_unspecified() => Err("for any address, write `*`".into()),
        Some(address) => Ok(address),
        None => Err(format!("`{text}` is not an IPv4 address, an IPv6 one in brackets, or `*`")),
    }
}

impl fmt::Display for FlowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}-{}", self.protocol, self.ends[0], self.ends[1])
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            None => write!(f, "*:")?,
            Some(IpAddr::V4(v4)) => write!(f, "{v4}:")?,
            Some(IpAddr::V6(v6)) => write!(f, "[{v6}]:")?,
        }
        match self.port {
            None => write!(f, "*"),
            Some(port) => write!(f, "{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn endpoints() -> impl Strategy<Value = (Option<u32>, Option<u128>, Option<u16>)> {
        let port = proptest::option::of(1u16..);
        (proptest::option::of(1u32..), proptest::option::of(any::<u128>()), port)
    }

    fn endpoint((v4, v6, port): (Option<u32>, Option<u128>, Option<u16>), is_v6: bool) -> Endpoint {
        let v4 = v4.map(|bits| IpAddr::V4(bits.into()));
        // Global unicast: neither mapped nor unspecified.
        let v6 = v6.map(|bits| IpAddr::V6((bits >> 3 | 1 << 125).into()));
        Endpoint { address: if is_v6 { v6 } else { v4 }, port }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(a in endpoints(), b in endpoints(), tcp: bool, is_v6: bool) {
            let protocol = if tcp { Protocol::Tcp } else { Protocol::Udp };
            let filter = FlowFilter { protocol, ends: [endpoint(a, is_v6), endpoint(b, is_v6)] };
            prop_assert_eq!(filter.to_string().parse(), Ok(filter));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[ut]?[dc]?p?:?[-*\\[\\]:.%0-9a-f]{0,60}|.*") {
            match text.parse::<FlowFilter>() {
                Ok(filter) => prop_assert_eq!(filter.to_string().parse(), Ok(filter)),
                Err(error) => prop_assert!(error.to_string().contains("hint: PROTOCOL:")),
            }
        }

        #[test]
        fn direction_and_side_do_not_matter(sent: bool, ports in (1u16..4, 1u16..4, 1u16..4)) {
            let filter: FlowFilter = format!("udp:10.0.0.1:{}-10.0.0.2:*", ports.0).parse().unwrap();
            let a = SocketAddr::from(([10, 0, 0, 1], ports.1));
            let b = SocketAddr::from(([10, 0, 0, 2], ports.2));
            for (local, remote) in [(a, b), (b, a)] {
                let flow = Flow { protocol: Protocol::Udp, local, remote, sent };
                prop_assert_eq!(filter.matches(&flow), ports.0 == ports.1);
                let tcp = Flow { protocol: Protocol::Tcp, ..flow };
                prop_assert!(!filter.matches(&tcp));
            }
        }
    }

    #[test]
    fn errors_name_the_place_and_the_remedy() {
        for (text, problem) in [
            ("", "no protocol"),
            ("sctp:*-*", "found `sctp`"),
            ("udp:10.0.0.1:5000", "no `-` between"),
            ("udp:10.0.0.1-*", "first end `10.0.0.1`: no `:PORT`"),
            ("udp:*-10.0.0.256:1", "second end `10.0.0.256:1`: `10.0.0.256` is not an IPv4"),
            ("udp:*-host:1", "`host` is not an IPv4 address"),
            ("udp:*-fd00::1:5", "needs brackets"),
            ("udp:*-[fd00::1:5", "bracket is not closed"),
            ("udp:*-[fd00::1]5", "no `:PORT` after the bracket"),
            ("udp:*-[fe80::1%eth0]:5", "zones are not allowed"),
            ("udp:*-[10.0.0.1]:5", "is not an IPv4 address, an IPv6 one in brackets"),
            ("udp:*-0.0.0.0:5", "write `*`"),
            ("udp:*-*:0", "expected a port from 1 to 65535 or `*`, found `0`"),
            ("udp:*-*:70000", "found `70000`"),
            ("udp:*-*:5 ", "found `5 `"),
            ("tcp:10.0.0.1:1-[fd00::1]:1", "one end is IPv4, the other IPv6"),
            (&"u".repeat(200), "longer than 128 bytes"),
        ] {
            let error = text.parse::<FlowFilter>().unwrap_err().to_string();
            assert!(
                error.contains(problem) && error.contains("\nhint: PROTOCOL"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        let filter: FlowFilter = "tcp:[::ffff:10.0.0.1]:80-*".parse().unwrap();
        assert_eq!(filter.to_string(), "tcp:10.0.0.1:80-*:*");
        assert_eq!(filter.families(), (true, false));
        let all = FlowFilter::all(Protocol::Udp);
        assert_eq!((all.to_string().as_str(), all.families()), ("udp:*:*-*:*", (true, true)));
    }
}
