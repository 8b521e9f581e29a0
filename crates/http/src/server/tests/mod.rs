//! A server and clients in one process, over loopback: what is sent first, and what hostile ends come to.

mod bounds;
mod codings;
mod conditions;
mod connections;
mod early;
mod hostile;
mod posted;
mod priorities;
mod records;
mod slow;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response};
use rustls::pki_types::ServerName;
use suiro_record::RecordError;
use suiro_scenario::{Download, HttpVersion, QuicCongestion};
use suiro_serving::Limits;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Body, Door, Listening, Posted, Secure};
use crate::player::{Connection, FetchError, Incoming, Transport};
use crate::{Clock, Url};

/// Connections of one address.
const CONNECTIONS: usize = 8;
/// A test that waits for longer has failed.
const BOUND: std::time::Duration = std::time::Duration::from_secs(20);

/// A server, until it is stopped.
struct Served {
    http: HttpVersion,
    port: u16,
    folder: tempfile::TempDir,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), RecordError>>,
}

impl Served {
    fn start<R, F>(http: HttpVersion, respond: R) -> Self
    where
        R: Fn(Request<()>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let folder = tempfile::tempdir().expect("a folder");
        let secure = http.is_secure().then(|| Secure {
            http,
            names: vec!["127.0.0.1".into()],
            certificate: folder.path().join("certificate.der"),
            congestion: QuicCongestion::default(),
        });
        let listening = Listening {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            congestion: None,
            secure: secure.as_ref(),
            records: None,
        };
        let (door, address) = Door::open(&listening, Clock::from_now()).expect("it listens");
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { drop(stopped.await) };
        let respond = move |peer: SocketAddr, mut request: Request<Posted>| {
            let posted = request.body().clone();
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(posted);
            respond(request.map(drop))
        };
        let limits = Limits::per_address(CONNECTIONS);
        let task = tokio::spawn(door.serve(limits, None, respond, stopped));
        Self { http, port: address.port(), folder, stop, task }
    }

    fn url(&self, path: &str) -> Url {
        let scheme = if self.http.is_secure() { "https" } else { "http" };
        let text = format!("{scheme}://127.0.0.1:{}{path}", self.port);
        Url::parse_secure(&text).or_else(|_| Url::parse(&text)).expect("a URL")
    }

    fn client(&self) -> Client {
        let certificate = self.folder.path().join("certificate.der");
        let clock = Clock::from_now();
        let transport = Transport::new(Download::Segment, None, self.http, &certificate, clock);
        Client { transport, home: self.url("/") }
    }

    /// A connection of TLS on which HTTP/2 is to be spoken.
    async fn tls(&self) -> TlsStream<TcpStream> {
        let certificate = self.folder.path().join("certificate.der");
        let tls = suiro_quic::tls::client(&certificate, vec![b"h2".to_vec()]).expect("TLS");
        let stream = crate::net::connect("127.0.0.1", self.port, None).await.expect("it listens");
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        TlsConnector::from(Arc::new(tls)).connect(name, stream).await.expect("TLS")
    }

    /// A connection of HTTP/2 whose responses the test reads, or not; and the task that ends with it.
    async fn http2(&self) -> (h2::client::SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
        let (sender, connection) = h2::client::handshake(self.tls().await).await.expect("HTTP/2");
        (sender, tokio::spawn(connection))
    }

    async fn stop(self) {
        drop(self.stop);
        self.task.await.expect("no panic").expect("no record");
    }
}

/// A client with as many connections as its version of HTTP needs.
#[derive(Clone)]
struct Client {
    transport: Transport,
    home: Url,
}

impl Client {
    async fn connect(&self) -> Result<Connection, FetchError> {
        Ok(self.transport.connect(&self.home, (&self.home, None)).await?.0)
    }

    /// Asks for a path on a connection that others may share.
    async fn ask(
        &self,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<Response<Incoming>, FetchError> {
        let url = self.home.join(path).expect("a path");
        self.connect().await?.send(&url, None, headers).await
    }

    /// The length of what is at a path.
    async fn length(&self, path: &str) -> Result<usize, FetchError> {
        rest(&mut self.ask(path, &[]).await?.into_body()).await
    }
}

/// The bytes of a body up to its end; an error if it was cut off.
async fn rest(body: &mut Incoming) -> Result<usize, FetchError> {
    let mut bytes = 0;
    while let Some((data, _)) = body.data().await? {
        bytes += data.len();
    }
    Ok(bytes)
}

/// Counts what is in progress, and the most at once.
#[derive(Clone, Default)]
struct Load(Arc<[AtomicUsize; 2]>);

/// Something in progress, until it is dropped.
struct Running(Load);

impl Load {
    fn begin(&self) -> Running {
        let now = self.0[0].fetch_add(1, Relaxed) + 1;
        self.0[1].fetch_max(now, Relaxed);
        Running(self.clone())
    }

    fn now(&self) -> usize {
        self.0[0].load(Relaxed)
    }

    fn most(&self) -> usize {
        self.0[1].load(Relaxed)
    }

    /// Waits until so much is in progress, or nothing.
    async fn reach(&self, wanted: usize) {
        let reached = async {
            while self.now() != wanted {
                tokio::task::yield_now().await;
            }
        };
        let reached = tokio::time::timeout(BOUND, reached).await;
        assert!(reached.is_ok(), "{} in progress instead of {wanted}", self.now());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0[0].fetch_sub(1, Relaxed);
    }
}
