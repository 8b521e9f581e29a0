//! A guest: a Linux kernel of its own that runs as an ordinary process (User-Mode Linux), whose time advances only when all
//! of its processes are idle. Computation takes no time there, so what it measures does not depend on how fast or how busy
//! the machine is, and the same programs with the same seed do the same again.
//!
//! ```text
//! host                                        guest
//! Kernel::find ─► Launch::command ──starts──► kernel, seeded, its clock at a given date
//!                      │                        └─ inside::init: mounts, then a program in a Sandbox
//!                      └─ Clock ◄──────────────── the guest's time, in memory that both map
//! ```
//!
//! The kernel's configuration and patches are in the folder `kernel/`. A guest reads the files of its host as the user who
//! started it, and writes only to the folders that it was given. It is not a security boundary.

mod clock;
mod handover;
pub mod inside;
mod kernel;
mod launch;
mod seat;
mod session;

pub use clock::{Clock, Watch};
pub use handover::{CACHE, Handover, Mount, ROOM, on_host};
pub use kernel::{Kernel, KernelError, congestion_controls};
pub use launch::{Launch, LaunchError};
pub use seat::Seat;
