//! The cameras of a sender that makes its video in several qualities: each starts when its quality is wanted, and stops when it
//! has not been for a while.

use std::future::Future;
use std::task::Poll;

use suiro_clock::Clock;
use suiro_media::live::FootageSpec;
use suiro_units::{BitRate, Duration, Time};
use tokio::task::JoinHandle;

use crate::ladder::Rung;
use crate::{Camera, EncoderLog, Feed, FeedError, Frame};

/// A camera stops when its quality has not been wanted for so long.
const UNUSED: Duration = Duration::from_secs(2);

/// What an encoder begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// Size and frame rate.
    pub rung: Rung,
    /// Its bit rate.
    pub rate: BitRate,
    /// How long a key frame may take at the bit rate; `None`: as long as the encoder makes it.
    pub keys_within: Option<Duration>,
}

/// A camera and encoder for each quality, of which 0 is the highest. All see the same, and their frames have the same numbers.
/// That of an only quality does not stop.
pub struct Feeds {
    clock: Clock,
    spec: FootageSpec,
    all: Vec<One>,
    /// When the first frame of all of them was captured.
    start: Option<Time>,
    /// From and until when none of them gives frames.
    pauses: Vec<(Time, Time)>,
    log: EncoderLog,
}

#[derive(Default)]
struct One {
    /// At hand to be started.
    camera: Option<Camera>,
    starting: Option<JoinHandle<Result<Feed, FeedError>>>,
    feed: Option<Feed>,
    unused_since: Option<Time>,
}

impl Feeds {
    /// None runs. The first `cameras` are at hand, and start at once when they are wanted; the others, and all that have stopped,
    /// are prepared first.
    pub fn new(
        clock: Clock,
        spec: FootageSpec,
        (cameras, qualities): (Vec<Camera>, usize),
        log: EncoderLog,
    ) -> Self {
        let mut cameras = cameras.into_iter();
        let one = |_| One { camera: cameras.next(), ..One::default() };
        let all = (0..qualities).map(one).collect();
        Self { clock, spec, all, start: None, pauses: Vec::new(), log }
    }

    /// The same, but none gives frames from and until these times, in order.
    #[must_use]
    pub fn pausing(self, pauses: Vec<(Time, Time)>) -> Self {
        Self { pauses, ..self }
    }

    /// The feed of a quality, if it runs.
    pub fn get(&mut self, quality: usize) -> Option<&mut Feed> {
        self.all.get_mut(quality)?.feed.as_mut()
    }

    /// Whether it runs.
    pub fn runs(&self, quality: usize) -> bool {
        self.all.get(quality).is_some_and(|one| one.feed.is_some())
    }

    /// The next frame of any of them, and its quality; no frame if its camera has ended. A call that is dropped loses no
    /// frame.
    pub async fn next(&mut self) -> (usize, Option<Frame>) {
        std::future::poll_fn(|context| {
            for (quality, one) in self.all.iter_mut().enumerate() {
                let Some(feed) = &mut one.feed else { continue };
                if let Poll::Ready(frame) = std::pin::pin!(feed.next()).poll(context) {
                    return Poll::Ready((quality, frame));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Starts those that are wanted and do not run, and stops those that are not wanted any more: their qualities.
    ///
    /// # Errors
    /// [`FeedError`]: one cannot be started.
    pub async fn look(
        &mut self,
        now: Time,
        is_wanted: impl Fn(usize) -> bool,
        begin: impl Fn(usize) -> Begin,
    ) -> Result<Vec<usize>, FeedError> {
        let several = self.all.len() > 1;
        let mut stopped = Vec::new();
        for (quality, one) in self.all.iter_mut().enumerate() {
            if let Some(starting) = one.starting.take_if(|starting| starting.is_finished()) {
                let feed = starting.await;
                let feed =
                    feed.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))?;
                one.feed = Some(feed);
            }
            if is_wanted(quality) {
                one.unused_since = None;
                if one.feed.is_none() && one.starting.is_none() {
                    let start = *self.start.get_or_insert(now);
                    let (log, pauses) = (self.log.of(quality), self.pauses.clone());
                    let camera = move |camera: Camera| camera.pausing(pauses).with_log(log);
                    one.start(self.clock, &self.spec, (start, now, begin(quality)), camera)?;
                }
            } else if several && one.feed.is_some() {
                let since = *one.unused_since.get_or_insert(now);
                if now.saturating_since(since) >= UNUSED {
                    // It ends in a thread of its own, after the frame at hand.
                    let feed = one.feed.take();
                    drop(tokio::task::spawn_blocking(move || drop(feed)));
                    stopped.push(quality);
                }
            }
        }
        Ok(stopped)
    }

    /// Stops all.
    ///
    /// # Errors
    /// What ended one of them before.
    pub fn stop(self) -> Result<(), FeedError> {
        let mut feeds = self.all.into_iter().filter_map(|one| one.feed);
        Ok(feeds.try_for_each(Feed::stop)?)
    }
}

impl One {
    /// Starts the camera with the first frame that is due: at once if it is at hand, else on another thread, because preparing
    /// it takes a while.
    fn start(
        &mut self,
        clock: Clock,
        spec: &FootageSpec,
        (start, now, begin): (Time, Time, Begin),
        as_asked: impl FnOnce(Camera) -> Camera + Send + 'static,
    ) -> Result<(), FeedError> {
        let from = move |camera: Camera| {
            let camera = as_asked(camera).beginning_at(begin.rung).beginning_from(now);
            let camera = match begin.keys_within {
                Some(within) => camera.with_keys_within(within),
                None => camera,
            };
            camera.start(start, begin.rate, clock.epoch_unix_ns(), move || clock.now())
        };
        match self.camera.take() {
            Some(camera) => self.feed = Some(from(camera)?),
            None => {
                let spec = spec.clone();
                let prepare = move || from(Camera::prepare(&spec)?);
                self.starting = Some(tokio::task::spawn_blocking(prepare));
            }
        }
        Ok(())
    }
}
