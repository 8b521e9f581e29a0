//! `struct settings` of common.h, written by offset.

use std::net::IpAddr;

use crate::event::Protocol;
use crate::flow::{Endpoint, FlowFilter};

/// Most filters of one recorder.
pub const FILTERS_MAX: usize = 8;

const FILTERS_AT: usize = 56;
const FILTER_BYTES: usize = 56;
const END_BYTES: usize = 24;
/// Bytes of the settings.
pub const SETTINGS_BYTES: usize = FILTERS_AT + FILTERS_MAX * FILTER_BYTES;

/// System calls by which data can reach a socket.
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

/// What the programs are told before they are loaded.
#[derive(Debug)]
pub struct Settings<'f> {
    /// The network namespace whose sockets and devices are meant.
    pub namespace_inode: u32,
    /// Only sockets and threads of this process.
    pub process: Option<u32>,
    /// The kernel's `kfree_skb` says for which socket a packet was.
    pub drops_name_socket: bool,
    /// The kernel lets tracing programs read payload outside of a packet's first piece.
    pub reads_pages: bool,
    /// [`FILTERS_MAX`] at most.
    pub flows: &'f [FlowFilter],
}

impl Settings<'_> {
    /// As the programs read them.
    pub fn to_bytes(&self) -> [u8; SETTINGS_BYTES] {
        let mut bytes = [0; SETTINGS_BYTES];
        let count = self.flows.len().min(FILTERS_MAX) as u32;
        let process = self.process.unwrap_or(0);
        let pages = self.reads_pages.into();
        let head = [self.namespace_inode, count, process, self.drops_name_socket.into(), pages, 0];
        let calls = SEND_CALLS.map(|call| call as u32);
        for (index, word) in head.into_iter().chain(calls).enumerate() {
            bytes[4 * index..][..4].copy_from_slice(&word.to_ne_bytes());
        }
        for (flow, at) in self.flows.iter().zip(bytes[FILTERS_AT..].chunks_exact_mut(FILTER_BYTES))
        {
            for (end, at) in flow.ends.iter().zip(at.chunks_exact_mut(END_BYTES)) {
                write_end(end, at);
            }
            let (v4, v6) = flow.families();
            at[2 * END_BYTES] = match flow.protocol {
                Protocol::Udp => libc::IPPROTO_UDP as u8,
                Protocol::Tcp => libc::IPPROTO_TCP as u8,
            };
            at[2 * END_BYTES + 1] = u8::from(v4) | u8::from(v6) << 1;
        }
        bytes
    }
}

fn write_end(end: &Endpoint, at: &mut [u8]) {
    match end.address {
        Some(IpAddr::V4(v4)) => at[..4].copy_from_slice(&v4.octets()),
        Some(IpAddr::V6(v6)) => at[..16].copy_from_slice(&v6.octets()),
        None => at[18] = 1,
    }
    match end.port {
        Some(port) => at[16..18].copy_from_slice(&port.to_be_bytes()),
        None => at[19] = 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_written_by_offset() {
        let flows = ["udp:10.0.0.1:5000-*:5004", "tcp:[fd00::1]:*-*"].map(|f| f.parse().unwrap());
        let settings = Settings {
            namespace_inode: 3,
            process: None,
            drops_name_socket: true,
            reads_pages: false,
            flows: &flows,
        };
        let bytes = settings.to_bytes();
        assert_eq!((bytes[0], bytes[4], bytes[8], bytes[12]), (3, 2, 0, 1));
        let udp = &bytes[FILTERS_AT..][..FILTER_BYTES];
        assert_eq!(udp[..4], [10, 0, 0, 1]);
        assert_eq!(udp[16..20], [0x13, 0x88, 0, 0]);
        assert_eq!(udp[END_BYTES + 16..END_BYTES + 20], [0x13, 0x8c, 1, 0]);
        assert_eq!(udp[48..50], [17, 1]);
        let tcp = &bytes[FILTERS_AT + FILTER_BYTES..][..FILTER_BYTES];
        assert_eq!((tcp[0], tcp[15], tcp[18], tcp[19]), (0xfd, 1, 0, 1));
        assert_eq!(tcp[48..50], [6, 2]);
    }
}
