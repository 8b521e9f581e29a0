//! What makes a packet the same packet at two interfaces.

use std::net::IpAddr;

use suiro_units::fnv1a;

use crate::file::{ETHERNET, Frame, Order};

/// Length of an Ethernet header without VLAN tag.
const ETHERNET_BYTES: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Where the first part of an IP packet ends: with the headers of most.
const FIRST_BYTES: usize = 28;

/// An IP packet: hashes of its two parts. What a way may change on purpose is left out: the ECN bits, the hop limit, and
/// IPv4's header checksum. A flipped bit changes one of the two at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub first: u64,
    pub rest: u64,
}

/// The IP packet of a frame and its size in bytes, headers included; `None` if it does not carry IP. A size that its
/// header gives wrongly is that of the frame's content.
pub(crate) fn identify(frame: &Frame<'_>) -> Option<(Identity, u32)> {
    if frame.link != ETHERNET {
        return None;
    }
    let packet = frame.data.get(ETHERNET_BYTES..).filter(|packet| !packet.is_empty())?;
    let room = u32::try_from(frame.length.saturating_sub(ETHERNET_BYTES)).unwrap_or(u32::MAX);
    let (size, masks): (_, &[(usize, u8)]) = match Order::BIG.u16(frame.data, 12)? {
        // RFC 791 §3.1: ECN, time to live, checksum.
        IPV4 => (Order::BIG.u16(packet, 2).map(u32::from), &[(1, 0xfc), (8, 0), (10, 0), (11, 0)]),
        // RFC 8200 §3: ECN, hop limit.
        IPV6 => (Order::BIG.u16(packet, 4).map(|size| 40 + u32::from(size)), &[(1, 0xcf), (7, 0)]),
        _ => return None,
    };
    let mask = |at: usize| masks.iter().find(|(masked, _)| *masked == at).map_or(0xff, |it| it.1);
    let bytes = packet.iter().enumerate().map(|(at, byte)| byte & mask(at));
    let identity = Identity {
        first: fnv1a(bytes.clone().take(FIRST_BYTES).chain(room.to_be_bytes())),
        rest: fnv1a(bytes.skip(FIRST_BYTES)),
    };
    Some((identity, size.filter(|size| *size <= room).unwrap_or(room)))
}

/// Source and destination of the IP packet of a frame (RFC 791 §3.1, RFC 8200 §3); `None` if it does not carry one.
pub(crate) fn addresses(frame: &Frame<'_>) -> Option<(IpAddr, IpAddr)> {
    let packet = frame.data.get(ETHERNET_BYTES..).filter(|_| frame.link == ETHERNET)?;
    let v4 = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
    let v6 = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
    match Order::BIG.u16(frame.data, 12)? {
        IPV4 => Some((v4(12)?, v4(16)?)),
        IPV6 => Some((v6(8)?, v6(24)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(data: &[u8]) -> Frame<'_> {
        Frame { t_ns: 0, link: ETHERNET, data, length: data.len(), sent: None }
    }

    fn ipv4(payload: u8) -> Vec<u8> {
        let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 60];
        data.extend([0, 9, 0, 0, 64, 17, 0x66, 0xc6, 10, 0, 0, 1, 10, 0, 0, 2]);
        data.resize(14 + 60, payload);
        data
    }

    fn ipv6() -> Vec<u8> {
        let mut data =
            vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 17, 64];
        data.resize(14 + 60, 3);
        data
    }

    #[test]
    fn addresses_are_read_from_either_family() {
        let (from, to) = addresses(&frame(&ipv4(0))).unwrap();
        assert_eq!((from.to_string(), to.to_string()), ("10.0.0.1".into(), "10.0.0.2".into()));
        let mut data = ipv6();
        data[14 + 8..14 + 40].fill(0);
        (data[14 + 23], data[14 + 39]) = (1, 2);
        let (from, to) = addresses(&frame(&data)).unwrap();
        assert_eq!((from.to_string(), to.to_string()), ("::1".into(), "::2".into()));
        assert_eq!(addresses(&frame(&data[..40])), None);
    }

    #[test]
    fn only_what_a_way_may_change_is_left_out() {
        for (good, may_change) in [
            (ipv4(1), &[(1, 3), (8, 255), (10, 255), (11, 255)][..]),
            (ipv6(), &[(1, 0x30), (7, 255)]),
        ] {
            let (identity, size) = identify(&frame(&good)).unwrap();
            assert_eq!(size, 60);
            for at in 0..60 {
                for bit in 0..8 {
                    let mut other = good.clone();
                    other[14 + at] ^= 1 << bit;
                    let free =
                        may_change.iter().any(|(it, bits)| *it == at && bits & (1 << bit) != 0);
                    let (changed, _) = identify(&frame(&other)).unwrap();
                    assert_eq!(changed == identity, free, "byte {at} bit {bit}");
                    let parts = [changed.first == identity.first, changed.rest == identity.rest];
                    assert!(parts.contains(&true), "byte {at} bit {bit}");
                }
            }
        }
    }

    #[test]
    fn a_size_beyond_the_frame_is_the_frames() {
        let mut data = ipv4(1);
        data[14 + 2] = 9;
        assert_eq!(identify(&frame(&data)).unwrap().1, 60);
        let short = identify(&Frame { length: 1514, ..frame(&ipv4(1)) });
        assert_eq!(short.unwrap().1, 60);
    }

    #[test]
    fn what_is_not_ip_has_no_identity() {
        let mut arp = ipv4(1);
        arp[13] = 6;
        assert_eq!(identify(&frame(&arp)), None);
        assert_eq!(identify(&frame(&ipv4(1)[..14])), None);
        assert_eq!(identify(&Frame { link: 101, ..frame(&ipv4(1)) }), None);
    }
}
