//! Candidates of the other end, as SDP writes them.

use std::net::IpAddr;

use str0m::Candidate;
use str0m::net::Protocol;

/// Reads `candidate:…`; `None` if this end cannot use it: it is not of UDP, or has a name that only mDNS resolves.
///
/// # Errors
/// What is wrong: it is malformed, or nobody can receive there.
pub(super) fn read(text: &str) -> Result<Option<Candidate>, String> {
    if is_unusable(text) {
        return Ok(None);
    }
    let candidate = Candidate::from_sdp_string(text).map_err(|error| error.to_string())?;
    let at = candidate.addr();
    if at.port() == 0 || at.ip().is_unspecified() || at.ip().is_multicast() {
        return Err(format!("no receiver at {at}"));
    }
    Ok(Some(candidate).filter(|candidate| candidate.proto() == Protocol::Udp))
}

/// By the form of RFC 8839 §5.1. `str0m` knows neither names nor other transports, and calls them malformed.
fn is_unusable(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [foundation, component, transport, priority, address, port, "typ", _, ..] = fields[..]
    else {
        return false;
    };
    let is_candidate = foundation.starts_with("candidate:")
        && component.parse::<u16>().is_ok()
        && priority.parse::<u32>().is_ok()
        && port.parse::<u16>().is_ok();
    let is_udp = transport.eq_ignore_ascii_case("udp");
    is_candidate && (!is_udp || address.parse::<IpAddr>().is_err())
}
