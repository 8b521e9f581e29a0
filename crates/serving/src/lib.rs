//! Connections of a server, from the listener to the farewell. What a request means is the caller's.

pub mod bearer;
pub mod desk;
mod places;
mod progress;
pub mod tls;
mod turns;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration as StdDuration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::HeaderMap;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Sleep;

pub use places::GIVEN_UP_MAX;
use places::{Answer, Places};
pub use progress::Progress;
pub use turns::{Number, Rank};
use turns::{Turn, Turned, Turns};

/// Connections at the same time. For a further one, a connection without a request in progress is closed, strangers
/// first; if there is none, it waits.
pub const CONNECTIONS_MAX: usize = 1024;

/// How many connections a server has at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// In all.
    connections: usize,
    /// Of one address; further ones are closed at once.
    per_address: usize,
    /// Whether requests bring their [`Socket`].
    sockets: bool,
}

impl Limits {
    /// [`CONNECTIONS_MAX`] in all.
    pub const fn per_address(per_address: usize) -> Self {
        Self { connections: CONNECTIONS_MAX, per_address, sockets: false }
    }

    /// Connections at the same time, of all addresses.
    pub const fn connections(&self) -> usize {
        self.connections
    }

    /// Counts one more connection of an address, until what is returned is dropped; `None` if it has as many as it may have.
    pub fn count(&self, addresses: &Addresses, address: IpAddr) -> Option<Counted> {
        addresses.count(address, self.per_address)
    }

    /// The same, and each request has the [`Socket`] that it came on among its extensions.
    #[must_use]
    pub const fn with_sockets(self) -> Self {
        Self { sockets: true, ..self }
    }
}

/// The socket of a connection, to be asked how it does. Its clones are the same.
#[derive(Debug, Clone)]
pub struct Socket(Arc<OwnedFd>);

impl Socket {
    fn of(stream: &TcpStream) -> Option<Self> {
        let own = stream.as_fd().try_clone_to_owned().ok()?;
        Some(Self(Arc::new(own)))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// How long what is sent may wait for a client that does not read: nginx's `send_timeout`. Over HTTP/2 and HTTP/3, where a client
/// reads what it likes of a connection, one ends on which nothing is taken for one to two times as long.
pub const WRITE_TIMEOUT: StdDuration = StdDuration::from_secs(60);
/// How long a connection may be idle, or take to send its request: nginx's `keepalive_timeout`; over HTTP/2 up to twice as long.
const IDLE_TIMEOUT: StdDuration = StdDuration::from_secs(75);
/// How long connections may take to finish when the server stops.
const FAREWELL: StdDuration = StdDuration::from_millis(200);
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: StdDuration = StdDuration::from_millis(20);

/// Requests that a client may have in progress on one connection of HTTP/2.
const STREAMS_MAX: u32 = 128;
/// Bytes of a response that HTTP/2 takes before they are sent. What it has taken cannot give way to a more urgent response.
const SEND_BUFFER: usize = 32 << 10;
/// How often a silent client of HTTP/2 is asked whether it is there, and how long it may take to answer.
const PING: (StdDuration, StdDuration) = (StdDuration::from_secs(30), StdDuration::from_secs(20));

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 (RFC 9113).
    Http2,
}

/// Who hears of a server's connections. Its clones are the same.
pub trait Witness: Clone + Send + Sync + 'static {
    /// One connection; when it is dropped, the connection is closed.
    type Seen: Send + Sync + 'static;
    /// Why it has not kept what it heard.
    type Error;

    /// A connection was accepted; `local` is this end.
    fn accepted(&self, local: Option<SocketAddr>, remote: SocketAddr) -> Self::Seen;

    /// A request came on it.
    fn asked(seen: &Self::Seen, headers: &HeaderMap);

    /// The server stops: whoever is still connected is cut off, and not heard of.
    ///
    /// # Errors
    /// What it heard could not be kept.
    fn stopping(self) -> Result<(), Self::Error>;
}

/// Nobody, for servers whose connections are recorded elsewhere.
impl Witness for () {
    type Seen = ();
    type Error = Infallible;

