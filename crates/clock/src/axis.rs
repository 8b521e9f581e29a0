//! The time axis of a trial, and how the kernel's timestamps map to it.

use suiro_units::Time;

use crate::kernel;

/// CLOCK_MONOTONIC counted from an epoch: the time axis of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    epoch_ns: u64,
}

impl Axis {
    /// Counts from `epoch_ns`, a reading of CLOCK_MONOTONIC.
    pub const fn since(epoch_ns: u64) -> Self {
        Self { epoch_ns }
    }

    /// Counts from now.
    pub fn starting_now() -> Self {
        Self::since(kernel::monotonic_ns())
    }

    /// CLOCK_MONOTONIC at [`Time::ZERO`], in nanoseconds.
    pub const fn epoch_ns(self) -> u64 {
        self.epoch_ns
    }

    /// The current time; zero before the epoch.
    #[inline]
    pub fn now(self) -> Time {
        Time::from_nanos(kernel::monotonic_ns().saturating_sub(self.epoch_ns))
    }

    /// How far CLOCK_REALTIME, which the kernel stamps packets with, is ahead of this axis. Read
    /// it again for each batch of packets: the wall clock may be set at any time.
    pub fn realtime_lead_ns(self) -> i64 {
        kernel::realtime().lead_ns().wrapping_add_unsigned(self.epoch_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_maps_to_ours() {
        let axis = Axis::starting_now();
        let lead = axis.realtime_lead_ns();
        let real = kernel::realtime_ns().cast_signed() - lead;
        let now = axis.now().as_nanos().cast_signed();
        // Both were read within this test; a tenth of a second is enough for any machine.
        assert!((now - real).abs() < 100_000_000, "{now} {real}");
        assert_eq!(Axis::since(u64::MAX).now(), Time::ZERO);
    }
}
