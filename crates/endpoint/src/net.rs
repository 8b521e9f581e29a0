//! Sockets of endpoints: why there are none, and where other endpoints are.

use std::io;
use std::net::{IpAddr, SocketAddr};

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