    fn accepted(&self, _: Option<SocketAddr>, _: SocketAddr) {}

    fn asked((): &(), _: &HeaderMap) {}

    fn stopping(self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Has `respond` answer every request until `stop` is ready; who is still being served then is cut off.
/// `witness` hears of its connections until `stop` is ready. A body that ends with an error is cut off: HTTP/1.1 closes
/// the connection (RFC 9112 §8), HTTP/2 resets the stream.
///
/// # Errors
/// What the witness says at the end.
pub async fn run<W, R, F, B>(
    listener: TcpListener,
    limits: Limits,
    witness: Option<W>,
    respond: R,
    stop: impl Future<Output = ()>,
) -> Result<(), W::Error>
where
    W: Witness,
    R: Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let plain = |stream| async { Ok((stream, Speaks::Http1)) };
    run_over(listener, limits, witness, plain, respond, stop).await
}

/// The same over what `secure` makes of each connection, such as TLS, and what was agreed to be spoken on it. A connection
/// of which it makes nothing is closed.
///
/// # Errors
/// What the witness says at the end.
pub async fn run_over<W, T, G, S, R, F, B>(
    listener: TcpListener,
    limits: Limits,
    witness: Option<W>,
    secure: T,
    respond: R,
    stop: impl Future<Output = ()>,
) -> Result<(), W::Error>
where
    W: Witness,
    T: Fn(TcpStream) -> G + Clone + Send + 'static,
    G: Future<Output = io::Result<(S, Speaks)>> + Send,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let streams = Streams::default();
    let (server, server2) = (over_http1(), over_http2(&streams));
    let places = Places::default();
    let addresses = Addresses::default();
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors, or a connection that is gone already: others may go on.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(counted) = limits.count(&addresses, peer.ip()) else { continue };
        tokio::select! {
            () = &mut stop => break,
            () = make_room(&mut connections, limits.connections, &places) => {}
        }
        // A response must not wait for an acknowledgement of the one before (RFC 9293 §3.7.4).
        drop(stream.set_nodelay(true));
        let respond = respond.clone();
        let accept = |witness: &W| Arc::new(witness.accepted(stream.local_addr().ok(), peer));
        let accepted = witness.as_ref().map(accept);
        let (seen, place) = (accepted.clone(), places.take());
        let (asking, turns) = (Arc::clone(&place), Turns::default());
        let progress = turns.progress();
        let socket = limits.sockets.then(|| Socket::of(&stream)).flatten();
        let handler = service_fn(move |mut request: Request<Incoming>| {
            if let Some(socket) = &socket {
                request.extensions_mut().insert(socket.clone());
            }
            if let Some(seen) = &seen {
                W::asked(seen, request.headers());
            }
            let asked = asking.asked(request.method() == hyper::Method::HEAD);
            let turn = turns.next(&mut request);
            let response = respond(peer, request);
            async move { Ok::<_, Infallible>(answer(response.await, turn, asked)) }
        });
        let (server, server2) = (server.clone(), server2.clone());
        let (secure, kept) = (secure.clone(), Arc::clone(&place));
        let task = connections.spawn(async move {
            if let Ok((stream, speaks)) = secure(stream).await {
                let stream = TokioIo::new(Impatient::new(stream, WRITE_TIMEOUT));
                match speaks {
                    // Whoever answers with 101 has the connection from then on, and bounds those.
                    Speaks::Http1 => {
                        drop(server.serve_connection(stream, handler).with_upgrades().await);
                    }
                    Speaks::Http2 => {
                        let served = std::pin::pin!(server2.serve_connection(stream, handler));
                        while_used(served, |served| served.graceful_shutdown(), &progress).await;
                    }
                }
            }
            drop((kept, counted, accepted));
        });
        place.served_by(task);
    }
    drop(listener);
    let written = witness.map_or(Ok(()), W::stopping);
    let farewell = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(FAREWELL, farewell).await);
    // Whoever is still being served is cut off, and lets go of what `respond` holds.
    connections.shutdown().await;
    streams.end().await;
    written
}

