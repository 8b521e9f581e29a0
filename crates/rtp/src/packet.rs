//! RTP packets (RFC 3550 §5.1), and what ours say of the frame that they begin.

use rtp_types::{RtpPacket, RtpPacketBuilder};
use suiro_payload::FrameMark;

/// Bytes of IPv4 and UDP headers: what is added to an RTP packet where rates count IP packets. Over
/// IPv6 it is 20 more; the lab's names resolve to IPv4.
pub const IP_UDP_BYTES: u64 = 20 + 8;

/// Bytes of an RTP header without extensions.
pub const HEADER_BYTES: usize = 12;

/// Bytes of padding in a packet without payload, with which a rate control measures the path (RFC 3550 §5.1: 255 at most).
pub const PADDING_BYTES: u8 = 255;

/// Largest RTP packet that is taken or made: what UDP carries in IPv4.
pub const PACKET_MAX: usize = 65_507;

/// Extensions of one byte each (RFC 8285 §4.2).
const ONE_BYTE: u16 = 0xbede;

/// The local identifier of [`FrameMark`], as the SDP says.
pub const FRAME_MARK_ID: u8 = 1;

/// What the header extension of that identifier is called in SDP.
pub const FRAME_MARK_URI: &str = "urn:x-suiro:frame-mark";

/// The local identifier of the transport-wide number.
pub const TRANSPORT_WIDE_ID: u8 = 2;

/// A packet's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The stream that it belongs to.
    pub ssrc: u32,
    /// What its payload is.
    pub payload_type: u8,
    /// Its number, which wraps.
    pub sequence: u16,
    /// When its frame is shown, at 90 kHz, from a random start; it wraps.
    pub timestamp: u32,
    /// True of a frame's last packet.
    pub marker: bool,
    /// What it says of the frame that it begins; `None` within a frame, and from senders not ours.
    pub mark: Option<FrameMark>,
    /// Its number among all packets of its sender, whichever stream they are of; it wraps. For transport-wide feedback.
    pub wide: Option<u16>,
    /// The payload, without padding. A packet of ours without payload is all padding, [`PADDING_BYTES`] of it.
    pub payload: Vec<u8>,
}

impl Packet {
    /// Reads a packet.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, rtp_types::RtpParseError> {
        let packet = RtpPacket::parse(bytes)?;
        Ok(Self {
            ssrc: packet.ssrc(),
            payload_type: packet.payload_type(),
            sequence: packet.sequence_number(),
            timestamp: packet.timestamp(),
            marker: packet.marker_bit(),
            mark: packet.extension().and_then(|(profile, data)| mark(profile, data)),
            wide: packet.extension().and_then(|(profile, data)| wide(profile, data)),
            payload: packet.payload().to_vec(),
        })
    }

    /// The packet's bytes.
    pub fn write(&self) -> Vec<u8> {
        // RFC 8285 §4.2: identifier and length less one share a byte; padded to words of four.
        let mut extensions = Vec::new();
        if let Some(mark) = self.mark {
            extensions.push(FRAME_MARK_ID << 4 | (FrameMark::BYTES as u8 - 1));
            extensions.extend(mark.write());
        }
        if let Some(number) = self.wide {
            extensions.push(TRANSPORT_WIDE_ID << 4 | 1);
            extensions.extend(number.to_be_bytes());
        }
        extensions.resize(extensions.len().next_multiple_of(4), 0);
        let mut builder: RtpPacketBuilder<&[u8], &[u8]> = RtpPacketBuilder::new()
            .payload_type(self.payload_type)
            .sequence_number(self.sequence)
            .timestamp(self.timestamp)
            .ssrc(self.ssrc)
            .marker_bit(self.marker)
            .maybe_padding(self.payload.is_empty().then_some(PADDING_BYTES))
            .payload(&self.payload);
        if !extensions.is_empty() {
            builder = builder.extension(ONE_BYTE, &extensions);
        }
        builder
            .write_vec()
            .expect("seven bits of payload type, and a short extension of whole words")
    }

    /// Bytes of its headers.
    pub const fn header_bytes(&self) -> usize {
        let mark = if self.mark.is_some() { MARK_BYTES } else { 0 };
        let wide = if self.wide.is_some() { WIDE_BYTES } else { 0 };
        HEADER_BYTES + extension_bytes(mark + wide)
    }
}

