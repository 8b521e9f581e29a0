//! What one viewer is sent: which of several encodings of a camera, and its change at a key frame. Pure.

use std::collections::VecDeque;

use suiro_scenario::WebrtcQuality;
use suiro_units::{BitRate, Duration, Time};

use crate::ladder::{Hysteresis, Steps};

/// A higher encoding is taken only when the estimate has been clearly enough for it for so long.
const HYSTERESIS: Hysteresis = Hysteresis {
    down_after: Duration::from_millis(300),
    up_after: Duration::from_secs(1),
    up_margin: 1.2,
};
/// An encoding that was left for a lower one so soon after it was taken was too much: as long as nothing waits, an estimate may be
/// half as much again as what is sent.
const SOON: Duration = Duration::from_secs(10);
/// For how long it is not taken again; each time for twice as long, up to the most, until one has been kept for long.
const BARRED: Duration = Duration::from_secs(10);
const BARRED_MOST: Duration = Duration::from_secs(80);
const KEPT: Duration = Duration::from_secs(30);
/// A key frame that has not come after so long is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Frames of the old encoding that wait for those of the new one with the same number, at most.
const HELD_MAX: usize = 2;
/// They wait for an encoder whose newest frame is at most so much older: it leaves frames out to keep its rate.
const NEAR: u64 = 15;

/// Which encoding an estimate carries: each is for estimates above the most of the next lower one.
#[derive(Debug)]
struct Climb {
    steps: Steps,
    went_up: Option<Time>,
    /// An encoding that was too much, and until when it is not taken again; for how long the next one is not.
    barred: Option<(usize, Time)>,
    bar: Duration,
}

impl Climb {
    fn new(most: &[BitRate], estimate: BitRate) -> Self {
        let lower = most.iter().skip(1).copied();
        let needs = lower.chain([BitRate::from_bps(0)]).collect();
        // What it begins with is as sure as what it goes up to.
        let sure = estimate.mul_f64(1.0 / HYSTERESIS.up_margin);
        let steps = Steps::new(needs, sure, HYSTERESIS);
        Self { steps, went_up: None, barred: None, bar: BARRED }
    }

    /// Whether the encoding is another one at that estimate.
    fn on_estimate(&mut self, now: Time, estimate: BitRate) -> bool {
        let before = self.steps.at();
        let barred = self.barred.filter(|(step, until)| *step < before && now < *until);
        let below =
            |(step, _)| BitRate::from_bps(self.steps.needs(step).as_bps().saturating_sub(1));
        let rate = barred.map_or(estimate, |barred| estimate.min(below(barred)));
        let changed = self.steps.on_rate(now, rate);
        let since = self.went_up.map(|at| now.saturating_since(at));
        match changed {
            Some(at) if at < before => self.went_up = Some(now),
            Some(_) => {
                self.went_up = None;
                if since.is_some_and(|since| since < SOON) {
                    self.barred = Some((before, now + self.bar));
                    self.bar = (self.bar * 2).min(BARRED_MOST);
                }
            }
            None if since.is_some_and(|since| since >= KEPT) => self.bar = BARRED,
            None => {}
        }
        changed.is_some()
    }
}

/// Who decides on the encoding.
#[derive(Debug)]
enum Pick {
    /// The estimate.
    Estimate(Climb),
    /// The viewer.
    Fixed(usize),
}

/// Frames of type `F`, on their way to one viewer.
#[derive(Debug)]
pub(crate) struct Stream<F> {
    pick: Pick,
    /// The encoding that is sent; `None` before the first key frame.
    current: Option<usize>,
    /// The newest frame that was sent.
    last: Option<u64>,
    /// Frames of the old encoding, until it is known whether the new one begins with their number.
    held: VecDeque<(u64, F)>,
    /// When a key frame was asked for; `None` if it came too late to be sent.
    asked: Option<Time>,
    /// The next packet's number; `None` before the first.
    pub sequence: Option<u64>,
}

impl<F> Stream<F> {
    /// Nothing was sent. `most` has the most that is sent of each encoding, falling; one at least.
    pub fn new(now: Time, quality: WebrtcQuality, most: &[BitRate], estimate: BitRate) -> Self {
        let last = most.len().saturating_sub(1);
        let pick = match quality {
            WebrtcQuality::Auto => Pick::Estimate(Climb::new(most, estimate)),
            WebrtcQuality::High => Pick::Fixed(0),
            WebrtcQuality::Middle => Pick::Fixed(most.len() / 2),
            WebrtcQuality::Low => Pick::Fixed(last),
        };
        Self {
            pick,
            current: None,
            last: None,
            held: VecDeque::new(),
            asked: Some(now),
            sequence: None,
        }
    }

    /// The encoding that is sent, or is to be after the next of its key frames.
    pub fn wanted(&self) -> usize {
        match &self.pick {
            Pick::Estimate(climb) => climb.steps.at(),
            Pick::Fixed(quality) => *quality,
        }
    }

    /// The encoding that is sent; before the first key frame, the one that is wanted.
    pub fn current(&self) -> usize {
        self.current.unwrap_or(self.wanted())
    }

