//! The one place where the lab reads clocks.

use rustix::time::{ClockId, clock_gettime};
use suiro_units::Time;

/// CLOCK_MONOTONIC in nanoseconds: the axis that every process of a trial shares.
#[expect(clippy::disallowed_methods, reason = "this module is the lab's clock")]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// CLOCK_REALTIME in nanoseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "this module is the lab's clock")]
pub fn realtime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

fn nanoseconds(t: rustix::time::Timespec) -> u64 {
    let seconds = u64::try_from(t.tv_sec).expect("the clock is past its epoch");
    let rest = u64::try_from(t.tv_nsec).expect("nanoseconds are not negative");
    seconds * 1_000_000_000 + rest
}

/// Both clocks at one instant: the zero of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Epoch {
    /// CLOCK_MONOTONIC at the trial's zero.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME at the trial's zero.
    pub realtime_ns: u64,
}

impl Epoch {
    /// Now.
    pub fn now() -> Self {
        Self { monotonic_ns: monotonic_ns(), realtime_ns: realtime_ns() }
    }

    /// The time since this epoch.
    pub fn elapsed(self) -> Time {
        Time::from_nanos(monotonic_ns().saturating_sub(self.monotonic_ns))
    }
}

/// A point of CLOCK_REALTIME as RFC 3339 text in UTC, to the second.
pub fn rfc3339(realtime_ns: u64) -> String {
    let seconds = i64::try_from(realtime_ns / 1_000_000_000).unwrap_or(i64::MAX);
    chrono::DateTime::from_timestamp(seconds, 0)
        .map(|t| t.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
        .unwrap_or_default()
}

/// The same as a name that sorts: `20261121-015700`.
pub fn compact(realtime_ns: u64) -> String {
    rfc3339(realtime_ns)
        .chars()
        .filter_map(|c| match c {
            '0'..='9' => Some(c),
            'T' => Some('-'),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_text() {
        let t = 1_795_226_220_999_999_999;
        assert_eq!(rfc3339(t), "2026-11-21T01:57:00Z");
        assert_eq!(compact(t), "20261121-015700");
    }
}
