//! The connections of a player. Over HTTP/1.1 each lane has one, on which requests follow one another; over HTTP/2 and
//! HTTP/3 all lanes share one, and a request that is given up ends alone.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Body;
use hyper::client::conn::{http1, http2};
use hyper::header::{HOST, HeaderName, HeaderValue, RANGE, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use suiro_quic::tls;
use suiro_record::Text;
use suiro_record::words::Carries;
use suiro_scenario::{Download, HttpVersion};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::failure::{CONNECT_TIMEOUT, FetchError};
use super::meter::{Bursts, Came, Meter, Metered, Received};
use crate::Clock;
use crate::flows::{Connected, Flows, OWN_AGENT};
use crate::http3::{self, client};
use crate::net::{self, ConnectError};
use crate::url::Url;

/// Buffer of a connection for what is received, in bytes: room for many segments of TCP at once,
/// small enough that a thousand players fit in memory.
const READ_BUFFER_BYTES: usize = 256 << 10;
/// The same where the body is read only as the buffer has room for it.
const READ_BLOCK_BYTES: usize = 32 << 10;
/// What a server of HTTP/2 may send of a response before it is read: as h2 has it, enough for 160 Mbit/s at 100 ms.
const WINDOW_BYTES: u32 = 2 << 20;
/// The same of all responses together.
const WINDOWS_BYTES: u32 = 5 << 20;
/// The ALPN name of HTTP/2.
const HTTP2: &[u8] = b"h2";

/// Where connections are recorded.
#[derive(Clone)]
pub(crate) struct Recorded {
    pub flows: Flows,
    /// The name of the endpoint that serves the media, if it is one.
    pub server: Option<Text>,
}

/// How connections are made and read. Its clones share the connection of HTTP/2 or HTTP/3.
#[derive(Clone)]
pub(crate) struct Transport {
    download: Download,
    receive_buffer: Option<suiro_units::Bytes>,
    http: HttpVersion,
    certificate: Arc<Path>,
    clock: Clock,
    shared: Arc<Mutex<Shared>>,
    received: Received,
    early: bool,
    /// The server has refused early data: the next connection sends none.
    refused: Arc<AtomicBool>,
    /// TLS of HTTP/3, with what servers gave for further connections; `None` before the first.
    tls: Arc<std::sync::Mutex<Option<rustls::ClientConfig>>>,
}

/// The connection of HTTP/2 or HTTP/3 that everybody uses.
#[derive(Default)]
struct Shared {
    /// How many there were so far.
    count: u64,
    /// The server, and the last of them; `None` if the next request needs another.
    open: Option<(String, Many)>,
}

impl Transport {
    /// Connections of that version of HTTP, to a server that left its certificate in that file; `receive_buffer` is the
    /// kernel's for what is received, `None`: as the kernel sees fit.
    pub fn new(
        download: Download,
        receive_buffer: Option<suiro_units::Bytes>,
        http: HttpVersion,
        certificate: &Path,
        clock: Clock,
    ) -> Self {
        let (certificate, shared) = (certificate.into(), Arc::default());
        let received = Received::default();
        let (early, refused, tls) = (false, Arc::default(), Arc::default());
        Self {
            download,
            receive_buffer,
            http,
            certificate,
            clock,
            shared,
            received,
            early,
            refused,
            tls,
        }
    }

    /// The same, with requests in the first packets of a further connection of HTTP/3 (0-RTT, RFC 9001 §4.6).
    pub fn with_early_data(self) -> Self {
        Self { early: true, ..self }
    }

    /// The server has refused early data, as one that was started anew: other tickets of before are worth as little.
    pub fn refused_early(&self) {
        self.refused.store(true, Relaxed);
    }

    /// TLS of HTTP/3. A session of one connection is resumed by the next.
    fn tls(&self) -> Result<rustls::ClientConfig, FetchError> {
        let mut kept = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = match kept.take() {
            Some(config) => config,
            None => tls::client(&self.certificate, vec![http3::ALPN.to_vec()])?,
        };
        config.enable_early_data = self.early && !self.refused.swap(false, Relaxed);
        Ok(kept.insert(config).clone())
    }

    /// Bytes of a body were received; returns how many were so far, of all connections. Over TCP they are counted at the
    /// sockets, with the heads of responses; over QUIC those of bodies are.
    pub fn received(&self, body_bytes: u64) -> u64 {
        if self.http == HttpVersion::Http3 {
            self.received.add(body_bytes);
        }
        self.received.bytes()
    }

    const fn read_buffer(&self) -> usize {
        match self.download {
            Download::Segment => READ_BUFFER_BYTES,
            Download::Stream => READ_BLOCK_BYTES,
        }
    }

    /// A connection to the server of `url`, and whether it was open before.
    pub async fn connect(
        &self,
        url: &Url,
        (home, recorded): (&Url, Option<&Recorded>),
    ) -> Result<(Connection, bool), FetchError> {
        let opening = Opening { transport: self, url, home, recorded };
        let late = |_| FetchError::ConnectTimeout;
        if self.http == HttpVersion::Http1 {
            let opened = timeout(CONNECT_TIMEOUT.into(), opening.http1()).await.map_err(late)??;
            let (sender, meter) = opened;
            return Ok((Connection::One(sender, meter), false));
        }
        // Other lanes wait meanwhile, and take the connection that this one opens.
        let mut shared = self.shared.lock().await;
        let authority = url.authority();
        let open = shared.open.as_ref();
        if let Some((_, open)) = open.filter(|(at, open)| *at == authority && !open.is_closed()) {
            return Ok((Connection::Many(open.clone(), shared.count), true));
        }
        shared.open = None;
        let opened = timeout(CONNECT_TIMEOUT.into(), async {
            match self.http {
                HttpVersion::Http3 => opening.http3().await.map(Many::Three),
                _ => opening.http2().await.map(|(sender, meter)| Many::Two(sender, meter)),
            }
        });
        let opened = opened.await.map_err(late)??;
        shared.count += 1;
        shared.open = Some((authority, opened.clone()));
        Ok((Connection::Many(opened, shared.count), false))
    }

    /// Lets go of a connection that may not be in order, unless another has already taken its place. Requests that are in
    /// progress on it go on.
    pub async fn forget(&self, connection: &Connection) {
        let Connection::Many(_, number) = connection else { return };
        let mut shared = self.shared.lock().await;
        if shared.count == *number {
            shared.open = None;
        }
    }
}

/// A connection that is being opened.
struct Opening<'a> {
    transport: &'a Transport,
    url: &'a Url,
    home: &'a Url,
    recorded: Option<&'a Recorded>,
}

