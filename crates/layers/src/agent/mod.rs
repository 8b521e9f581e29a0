//! Agents: recorders that a third machine asks, and the watcher that asks them.
//!
//! An agent loads its probes for flows that its own host's operator chose, gives up all privileges,
//! and only then listens. A watcher begins and ends recording and fetches what was recorded; it cannot
//! choose what is looked at. Both show certificates of one authority ([`keys`]); to anybody else an
//! agent says nothing. While nobody fetches, an agent goes on recording and keeps what there is
//! room for ([`Spool`]); what it had to give up is counted.

mod client;
mod connection;
pub mod keys;
pub mod message;
mod server;
mod spool;
mod tls;

pub use client::{Gap, Stopper, TimeSample, Watched};
pub use connection::{AgentError, listen};
pub use server::{Agent, Limits, Tap};
pub use spool::{Fetched, Spool};
pub use tls::Identity;

/// The TCP port of agents, unless another is given.
pub const PORT: u16 = 7470;
