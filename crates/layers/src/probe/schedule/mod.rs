//! Reads what the scheduler and the softirqs did: sums of states that are over, and the states of threads and CPUs now.

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::Probes;
use super::records::{self, Plain};
use crate::event::Second;

const WAITING: u64 = records::WAITING as u64;
const RUNNING: u64 = records::RUNNING as u64;

/// Sums since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    /// Threads of the application were ready and waited for a CPU.
    pub waiting_ns: Option<u64>,
    /// Threads of the application ran.
    pub running_ns: Option<u64>,
    /// How often a thread of the application was refused, because so many others are followed.
    pub unfollowed: u64,
    /// The network's receive softirq was raised and had not started, by CPU.
    pub softirq_late_ns: Option<Vec<u64>>,
}

impl Sums {
    /// What this second added to the sums at its beginning. If a thread was refused in it, the times of threads are not
    /// known. Of the CPUs, the latest counts: the packets of a flow arrive at one of them, and the delays of several are no
    /// share of the time.
    pub fn since(&self, begin: &Self, second: u32) -> Second {
        let all = self.unfollowed == begin.unfollowed;
        let of = |now: Option<u64>, begin: Option<u64>| {
            Some(now?.saturating_sub(begin?)).filter(|_| all)
        };
        let late_ns = |now: &Vec<u64>, begin: &Vec<u64>| {
            let cpus = now.iter().zip(begin);
            cpus.map(|(now, begin)| now.saturating_sub(*begin)).max().unwrap_or(0)
        };
        let late = self.softirq_late_ns.as_ref().zip(begin.softirq_late_ns.as_ref());
        Second {
            second,
            waiting_ns: of(self.waiting_ns, begin.waiting_ns),
            running_ns: of(self.running_ns, begin.running_ns),
            softirq_late_ns: late.map(|(now, begin)| late_ns(now, begin)),
        }
    }
}

/// The maps of the scheduling programs.
pub struct Schedule {
    followed: Option<MapHandle>,
    served: Option<MapHandle>,
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
        let scheduler = ["sched_switch", "sched_wakeup"];
        Ok(Self {
            followed: map(scheduler, "followed")?,
            served: map(scheduler, "served")?,
            softirqs: map(["softirq_raise", super::SOFTIRQ_BEGINS], "softirqs")?,
        })
    }

    /// The sums up to `now_ns` (CLOCK_MONOTONIC), including what is still in progress. A state that ends while this reads
    /// is missing, and is in the next sums. Sums are never less than the `earlier` ones.
    ///
    /// # Errors
    /// If the kernel does not give the values.
    pub fn sums(&self, now_ns: u64, earlier: &Sums) -> libbpf_rs::Result<Sums> {
        let mut sums = Sums::default();
        if let (Some(served), Some(followed)) = (&self.served, &self.followed) {
            let (mut waiting_ns, mut running_ns) = (0, 0);
            let cpus = served.lookup_percpu(&[0; 4], MapFlags::ANY)?.unwrap_or_default();
            for served in cpus.iter().map(|bytes| records::Served::read(bytes)) {
                waiting_ns += served.waiting_ns;
                running_ns += served.running_ns;
                sums.unfollowed += served.unfollowed;
            }
            for key in followed.keys() {
                // A thread may end between the two calls.
                let Some(bytes) = followed.lookup(&key, MapFlags::ANY)? else { continue };
                let thread = in_progress(&bytes, now_ns);
                waiting_ns += thread.0;
                running_ns += thread.1;
            }
            sums.waiting_ns = Some(waiting_ns).max(earlier.waiting_ns);
            sums.running_ns = Some(running_ns).max(earlier.running_ns);
        }
        if let Some(softirqs) = &self.softirqs {
            let cpus = softirqs.lookup_percpu(&[0; 4], MapFlags::ANY)?.unwrap_or_default();
            let late = cpus.iter().map(|bytes| softirq_late(bytes, now_ns));
            sums.softirq_late_ns = Some(late.collect());
        }
        Ok(sums)
    }
}

/// For how long a thread has been waiting, or has been running.
fn in_progress(bytes: &[u8], now_ns: u64) -> (u64, u64) {
    let thread = records::Schedule::read(bytes);
    let going_on = now_ns.saturating_sub(thread.since_ns);
    let of = |state| if thread.state == state { going_on } else { 0 };
    (of(WAITING), of(RUNNING))
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
        assert_eq!(in_progress(&bytes([100, 0]), 130), (0, 0));
        assert_eq!(in_progress(&bytes([100, WAITING]), 130), (30, 0));
        assert_eq!(in_progress(&bytes([100, RUNNING]), 130), (0, 30));
        assert_eq!(softirq_late(&bytes([0, 9]), 130), 9);
        assert_eq!(softirq_late(&bytes([100, 9]), 130), 39);
        // The reading was taken before the change.
        assert_eq!(in_progress(&bytes([140, RUNNING]), 130), (0, 0));
    }

    #[test]
    fn times_are_not_known_of_a_second_with_threads_that_were_not_followed() {
        let sums = |waiting_ns, unfollowed| Sums {
            waiting_ns: Some(waiting_ns),
            running_ns: Some(2 * waiting_ns),
            unfollowed,
            softirq_late_ns: Some(vec![waiting_ns]),
        };
        let measured = sums(7, 3).since(&sums(5, 3), 0);
        assert_eq!((measured.waiting_ns, measured.running_ns), (Some(2), Some(4)));
        let beyond = sums(7, 4).since(&sums(5, 3), 0);
        assert_eq!((beyond.waiting_ns, beyond.running_ns), (None, None));
        assert_eq!(beyond.softirq_late_ns, Some(2));
    }

    #[test]
    fn a_seconds_softirq_is_that_of_the_latest_cpu() {
        let begin = Sums {
            waiting_ns: Some(5),
            running_ns: None,
            unfollowed: 0,
            softirq_late_ns: Some((100..116).collect()),
        };
        // Each of 16 CPUs was late for 8 ms, one for 9 ms.
        let late = |cpu: u64| 100 + cpu + if cpu == 3 { 9_000_000 } else { 8_000_000 };
        let now = Sums {
            waiting_ns: Some(7),
            running_ns: Some(1),
            unfollowed: 0,
            softirq_late_ns: Some((0..16).map(late).collect()),
        };
        let expected = Second {
            second: 4,
            waiting_ns: Some(2),
            running_ns: None,
            softirq_late_ns: Some(9_000_000),
        };
        assert_eq!(now.since(&begin, 4), expected);
        assert_eq!(now.since(&Sums::default(), 0).softirq_late_ns, None);
    }
}
