//! The origin: a media package as DASH and HLS over HTTP.
//!
//! | path | what |
//! |---|---|
//! | `/manifest.mpd` | the MPD (fragmented MP4 only) |
//! | `/master.m3u8` | the multivariant playlist |
//! | `/RUNG.m3u8` | the media playlist of a rung (`v0`, `v1`, … `a`) |
//! | `/RUNG/init.mp4` | its initialisation segment |
//! | `/RUNG/NUMBER.m4s`, `.ts` | its segments, by number |
//! | `/RUNG/tTICKS.m4s` | the same, by where they begin in ticks of the MPD's timescale |
//! | `/RUNG/NUMBER.PART.m4s` | live with chunks: the parts of a segment, from 0 |
//! | `/time` | the clock that live availability goes by |
//! | `/cmcd` | by POST: events that players report (event mode of CMCD) |
//!
//! A segment before its time is 404 (RFC 9110 §15.5.5: perhaps later), one that is too old 410
//! (§15.5.11: never again). Status 425, which some servers send for the former, means something
//! else (RFC 8470: a request that may be a replay).
//!
//! With [`ChunkSpec`], a segment is sent while it is captured, chunk by chunk as each has been captured, and HLS lists
//! parts: RFC 8216bis (draft-pantos-hls-rfc8216bis) and the low-latency modes of DASH-IF. A request for what will begin
//! within a segment's length waits.

pub mod catalogue;
pub mod chunks;
#[cfg(test)]
mod conditions_tests;
mod hls;
#[cfg(test)]
pub(crate) mod manifest;
#[cfg(test)]
mod manifest_tests;
mod mpd;
mod package;
pub mod parts;
#[cfg(test)]
mod parts_tests;
#[cfg(test)]
mod rules_tests;
mod rungs;
mod serve;
mod take;
#[cfg(test)]
mod take_tests;
mod tell;
#[cfg(test)]
mod tell_tests;
pub mod timeline;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use suiro_endpoint::{Context, Failure, Summary};
use suiro_record::RecordError;
use suiro_scenario::{Declares, EndpointSpec, HlsRungs, Job, Mode};
use suiro_units::{BitRate, Duration};
use tokio::net::TcpListener;

use crate::Clock;
use crate::flows::{Accepting, Records};
pub use crate::server::{Counts, DoorError, Secure};
use crate::server::{Door, Listening, begin_records};
use catalogue::Catalogue;
use serve::Service;
use suiro_serving as serving;
use timeline::Schedule;

/// Where the MPD is.
pub const MPD_PATH: &str = "/manifest.mpd";
/// Where the multivariant playlist is.
pub const MULTIVARIANT_PATH: &str = "/master.m3u8";
/// Where the clock is.
pub const TIME_PATH: &str = "/time";
/// Where players report events (CMCD, CTA-5004-B §2.2).
pub const EVENTS_PATH: &str = "/cmcd";
/// The delay that the MPD suggests, in segments: the advice of RFC 8216 §6.3.3 for HLS.
const SUGGESTED_DELAY_SEGMENTS: u64 = 3;
/// The longest part of HLS if nothing else is asked for. Apple's authoring guide advises 1 s; half of it plays 1.5 s behind.
pub const PART: Duration = Duration::from_millis(500);
/// Segments held in memory.
const CACHE_BYTES_MAX: usize = 256 << 20;

/// Where an origin takes bodies from.
pub trait Media: Send + Sync + 'static {
    /// The initialisation segment of a rung.
    fn init(&self, track: usize, rung: usize) -> io::Result<Bytes>;
    /// Segment `number` of the endless stream, moved to its place in time; with as many chunks as the catalogue lists.
    fn segment(&self, track: usize, rung: usize, number: u64) -> io::Result<Bytes>;
}

/// Why an origin does not serve.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// It cannot listen.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The package cannot be read.
    #[error(transparent)]
    Media(#[from] suiro_media::MediaError),
    /// The package cannot be served.
    #[error("media package {path}: {problem}")]
    Package {
        /// The package's folder.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// How a live stream is cut, to be sent while it is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSpec {
    /// The longest chunk; one frame at least.
    pub chunk: Duration,
    /// The longest part of HLS; one chunk at least.
    pub part: Duration,
}

impl ChunkSpec {
    /// Chunks of this length, in parts of the length given, else of [`PART`].
    pub fn new(chunk: Duration, part: Option<Duration>) -> Self {
        Self { chunk, part: part.unwrap_or(PART) }
    }
}

/// What an origin is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginJob {
    /// Where to listen; [`crate::net::any_address`] for every address.
    pub listen: SocketAddr,
    /// TCP congestion control of its connections; `None`: the kernel's default.
    pub congestion: Option<String>,
    /// TLS, and what is spoken in it; `None`: HTTP/1.1 in clear text.
    pub secure: Option<Secure>,
    /// The folder of the media package.
    pub package: PathBuf,
    /// Whether segments appear as time passes.
    pub mode: Mode,
    /// Live: how much of the past is listed; at least four segments are. The stream began this
    /// long before the epoch.
    pub window: Duration,
    /// On demand: how long the stream is at least; the package is repeated.
    pub length: Duration,
    /// Which rungs HLS offers.
    pub hls_rungs: HlsRungs,
    /// Which bit rate of a rung manifests give.
    pub declares: Declares,
    /// Rungs of video above this bit rate are not offered; `None`: all are.
    pub top: Option<BitRate>,
    /// Live: whether segments are released chunk by chunk while they are captured; `None`: whole, at their ends.
    pub chunks: Option<ChunkSpec>,
    /// What the server is called in CMSD; `None`: it says nothing.
    pub cmsd: Option<String>,
    /// Where requests and connections are recorded; `None` to keep no record.
    pub records: Option<Records>,
    /// Connections of one address at the same time; `None`: as many as there are places.
    pub per_address: Option<usize>,
}

