//! The live link: packets between two hosts, through a link core, on time.
//!
//! ```text
//!  host `server`          wire namespace             host `client`
//!    eth0 ═══════ from0 ─► ring ─► link core ─► batch ─► to0 ═══════ eth0
//!                 from0 ◄─ batch ◄─ link core ◄─ ring ◄─ to0
//! ```
//!
//! A [`Carrier`] carries both directions of a link, or a hub or Wi-Fi cell with all its stations, by one thread at a time: it has a thread on each of two processors,
//! and the first that wakes does the work. Every packet is recorded, every
//! loss that was not configured is counted, and every departure's lateness is measured: [`Outcome`]
//! says whether measurements over the link may be used. Before a run, [`check`] loads a link and
//! compares it with its configuration.

mod bound;
mod carrier;
mod check;
mod clock;

mod engine;
mod error;
mod flows;
pub mod frame;
mod hands;
mod histogram;
mod link_core;
mod pace;
mod pool;
mod priority;
mod recorder;
mod socket;
mod totals;
mod words;

pub use bound::{highest_rate, lateness_bound};
pub use carrier::{Carrier, CarrierSpec, CellSpec, HubSpec, Outcome};
pub use check::capacity::{Capacity, capacity};
pub use check::segment::{CellCheckSpec, HubCheckSpec, check_cell, check_hub};
pub use check::{CheckSpec, check};
pub use clock::Clock;
pub use error::WireError;
pub use priority::Priority;
pub use totals::Fault;
