//! Ethernet frames: what the link and its records need to know about them, and the two changes that
//! a link makes. Frames come from outside: malformed ones are carried as IP packets of their
//! frame's length.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Length of an Ethernet header without VLAN tag.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// Most IPv6 extension headers that are read.
const EXTENSIONS_MAX: usize = 8;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What a frame's headers contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// Size of the IP packet in bytes, headers included.
    pub size: u32,
    /// Bytes of TCP or UDP payload; `None` for other protocols, for truncated packets, and for
    /// fragments after the first.
    pub payload: Option<u32>,
    /// The two ECN bits (RFC 3168 §5): 0 not capable, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// The flow that it belongs to.
    pub flow: Flow,
}

/// Protocol and endpoints of a packet. Records name flows by its text: `tcp
/// 10.0.0.1:80>10.0.0.2:40000`, `udp [fd00::1]:9>[fd00::2]:9`, `icmp 10.0.0.1>10.0.0.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flow {
    /// The IP header was readable.
    Between {
        /// Number of the protocol above IP; the one after IPv6 extension headers, if they were
        /// readable.
        protocol: u8,
        /// Source address.
        source: IpAddr,
        /// Destination address.
        destination: IpAddr,
        /// Source and destination port of TCP and UDP; absent in fragments after the first.
        ports: Option<(u16, u16)>,
    },
    /// The IP header was unreadable.
    Unreadable,
    /// A flow beyond the number of flows that get a name.
    Other,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Between { protocol, source, destination, ports } = *self else {
            return f.write_str(match self {
                Self::Other => "other flows",
                _ => "ip unreadable",
            });
        };
        match protocol {
            1 => f.write_str("icmp ")?,
            TCP => f.write_str("tcp ")?,
            UDP => f.write_str("udp ")?,
            58 => f.write_str("icmp6 ")?,
            number => write!(f, "ip-{number} ")?,
        }
        match ports {
            Some((from, to)) => {
                write!(f, "{}>{}", SocketAddr::new(source, from), SocketAddr::new(destination, to))
            }
            None => write!(f, "{source}>{destination}"),
        }
    }
}

/// Reads a frame's headers; `None` if it does not carry IP.
pub fn parse(frame: &[u8]) -> Option<Headers> {
    let packet = frame.get(ETHERNET_BYTES..).filter(|packet| !packet.is_empty())?;
    let unreadable = Headers {
        size: u32::try_from(packet.len()).unwrap_or(u32::MAX),
        payload: None,
        ecn: 0,
        flow: Flow::Unreadable,
    };
    match [frame[12], frame[13]] {
        [0x08, 0x00] => Some(ipv4(packet).unwrap_or(unreadable)),
        [0x86, 0xdd] => Some(ipv6(packet).unwrap_or(unreadable)),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// RFC 791 §3.1; `None` if header and length do not fit the frame.
fn ipv4(packet: &[u8]) -> Option<Headers> {
    let header_bytes = usize::from(*packet.first()? & 0x0f) * 4;
    let size = usize::from(word(packet, 2)?);
    if packet[0] >> 4 != 4 || header_bytes < 20 || size < header_bytes || size > packet.len() {
        return None;
    }
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets).into())
    };
    let later_fragment = word(packet, 6)? & 0x1fff != 0;
    let protocol = packet[9];
    let content = (!later_fragment).then(|| &packet[header_bytes..size]);
    let (ports, payload) = transport(protocol, content);
    Some(Headers {
        size: size as u32,
        payload,
        ecn: packet[1] & 3,
        flow: Flow::Between { protocol, source: address(12)?, destination: address(16)?, ports },
    })
}

/// RFC 8200 §3; `None` if header and length do not fit the frame.
fn ipv6(packet: &[u8]) -> Option<Headers> {
    let size = 40 + usize::from(word(packet, 4)?);
    if packet[0] >> 4 != 6 || packet.len() < size {
        return None;
    }
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(octets).into())
    };
    let (protocol, content) = past_extensions(packet[6], &packet[40..size]);
    let (ports, payload) = transport(protocol, content);
    Some(Headers {
        size: size as u32,
        payload,
        ecn: packet[1] >> 4 & 3,
        flow: Flow::Between { protocol, source: address(8)?, destination: address(24)?, ports },
    })
}

