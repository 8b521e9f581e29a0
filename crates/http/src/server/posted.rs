//! Bodies of requests: those of POST are read, up to a bound, before the request is answered.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
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

/// The request, with its body once that has come.
pub(super) async fn posted(request: Request<Incoming>) -> Request<Posted> {
    let (head, body) = request.into_parts();
    let posted = match head.method {
        Method::POST => {
            let whole = tokio::time::timeout(PATIENCE, Limited::new(body, BODY_MAX).collect());
            match whole.await {
                Ok(Ok(whole)) => Ok(whole.to_bytes()),
                Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Unread::TooLong),
                Ok(Err(_)) => Err(Unread::Cut),
                Err(_) => Err(Unread::Late),
            }
        }
        _ => Ok(Bytes::new()),
    };
    Request::from_parts(head, posted)
}
