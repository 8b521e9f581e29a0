//! A small HTTP server for the browser of the same host.

use std::convert::Infallible;
use std::net::Ipv4Addr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::BrowserError;

/// Content that is a page.
pub const HTML: &str = "text/html; charset=utf-8";
/// Content that is a script.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
/// Content that is JSON.
pub const JSON: &str = "application/json";

/// The body of a response.
pub type Body = Full<Bytes>;

/// A port of this host that the browser alone will know, and its number.
///
/// # Errors
/// [`BrowserError::System`].
#[expect(clippy::disallowed_methods, reason = "the one place that opens this socket")]
pub async fn listen() -> Result<(TcpListener, u16), BrowserError> {
    let failed = |cause| BrowserError::system("listening for the browser")(cause);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    Ok((listener, port))
}

/// Serves what `answer` answers until it is dropped.
pub async fn serve<F>(
    listener: TcpListener,
    answer: impl Fn(Request<Incoming>) -> F + Clone + 'static,
) -> Infallible
where
    F: Future<Output = Result<Response<Body>, Infallible>> + 'static,
{
    let mut connections = tokio::task::JoinSet::new();
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let Ok((stream, _)) = accepted else { continue };
                        let service = service_fn(answer.clone());
                        let connection =
                            http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                        connections.spawn_local(async move { drop(connection.await) });
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        })
        .await
}

/// The body of a request; `None` if it has more than `most` bytes, or is cut.
pub async fn read(request: Request<Incoming>, most: usize) -> Option<Bytes> {
    let body = Limited::new(request.into_body(), most).collect().await;
    body.ok().map(|body| body.to_bytes())
}

/// A response with content of that type, which is never kept.
pub fn content(kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A response without content.
pub fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
