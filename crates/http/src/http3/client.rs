//! Requests over HTTP/3.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use hyper::header::CONTENT_LENGTH;
use hyper::{Request, Response};
use moq_noq::{Connection, PathId, ZeroRttAccepted};
use suiro_endpoint::net::udp_towards;
use suiro_quic::net::{self, Behaviour};
use suiro_record::flows::End;
use tokio::sync::watch;

use super::HEAD_MAX;
use super::quic::{Both, Quic};

/// Why there is no response, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum Http3Error {
    /// There is no socket.
    #[error(transparent)]
    Socket(#[from] suiro_endpoint::net::NetError),
    /// There is no way to begin.
    #[error(transparent)]
    Quic(#[from] net::NetError),
    /// The handshake or the connection failed.
    #[error("http/3: {0}")]
    Failed(String),
    /// The request ended alone: the server ended it, or a head is too large, its own for the server or that of the response.
    #[error("http/3: {0}")]
    Stream(String),
    /// The server did not take what was sent before its handshake. Another connection is needed.
    #[error("http/3: the server refused early data")]
    EarlyRefused,
}

/// The request came with the first packets of its connection, before the handshake was done; also of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early;

/// The errors of the libraries, whose texts say all that anybody needs of them.
macro_rules! failed {
    ($($error:ty),*) => {$(
        impl From<$error> for Http3Error {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        }
    )*};
}

failed!(moq_noq::ConnectionError, moq_noq::ConnectError, h3::error::ConnectionError);

impl From<StreamError> for Http3Error {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::RemoteTerminate { .. } | StreamError::HeaderTooBig { .. } => {
                Self::Stream(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// A connection, which any number of requests share. When its last clone is dropped, the connection is closed.
#[derive(Clone)]
pub struct Sender {
    requests: SendRequest<Quic, Bytes>,
    connection: Connection,
    /// The port of this end.
    port: u16,
    /// Whether the server took what was sent before its handshake, once that is known; `None` if nothing was.
    early: Option<watch::Receiver<Option<bool>>>,
}

impl Sender {
    /// Connects to a server. `host` is the name that its certificate must have; `closed` is called when the connection has ended.
    ///
    /// # Errors
    /// [`Http3Error`]: there is no socket, no server answers, or its certificate is not the trusted one.
    pub async fn connect(
        to: SocketAddr,
        host: &str,
        tls: rustls::ClientConfig,
        behaviour: &Behaviour,
        closed: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Http3Error> {
        let socket = udp_towards(to.ip())?;
        let (endpoint, config) = net::client(socket, tls, behaviour)?;
        let port = endpoint.local_addr().map_or(0, |local| local.port());
        let (connection, early) = match endpoint.connect_with(config, to, host)?.into_0rtt() {
            Ok((connection, accepted)) => (connection, Some(told(accepted))),
            Err(connecting) => (connecting.await?, None),
        };
        let mut builder = h3::client::builder();
        builder.max_field_section_size(HEAD_MAX);
        let (mut driver, requests) = builder.build(Quic::new(connection.clone())).await?;
        // It ends when all senders are dropped; its error reaches them through their requests.
        tokio::spawn(async move {
            let _ = std::future::poll_fn(|context| driver.poll_close(context)).await;
            drop(driver);
            closed();
            // The server must learn that the connection is closed.
            let _ =
                tokio::time::timeout(std::time::Duration::from_millis(200), endpoint.wait_idle())
                    .await;
        });
        Ok(Self { requests, connection, port, early })
    }

    /// Both ends of the connection; of this one at least the port. `None` if the connection has ended.
    pub(crate) fn ends(&self) -> Option<(End, SocketAddr)> {
        let path = self.connection.path(PathId::ZERO)?;
        let remote = path.remote_address().ok()?;
        let local = path.local_ip().ok().flatten();
        let at = |local: IpAddr| SocketAddr::new(local.to_canonical(), self.port).into();
        Some((local.map_or(End::Port(self.port), at), remote))
    }

    /// True if no further request can be made on it.
    pub fn is_closed(&self) -> bool {
        // Streams of before the handshake are lost if that was refused, and with them HTTP/3's own.
        let refused = self.early.as_ref().is_some_and(|early| *early.borrow() == Some(false));
        refused || self.connection.close_reason().is_some()
    }

    /// Sends a request without a body; returns the response and what its body comes from.
    ///
    /// # Errors
    /// [`Http3Error`]: the server refused or reset the request, or the connection has ended.
    pub async fn send(&mut self, request: Request<()>) -> Result<Response<Incoming>, Http3Error> {
        // RFC 8470 §4: early data may be replayed, which must change nothing.
        if !request.method().is_safe() && self.took_early().await == Some(false) {
            return Err(Http3Error::EarlyRefused);
        }
        let is_early = self.early.as_ref().is_some_and(|early| early.borrow().is_none());
        let sent = self.sent(request).await;
        match (is_early, sent) {
            (false, sent) => sent,
            (true, Ok(mut response)) => {
                response.extensions_mut().insert(Early);
                Ok(response)
            }
            (true, Err(error)) => Err(match self.took_early().await {
                Some(false) => Http3Error::EarlyRefused,
                _ => error,
            }),
        }
    }

    async fn sent(&mut self, request: Request<()>) -> Result<Response<Incoming>, Http3Error> {
        let mut stream = self.requests.send_request(request).await?;
        stream.finish().await?;
        let response = stream.recv_response().await?;
        let length = response.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|text| text.to_str().ok()?.parse().ok());
        Ok(response.map(|()| Incoming { stream, length }))
    }

    /// Whether the server took what was sent before its handshake, which has been done then; `None` if nothing was.
    async fn took_early(&self) -> Option<bool> {
        let mut early = self.early.clone()?;
        let known = early.wait_for(Option::is_some).await;
        known.map_or(Some(false), |known| *known)
    }
}

/// Whether the server took early data, as soon as that is known.
fn told(accepted: ZeroRttAccepted) -> watch::Receiver<Option<bool>> {
    let (tell, told) = watch::channel(None);
    tokio::spawn(async move {
        let accepted = accepted.await;
        tell.send_replace(Some(accepted));
    });
    told
}

/// The body of a response. One that is dropped before its end is refused.
pub struct Incoming {
    stream: RequestStream<Both, Bytes>,
    length: Option<u64>,
}

impl Incoming {
    /// Its length in bytes, if the server said it.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The next bytes of it; `None` at the end.
    ///
    /// # Errors
    /// [`Http3Error`]: the server reset the response, or the connection has ended.
    pub async fn data(&mut self) -> Result<Option<Bytes>, Http3Error> {
        let data = self.stream.recv_data().await?;
        Ok(data.map(|mut data| data.copy_to_bytes(data.remaining())))
    }
}
