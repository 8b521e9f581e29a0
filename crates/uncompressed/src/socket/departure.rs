//! The source of a stream's packets: what a session description says about their sender.

use std::ffi::CStr;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::{Error, Route, bind, cooked, local, udp};

/// The source of a stream's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Their source address.
    pub address: Ipv4Addr,
    /// The hardware address of the interface with that address; `None` if it has none, like
    /// loopback.
    pub mac: Option<[u8; 6]>,
}

impl Departure {
    /// The source of packets that take `route`. Nothing is sent; the system's routes are consulted.
    pub fn of(route: &Route) -> Result<Self, Error> {
        let to = route.destination;
        let socket = udp()?;
        bind(&socket, SocketAddrV4::new(route.source.unwrap_or(Ipv4Addr::UNSPECIFIED), 0))?;
        rustix::net::connect(&socket, &to)
            .map_err(Error::os(format!("finding a route for the stream to {to}")))?;
        let address = *local(&socket)?.ip();
        Ok(Self { address, mac: Interface::with(address)?.and_then(|own| own.mac) })
    }
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its hardware address; `None` if it has none, like loopback.
    pub mac: Option<[u8; 6]>,
}

impl Interface {
    /// The interface that has `address`; `None` if no interface of this host has it.
    ///
    /// # Errors
    /// If the system does not list its interfaces.
    pub fn with(address: Ipv4Addr) -> Result<Option<Self>, Error> {
        interface(address)
    }
}

fn interface(address: Ipv4Addr) -> Result<Option<Interface>, Error> {
    let mut first = std::ptr::null_mut();
    // SAFETY: on success `first` is a new list, freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Error::os("listing the interfaces' addresses")(error));
    }
    // SAFETY: the list lives until it is freed, and no reference to it is kept.
    let found = unsafe { interface_in(first, address) };
    // SAFETY: it is the list from above, freed once.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// # Safety
/// `first` must be a list from getifaddrs(3).
unsafe fn interface_in(first: *const libc::ifaddrs, address: Ipv4Addr) -> Option<Interface> {
    // SAFETY: every non-null entry is valid, and its address is null or as long as its family
    // requires.
    let entries = || {
        std::iter::successors(unsafe { first.as_ref() }, |entry| unsafe { entry.ifa_next.as_ref() })
            .filter_map(|entry| Some((entry, unsafe { entry.ifa_addr.as_ref() }?)))
    };
    // SAFETY: names are C strings.
    let name = |entry: &libc::ifaddrs| unsafe { CStr::from_ptr(entry.ifa_name) }.to_owned();
    let own = entries().find(|(_, of)| {
        // SAFETY: an address of this family is a `sockaddr_in`.
        i32::from(of.sa_family) == libc::AF_INET
            && *cooked(unsafe { &*std::ptr::from_ref(*of).cast() }).ip() == address
    });
    let own = name(own?.0);
    let packet = entries()
        .find(|(entry, of)| i32::from(of.sa_family) == libc::AF_PACKET && name(entry) == own);
    let mac = packet.and_then(|(_, of)| {
        // SAFETY: an address of this family is a `sockaddr_ll`.
        let packet = unsafe { &*std::ptr::from_ref(of).cast::<libc::sockaddr_ll>() };
        let mac = packet.sll_addr.first_chunk().copied();
        mac.filter(|mac| packet.sll_halen == 6 && *mac != [0; 6])
    });
    Some(Interface { name: own.to_string_lossy().into_owned(), mac })
}
