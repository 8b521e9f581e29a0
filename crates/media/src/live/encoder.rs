//! The H.264 encoder in the loop: openh264, whose rate can be changed from one frame to the next.

use openh264::encoder::{self, FrameRate, FrameType, IntraFramePeriod, RateControlMode, UsageType};
use openh264::{OpenH264API, Timestamp};
use openh264_sys2 as sys;
use suiro_units::{BitRate, Duration};

use super::picture::Picture;
use super::{FPS, LiveError};
use suiro_strict::{Bounds, Keys};

/// Bit rates that can be asked for.
pub const RATES: Bounds<BitRate> = Bounds::new(BitRate::from_kbps(20), BitRate::from_mbps(100));

/// What an encoder is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderConfig {
    /// Pixels across, even, at least 16.
    pub width: u32,
    /// Pixels down, even, at least 16.
    pub height: u32,
    /// Frames per second that are encoded, 1 to 120.
    pub fps: u32,
    /// Bit rate, [`RATES`].
    pub bitrate: BitRate,
    /// How much work is spent on each frame.
    pub effort: Effort,
    /// Whether frames may be left out where the bit rate could not be kept otherwise. If not, it is
    /// exceeded.
    pub may_skip: bool,
}

/// How much work is spent on each frame: openh264's complexity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// The least.
    Low,
    /// In between.
    #[default]
    Medium,
    /// The most.
    High,
}

/// An encoded frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Its NAL units, in the byte stream format (ITU-T H.264 annex B). A key frame begins with the
    /// parameter sets.
    pub bytes: Vec<u8>,
    /// Whether it is a key frame (IDR). Any other refers to the one encoded before it.
    pub key: bool,
}

/// An H.264 encoder for one real-time stream.
///
/// Constrained Baseline without B-frames: a frame goes in, its bytes come out. The first frame is a
/// key frame, and so are those on request; no others. One thread: on two cores, the other one is
/// for all the rest.
pub struct Encoder {
    inner: encoder::Encoder,
    config: EncoderConfig,
    started: bool,
}

impl Encoder {
    /// A new encoder.
    ///
    /// # Errors
    /// [`LiveError`]: the configuration is out of range, or openh264 refuses it.
    pub fn new(config: EncoderConfig) -> Result<Self, LiveError> {
        RATES.check(Keys::of("bitrate"), config.bitrate)?;
        FPS.check(Keys::of("fps"), config.fps)?;
        Picture::new(config.width, config.height)?;
        let inner = encoder::EncoderConfig::new()
            .bitrate(native(config.bitrate))
            .max_frame_rate(FrameRate::from_hz(config.fps as f32))
            .rate_control_mode(RateControlMode::Bitrate)
            .usage_type(UsageType::CameraVideoRealTime)
            .complexity(config.effort.native())
            .skip_frames(config.may_skip)
            .scene_change_detect(false)
            .intra_frame_period(IntraFramePeriod::from_num_frames(0))
            .num_threads(1);
        let api = OpenH264API::from_source();
        let inner = encoder::Encoder::with_api_config(api, inner);
        let inner = inner.map_err(LiveError::codec("making an encoder"))?;
        let mut encoder = Self { inner, config, started: false };
        // It is set again when the first frame is encoded, but only after first warnings.
        encoder.set(sys::ENCODER_OPTION_TRACE_LEVEL, sys::WELS_LOG_QUIET, "silencing it")?;
        Ok(encoder)
    }

    /// What it encodes now.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Encodes a frame that was captured so long after the stream's start. `None`: it was left
    /// out to keep the bit rate ([`EncoderConfig::may_skip`]).
    ///
    /// # Errors
    /// [`LiveError`]: the frame has another size, or openh264 fails.
    pub fn encode(
        &mut self,
        picture: &Picture,
        captured: Duration,
    ) -> Result<Option<Encoded>, LiveError> {
        let wanted = (self.config.width, self.config.height);
        if picture.size() != wanted {
            return Err(LiveError::OtherSize { found: picture.size(), wanted });
        }
        let at = Timestamp::from_millis(captured.as_nanos() / 1_000_000);
        let encoded = self.inner.encode_at(picture, at);
        let encoded = encoded.map_err(LiveError::codec("encoding a frame"))?;
        let key = matches!(encoded.frame_type(), FrameType::IDR);
        let bytes = encoded.to_vec();
        self.started = true;
        Ok((!bytes.is_empty()).then_some(Encoded { bytes, key }))
    }

