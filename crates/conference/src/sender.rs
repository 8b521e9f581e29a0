//! Frames into RTP packets. Pure: it is handed the times.

use rtp_types::RtpPacketBuilder;
use suiro_units::{Random, Time};

use crate::codec::{self, Picture, Slice};
use crate::payload::{self, HEADER_BYTES, IP_UDP_BYTES, Mark, PAYLOAD_TYPE, RTP_BYTES};

/// How frames are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Most bytes of a frame, where the coarsest quantiser allows it.
    pub picture_bytes: usize,
    /// Largest IP packet.
    pub packet_bytes: usize,
}

/// The sending half of a call.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    ssrc: u32,
    sequence: u16,
    /// The timestamp of time 0.
    base: u32,
}

impl Sender {
    /// A stream whose numbers begin at random (RFC 3550 §5.1).
    pub fn new(config: Config, random: &mut Random) -> Self {
        let mut draw = || random.next_u64();
        let (ssrc, sequence, base) = (draw() as u32, draw() as u16, draw() as u32);
        Self { config, ssrc, sequence, base }
    }

    /// Encodes a frame.
    pub fn encode(&self, picture: &Picture) -> Vec<Slice> {
        let slice =
            self.config.packet_bytes.saturating_sub(IP_UDP_BYTES + RTP_BYTES + HEADER_BYTES);
        codec::encode(picture, self.config.picture_bytes, slice)
    }

    /// The packets of an encoded frame.
    pub fn packets(&mut self, captured: Time, mark: Mark, slices: &[Slice]) -> Vec<Vec<u8>> {
        // RFC 3551 §5: video has a clock of 90 kHz.
        let ticks = (u128::from(captured.as_nanos()) * 90_000 / 1_000_000_000) as u32;
        let timestamp = self.base.wrapping_add(ticks);
        let last = slices.len().saturating_sub(1);
        let packet = |(number, slice): (usize, &Slice)| {
            let payload = payload::write(mark, slice);
            let builder: RtpPacketBuilder<&[u8], &[u8]> = RtpPacketBuilder::new()
                .payload_type(PAYLOAD_TYPE)
                .sequence_number(self.sequence)
                .timestamp(timestamp)
                .ssrc(self.ssrc)
                .marker_bit(number == last)
                .payload(&payload);
            self.sequence = self.sequence.wrapping_add(1);
            builder.write_vec().expect("the payload type has seven bits, and there is no extension")
        };
        slices.iter().enumerate().map(packet).collect()
    }
}
