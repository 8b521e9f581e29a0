//! Which CPU a thread stays on.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPU with number `nth` among those that this process may use, counted from 0 and wrapping around; `None` if the
/// system does not report which they are.
pub fn nth(nth: u8) -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    let all: Vec<_> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    all.get(usize::from(nth) % all.len().max(1)).copied()
}

/// Keeps the calling thread on a CPU.
///
/// # Errors
/// If there is no such CPU, or this process may not use it.
pub fn stay_on(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::other(format!("CPU {cpu} does not exist")));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
        .map_err(|e| io::Error::other(format!("pinning a thread to CPU {cpu}: {e}")))
}

/// Keeps the calling thread on the CPU that [`nth`] names.
///
/// # Errors
/// As of [`stay_on`].
pub fn stay_on_nth(number: u8) -> io::Result<()> {
    let unknown = || io::Error::other("the system does not report which CPUs there are");
    stay_on(nth(number).ok_or_else(unknown)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_its_cpu() {
        let allowed = sched_getaffinity(None).unwrap();
        let count = u8::try_from(allowed.count().min(200)).unwrap();
        let cpus: Vec<_> = (0..count).map(|number| nth(number).unwrap()).collect();
        assert!(cpus.is_sorted_by(|a, b| a < b), "{cpus:?}");
        assert!(cpus.iter().all(|cpu| allowed.is_set(*cpu)));
        assert!(allowed.count() > 200 || nth(count) == nth(0));
        let last = *cpus.last().unwrap();
        std::thread::spawn(move || {
            stay_on(last).unwrap();
            let now = sched_getaffinity(None).unwrap();
            assert!(now.count() == 1 && now.is_set(last));
            assert_eq!(rustix::thread::sched_getcpu(), last);
        })
        .join()
        .unwrap();
        let error = stay_on(100_000).unwrap_err();
        assert_eq!(error.to_string(), "CPU 100000 does not exist");
    }
}
