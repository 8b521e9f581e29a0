//! The publisher: the loop between the camera and the session.

use std::pin::Pin;

use moq_net::{Client, Timescale, Timestamp, broadcast, group, origin, track};
use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Summary as Said};
use suiro_media::live::FootageSpec;
use suiro_realtime::ladder::{Hysteresis, Ladder};
use suiro_realtime::{Camera, Feed, Frame};
use suiro_record::words::FlowRole;
use suiro_scenario::{Job, MoqAdaptation, MoqPublisher, MoqStreams};
use suiro_units::{BitRate, Bytes, Duration, Time};

use crate::catalog::{self, Catalog};
use crate::client::{Common, Link, is_farewell};
use crate::follow::{Follow, Sample};
use crate::net::Behaviour;
use crate::records::{EVERY, Records, Summary};
use crate::{EndpointError, container, control};

/// A maximum age that nothing reaches: longer than any trial, so everything is sent, however late.
pub(crate) const FOREVER: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
/// The encoder follows the connection at every fifth sample: every 50 ms.
const FOLLOW_EVERY: u64 = 5;
/// Streams that the relay may open at a client.
const STREAMS: u32 = 4096;

/// What a publisher needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct PublisherJob {
    /// As for every client.
    pub common: Common,
    /// What the camera sees.
    pub camera: FootageSpec,
    /// The bit rate of its encoder.
    pub rate: BitRate,
    /// What is sent as one stream, or as a datagram.
    pub streams: MoqStreams,
    /// Interval of key frames.
    pub key_every: Duration,
    /// Whether the encoder follows what QUIC can send.
    pub adaptation: MoqAdaptation,
    /// How much older than the newest a frame may be and still be sent; `None`: any age.
    pub deadline: Option<Duration>,
}

impl PublisherJob {
    /// What a trial's job file asks for; `None` if the endpoint is no publisher, or its relay is not among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let spec = job.endpoint.spec.downcast::<MoqPublisher>()?;
        let offered = (spec.broadcast.as_str(), spec.token.as_ref(), spec.draft);
        let behaviour = Behaviour {
            congestion: spec.congestion,
            delta: spec.delta,
            streams: STREAMS,
            qlog: spec.qlog.then(|| qlog(job)),
        };
        Some(Self {
            common: Common::from_job(job, &spec.to, offered, behaviour)?,
            camera: spec.camera.clone(),
            rate: spec.rate,
            streams: spec.streams,
            key_every: spec.key_every,
            adaptation: spec.adaptation,
            deadline: spec.deadline,
        })
    }
}

/// Folder and prefix of an endpoint's qlogs.
pub(crate) fn qlog(job: &Job) -> (std::path::PathBuf, String) {
    (job.dir.join("qlog"), job.endpoint.name.clone())
}

/// Runs a trial's job of a publisher.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = PublisherJob::from_job(job).ok_or("a publisher's job names its relay")?;
    let (pulse, ready, stop) = context.parts();
    let work =
        async { Ok::<_, Failure>(run(&work, pulse.clock(), ready, stop.requested()?).await?) };
    Ok(Said::of(&pulse.block_on(work)?))
}

/// Publishes until `stop` is ready. `ready` is called once, when the footage is at hand.
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
    let common = &job.common;
    let congestion = common.behaviour.congestion.name();
    let mut records = Records::create(&common.dir, &common.name, congestion)?;
    ready();
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = clock.sleep_until(common.start) => {}
        () = &mut stop => return Ok(records.close()?),
    }
    let (origin, driver) = origin::Producer::new(origin::Config::default());
    tokio::spawn(moq_net::time::run(driver));
    let broadcast = Broadcast::announce(&origin, job)?;
    let client = Client::new().with_publisher(&origin);
    let link = tokio::select! {
        link = common.connect(clock, client, &mut records, FlowRole::Sender) => link?,
        () = &mut stop => return Ok(records.close()?),
    };
    records.target = Some(job.rate);
    let adapting = (job.adaptation == MoqAdaptation::Encoder).then(|| Adapting::new(job));
    let publisher =
        Publisher { clock, job, records, link, broadcast, key: None, adapting, looks: 0 };
    publisher.run(camera, stop).await
}

