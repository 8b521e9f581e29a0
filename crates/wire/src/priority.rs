//! How the threads that carry packets are scheduled: in the real-time class while that leaves the CPU idle for
//! part of the time, in short slices before almost all others otherwise.
//!
//! The kernel stops real-time threads that fill a CPU for `sched_rt_runtime_us` of each `sched_rt_period_us`
//! (sched(7): 0.95 s of 1 s), for the rest of the period: 50 ms in which no packet is carried. So a thread leaves the
//! class before, and comes back when it has less to do.

use std::fs::File;
use std::os::unix::fs::FileExt;

use suiro_clock::Axis;
use suiro_units::{Duration, Time};

/// How a thread is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Like any other thread.
    Ordinary,
    /// SCHED_OTHER with the shortest slice (EEVDF, Linux 6.12): a thread that asks for short turns
    /// gets them sooner. Needs no privilege. Older kernels ignore it. With CAP_SYS_NICE or RLIMIT_NICE the thread has the
    /// lowest nice value too.
    ShortSlice,
    /// SCHED_FIFO: before every ordinary thread. Needs CAP_SYS_NICE or RLIMIT_RTPRIO.
    RealTime,
}

/// The nice value with which a thread gets 87 times as much of a CPU as one with 0.
const NICE_MIN: i32 = -20;
/// Length of a turn that the carrier asks for; the kernel's minimum is 0.1 ms.
const SLICE_NS: u64 = 100_000;
/// From one look at what the thread used to the next.
const LOOK: Duration = Duration::from_millis(10);
/// The looks are averaged over this time: short next to the kernel's period of a second.
const MEMORY: Duration = Duration::from_millis(50);
/// The thread leaves the real-time class above this share of a CPU …
const LEAVE: f64 = 0.85;
/// … and comes back below this one, but not at once.
const COME_BACK: f64 = 0.6;
const AWAY_MIN: Duration = Duration::from_millis(100);
/// Above this share of a CPU the thread rests between two turns, so that each carries more …
const REST_ABOVE: f64 = 0.5;
/// … and below this one it rests for less time.
const REST_BELOW: f64 = 0.25;
const REST_MIN: Duration = Duration::from_micros(20);
/// A tenth of the lateness that a link of 1 Gbit/s may have.
const REST_MAX: Duration = Duration::from_micros(50);

/// `struct sched_attr` of sched_setattr(2), as long as its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// The scheduling of the calling thread, and what it used so far.
#[derive(Debug)]
pub(crate) struct Class {
    best: Priority,
    now: Priority,
    budget: Budget,
    began: Time,
    /// /proc/thread-self/schedstat; without it, waits for a CPU count as idle time.
    schedstat: Option<File>,
    last: (Time, Used),
    next_look: Time,
    changed: Time,
    in_real_time: Duration,
}

/// What the kernel counted for a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Used {
    /// CPU time.
    ran: Duration,
    /// Time on a run queue without a CPU.
    waited: Duration,
}

impl Class {
    /// Gives the calling thread the best priority that it is allowed.
    ///
    /// Measured with senders, receivers and a load of 4 on 2 cores, 10,000 packets/s in each
    /// direction, p99 lateness: ordinary 1.0 ms, short slices 50 µs, real time 40 µs.
    pub(crate) fn raise(clock: Axis) -> Self {
        let best = [Priority::RealTime, Priority::ShortSlice].into_iter().find(|to| set(*to));
        let best = best.unwrap_or(Priority::Ordinary);
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        let now = clock.now();
        Self {
            best,
            now: best,
            budget: Budget::default(),
            began: now,
            last: (now, used(schedstat.as_ref())),
            schedstat,
            next_look: now + LOOK,
            changed: now,
            in_real_time: Duration::ZERO,
        }
    }

    /// Looks at what the thread used, if it is time, and changes its class if it must.
    #[inline]
    pub(crate) fn look(&mut self, now: Time) {
        if now >= self.next_look {
            self.look_now(now);
        }
    }

