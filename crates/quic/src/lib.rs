//! What all that speaks QUIC shares: connections on sockets, certificates, congestion control, and samples of connections for records.

pub mod control;
mod ecn;
pub mod net;
mod sample;
pub mod tls;
mod written;

pub use sample::{Samples, sample};
pub use written::{Span, Written};
