//! A cache between an origin and its viewers (RFC 9111), which passes objects on while they come.
//!
//! A request is answered from what the cache has ([`CacheOutcome::Hit`](suiro_record::words::CacheOutcome)), from what is on
//! its way for another request, or from the origin. Whoever follows an object on its way gets what is there at once, then the
//! rest. For what has expired, the cache asks the origin whether it is still valid (`If-None-Match`); status 304 makes it
//! fresh for all who wait. Status 304 without such a question, or about another version, is a failure of the origin. What the
//! origin does not allow to be shared (`no-store`, `private`, without a lifetime) is brought for each request alone. Objects
//! are called by host, path and query, manifests also by whether the client takes gzip; the argument of CMCD does not count.
//! Answers have `Via` (RFC 9110 §7.6.3) and `Cache-Status` (RFC 9211), and `Age` unless they were generated or validated for
//! the request; requests to the origin have `Via` and `Forwarded` (RFC 7239). If the origin reports what it knows (CMSD), the
//! cache reports of its own connections.
//!
//! A response with `Vary` is kept unless that names a field that differs between the cache's requests for an object.
//!
//! Not here, because live media needs none of it: validation by dates (`Last-Modified`), heuristics, `stale-if-error`.

mod fault;
mod fetch;
mod headers;
mod object;
mod pass;
mod serve;
mod service;
mod upstream;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use suiro_endpoint::{Context, Failure, Summary};
use suiro_scenario::{EdgeFault, EndpointSpec, HttpVersion, Job};
use suiro_serving::{CONNECTIONS_MAX, Limits};
use suiro_units::{Bytes, Seed};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Clock;
use crate::flows::{Accepting, Records};
use crate::player::Recorded;
use crate::server::{AccessLog, Door, Listening, Secure, Tally, begin_records};
use crate::url::Url;
use fault::Faults;
use object::{Bounds, Objects};
use service::{Done, Service};
use upstream::Upstream;

/// The largest object that is passed on: half a minute at 68 Mbit/s.
const OBJECT_MAX: u64 = 256 << 20;
/// The most that may have come of all objects on their way: four of the largest.
const COMING_MAX: u64 = 4 * OBJECT_MAX;

/// The job of a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeJob {
    /// Its name in `Via` and `Cache-Status`.
    pub name: String,
    /// Where to listen; [`crate::net::any_address`] for every address.
    pub listen: SocketAddr,
    /// TCP congestion control of its connections to viewers; `None`: the kernel's default.
    pub congestion: Option<String>,
    /// TLS towards viewers, and what is spoken in it; `None`: HTTP/1.1 in clear text.
    pub secure: Option<Secure>,
    /// The origin: its scheme, host and port.
    pub origin: Url,
    /// The version of HTTP that the origin speaks; the URL is `https` for 2 and 3.
    pub origin_http: HttpVersion,
    /// The file with the only certificate of an origin that is trusted, for HTTP/2 and HTTP/3.
    pub certificate: PathBuf,
    /// The name of the endpoint that is the origin, for the records; `None` if it is none of the trial.
    pub server: Option<String>,
    /// How much is kept.
    pub store: Bytes,
    /// How many objects may be on their way at the same time.
    pub in_flight: u32,
    /// What goes wrong.
    pub fault: Option<EdgeFault>,
    /// Decides which requests that meets.
    pub seed: Seed,
    /// Where requests and connections are recorded; `None` to keep no record.
    pub records: Option<Records>,
}

