//! The viewer: the loop between the session and the playback, and the table `frames`.

use std::pin::Pin;
use std::sync::Arc;

use moq_net::{Client, origin};
use suiro_endpoint::{Context, Failure, Pulse, Summary as Said};
use suiro_media::screen;
use suiro_realtime::{Listening, Log};
use suiro_record::Writer;
use suiro_record::tables::MoqDataRow;
use suiro_record::words::FlowRole;
use suiro_scenario::Job;
use suiro_units::{BitRate, Duration, Time};
use tokio::sync::mpsc;

use crate::EndpointError;
use crate::client::{Link, is_farewell};
use crate::container::Picture;
use crate::data::Message;
use crate::job::{FOREVER, ViewerJob};
use crate::numbers::Numbers;
use crate::pictures::{Pictures, Place};
use crate::records::{EVERY, Records, Summary};
use crate::subscribe::{Received, ask};
use crate::switch::{Arrival, Order, Switch};

/// Largest number of orders that wait until subscriptions are changed.
const ORDERS_MAX: usize = 16;
/// Largest number of received objects that wait to be played.
const OBJECTS_MAX: usize = 256;

/// Runs a trial's job of a viewer.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Said, Failure> {
    let work = ViewerJob::from_job(job).ok_or("a viewer's job names its relay")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse, ready, stop).await);
    Ok(Said::of(&done?))
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
        link = common.connect(clock, client, &mut records, FlowRole::Receiver, None) => link?,
        () = &mut stop => {
            log.close()?;
            return Ok(records.close()?);
        }
    };
    let (post, objects) = mpsc::channel(OBJECTS_MAX);
    let (orders, ordered) = mpsc::channel(ORDERS_MAX);
    let requests = Arc::clone(&link.requests);
    let asking = ask(clock, (origin.consume(), requests), job, post, ordered);
    let (pulse, pictures) = (pulse.clone(), Pictures::new(job.viewer));
    let qualities = Qualities { switches: job.switches, highest: 0, orders, switch: None };
    let (dir, name) = (common.dir.clone(), common.name.clone());
    let policy = (job.viewer, job.lip_sync);
    let listening = Listening::new(dir, name, clock.epoch_unix_ns(), policy);
    let viewer = Viewer {
        pulse,
        job,
        records,
        link,
        pictures,
        numbers: Numbers::default(),
        listening,
        log,
        data: None,
        objects,
        qualities,
    };
    viewer.run(asking, stop).await
}

struct Viewer<'a> {
    pulse: Pulse,
    job: &'a ViewerJob,
    records: Records,
    link: Link,
    pictures: Pictures,
    /// Those of the sound.
    numbers: Numbers,
    listening: Listening,
    log: Log,
    /// The table `moq_data`, from the first object of a data track on.
    data: Option<Writer<MoqDataRow>>,
    objects: mpsc::Receiver<Received>,
    qualities: Qualities,
}

/// The qualities of the broadcast, and which of them is played.
struct Qualities {
    switches: bool,
    highest: usize,
    orders: mpsc::Sender<Order>,
    /// `None` while there is nothing to change between: the highest quality is played.
    switch: Option<Switch<Picture>>,
}

impl Qualities {
    /// The catalog lists these qualities.
    fn begin(&mut self, now: Time, rates: Vec<BitRate>) {
        self.highest = rates.len().saturating_sub(1);
        if self.switches && rates.len() > 1 {
            self.switch = Some(Switch::new(now, rates));
        } else {
            self.order(Order::Begin(self.highest));
        }
    }

    fn order(&self, order: Order) {
        // It fails only when subscriptions have ended: there is room.
        let _ = self.orders.try_send(order);
    }

    /// How often the quality has changed; `None` if there is nothing to change between.
    fn changes(&self) -> Option<u64> {
        self.switch.as_ref().map(Switch::changes)
    }

    /// Passes orders on, as far as there is room.
    fn look(&mut self, now: Time) {
        let Some(switch) = &mut self.switch else { return };
        switch.on_time(now);
        while self.orders.capacity() > 0
            && let Some(order) = switch.take_order()
        {
            // It fails only when subscriptions have ended.
            let _ = self.orders.try_send(order);
        }
    }

    /// What is to be played because this frame has arrived, sent so long before.
    fn on_picture(
        &mut self,
        (now, took): (Time, Duration),
        quality: usize,
        picture: Picture,
    ) -> Vec<Picture> {
        let Some(switch) = &mut self.switch else { return vec![picture] };
        let Some(mark) = picture.mark else {
            // Without numbers, no one knows at which frame to change.
            self.switch = None;
            self.order(Order::End(quality));
            self.order(Order::Begin(self.highest));
            return vec![picture];
        };
        let (number, key, bytes) = (mark.number.into(), picture.key, picture.data.len());
        switch.on_picture(now, Arrival { quality, number, key, took, bytes }, picture)
    }
}

