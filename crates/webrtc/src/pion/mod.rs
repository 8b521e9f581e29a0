//! pion as a publisher: the WebRTC of Go, with its GCC and pacer.
//!
//! Frames come from the camera and encoder of suiro's own publisher, which follows the target of pion's congestion control.
//! A program of ours in Go (`crates/webrtc/pion/publisher`) has the peer connections; this endpoint starts it, serves WHEP
//! for it, passes frames on to it and records what it reports. `make peers` builds it.

mod message;
mod program;
mod record;

use std::pin::Pin;

use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Summary as Said, Versions};
use suiro_realtime::{Begin, Camera, EncoderLog, Feeds, Frame, KEYS_WITHIN};
use suiro_record::Text;
use suiro_record::words::{FlowRole, Signalling};
use suiro_scenario::Job;
use suiro_units::{BitRate, Bytes, Time};
use tokio::sync::mpsc::{self, Receiver};

use crate::EndpointError;
use crate::desk::Desk;
use crate::encoding::{Allowed, Encoding};
use crate::endpoint::{Common, Meeting, Summary};
use crate::log::Log;
use crate::peer::{Way, mark, timestamp};
use crate::publish::PublisherJob;
use crate::signalling::server::{WAITING_MAX, Waiting};
use crate::signalling::{Door, server};
use message::{FRAME_MAX, Order, Said as Message, Setup};
use program::{Program, line};
use record::{Agreed, Records};

/// Runs a trial's job of a publisher.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = PublisherJob::from_job(job)?.ok_or("a publisher's job names its viewer")?;
    let done = context
        .run_with_versions(async |pulse, ready, stop| run(&work, pulse.clock(), ready, stop).await);
    Ok(Said::of(&done?))
}

/// Publishes until `stop` is ready. `ready` is called once, with the versions of pion, when offers are taken.
///
/// # Errors
/// [`EndpointError`]: the program is not built or fails, the job asks for what it does not have, or a file cannot be written.
pub async fn run(
    job: &PublisherJob,
    clock: Clock,
    ready: impl FnOnce(&Versions),
    stop: impl Future<Output = ()>,
) -> Result<Summary, EndpointError> {
    let (publisher, versions) = Publisher::open(job, clock).await?;
    ready(&versions);
    let mut stop = std::pin::pin!(stop);
    let begins = tokio::select! {
        biased;
        () = stop.as_mut() => false,
        () = clock.sleep_until(job.common.start) => true,
    };
    if begins { publisher.run(stop).await } else { publisher.finish().await }
}

/// What woke the publisher.
enum Awake {
    Asked(Waiting),
    Ordered(String),
    Said(Message),
    Frame(Option<Frame>),
    Stopped,
}

struct Publisher {
    clock: Clock,
    program: Program,
    /// Where viewers' requests become orders to the program, and these orders.
    desk: Desk,
    asked: Receiver<Waiting>,
    orders: Receiver<String>,
    /// The estimate to begin with, and the most that is sent.
    rates: (BitRate, BitRate),
    encoding: Encoding,
    feeds: Feeds,
    log: EncoderLog,
    records: Records,
}

impl Publisher {
    /// Starts the program, and takes offers.
    async fn open(job: &PublisherJob, clock: Clock) -> Result<(Self, Versions), EndpointError> {
        let Common { name, dir, .. } = &job.common;
        let camera = Camera::prepare(&job.camera)?;
        let log = EncoderLog::create(dir, name)?;
        let peer = job.common.peer.as_deref().map(Text::from);
        let mut records = Log::create(dir, name, (Way::Sends, peer))?;
        let (start, most) = job.rates;
        let setup = Setup {
            addresses: job.common.addresses.clone(),
            start_bps: start.as_bps(),
            max_bps: most.as_bps(),
            epoch_monotonic_ns: clock.epoch_monotonic_ns(),
        };
        let (program, versions) = Program::start(setup).await?;
        let Meeting::Waits { address, port, token } = &job.common.meeting else {
            return Err(EndpointError::Pion("it makes no offers: expected no `to`".to_owned()));
        };
        let (post, asked) = mpsc::channel(WAITING_MAX);
        server::open(*address, *port, post).await?;
        records.signalling(clock.now(), FlowRole::Server, *port);
        let door = Door { signalling: Signalling::Whep, token: token.clone() };
        let (post, orders) = mpsc::channel(WAITING_MAX);
        let pictures = ((job.camera.width, job.camera.height), job.camera.fps);
        let nothing = BitRate::from_bps(0);
        let publisher = Self {
            clock,
            program,
            desk: Desk::new(door, post),
            asked,
            orders,
            rates: job.rates,
            encoding: Encoding::new(pictures, start, (most, nothing), job.key_every),
            feeds: Feeds::new(clock, job.camera.clone(), (vec![camera], 1), log.clone())
                .pausing(job.pauses.clone()),
            log,
            records: Records::new(name.clone(), records),
        };
        Ok((publisher, versions))
    }