/// The broadcast and its tracks.
struct Broadcast {
    // A broadcast ends when its producer is dropped, and so do tracks.
    _broadcast: broadcast::Producer,
    _catalog: track::Producer,
    video: track::Producer,
    /// The group of pictures that is being sent, where each is a stream.
    group: Option<group::Producer>,
}

impl Broadcast {
    fn announce(origin: &origin::Producer, job: &PublisherJob) -> Result<Self, EndpointError> {
        let failed = || EndpointError::session(format!("publishing `{}`", job.common.broadcast));
        let broadcast = origin.create_broadcast(&job.common.broadcast).map_err(failed())?;
        let info = track::Info::default().with_timescale(Timescale::MICRO);
        let deadline = job.deadline.map_or(FOREVER, Into::into);
        let mut catalog = broadcast.create_track(catalog::TRACK, info.clone()).map_err(failed())?;
        let video =
            broadcast.create_track(catalog::VIDEO, info.with_max_age(deadline)).map_err(failed())?;
        let size = (job.camera.width, job.camera.height);
        let text = Catalog::of_camera(size, job.camera.fps, job.rate.as_bps()).write();
        catalog.write_frame(Timestamp::ZERO, text).map_err(failed())?;
        broadcast.announce(Default::default()).map_err(failed())?;
        Ok(Self { _broadcast: broadcast, _catalog: catalog, video, group: None })
    }

    /// Writes a frame to its track.
    fn send(
        &mut self,
        streams: MoqStreams,
        (time_us, key): (u64, bool),
        object: Vec<u8>,
    ) -> Result<(), moq_net::Error> {
        let time = Timestamp::from_micros(time_us).map_err(|_| moq_net::Error::Closed)?;
        if streams == MoqStreams::Frame {
            return self.video.write_frame(time, object);
        }
        if key && let Some(before) = self.group.take() {
            before.finish()?;
        }
        if self.group.is_none() {
            self.group = Some(self.video.append_group()?);
        }
        match &mut self.group {
            Some(group) => group.write_frame(time, object),
            None => Ok(()),
        }
    }
}

struct Publisher<'a> {
    clock: Clock,
    job: &'a PublisherJob,
    records: Records,
    link: Link,
    broadcast: Broadcast,
    /// When the last key frame was captured.
    key: Option<Time>,
    adapting: Option<Adapting>,
    looks: u64,
}

/// The state of an encoder that follows the connection.
struct Adapting {
    follow: Follow,
    ladder: Ladder,
}

impl Adapting {
    fn new(job: &PublisherJob) -> Self {
        let size = (job.camera.width, job.camera.height);
        let ladder = Ladder::new(size, job.camera.fps, job.rate, Hysteresis::default());
        Self { follow: Follow::new(job.rate, job.rate), ladder }
    }
}

/// What woke the publisher.
enum Awake {
    Frame(Option<Frame>),
    Wanted,
    Look,
    Closed(moq_net::Error),
    Stopped,
}

