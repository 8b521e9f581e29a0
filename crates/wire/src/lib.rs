//! The live link: packets between two hosts, through a link core, on time.
//!
//! ```text
//!  host `server`          wire namespace             host `client`
//!    eth0 ═══════ from0 ─► ring ─► link core ─► batch ─► to0 ═══════ eth0
//!                 from0 ◄─ batch ◄─ link core ◄─ ring ◄─ to0
//! ```
//!
//! One thread, a [`Carrier`], carries both directions of a link. Every packet ends in a record,
//! every loss that was not asked for in a count, and every departure in the measured lateness:
//! [`Outcome`] says whether what was measured over the link may be used. Before a run, [`check`]
//! loads a link and compares it with what was asked.

mod carrier;
mod check;
mod clock;
mod engine;
mod error;
mod flows;
pub mod frame;
mod histogram;
mod pace;
mod pool;
mod priority;
mod recorder;
mod socket;
mod totals;
mod words;

pub use carrier::{Carrier, CarrierSpec, Outcome};
pub use check::{CheckSpec, check};
pub use clock::Clock;
pub use error::WireError;
pub use priority::Priority;
pub use totals::{LATENESS_P99_MAX, invalid_because};
