//! One socket of this process, as the kernel sees it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::info::TcpInfo;

/// Room for what the kernel says: it has 248 bytes in Linux 7.
const BYTES: usize = 512;

/// The kernel's `tcp_info` of a socket.
///
/// # Errors
/// The socket is none of TCP, or the kernel is older than Linux 4.1.
pub fn socket_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0u8; BYTES];
    let mut length = libc::socklen_t::try_from(BYTES).expect("it is small");
    // SAFETY: the kernel writes at most `length` bytes into the buffer of that length, and says how many.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let written = usize::try_from(length).unwrap_or(0).min(BYTES);
    TcpInfo::parse(&bytes[..written]).map_err(io::Error::other)
}

/// Has a socket, and those that a listening one accepts, take no more to send while this many bytes wait that were never
/// sent (`TCP_NOTSENT_LOWAT`): what has been taken cannot give way to anything else.
///
/// # Errors
/// The socket is none of TCP.
pub fn limit_unsent(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<u32>()).expect("it is small");
    // SAFETY: the kernel reads an integer of that length.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const bytes).cast(),
            length,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "sockets of a test")]
    fn a_socket_of_tcp_has_a_round_trip_time_and_another_none() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let stream = std::net::TcpStream::connect(address).expect("a connection");
        let info = socket_info(stream.as_fd()).expect("tcp_info");
        assert!(info.rtt_us > 0 && info.snd_mss > 0, "{info:?}");
        limit_unsent(listener.as_fd(), 16_384).expect("an option of TCP");
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        assert!(socket_info(other.as_fd()).is_err() && limit_unsent(other.as_fd(), 1).is_err());
    }
}
