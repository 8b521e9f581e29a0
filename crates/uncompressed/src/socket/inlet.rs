//! A socket that receives many packets with one call.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt;

use super::{Error, bind, cooked, local, receive_buffer, set_int, udp};

/// Messages per call: with more, the copied data leaves the cache before it is processed.
const MESSAGES: usize = 4;
/// Room for one message: if coalesced by the kernel, it is as large as a UDP datagram can be.
const MESSAGE_BYTES: usize = 65_536;
/// Distance between messages: not a power of two, so that their beginnings do not all fall into the same cache lines.
const STRIDE_BYTES: usize = MESSAGE_BYTES + 4096 + 64;
/// Room for the kernel's control data about a message: its time, its segment size, the drops.
const CONTROL_BYTES: usize = 128;

/// A multicast group that a socket joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// The group.
    pub group: Ipv4Addr,
    /// Local address of the interface to receive it on; unspecified to use the routes.
    pub interface: Ipv4Addr,
    /// The only sender whose packets are wanted (IGMPv3, RFC 3376); `None` for all.
    pub source: Option<Ipv4Addr>,
}

/// Receive buffers that the sockets of one thread share.
pub struct Datagrams {
    memory: Vec<u8>,
    names: [libc::sockaddr_in; MESSAGES],
    controls: [[u64; CONTROL_BYTES / 8]; MESSAGES],
}

/// One datagram, or several that the kernel handed over together (UDP_GRO).
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Bytes of each datagram except the last, if there are several; otherwise all.
    pub segment: usize,
    /// Who sent it.
    pub from: SocketAddrV4,
    /// When the kernel received it, by CLOCK_REALTIME in nanoseconds; `None` if not reported.
    pub realtime_ns: Option<u64>,
    /// True if it was larger than the buffer, which no UDP datagram is.
    pub cut: bool,
}

/// The result of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Messages received.
    pub messages: usize,
    /// How often packets found the socket's buffer full since it was opened, if a message reported it. Packets that the
    /// kernel had coalesced (UDP_GRO) count once.
    pub dropped: Option<u32>,
}

/// A socket of one stream.
#[derive(Debug)]
pub struct Inlet {
    socket: OwnedFd,
    address: SocketAddrV4,
}

impl Inlet {
    /// Opens a socket in the calling thread's network namespace, at a local address or in a group, with a receive
    /// buffer of `buffer_bytes`.
    pub fn open(
        address: SocketAddrV4,
        joined: Option<&Joined>,
        buffer_bytes: u32,
    ) -> Result<Self, Error> {
        let socket = udp()?;
        let doing = |what: &str| format!("{what} for the stream at {address}");
        receive_buffer(&socket, buffer_bytes)?;
        for (level, name, what) in [
            (libc::SOL_UDP, libc::UDP_GRO, "requesting coalesced packets (UDP_GRO)"),
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, "requesting timestamps (SO_TIMESTAMPNS)"),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL, "requesting drop counts (SO_RXQ_OVFL)"),
        ] {
            set_int(socket.as_fd(), level, name, 1).map_err(Error::os(doing(what)))?;
        }
        if joined.is_some() {
            // Several receivers on a host may join the same group.
            sockopt::set_socket_reuseaddr(&socket, true)
                .map_err(Error::os(doing("sharing the port")))?;
        }
        bind(&socket, address)?;
        if let Some(Joined { group, interface, source }) = joined {
            match source {
                None => sockopt::set_ip_add_membership(&socket, group, interface),
                Some(source) => {
                    sockopt::set_ip_add_source_membership(&socket, group, interface, source)
                }
            }
            .map_err(Error::os(doing(&format!("joining {group}"))))?;
        }
        let address = local(&socket)?;
        Ok(Self { socket, address })
    }

    /// The address at which it receives.
    pub const fn address(&self) -> SocketAddrV4 {
        self.address
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes what has arrived, in one call, without waiting, and passes it to `each`.
    pub fn take(
        &self,
        buffers: &mut Datagrams,
        mut each: impl FnMut(Datagram<'_>),
    ) -> io::Result<Taken> {
        let mut rooms = buffers.memory.chunks_exact_mut(STRIDE_BYTES);
        let mut vectors: [libc::iovec; MESSAGES] = std::array::from_fn(|_| {
            let room = &mut rooms.next().expect("there is room for each message")[..MESSAGE_BYTES];
            libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() }
        });
        let mut headers: [libc::mmsghdr; MESSAGES] = std::array::from_fn(|at| {
            // SAFETY: plain data; all zeros is an empty message.
            let mut header = unsafe { MaybeUninit::<libc::mmsghdr>::zeroed().assume_init() };
            header.msg_hdr.msg_name = (&raw mut buffers.names[at]).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as _;
            header.msg_hdr.msg_iov = &raw mut vectors[at];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = buffers.controls[at].as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
            header
        });
        let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: the headers point to names, vectors, buffers and control room that live through
        // the call, each with its size.
        let count = unsafe {
            libc::recvmmsg(fd, headers.as_mut_ptr(), MESSAGES as _, flags, std::ptr::null_mut())
        };
        let Ok(messages) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            let nothing = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR));
            return if nothing { Ok(Taken::default()) } else { Err(error) };
        };
        let mut dropped = None;
        for (at, header) in headers[..messages].iter().enumerate() {
            let told = told(&header.msg_hdr);
            dropped = told.dropped.or(dropped);
            let length = (header.msg_len as usize).min(MESSAGE_BYTES);
            each(Datagram {
                bytes: &buffers.memory[at * STRIDE_BYTES..][..length],
                segment: told.segment.filter(|size| *size > 0).unwrap_or(length.max(1)),
                from: cooked(&buffers.names[at]),
                realtime_ns: told.realtime_ns,
                cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            });
        }
        Ok(Taken { messages, dropped })
    }
}

impl Datagrams {
    /// Most messages of one [`Inlet::take`].
    pub const MESSAGES: usize = MESSAGES;

    /// Buffers for one thread's sockets.
    pub fn new() -> Self {
        // SAFETY: plain data; all zeros is the address 0.0.0.0:0.
        let names = unsafe { std::mem::zeroed() };
        let controls = [[0; CONTROL_BYTES / 8]; MESSAGES];
        Self { memory: vec![0; MESSAGES * STRIDE_BYTES], names, controls }
    }
}

impl Default for Datagrams {
    fn default() -> Self {
        Self::new()
    }
}

/// The kernel's control data about a message.
#[derive(Default)]
struct Told {
    realtime_ns: Option<u64>,
    segment: Option<usize>,
    dropped: Option<u32>,
}

fn told(header: &libc::msghdr) -> Told {
    let mut told = Told::default();
    // SAFETY: the kernel filled in the control data, and `header` holds its length.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: the macros return a complete control header within the data, or null.
    while let Some(control) = unsafe { at.as_ref() } {
        // SAFETY: each kind of control data has the type that is read here (socket(7), udp(7)); it may be unaligned.
        unsafe {
            let data = libc::CMSG_DATA(at);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    let ns = time.tv_sec.cast_unsigned() * 1_000_000_000;
                    told.realtime_ns = Some(ns + time.tv_nsec.cast_unsigned());
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let size = data.cast::<i32>().read_unaligned();
                    told.segment = usize::try_from(size).ok();
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    told.dropped = Some(data.cast::<u32>().read_unaligned());
                }
                _ => {}
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    told
}
