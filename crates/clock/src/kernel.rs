//! The kernel's clocks, and pairs of them read at the same moment. No other module reads a kernel clock.
//!
//! Two clocks cannot be read at exactly the same time: an interruption between the two readings shows up as a
//! difference between the clocks. So the other clock is read between two readings of CLOCK_MONOTONIC, which bracket it,
//! and read again if the bracket is wide.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, DynamicClockId, Timespec};
use suiro_units::Time;

/// A bracket no wider than this, in nanoseconds, counts as one moment.
const CLOSE_NS: u64 = 500;
/// Further attempts if the first bracket is wider.
const RETRIES_MAX: usize = 8;

/// The tightest bracket that this process has seen. Where reading a clock is a system call, no bracket is within
/// [`CLOSE_NS`], and twice the tightest is the best to hope for.
static TIGHTEST_NS: AtomicU64 = AtomicU64::new(u64::MAX);

/// CLOCK_MONOTONIC in nanoseconds: the same time axis in every process of a host.
#[inline]
pub fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// The same as a time, whose epoch is the machine's start.
#[inline]
pub fn monotonic() -> Time {
    Time::from_nanos(monotonic_ns())
}

/// CLOCK_REALTIME in nanoseconds since 1970 UTC.
#[inline]
pub fn realtime_ns() -> u64 {
    read(ClockId::Realtime)
}

/// CLOCK_TAI in nanoseconds since 1970 TAI. It equals UTC until the kernel has been given the number of leap seconds.
pub fn tai_ns() -> u64 {
    read_dynamic(DynamicClockId::Tai).unwrap_or_else(realtime_ns)
}

/// CPU time that the calling thread has used, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

/// CPU time that all threads of this process have used, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

/// A reading of another clock and of CLOCK_MONOTONIC at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading<T = u64> {
    /// The other clock's reading.
    pub other: T,
    /// CLOCK_MONOTONIC at that moment, in nanoseconds: the middle of the bracket.
    pub monotonic_ns: u64,
    /// The width of the bracket in nanoseconds: `monotonic_ns` is off by at most half of it.
    pub span_ns: u64,
}

impl Reading {
    /// How far the other clock is ahead of CLOCK_MONOTONIC, in nanoseconds.
    pub const fn lead_ns(&self) -> i64 {
        self.other.wrapping_sub(self.monotonic_ns).cast_signed()
    }
}

/// CLOCK_REALTIME, which the kernel stamps packets with, paired with CLOCK_MONOTONIC. Read it again for each batch of
/// packets: the wall clock may be set at any time.
pub fn realtime() -> Reading {
    beside(realtime_ns)
}

/// CLOCK_TAI paired with CLOCK_MONOTONIC.
pub fn tai() -> Reading {
    beside(tai_ns)
}

/// Any other clock paired with CLOCK_MONOTONIC. Takes one attempt if there is no interruption, and nine at most.
pub fn beside<T>(mut other: impl FnMut() -> T) -> Reading<T> {
    let tightest_ns = TIGHTEST_NS.load(Ordering::Relaxed);
    let close_ns = CLOSE_NS.max(tightest_ns.saturating_mul(2));
    // Before the first reading there is no known best: it must be close by itself.
    let close_ns = if tightest_ns == u64::MAX { CLOSE_NS } else { close_ns };
    let reading = tightest(close_ns, || (monotonic_ns(), other(), monotonic_ns()));
    TIGHTEST_NS.fetch_min(reading.span_ns, Ordering::Relaxed);
    reading
}

