//! When the camera has a frame.

use suiro_units::{Duration, Time};

/// A camera's frames are due at a constant rate. A thread that comes late finds the newest one; those before it are
/// skipped, and counted.
#[derive(Debug, Clone)]
pub struct Schedule {
    start: Time,
    interval: Duration,
    /// The number of the next frame that was not captured yet.
    next: u32,
    /// Frames that were not captured in time.
    skipped: u32,
}

/// A frame that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its number, from 0.
    pub number: u32,
    /// When the camera saw it.
    pub at: Time,
}

impl Schedule {
    /// Frame 0 is due at `start`, each other one `interval` after the one before. `interval` is greater than zero.
    pub fn new(start: Time, interval: Duration) -> Self {
        Self { start, interval, next: 0, skipped: 0 }
    }

    /// When the next frame is due.
    pub fn next_at(&self) -> Time {
        self.at(self.next)
    }

    /// The newest frame that is due, once; `None` if none is.
    pub fn take(&mut self, now: Time) -> Option<Due> {
        if now < self.next_at() {
            return None;
        }
        let since = now.saturating_since(self.start).as_nanos();
        let number = u32::try_from(since / self.interval.as_nanos()).unwrap_or(u32::MAX - 1);
        self.skipped += number - self.next;
        self.next = number + 1;
        Some(Due { number, at: self.at(number) })
    }

    /// Frames skipped since this was last asked.
    pub fn take_skipped(&mut self) -> u32 {
        std::mem::take(&mut self.skipped)
    }

    fn at(&self, number: u32) -> Time {
        self.start + self.interval * u64::from(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_late_finds_the_newest() {
        let mut schedule = Schedule::new(Time::from_secs(1), Duration::from_millis(100));
        assert_eq!(schedule.take(Time::from_millis(999)), None);
        assert_eq!(
            schedule.take(Time::from_secs(1)),
            Some(Due { number: 0, at: Time::from_secs(1) })
        );
        assert_eq!(schedule.take(Time::from_millis(1099)), None, "each once");
        let due = schedule.take(Time::from_millis(1450)).unwrap();
        assert_eq!(due, Due { number: 4, at: Time::from_millis(1400) });
        assert_eq!((schedule.take_skipped(), schedule.take_skipped()), (3, 0));
        assert_eq!(schedule.next_at(), Time::from_millis(1500));
    }
}
