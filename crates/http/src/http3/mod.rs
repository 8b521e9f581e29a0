//! HTTP/3 (RFC 9114) over noq's QUIC. `h3` speaks HTTP/3 over any QUIC that has its traits; `quic` gives noq these traits, and
//! `frames` bounds what `h3` keeps of a stream.

pub mod client;
pub mod frames;
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
/// The largest head of a message, as RFC 9114 §4.2.2 counts it: names, values, and 32 bytes for each field. `h3` panics if there
/// are more than 24,576 fields, of which an indexed one takes a single byte.
pub const HEAD_MAX: u64 = 64 << 10;
/// Bytes that a connection accepts from streams before they are acknowledged: 320 Mbit/s at 100 ms.
pub(crate) const SEND_WINDOW: u64 = 4_000_000;
/// Bytes that a client may send to a server before they are read. Of bodies, those of POST alone are read.
pub(crate) const REQUESTS_WINDOW: u32 = 1_000_000;
/// Bytes that a server may send to a client before they are read: 5 Gbit/s at 100 ms.
const RESPONSES_WINDOW: u32 = 64_000_000;

/// How connections behave unless a scenario says otherwise; those of a server have a smaller receive window.
pub fn behaviour() -> Behaviour {
    Behaviour {
        congestion: QuicCongestion::default(),
        delta: COPA_DELTA,
        streams: STREAMS,
        send_window: SEND_WINDOW,
        receive_window: RESPONSES_WINDOW,
        // Responses of the same rank share the connection (RFC 9218 §10).
        fair: true,
        offload: false,
        ecn: true,
        qlog: None,
    }
}
