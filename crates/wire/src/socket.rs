//! One end of the link: a packet socket on an interface, with a ring to receive from (packet_mmap,
//! TPACKET_V2) and batched sending.
//!
//! We use a ring because we can choose its size: an ordinary user's SO_RCVBUF is limited by
//! `net.core.rmem_max`, 208 KiB on most systems, which 1 Gbit/s fills in 2 ms. We use version 2
//! because version 3 hands over whole blocks, and a partly filled block wakes the reader only after
//! a timer of milliseconds.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use suiro_hosts::packet::{self, RingMemory};

use crate::frame::ETHERNET_BYTES;

/// Memory of a ring. At 1 Gbit/s of 1200-byte packets it holds 50 ms.
const RING_BYTES: usize = 12 << 20;
/// Unit in which the kernel allocates the ring.
const BLOCK_BYTES: usize = 1 << 16;
/// What the kernel puts before a frame: its header, padded, and room for a link-layer header.
const LEAD_BYTES: usize = 96;
/// Most frames in one `sendmmsg`.
pub(crate) const BATCH: usize = 32;
/// Attempts to send a frame for which the kernel has no room at the moment.
const SEND_TRIES: u32 = 64;

/// From `linux/if_packet.h`; libc does not define these two.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TP_STATUS_KERNEL: u32 = 0;

/// A frame in the ring, as the kernel wrote it.
pub(crate) struct Received<'r> {
    /// The frame, starting at its Ethernet header.
    pub bytes: &'r [u8],
    /// False if the ring's slots were too small for it.
    pub whole: bool,
    /// True if it had a VLAN tag, which the kernel removed.
    pub tagged: bool,
    /// CLOCK_REALTIME when the kernel received it, in nanoseconds.
    pub realtime_ns: u64,
}

/// A packet socket bound to one interface.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: packet::PacketSocket,
    ring: RingMemory,
    slot_bytes: usize,
    slots_per_block: usize,
    slots: usize,
    next: usize,
    /// Frames that the interface refused, each of which was sent again.
    pub refused: u64,
    /// Largest IP packet of the interface, in bytes.
    pub mtu: usize,
}

impl PacketSocket {
    /// Opens a socket on `interface` in the network namespace of the calling thread. Needs
    /// CAP_NET_RAW.
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        let socket = packet::PacketSocket::open()?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        // Frames that we send ourselves must not come back to us.
        socket.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1)?;
        // No queueing discipline between us and the interface.
        socket.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)?;
        grow_send_buffer(&socket);
        let mtu = mtu_of(&socket, interface)?;
        let slot_bytes =
            (LEAD_BYTES + ETHERNET_BYTES + mtu).next_multiple_of(libc::TPACKET_ALIGNMENT);
        let slots_per_block = BLOCK_BYTES / slot_bytes;
        if slots_per_block == 0 {
            return Err(io::Error::other(format!("its MTU of {mtu} bytes is too large")));
        }
        let blocks = RING_BYTES / BLOCK_BYTES;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: (blocks * slots_per_block) as u32,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let ring = socket.map(RING_BYTES)?;
        socket.bind(interface)?;
        Ok(Self {
            socket,
            ring,
            slot_bytes,
            slots_per_block,
            slots: blocks * slots_per_block,
            next: 0,
            refused: 0,
            mtu,
        })
    }

    fn slot(&self, index: usize) -> NonNull<u8> {
        let offset = index / self.slots_per_block * BLOCK_BYTES
            + index % self.slots_per_block * self.slot_bytes;
        self.ring.at(offset)
    }

    /// Passes the next frame of the ring to `look`, then hands its slot back to the kernel. Returns
    /// `None` if the ring is empty.
    #[inline]
    pub(crate) fn receive<T>(&mut self, look: impl FnOnce(&Received<'_>) -> T) -> Option<T> {
        let slot = self.slot(self.next);
        // SAFETY: a slot begins with the status word, aligned to TPACKET_ALIGNMENT; the kernel
        // writes it too.
        let status = unsafe { AtomicU32::from_ptr(slot.as_ptr().cast()) };
        let flags = status.load(Ordering::Acquire);
        if flags & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has handed over the slot: header and frame are written and do not
        // change.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        let (at, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let length = length.min(self.slot_bytes.saturating_sub(at));
        // SAFETY: `at + length` lies within the slot, see above.
        let bytes = unsafe { std::slice::from_raw_parts(slot.add(at).as_ptr(), length) };
        let result = look(&Received {
            bytes,
            whole: length == header.tp_len as usize,
            tagged: flags & libc::TP_STATUS_VLAN_VALID != 0,
            realtime_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
        });
        status.store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        Some(result)
    }

    /// When the kernel received the next frame of the ring (CLOCK_REALTIME, ns), without taking it.
    #[inline]
    pub(crate) fn peek_realtime_ns(&mut self) -> Option<u64> {
        let slot = self.slot(self.next);
        // SAFETY: as in `receive`.
        let status = unsafe { AtomicU32::from_ptr(slot.as_ptr().cast()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: as in `receive`.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        Some(u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec))
    }

    /// Sends up to [`BATCH`] frames in order; returns how many of them the kernel took. It gives up
    /// at a frame that is not taken in [`SEND_TRIES`] attempts.
    pub(crate) fn send(&mut self, frames: &[&[u8]]) -> usize {
        let frames = &frames[..frames.len().min(BATCH)];
        // SAFETY: all zeros are empty headers.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        for ((part, header), frame) in parts.iter_mut().zip(&mut headers).zip(frames) {
            part.iov_base = frame.as_ptr().cast_mut().cast();
            part.iov_len = frame.len();
            header.msg_hdr.msg_iov = &raw mut *part;
            header.msg_hdr.msg_iovlen = 1;
        }
        let (mut sent, mut tries) = (0, 0);
        while sent < frames.len() {
            let rest = (frames.len() - sent) as u32;
            // SAFETY: headers, parts and frames live until the call returns.
            let result = unsafe {
                libc::sendmmsg(self.as_fd().as_raw_fd(), headers[sent..].as_mut_ptr(), rest, 0)
            };
            if result > 0 {
                sent += result as usize;
                tries = 0;
                continue;
            }
            let error = io::Error::last_os_error();
            tries += 1;
            self.refused += u64::from(error.raw_os_error() == Some(libc::ENOBUFS));
            let passing = [libc::EAGAIN, libc::EINTR, libc::ENOBUFS];
            let passes = error.raw_os_error().is_some_and(|errno| passing.contains(&errno));
            if !passes || tries == SEND_TRIES {
                break;
            }
        }
        sent
    }

    /// Frames that the kernel dropped because the ring was full, since the last call.
    pub(crate) fn drops(&self) -> io::Result<u64> {
        self.socket.counts().map(|(_, dropped)| dropped)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Room for frames that receivers have not taken from the interface yet; above the usual limit if
/// permitted. Whatever the kernel grants is enough for a batch, because sending is retried.
fn grow_send_buffer(socket: &packet::PacketSocket) {
    let wanted: libc::c_int = 4 << 20;
    let _ = socket
        .set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &wanted)
        .or_else(|_| socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &wanted));
}

fn named(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: plain data; all zeros is an empty name.
    let mut request = unsafe { std::mem::zeroed::<libc::ifreq>() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::other("the interface name is longer than 15 bytes"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn mtu_of(socket: &packet::PacketSocket, interface: &str) -> io::Result<usize> {
    let mut request = named(interface)?;
    // SAFETY: `request` is a live ifreq.
    if unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel filled in the MTU.
    Ok(usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}
