//! Bodies of requests: those of POST are read, up to a bound, before the request is answered.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Collected, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request};

/// The longest body, in bytes.
pub(crate) const BODY_MAX: usize = 64 << 10;
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The body of a request. Of another method than POST it is not read, and empty.
pub(crate) type Posted = Result<Bytes, Unread>;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is longer than [`BODY_MAX`].
    TooLong,
    /// It has not come in time.
    Late,
    /// It was cut off.
    Cut,
}

/// The body of a request with this method, as `whole` reads it, unless that takes longer than [`PATIENCE`].
pub(crate) async fn in_time(method: &Method, whole: impl Future<Output = Posted>) -> Posted {
    if *method != Method::POST {
        return Ok(Bytes::new());
    }
    tokio::time::timeout(PATIENCE, whole).await.unwrap_or(Err(Unread::Late))
}

/// The request, with its body once that has come.
pub(super) async fn posted(request: Request<Incoming>) -> Request<Posted> {
    let (head, body) = request.into_parts();
    let whole = async {
        let whole = Limited::new(body, BODY_MAX).collect().await;
        let unread = |error: Box<dyn Error + Send + Sync>| {
            if error.is::<LengthLimitError>() { Unread::TooLong } else { Unread::Cut }
        };
        whole.map(Collected::to_bytes).map_err(unread)
    };
    let posted = in_time(&head.method, whole).await;
    Request::from_parts(head, posted)
}
