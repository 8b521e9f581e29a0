//! What publishers and viewers are asked to do.

use suiro_media::live::FootageSpec;
use suiro_realtime::ladder;
use suiro_scenario::{Job, MoqPublisher, MoqStreams, MoqViewer, Pause, QuicCongestion};
use suiro_units::{BitRate, Duration, Time};
use suiro_viewer::Policy;

use crate::catalog::{self, Quality};
use crate::client::Common;
use crate::data;
use crate::net::Behaviour;

/// A maximum age that nothing reaches: longer than any trial, so everything is sent, however late.
pub(crate) const FOREVER: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
/// Streams that the relay may open at a client.
const STREAMS: u32 = 4096;
/// The send window of a connection. Large, so that only congestion control delays a frame.
pub(crate) const SEND_WINDOW: u64 = 64_000_000;
/// What a peer may send before it is read: as much.
pub(crate) const RECEIVE_WINDOW: u32 = 64_000_000;

/// What a publisher needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct PublisherJob {
    /// As for every client.
    pub common: Common,
    /// What the camera sees.
    pub camera: FootageSpec,
    /// The bit rates of its qualities, from the highest to the lowest: one at least.
    pub rates: Vec<BitRate>,
    /// What is sent as one stream, or as a datagram.
    pub streams: MoqStreams,
    /// Interval of key frames.
    pub key_every: Duration,
    /// Whether the encoder follows what QUIC can send.
    pub follows: bool,
    /// The bit rate of its sound; `None`: it has none.
    pub audio: Option<BitRate>,
    /// Its data track, if it has one.
    pub data: Option<data::Spec>,
    /// How long after the beginning of the next group a group of video or sound may still be sent; `None`: for ever.
    pub deadline: Option<Duration>,
    /// From and until when it sends no video, in order.
    pub pauses: Vec<(Time, Time)>,
}

impl PublisherJob {
    /// What a trial's job file asks for; `None` if the endpoint is no publisher, or its relay is not among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let spec = job.endpoint.spec.downcast::<MoqPublisher>()?;
        let offered = (spec.broadcast.as_str(), spec.token.as_ref(), spec.draft);
        let behaviour = behaviour(job, (spec.congestion, spec.delta), (spec.ecn, spec.qlog));
        Some(Self {
            common: Common::from_job(job, &spec.to, offered, behaviour)?,
            camera: spec.camera.clone(),
            rates: spec.rates(),
            streams: spec.streams,
            key_every: spec.key_every,
            follows: spec.adaptation.encoder_follows(),
            audio: spec.audio.rate(),
            data: data::Spec::of(spec),
            deadline: spec.deadline,
            pauses: spec.pauses.iter().map(Pause::span).collect(),
        })
    }

    /// Its qualities, from the highest to the lowest.
    pub(crate) fn qualities(&self) -> Vec<Quality> {
        let FootageSpec { width, height, fps, .. } = self.camera;
        let of = |(index, &rate): (usize, &BitRate)| {
            let share = rate.as_bps() as f64 / self.rates[0].as_bps() as f64;
            let size = quality_size((width, height), share);
            Quality { name: catalog::video(index), size, fps, rate }
        };
        self.rates.iter().enumerate().map(of).collect()
    }
}

/// The size of frames at a share of the highest bit rate: the largest of the usual heights that has at most this share of
/// the pixels.
fn quality_size(camera: (u32, u32), share: f64) -> (u32, u32) {
    let height = f64::from(camera.1) * share.sqrt();
    ladder::sizes(camera).find(|size| f64::from(size.1) <= height).unwrap_or(camera)
}

/// How the connection of a client behaves.
fn behaviour(
    job: &Job,
    (congestion, delta): (QuicCongestion, f64),
    (ecn, logs): (bool, bool),
) -> Behaviour {
    Behaviour {
        congestion,
        delta,
        streams: STREAMS,
        // A frame is sent before the next one begins.
        fair: false,
        send_window: SEND_WINDOW,
        receive_window: RECEIVE_WINDOW,
        offload: false,
        ecn,
        qlog: logs.then(|| qlog(job)),
    }
}

/// Folder and prefix of an endpoint's qlogs.
pub(crate) fn qlog(job: &Job) -> (std::path::PathBuf, String) {
    (job.dir.join("qlog"), job.endpoint.name.clone())
}

/// What a viewer needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewerJob {
    /// As for every client.
    pub common: Common,
    /// How it plays.
    pub viewer: Policy,
    /// Whether the sound waits for the video.
    pub lip_sync: bool,
    /// Whether it changes between the qualities of a broadcast.
    pub switches: bool,
    /// Whether what could be decoded is kept, as `received.NAME.h264`.
    pub save: bool,
}

impl ViewerJob {
    /// What a trial's job file asks for; `None` if the endpoint is no viewer, or its relay is not among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let spec = job.endpoint.spec.downcast::<MoqViewer>()?;
        let asked = (spec.broadcast.as_str(), spec.token.as_ref(), spec.draft);
        let behaviour = behaviour(job, (spec.congestion, spec.delta), (spec.ecn, spec.qlog));
        let common = Common::from_job(job, &spec.from, asked, behaviour)?;
        let switches = spec.adaptation.has_qualities();
        let MoqViewer { viewer, lip_sync, save, .. } = *spec;
        Some(Self { common, viewer, lip_sync, switches, save })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_quality_has_fewer_pixels() {
        assert_eq!(quality_size((1920, 1080), 1.0), (1920, 1080));
        // 0.6 of the pixels are 836 lines, 0.35 are 638.
        assert_eq!(quality_size((1920, 1080), 0.6), (1280, 720));
        assert_eq!(quality_size((1920, 1080), 0.35), (960, 540));
        assert_eq!(quality_size((320, 240), 0.6), (240, 180));
        assert_eq!(quality_size((320, 240), 0.01), (320, 240), "no usual height is so low");
    }
}
