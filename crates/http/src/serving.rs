//! Connections of a server, from the listener to the farewell. What a request means is the caller's.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at the same time; more wait to be accepted.
const CONNECTIONS_MAX: usize = 1024;
/// How long a connection may be idle, or take to send its request: nginx's `keepalive_timeout`.
const IDLE_TIMEOUT: StdDuration = StdDuration::from_secs(75);
/// How long connections may take to finish when the server stops.
const FAREWELL: StdDuration = StdDuration::from_millis(200);
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: StdDuration = StdDuration::from_millis(20);

/// Has `respond` answer every request until `stop` is ready; who is still being served then is cut off.
pub(crate) async fn run<R, F, B>(listener: TcpListener, respond: R, stop: impl Future<Output = ()>)
where
    R: Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let place = places.clone().acquire_owned();
        let accepted = async { (place.await, listener.accept().await) };
        let (place, accepted) = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = accepted => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors, or a connection that is gone already: others may go on.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // A response must not wait for an acknowledgement of the one before (RFC 9293 §3.7.4).
        drop(stream.set_nodelay(true));
        let respond = respond.clone();
        let handler = service_fn(move |request| {
            let response = respond(peer, request);
            async move { Ok::<_, Infallible>(response.await) }
        });
        let connection = server.serve_connection(TokioIo::new(stream), handler);
        connections.spawn(async move {
            drop(connection.await);
            drop(place);
        });
    }
    drop(listener);
    let farewell = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(FAREWELL, farewell).await);
    // Whoever is still being served is cut off, and lets go of what `respond` holds.
    connections.shutdown().await;
}