/// Serves a connection of HTTP/2 until it ends, its client takes nothing, or it is idle. An idle one ends with `farewell`, GOAWAY,
/// so that its client knows whether a request that crosses it was taken (RFC 9113 §9.1).
async fn while_used<C: Future>(
    mut served: Pin<&mut C>,
    farewell: fn(Pin<&mut C>),
    progress: &Progress,
) {
    tokio::select! {
        served = &mut served => drop(served),
        () = progress.stuck(WRITE_TIMEOUT) => {}
        () = progress.idle(IDLE_TIMEOUT) => {
            farewell(served.as_mut());
            drop(tokio::time::timeout(PING.1, served).await);
        }
    }
}

/// An answer that keeps its request in progress, and is sent when its turn comes.
fn answer<B: Body<Data = Bytes> + Unpin>(
    response: Response<B>,
    turn: Option<Turn>,
    asked: places::Request,
) -> Response<Answer<Turned<B>>> {
    let (mut head, body) = response.into_parts();
    let body = Turned::new(body, turn, head.extensions.remove());
    let body = asked.answered(head.status.is_success(), body);
    Response::from_parts(head, body)
}

/// How connections of HTTP/1.1 are served.
fn over_http1() -> http1::Builder {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT);
    server
}

/// How connections of HTTP/2 are served; their requests run as `streams`.
fn over_http2(streams: &Streams) -> http2::Builder<Streams> {
    let mut server = http2::Builder::new(streams.clone());
    server
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1);
    server
}

/// The requests in progress of all connections of HTTP/2. Each ends with its connection, or before.
#[derive(Debug, Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl Streams {
    /// Cuts off those that are left.
    async fn end(&self) {
        let mut left = std::mem::take(&mut *self.0.lock().expect("no holder panics"));
        left.shutdown().await;
    }
}

impl<F: Future + Send + 'static> Executor<F> for Streams {
    fn execute(&self, request: F) {
        let mut streams = self.0.lock().expect("no holder panics");
        while streams.try_join_next().is_some() {}
        streams.spawn(async move { drop(request.await) });
    }
}

/// Returns when there is a place for another connection.
async fn make_room(connections: &mut JoinSet<()>, most: usize, places: &Places) {
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() < most {
            return;
        }
        places.evict();
        tokio::select! {
            _ = connections.join_next() => {}
            () = places.idle() => {}
        }
    }
}

/// How many connections each address has. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Addresses(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// One of an address's connections, until it is dropped.
#[derive(Debug)]
pub struct Counted {
    addresses: Addresses,
    address: IpAddr,
}