    /// Whether an encoding is sent or wanted.
    pub fn has(&self, quality: usize) -> bool {
        self.current() == quality || self.wanted() == quality
    }

    fn is_changing(&self) -> bool {
        self.current != Some(self.wanted())
    }

    /// The estimate of the path; whether the wanted encoding is to make a key frame because of it.
    pub fn on_estimate(&mut self, now: Time, estimate: BitRate) -> bool {
        let changed = match &mut self.pick {
            Pick::Estimate(climb) => climb.on_estimate(now, estimate),
            Pick::Fixed(_) => false,
        };
        let late = self.asked.is_none_or(|asked| now.saturating_since(asked) >= ASK_AGAIN);
        let asks = self.is_changing() && (changed || late);
        if asks {
            self.asked = Some(now);
        }
        asks
    }

    /// An encoding has made a frame with that number; `newest` is the newest frame of the wanted encoding. Returns the frames that
    /// are sent now.
    pub fn on_frame(
        &mut self,
        quality: usize,
        (number, key): (u64, bool),
        frame: F,
        newest: Option<u64>,
    ) -> Vec<F> {
        if self.is_changing() && quality == self.wanted() {
            let begins = key && self.last.is_none_or(|last| last < number);
            let before = if begins { number } else { number + 1 };
            let mut frames = self.release(|held, _| held < before);
            if begins {
                // The rest are frames that the new encoding has, too.
                self.held.clear();
                (self.current, self.last) = (Some(quality), Some(number));
                frames.push(frame);
            } else if key {
                self.asked = None;
            }
            return frames;
        }
        if self.current != Some(quality) {
            return Vec::new();
        }
        self.held.push_back((number, frame));
        let behind = newest.and_then(|newest| number.checked_sub(newest));
        let is_near = behind.is_some_and(|behind| (1..=NEAR).contains(&behind));
        let keeps = if self.is_changing() && is_near { HELD_MAX } else { 0 };
        self.release(|_, waiting| waiting > keeps)
    }

