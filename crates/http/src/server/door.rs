//! Where a server's requests come from: a TCP port, in clear text or over TLS, or a UDP port with QUIC.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response};
use moq_noq::Endpoint;
use suiro_quic::net::Behaviour;
use suiro_quic::{Samples, tls};
use suiro_record::RecordError;
use suiro_scenario::{HttpVersion, Job, QuicCongestion};
use suiro_serving::{self as serving, Limits, Number, Rank, Speaks};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::body::Body;
use super::posted::{Posted, posted};
use crate::Clock;
use crate::flows::{Accepting, Records};
use crate::http3;
use crate::net::ListenError;
use crate::priority::Priority;

/// How long a handshake of TLS may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The ALPN names of HTTP/2 and HTTP/1.1, the preferred first.
const OVER_TCP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Of all responses on a connection of HTTP/2, this may wait in the kernel: about what h2o has. What waits there cannot give
/// way to a later response, and is sent all the same if its request is given up.
const UNSENT_BYTES: u32 = 16 << 10;

/// Most bytes of a record of TLS, its header of 5 included. With the 17 that encryption adds, it fits in a packet of 1500 bytes
/// with the headers of IPv6 (40) and of TCP with timestamps (32). A client reads nothing of a record before all of it has come: in
/// records of 16 KiB, chunks and parts would come in one piece, from which no player can measure a rate. It costs 1.5 % of the
/// bytes.
const RECORD_BYTES: usize = 1500 - 40 - 32 - 17;

/// TLS of a server, and what is spoken in it.
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

impl Secure {
    /// That of a trial's server; `None` if its version of HTTP is spoken in clear text.
    pub(crate) fn of(job: &Job, http: HttpVersion, congestion: QuicCongestion) -> Option<Self> {
        http.is_secure().then(|| Self {
            http,
            names: vec![job.endpoint.host.clone(), "localhost".to_owned()],
            certificate: tls::file(&job.dir, &job.endpoint.name),
            congestion,
        })
    }
}

/// Where a server is to listen, and how.
pub(crate) struct Listening<'a> {
    /// [`crate::net::any_address`] for every address.
    pub address: SocketAddr,
    /// TCP congestion control of its connections; `None`: the kernel's default.
    pub congestion: Option<&'a str>,
    /// TLS, and what is spoken in it; `None`: HTTP/1.1 in clear text.
    pub secure: Option<&'a Secure>,
    /// Where its connections of QUIC are recorded; `None` to keep no record.
    pub records: Option<&'a Records>,
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// There is no socket for QUIC.
    #[error(transparent)]
    Socket(#[from] suiro_endpoint::net::NetError),
    /// There is no QUIC on it.
    #[error(transparent)]
    Quic(#[from] suiro_quic::net::NetError),
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] suiro_quic::tls::TlsError),
}

/// What a server listens at.
pub(crate) enum Door {
    Plain(TcpListener),
    Tls(TcpListener, Arc<rustls::ServerConfig>),
    Quic { endpoint: Endpoint, samples: Option<Box<Samples>>, clock: Clock },
}

impl Door {
    /// Listens. Returns the address too.
    pub fn open(job: &Listening<'_>, clock: Clock) -> Result<(Self, SocketAddr), DoorError> {
        let Some(secure) = job.secure else {
            let listener = crate::net::listen(job.address, job.congestion)?;
            let address = listener.local_addr().unwrap_or(job.address);
            return Ok((Self::Plain(listener), address));
        };
        let (names, unix_ns) = (secure.names.clone(), clock.unix_ns(clock.now()));
        let config = |protocols: &[&[u8]]| {
            let protocols = protocols.iter().map(|name| name.to_vec()).collect();
            tls::server(names, unix_ns, &secure.certificate, protocols)
        };
        if secure.http != HttpVersion::Http3 {
            let mut config = config(&OVER_TCP)?;
            config.max_fragment_size = Some(RECORD_BYTES);
            let listener = crate::net::listen(job.address, job.congestion)?;
            // Without it (Linux before 3.12), sound waits behind more video.
            drop(suiro_tcp::limit_unsent(listener.as_fd(), UNSENT_BYTES));
            let address = listener.local_addr().unwrap_or(job.address);
            return Ok((Self::Tls(listener, Arc::new(config)), address));
        }
        let congestion = secure.congestion;
        // In a trial, whose records are kept, links are emulated.
        let offload = job.records.is_none();
        let receive_window = http3::REQUESTS_WINDOW;
        let behaviour = Behaviour { congestion, offload, receive_window, ..http3::behaviour() };
        let mut tls = config(&[http3::ALPN])?;
        // All or nothing (RFC 9001 §4.6.1). Tickets are taken once, so early data is not replayed here (RFC 8446 §8.1).
        tls.max_early_data_size = u32::MAX;
        let socket = suiro_endpoint::net::udp(job.address)?;
        let endpoint = suiro_quic::net::serve(socket, tls, &behaviour)?;
        let address = endpoint.local_addr().unwrap_or(job.address);
        let create =
            |records: &Records| Samples::create(&records.dir, &records.endpoint, congestion.name());
        let samples = job.records.map(create).transpose()?.map(Box::new);
        Ok((Self::Quic { endpoint, samples, clock }, address))
    }

    /// Has `respond` answer what comes, until `stop` is ready.
    pub async fn serve<R, F>(
        self,
        limits: Limits,
        flows: Option<Accepting>,
        respond: R,
        stop: impl Future<Output = ()>,
    ) -> Result<(), RecordError>
    where
        R: Fn(SocketAddr, Request<Posted>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let over_tcp = {
            let respond = respond.clone();
            move |peer, request: Request<Incoming>| {
                let (respond, rank) = (respond.clone(), rank(&request));
                async move {
                    let mut response = respond(peer, posted(request).await).await;
                    if let Some(rank) = rank {
                        response.extensions_mut().insert(rank);
                    }
                    response
                }
            }
        };
        match self {
            Self::Plain(listener) => serving::run(listener, limits, flows, over_tcp, stop).await,
            Self::Tls(listener, config) => {
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
                serving::run_over(listener, limits, flows, secure, over_tcp, stop).await
            }
            Self::Quic { endpoint, samples, clock } => {
                let (witness, samples) = (flows, samples.map(|samples| *samples));
                http3::server::Server { endpoint, clock, limits, witness, samples }
                    .run(respond, stop)
                    .await
            }
        }
    }
}

/// The rank of the response to a request; `None` over HTTP/1.1, where no other response shares the connection.
fn rank(request: &Request<Incoming>) -> Option<Rank> {
    let Number(number) = *request.extensions().get()?;
    let priority = Priority::read(request.headers()).unwrap_or_default();
    Some(Rank(priority.rank(number)))
}
