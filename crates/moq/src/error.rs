//! Why an endpoint ends.

use moq_net::web_transport_trait as wt;
use moq_noq::{ConnectionError, ReadError, SendDatagramError, WriteError};
use suiro_media::live::LiveError;
use suiro_realtime::{FeedError, LogError};
use suiro_record::RecordError;

use crate::catalog::CatalogError;
use crate::net::NetError;
use crate::tls::TlsError;

/// Why an endpoint of Media over QUIC does not run.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No connection.
    #[error(transparent)]
    Net(#[from] NetError),
    /// No socket, or the host is not known.
    #[error(transparent)]
    Socket(#[from] suiro_endpoint::net::NetError),
    /// No certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The session failed.
    #[error("{doing}: {cause}{}", hint(cause))]
    Session {
        /// What was being done.
        doing: String,
        /// What the session said.
        cause: moq_net::Error,
    },
    /// The broadcast cannot be played.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The camera, or its encoder.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The camera cannot be started.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The viewing could not be recorded.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl EndpointError {
    /// An error of a session, while something was being done.
    pub(crate) fn session(doing: impl Into<String>) -> impl FnOnce(moq_net::Error) -> Self {
        let doing = doing.into();
        move |cause| Self::Session { doing, cause }
    }
}

fn hint(cause: &moq_net::Error) -> &'static str {
    match cause.session() {
        Some(moq_net::SessionError::Unauthorized) => {
            "\nhint: give it the `token` that the relay requires"
        }
        _ => "",
    }
}

/// Why an operation on a connection or a stream failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    /// The connection is gone.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// Writing to a stream failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Reading from a stream failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The datagram cannot be sent.
    #[error(transparent)]
    Datagram(#[from] SendDatagramError),
    /// The stream was reset, because its group is late.
    #[error("the group is late")]
    Late,
    /// The peer has ended its session of WebTransport.
    #[error("closed by peer: {1} (code {0})")]
    Ended(u32, String),
}

impl TransportError {
    fn connection(&self) -> Option<&ConnectionError> {
        match self {
            Self::Connection(error)
            | Self::Write(WriteError::ConnectionLost(error))
            | Self::Read(ReadError::ConnectionLost(error))
            | Self::Datagram(SendDatagramError::ConnectionLost(error)) => Some(error),
            _ => None,
        }
    }
}

impl wt::Error for TransportError {
    fn session_error(&self) -> Option<(u32, String)> {
        if let Self::Ended(code, reason) = self {
            return Some((*code, reason.clone()));
        }
        let ConnectionError::ApplicationClosed(close) = self.connection()? else { return None };
        let code = u32::try_from(close.error_code.into_inner()).ok()?;
        Some((code, String::from_utf8_lossy(&close.reason).into_owned()))
    }

    fn stream_error(&self) -> Option<u32> {
        match self {
            Self::Write(WriteError::Stopped(code)) | Self::Read(ReadError::Reset(code)) => {
                let code = code.into_inner();
                u32::try_from(code).ok().or_else(|| web_transport_proto::error_from_http3(code))
            }
            _ => None,
        }
    }
}
