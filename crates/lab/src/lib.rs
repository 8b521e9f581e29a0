//! The lab: hosts, links and endpoint processes of one trial, and the trials of a plan.
//!
//! ```text
//! runner (in `suiro run`) ──a sandbox or a guest per trial──► trial ─┬─ hosts::Network
//!                                                         ├─ wires: self-check, carriers
//!                                                         ├─ routers: FRR per multicast router
//!                                                         ├─ capture::Point per interface, if asked
//!                                                         ├─ tcp::Sampler per host
//!                                                         ├─ layers::Recorder per host
//!                                                         └─ supervisor: endpoint processes, watched
//! ```

mod captures;
pub mod clock;
mod forwarding;
pub mod guests;
pub mod lacking;
mod lateness;
mod layers;
pub mod listening;
pub mod machine;
pub mod priority;
pub mod process;
mod routers;
pub mod runner;
mod scheduler;
mod sockets;
mod standstill;
pub mod supervisor;
pub mod trial;
pub mod wires;
