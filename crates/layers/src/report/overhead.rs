//! The cost of recording on a host, per packet.

use std::fmt;

use serde::Serialize;

use crate::event::{KernelSample, Point, Recording};

/// The cost of recording on a host, as measured by the recorder itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overhead {
    /// Packets of the chosen flows that passed the host; null if it is not known what recording cost.
    pub packets: Option<u64>,
    /// Run time of the recorder's BPF programs, in nanoseconds per packet of the sample; null if unknown.
    pub kernel_ns_per_packet: Option<f64>,
    /// The sample; null if there is none.
    pub sample: Option<KernelSample>,
    /// CPU time of the recorder while it recorded, in nanoseconds per packet; null if unknown, or if no
    /// packet came.
    pub recorder_ns_per_packet: Option<f64>,
    /// The same thereafter, to read what was recorded and write it.
    pub writing_ns_per_packet: Option<f64>,
    /// Events that the recorder itself lost.
    pub events_lost: u64,
    /// Runs of its BPF programs that the kernel skipped; each may be a passage that was not seen.
    pub runs_skipped: u64,
    /// Why some of these are null; null if none is.
    pub missing: Option<String>,
}

impl Overhead {
    /// The cost according to a recording.
    pub fn of(recording: &Recording) -> Self {
        let cost = recording.cost.as_ref();
        let share = |ns: u64, packets: u64| (packets > 0).then(|| ns as f64 / packets as f64);
        let sample = cost.and_then(|cost| cost.kernel);
        let missing = match cost {
            None => Some("not recorded: a capture, or made by an older recorder".to_owned()),
            Some(cost) => cost.kernel_missing.clone(),
        };
        Self {
            packets: cost.map(|cost| cost.packets),
            kernel_ns_per_packet: sample.and_then(|sample| share(sample.run_ns, sample.packets)),
            sample,
            recorder_ns_per_packet: cost.and_then(|cost| share(cost.recorder_ns, cost.packets)),
            writing_ns_per_packet: cost.and_then(|cost| share(cost.writing_ns, cost.packets)),
            events_lost: recording.points.iter().map(|status| status.lost).sum(),
            // Two points have the program at system calls.
            runs_skipped: recording
                .points
                .iter()
                .filter(|status| status.point != Point::SendTransport)
                .map(|status| status.skipped)
                .sum(),
            missing,
        }
    }
}

/// `recording: 1.20 µs a packet in the kernel, 6.0 % of a processor (sample of 50000 in 1.00 s), …`. The share is
/// included because some programs run at every system call and context switch, however few packets there are.
impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.events_lost;
        let because = self.missing.as_deref().unwrap_or("no packet arrived");
        if self.packets.is_none() {
            return write!(f, "recording: cost unknown ({because}), {lost} events lost");
        }
        match (self.kernel_ns_per_packet, self.sample) {
            (Some(ns), Some(sample)) => write!(
                f,
                "recording: {:.2} µs a packet in the kernel, {:.1} % of a CPU (sample of {} in {:.2} s)",
                ns / 1e3,
                sample.run_ns as f64 * 100.0 / sample.lasted_ns.max(1) as f64,
                sample.packets,
                sample.lasted_ns as f64 / 1e9
            )?,
            _ => write!(f, "recording: unknown in the kernel ({because})")?,
        }
        if let Some(ns) = self.recorder_ns_per_packet {
            write!(f, ", {:.2} µs in the recorder", ns / 1e3)?;
        }
        if let Some(ns) = self.writing_ns_per_packet {
            write!(f, ", {:.2} µs after it ended", ns / 1e3)?;
        }
        write!(f, ", {lost} events lost")?;
        match self.runs_skipped {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} runs of programs skipped by the kernel"),
        }
    }
}
