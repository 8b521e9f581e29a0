//! HTTP to one of this crate's servers: requests become [`Ask`]s, one after the other, and [`Reply`]s are sent.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::{Request, Response, StatusCode};
use rustls::ServerConfig;
use suiro_serving::{Limits, desk};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::nmos::{Ask, BODY_MAX, Reply};

/// Requests that wait at most; more are refused.
const WAITING_MAX: usize = 256;
/// Connections of one address.
const LIMITS: Limits = Limits::per_address(256);
/// How long a request may take to arrive, and to be answered.
const PATIENCE: StdDuration = StdDuration::from_secs(5);

/// A request that waits for its reply.
pub type Waiting = suiro_serving::desk::Waiting<Ask, Reply>;

/// A server that runs next to the loop that answers its requests.
pub struct Serving {
    asked: mpsc::Receiver<Waiting>,
    over: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Begins to serve.
    pub fn begin(listener: TcpListener, tls: Option<Arc<ServerConfig>>) -> Self {
        let (desk, asked) = mpsc::channel(WAITING_MAX);
        let (over, ended) = oneshot::channel();
        let task = tokio::spawn(run(listener, tls, desk, async { drop(ended.await) }));
        Self { asked, over, task }
    }

    /// The next request; `None` if the server has ended.
    pub async fn next(&mut self) -> Option<Waiting> {
        self.asked.recv().await
    }

    /// Ends it, and waits until its connections are closed.
    pub async fn end(self) {
        drop(self.over);
        drop(self.task.await);
    }
}

/// Serves until `stop` is ready. Every request goes to `desk`.
async fn run(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    desk: mpsc::Sender<Waiting>,
    stop: impl Future<Output = ()>,
) {
    let respond = move |_: SocketAddr, request: Request<Incoming>| respond(desk.clone(), request);
    let nobody: Option<()> = None;
    let served: Result<(), Infallible> = match tls {
        None => suiro_serving::run(listener, LIMITS, nobody, respond, stop).await,
        Some(config) => {
            let acceptor = TlsAcceptor::from(config);
            let secure = move |stream: TcpStream| {
                let acceptor = acceptor.clone();
                async move {
                    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
                    tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await.map_err(late)?
                }
            };
            suiro_serving::run_over(listener, LIMITS, nobody, secure, respond, stop).await
        }
    };
    let Ok(()) = served;
}

async fn respond(desk: mpsc::Sender<Waiting>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let head = request.method() == hyper::Method::HEAD;
    let reply = match tokio::time::timeout(PATIENCE, read(request)).await {
        Ok(Ok(ask)) => forward(&desk, ask).await,
        Ok(Err(reply)) => reply,
        Err(_) => Reply::refusal(408, "the body took longer than 5 s"),
    };
    response(reply, head)
}

async fn forward(desk: &mpsc::Sender<Waiting>, ask: Ask) -> Reply {
    let busy = || Reply::refusal(503, "too many requests wait; try again");
    desk::answered(desk, ask, PATIENCE).await.unwrap_or_else(busy)
}

async fn read(request: Request<Incoming>) -> Result<Ask, Reply> {
    let (head, body) = request.into_parts();
    let text = |name| {
        let value: Option<&HeaderValue> = head.headers.get(name);
        value.and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    // One byte more than is allowed, so that the size has its own refusal.
    let body = Limited::new(body, BODY_MAX + 1).collect().await;
    let body = body.map_err(|error| Reply::refusal(413, format!("reading the body: {error}")))?;
    Ok(Ask {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        content_type: text(CONTENT_TYPE),
        authorization: text(AUTHORIZATION),
        host: text(HOST),
        origin: text(ORIGIN),
        body: body.to_bytes().to_vec(),
    })
}

fn response(reply: Reply, head: bool) -> Response<Full<Bytes>> {
    let body = if head { String::new() } else { reply.body };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    // NMOS requires CORS; who may command is the door's to say.
    let open = [
        ("content-type", reply.content_type.to_owned()),
        ("access-control-allow-origin", "*".to_owned()),
        ("access-control-allow-methods", "GET, PUT, POST, PATCH, HEAD, OPTIONS, DELETE".to_owned()),
        ("access-control-allow-headers", "Content-Type, Accept, Authorization".to_owned()),
        ("access-control-max-age", "3600".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
    ];
    for (name, value) in open.into_iter().chain(reply.headers) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}
