//! HTTP to one of this crate's servers: requests become [`Ask`]s, one after the other, and [`Reply`]s are sent.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration as StdDuration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use rustls::ServerConfig;
use suiro_serving::{Limits, desk};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::nmos::{AFTER, Ask, BODY_MAX, CLAIM, Reply};

/// Requests that wait at most; more are refused.
const WAITING_MAX: usize = 256;
/// Connections of one address.
const LIMITS: Limits = Limits::per_address(256);
/// Bytes of replies that are being sent at the same time, to clients that may not read. Beyond it, a reply is a refusal.
const SENDING_MAX: usize = 64 << 20;
/// Requests at a loop with long replies at the same time: a reply counts as being sent only when it has left the loop.
const IN_TURN: usize = 2;
/// How long a request may take to arrive, and to be answered.
const PATIENCE: StdDuration = StdDuration::from_secs(5);

/// A request that waits for its reply.
pub type Waiting = suiro_serving::desk::Waiting<Ask, Reply>;

/// A server that runs next to the loop that answers its requests.
pub struct Serving {
    asked: mpsc::Receiver<Waiting>,
    upgraded: mpsc::Receiver<Upgraded>,
    over: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Begins to serve.
    pub fn begin(listener: TcpListener, tls: Option<Arc<ServerConfig>>) -> Self {
        Self::begin_with(listener, tls, WAITING_MAX)
    }

    /// The same for a loop whose replies can be long, and which answers each request before it takes the next.
    pub fn begin_in_turn(listener: TcpListener, tls: Option<Arc<ServerConfig>>) -> Self {
        Self::begin_with(listener, tls, IN_TURN)
    }

    fn begin_with(listener: TcpListener, tls: Option<Arc<ServerConfig>>, turns: usize) -> Self {
        let (desk, asked) = mpsc::channel(WAITING_MAX);
        let (upgrades, upgraded) = mpsc::channel(WAITING_MAX);
        let (over, ended) = oneshot::channel();
        let desk = Desk::new(desk, upgrades, turns);
        let task = tokio::spawn(run(listener, tls, desk, async { drop(ended.await) }));
        Self { asked, upgraded, over, task }
    }

    /// The next request, or connection that was answered with 101.
    pub async fn either(&mut self) -> Option<Next> {
        tokio::select! {
            waiting = self.asked.recv() => waiting.map(|waiting| Next::Request(Box::new(waiting))),
            Some(upgraded) = self.upgraded.recv() => Some(Next::Upgraded(upgraded)),
        }
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

/// A connection that was answered with 101: the path of the request, and the connection when the answer is sent.
pub struct Upgraded {
    /// The path.
    pub path: String,
    /// The connection.
    pub connection: OnUpgrade,
}

/// What a server has to do next.
pub enum Next {
    /// A request waits for its reply.
    Request(Box<Waiting>),
    /// A connection changes its protocol.
    Upgraded(Upgraded),
}

/// Where requests go. Its clones are the same.
#[derive(Clone)]
struct Desk {
    asks: mpsc::Sender<Waiting>,
    upgrades: mpsc::Sender<Upgraded>,
    sending: Sending,
    /// A place for each request that waits.
    places: Arc<Semaphore>,
    /// A turn for each of them that is at the loop.
    turns: Arc<Semaphore>,
}

impl Desk {
    fn new(asks: mpsc::Sender<Waiting>, upgrades: mpsc::Sender<Upgraded>, turns: usize) -> Self {
        let [places, turns] = [WAITING_MAX, turns].map(|most| Arc::new(Semaphore::new(most)));
        Self { asks, upgrades, sending: Sending::default(), places, turns }
    }

    /// Takes a request to the loop in its turn, and makes a response of the reply. `with` may replace that.
    async fn answer(
        &self,
        ask: Ask,
        head: bool,
        with: impl FnOnce(Reply) -> Reply,
    ) -> Response<Full<Bytes>> {
        let busy = || Reply::refusal(503, "too many requests wait; try again");
        let Ok(_place) = self.places.try_acquire() else {
            return response(busy(), head, &self.sending);
        };
        // Kept until the reply counts.
        let Ok(Ok(_turn)) = tokio::time::timeout(PATIENCE, self.turns.acquire()).await else {
            return response(busy(), head, &self.sending);
        };
        let reply = desk::answered(&self.asks, ask, PATIENCE).await.unwrap_or_else(busy);
        response(with(reply), head, &self.sending)
    }
}

/// Serves until `stop` is ready. Every request goes to `desk`.
async fn run(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    desk: Desk,
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
                    let stream = suiro_serving::tls::accept(acceptor, stream, PATIENCE).await?;
                    Ok((stream, suiro_serving::Speaks::Http1))
                }
            };
            suiro_serving::run_over(listener, LIMITS, nobody, secure, respond, stop).await
        }
    };
    let Ok(()) = served;
}

