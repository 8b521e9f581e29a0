//! How long after its capture a frame is shown.
//!
//! With a fixed buffer, the delay is what the fastest frame of a window took, plus the buffer. It rises at once, and falls
//! by no more than 100 ms in a second, the bound of WebRTC's `VCMTiming` (`kDelayMaxChangeMsPerS`).
//!
//! With an adaptive one, it is what the fastest frame of the last 200 ms took, plus a buffer for jitter. The buffer is the
//! percentile of how much longer the frames of a window took than the fastest of the 200 ms before each. That is the
//! histogram method of Moon, Kurose and Towsley, "Packet audio playback delay adjustment: performance bounds and
//! algorithms", Multimedia Systems 6 (1998); WebRTC's NetEQ chooses its level in the same way. A queue that fills and
//! drains makes all frames slower for a while, which is no jitter: the delay follows it at once, up and down. WebRTC's
//! video does the same, because its jitter estimator compares successive frames. The buffer rises and falls as a fixed
//! one's delay does.

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

use crate::policy::{Buffer, Policy};

/// Most frames that a window holds; of more, the oldest are forgotten.
const FRAMES_MAX: usize = 4096;

/// What all frames of this time took is the path's delay, and not jitter: six frames at 30 a second.
const PATH: Duration = Duration::from_millis(200);

/// How much the delay of a fixed buffer, or an adaptive buffer, falls, at most, in one unit of time.
const RELEASE: i128 = 10; // one in ten: 100 ms in a second

/// The delay from capture to display, from what recent frames took.
///
/// All times of frames are differences of two clocks, the camera's and ours, so they may be
/// negative: nanoseconds with a sign.
#[derive(Debug, Clone)]
pub struct Delay {
    policy: Policy,
    recent: VecDeque<Received>,
    current: Option<Current>,
}

/// A recent frame.
#[derive(Debug, Clone, Copy)]
struct Received {
    at: Time,
    /// Received less captured.
    transit: i128,
    /// By how much its transit exceeds that of the path: jitter, never negative.
    jitter: i128,
}

/// The delay after the last frame.
#[derive(Debug, Clone, Copy)]
struct Current {
    since: Time,
    /// What follows the path at once: nothing with a fixed buffer.
    path: i128,
    /// What falls slowly, beyond it.
    held: i128,
}

impl Delay {
    /// Nothing has been received yet.
    pub fn new(policy: Policy) -> Self {
        Self { policy, recent: VecDeque::new(), current: None }
    }

    /// A frame was received whole; its display time. Times of receipt never decrease.
    pub fn on_frame(&mut self, received: Time, captured: Time) -> Time {
        let transit = i128::from(received.as_nanos()) - i128::from(captured.as_nanos());
        let path = self.remember(received, transit);
        let wanted = self.wanted();
        let held = match self.current {
            Some(Current { since, held, .. }) if wanted < held => {
                let elapsed = i128::from(received.saturating_since(since).as_nanos());
                wanted.max(held - elapsed / RELEASE).min(self.most())
            }
            _ => wanted,
        };
        self.current = Some(Current { since: received, path, held });
        // At most 10 s from now: the fastest frame was no slower than this one.
        after(captured, path + held)
    }

    /// The display time of a frame that was not received whole; `None` before the first that was.
    pub fn due(&self, captured: Time) -> Option<Time> {
        self.current.map(|current| after(captured, current.path + current.held))
    }

    /// The buffer now: the delay beyond the fastest recent frame's; `None` before the first frame.
    pub fn buffer(&self) -> Option<Duration> {
        let current = self.current?;
        let beyond = current.path + current.held - self.fastest_since(Time::ZERO);
        Some(Duration::from_nanos(u64::try_from(beyond).unwrap_or(0)))
    }

    /// Remembers a frame; the part of the delay that follows the path at once.
    fn remember(&mut self, at: Time, transit: i128) -> i128 {
        self.recent.push_back(Received { at, transit, jitter: 0 });
        let from = at.saturating_sub(self.policy.window);
        while self.recent.len() > FRAMES_MAX || self.recent[0].at < from {
            self.recent.pop_front();
        }
        let path = match self.policy.buffer {
            Buffer::Fixed(_) => 0,
            Buffer::Adaptive => self.fastest_since(at.saturating_sub(PATH)),
        };
        self.recent.back_mut().expect("it was remembered just now").jitter = transit - path;
        path
    }

