//! Players of others as endpoints: VLC, GStreamer, and dash.js, hls.js and Shaka Player in Chromium.
//!
//! [`run`] has the shape of suiro's own player: it plays one manifest until it is stopped, and writes the tables
//! `player` and `requests`. It starts the program as a child ([`suiro_browser::child`]), receives its reports (a module per player),
//! and makes rows of them ([`record`]). Values that a player does not report are null. [`ladder`] knows the manifest,
//! so that a URL in a player's report leads to its rung and its place in media time.
//!
//! | player | how it is heard | requests | rung shown | buffer | stalls | dropped frames | latency |
//! |---|---|---|---|---|---|---|---|
//! | VLC | its messages (`-vv`), `stats` of its control | without their ends | by segment and playhead | – | by its buffering | yes | within half a second |
//! | GStreamer | bus messages and debug log of `gst-launch-1.0` | without their size | by segment and time played | – | by its buffering | yes | by time played |
//! | dash.js, hls.js, Shaka Player | reports of our page | yes | yes | yes | yes | yes | yes |

mod browser;
mod gstreamer;
mod installed;
mod ladder;
mod record;
mod session;
mod vlc;

use std::collections::BTreeMap;
use std::path::PathBuf;

use suiro_abr::CatchUp;
use suiro_browser::{BrowserError, Missing};
use suiro_endpoint::{Context, Failure};
use suiro_http::{Clock, Url, origin};
use suiro_scenario::{
    Cmcd, DashEstimate, DashRules, EndpointSpec, HttpVersion, Job, Program, Protocol,
};
use suiro_units::{Duration, Ratio, Time};

pub use installed::{Installed, Located, locate, programs, remedy};
use session::Session;

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Served {
    /// The version of HTTP.
    pub http: HttpVersion,
    /// The file with the only certificate that is trusted, for HTTP/2 and HTTP/3.
    pub certificate: PathBuf,
}

/// What a player in a browser is configured with: keys of the endpoint `player`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Which rules of dash.js choose the rung.
    pub rules: DashRules,
    /// How dash.js measures the throughput of responses in chunks.
    pub estimate: DashEstimate,
    /// How dash.js chooses its speed: `Steps` is its own rule.
    pub catch_up: CatchUp,
    /// By how much the speed may change.
    pub speed_change: Option<Ratio>,
    /// How far behind its target it may fall before it seeks.
    pub max_drift: Option<Duration>,
    /// How it reports its playback to the server.
    pub cmcd: Option<Cmcd>,
}

/// What a player of others is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayJob {
    /// The endpoint's name, for the records.
    pub name: String,
    /// Which player.
    pub program: Program,
    /// The manifest: an MPD, or a multivariant playlist.
    pub url: Url,
    /// How the server is spoken to; only players in a browser speak more than HTTP/1.1.
    pub served: Served,
    /// What the manifest is.
    pub protocol: Protocol,
    /// The most media to hold ahead of the playhead; only players in a browser are configured with it.
    pub buffer: Duration,
    /// Live only: how far behind the live edge to play; only players in a browser are configured with it.
    pub target_latency: Option<Duration>,
    /// What else players in a browser are configured with.
    pub settings: Settings,
    /// The folder for records.
    pub dir: PathBuf,
    /// When to begin.
    pub start: Time,
}

impl PlayJob {
    /// What a trial's job file asks for; `None` if the endpoint is no player, or its origin is not
    /// among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let EndpointSpec::Player(player) = &job.endpoint.spec else { return None };
        let peer = job.peers.get(&player.origin)?;
        let port = peer.port?;
        let path = match player.protocol() {
            Protocol::Dash => origin::MPD_PATH,
            Protocol::Hls => origin::MULTIVARIANT_PATH,
        };
        Some(Self {
            name: job.endpoint.name.clone(),
            program: player.program,
            url: match peer.http.is_secure() {
                true => Url::parse_secure(&format!("https://{}:{port}{path}", peer.host)).ok()?,
                false => Url::parse(&format!("http://{}:{port}{path}", peer.host)).ok()?,
            },
            served: Served {
                http: peer.http,
                certificate: suiro_quic::tls::file(&job.dir, &player.origin),
            },
            protocol: player.protocol(),
            buffer: player.buffer,
            target_latency: player.target_latency,
            settings: Settings {
                rules: player.rules,
                estimate: player.estimate.of_dashjs().unwrap_or_default(),
                catch_up: player.catch_up,
                speed_change: player.speed_change,
                max_drift: player.max_drift,
                cmcd: player.cmcd,
            },
            dir: job.dir.clone(),
            start: Time::ZERO + job.endpoint.start,
        })
    }
}

