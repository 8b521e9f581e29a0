//! `struct settings` of common.h: the programs' configuration, set before they are loaded.

use std::net::IpAddr;

use crate::event::Protocol;
use crate::flow::{Endpoint, FlowFilter};

use super::records::{self, Plain};

/// Most filters of one recorder.
pub const FILTERS_MAX: usize = size_of::<Filters>() / size_of::<records::Filter>();

/// Those of `struct settings`.
type Filters = [records::Filter; 8];

/// Bytes of the settings.
pub const SETTINGS_BYTES: usize = records::Settings::BYTES;

/// System calls by which data can reach a socket, in the order that `wanted_of` in call.bpf.c knows.
const SEND_CALLS: [i64; 8] = [
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_io_uring_enter,
];

/// The programs' configuration, set before they are loaded.
#[derive(Debug)]
pub struct Settings<'f> {
    /// The network namespace whose sockets and devices are watched.
    pub namespace_inode: u32,
    /// Restricts to sockets and threads of this process.
    pub process: Option<u32>,
    /// Whether the kernel's `kfree_skb` reports which socket a packet was for.
    pub drops_name_socket: bool,
    /// Whether tracing programs may read payload outside of a packet's first piece.
    pub reads_pages: bool,
    /// At most [`FILTERS_MAX`].
    pub flows: &'f [FlowFilter],
}

impl Settings<'_> {
    /// The settings as the programs read them.
    pub fn to_bytes(&self) -> [u8; SETTINGS_BYTES] {
        let mut filters: Filters = Plain::read(&[0; SETTINGS_BYTES]);
        for (flow, filter) in self.flows.iter().zip(&mut filters) {
            *filter = filter_of(flow);
        }
        let settings = records::Settings {
            namespace_inode: self.namespace_inode,
            filter_count: self.flows.len().min(FILTERS_MAX) as u32,
            process: self.process.unwrap_or(0),
            drops_name_socket: self.drops_name_socket.into(),
            reads_pages: self.reads_pages.into(),
            unused: 0,
            send_calls: SEND_CALLS.map(|call| call as u32),
            filters,
        };
        let mut bytes = [0; SETTINGS_BYTES];
        settings.write(&mut bytes);
        bytes
    }
}

fn filter_of(flow: &FlowFilter) -> records::Filter {
    let (v4, v6) = flow.families();
    let protocol = match flow.protocol {
        Protocol::Udp => libc::IPPROTO_UDP,
        Protocol::Tcp => libc::IPPROTO_TCP,
    };
    records::Filter {
        ends: flow.ends.each_ref().map(end_of),
        protocol: protocol as u8,
        families: u8::from(v4) | u8::from(v6) << 1,
        unused: [0; 6],
    }
}

fn end_of(end: &Endpoint) -> records::End {
    let mut octets = [0; 16];
    match end.address {
        Some(IpAddr::V4(v4)) => octets[..4].copy_from_slice(&v4.octets()),
        Some(IpAddr::V6(v6)) => octets = v6.octets(),
        None => {}
    }
    records::End {
        address: Plain::read(&octets),
        // In network byte order.
        port: end.port.unwrap_or(0).to_be(),
        any_address: end.address.is_none().into(),
        any_port: end.port.is_none().into(),
        unused: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_written_as_the_programs_read_them() {
        let flows = ["udp:10.0.0.1:5000-*:5004", "tcp:[fd00::1]:*-*"].map(|f| f.parse().unwrap());
        let settings = Settings {
            namespace_inode: 3,
            process: None,
            drops_name_socket: true,
            reads_pages: false,
            flows: &flows,
        };
        let bytes = settings.to_bytes();
        let read = records::Settings::read(&bytes);
        assert_eq!((read.namespace_inode, read.filter_count, read.process), (3, 2, 0));
        assert_eq!((read.drops_name_socket, read.reads_pages, read.unused), (1, 0, 0));
        assert_eq!(read.send_calls[7], SEND_CALLS[7] as u32);
        let octets = |end: &records::End| {
            let mut octets = [0; 16];
            end.address.write(&mut octets);
            octets
        };
        let [udp, tcp, ..] = read.filters;
        assert_eq!(octets(&udp.ends[0])[..4], [10, 0, 0, 1]);
        let end = |end: &records::End| (end.port.to_ne_bytes(), end.any_address, end.any_port);
        assert_eq!(udp.ends.each_ref().map(end), [([0x13, 0x88], 0, 0), ([0x13, 0x8c], 1, 0)]);
        assert_eq!((udp.protocol, udp.families), (17, 1));
        assert_eq!((octets(&tcp.ends[0])[0], octets(&tcp.ends[0])[15]), (0xfd, 1));
        assert_eq!(tcp.ends.each_ref().map(end), [([0, 0], 0, 1), ([0, 0], 1, 1)]);
        assert_eq!((tcp.protocol, tcp.families), (6, 2));
    }
}
