//! Where an origin's requests come from: a TCP port, in clear text or over TLS, or a UDP port with QUIC.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use moq_noq::Endpoint;
use suiro_quic::net::Behaviour;
use suiro_quic::{Samples, tls};
use suiro_record::RecordError;
use suiro_scenario::{HttpVersion, QuicCongestion};
use suiro_serving::{self as serving, Speaks};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::serve::Service;
use super::{OriginError, OriginJob};
use crate::Clock;
use crate::flows::Accepting;
use crate::http3;

/// How long a handshake of TLS may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The ALPN names of HTTP/2 and HTTP/1.1, the preferred first.
const OVER_TCP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Of all responses on a connection of HTTP/2, this may wait in the kernel: about what h2o has. What waits there cannot give
/// way to a later response, and is sent all the same if its request is given up.
const UNSENT_BYTES: u32 = 16 << 10;

/// TLS of an origin, and what is spoken in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secure {
    /// HTTP/2, with HTTP/1.1 for clients that do not speak it; or HTTP/3.
    pub http: HttpVersion,
    /// The names of the host, for the certificate.
    pub names: Vec<String>,
    /// Where the certificate is written, in DER.
    pub certificate: PathBuf,
    /// Congestion control of QUIC.
    pub congestion: QuicCongestion,
}

/// What an origin listens at.
pub(super) enum Door {
    Plain(TcpListener),
    Tls(TcpListener, Arc<rustls::ServerConfig>),
    Quic { endpoint: Endpoint, samples: Option<Box<Samples>>, clock: Clock },
}

impl Door {
    /// Listens as the job says. Returns the address too.
    pub(super) fn open(job: &OriginJob, clock: Clock) -> Result<(Self, SocketAddr), OriginError> {
        let Some(secure) = &job.secure else {
            let listener = crate::net::listen(job.listen, job.congestion.as_deref())?;
            let address = listener.local_addr().unwrap_or(job.listen);
            return Ok((Self::Plain(listener), address));
        };
        let (names, unix_ns) = (secure.names.clone(), clock.unix_ns(clock.now()));
        let config = |protocols: &[&[u8]]| {
            let protocols = protocols.iter().map(|name| name.to_vec()).collect();
            tls::server(names, unix_ns, &secure.certificate, protocols)
        };
        if secure.http != HttpVersion::Http3 {
            let config = config(&OVER_TCP)?;
            let listener = crate::net::listen(job.listen, job.congestion.as_deref())?;
            // Without it (Linux before 3.12), sound waits behind more video.
            drop(suiro_tcp::limit_unsent(listener.as_fd(), UNSENT_BYTES));
            let address = listener.local_addr().unwrap_or(job.listen);
            return Ok((Self::Tls(listener, Arc::new(config)), address));
        }
        let congestion = secure.congestion;
        let behaviour = Behaviour { congestion, ..http3::behaviour() };
        let (ip, port) = (Some(job.listen.ip()), job.listen.port());
        let endpoint = suiro_quic::net::serve(ip, port, config(&[http3::ALPN])?, &behaviour)?;
        let address = endpoint.local_addr().unwrap_or(job.listen);
        let create = |records: &crate::flows::Records| {
            Samples::create(&records.dir, &records.endpoint, congestion.name())
        };
        let samples = job.records.as_ref().map(create).transpose()?.map(Box::new);
        Ok((Self::Quic { endpoint, samples, clock }, address))
    }

    /// Has the service answer what comes, until `stop` is ready.
    pub(super) async fn serve(
        self,
        per_address: usize,
        flows: Option<Accepting>,
        service: &Arc<Service>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), RecordError> {
        let limits = serving::Limits::per_address(per_address);
        let limits = if service.cmsd.is_some() { limits.with_sockets() } else { limits };
        let service = Arc::clone(service);
        match self {
            Self::Plain(listener) => {
                let respond = move |peer, request| Arc::clone(&service).respond(peer, request);
                serving::run(listener, limits, flows, respond, stop).await
            }
            Self::Tls(listener, config) => {
                let respond = move |peer, request| Arc::clone(&service).respond(peer, request);
                let acceptor = TlsAcceptor::from(config);
                let secure = move |stream: TcpStream| {
                    let acceptor = acceptor.clone();
                    async move {
                        let stream = serving::tls::accept(acceptor, stream, PATIENCE).await?;
                        let http2 = stream.get_ref().1.alpn_protocol() == Some(OVER_TCP[0]);
                        Ok::<_, io::Error>((
                            stream,
                            if http2 { Speaks::Http2 } else { Speaks::Http1 },
                        ))
                    }
                };
                serving::run_over(listener, limits, flows, secure, respond, stop).await
            }
            Self::Quic { endpoint, samples, clock } => {
                let respond =
                    move |peer, request: Request<()>| Arc::clone(&service).respond(peer, request);
                let connections = serving::CONNECTIONS_MAX;
                let (witness, samples) = (flows, samples.map(|samples| *samples));
                http3::server::Server { endpoint, clock, connections, witness, samples }
                    .run(respond, stop)
                    .await
            }
        }
    }
}
