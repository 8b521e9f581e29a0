//! The headless player.
//!
//! [`session`] decides, pure; `fetch` speaks HTTP; this module turns the loop between them and
//! writes the records. It does not decode: what it has fetched can be saved to files that a
//! decoder plays (`save`).

mod chunked;
mod failure;
mod fetch;
pub mod frames;
mod live;
mod meter;
mod parts;
mod record;
mod request;
mod retry;
mod save;
pub mod session;
pub mod single;
mod track;
mod watch;
mod wire;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use suiro_abr::playout::Totals;
use suiro_abr::{Algorithm, CatchUp, ChunkEstimator};
use suiro_endpoint::{Context, Failure, Pulse};
use suiro_scenario::{Cmcd, Download, EndpointSpec, HttpVersion, Job, Protocol};
use suiro_units::{Bytes, Duration, Ratio, Time, fnv1a};

use crate::Clock;
use crate::flows::Flows;
use crate::url::Url;
use chunked::Chunk;
pub use chunked::check_chunks;
pub(crate) use failure::{FetchError, PROGRESS_TIMEOUT, TOTAL_TIMEOUT};
use fetch::Client;
#[cfg(test)]
pub(crate) use fetch::Client as FetchClient;
use record::Recorder;
use session::{Config, Fetch, Fetched, Head, Progress, Session};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch as channel;
use watch::Abandoned;
pub(crate) use wire::{Connection, Incoming, Recorded, Transport};

/// The shortest wait: whatever a manifest says, the player never spins.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// What a player is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayerJob {
    /// The endpoint's name, for the records.
    pub name: String,
    /// The manifest: an MPD, or a multivariant playlist.
    pub url: Url,
    /// The name of the endpoint that serves it, for the records; `None` if it is none of the trial.
    pub server: Option<String>,
    /// What the manifest is.
    pub protocol: Protocol,
    /// The version of HTTP; the URL is `https` for 2 and 3.
    pub http: HttpVersion,
    /// The file with the only certificate that is trusted, for HTTP/2 and HTTP/3.
    pub certificate: PathBuf,
    /// How rungs are chosen.
    pub algorithm: Algorithm,
    /// How the throughput of segments in chunks is estimated.
    pub chunks: ChunkEstimator,
    /// The most media to hold ahead of the playhead.
    pub buffer: Duration,
    /// How it takes what it has asked for.
    pub download: Download,
    /// The kernel's buffer for what a connection receives; `None`: as the kernel sees fit.
    pub receive_buffer: Option<Bytes>,
    /// Live only: how far behind the live edge to play. `None`: as the manifest suggests, else
    /// three segments (RFC 8216 §6.3.3).
    pub target_latency: Option<Duration>,
    /// Live only: how the speed is chosen that keeps it there.
    pub catch_up: CatchUp,
    /// Live only: by how much the speed may change for it, at most 50 %. `None`: as the manifest says, else 5 %.
    pub speed_change: Option<Ratio>,
    /// Live only: how far it may fall behind before it seeks. `None`: 12 s, or 3 s at low latency.
    pub max_drift: Option<Duration>,
    /// Whether a segment that comes too slowly is given up for one of a lower rung.
    pub abandon: bool,
    /// Whether and how playback is reported to servers with each request.
    pub cmcd: Option<Cmcd>,
    /// Whether requests are sent with the first packets of a further connection of HTTP/3 (0-RTT).
    pub early_data: bool,
    /// Whether what was fetched is also saved as `played.NAME.*`.
    pub save: bool,
    /// The folder for records.
    pub dir: PathBuf,
    /// When to begin.
    pub start: Time,
    /// True to return when all is played; false to go on, idle, until stopped.
    pub leave_at_end: bool,
}