impl Opening<'_> {
    async fn tcp(&self) -> Result<(tokio::net::TcpStream, Option<Connected>), FetchError> {
        let connecting = net::connect_from(self.home, self.url, self.transport.receive_buffer);
        let stream = connecting.await.map_err(refused)?;
        let flow = self.recorded.and_then(|recorded| {
            recorded.flows.connected(&stream, Carries::HttpMedia, self.peer(recorded))
        });
        Ok((stream, flow))
    }

    /// The endpoint at the other end, if it is the one that the user named.
    fn peer(&self, recorded: &Recorded) -> Option<Text> {
        recorded.server.clone().filter(|_| self.url.authority() == self.home.authority())
    }

    async fn http1(&self) -> Result<(http1::SendRequest<Empty<Bytes>>, Meter), FetchError> {
        let (stream, flow) = self.tcp().await?;
        let meter = Meter::default();
        let received = self.transport.received.clone();
        let stream = Metered::new(stream, self.transport.clock, meter.clone(), received);
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.transport.read_buffer())
            .handshake(TokioIo::new(stream))
            .await?;
        // It ends when the sender is dropped; its error reaches us through the request.
        tokio::spawn(async move {
            drop(connection.await);
            drop(flow);
        });
        Ok((sender, meter))
    }

    async fn http2(&self) -> Result<(http2::SendRequest<Empty<Bytes>>, Meter), FetchError> {
        let config = tls::client(&self.transport.certificate, vec![HTTP2.to_vec()])?;
        let (stream, flow) = self.tcp().await?;
        let name = ServerName::try_from(self.url.host().to_owned());
        let name = name.map_err(|error| FetchError::Connect(std::io::Error::other(error)))?;
        let meter = Meter::default();
        let received = self.transport.received.clone();
        let stream = Metered::new(stream, self.transport.clock, meter.clone(), received);
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.map_err(FetchError::Connect)?;
        if stream.get_ref().1.alpn_protocol() != Some(HTTP2) {
            return Err(FetchError::NoHttp2);
        }
        let (one, all) = match self.transport.download {
            Download::Segment => (WINDOW_BYTES, WINDOWS_BYTES),
            Download::Stream => (2 * READ_BLOCK_BYTES as u32, WINDOWS_BYTES),
        };
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(one)
            .initial_connection_window_size(all)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(async move {
            drop(connection.await);
            drop(flow);
        });
        Ok((sender, meter))
    }

    async fn http3(&self) -> Result<client::Sender, FetchError> {
        let config = self.transport.tls()?;
        let (host, port) = (self.url.host(), self.url.port());
        let addresses = net::resolve(host, port).await.map_err(FetchError::Connect)?;
        net::allow(self.home, self.url, &addresses).await.map_err(refused)?;
        let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
        let to = *addresses.first().ok_or_else(none).map_err(FetchError::Connect)?;
        let (closed, over) = tokio::sync::oneshot::channel::<()>();
        let behaviour = http3::behaviour();
        let hold = move || drop(closed);
        let sender = client::Sender::connect(to, host, config, &behaviour, hold).await?;
        let flow = self.recorded.zip(sender.ends()).and_then(|(recorded, ends)| {
            recorded.flows.connected_quic(ends, Carries::HttpMedia, self.peer(recorded))
        });
        tokio::spawn(async move {
            drop(over.await);
            drop(flow);
        });
        Ok(sender)
    }
}

