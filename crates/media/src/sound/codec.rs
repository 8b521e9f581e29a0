//! Opus (RFC 6716), one channel.

use rusty_opus::{Application, OpusDecoder, OpusEncoder};
use suiro_units::BitRate;

use super::{PACKET_MAX, RATE, RATES, SAMPLES};

/// Why a sound could not be coded.
#[derive(Debug, thiserror::Error)]
#[error("Opus, {doing}: {cause}")]
pub struct SoundError {
    doing: &'static str,
    cause: rusty_opus::Error,
}

impl SoundError {
    fn doing(doing: &'static str) -> impl Fn(rusty_opus::Error) -> Self {
        move |cause| Self { doing, cause }
    }
}

/// An encoder of frames of 20 ms, all of one size. With a bit rate that varies, as browsers have it, tones would cost more
/// than what is asked for (19 kbit/s at 12), and speech less.
pub struct Encoder(Box<OpusEncoder>);

impl Encoder {
    /// An encoder of that bit rate; beyond [`RATES`], of the nearest in them.
    ///
    /// # Errors
    /// [`SoundError`].
    pub fn new(rate: BitRate) -> Result<Self, SoundError> {
        let made = OpusEncoder::new(RATE as i32, 1, Application::Audio);
        let mut encoder = made.map_err(SoundError::doing("making an encoder"))?;
        let rate = rate.clamp(*RATES.least(), *RATES.most());
        encoder.bitrate_bps = i32::try_from(rate.as_bps()).expect("at most 510 kbit/s");
        encoder.use_cbr = true;
        // It is large, and moves with the endpoint that has it.
        Ok(Self(Box::new(encoder)))
    }

    /// Encodes a frame.
    ///
    /// # Errors
    /// [`SoundError`].
    pub fn encode(&mut self, samples: &[f32; SAMPLES]) -> Result<Vec<u8>, SoundError> {
        let mut packet = vec![0; PACKET_MAX];
        let length = self.0.encode(samples, SAMPLES, &mut packet);
        packet.truncate(length.map_err(SoundError::doing("encoding a frame"))?);
        Ok(packet)
    }
}

/// A decoder. What it says is [`super::CODEC_DELAY`] behind.
pub struct Decoder {
    inner: Box<OpusDecoder>,
    said: Vec<f32>,
}

impl Decoder {
    /// A decoder that has heard nothing.
    ///
    /// # Errors
    /// [`SoundError`].
    pub fn new() -> Result<Self, SoundError> {
        let made = OpusDecoder::new(RATE as i32, 1);
        let inner = Box::new(made.map_err(SoundError::doing("making a decoder"))?);
        // A packet holds up to 120 ms (RFC 6716 §3.2.5), whatever its sender has agreed on.
        Ok(Self { inner, said: vec![0.0; SAMPLES * 6] })
    }

    /// What a packet says: a frame, if it has one of ours.
    ///
    /// # Errors
    /// [`SoundError`]: it is none of Opus.
    pub fn decode(&mut self, packet: &[u8]) -> Result<&[f32], SoundError> {
        if packet.is_empty() {
            // To the codec, that is a packet which did not come (RFC 6716 §3.1 wants a byte).
            let cause = rusty_opus::Error::InvalidPacket("an empty packet");
            return Err(SoundError { doing: "decoding a packet", cause });
        }
        let room = self.said.len();
        let length = self.inner.decode(packet, room, &mut self.said);
        let length = length.map_err(SoundError::doing("decoding a packet"))?;
        Ok(&self.said[..length.min(room)])
    }

    /// What it says in place of a frame that did not come (packet loss concealment, RFC 6716 §4.4).
    ///
    /// # Errors
    /// [`SoundError`].
    pub fn conceal(&mut self) -> Result<&[f32], SoundError> {
        let length = self.inner.decode(&[], SAMPLES, &mut self.said);
        let length = length.map_err(SoundError::doing("concealing a frame"))?;
        Ok(&self.said[..length.min(SAMPLES)])
    }
}
