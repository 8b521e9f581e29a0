//! Chromium as an end of WebRTC connections: libwebrtc, with its congestion control, encoder and jitter buffer.
//!
//! A page of ours (`web/webrtc`), served to the browser in its own host, sends what a camera of ours sees, or shows
//! what comes. It makes an offer itself, or answers those that this endpoint takes as a server of WHIP or WHEP and
//! hands over. It reports getStats, the coded frames on their way to the decoder, and each frame that was shown, with
//! its stamp.

mod frames;
mod message;
mod record;
mod report;
mod trials;

use std::path::PathBuf;

use suiro_browser::{
    BrowserError, CAMERA, Chromium, Event, Events, FootageMessage, Page, PauseMessage, Sent, Show,
    written,
};
use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Versions};
use suiro_media::live::{Footage, FootageSpec};
use suiro_record::words::{FlowRole, Signalling};
use suiro_scenario::{Job, Pause, WebrtcCodec, WebrtcPublisher, WebrtcQuality, WebrtcViewer};
use suiro_units::{BitRate, Duration, Time};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::desk::Desk;
use crate::endpoint::Meeting;
use crate::signalling::client::Server;
use crate::signalling::server::{WAITING_MAX, Waiting};
use crate::signalling::{Door, server as signalling};
use message::{PageRole, Resource};
use record::{Log, Who};

pub use record::Summary;

const PAGE: Page = Page {
    html: include_str!("../../assets/webrtc.html"),
    script: include_str!("../../assets/webrtc.js"),
    workers: &[CAMERA],
};

/// The page may use all addresses of its host, by their numbers, as it may where somebody allowed it the camera.
const ARGUMENTS: &[&str] = &[
    "--use-fake-ui-for-media-stream",
    "--disable-features=WebRtcHideLocalIpsWithMdns,Translate,MediaRouter,OptimizationHints,LocalNetworkAccessChecks",
];

/// Which way the video goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    /// It is what this camera sees.
    Publisher(Camera),
    /// It comes; if asked for, what could be decoded is kept, as `received.NAME.h264`.
    Viewer {
        /// Whether it is kept.
        save: bool,
    },
}

/// A camera, and how its video is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Camera {
    /// What it sees.
    pub footage: FootageSpec,
    /// The most that is sent.
    pub most: BitRate,
    /// From one key frame to the next at most; `None`: the browser decides.
    pub key_every: Option<Duration>,
    /// From and until when nothing is sent, in order.
    pub pauses: Vec<(Time, Time)>,
}

/// What a browser is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct WebrtcJob {
    /// Its name, for records.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Who makes the offer.
    pub meeting: Meeting,
    /// The bearer token that an offer has, or must have.
    pub token: Option<String>,
    /// The endpoint at the other end, if it is known.
    pub peer: Option<String>,
    /// Folder for records.
    pub dir: PathBuf,
    /// When to begin.
    pub start: Time,
    /// The codec of the video.
    pub codec: WebrtcCodec,
    /// The quality that a viewer asks for.
    pub quality: WebrtcQuality,
    /// Field trials of libwebrtc.
    pub field_trials: Option<String>,
}

impl WebrtcJob {
    fn of(
        job: &Job,
        role: Role,
        other: Option<&String>,
        (port, token): (u16, &Option<String>),
    ) -> Option<Self> {
        let signalling = match role {
            Role::Publisher(..) => Signalling::Whip,
            Role::Viewer { .. } => Signalling::Whep,
        };
        let token = token.clone();
        let meeting = match other {
            None => Meeting::Waits { address: None, port, token: token.clone() },
            Some(other) => {
                let peer = job.peers.get(other)?;
                let (host, port, token) = (peer.host.clone(), peer.port?, token.clone());
                Meeting::Offers(Server { host, port, signalling, path: None, token })
            }
        };
        let referring: Vec<&str> = job.referring().map(|(name, _)| name).collect();
        let alone = (referring.len() == 1).then(|| referring[0].to_owned());
        Some(Self {
            name: job.endpoint.name.clone(),
            role,
            meeting,
            token,
            peer: other.cloned().or(alone),
            dir: job.dir.clone(),
            start: Time::ZERO + job.endpoint.start,
            codec: WebrtcCodec::H264,
            quality: WebrtcQuality::Auto,
            field_trials: None,
        })
    }

    fn signalling(&self) -> Signalling {
        match (&self.role, &self.meeting) {
            (Role::Publisher(..), Meeting::Offers(_))
            | (Role::Viewer { .. }, Meeting::Waits { .. }) => Signalling::Whip,
            _ => Signalling::Whep,
        }
    }

