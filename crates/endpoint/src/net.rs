//! Sockets of endpoints: how they are opened, why there are none, and where other endpoints are.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU16, Ordering};

use suiro_units::Bytes;
use tokio::net::UdpSocket;

/// The receive buffer of a socket: it holds what arrives in 64 ms at 500 Mbit/s.
const BUFFER: Bytes = Bytes::new(4_000_000);

/// Why an endpoint has no sockets.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The port is not to be had.
    #[error("{}: {cause}{}", bind_text(.at), bind_hint(.at))]
    Bind {
        /// Where the socket was to be.
        at: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The name is no address.
    #[error("finding the address of {host}: {cause}")]
    Name {
        /// The name.
        host: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The socket failed.
    #[error("{doing}: {cause}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        cause: io::Error,
    },
}

fn bind_text(at: &SocketAddr) -> String {
    match at.port() {
        0 => format!("cannot bind a UDP port of {}", at.ip()),
        port => format!("cannot bind UDP port {port}"),
    }
}

const fn bind_hint(at: &SocketAddr) -> &'static str {
    match at.port() {
        0 => "",
        _ => "\nhint: another program uses it; choose another port",
    }
}

/// Opens a socket for media. The kernel keeps for it what arrives in 64 ms at 500 Mbit/s, or as much as it grants.
///
/// # Errors
/// [`NetError::Bind`].
#[expect(clippy::disallowed_methods, reason = "the one place that opens the sockets of media")]
pub fn udp(at: SocketAddr) -> Result<std::net::UdpSocket, NetError> {
    let failed = |cause| NetError::Bind { at, cause };
    let socket = std::net::UdpSocket::bind(at).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    // The system may grant less, which is enough for most streams.
    let _ = receive_buffer(&socket, BUFFER.get() as usize);
    Ok(socket)
}

/// Gives a socket a receive buffer of this many bytes. Without the privilege for more (CAP_NET_ADMIN), the system grants
/// what its limit allows, and reports nothing.
///
/// # Errors
/// What the system said.
pub fn receive_buffer(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
    set_socket_recv_buffer_size_force(socket.as_fd(), bytes)
        .or_else(|_| set_socket_recv_buffer_size(socket.as_fd(), bytes))
        .map_err(io::Error::from)
}

/// Every address of this host, of the version of IP that `other` has.
pub const fn unspecified(other: IpAddr) -> IpAddr {
    match other {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// Opens a socket as [`udp`] does, from which `other` can be reached.
///
/// # Errors
/// [`NetError::Bind`].
pub fn udp_towards(other: IpAddr) -> Result<std::net::UdpSocket, NetError> {
    udp(SocketAddr::new(unspecified(other), 0))
}

/// Sends to an address that the user gave. A receiver that does not listen (yet) is no error, nor is a full queue in the
/// kernel: the packet is lost, as in a network.
///
/// # Errors
/// [`NetError::Io`].
pub async fn send(socket: &UdpSocket, bytes: &[u8], to: SocketAddr) -> Result<(), NetError> {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    match socket.send_to(bytes, to).await {
        Ok(_) => Ok(()),
        Err(error)
            if matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
                || error.raw_os_error() == Some(libc::ENOBUFS) =>
        {
            Ok(())
        }
        Err(cause) => Err(NetError::Io { doing: "sending", cause }),
    }
}

/// Sends to an address that came from the network, such as a candidate of WebRTC; returns whether the packet left. What
/// the kernel refuses to send there (port 0, a broadcast address, no route from this socket) is lost, as in a network:
/// no stranger ends an endpoint by naming an address.
pub async fn send_to_stranger(socket: &UdpSocket, bytes: &[u8], to: SocketAddr) -> bool {
    socket.send_to(bytes, to).await.is_ok()
}

/// The IPv4 address of a host.
///
/// # Errors
/// [`NetError::Name`].
pub async fn address(host: &str) -> Result<Ipv4Addr, NetError> {
    first_ipv4(host, tokio::net::lookup_host((host, 0)).await)
}

/// The same for an endpoint of threads, which waits for the answer.
///
/// # Errors
/// [`NetError::Name`].
pub fn address_now(host: &str) -> Result<Ipv4Addr, NetError> {
    first_ipv4(host, (host, 0).to_socket_addrs())
}

/// For tests: a port of loopback that neither UDP nor TCP uses, another one each time. It is below those that the kernel
/// chooses itself (from 32768 on): nothing else gets it before the test uses it.
///
/// # Panics
/// If a thousand ports are in use.
#[expect(clippy::disallowed_methods, reason = "a port for a server of a test")]
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin elsewhere.
    let first = (std::process::id() % 400) as u16 * 50;
    let ports = || 10_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
    let is_free = |port: &u16| {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        udp(at).is_ok() && TcpListener::bind(at).is_ok()
    };
    std::iter::repeat_with(ports).take(1000).find(is_free).expect("a free port")
}

fn first_ipv4(
    host: &str,
    found: io::Result<impl Iterator<Item = SocketAddr>>,
) -> Result<Ipv4Addr, NetError> {
    let failed = |cause| NetError::Name { host: host.to_owned(), cause };
    let v4 = |address| match address {
        SocketAddr::V4(address) => Some(*address.ip()),
        SocketAddr::V6(_) => None,
    };
    let missing = || io::Error::new(io::ErrorKind::NotFound, "the name has no IPv4 address");
    found.map_err(failed)?.find_map(v4).ok_or_else(|| failed(missing()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_its_first_ipv4_address_and_nothing_else() {
        let local = Ipv4Addr::LOCALHOST;
        assert_eq!(address("127.0.0.1").await.unwrap(), local);
        assert_eq!(address_now("127.0.0.1").unwrap(), local);
        for refused in [address("::1").await, address_now("::1")] {
            let text = refused.unwrap_err().to_string();
            assert_eq!(text, "finding the address of ::1: the name has no IPv4 address");
        }
    }

    #[test]
    fn a_port_in_use_is_named_and_any_other_is_free() {
        let first = udp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let at = first.local_addr().unwrap();
        let text = udp(at).unwrap_err().to_string();
        assert!(text.starts_with(&format!("cannot bind UDP port {}: ", at.port())), "{text}");
        assert!(text.ends_with("\nhint: another program uses it; choose another port"), "{text}");
        let elsewhere = udp(SocketAddr::from(([192, 0, 2, 1], 0))).unwrap_err().to_string();
        assert!(elsewhere.starts_with("cannot bind a UDP port of 192.0.2.1: "), "{elsewhere}");
        assert!(!elsewhere.contains("hint"), "{elsewhere}");
        let any = udp_towards(Ipv4Addr::LOCALHOST.into()).unwrap().local_addr().unwrap();
        assert!(any.ip().is_unspecified() && any.port() > 0, "{any}");
    }

    #[test]
    fn each_free_port_is_another_one() {
        let (first, second) = (free_port(), free_port());
        assert!(first != second && [first, second].iter().all(|port| *port < 32_768));
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, first));
        assert!(udp(at).is_ok());
    }
}
