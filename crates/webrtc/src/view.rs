//! The endpoint that views: the loop between sockets, sessions and viewer, and the table `frames`.

use std::pin::Pin;

use suiro_endpoint::{Context, Failure, Pulse, Summary as Said};
use suiro_media::screen;
use suiro_realtime::{Listening, Log};
use suiro_record::words::Signalling;
use suiro_scenario::{Job, WebrtcViewer};
use suiro_units::{BitRate, Time};
use suiro_viewer::Policy;

use crate::EndpointError;
use crate::endpoint::{Common, Endpoint, Summary, Woken};
use crate::peer::{Happened, Way};
use crate::watching::Watching;

/// What a viewer needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewerJob {
    /// As for every endpoint.
    pub common: Common,
    /// How it plays.
    pub viewer: Policy,
    /// Whether the sound waits for the video.
    pub lip_sync: bool,
    /// Whether what could be decoded is kept, as `received.NAME.h264`.
    pub save: bool,
}

impl ViewerJob {
    /// What a trial's job file asks for; `None` if the endpoint is no viewer, or its publisher is not among the peers.
    ///
    /// # Errors
    /// The host's addresses are not known.
    pub fn from_job(job: &Job) -> Result<Option<Self>, EndpointError> {
        let Some(spec) = job.endpoint.spec.downcast::<WebrtcViewer>() else { return Ok(None) };
        let door = (spec.port, &spec.token, Signalling::Whep);
        let Some(common) = Common::of(job, spec.from.as_ref(), door, spec.quality)? else {
            return Ok(None);
        };
        let WebrtcViewer { viewer, lip_sync, save, .. } = *spec;
        Ok(Some(Self { common, viewer, lip_sync, save }))
    }
}

/// Runs a trial's job of a viewer.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = ViewerJob::from_job(job)?.ok_or("a viewer's job names its publisher")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse, ready, stop).await);
    Ok(Said::of(&done?))
}

/// Views until `stop` is ready. `ready` is called once, when the endpoint's sockets are open.
///
/// # Errors
/// [`EndpointError`].
pub async fn run(
    job: &ViewerJob,
    pulse: &Pulse,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Summary, EndpointError> {
    let clock = pulse.clock();
    // A receiver has no estimate.
    let rates = (BitRate::from_bps(0), BitRate::from_bps(0));
    let endpoint = Endpoint::open(&job.common, clock, (Way::Receives, rates)).await?;
    let save = job.save.then_some(screen::Codec::H264);
    let common = &job.common;
    let log = Log::create(&common.dir, &common.name, clock.epoch_unix_ns(), save)?;
    let (dir, name) = (common.dir.clone(), common.name.clone());
    let policy = (job.viewer, job.lip_sync);
    let listening = Listening::new(dir, name, clock.epoch_unix_ns(), policy);
    ready();
    let watching = Watching::new(job.viewer, listening, log);
    let mut viewer = Viewer { pulse: pulse.clone(), endpoint, watching };
    let mut stop = std::pin::pin!(stop);
    if !viewer.endpoint.begin(common, stop.as_mut()).await? {
        return viewer.finish().await;
    }
    viewer.run(stop).await
}

struct Viewer {
    pulse: Pulse,
    endpoint: Endpoint,
    watching: Watching,
}

impl Viewer {
    /// The time. The viewer hears of an interval in which this process did not run before it hears of any later time.
    fn now(&mut self) -> Time {
        self.pulse.now(|absence| self.watching.on_absence(absence.from, absence.to))
    }

    async fn run(
        mut self,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Summary, EndpointError> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            self.work()?;
            self.endpoint.flush().await?;
            let due = self.watching.next_event();
            let woken: Option<Woken> = tokio::select! {
                biased;
                () = &mut stop => None,
                woken = self.endpoint.wait(&mut buffer, due) => Some(woken?),
            };
            let Some(woken) = woken else { return self.finish().await };
            self.endpoint.on_woken(woken, &mut buffer);
        }
    }

    fn work(&mut self) -> Result<(), EndpointError> {
        while let Some((number, happened)) = self.endpoint.take_happened(None)? {
            if !self.is_watched(number) {
                continue;
            }
            match happened {
                Happened::Packet(video) => {
                    let now = self.now();
                    if let Some(session) = self.endpoint.sessions.get(number) {
                        session.on_video(now);
                    }
                    self.watching.on_video(now, number, *video)?;
                }
                Happened::Sound(sound) => {
                    let now = self.now();
                    self.watching.on_sound(now, number, *sound)?;
                }
                _ => {}
            }
        }
        let watched = self.watching.session();
        if watched.is_some_and(|watched| self.endpoint.sessions.get(watched).is_none()) {
            self.watching.on_end();
        }
        let now = self.now();
        if self.watching.advance(now)? {
            for number in self.endpoint.sessions.connected() {
                self.endpoint
                    .sessions
                    .with(now, number, |session| session.peer.request_key_frame(now));
            }
        }
        Ok(())
    }

    /// Whether packets of a session are taken: those of one session, as long as it is open.
    fn is_watched(&mut self, number: u64) -> bool {
        let other = self.watching.session().filter(|watched| *watched != number);
        other.is_none_or(|other| self.endpoint.sessions.get(other).is_none())
    }

    async fn finish(mut self) -> Result<Summary, EndpointError> {
        let now = self.now();
        let refused_frames = self.watching.close(now)?;
        Ok(Summary { refused_frames, ..self.endpoint.close().await? })
    }
}
