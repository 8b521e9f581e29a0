//! The H.264 decoder of a viewer.

use openh264::decoder;
use openh264::{OpenH264API, formats::YUVSource as _};

use super::LiveError;
use super::picture::Picture;

/// Largest access unit that is decoded; one of a lossless 4K frame is smaller.
pub const UNIT_MAX: usize = 32 << 20;

/// An H.264 decoder for one real-time stream, in one thread.
///
/// Nothing is concealed: what does not have its reference is an error, not a guess.
pub struct Decoder {
    inner: decoder::Decoder,
}

impl Decoder {
    /// A decoder that waits for a key frame.
    ///
    /// # Errors
    /// [`LiveError::Codec`]: openh264 refuses.
    pub fn new() -> Result<Self, LiveError> {
        let config = decoder::DecoderConfig::new();
        let inner = decoder::Decoder::with_api_config(OpenH264API::from_source(), config);
        Ok(Self { inner: inner.map_err(LiveError::codec("making a decoder"))? })
    }

    /// Decodes one access unit into `picture`, which takes on its size; `false` if there was no
    /// frame in it.
    ///
    /// # Errors
    /// [`LiveError`]: it is damaged, or refers to what was not decoded; `picture` is as it was.
    pub fn decode(&mut self, unit: &[u8], picture: &mut Picture) -> Result<bool, LiveError> {
        let doing = "decoding a frame";
        if unit.len() > UNIT_MAX {
            let message = format!("{} bytes, more than {UNIT_MAX}", unit.len());
            return Err(LiveError::Codec { doing, message });
        }
        let decoded = self.inner.decode(unit).map_err(LiveError::codec(doing))?;
        let Some(decoded) = decoded else { return Ok(false) };
        debug_assert!(decoded.strides().0 >= decoded.dimensions().0);
        picture.copy(&decoded)?;
        Ok(true)
    }
}
