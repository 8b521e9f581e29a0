//! Hosts as network namespaces: a sandbox that dies with the process that made it, cables,
//! addresses, routes, names.
//!
//! ```text
//! suiro run ──Sandbox::spawn──► trial process: PID 1 of user, mount, PID and network namespaces
//!                                 │ Network::build
//!                                 ▼
//!                    host `server` ═══ wire namespace ═══ host `client`
//! ```
//!
//! Everything here works for an ordinary user (inside its own user namespace) and for root. Nothing
//! has a name in the file system: namespaces are held by file descriptors, so the kernel removes
//! everything when the trial process dies, whatever the cause.

mod confine;
mod daemon;
mod emulated;
mod equipment;
mod error;
mod ethtool;
pub mod groups;
mod host;
mod ip;
mod names;
mod network;
pub mod packet;
mod plan;
pub mod sandbox;
mod spec;
mod suite;

pub use confine::Confinement;
pub use daemon::private_files;
pub use emulated::{EmulatedLink, EmulatedSegment, LinkEnd, Station};
pub use equipment::{CAPACITY_MIN_BPS, Equipment};
pub use error::HostsError;
pub use host::{Host, InterfaceCounts};
pub use network::Network;
pub use sandbox::{Privilege, Sandbox, SandboxError, Worker};
pub use spec::{CableKind, CableSpec, Detour, MTU_MAX, MTU_MIN, NetworkSpec, ipv4, ipv6};
pub use suite::{Suite, Test, tests_ended};