/// The first bracket within `close_ns`, or else the tightest of all. `once` reads the monotonic clock, the other clock,
/// and the monotonic clock again.
fn tightest<T>(close_ns: u64, mut once: impl FnMut() -> (u64, T, u64)) -> Reading<T> {
    let mut bracket = || {
        let (before, other, after) = once();
        let span_ns = after.saturating_sub(before);
        Reading { other, monotonic_ns: before + span_ns / 2, span_ns }
    };
    let mut best = bracket();
    for _ in 0..RETRIES_MAX {
        if best.span_ns <= close_ns {
            break;
        }
        let again = bracket();
        if again.span_ns < best.span_ns {
            best = again;
        }
    }
    best
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the kernel's clocks")]
#[inline]
fn read(clock: ClockId) -> u64 {
    nanoseconds(rustix::time::clock_gettime(clock))
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the kernel's clocks")]
fn read_dynamic(clock: DynamicClockId<'_>) -> Option<u64> {
    rustix::time::clock_gettime_dynamic(clock).ok().map(nanoseconds)
}

/// Linux clocks count from 1970 or from the machine's start: they are not negative.
const fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of [`tightest`] for made-up readings, and how many of them it used.
    fn of(close_ns: u64, readings: &[(u64, u64, u64)]) -> (Reading, usize) {
        let mut taken = 0;
        let reading = tightest(close_ns, || {
            taken += 1;
            readings[taken - 1]
        });
        (reading, taken)
    }

    #[test]
    fn a_close_bracket_is_taken_at_once() {
        let (reading, taken) = of(500, &[(1_000, 901_040, 1_080)]);
        assert_eq!(reading, Reading { other: 901_040, monotonic_ns: 1_040, span_ns: 80 });
        assert_eq!((reading.lead_ns(), taken), (900_000, 1));
    }

    /// The other clock is always 900 µs ahead. A single bracket without a second attempt would be off by up to 1.4 ms
    /// either way.
    #[test]
    fn an_interruption_shifts_nothing() {
        let lead = 900_000;
        let before_other = (1_000, 2_801_020 + lead, 2_801_040);
        let after_other = (3_000_000, 3_000_020 + lead, 5_800_040);
        let whole = (6_000_000, 6_000_020 + lead, 6_000_040);
        for (interrupted, wrong_by) in [(before_other, 1_400_000), (after_other, -1_400_000)] {
            let (single, _) = of(u64::MAX, &[interrupted]);
            assert_eq!(single.lead_ns() - lead.cast_signed(), wrong_by);
            let (reading, taken) = of(500, &[interrupted, whole]);
            assert_eq!((reading.lead_ns(), taken), (lead.cast_signed(), 2));
        }
        // Twice in a row, on both sides.
        let (reading, taken) = of(500, &[before_other, after_other, whole]);
        assert_eq!((reading.lead_ns(), reading.span_ns, taken), (lead.cast_signed(), 40, 3));
    }

    #[test]
    fn without_a_close_bracket_the_tightest_is_used_after_bounded_attempts() {
        let spans = [9_000, 4_000, 7_000, 2_000, 8_000, 2_000, 3_000, 5_000, 6_000];
        assert_eq!(spans.len(), RETRIES_MAX + 1);
        let readings: Vec<_> =
            (0u64..).zip(spans).map(|(i, span)| (i * 10_000, i, i * 10_000 + span)).collect();
        let (reading, taken) = of(500, &readings);
        // The first of two equally tight brackets.
        assert_eq!(reading, Reading { other: 3, monotonic_ns: 31_000, span_ns: 2_000 });
        assert_eq!(taken, readings.len());
        // Once the machine is known to do no better, twice the tightest is close enough.
        assert_eq!(
            of(4_000, &readings),
            (Reading { other: 1, monotonic_ns: 12_000, span_ns: 4_000 }, 2)
        );
    }

    #[test]
    fn a_clock_that_goes_back_between_readings_does_not_panic() {
        let (reading, _) = of(500, &[(1_000, 5, 900)]);
        assert_eq!(reading, Reading { other: 5, monotonic_ns: 1_000, span_ns: 0 });
        assert_eq!(reading.lead_ns(), -995);
    }

    #[test]
    fn the_clocks_of_this_machine_are_read_between_two_readings() {
        let (before, reading, after) = (monotonic_ns(), beside(monotonic_ns), monotonic_ns());
        assert!((before..=after).contains(&reading.other));
        // Both readings are of the same clock, so the bracket limits their difference.
        assert!(reading.lead_ns().unsigned_abs() <= reading.span_ns.div_ceil(2), "{reading:?}");
        let (before, real, after) = (realtime_ns(), realtime(), realtime_ns());
        assert!((before..=after).contains(&real.other), "{before} {real:?} {after}");
        assert!(tai().lead_ns() >= real.lead_ns() - 1_000_000_000, "TAI is UTC or ahead of it");
        assert!(process_cpu_ns() > 0 && thread_cpu_ns() > 0);
    }
}
