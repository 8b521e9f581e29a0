//! The endpoint that publishes: the loop between camera, sessions and sockets.

use std::pin::Pin;

use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Summary as Said};
use suiro_media::live::FootageSpec;
use suiro_realtime::{Camera, EncoderLog, Feed, Frame, KEYS_WITHIN, Microphone};
use suiro_record::words::Signalling;
use suiro_scenario::{Job, WebrtcPublisher};
use suiro_units::{BitRate, Duration, Time};

use crate::EndpointError;
use crate::endpoint::{Common, Endpoint, Summary, Woken};
use crate::peer::{Happened, Way};
use crate::sending::{Sending, Target};

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
    /// From one key frame to the next at most; `None`: only the first frame is one, and those that viewers ask for.
    pub key_every: Option<Duration>,
    /// The bit rate of its sound; `None`: it has none.
    pub audio: Option<BitRate>,
}

impl PublisherJob {
    /// What a trial's job file asks for; `None` if the endpoint is no publisher, or its viewer is not among the peers.
    ///
    /// # Errors
    /// The host's addresses are not known.
    pub fn from_job(job: &Job) -> Result<Option<Self>, EndpointError> {
        let Some(spec) = job.endpoint.spec.downcast::<WebrtcPublisher>() else { return Ok(None) };
        let door = (spec.port, &spec.token, Signalling::Whip);
        let Some(common) = Common::of(job, spec.to.as_ref(), door)? else { return Ok(None) };
        let audio = spec.audio.rate();
        let common = Common { sound: audio.is_some(), ..common };
        let rates = (spec.start_rate, spec.max_rate);
        let (camera, key_every) = (spec.camera.clone(), spec.key_every);
        Ok(Some(Self { common, camera, rates, key_every, audio }))
    }
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
    let log = EncoderLog::create(&job.common.dir, &job.common.name)?;
    let camera = camera.with_log(log.clone());
    let common = &job.common;
    let microphone =
        |rate| Microphone::create(&common.dir, &common.name, rate, clock.epoch_unix_ns());
    let microphone = job.audio.map(microphone).transpose()?;
    let mut endpoint = Endpoint::open(common, clock, (Way::Sends, job.rates)).await?;
    ready();
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = clock.sleep_until(job.common.start) => {}
        () = &mut stop => {}
    }
    endpoint.meet(&job.common.meeting).await?;
    let size = (job.camera.width, job.camera.height);
    let random = job.common.seed.random();
    let pictures = (size, job.camera.fps);
    let sending = Sending::new(pictures, job.rates, random, clock.epoch_unix_ns())
        .with_key_every(job.key_every)
        .with_sound(job.audio);
    let feed = Source::Waits(camera);
    Publisher { endpoint, sending, feed, microphone, log, followed: clock.now() }.run(stop).await
}

/// The camera, which is started when somebody watches.
enum Source {
    Waits(Camera),
    /// With what it was last set to.
    Runs(Box<Feed>, Option<Target>),
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
                let camera = camera.beginning_at(target.rung).with_keys_within(KEYS_WITHIN);
                let feed = camera.start(clock.now(), target.rate, epoch, move || clock.now())?;
                *self = Self::Runs(Box::new(feed), Some(target));
                Ok(())
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
        let rung = before.replace(target).map(|before| before.rung);
        if rung.is_none_or(|rung| rung.fps != target.rung.fps) {
            feed.set_fps(target.rung.fps);
        }
        if rung.is_none_or(|rung| rung.size != target.rung.size) {
            feed.set_size(target.rung.size.0, target.rung.size.1)?;
        }
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
    microphone: Option<Microphone>,
    log: EncoderLog,
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
            let sound = self.microphone.as_ref().and_then(Microphone::next_event);
            let due = sound.map_or(follow, |sound| sound.min(follow));
            let awake = tokio::select! {
                biased;
                () = &mut stop => Awake::Stopped,
                woken = self.endpoint.wait(&mut buffer, Some(due)) => Awake::Endpoint(woken?),
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
                    if let Some(microphone) = &mut self.microphone {
                        microphone.start(clock.now());
                    }
                    self.sending.on_connected();
                }
                Happened::KeyFrame => self.sending.on_key_frame_request(),
                _ => {}
            }
        }
        let now = clock.now();
        if let Some(microphone) = &mut self.microphone {
            while let Some(frame) = microphone.take(now)? {
                self.sending.on_sound(now, &frame, &mut self.endpoint.sessions);
            }
            self.endpoint.sessions.on_time(now);
        }
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
        self.log.close()?;
        self.microphone.map(Microphone::close).transpose()?;
        self.endpoint.close().await
    }
}
