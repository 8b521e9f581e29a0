//! The publisher: the loop between the camera and the session.

use std::pin::Pin;
use std::sync::Arc;

use moq_net::{Client, origin};
use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Summary as Said};
use suiro_realtime::{Camera, EncoderLog, Frame, Microphone};
use suiro_record::words::FlowRole;
use suiro_scenario::Job;
use suiro_units::{Bytes, Time};

use crate::broadcast::{self, Broadcast};
use crate::client::{Link, is_farewell};
use crate::deadline::Groups;
use crate::encoders::Encoders;
use crate::follow::Sample;
use crate::job::PublisherJob;
use crate::records::{EVERY, Records, Summary};
use crate::{EndpointError, container, control};

/// The encoder follows the connection at every fifth sample: every 50 ms.
const FOLLOW_EVERY: u64 = 5;

/// Runs a trial's job of a publisher.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = PublisherJob::from_job(job).ok_or("a publisher's job names its relay")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse.clock(), ready, stop).await);
    Ok(Said::of(&done?))
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
    let log = EncoderLog::create(&common.dir, &common.name)?;
    let encoders = Encoders::new(clock, job, camera, log);
    let microphone =
        |rate| Microphone::create(&common.dir, &common.name, rate, clock.epoch_unix_ns());
    let microphone = job.audio.map(microphone).transpose()?;
    let congestion = common.behaviour.congestion.name();
    let mut records = Records::create(&common.dir, &common.name, congestion)?;
    ready();
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = clock.sleep_until(common.start) => {}
        () = &mut stop => return unused(records, encoders),
    }
    let (origin, driver) = origin::Producer::new(origin::Config::default());
    tokio::spawn(moq_net::time::run(driver));
    let broadcast = Broadcast::announce(&origin, job)?;
    let client = Client::new().with_publisher(&origin);
    let groups = broadcast::deadline(job).map(|deadline| Groups::new(clock, deadline));
    let link = tokio::select! {
        link = common.connect(clock, client, &mut records, FlowRole::Sender, groups.clone()) => link?,
        () = &mut stop => return unused(records, encoders),
    };
    let data = job.data.map(|_| clock.now());
    let publisher = Publisher {
        clock,
        job,
        records,
        link,
        groups,
        broadcast,
        encoders,
        microphone,
        data,
        looks: 0,
    };
    publisher.run(stop).await
}

/// Ends a publisher before it was connected.
fn unused(records: Records, encoders: Encoders) -> Result<Summary, EndpointError> {
    encoders.stop()?;
    Ok(records.close()?)
}

struct Publisher<'a> {
    clock: Clock,
    job: &'a PublisherJob,
    records: Records,
    link: Link,
    /// What is being sent, if it has a deadline.
    groups: Option<Arc<Groups>>,
    broadcast: Broadcast,
    encoders: Encoders,
    /// It starts when somebody receives its sound.
    microphone: Option<Microphone>,
    /// When the next object of the data track is due; `None` without one.
    data: Option<Time>,
    looks: u64,
}

/// What woke the publisher.
enum Awake {
    Frame(usize, Option<Frame>),
    Sound,
    Data,
    Look,
    Closed(moq_net::Error),
    Stopped,
}

impl Publisher<'_> {
    async fn run(
        mut self,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Summary, EndpointError> {
        let clock = self.clock;
        let session = self.link.session.clone();
        let mut closed = std::pin::pin!(session.closed());
        let (mut look, mut ended) = (clock.now(), false);
        loop {
            let sound = self.microphone.as_ref().and_then(Microphone::next_event);
            let awake = tokio::select! {
                biased;
                () = &mut stop => Awake::Stopped,
                () = clock.sleep_until_due(sound) => Awake::Sound,
                (quality, frame) = self.encoders.next() => Awake::Frame(quality, frame),
                error = &mut closed, if !ended => Awake::Closed(error),
                () = clock.sleep_until_due(self.data) => Awake::Data,
                () = clock.sleep_until(look) => Awake::Look,
            };
            match awake {
                Awake::Frame(quality, Some(frame)) => self.on_frame(quality, &frame)?,
                Awake::Sound => self.on_sound()?,
                Awake::Data => self.on_data()?,
                Awake::Look => {
                    look = clock.now() + EVERY;
                    self.on_look().await?;
                }
                Awake::Closed(cause) => {
                    let (now, number) = (clock.now(), self.link.number);
                    self.records.ended(now, number, &cause.to_string())?;
                    ended = true;
                    if is_farewell(&cause) {
                        continue;
                    }
                    let doing = format!("publishing `{}`", self.job.common.broadcast);
                    return Err(EndpointError::Session { doing, cause });
                }
                Awake::Frame(_, None) | Awake::Stopped => break,
            }
        }
        self.encoders.stop()?;
        self.microphone.map(Microphone::close).transpose()?;
        let records = self.records.close()?;
        self.link.close().await;
        Ok(records)
    }

    /// Takes a sample of the connection, sets encoders to what it can send, and gives up what is late.
    async fn on_look(&mut self) -> Result<(), EndpointError> {
        let now = self.clock.now();
        self.records.target = self.encoders.rate();
        self.records.look(now)?;
        if let Some(groups) = &self.groups {
            groups.look(now);
        }
        self.looks += 1;
        if let Some(microphone) = &mut self.microphone
            && self.broadcast.is_heard()
        {
            microphone.start(now);
        }
        let videos = &self.broadcast.videos;
        self.encoders.look(now, |quality| videos[quality].is_wanted()).await?;
        if self.looks.is_multiple_of(FOLLOW_EVERY)
            && let Some(sample) = self.sample()
        {
            self.encoders.follow(now, sample)?;
        }
        Ok(())
    }

    fn sample(&self) -> Option<Sample> {
        let look = control::look(&self.link.connection)?;
        let path = self.link.connection.path_stats(moq_noq::PathId::ZERO)?;
        Some(Sample {
            sent: look.sent,
            acked: look.acked,
            waiting: Bytes::new(look.waiting),
            rtt: path.rtt.into(),
            newest: look.rtt.map(Into::into),
        })
    }

    fn on_frame(&mut self, quality: usize, frame: &Frame) -> Result<(), EndpointError> {
        if !self.encoders.is_due(quality, frame) {
            return Ok(());
        }
        let now = self.clock.now();
        let mark = container::mark(frame.number, frame.references, frame.rate);
        let time_us = self.clock.unix_ns(frame.captured) / 1000;
        let object = container::write(time_us, mark.leaving(now, frame.captured), &frame.data);
        self.broadcast.videos[quality]
            .send((time_us, frame.key), object)
            .map_err(EndpointError::session("sending a frame"))
    }

    fn on_sound(&mut self) -> Result<(), EndpointError> {
        let now = self.clock.now();
        while let Some(microphone) = &mut self.microphone
            && let Some(frame) = microphone.take(now)?
        {
            let time_us = self.clock.unix_ns(frame.captured) / 1000;
            self.broadcast
                .send_sound(time_us, &frame)
                .map_err(EndpointError::session("sending a frame of sound"))?;
        }
        Ok(())
    }

    fn on_data(&mut self) -> Result<(), EndpointError> {
        let now = self.clock.now();
        if let Some((due, spec)) = self.data.zip(self.job.data) {
            // What was missed while the process did not run is left out.
            self.data = Some((due + spec.every).max(now));
        }
        self.broadcast
            .send_data(self.clock.unix_ns(now) / 1000)
            .map_err(EndpointError::session("sending an object of the data track"))
    }
}