impl Addresses {
    /// Counts one more connection; `None` if the address has `most` already.
    fn count(&self, address: IpAddr, most: usize) -> Option<Counted> {
        // An IPv4 address is the same one on a socket for both.
        let address = address.to_canonical();
        let mut counts = self.lock();
        let count = counts.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Counted { addresses: self.clone(), address })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.0.lock().expect("no holder panics")
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.addresses.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// A connection that fails with [`io::ErrorKind::TimedOut`] if nothing that it sends is taken for a
/// while: a client that asks and does not read must not keep its place for ever.
struct Impatient<S> {
    stream: S,
    within: StdDuration,
    /// Runs from the moment in which the stream took no more.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Impatient<S> {
    fn new(stream: S, within: StdDuration) -> Self {
        Self { stream, within, stuck: None }
    }

    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match poll(Pin::new(&mut self.stream), context) {
            Poll::Ready(done) => {
                self.stuck = None;
                Poll::Ready(done)
            }
            Poll::Pending => {
                let within = self.within;
                let sleep = || Box::pin(tokio::time::sleep(within));
                ready!(self.stuck.get_or_insert_with(sleep).as_mut().poll(context));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().watch(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().watch(context, |stream, context| stream.poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().watch(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().watch(context, |stream, context| stream.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_is_given_up_and_a_slow_one_is_not() {
        let minute = StdDuration::from_secs(60);
        let (stream, client) = tokio::io::duplex(1000);
        let error = Impatient::new(stream, minute).write_all(&[0; 2000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);

        let (stream, mut client) = tokio::io::duplex(1000);
        let reader = async {
            let mut taken = vec![0; 1000];
            for _ in 0..5 {
                tokio::time::sleep(minute - StdDuration::from_secs(1)).await;
                client.read_exact(&mut taken).await.unwrap();
            }
        };
        let mut stream = Impatient::new(stream, minute);
        let (written, ()) = tokio::join!(stream.write_all(&[0; 5000]), reader);
        written.unwrap();
    }

    /// Asks on `stream`, and returns the status that comes.
    async fn ask(stream: &mut TcpStream, path: &str) -> io::Result<String> {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        Ok(String::from_utf8_lossy(&head)[9..12].to_owned())
    }

    #[expect(clippy::disallowed_methods, reason = "a server's test connects to it")]
    #[tokio::test]
    async fn silent_strangers_give_way_then_refused_ones_then_whoever_is_idle_longest() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, mut waiting) = tokio::sync::mpsc::unbounded_channel();
        let respond = move |_, request: Request<Incoming>| {
            let asked = asked.clone();
            async move {
                let (status, slow) = match request.uri().path() {
                    "/refused" => (401, false),
                    path => (200, path == "/slow"),
                };
                if slow {
                    let (done, end) = tokio::sync::oneshot::channel::<()>();
                    asked.send(done).unwrap();
                    drop(end.await);
                }
                let body = http_body_util::Empty::<Bytes>::new();
                Response::builder().status(status).body(body).unwrap()
            }
        };
        let (over, ended) = tokio::sync::oneshot::channel::<()>();
        let limits = Limits { connections: 4, per_address: 100, sockets: false };
        let plain = |stream| async { Ok((stream, Speaks::Http1)) };
        let nobody: Option<()> = None;
        let stop = async { drop(ended.await) };
        let server = tokio::spawn(run_over(listener, limits, nobody, plain, respond, stop));
        let connect = || TcpStream::connect(address);

        let (mut first, mut second) = (connect().await.unwrap(), connect().await.unwrap());
        let (mut refused, mut slow) = (connect().await.unwrap(), connect().await.unwrap());
        assert_eq!(ask(&mut first, "/").await.unwrap(), "200");
        assert_eq!(ask(&mut refused, "/refused").await.unwrap(), "401");
        let asking = tokio::spawn(async move { (ask(&mut slow, "/slow").await, slow) });
        let done = waiting.recv().await.unwrap();
        // All places are taken: `second` has never asked.
        let mut third = connect().await.unwrap();
        assert_eq!(ask(&mut third, "/").await.unwrap(), "200");
        assert!(ask(&mut second, "/").await.is_err(), "a silent stranger gives way first");
        let mut fourth = connect().await.unwrap();
        assert_eq!(ask(&mut fourth, "/").await.unwrap(), "200");
        assert!(ask(&mut refused, "/").await.is_err(), "then one that was refused");
        assert_eq!(ask(&mut first, "/").await.unwrap(), "200");
        let mut fifth = connect().await.unwrap();
        assert_eq!(ask(&mut fifth, "/").await.unwrap(), "200");
        assert!(ask(&mut third, "/").await.is_err(), "then the one that was idle longest");
        drop(done);
        let (status, slow) = asking.await.unwrap();
        assert_eq!(status.unwrap(), "200", "a request in progress is never cut off");
        drop((over, first, fourth, fifth, slow));
        server.await.unwrap().unwrap();
    }

    #[test]
    fn an_address_has_so_many_connections_and_gets_new_ones_for_old() {
        let addresses = Addresses::default();
        let [one, mapped, other] =
            ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        let first = addresses.count(one, 2).unwrap();
        let _second = addresses.count(mapped, 2).unwrap();
        assert!(addresses.count(one, 2).is_none() && addresses.count(mapped, 2).is_none());
        let theirs = addresses.count(other, 2);
        assert!(theirs.is_some());
        drop((first, theirs));
        assert!(addresses.count(one, 2).is_some());
        assert_eq!(addresses.lock().len(), 1, "nothing is kept of an address without connections");
    }
}