    async fn run(
        mut self,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Summary, EndpointError> {
        loop {
            let awake = tokio::select! {
                biased;
                () = &mut stop => Awake::Stopped,
                Some(order) = self.orders.recv() => Awake::Ordered(order),
                said = self.program.next() => Awake::Said(said?),
                Some(waiting) = self.asked.recv() => Awake::Asked(waiting),
                (_, frame) = self.feeds.next() => Awake::Frame(frame),
            };
            let now = self.clock.now();
            match awake {
                Awake::Asked(waiting) => {
                    if let Some(number) = self.desk.on_asked(waiting) {
                        self.records.on_opened(now, number, self.rates.0);
                    }
                }
                Awake::Ordered(order) => {
                    if !self.program.send(line(order)).await {
                        let reason = "it reads no more".to_owned();
                        return Err(EndpointError::Pion(reason));
                    }
                }
                Awake::Said(said) => self.on_said(now, said).await?,
                Awake::Frame(Some(frame)) => self.on_frame(&frame),
                Awake::Frame(None) | Awake::Stopped => return self.finish().await,
            }
            self.pass_on_key_frame_request();
        }
    }

    /// Deals with what the program says.
    async fn on_said(&mut self, now: Time, said: Message) -> Result<(), EndpointError> {
        match said {
            Message::Ready { .. } => {
                return Err(EndpointError::Pion("it said `ready` twice".to_owned()));
            }
            Message::Answer {
                session,
                answer,
                candidates,
                codec,
                payload_types,
                feedback,
                extensions,
            } => {
                let agreed = Agreed { candidates, codec, payload_types, feedback, extensions };
                self.records.on_answered(now, session, agreed);
                self.desk.on_answer(session, Ok(answer));
            }
            Message::Refused { session, reason, busy } => {
                self.records.on_refused(session);
                match busy {
                    true => self.desk.on_busy(session, &reason),
                    false => self.desk.on_answer(session, Err(reason)),
                }
            }
            Message::Connected { session, t_ns } => {
                if self.records.on_connected(Time::from_nanos(t_ns), session) {
                    self.encoding.ask_for_key_frame();
                    self.follow(now).await?;
                }
            }
            Message::Rate { session, target_bps, queue_bytes } => {
                let rate = BitRate::from_bps(target_bps).min(self.rates.1);
                let allowed = Allowed::by(rate, None, Bytes::new(queue_bytes));
                self.records.on_allowed(session, allowed);
                self.follow(now).await?;
            }
            Message::Statistics(counted) => {
                self.records.on_statistics(&counted, self.encoding.target())?;
            }
            Message::KeyFrame { .. } => self.encoding.on_key_frame_request(now),
            Message::Ended { session, t_ns, why } => {
                self.desk.on_ended(session);
                self.records.on_ended(Time::from_nanos(t_ns), session, why.into())?;
                self.follow(now).await?;
            }
        }
        Ok(())
    }

    /// Lets the encoder follow what the connections allow, and starts the camera for the first of them.
    async fn follow(&mut self, now: Time) -> Result<(), EndpointError> {
        let allowed = self.records.allowed();
        self.encoding.follow(now, &allowed);
        let target = self.encoding.target();
        let begin =
            |_| Begin { rung: target.rung, rate: target.rate, keys_within: Some(KEYS_WITHIN) };
        self.feeds.look(now, |_| !allowed.is_empty(), begin).await?;
        if let Some(feed) = self.feeds.get(0) {
            feed.set_rate(target.rate);
            feed.set_fps(target.rung.fps);
            feed.set_size(target.rung.size.0, target.rung.size.1)?;
        }
        Ok(())
    }

    /// Passes a frame on to the program. One that cannot be passed on is lost, as a busy encoder loses it, and the frames after
    /// it refer to it.
    fn on_frame(&mut self, frame: &Frame) {
        self.encoding.on_frame(frame);
        if self.records.allowed().is_empty() {
            return;
        }
        let fits = frame.data.len() <= FRAME_MAX;
        if !fits || !self.program.offer(self.order(frame)) {
            self.records.on_left_out(1);
            self.encoding.ask_for_key_frame();
        }
    }

    fn order(&self, frame: &Frame) -> Vec<u8> {
        let mark = mark(frame.number, frame.references, frame.rate);
        let order = message::Frame {
            number: mark.number,
            references: mark.references,
            rate_bps: mark.rate_bps,
            key: frame.key,
            captured_ns: frame.captured.as_nanos(),
            captured_unix_ns: self.clock.unix_ns(frame.captured),
            timestamp: timestamp(frame.captured),
            bytes: frame.data.len(),
        };
        let mut bytes = line(suiro_browser::written(&Order::Frame { frame: order }));
        bytes.extend_from_slice(&frame.data);
        bytes
    }

    fn pass_on_key_frame_request(&mut self) {
        if self.encoding.take_key_frame_request()
            && let Some(feed) = self.feeds.get(0)
        {
            feed.request_key_frame();
        }
    }

    async fn finish(self) -> Result<Summary, EndpointError> {
        self.feeds.stop()?;
        self.log.close()?;
        let summary = self.records.close()?;
        self.program.stop().await;
        Ok(summary)
    }
}

/// Whether a line of the program is taken: fuzzing asks for nothing else.
///
/// # Errors
/// What is wrong with it.
pub fn check_message(line: &[u8]) -> Result<(), String> {
    let line = std::str::from_utf8(line).map_err(|error| format!("a message: {error}"))?;
    message::parse(line).map(drop)
}
