//! When a camera captures which frame. Pure.

use suiro_units::{Duration, Time};

use suiro_strict::{Bounds, Keys, Refusal};

use super::FPS;

/// A camera's frames on the clock.
///
/// Frame `n` is captured `n / fps` seconds after the start, whether or not anybody is ready to take
/// it: who comes late gets the newest, and those before it are missed, as with a camera. A lower
/// rate than the camera's takes frames out as evenly as whole frames allow; numbers stay those of
/// the camera.
#[derive(Debug, Clone)]
pub struct Pace {
    start: Time,
    camera_fps: u32,
    fps: u32,
    next: u64,
}

/// A frame that is to be captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its number, from 0.
    pub number: u64,
    /// When it was captured.
    pub captured: Time,
    /// Frames that were due before it and missed.
    pub missed: u64,
}

impl Pace {
    /// A camera of so many frames per second, 1 to 120, that captures its first at `start`.
    ///
    /// # Errors
    /// Another rate.
    pub fn new(start: Time, camera_fps: u32) -> Result<Self, Refusal> {
        let camera_fps = FPS.check(Keys::of("fps"), camera_fps)?;
        Ok(Self { start, camera_fps, fps: camera_fps, next: 0 })
    }

    /// Begins with the first frame that is captured at `from` or later: those before are not missed.
    pub fn begin(&mut self, from: Time) {
        self.next = self.next.max(self.taken_from(self.number_from(from)));
    }

    /// How many frames are taken of those that are captured from and until these times.
    pub fn count(&self, from: Time, to: Time) -> u64 {
        let before = |at| self.taken_before(self.number_from(at));
        before(to).saturating_sub(before(from))
    }

    /// When the next frame is captured.
    pub fn next(&self) -> Time {
        self.captured(self.next)
    }

    /// The newest frame that is due by `now`; `None` if there is none.
    pub fn take(&mut self, now: Time) -> Option<Due> {
        let first = self.next;
        if self.captured(first) > now {
            return None;
        }
        // The nearest second is skipped to, so that no clock can make this long.
        let elapsed = now.saturating_since(self.start).as_nanos() / 1_000_000_000;
        let second = elapsed.saturating_sub(1) * u64::from(self.camera_fps);
        let mut number = if second > first { self.taken_from(second) } else { first };
        let mut missed = self.taken_before(number) - self.taken_before(first);
        loop {
            let after = self.taken_from(number + 1);
            if self.captured(after) > now {
                self.next = after;
                return Some(Due { number, captured: self.captured(number), missed });
            }
            number = after;
            missed += 1;
        }
    }

    /// Captures so many frames per second from the next on.
    ///
    /// # Errors
    /// None, or more than the camera has.
    pub fn set_fps(&mut self, fps: u32) -> Result<(), Refusal> {
        self.fps = Bounds::new(1, self.camera_fps).check(Keys::of("fps"), fps)?;
        self.next = self.taken_from(self.next);
        Ok(())
    }

    /// The camera's first frame that is captured at `at` or later.
    fn number_from(&self, at: Time) -> u64 {
        let elapsed = u128::from(at.saturating_since(self.start).as_nanos());
        let number = (elapsed * u128::from(self.camera_fps)).div_ceil(1_000_000_000);
        u64::try_from(number).unwrap_or(u64::MAX)
    }

    /// How many of the camera's first `number` frames are taken: `⌈number × fps / camera_fps⌉`.
    fn taken_before(&self, number: u64) -> u64 {
        let taken = (u128::from(number) * u128::from(self.fps)).div_ceil(self.camera_fps.into());
        u64::try_from(taken).unwrap_or(u64::MAX)
    }

    /// The first frame from `number` on that is taken.
    fn taken_from(&self, number: u64) -> u64 {
        let nth = u128::from(self.taken_before(number));
        let number = nth * u128::from(self.camera_fps) / u128::from(self.fps);
        u64::try_from(number).unwrap_or(u64::MAX)
    }

