//! The endpoint that publishes: the loop between cameras, sessions and sockets.

use std::pin::Pin;

use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Summary as Said};
use suiro_media::live::FootageSpec;
use suiro_realtime::{Begin, Camera, EncoderLog, Feeds, Frame, KEYS_WITHIN, Microphone};
use suiro_record::words::Signalling;
use suiro_scenario::{Job, Pause, WebrtcPublisher, WebrtcQuality};
use suiro_units::{BitRate, Duration, Time};

use crate::EndpointError;
use crate::endpoint::{Common, Endpoint, Summary, Woken};
use crate::peer::{Happened, Way};
use crate::sending::Sending;

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
    /// The most that is sent of each lower encoding, falling; none: there is only one.
    pub qualities: Vec<BitRate>,
    /// From one key frame to the next at most; `None`: only the first frame is one, and those that viewers ask for.
    pub key_every: Option<Duration>,
    /// The bit rate of its sound; `None`: it has none.
    pub audio: Option<BitRate>,
    /// From and until when it sends no video, in order.
    pub pauses: Vec<(Time, Time)>,
}

impl PublisherJob {
    /// What a trial's job file asks for; `None` if the endpoint is no publisher, or its viewer is not among the peers.
    ///
    /// # Errors
    /// The host's addresses are not known.
    pub fn from_job(job: &Job) -> Result<Option<Self>, EndpointError> {
        let Some(spec) = job.endpoint.spec.downcast::<WebrtcPublisher>() else { return Ok(None) };
        let door = (spec.port, &spec.token, Signalling::Whip);
        let Some(common) = Common::of(job, spec.to.as_ref(), door, WebrtcQuality::Auto)? else {
            return Ok(None);
        };
        let audio = spec.audio.rate();
        let common = Common { sound: audio.is_some(), ..common };
        let rates = (spec.start_rate, spec.max_rate);
        let (camera, key_every) = (spec.camera.clone(), spec.key_every);
        let qualities = spec.qualities.clone();
        let pauses = spec.pauses.iter().map(Pause::span).collect();
        Ok(Some(Self { common, camera, rates, qualities, key_every, audio, pauses }))
    }

    /// The most that is sent of each encoding, from the highest to the lowest.
    fn most(&self) -> Vec<BitRate> {
        [self.rates.1].into_iter().chain(self.qualities.iter().copied()).collect()
    }
}

/// Runs a trial's job of a publisher.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = PublisherJob::from_job(job)?.ok_or("a publisher's job names its viewer")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse.clock(), ready, stop).await);
    Ok(Said::of(&done?))
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
    let most = job.most();
    let cameras =
        most.iter().map(|_| Camera::prepare(&job.camera)).collect::<Result<Vec<_>, _>>()?;
    let log = EncoderLog::create(&job.common.dir, &job.common.name)?;
    let common = &job.common;
    let microphone =
        |rate| Microphone::create(&common.dir, &common.name, rate, clock.epoch_unix_ns());
    let microphone = job.audio.map(microphone).transpose()?;
    let endpoint = Endpoint::open(common, clock, (Way::Sends, job.rates)).await?;
    ready();
    let random = (job.common.seed.random(), clock.epoch_unix_ns());
    let pictures = ((job.camera.width, job.camera.height), job.camera.fps);
    let sending =
        Sending::new(pictures, (job.rates.0, &most), job.key_every, random).with_sound(job.audio);
    let feeds = Feeds::new(clock, job.camera.clone(), (cameras, most.len()), log.clone());
    let feeds = feeds.pausing(job.pauses.clone());
    let followed = clock.now();
    let mut publisher = Publisher { endpoint, sending, feeds, microphone, log, followed };
    let mut stop = std::pin::pin!(stop);
    if !publisher.endpoint.begin(common, stop.as_mut()).await? {
        return publisher.finish().await;
    }
    publisher.run(stop).await
}

