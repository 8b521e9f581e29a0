//! Why an endpoint ends.

use suiro_media::MediaError;
use suiro_media::live::LiveError;
use suiro_realtime::{FeedError, LogError};
use suiro_record::RecordError;
use suiro_strict::Refusal;

use crate::net::NetError;
use crate::versions::VersionsError;
use suiro_payload::PayloadError;

/// Why an RTP endpoint does not run.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No sockets.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The camera, or its encoder.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The camera cannot be started.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The media, or ffmpeg.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// What was encoded cannot be sent.
    #[error("sending a frame: {0}")]
    Payload(PayloadError),
    /// The rate control.
    #[error(transparent)]
    Rate(#[from] Refusal),
    /// The prepared versions.
    #[error("the prepared media: {0}")]
    Versions(VersionsError),
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The viewing could not be recorded.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<VersionsError> for EndpointError {
    fn from(cause: VersionsError) -> Self {
        Self::Versions(cause)
    }
}

impl From<PayloadError> for EndpointError {
    fn from(cause: PayloadError) -> Self {
        Self::Payload(cause)
    }
}
