//! Reads what the scheduler and the softirqs did: two maps, summed over threads and CPUs.

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::Probes;
use super::records::{self, Plain};

const WAITING: u64 = records::WAITING as u64;
const RUNNING: u64 = records::RUNNING as u64;

/// Sums since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Threads of the application were ready and waited for a CPU.
    pub waiting_ns: Option<u64>,
    /// Threads of the application ran.
    pub running_ns: Option<u64>,
    /// The network's receive softirq was raised and had not started.
    pub softirq_late_ns: Option<u64>,
}

/// The maps of the scheduling programs.
pub struct Schedule {
    followed: Option<MapHandle>,
    softirqs: Option<MapHandle>,
}

impl Schedule {
    /// From attached programs; the maps of others are not read.
    ///
    /// # Errors
    /// If the kernel does not give the maps.
    pub fn of(probes: &Probes) -> libbpf_rs::Result<Self> {
        let lacks = |names: [&str; 2]| names.iter().any(|n| probes.missing().contains_key(n));
        let map = |names, map| (!lacks(names)).then(|| probes.map(map)).transpose();
        Ok(Self {
            followed: map(["sched_switch", "sched_wakeup"], "followed")?,
            softirqs: map(["softirq_raise", super::SOFTIRQ_BEGINS], "softirqs")?,
        })
    }

    /// The sums up to `now_ns` (CLOCK_MONOTONIC), including what is still in progress.
    ///
    /// # Errors
    /// If the kernel does not give the values.
    pub fn sums(&self, now_ns: u64) -> libbpf_rs::Result<Sums> {
        let mut sums = Sums::default();
        if let Some(followed) = &self.followed {
            let (mut waiting_ns, mut running_ns) = (0, 0);
            for id in followed.keys() {
                // A thread may end between the two calls.
                let Some(bytes) = followed.lookup(&id, MapFlags::ANY)? else { continue };
                let thread = thread_sums(&bytes, now_ns);
                waiting_ns += thread.0;
                running_ns += thread.1;
            }
            sums.waiting_ns = Some(waiting_ns);
            sums.running_ns = Some(running_ns);
        }
        if let Some(softirqs) = &self.softirqs {
            let cpus = softirqs.lookup_percpu(&[0; 4], MapFlags::ANY)?.unwrap_or_default();
            sums.softirq_late_ns = Some(cpus.iter().map(|bytes| softirq_late(bytes, now_ns)).sum());
        }
        Ok(sums)
    }
}

/// How long a thread waited, and ran.
fn thread_sums(bytes: &[u8], now_ns: u64) -> (u64, u64) {
    let thread = records::Schedule::read(bytes);
    let going_on = now_ns.saturating_sub(thread.since_ns);
    let of = |state, sum| sum + if thread.state == state { going_on } else { 0 };
    (of(WAITING, thread.waiting_ns), of(RUNNING, thread.running_ns))
}

/// How long the softirq of a CPU was delayed in total.
fn softirq_late(bytes: &[u8], now_ns: u64) -> u64 {
    let softirq = records::Softirq::read(bytes);
    let raised = Some(softirq.raised_ns).filter(|&raised| raised != 0);
    softirq.late_ns + raised.map_or(0, |raised| now_ns.saturating_sub(raised))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(words: [u64; N]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn states_in_progress_count() {
        assert_eq!(thread_sums(&bytes([100, 5, 7, 0]), 130), (5, 7));
        assert_eq!(thread_sums(&bytes([100, 5, 7, WAITING]), 130), (35, 7));
        assert_eq!(thread_sums(&bytes([100, 5, 7, RUNNING]), 130), (5, 37));
        assert_eq!(softirq_late(&bytes([0, 9]), 130), 9);
        assert_eq!(softirq_late(&bytes([100, 9]), 130), 39);
        // The reading was taken before the change.
        assert_eq!(thread_sums(&bytes([140, 5, 7, RUNNING]), 130), (5, 7));
    }
}
