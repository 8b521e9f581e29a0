//! The viewer: the loop between the session and the playback, and the table `frames`.

use std::pin::Pin;
use std::sync::Arc;

use moq_net::track::Subscription;
use moq_net::{Client, broadcast, group, origin, track};
use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Pulse, Summary as Said};
use suiro_media::screen;
use suiro_realtime::{Delivered, Log, Viewer as Playing};
use suiro_record::words::FlowRole;
use suiro_scenario::{Job, MoqViewer};
use suiro_units::{BitRate, Time};
use suiro_viewer::{Parts, Policy};
use tokio::sync::mpsc;

use crate::EndpointError;
use crate::catalog::{self, Catalog};
use crate::client::{Common, Link, is_farewell};
use crate::cmaf::{self, Unpacker};
use crate::container::{self, Picture};
use crate::net::Behaviour;
use crate::publish::{FOREVER, qlog};
use crate::records::{EVERY, Records, Summary};

/// Streams that the relay may open.
const STREAMS: u32 = 4096;
/// Largest number of received objects that wait to be played.
const OBJECTS_MAX: usize = 256;
/// Largest number of groups that are read at the same time.
const GROUPS_MAX: usize = 4096;
/// Priority of the video among the tracks that the viewer subscribes to; a higher one is sent first.
const PRIORITY: u8 = 127;

/// What a viewer needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewerJob {
    /// As for every client.
    pub common: Common,
    /// How it plays.
    pub viewer: Policy,
    /// Whether what could be decoded is kept, as `received.NAME.h264`.
    pub save: bool,
}

impl ViewerJob {
    /// What a trial's job file asks for; `None` if the endpoint is no viewer, or its relay is not among the peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let spec = job.endpoint.spec.downcast::<MoqViewer>()?;
        let asked = (spec.broadcast.as_str(), spec.token.as_ref(), spec.draft);
        let behaviour = Behaviour {
            congestion: spec.congestion,
            delta: spec.delta,
            streams: STREAMS,
            qlog: spec.qlog.then(|| qlog(job)),
        };
        let common = Common::from_job(job, &spec.from, asked, behaviour)?;
        Some(Self { common, viewer: spec.viewer, save: spec.save })
    }
}

/// Runs a trial's job of a viewer.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = ViewerJob::from_job(job).ok_or("a viewer's job names its relay")?;
    let (pulse, ready, stop) = context.parts();
    let work = async { Ok::<_, Failure>(run(&work, &pulse, ready, stop.requested()?).await?) };
    Ok(Said::of(&pulse.block_on(work)?))
}

/// Views until `stop` is ready. `ready` is called once, when the tables are made.
///
/// # Errors
/// [`EndpointError`].
pub async fn run(
    job: &ViewerJob,
    pulse: &Pulse,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Summary, EndpointError> {
    let (clock, common) = (pulse.clock(), &job.common);
    let congestion = common.behaviour.congestion.name();
    let mut records = Records::create(&common.dir, &common.name, congestion)?;
    let save = job.save.then_some(screen::Codec::H264);
    let log = Log::create(&common.dir, &common.name, clock.epoch_unix_ns(), save)?;
    ready();
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = clock.sleep_until(common.start) => {}
        () = &mut stop => {
            log.close()?;
            return Ok(records.close()?);
        }
    }
    let mut config = origin::Config::default();
    config.default_max_age = FOREVER;
    let (origin, driver) = origin::Producer::new(config);
    tokio::spawn(moq_net::time::run(driver));
    let client = Client::new().with_subscriber(origin.clone());
    let link = tokio::select! {
        link = common.connect(clock, client, &mut records, FlowRole::Receiver) => link?,
        () = &mut stop => {
            log.close()?;
            return Ok(records.close()?);
        }
    };
    let (post, objects) = mpsc::channel(OBJECTS_MAX);
    let asking = ask(clock, origin.consume(), common.broadcast.clone(), post);
    let (pulse, playing) = (pulse.clone(), Playing::new(job.viewer));
    let viewer = Viewer { pulse, records, link, playing, log, objects, unnumbered: 0 };
    viewer.run(asking, stop).await
}

/// When an object had been received completely, and its pictures; `None` if it cannot be read.
type Object = (Time, Option<Vec<Picture>>);

