//! The sound of a peer connection: Opus (RFC 7587), not retransmitted, and sent before video that waits for the pacer.

use str0m::format::Codec;
use str0m::media::{Direction, Pt};
use str0m::rtp::{AbsCaptureTime, ExtensionValues, RtpPacket, RtpWrite};
use suiro_units::Time;

use super::{Peer, PeerError, Way};

/// A packet of sound that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sound {
    /// Its timestamp: samples at 48 kHz.
    pub timestamp: u32,
    /// The sender's wall clock at a timestamp, in nanoseconds since 1970, if this packet has it.
    pub clock: Option<(u32, u64)>,
    /// The packet of Opus.
    pub payload: Vec<u8>,
}

impl Sound {
    pub(super) fn of(packet: &RtpPacket, clock: Option<(u32, u64)>) -> Self {
        Self { timestamp: packet.header.timestamp, clock, payload: packet.payload.to_vec() }
    }
}

/// A packet of sound that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoundOut {
    /// Its timestamp: samples at 48 kHz.
    pub timestamp: u32,
    /// Whether it begins a spurt (RFC 3551 §4.1).
    pub begins: bool,
    /// When its first sample was captured.
    pub captured: Time,
    /// The same in nanoseconds since 1970, if the packet is to tell it.
    pub captured_unix_ns: Option<u64>,
    /// The packet of Opus.
    pub payload: Vec<u8>,
}

impl Peer {
    /// The payload type of Opus; `None` without sound in the right direction.
    fn sound_type(&self) -> Option<Pt> {
        let mid = self.sound?;
        let wanted = match self.way {
            Way::Sends => Direction::SendOnly,
            Way::Receives => Direction::RecvOnly,
        };
        let direction = self.rtc.media(mid)?.direction();
        let fits = direction == wanted || direction == Direction::SendRecv;
        self.agreed_type(mid, Codec::Opus).map(|(pt, _)| pt).filter(|_| fits)
    }

    /// Whether both ends have agreed on sound.
    pub fn has_sound(&self) -> bool {
        self.sound_type().is_some()
    }

    /// The codec of the sound and its payload type, as SDP writes them; `None` without sound.
    pub(super) fn agreed_sound(&self) -> Option<(String, u8)> {
        let pt = self.sound_type()?;
        let params = self.rtc.codec_config().params().iter().find(|params| params.pt() == pt)?;
        Some((format!("opus/48000/2 {}", params.spec().format), *pt))
    }

    pub(super) fn is_sound(&self, packet: &RtpPacket) -> bool {
        self.sound_type() == Some(packet.header.payload_type)
    }

    /// Sends a packet of sound at once. `sequence` counts from a number below 65,536.
    ///
    /// # Errors
    /// [`PeerError::Broken`].
    pub fn send_sound(
        &mut self,
        now: Time,
        sequence: u64,
        sound: SoundOut,
    ) -> Result<(), PeerError> {
        let Some((pt, mid)) = self.sound_type().zip(self.sound) else { return Ok(()) };
        let values = ExtensionValues {
            abs_capture_time: sound.captured_unix_ns.map(|unix_ns| AbsCaptureTime {
                capture_time: std::time::SystemTime::UNIX_EPOCH
                    + std::time::Duration::from_nanos(unix_ns),
                clock_offset: None,
            }),
            ..ExtensionValues::default()
        };
        let captured = self.instant(sound.captured);
        let write = RtpWrite::new(pt, sequence.into(), sound.timestamp, captured, sound.payload)
            .marker(sound.begins)
            .ext_vals(values);
        let mut direct = self.rtc.direct_api();
        let Some(stream) = direct.stream_tx_by_mid(mid, None) else { return Ok(()) };
        stream.write_rtp(write);
        self.drain(now)
    }
}