    /// Sends what is held for as long as this holds of its number and of how many are.
    fn release(&mut self, goes: impl Fn(u64, usize) -> bool) -> Vec<F> {
        let mut frames = Vec::new();
        while let Some((number, _)) = self.held.front()
            && goes(*number, self.held.len())
            && let Some((number, frame)) = self.held.pop_front()
        {
            self.last = self.last.max(Some(number));
            frames.push(frame);
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kbps(kbps: u64) -> BitRate {
        BitRate::from_kbps(kbps)
    }

    fn most() -> Vec<BitRate> {
        [2500, 900, 300].map(kbps).to_vec()
    }

    /// A stream of frames that are their encoding and number.
    fn stream(quality: WebrtcQuality, estimate: u64) -> Stream<(usize, u64)> {
        Stream::new(Time::ZERO, quality, &most(), kbps(estimate))
    }

    /// A frame of an encoding, while the wanted one has got as far as `newest`.
    fn give(
        stream: &mut Stream<(usize, u64)>,
        (quality, number): (usize, u64),
        key: bool,
        newest: u64,
    ) -> Vec<(usize, u64)> {
        stream.on_frame(quality, (number, key), (quality, number), Some(newest))
    }

    #[test]
    fn each_encoding_is_for_estimates_above_the_most_of_the_next() {
        let wanted = [200, 359, 361, 1079, 1081, 5000].map(|estimate| {
            let stream = stream(WebrtcQuality::Auto, estimate);
            stream.wanted()
        });
        assert_eq!(wanted, [2, 2, 1, 1, 0, 0]);
        let fixed = [WebrtcQuality::High, WebrtcQuality::Middle, WebrtcQuality::Low];
        assert_eq!(fixed.map(|quality| stream(quality, 5000).wanted()), [0, 1, 2]);
        let only = Stream::<()>::new(Time::ZERO, WebrtcQuality::Middle, &[kbps(900)], kbps(300));
        assert_eq!(only.wanted(), 0);
    }

    #[test]
    fn an_encoding_that_was_too_much_is_not_tried_again_soon() {
        // What is sent of the encoding in the middle lets the estimate rise; what is sent of the highest is too much.
        let mut stream = stream(WebrtcQuality::Auto, 700);
        let mut tries = Vec::new();
        for tenth in 0..1200 {
            let before = stream.wanted();
            let estimate = if before == 0 { 800 } else { 1200 };
            stream.on_estimate(Time::from_millis(100 * tenth), kbps(estimate));
            if stream.wanted() < before {
                tries.push(tenth / 10);
            }
        }
        // A second to be sure, 300 ms until it was too much, and then 10, 20, 40 s and so on.
        assert_eq!(tries, [1, 12, 33, 75]);
    }

    #[test]
    fn it_changes_at_a_key_frame_and_sends_no_number_twice() {
        let mut stream = stream(WebrtcQuality::Auto, 200);
        assert_eq!(give(&mut stream, (2, 5), false, 5), [], "nothing refers to what was not sent");
        assert_eq!(give(&mut stream, (2, 6), true, 6), [(2, 6)]);
        assert!(!stream.on_estimate(Time::ZERO, kbps(700)));
        assert!(stream.on_estimate(Time::from_secs(1), kbps(700)), "a key frame is asked for");
        assert_eq!((stream.current(), stream.wanted()), (2, 1));
        // The camera of the new encoding is not there yet: nothing waits for it.
        assert_eq!(stream.on_frame(2, (7, false), (2, 7), None), [(2, 7)]);
        assert_eq!(give(&mut stream, (1, 8), false, 8), []);
        assert_eq!(give(&mut stream, (2, 8), false, 8), [(2, 8)]);
        // The lower encoding is faster: its frame waits for that of the higher.
        assert_eq!(give(&mut stream, (2, 9), false, 8), []);
        assert_eq!(give(&mut stream, (1, 9), false, 9), [(2, 9)]);
        assert_eq!(give(&mut stream, (2, 10), false, 9), []);
        assert_eq!(give(&mut stream, (1, 10), true, 10), [(1, 10)]);
        assert_eq!((stream.current(), stream.wanted()), (1, 1));
        assert_eq!(give(&mut stream, (2, 11), false, 10), [], "it is the old one's");
        assert_eq!(give(&mut stream, (1, 11), false, 11), [(1, 11)]);
    }

    #[test]
    fn no_more_than_two_frames_wait_and_a_key_frame_that_comes_too_late_is_asked_for_again() {
        let mut stream = stream(WebrtcQuality::Auto, 700);
        assert_eq!(give(&mut stream, (1, 0), true, 0), [(1, 0)]);
        stream.on_estimate(Time::ZERO, kbps(2000));
        assert!(stream.on_estimate(Time::from_secs(1), kbps(2000)));
        assert_eq!(give(&mut stream, (1, 1), false, 0), []);
        assert_eq!(give(&mut stream, (1, 2), false, 0), []);
        assert_eq!(give(&mut stream, (1, 3), false, 0), [(1, 1)]);
        // The new encoder is far behind.
        assert_eq!(give(&mut stream, (1, 20), false, 0), [(1, 2), (1, 3), (1, 20)]);
        assert!(!stream.on_estimate(Time::from_millis(1050), kbps(2000)));
        assert_eq!(give(&mut stream, (0, 20), true, 20), []);
        assert!(stream.on_estimate(Time::from_millis(1100), kbps(2000)));
        // Without any key frame, it is asked for again after half a second.
        assert!(!stream.on_estimate(Time::from_millis(1599), kbps(2000)));
        assert!(stream.on_estimate(Time::from_millis(1600), kbps(2000)));
        assert_eq!(give(&mut stream, (0, 21), true, 21), [(0, 21)]);
    }

    #[test]
    fn an_estimate_that_comes_back_changes_nothing() {
        let mut stream = stream(WebrtcQuality::Auto, 700);
        give(&mut stream, (1, 0), true, 0);
        stream.on_estimate(Time::ZERO, kbps(200));
        assert!(stream.on_estimate(Time::from_millis(300), kbps(200)));
        assert_eq!(give(&mut stream, (1, 1), false, 0), []);
        stream.on_estimate(Time::from_millis(320), kbps(900));
        assert!(!stream.on_estimate(Time::from_millis(1320), kbps(900)), "it has a key frame");
        assert_eq!(stream.wanted(), 1);
        assert_eq!(give(&mut stream, (1, 2), false, 2), [(1, 1), (1, 2)]);
    }

    proptest! {
        /// Whatever encoders make and estimates say: numbers rise, an encoding begins with a key frame, and all that follows of
        /// it is there.
        #[test]
        fn a_viewer_can_decode_all_that_it_is_sent(
            steps in prop::collection::vec((0..3usize, 0..6u32, 50..4000u64, prop::bool::weighted(0.2)), 1..400),
        ) {
            let mut made = [0u64; 3];
            let mut newest = [None; 3];
            let mut sent: Vec<(usize, u64, bool, Option<u64>)> = Vec::new();
            let mut frames = Stream::new(Time::ZERO, WebrtcQuality::Auto, &most(), kbps(300));
            for (at, (quality, ahead, estimate, key)) in steps.into_iter().enumerate() {
                let now = Time::from_millis(200 * at as u64);
                frames.on_estimate(now, kbps(estimate));
                let number = made[quality] + u64::from(ahead);
                made[quality] = number + 1;
                let frame = (quality, number, key || newest[quality].is_none(), newest[quality]);
                newest[quality] = Some(number);
                let wanted = newest[frames.wanted()];
                sent.extend(frames.on_frame(quality, (number, frame.2), frame, wanted));
            }
            for pair in sent.windows(2) {
                let [(before, first, ..), (quality, number, key, refers)] = pair else { continue };
                prop_assert!(first < number);
                let follows = before == quality && *refers == Some(*first);
                prop_assert!(*key || follows, "{pair:?}");
            }
            prop_assert!(sent.first().is_none_or(|(.., key, _)| *key));
        }
    }
}
