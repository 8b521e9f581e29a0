//! HTTP/3 (RFC 9114) over noq's QUIC. `h3` speaks HTTP/3 over any QUIC that has its traits; `quic` gives noq these traits.

pub mod client;
mod quic;
pub(crate) mod server;

use suiro_quic::net::Behaviour;
use suiro_scenario::QuicCongestion;

/// δ of Copa, as its authors have it (Arun and Balakrishnan, NSDI 2018).
const COPA_DELTA: f64 = 0.5;
/// The ALPN name of HTTP/3 (RFC 9114 §3.1).
pub const ALPN: &[u8] = b"h3";
/// RFC 9114 §8.1, `H3_NO_ERROR`.
pub(crate) const NO_ERROR: u32 = 0x100;
/// RFC 9114 §8.1, `H3_EXCESSIVE_LOAD`.
pub(crate) const EXCESSIVE_LOAD: u32 = 0x107;
/// RFC 9114 §8.1, `H3_REQUEST_CANCELLED`.
pub(crate) const CANCELLED: u32 = 0x10c;
/// Unidirectional streams that a peer may open: control, two of QPACK, and some that only keep extensions working
/// (RFC 9114 §6.2).
pub(crate) const STREAMS: u32 = 16;

/// How connections behave unless a scenario says otherwise.
pub fn behaviour() -> Behaviour {
    let (congestion, delta) = (QuicCongestion::default(), COPA_DELTA);
    // Responses of the same rank share the connection (RFC 9218 §10).
    Behaviour { congestion, delta, streams: STREAMS, fair: true, offload: false, qlog: None }
}
