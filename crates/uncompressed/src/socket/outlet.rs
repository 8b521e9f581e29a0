//! A socket that sends bursts of packets, each gathered from a header and a piece of a frame.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::sockopt;

use super::{Error, bind, set_int, udp};
use crate::packet::HEADER_BYTES_MAX;

/// Most packets that one call may have the kernel segment (UDP_MAX_SEGMENTS of kernels before 6.9).
pub const GSO_PACKETS_MAX: usize = 64;
/// Most bytes of UDP payload in one such call: what fits in an IP packet.
pub const GSO_BYTES_MAX: usize = 65_507;

/// Who splits a burst into packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segmentation {
    /// The kernel or the network card (UDP_SEGMENT): one call per burst.
    Kernel,
    /// The sender itself: one call per packet.
    None,
}

/// How often a packet is tried while the network refuses earlier ones.
const TRIES: u32 = 4;

/// The result of a burst. Its first packets left or were lost; if there was no room, the others were not tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets that the kernel accepted.
    pub packets: u32,
    /// Packets without a route: they are lost.
    pub unreachable: u32,
    /// ICMP errors that earlier packets had no route or no listener: each stands for a lost packet that was counted as
    /// sent.
    pub refused: u32,
    /// The socket, or the interface's queue, has no room for the other packets now: they must be sent again.
    pub no_room: bool,
}

impl Sent {
    /// Packets that are finished, sent or lost.
    pub const fn done(&self) -> u32 {
        self.packets + self.unreachable
    }
}

/// A stream's destination, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The destination: a host, or a multicast group.
    pub destination: SocketAddrV4,
    /// Local address: the interface that a multicast stream leaves by, and the packets' source; `None` to use the
    /// routes.
    pub source: Option<Ipv4Addr>,
    /// Hops that a packet may take.
    pub ttl: u8,
}

/// The packets of a burst, gathered for sending.
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
    /// Opens a socket in the calling thread's network namespace, with the system's default send buffer: room for a few
    /// bursts, so that a stalled interface blocks the sender before its queue drops packets. It is for packets with
    /// `header_bytes` of header and datagrams of `datagram_bytes`, except the last of a burst.
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
        // A packet that is larger than the path's MTU must be an error, not fragmented.
        set_int(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
            .map_err(Error::os(doing("disabling fragmentation")))?;
        // Without it, Linux reports success when the interface's queue dropped a packet (udp_send_skb in
        // net/ipv4/udp.c). With it, ICMP errors are queued: `answers` takes them.
        set_int(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1)
            .map_err(Error::os(doing("requesting errors (IP_RECVERR)")))?;
        if segmentation == Segmentation::Kernel {
            let size = i32::try_from(datagram_bytes).unwrap_or(i32::MAX);
            set_int(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, size)
                .map_err(Error::os(doing("requesting segmentation (UDP_SEGMENT)")))?;
        }
        rustix::net::connect(&socket, &to).map_err(Error::os(doing("finding a route")))?;
        let gather = Gather { headers: Vec::new(), vectors: Vec::new() };
        Ok(Self { socket, segmentation, header_bytes, gather })
    }

    /// Most packets of `datagram_bytes` that one [`Self::send`] takes.
    pub const fn packets_max(datagram_bytes: usize) -> u32 {
        let fit = GSO_BYTES_MAX / datagram_bytes;
        (if fit < GSO_PACKETS_MAX { fit } else { GSO_PACKETS_MAX }) as u32
    }

    /// Sends a burst: each packet is a header, of which the layout's length is sent, and a piece.
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
        // The headers keep their addresses only from here on.
        for (at, header) in headers.iter().enumerate() {
            vectors[2 * at] = vector(&header[..self.header_bytes]);
        }
        let step = match self.segmentation {
            Segmentation::Kernel => vectors.len(),
            Segmentation::None => 2,
        };
        let mut sent = Sent::default();
        for call in vectors.chunks_mut(step.max(1)) {
            match send_gathered(&self.socket, call, &mut sent.refused)? {
                Call::Sent => sent.packets += call.len() as u32 / 2,
                Call::Unreachable => sent.unreachable += call.len() as u32 / 2,
                Call::NoRoom => {
                    sent.no_room = true;
                    break;
                }
            }
        }
        Ok(sent)
    }
}

/// The result of one call.
enum Call {
    Sent,
    NoRoom,
    Unreachable,
}

fn vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

fn send_gathered(
    socket: &OwnedFd,
    vectors: &mut [libc::iovec],
    refused: &mut u32,
) -> io::Result<Call> {
    // SAFETY: plain data; all zeros is a message without address and control data.
    let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    for _ in 0..TRIES {
        // SAFETY: the vectors point to headers and pieces that outlive the call, with their lengths.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) };
        if sent >= 0 {
            return Ok(Call::Sent);
        }
        let error = io::Error::last_os_error();
        let answers = answers(socket);
        *refused += answers;
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS) => return Ok(Call::NoRoom),
            // This is an error about an earlier packet: try again.
            Some(libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH) => {}
            // An interface that is down may come up again, and other streams have other interfaces.
            Some(libc::ENETUNREACH | libc::ENETDOWN) => {}
            // An error about an earlier packet, of whatever kind, is not an error of this one.
            _ if answers > 0 => {}
            _ => return Err(error),
        }
    }
    Ok(Call::Unreachable)
}

/// Takes the ICMP errors about earlier packets from the socket's error queue, where IP_RECVERR puts them (ip(7)), and
/// counts those that report that a packet did not arrive. If left there, they would fill the queue up to the receive
/// buffer's size.
fn answers(socket: &OwnedFd) -> u32 {
    let mut count = 0;
    let mut control = [0_u64; 16];
    loop {
        // SAFETY: plain data; all zeros is a message without address and data.
        let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the only place to write to is `control`, whose length is set.
        let taken = unsafe {
            libc::recvmsg(
                socket.as_raw_fd(),
                &raw mut message,
                libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
            )
        };
        if taken < 0 {
            return count;
        }
        count += u32::from(is_answer(&message));
    }
}

/// True if an entry of the error queue came from another host. What this host reports about a packet that it did not
/// send is the error of the call that tried to send it.
fn is_answer(message: &libc::msghdr) -> bool {
    // SAFETY: the kernel wrote `message`'s control data, whose headers these functions follow.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    if header.is_null() {
        return false;
    }
    // SAFETY: a non-null header lies in the control data with all its contents.
    let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
    if (level, kind) != (libc::IPPROTO_IP, libc::IP_RECVERR) {
        return false;
    }
    // SAFETY: IP_RECVERR's data begin with this structure, with any alignment.
    let error =
        unsafe { libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned() };
    error.ee_origin == libc::SO_EE_ORIGIN_ICMP
}
