//! Why an endpoint ends.

use std::io;
use std::path::{Path, PathBuf};

use suiro_media::MediaError;
use suiro_media::live::LiveError;
use suiro_rate::SpecError;
use suiro_record::RecordError;

use crate::net::NetError;
use crate::payload::PayloadError;
use crate::versions::VersionsError;

/// Why an RTP endpoint does not run.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No sockets.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The camera, or its encoder.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The media, or ffmpeg.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// What was encoded cannot be sent.
    #[error("sending a frame: {0}")]
    Payload(#[from] PayloadError),
    /// The rate control.
    #[error("control.{0}")]
    Rate(#[from] SpecError),
    /// The prepared versions.
    #[error("the prepared media: {0}")]
    Versions(#[from] VersionsError),
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The camera has no thread.
    #[error("starting the camera: {0}")]
    Thread(#[source] io::Error),
    /// What was received could not be saved.
    #[error("saving what was received to {path}: {source}")]
    Save {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl EndpointError {
    pub(crate) fn save(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Save { path, source }
    }
}