fn refused(error: ConnectError) -> FetchError {
    match error {
        ConnectError::Io(error) => FetchError::Connect(error),
        ConnectError::Near(error) => FetchError::Near(error),
    }
}

/// An open connection.
pub(crate) enum Connection {
    /// HTTP/1.1: one request at a time.
    One(http1::SendRequest<Empty<Bytes>>, Meter),
    /// One that others use too, and its number.
    Many(Many, u64),
}

/// A connection that any number of requests share.
#[derive(Clone)]
pub(crate) enum Many {
    Two(http2::SendRequest<Empty<Bytes>>, Meter),
    Three(client::Sender),
}

impl Many {
    fn is_closed(&self) -> bool {
        match self {
            Self::Two(sender, _) => sender.is_closed(),
            Self::Three(sender) => sender.is_closed(),
        }
    }
}

impl Connection {
    pub fn is_closed(&self) -> bool {
        match self {
            Self::One(sender, _) => sender.is_closed(),
            Self::Many(many, _) => many.is_closed(),
        }
    }

    /// Asks for `url`, or for the bytes of it from the first to the last of `range` or to the end, with these headers.
    pub async fn send(
        &mut self,
        url: &Url,
        range: Option<(u64, Option<u64>)>,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<Response<Incoming>, FetchError> {
        match self {
            Self::One(sender, meter) => {
                sender.ready().await?;
                meter.take();
                let response = sender.send_request(request(url, range, headers, false)).await?;
                let meter = meter.clone();
                Ok(response.map(|body| Incoming::Hyper(body, meter)))
            }
            Self::Many(Many::Two(sender, meter), _) => {
                sender.ready().await?;
                // Bytes that came before the request are no burst of its response.
                meter.take();
                let response = sender.send_request(request(url, range, headers, true)).await?;
                let bursts = Bursts::of(meter);
                Ok(response.map(|body| Incoming::Metered(body, bursts)))
            }
            Self::Many(Many::Three(sender), _) => {
                let request = request(url, range, headers, true).map(|_: Empty<Bytes>| ());
                let response = sender.send(request).await?;
                Ok(response.map(|body| Incoming::Three(Box::new(body))))
            }
        }
    }
}

/// A request; with the whole URL in its head, as HTTP/2 and HTTP/3 have it, or with a target and a `Host`.
fn request(
    url: &Url,
    range: Option<(u64, Option<u64>)>,
    headers: &[(HeaderName, HeaderValue)],
    whole: bool,
) -> Request<Empty<Bytes>> {
    let mut request = match whole {
        true => Request::get(url.to_string()),
        false => Request::get(url.target()).header(HOST, url.authority()),
    };
    if headers.iter().all(|(name, _)| name != USER_AGENT) {
        request = request.header(USER_AGENT, OWN_AGENT);
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some((first, last)) = range {
        let last = last.map(|last| last.to_string()).unwrap_or_default();
        request = request.header(RANGE, format!("bytes={first}-{last}"));
    }
    request.body(Empty::new()).expect("a URL was checked when it was parsed")
}

/// The body of a response.
pub(crate) enum Incoming {
    /// Pieces come as they are read; the meter knows whether a loss had kept them back.
    Hyper(hyper::body::Incoming, Meter),
    /// Frames come whole; the meter knows how fast.
    Metered(hyper::body::Incoming, Bursts),
    Three(Box<client::Incoming>),
}

impl Incoming {
    /// Its length, if the server said it.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Hyper(body, _) | Self::Metered(body, _) => body.size_hint().exact(),
            Self::Three(body) => body.length(),
        }
    }

    /// The next bytes of it, with how they came as far as it is known; `None` at the end.
    pub async fn data(&mut self) -> Result<Option<(Bytes, Came)>, FetchError> {
        match self {
            Self::Hyper(body, meter) => {
                let data = next(body).await?;
                let came = Came { burst: None, ..meter.take() };
                Ok(data.map(|data| (data, came)))
            }
            Self::Metered(body, bursts) => {
                let data = next(body).await?;
                // The end may be a frame of its own, which belongs to no burst of the next response.
                let came = bursts.take();
                Ok(data.map(|data| (data, came)))
            }
            Self::Three(body) => Ok(body.data().await?.map(|data| (data, Came::default()))),
        }
    }
}

/// The next bytes of a body, whatever comes between.
async fn next(body: &mut hyper::body::Incoming) -> Result<Option<Bytes>, FetchError> {
    loop {
        let Some(frame) = body.frame().await else { return Ok(None) };
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
}
