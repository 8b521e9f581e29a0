//! What one encoder of a sender is to make. Pure.

use suiro_realtime::{Frame, Share};
use suiro_units::{BitRate, Bytes, Duration, Time};

use crate::fill::Fill;
use crate::ladder::{Hysteresis, Ladder, Rung};

/// How the encoder's bit rate follows from the estimate: headers of RTP, SRTP, UDP and IP are about a tenth of packets
/// of this size, and what waits should leave within half a second.
const SHARE: Share = Share { encoder: 0.9, drain: Duration::from_millis(500), least: 0.3 };

/// What a packet of sound has around it: headers of IP, UDP and RTP with extensions, and the tag of SRTP. 50 are sent in a
/// second.
const SOUND_HEADERS: BitRate = BitRate::from_bps(50 * 72 * 8);

/// Viewers get no more key frames on request than one in this time: as many as libwebrtc's senders grant
/// (`kMinKeyframeSendIntervalMs`).
const KEY_FRAMES: Duration = Duration::from_millis(300);

/// What an encoder is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Its bit rate.
    pub rate: BitRate,
    /// Size and frame rate.
    pub rung: Rung,
}

/// What a viewer's connection lets an encoder make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Now.
    pub now: BitRate,
    /// When nothing waits any more.
    pub later: BitRate,
}

impl Allowed {
    /// By a rate that the sound takes its part of first, while so much waits.
    pub fn by(rate: BitRate, sound: Option<BitRate>, waits: Bytes) -> Self {
        let sound = sound.map_or(0, |rate| rate.as_bps() + SOUND_HEADERS.as_bps());
        let rate = BitRate::from_bps(rate.as_bps().saturating_sub(sound));
        let [now, later] = [waits, Bytes::ZERO].map(|waits| SHARE.encoder_rate(rate, waits));
        Self { now, later }
    }

    fn least(self, other: Self) -> Self {
        Self { now: self.now.min(other.now), later: self.later.min(other.later) }
    }

    fn most(self, other: Self) -> Self {
        Self { now: self.now.max(other.now), later: self.later.max(other.later) }
    }
}

/// What a camera sees: width and height of its frames, and how many of them there are in a second.
pub(crate) type Pictures = ((u32, u32), u32);

/// One encoder of a sender.
#[derive(Debug)]
pub(crate) struct Encoding {
    pictures: Pictures,
    /// The most that is sent of it.
    most: BitRate,
    /// The most that is sent of the next lower encoding: several viewers never get less for the sake of one of them.
    least: BitRate,
    ladder: Ladder,
    target: Target,
    fill: Fill,
    /// Whether nobody wants it.
    idle: bool,
    key_frame: bool,
    /// When a viewer's request for a key frame was last taken.
    requested: Option<Time>,
    /// From one key frame to the next, at most, and when the newest was captured.
    key_every: Option<Duration>,
    keyed: Option<Time>,
    /// The newest frame that it made.
    newest: Option<u64>,
}

impl Encoding {
    /// Of a camera, with the most that is sent of it, and of the next lower one; nothing if there is none.
    pub fn new(
        pictures: Pictures,
        start: BitRate,
        (most, least): (BitRate, BitRate),
        key_every: Option<Duration>,
    ) -> Self {
        let rate = SHARE.encoder_rate(start.min(most), Bytes::ZERO);
        let ladder = ladder(pictures, rate);
        let target = Target { rate, rung: ladder.rung() };
        Self {
            pictures,
            most,
            least,
            ladder,
            target,
            fill: Fill::default(),
            idle: false,
            key_frame: false,
            requested: None,
            key_every,
            keyed: None,
            newest: None,
        }
    }

    /// The most that is sent of it.
    pub fn most(&self) -> BitRate {
        self.most
    }

    /// What it is to make now.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The newest frame that it made.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// A viewer requests a key frame. Requests soon after one that was taken count for nothing: each key frame goes to all
    /// viewers, and a viewer behind a queue repeats its request while one is on its way.
    pub fn on_key_frame_request(&mut self, now: Time) {
        let is_soon = |before| now.saturating_since(before) < KEY_FRAMES;
        if !self.requested.is_some_and(is_soon) {
            self.requested = Some(now);
            self.ask_for_key_frame();
        }
    }

    /// A key frame is needed.
    pub fn ask_for_key_frame(&mut self) {
        self.key_frame = true;
    }

    /// Whether a key frame was asked for since the last call.
    pub fn take_key_frame_request(&mut self) -> bool {
        std::mem::take(&mut self.key_frame)
    }

    /// It has made a frame.
    pub fn on_frame(&mut self, frame: &Frame) {
        self.fill.on_frame(frame.captured, Bytes::new(frame.data.len() as u64));
        self.newest = Some(frame.number);
        self.keep_keys(frame.captured, frame.key);
    }

    /// Asks for a key frame if the frame after the one captured then would come too late for one.
    fn keep_keys(&mut self, captured: Time, key: bool) {
        let keyed = if key { captured } else { self.keyed.unwrap_or(captured) };
        self.keyed = Some(keyed);
        let since = captured.saturating_since(keyed);
        let period = Duration::from_secs(1) / u64::from(self.pictures.1.max(1));
        let due = |every: Duration| since + period + period / 2 > every;
        self.key_frame |= self.key_every.is_some_and(due);
    }

