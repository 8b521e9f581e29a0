//! Multicast as endpoints of a trial: what runs the kinds `multicast-sender` and `multicast-receiver`.
//!
//! The sender sends numbered packets at a constant rate. The receiver joins and leaves, and watches the interfaces of its
//! host by a packet socket, which sees packets of the group also after it has left: [`receive`] records when they begin
//! and end. [`membership`] decides what a packet means, and is pure.

pub mod membership;
mod receive;
mod send;
mod socket;

pub use receive::run_job as run_receiver;
pub use send::run_job as run_sender;

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use suiro_endpoint::Failure;
use suiro_units::Time;

/// The time since the trial's epoch.
fn now(epoch_monotonic_ns: u64) -> Time {
    Time::from_nanos(suiro_kernel_clock::monotonic_ns().saturating_sub(epoch_monotonic_ns))
}

/// The IPv4 address of a host of the trial, from its private /etc/hosts.
fn resolve(host: &str) -> Result<Ipv4Addr, Failure> {
    let all = (host, 0).to_socket_addrs().map_err(|error| format!("looking up {host}: {error}"))?;
    let v4 = |address| match address {
        SocketAddr::V4(address) => Some(*address.ip()),
        SocketAddr::V6(_) => None,
    };
    all.filter_map(v4).next().ok_or_else(|| format!("{host} has no IPv4 address").into())
}
