//! The guest's time, read from outside, and a guest whose time has stopped.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

use rustix::fs::MemfdFlags;
use suiro_clock::kernel::monotonic;
use suiro_units::{Duration, Time};

use crate::seat::Seat;
use crate::session::{self, CpuTimes};

/// How long a guest has been up when its program starts. The machines on which media are played have been up for longer than
/// minutes, and programs rely on that: while a kernel was up for less than a minute, Chromium stopped encoding for some seconds
/// what a page captures.
pub(crate) const UP: Duration = Duration::from_secs(600);

/// The time of a guest: nanoseconds since it was started, in memory that the guest's kernel writes.
#[derive(Debug)]
pub struct Clock(File);

impl Clock {
    /// Of a guest that is not started yet: zero.
    ///
    /// # Errors
    /// What the system said.
    pub fn new() -> io::Result<Self> {
        let memory = rustix::fs::memfd_create("suiro-guest-clock", MemfdFlags::CLOEXEC)?;
        let file = File::from(memory);
        file.set_len(4096)?;
        Ok(Self(file))
    }

    /// The guest's time since its program was started; zero before that.
    pub fn now(&self) -> Time {
        let mut bytes = [0; 8];
        // It has 4096 bytes, and reading memory does not fail.
        let read = self.0.read_exact_at(&mut bytes, 0);
        let up = read.map_or(0, |()| u64::from_ne_bytes(bytes));
        Time::from_nanos(up.saturating_sub(UP.as_nanos()))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// How much CPU time a guest may use while its own time does not advance. Encoding a frame takes a tenth of a second, starting
/// a browser some seconds.
pub const STALLED_AFTER: Duration = Duration::from_secs(120);

/// Watches a guest for two faults: time that stops because a program never waits, and time that runs on because nothing ends
/// the guest.
#[derive(Debug)]
pub struct Watch {
    clock: Clock,
    /// Its CPU, free for another guest when this one is no longer watched.
    _seat: Option<Seat>,
    /// The guest's process, which leads a session of its own.
    pid: i32,
    limit: Option<Time>,
    stalled_after: Duration,
    /// What its clock showed when it was last seen to move, and when that was on ours.
    seen: Time,
    since: Time,
    /// CPU time that it had used soon after.
    spent_before: Option<CpuTimes>,
}

impl Watch {
    /// Watches the guest of process `pid`, which must end before its clock shows `limit`, if there is one.
    pub fn new(clock: Clock, seat: Option<Seat>, pid: i32, limit: Option<Time>) -> Self {
        Self {
            clock,
            _seat: seat,
            pid,
            limit,
            stalled_after: STALLED_AFTER,
            seen: Time::ZERO,
            since: monotonic(),
            spent_before: None,
        }
    }

    /// The same with another bound than [`STALLED_AFTER`].
    pub fn stalled_after(self, stalled_after: Duration) -> Self {
        Self { stalled_after, ..self }
    }

    /// What the guest's clock shows.
    pub fn time(&self) -> Time {
        self.clock.now()
    }

    /// Looks; why the guest must be ended, if so. It is called every second or so.
    pub fn look(&mut self) -> Option<String> {
        let time = self.clock.now();
        if let Some(limit) = self.limit.filter(|limit| time > *limit) {
            return Some(format!("it did not end within {} of its own time", limit - Time::ZERO));
        }
        if time != self.seen {
            (self.seen, self.since, self.spent_before) = (time, monotonic(), None);
            return None;
        }
        // A machine that was suspended, or is busy with others, has not given the guest its time.
        if monotonic().saturating_since(self.since) < self.stalled_after / 4 {
            return None;
        }
        let spent = CpuTimes::of_session(self.pid);
        let before = self.spent_before.get_or_insert_with(|| spent.clone());
        let used = spent.since(before);
        if used.total() < self.stalled_after / 4 * 3 {
            return None;
        }
        let shown = time.as_nanos() as f64 / 1e9;
        Some(format!("its time has stopped at {shown:.3} s: {}", culprit(&used, self.pid)))
    }
}

/// Who has used this CPU time of a guest whose kernel is process `kernel`.
fn culprit(used: &CpuTimes, kernel: i32) -> String {
    let all = used.total().as_secs_f64();
    let share = |time: Duration| format!("{:.0} %", time.as_secs_f64() / all * 100.0);
    let of_kernel = share(used.0.get(&kernel).copied().unwrap_or_default());
    let Some((pid, most)) = used.busiest(kernel) else {
        return format!("its kernel computes without end ({of_kernel} of the CPU time)");
    };
    let name = session::command_line(pid);
    let name = name.map_or_else(|| "a program".to_owned(), |name| format!("`{name}`"));
    format!(
        "{name} computes without end, or waits for another program without sleeping ({} of the CPU time, the guest's kernel \
         {of_kernel})",
        share(most)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_computes_while_its_time_stands_still_is_found() {
        // It is 0 where the leader is outside of the container, which getsid of rustix refuses.
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let session = stat.split_ascii_whitespace().nth(5).unwrap().parse().unwrap();
        let clock = Clock::new().unwrap();
        let bound = Duration::from_millis(80);
        let shown = Clock(clock.0.try_clone().unwrap());
        let mut watch =
            Watch::new(shown, None, session, Some(Time::from_secs(5))).stalled_after(bound);
        let began = monotonic();
        // This process computes, and the clock is not moved.
        let why = loop {
            match watch.look() {
                Some(why) => break why,
                None => assert!(
                    monotonic().saturating_since(began) < Duration::from_secs(60),
                    "it was not found"
                ),
            }
        };
        assert!(why.contains("stopped at 0.000 s: ") && why.contains("% of the CPU time"), "{why}");
        let show = |seconds: u64| {
            let up = UP.as_nanos() + seconds * 1_000_000_000;
            clock.0.write_all_at(&up.to_ne_bytes(), 0).unwrap();
        };
        show(6);
        assert!(watch.look().unwrap().contains("did not end within 5 s"));
        show(4);
        assert_eq!((watch.look(), watch.time()), (None, Time::from_secs(4)));
    }

    #[test]
    fn who_used_the_cpu_time_is_told() {
        // Processes that do not exist: only their numbers are known.
        let used = |of: [(i32, u64); 3]| {
            CpuTimes(of.map(|(pid, ms)| (pid, Duration::from_millis(ms))).into())
        };
        assert_eq!(
            culprit(&used([(-1, 30), (-2, 150), (-3, 20)]), -1),
            "a program computes without end, or waits for another program without sleeping (75 % of the CPU time, the guest's \
             kernel 15 %)"
        );
        assert_eq!(
            culprit(&used([(-1, 110), (-2, 0), (-3, 0)]), -1),
            "its kernel computes without end (100 % of the CPU time)"
        );
    }
}
