//! The server side of WebTransport over HTTP/3 (draft-ietf-webtrans-http3) on a QUIC connection of noq: the exchange of
//! settings, the request for a session, and the headers of the session's streams and datagrams. A connection has one
//! session.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::{BufMut, Bytes};
use moq_noq::{Connection, PathId, RecvStream, SendStream};
use moq_noq_proto::VarInt;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use web_transport_proto::http::StatusCode;
use web_transport_proto::{
    Capsule, ConnectRequest, ConnectResponse, Frame, Http3CapsuleReader, Settings, StreamUni,
    error_to_http3,
};

use crate::TransportError;

/// The ALPN name of HTTP/3.
pub const ALPN: &str = "h3";
/// Largest number of accepted streams that wait until the session takes them.
const ACCEPTED_MAX: usize = 256;
/// RFC 9114 §8.1, `H3_NO_ERROR`.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);
/// RFC 9114 §8.1, `H3_STREAM_CREATION_ERROR`.
const NO_SUCH_STREAM: VarInt = VarInt::from_u32(0x103);
/// Shortest time that a peer gets to read why its session ends.
const FAREWELL: Duration = Duration::from_millis(100);

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The connection, or one of its streams, ended first.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The settings are not those of HTTP/3.
    #[error("settings of HTTP/3")]
    Settings(#[from] web_transport_proto::SettingsError),
    /// The request is not one for WebTransport.
    #[error("the request for WebTransport")]
    Connect(#[from] web_transport_proto::ConnectError),
    /// The peer does not speak WebTransport.
    #[error("the settings of HTTP/3: expected WebTransport, found none")]
    Unsupported,
}

/// A request for a session, which waits for an answer.
pub struct Request {
    connection: Connection,
    connect: ConnectRequest,
    send: SendStream,
    receive: RecvStream,
    control: (SendStream, RecvStream),
}

impl Request {
    /// Reads the request with which a connection begins.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn read(connection: &Connection) -> Result<Self, RequestError> {
        let failed = TransportError::Connection;
        let mut settings = Settings::default();
        settings.enable_webtransport(1);
        let mut ours = connection.open_uni().await.map_err(failed)?;
        settings.write(&mut ours).await?;
        let mut theirs = connection.accept_uni().await.map_err(failed)?;
        if Settings::read(&mut theirs).await?.supports_webtransport() == 0 {
            return Err(RequestError::Unsupported);
        }
        let (send, mut receive) = connection.accept_bi().await.map_err(failed)?;
        let connect = ConnectRequest::read(&mut receive).await?;
        let (connection, control) = (connection.clone(), (ours, theirs));
        Ok(Self { connection, connect, send, receive, control })
    }

    /// The path of the requested URL, with its query.
    pub fn path(&self) -> String {
        let url = &self.connect.url;
        match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        }
    }

    /// The protocols that the client offers for the session, in the order of its preference.
    pub fn protocols(&self) -> &[String] {
        &self.connect.protocols
    }

    /// Accepts the request and opens the session with the given protocol.
    ///
    /// # Errors
    /// [`RequestError`]: the answer cannot be sent.
    pub async fn accept(mut self, protocol: Option<&str>) -> Result<Arc<Http>, RequestError> {
        let mut response = ConnectResponse::OK;
        if let Some(protocol) = protocol {
            response = response.with_protocol(protocol);
        }
        response.write(&mut self.send).await?;
        Ok(Http::open(self))
    }

    /// Refuses it with a status of HTTP.
    ///
    /// # Errors
    /// [`RequestError`]: the answer cannot be sent.
    pub async fn refuse(mut self, status: u16) -> Result<(), RequestError> {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        ConnectResponse::new(status).write(&mut self.send).await?;
        // One that is reset by now needs no end.
        let _ = self.send.finish();
        let connection = self.connection.clone();
        // The answer must arrive before the connection ends.
        let _ = tokio::time::timeout(farewell(&connection), connection.closed()).await;
        connection.close(NO_ERROR, b"the session was refused");
        Ok(())
    }
}

/// How long to wait before the connection is closed: three round trips, so that the peer receives the reason.
fn farewell(connection: &Connection) -> Duration {
    connection.rtt(PathId::ZERO).map_or(FAREWELL, |rtt| (3 * rtt).max(FAREWELL))
}

