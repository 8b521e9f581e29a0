//! The lab: hosts, links and endpoint processes of one trial, and the trials of a plan.
//!
//! ```text
//! runner (in `suiro run`) ──a sandbox or a guest per trial──► trial ─┬─ hosts::Network
//!                                                         ├─ instruments: what measures the trial
//!                                                         │    captures, wires (self-checked), TCP sockets,
//!                                                         │    layers, multicast routers, standstills of CPUs
//!                                                         └─ supervisor: endpoint processes, watched
//! ```

mod cgroup;
pub mod clock;
pub mod guests;
pub mod instruments;
pub mod lacking;
mod lateness;
pub mod listening;
pub mod machine;
pub mod priority;
pub mod process;
pub mod runner;
mod scheduler;
pub mod supervisor;
pub mod trial;
