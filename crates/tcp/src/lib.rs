//! TCP as the kernel sees it: congestion control and socket records.
//!
//! [`congestion`] selects the congestion control of a socket and reports which ones are available;
//! [`Sampler`] samples every TCP socket of a host many times a second and writes the `tcp` table.
//! Both are built on [`diag`], the wire format of the kernel's socket diagnostics, and [`info`],
//! its `tcp_info`; these two are pure.
//!
//! [`vegas`] adds TCP Vegas to kernels without it, and [`probe`] traces each ACK: both use BPF and
//! need root. Nothing else here needs privileges inside the socket's own network namespace.

mod bpf;
pub mod congestion;
pub mod diag;
mod follow;
pub mod info;
mod netlink;
pub mod probe;
mod sampler;
mod sampling;
mod socket;
pub mod vegas;

pub use congestion::{CongestionError, Controls, set_congestion};
pub use follow::count_sockets;
pub use sampler::{Prepared, Sampler};
pub use sampling::{Counts, PERIOD, PERIOD_MAX, PERIOD_MIN, SamplerError, SamplerSpec};
pub use socket::{limit_unsent, socket_info};