/// A session of WebTransport in a QUIC connection.
pub struct Http {
    connection: Connection,
    /// The headers of its unidirectional streams, bidirectional streams and datagrams.
    pub(crate) uni: Vec<u8>,
    pub(crate) bi: Vec<u8>,
    pub(crate) datagram: Vec<u8>,
    /// Streams that the peer opened in the session; their headers have been read.
    pub(crate) accepted_uni: tokio::sync::Mutex<mpsc::Receiver<RecvStream>>,
    pub(crate) accepted_bi: tokio::sync::Mutex<mpsc::Receiver<(SendStream, RecvStream)>>,
    /// The stream of the request, on which the reason is sent when the session is closed. `None` once it is.
    connect: Mutex<Option<SendStream>>,
    /// Code and reason with which the peer closed the session.
    ended: OnceLock<(u32, String)>,
    // HTTP/3 ends a connection whose control stream ends (RFC 9114 §6.2.1).
    _control: (SendStream, RecvStream),
}

impl Http {
    fn open(request: Request) -> Arc<Self> {
        let Request { connection, send, receive, control, .. } = request;
        let id = u64::from(send.id());
        let number = |number: u64| {
            web_transport_proto::VarInt::from_u64(number).expect("stream numbers have 62 bits")
        };
        let beginning = |kind: web_transport_proto::VarInt| {
            let mut bytes = Vec::new();
            kind.encode(&mut bytes);
            number(id).encode(&mut bytes);
            bytes
        };
        let mut datagram = Vec::new();
        // RFC 9297 §2.1: a quarter of the stream's number.
        number(id / 4).encode(&mut datagram);
        let (uni, accepted_uni) = mpsc::channel(ACCEPTED_MAX);
        let (bi, accepted_bi) = mpsc::channel(ACCEPTED_MAX);
        let http = Arc::new(Self {
            connection: connection.clone(),
            uni: beginning(StreamUni::WEBTRANSPORT.0),
            bi: beginning(Frame::WEBTRANSPORT.0),
            datagram,
            accepted_uni: tokio::sync::Mutex::new(accepted_uni),
            accepted_bi: tokio::sync::Mutex::new(accepted_bi),
            connect: Mutex::new(Some(send)),
            ended: OnceLock::new(),
            _control: control,
        });
        tokio::spawn(accept_uni(connection.clone(), id, uni));
        tokio::spawn(accept_bi(connection, id, bi));
        tokio::spawn(Arc::clone(&http).listen(receive));
        http
    }

    /// Code and reason with which the peer closed the session; `None` if it has not.
    pub(crate) fn ended(&self) -> Option<(u32, String)> {
        self.ended.get().cloned()
    }

    /// Sends the peer code and reason, then closes the session and its connection.
    pub(crate) fn close(self: &Arc<Self>, code: u32, reason: &str) {
        let send = self.connect.lock().unwrap_or_else(|broken| broken.into_inner()).take();
        // The session is closed already.
        let Some(mut send) = send else { return };
        let capsule = Capsule::CloseWebTransportSession { code, reason: reason.to_owned() };
        let http = Arc::clone(self);
        tokio::spawn(async move {
            let (mut bytes, mut frame) = (Vec::new(), Vec::new());
            capsule.encode(&mut bytes);
            Frame::DATA.encode(&mut frame);
            web_transport_proto::VarInt::from_u32(bytes.len() as u32).encode(&mut frame);
            frame.put_slice(&bytes);
            if send.write_all(&frame).await.is_ok() && send.finish().is_ok() {
                let _ = tokio::time::timeout(farewell(&http.connection), http.connection.closed())
                    .await;
            }
            http.connection.close(NO_ERROR, b"");
        });
    }

    /// Reads capsules until the peer closes the session.
    async fn listen(self: Arc<Self>, receive: RecvStream) {
        let mut capsules = Http3CapsuleReader::new(receive);
        loop {
            match capsules.read().await {
                Ok(Some(Capsule::CloseWebTransportSession { code, reason })) => {
                    let _ = self.ended.set((code, reason));
                    break;
                }
                // RFC 9297 §3.2: unknown ones are passed over.
                Ok(Some(_)) => {}
                Ok(None) => {
                    let _ = self.ended.set((0, String::new()));
                    break;
                }
                Err(_) => break,
            }
        }
        self.connection.close(NO_ERROR, b"");
    }
}

