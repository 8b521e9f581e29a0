//! What an emulator carries of a network.

use crate::Host;

/// A link for an emulator to carry: two interfaces in the wire namespace, one for each host.
#[derive(Debug, Clone)]
pub struct EmulatedLink {
    /// Position of its cable in [`NetworkSpec::cables`].
    pub cable: usize,
    /// The end at the host `from`.
    pub from: LinkEnd,
    /// The end at the host `to`.
    pub to: LinkEnd,
    /// Largest IP packet in bytes.
    pub mtu: u32,
}

/// The stations of a hub, for an emulator to carry together.
#[derive(Debug, Clone)]
pub struct EmulatedSegment {
    /// The hub's name in [`NetworkSpec::hosts`].
    pub hub: String,
    /// Its stations, in the order of their cables.
    pub stations: Vec<Station>,
}

/// A host at a hub.
#[derive(Debug, Clone)]
pub struct Station {
    /// Position of its cable in [`NetworkSpec::cables`].
    pub cable: usize,
    /// Its interfaces.
    pub end: LinkEnd,
    /// The hardware address of its interface in the host: frames for it bear that.
    pub mac: [u8; 6],
}

/// One end of an emulated link: a veth pair between a host and the wire namespace.
#[derive(Debug, Clone)]
pub struct LinkEnd {
    /// Position of the host in [`NetworkSpec::hosts`]; its addresses are [`ipv4`] and [`ipv6`] of
    /// it.
    pub index: usize,
    /// The host.
    pub host: Host,
    /// The interface in the host.
    pub host_interface: String,
    /// The interface in the wire namespace.
    pub wire_interface: String,
}
