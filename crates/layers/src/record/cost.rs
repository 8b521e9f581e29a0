//! The cost of recording, as measured by the recorder: the run time of its programs, in a sample.

use crate::event::{KernelSample, Point};
use crate::probe::Probes;
use crate::probe::raw::{RAW_BYTES, Raw};
use crate::probe::timing::{Runs, Timing};

/// How long the kernel times the programs: timing costs some 45 ns per run.
const SAMPLE_NS: u64 = 1_000_000_000;

/// Passages, by point.
#[derive(Debug, Default, Clone, Copy)]
pub struct Passed([u64; Point::ALL.len()]);

impl Passed {
    /// Counts one passage of so many packets.
    pub fn add(&mut self, point: Point, packets: u64) {
        self.0[point as usize] += packets;
    }

    /// Packets that passed the host: the maximum over the points of each direction, because points may be missing and
    /// packets may be lost on their way. TCP system calls have no packets.
    pub fn packets(&self) -> u64 {
        let most = |first: Point, last: Point| {
            self.0[first as usize..=last as usize].iter().max().copied().unwrap_or(0)
        };
        most(Point::SendIp, Point::SendDriver) + most(Point::ReceiveDevice, Point::ReceiveSocket)
    }
}

/// The sample, from the first packet on.
#[derive(Debug)]
pub enum Sampling {
    /// No packet has arrived.
    Waiting,
    /// The kernel times the programs.
    Runs(Sample),
    /// The result, or why there is none.
    Ended(Result<KernelSample, String>),
}

/// A sample in progress.
#[derive(Debug)]
pub struct Sample {
    _timing: Timing,
    before: Runs,
    began_ns: u64,
    passed: Passed,
}

impl Sampling {
    /// Counts the packets of raw events, while the sample runs.
    pub fn count(&mut self, raw: &[u8]) {
        let Self::Runs(sample) = self else { return };
        for raw in raw.as_chunks::<RAW_BYTES>().0.iter().filter_map(Raw::parse) {
            if !raw.other {
                raw.points().for_each(|(point, _)| sample.passed.add(point, raw.packets().into()));
            }
        }
    }

    /// Whether the sample is waiting for a packet.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Waiting)
    }

    /// Starts. The kernel has been timing the programs for a moment, and the buffer has just been emptied.
    pub fn begin(&mut self, timing: std::io::Result<Timing>, probes: &Probes, now_ns: u64) {
        let sample = timing.and_then(|timing| {
            let (before, passed) = (probes.runs()?, Passed::default());
            Ok(Sample { _timing: timing, before, began_ns: now_ns, passed })
        });
        *self = sample.map_or_else(|error| Self::Ended(Err(refused(&error))), Self::Runs);
    }

    /// Ends the sample if it is over, when the buffer has just been emptied.
    pub fn look(&mut self, probes: &Probes, now_ns: u64) {
        if let Self::Runs(sample) = self
            && now_ns >= sample.began_ns + SAMPLE_NS
        {
            self.end(probes, now_ns);
        }
    }

    /// Ends a sample in progress.
    pub fn end(&mut self, probes: &Probes, now_ns: u64) {
        if let Self::Runs(sample) = self {
            *self = Self::Ended(sample.told(probes, now_ns));
        }
    }

    /// The sample, or why there is none.
    pub fn told(&self) -> Result<KernelSample, String> {
        match self {
            Self::Waiting => Err("no packet arrived".into()),
            Self::Runs(_) => Err("its sample is not complete".into()),
            Self::Ended(told) => told.clone(),
        }
    }
}

impl Sample {
    fn told(&self, probes: &Probes, now_ns: u64) -> Result<KernelSample, String> {
        let runs = probes.runs().map_err(|error| refused(&error))?.since(self.before);
        let packets = self.passed.packets();
        if packets == 0 || runs.count == 0 {
            return Err("the recording ended before a packet was timed".into());
        }
        let lasted_ns = now_ns - self.began_ns;
        Ok(KernelSample { packets, runs: runs.count, run_ns: runs.ns, lasted_ns })
    }
}

fn refused(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "timing BPF programs needs CAP_SYS_ADMIN".into(),
        _ => format!("timing BPF programs: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_counts_once_in_each_direction() {
        let mut passed = Passed::default();
        assert_eq!(passed.packets(), 0);
        // A super-packet of 40 segments in one call; three of five datagrams that arrived were dropped.
        passed.add(Point::SendCall, 1);
        passed.add(Point::SendIp, 40);
        passed.add(Point::SendDriver, 40);
        passed.add(Point::ReceiveDevice, 5);
        passed.add(Point::ReceiveSocket, 2);
        passed.add(Point::ReceiveCall, 100);
        passed.add(Point::Dropped, 100);
        assert_eq!(passed.packets(), 45);
    }

    #[test]
    fn missing_privileges_for_timing_are_named() {
        let told = |number| refused(&std::io::Error::from_raw_os_error(number));
        assert!(told(libc::EPERM).contains("CAP_SYS_ADMIN"), "{}", told(libc::EPERM));
        assert!(told(libc::EINVAL).contains("Invalid argument"), "{}", told(libc::EINVAL));
    }
}