    fn look_now(&mut self, now: Time) {
        self.next_look = now + LOOK;
        let (then, before) =
            std::mem::replace(&mut self.last, (now, used(self.schedstat.as_ref())));
        let span = now.saturating_since(then);
        let ran = self.last.1.ran.saturating_sub(before.ran);
        let waited = self.last.1.waited.saturating_sub(before.waited);
        // In the real-time class, a thread waits for threads of that class only: together they fill the CPU.
        let in_class = self.now == Priority::RealTime;
        self.budget.note(span, ran, if in_class { waited } else { Duration::ZERO });
        self.in_real_time += if in_class { span } else { Duration::ZERO };
        if self.best != Priority::RealTime {
            return;
        }
        let since = now.saturating_since(self.changed);
        let to = match self.now {
            Priority::RealTime if self.budget.busy > LEAVE => Priority::ShortSlice,
            Priority::ShortSlice if self.budget.busy < COME_BACK && since > AWAY_MIN => {
                Priority::RealTime
            }
            _ => return,
        };
        if set(to) {
            (self.now, self.changed) = (to, now);
        }
    }

    /// For how long to rest before the next turn.
    pub(crate) fn rest(&self) -> Duration {
        self.budget.rest
    }

    /// The best priority that the thread was allowed.
    pub(crate) fn best(&self) -> Priority {
        self.best
    }

    /// The share of the time in which the thread was of the real-time class, until now.
    pub(crate) fn real_time_share(&mut self, now: Time) -> f64 {
        self.look_now(now);
        let span = now.saturating_since(self.began);
        ratio(self.in_real_time, span).unwrap_or(0.0)
    }

    /// CPU time of the thread.
    pub(crate) fn ran(&self) -> Duration {
        used(self.schedstat.as_ref()).ran
    }
}

/// How much of its CPU a thread uses, and how long it rests for that reason.
#[derive(Debug, Default)]
struct Budget {
    /// Running mean of the share of time in which it ran or waited to run.
    busy: f64,
    /// The same, without the waits.
    ran: f64,
    rest: Duration,
}

impl Budget {
    /// Adds a span in which the thread ran, and waited, for so long.
    fn note(&mut self, span: Duration, ran: Duration, waited: Duration) {
        let Some(share) = ratio(ran + waited, span) else { return };
        let weight = (span.as_secs_f64() / MEMORY.as_secs_f64()).min(1.0);
        self.busy += (share.min(1.0) - self.busy) * weight;
        self.ran += (ratio(ran, span).unwrap_or(0.0).min(1.0) - self.ran) * weight;
        if self.ran > REST_ABOVE {
            self.rest = (self.rest * 2).clamp(REST_MIN, REST_MAX);
        } else if self.ran < REST_BELOW {
            let less = self.rest / 2;
            self.rest = if less < REST_MIN { Duration::ZERO } else { less };
        }
    }
}

fn ratio(part: Duration, whole: Duration) -> Option<f64> {
    (!whole.is_zero()).then(|| part / whole)
}

/// Changes the class of the calling thread; false if that is not allowed.
fn set(to: Priority) -> bool {
    match to {
        Priority::RealTime => schedule(libc::SCHED_FIFO, 1, own_nice(), 0),
        // A thread that has too much to do for the real-time class must not share with all others equally.
        Priority::ShortSlice => [NICE_MIN, own_nice()]
            .into_iter()
            .any(|nice| schedule(libc::SCHED_OTHER, 0, nice, SLICE_NS)),
        Priority::Ordinary => schedule(libc::SCHED_OTHER, 0, own_nice(), 0),
    }
}

