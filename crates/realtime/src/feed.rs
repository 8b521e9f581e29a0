//! A camera and its encoder, as a sender has them: frames come by themselves, and between two of them
//! it takes another bit rate.

use crate::EncoderLog;
use crate::ladder::Rung;
use suiro_media::live::{
    self, Captured, Effort, EncoderConfig, Footage, FootageSpec, LiveError, LiveSource, RATES,
};
use suiro_media::{Ffmpeg, cache};
use suiro_units::{BitRate, Duration, Time};
use tokio::sync::mpsc;

/// How long a key frame of an encoder that follows a transport may take at its bit rate. A viewer counts a freeze of 30 frames
/// a second from 183 ms on, of 20 from 200 ms.
pub const KEYS_WITHIN: Duration = Duration::from_millis(100);
/// Frames that wait for the sender at most; of more, the newest is lost.
const WAITING_MAX: usize = 64;

/// Why there is no feed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The footage, or the encoder.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The camera has no thread.
    #[error("starting the camera: {0}")]
    Thread(std::io::Error),
}

/// A camera that is ready to be started: what it sees is at hand.
#[derive(Debug)]
pub struct Camera {
    footage: Footage,
    /// Size and rate of the first frames.
    first: Rung,
    /// How long a key frame may take at the bit rate.
    keys_within: Option<Duration>,
    /// When it begins, if that is later than its first frame.
    from: Option<Time>,
    /// From and until when it gives no frames.
    pauses: Vec<(Time, Time)>,
    log: Option<EncoderLog>,
}

impl From<Footage> for Camera {
    fn from(footage: Footage) -> Self {
        let first = Rung { size: footage.size(), fps: footage.fps() };
        Self { footage, first, keys_within: None, from: None, pauses: Vec::new(), log: None }
    }
}

/// An encoded frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The source frame's number, from 0; it counts on where the footage repeats. Numbers of frames
    /// that the encoder left out, or had no time for, are missing.
    pub number: u64,
    /// When it was captured, by the clock of the feed.
    pub captured: Time,
    /// The frame that it refers to, the one encoded before; `None` for a key frame.
    pub references: Option<u64>,
    /// Whether it is a key frame (IDR), which begins with the parameter sets.
    pub key: bool,
    /// Its NAL units, in the byte stream format (ITU-T H.264 annex B): Constrained Baseline, one
    /// reference, no frame out of order.
    pub data: Vec<u8>,
    /// The bit rate that the encoder was set to.
    pub rate: BitRate,
    /// Width and height of the frame.
    pub size: (u32, u32),
}

/// A camera that runs: H.264 frames in real time. Dropping it ends it.
pub struct Feed {
    camera: live::Camera,
    frames: mpsc::Receiver<Captured>,
    /// Width and height of what the camera sees.
    camera_size: (u32, u32),
    camera_fps: u32,
    /// What the encoder was last asked for.
    rate: BitRate,
    fps: u32,
    size: (u32, u32),
}

impl Camera {
    /// Makes what it sees, or finds it in the cache. This blocks, and the first time may take as long
    /// as the footage: do it before others wait.
    ///
    /// # Errors
    /// [`LiveError`]: there is no ffmpeg, the specification cannot be met, or the source cannot be had.
    pub fn prepare(spec: &FootageSpec) -> Result<Self, LiveError> {
        let ffmpeg = Ffmpeg::locate()?;
        let footage = Footage::prepare(&ffmpeg, spec, &cache::folder(), &mut |_, _| {})?;
        Ok(footage.into())
    }

    /// The same, with this size and this many frames per second from the first frame on, instead of what the camera
    /// sees: what is asked of a feed that runs may come after its first frame.
    #[must_use]
    pub fn beginning_at(self, first: Rung) -> Self {
        Self { first, ..self }
    }

    /// The same, with key frames that are softer where they would take longer than this at the bit rate
    /// ([`LiveSource::keep_keys_within`]).
    #[must_use]
    pub fn with_keys_within(self, within: Duration) -> Self {
        Self { keys_within: Some(within), ..self }
    }

    /// The same, but it begins with the first frame that is captured at `from` or later, without having missed those before.
    #[must_use]
    pub fn beginning_from(self, from: Time) -> Self {
        Self { from: Some(from), ..self }
    }