    fn who(&self) -> Who {
        let role = match self.role {
            Role::Publisher(..) => FlowRole::Sender,
            Role::Viewer { .. } => FlowRole::Receiver,
        };
        let port = match &self.meeting {
            Meeting::Offers(server) => (server.port, FlowRole::Client),
            Meeting::Waits { port, .. } => (*port, FlowRole::Server),
        };
        let (name, peer, signalling) = (self.name.clone(), self.peer.clone(), self.signalling());
        Who { name, role, signalling, peer, port }
    }

    /// What the page receives.
    fn for_page(&self, footage: Option<&Footage>, clock: Clock) -> message::Job {
        let door = Door { signalling: self.signalling(), token: None };
        let offers_to = match &self.meeting {
            Meeting::Offers(Server { host, port, token, .. }) => {
                let url = format!("http://{host}:{port}{}", door.resource(self.quality));
                Some(Resource { url, token: token.clone() })
            }
            Meeting::Waits { .. } => None,
        };
        let (role, camera) = match &self.role {
            Role::Publisher(camera) => (PageRole::Publisher, Some(camera)),
            Role::Viewer { .. } => (PageRole::Viewer, None),
        };
        let key_every = camera.and_then(|camera| camera.key_every);
        let pauses = camera.map(|camera| camera.pauses.as_slice()).unwrap_or_default();
        message::Job {
            role,
            codec: self.codec,
            offers_to,
            max_bps: camera.map_or(0, |camera| camera.most.as_bps()),
            key_every_ms: key_every.map(Duration::as_millis_f64),
            footage: footage.map(FootageMessage::from),
            pauses: pauses.iter().map(PauseMessage::from).collect(),
            epoch_unix_ms: clock.epoch_unix_ns() as f64 / 1e6,
        }
    }
}

/// Why a browser does not publish or view.
#[derive(Debug, thiserror::Error)]
pub enum WebrtcError {
    /// Chromium is not installed, or could not be started.
    #[error(transparent)]
    Browser(#[from] BrowserError),
    /// There is no footage for the camera.
    #[error(transparent)]
    Live(#[from] suiro_media::live::LiveError),
    /// The port for offers is not free.
    #[error(transparent)]
    Net(#[from] crate::net::NetError),
    /// The page could not do what it should.
    #[error("the page in Chromium: {0}")]
    Page(String),
    /// A field trial had no effect.
    #[error("{0}")]
    Trials(String),
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] suiro_realtime::LogError),
}

/// Runs a trial's job of a publisher in Chromium.
///
/// # Errors
/// As [`run`].
pub fn run_publisher(
    job: &Job,
    spec: &WebrtcPublisher,
    context: Context,
) -> Result<suiro_endpoint::Summary, Failure> {
    let (footage, most, key_every) = (spec.camera.clone(), spec.max_rate, spec.key_every);
    let pauses = spec.pauses.iter().map(Pause::span).collect();
    let role = Role::Publisher(Camera { footage, most, key_every, pauses });
    let work = WebrtcJob::of(job, role, spec.to.as_ref(), (spec.port, &spec.token));
    let work = work.ok_or("a publisher's job names its viewer")?;
    let field_trials = spec.field_trials.clone();
    run_job(&WebrtcJob { codec: spec.codec, field_trials, ..work }, context)
}

/// Runs a trial's job of a viewer in Chromium.
///
/// # Errors
/// As [`run`].
pub fn run_viewer(
    job: &Job,
    spec: &WebrtcViewer,
    context: Context,
) -> Result<suiro_endpoint::Summary, Failure> {
    let role = Role::Viewer { save: spec.save };
    let work = WebrtcJob::of(job, role, spec.from.as_ref(), (spec.port, &spec.token));
    let work = work.ok_or("a viewer's job names its publisher")?;
    let (codec, quality) = (spec.codec, spec.quality);
    let field_trials = spec.field_trials.clone();
    run_job(&WebrtcJob { codec, quality, field_trials, ..work }, context)
}

fn run_job(work: &WebrtcJob, context: Context) -> Result<suiro_endpoint::Summary, Failure> {
    let log = context.log;
    let done = context.run_with_versions(async |pulse, ready, stop| {
        run(work, (pulse.clock(), log), ready, stop).await
    });
    Ok(suiro_endpoint::Summary::of(&done?))
}

/// Publishes or views until `stop` is ready. `ready` is called once, with the browser's version, when the page has all
/// that it needs and offers are taken.
///
/// # Errors
/// [`WebrtcError`]: Chromium is missing, its page fails, a field trial had no effect, or a file cannot be written.
pub async fn run(
    job: &WebrtcJob,
    (clock, log): (Clock, fn(&str)),
    ready: impl FnOnce(&Versions),
    stop: impl Future<Output = ()>,
) -> Result<Summary, WebrtcError> {
    let chromium = Chromium::find().await?;
    let footage = match &job.role {
        Role::Publisher(camera) => Some(suiro_browser::footage(&camera.footage)?),
        Role::Viewer { .. } => None,
    };
    let save = job.role == Role::Viewer { save: true };
    let records = Log::create(&job.dir, job.who(), (clock.now(), clock.epoch_unix_ns()), save)?;
    let (post, asked) = mpsc::channel(WAITING_MAX);
    let door = listen(job, post).await?;
    let page = job.for_page(footage.as_ref(), clock);
    let trials = job.field_trials.as_ref().filter(|trials| !trials.is_empty());
    let trials = trials.map(|trials| format!("--force-fieldtrials={trials}"));
    let arguments: Vec<&str> = ARGUMENTS.iter().copied().chain(trials.as_deref()).collect();
    let arguments = arguments.as_slice();
    let show = Show { page: PAGE, job: written(&page), footage, arguments, commands: WAITING_MAX };
    let (stage, orders, sent) = chromium.start((&job.dir, &job.name), clock, show).await?;
    let events = Events::new(sent, (clock, job.start), || ready(&chromium.versions));
    let mut end = End { desk: Desk::new(door, orders), records, asked, log };
    let failure = stage.run(end.until_it_fails(events), stop).await?;
    end.close(job, failure).await
}

/// Takes offers, if this end waits for them.
async fn listen(job: &WebrtcJob, post: Sender<Waiting>) -> Result<Door, WebrtcError> {
    let door = Door { signalling: job.signalling(), token: job.token.clone() };
    if let Meeting::Waits { address, port, .. } = &job.meeting {
        signalling::open(*address, *port, post).await?;
    }
    Ok(door)
}

/// The endpoint, without its browser.
struct End {
    desk: Desk,
    records: Log,
    asked: Receiver<Waiting>,
    log: fn(&str),
}

impl End {
    /// Deals with what happens to the page and what others ask for, until the page fails: why it did.
    async fn until_it_fails(
        &mut self,
        mut events: Events<impl FnOnce()>,
    ) -> Result<String, WebrtcError> {
        let mut asks = true;
        loop {
            tokio::select! {
                waiting = self.asked.recv(), if asks => match waiting {
                    Some(waiting) => {
                        self.desk.on_asked(waiting);
                    }
                    None => asks = false,
                },
                event = events.next() => match event {
                    Event::Begin => self.desk.begin(),
                    Event::Sent(sent) => if let Some(failure) = self.on_sent(sent)? {
                        return Ok(failure);
                    },
                    Event::Failed(failure) => return Ok(failure),
                },
            }
        }
    }

