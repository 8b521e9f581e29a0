//! Messages over TLS over TCP: the only place in this crate that opens sockets of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::keys::KeysError;
use super::message::{self, BadMessage};
use super::tls;

/// How long the other end may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Limit for both once the watch is over.
const HURRY: Duration = Duration::from_secs(2);
/// How long it may be silent before the connection counts as lost.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// Why an agent or a watcher cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The credentials.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The text is not the name or address of a host.
    #[error(
        "`{0}` is not a host\nhint: write HOST or HOST:PORT, with brackets around an IPv6 address"
    )]
    Host(String),
    /// The agent cannot be reached.
    #[error("connecting to {peer}: {cause}\nhint: is suiro layers agent running there?")]
    Connect {
        /// The host that was called.
        peer: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The connection was lost.
    #[error("{peer}: {cause}")]
    Lost {
        /// The other end.
        peer: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The ends do not trust each other.
    #[error("{peer}: {told}")]
    Tls {
        /// The other end.
        peer: String,
        /// The reason, and how to fix it.
        told: String,
    },
    /// The bytes received are not a message.
    #[error("{peer}: {cause}")]
    Message {
        /// The other end.
        peer: String,
        /// What is wrong with it.
        cause: BadMessage,
    },
    /// The agent refused the request.
    #[error("{peer}: {because}")]
    Refused {
        /// The agent.
        peer: String,
        /// The reason.
        because: String,
    },
}

impl AgentError {
    /// Whether the problem may go away by itself, so that the agent should be called again.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Lost { .. } | Self::Refused { .. })
    }
}

/// Listens on an address.
///
/// # Errors
/// [`AgentError::Listen`].
#[expect(clippy::disallowed_methods, reason = "the one place that opens sockets")]
pub fn listen(address: SocketAddr) -> Result<TcpListener, AgentError> {
    let failed = |cause| AgentError::Listen { address: address.to_string(), cause };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// A watcher's end of a connection.
pub(super) type Call = StreamOwned<ClientConnection, TcpStream>;

/// Connects to an agent, which must have a certificate for this name.
pub(super) fn call(
    peer: &str,
    config: &Arc<ClientConfig>,
    line: &Mutex<Line>,
) -> Result<Call, AgentError> {
    let (host, port) = host_and_port(peer)?;
    let no_host = || AgentError::Host(peer.into());
    let name = ServerName::try_from(host.clone()).map_err(|_| no_host())?;
    let failed = |cause| AgentError::Connect { peer: peer.into(), cause };
    let mut addresses = (host.as_str(), port).to_socket_addrs().map_err(failed)?;
    let address = addresses.next().ok_or_else(no_host)?;
    let hurried = line.lock().expect("no holder panics").hurried;
    let patience = if hurried { HURRY } else { CONNECT };
    let stream = TcpStream::connect_timeout(&address, patience).map_err(failed)?;
    prepare(&stream).map_err(failed)?;
    line.lock().expect("no holder panics").keep(&stream).map_err(failed)?;
    let tls = ClientConnection::new(Arc::clone(config), name);
    let tls = tls.map_err(|error| lost(peer, io::Error::other(error)))?;
    Ok(StreamOwned::new(tls, stream))
}

/// A watcher's connection, as another thread sees it.
#[derive(Debug, Default)]
pub(super) struct Line {
    stream: Option<TcpStream>,
    /// The watch is over: the remaining work must be short.
    hurried: bool,
}

impl Line {
    fn keep(&mut self, stream: &TcpStream) -> io::Result<()> {
        self.stream = Some(stream.try_clone()?);
        if self.hurried {
            stream.set_read_timeout(Some(HURRY))?;
            stream.set_write_timeout(Some(HURRY))?;
        }
        Ok(())
    }

    /// Breaks off what waits for the other end, and gives all that follows little time.
    pub(super) fn hurry(&mut self) {
        self.hurried = true;
        if let Some(stream) = self.stream.take() {
            // One that the other end closed needs no closing.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Bounds the silence of a connection.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))
}

/// `HOST`, `HOST:PORT`, `[IPv6]:PORT` or an IPv6 address.
fn host_and_port(peer: &str) -> Result<(String, u16), AgentError> {
    let wrong = || AgentError::Host(peer.into());
    let number = |text: &str| text.parse().map_err(|_| wrong());
    if let Some(rest) = peer.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
        let port = match rest.strip_prefix(':') {
            Some(port) => number(port)?,
            None if rest.is_empty() => super::PORT,
            None => return Err(wrong()),
        };
        return Ok((host.to_owned(), port));
    }
    if peer.parse::<std::net::Ipv6Addr>().is_ok() {
        return Ok((peer.to_owned(), super::PORT));
    }
    match peer.split_once(':') {
        Some((host, port)) if !host.is_empty() => Ok((host.to_owned(), number(port)?)),
        Some(_) => Err(wrong()),
        None if peer.is_empty() => Err(wrong()),
        None => Ok((peer.to_owned(), super::PORT)),
    }
}

/// Sends a message.
pub(super) fn send(to: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    // One write, so that it is one TLS record where it fits.
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(message);
    to.write_all(&bytes)?;
    to.flush()
}

/// Receives a message of at most so many bytes; `None` if the other end closed the connection
/// instead.
pub(super) fn receive(
    from: &mut impl Read,
    most: usize,
) -> io::Result<Option<Result<Vec<u8>, BadMessage>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let bytes = u32::from_be_bytes(length) as usize;
    if let Err(bad) = message::check_length(bytes, most) {
        return Ok(Some(Err(bad)));
    }
    let mut message = vec![0; bytes];
    from.read_exact(&mut message)?;
    Ok(Some(Ok(message)))
}

/// Turns a failure on a connection into an error with its meaning.
pub(super) fn lost(peer: &str, cause: io::Error) -> AgentError {
    let inner = cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(error) => AgentError::Tls { peer: peer.into(), told: tls::told(error) },
        None => AgentError::Lost { peer: peer.into(), cause },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read() {
        let read = |peer| host_and_port(peer).ok();
        let host = |name: &str, port| Some((name.to_owned(), port));
        assert_eq!(read("studio"), host("studio", super::super::PORT));
        assert_eq!(read("10.0.0.1:80"), host("10.0.0.1", 80));
        assert_eq!(read("fd00::1"), host("fd00::1", super::super::PORT));
        assert_eq!(read("[fd00::1]:80"), host("fd00::1", 80));
        for wrong in ["", ":80", "studio:", "studio:port", "[fd00::1", "[fd00::1]x", "a:99999"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn messages_survive_a_stream_and_their_length_is_bounded() {
        let mut stream = Vec::new();
        send(&mut stream, b"hello").unwrap();
        let mut from = stream.as_slice();
        assert_eq!(receive(&mut from, 5).unwrap(), Some(Ok(b"hello".to_vec())));
        assert_eq!(receive(&mut from, 5).unwrap(), None);
        let bad = receive(&mut stream.as_slice(), 4).unwrap().unwrap();
        assert_eq!(bad, Err(BadMessage::TooLong { bytes: 5, most: 4 }));
        assert!(receive(&mut &stream[..7], 5).is_err());
    }
}
