//! The kernel's own timing of BPF programs.

use std::collections::BTreeMap;
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;

use super::{Probes, SYSTEM_CALLS};
use crate::event::Point;

/// While this value lives, the kernel times every run of every BPF program (BPF_ENABLE_STATS,
/// bpf(2)). That means two clock readings per run, and the times include part of them.
#[derive(Debug)]
pub struct Timing {
    _open: OwnedFd,
}

impl Timing {
    /// Starts timing.
    ///
    /// # Errors
    /// A kernel before Linux 5.8, or no CAP_SYS_ADMIN.
    pub fn start() -> Result<Self> {
        // SAFETY: the call takes a number.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return Err(Error::from_raw_os_error(-fd));
        }
        // SAFETY: it was just opened and has no other owner.
        Ok(Self { _open: unsafe { OwnedFd::from_raw_fd(fd) } })
    }
}

/// The points for which each program works. The kernel never skips those at netfilter and in control groups.
const POINT_OF: [(&str, Point); 8] = [
    (SYSTEM_CALLS, Point::SendCall),
    (SYSTEM_CALLS, Point::SendTransport),
    ("sock_send_length", Point::SendCall),
    ("net_dev_queue", Point::SendQdisc),
    ("net_dev_start_xmit", Point::SendDriver),
    ("netif_receive_skb", Point::ReceiveDevice),
    ("sock_recv_length", Point::ReceiveCall),
    ("kfree_skb", Point::Dropped),
];

/// The runs of programs while they were timed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// How often they ran.
    pub count: u64,
    /// Their total run time.
    pub ns: u64,
}

impl Runs {
    /// The runs since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count.saturating_sub(earlier.count),
            ns: self.ns.saturating_sub(earlier.ns),
        }
    }
}

impl Probes {
    /// The runs of these programs, and no others, while timing was on.
    ///
    /// # Errors
    /// If the kernel cannot be read.
    pub fn runs(&self) -> Result<Runs> {
        let mut runs = Runs::default();
        self.each_info(|_, info| {
            runs.count += info.run_cnt;
            runs.ns += info.run_time_ns;
        })?;
        Ok(runs)
    }

    /// How often the kernel did not run a point's program because the CPU was running it already.
    ///
    /// # Errors
    /// If the kernel cannot be read.
    pub fn skipped(&self) -> Result<BTreeMap<Point, u64>> {
        let mut skipped = BTreeMap::new();
        self.each_info(|name, info| {
            for (_, point) in POINT_OF.iter().filter(|(program, _)| *program == name) {
                *skipped.entry(*point).or_insert(0) += info.recursion_misses;
            }
        })?;
        Ok(skipped)
    }

    fn each_info(&self, mut each: impl FnMut(&str, &libbpf_sys::bpf_prog_info)) -> Result<()> {
        for program in self.object.progs().filter(libbpf_rs::Program::autoload) {
            let mut info = libbpf_sys::bpf_prog_info::default();
            let mut bytes = size_of_val(&info) as u32;
            let fd = program.as_fd().as_raw_fd();
            // SAFETY: both pointers are to values of these types, whose size is given and zeroed.
            let told =
                unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd, &raw mut info, &raw mut bytes) };
            if told < 0 {
                return Err(Error::from_raw_os_error(-told));
            }
            each(&program.name().to_string_lossy(), &info);
        }
        Ok(())
    }
}