    /// The transit of the fastest recent frame that was received then or later.
    fn fastest_since(&self, from: Time) -> i128 {
        let recent = self.recent.iter().rev().take_while(|frame| frame.at >= from);
        recent.map(|frame| frame.transit).min().expect("the last frame received is remembered")
    }

    /// What recent frames ask for beyond the path.
    fn wanted(&self) -> i128 {
        match self.policy.buffer {
            Buffer::Fixed(buffer) => self.fastest_since(Time::ZERO) + nanos(buffer),
            Buffer::Adaptive => {
                let mut jitter: Vec<i128> = self.recent.iter().map(|frame| frame.jitter).collect();
                nearest_rank(&mut jitter, self.policy.percentile.get()).min(self.most())
            }
        }
    }

    /// It is never more than this, also while it falls.
    fn most(&self) -> i128 {
        match self.policy.buffer {
            Buffer::Fixed(buffer) => {
                self.fastest_since(Time::ZERO) + nanos(buffer.max(self.policy.buffer_max))
            }
            Buffer::Adaptive => nanos(self.policy.buffer_max),
        }
    }
}

fn nanos(duration: Duration) -> i128 {
    i128::from(duration.as_nanos())
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
    fn the_delay_of_a_fixed_buffer_falls_by_a_tenth_of_the_time() {
        let mut delay = delay("buffer = '50 ms'");
        assert_eq!(delay.on_frame(ms(130), ms(100)), ms(180), "80 ms after capture");
        // It should be 60 ms after capture, and 40 ms have passed: 4 less.
        assert_eq!(delay.on_frame(ms(170), ms(160)), ms(236));
    }

    #[test]
    fn the_buffer_falls_by_a_tenth_of_the_time() {
        let mut delay = delay("percentile = 1\nwindow = '100 ms'");
        assert_eq!(delay.on_frame(ms(20), ms(0)), ms(20));
        assert_eq!(delay.on_frame(ms(100), ms(30)), ms(100), "50 ms more than the frame before");
        // 110 ms later the slow one is no longer recent, and the buffer falls from 50 to 39 ms.
        assert_eq!(delay.on_frame(ms(210), ms(190)), ms(249));
    }

    #[test]
    fn an_adaptive_buffer_rises_at_once_and_is_bounded() {
        let mut delay = delay("percentile = 1\nbuffer_max = '100 ms'");
        assert_eq!(delay.on_frame(ms(20), ms(0)), ms(20));
        assert_eq!(delay.on_frame(ms(113), ms(33)), ms(113), "80 ms: none was slower");
        assert_eq!(delay.on_frame(ms(216), ms(66)), ms(186), "at most 20 ms and 100 ms more");
        assert_eq!(delay.buffer(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn a_queue_that_fills_and_drains_is_no_jitter() {
        let mut delay = delay("percentile = 1");
        let mut shown = |captured: u64, transit: u64| {
            let due = delay.on_frame(ms(captured + transit), ms(captured));
            due.saturating_since(ms(captured)).as_nanos() / 1_000_000
        };
        // Each frame takes 20 ms more than the one before, which is 40 ms older, up to a second.
        let rising: Vec<u64> = (0..50).map(|n| shown(n * 40, 20 + n * 20)).collect();
        assert_eq!((rising[0], rising[49]), (20, 1000), "none is held");
        // Then the queue is empty. The buffer is for the 60 ms that a frame took more than the fastest of 200 ms.
        assert_eq!(shown(3000, 20), 80);
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
    fn clocks_far_apart_do_no_harm() {
        let mut delay = delay("");
        let far = Time::from_nanos(u64::MAX);
        assert_eq!(delay.on_frame(ms(1), far), ms(1));
        assert_eq!(delay.on_frame(ms(2), ms(0)), ms(0), "far too late");
    }
}
