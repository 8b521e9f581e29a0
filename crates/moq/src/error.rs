//! Why an endpoint ends.

use suiro_media::live::LiveError;
use suiro_realtime::{FeedError, LogError};
use suiro_record::RecordError;

use crate::catalog::CatalogError;
use crate::net::NetError;
use crate::tls::TlsError;

/// Why an endpoint of Media over QUIC does not run.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No socket, or no connection.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The host is not known.
    #[error(transparent)]
    Host(#[from] suiro_endpoint::net::NetError),
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
