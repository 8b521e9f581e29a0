//! What a viewer receives: the catalog of a broadcast, the video and the sound that it lists, and its data track.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Poll;

use moq_net::kio;
use moq_net::track::Subscription;
use moq_net::{broadcast, group, origin, track};
use suiro_clock::Clock;
use suiro_units::{BitRate, Time};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::EndpointError;
use crate::catalog::{self, Catalog};
use crate::cmaf::{self, Unpacker};
use crate::container::{self, Picture};
use crate::data::{self, Message};
use crate::job::{FOREVER, ViewerJob};
use crate::pictures::Place;
use crate::requests::Requests;
use crate::switch::Order;

/// Largest number of groups of a track that are read at the same time.
const GROUPS_MAX: usize = 4096;
/// What has been received.
pub(crate) enum Received {
    /// The bit rates of the qualities that can be played, from the lowest to the highest. Comes first.
    Qualities(Vec<BitRate>),
    /// An object of the track of a quality, which is complete since `at`.
    Video {
        at: Time,
        place: Place,
        /// `None` if the object cannot be read.
        pictures: Option<Vec<Picture>>,
    },
    /// An object of the track of sound.
    Sound {
        at: Time,
        /// Its time in microseconds and a packet of Opus; `None` if the object cannot be read.
        packet: Option<(u64, Vec<u8>)>,
    },
    /// An object of the data track.
    Data {
        at: Time,
        bytes: usize,
        /// `None` if the object cannot be read.
        message: Option<Message>,
    },
}

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

/// The tracks that are played, from the lowest quality to the highest.
struct Tracks {
    video: Vec<(String, BitRate)>,
    packaging: Arc<Packaging>,
    sound: Option<String>,
    data: Option<String>,
}

/// A broadcast, and where what it sends goes to.
pub(crate) struct Asking {
    clock: Clock,
    broadcast: broadcast::Consumer,
    name: String,
    post: mpsc::Sender<Received>,
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

    async fn tracks(&self) -> Result<Tracks, EndpointError> {
        let hang = self.object(catalog::TRACK).await;
        if matches!(hang, Err(moq_net::Error::NotFound))
            && let Ok(json) = self.object(cmaf::TRACK).await
        {
            let catalog = cmaf::Catalog::read(&json)?;
            let (video, init) = catalog.choose()?;
            let doing = self.failed("asking for the initialisation segment of");
            let segment = self.object(init).await.map_err(doing)?;
            let packaging = Packaging::Cmaf(Unpacker::new(&segment)?).into();
            let video = vec![(video.to_owned(), BitRate::from_bps(0))];
            return Ok(Tracks { video, packaging, sound: None, data: None });
        }
        let json = hang.map_err(self.failed("asking for the catalog of"))?;
        let catalog = Catalog::read(&json)?;
        let playable = catalog.playable()?.into_iter();
        let video = playable.map(|(name, rate)| (name.to_owned(), rate)).collect();
        let (sound, data) = (catalog.sound().map(str::to_owned), catalog.data().map(str::to_owned));
        Ok(Tracks { video, packaging: Packaging::Legacy.into(), sound, data })
    }

    /// Subscribes to a track.
    async fn track(&self, name: &str) -> Result<track::Subscriber, moq_net::Error> {
        let wanted = Subscription::default().with_max_age(FOREVER);
        self.broadcast.track(name)?.subscribe(wanted).await
    }
}

