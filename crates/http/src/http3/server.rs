//! Serves requests over HTTP/3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h3::error::Code;
use h3::server::RequestStream;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use moq_noq::{Connecting, Connection, Endpoint, PathId};
use suiro_clock::Clock;
use suiro_quic::Samples;
use suiro_record::RecordError;
use suiro_serving::{Addresses, GIVEN_UP_MAX, Limits, Progress, WRITE_TIMEOUT, Witness};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::client::Early;
use super::quic::{Both, Quic};
use super::{EXCESSIVE_LOAD, HEAD_MAX, NO_ERROR};
use crate::flows::{Accepted, Accepting};
use crate::priority::Priority;
use crate::server::{BODY_MAX, Posted, Unread, in_time};

/// How long a handshake, or the head of a request, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is sent at once of a response: so much must be taken from time to time.
const PIECE: usize = 64 << 10;
/// How long connections may take to finish when the server stops.
const FAREWELL: Duration = Duration::from_millis(200);

/// What a server of HTTP/3 works with.
pub(crate) struct Server {
    /// Where clients connect.
    pub endpoint: Endpoint,
    /// The clock of its records.
    pub clock: Clock,
    /// How many connections there may be at the same time; further ones are refused.
    pub limits: Limits,
    /// Who records its connections; `None`: nobody.
    pub witness: Option<Accepting>,
    /// Its table `quic`, if it keeps one.
    pub samples: Option<Samples>,
}

/// Whether the handshake of a connection is done. Clones are the same.
#[derive(Clone, Default)]
struct Handshake(Arc<AtomicBool>);

/// What a connection reports to the server.
enum Event {
    Opened(u64, Connection),
    Closed(u64),
}

impl Server {
    /// Has `respond` answer every request until `stop` is ready; who is still being served then is cut off.
    ///
    /// # Errors
    /// A record could not be written.
    pub async fn run<R, F, B>(
        mut self,
        respond: R,
        stop: impl Future<Output = ()>,
    ) -> Result<(), RecordError>
    where
        R: Fn(SocketAddr, Request<Posted>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: hyper::body::Body<Data = Bytes, Error: Send> + Unpin + Send + 'static,
    {
        let addresses = Addresses::default();
        let (tell, mut events) = mpsc::unbounded_channel();
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        let (mut number, mut look) = (0u64, self.clock.now());
        loop {
            let due = self.samples.as_ref().map(|_| look);
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(event) = events.recv() => self.on_event(event),
                Some(_) = connections.join_next() => {}
                Some(incoming) = self.endpoint.accept() => {
                    let address = incoming.remote_address().ip();
                    let free = connections.len() < self.limits.connections();
                    let counted = free.then(|| self.limits.count(&addresses, address)).flatten();
                    let Some(counted) = counted else {
                        incoming.refuse();
                        continue;
                    };
                    number += 1;
                    let (witness, tell) = (self.witness.clone(), tell.clone());
                    let one = One { number, witness, tell, respond: respond.clone() };
                    connections.spawn(async move {
                        one.serve(incoming).await;
                        drop(counted);
                    });
                }
                () = self.clock.sleep_until_due(due) => {
                    if let Some(samples) = &mut self.samples {
                        samples.look(look)?;
                    }
                    look = self.clock.now() + Samples::EVERY;
                }
            }
        }
        self.close(connections).await
    }

    fn on_event(&mut self, event: Event) {
        let Some(samples) = &mut self.samples else { return };
        match event {
            Event::Opened(number, connection) => samples.opened(number, connection),
            Event::Closed(number) => samples.closed(number),
        }
    }

    async fn close(self, mut connections: JoinSet<()>) -> Result<(), RecordError> {
        let written = self.witness.map_or(Ok(()), Accepting::stopping);
        self.endpoint.close(NO_ERROR.into(), b"the server stops");
        let farewell = async { while connections.join_next().await.is_some() {} };
        drop(tokio::time::timeout(FAREWELL, farewell).await);
        // Whoever is still being served is cut off, and lets go of what `respond` holds.
        connections.shutdown().await;
        drop(tokio::time::timeout(FAREWELL, self.endpoint.wait_idle()).await);
        self.samples.map_or(Ok(()), Samples::close)?;
        written
    }
}

/// One connection.
struct One<R> {
    number: u64,
    witness: Option<Accepting>,
    tell: mpsc::UnboundedSender<Event>,
    respond: R,
}

