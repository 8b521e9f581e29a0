//! The one place where the recorder reads clocks.

use rustix::time::{ClockId, clock_gettime};

use crate::event::Moment;

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

impl Moment {
    /// Both clocks now.
    pub fn now() -> Self {
        let monotonic_ns = monotonic_ns();
        Self { monotonic_ns, realtime_ns: nanoseconds(ClockId::Realtime) }
    }

    /// Nanoseconds since an earlier moment, by CLOCK_MONOTONIC.
    pub fn since(self, earlier: Self) -> u64 {
        self.monotonic_ns.saturating_sub(earlier.monotonic_ns)
    }
}

/// Processor time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

#[expect(clippy::disallowed_methods, reason = "this module is the recorder's clock")]
fn nanoseconds(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    let seconds = u64::try_from(t.tv_sec).expect("the clock is past its epoch");
    let rest = u64::try_from(t.tv_nsec).expect("nanoseconds are not negative");
    seconds * 1_000_000_000 + rest
}