impl PlayerJob {
    /// What a trial's job file asks for; `None` if the endpoint is no player of ours or its origin
    /// is not among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let EndpointSpec::Player(player) = &job.endpoint.spec else { return None };
        let peer = job.peers.get(&player.origin)?;
        let port = peer.port?;
        let path = match player.protocol() {
            Protocol::Dash => crate::origin::MPD_PATH,
            Protocol::Hls => crate::origin::MULTIVARIANT_PATH,
        };
        Some(Self {
            name: job.endpoint.name.clone(),
            url: match peer.http.is_secure() {
                true => Url::parse_secure(&format!("https://{}:{port}{path}", peer.host)).ok()?,
                false => Url::parse(&format!("http://{}:{port}{path}", peer.host)).ok()?,
            },
            server: Some(player.origin.clone()),
            protocol: player.protocol(),
            http: peer.http,
            certificate: suiro_quic::tls::file(&job.dir, &player.origin),
            algorithm: player.abr,
            chunks: player.estimate.of_suiro().unwrap_or_default(),
            buffer: player.buffer,
            download: player.download,
            receive_buffer: player.receive_buffer,
            target_latency: player.target_latency,
            catch_up: player.catch_up,
            speed_change: player.speed_change,
            max_drift: player.max_drift,
            abandon: player.abandon,
            cmcd: player.cmcd,
            early_data: player.early_data,
            save: player.save,
            dir: job.dir.clone(),
            start: Time::ZERO + job.endpoint.start,
            leave_at_end: false,
        })
    }
}

/// Why a player did not play.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// Nothing could be played at all.
    #[error("{url}: {reason}")]
    Unplayable {
        /// The manifest.
        url: String,
        /// What went wrong last.
        reason: String,
    },
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] suiro_record::RecordError),
    /// What was played could not be saved.
    #[error("saving the played media to {path}: {cause}")]
    Save {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How long each state lasted; `None` if playback was never prepared.
    pub totals: Option<Totals>,
    /// Why playback broke off; `None` if it did not.
    pub failure: Option<String>,
    /// Why there was no manifest, if there was none.
    pub no_manifest: Option<String>,
    /// Why there was no media, if there was none.
    pub no_media: Option<String>,
    /// Requests made.
    pub requests: u64,
    /// Bytes of bodies received.
    pub body_bytes: u64,
    /// Why the table `frames` is empty; `None` if it has what was shown.
    pub no_frames: Option<&'static str>,
    /// Files with what was played.
    pub saved: Vec<PathBuf>,
}

/// Runs a trial's job of a player of ours.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<suiro_endpoint::Summary, Failure> {
    let work = PlayerJob::from_job(job).ok_or("a player's job names its origin")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse, ready, stop).await);
    Ok(suiro_endpoint::Summary::of(&done?))
}

