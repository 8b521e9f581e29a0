//! Media over QUIC Transport: real-time video through a relay.

pub mod arrivals;
mod broadcast;
pub mod catalog;
pub mod chromium;
mod client;
pub mod cmaf;
pub mod container;
pub mod data;
pub mod deadline;
mod encoders;
mod error;
pub mod follow;
mod job;
mod numbers;
mod order;
mod pictures;
mod places;
pub mod publish;
mod records;
pub mod relay;
pub mod requests;
mod signal;
mod subscribe;
pub mod switch;
pub mod transport;
pub mod view;
pub mod webtransport;

pub use broadcast::DATAGRAM_MAX;
pub use client::{Common, TOKEN_KEY};
pub use error::{EndpointError, TransportError};
pub use job::{PublisherJob, ViewerJob};
pub use records::Summary;
pub use suiro_quic::{control, net, tls};
