//! Chromium as publisher and viewer of Media over QUIC: WebTransport, whose congestion control is the browser's, and
//! WebCodecs.
//!
//! A page of ours (`web/moq`), served to the browser in its own host, sends what a camera of ours sees to a relay, or
//! shows what comes from one. It reports getStats of WebTransport, the objects of the video that came, and each frame
//! that was shown, with the stamp that it bears.

mod frames;
mod message;
mod record;
mod report;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use suiro_browser::{
    BrowserError, CAMERA, Chromium, Event, Events, Page, PauseMessage, Sent, Show, written,
};
use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Versions};
use suiro_media::live::{Footage, FootageSpec};
use suiro_record::words::FlowRole;
use suiro_scenario::{
    BrowserCongestion, Job, MoqProgram, MoqPublisher, MoqStreams, MoqViewer, Pause,
};
use suiro_units::{BitRate, Duration, Time};
use tokio::sync::mpsc::Sender;

use crate::catalog::{Catalog, VIDEO};
use crate::tls;
use message::{CameraJob, Command, Streams};
use record::{Log, Who};

pub use record::Summary;

/// Largest certificate that is read.
const CERTIFICATE_BYTES_MAX: u64 = 64 << 10;

const PAGE: Page = Page {
    html: include_str!("../../assets/moq.html"),
    script: include_str!("../../assets/moq.js"),
    workers: &[CAMERA, ("/player.js", include_str!("../../assets/moq-player.js"))],
};

/// So that the browser says which congestion control it was asked for, and what it counts.
const ARGUMENTS: &[&str] =
    &["--enable-blink-features=WebTransportCongestionControl,WebTransportStats"];

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

/// A camera and its encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct Camera {
    /// What it sees.
    pub footage: FootageSpec,
    /// The constant bit rate of its encoder.
    pub rate: BitRate,
    /// From one key frame to the next.
    pub key_every: Duration,
    /// What becomes a stream.
    pub streams: MoqStreams,
    /// From and until when nothing is sent, in order.
    pub pauses: Vec<(Time, Time)>,
}

/// What a browser is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct MoqJob {
    /// Its name, for records.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// The relay's name, host and port.
    pub relay: (String, String, u16),
    /// The name of the broadcast.
    pub broadcast: String,
    /// The token that is shown to the relay.
    pub token: Option<String>,
    /// The draft of moq-transport that is offered.
    pub draft: u8,
    /// What its congestion control is asked to optimise for.
    pub congestion: BrowserCongestion,
    /// Folder for records, where the relay's certificate is.
    pub dir: PathBuf,
    /// When to begin.
    pub start: Time,
}

impl MoqJob {
    fn of(
        job: &Job,
        role: Role,
        relay: &str,
        (broadcast, token, draft): (&str, &Option<String>, u8),
        congestion: BrowserCongestion,
    ) -> Option<Self> {
        let peer = job.peers.get(relay)?;
        Some(Self {
            name: job.endpoint.name.clone(),
            role,
            relay: (relay.to_owned(), peer.host.clone(), peer.port?),
            broadcast: broadcast.to_owned(),
            token: token.clone(),
            draft,
            congestion,
            dir: job.dir.clone(),
            start: Time::ZERO + job.endpoint.start,
        })
    }

    fn who(&self) -> Who {
        let (role, target) = match &self.role {
            Role::Publisher(camera) => (FlowRole::Sender, Some(camera.rate)),
            Role::Viewer { .. } => (FlowRole::Receiver, None),
        };
        let relay = (self.relay.0.clone(), self.relay.2);
        Who { name: self.name.clone(), role, relay, target }
    }

    /// What the page receives.
    fn for_page(
        &self,
        footage: Option<&Footage>,
        certificate: &[u8],
        clock: Clock,
    ) -> message::Job {
        let (_, host, port) = &self.relay;
        let query = match &self.token {
            Some(token) => format!("?{}={token}", crate::TOKEN_KEY),
            None => String::new(),
        };
        let camera = match (&self.role, footage) {
            (Role::Publisher(camera), Some(footage)) => Some(encoder(camera, footage)),
            _ => None,
        };
        message::Job {
            url: format!("https://{host}:{port}/{query}"),
            certificate: Sha256::digest(certificate).to_vec(),
            broadcast: self.broadcast.clone(),
            congestion: self.congestion,
            protocol: format!("moqt-{}", self.draft),
            camera,
            epoch_unix_ms: clock.epoch_unix_ns() as f64 / 1e6,
        }
    }
}