impl OriginJob {
    /// What a trial's job file asks for; `None` if the endpoint is no origin, or has no package.
    pub fn from_job(job: &Job) -> Option<Self> {
        let EndpointSpec::Origin(origin) = &job.endpoint.spec else { return None };
        Some(Self {
            listen: crate::net::any_address(origin.port),
            congestion: origin.tcp.clone(),
            secure: Secure::of(job, origin.http, origin.quic),
            package: job.media.clone()?,
            mode: origin.mode,
            window: origin.window,
            length: origin.length.unwrap_or(job.duration),
            hls_rungs: origin.hls_rungs,
            declares: origin.declares,
            top: origin.top,
            chunks: origin.chunk.map(|chunk| ChunkSpec::new(chunk, origin.part)),
            cmsd: origin.cmsd.then(|| job.endpoint.name.clone()),
            // Many players of a trial may share a host.
            per_address: None,
            records: Some(Records::of(job)),
        })
    }

    /// When segments are there, for segments of at most this length.
    fn schedule(&self, longest: Duration, clock: Clock) -> Schedule {
        match self.mode {
            Mode::Vod => Schedule::Vod { length: self.length },
            Mode::Live => {
                // RFC 8216 §6.2.2: a live playlist holds three target durations at least; and the
                // segment that is leaving.
                let window = self.window.max(longest * 4);
                // `availabilityStartTime` is written in milliseconds.
                let zero_ms = clock.epoch_unix_ns().saturating_sub(window.as_nanos()) / 1_000_000;
                Schedule::Live { zero_unix_ns: zero_ms * 1_000_000, window }
            }
        }
    }
}

/// Runs a trial's job of an origin.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let work = OriginJob::from_job(job).ok_or("an origin's job names its media")?;
    let done =
        context.run(async |pulse, ready, stop| run(&work, pulse.clock(), |_| ready(), stop).await);
    Ok(Summary::of(&done?))
}

/// Serves until `stop` is ready. `ready` is called once, with the address that it listens at.
///
/// # Errors
/// [`OriginError`], if the package cannot be read, the address or the congestion control not be
/// had.
pub async fn run(
    job: &OriginJob,
    clock: Clock,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<Counts, OriginError> {
    let (mut catalogue, shelf) =
        package::open(&job.package, job.chunks.filter(|_| job.mode == Mode::Live))?;
    catalogue.schedule = job.schedule(catalogue.longest_segment(), clock);
    catalogue.hls_rungs = job.hls_rungs;
    if job.declares == Declares::Nominal {
        catalogue.declare_nominal();
    }
    if let Some(top) = job.top {
        catalogue.leave_out_above(top);
    }
    let listening = Listening {
        address: job.listen,
        congestion: job.congestion.as_deref(),
        secure: job.secure.as_ref(),
        records: job.records.as_ref(),
    };
    let (door, address) = Door::open(&listening, clock)?;
    let (log, flows) = begin_records(job.records.as_ref(), address.port(), clock).await?;
    if let Some(records) = &job.records {
        rungs::write(&catalogue, &records.dir, &records.endpoint)?;
    }
    let media = Arc::new(shelf);
    let service = Service::new(catalogue, media, clock, CACHE_BYTES_MAX, log, job.cmsd.clone());
    ready(address);
    let per_address = job.per_address.unwrap_or(serving::CONNECTIONS_MAX);
    Ok(serve_with(door, per_address, flows, service, stop).await?)
}

/// Serves at `listener` until `stop` is ready.
pub async fn serve(
    listener: TcpListener,
    catalogue: Catalogue,
    media: Arc<dyn Media>,
    clock: Clock,
    stop: impl Future<Output = ()>,
) -> Counts {
    let service = Service::new(catalogue, media, clock, CACHE_BYTES_MAX, None, None);
    let door = Door::Plain(listener);
    let counts = serve_with(door, serving::CONNECTIONS_MAX, None, service, stop).await;
    counts.expect("without a record there is none to fail")
}

/// Serves over TLS at `address` until `stop` is ready. `ready` is called once, with the address that it listens at.
///
/// # Errors
/// [`DoorError`], if the address cannot be had, or the certificate not be made or written.
pub async fn serve_secure(
    (address, secure): (SocketAddr, &Secure),
    catalogue: Catalogue,
    media: Arc<dyn Media>,
    clock: Clock,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<Counts, DoorError> {
    let service = Service::new(catalogue, media, clock, CACHE_BYTES_MAX, None, None);
    let secure = Some(secure);
    let listening = Listening { address, congestion: None, secure, records: None };
    let (door, address) = Door::open(&listening, clock)?;
    ready(address);
    Ok(serve_with(door, serving::CONNECTIONS_MAX, None, service, stop).await?)
}

async fn serve_with(
    door: Door,
    per_address: usize,
    flows: Option<Accepting>,
    service: Service,
    stop: impl Future<Output = ()>,
) -> Result<Counts, RecordError> {
    let service = Arc::new(service);
    let limits = serving::Limits::per_address(per_address);
    let limits = if service.cmsd.is_some() { limits.with_sockets() } else { limits };
    let answering = Arc::clone(&service);
    let respond = move |peer, request| Arc::clone(&answering).respond(peer, request);
    let written = door.serve(limits, flows, respond, stop).await;
    let counts = service.counts();
    let service = Arc::into_inner(service).expect("every connection has ended");
    service.close()?;
    written?;
    Ok(counts)
}
