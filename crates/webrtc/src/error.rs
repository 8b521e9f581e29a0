//! Why an endpoint ends.

use suiro_browser::BrowserError;
use suiro_media::live::LiveError;
use suiro_payload::PayloadError;
use suiro_realtime::{FeedError, LogError};
use suiro_record::RecordError;

use crate::net::NetError;
use crate::peer::PeerError;
use crate::signalling::client::SignallingError;

/// Why a WebRTC endpoint does not run.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No sockets.
    #[error(transparent)]
    Net(#[from] NetError),
    /// RTP could not be recorded.
    #[error("recording RTP: {0}")]
    Plain(std::io::Error),
    /// A program of others is not installed, or could not be started.
    #[error(transparent)]
    Program(#[from] BrowserError),
    /// pion's program does not do what it should.
    #[error("pion: {0}")]
    Pion(String),
    /// No certificate.
    #[error("making a certificate: the cryptography library refused")]
    Certificate,
    /// The camera, or its encoder.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The camera cannot be started.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// What was encoded cannot be sent.
    #[error("sending a frame: {0}")]
    Payload(PayloadError),
    /// The offer was not answered.
    #[error("offering video: {0}")]
    Signalling(SignallingError),
    /// The answer cannot be used.
    #[error("offering video: {0}")]
    Peer(PeerError),
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The viewing could not be recorded.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<PayloadError> for EndpointError {
    fn from(error: PayloadError) -> Self {
        Self::Payload(error)
    }
}

impl From<SignallingError> for EndpointError {
    fn from(error: SignallingError) -> Self {
        Self::Signalling(error)
    }
}

impl From<PeerError> for EndpointError {
    fn from(error: PeerError) -> Self {
        Self::Peer(error)
    }
}