/// The format of the objects.
#[derive(Debug)]
enum Packaging {
    Legacy,
    Cmaf(Unpacker),
}

impl Packaging {
    fn read(&self, object: &[u8]) -> Option<Vec<Picture>> {
        match self {
            Self::Legacy => container::read(object).ok().map(|picture| vec![picture]),
            Self::Cmaf(unpacker) => unpacker.read(object).ok(),
        }
    }
}

/// Subscribes to the tracks of a broadcast.
struct Asking {
    broadcast: broadcast::Consumer,
    name: String,
}

impl Asking {
    fn failed(&self, doing: &str) -> impl FnOnce(moq_net::Error) -> EndpointError + use<> {
        EndpointError::session(format!("{doing} `{}`", self.name))
    }

    /// The newest object of a track that has one object in each group.
    async fn object(&self, track: &str) -> Result<bytes::Bytes, moq_net::Error> {
        let mut track = self.broadcast.track(track)?.subscribe(None).await?;
        let mut group = track.recv_group().await?.ok_or(moq_net::Error::NotFound)?;
        Ok(group.read_frame().await?.ok_or(moq_net::Error::NotFound)?.payload)
    }

    /// The name of the video track, and the format of its objects.
    async fn video(&self) -> Result<(String, Packaging), EndpointError> {
        let hang = self.object(catalog::TRACK).await;
        if matches!(hang, Err(moq_net::Error::NotFound))
            && let Ok(json) = self.object(cmaf::TRACK).await
        {
            let catalog = cmaf::Catalog::read(&json)?;
            let (video, init) = catalog.choose()?;
            let doing = self.failed("asking for the initialisation segment of");
            let segment = self.object(init).await.map_err(doing)?;
            return Ok((video.to_owned(), Packaging::Cmaf(Unpacker::new(&segment)?)));
        }
        let json = hang.map_err(self.failed("asking for the catalog of"))?;
        Ok((Catalog::read(&json)?.choose()?.to_owned(), Packaging::Legacy))
    }
}

/// Subscribes to the catalog, then receives the video that it lists, until that ends.
async fn ask(
    clock: Clock,
    origin: origin::Consumer,
    name: String,
    post: mpsc::Sender<Object>,
) -> Result<(), EndpointError> {
    let asked = origin.routed_broadcast(&name).await;
    let broadcast = asked.map_err(EndpointError::session(format!("asking for `{name}`")))?;
    let asking = Asking { broadcast, name };
    let (track, packaging) = asking.video().await?;
    let failed = || asking.failed("asking for the video of");
    let track = asking.broadcast.track(&track).map_err(failed())?;
    let wanted = Subscription::default().with_priority(PRIORITY).with_max_age(FOREVER);
    let video = track.subscribe(wanted).await.map_err(failed())?;
    let doing = asking.failed("receiving the video of");
    receive(clock, video, Arc::new(packaging), &post).await.map_err(doing)
}

/// Receives groups concurrently: one that is delayed does not delay the others.
async fn receive(
    clock: Clock,
    mut video: track::Subscriber,
    packaging: Arc<Packaging>,
    post: &mpsc::Sender<Object>,
) -> Result<(), moq_net::Error> {
    let mut reading = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = reading.join_next(), if !reading.is_empty() => {}
            group = video.recv_group(), if reading.len() < GROUPS_MAX => match group? {
                Some(group) => {
                    reading.spawn(read(clock, group, Arc::clone(&packaging), post.clone()));
                }
                None => return Ok(()),
            },
        }
    }
}

async fn read(
    clock: Clock,
    mut group: group::Consumer,
    packaging: Arc<Packaging>,
    post: mpsc::Sender<Object>,
) {
    // A group that was given up, or whose stream was reset, ends without what is missing.
    while let Ok(Some(frame)) = group.read_frame().await {
        if post.send((clock.now(), packaging.read(&frame.payload))).await.is_err() {
            return;
        }
    }
}

struct Viewer {
    pulse: Pulse,
    records: Records,
    link: Link,
    playing: Playing,
    log: Log,
    objects: mpsc::Receiver<Object>,
    /// The number of the next frame, of publishers that do not number their frames.
    unnumbered: u64,
}

