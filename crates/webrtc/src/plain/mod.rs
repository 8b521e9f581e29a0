//! RTP and RTCP as they are without encryption, for Wireshark: `[record] rtp = true`.
//!
//! Packets are taken from the connection before they are encrypted, and after they are decrypted. They are written as PDUs
//! that name their own dissector, so Wireshark shows them as RTP and RTCP and does not need to know which ports they
//! use.

mod rtcp;

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

use str0m::rtp::{RawPacket, RtpHeader};
use suiro_capture::file::{Counted, Described, Writer};
use suiro_units::Time;

/// LINKTYPE_WIRESHARK_UPPER_PDU.
const UPPER_PDU: u16 = 252;
/// A file is not longer than this, in bytes; what does not fit is counted.
const BYTES_MAX: u64 = 512 << 20;
/// Bit of the first byte of RTP: the packet ends in padding (RFC 3550 §5.1).
const PADDED: u8 = 0x20;

/// A packet without encryption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// When it left or came.
    pub at: Time,
    /// True if this end sent it.
    pub sent: bool,
    /// Whether it is RTCP.
    pub is_rtcp: bool,
    /// This end and the other.
    pub ends: (SocketAddr, SocketAddr),
    /// From its first header byte on.
    pub bytes: Vec<u8>,
}

/// Collects the packets of a connection.
#[derive(Debug)]
pub(crate) struct Tap {
    /// This end and the other, as of the last datagram that came, and the last with media that left.
    ends: (SocketAddr, SocketAddr),
    leaves: (SocketAddr, SocketAddr),
    /// The last datagram that came: SRTP leaves the headers of RTP as they are (RFC 3711 §3.1).
    datagram: Vec<u8>,
}

impl Tap {
    pub fn new() -> Self {
        let nowhere = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
        Self { ends: (nowhere, nowhere), leaves: (nowhere, nowhere), datagram: Vec::new() }
    }

    /// A datagram has come.
    pub fn on_datagram(&mut self, (from, to): (SocketAddr, SocketAddr), bytes: &[u8]) {
        self.ends = (to, from);
        self.datagram.clear();
        self.datagram.extend_from_slice(bytes);
    }

    /// A datagram leaves. str0m reports its packets only then. STUN checks other pairs of candidates too, so only media
    /// counts (RFC 7983 §7).
    pub fn on_transmit(&mut self, (from, to): (SocketAddr, SocketAddr), bytes: &[u8]) {
        if bytes.first().is_some_and(|first| (128..=191).contains(first)) {
            self.leaves = (from, to);
        }
    }

    /// What the connection has sent or received; `None` if it cannot be shown.
    pub fn packet(&self, at: Time, raw: &RawPacket) -> Option<Plain> {
        let (sent, is_rtcp, bytes) = match raw {
            RawPacket::RtpTx(_, bytes) => (true, false, bytes.clone()),
            RawPacket::RtpRx(header, payload) => (false, false, self.received(header, payload)?),
            RawPacket::RtcpTx(packet) => (true, true, rtcp::bytes(packet)?),
            RawPacket::RtcpRx(packet) => (false, true, rtcp::bytes(packet)?),
        };
        let ends = if sent { self.leaves } else { self.ends };
        Some(Plain { at, sent, is_rtcp, ends, bytes })
    }

    fn received(&self, header: &RtpHeader, payload: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = self.datagram.get(..header.header_len)?.to_vec();
        // The padding is not in the payload any more.
        *bytes.first_mut()? &= !PADDED;
        bytes.extend_from_slice(payload);
        Some(bytes)
    }
}

/// Writes `NAME.rtp.pcapng`.
#[derive(Debug)]
pub struct Log {
    writer: Writer<BufWriter<File>>,
    /// The wall clock at [`Time::ZERO`], in nanoseconds since 1970.
    epoch_unix_ns: u64,
    received: u64,
    dropped: u64,
    last_ns: u64,
}

impl Log {
    /// Creates the file in that folder.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(dir: &Path, name: &str, epoch_unix_ns: u64) -> io::Result<Self> {
        let file = File::create(dir.join(format!("{name}.rtp.pcapng")))?;
        let description = "RTP and RTCP, decrypted by the endpoint";
        let interface = Described { name, description, link: UPPER_PDU, snap: 0 };
        let writer = Writer::new(BufWriter::new(file), &interface)?;
        Ok(Self { writer, epoch_unix_ns, received: 0, dropped: 0, last_ns: epoch_unix_ns })
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, plain: &Plain) -> io::Result<()> {
        self.received += 1;
        if self.writer.written() > BYTES_MAX {
            self.dropped += 1;
            return Ok(());
        }
        self.last_ns = self.epoch_unix_ns.saturating_add(plain.at.as_nanos());
        let data = exported(plain);
        self.writer.packet(self.last_ns, &data, data.len(), Some(plain.sent))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn close(self) -> io::Result<()> {
        let (received, dropped) = (self.received, self.dropped);
        self.writer.finish(&Counted { t_ns: self.last_ns, received, dropped }).map(|_| ())
    }
}

/// The packet behind tags, as Wireshark's `epan/exported_pdu.h` defines them: numbers in network order, values padded to
/// words.
fn exported(plain: &Plain) -> Vec<u8> {
    const DISSECTOR: u16 = 12;
    const PORT_TYPE: u16 = 24;
    const UDP: u32 = 3;
    const PORTS: [u16; 2] = [25, 26];
    let mut bytes = Vec::with_capacity(plain.bytes.len() + 96);
    let mut tag = |kind: u16, value: &[u8]| {
        bytes.extend(kind.to_be_bytes());
        bytes.extend((value.len() as u16).to_be_bytes());
        bytes.extend(value);
    };
    tag(DISSECTOR, if plain.is_rtcp { b"rtcp" } else { b"rtp\0" });
    let (own, other) = plain.ends;
    let [from, to] = if plain.sent { [own, other] } else { [other, own] };
    for (end, [v4, v6]) in [(from, [20, 22]), (to, [21, 23])] {
        match end.ip() {
            IpAddr::V4(address) => tag(v4, &address.octets()),
            IpAddr::V6(address) => tag(v6, &address.octets()),
        }
    }
    tag(PORT_TYPE, &UDP.to_be_bytes());
    for (end, kind) in [from, to].into_iter().zip(PORTS) {
        tag(kind, &u32::from(end.port()).to_be_bytes());
    }
    tag(0, &[]);
    bytes.extend(&plain.bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_the_addresses_of_its_own_datagram() {
        let end = |port| SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port);
        let (own, used, other) = (end(1), end(2), end(3));
        let mut tap = Tap::new();
        tap.on_transmit((own, used), &[0x80, 102]);
        // Checks of another pair, there and back.
        tap.on_transmit((own, other), &[0, 1]);
        tap.on_datagram((other, own), &[1, 1]);
        let sent = RawPacket::RtpTx(RtpHeader::default(), vec![0x80, 102]);
        let sent = tap.packet(Time::ZERO, &sent).unwrap();
        assert_eq!((sent.sent, sent.ends), (true, (own, used)));
        tap.on_datagram((used, own), &[0x80; 12]);
        let header = RtpHeader { header_len: 12, ..RtpHeader::default() };
        let came = tap.packet(Time::ZERO, &RawPacket::RtpRx(header, vec![7])).unwrap();
        assert_eq!((came.sent, came.ends), (false, (own, used)));
    }
}
