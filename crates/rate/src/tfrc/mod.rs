//! TFRC: TCP-friendly rate control, RFC 5348.
//!
//! The receiver finds the loss event rate and its receive rate ([`Receiver`], [`LossHistory`]); the
//! sender ([`Sender`]) sets its rate by the throughput equation of TCP, never above twice what is
//! received. The RFC wants a report per round-trip time with both values in it. Where the protocol
//! reports something else, the sender makes them itself ([`crate::Feedback`]): from arrivals of
//! single packets (RFC 8888) exactly, from counts (RTCP receiver reports) by taking the losses as
//! evenly spread over the report's time.
//!
//! With history discounting (§5.5). Left out, as the RFC allows: reconsidering a loss event when a
//! packet that counts as lost arrives late (§5.1).

mod history;
mod limits;
mod receiver;
mod sender;

pub use history::LossHistory;
pub use receiver::{Receiver, Report};
pub use sender::{Config, Sender};
