//! The specification of a network: hosts, cables, addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Smallest MTU of a cable: the minimum for IPv6 (RFC 8200 §5).
pub const MTU_MIN: u32 = 1280;
/// Largest MTU of a cable: a jumbo frame.
pub const MTU_MAX: u32 = 9000;

/// IPv4 address of host number `index + 1`: `10.0.0.n`.
pub fn ipv4(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(index + 1).unwrap_or(u8::MAX))
}

/// IPv6 address of host number `index + 1`: `fd00::n`, with *n* in hexadecimal.
pub fn ipv6(index: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::try_from(index + 1).unwrap_or(u16::MAX))
}

/// What a network consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSpec {
    /// Names of the hosts, 1 to 254, all different; letters, digits, `-` and `.` only. Host numbers
    /// *n* count from 1.
    pub hosts: Vec<String>,
    /// The cables between them.
    pub cables: Vec<CableSpec>,
    /// Where packets do not take the shortest path.
    pub detours: Vec<Detour>,
}

/// A host that passes on by one cable whatever comes to it by another, also what is meant for its neighbours: a bridge
/// whose router switches between its clients. What comes by that cable takes the shortest path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detour {
    /// Position in [`NetworkSpec::hosts`].
    pub host: usize,
    /// Position in [`NetworkSpec::cables`] of a cable of this host.
    pub cable: usize,
}

/// A cable between two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CableSpec {
    /// Position in [`NetworkSpec::hosts`] of its first end.
    pub from: usize,
    /// Position in [`NetworkSpec::hosts`] of its second end.
    pub to: usize,
    /// Largest IP packet in bytes, [`MTU_MIN`] to [`MTU_MAX`].
    pub mtu: u32,
    /// Whether it connects the hosts directly or through the emulator.
    pub kind: CableKind,
}

/// What carries packets between a cable's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CableKind {
    /// One veth pair without offloads: every packet is complete and handed over on its own.
    Plain,
    /// One veth pair whose ends keep a network card's offloads ([`Host::offloads_of_a_card`]), for
    /// rates at which the CPU cannot compute checksums. Every packet still crosses on its
    /// own.
    Card,
    /// A veth pair from each host to the wire namespace; nothing passes between the two until an
    /// emulator carries it.
    Emulated,
}
