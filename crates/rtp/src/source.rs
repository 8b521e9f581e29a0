//! Where a sender's frames come from.

use suiro_clock::Clock;
use suiro_media::live::{Camera, Captured, LiveError, LiveSource, RATES};
use suiro_units::{BitRate, Bytes, Duration};
use tokio::sync::mpsc;

/// Frames of the camera that wait for the sender at most; of more, the newest is lost.
const WAITING_MAX: usize = 64;

/// Share of the target that the encoder is given: headers take some 3 % of full packets and more of
/// others, and encoders do not hit their rate in each second.
const ENCODER_SHARE: f64 = 0.93;

/// How soon what waits should have left.
const DRAIN: Duration = Duration::from_secs(1);

/// Share of the target that the encoder is always given.
const LEAST_SHARE: f64 = 0.3;

/// An encoder in the loop.
pub struct Live {
    camera: Camera,
    frames: mpsc::Receiver<Captured>,
    rate: BitRate,
}

impl Live {
    /// Starts the camera. Its times are those of `clock`.
    ///
    /// # Errors
    /// That of the operating system, if there is no thread to be had.
    pub fn start(source: LiveSource, rate: BitRate, clock: Clock) -> std::io::Result<Self> {
        let (post, frames) = mpsc::channel(WAITING_MAX);
        // A full channel loses the frame, as a busy encoder does; the ones after it refer to it, and
        // the viewer asks for a key frame.
        let camera = Camera::start(source, move || clock.now(), move |c| drop(post.try_send(c)))?;
        Ok(Self { camera, frames, rate })
    }

    /// The encoder's rate under a target: what waits is sent within a second beside it.
    pub fn rate_for(target: BitRate, queued: Bytes) -> BitRate {
        let share = target.mul_f64(ENCODER_SHARE);
        let waiting = queued / DRAIN;
        let rate = BitRate::from_bps(share.as_bps().saturating_sub(waiting.as_bps()));
        rate.max(target.mul_f64(LEAST_SHARE)).clamp(*RATES.start(), *RATES.end())
    }

    /// What the encoder is set to.
    pub fn rate(&self) -> BitRate {
        self.rate
    }

    /// The rate control allows so much from now on, and so much waits in the sender.
    pub fn set_target(&mut self, target: BitRate, queued: Bytes) {
        let rate = Self::rate_for(target, queued);
        if rate != self.rate {
            self.rate = rate;
            self.camera.set_bitrate(rate);
        }
    }

    /// Makes the next frame a key frame.
    pub fn request_key_frame(&self) {
        self.camera.request_key_frame();
    }

    /// The next frame; `None` when the camera has ended, which [`Self::stop`] explains.
    pub async fn next(&mut self) -> Option<Captured> {
        self.frames.recv().await
    }

    /// Ends the camera.
    ///
    /// # Errors
    /// What ended it before.
    pub fn stop(self) -> Result<(), LiveError> {
        self.camera.stop()
    }
}
