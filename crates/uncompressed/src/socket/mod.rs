//! Sockets: the one place that opens them. UDP over IPv4, as in ST 2110.

mod departure;
mod inlet;
mod outlet;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

pub use departure::{Departure, Interface};
pub use inlet::{Datagram, Datagrams, Inlet, Joined, Taken};
pub use outlet::{GSO_BYTES_MAX, GSO_PACKETS_MAX, Outlet, Route, Segmentation, Sent};

/// Default receive buffer to request: the study's 64 MiB, about a fifth of a second of a 3 Gbit/s stream.
pub const BUFFER_BYTES: u32 = 64 << 20;

/// Largest receive buffer that can be requested, 1 GB: the kernel counts twice as much, at most 2^31 - 2 (socket(7)).
pub const BUFFER_MAX_BYTES: u32 = 1_000_000_000;

/// Why a socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{doing}: {cause}")]
    Os {
        /// What was being done, to what.
        doing: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The system grants a smaller buffer than needed.
    #[error(
        "receive buffer: expected {wanted} bytes, but the system grants only {granted}\n\
         hint: run `sysctl -w net.core.rmem_max={wanted}`"
    )]
    Buffer {
        /// Bytes requested.
        wanted: u32,
        /// Bytes granted.
        granted: u32,
    },
}

impl Error {
    fn os<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |cause| Self::Os { doing, cause: cause.into() }
    }
}

fn udp() -> Result<OwnedFd, Error> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .map_err(Error::os("opening a UDP socket"))
}

fn bind(socket: &OwnedFd, address: SocketAddrV4) -> Result<(), Error> {
    rustix::net::bind(socket, &address).map_err(Error::os(format!("binding to {address}")))
}

/// Gives the socket a receive buffer of `wanted` bytes of payload, beyond the limit if permitted.
fn receive_buffer(socket: &OwnedFd, wanted: u32) -> Result<(), Error> {
    suiro_endpoint::net::receive_buffer(socket, wanted as usize)
        .map_err(Error::os("setting the receive buffer"))?;
    let size = sockopt::socket_recv_buffer_size(socket)
        .map_err(Error::os("reading the receive buffer's size"))?;
    // The kernel doubles the value that it is given, for its own overhead (socket(7)).
    let granted = u32::try_from(size / 2).unwrap_or(u32::MAX);
    if granted < wanted {
        return Err(Error::Buffer { wanted, granted });
    }
    Ok(())
}

/// Sets an option that is one `int`.
fn set_int(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` lives through the call, and `length` is its size.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The port of a bound socket's address.
fn local(socket: &OwnedFd) -> Result<SocketAddrV4, Error> {
    let address = rustix::net::getsockname(socket).map_err(Error::os("reading a local address"))?;
    SocketAddrV4::try_from(address).map_err(Error::os("reading a local address"))
}

/// From a C library address.
fn cooked(address: &libc::sockaddr_in) -> SocketAddrV4 {
    let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
    SocketAddrV4::new(ip, u16::from_be(address.sin_port))
}

impl AsFd for Inlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket()
    }
}

#[cfg(test)]
mod tests;