fn schedule(policy: libc::c_int, priority: u32, nice: i32, runtime_ns: u64) -> bool {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy as u32,
        flags: 0,
        nice,
        priority,
        runtime_ns,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: 0 is the calling thread; the attributes are alive and hold their own size.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

/// The nice value of the calling thread: it may always keep that.
fn own_nice() -> i32 {
    // SAFETY: plain numbers; 0 is the calling thread, for which it cannot fail.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// What the calling thread, whose file this is, used so far.
fn used(schedstat: Option<&File>) -> Used {
    let mut text = [0; 80];
    let read = schedstat.and_then(|file| file.read_at(&mut text, 0).ok());
    let text = std::str::from_utf8(&text[..read.unwrap_or(0)]).unwrap_or("");
    parse_schedstat(text).unwrap_or_else(|| Used { ran: processor_time(), waited: Duration::ZERO })
}

/// `RAN WAITED TURNS`, the first two in nanoseconds.
fn parse_schedstat(text: &str) -> Option<Used> {
    let mut words = text.split_ascii_whitespace();
    let mut next = || words.next()?.parse().ok().map(Duration::from_nanos);
    Some(Used { ran: next()?, waited: next()? })
}

/// CPU time of the calling thread.
fn processor_time() -> Duration {
    // SAFETY: plain numbers; the call fills them in.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: `usage` is alive. It cannot fail; if it did, no time would have passed.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let time = |time: libc::timeval| {
        Duration::from_secs_f64(time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_the_kernel_writes() {
        let used = Used { ran: Duration::from_nanos(123), waited: Duration::from_nanos(4567) };
        assert_eq!(parse_schedstat("123 4567 89\n"), Some(used));
        assert_eq!(parse_schedstat("123"), None);
    }

    /// Of any second, less than the kernel's 950 ms may pass before the thread finds that it is too busy.
    #[test]
    fn a_full_processor_is_noticed_within_a_tenth_of_a_second() {
        let mut budget = Budget::default();
        let looks = (1..).find(|_| {
            budget.note(MS * 10, MS * 10, Duration::ZERO);
            budget.busy > LEAVE
        });
        assert!(looks.unwrap() <= 10, "{looks:?} looks of 10 ms");
        // Two threads of the class on one CPU: each waits while the other runs.
        let mut budget = Budget::default();
        (0..20).for_each(|_| budget.note(MS * 10, MS * 5, MS * 5));
        assert!(budget.busy > LEAVE && budget.ran < 0.6, "{budget:?}");
        (0..20).for_each(|_| budget.note(MS * 10, MS * 4, Duration::ZERO));
        assert!(budget.busy < COME_BACK, "{budget:?}");
    }

    #[test]
    fn a_busy_thread_rests_and_an_idle_one_does_not() {
        let mut budget = Budget::default();
        (0..100).for_each(|_| budget.note(MS * 10, MS * 9, Duration::ZERO));
        assert_eq!(budget.rest, REST_MAX);
        (0..100).for_each(|_| budget.note(MS * 10, MS * 3, Duration::ZERO));
        assert_eq!(budget.rest, REST_MAX, "it stays: less rest would make it busy again");
        (0..100).for_each(|_| budget.note(MS * 10, MS, Duration::ZERO));
        assert_eq!(budget.rest, Duration::ZERO);
        budget.note(Duration::ZERO, Duration::ZERO, Duration::ZERO);
        assert!(budget.busy.is_finite());
    }

    /// Whoever started the program with `nice` may not have the right to lower it again.
    #[test]
    fn a_thread_of_low_priority_gets_short_slices_too() {
        let nice = std::thread::spawn(|| {
            // SAFETY: plain numbers; 0 is the calling thread.
            let lowered = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 5) };
            assert_eq!(lowered, 0);
            assert!(set(Priority::ShortSlice), "short slices need no privilege");
            own_nice()
        });
        let nice = nice.join().unwrap();
        assert!(nice == NICE_MIN || nice == 5, "nice value {nice}");
    }

    #[test]
    fn a_thread_that_spins_leaves_the_real_time_class() {
        let clock = Axis::starting_now();
        let share = std::thread::spawn(move || {
            let mut class = Class::raise(clock);
            while clock.now() < Time::from_millis(300) {
                class.look(clock.now());
            }
            (class.best(), class.real_time_share(clock.now()), class.ran())
        });
        let (best, share, ran) = share.join().unwrap();
        assert!(!ran.is_zero());
        match best {
            Priority::RealTime => assert!(share < 0.75, "it held the class for {share}"),
            _ => assert_eq!(share, 0.0),
        }
    }
}
