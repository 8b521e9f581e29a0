//! Where the sockets are opened, and the certificates read.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration as StdDuration, SystemTime};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use suiro_clock::kernel;
pub use suiro_clock::kernel::monotonic;
use suiro_outside::file;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::nmos::Tai;

/// Longest answer of a resolver that is read, in bytes.
const MESSAGE_MAX: usize = 64 << 10;
/// BCP-003-01, TLS: 1.2 shall be supported, 1.3 should be.
const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
/// Longest file of certificates or a token, in bytes.
const FILE_MAX: u64 = 256 << 10;

/// Why a server is not started.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// Anybody could command it.
    #[error(
        "listening at {0}: everybody who reaches it could command it\n\
         hint: ask for a token with --token-file FILE, or listen at 127.0.0.1; \
         --insecure allows it all the same"
    )]
    Open(SocketAddr),
    /// The port is not free.
    #[error("listening at {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// A file of certificates, a key or a token cannot be used.
    #[error("{}: {because}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        because: String,
    },
}

/// Whether anybody may command a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// Whoever shows the token.
    Token,
    /// Everybody on this machine only.
    Loopback,
    /// Everybody, because the operator said so.
    Insecure,
}

/// Listens at an address.
///
/// # Errors
/// [`NetError::Open`], [`NetError::Listen`].
#[expect(clippy::disallowed_methods, reason = "the one place that opens this socket")]
pub async fn listen(address: SocketAddr, exposure: Exposure) -> Result<TcpListener, NetError> {
    if exposure == Exposure::Loopback && !address.ip().to_canonical().is_loopback() {
        return Err(NetError::Open(address));
    }
    TcpListener::bind(address).await.map_err(|cause| NetError::Listen { address, cause })
}

/// Connects to a host by its name.
///
/// # Errors
/// What the system said.
#[expect(clippy::disallowed_methods, reason = "the one place that opens this socket")]
pub async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((host, port)).await
}

/// Sends a datagram, and waits for one that `fits`.
///
/// # Errors
/// What the system said.
#[expect(clippy::disallowed_methods, reason = "the one place that opens this socket")]
pub async fn ask_udp(
    server: SocketAddr,
    message: &[u8],
    fits: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(message).await?;
    let mut answer = vec![0; MESSAGE_MAX];
    loop {
        let bytes = socket.recv(&mut answer).await?;
        if fits(&answer[..bytes]) {
            answer.truncate(bytes);
            return Ok(answer);
        }
    }
}

/// The same over TCP, where each message follows its length (RFC 7766 §8).
///
/// # Errors
/// What the system said.
#[expect(clippy::disallowed_methods, reason = "the one place that opens this socket")]
pub async fn ask_tcp(server: SocketAddr, message: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_u16(length).await?;
    stream.write_all(message).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// A timer that ticks periodically. After a delay it goes on from then: ticks that were missed are not made up for.
pub fn every(span: StdDuration) -> tokio::time::Interval {
    let mut tick = tokio::time::interval(span);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    tick
}

/// CLOCK_TAI.
pub fn tai() -> Tai {
    Tai::from_nanos(kernel::tai_ns())
}

/// CLOCK_REALTIME, for the times of files.
pub fn date() -> SystemTime {
    SystemTime::UNIX_EPOCH + StdDuration::from_nanos(kernel::realtime_ns())
}

fn text(path: &Path) -> Result<String, NetError> {
    let failed =
        |cause: io::Error| NetError::File { file: path.to_owned(), because: cause.to_string() };
    file::read_text(path, FILE_MAX).map_err(failed)
}

/// The token of a file: its only line.
///
/// # Errors
/// [`NetError::File`].
pub fn token(path: &Path) -> Result<String, NetError> {
    let text = text(path)?;
    let token = text.trim();
    crate::nmos::door::Door::with(token)
        .map_err(|error| NetError::File { file: path.to_owned(), because: error.to_string() })?;
    Ok(token.to_owned())
}

fn damaged(path: &Path, because: impl std::fmt::Display) -> NetError {
    NetError::File { file: path.to_owned(), because: because.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, NetError> {
    let text = text(path)?;
    let read = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    let found = read.map_err(|error| damaged(path, error))?;
    if found.is_empty() {
        return Err(damaged(path, "it does not contain a certificate"));
    }
    Ok(found)
}

/// TLS for a server, with this certificate and its key (both PEM).
///
/// # Errors
/// [`NetError::File`].
pub fn server_tls(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, NetError> {
    let private = PrivateKeyDer::from_pem_slice(text(key)?.as_bytes());
    let private = private.map_err(|error| damaged(key, error))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map_err(|error| damaged(certificate, error))?;
    let config =
        builder.with_no_client_auth().with_single_cert(certificates(certificate)?, private);
    config.map(Arc::new).map_err(|error| damaged(certificate, error))
}

/// TLS for a client that believes the certificates which this authority (PEM) has issued.
///
/// # Errors
/// [`NetError::File`].
pub fn client_tls(authority: &Path) -> Result<Arc<ClientConfig>, NetError> {
    let mut roots = RootCertStore::empty();
    for root in certificates(authority)? {
        roots.add(root).map_err(|error| damaged(authority, error))?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map_err(|error| damaged(authority, error))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    /// A certificate as the guide's command makes it: signed by itself, and of no authority.
    fn certificate(folder: &Path, ca: rcgen::IsCa) -> [PathBuf; 2] {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["192.0.2.1".to_owned()]).unwrap();
        params.is_ca = ca;
        let own = params.self_signed(&key).unwrap();
        let files = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
        std::fs::write(&files[0], own.pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        files
    }

    /// The version that both agree on, or why the client refuses.
    async fn agreed(
        files: &[PathBuf; 2],
        only: &'static SupportedProtocolVersion,
    ) -> Result<Option<rustls::ProtocolVersion>, String> {
        let server = server_tls(&files[0], &files[1]).unwrap();
        let mut roots = RootCertStore::empty();
        certificates(&files[0]).unwrap().into_iter().for_each(|own| roots.add(own).unwrap());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let client = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[only]);
        let client = client.unwrap().with_root_certificates(roots).with_no_client_auth();
        let (near, far) = tokio::io::duplex(64 << 10);
        let name = ServerName::try_from("192.0.2.1").unwrap();
        let connecting = TlsConnector::from(Arc::new(client)).connect(name, near);
        let (accepted, connected) = tokio::join!(TlsAcceptor::from(server).accept(far), connecting);
        drop(accepted);
        let connected = connected.map_err(|error| error.to_string())?;
        Ok(connected.get_ref().1.protocol_version())
    }

    #[tokio::test]
    async fn the_guides_certificate_is_accepted_over_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let files = certificate(folder.path(), rcgen::IsCa::ExplicitNoCa);
        for version in VERSIONS {
            assert_eq!(agreed(&files, version).await, Ok(Some(version.version)));
        }
        client_tls(&files[0]).unwrap();
        // The certificate of an authority is not accepted from a server: the guide's command must
        // not make one.
        let authority = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let files = certificate(folder.path(), authority);
        let refused = agreed(&files, VERSIONS[0]).await.unwrap_err();
        assert!(refused.contains("CaUsedAsEndEntity"), "{refused}");
    }
}
