//! Agents: recorders that are queried from a third machine, and the watcher that queries them.
//!
//! An agent loads its probes for flows that its own host's operator chose, gives up all privileges,
//! and only then listens. A watcher starts and stops recording and fetches what was recorded; it
//! cannot choose what is recorded. Both show certificates from one authority ([`keys`]); an agent
//! does not answer anybody else. Between fetches, an agent keeps recording and stores as much as it
//! has room for ([`Spool`]); events that it had to discard are counted.

mod client;
mod connection;
mod counts;
mod flows;
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

/// The default TCP port of agents.
pub const PORT: u16 = 7470;