impl Publisher<'_> {
    async fn run(
        mut self,
        camera: Camera,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Summary, EndpointError> {
        // The camera starts when somebody asks for its video.
        let (mut camera, mut feed): (Option<Camera>, Option<Feed>) = (Some(camera), None);
        let session = self.link.session.clone();
        let mut closed = std::pin::pin!(session.closed());
        let wanted = self.broadcast.video.demand();
        let (mut look, mut ended) = (self.clock.now(), false);
        loop {
            let frame = async {
                match &mut feed {
                    Some(feed) => feed.next().await,
                    None => std::future::pending().await,
                }
            };
            let awake = tokio::select! {
                biased;
                () = &mut stop => Awake::Stopped,
                frame = frame => Awake::Frame(frame),
                error = &mut closed, if !ended => Awake::Closed(error),
                _ = wanted.used(), if camera.is_some() => Awake::Wanted,
                () = self.clock.sleep_until(look) => Awake::Look,
            };
            match awake {
                Awake::Frame(Some(frame)) => self.on_frame(&frame, feed.as_ref())?,
                Awake::Wanted => {
                    if let Some(camera) = camera.take() {
                        feed = Some(self.start(camera).await?);
                    }
                }
                Awake::Look => {
                    let now = self.clock.now();
                    self.records.look(now)?;
                    look = now + EVERY;
                    self.looks += 1;
                    if let Some(feed) = &mut feed
                        && self.looks.is_multiple_of(FOLLOW_EVERY)
                    {
                        self.adapt(now, feed)?;
                    }
                }
                Awake::Closed(cause) => {
                    let (now, number) = (self.clock.now(), self.link.number);
                    self.records.ended(now, number, &cause.to_string())?;
                    ended = true;
                    if is_farewell(&cause) {
                        continue;
                    }
                    let doing = format!("publishing `{}`", self.job.common.broadcast);
                    return Err(EndpointError::Session { doing, cause });
                }
                Awake::Frame(None) | Awake::Stopped => break,
            }
        }
        if let Some(feed) = feed {
            feed.stop()?;
        }
        let records = self.records.close()?;
        self.link.close().await;
        Ok(records)
    }

    /// Starts the camera, on another thread: it takes a while, and the session must run meanwhile.
    async fn start(&self, camera: Camera) -> Result<Feed, EndpointError> {
        let (clock, rate) = (self.clock, self.job.rate);
        let start =
            move || camera.start(clock.now(), rate, clock.epoch_unix_ns(), move || clock.now());
        let mut feed = tokio::task::spawn_blocking(start)
            .await
            .unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))?;
        if let Some(adapting) = &self.adapting {
            let rung = adapting.ladder.rung();
            feed.set_fps(rung.fps);
            feed.set_size(rung.size.0, rung.size.1)?;
        }
        Ok(feed)
    }

    /// Sets the encoder to what the connection can send.
    fn adapt(&mut self, now: Time, feed: &mut Feed) -> Result<(), EndpointError> {
        let connection = &self.link.connection;
        let Some(adapting) = &mut self.adapting else { return Ok(()) };
        let Some(look) = control::look(connection) else { return Ok(()) };
        let Some(path) = connection.path_stats(moq_noq::PathId::ZERO) else { return Ok(()) };
        let sample = Sample {
            acked: look.acked,
            waiting: Bytes::new(look.waiting),
            rtt: path.rtt.into(),
            rtt_min: look.min_rtt.map(Into::into),
        };
        let rate = adapting.follow.on_sample(now, sample);
        self.records.target = Some(rate);
        feed.set_rate(rate);
        if let Some(rung) = adapting.ladder.on_rate(now, rate) {
            feed.set_fps(rung.fps);
            feed.set_size(rung.size.0, rung.size.1)?;
        }
        Ok(())
    }

    fn on_frame(&mut self, frame: &Frame, feed: Option<&Feed>) -> Result<(), EndpointError> {
        if frame.key {
            self.key = Some(frame.captured);
        }
        let since = self.key.map_or(Duration::ZERO, |key| frame.captured.saturating_since(key));
        // The next frame will be late enough.
        let frame_time = Duration::from_secs(1) / u64::from(self.job.camera.fps.max(1));
        if since + frame_time >= self.job.key_every
            && let Some(feed) = feed
        {
            feed.request_key_frame();
        }
        let now = self.clock.now();
        let mark = container::mark(frame.number, frame.references, frame.rate);
        let time_us = self.clock.unix_ns(frame.captured) / 1000;
        let object = container::write(time_us, mark.leaving(now, frame.captured), &frame.data);
        self.broadcast
            .send(self.job.streams, (time_us, frame.key), object)
            .map_err(EndpointError::session("sending a frame"))
    }
}