/// What woke the viewer.
enum Awake {
    Received(Received),
    Due,
    Look,
    Ended(Result<(), EndpointError>),
    Closed(moq_net::Error),
    Stopped,
}

impl Viewer<'_> {
    /// The time. The viewer hears of an interval in which this process did not run before it hears of any later time.
    fn now(&mut self) -> Time {
        self.pulse.now(|absence| self.pictures.playing.on_absence(absence.from, absence.to))
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
            let due = [self.pictures.playing.next_event(), self.listening.next_event()];
            let due = due.into_iter().flatten().min();
            let awake = tokio::select! {
                biased;
                () = &mut stop => Awake::Stopped,
                Some(received) = self.objects.recv() => Awake::Received(received),
                () = clock.sleep_until_due(due) => Awake::Due,
                cause = &mut closed, if !over => Awake::Closed(cause),
                ended = &mut asking, if asks => Awake::Ended(ended),
                () = clock.sleep_until(look) => Awake::Look,
            };
            match awake {
                Awake::Received(received) => {
                    self.now();
                    self.on_received(received)?;
                }
                Awake::Due => {}
                Awake::Look => {
                    let now = clock.now();
                    self.records.look(now)?;
                    self.qualities.look(now);
                    self.records.switches = self.qualities.changes();
                    look = now + EVERY;
                }
                Awake::Ended(ended) => {
                    ended?;
                    // The publisher has ended; what came is shown until the viewer is stopped.
                    asks = false;
                    self.listening.end();
                }
                Awake::Closed(cause) => {
                    let (now, number) = (clock.now(), self.link.number);
                    self.records.ended(now, number, &cause.to_string())?;
                    // What came is shown until the viewer is stopped.
                    (over, asks) = (true, false);
                    self.listening.end();
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

    fn on_received(&mut self, received: Received) -> Result<(), EndpointError> {
        match received {
            Received::Qualities(rates) => {
                let now = self.pulse.clock().now();
                self.qualities.begin(now, rates);
                self.qualities.look(now);
            }
            Received::Video { at, place, pictures } => {
                if pictures.is_none() {
                    self.records.summary.malformed += 1;
                }
                for picture in pictures.into_iter().flatten() {
                    self.on_picture(at, place, picture);
                }
            }
            Received::Sound { packet: None, .. } => self.records.summary.malformed += 1,
            Received::Sound { at, packet: Some((time_us, packet)) } => {
                self.listening.on_packet(at, self.numbers.of(time_us), packet)?;
            }
            Received::Data { message: None, .. } => self.records.summary.malformed += 1,
            Received::Data { at, bytes, message: Some(message) } => {
                self.on_message(at, bytes, message)?;
            }
        }
        Ok(())
    }

    fn on_picture(&mut self, at: Time, place: Place, picture: Picture) {
        let captured_ns = picture.time_us.saturating_mul(1000);
        let encoded = picture.mark.and_then(|mark| mark.waited()).unwrap_or_default();
        let took = self.pulse.clock().unix_ns(at).saturating_sub(captured_ns);
        let took = Duration::from_nanos(took).saturating_sub(encoded);
        for picture in self.qualities.on_picture((at, took), place.quality, picture) {
            self.pictures.on_picture(at, place, picture);
        }
    }

    fn on_message(
        &mut self,
        at: Time,
        bytes: usize,
        message: Message,
    ) -> Result<(), EndpointError> {
        let rows = match &mut self.data {
            Some(rows) => rows,
            None => {
                let common = &self.job.common;
                self.data.insert(Writer::create_of(&common.dir, &common.name)?)
            }
        };
        let published = i128::from(message.time_us) * 1000;
        let published = published - i128::from(self.pulse.clock().epoch_unix_ns());
        rows.push(MoqDataRow {
            t_ns: at,
            endpoint: self.job.common.name.as_str().into(),
            number: message.number,
            // A time that cannot be is the largest.
            published_ns: i64::try_from(published).unwrap_or(i64::MAX),
            bytes: bytes as u64,
        })?;
        Ok(())
    }

    /// Records the frames whose fate is decided by now.
    fn show(&mut self) -> Result<(), EndpointError> {
        let now = self.now();
        self.listening.advance(now)?;
        self.pictures.playing.advance(now);
        while let Some(seen) = self.pictures.playing.take_seen() {
            self.listening.on_seen(&seen);
            self.log.push(&seen)?;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Summary, EndpointError> {
        let now = self.now();
        self.pictures.playing.finish(now);
        while let Some(seen) = self.pictures.playing.take_seen() {
            self.log.push(&seen)?;
        }
        self.log.close()?;
        self.listening.close(now)?;
        if let Some(data) = self.data {
            data.close()?;
        }
        self.records.switches = self.qualities.changes();
        self.records.summary.refused_frames = self.pictures.refused;
        let summary = self.records.close()?;
        self.link.close().await;
        Ok(summary)
    }
}