/// What woke the viewer.
enum Awake {
    Object(Object),
    Due,
    Look,
    Ended(Result<(), EndpointError>),
    Closed(moq_net::Error),
    Stopped,
}

impl Viewer {
    /// The time. The viewer hears of an interval in which this process did not run before it hears of any later time.
    fn now(&mut self) -> Time {
        self.pulse.now(|absence| self.playing.on_absence(absence.from, absence.to))
    }

    async fn run(
        mut self,
        asking: impl Future<Output = Result<(), EndpointError>>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Summary, EndpointError> {
        let clock = self.pulse.clock();
        let mut asking = std::pin::pin!(asking);
        let session = self.link.session.clone();
        let mut closed = std::pin::pin!(session.closed());
        let mut over = false;
        let (mut look, mut asks) = (clock.now(), true);
        loop {
            let due = self.playing.next_event();
            let due = async {
                match due {
                    Some(due) => clock.sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let awake = tokio::select! {
                biased;
                () = &mut stop => Awake::Stopped,
                Some(object) = self.objects.recv() => Awake::Object(object),
                () = due => Awake::Due,
                cause = &mut closed, if !over => Awake::Closed(cause),
                ended = &mut asking, if asks => Awake::Ended(ended),
                () = clock.sleep_until(look) => Awake::Look,
            };
            match awake {
                Awake::Object(object) => {
                    self.now();
                    self.on_object(object);
                }
                Awake::Due => {}
                Awake::Look => {
                    let now = clock.now();
                    self.records.look(now)?;
                    look = now + EVERY;
                }
                Awake::Ended(ended) => {
                    ended?;
                    // The publisher has ended; what came is shown until the viewer is stopped.
                    asks = false;
                }
                Awake::Closed(cause) => {
                    let (now, number) = (clock.now(), self.link.number);
                    self.records.ended(now, number, &cause.to_string())?;
                    // What came is shown until the viewer is stopped.
                    (over, asks) = (true, false);
                    if !is_farewell(&cause) {
                        let doing = "watching through the relay".to_owned();
                        return Err(EndpointError::Session { doing, cause });
                    }
                }
                Awake::Stopped => return self.finish().await,
            }
            self.show()?;
        }
    }

    fn on_object(&mut self, (now, pictures): Object) {
        if pictures.is_none() {
            self.records.summary.malformed += 1;
        }
        for picture in pictures.into_iter().flatten() {
            let delivered = self.delivered(picture);
            // One that comes twice, or long after its time, changes nothing.
            let _ = self.playing.on_frame(now, delivered);
        }
    }

    fn delivered(&mut self, picture: Picture) -> Delivered {
        let mark = picture.mark;
        let number = mark.map_or(self.unnumbered, |mark| mark.number.into());
        self.unnumbered = number + 1;
        let references = match mark {
            Some(mark) if mark.references == 0 => None,
            Some(mark) => number.checked_sub(mark.references.into()),
            None if picture.key => None,
            None => number.checked_sub(1),
        };
        let captured_unix_ns = mark.map(|_| picture.time_us.saturating_mul(1000));
        let waited = mark.and_then(|mark| mark.waited());
        Delivered {
            number,
            captured: Time::from_nanos(picture.time_us.saturating_mul(1000)),
            references,
            parts: Parts::All,
            captured_unix_ns,
            sent_unix_ns: captured_unix_ns
                .zip(waited)
                .and_then(|(at, waited)| at.checked_add(waited.as_nanos())),
            rate: mark.map(|mark| BitRate::from_bps(mark.rate_bps.into())),
            data: picture.data,
        }
    }

    /// Records the frames whose fate is decided by now.
    fn show(&mut self) -> Result<(), EndpointError> {
        let now = self.now();
        self.playing.advance(now);
        while let Some(seen) = self.playing.take_seen() {
            self.log.push(&seen)?;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Summary, EndpointError> {
        let now = self.now();
        self.playing.finish(now);
        while let Some(seen) = self.playing.take_seen() {
            self.log.push(&seen)?;
        }
        self.log.close()?;
        let summary = self.records.close()?;
        self.link.close().await;
        Ok(summary)
    }
}
