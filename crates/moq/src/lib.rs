//! Media over QUIC Transport: real-time video through a relay.

pub mod catalog;
mod client;
pub mod cmaf;
pub mod container;
pub mod control;
mod error;
pub mod follow;
pub mod net;
pub mod publish;
mod records;
pub mod relay;
pub mod tls;
pub mod transport;
pub mod view;
pub mod webtransport;

pub use client::Common;
pub use error::EndpointError;
pub use records::Summary;
