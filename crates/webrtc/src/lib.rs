//! WebRTC: video in real time between two peers, as browsers have it.

pub mod chromium;
mod counts;
mod desk;
mod encoding;
pub mod endpoint;
pub mod ends;
mod error;
pub mod fill;
pub mod flight;
mod log;
mod mark;
pub mod net;
mod numbers;
pub mod peer;
pub mod pion;
pub mod plain;
pub mod publish;
pub mod receiving;
pub mod sending;
pub mod sessions;
pub mod signalling;
mod stream;
pub mod view;
mod watching;

pub use counts::Counts;
pub use encoding::Target;
pub use error::EndpointError;
pub use suiro_realtime::ladder;
