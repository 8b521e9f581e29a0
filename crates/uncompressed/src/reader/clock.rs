//! The reader's clock: the one place of this module that reads the time.

use rustix::time::ClockId;
use suiro_units::Time;

/// CLOCK_MONOTONIC.
#[expect(clippy::disallowed_methods, reason = "the reader's one place that reads the clock")]
pub fn now() -> Time {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).expect("the monotonic clock is not negative");
    Time::from_nanos(seconds * 1_000_000_000 + now.tv_nsec.cast_unsigned())
}
