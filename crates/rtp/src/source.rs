//! Where a sender's frames come from: a camera with its encoder, or prepared versions.

use suiro_clock::Clock;
use suiro_media::MediaError;
use suiro_media::live::{Camera, Captured, LiveError, LiveSource, RATES};
use suiro_media::quantised::{self, Group, Set};
use suiro_scenario::VersionRate;
use suiro_units::{BitRate, Bytes, Duration, Time};
use tokio::sync::mpsc;

use crate::sender::SourceFrame;
use crate::versions::{Due, Picture, Version, Versions, VersionsError};

/// Frames of the camera that wait for the sender at most; of more, the newest is lost.
const WAITING_MAX: usize = 64;

/// Share of the target that the encoder is given: headers take some 3 % of full packets and more of
/// others, and encoders do not hit their rate in each second.
const ENCODER_SHARE: f64 = 0.93;

/// How soon what waits should have left.
const DRAIN: Duration = Duration::from_secs(1);

/// Share of the target that the encoder is always given.
const LEAST_SHARE: f64 = 0.3;

/// A frame with its bytes.
#[derive(Debug, Clone)]
pub struct Frame {
    number: u64,
    captured: Time,
    references: Option<u64>,
    data: Vec<u8>,
    rate: BitRate,
    quantiser: Option<i64>,
    begins_group: bool,
    budget: Option<Bytes>,
}

impl Frame {
    /// As the sender takes it.
    pub fn as_source(&self) -> SourceFrame<'_> {
        SourceFrame {
            number: self.number,
            captured: self.captured,
            references: self.references,
            data: &self.data,
            rate: self.rate,
            quantiser: self.quantiser,
            begins_group: self.begins_group,
            budget: self.budget,
        }
    }
}

/// Either kind.
pub enum Feed {
    /// A camera.
    Live(Live),
    /// Prepared versions.
    Prepared(Box<Prepared>),
}

impl Feed {
    /// Waits for the next frame, under a target; `None` when the source has ended, which
    /// [`Self::stop`] explains.
    ///
    /// # Errors
    /// [`MediaError`]: the prepared media cannot be read.
    pub async fn next(
        &mut self,
        clock: Clock,
        target: BitRate,
    ) -> Result<Option<Frame>, MediaError> {
        match self {
            Self::Live(live) => Ok(live.next().await),
            Self::Prepared(prepared) => prepared.next(clock, target).await.map(Some),
        }
    }

    /// The rate control allows so much from now on, and so much waits in the sender. (Versions are
    /// chosen when a group begins.)
    pub fn set_target(&mut self, target: BitRate, queued: Bytes) {
        if let Self::Live(live) = self {
            live.set_target(target, queued);
        }
    }

    /// Makes the next frame a key frame, where there is an encoder.
    pub fn request_key_frame(&self) {
        if let Self::Live(live) = self {
            live.camera.request_key_frame();
        }
    }

    /// Ends the source.
    ///
    /// # Errors
    /// What ended it before.
    pub fn stop(self) -> Result<(), LiveError> {
        match self {
            Self::Live(live) => live.camera.stop(),
            Self::Prepared(_) => Ok(()),
        }
    }
}

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

    fn set_target(&mut self, target: BitRate, queued: Bytes) {
        let rate = Self::rate_for(target, queued);
        if rate != self.rate {
            self.rate = rate;
            self.camera.set_bitrate(rate);
        }
    }

    /// The next frame that was encoded.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let captured = self.frames.recv().await?;
            let Some(encoded) = captured.encoded else { continue };
            return Some(Frame {
                number: captured.number,
                captured: captured.captured,
                references: captured.references,
                data: encoded.bytes,
                rate: self.rate,
                quantiser: None,
                begins_group: encoded.key,
                budget: None,
            });
        }
    }
}

/// Prepared versions, read group by group.
pub struct Prepared {
    set: Set,
    versions: Versions,
    /// The group at hand: which version and which group of the endless stream.
    group: Option<((usize, u64), Group)>,
}

impl Prepared {
    /// The versions of a set, the first picture due at `start`, in IP packets of up to that size,
    /// chosen by that rate.
    ///
    /// # Errors
    /// [`VersionsError`]: the set is empty.
    pub fn new(
        set: Set,
        start: Time,
        packet: Bytes,
        by: VersionRate,
    ) -> Result<Self, VersionsError> {
        let version = |version: &quantised::Version| {
            let place =
                |p: &quantised::Picture| Picture { offset: p.offset, size: u64::from(p.bytes) };
            Version {
                quantiser: version.scale.into(),
                rate: version.rate,
                pictures: version.pictures.iter().map(place).collect(),
            }
        };
        let all = set.versions.iter().map(version).collect();
        let group = quantised::GROUP as usize;
        let versions = Versions::new(all, group, quantised::RATE, start, packet)?.by(by);
        Ok(Self { set, versions, group: None })
    }

    async fn next(&mut self, clock: Clock, target: BitRate) -> Result<Frame, MediaError> {
        loop {
            clock.sleep_until(self.versions.next()).await;
            if let Some(due) = self.versions.poll(clock.now(), target) {
                return self.read(due);
            }
        }
    }

    fn read(&mut self, due: Due) -> Result<Frame, MediaError> {
        let pictures = u64::from(quantised::GROUP);
        let which = (due.version, due.number / pictures);
        let group = match self.group.take() {
            Some((at_hand, group)) if at_hand == which => group,
            _ => self.set.group(which.0, which.1)?,
        };
        let place = (due.number % pictures) as usize;
        let data = group.pictures().nth(place).map_or_else(Vec::new, |(_, data)| data.to_vec());
        self.group = Some((which, group));
        let version = &self.versions.versions()[due.version];
        Ok(Frame {
            number: due.number,
            captured: due.at,
            references: if due.begins_group { None } else { due.number.checked_sub(1) },
            data,
            rate: version.rate,
            quantiser: Some(version.quantiser),
            begins_group: due.begins_group,
            budget: due.budget,
        })
    }
}