/// Bytes of a frame mark among a packet's extensions.
pub const MARK_BYTES: usize = 1 + FrameMark::BYTES;
/// Bytes of a transport-wide number among them.
pub const WIDE_BYTES: usize = 1 + size_of::<u16>();

/// Bytes that extensions of so many add to a header.
pub const fn extension_bytes(extensions: usize) -> usize {
    if extensions == 0 { 0 } else { 4 + extensions.next_multiple_of(4) }
}

/// The frame mark among a packet's extensions.
fn mark(profile: u16, data: &[u8]) -> Option<FrameMark> {
    FrameMark::read(extension(profile, data, FRAME_MARK_ID)?)
}

/// The transport-wide number among them.
fn wide(profile: u16, data: &[u8]) -> Option<u16> {
    let value = extension(profile, data, TRANSPORT_WIDE_ID)?;
    value.try_into().ok().map(u16::from_be_bytes)
}

/// What the first extension of that identifier says.
fn extension(profile: u16, data: &[u8], wanted: u8) -> Option<&[u8]> {
    if profile != ONE_BYTE {
        return None;
    }
    let mut rest = data;
    while let Some((&head, after)) = rest.split_first() {
        if head == 0 {
            rest = after; // padding
            continue;
        }
        let (id, length) = (head >> 4, usize::from(head & 15) + 1);
        if id == 15 {
            return None; // RFC 8285 §4.2: nothing after it may be looked at
        }
        let value = after.get(..length)?;
        if id == wanted {
            return Some(value);
        }
        rest = &after[length..];
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(mark: Option<FrameMark>, wide: Option<u16>) -> Packet {
        let payload = vec![1, 2, 3];
        let (ssrc, payload_type, sequence, timestamp) = (0x1234_5678, 96, 65_535, 9);
        Packet { ssrc, payload_type, sequence, timestamp, marker: true, mark, wide, payload }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mark = FrameMark { number: 70_000, references: 3, rate_bps: 27_260, waited: Some(7) };
        let cases = [(None, None, 0), (Some(mark), None, 16), (None, Some(65_535), 8)];
        for (mark, wide, bytes) in cases.into_iter().chain([(Some(mark), Some(0), 20)]) {
            let packet = packet(mark, wide);
            let written = packet.write();
            assert_eq!(packet.header_bytes(), HEADER_BYTES + bytes);
            assert_eq!(written.len(), packet.header_bytes() + packet.payload.len());
            assert_eq!(Packet::parse(&written).unwrap(), packet);
        }
    }

    #[test]
    fn a_transport_wide_number_is_an_extension_of_two_bytes() {
        let bytes = packet(None, Some(0x1234)).write();
        // One word of extensions: identifier 2, two bytes (less one), the number, padding.
        assert_eq!(bytes[HEADER_BYTES..][..8], [0xbe, 0xde, 0, 1, 0x21, 0x12, 0x34, 0]);
        assert_eq!(wide(ONE_BYTE, &[0x22, 1, 2, 3]), None, "of three bytes");
    }

    #[test]
    fn without_payload_it_is_padding() {
        let packet = Packet { payload: Vec::new(), ..packet(None, Some(1)) };
        let bytes = packet.write();
        assert_eq!(bytes.len(), packet.header_bytes() + usize::from(PADDING_BYTES));
        assert_eq!(bytes[0] & 0x20, 0x20, "RFC 3550 §5.1: the padding bit");
        assert_eq!(Packet::parse(&bytes).unwrap(), packet);
    }

    #[test]
    fn other_extensions_are_passed_over() {
        let ours = FrameMark { number: 1, references: 0, rate_bps: 5, waited: None };
        let mut data = vec![0, 0x21, 7, 7, 0]; // padding, one of two bytes, padding
        data.push(FRAME_MARK_ID << 4 | 10);
        data.extend(ours.write());
        assert_eq!(mark(ONE_BYTE, &data), Some(ours));
        assert_eq!(mark(0x1000, &data), None, "extensions of two bytes");
        assert_eq!(mark(ONE_BYTE, &[0xf0, 1, 2]), None, "the reserved identifier");
        assert_eq!(mark(ONE_BYTE, &[0x17, 1, 2]), None, "cut short");
    }

    proptest! {
        /// Any bytes are a packet or an error.
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(packet) = Packet::parse(&bytes) {
                prop_assert!(packet.payload.len() <= bytes.len() - HEADER_BYTES);
            }
        }
    }
}
