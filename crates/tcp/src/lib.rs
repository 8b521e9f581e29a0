//! TCP as the kernel sees it: congestion control and socket records.
//!
//! [`congestion`] asks for a congestion control on a socket and says what could be asked for;
//! [`Sampler`] looks at every TCP socket of a host many times a second and writes the `tcp` table.
//! The rest is what they stand on: [`diag`] is the wire format of the kernel's socket
//! diagnostics and [`info`] its `tcp_info`, both pure.
//!
//! [`vegas`] brings TCP Vegas to kernels without it, and [`probe`] traces each ACK: both are BPF and
//! need root. Nothing else here needs privilege inside the socket's own network namespace.

mod bpf;
pub mod congestion;
pub mod diag;
mod follow;
pub mod info;
mod netlink;
pub mod probe;
mod sampler;
pub mod vegas;

pub use congestion::{CongestionError, Controls, set_congestion};
pub use follow::count_sockets;
pub use sampler::{
    Counts, PERIOD, PERIOD_MAX, PERIOD_MIN, Prepared, Sampler, SamplerError, SamplerSpec,
};