/// Accepts streams and reads their headers concurrently: a stream whose first packet is lost does not delay the others.
async fn accept_uni(connection: Connection, id: u64, post: mpsc::Sender<RecvStream>) {
    let mut beginning = JoinSet::new();
    // HTTP/3 ends a connection whose critical streams are stopped.
    let mut kept = Vec::new();
    loop {
        tokio::select! {
            accepted = connection.accept_uni() => match accepted {
                Ok(stream) => { beginning.spawn(begins_uni(stream, id)); }
                Err(_) => return,
            },
            Some(Ok(begun)) = beginning.join_next(), if !beginning.is_empty() => match begun {
                Some((Uni::Session, stream)) => {
                    let Ok(()) = post.send(stream).await else { return };
                }
                Some((Uni::Critical, stream)) if kept.len() < 2 => kept.push(stream),
                Some((_, mut stream)) => { let _ = stream.stop(NO_SUCH_STREAM); }
                None => {}
            },
        }
    }
}

/// The kind of a unidirectional stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uni {
    /// It belongs to the session.
    Session,
    /// A stream of QPACK. It stays empty, because we announce no dynamic table.
    Critical,
    /// It belongs to nothing here.
    Other,
}

async fn begins_uni(mut stream: RecvStream, id: u64) -> Option<(Uni, RecvStream)> {
    let kind = kind_of_uni(&mut stream, id).await?;
    Some((kind, stream))
}

/// Reads the header of a unidirectional stream, in a connection whose session has this number; `None` if it is cut.
pub async fn kind_of_uni(stream: &mut (impl AsyncRead + Unpin), id: u64) -> Option<Uni> {
    let kind = StreamUni(web_transport_proto::VarInt::read(stream).await.ok()?);
    Some(match kind {
        StreamUni::WEBTRANSPORT => {
            let session = web_transport_proto::VarInt::read(stream).await.ok()?;
            if session.into_inner() == id { Uni::Session } else { Uni::Other }
        }
        StreamUni::QPACK_ENCODER | StreamUni::QPACK_DECODER => Uni::Critical,
        _ => Uni::Other,
    })
}

async fn accept_bi(connection: Connection, id: u64, post: mpsc::Sender<(SendStream, RecvStream)>) {
    let mut beginning = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept_bi() => match accepted {
                Ok(streams) => { beginning.spawn(begins_bi(streams, id)); }
                Err(_) => return,
            },
            Some(Ok(begun)) = beginning.join_next(), if !beginning.is_empty() => match begun {
                Some((true, streams)) => {
                    let Ok(()) = post.send(streams).await else { return };
                }
                Some((false, (mut send, mut receive))) => {
                    let _ = send.reset(NO_SUCH_STREAM);
                    let _ = receive.stop(NO_SUCH_STREAM);
                }
                None => {}
            },
        }
    }
}

/// Whether a bidirectional stream belongs to the session.
async fn begins_bi(
    (send, mut receive): (SendStream, RecvStream),
    id: u64,
) -> Option<(bool, (SendStream, RecvStream))> {
    let belongs = belongs(&mut receive, id).await?;
    Some((belongs, (send, receive)))
}

/// Reads the header of a bidirectional stream: whether it belongs to the session of this number; `None` if it is cut.
pub async fn belongs(stream: &mut (impl AsyncRead + Unpin), id: u64) -> Option<bool> {
    let frame = Frame(web_transport_proto::VarInt::read(stream).await.ok()?);
    if frame != Frame::WEBTRANSPORT {
        return Some(false);
    }
    let session = web_transport_proto::VarInt::read(stream).await.ok()?;
    Some(session.into_inner() == id)
}

/// Converts an error code of the session to one of HTTP/3.
pub(crate) fn code(code: u32) -> VarInt {
    VarInt::from_u64(error_to_http3(code)).expect("the codes of WebTransport have 47 bits")
}

/// The payload of a datagram; `None` if the datagram does not belong to the session.
pub(crate) fn payload(datagram: &Bytes, beginning: &[u8]) -> Option<Bytes> {
    datagram.starts_with(beginning).then(|| datagram.slice(beginning.len()..))
}
