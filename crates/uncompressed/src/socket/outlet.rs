//! A socket that sends bursts of packets, each gathered from a header and a piece of a frame.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::sockopt;

use super::{Error, bind, set_int, udp};
use crate::packet::HEADER_BYTES_MAX;

/// Most packets that one call may have the kernel cut (UDP_MAX_SEGMENTS of kernels before 6.9).
pub const GSO_PACKETS_MAX: usize = 64;
/// Most bytes of UDP payload of one such call: what fits an IP packet.
pub const GSO_BYTES_MAX: usize = 65_507;

/// Who cuts a burst into packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segmentation {
    /// The kernel or the network card (UDP_SEGMENT): one call for a burst.
    Kernel,
    /// Nobody: one call for each packet.
    None,
}

/// Times that a packet is tried while the network refuses earlier ones.
const TRIES: u32 = 4;

/// What became of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The kernel has it.
    All,
    /// The socket, or the interface's queue, has no room now: the same burst must be sent again.
    NoRoom,
    /// There is no way, or nobody listens: it is lost.
    Unreachable,
}

/// Where a stream goes, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where to: a host, or a multicast group.
    pub destination: SocketAddrV4,
    /// Own address: which interface a multicast stream leaves by, and the packets' source; `None` for
    /// what the routes say.
    pub source: Option<Ipv4Addr>,
    /// Hops that a packet may go.
    pub ttl: u8,
}

/// A burst's packets, as they are gathered.
#[derive(Debug)]
struct Gather {
    headers: Vec<[u8; HEADER_BYTES_MAX]>,
    vectors: Vec<libc::iovec>,
}

/// A socket of one stream.
#[derive(Debug)]
pub struct Outlet {
    socket: OwnedFd,
    segmentation: Segmentation,
    header_bytes: usize,
    gather: Gather,
}

// SAFETY: the pointers in `gather` are only followed by `send`, which made them itself.
unsafe impl Send for Outlet {}

impl Outlet {
    /// Opens a socket of the calling thread's network namespace, for packets with `header_bytes` of
    /// header and datagrams of `datagram_bytes`, the last of a burst excepted.
    pub fn open(
        route: &Route,
        segmentation: Segmentation,
        header_bytes: usize,
        datagram_bytes: usize,
    ) -> Result<Self, Error> {
        assert!(header_bytes <= HEADER_BYTES_MAX, "a header is of a layout");
        let socket = udp()?;
        let to = route.destination;
        let doing = |what: &str| format!("{what} for the stream to {to}");
        if to.ip().is_multicast() {
            sockopt::set_ip_multicast_ttl(&socket, u32::from(route.ttl))
                .map_err(Error::os(doing("setting the TTL")))?;
            if let Some(source) = &route.source {
                sockopt::set_ip_multicast_if(&socket, source)
                    .map_err(Error::os(doing(&format!("choosing the interface of {source}"))))?;
            }
        } else {
            sockopt::set_ip_ttl(&socket, u32::from(route.ttl))
                .map_err(Error::os(doing("setting the TTL")))?;
        }
        bind(&socket, SocketAddrV4::new(route.source.unwrap_or(Ipv4Addr::UNSPECIFIED), 0))?;
        // A packet that is larger than the path is an error, not fragments.
        set_int(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
            .map_err(Error::os(doing("forbidding fragments")))?;
        if segmentation == Segmentation::Kernel {
            let size = i32::try_from(datagram_bytes).unwrap_or(i32::MAX);
            set_int(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, size)
                .map_err(Error::os(doing("asking for segmentation (UDP_SEGMENT)")))?;
        }
        rustix::net::connect(&socket, &to).map_err(Error::os(doing("finding a way")))?;
        let gather = Gather { headers: Vec::new(), vectors: Vec::new() };
        Ok(Self { socket, segmentation, header_bytes, gather })
    }

    /// Most packets of `datagram_bytes` that one [`Self::send`] takes.
    pub const fn packets_max(datagram_bytes: usize) -> u32 {
        let fit = GSO_BYTES_MAX / datagram_bytes;
        (if fit < GSO_PACKETS_MAX { fit } else { GSO_PACKETS_MAX }) as u32
    }

    /// Sends a burst: each packet is a header, of which the layout's bytes are sent, and a piece.
    pub fn send<'a>(
        &mut self,
        packets: impl Iterator<Item = ([u8; HEADER_BYTES_MAX], &'a [u8])>,
    ) -> io::Result<Sent> {
        let Gather { headers, vectors } = &mut self.gather;
        headers.clear();
        vectors.clear();
        for (header, piece) in packets {
            headers.push(header);
            vectors.push(vector(&[]));
            vectors.push(vector(piece));
        }
        // Only now do the headers stay where they are.
        for (at, header) in headers.iter().enumerate() {
            vectors[2 * at] = vector(&header[..self.header_bytes]);
        }
        let step = match self.segmentation {
            Segmentation::Kernel => vectors.len(),
            Segmentation::None => 2,
        };
        for (number, packet) in vectors.chunks_mut(step.max(1)).enumerate() {
            match send_gathered(&self.socket, packet)? {
                // Of packets sent one by one, those behind the first are lost with the one that
                // found no room: the receiver's counts tell.
                Sent::NoRoom if number > 0 => return Ok(Sent::All),
                Sent::All => {}
                other => return Ok(other),
            }
        }
        Ok(Sent::All)
    }
}

fn vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

fn send_gathered(socket: &OwnedFd, vectors: &mut [libc::iovec]) -> io::Result<Sent> {
    // SAFETY: plain data; all zeros is a message without address and control data.
    let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    for _ in 0..TRIES {
        // SAFETY: the vectors point to headers and pieces that outlive the call, with their lengths.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) };
        if sent >= 0 {
            return Ok(Sent::All);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS) => return Ok(Sent::NoRoom),
            // What a host answered to an earlier packet stands before this one: again.
            Some(libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => {}
            _ => return Err(error),
        }
    }
    Ok(Sent::Unreachable)
}