/// Follows IPv6 extension headers (RFC 8200 §4) to the protocol and its payload; `None` for the
/// payload in a fragment after the first, or where the headers are truncated or too many.
fn past_extensions(mut next: u8, mut content: &[u8]) -> (u8, Option<&[u8]>) {
    for _ in 0..EXTENSIONS_MAX {
        let [after, length, ..] = *content else { break };
        let (bytes, later_fragment) = match next {
            0 | 43 | 60 | 135 => (usize::from(length) * 8 + 8, false),
            // RFC 4302 §2.2: the length counts 4-byte words, minus 2.
            51 => (usize::from(length) * 4 + 8, false),
            44 => (8, word(content, 2).is_none_or(|offset| offset & 0xfff8 != 0)),
            _ => return (next, Some(content)),
        };
        if later_fragment || bytes > content.len() {
            return (if later_fragment { after } else { next }, None);
        }
        (next, content) = (after, &content[bytes..]);
    }
    (next, matches!(next, TCP | UDP).then_some(content))
}

/// Ports and payload bytes of TCP (RFC 9293 §3.1) and UDP (RFC 768).
fn transport(protocol: u8, content: Option<&[u8]>) -> (Option<(u16, u16)>, Option<u32>) {
    let Some(content) = content.filter(|_| matches!(protocol, TCP | UDP)) else {
        return (None, None);
    };
    let ports = word(content, 0).zip(word(content, 2));
    let header_bytes = match protocol {
        TCP => content.get(12).map(|byte| usize::from(byte >> 4) * 4).filter(|&bytes| bytes >= 20),
        _ => Some(8),
    };
    let payload = header_bytes.and_then(|bytes| content.len().checked_sub(bytes));
    (ports, payload.map(|bytes| bytes as u32))
}

