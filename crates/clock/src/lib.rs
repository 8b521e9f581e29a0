//! Clocks, all of which count from the trial's epoch: [`Clock`] is the endpoints', on tokio's; [`Axis`] is that of
//! threads. [`kernel`] reads the kernel's clocks, and no other crate does.

mod axis;
pub mod kernel;

pub use axis::Axis;
use suiro_units::{Duration, Time};
use tokio::time::Instant;

/// Time since an epoch, and wall-clock time derived from it.
///
/// The wall clock is read once, when the epoch is set, so a step of the system clock during a trial
/// has no effect.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// An instant of tokio's clock, and the CLOCK_MONOTONIC reading at that instant.
    base: Instant,
    base_ns: u64,
    epoch_monotonic_ns: u64,
    epoch_realtime_ns: u64,
}

impl Clock {
    /// A clock whose zero is this CLOCK_MONOTONIC reading, at which CLOCK_REALTIME had the other
    /// value. The epoch may be in the future.
    #[expect(clippy::disallowed_methods, reason = "this module is the endpoints' clock")]
    pub fn new(epoch_monotonic_ns: u64, epoch_realtime_ns: u64) -> Self {
        let base = kernel::beside(Instant::now);
        let base_ns = base.monotonic_ns;
        Self { base: base.other, base_ns, epoch_monotonic_ns, epoch_realtime_ns }
    }

    /// A clock whose zero is now, for an endpoint that is started by hand.
    pub fn from_now() -> Self {
        let real = kernel::realtime();
        Self::new(real.monotonic_ns, real.other)
    }

    /// The time since the epoch; zero before it.
    #[expect(clippy::disallowed_methods, reason = "this module is the endpoints' clock")]
    pub fn now(&self) -> Time {
        let since_base = Duration::from(Instant::now() - self.base).as_nanos();
        Time::from_nanos((self.base_ns + since_base).saturating_sub(self.epoch_monotonic_ns))
    }

    /// The instant at which the clock shows `time`, for libraries that count in instants.
    pub fn instant(&self, time: Time) -> std::time::Instant {
        let monotonic_ns = self.epoch_monotonic_ns.saturating_add(time.as_nanos());
        let base = self.base.into_std();
        match monotonic_ns.checked_sub(self.base_ns) {
            Some(ahead) => base + std::time::Duration::from_nanos(ahead),
            None => base - std::time::Duration::from_nanos(self.base_ns - monotonic_ns),
        }
    }

    /// The wall clock at `time`, in nanoseconds since 1970.
    pub fn unix_ns(&self, time: Time) -> u64 {
        self.epoch_realtime_ns.saturating_add(time.as_nanos())
    }

    /// The wall clock at the epoch, in nanoseconds since 1970.
    pub fn epoch_unix_ns(&self) -> u64 {
        self.epoch_realtime_ns
    }

    /// CLOCK_MONOTONIC at [`Time::ZERO`], in nanoseconds: another process of this machine counts from there.
    pub fn epoch_monotonic_ns(&self) -> u64 {
        self.epoch_monotonic_ns
    }

    /// Waits until `time`; returns at once if it has passed.
    pub async fn sleep_until(&self, time: Time) {
        let monotonic_ns = self.epoch_monotonic_ns.saturating_add(time.as_nanos());
        let ahead = Duration::from_nanos(monotonic_ns.saturating_sub(self.base_ns));
        tokio::time::sleep_until(self.base + ahead.into()).await;
    }

    /// Waits until `due`; for ever if there is no such time.
    pub async fn sleep_until_due(&self, due: Option<Time>) {
        match due {
            Some(due) => self.sleep_until(due).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn counts_from_the_epoch_and_waits_for_it() {
        let reading = Clock::new(0, 0).now().as_nanos();
        // The epoch is an hour ahead of that reading.
        let clock = Clock::new(reading + 3_600_000_000_000, 5_000_000_000);
        assert_eq!(clock.now(), Time::ZERO);
        clock.sleep_until(Time::from_secs(2)).await;
        // tokio's timer fires within a millisecond after the deadline.
        let late = clock.now().saturating_since(Time::from_secs(2));
        assert!(clock.now() >= Time::from_secs(2) && late < Duration::from_millis(2), "{late}");
        assert_eq!(clock.unix_ns(Time::from_secs(2)), 7_000_000_000);
        let (zero, later) = (clock.instant(Time::ZERO), clock.instant(Time::from_secs(2)));
        assert_eq!(later - zero, std::time::Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_time_it_waits_for_ever() {
        let clock = Clock::from_now();
        clock.sleep_until_due(Some(clock.now())).await;
        let hour = std::time::Duration::from_secs(3600);
        assert!(tokio::time::timeout(hour, clock.sleep_until_due(None)).await.is_err());
    }
}