    /// Deals with what the page sent: why it fails, if it does.
    fn on_sent(&mut self, sent: Sent) -> Result<Option<String>, WebrtcError> {
        match sent {
            Sent::Ready => Ok(None),
            Sent::Answer(session, answer) => {
                self.desk.on_answer(session, answer);
                Ok(None)
            }
            Sent::Frames(body) => match report::parse_frames(&body) {
                Ok(frames) => {
                    self.records.on_frames(frames);
                    Ok(None)
                }
                Err(reason) => Ok(Some(reason)),
            },
            Sent::Report(body) => match report::parse(&body) {
                Ok(report) if report.left_out > 0 => {
                    Ok(Some(format!("it left out {} entries", report.left_out)))
                }
                Ok(report) => {
                    let ended = report.sessions.iter().filter(|session| session.ended.is_some());
                    ended.for_each(|session| self.desk.on_ended(session.session));
                    let failure = report.failure.clone();
                    self.records.on_report(report)?;
                    Ok(failure)
                }
                Err(reason) => Ok(Some(reason)),
            },
        }
    }

    /// Ends the session that the page opened, and completes the records.
    async fn close(self, job: &WebrtcJob, failure: Option<String>) -> Result<Summary, WebrtcError> {
        if let (Meeting::Offers(server), Some(location)) = (&job.meeting, self.records.location())
            && let Some(session) = server.place().join(location)
        {
            // The other end may be gone already, or be asked to stop too.
            let _ = server.delete(&session).await;
        }
        let heeded = trials::check(job.field_trials.as_deref(), self.records.feedback());
        let summary = self.records.close()?;
        suiro_browser::judge(failure, summary.connections > 0, self.log)
            .map_err(WebrtcError::Page)?;
        heeded.map_err(WebrtcError::Trials)?;
        Ok(summary)
    }
}

/// Whether a page's report is taken.
pub fn check_report(body: &[u8]) -> Result<(), String> {
    report::parse(body).map(drop)
}

/// Whether a page's coded frames are taken.
pub fn check_frames(body: &[u8]) -> Result<(), String> {
    report::parse_frames(body).map(drop)
}
