//! The endpoint that publishes: the loop between camera, sessions and sockets.

use std::pin::Pin;

use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Summary as Said};
use suiro_media::live::FootageSpec;
use suiro_realtime::{Camera, Feed, Frame};
use suiro_record::words::Signalling;
use suiro_scenario::{Job, WebrtcPublisher};
use suiro_units::{BitRate, Duration, Time};

use crate::EndpointError;
use crate::endpoint::{Common, Endpoint, Meeting, Summary, Woken};
use crate::net;
use crate::peer::{Happened, Way};
use crate::sending::{Sending, Target};
use crate::signalling::client::Server;

/// How often the encoder follows the estimate.
const FOLLOW_EVERY: Duration = Duration::from_millis(50);

/// What a publisher needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct PublisherJob {
    /// As for every endpoint.
    pub common: Common,
    /// What the camera sees.
    pub camera: FootageSpec,
    /// The estimate to begin with, and the most that is sent.
    pub rates: (BitRate, BitRate),
}

impl PublisherJob {
    /// What a trial's job file asks for; `None` if the endpoint is no publisher, or its viewer is not among the peers.
    ///
    /// # Errors
    /// The host's addresses are not known.
    pub fn from_job(job: &Job) -> Result<Option<Self>, EndpointError> {
        let Some(spec) = job.endpoint.spec.downcast::<WebrtcPublisher>() else { return Ok(None) };
        let signalling = Signalling::Whip;
        let Some(meeting) = meeting(job, spec.to.as_ref(), (spec.port, &spec.token, signalling))
        else {
            return Ok(None);
        };
        let common = common(job, meeting, spec.to.as_ref())?;
        let rates = (spec.start_rate, spec.max_rate);
        Ok(Some(Self { common, camera: spec.camera.clone(), rates }))
    }
}

/// Who makes the offer; `None` if the other end is not among the peers.
pub(crate) fn meeting(
    job: &Job,
    other: Option<&String>,
    (port, token, signalling): (u16, &Option<String>, Signalling),
) -> Option<Meeting> {
    let token = token.clone();
    let Some(other) = other else {
        return Some(Meeting::Waits { address: None, port, token });
    };
    let peer = job.peers.get(other)?;
    let (host, port) = (peer.host.clone(), peer.port?);
    Some(Meeting::Offers(Server { host, port, signalling, token }))
}

/// What every endpoint needs of its job.
pub(crate) fn common(
    job: &Job,
    meeting: Meeting,
    other: Option<&String>,
) -> Result<Common, EndpointError> {
    // Without a name of its own, the other end is the only one that refers to this one.
    let mut referring = job.referring().map(|(name, _)| name.to_owned());
    let alone = referring.next().filter(|_| referring.next().is_none());
    drop(referring);
    Ok(Common {
        name: job.endpoint.name.clone(),
        meeting,
        peer: other.cloned().or(alone),
        addresses: net::addresses()?,
        dir: job.dir.clone(),
        start: Time::ZERO + job.endpoint.start,
        seed: job.seed,
    })
}

/// Runs a trial's job of a publisher.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = PublisherJob::from_job(job)?.ok_or("a publisher's job names its viewer")?;
    let (pulse, ready, stop) = context.parts();
    let work =
        async { Ok::<_, Failure>(run(&work, pulse.clock(), ready, stop.requested()?).await?) };
    Ok(Said::of(&pulse.block_on(work)?))
}

/// Publishes until `stop` is ready. `ready` is called once, when all is at hand and offers are taken.
///
/// # Errors
/// [`EndpointError`].
pub async fn run(
    job: &PublisherJob,
    clock: Clock,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Summary, EndpointError> {
    let camera = Camera::prepare(&job.camera)?;
    let mut endpoint = Endpoint::open(&job.common, clock, (Way::Sends, job.rates)).await?;
    ready();
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = clock.sleep_until(job.common.start) => {}
        () = &mut stop => {}
    }
    endpoint.meet(&job.common.meeting).await?;
    let size = (job.camera.width, job.camera.height);
    let random = job.common.seed.random();
    let start = job.rates.0;
    let sending = Sending::new((size, job.camera.fps), start, random, clock.epoch_unix_ns());
    let feed = Source::Waits(camera);
    Publisher { endpoint, sending, feed, followed: clock.now() }.run(stop).await
}