impl<R, F, B> One<R>
where
    R: Fn(SocketAddr, Request<Posted>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: hyper::body::Body<Data = Bytes, Error: Send> + Unpin + Send + 'static,
{
    async fn serve(self, incoming: moq_noq::Incoming) {
        let peer = incoming.remote_address();
        // A server's connection can be used before the client's end of the handshake.
        let Ok(Ok((connection, done))) = incoming.accept().map(Connecting::into_0rtt) else {
            return;
        };
        let local = connection.path(PathId::ZERO).and_then(|path| path.local_ip().ok().flatten());
        let accept = |witness: &Accepting| Arc::new(witness.accepted_quic(local, peer));
        let seen = self.witness.as_ref().map(accept);
        // Without the server's loop, nobody samples it.
        let _ = self.tell.send(Event::Opened(self.number, connection.clone()));
        let handshake = Handshake::default();
        let established = handshake.clone();
        let establish = async {
            // What it returns means nothing on a server. If the handshake has failed, so have the requests.
            if tokio::time::timeout(PATIENCE, done).await.is_ok() {
                established.0.store(true, Relaxed);
                std::future::pending::<()>().await;
            }
        };
        let progress = Progress::default();
        tokio::select! {
            () = self.requests(connection.clone(), peer, (seen, handshake), &progress) => {}
            () = establish => connection.close(NO_ERROR.into(), b"no handshake"),
            () = progress.stuck(WRITE_TIMEOUT) => {
                connection.close(EXCESSIVE_LOAD.into(), b"nothing of the responses is taken");
            }
        }
        let _ = self.tell.send(Event::Closed(self.number));
    }

    async fn requests(
        &self,
        connection: Connection,
        peer: SocketAddr,
        (seen, handshake): (Option<Arc<Accepted>>, Handshake),
        progress: &Progress,
    ) {
        let mut builder = h3::server::builder();
        builder.max_field_section_size(HEAD_MAX);
        let quic = Quic::new(connection.clone());
        let streams = quic.streams();
        let building = builder.build(quic);
        let Ok(Ok(mut server)) = tokio::time::timeout(PATIENCE, building).await else { return };
        let given_up = Arc::new(AtomicUsize::new(0));
        // Those in progress end with the connection.
        let mut requests = JoinSet::new();
        // An error is the end of the connection.
        while let Ok(Some(resolver)) = server.accept().await {
            while requests.try_join_next().is_some() {}
            let (respond, seen, streams) = (self.respond.clone(), seen.clone(), streams.clone());
            let (connection, given_up) = (connection.clone(), given_up.clone());
            let progress = progress.clone();
            let early = !handshake.0.load(Relaxed);
            requests.spawn(async move {
                let resolving = tokio::time::timeout(PATIENCE, resolver.resolve_request());
                let Ok(Ok((mut request, mut stream))) = resolving.await else {
                    return count_given_up(&connection, &given_up);
                };
                let priority = Priority::read(request.headers()).unwrap_or_default();
                streams.rank(stream.id(), priority.rank(stream.id().index()));
                let refused = streams.refused(stream.id());
                request.extensions_mut().insert(connection.clone());
                if early {
                    request.extensions_mut().insert(Early);
                }
                if let Some(seen) = &seen {
                    seen.asked(request.headers());
                }
                let head = request.method() == Method::HEAD;
                let answering = async {
                    let posted = in_time(request.method(), whole(&mut stream)).await;
                    let response = respond(peer, request.map(|()| posted)).await;
                    let _ = send(stream, response, head, &progress).await;
                };
                // A client that is gone, or has given the request up, needs no answer.
                tokio::select! {
                    () = answering => {
                        let _ = given_up.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1));
                    }
                    () = refused => count_given_up(&connection, &given_up),
                }
            });
        }
        requests.shutdown().await;
    }
}

/// A request was given up before its answer had been sent. Too many of these end the connection (RFC 9114 §10.5).
fn count_given_up(connection: &Connection, given_up: &AtomicUsize) {
    if given_up.fetch_add(1, Relaxed) >= GIVEN_UP_MAX {
        connection.close(EXCESSIVE_LOAD.into(), b"too many requests were given up");
    }
}

/// The body of a request.
async fn whole(stream: &mut RequestStream<Both, Bytes>) -> Posted {
    let mut whole = BytesMut::new();
    while let Some(piece) = stream.recv_data().await.map_err(|_| Unread::Cut)? {
        if piece.remaining() > BODY_MAX - whole.len() {
            return Err(Unread::TooLong);
        }
        whole.put(piece);
    }
    Ok(whole.freeze())
}

/// Sends a response, each piece of its body in DATA frames as soon as it is there. If the body is cut off, the stream is
/// reset.
async fn send<B>(
    mut stream: RequestStream<Both, Bytes>,
    response: Response<B>,
    head: bool,
    progress: &Progress,
) -> Result<(), h3::error::StreamError>
where
    B: hyper::body::Body<Data = Bytes, Error: Send> + Unpin,
{
    let (mut parts, mut body) = response.into_parts();
    // RFC 9110 §8.6: these have no content, and a length of 0 would be that of an object.
    let is_bare = matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if let Some(length) = body.size_hint().exact().filter(|_| !is_bare) {
        parts.headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    stream.send_response(Response::from_parts(parts, ())).await?;
    if !head {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                // The client must not take what came for the whole.
                stream.stop_stream(Code::H3_INTERNAL_ERROR);
                return Ok(());
            };
            let mut data = frame.into_data().unwrap_or_default();
            while !data.is_empty() {
                let piece = data.split_to(data.len().min(PIECE));
                let untaken = progress.given();
                stream.send_data(piece).await?;
                drop(untaken);
            }
        }
    }
    stream.finish().await
}
