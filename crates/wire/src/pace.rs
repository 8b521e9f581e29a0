//! Waiting until a deadline: sleep while it is far away, spin for the rest. How long to spin is
//! learnt from how late the thread wakes from sleep on this machine, under its current load.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suiro_clock::Axis;
use suiro_units::{Duration, Time};

/// Shortest time to spin on a machine.
const SPIN_MIN: Duration = Duration::from_micros(4);
/// No machine wakes a thread within this time. In virtual time every wake-up is so prompt, and nothing is left to spin for.
const PROMPT: Duration = Duration::from_nanos(500);
/// Longest time to spin: at 1,000 waits a second, 1.5 % of a core. Wake-ups that are later than that are rarer where
/// another thread may take over (`hands.rs`).
const SPIN_MAX: Duration = Duration::from_micros(15);
/// How much one late wake-up widens the margin; [`NARROW`] on-time ones narrow it by as much.
const STEP: Duration = Duration::from_micros(2);
/// The margin settles where one in this many wake-ups is too late to spin.
const NARROW: u32 = 10;

/// The waits of one thread.
#[derive(Debug)]
pub(crate) struct Pace {
    clock: Axis,
    margin: Duration,
    on_time: u32,
}

impl Pace {
    /// For the calling thread; asks the kernel to wake it from sleep without timer slack.
    pub(crate) fn new(clock: Axis) -> Self {
        // With slack the kernel may add 50 µs to each sleep; failing only costs precision.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        Self { clock, margin: Duration::from_micros(10), on_time: 0 }
    }

    /// Sleeps until `until` (indefinitely if there is none) or until one of `sources` is readable, as late as the kernel
    /// wakes the thread. Returns true if the time ran out.
    pub(crate) fn doze(&self, until: Option<Time>, sources: &[BorrowedFd<'_>]) -> io::Result<bool> {
        let left = until.map(|until| until.saturating_since(self.clock.now()));
        sleep(left, sources)
    }

    /// Waits until `deadline` (indefinitely if there is none) or until one of `sources` is
    /// readable, and spins for the last of the time.
    pub(crate) fn wait(
        &mut self,
        deadline: Option<Time>,
        sources: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let Some(deadline) = deadline else {
            return sleep(None, sources).map(drop);
        };
        let left = deadline.saturating_since(self.clock.now());
        if left > self.margin {
            if !sleep(Some(left - self.margin), sources)? {
                return Ok(());
            }
            self.learn(self.clock.now().saturating_since(deadline - self.margin));
        }
        while self.clock.now() < deadline {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// A running quantile of how long after the time that was asked for the thread woke: one step up for each that the margin
    /// does not cover, one down for [`NARROW`] that it does.
    fn learn(&mut self, woke_after: Duration) {
        if woke_after > self.margin + PROMPT {
            self.margin = (self.margin + STEP).min(SPIN_MAX);
            return;
        }
        self.on_time += 1;
        if self.on_time == NARROW {
            self.on_time = 0;
            let least = if woke_after < PROMPT { Duration::ZERO } else { SPIN_MIN };
            self.margin = self.margin.saturating_sub(STEP).max(least);
        }
    }
}

/// Whether `source` is readable now.
pub(crate) fn is_readable(source: BorrowedFd<'_>) -> io::Result<bool> {
    sleep(Some(Duration::ZERO), &[source]).map(|timed_out| !timed_out)
}

/// Sources that one thread waits for: two sockets and a pipe that asks it to stop.
const SOURCES_MAX: usize = 1 + 2 * suiro_link::STATIONS_MAX;

/// Returns true if the time ran out first.
fn sleep(time: Option<Duration>, sources: &[BorrowedFd<'_>]) -> io::Result<bool> {
    assert!(sources.len() <= SOURCES_MAX, "one thread waits for few things");
    let stdin = rustix::stdio::stdin();
    let mut fds: [PollFd<'_>; SOURCES_MAX] = std::array::from_fn(|i| {
        PollFd::from_borrowed_fd(sources.get(i).copied().unwrap_or(stdin), PollFlags::IN)
    });
    let time = time.map(|time| {
        let ns = time.as_nanos_i64();
        Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
    });
    match poll(&mut fds[..sources.len()], time.as_ref()) {
        Ok(ready) => Ok(ready == 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
