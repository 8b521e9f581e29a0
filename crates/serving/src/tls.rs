//! TLS under the connections of a server.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A connection after its handshake, which may take so long.
///
/// # Errors
/// The handshake failed, or was not done in time.
pub async fn accept(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    within: Duration,
) -> io::Result<TlsStream<TcpStream>> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    tokio::time::timeout(within, acceptor.accept(stream)).await.map_err(late)?
}
