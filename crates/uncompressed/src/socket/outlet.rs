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

/// What became of a burst. Its first packets left or were lost; where there was no room, the others
/// were not tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets that the kernel has.
    pub packets: u32,
    /// Packets that there was no way for: they are lost.
    pub unreachable: u32,
    /// Answers that earlier packets found no way, or nobody who listens: each is a packet lost, which was
    /// counted as sent.
    pub refused: u32,
    /// The socket, or the interface's queue, has no room now for the other packets: they must be sent
    /// again.
    pub no_room: bool,
}

impl Sent {
    /// Packets that are done with, sent or lost.
    pub const fn done(&self) -> u32 {
        self.packets + self.unreachable
    }
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
    /// Opens a socket of the calling thread's network namespace, with the system's usual send buffer: room
    /// for a few bursts, so that an interface that stands still holds the sender up before its queue drops.
    /// It is for packets with `header_bytes` of header and datagrams of `datagram_bytes`, the last of a
    /// burst excepted.
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
        // Without, Linux tells as success that the interface's queue dropped a packet (udp_send_skb in
        // net/ipv4/udp.c). With it, answers to packets are queued: `answers` takes them.
        set_int(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1)
            .map_err(Error::os(doing("asking for errors (IP_RECVERR)")))?;
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

/// What became of one call.
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
            // What a host answered to an earlier packet stands before this one: again.
            Some(libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH) => {}
            // An interface that is down may come up again, and other streams have others.
            Some(libc::ENETUNREACH | libc::ENETDOWN) => {}
            // An answer to an earlier packet, of whatever kind, is no error of this one.
            _ if answers > 0 => {}
            _ => return Err(error),
        }
    }
    Ok(Call::Unreachable)
}

/// Takes the answers to earlier packets (ICMP) from the socket's error queue, where IP_RECVERR puts them
/// (ip(7)), and counts those that say that a packet did not arrive. Left there they would fill it up to
/// the receive buffer's size.
fn answers(socket: &OwnedFd) -> u32 {
    let mut count = 0;
    let mut control = [0_u64; 16];
    loop {
        // SAFETY: plain data; all zeros is a message without address and data.
        let mut message = unsafe { std::mem::zeroed::<libc::msghdr>() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: there is nowhere to write to but `control`, whose length is told.
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

/// True if an entry of the error queue came from another host; what this one says of a packet that it
/// did not send is the error of the call that tried.
fn is_answer(message: &libc::msghdr) -> bool {
    // SAFETY: the kernel wrote `message`'s control data, whose headers these functions follow.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    if header.is_null() {
        return false;
    }
    // SAFETY: a header that is not null lies in the control data with what it announces.
    let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
    if (level, kind) != (libc::IPPROTO_IP, libc::IP_RECVERR) {
        return false;
    }
    // SAFETY: IP_RECVERR's data begin with this structure, at any alignment.
    let error =
        unsafe { libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned() };
    error.ee_origin == libc::SO_EE_ORIGIN_ICMP
}
