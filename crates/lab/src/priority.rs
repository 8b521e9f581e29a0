//! The trial's share of the CPUs, next to what else runs on the machine.

use std::fs;

/// How far a trial is put before other programs, as `nice` counts: 10 steps weigh about nine times as much.
const NICE: i32 = -10;

/// Puts this process, and all that it starts later, before the other programs of the machine; endpoints keep their
/// shares of each other. This process must lead a session. It needs privilege (CAP_SYS_NICE): without it, nothing changes.
pub fn raise() {
    if rustix::process::setpriority_process(None, NICE).is_ok() {
        // Where the kernel groups processes by session, it weighs the group and not its processes (sched(7)).
        let _ = fs::write("/proc/self/autogroup", NICE.to_string());
    }
}

/// The `nice` value of this process, -20 (first) to 19 (last); `None` if the kernel does not say.
pub(crate) fn nice() -> Option<i32> {
    rustix::process::getpriority_process(None).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_nice_value() {
        assert!(nice().is_some_and(|nice| (-20..=19).contains(&nice)));
    }
}
