//! Why a frame was late: compares what its sender waited for. Pure.

use suiro_units::{Duration, Time};

/// How a sending thread has spent its time in total; the difference of two readings covers an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// When this was read.
    pub at: Time,
    /// CPU time of the thread.
    pub running: Duration,
    /// Time asleep, until it was to wake.
    pub asleep: Duration,
    /// Time from when it was to wake until it did.
    pub waking: Duration,
    /// Waiting for room in a socket or an interface's queue.
    pub no_room: Duration,
    /// Time that the host of this virtual machine took from the thread's current CPU, and which CPU that
    /// is; `None` if unknown.
    pub steal: Option<(usize, Duration)>,
}

/// CPU time that the host of this virtual machine took; `None` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steal {
    /// Of all CPUs.
    pub all: Option<Duration>,
    /// Of the thread's CPU, and which that is.
    pub own: Option<(usize, Duration)>,
}

/// What made a frame late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The host of this virtual machine took the CPU.
    Steal,
    /// Another thread of this machine had the CPU.
    Preempted,
    /// The thread woke late from sleep.
    Waking,
    /// There was no room in a socket or an interface's queue.
    NoRoom,
    /// None of these: the thread had everything it needed, and was too slow.
    Load,
}

/// Why a frame whose sending began at `before` and ended at `after` was late by `late`: the largest of the delays, if
/// it is at least a quarter of the lateness.
pub fn cause(late: Duration, before: &Spent, after: &Spent) -> Cause {
    let since = |of: fn(&Spent) -> Duration| of(after).saturating_sub(of(before));
    let waking = since(|spent| spent.waking);
    let no_room = since(|spent| spent.no_room);
    let worked = since(|spent| spent.running) + since(|spent| spent.asleep) + waking;
    let preempted = after.at.saturating_since(before.at).saturating_sub(worked);
    // If a thread moved to another CPU, the time taken from it is unknown.
    let same = after.steal.zip(before.steal).filter(|((now, _), (then, _))| now == then);
    let steal = same.map_or(Duration::ZERO, |((_, now), (_, then))| now.saturating_sub(then));
    let causes = [
        (steal, Cause::Steal),
        (preempted, Cause::Preempted),
        (waking, Cause::Waking),
        (no_room, Cause::NoRoom),
    ];
    // The first of equals: time that the machine's host took also looks as if other threads had it.
    let most = causes.iter().rev().max_by_key(|(time, _)| *time);
    most.filter(|(time, _)| *time * 4 >= late).map_or(Cause::Load, |(_, cause)| *cause)
}

/// The stolen time of CPU `cpuN`, or of all CPUs for `cpu`, in the text of /proc/stat: in ticks of a
/// hundredth of a second (proc(5)).
pub fn parse_steal(stat: &str, cpu: &str) -> Option<Duration> {
    let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
    let (_, times) = lines.find(|(name, _)| *name == cpu)?;
    let ticks: u64 = times.split_whitespace().nth(7)?.parse().ok()?;
    Some(Duration::from_millis(ticks.saturating_mul(10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(change: impl FnOnce(&mut Spent)) -> Cause {
        let before =
            Spent { at: Time::from_secs(9), steal: Some((1, MS * 70)), ..Spent::default() };
        let mut after = Spent { at: before.at + MS * 40, running: MS * 38, ..before };
        change(&mut after);
        cause(MS * 20, &before, &after)
    }

    #[test]
    fn a_late_frame_has_the_cause_that_took_most() {
        assert_eq!(after(|_| {}), Cause::Load);
        assert_eq!(after(|spent| spent.running = MS * 20), Cause::Preempted);
        assert_eq!(after(|spent| spent.no_room = MS * 10), Cause::NoRoom);
        let waking = |spent: &mut Spent| (spent.running, spent.waking) = (MS * 20, MS * 19);
        assert_eq!(after(waking), Cause::Waking);
        let stolen =
            |spent: &mut Spent| (spent.running, spent.steal) = (MS * 20, Some((1, MS * 90)));
        assert_eq!(after(stolen), Cause::Steal);
        let moved =
            |spent: &mut Spent| (spent.running, spent.steal) = (MS * 20, Some((0, MS * 90)));
        assert_eq!(after(moved), Cause::Preempted, "another CPU's");
    }

    #[test]
    fn steal_is_the_eighth_number_of_a_processor() {
        let stat = "cpu  1 2 3 4 5 6 7 89 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse_steal(stat, "cpu"), Some(Duration::from_millis(890)));
        assert_eq!(parse_steal(stat, "cpu0"), Some(Duration::from_millis(80)));
        assert_eq!(parse_steal(stat, "cpu1"), None);
        assert_eq!(parse_steal("cpu  1 2 3", "cpu"), None);
        assert_eq!(parse_steal("intr 5", "cpu"), None);
    }
}
