//! The sockets: the one place that opens them and waits.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use suiro_endpoint::net::receive_buffer;
use suiro_hosts::packet::PacketSocket;
use suiro_units::Duration;

/// Receive buffer of the watching socket: 0.1 s of 3 Gbit/s, of which only headers are kept.
const BUFFER_BYTES: usize = 8 << 20;
/// How much of a packet is kept: its IP and UDP headers.
const KEPT_BYTES: u32 = 64;
/// The kernel's number for Ethernet frames that carry IPv4.
const ETH_P_IP: u16 = 0x0800;

/// Opens a socket that sends to `to`, for packets that pass `ttl` − 1 routers at most.
pub fn sender(to: SocketAddrV4, ttl: u8) -> io::Result<OwnedFd> {
    let socket = udp()?;
    sockopt::set_ip_multicast_ttl(&socket, u32::from(ttl))?;
    rustix::net::connect(&socket, &to)?;
    Ok(socket)
}

/// Sends one datagram. What the network has no room for is lost, as on a real network.
pub fn send(socket: &OwnedFd, datagram: &[u8]) -> io::Result<()> {
    match rustix::net::send(socket, datagram, rustix::net::SendFlags::DONTWAIT) {
        Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::NOBUFS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A host's membership of a group, on the interface that the routes give.
#[derive(Debug)]
pub struct Member {
    socket: OwnedFd,
    group: Ipv4Addr,
    source: Option<Ipv4Addr>,
}

impl Member {
    /// Nothing is joined yet.
    pub fn new(group: Ipv4Addr, source: Option<Ipv4Addr>) -> io::Result<Self> {
        Ok(Self { socket: udp()?, group, source })
    }

    /// Joins the group.
    pub fn join(&self) -> io::Result<()> {
        let any = Ipv4Addr::UNSPECIFIED;
        match &self.source {
            None => sockopt::set_ip_add_membership(&self.socket, &self.group, &any)?,
            Some(source) => {
                sockopt::set_ip_add_source_membership(&self.socket, &self.group, &any, source)?;
            }
        }
        Ok(())
    }

    /// Leaves it.
    pub fn leave(&self) -> io::Result<()> {
        let any = Ipv4Addr::UNSPECIFIED;
        match &self.source {
            None => sockopt::set_ip_drop_membership(&self.socket, &self.group, &any)?,
            Some(source) => {
                sockopt::set_ip_drop_source_membership(&self.socket, &self.group, &any, source)?;
            }
        }
        Ok(())
    }
}

/// Sees the packets of a group at all interfaces of the host, whether it is a member or not.
#[derive(Debug)]
pub struct Watch(PacketSocket);

impl Watch {
    /// Needs CAP_NET_RAW.
    pub fn open(group: Ipv4Addr, source: Option<Ipv4Addr>) -> io::Result<Self> {
        let socket = PacketSocket::without_link_headers()?;
        let mut steps = filter(group, source);
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        socket.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        receive_buffer(&socket, BUFFER_BYTES)?;
        socket.bind_everywhere(ETH_P_IP)?;
        Ok(Self(socket))
    }

    /// Takes the next packet that has come; false if there is none.
    pub fn take(&self) -> io::Result<bool> {
        let mut headers = [0_u8; KEPT_BYTES as usize];
        match rustix::net::recv(&self.0, &mut headers, rustix::net::RecvFlags::DONTWAIT) {
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Packets that found the socket's buffer full, since the last call.
    pub fn dropped(&self) -> io::Result<u64> {
        let (_, dropped) = self.0.counts()?;
        Ok(dropped)
    }

    /// Waits until a packet comes, at most `within`.
    pub fn wait(&self, within: Duration) -> io::Result<()> {
        pause(&mut [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)], within)
    }
}

/// Waits for a time, or until a signal comes.
pub fn rest(time: Duration) -> io::Result<()> {
    pause(&mut [], time)
}

fn pause(sockets: &mut [PollFd<'_>], time: Duration) -> io::Result<()> {
    let (whole, rest) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
    let within = Timespec { tv_sec: whole.cast_signed(), tv_nsec: rest.cast_signed() };
    match poll(sockets, Some(&within)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn udp() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?)
}

/// Classic BPF that lets UDP packets to `group` pass, from `source` if one is given. Offsets count from the IP header
/// (RFC 791 §3.1).
fn filter(group: Ipv4Addr, source: Option<Ipv4Addr>) -> Vec<libc::sock_filter> {
    const WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    let wanted = [
        Some((BYTE, 9, 17)),
        Some((WORD, 16, u32::from(group))),
        source.map(|source| (WORD, 12, u32::from(source))),
    ];
    let wanted: Vec<_> = wanted.into_iter().flatten().collect();
    let step = |code: u16, jt: u8, jf: u8, k: u32| libc::sock_filter { code, jt, jf, k };
    let mut steps = Vec::new();
    for (n, (load, offset, value)) in wanted.iter().enumerate() {
        // Past the other tests, two steps each, and the acceptance, to the refusal.
        let refusal = 2 * (wanted.len() - n - 1) + 1;
        steps.push(step(*load, 0, 0, *offset));
        let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        steps.push(step(equal, 0, refusal as u8, *value));
    }
    let end = (libc::BPF_RET | libc::BPF_K) as u16;
    steps.extend([step(end, 0, 0, KEPT_BYTES), step(end, 0, 0, 0)]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter says of a packet: an interpreter of the three instructions that it uses.
    fn passes(steps: &[libc::sock_filter], packet: &[u8]) -> bool {
        let (mut at, mut value) = (0, 0);
        loop {
            let step = &steps[at];
            let k = step.k as usize;
            at += 1;
            match u32::from(step.code) {
                0x30 => value = u32::from(packet[k]),
                0x20 => value = u32::from_be_bytes(packet[k..k + 4].try_into().unwrap()),
                0x15 => at += usize::from(if value == step.k { step.jt } else { step.jf }),
                0x06 => return step.k > 0,
                code => panic!("instruction {code:#x}"),
            }
        }
    }

    #[test]
    fn only_the_groups_udp_packets_pass() {
        let packet = |protocol: u8, from: [u8; 4], to: [u8; 4]| {
            let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 15, protocol, 0, 0];
            packet.extend(from.into_iter().chain(to));
            packet
        };
        let group = Ipv4Addr::new(239, 1, 1, 1);
        let (ours, theirs) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let any = filter(group, None);
        assert!(passes(&any, &packet(17, ours, group.octets())));
        assert!(passes(&any, &packet(17, theirs, group.octets())));
        assert!(!passes(&any, &packet(2, ours, group.octets())));
        assert!(!passes(&any, &packet(17, ours, [239, 1, 1, 2])));
        let one = filter(group, Some(ours.into()));
        assert!(passes(&one, &packet(17, ours, group.octets())));
        assert!(!passes(&one, &packet(17, theirs, group.octets())));
    }
}
