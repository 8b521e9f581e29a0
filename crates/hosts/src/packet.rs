//! Packet sockets with a ring (packet(7), packet_mmap): what the live link and the capture points have in common. What is
//! in the ring depends on the version of its format, and is theirs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// From `linux/if_ether.h`; libc has it as a signed number.
const ETH_P_ALL: u16 = 0x0003;

/// A packet socket. It receives nothing before it is bound to an interface.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a non-blocking socket in the network namespace of the calling thread. Needs CAP_NET_RAW.
    ///
    /// # Errors
    /// What the system said.
    pub fn open() -> io::Result<Self> {
        Self::of(libc::SOCK_RAW)
    }

    /// The same for packets without the header of their link: they begin with that of IP.
    ///
    /// # Errors
    /// What the system said.
    pub fn without_link_headers() -> io::Result<Self> {
        Self::of(libc::SOCK_DGRAM)
    }

    fn of(kind: libc::c_int) -> io::Result<Self> {
        let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: plain numbers; protocol 0 receives nothing.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just opened and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sets an option of the socket (setsockopt(2)); the kernel checks the value.
    ///
    /// # Errors
    /// What the system said.
    pub fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        let value = (&raw const *value).cast();
        // SAFETY: the length is that of the value.
        check(unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, value, length) })
    }

    /// Maps the ring, which was requested before by PACKET_RX_RING with this size in bytes.
    ///
    /// # Errors
    /// What the system said.
    pub fn map(&self, bytes: usize) -> io::Result<RingMemory> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            let fd = self.0.as_raw_fd();
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast());
        let start = start.ok_or_else(|| io::Error::other("the ring was mapped at address 0"))?;
        let ring = RingMemory { start, bytes };
        // A process that this one starts must not hold the ring; a guest kernel's page tables do not survive its copy.
        // SAFETY: advice about the mapping that `ring` owns.
        check(unsafe { libc::madvise(address, bytes, libc::MADV_DONTFORK) })?;
        Ok(ring)
    }

    /// Receives every packet of `interface` from now on.
    ///
    /// # Errors
    /// What the system said.
    pub fn bind(&self, interface: &str) -> io::Result<()> {
        let index = rustix::net::netdevice::name_to_index(&self.0, interface)?;
        self.bind_to(index.cast_signed(), ETH_P_ALL)
    }

    /// Receives the packets of all interfaces that have this EtherType, such as 0x0800 for IPv4, from now on.
    ///
    /// # Errors
    /// What the system said.
    pub fn bind_everywhere(&self, protocol: u16) -> io::Result<()> {
        self.bind_to(0, protocol)
    }

    /// Interface 0 is all of them.
    fn bind_to(&self, interface: libc::c_int, protocol: u16) -> io::Result<()> {
        // SAFETY: plain numbers.
        let mut address = unsafe { std::mem::zeroed::<libc::sockaddr_ll>() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = interface;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the length is that of the address.
        check(unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), length) })
    }

    /// Packets that passed, those that were dropped included, and those that found the ring full; both since the last
    /// call.
    ///
    /// # Errors
    /// What the system said.
    pub fn counts(&self) -> io::Result<(u64, u64)> {
        // Version 3 has one number more than the others, which the kernel leaves out if there is no room for it.
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `length` is the size of `counts`.
        check(unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut length,
            )
        })?;
        Ok((counts.tp_packets.into(), counts.tp_drops.into()))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The memory of a ring, which the kernel writes to as well.
#[derive(Debug)]
pub struct RingMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory of this process that only this value points to.
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// The address of the byte at this offset.
    ///
    /// # Panics
    /// Beyond the end.
    #[inline]
    pub fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "the offset {offset} is beyond the ring");
        // SAFETY: it lies in the mapping.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `PacketSocket::map`, and nothing borrows it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