/// Plays until `stop` is ready (or to the end, if the job asks for that). `ready` is called once,
/// when records are open and the player is about to begin.
///
/// A stream that breaks after it was playing is a measurement, not an error: it is recorded, and
/// reported in [`Summary::failure`].
///
/// # Errors
/// [`PlayerError`], if not a single frame could be played, or a file not be written.
pub async fn run(
    job: &PlayerJob,
    pulse: &Pulse,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Summary, PlayerError> {
    let clock = pulse.clock();
    let mut player = Player::new(job, pulse)?;
    ready();
    let mut stop = std::pin::pin!(stop);
    let begun = tokio::select! {
        () = clock.sleep_until(job.start) => true,
        () = &mut stop => false,
    };
    let failure = if begun { player.play(job.leave_at_end, stop).await? } else { None };
    let summary = player.close(failure)?;
    match &summary.failure {
        Some(reason) if summary.totals.is_none_or(|t| t.playing.is_zero()) => {
            Err(PlayerError::Unplayable { url: job.url.to_string(), reason: reason.clone() })
        }
        _ => Ok(summary),
    }
}

type Running = Pin<Box<dyn Future<Output = (Fetch, Fetched, Client)> + Send>>;

/// A connection, idle or at work.
enum Line {
    Idle(Box<Client>),
    Busy(Running, Under),
}

/// The request that a line is busy with: its number, how far it has come, and the chunks that have come of it.
struct Under {
    number: u64,
    progress: channel::Receiver<Progress>,
    chunks: UnboundedReceiver<Chunk>,
}

struct Player {
    clock: Clock,
    pulse: Pulse,
    session: Session,
    transport: Transport,
    home: Arc<Url>,
    flows: Recorded,
    recorder: Recorder,
    /// The session's playhead, for those that fetch.
    head: channel::Sender<Head>,
    /// One per lane of the session.
    lines: Vec<Line>,
}

/// What ended a wait.
enum Woken {
    Done(usize, Box<(Fetch, Fetched, Client)>),
    /// A chunk of a request that goes on has come.
    News,
    Due,
    Stopped,
}

impl Player {
    fn new(job: &PlayerJob, pulse: &Pulse) -> Result<Self, PlayerError> {
        let clock = pulse.clock();
        let config = Config {
            url: job.url.clone(),
            protocol: job.protocol,
            algorithm: job.algorithm,
            chunks: job.chunks,
            buffer: job.buffer,
            download: job.download,
            target_latency: job.target_latency,
            catch_up: job.catch_up,
            speed_change: job.speed_change,
            max_drift: job.max_drift,
            epoch_unix_ns: clock.epoch_unix_ns(),
            abandon: job.abandon,
            cmcd: job.cmcd,
            session: session_name(&job.name, clock),
            priorities: job.http.is_secure(),
            keep_bodies: job.save,
        };
        let transport =
            Transport::new(job.download, job.receive_buffer, job.http, &job.certificate, clock);
        let transport = if job.early_data { transport.with_early_data() } else { transport };
        let head = channel::Sender::new(Head::default());
        let home = Arc::new(job.url.clone());
        let server = job.server.as_deref().map(Into::into);
        let flows = Recorded { flows: Flows::create(&job.dir, &job.name, clock)?, server };
        let client = || {
            let (home, flows) = (home.clone(), Some(flows.clone()));
            Box::new(Client::new(clock, transport.clone(), home, flows, head.subscribe()))
        };
        let lines = (0..session::LANES).map(|_| Line::Idle(client())).collect();
        Ok(Self {
            clock,
            pulse: pulse.clone(),
            session: Session::new(config),
            transport,
            home,
            flows,
            recorder: Recorder::new(job)?,
            head,
            lines,
        })
    }

    async fn play(
        &mut self,
        leave_at_end: bool,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<String>, PlayerError> {
        loop {
            let now = self.now();
            self.tell_progress(now);
            self.session.advance(now);
            self.give_up(now)?;
            while let Some(fetch) = self.session.poll(now) {
                self.start(fetch);
            }
            self.recorder.frames(self.session.take_frames())?;
            let view = self.session.view();
            self.recorder.state(now, &view)?;
            if leave_at_end && view.is_over() {
                break;
            }
            if let Some(head) = self.session.head() {
                self.head.send_replace(head);
            }
            let row = self.recorder.next_row();
            let due = self.session.deadline().map_or(row, |due| due.min(row)).max(now + LEAST_WAIT);
            match wait(&mut self.lines, self.clock, due, stop.as_mut()).await {
                Woken::Due | Woken::News => {}
                Woken::Stopped => break,
                Woken::Done(lane, done) => {
                    let (fetch, fetched, client) = *done;
                    let now = self.now();
                    self.tell_progress(now);
                    self.lines[lane] = Line::Idle(Box::new(client));
                    let offset = self.session.clock_offset(&fetch, &fetched);
                    let length = self.session.length_of(&fetch);
                    self.recorder.request(&fetch, &fetched, offset, length)?;
                    for piece in self.session.on_fetched(now, &fetch, fetched) {
                        self.recorder.save(piece)?;
                    }
                }
            }
        }
        Ok(self.session.failure().map(str::to_owned))
    }

    /// The time. If the player did not run for some time, the session learns that before it receives a later time.
    fn now(&mut self) -> Time {
        self.pulse.now(|absence| self.session.on_absence(absence))
    }

    /// Cancels what the session gives up. Over HTTP/1.1, what is still to come of a response cannot be refused but
    /// by closing its connection (RFC 9112 §9.3: one that goes on must be read to the end). To read
    /// it to the end would take the very time that giving up is to save; the price of closing is a
    /// round trip for the next connection, and its slow start.
    fn give_up(&mut self, now: Time) -> Result<(), PlayerError> {
        while let Some(Abandoned { request, reason }) = self.session.abandon(now) {
            self.lines[request.fetch.lane] = self.idle();
            self.recorder.abandoned(&request, &reason)?;
        }
        Ok(())
    }

    fn start(&mut self, fetch: Fetch) {
        let lane = fetch.lane;
        let fresh = self.idle();
        let idle = std::mem::replace(&mut self.lines[lane], fresh);
        let Line::Idle(mut client) = idle else {
            unreachable!("the session keeps to one request per lane")
        };
        let (progress, chunks) = client.follow();
        let under = Under { number: fetch.number, progress, chunks };
        let running = Box::pin(async move {
            let fetched = client.fetch(&fetch).await;
            (fetch, fetched, *client)
        });
        self.lines[lane] = Line::Busy(running, under);
    }

    /// A line without a connection.
    fn idle(&self) -> Line {
        Line::Idle(Box::new(Client::new(
            self.clock,
            self.transport.clone(),
            self.home.clone(),
            Some(self.flows.clone()),
            self.head.subscribe(),
        )))
    }

    /// Passes the progress of the pending requests to the session.
    fn tell_progress(&mut self, now: Time) {
        for line in &mut self.lines {
            if let Line::Busy(_, Under { number, progress, chunks, .. }) = line {
                self.session.on_progress(*number, *progress.borrow());
                while let Ok(chunk) = chunks.try_recv() {
                    self.session.on_chunk(now, *number, &chunk);
                }
            }
        }
    }

    fn close(mut self, failure: Option<String>) -> Result<Summary, PlayerError> {
        let now = self.now();
        self.flows.flows.close()?;
        self.tell_progress(now);
        self.session.advance(now);
        for request in self.session.in_flight() {
            self.recorder.unfinished(request)?;
        }
        self.recorder.frames(self.session.take_frames())?;
        let no_frames = match self.session.rest_of_frames() {
            Ok(frames) => self.recorder.frames(frames).map(|()| None)?,
            Err(why) => Some(why),
        };
        let view = self.session.view();
        self.recorder.state(now, &view)?;
        let (no_manifest, no_media) = (self.session.no_manifest(), self.session.no_media());
        Ok(Summary {
            no_frames,
            no_manifest,
            no_media,
            ..self.recorder.close(self.session.totals(), failure)?
        })
    }
}

/// What a player's session is called: as long as a UUID, and the same in each run of a trial.
fn session_name(player: &str, clock: Clock) -> String {
    let begun = clock.epoch_unix_ns().to_be_bytes();
    let [high, low] =
        [0, 1].map(|half| fnv1a(player.bytes().chain(begun).chain(std::iter::once(half))));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// Waits for whatever comes first: a finished request, the time, the stop.
async fn wait(
    lines: &mut [Line],
    clock: Clock,
    due: Time,
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Woken {
    let finished = std::future::poll_fn(|cx| {
        for (lane, line) in lines.iter_mut().enumerate() {
            let Line::Busy(running, under) = line else { continue };
            if let Poll::Ready(done) = running.as_mut().poll(cx) {
                return Poll::Ready(Woken::Done(lane, Box::new(done)));
            }
            if !under.chunks.is_empty() {
                return Poll::Ready(Woken::News);
            }
        }
        Poll::Pending
    });
    tokio::select! {
        biased;
        () = stop => Woken::Stopped,
        woken = finished => woken,
        () = clock.sleep_until(due) => Woken::Due,
    }
}
