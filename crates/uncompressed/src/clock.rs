//! Time as senders and receivers read it, and waiting for it.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::time::Timespec;
use suiro_clock::kernel;
pub use suiro_clock::kernel::monotonic;
use suiro_units::{Duration, Time};

use crate::epoch::Epoch;

/// Waits shorter than this spin, because a sleep would take longer.
pub(crate) const SPIN: Duration = Duration::from_micros(5);

/// How often a long wait checks whether it should stop.
pub const STOP_EVERY: Duration = Duration::from_millis(50);

/// CPU time that the calling thread has used.
pub fn thread_time() -> Duration {
    Duration::from_nanos(kernel::thread_cpu_ns())
}

/// CPU time that all threads of this process have used.
pub fn process_time() -> Duration {
    Duration::from_nanos(kernel::process_cpu_ns())
}

/// The epoch of all frames on the monotonic clock, according to CLOCK_TAI now. CLOCK_TAI equals UTC
/// until the kernel has been given the number of leap seconds: see [`tai_state`].
pub fn epoch() -> Epoch {
    let tai = kernel::tai();
    Epoch::measured(Time::from_nanos(tai.other), Time::from_nanos(tai.monotonic_ns))
}

/// What the kernel reports about CLOCK_TAI (adjtimex(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaiState {
    /// TAI minus UTC in seconds: 37 since 2017, 0 if it was never set.
    pub offset_s: i32,
    /// True if the clock is synchronised to another one.
    pub synchronised: bool,
}

impl TaiState {
    /// Why the clock is unsuitable for streams between several hosts; `None` if it is suitable.
    pub const fn complaint(self) -> Option<&'static str> {
        match (self.offset_s, self.synchronised) {
            (0, _) => Some(
                "the kernel was not given the leap seconds: its TAI equals UTC, 37 s behind hosts that were",
            ),
            (_, false) => Some("its clock is not synchronised to other hosts"),
            _ => None,
        }
    }
}

/// Asks the kernel; `None` if it does not answer.
pub fn tai_state() -> Option<TaiState> {
    // SAFETY: plain data; all zeros reads and changes nothing.
    let mut told: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `told` lives through the call, which writes no more than its size.
    let state = unsafe { libc::adjtimex(&raw mut told) };
    let synchronised = state != libc::TIME_ERROR && told.status & libc::STA_UNSYNC == 0;
    (state >= 0).then_some(TaiState { offset_s: told.tai, synchronised })
}

/// How far CLOCK_REALTIME, which the kernel stamps packets with, is ahead of the monotonic clock,
/// in nanoseconds. Read it again from time to time: the wall clock may be set.
pub fn realtime_lead_ns() -> i64 {
    kernel::realtime().lead_ns()
}

/// Makes the calling thread wake from sleep without the kernel's usual slack of 50 µs, and pins it
/// to CPU `cpu`.
pub fn prepare_thread(cpu: Option<usize>) -> std::io::Result<()> {
    // Failing only costs precision.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    cpu.map_or(Ok(()), suiro_endpoint::cpu::stay_on)
}

/// Waits until `time` on the monotonic clock and returns the time at which the wait ended.
pub fn wait_until(time: Time) -> Time {
    loop {
        let now = monotonic();
        if now >= time {
            return now;
        }
        if now + SPIN < time {
            sleep_until(time);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Like [`wait_until`], but does not sleep.
pub fn spin_until(time: Time) -> Time {
    loop {
        let now = monotonic();
        if now >= time {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// Like [`wait_until`], but returns `None` within [`STOP_EVERY`] after `stop` is set.
pub fn wait_unless(stop: &AtomicBool, time: Time) -> Option<Time> {
    while !stop.load(Ordering::Relaxed) {
        let now = wait_until(time.min(monotonic() + STOP_EVERY));
        if now >= time {
            return Some(now);
        }
    }
    None
}

fn sleep_until(time: Time) {
    let request = Timespec {
        tv_sec: i64::try_from(time.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (time.as_nanos() % 1_000_000_000) as _,
    };
    // A signal ends it early; the caller keeps spinning until the time has come.
    let _ = rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &request);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_others_do_not_share_is_reported() {
        let state = |offset_s, synchronised| TaiState { offset_s, synchronised }.complaint();
        assert!(state(0, true).unwrap().contains("its TAI equals UTC"));
        assert!(state(37, false).unwrap().contains("is not synchronised"));
        assert_eq!(state(37, true), None);
        assert!(tai_state().is_some());
    }

    #[test]
    fn a_wait_ends_when_it_is_stopped() {
        let stop = AtomicBool::new(false);
        let soon = monotonic() + Duration::from_millis(2);
        assert!(wait_unless(&stop, soon).unwrap() >= soon);
        std::thread::scope(|scope| {
            scope.spawn(|| stop.store(true, Ordering::Relaxed));
            assert_eq!(wait_unless(&stop, soon + Duration::from_secs(3600)), None);
        });
    }
}
