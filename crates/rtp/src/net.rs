//! Where the endpoints open sockets: a pair of them, RTP at an even port and RTCP at the next
//! (RFC 3550 §11).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use suiro_endpoint::net::udp;
pub use suiro_endpoint::net::{NetError, address, send, send_to_stranger};
use suiro_record::flows::{End, Flow};
use suiro_record::words::{Carries, FlowRole, Transport};
use tokio::net::UdpSocket;

use crate::ecn;

/// The two sockets of a session.
#[derive(Debug)]
pub struct Pair {
    /// RTP.
    pub rtp: UdpSocket,
    /// RTCP.
    pub rtcp: UdpSocket,
}

impl Pair {
    /// Sockets at `port`, which is even, and the next, of every IPv4 address of this host.
    ///
    /// # Errors
    /// [`NetError::Bind`].
    pub fn bind(port: u16) -> Result<Self, NetError> {
        Ok(Self { rtp: bind(port)?, rtcp: bind(port.saturating_add(1))? })
    }
}

fn bind(port: u16) -> Result<UdpSocket, NetError> {
    let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let failed = |cause| NetError::Bind { at, cause };
    let socket = UdpSocket::from_std(udp(at)?).map_err(failed)?;
    ecn::watch(&socket).map_err(failed)?;
    Ok(socket)
}

/// The flows of a session at `port` and the next, for table `flows`: video, and RTCP about it. `peer` is the endpoint
/// at the other end.
pub fn flows(role: FlowRole, port: u16, (rtp, rtcp): (End, End), peer: Option<&str>) -> [Flow; 2] {
    let flow = |port, remote, carries| Flow {
        role,
        protocol: Transport::Udp,
        local: End::Port(port),
        remote,
        carries,
        peer: peer.map(Into::into),
    };
    [flow(port, rtp, Carries::Video), flow(port.saturating_add(1), rtcp, Carries::Feedback)]
}

/// Receives, with the bits of ECN. A pending error that an earlier packet caused is ignored.
///
/// # Errors
/// [`NetError::Io`].
pub async fn receive_marked(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> Result<ecn::Received, NetError> {
    loop {
        match ecn::receive(socket, buffer).await {
            Ok(received) => return Ok(received),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(cause) => return Err(NetError::Io { doing: "receiving", cause }),
        }
    }
}

/// Receives. A pending error that an earlier packet caused is ignored.
///
/// # Errors
/// [`NetError::Io`].
pub async fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> Result<(usize, SocketAddr), NetError> {
    loop {
        match socket.recv_from(buffer).await {
            Ok(received) => return Ok(received),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(cause) => return Err(NetError::Io { doing: "receiving", cause }),
        }
    }
}