    /// Follows what the connections allow of those that are sent it.
    pub fn follow(&mut self, now: Time, allowed: &[Allowed]) {
        let Some(least) = allowed.iter().copied().reduce(Allowed::least) else {
            self.idle = true;
            return;
        };
        let floor = Allowed::by(self.least, None, Bytes::ZERO);
        let allowed = if allowed.len() > 1 { least.most(floor) } else { least };
        if std::mem::take(&mut self.idle) {
            // What it was set to for others is long ago.
            self.ladder = ladder(self.pictures, allowed.later);
            self.fill = Fill::default();
            self.target.rung = self.ladder.rung();
        }
        self.target.rate = self.fill.ask(now, allowed.now);
        // A smaller frame is for a lower estimate: a queue that drains is over before it would help.
        if let Some(rung) = self.ladder.on_rate(now, allowed.later) {
            self.target.rung = rung;
        }
    }
}

fn ladder((size, fps): Pictures, rate: BitRate) -> Ladder {
    Ladder::new(size, fps, rate, Hysteresis::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURES: Pictures = ((1280, 720), 30);

    fn kbps(kbps: u64) -> BitRate {
        BitRate::from_kbps(kbps)
    }

    fn encoding(key_every: Option<Duration>) -> Encoding {
        Encoding::new(PICTURES, kbps(300), (kbps(2000), kbps(800)), key_every)
    }

    /// Numbers of the key frames among 120 of 30 a second.
    fn keys(key_every: Option<Duration>) -> Vec<u64> {
        let mut encoding = encoding(key_every);
        let mut next = true;
        let is_key = |n: &u64| {
            let key = std::mem::take(&mut next);
            encoding.keep_keys(Time::from_nanos(n * 1_000_000_000 / 30), key);
            // What is asked for after a frame is the next one.
            next = encoding.take_key_frame_request();
            key
        };
        (0..120).filter(is_key).collect()
    }

    #[test]
    fn a_key_frame_is_asked_for_when_the_next_frame_is_to_be_one() {
        assert_eq!(keys(Some(Duration::from_secs(1))), [0, 30, 60, 90]);
        assert_eq!(keys(Some(Duration::from_millis(100))).len(), 40);
        assert_eq!(keys(None), [0]);
    }

    #[test]
    fn viewers_get_a_key_frame_in_300_ms_at_most() {
        let mut encoding = encoding(None);
        let granted = (0..100).filter(|n| {
            encoding.on_key_frame_request(Time::from_millis(5000 + 10 * n));
            encoding.take_key_frame_request()
        });
        assert_eq!(granted.collect::<Vec<u64>>(), [0, 30, 60, 90]);
        encoding.ask_for_key_frame();
        assert!(encoding.take_key_frame_request(), "one for a new viewer comes at once");
    }

    #[test]
    fn an_estimate_beyond_the_most_changes_nothing() {
        let rates = |estimate| Allowed::by(kbps(estimate).min(kbps(2500)), None, Bytes::ZERO);
        let both = |rate| Allowed { now: kbps(rate), later: kbps(rate) };
        assert_eq!(rates(20_000), both(2250));
        assert_eq!(rates(2500), both(2250));
        assert_eq!(rates(1000), both(900));
    }

    #[test]
    fn sound_takes_its_part_of_the_estimate_first() {
        let sound = Some(kbps(32));
        let rate = |estimate| Allowed::by(kbps(estimate), sound, Bytes::ZERO).now;
        // 32 kbit/s, and 28.8 of headers; of the rest nine tenths.
        assert_eq!(rate(1000), BitRate::from_bps((1_000_000 - 60_800) * 9 / 10));
        assert_eq!(rate(50), *suiro_media::live::RATES.least());
    }

    #[test]
    fn one_slow_viewer_degrades_others_no_further_than_to_the_next_encoding() {
        let mut encoding = encoding(None);
        let by = |rate| Allowed::by(kbps(rate), None, Bytes::ZERO);
        encoding.follow(Time::ZERO, &[by(1500), by(1000)]);
        assert_eq!(encoding.target().rate, kbps(900), "the least of both");
        encoding.follow(Time::from_millis(50), &[by(1500), by(200)]);
        assert_eq!(encoding.target().rate, kbps(720), "what the next encoding has at most");
        encoding.follow(Time::from_millis(100), &[by(200)]);
        assert_eq!(encoding.target().rate, kbps(180), "nobody else is sent it");
    }

    #[test]
    fn it_begins_anew_for_new_viewers() {
        let mut encoding = encoding(None);
        assert_eq!(encoding.target().rung.size, (960, 540));
        encoding.follow(Time::ZERO, &[]);
        let later = Allowed::by(kbps(1500), None, Bytes::ZERO);
        encoding.follow(Time::from_secs(1), &[later]);
        assert_eq!(encoding.target().rung, Rung { size: PICTURES.0, fps: 30 });
    }
}
