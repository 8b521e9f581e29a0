//! Where the endpoints open sockets: one of UDP for each address of the host, which all sessions share, and one of
//! TCP for offers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use suiro_endpoint::net::{self, udp, unspecified};
use tokio::io::ReadBuf;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::peer::Transmit;

/// Addresses of a host that are candidates at most.
const ADDRESSES_MAX: usize = 8;

/// Why an endpoint has no sockets.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The port is not free.
    #[error(
        "listening at TCP port {port}: {cause}\nhint: another program uses it; choose another port"
    )]
    Listen {
        /// The port.
        port: u16,
        /// What the system said.
        cause: io::Error,
    },
    /// The host's addresses are not known.
    #[error("listing the addresses of this host: {0}")]
    Addresses(io::Error),
    /// There is no socket for candidates, or it failed.
    #[error(transparent)]
    Socket(#[from] net::NetError),
}

/// The addresses of this host that other hosts can use, IPv4 and IPv6; those of loopback if there are no others.
///
/// # Errors
/// [`NetError::Addresses`].
pub fn addresses() -> Result<Vec<IpAddr>, NetError> {
    let mut first = std::ptr::null_mut();
    // SAFETY: on success `first` is a new list, freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(NetError::Addresses(io::Error::last_os_error()));
    }
    // SAFETY: the list lives until it is freed, and what is made of it keeps no reference to it.
    let mut all = unsafe { listed(first) };
    // SAFETY: it is the list from above, freed once.
    unsafe { libc::freeifaddrs(first) };
    all.sort_unstable();
    all.dedup();
    let far: Vec<IpAddr> = all.iter().copied().filter(|ip| !ip.is_loopback()).collect();
    let mut usable = if far.is_empty() { all } else { far };
    usable.truncate(ADDRESSES_MAX);
    Ok(usable)
}

/// # Safety
/// `first` must be a list from getifaddrs(3).
unsafe fn listed(first: *const libc::ifaddrs) -> Vec<IpAddr> {
    // SAFETY: every non-null entry is valid, and its address is null or as long as its family requires.
    let entries = unsafe {
        std::iter::successors(first.as_ref(), |entry| entry.ifa_next.as_ref())
            .filter_map(|entry| entry.ifa_addr.as_ref())
    };
    let ip = |of: &libc::sockaddr| match i32::from(of.sa_family) {
        libc::AF_INET => {
            // SAFETY: an address of this family is a `sockaddr_in`.
            let v4 = unsafe { &*std::ptr::from_ref(of).cast::<libc::sockaddr_in>() };
            Some(IpAddr::V4(Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: an address of this family is a `sockaddr_in6`.
            let v6 = unsafe { &*std::ptr::from_ref(of).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            // A link-local address means nothing without its interface.
            Some(IpAddr::V6(ip)).filter(|_| !ip.is_unicast_link_local())
        }
        _ => None,
    };
    entries.filter_map(ip).collect()
}

/// Listens for offers at a port of every address, or of one.
///
/// # Errors
/// [`NetError::Listen`].
#[expect(clippy::disallowed_methods, reason = "the one place that opens this socket")]
pub async fn listen(address: IpAddr, port: u16) -> Result<TcpListener, NetError> {
    let listener = TcpListener::bind(SocketAddr::new(address, port)).await;
    listener.map_err(|cause| NetError::Listen { port, cause })
}

/// Connects to a host by its name.
///
/// # Errors
/// What the system said.
#[expect(clippy::disallowed_methods, reason = "the one place that opens this socket")]
pub async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((host, port)).await
}

/// The address of this machine from which a host is reached.
///
/// # Errors
/// What the system said.
#[expect(clippy::disallowed_methods, reason = "it opens a socket and sends nothing")]
pub async fn towards(host: &str, port: u16) -> io::Result<IpAddr> {
    let mut failed = None;
    for remote in tokio::net::lookup_host((host, port)).await? {
        let reached = async {
            let socket = UdpSocket::bind((unspecified(remote.ip()), 0)).await?;
            socket.connect(remote).await?;
            socket.local_addr()
        };
        match reached.await {
            Ok(local) => return Ok(local.ip()),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| io::Error::other("the name has no address")))
}

/// Where a packet came from, and at which of the endpoint's addresses.
pub type Route = (SocketAddr, SocketAddr);

/// The sockets of an endpoint.
#[derive(Debug)]
pub struct Sockets(Vec<(SocketAddr, UdpSocket)>);

impl Sockets {
    /// One for each of the addresses, at a port that the system chooses.
    ///
    /// # Errors
    /// [`NetError::Socket`].
    pub fn bind(addresses: &[IpAddr]) -> Result<Self, NetError> {
        let mut sockets = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let at = SocketAddr::new(address, 0);
            let failed = |cause| net::NetError::Bind { at, cause };
            let socket = UdpSocket::from_std(udp(at)?).map_err(failed)?;
            sockets.push((socket.local_addr().map_err(failed)?, socket));
        }
        Ok(Self(sockets))
    }

    /// Their addresses.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|(address, _)| *address).collect()
    }

    /// Sends to where a candidate of the other end says; returns whether the packet left.
    pub async fn send(&self, transmit: &Transmit) -> bool {
        match self.0.iter().find(|(address, _)| *address == transmit.from) {
            Some((_, socket)) => net::send_to_stranger(socket, &transmit.bytes, transmit.to).await,
            None => false,
        }
    }

    /// The next packet at any of them: how long it is, where it came from and at which address.
    ///
    /// # Errors
    /// [`NetError::Socket`].
    pub async fn receive(&self, buffer: &mut [u8]) -> Result<(usize, Route), NetError> {
        std::future::poll_fn(|context| self.poll_receive(context, buffer)).await
    }

    fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<(usize, Route), NetError>> {
        for (address, socket) in &self.0 {
            loop {
                let mut read = ReadBuf::new(buffer);
                match socket.poll_recv_from(context, &mut read) {
                    Poll::Ready(Ok(from)) => {
                        return Poll::Ready(Ok((read.filled().len(), (from, *address))));
                    }
                    // A pending error that an earlier packet caused.
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    }
                    Poll::Ready(Err(cause)) => {
                        let failed = net::NetError::Io { doing: "receiving", cause };
                        return Poll::Ready(Err(failed.into()));
                    }
                    Poll::Pending => break,
                }
            }
        }
        Poll::Pending
    }

    /// What is there already; `None` if nothing is.
    pub fn receive_now(&self, buffer: &mut [u8]) -> Option<(usize, Route)> {
        self.0.iter().find_map(|(address, socket)| {
            let (length, from) = socket.try_recv_from(buffer).ok()?;
            Some((length, (from, *address)))
        })
    }
}
