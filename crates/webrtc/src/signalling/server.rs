//! The server's side: requests are handed to the endpoint's loop, which owns the sessions.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration as StdDuration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, IF_MATCH};
use hyper::{Request, Response, StatusCode};
use suiro_serving::{Limits, desk};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::door::{Ask, DESCRIPTION_MAX, Reply};
use crate::net::{self, NetError};

/// Requests that wait for the endpoint's loop at most; more are refused.
pub const WAITING_MAX: usize = 64;
/// Connections of one address.
const LIMITS: Limits = Limits::per_address(64);
/// How long a request may take to arrive, and the loop to answer it.
const PATIENCE: StdDuration = StdDuration::from_secs(5);

/// A request that waits for its reply.
pub type Waiting = suiro_serving::desk::Waiting<Ask, Reply>;

/// Serves at this port, of this address or of all, for as long as the program runs. Every request goes to `desk`.
pub async fn open(
    address: Option<IpAddr>,
    port: u16,
    desk: mpsc::Sender<Waiting>,
) -> Result<JoinHandle<()>, NetError> {
    let everywhere = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let listener = net::listen(address.unwrap_or(everywhere), port).await?;
    Ok(tokio::spawn(run(listener, desk, std::future::pending())))
}

/// Serves until `stop` is ready. Every request goes to `desk`.
pub async fn run(
    listener: TcpListener,
    desk: mpsc::Sender<Waiting>,
    stop: impl Future<Output = ()>,
) {
    let respond = move |_: SocketAddr, request: Request<Incoming>| respond(desk.clone(), request);
    let nobody: Option<()> = None;
    let Ok(()) = suiro_serving::run(listener, LIMITS, nobody, respond, stop).await;
}

async fn respond(desk: mpsc::Sender<Waiting>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let reply = match tokio::time::timeout(PATIENCE, read(request)).await {
        Ok(Ok(ask)) => forward(&desk, ask).await,
        Ok(Err(reply)) => reply,
        Err(_) => Reply::problem(408, "request timeout", "the body took longer than 5 s"),
    };
    response(reply)
}

async fn forward(desk: &mpsc::Sender<Waiting>, ask: Ask) -> Reply {
    let busy = || Reply::problem(503, "busy", "too many requests wait; try again");
    desk::answered(desk, ask, PATIENCE).await.unwrap_or_else(busy)
}

async fn read(request: Request<Incoming>) -> Result<Ask, Reply> {
    let (head, body) = request.into_parts();
    let text = |name| {
        let value: Option<&HeaderValue> = head.headers.get(name);
        value.and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    // One byte more than is allowed, so that too large a body gets an error of its own.
    let body = Limited::new(body, DESCRIPTION_MAX + 1).collect().await;
    let body = body.map_err(|error| {
        Reply::problem(413, "content too large", &format!("reading the body: {error}"))
    })?;
    let body = String::from_utf8(body.to_bytes().to_vec())
        .map_err(|_| Reply::problem(400, "malformed body", "expected text in UTF-8"))?;
    Ok(Ask {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        content_type: text(CONTENT_TYPE),
        authorization: text(AUTHORIZATION),
        if_match: text(IF_MATCH),
        body,
    })
}

fn response(reply: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    // A page of any origin may play: who may is the token's to say (RFC 9725 §4.1).
    let open = [
        ("access-control-allow-origin", "*".to_owned()),
        ("access-control-expose-headers", "location, etag, accept-patch".to_owned()),
        ("cache-control", "no-store".to_owned()),
    ];
    for (name, value) in reply.headers.into_iter().chain(open) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}