    /// When a frame is captured, to the nanosecond below.
    fn captured(&self, number: u64) -> Time {
        let fps = u64::from(self.camera_fps);
        let (seconds, frames) = (number / fps, number % fps);
        self.start
            + Duration::from_secs(seconds)
            + Duration::from_nanos(frames * 1_000_000_000 / fps)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn due(number: u64, captured: u64, missed: u64) -> Due {
        Due { number, captured: ms(captured), missed }
    }

    #[test]
    fn frames_come_at_their_time() {
        let mut pace = Pace::new(ms(1000), 25).unwrap();
        assert_eq!(pace.take(ms(999)), None);
        assert_eq!(pace.take(ms(1000)), Some(due(0, 1000, 0)));
        assert_eq!((pace.take(ms(1039)), pace.next()), (None, ms(1040)));
        assert_eq!(pace.take(ms(1041)), Some(due(1, 1040, 0)));
    }

    #[test]
    fn who_comes_late_gets_the_newest() {
        let mut pace = Pace::new(ms(0), 25).unwrap();
        assert_eq!(pace.take(ms(125)), Some(due(3, 120, 3)));
        assert_eq!(pace.take(ms(125)), None);
        assert_eq!(pace.take(ms(100_000)), Some(due(2500, 100_000, 2496)));
    }

    #[test]
    fn who_begins_later_has_missed_nothing_before() {
        let mut pace = Pace::new(ms(100), 30).unwrap();
        pace.begin(ms(60_100));
        assert_eq!(pace.clone().take(ms(60_100)), Some(due(1800, 60_100, 0)));
        assert_eq!(pace.take(ms(60_300)), Some(due(1806, 60_300, 6)), "it was busy");
        // Between two frames, and never backwards.
        pace.begin(ms(60_310));
        assert_eq!(pace.next(), Time::from_nanos(60_333_333_333));
        pace.begin(ms(0));
        assert_eq!(pace.next(), Time::from_nanos(60_333_333_333));
        pace.set_fps(20).unwrap();
        pace.begin(ms(61_110));
        assert_eq!(pace.take(ms(61_300)), Some(due(1836, 61_300, 3)));
    }

    #[test]
    fn a_lower_rate_takes_frames_out_evenly() {
        let mut pace = Pace::new(ms(0), 30).unwrap();
        let mut numbers = |fps, until: u64| -> Vec<u64> {
            pace.set_fps(fps).unwrap();
            let next = |pace: &mut Pace| {
                let at = pace.next();
                (at < ms(until)).then(|| pace.take(at).expect("it is due").number)
            };
            std::iter::from_fn(|| next(&mut pace)).collect()
        };
        assert_eq!(numbers(20, 300), [0, 1, 3, 4, 6, 7]);
        assert_eq!(numbers(10, 600), [9, 12, 15]);
        assert_eq!(numbers(30, 700), [18, 19, 20]);
        assert!(pace.set_fps(31).unwrap_err().to_string().contains("expected: 1 to 30"));
        assert!(pace.set_fps(0).is_err());
    }

    #[test]
    fn frames_are_counted_from_one_time_until_another() {
        let mut pace = Pace::new(ms(1000), 30).unwrap();
        assert_eq!(pace.count(ms(0), ms(1000)), 0);
        assert_eq!(pace.count(ms(0), ms(1001)), 1);
        assert_eq!(pace.count(ms(1000), ms(2000)), 30);
        // Frame 1 is captured 33,333,333 ns after the start.
        let second = Time::from_nanos(1_033_333_333);
        let after = second + Duration::from_nanos(1);
        assert_eq!((pace.count(second, after), pace.count(after, ms(1034))), (1, 0));
        assert_eq!(pace.count(ms(2000), ms(1000)), 0);
        pace.set_fps(20).unwrap();
        assert_eq!(pace.count(ms(1000), ms(2000)), 20);
    }

    proptest! {
        /// Every frame that is taken at a rate is either given or missed, and none comes early.
        #[test]
        fn none_is_lost_unseen(
            camera in 1..=120u32,
            part in 1..=120u32,
            waits in prop::collection::vec(0..3000u64, 1..40),
        ) {
            let mut pace = Pace::new(ms(5), camera).unwrap();
            pace.set_fps(part.min(camera)).unwrap();
            let mut now = ms(0);
            let mut all = 0;
            let mut last = None;
            for wait in waits {
                now += Duration::from_millis(wait);
                while let Some(due) = pace.take(now) {
                    prop_assert!(due.captured <= now && pace.next() > now);
                    prop_assert!(last < Some(due.number));
                    last = Some(due.number);
                    all += due.missed + 1;
                }
            }
            if let Some(last) = last {
                prop_assert_eq!(all, pace.taken_before(last + 1));
            }
        }
    }
}