fn encoder(camera: &Camera, footage: &Footage) -> CameraJob {
    let rate_bps = camera.rate.as_bps();
    let catalog = Catalog::of_camera(footage.size(), footage.fps(), rate_bps);
    let codec = catalog.video.as_ref().and_then(|video| video.renditions.get(VIDEO));
    let codec = codec.map(|rendition| rendition.codec.replace("avc3", "avc1"));
    let streams = match camera.streams {
        // The scenario's check refuses datagrams of Chromium.
        MoqStreams::Frame | MoqStreams::Datagram => Streams::Frame,
        MoqStreams::Gop => Streams::Gop,
    };
    CameraJob {
        footage: footage.into(),
        codec: codec.expect("the catalog of a camera has its video"),
        catalog: String::from_utf8_lossy(&catalog.write()).into_owned(),
        rate_bps,
        key_every_ms: camera.key_every.as_millis_f64(),
        streams,
        pauses: camera.pauses.iter().map(PauseMessage::from).collect(),
    }
}

/// Why a browser does not publish or view.
#[derive(Debug, thiserror::Error)]
pub enum MoqError {
    /// Chromium is not installed, or could not be started.
    #[error(transparent)]
    Browser(#[from] BrowserError),
    /// There is no footage for the camera.
    #[error(transparent)]
    Live(#[from] suiro_media::live::LiveError),
    /// There is no certificate of the relay.
    #[error("reading the relay's certificate {}: {cause}\nhint: start the relay first", file.display())]
    Certificate {
        /// Where it was expected.
        file: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The page could not do what it should.
    #[error("the page in Chromium: {0}")]
    Page(String),
    /// The decoder of a viewer did not keep up, so what was shown says nothing of the path.
    #[error(
        "the viewer fell behind {times} times and gave up {frames} frames: the browser had too little CPU time\nhint: run fewer trials side by side, or in virtual time (--virtual)"
    )]
    Behind {
        /// How often.
        times: u64,
        /// The frames that were given up.
        frames: u64,
    },
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] suiro_realtime::LogError),
}

/// Runs a trial's job of a publisher: suiro's own, or Chromium.
///
/// # Errors
/// If it is not one, or as [`run`] and [`crate::publish::run`].
pub fn run_publisher(job: &Job, context: Context) -> Result<suiro_endpoint::Summary, Failure> {
    match job.endpoint.spec.downcast::<MoqPublisher>() {
        Some(spec) if spec.program == MoqProgram::Chromium => {
            let (footage, rate) = (spec.camera.clone(), spec.rate);
            let (key_every, streams) = (spec.key_every, spec.streams);
            let pauses = spec.pauses.iter().map(Pause::span).collect();
            let role = Role::Publisher(Camera { footage, rate, key_every, streams, pauses });
            let offered = (spec.broadcast.as_str(), &spec.token, spec.draft);
            let work = MoqJob::of(job, role, &spec.to, offered, spec.browser_congestion);
            run_job(&work.ok_or("a publisher's job names its relay")?, context)
        }
        _ => crate::publish::run_job(job, context),
    }
}

/// Runs a trial's job of a viewer: suiro's own, or Chromium.
///
/// # Errors
/// If it is not one, or as [`run`] and [`crate::view::run`].
pub fn run_viewer(job: &Job, context: Context) -> Result<suiro_endpoint::Summary, Failure> {
    match job.endpoint.spec.downcast::<MoqViewer>() {
        Some(spec) if spec.program == MoqProgram::Chromium => {
            let asked = (spec.broadcast.as_str(), &spec.token, spec.draft);
            let role = Role::Viewer { save: spec.save };
            let work = MoqJob::of(job, role, &spec.from, asked, spec.browser_congestion);
            run_job(&work.ok_or("a viewer's job names its relay")?, context)
        }
        _ => crate::view::run_job(job, context),
    }
}

