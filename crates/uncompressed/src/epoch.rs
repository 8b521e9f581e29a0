//! When frames begin. Frame *k* of every stream begins at T₀ + *k* · frame time, where T₀ is the SMPTE epoch,
//! 1970-01-01 00:00:00 TAI (ST 2059-1). The time determines the frame, so senders on different hosts are in step
//! without exchanging messages.

use suiro_units::{Duration, Time};

use crate::geometry::FrameRate;

/// The SMPTE epoch on the monotonic clock, which has no steps. It is read once and holds for the life of the stream: if
/// TAI is set meanwhile, the stream continues on its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// Monotonic time minus TAI, in nanoseconds: usually negative.
    offset_ns: i64,
}

impl Epoch {
    /// From two readings at the same moment: TAI since the epoch, and the monotonic clock.
    pub const fn measured(tai: Time, monotonic: Time) -> Self {
        Self { offset_ns: monotonic.as_nanos().wrapping_sub(tai.as_nanos()).cast_signed() }
    }

    /// TAI since the epoch at a monotonic time; zero before the epoch.
    pub const fn tai(self, monotonic: Time) -> Duration {
        Duration::from_nanos(monotonic.as_nanos().saturating_add_signed(self.negated()))
    }

    /// When frame `number` begins on the monotonic clock; its zero if before.
    pub fn start(self, rate: FrameRate, number: u64) -> Time {
        let tai = rate.start_of(number).as_nanos();
        Time::from_nanos(tai.saturating_add_signed(self.offset_ns))
    }

    /// The first frame that begins at `monotonic` or later.
    pub fn first_from(self, rate: FrameRate, monotonic: Time) -> u64 {
        rate.first_from(self.tai(monotonic))
    }

    /// The frame in progress at `monotonic`.
    pub fn frame_at(self, rate: FrameRate, monotonic: Time) -> u64 {
        self.first_from(rate, monotonic + Duration::from_nanos(1)).saturating_sub(1)
    }

    const fn negated(self) -> i64 {
        self.offset_ns.saturating_neg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: FrameRate = FrameRate::P59_94;
    /// 2026 in TAI, and three days of uptime.
    const TAI: Time = Time::from_secs(1_780_000_037);
    const UPTIME: Time = Time::from_secs(3 * 86_400);

    #[test]
    fn hosts_that_were_started_at_other_times_agree_on_every_frame() {
        let one = Epoch::measured(TAI, UPTIME);
        let other = Epoch::measured(TAI, Time::from_secs(7));
        let frame = one.first_from(RATE, UPTIME);
        assert_eq!(other.first_from(RATE, Time::from_secs(7)), frame);
        for number in frame..frame + 1000 {
            let since = one.start(RATE, number).as_nanos() - UPTIME.as_nanos();
            let since_other = other.start(RATE, number).as_nanos() - 7_000_000_000;
            assert_eq!(since, since_other);
        }
    }

    #[test]
    fn a_frame_is_under_way_from_its_start_to_the_next() {
        let epoch = Epoch::measured(TAI, UPTIME);
        let frame = epoch.first_from(RATE, UPTIME);
        let start = epoch.start(RATE, frame);
        assert!(start >= UPTIME && start.saturating_since(UPTIME) < RATE.period());
        assert_eq!(epoch.frame_at(RATE, start), frame);
        let last = epoch.start(RATE, frame + 1).saturating_sub(Duration::from_nanos(2));
        assert_eq!(epoch.frame_at(RATE, last), frame);
        assert_eq!(epoch.frame_at(RATE, epoch.start(RATE, frame + 1)), frame + 1);
    }

    #[test]
    fn errors_do_not_grow_with_the_number() {
        let epoch = Epoch::measured(Time::ZERO, Time::ZERO);
        assert_eq!(epoch.start(RATE, 60_000 * 1_000_000), Time::from_secs(1_001_000_000));
    }

    #[test]
    fn times_before_the_epoch_do_not_wrap() {
        let epoch = Epoch::measured(Time::ZERO, Time::from_secs(5));
        assert_eq!(epoch.tai(Time::from_secs(1)), Duration::ZERO);
        assert_eq!(epoch.first_from(RATE, Time::from_secs(1)), 0);
        assert_eq!(epoch.start(RATE, 0), Time::from_secs(5));
    }
}
