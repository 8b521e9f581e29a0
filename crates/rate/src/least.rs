//! The least of the samples of the last time.

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

/// Samples that are kept at most; of more, the oldest is forgotten.
const SAMPLES_MAX: usize = 512;

/// The least of the samples of some time, such as round-trip times. The least one ever is that of a route that may have
/// changed.
#[derive(Debug, Clone, Default)]
pub struct Least(VecDeque<(Time, Duration)>);

impl Least {
    /// Adds a sample, and forgets those that are older than `over`.
    pub fn add(&mut self, now: Time, sample: Duration, over: Duration) {
        while self.0.back().is_some_and(|(_, before)| *before >= sample) {
            self.0.pop_back();
        }
        self.0.push_back((now, sample));
        let old = |entry: &(Time, Duration)| now.saturating_since(entry.0) > over;
        while self.0.front().is_some_and(old) || self.0.len() > SAMPLES_MAX {
            self.0.pop_front();
        }
    }

    /// The least of them; `None` before the first.
    pub fn get(&self) -> Option<Duration> {
        self.0.front().map(|(_, least)| *least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_last_seconds() {
        let mut least = Least::default();
        assert_eq!(least.get(), None);
        let over = Duration::from_secs(10);
        for (second, ms, found) in
            [(0, 20, 20), (5, 150, 20), (10, 160, 20), (11, 170, 150), (15, 90, 90)]
        {
            least.add(Time::from_secs(second), Duration::from_millis(ms), over);
            assert_eq!(least.get(), Some(Duration::from_millis(found)), "at {second} s");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut least = Least::default();
        for n in 0..2000 {
            least.add(Time::ZERO, Duration::from_millis(n), Duration::from_secs(1));
        }
        assert_eq!(least.0.len(), SAMPLES_MAX);
    }
}
