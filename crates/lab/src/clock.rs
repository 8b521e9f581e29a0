//! The start of a trial on both clocks, and the time since.

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
pub use suiro_clock::kernel::realtime_ns;
use suiro_clock::{Axis, kernel};
use suiro_units::Time;

/// Both clocks at one instant: time zero of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Epoch {
    /// CLOCK_MONOTONIC at time zero.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME at time zero.
    pub realtime_ns: u64,
}

impl Epoch {
    /// Now.
    pub fn now() -> Self {
        let real = kernel::realtime();
        Self { monotonic_ns: real.monotonic_ns, realtime_ns: real.other }
    }

    /// The time since this epoch.
    pub fn elapsed(self) -> Time {
        Axis::since(self.monotonic_ns).now()
    }
}

/// Waits until the clock shows a whole second. How long a trial in virtual time took to set up depends a little on where
/// things are on the host: how many folders were searched for a program, for example. Its measurement must not.
pub(crate) fn wait_for_whole_second() {
    const SECOND: u64 = 1_000_000_000;
    // Without the slack of 50 µs that threads have.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let due = (kernel::monotonic_ns() / SECOND + 1) * SECOND;
    let due = Timespec { tv_sec: (due / SECOND).cast_signed(), tv_nsec: 0 };
    // A signal ends it early, and the trial with it.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &due);
    let _ = rustix::thread::set_current_timer_slack(None);
}

/// A CLOCK_REALTIME value as RFC 3339 text in UTC, to the second.
pub fn rfc3339(realtime_ns: u64) -> String {
    let seconds = i64::try_from(realtime_ns / 1_000_000_000).unwrap_or(i64::MAX);
    chrono::DateTime::from_timestamp(seconds, 0)
        .map(|t| t.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
        .unwrap_or_default()
}

/// The same as a sortable name: `20261121-015700`.
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
