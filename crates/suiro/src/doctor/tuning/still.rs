//! Whether CPUs stall: all of them are kept busy for a while, and each looks at the clock
//! without a pause. What a clock misses, a sender that was on that CPU would have missed too.
//! Steal (proc(5)) shows a hypervisor that shares CPUs; nothing shows one that halts a
//! machine whose quota is used up.

use suiro_uncompressed::clock;
use suiro_units::{Duration, Time};

use super::Finding;
use super::cpu::GROUP;
use crate::doctor::State;

/// How long is watched: pauses of a quota come every few seconds.
pub const WATCH: Duration = Duration::from_secs(6);
/// Pauses below this are not kept: interrupts take as long.
const PAUSE_MIN: Duration = Duration::from_micros(500);
/// Pauses above this are reported: a tenth of a frame at 59.94 frames per second.
const PAUSE_LONG: Duration = Duration::from_micros(1_668);
/// Most pauses of a CPU that are kept.
const PAUSES_MAX: usize = 10_000;
/// Busy time before pauses count: the clock speeds up, the scheduler moves others away.
const SETTLE: Duration = Duration::from_millis(200);

/// A time in which a CPU did nothing for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pause {
    begin: Time,
    end: Time,
}

impl Pause {
    fn length(self) -> Duration {
        self.end.saturating_since(self.begin)
    }

    fn overlaps(self, other: Self) -> bool {
        self.begin < other.end && other.begin < self.end
    }
}

/// Watches CPUs `cpus` for `span`, and says how they stalled.
pub fn finding(cpus: &[u32], span: Duration) -> Finding {
    let from = clock::monotonic() + SETTLE;
    let pauses: Vec<_> = std::thread::scope(|scope| {
        let watch = |cpu: &u32| {
            let cpu = *cpu as usize;
            scope.spawn(move || watch(cpu, from, from + span))
        };
        let threads: Vec<_> = cpus.iter().map(watch).collect();
        threads
            .into_iter()
            .filter_map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    told(&pauses, span)
}

/// The pauses of one CPU; `None` if we may not use it.
fn watch(cpu: usize, from: Time, until: Time) -> Option<Vec<Pause>> {
    clock::prepare_thread(Some(cpu)).ok()?;
    let mut pauses = Vec::new();
    let mut before = clock::monotonic();
    while before < until && pauses.len() < PAUSES_MAX {
        let now = clock::monotonic();
        if now.saturating_since(before) >= PAUSE_MIN && before >= from {
            pauses.push(Pause { begin: before, end: now });
        }
        before = now;
    }
    Some(pauses)
}

/// What the pauses of each CPU mean.
fn told(processors: &[Vec<Pause>], span: Duration) -> Finding {
    let purpose = "a sender that pauses for a tenth of a frame is out of step";
    let finding = |text: &str| Finding::ok(GROUP, "stalls of the CPUs", purpose, text);
    if processors.is_empty() {
        return finding("unknown: no CPU core may be used").but(State::Limited, "");
    }
    let long = |pauses: &[Pause]| -> Vec<Pause> {
        pauses.iter().copied().filter(|pause| pause.length() > PAUSE_LONG).collect()
    };
    let long: Vec<_> = processors.iter().map(|pauses| long(pauses)).collect();
    let Some(longest) = long.iter().flatten().map(|pause| pause.length()).max() else {
        return finding(&format!("never for {PAUSE_LONG} in {span} of work"));
    };
    let count: usize = long.iter().map(Vec::len).sum();
    let together = together(&long);
    let text = format!(
        "{count} times in {span} of work, {:.1} ms at most; {together} times all cores at once",
        longest.as_millis_f64()
    );
    let mend = if together * long.len() * 2 > count && long.len() > 1 {
        "the machine below halts all cores at once, as for a quota: more of it, or a machine of your own"
    } else {
        "end other work, or keep it off the cores that send: isolcpus= at boot, --cpu"
    };
    finding(&text).but(State::Limited, mend)
}

/// Pauses of the first CPU during which all others paused too.
fn together(processors: &[Vec<Pause>]) -> usize {
    let Some((first, others)) = processors.split_first() else { return 0 };
    let everywhere = |pause: &&Pause| {
        others.iter().all(|pauses| pauses.iter().any(|other| other.overlaps(**pause)))
    };
    first.iter().filter(everywhere).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(of: &[(u64, u64)]) -> Vec<Pause> {
        let pause = |(begin, ms): &(u64, u64)| {
            let begin = Time::from_millis(*begin);
            Pause { begin, end: begin + Duration::from_millis(*ms) }
        };
        of.iter().map(pause).collect()
    }

    #[test]
    fn a_quota_is_told_from_other_work() {
        let span = Duration::from_secs(6);
        let row = |processors: &[Vec<Pause>]| {
            let check = told(processors, span).check;
            (check.state, check.found, check.mend.unwrap_or_default())
        };
        let (state, found, _) = row(&[pauses(&[(5, 1)]), pauses(&[])]);
        assert_eq!((state, found.as_str()), (State::Ok, "never for 1.668 ms in 6 s of work"));
        let quota =
            [pauses(&[(1000, 30), (5000, 24), (5500, 3)]), pauses(&[(1002, 30), (5001, 22)])];
        let (state, found, mend) = row(&quota);
        assert_eq!(state, State::Limited);
        assert_eq!(found, "5 times in 6 s of work, 30.0 ms at most; 2 times all cores at once");
        assert!(mend.contains("quota"), "{mend}");
        let busy = [pauses(&[(1000, 4), (2000, 4), (3000, 4)]), pauses(&[(1003, 4)])];
        let (_, found, mend) = row(&busy);
        assert_eq!(found, "4 times in 6 s of work, 4.0 ms at most; 1 times all cores at once");
        assert!(mend.contains("isolcpus"), "{mend}");
    }

    #[test]
    fn processors_that_we_may_not_use_are_left_out() {
        let found = finding(&[100_000], Duration::from_millis(1)).check.found;
        assert_eq!(found, "unknown: no CPU core may be used");
    }
}