fn run_job(work: &MoqJob, context: Context) -> Result<suiro_endpoint::Summary, Failure> {
    let log = context.log;
    let done = context.run_with_versions(async |pulse, ready, stop| {
        run(work, (pulse.clock(), log), ready, stop).await
    });
    Ok(suiro_endpoint::Summary::of(&done?))
}

/// Publishes or views until `stop` is ready. `ready` is called once, with the browser's version, when the page has all
/// that it needs.
///
/// # Errors
/// [`MoqError`]: Chromium or the relay's certificate is missing, the page fails, a viewer falls behind, or a file cannot be
/// written.
pub async fn run(
    job: &MoqJob,
    (clock, log): (Clock, fn(&str)),
    ready: impl FnOnce(&Versions),
    stop: impl Future<Output = ()>,
) -> Result<Summary, MoqError> {
    let chromium = Chromium::find().await?;
    let footage = match &job.role {
        Role::Publisher(camera) => Some(suiro_browser::footage(&camera.footage)?),
        Role::Viewer { .. } => None,
    };
    let save = job.role == Role::Viewer { save: true };
    let mut records = Log::create(&job.dir, job.who(), clock.epoch_unix_ns(), save)?;
    let certificate = certificate(&job.dir, &job.relay.0)?;
    let page = job.for_page(footage.as_ref(), &certificate, clock);
    let show = Show { page: PAGE, job: written(&page), footage, arguments: ARGUMENTS, commands: 1 };
    let (stage, orders, sent) = chromium.start((&job.dir, &job.name), clock, show).await?;
    let events = Events::new(sent, (clock, job.start), || ready(&chromium.versions));
    let failure = stage.run(until_it_fails(events, &orders, &mut records), stop).await?;
    let summary = records.close()?;
    suiro_browser::judge(failure, summary.set_up, log).map_err(MoqError::Page)?;
    match summary.behind {
        (0, _) => Ok(summary),
        (times, frames) => Err(MoqError::Behind { times, frames }),
    }
}

fn certificate(dir: &Path, relay: &str) -> Result<Vec<u8>, MoqError> {
    let file = tls::file(dir, relay);
    suiro_outside::file::read(&file, CERTIFICATE_BYTES_MAX)
        .map_err(|cause| MoqError::Certificate { file, cause })
}

/// Deals with what happens to the page, until it fails: why it did.
async fn until_it_fails(
    mut events: Events<impl FnOnce()>,
    orders: &Sender<String>,
    records: &mut Log,
) -> Result<String, MoqError> {
    loop {
        let failure = match events.next().await {
            Event::Begin => {
                // There is room for the one command.
                let _ = orders.try_send(written(&Command::Begin));
                None
            }
            Event::Sent(sent) => on_sent(sent, records)?,
            Event::Failed(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            return Ok(failure);
        }
    }
}

/// Deals with what the page sent: why it fails, if it does.
fn on_sent(sent: Sent, records: &mut Log) -> Result<Option<String>, MoqError> {
    match sent {
        Sent::Ready | Sent::Answer(..) => Ok(None),
        Sent::Frames(body) => Ok(match report::parse_objects(&body) {
            Ok(objects) => {
                records.on_objects(&objects);
                None
            }
            Err(reason) => Some(reason),
        }),
        Sent::Report(body) => match report::parse(&body) {
            Ok(report) => {
                let left_out = report.left_out;
                let failure = report.failure.clone();
                records.on_report(report)?;
                let missing = || format!("it left out {left_out} entries");
                Ok(failure.or_else(|| (left_out > 0).then(missing)))
            }
            Err(reason) => Ok(Some(reason)),
        },
    }
}

/// Whether a page's report is taken.
pub fn check_report(body: &[u8]) -> Result<(), String> {
    report::parse(body).map(drop)
}

/// Whether a page's objects are taken.
pub fn check_objects(body: &[u8]) -> Result<(), String> {
    report::parse_objects(body).map(drop)
}