/// The camera, which is started when somebody watches.
enum Source {
    Waits(Camera),
    Runs(Box<Feed>, Target),
    Ended,
}

impl Source {
    /// The next frame; for ever pending before the camera runs.
    async fn next(&mut self) -> Option<Frame> {
        match self {
            Self::Runs(feed, _) => feed.next().await,
            Self::Waits(_) | Self::Ended => std::future::pending().await,
        }
    }

    /// Starts it, if it was not.
    fn start(&mut self, clock: Clock, target: Target) -> Result<(), EndpointError> {
        match std::mem::replace(self, Self::Ended) {
            Self::Waits(camera) => {
                let epoch = clock.epoch_unix_ns();
                let feed = camera.start(clock.now(), target.rate, epoch, move || clock.now())?;
                let camera =
                    Target { rung: crate::ladder::Rung { size: (0, 0), fps: 0 }, ..target };
                *self = Self::Runs(Box::new(feed), camera);
                self.set(target)
            }
            other => {
                *self = other;
                Ok(())
            }
        }
    }

    /// Sets what the encoder is to make.
    fn set(&mut self, target: Target) -> Result<(), EndpointError> {
        let Self::Runs(feed, before) = self else { return Ok(()) };
        feed.set_rate(target.rate);
        if target.rung.fps != before.rung.fps {
            feed.set_fps(target.rung.fps);
        }
        if target.rung.size != before.rung.size {
            feed.set_size(target.rung.size.0, target.rung.size.1)?;
        }
        *before = target;
        Ok(())
    }
}

/// What woke the publisher.
enum Awake {
    Endpoint(Woken),
    Frame(Option<Frame>),
    Stopped,
}

struct Publisher {
    endpoint: Endpoint,
    sending: Sending,
    feed: Source,
    /// When the encoder last followed the estimate.
    followed: Time,
}

impl Publisher {
    async fn run(
        mut self,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Summary, EndpointError> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            self.work()?;
            self.endpoint.flush().await?;
            let follow = self.followed + FOLLOW_EVERY;
            let awake = tokio::select! {
                biased;
                () = &mut stop => Awake::Stopped,
                woken = self.endpoint.wait(&mut buffer, Some(follow)) => Awake::Endpoint(woken?),
                frame = self.feed.next() => Awake::Frame(frame),
            };
            match awake {
                Awake::Endpoint(woken) => self.endpoint.on_woken(woken, &mut buffer),
                Awake::Frame(Some(frame)) => {
                    let now = self.endpoint.clock.now();
                    self.sending.on_frame(now, &frame, &mut self.endpoint.sessions)?;
                    self.endpoint.sessions.on_time(now);
                }
                Awake::Frame(None) | Awake::Stopped => return self.finish().await,
            }
        }
    }

    /// Deals with what happened, and follows the estimate.
    fn work(&mut self) -> Result<(), EndpointError> {
        let clock = self.endpoint.clock;
        while let Some((_, happened)) = self.endpoint.take_happened(Some(self.sending.target()))? {
            match happened {
                Happened::Connected => {
                    self.sending.follow(clock.now(), &mut self.endpoint.sessions);
                    self.feed.start(clock, self.sending.target())?;
                    self.sending.on_connected();
                }
                Happened::KeyFrame => self.sending.on_key_frame_request(),
                _ => {}
            }
        }
        let now = clock.now();
        if now.saturating_since(self.followed) >= FOLLOW_EVERY {
            self.followed = now;
            self.sending.follow(now, &mut self.endpoint.sessions);
            self.feed.set(self.sending.target())?;
        }
        if self.sending.take_key_frame_request()
            && let Source::Runs(feed, _) = &self.feed
        {
            feed.request_key_frame();
        }
        Ok(())
    }

    async fn finish(self) -> Result<Summary, EndpointError> {
        if let Source::Runs(feed, _) = self.feed {
            feed.stop()?;
        }
        self.endpoint.close().await
    }
}
