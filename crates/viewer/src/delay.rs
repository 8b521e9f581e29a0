//! How long after its capture a frame is shown.
//!
//! The delay is what the fastest frame of a window took, plus the buffer. A fixed buffer is what
//! the policy says. An adaptive one is the percentile of the recent frames' lateness, which is the
//! histogram method of Moon, Kurose and Towsley, "Packet audio playback delay adjustment:
//! performance bounds and algorithms", Multimedia Systems 6 (1998); WebRTC's NetEQ chooses its
//! level in the same way. They change the delay between talkspurts; video has none, so it follows
//! at once where it must rise, and falls by no more than 100 ms in a second, which is the bound of
//! WebRTC's `VCMTiming` (`kDelayMaxChangeMsPerS`): pictures then run a tenth too fast at most.

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

use crate::policy::{Buffer, Policy};

/// Most frames that a window holds; of more, the oldest are forgotten.
const FRAMES_MAX: usize = 4096;

/// How much the delay falls, at most, in one unit of time.
const RELEASE: i128 = 10; // one in ten: 100 ms in a second

/// The delay from capture to display, from what recent frames took.
///
/// All times of frames are differences of two clocks, the camera's and ours, so they may be
/// negative: nanoseconds with a sign.
#[derive(Debug, Clone)]
pub struct Delay {
    policy: Policy,
    /// When each recent frame was received, and its transit: received less captured.
    recent: VecDeque<(Time, i128)>,
    /// When it last changed, and the delay.
    current: Option<(Time, i128)>,
}

impl Delay {
    /// Nothing has been received yet.
    pub fn new(policy: Policy) -> Self {
        Self { policy, recent: VecDeque::new(), current: None }
    }

    /// A frame was received whole; its display time. Times of receipt never decrease.
    pub fn on_frame(&mut self, received: Time, captured: Time) -> Time {
        let transit = i128::from(received.as_nanos()) - i128::from(captured.as_nanos());
        self.remember(received, transit);
        let wanted = self.wanted();
        let delay = match self.current {
            Some((since, delay)) if wanted < delay => {
                let elapsed = i128::from(received.saturating_since(since).as_nanos());
                wanted.max(delay - elapsed / RELEASE).min(self.most())
            }
            _ => wanted,
        };
        self.current = Some((received, delay));
        // At most 10 s from now: the fastest frame was no slower than this one.
        after(captured, delay)
    }

    /// The display time of a frame that was not received whole; `None` before the first that was.
    pub fn due(&self, captured: Time) -> Option<Time> {
        self.current.map(|(_, delay)| after(captured, delay))
    }

    /// The buffer now: the delay beyond the fastest recent frame's; `None` before the first frame.
    pub fn buffer(&self) -> Option<Duration> {
        let (_, delay) = self.current?;
        Some(Duration::from_nanos(u64::try_from(delay - self.fastest()).unwrap_or(0)))
    }

    fn remember(&mut self, received: Time, transit: i128) {
        self.recent.push_back((received, transit));
        let from = received.saturating_sub(self.policy.window);
        while self.recent.len() > FRAMES_MAX || self.recent[0].0 < from {
            self.recent.pop_front();
        }
    }

    /// What the fastest recent frame took.
    fn fastest(&self) -> i128 {
        let transits = self.recent.iter().map(|&(_, transit)| transit);
        transits.min().expect("the last frame received is remembered")
    }

    /// The delay that recent frames ask for.
    fn wanted(&self) -> i128 {
        match self.policy.buffer {
            Buffer::Fixed(buffer) => self.fastest() + i128::from(buffer.as_nanos()),
            Buffer::Adaptive => {
                let mut transits: Vec<i128> = self.recent.iter().map(|&(_, t)| t).collect();
                nearest_rank(&mut transits, self.policy.percentile.get()).min(self.most())
            }
        }
    }

    /// The delay is never more than this, also while it falls.
    fn most(&self) -> i128 {
        let buffer = match self.policy.buffer {
            Buffer::Fixed(buffer) => buffer.max(self.policy.buffer_max),
            Buffer::Adaptive => self.policy.buffer_max,
        };
        self.fastest() + i128::from(buffer.as_nanos())
    }
}

/// `time` and a delay that may be negative, kept within what a [`Time`] can say.
fn after(time: Time, delay: i128) -> Time {
    let sum = i128::from(time.as_nanos()) + delay;
    Time::from_nanos(u64::try_from(sum.max(0)).unwrap_or(u64::MAX))
}

/// The least value that a share of all values does not exceed.
fn nearest_rank(values: &mut [i128], share: f64) -> i128 {
    let rank = (values.len() as f64 * share).ceil() as usize;
    let index = rank.clamp(1, values.len()) - 1;
    *values.select_nth_unstable(index).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn delay(policy: &str) -> Delay {
        Delay::new(toml::from_str(policy).unwrap())
    }

    #[test]
    fn a_fixed_buffer_counts_from_the_fastest_frame() {
        let mut delay = delay("buffer = '50 ms'");
        assert_eq!(delay.on_frame(ms(130), ms(100)), ms(180));
        assert_eq!(delay.on_frame(ms(173), ms(133)), ms(213), "a slower one changes nothing");
        assert_eq!(delay.buffer(), Some(Duration::from_millis(50)));
    }

    #[test]
    fn it_falls_by_a_tenth_of_the_time() {
        let mut delay = delay("buffer = '50 ms'");
        assert_eq!(delay.on_frame(ms(130), ms(100)), ms(180), "80 ms after capture");
        // It should be 60 ms after capture, and 40 ms have passed: 4 less.
        assert_eq!(delay.on_frame(ms(170), ms(160)), ms(236));
    }

    #[test]
    fn an_adaptive_buffer_rises_at_once_and_is_bounded() {
        let mut delay = delay("percentile = 1\nbuffer_max = '100 ms'");
        assert_eq!(delay.on_frame(ms(20), ms(0)), ms(20));
        assert_eq!(delay.on_frame(ms(113), ms(33)), ms(113), "80 ms: nobody was slower");
        assert_eq!(delay.on_frame(ms(366), ms(66)), ms(186), "at most 20 ms and 100 ms more");
        assert_eq!(delay.buffer(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn the_percentile_is_the_nearest_rank() {
        let mut values: Vec<i128> = (1..=20).rev().collect();
        assert_eq!(nearest_rank(&mut values, 0.95), 19);
        assert_eq!(nearest_rank(&mut values, 0.951), 20);
        assert_eq!(nearest_rank(&mut values, 1e-9), 1);
        assert_eq!(nearest_rank(&mut [7], 1.0), 7);
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut delay = delay("percentile = 1\nwindow = '100 ms'");
        delay.on_frame(ms(90), ms(0));
        assert_eq!(delay.on_frame(ms(110), ms(100)), ms(190), "not yet");
        assert_eq!(delay.on_frame(ms(200), ms(190)), ms(271), "90 ms, less 9 ms in 90 ms");
        assert_eq!(delay.on_frame(ms(2000), ms(1990)), ms(2000), "released");
    }

    #[test]
    fn clocks_far_apart_do_no_harm() {
        let mut delay = delay("");
        let far = Time::from_nanos(u64::MAX);
        assert_eq!(delay.on_frame(ms(1), far), ms(1));
        assert_eq!(delay.on_frame(ms(2), ms(0)), ms(0), "far too late");
    }
}