    /// The same, but it gives no frames from and until these times, in order; the first after each is a key frame.
    #[must_use]
    pub fn pausing(self, pauses: Vec<(Time, Time)>) -> Self {
        Self { pauses, ..self }
    }

    /// The same, and what becomes of each frame is recorded.
    #[must_use]
    pub fn with_log(self, log: EncoderLog) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Starts it; the first frame is captured at `start`, and encoded at a bit rate within [`RATES`].
    /// Times are those of `clock`, whose zero is `epoch_unix_ns` nanoseconds after 1970, for the stamps
    /// in the frames.
    ///
    /// # Errors
    /// [`FeedError`]: no such encoder, [more](Self::beginning_at) than the camera has, or no thread.
    pub fn start(
        self,
        start: Time,
        rate: BitRate,
        epoch_unix_ns: u64,
        clock: impl Fn() -> Time + Clone + Send + 'static,
    ) -> Result<Feed, FeedError> {
        let rate = rate.clamp(*RATES.least(), *RATES.most());
        let (camera_size, camera_fps) = (self.footage.size(), self.footage.fps());
        let Rung { size, fps } = self.first;
        let config = EncoderConfig {
            width: size.0,
            height: size.1,
            fps,
            bitrate: rate,
            effort: Effort::Medium,
            may_skip: true,
        };
        let mut source = LiveSource::new(self.footage, config, start, epoch_unix_ns / 1_000_000)?;
        if let Some(within) = self.keys_within {
            source.keep_keys_within(within);
        }
        if let Some(from) = self.from {
            source.begin(from);
        }
        source.pause(self.pauses);
        let (post, frames) = mpsc::channel(WAITING_MAX);
        // A full channel loses the frame, as a busy encoder does; the ones after it refer to it, and
        // the viewer asks for a key frame.
        let (log, now) = (self.log, clock.clone());
        let sink = move |captured: Captured| {
            let place = post.try_reserve();
            if let Some(log) = &log {
                log.push(now(), &captured, place.is_err() && captured.encoded.is_some());
            }
            if let Ok(place) = place {
                place.send(captured);
            }
        };
        let camera = live::Camera::start(source, clock, sink).map_err(FeedError::Thread)?;
        Ok(Feed { camera, frames, camera_size, camera_fps, rate, fps, size })
    }
}

impl Feed {
    /// The next frame, as soon as it is encoded; `None` when the camera has ended, which
    /// [`Self::stop`] explains. A call that is given up loses no frame.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            let captured = self.frames.recv().await?;
            let Some(encoded) = captured.encoded else { continue };
            return Some(Frame {
                number: captured.number,
                captured: captured.captured,
                references: captured.references,
                key: encoded.key,
                data: encoded.bytes,
                rate: captured.config.bitrate,
                size: (captured.config.width, captured.config.height),
            });
        }
    }

    /// The bit rate from the next frame on; beyond [`RATES`], the nearest in them.
    pub fn set_rate(&mut self, rate: BitRate) {
        let rate = rate.clamp(*RATES.least(), *RATES.most());
        if rate != self.rate {
            self.rate = rate;
            self.camera.set_bitrate(rate);
        }
    }

    /// The frame rate from the next frame on; beyond 1 and the camera's, the nearest of them. Frames are
    /// left out as evenly as whole ones allow, and keep their numbers.
    pub fn set_fps(&mut self, fps: u32) {
        let fps = fps.clamp(1, self.camera_fps);
        if fps != self.fps {
            self.fps = fps;
            self.camera.set_fps(fps);
        }
    }

    /// The size from the next frame on, which is a key frame.
    ///
    /// # Errors
    /// [`LiveError`]: the sides are odd, longer than the camera's or too short; nothing changes.
    pub fn set_size(&mut self, width: u32, height: u32) -> Result<(), LiveError> {
        live::check_size((width, height), self.camera_size)?;
        if (width, height) != self.size {
            self.size = (width, height);
            self.camera.set_size(width, height);
        }
        Ok(())
    }

    /// Width and height of what the camera sees: the largest frames that it gives.
    pub fn camera_size(&self) -> (u32, u32) {
        self.camera_size
    }

    /// Makes the next frame a key frame.
    pub fn request_key_frame(&self) {
        self.camera.request_key_frame();
    }

    /// Ends it, after the frame at hand.
    ///
    /// # Errors
    /// What ended it before.
    pub fn stop(self) -> Result<(), LiveError> {
        self.camera.stop()
    }
}
