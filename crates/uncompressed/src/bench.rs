//! The study's storage benchmark: how long 60 frames take to read. Pure; times are arguments.
//!
//! A node at 59.94 frames per second needs 60 frames within 1.001 s. A mean below that is not
//! enough: the slowest 60 frames determine how many frames of buffer are needed.

use suiro_units::{Duration, Time};

/// Frames that are timed together.
pub const GROUP: u64 = 60;

/// Times of groups of [`GROUP`] frames, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Groups {
    begun: Time,
    frames: u64,
    sum: Duration,
    worst: Duration,
    groups: u64,
}

/// How long the groups took; `None` before the first one is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupTimes {
    /// Complete groups.
    pub groups: u64,
    /// Their mean time.
    pub mean: Duration,
    /// The longest of them.
    pub worst: Duration,
}

impl Groups {
    /// The first frame is requested at `now`.
    pub const fn new(now: Time) -> Self {
        Self { begun: now, frames: 0, sum: Duration::ZERO, worst: Duration::ZERO, groups: 0 }
    }

    /// A frame arrived at `now`.
    pub fn frame(&mut self, now: Time) {
        self.frames += 1;
        if self.frames < GROUP {
            return;
        }
        let took = now.saturating_since(self.begun);
        (self.begun, self.frames) = (now, 0);
        self.sum += took;
        self.worst = self.worst.max(took);
        self.groups += 1;
    }

    /// What was timed so far.
    pub fn times(&self) -> Option<GroupTimes> {
        let Self { sum, worst, groups, .. } = *self;
        (groups > 0).then(|| GroupTimes { groups, mean: sum / groups, worst })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_hides_the_worst_group() {
        let mut groups = Groups::new(Time::from_secs(5));
        assert_eq!(groups.times(), None);
        let mut now = Time::from_secs(5);
        for number in 0..3 * GROUP + 7 {
            now += Duration::from_millis(if number == 70 { 610 } else { 10 });
            groups.frame(now);
        }
        let times = groups.times().unwrap();
        assert_eq!(times.groups, 3);
        assert_eq!(times.mean, Duration::from_millis(800));
        assert_eq!(times.worst, Duration::from_millis(1200));
    }
}