/// Subscribes to the catalog, then receives the qualities that `orders` name and the data track, until all have ended.
/// `requests` are those of the session that `origin` receives from.
pub(crate) async fn ask(
    clock: Clock,
    (origin, requests): (origin::Consumer, Arc<Requests>),
    job: &ViewerJob,
    post: mpsc::Sender<Received>,
    mut orders: mpsc::Receiver<Order>,
) -> Result<(), EndpointError> {
    let name = job.common.broadcast.clone();
    let asked = origin.routed_broadcast(&name).await;
    let broadcast = asked.map_err(EndpointError::session(format!("asking for `{name}`")))?;
    let asking = Arc::new(Asking { clock, broadcast, name, post });
    let tracks = asking.tracks().await?;
    let rates = tracks.video.iter().map(|(_, rate)| *rate).collect();
    // Nobody receives it when the viewer has ended; then this ends, too.
    let _ = asking.post.send(Received::Qualities(rates)).await;
    let (mut running, mut videos) = (JoinSet::new(), BTreeMap::<usize, AbortHandle>::new());
    // What is cancelled at the relay does not end by itself.
    let mut stopped = BTreeSet::new();
    if let Some(track) = tracks.sound {
        running.spawn(receive_sound(Arc::clone(&asking), track));
    }
    if let Some(track) = tracks.data {
        running.spawn(receive_data(Arc::clone(&asking), track));
    }
    loop {
        tokio::select! {
            Some(order) = orders.recv() => match order {
                Order::Begin(quality) => {
                    let Some((track, _)) = tracks.video.get(quality) else { continue };
                    let (track, packaging) = (track.clone(), Arc::clone(&tracks.packaging));
                    let video = receive_video(Arc::clone(&asking), (quality, track), packaging);
                    videos.insert(quality, running.spawn(video));
                }
                Order::Stop(quality) => {
                    let track = tracks.video.get(quality).map(|(track, _)| track);
                    if track.is_some_and(|track| requests.cancel(track)) {
                        stopped.insert(quality);
                    } else if let Some(video) = videos.remove(&quality) {
                        video.abort();
                    }
                }
                Order::End(quality) => {
                    stopped.remove(&quality);
                    if let Some(video) = videos.remove(&quality) {
                        video.abort();
                    }
                }
            },
            Some(ended) = running.join_next() => match ended {
                Ok(Ok(())) if running.len() <= held(&stopped, &videos) => return Ok(()),
                Ok(ended) => ended?,
                Err(cancelled) if cancelled.is_cancelled() => {}
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            },
            else => return Ok(()),
        }
    }
}

/// How many of the videos that are stopped have not ended.
fn held(stopped: &BTreeSet<usize>, videos: &BTreeMap<usize, AbortHandle>) -> usize {
    let videos = stopped.iter().filter_map(|quality| videos.get(quality));
    videos.filter(|video| !video.is_finished()).count()
}

async fn receive_video(
    asking: Arc<Asking>,
    (quality, track): (usize, String),
    packaging: Arc<Packaging>,
) -> Result<(), EndpointError> {
    let doing = asking.failed("asking for the video of");
    let track = asking.track(&track).await.map_err(doing)?;
    let clock = asking.clock;
    let read = move |group: u64, object: &[u8]| {
        let pictures = packaging.read(object);
        Received::Video { at: clock.now(), place: Place { quality, group }, pictures }
    };
    let received = receive(track, Arc::new(read), &asking.post).await;
    received.map_err(asking.failed("receiving the video of"))
}

async fn receive_sound(asking: Arc<Asking>, track: String) -> Result<(), EndpointError> {
    let doing = asking.failed("asking for the sound of");
    let track = asking.track(&track).await.map_err(doing)?;
    let clock = asking.clock;
    let read = move |_: u64, object: &[u8]| {
        let (at, packet) = (clock.now(), container::read_sound(object).ok());
        Received::Sound { at, packet }
    };
    let received = receive(track, Arc::new(read), &asking.post).await;
    received.map_err(asking.failed("receiving the sound of"))
}

async fn receive_data(asking: Arc<Asking>, track: String) -> Result<(), EndpointError> {
    let doing = asking.failed("asking for the data track of");
    let track = asking.track(&track).await.map_err(doing)?;
    let clock = asking.clock;
    let read = move |_: u64, object: &[u8]| {
        let (at, message) = (clock.now(), data::read(object).ok());
        Received::Data { at, bytes: object.len(), message }
    };
    let received = receive(track, Arc::new(read), &asking.post).await;
    received.map_err(asking.failed("receiving the data track of"))
}

