//! Interface flags and offloads by ioctl, in the namespace of the calling thread. The numbers and
//! layouts are those of the kernel's `linux/ethtool.h`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::HostsError;

const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// Length of a feature's name, padding included.
const NAME_BYTES: usize = 32;
/// Far more features than any kernel has (2025: about 60).
const FEATURES_MAX: u32 = 1024;

/// Sets an interface up.
pub(crate) fn set_up(interface: &str) -> Result<(), HostsError> {
    let doing = || format!("setting {interface} up");
    let socket = any_socket().map_err(HostsError::os(doing()))?;
    let mut request = named(interface)?;
    call(&socket, libc::SIOCGIFFLAGS, &mut request).map_err(HostsError::os(doing()))?;
    // SAFETY: the kernel filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    call(&socket, libc::SIOCSIFFLAGS, &mut request).map_err(HostsError::os(doing()))?;
    Ok(())
}

/// Waits until an interface carries packets. Both its ends must be up.
///
/// The end that came up first learns about the other from the kernel's link watch, later and on
/// another thread; until then it drops every packet. Asking for the link's state makes the kernel
/// process the pending event before it answers.
pub(crate) fn settle(interface: &str) -> Result<(), HostsError> {
    let doing = || format!("waiting for the link of {interface}");
    let socket = any_socket().map_err(HostsError::os(doing()))?;
    // struct ethtool_value: cmd, data.
    let mut state = [ETHTOOL_GLINK, 0];
    ethtool(&socket, interface, &mut state).map_err(HostsError::os(doing()))?;
    if state[1] == 0 {
        let cause = io::Error::other("the other end is not up");
        return Err(HostsError::Os { doing: doing(), cause });
    }
    Ok(())
}

/// Switches off every offload that lets a packet on this interface be more or less than one
/// complete packet: segmentation (tso, gso, tx-udp-segmentation), receive offload (gro), transmit
/// checksums.
pub(crate) fn offloads_off(interface: &str) -> Result<(), HostsError> {
    switch(interface, &|name| is_offload(name).then_some(false))
}

/// Leaves a network card's offloads on and switches segmentation off: every packet crosses the
/// cable on its own. The hosts still do not compute its checksum and do not reassemble what they
/// receive, and the receiving host gets the packets of a flow together (GRO).
pub(crate) fn offloads_of_a_card(interface: &str) -> Result<(), HostsError> {
    switch(interface, &|name| match name {
        "rx-gro" => Some(true),
        _ if name.contains("segmentation") || name == "rx-lro" || name == "rx-gro-list" => {
            Some(false)
        }
        _ => None,
    })
}

/// The offloads of an interface that are on, by the kernel's names, sorted.
pub(crate) fn offloads(interface: &str) -> Result<Vec<String>, HostsError> {
    let doing = || format!("reading the offloads of {interface}");
    let socket = any_socket().map_err(HostsError::os(doing()))?;
    let names = feature_names(&socket, interface).map_err(HostsError::os(doing()))?;
    let active = active(&socket, interface, names.len()).map_err(HostsError::os(doing()))?;
    let on = names.into_iter().enumerate().filter(|(bit, name)| is_offload(name) && active(*bit));
    let mut on: Vec<_> = on.map(|(_, name)| name).collect();
    on.sort();
    Ok(on)
}

/// Switches on or off each feature for which `wish` returns a value, and checks the result.
fn switch(interface: &str, wish: &dyn Fn(&str) -> Option<bool>) -> Result<(), HostsError> {
    let doing = || format!("switching the offloads of {interface}");
    let socket = any_socket().map_err(HostsError::os(doing()))?;
    let names = feature_names(&socket, interface).map_err(HostsError::os(doing()))?;
    let blocks = names.len().div_ceil(32);
    let wishes: Vec<(usize, bool)> =
        names.iter().enumerate().filter_map(|(bit, name)| Some((bit, wish(name)?))).collect();

    // struct ethtool_sfeatures: cmd, size, then (valid, requested) a block of 32 features.
    let mut change = vec![0; 2 + blocks * 2];
    (change[0], change[1]) = (ETHTOOL_SFEATURES, blocks as u32);
    for &(bit, on) in &wishes {
        change[2 + bit / 32 * 2] |= 1 << (bit % 32);
        change[2 + bit / 32 * 2 + 1] |= u32::from(on) << (bit % 32);
    }
    ethtool(&socket, interface, &mut change).map_err(HostsError::os(doing()))?;

    let active = active(&socket, interface, names.len()).map_err(HostsError::os(doing()))?;
    match wishes.iter().find(|(bit, on)| active(*bit) != *on) {
        None => Ok(()),
        Some(&(bit, on)) => {
            let stays = if on { "off" } else { "on" };
            let cause = io::Error::other(format!("{} stays {stays}", names[bit]));
            Err(HostsError::Os { doing: doing(), cause })
        }
    }
}

/// Which of `count` features are active.
fn active(socket: &OwnedFd, interface: &str, count: usize) -> io::Result<impl Fn(usize) -> bool> {
    let blocks = count.div_ceil(32);
    // struct ethtool_gfeatures: cmd, size, then (available, requested, active, never changed).
    let mut state = vec![0; 2 + blocks * 4];
    (state[0], state[1]) = (ETHTOOL_GFEATURES, blocks as u32);
    ethtool(socket, interface, &mut state)?;
    Ok(move |bit: usize| state[2 + bit / 32 * 4 + 2] & (1 << (bit % 32)) != 0)
}

fn is_offload(name: &str) -> bool {
    name.contains("segmentation")
        || name.starts_with("tx-checksum")
        || name.starts_with("rx-gro")
        || name == "rx-udp-gro-forwarding"
        || name == "rx-lro"
}

fn feature_names(socket: &OwnedFd, interface: &str) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: cmd, reserved, a 64-bit mask of sets, then one count per set.
    let mut info = vec![ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0];
    ethtool(socket, interface, &mut info)?;
    let count = info[4].min(FEATURES_MAX) as usize;
    // struct ethtool_gstrings: cmd, set, count, then the names.
    let mut strings = vec![0; 3 + count * NAME_BYTES / 4];
    (strings[0], strings[1], strings[2]) = (ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32);
    ethtool(socket, interface, &mut strings)?;
    let bytes: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |chunk: &[u8]| {
        let end = chunk.iter().position(|&b| b == 0).unwrap_or(chunk.len());
        String::from_utf8_lossy(&chunk[..end]).into_owned()
    };
    Ok(bytes.chunks(NAME_BYTES).map(name).collect())
}

/// One ethtool command; `words` begins with the command's number and is overwritten by the answer.
fn ethtool(socket: &OwnedFd, interface: &str, words: &mut [u32]) -> io::Result<()> {
    let mut request = named(interface).map_err(io::Error::other)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    call(socket, libc::SIOCETHTOOL, &mut request)
}

fn call(socket: &OwnedFd, number: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: `request` is a live ifreq; the buffer that it points to is as long as its command and
    // count require.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), number as _, &raw mut *request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn any_socket() -> Result<OwnedFd, rustix::io::Errno> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

fn named(interface: &str) -> Result<libc::ifreq, HostsError> {
    // SAFETY: plain data; all zeros is an empty name.
    let mut request = unsafe { std::mem::zeroed::<libc::ifreq>() };
    // One byte is left for the terminating null.
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(HostsError::Spec(format!(
            "`{interface}` is not an interface name; use 1 to 15 bytes"
        )));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}
