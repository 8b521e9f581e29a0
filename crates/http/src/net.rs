//! Where the endpoints open sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use suiro_units::Bytes;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::url::{Reach, Url, UrlError};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Why an endpoint does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is not to be had.
    #[error("cannot listen on {address}: {cause}{}", hint(.cause, .address))]
    Address {
        /// Where it was to listen.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The congestion control is not to be had.
    #[error("cannot listen on {address}: {cause}")]
    Congestion {
        /// Where it was to listen.
        address: SocketAddr,
        /// What is wrong, and the remedy.
        cause: suiro_tcp::CongestionError,
    },
}

fn hint(error: &io::Error, address: &SocketAddr) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                "\nhint: another program listens on port {}; choose another port",
                address.port()
            )
        }
        io::ErrorKind::PermissionDenied => {
            "\nhint: ports below 1024 need privilege; choose a port such as 8080".into()
        }
        _ => String::new(),
    }
}

/// Every address of this host, IPv6 and IPv4 by one socket.
pub fn any_address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
}

/// Listens at `address`, with a congestion control that accepted connections inherit. Where the
/// host has no IPv6, the IPv6 wildcard means the IPv4 one.
///
/// # Errors
/// [`ListenError`] names what was requested and how to fix it.
pub fn listen(address: SocketAddr, congestion: Option<&str>) -> Result<TcpListener, ListenError> {
    let fail = |cause| ListenError::Address { address, cause };
    let wildcard = address.ip() == Ipv6Addr::UNSPECIFIED;
    let (socket, address) = match open(address) {
        Err(e)
            if wildcard
                && e.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error()) =>
        {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            (open(address).map_err(fail)?, address)
        }
        other => (other.map_err(fail)?, address),
    };
    if let Some(name) = congestion {
        suiro_tcp::set_congestion(socket.as_fd(), name)
            .map_err(|cause| ListenError::Congestion { address, cause })?;
    }
    socket.set_reuseaddr(true).map_err(fail)?;
    socket.bind(address).map_err(fail)?;
    socket.listen(BACKLOG).map_err(fail)
}

fn open(address: SocketAddr) -> io::Result<TcpSocket> {
    match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(v6) => {
            let socket = TcpSocket::new_v6()?;
            let only_v6 = !v6.ip().is_unspecified();
            rustix::net::sockopt::set_ipv6_v6only(&socket, only_v6)?;
            Ok(socket)
        }
    }
}

/// Connects to a host by name or address; what is sent goes out at once (no Nagle delay).
///
/// With a `receive_buffer`, TCP's window is about so large; else the kernel fits it to what is
/// read. The kernel doubles the size for its own needs (socket(7), `SO_RCVBUF`) and bounds it by
/// `net.core.rmem_max`.
pub async fn connect(
    host: &str,
    port: u16,
    receive_buffer: Option<Bytes>,
) -> io::Result<TcpStream> {
    connect_any(resolve(host, port).await?, receive_buffer).await
}

/// Why a URL of a manifest is not fetched.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name has no address, or no server accepts connections there.
    #[error("{0}")]
    Io(io::Error),
    /// It leads to this machine or link, and the user's URL does not.
    #[error(transparent)]
    Near(UrlError),
}

/// Connects to the host of `url`, which the user named as `home` or which a manifest or redirect of `home` names; that one
/// must not lead to this machine or link, unless the user's does too.
///
/// # Errors
/// [`ConnectError`] says which it was.
pub async fn connect_from(
    home: &Url,
    url: &Url,
    receive_buffer: Option<Bytes>,
) -> Result<TcpStream, ConnectError> {
    let addresses = resolve(url.host(), url.port()).await.map_err(ConnectError::Io)?;
    allow(home, url, &addresses).await?;
    connect_any(addresses, receive_buffer).await.map_err(ConnectError::Io)
}

/// Refuses a host other than the user's whose name resolves to this machine or link, unless the user's does too. The
/// URL itself shows this only where it has an address instead of a name.
pub(crate) async fn allow(
    home: &Url,
    url: &Url,
    addresses: &[SocketAddr],
) -> Result<(), ConnectError> {
    if url.host() == home.host() {
        return Ok(());
    }
    let near = reaches(addresses);
    if near.is_empty() {
        return Ok(());
    }
    let home = resolve(home.host(), home.port()).await.map_err(ConnectError::Io)?;
    let home = reaches(&home);
    if near.iter().all(|reach| home.contains(reach)) {
        return Ok(());
    }
    Err(ConnectError::Near(UrlError::Near(url.to_string())))
}

/// How near these addresses are; nothing of those that are far.
fn reaches(addresses: &[SocketAddr]) -> Vec<Reach> {
    let reach = |address: &SocketAddr| match Reach::of(address.ip()) {
        Reach::Far if is_own(address.ip()) => Reach::Machine,
        reach => reach,
    };
    addresses.iter().map(reach).filter(|reach| *reach != Reach::Far).collect()
}

/// The addresses of a host by name or address.
pub(crate) async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

/// Connects to the first of these addresses that answers.
async fn connect_any(
    addresses: Vec<SocketAddr>,
    receive_buffer: Option<Bytes>,
) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match connect_to(address, receive_buffer).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// An error with its causes: hyper's own text names only the outermost.
pub(crate) fn causes(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

/// Whether this machine has that address, on whatever interface: nothing can be bound to another's.
fn is_own(address: IpAddr) -> bool {
    let any_port = SocketAddr::new(address, 0);
    open(any_port).and_then(|socket| socket.bind(any_port)).is_ok()
}

async fn connect_to(address: SocketAddr, receive_buffer: Option<Bytes>) -> io::Result<TcpStream> {
    let socket = open(address)?;
    if let Some(size) = receive_buffer {
        socket.set_recv_buffer_size(u32::try_from(size.get()).unwrap_or(u32::MAX))?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_are_judged_by_what_they_resolve_to() {
        // Addresses that RFC 5737 reserves for documentation, and two of this machine under other names.
        let url = |text: &str| Url::parse(text).unwrap();
        let (far, near) = (url("http://192.0.2.1/"), url("http://127.0.0.1/"));
        let alias = url("http://ip6-localhost/");
        for own in ["[::1]:80", "127.0.0.2:80", "[::ffff:127.0.0.1]:80"] {
            let error = allow(&far, &alias, &[own.parse().unwrap()]).await.unwrap_err();
            assert!(error.to_string().contains("must not refer to a local address"), "{error}");
            allow(&near, &alias, &[own.parse().unwrap()]).await.unwrap();
        }
        let link = allow(&far, &alias, &["169.254.169.254:80".parse().unwrap()]).await;
        assert!(matches!(link, Err(ConnectError::Near(_))));
        allow(&far, &alias, &["198.51.100.1:80".parse().unwrap()]).await.unwrap();
    }

    #[test]
    fn an_address_of_this_machine_is_known_on_every_interface() {
        assert!(is_own("127.0.0.1".parse().unwrap()));
        assert!(!is_own("198.51.100.1".parse().unwrap()));
    }
}