/// Why a player did not play.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The program is not installed, or could not be started or talked to.
    #[error(transparent)]
    Program(#[from] BrowserError),
    /// The manifest could not be fetched or parsed, so that what it plays could not be identified.
    #[error("{url}: {reason}")]
    Manifest {
        /// Where it was asked for.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// The program ended, or broke off, without a single frame.
    #[error("{player} played nothing: {reason}")]
    Unplayable {
        /// The program and its version.
        player: String,
        /// The last it said.
        reason: String,
    },
    /// The server's certificate could not be read.
    #[error(transparent)]
    Certificate(#[from] suiro_quic::tls::TlsError),
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] suiro_record::RecordError),
}

impl PlayError {
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let error = BrowserError::system(doing);
        move |cause| error(cause).into()
    }
}

impl From<Missing> for PlayError {
    fn from(missing: Missing) -> Self {
        Self::Program(missing.into())
    }
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Whether a frame was shown.
    pub played: bool,
    /// Why playback broke off; `None` if it did not.
    pub failure: Option<String>,
    /// Interruptions after playback began.
    pub stalls: u64,
    /// Frames dropped, if the player reports them.
    pub dropped: Option<u64>,
    /// Requests that the player reported.
    pub requests: u64,
}

/// Runs a trial's job of a player: suiro's own, or another.
///
/// # Errors
/// If it is not one, or as [`run`] and [`suiro_http::player::run`].
pub fn run_job(job: &Job, context: Context) -> Result<suiro_endpoint::Summary, Failure> {
    let work = PlayJob::from_job(job).ok_or("a player's job names its origin")?;
    if work.program == Program::Suiro {
        return suiro_http::player::run_job(job, context);
    }
    let done = context
        .run_with_versions(async |pulse, ready, stop| run(&work, pulse.clock(), ready, stop).await);
    Ok(suiro_endpoint::Summary::of(&done?))
}

/// Plays until `stop` is ready. `ready` is called once, with the player's name and version, when
/// records are open and the player is about to begin.
///
/// A stream that breaks after it was playing is a measurement, not an error: it is recorded, and
/// reported in [`Summary::failure`].
///
/// # Errors
/// [`PlayError`], if the player is not installed, not a single frame could be played, or a file
/// not be written.
pub async fn run(
    job: &PlayJob,
    clock: Clock,
    ready: impl FnOnce(&BTreeMap<String, String>),
    stop: impl Future<Output = ()>,
) -> Result<Summary, PlayError> {
    let installed = Installed::find(job.program).await?;
    let mut stop = std::pin::pin!(stop);
    let mut session = tokio::select! {
        session = Session::open(job, clock) => session?,
        () = &mut stop => return Ok(Summary { played: false, failure: None, stalls: 0, dropped: None, requests: 0 }),
    };
    ready(&installed.versions);
    let failure = tokio::select! {
        () = &mut stop => None,
        failure = watch(&mut session, &installed) => failure?,
    };
    let summary = session.close(failure)?;
    match &summary.failure {
        Some(reason) if !summary.played => {
            let player = installed.to_string();
            Err(PlayError::Unplayable { player, reason: reason.clone() })
        }
        _ => Ok(summary),
    }
}

/// Waits for the start and plays until it breaks off: why, or `None` at the stream's end. To drop
/// it stops the player.
async fn watch(
    session: &mut Session<'_>,
    installed: &Installed,
) -> Result<Option<String>, PlayError> {
    session.clock.sleep_until(session.job.start).await;
    session.begin()?;
    match session.job.program {
        Program::Vlc => vlc::play(session, installed).await,
        Program::Gstreamer => gstreamer::play(session, installed).await,
        Program::Dashjs
        | Program::Dashjs45
        | Program::Hlsjs
        | Program::Hlsjs10
        | Program::Shaka => browser::play(session, installed).await,
        Program::Suiro => unreachable!("`Installed::find` knows only players of others"),
    }
}

/// Whether a report of the page for players in a browser is taken: fuzzing asks for nothing else.
///
/// # Errors
/// What is wrong with it.
pub fn check_report(body: &[u8]) -> Result<(), String> {
    browser::check_report(body)
}
