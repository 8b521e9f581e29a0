//! AAC as far as packaging needs it.

use crate::ParseError;

/// Samples of an AAC frame.
pub(crate) const FRAME: u64 = 1024;

/// Sampling frequencies by their index (ISO/IEC 14496-3 table 1.18).
const RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// Bytes of an ADTS header without checksum.
const ADTS: usize = 7;

/// `AudioSpecificConfig` (ISO/IEC 14496-3 §1.6.2.1), its first fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioConfig {
    /// Audio object type; 2 is AAC-LC.
    object: u8,
    rate_index: u8,
    /// Channel configuration: for 1 to 6, the number of channels.
    channels: u8,
}

impl AudioConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// If it is cut, or something that ADTS has no words for: an object type above 4, a sampling
    /// frequency or channel layout of its own.
    pub fn read(bytes: &[u8]) -> Result<Self, ParseError> {
        let [first, second, ..] = *bytes else {
            return Err(ParseError::new(0, "an audio configuration cut short"));
        };
        let found = Self {
            object: first >> 3,
            rate_index: (first & 7) << 1 | second >> 7,
            channels: second >> 3 & 0x0f,
        };
        let known = (1..=4).contains(&found.object)
            && usize::from(found.rate_index) < RATES.len()
            && (1..=6).contains(&found.channels);
        if known { Ok(found) } else { Err(ParseError::new(0, format!("audio like {found:?}"))) }
    }

    /// Samples per second.
    pub fn sample_rate(self) -> u32 {
        RATES[usize::from(self.rate_index)]
    }

    /// Channels.
    pub fn channels(self) -> u32 {
        self.channels.into()
    }

    /// The codec as RFC 6381 §3.3 writes it.
    pub fn codec(self) -> String {
        format!("mp4a.40.{}", self.object)
    }

    /// The frame with its ADTS header (ISO/IEC 14496-3 §1.A.2.2.1).
    ///
    /// # Errors
    /// If the frame is too large for the header's 13 bits.
    pub(crate) fn adts(self, frame: &[u8]) -> Result<Vec<u8>, ParseError> {
        let size = frame.len() + ADTS;
        if size >= 1 << 13 {
            return Err(ParseError::new(0, format!("an AAC frame of {} bytes", frame.len())));
        }
        let channels = self.channels;
        let mut out = vec![
            0xff,
            // MPEG-4, no checksum.
            0xf1,
            (self.object - 1) << 6 | self.rate_index << 2 | channels >> 2,
            channels << 6 | (size >> 11) as u8,
            (size >> 3) as u8,
            // Buffer fullness 0x7ff: variable rate. One frame follows.
            (size << 5) as u8 | 0x1f,
            0xfc,
        ];
        out.extend(frame);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lc_stereo_48k() {
        let config = AudioConfig::read(&[0x11, 0x90, 0x56]).unwrap();
        assert_eq!((config.sample_rate(), config.channels()), (48_000, 2));
        assert_eq!(config.codec(), "mp4a.40.2");
        let framed = config.adts(&[1, 2, 3]).unwrap();
        assert_eq!(framed, [0xff, 0xf1, 0x4c, 0x80, 0x01, 0x5f, 0xfc, 1, 2, 3]);
        assert!(config.adts(&[0; 8185]).is_err());
    }

    #[test]
    fn what_adts_cannot_say_is_refused() {
        for bytes in [&[][..], &[0x11], &[0x17, 0x90], &[0x11, 0x80], &[0xf9, 0x90]] {
            assert!(AudioConfig::read(bytes).is_err(), "{bytes:x?}");
        }
    }
}
