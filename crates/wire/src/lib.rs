//! The live link: packets between two hosts, through a link core, on time.
//!
//! ```text
//!  host `server`          wire namespace             host `client`
//!    eth0 ═══════ from0 ─► ring ─► link core ─► batch ─► to0 ═══════ eth0
//!                 from0 ◄─ batch ◄─ link core ◄─ ring ◄─ to0
//! ```
//!
//! A [`Carrier`] carries a [`Medium`]: both directions of a link, or a hub or Wi-Fi cell with all its stations. One
//! thread at a time does the work: there is one on each of two CPUs, and the first that wakes takes it. Every
//! packet is recorded, every loss that was not configured is counted, and every departure's lateness is measured:
//! [`Outcome`] says whether measurements over the medium may be used. Before a run, [`check`] loads it and compares it
//! with its configuration.

mod bound;
mod carrier;
mod check;
mod engine;
mod error;
mod flows;
pub mod frame;
mod hands;
mod histogram;
mod link_core;
mod medium;
mod pace;
mod pool;
mod priority;
mod recorder;
mod socket;
mod totals;
mod words;

pub use bound::{highest_rate, lateness_bound};
pub use carrier::{Carrier, CarrierSpec, Outcome};
pub use check::capacity::{Capacity, capacity};
pub use check::{CheckSpec, check};
pub use error::WireError;
pub use medium::Medium;
pub use priority::Priority;
pub use totals::Fault;
