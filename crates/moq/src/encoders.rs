//! The encoders of a publisher, one for each quality. A camera starts when its quality has a subscriber, and stops when it
//! has none any more; the camera of an only quality does not stop.

use suiro_clock::Clock;
use suiro_media::live::RATES;
use suiro_realtime::ladder::{Hysteresis, Ladder, Rung};
use suiro_realtime::{Begin, Camera, Demand, EncoderLog, Feed, Feeds, Frame, KEYS_WITHIN, split};
use suiro_units::{BitRate, Time};

use crate::EndpointError;
use crate::catalog::Quality;
use crate::follow::{Follow, Sample};
use crate::job::PublisherJob;

/// A camera that starts shortly before a key frame is due waits for it: so many frames at most.
const WAIT_MAX: u64 = 15;

/// A key frame that has not come after so many frames is asked for again.
const ASK_AGAIN: u64 = 8;

/// What an encoder that follows begins with, at most: nothing is known of the path. As that of WebRTC.
const START: BitRate = BitRate::from_kbps(300);

/// All encoders of a publisher, from the highest quality to the lowest.
pub(crate) struct Encoders {
    feeds: Feeds,
    encoders: Vec<Encoder>,
    follow: Option<Follow>,
    /// What the sound takes of what is allowed, before all video.
    sound: BitRate,
    /// Frames from one key frame to the next.
    period: u64,
    log: EncoderLog,
}

/// One encoder, whose camera may not run.
struct Encoder {
    rate: BitRate,
    /// What it begins with if it does not follow.
    whole: Rung,
    /// What it is set to: nothing but the bit rate follows if there is none.
    ladder: Option<Ladder>,
    set: BitRate,
    /// The newest key frame, and the frame after which one was asked for.
    key: Option<u64>,
    asked: Option<u64>,
    /// Frames before this number are left out.
    from: Option<u64>,
}

impl Encoders {
    /// `camera` is that of the highest quality.
    pub fn new(clock: Clock, job: &PublisherJob, camera: Camera, log: EncoderLog) -> Self {
        let sound = job.audio.unwrap_or(BitRate::from_bps(0));
        let videos: u64 = job.rates.iter().map(|rate| rate.as_bps()).sum();
        let most = BitRate::from_bps(videos + sound.as_bps());
        let start = |rate: BitRate| if job.follows { rate.min(START) } else { rate };
        let follow = job.follows.then(|| Follow::new(start(job.rates[0]), most));
        let encoders = job.qualities().into_iter().map(|Quality { size, fps, rate, .. }| {
            let set = start(rate);
            let ladder = || Ladder::new(size, fps, set, Hysteresis::default());
            Encoder {
                rate,
                whole: Rung { size, fps },
                ladder: job.follows.then(ladder),
                set,
                key: None,
                asked: None,
                from: None,
            }
        });
        let encoders: Vec<Encoder> = encoders.collect();
        let spec = job.camera.clone();
        let period = (job.key_every.as_secs_f64() * f64::from(spec.fps)).round().max(1.0) as u64;
        let feeds = Feeds::new(clock, spec, (vec![camera], encoders.len()), log.clone())
            .pausing(job.pauses.clone());
        Self { feeds, encoders, follow, sound, period, log }
    }

    /// The next frame of any encoder, and its quality; no frame if its camera has ended. A call that is dropped loses no
    /// frame.
    pub async fn next(&mut self) -> (usize, Option<Frame>) {
        self.feeds.next().await
    }

    /// Starts and stops cameras.
    pub async fn look(
        &mut self,
        now: Time,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<(), EndpointError> {
        let encoders = &self.encoders;
        let begin = |quality: usize| encoders[quality].begin();
        for quality in self.feeds.look(now, is_wanted, begin).await? {
            let encoder = &mut self.encoders[quality];
            (encoder.key, encoder.asked, encoder.from) = (None, None, None);
        }
        Ok(())
    }

    /// Whether a frame is to be sent. Asks for the next key frame when it is due: all encoders have theirs at the same
    /// numbers.
    pub fn is_due(&mut self, quality: usize, frame: &Frame) -> bool {
        let (period, several) = (self.period, self.encoders.len() > 1);
        let encoder = &mut self.encoders[quality];
        if encoder.from.is_none() {
            let next = (frame.number / period + 1) * period;
            let waits = several && frame.number >= period && next - frame.number <= WAIT_MAX;
            encoder.from = Some(if waits { next } else { frame.number });
        }
        if frame.key {
            encoder.key = Some(frame.number);
        }
        let in_period = encoder.key.map(|key| key / period);
        let asked = encoder.asked.is_some_and(|asked| frame.number < asked + ASK_AGAIN);
        if in_period != Some((frame.number + 1) / period)
            && !asked
            && let Some(feed) = self.feeds.get(quality)
        {
            encoder.asked = Some(frame.number);
            feed.request_key_frame();
        }
        // What was left out is missing for the frames that refer to it.
        let before = encoder.from.is_some_and(|from| frame.number < from);
        let known = encoder.key.zip(encoder.from).is_some_and(|(key, from)| key >= from);
        !before && known
    }

    /// Sets encoders to what the connection can send.
    pub fn follow(&mut self, now: Time, sample: Sample) -> Result<(), EndpointError> {
        let Some(follow) = &mut self.follow else { return Ok(()) };
        let allowed = follow.on_sample(now, sample).as_bps();
        let allowed = BitRate::from_bps(allowed.saturating_sub(self.sound.as_bps()));
        // The lowest is the most important.
        let running: Vec<usize> =
            (0..self.encoders.len()).rev().filter(|&n| self.feeds.runs(n)).collect();
        let demand = |&n: &usize| {
            let rate = self.encoders[n].rate;
            let weight = u32::try_from(rate.as_bps() / 1000).unwrap_or(u32::MAX);
            Demand { least: *RATES.least(), most: rate, weight }
        };
        let demands: Vec<Demand> = running.iter().map(demand).collect();
        for (n, rate) in running.into_iter().zip(split(allowed, &demands)) {
            let Some(feed) = self.feeds.get(n) else { continue };
            self.encoders[n].set_rate(now, feed, rate.max(*RATES.least()))?;
        }
        Ok(())
    }

    /// What the running encoders are set to, together; `None` if none runs.
    pub fn rate(&self) -> Option<BitRate> {
        let running = (0..self.encoders.len()).filter(|&n| self.feeds.runs(n));
        let bps = running.map(|n| self.encoders[n].set.as_bps()).reduce(|sum, bps| sum + bps);
        bps.map(BitRate::from_bps)
    }

    /// Stops all cameras, and completes the record of what they made.
    pub fn stop(self) -> Result<(), EndpointError> {
        self.feeds.stop()?;
        Ok(self.log.close()?)
    }
}

impl Encoder {
    /// What it begins with.
    fn begin(&self) -> Begin {
        let rung = self.ladder.as_ref().map_or(self.whole, Ladder::rung);
        let keys_within = self.ladder.is_some().then_some(KEYS_WITHIN);
        Begin { rung, rate: self.set, keys_within }
    }

    fn set_rate(&mut self, now: Time, feed: &mut Feed, rate: BitRate) -> Result<(), EndpointError> {
        let Some(ladder) = &mut self.ladder else { return Ok(()) };
        self.set = rate;
        feed.set_rate(rate);
        if let Some(rung) = ladder.on_rate(now, rate) {
            feed.set_fps(rung.fps);
            feed.set_size(rung.size.0, rung.size.1)?;
        }
        Ok(())
    }
}