    /// The bit rate from the next frame on.
    ///
    /// # Errors
    /// [`LiveError`]: it is out of range, or openh264 refuses it.
    pub fn set_bitrate(&mut self, bitrate: BitRate) -> Result<(), LiveError> {
        let config = EncoderConfig { bitrate, ..self.config };
        if !self.started {
            *self = Self::new(config)?;
            return Ok(());
        }
        RATES.check(Keys::of("bitrate"), bitrate)?;
        // The most and the mean are the same, and the most is never less.
        let most = (sys::ENCODER_OPTION_MAX_BITRATE, sys::SPATIAL_LAYER_0);
        let mean = (sys::ENCODER_OPTION_BITRATE, sys::SPATIAL_LAYER_ALL);
        let rises = bitrate > self.config.bitrate;
        for which in if rises { [most, mean] } else { [mean, most] } {
            self.set_rate(which, bitrate)?;
        }
        self.config = config;
        Ok(())
    }

    /// The number of frames per second that will be given it from now on, by which it shares out
    /// the bit rate.
    ///
    /// # Errors
    /// [`LiveError`]: it is out of range, or openh264 refuses it.
    pub fn set_fps(&mut self, fps: u32) -> Result<(), LiveError> {
        let config = EncoderConfig { fps, ..self.config };
        if !self.started {
            *self = Self::new(config)?;
            return Ok(());
        }
        FPS.check(Keys::of("fps"), fps)?;
        self.set(sys::ENCODER_OPTION_FRAME_RATE, fps as f32, "setting the frame rate")?;
        self.config = config;
        Ok(())
    }

    /// Makes the next frame a key frame.
    pub fn request_key_frame(&mut self) {
        // The first one is.
        if self.started {
            self.inner.force_intra_frame();
        }
    }

    fn set_rate(
        &mut self,
        (option, layer): (sys::ENCODER_OPTION, sys::LAYER_NUM),
        rate: BitRate,
    ) -> Result<(), LiveError> {
        let rate = i32::try_from(eights(rate)).unwrap_or(i32::MAX);
        let rate = sys::SBitrateInfo { iLayer: layer, iBitrate: rate };
        self.set(option, rate, "setting the bit rate")
    }

    /// Sets an option, whose value must be of the type that `codec_app_def.h` says.
    fn set<T>(
        &mut self,
        option: sys::ENCODER_OPTION,
        mut value: T,
        doing: &'static str,
    ) -> Result<(), LiveError> {
        // SAFETY: openh264 reads a value of the option's type and keeps no pointer to it; the
        // wrapper relies on none of the options that are set here.
        let status = unsafe { self.inner.raw_api().set_option(option, (&raw mut value).cast()) };
        if status == 0 {
            return Ok(());
        }
        Err(LiveError::Codec { doing, message: format!("status {status}") })
    }
}

impl Effort {
    fn native(self) -> encoder::Complexity {
        match self {
            Self::Low => encoder::Complexity::Low,
            Self::Medium => encoder::Complexity::Medium,
            Self::High => encoder::Complexity::High,
        }
    }
}

fn native(rate: BitRate) -> encoder::BitRate {
    encoder::BitRate::from_bps(u32::try_from(eights(rate)).unwrap_or(u32::MAX))
}

/// A bit rate rounded down to 8 bit/s. openh264 computes the mean with floats, which hold multiples of 8 up to 2^27 exactly: otherwise
/// it may come out one above the most, and is refused. The first rate is rounded as well, or the next one may be below it, although
/// it rises.
const fn eights(rate: BitRate) -> u64 {
    rate.as_bps() & !7
}
