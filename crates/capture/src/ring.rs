//! A packet socket that copies what passes an interface, with a ring of blocks (packet_mmap, TPACKET_V3): the kernel
//! packs packets into a block until it is full or some milliseconds old, so one wake-up hands over many.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use suiro_hosts::packet::{PacketSocket, RingMemory};

/// Memory of a ring. With 128 bytes kept of each, it holds 35 000 packets.
const RING_BYTES: usize = 8 << 20;
/// Memory of a block; it holds at least one packet of any MTU that a host may have.
const BLOCK_BYTES: usize = 128 << 10;
/// After this time a block is handed over although it has room.
const BLOCK_MS: u32 = 20;
/// Frames have no fixed slots in version 3; the kernel only checks this number.
const SLOT_BYTES: usize = 2048;

/// From `linux/filter.h`: return a constant.
const BPF_RET: u16 = 0x06;
/// From `linux/if_packet.h`.
const TP_STATUS_KERNEL: u32 = 0;

/// A packet in the ring, as the kernel wrote it.
pub(crate) struct Packet<'r> {
    /// What was kept of it, from its Ethernet header on.
    pub data: &'r [u8],
    /// Its length.
    pub length: usize,
    /// CLOCK_REALTIME when it passed, in nanoseconds.
    pub realtime_ns: u64,
    /// Whether its host sent it; otherwise it received it.
    pub sent: bool,
}

/// How many packets passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Passed {
    /// All of them.
    pub all: u64,
    /// Those that found the ring full and are lost.
    pub dropped: u64,
}

/// A packet socket on one interface.
#[derive(Debug)]
pub(crate) struct Ring {
    socket: PacketSocket,
    memory: RingMemory,
    next: usize,
    passed: Passed,
}

impl Ring {
    /// Opens a socket on `interface` in the network namespace of the calling thread, which keeps `snap` bytes of each
    /// packet. Needs CAP_NET_RAW. What passes from now on is in the ring.
    pub(crate) fn open(interface: &str, snap: u32) -> io::Result<Self> {
        let socket = PacketSocket::open()?;
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        keep(&socket, snap)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: (RING_BYTES / SLOT_BYTES) as u32,
            tp_retire_blk_tov: BLOCK_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let memory = socket.map(RING_BYTES)?;
        socket.bind(interface)?;
        Ok(Self { socket, memory, next: 0, passed: Passed::default() })
    }

    /// Hands the packets of the next block to `take`, and the block back to the kernel. Returns how many there were;
    /// `None` if no block is ready.
    pub(crate) fn block(&mut self, mut take: impl FnMut(&Packet<'_>)) -> Option<u64> {
        let block = self.memory.at(self.next * BLOCK_BYTES);
        let description = block.cast::<libc::tpacket_block_desc>();
        // SAFETY: a block begins with its description, and the kernel writes its status too; blocks are aligned to
        // pages.
        let status =
            unsafe { AtomicU32::from_ptr(&raw mut (*description.as_ptr()).hdr.bh1.block_status) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has handed over the block: it is written and does not change. The header's union has one
        // member.
        let header = unsafe { (&raw const (*description.as_ptr()).hdr.bh1).read() };
        let mut at = header.offset_to_first_pkt as usize;
        for _ in 0..header.num_pkts {
            // SAFETY: as above, and the kernel's offsets lie within the block.
            let next = unsafe { packet(block, at, &mut take) };
            at += next;
        }
        status.store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % (RING_BYTES / BLOCK_BYTES);
        Some(header.num_pkts.into())
    }

    /// Ends the capture: what passes from now on is not in the ring. What is in it can still be read.
    pub(crate) fn end(&self) -> io::Result<()> {
        keep(&self.socket, 0)
    }

    /// What has passed until now.
    pub(crate) fn passed(&mut self) -> io::Result<Passed> {
        // The kernel begins again at zero; what it drops is in both of its numbers.
        let (all, dropped) = self.socket.counts()?;
        self.passed.all += all;
        self.passed.dropped += dropped;
        Ok(self.passed)
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Hands over the packet at this offset of a block; returns how far the next is.
///
/// # Safety
/// The kernel has handed over the block, and a packet begins at the offset.
unsafe fn packet(block: NonNull<u8>, at: usize, take: &mut dyn FnMut(&Packet<'_>)) -> usize {
    // SAFETY: the caller's.
    let (header, address) = unsafe {
        let start = block.add(at);
        let address =
            start.add(size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT));
        let header = start.cast::<libc::tpacket3_hdr>().read_unaligned();
        (header, address.cast::<libc::sockaddr_ll>().read_unaligned())
    };
    let from = at + usize::from(header.tp_mac);
    let kept = (header.tp_snaplen as usize).min(BLOCK_BYTES.saturating_sub(from));
    // SAFETY: the packet lies within the block.
    let data =
        unsafe { std::slice::from_raw_parts(block.add(from.min(BLOCK_BYTES)).as_ptr(), kept) };
    take(&Packet {
        data,
        length: header.tp_len as usize,
        realtime_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
        sent: address.sll_pkttype == libc::PACKET_OUTGOING,
    });
    header.tp_next_offset as usize
}

/// Keeps `bytes` of each packet: a filter (classic BPF) of one instruction, which accepts that many bytes. With 0 it
/// accepts no packet.
fn keep(socket: &PacketSocket, bytes: u32) -> io::Result<()> {
    let mut program = [libc::sock_filter { code: BPF_RET, jt: 0, jf: 0, k: bytes }];
    let filter = libc::sock_fprog { len: 1, filter: program.as_mut_ptr() };
    socket.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
}