async fn respond(desk: Desk, mut request: Request<Incoming>) -> Response<Full<Bytes>> {
    let head = request.method() == hyper::Method::HEAD;
    let upgrade = is_upgrade(&request)
        .then(|| (request.uri().path().to_owned(), hyper::upgrade::on(&mut request)));
    let ask = match tokio::time::timeout(PATIENCE, read(request)).await {
        Ok(Ok(ask)) => ask,
        Ok(Err(reply)) => return response(reply, head, &desk.sending),
        Err(_) => {
            let late = Reply::refusal(408, "the body took longer than 5 s");
            return response(late, head, &desk.sending);
        }
    };
    let upgraded = |reply: Reply| match (reply.status, upgrade) {
        (101, Some((path, connection))) => {
            match desk.upgrades.try_send(Upgraded { path, connection }) {
                Ok(()) => reply,
                Err(_) => {
                    Reply::refusal(503, "too many connections change their protocol; try again")
                }
            }
        }
        _ => reply,
    };
    desk.answer(ask, head, upgraded).await
}

/// Whether a request wants a WebSocket of version 13 (RFC 6455 §4.2.1).
fn is_upgrade(request: &Request<Incoming>) -> bool {
    let has = |name: HeaderName, wanted: &str| {
        let value: Option<&HeaderValue> = request.headers().get(name);
        value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(wanted.as_bytes()))
    };
    has(UPGRADE, "websocket") && has(SEC_WEBSOCKET_VERSION, "13")
}

/// How many bytes of replies are being sent. Its clones are the same.
#[derive(Debug, Clone, Default)]
struct Sending(Arc<AtomicUsize>);

/// The body of a reply, which counts until it is sent or dropped.
struct Counted {
    body: String,
    sending: Sending,
}

impl Sending {
    /// Counts a body; `None` if there are too many bytes already.
    fn count(&self, body: String) -> Option<Bytes> {
        let before = self.0.fetch_add(body.len(), Relaxed);
        let counted = Counted { body, sending: self.clone() };
        // A reply alone is sent, however long it is.
        let fits = before == 0 || before.saturating_add(counted.body.len()) <= SENDING_MAX;
        fits.then(|| Bytes::from_owner(counted))
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        self.body.as_bytes()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.sending.0.fetch_sub(self.body.len(), Relaxed);
    }
}

async fn read(request: Request<Incoming>) -> Result<Ask, Reply> {
    let upgrade = is_upgrade(&request);
    let (head, body) = request.into_parts();
    let text = |name: HeaderName| {
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
        upgrade: text(SEC_WEBSOCKET_KEY).filter(|_| upgrade),
        after: text(HeaderName::from_static(AFTER)),
        claim: text(HeaderName::from_static(CLAIM)),
        body: body.to_bytes().to_vec(),
    })
}

fn response(mut reply: Reply, head: bool, sending: &Sending) -> Response<Full<Bytes>> {
    let body = if head { String::new() } else { std::mem::take(&mut reply.body) };
    let body = sending.count(body).unwrap_or_else(|| {
        reply = Reply::refusal(503, "too many clients do not read their replies; try again");
        Bytes::from(std::mem::take(&mut reply.body))
    });
    let mut response = Response::new(Full::new(body));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    // NMOS requires CORS; who may command is the door's to say.
    let open = [
        ("content-type", reply.content_type.to_owned()),
        ("access-control-allow-origin", "*".to_owned()),
        ("access-control-allow-methods", "GET, PUT, POST, PATCH, HEAD, OPTIONS, DELETE".to_owned()),
        ("access-control-allow-headers", "Content-Type, Accept, Authorization".to_owned()),
        (
            "access-control-expose-headers",
            "Link, Location, X-Paging-Limit, X-Paging-Since, X-Paging-Until".to_owned(),
        ),
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

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[test]
    fn replies_that_nobody_reads_are_bounded() {
        let sending = Sending::default();
        let long = || Reply { body: "x".repeat(SENDING_MAX / 4), ..Reply::refusal(200, "") };
        let kept: Vec<_> = (0..4).map(|_| response(long(), false, &sending)).collect();
        assert!(kept.iter().all(|response| response.status() == 200));
        assert_eq!(response(long(), false, &sending).status(), 503);
        assert_eq!(response(long(), true, &sending).status(), 200, "HEAD has no body");
        drop(kept);
        assert_eq!(response(long(), false, &sending).status(), 200);
        assert_eq!(sending.0.load(Relaxed), 0, "what is dropped no longer counts");
    }

    #[tokio::test(start_paused = true)]
    async fn few_replies_are_made_before_they_count() {
        let (asks, mut asked) = mpsc::channel(WAITING_MAX);
        let desk = Desk::new(asks, mpsc::channel(1).0, IN_TURN);
        let mut clients = JoinSet::new();
        for _ in 0..=WAITING_MAX {
            let desk = desk.clone();
            clients.spawn(async move {
                desk.answer(Ask::default(), false, |reply| reply).await.status().as_u16()
            });
        }
        assert_eq!(clients.join_next().await.unwrap().unwrap(), 503, "one more than may wait");
        for _ in 0..WAITING_MAX {
            let Waiting { reply, .. } = asked.recv().await.unwrap();
            assert!(asked.len() < IN_TURN, "{} more are at the loop", asked.len());
            reply.send(Reply::refusal(200, "")).unwrap();
        }
        assert!(clients.join_all().await.iter().all(|status| *status == 200));
    }
}