/// What woke the publisher.
enum Awake {
    Endpoint(Woken),
    Frame(usize, Option<Frame>),
    Stopped,
}

struct Publisher {
    endpoint: Endpoint,
    sending: Sending,
    /// The cameras, which start when somebody watches.
    feeds: Feeds,
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
            self.work().await?;
            self.endpoint.flush().await?;
            let follow = self.followed + FOLLOW_EVERY;
            let sound = self.microphone.as_ref().and_then(Microphone::next_event);
            let due = sound.map_or(follow, |sound| sound.min(follow));
            let awake = tokio::select! {
                biased;
                () = &mut stop => Awake::Stopped,
                woken = self.endpoint.wait(&mut buffer, Some(due)) => Awake::Endpoint(woken?),
                (encoding, frame) = self.feeds.next() => Awake::Frame(encoding, frame),
            };
            match awake {
                Awake::Endpoint(woken) => self.endpoint.on_woken(woken, &mut buffer),
                Awake::Frame(encoding, Some(frame)) => {
                    let now = self.endpoint.clock.now();
                    let sessions = &mut self.endpoint.sessions;
                    self.sending.on_frame(now, (encoding, &frame), sessions)?;
                    self.endpoint.sessions.on_time(now);
                }
                Awake::Frame(_, None) | Awake::Stopped => return self.finish().await,
            }
        }
    }

    /// Deals with what happened, and follows the estimates.
    async fn work(&mut self) -> Result<(), EndpointError> {
        let clock = self.endpoint.clock;
        while let Some((number, happened)) = self.endpoint.take_happened(Some(&self.sending))? {
            match happened {
                Happened::Connected => self.on_connected(clock.now(), number).await?,
                Happened::KeyFrame => self.sending.on_key_frame_request(clock.now(), number),
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
            self.start_and_stop(now).await?;
            self.set_encoders()?;
        }
        for encoding in 0..self.sending.encodings() {
            if self.sending.take_key_frame_request(encoding)
                && let Some(feed) = self.feeds.get(encoding)
            {
                feed.request_key_frame();
            }
        }
        Ok(())
    }

    async fn on_connected(&mut self, now: Time, number: u64) -> Result<(), EndpointError> {
        let Some(session) = self.endpoint.sessions.get(number) else { return Ok(()) };
        let (quality, estimate) = (session.quality, session.peer.estimate());
        self.sending.on_connected(now, number, quality, estimate);
        self.sending.follow(now, &mut self.endpoint.sessions);
        self.start_and_stop(now).await?;
        if let Some(microphone) = &mut self.microphone {
            microphone.start(now);
        }
        Ok(())
    }

    /// Starts the cameras of encodings that somebody is sent, and stops those of others.
    async fn start_and_stop(&mut self, now: Time) -> Result<(), EndpointError> {
        let sending = &self.sending;
        let begin = |encoding: usize| {
            let target = sending.target(encoding);
            Begin { rung: target.rung, rate: target.rate, keys_within: Some(KEYS_WITHIN) }
        };
        let is_wanted = |encoding: usize| sending.is_wanted(encoding);
        self.feeds.look(now, is_wanted, begin).await?;
        Ok(())
    }

    /// Sets encoders to what they are to make.
    fn set_encoders(&mut self) -> Result<(), EndpointError> {
        for encoding in 0..self.sending.encodings() {
            let target = self.sending.target(encoding);
            let Some(feed) = self.feeds.get(encoding) else { continue };
            feed.set_rate(target.rate);
            feed.set_fps(target.rung.fps);
            feed.set_size(target.rung.size.0, target.rung.size.1)?;
        }
        Ok(())
    }

    async fn finish(self) -> Result<Summary, EndpointError> {
        self.feeds.stop()?;
        self.log.close()?;
        self.microphone.map(Microphone::close).transpose()?;
        self.endpoint.close().await
    }
}