/// Receives the objects of a track until it ends; `read` gets the number of the group of each. Groups are read concurrently:
/// one that is delayed does not delay the others. After the track's end, the groups that have begun are received.
async fn receive<F>(
    mut track: track::Subscriber,
    read: Arc<F>,
    post: &mpsc::Sender<Received>,
) -> Result<(), moq_net::Error>
where
    F: Fn(u64, &[u8]) -> Received + Send + Sync + 'static,
{
    let mut reading = JoinSet::new();
    loop {
        let full = reading.len() >= GROUPS_MAX;
        tokio::select! {
            Some(_) = reading.join_next(), if !reading.is_empty() => {}
            next = next(&mut track, full) => match next? {
                Some(Next::Group(group)) => {
                    reading.spawn(read_group(*group, Arc::clone(&read), post.clone()));
                }
                Some(Next::Datagram(group, object)) => {
                    if post.send(read(group, &object)).await.is_err() {
                        return Ok(());
                    }
                }
                None => break,
            },
        }
    }
    drop(track);
    while reading.join_next().await.is_some() {}
    Ok(())
}

/// What a track has next.
enum Next {
    Group(Box<group::Consumer>),
    /// Its number is one of groups, too.
    Datagram(u64, bytes::Bytes),
}

/// The next group, unless there are enough, or datagram of a track; `None` at its end.
async fn next(track: &mut track::Subscriber, full: bool) -> Result<Option<Next>, moq_net::Error> {
    kio::wait(|waiter| {
        if let Poll::Ready(Ok(Some(datagram))) = track.poll_recv_datagram(waiter) {
            let next = Next::Datagram(datagram.sequence, datagram.payload);
            return Poll::Ready(Ok(Some(next)));
        }
        if full {
            return Poll::Pending;
        }
        track
            .poll_recv_group(waiter)
            .map_ok(|group| group.map(|group| Next::Group(Box::new(group))))
    })
    .await
}

async fn read_group<F>(mut group: group::Consumer, read: Arc<F>, post: mpsc::Sender<Received>)
where
    F: Fn(u64, &[u8]) -> Received,
{
    // The stream of a group can be reset; what is missing then does not come.
    while let Ok(Some(frame)) = group.read_frame().await {
        if post.send(read(group.sequence, &frame.payload)).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use moq_net::{Timescale, Timestamp};

    use super::*;

    /// A relay may end a track all the same, or its session.
    #[tokio::test]
    async fn a_video_that_is_stopped_and_has_ended_is_not_waited_for() {
        let mut running = JoinSet::new();
        let ends = running.spawn(std::future::ready(()));
        let stays = running.spawn(std::future::pending());
        let videos = BTreeMap::from([(0, ends), (1, stays)]);
        running.join_next().await.unwrap().unwrap();
        let [none, both] = [BTreeSet::new(), BTreeSet::from([0, 1])];
        assert_eq!((held(&none, &videos), held(&both, &videos)), (0, 1));
    }

    #[tokio::test]
    async fn groups_that_have_begun_are_received_after_the_tracks_end() {
        let (origin, _driver) = origin::Producer::new(origin::Config::default());
        let broadcast = origin.create_broadcast("camera").unwrap();
        let info = track::Info::default().with_timescale(Timescale::MICRO);
        let mut track = broadcast.create_track("video", info).unwrap();
        let wanted = Subscription::default().with_max_age(FOREVER);
        let subscriber = track.subscribe(wanted);
        let object = |time_us: u64| (Timestamp::from_micros(time_us).unwrap(), vec![7_u8; 5]);
        for time_us in [1, 2] {
            let (time, object) = object(time_us);
            track.write_frame(time, object).unwrap();
        }
        // The last group ends after the track.
        let mut last = track.append_group().unwrap();
        track.finish().unwrap();
        let (post, mut objects) = mpsc::channel(16);
        let read = |_: u64, object: &[u8]| {
            let (at, bytes) = (Time::ZERO, object.len());
            Received::Data { at, bytes, message: None }
        };
        let ends = async {
            let (time, object) = object(3);
            last.write_frame(time, object).unwrap();
            last.finish().unwrap();
        };
        let received = receive(subscriber, Arc::new(read), &post);
        let (received, ()) = tokio::join!(received, ends);
        received.unwrap();
        drop(post);
        let mut count = 0;
        while let Some(Received::Data { bytes: 5, .. }) = objects.recv().await {
            count += 1;
        }
        assert_eq!(count, 3);
    }
}
