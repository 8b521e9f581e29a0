//! Where a sender's frames come from: a camera with its encoder, or prepared versions.

use suiro_clock::Clock;
use suiro_media::MediaError;
use suiro_media::quantised::{self, Group, Set};
use suiro_realtime::{EncoderLog, Share};
use suiro_scenario::VersionRate;
use suiro_units::{BitRate, Bytes, Time};

use crate::EndpointError;
use crate::sender::SourceFrame;
use crate::versions::{Due, Picture, Version, Versions, VersionsError};

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

impl From<suiro_realtime::Frame> for Frame {
    fn from(frame: suiro_realtime::Frame) -> Self {
        Self {
            number: frame.number,
            captured: frame.captured,
            references: frame.references,
            data: frame.data,
            rate: frame.rate,
            quantiser: None,
            begins_group: frame.key,
            budget: None,
        }
    }
}

/// Either kind.
pub enum Feed {
    /// A camera, and the record of what its encoder makes.
    Camera(suiro_realtime::Feed, EncoderLog),
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
            Self::Camera(camera, _) => Ok(camera.next().await.map(Frame::from)),
            Self::Prepared(prepared) => prepared.next(clock, target).await.map(Some),
        }
    }

    /// The rate control allows so much from now on, and so much waits in the sender. (Versions are
    /// chosen when a group begins.)
    pub fn set_target(&mut self, target: BitRate, queued: Bytes) {
        if let Self::Camera(camera, _) = self {
            camera.set_rate(Share::default().encoder_rate(target, queued));
        }
    }

    /// Makes the next frame a key frame, where there is an encoder.
    pub fn request_key_frame(&self) {
        if let Self::Camera(camera, _) = self {
            camera.request_key_frame();
        }
    }

    /// Ends the source.
    ///
    /// # Errors
    /// What ended it before, or the record could not be written.
    pub fn stop(self) -> Result<(), EndpointError> {
        if let Self::Camera(camera, log) = self {
            camera.stop()?;
            log.close()?;
        }
        Ok(())
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
    /// The versions of a set, the first frame due at `start`, in IP packets of up to that size,
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
