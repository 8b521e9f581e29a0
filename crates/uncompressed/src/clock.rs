//! The clocks, and waiting: the one place where senders and receivers read the time.

use rustix::time::{ClockId, DynamicClockId, Timespec};
use suiro_units::{Duration, Time};

use crate::epoch::Epoch;

/// Below this, waiting turns round and round: a sleep would take longer.
const SPIN: Duration = Duration::from_micros(5);

/// CLOCK_MONOTONIC.
#[inline]
pub fn monotonic() -> Time {
    Time::from_nanos(read(ClockId::Monotonic))
}

/// What of the processor's time the calling thread has had.
pub fn thread_time() -> Duration {
    Duration::from_nanos(read(ClockId::ThreadCPUTime))
}

/// What of the processors' time all threads of this process have had.
pub fn process_time() -> Duration {
    Duration::from_nanos(read(ClockId::ProcessCPUTime))
}

/// Where the epoch of all frames lies on the monotonic clock, as CLOCK_TAI says now.
pub fn epoch() -> Epoch {
    Epoch::measured(tai(), monotonic())
}

/// CLOCK_TAI. Until something (a PTP daemon, chrony) has told the kernel the leap seconds, it is UTC.
fn tai() -> Time {
    let tai = rustix::time::clock_gettime_dynamic(DynamicClockId::Tai);
    tai.map_or_else(
        |_| Time::from_nanos(read(ClockId::Realtime)),
        |tai| Time::from_nanos(nanoseconds(tai)),
    )
}

/// What CLOCK_REALTIME, in which the kernel stamps packets, is ahead of the monotonic clock, in
/// nanoseconds. Ask again from time to time: the wall clock may be set.
pub fn realtime_lead_ns() -> i64 {
    let before = read(ClockId::Monotonic);
    let real = read(ClockId::Realtime);
    let after = read(ClockId::Monotonic);
    real.wrapping_sub(before + (after - before) / 2).cast_signed()
}

/// Of the processors that this process may use, number `nth`, from 0 and round again; `None` if the
/// system does not tell which they are.
pub fn processor(nth: u8) -> Option<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    let all = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let all: Vec<_> = all.collect();
    all.get(usize::from(nth) % all.len().max(1)).copied()
}

/// Makes the calling thread's sleeps end without the kernel's usual slack of 50 µs, and keeps it on
/// processor `cpu`.
pub fn prepare_thread(cpu: Option<usize>) -> std::io::Result<()> {
    // Failing only costs precision.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = rustix::thread::CpuSet::new();
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        return Err(std::io::Error::other(format!("there is no processor {cpu}")));
    }
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|e| std::io::Error::other(format!("staying on processor {cpu}: {e}")))
}

/// Waits until `time` on the monotonic clock and says when it is over.
pub fn wait_until(time: Time) -> Time {
    let now = monotonic();
    if now + SPIN < time {
        sleep_until(time);
    }
    loop {
        let now = monotonic();
        if now >= time {
            return now;
        }
        std::hint::spin_loop();
    }
}

fn sleep_until(time: Time) {
    let request = Timespec {
        tv_sec: i64::try_from(time.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (time.as_nanos() % 1_000_000_000) as _,
    };
    // A signal ends it early; the caller turns round until the time has come.
    let _ = rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &request);
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads clocks")]
#[inline]
fn read(clock: ClockId) -> u64 {
    nanoseconds(rustix::time::clock_gettime(clock))
}

const fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_its_processor() {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        let count = u8::try_from(allowed.count().min(200)).unwrap();
        let processors: Vec<_> = (0..count).map(|nth| processor(nth).unwrap()).collect();
        assert!(processors.is_sorted_by(|a, b| a < b), "{processors:?}");
        assert!(processors.iter().all(|cpu| allowed.is_set(*cpu)));
        assert!(allowed.count() > 200 || processor(count) == processor(0));
        let last = *processors.last().unwrap();
        std::thread::spawn(move || {
            prepare_thread(Some(last)).unwrap();
            let now = rustix::thread::sched_getaffinity(None).unwrap();
            assert!(now.count() == 1 && now.is_set(last));
            assert_eq!(rustix::thread::sched_getcpu(), last);
        })
        .join()
        .unwrap();
        let error = prepare_thread(Some(100_000)).unwrap_err();
        assert_eq!(error.to_string(), "there is no processor 100000");
    }
}