/// Sets ECN Congestion Experienced (RFC 3168 §5) and updates IPv4's checksum. The frame must be one
/// that [`parse`] could read; others stay unchanged.
pub fn mark_congestion(frame: &mut [u8]) {
    let Some(headers) = parse(frame) else { return };
    if headers.flow == Flow::Unreadable {
        return;
    }
    let packet = &mut frame[ETHERNET_BYTES..];
    if packet[0] >> 4 == 6 {
        packet[1] |= 0x30;
        return;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= 3;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    packet[10..12].copy_from_slice(&adjusted(checksum, before, after).to_be_bytes());
}

/// RFC 1624 §3: HC' = ~(~HC + ~m + m') in one's complement arithmetic.
fn adjusted(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

/// Flips one bit of the IP packet; does nothing if the frame is too short.
pub fn flip_bit(frame: &mut [u8], byte: u32, bit: u8) {
    if let Some(byte) = frame.get_mut(ETHERNET_BYTES + byte as usize) {
        *byte ^= 1 << (bit & 7);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet header, followed by `ip`.
    fn frame(kind: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        frame
    }

    /// The worked example of an IPv4 header and its checksum that textbooks use, as UDP.
    fn udp4() -> Vec<u8> {
        let mut packet = vec![
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7, 0x00, 0x35, 0xe9, 0x7c, 0x00, 0x5f, 0x27, 0x9f,
        ];
        packet.resize(0x73, 0xaa);
        frame(0x0800, &packet)
    }

    fn tcp6(extension: &[u8], first: u8) -> Vec<u8> {
        let mut packet = vec![0x60, 0x20, 0, 0, 0, 0, first, 64];
        packet.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).octets());
        packet.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).octets());
        packet.extend(extension);
        packet.extend([0x00, 0x50, 0x9c, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x10]);
        packet.extend([0; 18 + 100]);
        let length = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        frame(0x86dd, &packet)
    }

    fn header_sum(packet: &[u8]) -> u32 {
        let words = packet[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn udp_over_ipv4() {
        let headers = parse(&udp4()).unwrap();
        assert_eq!((headers.size, headers.payload, headers.ecn), (115, Some(87), 0));
        assert_eq!(headers.flow.to_string(), "udp 192.168.0.1:53>192.168.0.199:59772");
    }

    #[test]
    fn tcp_over_ipv6_behind_extensions() {
        let plain = parse(&tcp6(&[], 6)).unwrap();
        assert_eq!((plain.size, plain.payload, plain.ecn), (172, Some(100), 2));
        assert_eq!(plain.flow.to_string(), "tcp [fd00::1]:80>[fd00::2]:40000");
        // Destination options of 16 bytes, then an authentication header of 24.
        let mut extensions = vec![51, 1, 1, 12];
        extensions.extend([0; 12]);
        extensions.extend([6, 4]);
        extensions.extend([0; 22]);
        let behind = parse(&tcp6(&extensions, 60)).unwrap();
        assert_eq!((behind.payload, behind.flow), (Some(100), plain.flow));
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let fragment = parse(&tcp6(&[6, 0, 0x05, 0xa8, 0, 0, 0, 7], 44)).unwrap();
        assert_eq!(fragment.payload, None);
        assert_eq!(fragment.flow.to_string(), "tcp fd00::1>fd00::2");
        let first = parse(&tcp6(&[6, 0, 0x00, 0x01, 0, 0, 0, 7], 44)).unwrap();
        assert_eq!(first.payload, Some(100));
        let mut udp = udp4();
        udp[ETHERNET_BYTES + 7] = 3;
        let later = parse(&udp).unwrap();
        assert_eq!(
            (later.payload, later.flow.to_string().as_str()),
            (None, "udp 192.168.0.1>192.168.0.199")
        );
    }

    #[test]
    fn what_is_not_ip_is_foreign() {
        assert_eq!(parse(&frame(0x0806, &[0; 28])), None);
        assert_eq!(parse(&frame(0x8100, &[0; 64])), None);
        assert_eq!(parse(&frame(0x0800, &[])), None);
        assert_eq!(parse(&[0; 13]), None);
    }

    /// Every prefix of a frame, and every frame with one byte replaced, is carried with its frame's
    /// length or less, and reading, marking and corrupting do not panic.
    #[test]
    fn malformed_frames_are_carried() {
        for good in [udp4(), tcp6(&[], 6), tcp6(&[6, 0, 0, 1, 0, 0, 0, 7], 44)] {
            for length in ETHERNET_BYTES + 1..good.len() {
                let headers = parse(&good[..length]).unwrap();
                assert_eq!(headers.size as usize, length - ETHERNET_BYTES);
                assert_eq!(headers.flow, Flow::Unreadable);
            }
            for at in ETHERNET_BYTES..good.len() {
                for value in 0..=255 {
                    let mut frame = good.clone();
                    frame[at] = value;
                    assert!(parse(&frame).unwrap().size as usize <= frame.len() - ETHERNET_BYTES);
                    mark_congestion(&mut frame);
                    flip_bit(&mut frame, at as u32, value);
                }
            }
        }
    }

    #[test]
    fn congestion_marks_keep_the_checksum() {
        let mut frame = udp4();
        assert_eq!(header_sum(&frame[ETHERNET_BYTES..]), 0xffff);
        mark_congestion(&mut frame);
        assert_eq!(parse(&frame).unwrap().ecn, 3);
        assert_eq!(header_sum(&frame[ETHERNET_BYTES..]), 0xffff);
        let mut frame = tcp6(&[], 6);
        mark_congestion(&mut frame);
        assert_eq!(parse(&frame).unwrap().ecn, 3);
    }

    #[test]
    fn one_bit_flips() {
        let good = udp4();
        for at in 0..good.len() - ETHERNET_BYTES {
            let mut bad = good.clone();
            flip_bit(&mut bad, at as u32, (at % 8) as u8);
            let flipped: u32 = good.iter().zip(&bad).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!((flipped, &bad[..ETHERNET_BYTES]), (1, &good[..ETHERNET_BYTES]));
        }
        flip_bit(&mut [0; 14], 0, 0);
    }
}
