//! Sockets of endpoints: why there are none, and where other endpoints are.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::UdpSocket;

/// Why an endpoint has no sockets.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The port is not to be had.
    #[error(
        "cannot bind UDP port {port}: {cause}\nhint: another program uses it; choose another port"
    )]
    Bind {
        /// The port.
        port: u16,
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
pub async fn address(host: &str) -> Result<IpAddr, NetError> {
    let failed = |cause| NetError::Name { host: host.to_owned(), cause };
    let mut found = tokio::net::lookup_host((host, 0)).await.map_err(failed)?;
    let missing = || io::Error::new(io::ErrorKind::NotFound, "the name has no IPv4 address");
    let found = found.find(SocketAddr::is_ipv4).ok_or_else(|| failed(missing()))?;
    Ok(found.ip())
}
