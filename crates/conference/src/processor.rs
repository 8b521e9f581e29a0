//! Which CPU a thread stays on, and how it stands among others there.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use suiro_endpoint::net::NetError;

/// Keeps this thread on CPU number `nth` of those that it may use, from 0 and round again.
///
/// # Errors
/// If the kernel refuses.
pub fn stay_on(nth: u8) -> Result<(), NetError> {
    let failed = |error: Errno| NetError::Io { doing: "staying on one CPU", cause: error.into() };
    let allowed = sched_getaffinity(None).map_err(failed)?;
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let mut set = CpuSet::new();
    if let Some(cpu) = all.get(usize::from(nth) % all.len().max(1)) {
        set.set(*cpu);
    }
    sched_setaffinity(None, &set).map_err(failed)
}

/// Puts this thread before every ordinary one (SCHED_FIFO), or among them.
///
/// # Errors
/// If it may not; real-time priority needs CAP_SYS_NICE.
pub fn come_first(first: bool) -> Result<(), NetError> {
    let (policy, priority) = if first { (libc::SCHED_FIFO, 1) } else { (libc::SCHED_OTHER, 0) };
    let to = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 is the calling thread; the parameters outlive the call.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const to) } == 0 {
        return Ok(());
    }
    let cause = std::io::Error::last_os_error();
    Err(NetError::Io { doing: "changing the priority of the flood", cause })
}
