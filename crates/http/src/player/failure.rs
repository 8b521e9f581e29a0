//! Why a request of a player brought nothing, and the bounds on what it waits for.

use std::error::Error;
use std::io;

use suiro_units::Duration;

use crate::coding::CodingError;
use crate::http3::client::Http3Error;
use crate::url::UrlError;

/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for the response, and then for each further piece of it: hls.js's
/// `maxTimeToFirstByteMs`.
pub const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a whole response may take: hls.js's `maxLoadTimeMs` for segments.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(120);
/// Redirects that are followed for one request.
pub const REDIRECTS: u32 = 5;

/// Why a request brought nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("connecting: {0}")]
    Connect(io::Error),
    #[error("connecting took longer than {CONNECT_TIMEOUT}")]
    ConnectTimeout,
    #[error("nothing came for {PROGRESS_TIMEOUT}")]
    ProgressTimeout,
    #[error("the response took longer than {TOTAL_TIMEOUT}")]
    TotalTimeout,
    #[error("http: {}", crate::net::causes(.0))]
    Http(hyper::Error),
    #[error(transparent)]
    Http3(#[from] Http3Error),
    #[error(transparent)]
    Certificate(#[from] suiro_quic::tls::TlsError),
    #[error("the server does not speak HTTP/2")]
    NoHttp2,
    #[error("status {0}")]
    Status(u16),
    #[error("{came} bytes came of {length}")]
    Cut { came: u64, length: u64 },
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
    #[error("the server ignored the range")]
    RangeIgnored,
    #[error("more than {REDIRECTS} redirects")]
    Redirects,
    #[error("redirect: {0}")]
    Redirect(UrlError),
    #[error("{0}")]
    Media(String),
    #[error(transparent)]
    Coding(#[from] CodingError),
    #[error("a redirect without a location")]
    NoLocation,
    #[error("{0}")]
    Near(UrlError),
}

impl FetchError {
    /// True if the connection is in order all the same.
    pub fn is_of_request(&self) -> bool {
        match self {
            Self::Status(_) | Self::Cut { .. } | Self::Http3(Http3Error::Stream(_)) => true,
            // The body has been read to its end.
            Self::Coding(CodingError::Gzip(_) | CodingError::TooLarge(_)) => true,
            Self::Http(error) => is_reset(error),
            _ => false,
        }
    }
}

/// RFC 9113 §5.4.2: an error of one stream of HTTP/2 leaves the others alone.
fn is_reset(error: &hyper::Error) -> bool {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.any(|cause| cause.downcast_ref().is_some_and(h2::Error::is_reset))
}

/// RFC 9113 §8.1.1, RFC 9114 §4.1.2: a body that ends before the length that its head promised is malformed. Over HTTP/1.1, hyper
/// reports that itself.
pub(crate) fn whole(came: u64, length: Option<u64>) -> Result<(), FetchError> {
    match length.filter(|length| *length != came) {
        Some(length) => Err(FetchError::Cut { came, length }),
        None => Ok(()),
    }
}

impl From<hyper::Error> for FetchError {
    fn from(cause: hyper::Error) -> Self {
        Self::Http(cause)
    }
}