impl EdgeJob {
    /// What a trial's job file asks for; `None` if the endpoint is no cache, or its origin is not among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let EndpointSpec::Edge(edge) = &job.endpoint.spec else { return None };
        let peer = job.peers.get(&edge.origin)?;
        let port = peer.port?;
        Some(Self {
            name: job.endpoint.name.clone(),
            listen: crate::net::any_address(edge.port),
            congestion: edge.tcp.clone(),
            secure: Secure::of(job, edge.http, edge.quic),
            origin: match peer.http.is_secure() {
                true => Url::parse_secure(&format!("https://{}:{port}/", peer.host)).ok()?,
                false => Url::parse(&format!("http://{}:{port}/", peer.host)).ok()?,
            },
            origin_http: peer.http,
            certificate: suiro_quic::tls::file(&job.dir, &edge.origin),
            server: Some(edge.origin.clone()),
            store: edge.store,
            in_flight: edge.in_flight,
            fault: edge.fault.clone(),
            seed: job.seed,
            records: Some(Records::of(job)),
        })
    }
}

/// What a cache has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Requests answered.
    pub requests: u64,
    /// Bytes of bodies in those answers.
    pub body_bytes: u64,
    /// Answers from what it had.
    pub hits: u64,
    /// Answers from what was on its way for another request.
    pub joined: u64,
    /// Answers from what it had, after the origin had said that it is still valid.
    pub revalidated: u64,
    /// Answers from the origin.
    pub misses: u64,
    /// Objects that did not come, or not whole.
    pub failed: u64,
    /// Requests that were refused because too many objects were on their way.
    pub full: u64,
    /// Objects that made room for others.
    pub evicted: u64,
}

/// Runs a trial's job of a cache.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let work = EdgeJob::from_job(job).ok_or("a cache's job names its origin")?;
    let done =
        context.run(async |pulse, ready, stop| run(&work, pulse.clock(), |_| ready(), stop).await);
    Ok(Summary::of(&done?))
}

/// Serves until `stop` is ready. `ready` is called once, with the address that it listens at.
///
/// # Errors
/// If the address or the congestion control is not to be had, or a record cannot be written.
pub async fn run(
    job: &EdgeJob,
    clock: Clock,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<Counted, Failure> {
    let listening = Listening {
        address: job.listen,
        congestion: job.congestion.as_deref(),
        secure: job.secure.as_ref(),
        records: job.records.as_ref(),
    };
    let (door, address) = Door::open(&listening, clock)?;
    let (log, accepting) = begin_records(job.records.as_ref(), address.port(), clock).await?;
    let flows = accepting.as_ref().map(Accepting::flows);
    let service = Arc::new(service(job, clock, flows.clone(), log));
    ready(address);
    let answering = Arc::clone(&service);
    let respond = move |peer, request| Arc::clone(&answering).respond(peer, request);
    // Whether there is anything to report (CMSD) is the origin's to say: so each connection has a second descriptor.
    let limits = Limits::per_address(CONNECTIONS_MAX).with_sockets();
    let written = door.serve(limits, accepting, respond, stop).await;
    service.stop().await;
    let counted = service.counts();
    let service = Arc::into_inner(service).expect("connections and tasks have ended");
    service.close()?;
    written?;
    Ok(counted)
}

fn service(
    job: &EdgeJob,
    clock: Clock,
    flows: Option<crate::flows::Flows>,
    log: Option<AccessLog>,
) -> Service {
    let server = job.server.as_deref().map(Into::into);
    let recorded = flows.map(|flows| Recorded { flows, server });
    let (home, http) = (job.origin.clone(), job.origin_http);
    Service {
        name: job.name.clone(),
        clock,
        scheme: if job.secure.is_some() { "https" } else { "http" },
        faults: Faults { spec: job.fault.clone(), seed: job.seed },
        upstream: Upstream::new(home, http, &job.certificate, recorded, clock),
        objects: Mutex::new(Objects::new(usize::try_from(job.store.get()).unwrap_or(usize::MAX))),
        places: Arc::new(Semaphore::new(job.in_flight as usize)),
        bounds: Bounds::new(OBJECT_MAX, COMING_MAX),
        log,
        tally: Tally::default(),
        numbers: AtomicU64::new(0),
        done: Done::default(),
        tasks: Mutex::new(JoinSet::new()),
    }
}
