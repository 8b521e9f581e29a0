//! The delay of an empty path, from one-way delays between clocks that are not synchronised (RFC 6817 §3.1.1).

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

/// Minutes of which the least delay is remembered (RFC 6817 §2.5: `BASE_HISTORY`, 10). What is older is that of a route
/// or of a clock that may have changed.
const MINUTES: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// A delay that differs more than this from the least one is that of a clock that was set: the history begins again.
/// RFC 8888 §3.1 reports no offset beyond 8 s.
const STEP: i64 = 8_000_000_000;

/// The least one-way delay of the last ten minutes, which a constant difference between two clocks does not disturb.
#[derive(Debug, Clone, Default)]
pub struct BaseDelay {
    /// The least delay of each minute in nanoseconds, the latest last.
    minutes: VecDeque<i64>,
    /// When the latest minute began.
    since: Time,
}

impl BaseDelay {
    /// Takes the delay of a packet that arrived at `at`. The result is its queueing delay: what it took longer than the
    /// quickest packet.
    pub fn queueing(&mut self, at: Time, sent: Time) -> Duration {
        let delay = signed(at).saturating_sub(signed(sent));
        let base = self.minutes.iter().copied().min();
        if base.is_none_or(|base| delay.saturating_sub(base).saturating_abs() > STEP) {
            self.minutes.clear();
        }
        if self.minutes.is_empty() || at.saturating_since(self.since) >= MINUTE {
            self.since = at;
            self.minutes.push_back(delay);
            if self.minutes.len() > MINUTES {
                self.minutes.pop_front();
            }
        } else if let Some(latest) = self.minutes.back_mut() {
            *latest = delay.min(*latest);
        }
        let base = self.minutes.iter().copied().min().unwrap_or(delay);
        Duration::from_nanos(u64::try_from(delay.saturating_sub(base)).unwrap_or(0))
    }
}

fn signed(time: Time) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn the_difference_of_the_clocks_does_not_count() {
        for (theirs, ours) in [(0u64, 0u64), (1_000_000, 0), (0, 1_000_000)] {
            let mut base = BaseDelay::default();
            let mut queueing = |sent, arrived| {
                base.queueing(ms(arrived + theirs), ms(sent + ours)).as_millis_f64()
            };
            assert_eq!([queueing(0, 50), queueing(10, 80), queueing(20, 65)], [0.0, 20.0, 0.0]);
            assert_eq!(queueing(30, 85), 10.0, "of 45 ms, the least so far");
        }
    }

    #[test]
    fn ten_minutes_are_remembered() {
        let mut base = BaseDelay::default();
        let second = |n: u64| ms(n * 1000);
        base.queueing(second(0) + Duration::from_millis(20), second(0));
        let mut queueing = |n| base.queueing(second(n) + Duration::from_millis(50), second(n));
        let told: Vec<f64> = (1..660).map(|n| queueing(n).as_millis_f64()).collect();
        assert_eq!(told[598], 30.0, "at 599 s");
        assert_eq!(told[605], 0.0, "the minute of the shorter delay is forgotten");
    }

    #[test]
    fn a_clock_that_was_set_begins_anew() {
        let mut base = BaseDelay::default();
        base.queueing(ms(50), ms(0));
        assert_eq!(base.queueing(ms(3_600_060), ms(10)), Duration::ZERO);
        assert_eq!(base.queueing(ms(3_600_080), ms(20)), Duration::from_millis(10));
        assert_eq!(base.queueing(ms(90), ms(30)), Duration::ZERO, "and back");
    }
}
