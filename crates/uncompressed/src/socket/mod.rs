//! Sockets: the one place that opens them. UDP over IPv4, as ST 2110 has it.

mod departure;
mod inlet;
mod outlet;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

pub use departure::Departure;
pub use inlet::{Datagram, Datagrams, Inlet, Joined, Taken};
pub use outlet::{GSO_BYTES_MAX, GSO_PACKETS_MAX, Outlet, Route, Segmentation, Sent};

/// Receive buffer that is asked for unless told otherwise: the study's 64 MiB, about a fifth of a second
/// of a 3 Gbit/s stream.
pub const BUFFER_BYTES: u32 = 64 << 20;

/// Largest receive buffer that can be asked for, 1 GB: twice as much, which the kernel counts, is at most
/// 2^31 - 2 (socket(7)).
pub const BUFFER_MAX_BYTES: u32 = 1_000_000_000;

/// Why a socket is of no use.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{doing}: {source}")]
    Os {
        /// What was being done, to what.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
    /// The system grants a smaller buffer than is needed.
    #[error(
        "a receive buffer of {wanted} bytes was refused: the system grants {granted}\n\
         hint: sysctl -w net.core.rmem_max={wanted}"
    )]
    Buffer {
        /// Bytes wanted.
        wanted: u32,
        /// Bytes granted.
        granted: u32,
    },
}

impl Error {
    fn os<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Os { doing, source: source.into() }
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

/// Gives the socket a receive buffer of `wanted` bytes of payload, past the limit where that is allowed.
fn receive_buffer(socket: &OwnedFd, wanted: u32) -> Result<(), Error> {
    let wanted_size = wanted as usize;
    // SO_RCVBUFFORCE needs CAP_NET_ADMIN; without, SO_RCVBUF is cut to the limit and does not say so.
    if sockopt::set_socket_recv_buffer_size_force(socket, wanted_size).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, wanted_size)
            .map_err(Error::os("setting the receive buffer"))?;
    }
    let size = sockopt::socket_recv_buffer_size(socket)
        .map_err(Error::os("reading the receive buffer's size"))?;
    // The kernel doubles what it is told, for its own overhead (socket(7)).
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
    let address = rustix::net::getsockname(socket).map_err(Error::os("reading an own address"))?;
    SocketAddrV4::try_from(address).map_err(Error::os("reading an own address"))
}

/// From an address of the C library.
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
